"""Kernels of a stack fitted to a table of their latencies, written as a stack `like` the one it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import BadFile
from planner.evaluate.results import Result
from planner.evidence.calibrate import quoted
from planner.evidence.kernel_fit import Fitted, fit_kernels
from planner.evidence.kernel_rows import KernelRow, read_kernels
from planner.specs.library import load_stack, load_system, names

MICRO = 1e-6
TIMES = ("floor", "token_time", "row_time", "expert_time")
"""Inputs that are seconds; the others are plain numbers."""


@dataclass(frozen=True)
class KernelCalibration(Result):
    """What `planner calibrate` answers for a table of kernels."""

    stack: str
    like: str
    chip: str
    rows: int
    skipped: list[dict[str, Any]]
    kernels: list[dict[str, Any]]
    text: str


def calibrate_kernels(path: Path, *, chip: str, stack: str, name: str) -> KernelCalibration:
    """Fit the kernels of `stack` to the rows of one chip. Raises BadFile, UnknownName."""
    load_stack(stack)
    if name in names("stack"):
        raise BadFile("--out", f"{name} is the name of a shipped stack", "give the file another name")
    rows, skipped = read_kernels(path)
    mine = [row.model_copy(update={"stack": stack}) for row in rows if load_system(row.system).chip == chip]
    if not mine:
        raise BadFile(str(path), f"no row is on {chip}", "name the chip of the table's systems")
    one_kernel_each(path, mine)
    found = fit_kernels(mine)
    if not found:
        raise BadFile(str(path), "no row has a known load", "a recurrence or balanced experts are needed")
    left = [{"line": row.line, "reason": row.reason} for row in skipped]
    left += [{"line": row.line, "reason": f"is not on {chip}"} for row in rows if load_system(row.system).chip != chip]
    used = sum(one.rows for one in found)
    return KernelCalibration(
        stack=name, like=stack, chip=chip, rows=used, skipped=left, kernels=[one.model_dump() for one in found],
        text=written(name, stack, found),
    )  # fmt: skip


def one_kernel_each(path: Path, rows: list[KernelRow]) -> None:
    """A stack has one kernel of a class. Raises BadFile where a table has two."""
    labels: dict[str, str] = {}
    for row in rows:
        if labels.setdefault(row.kernel_class, row.label) != row.label:
            what = f"has two kernels of one class, {labels[row.kernel_class]} and {row.label}"
            raise BadFile(str(path), what, "a stack has one: split the table")


def written(name: str, like: str, found: list[Fitted]) -> str:
    """The stack's YAML."""
    lines = [
        "# yaml-language-server: $schema=../schema/stack.schema.json",
        f"name: {quoted(name)}",
        f"title: {quoted(name + ', kernels fitted to a table of latencies')}",
        f"like: {like}",
        "kernels:",
    ]
    for one in found:
        source = (
            f"fit to {one.rows} latencies of {one.kernel} on {', '.join(one.systems)}, median error {one.median:.3f}"
        )
        kernel = next(iter(one.values)).split(".")[1]
        lines += [f"  {kernel}:", f"    kernel: {quoted(one.kernel)}", "    basis: fitted"]
        for key, value in one.values.items():
            numbers = zip(("value", "low", "high"), (value, one.low[key], one.high[key]), strict=True)
            told = ", ".join(f"{part}: {shown(key, number)}" for part, number in numbers)
            lines.append(f"    {key.rpartition('.')[2]}: {{{told}, status: fitted, source: {quoted(source)}}}")
    return "\n".join(lines) + "\n"


def shown(key: str, value: float) -> str:
    """A number as YAML writes it, times in microseconds."""
    if key.rpartition(".")[2] in TIMES:
        return f"{value / MICRO:.5g} us"
    return f"{value:.5g}"
