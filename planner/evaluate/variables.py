"""Inputs as things to vary: the names people use for them, the values they may legally take, a point with one moved.

Whatever `explain` lists under inputs is a variable, apart from definitions (`constant.`) and from counts that follow
from the model (`count.`). A length that follows from another is moved along: a request reaches ISL + OSL tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import BadInput, UnknownName, nearest
from planner.evaluate.case import Point
from planner.evaluate.inputs import LENGTHS, Case, Leaf, full_length, spec_parts
from planner.record import LARGEST, SMALLEST, limits
from planner.specs.workload import MOST_DRAFTS, Workload
from planner.units import LARGEST_COUNT

FRIENDLY = {
    "hbm_bandwidth": "chip.memory_bandwidth",
    "memory_bandwidth": "chip.memory_bandwidth",
    "hbm_capacity": "chip.memory",
    "scale_up_bandwidth": "chip.scale_up_bandwidth_each_way",
    "ep_bandwidth": "chip.scale_up_bandwidth_each_way",
    "scale_out_bandwidth": "chip.scale_out_bandwidth_each_way",
    "bf16_rate": "chip.bf16_rate",
    "fp8_rate": "chip.fp8_rate",
    "mxfp4_rate": "chip.mxfp4_rate",
    "int8_rate": "chip.int8_rate",
    "price": "chip.price",
    "concurrency": "ask.concurrency",
    "batch": "ask.concurrency",
    "context": "ask.isl",
    "isl": "ask.isl",
    "osl": "ask.osl",
    "chunk": "ask.chunk",
    "prefix_hit": "ask.prefix_hit",
    "routing_skew": "ask.routing_skew",
    "draft_tokens": "ask.draft_tokens",
    "accepted_length": "ask.accepted_length",
    "memory_fraction": "ask.memory_fraction",
}
"""What people call an input -> its dotted name."""
FIXED = {"constant.": "is a definition", "count.": "follows from the model's layers",
         "stack.model_error": "is how far the model itself may be off"}  # fmt: skip
MOST_SKEWED, LEAST_FRACTION = 1000.0, 0.01
ENDLESS = (SMALLEST, LARGEST, float(LARGEST_COUNT))
"""Ends of a legal range that stand for 'any'."""
REACH = 1e6
"""Times the present value, up and down, that stands for 'however large': further off differences drown in rounding."""
USUAL = {"s": 1e-3, "USD/s": 1e-3, "B": 1e9, "B/s": 1e12, "FLOP/s": 1e15}
FEWEST_COUNT = 1024.0
"""A size to start from where the present value is 0, or a count is small."""


@dataclass(frozen=True)
class Variable:
    """An input to vary. whole: a count. low, high: its legal range; why: what sets the high end, where something does.

    least, most: the part of it that is searched; where an end of the range stands for 'any', REACH times the value.
    """

    asked: str
    name: str
    leaf: Leaf
    low: float
    high: float
    whole: bool
    why: str = ""

    @property
    def least(self) -> float:
        """Where the search begins."""
        return max(self.low, self.size / REACH) if self.low in ENDLESS else self.low

    @property
    def most(self) -> float:
        """Where the search ends."""
        return min(self.high, self.size * REACH) if self.high in ENDLESS else self.high

    @property
    def size(self) -> float:
        """What the variable is about now."""
        if self.whole:
            return max(self.leaf.value, FEWEST_COUNT)
        return self.leaf.value or USUAL.get(self.leaf.unit, 1.0)


def dotted(asked: str, case: Case) -> str:
    """The input a friendly name stands for; the memory that counts is what a driver reports, where that is known."""
    name = FRIENDLY.get(asked.lower().replace("-", "_"), asked)
    return "chip.usable_memory" if name == "chip.memory" and case.chip.usable_memory else name


def movable(leaves: dict[str, Leaf]) -> dict[str, Leaf]:
    """The inputs that can be varied."""
    return {name: leaf for name, leaf in leaves.items() if not name.startswith(tuple(FIXED))}


def variable(asked: str, case: Case, workload: Workload, point: Point) -> Variable:
    """The variable of this name. Raises UnknownName, BadInput."""
    name = dotted(asked, case)
    if name not in point.leaves:
        known = [friendly for friendly in FRIENDLY if dotted(friendly, case) in point.leaves]
        raise UnknownName("--for", f"unknown variable {asked!r}", nearest(asked, [*known, *movable(point.leaves)]))
    for prefix, why in FIXED.items():
        if name.startswith(prefix):
            raise BadInput("--for", f"{name} {why}", "choose an input of chip, system, stack, model or workload")
    if name.startswith("ask."):
        return asked_variable(asked, name, case, workload, point.leaves[name])
    return spec_variable(asked, name, case, workload, point)


def asked_variable(asked: str, name: str, case: Case, workload: Workload, leaf: Leaf) -> Variable:
    """An input of the workload, within what a workload may say."""
    longest, model = case.model.max_context, case.model.name
    context = f"the {longest:,} tokens of {model}"
    counts: dict[str, tuple[float, float, str]] = {
        "ask.isl": (1, longest - workload.osl, context),
        "ask.osl": (1, longest - workload.isl, context),
        "ask.length": (1, longest, context),
        "ask.concurrency": (1, LARGEST_COUNT, ""),
        "ask.chunk": (1, LARGEST_COUNT, ""),
        "ask.draft_tokens": (max(1, math.ceil(workload.accepted_length - 1)), MOST_DRAFTS, "drafts of a step"),
    }
    shares: dict[str, tuple[float, float, str]] = {
        "ask.prefix_hit": (0, 1 - 1 / workload.isl, "one token is left to prefill"),
        "ask.routing_skew": (1, MOST_SKEWED, "the largest skew"),
        "ask.accepted_length": (1, workload.draft_tokens + 1, "drafts and one token"),
        "ask.memory_fraction": (LEAST_FRACTION, 1, "all of the memory"),
    }
    if name in ("ask.draft_tokens", "ask.accepted_length") and not workload.draft_tokens:
        raise BadInput("--for", f"{name} without drafts", "give --draft-tokens and --accepted-length")
    low, high, why = (counts | shares).get(name, (SMALLEST, LARGEST, ""))
    return Variable(asked, name, leaf, float(low), float(high), name in counts, why)


def spec_variable(asked: str, name: str, case: Case, workload: Workload, point: Point) -> Variable:
    """An input of a spec, within what the spec's record takes."""
    leaf = point.leaves[name]
    parts = spec_parts(case, workload)
    prefix = max((prefix for prefix in parts if name.startswith(prefix + ".")), key=len, default="")
    field = name.removeprefix(prefix + ".").split(".")[0]
    record = type(parts[prefix][0]) if prefix else None
    if record is None or field not in record.model_fields:
        return Variable(asked, name, leaf, SMALLEST, LARGEST, False)
    bounds = limits(record, field)
    if bounds is not None:
        why = "" if bounds.high in ENDLESS else "a share is at most 1"
        return Variable(asked, name, leaf, bounds.low, bounds.high, False, why)
    whole = isinstance(getattr(parts[prefix][0], field), int)
    if field == "experts":
        return Variable(asked, name, leaf, point.leaves[f"{prefix}.top_k"].value, float(LARGEST_COUNT), whole)
    if field == "top_k":
        return Variable(asked, name, leaf, 1.0, point.leaves[f"{prefix}.experts"].value, whole, "all experts")
    return Variable(asked, name, leaf, 1.0, float(LARGEST_COUNT), whole)


def moved(point: Point, name: str, value: Any) -> Point:
    """The same deployment with one input at another value, or at an array of values."""
    values = {**point.values, name: value}
    if name in LENGTHS:
        values["ask.length"] = full_length(values["ask.isl"], values["ask.osl"])
    return replace(point, values=values)
