"""From records to the plain quantities that formulas take.

`leaves` lists every number of a deployment's specs with its unit, range and source under a dotted name; `setting` lays
values (floats, arrays or symbols) of those names out as the nested namespace `on` that formulas read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

from planner.algebra import Q
from planner.kinds.formats import value_bytes
from planner.kinds.weights import PLAIN
from planner.layout import Layout
from planner.model.structure import Structure
from planner.record import Figure
from planner.specs import own_draft
from planner.specs.hardware import Chip, System
from planner.specs.model import Model
from planner.specs.stack import ExpectedError, Stack
from planner.specs.workload import Workload
from planner.stages import DRAFT, LAST, heaviest, whole_model

LENGTHS = frozenset({"ask.isl", "ask.osl"})
"""What `ask.length` is the sum of, unless it is asked for apart."""
TAIL = 1 - math.sqrt(2 * 0.05)
"""Where a draw's 5th and 95th percentile lie between a leaf's value and its ends (planner.evaluate.ranges.spread)."""
BASES = ("layer_time", "step_time", "request_time", "first_token_time", "prefill_factor")
"""Stack figures that stand for an operator; their status says how well they are known."""


@dataclass(frozen=True)
class Leaf:
    """One input number. with_group: leaves that are uncertain together."""

    value: float
    unit: str
    low: float
    high: float
    status: str
    source: str
    with_group: str = ""

    @property
    def uncertain(self) -> bool:
        """It has a range."""
        return self.low != self.high


@dataclass(frozen=True)
class Case:
    """What a deployment is made of, looked up and checked."""

    model: Model
    system: System
    chip: Chip
    stack: Stack


def plain(value: float, unit: str, source: str) -> Leaf:
    """A leaf without a range."""
    return Leaf(value, unit, value, value, "published", source)


def given(value: float, unit: str) -> Leaf:
    """A leaf of the question itself."""
    return replace(plain(float(value), unit, "workload"), status="given")


def derived(value: float, unit: str, source: str) -> Leaf:
    """A leaf worked out from what a spec says."""
    return replace(plain(float(value), unit, source), status="derived")


def leaf(figure: Figure) -> Leaf:
    """A figure as a leaf."""
    return Leaf(figure.value, figure.unit, figure.low, figure.high, figure.status, figure.source, figure.with_group)


def own_error(expected: ExpectedError) -> Leaf:
    """The model's own error as one more uncertain input: measured over modelled time, 1 in the middle.

    p90 is the 90th percentile of |ln(measured / modelled)|: about one draw in ten lies beyond exp(-p90) or exp(p90),
    rather above than below, since the ends are as far in logarithms and the draws even out in the value.
    """
    end = math.exp(expected.p90_fraction / TAIL)
    return Leaf(1.0, "1", 1 / end, end, "derived", f"{expected.basis}: {expected.source}")


def of_record(record: BaseModel, source: str) -> tuple[dict[str, Leaf], dict[str, Any]]:
    """(numbers, structural values) of a record: figures, counts, bytes of its formats; text, flags, null."""
    numbers: dict[str, Leaf] = {}
    raw: dict[str, Any] = {}
    for name in type(record).model_fields:
        value = getattr(record, name)
        if isinstance(value, Figure):
            numbers[name] = leaf(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers[name] = plain(float(value), "1", source)
        elif isinstance(value, str) and name.endswith("format"):
            raw[name] = value
            bytes_name = name.removesuffix("format") + "value_bytes"
            numbers[bytes_name] = plain(value_bytes(value), "B", f"format {value}")
        elif name == "overrides":
            for group, format in value.items():
                raw[f"{group}_format"] = format
                numbers[f"{group}_value_bytes"] = plain(value_bytes(format), "B", f"format {format}")
        elif name == "fractions":
            numbers.update({f"fractions.{format}": leaf(share) for format, share in value.items()})
        elif name == "computes":
            raw[name] = dict(value)
        elif value is None or isinstance(value, (str, bool)):
            raw[name] = value
    return numbers, raw


def spec_parts(case: Case, workload: Workload) -> dict[str, tuple[BaseModel, str]]:
    """Every record whose numbers enter the formulas, by prefix."""
    model, stack = case.model, case.stack
    parts: dict[str, tuple[BaseModel, str]] = {
        "model": (model, model.source),
        "residual": (model.residual, model.source),
        "chip": (case.chip, "chip spec"),
        "system": (case.system, case.system.source),
        "stack": (stack, "stack spec"),
    }
    for groups in (model.attention, model.feed_forward):
        for name, group in groups.items():
            parts[name] = (group, model.source)
    for name in type(stack.kernels).model_fields:
        parts[f"kernel.{name}"] = (getattr(stack.kernels, name), "stack spec")
    for name in type(stack.links).model_fields:
        parts[f"link.{name}"] = (getattr(stack.links, name), "stack spec")
    if workload.draft_tokens and model.draft:
        parts["draft"] = (model.draft, model.draft.source)
    if workload.draft_tokens:
        layers = {**own_draft.attention_layers(model), **own_draft.feed_forward_layers(model)}
        parts |= {name: (layer, model.source) for name, layer in layers.items()}
    return parts


def leaves(case: Case, workload: Workload) -> tuple[dict[str, Leaf], dict[str, Any]]:
    """(numbers, structural values) of the specs, under dotted names."""
    numbers: dict[str, Leaf] = {}
    raw: dict[str, Any] = {}
    for prefix, (record, source) in spec_parts(case, workload).items():
        own_numbers, own_raw = of_record(record, source)
        numbers.update({f"{prefix}.{name}": value for name, value in own_numbers.items()})
        raw.update({f"{prefix}.{name}": value for name, value in own_raw.items()})
    numbers["constant.multiply_add_flops"] = plain(2, "FLOP", "a multiply-add counts as two operations")
    numbers["constant.least_request_bytes"] = plain(1, "B", "a stage that keeps nothing of a request still counts it")
    numbers["constant.million"] = plain(1e6, "1", "prices are per million tokens")
    numbers["stack.model_error"] = own_error(case.stack.expected_error)
    vision = sum(e.parameters * value_bytes(e.format) for e in case.model.extras.values() if e.part == "vision")
    numbers["model.vision_bytes"] = plain(vision, "B", case.model.source)
    for name, count in whole_model(case.model).items():
        numbers[f"count.{name}"] = plain(count, "1", "layers of the model")
    if workload.draft_tokens and own_draft.stored(case.model):
        count, size = own_draft.joined(case.model)
        source = f"draft layers of the checkpoint: {case.model.source}"
        numbers["draft.parameters"] = derived(count, "1", source)
        numbers["draft.value_bytes"] = derived(size / count, "B", source)
        raw["draft.format"] = PLAIN
        numbers["draft.steps"] = derived(own_draft.steps(case.model), "1", source)
    raw["ask.kv_format"] = workload.kv_format
    for name in BASES:
        raw[f"basis.{name}"] = getattr(case.stack, name).status
    return numbers, raw


def full_length(isl: Q, osl: Q) -> Q:
    """Tokens a request reaches: its prompt and all it is answered."""
    return isl + osl


def asked_values(workload: Workload, stack: Stack, length: int | None = None) -> dict[str, float]:
    """The workload's numbers under `ask`, and what of the stack's it replaces.

    length: tokens a request may reach, ISL + OSL unless given.
    """
    own = workload.memory_fraction
    found: dict[str, float] = {
        "ask.isl": workload.isl,
        "ask.osl": workload.osl,
        "ask.length": length if length is not None else full_length(workload.isl, workload.osl),
        "ask.concurrency": workload.concurrency or 1,
        "ask.chunk": workload.chunk or stack.chunk,
        "ask.prefix_hit": workload.prefix_hit,
        "ask.routing_skew": workload.routing_skew,
        "ask.draft_tokens": workload.draft_tokens,
        "ask.accepted_length": workload.accepted_length,
        "ask.kv_value_bytes": value_bytes(workload.kv_format),
        "ask.state_value_bytes": value_bytes(workload.state_format),
    }
    if workload.overlap is not None:
        found["stack.overlap"] = workload.overlap
    found["ask.memory_fraction"] = stack.memory_fraction.value if own is None else own
    return {name: float(value) for name, value in found.items()}


def asked(workload: Workload, stack: Stack, length: int | None = None) -> dict[str, Leaf]:
    """The same as leaves; a memory fraction that nobody gave has the stack's range."""
    values = asked_values(workload, stack, length)
    found = {name: given(value, "B" if name.endswith("_bytes") else "1") for name, value in values.items()}
    if workload.memory_fraction is None:
        found["ask.memory_fraction"] = leaf(stack.memory_fraction)
    return found


