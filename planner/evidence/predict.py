"""What the formulas say for a list of figures, all of one structure at a time on arrays over the rows.

served     serving_... quantities; a load beyond what fits is served with what fits
decode     TPOT = step / accepted;  rate = requests x accepted / step
prefill    one prompt: the idle prefill;  rate over m passes of a group: m pieces / (all stages + (m - 1) slowest)
most       as many requests as fit, at most the stack's batch limit a group

Static batches that exceed what fits run one after the other. The context slope is the difference of two steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from planner.errors import BadLayout, BadWorkload, PlannerError
from planner.evaluate.case import Point, case_of, check_draft, point_of
from planner.evaluate.estimate import check_says
from planner.evaluate.grid import Arrays
from planner.evaluate.grouped import Group, by_structure
from planner.evidence.measurement import PER_NODE, Measurement
from planner.layout import Layout, complete, context_problem, head_problem, stage_problem
from planner.specs.hardware import System
from planner.specs.library import load_model, load_stack, load_system
from planner.specs.model import Model
from planner.specs.precision import in_precision
from planner.specs.workload import Workload

WANTED = frozenset({
    "decode_step_s", "serving_ttft_s", "serving_tpot_s", "serving_e2e_s", "serving_tokens_per_s",
    "serving_requests_per_s", "prefill_idle_s", "saturated_share_s", "saturated_all_stages_s",
    "saturated_slowest_stage_s", "prompt_chunks", "prompt_packed", "memory_requests", "decode_moe_dispatch_time_s",
    "decode_moe_combine_time_s",
})  # fmt: skip
CONTEXTS = (1024, 65536)
"""Where the slope of a decode step over context is taken."""


@cache
def model_of(name: str, weights: str | None) -> Model:
    """A shipped model in a precision."""
    return in_precision(load_model(name), weights)


@cache
def system_of(name: str, chips: int) -> System:
    """So many chips of a shipped system's kind; what does not fill a domain is one."""
    base = load_system(name)
    domain = min(base.domain_chips, chips)
    return base.model_copy(update={"chips": chips, "servers": 1, "chips_per_server": chips, "domain_chips": domain})


