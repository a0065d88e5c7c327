"""A table of kernel latencies as records: one row, one timed kernel, or the reason why it cannot be priced.

Columns, in any order: system, op, kernel, latency_us must be there, and by op

    kda_core                                   batch, seq_len, kda_heads_per_rank, phase (generation or context)
    routed_experts_{width}x{inner}_top{k}_of_{E}   num_tokens (whole expert-parallel group), moe_tp, moe_ep, moe_dtype,
                                               distribution (balanced or power_law_{exponent})
    megamoe_with_all_to_all                    the same; num_tokens of one rank; shapes are those of Kimi K3

`stack` names the stack that prices a row; blank or missing, measurements/kernels/names.yaml says it by kernel and chip,
and for a kernel that is not there the system's own stack does.
"""

from __future__ import annotations

import csv
import math
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from planner.errors import BadFile, PlannerError, one_line
from planner.evaluate.case import case_of
from planner.evaluate.inputs import Case
from planner.evidence.csv_file import exists, records
from planner.evidence.loads import Load, balanced, power_law
from planner.evidence.names import folder
from planner.kinds.formats import FormatName
from planner.kinds.weights import PLAIN
from planner.record import Record
from planner.specs.library import load_model, load_system
from planner.specs.yaml_file import read_yaml

NEEDED = ("system", "op", "kernel", "latency_us")
MODEL = "kimi-k3"
"""Whose layers the rows' shapes are put into."""
EXPERTS = re.compile(r"^routed_experts_([1-9]\d{0,6})x([1-9]\d{0,6})_top([1-9]\d{0,3})_of_([1-9]\d{0,4})$", re.ASCII)
FUSED = "megamoe_with_all_to_all"
POWER_LAW = re.compile(r"^power_law_(\d+(?:\.\d+)?)$")
STORED: FormatName = "mxfp4"
LARGEST_LAYER = 100_000  # experts x choices
COMPUTES = {"w4a8": "fp8", "w4a16": "bf16"}
"""What each kind of product computes in."""
FEWEST_SKEWED = 8
"""Tokens up to which a power law over several ranks depends on the draw alone."""
PHASES = {"generation": "decode", "context": "prefill"}
Op = Literal["kda", "experts"]


class Skip(Exception):
    """Why a row cannot be priced."""


class KernelRow(Record):
    """One timed kernel.

    kernel, dtype: as the table names them; label: as reports do. phase: decode, prefill or both. loads: how tokens
    spread over experts. tokens: of the pass, over the whole expert-parallel group for experts. width, inner, top_k,
    experts: of routed experts. assigned, active: assignments and distinct experts of the timed rank.
    """

    line: int
    system: str
    family: str
    kernel: str
    dtype: str = ""
    label: str
    stack: str
    op: Op
    phase: Literal["decode", "prefill", "both"]
    loads: str = ""
    sequences: int = 1
    tokens: int = Field(ge=1)
    tp: int = 1
    ep: int = 1
    etp: int = 1
    width: int = 0
    inner: int = 0
    top_k: int = 0
    experts: int = 0
    assigned: float = 0.0
    active: float = 0.0
    measured_s: float = Field(gt=0)

    @property
    def kernel_class(self) -> str:
        """The kernel of a stack that prices the row."""
        return "experts" if self.op == "experts" else f"recurrent_{self.phase}"


class Skipped(Record):
    """A row that was left out."""

    line: int
    reason: str


def is_kernel_table(path: Path) -> bool:
    """Whether a CSV file has the columns of kernel latencies."""
    if not exists(path):
        return False
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = next((line for line in file if line.strip() and not line.startswith("#")), "")
    except (OSError, UnicodeDecodeError):
        return False
    return set(NEEDED) <= {name.strip() for name in next(csv.reader([head]), [])}


def read_kernels(path: Path) -> tuple[list[KernelRow], list[Skipped]]:
    """The rows of a table and those left out. Raises BadFile where none can be priced."""
    rows: list[KernelRow] = []
    skipped: list[Skipped] = []
    seen: dict[tuple[Any, ...], int] = {}
    for line, cells in records(path, NEEDED):
        try:
            row = kernel_row(line, cells)
            twin = tuple(sorted((name, text) for name, text in cells.items() if name != "latency_us"))
            if twin in seen:
                raise Skip(f"the same kernel and sizes as line {seen[twin]}")
            seen[twin] = line
            rows.append(row)
        except Skip as reason:
            skipped.append(Skipped(line=line, reason=one_line(reason)))
        except PlannerError as error:
            skipped.append(Skipped(line=line, reason=error.told))
    if not rows:
        first = f"line {skipped[0].line}: {skipped[0].reason}" if skipped else "it has no rows"
        raise BadFile(str(path), f"no row can be priced ({first})", f"needed: {', '.join(NEEDED)}")
    return rows, skipped


