"""Break-evens: from which context, batch or EP size on one way is cheaper than another.

    attention   one layer of the model's recurrent attention against the same layer as full attention, by context
    experts     experts in MXFP4, FP8 and BF16, by requests of an attention group: the step, and the bill as served
    tp-ep       experts whole on their ranks (EP) against every expert cut over all ranks (TP), likewise
    supernode   one scale-up domain against ordinary servers of 8 chips, by the same and by EP size

Compared is the decode step alone (attention: one layer of it), or its chip time per token where chips or batch differ;
and, by formats and by TP against EP, the whole bill per output token with the prefill in it, which may turn elsewhere.
Limits: nothing is said of quality. A batch may be larger than what fits: the answer says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.errors import BadLayout, BadWorkload, UnknownName, nearest
from planner.evaluate.case import placed
from planner.evaluate.crossing import Cost, Crossing, crossing
from planner.evaluate.grid import evaluate
from planner.evaluate.results import Result
from planner.kinds.attention.gqa import Gqa
from planner.layout import Layout, routed
from planner.specs.hardware import System
from planner.specs.library import load_model, load_system
from planner.specs.model import Model
from planner.specs.precision import in_precision
from planner.specs.workload import Workload

RECURRENT = ("kda", "gated_delta", "lightning", "mamba1", "mamba2")
FULL = ("gqa", "mla")
KV_HEADS = 8
"""Key-value heads of the grouped-query layer a recurrent one is compared with."""
SERVER = 8
"""Chips of an ordinary server."""
SHORTEST, MOST_IN_GROUP, MOST_PER_CHIP = 1024, 4096, 256
STEP = "decode_step_s"
COMPARED = (("decode step alone", STEP), ("bill per output token as served", "serving_cost_output_usd"))
"""What two ways are compared by, in words and as a quantity."""


@dataclass(frozen=True)
class BreakEven(Result):
    """`planner break-even`."""

    name: str
    model: str
    system: str
    stack: str
    layout: str
    workload: dict[str, Any]
    crossings: list[Crossing]


@dataclass(frozen=True)
class Asked:
    """What every break-even is asked for."""

    model: Model
    system: System
    stack: str | None
    layout: str
    workload: Workload

    def batch(self, model: Model, system: System, layout: str, quantity: str = STEP, per: str = "group") -> Side:
        """One side's cost over requests of a group, or over requests per chip: then seconds of a chip per token."""
        _, found, _, point = placed(model, system, layout, self.workload, self.stack, None)

        def cost(values: list[int]) -> list[float]:
            each = found.dp if per == "group" else found.chips
            time = at_values(point, "ask.concurrency", [value * each for value in values], quantity)
            return time if per == "group" else [t / value for t, value in zip(time, values, strict=True)]

        (fits,) = at_values(point, "ask.concurrency", [1], "memory_requests")
        return Side(cost, int(fits) * found.dp, found.chips, found.dp)

    def context(self, model: Model, quantity: str) -> Cost:
        """One side's cost over the cached tokens of a request, the mean of a decode."""
        _, _, _, point = placed(model, self.system, self.layout, self.workload, self.stack, None)
        half = self.workload.osl / 2
        return lambda values: at_values(point, "ask.isl", [value - half for value in values], quantity)


@dataclass(frozen=True)
class Side:
    """A cost over the batch, the requests that fit, the chips and the attention groups."""

    cost: Cost
    fits: int
    chips: int
    groups: int


def at_values(point: Any, name: str, values: list[Any], quantity: str) -> list[float]:
    """A quantity at several values of one input."""
    import numpy as np

    changed = {**point.values, name: np.array(values, dtype=float)}
    found = evaluate(point.shape, changed, point.raw, frozenset({quantity}))[quantity]
    return [float(value) for value in np.broadcast_to(found, len(values))]


