"""A stack fitted to measured figures, written as YAML: `like` the one it starts from, with what the rows changed.

`python -m planner.evidence.calibrate` refits every shipped stack that shipped measurements name, in place.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import BadFile, UnknownName, nearest, one_line
from planner.evaluate.results import Result
from planner.evidence.fit import PARAMETERS, ROWS_PER_PARAMETER, Fit, fit, scored, start_of, telling
from planner.evidence.names import table
from planner.evidence.predict import Ready, deployable
from planner.evidence.rows import read_table
from planner.evidence.scores import spread
from planner.evidence.shipped import measurements
from planner.evidence.validate import fits
from planner.specs.library import find, load_stack, load_system, names
from planner.specs.yaml_file import read_yaml

UNITS = {"us": 1e-6, "ms": 1e-3, "1": 1.0}
GROUP = "maturity"
"""Fixed times and the prefill factor are good or bad together."""
PLACES = {
    "stack.layer_time": "layer_time",
    "stack.prefill_factor": "prefill_factor",
    "stack.first_token_time": "first_token_time",
    "kernel.experts.floor": "kernels.experts.floor",
    "kernel.experts.narrow_floor": "kernels.experts.narrow_floor",
}


@dataclass(frozen=True)
class Calibrated(Result):
    """One parameter after the fit, in its unit."""

    name: str
    unit: str
    before: float
    value: float
    low: float
    high: float
    fitted: bool
    identified: bool


@dataclass(frozen=True)
class Calibration(Result):
    """What `planner calibrate` answers."""

    stack: str
    like: str
    chip: str
    rows: int
    sources: list[str]
    skipped: list[dict[str, str]]
    parameters: list[Calibrated]
    not_identified: list[str]
    basis: str
    median_abs_log_ratio: float
    p90_abs_log_ratio: float
    before_median_abs_log_ratio: float
    text: str


def calibrate(path: str | Path, *, chip: str, stack: str, name: str) -> Calibration:
    """Fit `stack` to the rows of a table on this chip, as a new stack `name`. Raises BadFile, UnknownName."""
    if chip not in names("chip"):
        raise UnknownName("--chip", f"unknown chip {chip!r}", nearest(chip, names("chip")))
    load_stack(stack)
    if name in names("stack"):
        raise BadFile("--out", f"{name} is the name of a shipped stack", "give the file another name")
    table = read_table(Path(path))
    here = {row.id for row in table.rows if load_system(row.system).chip == chip}
    mine = [row.model_copy(update={"stack": stack}) for row in table.rows if row.id in here]
    skipped = table.skipped | {row.id: f"is not on {chip}" for row in table.rows if row.id not in here}
    items, left = deployable(mine)
    skipped |= left
    kept = [item for item in items if scored(item)]
    skipped |= {item.row.id: "grade C, one operator alone, or TTFT under load" for item in items if not scored(item)}
    if not kept:
        raise BadFile(str(path), f"no row on {chip} can be used", next(iter(skipped.values()), "the table is empty"))
    start = start_of(kept)
    found = fit(kept, start, telling(kept))
    if not any(found.identified.values()):
        what = "the rows identify no parameter: what they measure does not move with it, or is too far off"
        raise BadFile(str(path), what, "give TPOT rows within a factor of some of the stack's prediction")
    before = fit(kept, start, ())
    return described(found, kept, stack, name, chip, skipped, start, spread(list(before.residuals))[0])


def described(
    found: Fit, kept: Sequence[Ready], like: str, name: str, chip: str, skipped: dict[str, str],
    start: dict[str, float], before: float,
) -> Calibration:  # fmt: skip
    """A fit as it is answered."""
    median, p90, _ = spread(list(found.residuals))
    sources = sorted({item.row.source for item in kept})
    rows = []
    for p in PARAMETERS:
        scale, fitted = UNITS[p.unit], p.name in found.values
        value = found.values.get(p.name, start.get(p.name, 0.0))
        low, high = found.low.get(p.name, value), found.high.get(p.name, value)
        if like and len(sources) == 1:
            low, high = as_wide_as(like, p.name, value)
        identified = found.identified.get(p.name, False)
        old, value, low, high = (number / scale for number in (start.get(p.name, 0.0), value, low, high))
        rows.append(Calibrated(p.name, p.unit, old, value, low, high, fitted, identified))
    enough = len(kept) >= ROWS_PER_PARAMETER * len(found.values) and len(sources) > 1
    basis = "calibrated" if enough else "anchored"
    expected = (median, p90) if enough else (table()["anchored_error"]["median"], table()["anchored_error"]["p90"])
    text = written(name, like, rows, kept, sources, basis, expected)
    return Calibration(
        stack=name, like=like, chip=chip, rows=len(kept), sources=sources,
        skipped=[{"id": key, "reason": reason} for key, reason in skipped.items()], parameters=rows,
        not_identified=[row.name for row in rows if not (row.fitted and row.identified)], basis=basis,
        median_abs_log_ratio=median, p90_abs_log_ratio=p90, before_median_abs_log_ratio=before, text=text,
    )  # fmt: skip


def as_wide_as(like: str, name: str, value: float) -> tuple[float, float]:
    """A range around a value as wide, in proportion, as the stack's own: one source says nothing of the next."""
    stack, place = load_stack(like), PLACES[name]
    own: Any = stack.kernels.experts if place.startswith(EXPERTS) else stack
    base = getattr(own, place.removeprefix(EXPERTS))
    if base is None or base.value == 0:
        return value / UNCERTAIN, value * UNCERTAIN
    return value * base.low / base.value, value * base.high / base.value