def layout_values(model: Model, layout: Layout, replicas: int, lent: int, slots: int) -> dict[str, float]:
    """One layout's numbers under `layout`, its heaviest stages padded to `slots` by repeating the first."""
    names = ("tp", "dp", "ep", "etp", "pp", "dcp", "cp", "red", "chips")
    values = {f"layout.{name}": float(getattr(layout, name)) for name in names}
    values |= {"layout.replicas": float(replicas), "layout.lent": float(lent)}
    stages = heaviest(model, layout.pp)
    for slot in range(slots):
        for group, count in stages[slot if slot < len(stages) else 0].items():
            values[f"layout.stage{slot}.{group}"] = float(count)
    return values


def setting(shape: Structure, values: Mapping[str, Q], raw: Mapping[str, Any]) -> Any:
    """The namespace formulas read: on.chip.memory, on.kernel.dense.floor, on.groups['kda'].heads and so on."""
    tree: dict[str, Any] = {}
    for name, value in [*raw.items(), *values.items()]:
        *path, last = name.split(".")
        place = tree
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    groups = {name: SimpleNamespace(**tree.pop(name)) for name, _ in shape.layers}
    counts = tree.pop("count")
    layout = tree.pop("layout")
    stages = [layout.pop(f"stage{i}") for i in range(shape.stages)]
    if shape.draft_attention:
        for held in (counts, *stages):
            held[DRAFT] = held[LAST] * values["ask.draft_tokens"] / values["draft.steps"]
    on = SimpleNamespace(**{name: _namespace(part) for name, part in tree.items()})
    on.groups, on.count = groups, counts
    on.layout = SimpleNamespace(**layout, stages=stages)
    on.crosses_domains = shape.crosses_domains
    return on


def _namespace(part: Any) -> Any:
    if isinstance(part, dict):
        return SimpleNamespace(**{name: _namespace(value) for name, value in part.items()})
    return part