def layout_of(row: Measurement, model: Model) -> Layout:
    """The layout a row names. Raises BadLayout where heads or layers cannot be cut so."""
    keys = {"TP": row.tp, "DP": row.dp, "PP": row.pp, "DCP": row.dcp}
    if row.ep is not None and row.dp * row.tp % row.ep:
        raise BadLayout(f"EP{row.ep}", f"does not divide the {row.dp * row.tp} chips of a stage", "check the row")
    if row.ep is not None:
        keys |= {"EP": row.ep, "ETP": row.dp * row.tp // row.ep}
    moe = any(feed.kind == "moe" for feed in model.feed_forward.values())
    layout = complete(keys if moe else {k: v for k, v in keys.items() if k not in ("EP", "ETP")}, model, str(keys))
    for problem in (head_problem(layout.tp, model), stage_problem(layout.pp, model), context_problem(layout, model)):
        if problem:
            raise BadLayout(str(layout), *problem[1:])
    return layout


@dataclass
class Ready:
    """One figure ready for the formulas; chips of one replica and replicas of it."""

    row: Measurement
    point: Point
    layout: Layout
    replicas: int
    basis: str


def ready(row: Measurement) -> Ready:
    """A figure's deployment. Raises PlannerError leaves."""
    model = model_of(row.model, row.weights)
    system = system_of(row.system, row.chips)
    case = case_of(model, system, load_stack_once(row.stack))
    layout = layout_of(row, model)
    if row.isl + row.osl > EXTENDED * model.max_context:
        raise BadWorkload(
            "isl", f"{row.isl + row.osl} tokens exceed the {model.max_context} of {model.name}", "check the row"
        )
    check_says(["serving_tpot_s"] if row.phase == "served" and row.metric in PER_TOKEN else [], row.osl)
    replicas = row.chips // layout.chips
    if replicas * layout.chips != row.chips:
        raise BadLayout(str(layout), f"takes {layout.chips} chips, and the row has {row.chips}", "check the row")
    workload = Workload(
        isl=row.isl, osl=row.osl, concurrency=row.requests or 1, kv_format=row.kv_format, arrivals=row.arrivals,
        chunk=row.tokens, draft_tokens=row.drafts, accepted_length=row.accepted, overlap=row.overlap,
    )  # fmt: skip
    check_draft(model, workload)
    return Ready(
        row, point_of(case, layout, workload, replicas, row.chips), layout, replicas, case.stack.expected_error.basis
    )


load_stack_once = cache(load_stack)


def deployable(rows: Iterable[Measurement]) -> tuple[list[Ready], dict[str, str]]:
    """(figures ready for the formulas, id -> why another is not)."""
    items: list[Ready] = []
    left: dict[str, str] = {}
    for row in rows:
        try:
            items.append(ready(row))
        except PlannerError as error:
            left[row.id] = error.told
    return items, left


@dataclass
class Figures(Group):
    """Figures of one structure; the load they are predicted at and all their operators, once worked out."""

    items: list[Ready] = field(default_factory=list)
    load: Any = 1.0
    said: Any = None


def grouped(items: Sequence[Ready]) -> list[Figures]:
    """Figures by structure."""
    groups = by_structure(item.point for item in items)
    return [Figures(**vars(group), items=[items[i] for i in group.index]) for group in groups]


def predictions(groups: list[Figures], count: int, changes: Mapping[str, Any] | None = None) -> np.ndarray[Any, Any]:
    """Predicted figure of every row, SI; nan where a row has no meaning. changes: stack inputs by dotted name."""
    found = np.full(count, np.nan)
    for group in groups:
        found[group.index] = predicted(group, changes or {})
    return found


def predicted(group: Figures, changes: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Predicted figures of one group of rows, each by its phase and metric."""
    rows = [item.row for item in group.items]
    own = {name: value for name, value in changes.items() if name in group.values}
    load = in_flight(group, own)
    own["ask.concurrency"] = group.load = load
    q = group.run(own, WANTED)
    slope = None
    if any(row.metric.startswith("fit_") for row in rows):
        low, high = (group.run({**own, "ask.isl": float(context)}, WANTED)["decode_step_s"] for context in CONTEXTS)
        slope = (high - low) / (CONTEXTS[1] - CONTEXTS[0]), low
    return np.array([
        one(item, q, i, float(load[i]), slope) if np.isfinite(load[i]) else math.nan
        for i, item in enumerate(group.items)
    ])  # fmt: skip


def in_flight(group: Figures, changes: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """Requests in flight: as asked, or as many as fit where a row says `most`; never more than fit while serving."""
    rows = [item.row for item in group.items]
    asked = np.array([float(row.requests or 1) for row in rows])
    if not any(row.most or (row.phase == "served" and row.requests) for row in rows):
        return asked
    fits = group.run(changes, frozenset({"memory_requests"}))["memory_requests"]
    fits = np.where(fits < 1, np.nan, fits)
    replicas = np.array([item.layout.dp * item.replicas for item in group.items], dtype=float)
    limit = np.array([MOST_BATCHED for _ in rows], dtype=float)
    whole = np.minimum(fits, limit) * replicas
    most = np.array([row.most for row in rows])
    served = np.array([row.phase == "served" for row in rows])
    return np.where(most, whole, np.where(served, np.minimum(asked, fits * replicas), asked))


PER_TOKEN = ("tpot_ms", "itl_ms", "tok_s_per_user")
"""Metrics of the time between tokens of one request."""
EXTENDED = 8
"""Times the context of a model that publications reach by scaling its positions."""
MOST_BATCHED = 1024
"""Requests of a group an engine batches under unlimited load."""


def one(item: Ready, q: Arrays, i: int, load: float, slope: Any) -> float:
    """The predicted figure of one row, SI."""
    row = item.row
    metric = row.metric
    if metric in ("dispatch_us", "combine_us"):
        name = f"decode_moe_{metric.removesuffix('_us')}_time_s"
        return float(q[name][i]) if name in q else math.nan
    if metric.startswith("fit_"):
        per, low = float(slope[0][i]), float(slope[1][i])
        return per if "slope" in metric else low - per * CONTEXTS[0]
    if row.phase == "prefill":
        return prefill(item, q, i)
    chips = row.counted or row.chips
    if row.phase == "decode":
        gap = float(q["decode_step_s"][i]) / row.accepted
        rate, tpot, ttft, e2e = load / gap, gap, math.nan, row.osl * gap
        requests = rate / row.osl
    else:
        rate, tpot, ttft, e2e = (
            float(q[f"serving_{name}"][i]) for name in ("tokens_per_s", "tpot_s", "ttft_s", "e2e_s")
        )
        requests = float(q["serving_requests_per_s"][i])
        if metric == "e2e_s":
            e2e *= math.ceil((row.requests or 1) / load)
    both = requests * (row.isl + row.osl)
    answers = {
        "tpot_ms": tpot, "itl_ms": tpot, "ttft_ms": ttft, "e2e_s": e2e, "tok_s_total": rate,
        "tok_s_per_chip": rate / chips,
        "tok_s_per_user": 1 / tpot, "out_tok_s_per_node": rate / chips * PER_NODE, "inout_tok_s_total": both,
        "inout_tok_s_per_chip": both / chips,
    }  # fmt: skip
    return answers.get(metric, math.nan)


def prefill(item: Ready, q: Arrays, i: int) -> float:
    """Prefill alone: latency of one prompt, or prompt tokens a second over the passes in flight."""
    row = item.row
    if row.metric in ("ttft_ms", "e2e_s"):
        return float(q["prefill_idle_s"][i])
    if row.metric not in ("in_tok_s_per_chip", "in_tok_s_per_node"):
        return math.nan
    share, whole, slowest = (float(q[f"saturated_{n}_s"][i]) for n in ("share", "all_stages", "slowest_stage"))
    rate = row.dp * item.replicas * row.isl / share / row.chips
    if row.requests is not None:
        passes = max(math.ceil(row.requests / (row.dp * item.replicas)) * float(q["prompt_chunks"][i]), 1.0)
        rate *= passes * slowest / (whole + (passes - 1) * slowest)
    return rate * (PER_NODE if row.metric.endswith("node") else 1)