def kernel_row(line: int, cells: dict[str, str]) -> KernelRow:
    """One row. Raises Skip with the reason, or UnknownName."""
    for name, text in cells.items():
        if not text.isprintable():
            raise Skip(f"{name} has control characters")
    system = table()["systems"].get(cells["system"], cells["system"])
    chip = load_system(system).chip
    family = next((name for name, chips in table()["families"].items() if chip in chips), chip)
    measured = number(cells, "latency_us")
    if measured <= 0:
        raise Skip(f"latency_us {cells['latency_us']} is not above 0")
    named = entry(cells["kernel"], cells.get("moe_dtype", ""), family)
    stack = cells.get("stack") or named.get("stacks", {}).get(family) or load_system(system).stack
    computes = case_named(system, stack).stack.computes
    dtype, label = cells.get("moe_dtype", ""), named.get("title", cells["kernel"])
    common: dict[str, Any] = {
        "line": line, "system": system, "family": family, "kernel": cells["kernel"], "dtype": dtype, "label": label,
        "stack": stack, "measured_s": measured * 1e-6,
    }  # fmt: skip
    op = cells["op"]
    if op == "kda_core":
        return KernelRow(**common, **recurrence(cells))
    if op == FUSED or EXPERTS.match(op):
        return KernelRow(**common, **routed(cells, computes.get(STORED, PLAIN)))
    raise Skip(f"unknown op {op!r}; kda_core, routed_experts_WxI_topK_of_E and {FUSED} are priced")


def recurrence(cells: dict[str, str]) -> dict[str, Any]:
    """Sizes of a KDA row."""
    if cells.get("phase") not in PHASES:
        raise Skip(f"unknown phase {cells.get('phase')!r}; use {' or '.join(PHASES)}")
    layer: Any = load_model(MODEL).attention["kda"]
    heads = layer.heads
    own, sequences = whole(cells, "kda_heads_per_rank"), whole(cells, "batch")
    if heads % own:
        raise Skip(f"{own} heads a rank do not divide the {heads} of {MODEL}")
    tokens = sequences * whole(cells, "seq_len")
    return {
        "op": "kda", "phase": PHASES[cells["phase"]], "sequences": sequences, "tokens": tokens, "tp": heads // own
    }  # fmt: skip


def routed(cells: dict[str, str], computes: str) -> dict[str, Any]:
    """Sizes of a row of routed experts, under a stack that computes them in the format given."""
    ep, etp, tokens = whole(cells, "moe_ep"), whole(cells, "moe_tp"), whole(cells, "num_tokens")
    shape = EXPERTS.match(cells["op"])
    if shape is None:
        moe: Any = load_model(MODEL).feed_forward["moe"]
        width, inner, top_k, experts = moe.latent, moe.inner, moe.top_k, moe.experts
        tokens *= ep
    else:
        width, inner, top_k, experts = map(int, shape.groups())
    if experts % ep or inner % etp or not 1 <= top_k <= experts:
        raise Skip(f"EP{ep} TP{etp} does not split {experts} experts of {inner}, {top_k} a token")
    if experts * top_k > LARGEST_LAYER:
        raise Skip(f"{top_k} of {experts} experts: more than a layer has")
    dtype = cells.get("moe_dtype", "")
    asked = COMPUTES.get(dtype.partition("_")[0]) if STORED in dtype else None
    if asked is None:
        raise Skip(f"moe_dtype {dtype!r} is not one of w4a8_{STORED}..., w4a16_{STORED}...")
    if asked != computes:
        raise Skip(f"{dtype} computes in {asked}, the stack that prices the row in {computes}; name another as `stack`")
    load = met(cells.get("distribution", ""), tokens, experts, top_k, ep)
    return {
        "op": "experts", "phase": PHASES.get(cells.get("phase", ""), "both"), "loads": cells["distribution"],
        "tokens": tokens, "tp": max(ep, etp), "ep": ep, "etp": etp, "width": width, "inner": inner, "top_k": top_k,
        "experts": experts, "assigned": load.assigned, "active": load.active,
    }  # fmt: skip


def met(distribution: str, tokens: int, experts: int, top_k: int, ranks: int) -> Load:
    """What the timed rank meets."""
    if distribution == "balanced":
        return balanced(tokens, experts, top_k, ranks)
    skewed = POWER_LAW.match(distribution)
    if skewed is None:
        raise Skip(f"distribution {distribution!r} is not balanced or power_law_EXPONENT")
    if ranks > 1 and tokens <= FEWEST_SKEWED:
        raise Skip(f"up to {FEWEST_SKEWED} tokens by a power law over several ranks: the heaviest rank is chance")
    if not 1 < float(skewed[1]) < math.inf:
        raise Skip(f"a power law needs an exponent above 1, not {skewed[1]}")
    return power_law(tokens, experts, top_k, ranks, float(skewed[1]))


def number(cells: dict[str, str], name: str) -> float:
    """A number."""
    text = cells.get(name, "")
    try:
        found = float(text)
    except ValueError:
        raise Skip(f"{name} is not known ({text or 'blank'})") from None
    if not -1e12 < found < 1e12:
        raise Skip(f"{name} {text} is not a usable number")
    return found


def whole(cells: dict[str, str], name: str) -> int:
    """A whole number above 0."""
    found = number(cells, name)
    if found < 1 or found != int(found):
        raise Skip(f"{name} {cells[name]} is not a whole number from 1")
    return int(found)


@cache
def case_named(system: str, stack: str) -> Case:
    """The model on a system under a stack. Raises PlannerError where they do not go together."""
    return case_of(MODEL, system, stack)


@cache
def table() -> dict[str, Any]:
    """The names of systems and kernels."""
    return read_yaml(folder() / "kernels" / "names.yaml")


def entry(kernel: str, format: str, family: str) -> dict[str, Any]:
    """What is known of a kernel on a family; empty where nothing is."""
    for found in table()["kernels"]:
        if found["name"] == kernel and found.get("format", format) == format and family in found["stacks"]:
            return dict(found)
    return {}