def break_even(
    name: str, model: str, system: str, layout: str, workload: Workload, *, stack: str | None = None
) -> BreakEven:
    """Every crossing of one comparison. Raises BadInput leaves."""
    if name not in NAMES:
        raise UnknownName("break-even", f"unknown comparison {name!r}", nearest(name, NAMES))
    asked = Asked(load_model(model), load_system(system), stack, layout, workload)
    case, found, _, _ = placed(asked.model, asked.system, layout, workload, stack, None)
    asked = Asked(asked.model, asked.system, stack, str(found), workload)
    crossings = NAMES[name](asked, found)
    return BreakEven(
        name, case.model.name, case.system.name, case.stack.name, str(found), workload.model_dump(), crossings
    )


def attention(asked: Asked, layout: Layout) -> list[Crossing]:
    """Each recurrent group against the model's own full attention, and against grouped queries of as many heads."""
    groups = asked.model.attention
    found = []
    for name, group in groups.items():
        if group.kind not in RECURRENT:
            continue
        full: dict[str, Any] = {f"full {own.kind} of this model": own for own in groups.values()
                                if own.kind in FULL and getattr(own, "window", None) is None}  # fmt: skip
        heads, size = getattr(group, "heads", None), getattr(group, "head_dim", None)
        if heads and size and heads % KV_HEADS == 0:
            full[f"gqa, {heads} heads on {KV_HEADS} of {size}"] = Gqa(
                kind="gqa", layers=group.layers, format=group.format, vector_format=group.vector_format, heads=heads,
                kv_heads=KV_HEADS, head_dim=size, value_dim=size,
            )  # fmt: skip
        for title, other in full.items():
            changed = {**groups, name: other.model_copy(update={"layers": group.layers})}
            quantity = f"decode_{name}_layer_s"
            costs = (asked.context(asked.model, quantity),
                     asked.context(asked.model.model_copy(update={"attention": changed}), quantity))  # fmt: skip
            low = max(SHORTEST, asked.workload.osl // 2 + 1)
            found.append(crossing(f"one layer of decode attention: {group.kind} against {title}", "context",
                                  (group.kind, title), costs, low, asked.model.max_context))  # fmt: skip
    if not found:
        kinds = ", ".join(sorted({group.kind for group in groups.values()}))
        raise BadWorkload("break-even attention", f"{asked.model.name} has only {kinds}", "name a model with KDA")
    return found


def with_experts(asked: Asked, name: str) -> None:
    """The model has experts. Raises BadWorkload."""
    if not routed(asked.model):
        raise BadWorkload(f"break-even {name}", f"{asked.model.name} has no experts", "name a model that has")


def experts(asked: Asked, layout: Layout) -> list[Crossing]:
    """MXFP4 against FP8, and against BF16."""
    with_experts(asked, "experts")
    models = {name: in_precision(asked.model, f"{name}-experts") for name in ("mxfp4", "fp8", "bf16")}
    return [
        versus(f"{title} by format of the experts", ("mxfp4", other), *(
            asked.batch(models[name], asked.system, asked.layout, quantity) for name in ("mxfp4", other)))
        for title, quantity in COMPARED for other in ("fp8", "bf16")
    ]  # fmt: skip


def versus(title: str, names: tuple[str, str], first: Side, second: Side) -> Crossing:
    """A crossing over requests of a group, with what fits."""
    fits = (first.fits // first.groups, second.fits // second.groups)
    note = f"{first.fits:,} and {second.fits:,} requests fit, {fits[0]:,} and {fits[1]:,} a group"
    costs = (first.cost, second.cost)
    return crossing(title, "requests of a group", names, costs, 1, MOST_IN_GROUP, note, fits)


def tp_ep(asked: Asked, layout: Layout) -> list[Crossing]:
    """All ranks of a stage hold whole experts, or a slice of every expert; attention stays as the layout has it."""
    with_experts(asked, "tp-ep")
    stage = layout.stage_chips
    if stage == 1:
        raise BadLayout("layout", "one chip splits nothing", "use TP x DP above 1")
    rest = [f"{key}{getattr(layout, key.lower())}" for key in ("TP", "DP", "PP", "DCP", "CP")]
    ways = {f"EP{stage}": f"EP{stage} ETP1", f"TP{stage} in the experts": f"EP1 ETP{stage}"}
    layouts = []
    for way, keys in ways.items():
        try:
            layouts.append(str(Layout.parse(" ".join([*rest, keys]), asked.model)))
        except BadLayout as error:
            do = f"give a layout whose TP x DP allows both: {error.do}"
            raise BadLayout("layout", f"its stages of {stage} chips cannot have {way}: {error.what}", do) from None
    return [
        versus(title, (f"EP{stage}", f"TP{stage} in the experts"), *(
            asked.batch(asked.model, asked.system, one, quantity) for one in layouts))
        for title, quantity in COMPARED
    ]  # fmt: skip


def servers_of(system: System) -> System:
    """The same chips in servers of 8 joined by the network. Raises BadWorkload."""
    if system.domain_chips <= SERVER or system.chips % SERVER:
        what = f"{system.name} has domains of {system.domain_chips} chips"
        raise BadWorkload("break-even supernode", what, f"name a system whose domain is larger than {SERVER}")
    count = system.chips // SERVER
    held = {"servers": count, "chips_per_server": SERVER, "domain_chips": SERVER}
    return system.model_copy(update={"name": f"{count} servers of {SERVER}", **held})


def supernode(asked: Asked, layout: Layout) -> list[Crossing]:
    """The layout on both; the layout in the domain against experts kept inside a server; and by attention groups."""
    with_experts(asked, "supernode")
    ordinary = servers_of(asked.system)
    names = ("one domain", f"servers of {SERVER}")
    wide = [asked.batch(asked.model, system, asked.layout) for system in (asked.system, ordinary)]
    found = [versus(f"decode step, {layout} on both", names, wide[0], wide[1])]
    tp = layout.tp
    if SERVER % tp == 0:
        narrow = str(Layout.parse(f"TP{tp} DP{SERVER // tp}", asked.model))
        left = asked.batch(asked.model, asked.system, asked.layout, per="chip")
        right = asked.batch(asked.model, ordinary, narrow, per="chip")
        note = f"{left.fits:,} requests on {left.chips} chips and {right.fits:,} on {right.chips} fit"
        per_chip = (left.fits // left.chips, right.fits // right.chips)
        sides = (f"{layout} in one domain", f"{narrow} in a server")
        found.append(crossing("chip time of a token, experts over the domain or inside a server", "requests a chip",
                              sides, (left.cost, right.cost), 1, MOST_PER_CHIP, note, per_chip))  # fmt: skip
    each = (asked.workload.concurrency or 1) / layout.chips
    limit = most_groups(asked, tp)
    if limit > 1:
        costs = (by_groups(asked, asked.system, tp, each), by_groups(asked, ordinary, tp, each))
        found.append(crossing(f"decode step at {each:g} requests a chip, TP{tp} and EP over all of TP x DP", "DP",
                              names, costs, 1, limit, f"EP is {tp} x DP"))  # fmt: skip
    return found


def most_groups(asked: Asked, tp: int) -> int:
    """The most attention groups of TP `tp` over whose ranks the experts may be spread: no more ranks than experts."""
    fewest = min(experts for _, experts, _, _ in routed(asked.model))
    return min(asked.system.chips, fewest) // tp


def by_groups(asked: Asked, system: System, tp: int, each: float) -> Cost:
    """Step over attention groups of TP `tp`, experts over all their ranks, at so many requests a chip."""

    def one(groups: int) -> float:
        layout = str(Layout.parse(f"TP{tp} DP{groups} EP{tp * groups}", asked.model))
        _, found, _, point = placed(asked.model, system, layout, asked.workload, asked.stack, None)
        (time,) = at_values(point, "ask.concurrency", [max(round(each * found.chips), 1)], STEP)
        return time

    return lambda values: [one(value) for value in values]


NAMES: dict[str, Callable[[Asked, Layout], list[Crossing]]] = {
    "attention": attention,
    "experts": experts,
    "tp-ep": tp_ep,
    "supernode": supernode,
}