UNCERTAIN = 2.0
"""The factor either way where a stack has no range to go by."""
EXPERTS = "kernels.experts."


def figure(row: Calibrated, source: str) -> str:
    """One fitted figure as YAML writes it."""
    unit = "" if row.unit == "1" else f" {row.unit}"
    parts = (("value", row.value), ("low", row.low), ("high", row.high))
    numbers = ", ".join(f"{key}: {value:.4g}{unit}" for key, value in parts)
    return f"{{{numbers}, status: fitted, with_group: {GROUP}, source: {quoted(source)}}}"


def written(
    name: str, like: str, rows: list[Calibrated], kept: Sequence[Ready], sources: list[str], basis: str,
    errors: tuple[float, float],
) -> str:  # fmt: skip
    """The stack's YAML."""
    shown = ", ".join(sources)
    drawn = "10th to 90th percentile over sources drawn again" if len(sources) > 1 else "as wide as before the fit"
    source = f"fit to {len(kept)} figures of {shown}; range: {drawn}"
    lines = [
        "# yaml-language-server: $schema=../schema/stack.schema.json",
        f"name: {quoted(name)}",
        f"title: {quoted(name + ', fitted to published or own measurements')}",
        f"like: {quoted(like) if like else ''}",
    ]
    told = {PLACES[row.name]: figure(row, source) for row in rows if row.fitted and row.identified}
    lines += nested(told)
    lines += [
        "expected_error:",
        f"  basis: {basis}",
        f"  median_fraction: {errors[0]:.3f}",
        f"  p90_fraction: {errors[1]:.3f}",
        f"  source: {quoted(of_error(basis, len(kept), shown))}",
    ]
    return "\n".join(lines) + "\n"


def nested(told: dict[str, str]) -> list[str]:
    """Lines of YAML for figures by place."""
    experts = [f"    {key.removeprefix(EXPERTS)}: {text}" for key, text in told.items() if key.startswith(EXPERTS)]
    plain = [f"{key}: {text}" for key, text in told.items() if not key.startswith(EXPERTS)]
    return [*(["kernels:", "  experts:"] if experts else []), *experts, *plain]


def quoted(text: str) -> str:
    """A text as YAML reads it back."""
    return json.dumps(one_line(text), ensure_ascii=False)


def of_error(basis: str, count: int, sources: str) -> str:
    """Where an expected error comes from."""
    if basis == "calibrated":
        return f"|ln(predicted / measured)| over {count} figures of {sources}, in sample"
    return f"anchored on {count} of {sources}: other sources predicted from their row of least load"


def refit_shipped() -> dict[str, Fit]:
    """Every shipped stack that shipped measurements name, fitted to them, its file written anew."""
    items, _ = deployable(measurements())
    kept = [item for item in items if scored(item)]
    found = fits(kept)
    for name, one in found.items():
        mine = [item for item in kept if item.row.stack == name]
        rewrite(find("stack", name), described(one, mine, "", name, "", {}, start_of(mine), 0.0).text)
    for name in MEDIANS:
        rewrite(find("stack", name), median_of({key: one for key, one in found.items() if like(key) == name}))
    return found


MEDIANS = ("engines-hopper", "engines-blackwell")
"""Stacks of an engine that was never measured: the median of those that are like them."""


def like(name: str) -> str:
    """The stack another starts from."""
    return str(read_yaml(find("stack", name)).get("like", ""))


def median_of(found: dict[str, Fit]) -> str:
    """What an unmeasured engine is taken for: the median of fitted ones, from the least to the most of them."""
    told = {}
    for p in PARAMETERS:
        values = sorted(one.values[p.name] / UNITS[p.unit] for one in found.values() if p.name in one.values)
        if values:
            row = Calibrated(p.name, p.unit, 0.0, float(np.median(values)), values[0], values[-1], True, True)
            text = figure(row, f"median, least and most of the fitted stacks {', '.join(sorted(found))}")
            told[PLACES[p.name]] = text.replace("status: fitted", "status: analogy")
    lines = nested(told)
    return "like: \n" + "\n".join(lines) + "\n"


def rewrite(path: Path, text: str) -> None:
    """Replace the fitted part of a shipped stack's file, below its marker."""
    old = path.read_text(encoding="utf-8")
    if MARK in old:
        body = text.split("like: \n", 1)[1]
        path.write_text(old[: old.index(MARK)] + MARK + "\n" + body, encoding="utf-8")


MARK = "# Fitted: written by python -m planner.evidence.calibrate; do not edit below."

if __name__ == "__main__":
    for name, one in refit_shipped().items():
        print(name, {key: float(f"{value:.4g}") for key, value in one.values.items()})
