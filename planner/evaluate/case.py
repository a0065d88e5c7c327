"""Look up and check what a question names, before any formula runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.errors import BadLayout, BadSpec, BadWorkload
from planner.evaluate.inputs import Case, Leaf, asked, layout_values, leaves
from planner.kinds.feedforward.moe import Moe
from planner.kinds.formats import FORMATS
from planner.kinds.weights import PLAIN
from planner.layout import Layout
from planner.model.structure import Structure, structure
from planner.specs import own_draft
from planner.specs.hardware import System
from planner.specs.library import load_chip, load_model, load_stack, load_system
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Workload
from planner.stages import heaviest

NARROW_BITS = 4
PLAIN_FORMATS = ("mxfp4", "fp8", "bf16", "fp32")
"""What arithmetic runs in, narrow to wide."""


def case_of(model: str | Model, system: str | System, stack: str | Stack | None = None) -> Case:
    """The records a deployment is made of. Raises UnknownName, BadFile, BadSpec."""
    found_model = load_model(model) if isinstance(model, str) else model
    found_system = load_system(system) if isinstance(system, str) else system
    chip = load_chip(found_system.chip)
    named = found_system.stack if stack is None else stack
    found_stack = running(load_stack(named) if isinstance(named, str) else named, found_model)
    for name in type(found_stack.kernels).model_fields:
        kernel = getattr(found_stack.kernels, name)
        if kernel.compute_format is not None and chip.rate(kernel.compute_format) is None:
            what = f"kernel {name} computes in {kernel.compute_format}, and chip {chip.name} has no such rate"
            raise BadSpec(f"stack {found_stack.name}", what, "choose a stack made for this chip")
    for stored, format in found_stack.computes.items():
        if chip.rate(format) is None:
            what = f"{stored} weights compute in {format}, and chip {chip.name} has no such rate"
            raise BadSpec(f"stack {found_stack.name}", what, "choose a stack made for this chip")
    return Case(found_model, found_system, chip, found_stack)


def running(stack: Stack, model: Model) -> Stack:
    """The stack as it runs a model: products compute in what the stack names for their format, the rest in 16 bits.

    Experts are not sent in fewer bits than they are stored in. Where their format is computed otherwise than by the
    stack's own kernel, the share of the peak that kernel reaches is an analogy.
    """
    found = stored_formats(model)
    computes = {own: runs for own, runs in stack.computes.items() if own in found}
    changes: dict[str, Any] = {"computes": computes}
    dense = stack.kernels.dense
    used = {format: share for format, share in dense.fractions.items() if format in computes.values()}
    kernels: dict[str, Any] = {"dense": dense.model_copy(update={"fractions": used})}
    experts = [feed.routed_format for feed in model.feed_forward.values() if isinstance(feed, Moe)]
    if experts:
        widest = max(experts, key=lambda name: FORMATS[name].value_bits)
        kernel, format = stack.kernels.experts, stack.computes.get(widest, PLAIN)
        if kernel.compute_format != format:
            own: dict[str, Any] = {
                "compute_format": format,
                "kernel": f"{kernel.kernel}, taken for {format}",
                "basis": "analogy",
            }
            widened = FORMATS[format].value_bits > FORMATS[widest].value_bits
            share = kernel.widening_fraction if widened else kernel.fractions.get(format, kernel.compute_fraction)
            own["compute_fraction"] = share
            kernel = kernel.model_copy(update=own)
        narrow = FORMATS[widest].value_bits <= NARROW_BITS and format != PLAIN
        own_floor = kernel.narrow_floor if narrow else None
        kernels["experts"] = kernel.model_copy(update={"fractions": {}, "narrow_floor": own_floor})
        bits = FORMATS[widest].value_bits
        if FORMATS[stack.dispatch_format].value_bits < bits:
            changes["dispatch_format"] = next(name for name in PLAIN_FORMATS if FORMATS[name].value_bits >= bits)
    changes["kernels"] = stack.kernels.model_copy(update=kernels)
    return stack.model_copy(update=changes)


def stored_formats(model: Model) -> set[str]:
    """Every format that weights of a model's products are stored in."""
    found: set[str] = {model.table_format, *([model.draft.format] if model.draft else [])}
    for layer in (*model.attention.values(), *model.feed_forward.values()):
        found |= {layer.format, *layer.overrides.values()}
        found |= {layer.routed_format} if isinstance(layer, Moe) else set()
    return found


def check_load(workload: Workload) -> int:
    """The requests in flight, which one deployment cannot do without. Raises BadWorkload."""
    if workload.concurrency is None:
        raise BadWorkload("concurrency", "is not given", "say how many requests are in flight")
    return workload.concurrency


def check_workload(case: Case, workload: Workload) -> None:
    """Lengths within the model's context, a draft where one is asked for. Raises BadWorkload."""
    model, longest = case.model, case.model.max_context
    if workload.isl + workload.osl > longest:
        what = f"{workload.isl} + {workload.osl} tokens exceed {longest_context(model)}"
        room = longest - workload.osl
        raise BadWorkload(
            "isl + osl", what, f"with --osl {workload.osl} the largest --isl is {room}" if room > 0 else "ask for less"
        )
    check_vision(case, workload)
    check_draft(model, workload)
    if workload.accepted_length > workload.draft_tokens + 1:
        most = workload.draft_tokens + 1
        what = (
            f"{workload.accepted_length:g} tokens a step cannot come from {workload.draft_tokens} drafts and one token"
        )
        raise BadWorkload("accepted-length", what, f"give at most {most}")
    if workload.draft_tokens and workload.accepted_length == 1:
        raise BadWorkload(
            "accepted-length", "drafts are verified but none is accepted", "give --accepted-length over 1"
        )


def check_draft(model: Model, workload: Workload) -> None:
    """A draft where one is asked for. Raises BadWorkload."""
    if workload.draft_tokens and model.draft is None and not own_draft.stored(model):
        what = f"{model.name} names no draft model and has no draft layers of its own"
        raise BadWorkload("draft-tokens", what, "add `draft` to the model's YAML")


def notes_on(model: Model, workload: Workload) -> list[str]:
    """What a reader of the answer should know of the question."""
    asked = model.cache_format
    if asked is None or asked == workload.kv_format:
        return []
    return [f"the checkpoint asks for a cache in {asked}, and this answer has {workload.kv_format}: see --kv-dtype"]


def longest_context(model: Model) -> str:
    """'the 131072 of NAME', with the scaling behind it where there is one."""
    scaled = f" ({model.context_note})" if model.context_note else ""
    return f"the {model.max_context} of {model.name}{scaled}"


def check_vision(case: Case, workload: Workload) -> None:
    """A vision tower where one is asked for. Raises BadWorkload."""
    if workload.vision and not any(extra.part == "vision" for extra in case.model.extras.values()):
        raise BadWorkload("vision", f"{case.model.name} has no vision part", "leave --vision out")


def check_chips(case: Case, chips: int, what: str) -> None:
    """Not more chips than the system has. Raises BadLayout."""
    if chips > case.system.chips:
        has = f"{what} {chips} chips, and {case.system.name} has {case.system.chips}"
        raise BadLayout("layout" if "layout" in what else "chips", has, f"use at most {case.system.chips} chips")


def chips_lent(case: Case, layout: Layout, chips: int | None) -> int:
    """The chips asked for, else those of one replica; they exist and hold the layout. Raises BadLayout."""
    check_chips(case, layout.chips, "the layout takes")
    if chips is None:
        return layout.chips
    check_chips(case, chips, "asked for")
    if chips < layout.chips:
        what = f"{chips} chips cannot hold a layout of {layout.chips}"
        raise BadLayout("chips", what, "lend more or use a smaller layout")
    return chips


@dataclass(frozen=True)
class Point:
    """One deployment ready for the formulas: structure, values of every input, structural values, its leaves."""

    shape: Structure
    values: dict[str, Any]
    raw: dict[str, Any]
    leaves: dict[str, Leaf]


def shape_of(case: Case, workload: Workload, slots: int) -> Structure:
    """The structure of a case under a workload."""
    crosses = case.system.chips > case.system.domain_chips
    speculates = workload.draft_tokens > 0
    return structure(case.model, slots, workload.arrivals, speculates, workload.vision, crosses)


def point_of(
    case: Case,
    layout: Layout,
    workload: Workload,
    replicas: int = 1,
    lent: int | None = None,
    length: int | None = None,
    slots: int | None = None,
) -> Point:
    """A deployment of `replicas` of a layout on `lent` chips. slots: stages to pad to; default: as many as differ."""
    slots = slots or len(heaviest(case.model, layout.pp))
    numbers, raw = leaves(case, workload)
    numbers |= asked(workload, case.stack, length)
    values: dict[str, Any] = {name: leaf.value for name, leaf in numbers.items()}
    values |= layout_values(case.model, layout, replicas, lent or replicas * layout.chips, slots)
    return Point(shape_of(case, workload, slots), values, raw, numbers)


def placed(
    model: str | Model,
    system: str | System,
    layout: str | Layout,
    workload: Workload,
    stack: str | Stack | None,
    chips: int | None,
) -> tuple[Case, Layout, int, Point]:
    """(case, layout, chips lent, point) of whole replicas of one layout on the chips lent. Raises BadInput leaves."""
    case = case_of(model, system, stack)
    check_workload(case, workload)
    check_load(workload)
    found = Layout.parse(layout, case.model) if isinstance(layout, str) else layout
    lent = chips_lent(case, found, chips)
    return case, found, lent, point_of(case, found, workload, lent // found.chips, lent)
