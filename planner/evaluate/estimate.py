"""One deployment estimated on floats, with its breakdown, ranges and assumptions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import count, takewhile
from typing import Any

from planner.errors import BadSpec, BadWorkload
from planner.evaluate import breakdown
from planner.evaluate.case import Point, check_load, notes_on, placed
from planner.evaluate.inputs import Case, setting
from planner.evaluate.results import Cost, Decode, Estimate, LayoutAnswer, Memory, Pool, Prefill, Serving
from planner.layout import KEYS, Layout
from planner.model.deployment import deployment
from planner.quantities import Numbers, Say
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Workload
from planner.units import show

HEADLINES = {
    "prefill.ttft_s": "prefill_idle_s",
    "prefill.tok_s_per_chip": "serving_prefill_chip_tokens_per_s",
    "decode.step_s": "decode_step_s",
    "decode.tok_s_per_chip": "serving_decode_chip_tokens_per_s",
    "decode.tpot_s": "serving_tpot_s",
    "decode.tok_s_per_user": "serving_user_tokens_per_s",
    "serving.ttft_s": "serving_ttft_s",
    "serving.e2e_s": "serving_e2e_s",
    "serving.tok_s_per_chip": "serving_chip_tokens_per_s",
    "memory.max_concurrency": "memory_max_concurrency",
    "cost.usd_per_million_output_tokens": "serving_cost_output_usd",
}
"""JSON key -> the quantity behind it: the headlines that carry a range."""


SILENT = ("serving_tpot_s", "serving_user_tokens_per_s")
"""Quantities that mean nothing where one output token has no time between tokens."""


ANYWAY = ("memory", "feasible", "chips_lent", "layout")
"""How keys of an answer begin that a deployment has even where it does not fit: it has no times, rates and costs."""


def check_says(names: Iterable[str], osl: float) -> None:
    """Each of these quantities means something at this many output tokens. Raises BadWorkload."""
    if osl < 2 and any(name in SILENT for name in names):
        raise BadWorkload("osl", "one output token has no time between tokens", "ask for 2 or more")


def run(point: Point) -> tuple[Say, Any]:
    """(every named quantity, the inputs) of one deployment on floats."""
    on = setting(point.shape, point.values, point.raw)
    say = Numbers()
    deployment(say, point.shape, on)
    return say, on


def estimate(
    model: str | Model,
    system: str | System,
    layout: str | Layout,
    workload: Workload,
    *,
    stack: str | Stack | None = None,
    chips: int | None = None,
    draws: int | None = None,
) -> Estimate:
    """What one layout does under a workload.

    chips: chips lent; whole replicas of the layout are placed on them (default: one replica). draws: draws of the
    estimated specs behind the ranges. Raises BadInput leaves.
    """
    case, found, lent, point = placed(model, system, layout, workload, stack, chips)
    from planner.evaluate.influence import assumptions
    from planner.evaluate.ranges import basis, draws_of, ranges

    replicas = lent // found.chips
    inputs = (point.shape, point.values, point.raw, point.leaves, HEADLINES)
    bands = {key: [float(v) for v in pair[:, 0]] for key, pair in ranges(*inputs, draws_of(draws)).items()}
    drawn = basis(draws_of(draws))
    return assemble(case, found, workload, replicas, lent, point, bands, assumptions(*inputs)[0], drawn)


def assemble(
    case: Case, layout: Layout, workload: Workload, replicas: int, lent: int, point: Point,
    bands: dict[str, list[float]], assumed: list[dict[str, Any]], drawn: str,
) -> Estimate:  # fmt: skip
    """The answer for one point from a float run and the ranges of its headlines."""
    say, on = run(point)
    q = {name: quantity.value for name, quantity in say.rows.items()}
    check_finite(q)
    rows = breakdown.rows(say, on)
    if workload.osl == 1:
        bands = {key: pair for key, pair in bands.items() if key not in ("decode.tpot_s", "decode.tok_s_per_user")}
    return Estimate(
        model=case.model.name,
        system=case.system.name,
        stack=case.stack.name,
        layout=layout_of(layout, replicas, lent),
        workload=workload.model_dump(),
        concurrency=check_load(workload),
        **headlines(case, q, workload, lent),
        bounds=breakdown.bounds(rows, q["serving_steps"], q["group"]),
        breakdown=rows,
        range=bands,
        range_basis=drawn,
        expected_error=case.stack.expected_error.model_dump(),
        assumptions=assumed,
        notes=notes_on(case.model, workload),
    )  # fmt: skip


def check_finite(q: dict[str, Any]) -> None:
    """Every headline is a finite number. Raises BadSpec."""
    endless = [key for key, name in HEADLINES.items() if not math.isfinite(q[name])]
    if endless:
        raise BadSpec(
            "specs", f"{endless[0]} comes out as no finite number", "check the figures of chip, stack and model"
        )


MEMORY = ("other_bytes", "usable_bytes", "activations_bytes", "buffers_bytes", "runtime_bytes", "slack_bytes",
          "max_concurrency", "request_block_tokens", "reserved_concurrency", "pool_used_bytes")  # fmt: skip
STAGE = ("requests", "used_bytes", "weights_bytes", "budget_bytes", "token_bytes", "state_bytes", "request_bytes",
         "reserved_bytes")  # fmt: skip
SERVED = ("serving_tokens_per_s", "serving_requests_per_s", "serving_cost_input_usd", "serving_cost_total_usd")


def behind(stages: int) -> frozenset[str]:
    """The quantities that `headlines` reads, of a structure of so many stages."""
    memory = (*MEMORY, *(f"stage{i}_{name}" for i in range(stages) for name in STAGE))
    return frozenset({*HEADLINES.values(), *SERVED, *(f"memory_{name}" for name in memory)})


def headlines(case: Case, q: dict[str, Any], workload: Workload, lent: int) -> dict[str, Any]:
    """Memory, prefill, decode, serving and cost of an answer from its named quantities on floats."""
    memory = memory_of(case, q, workload.isl + workload.osl, lent)
    violations = memory_violations(q, memory)
    silent = workload.osl == 1
    return {
        "feasible": not violations,
        "violations": violations,
        "memory": memory,
        "prefill": Prefill(q["prefill_idle_s"], q["serving_prefill_chip_tokens_per_s"]),
        "decode": Decode(
            q["decode_step_s"], q["serving_decode_chip_tokens_per_s"],
            None if silent else q["serving_tpot_s"], None if silent else q["serving_user_tokens_per_s"],
        ),
        "serving": Serving(
            q["serving_ttft_s"], q["serving_e2e_s"], q["serving_chip_tokens_per_s"], q["serving_tokens_per_s"],
            q["serving_requests_per_s"], workload.arrivals,
        ),
        "cost": Cost(q["serving_cost_output_usd"], q["serving_cost_input_usd"], q["serving_cost_total_usd"]),
    }  # fmt: skip


def layout_of(layout: Layout, replicas: int, lent: int) -> LayoutAnswer:
    """A placed layout as an answer."""
    keys = {key: getattr(layout, key.lower()) for key in KEYS}
    return LayoutAnswer(**keys, chips=layout.chips, replicas=replicas, chips_lent=lent, text=str(layout))


def worst_stage(q: dict[str, Any], by: str) -> int:
    """The place among the stages evaluated of the fullest at this load, or (`by` requests) that fits the fewest."""
    stages = list(takewhile(lambda i: f"memory_stage{i}_requests" in q, count()))
    keys = {i: (q[f"memory_stage{i}_requests"], -q[f"memory_stage{i}_used_bytes"]) for i in stages}
    return min(stages, key=lambda i: keys[i] if by == "requests" else keys[i][1])


def memory_of(case: Case, q: dict[str, Any], length: int, lent: int, by: str = "used_bytes") -> Memory:
    """Memory of one chip: of the fullest stage at this load, or (`by` requests) of the stage that fits the fewest."""
    stage = f"memory_stage{worst_stage(q, by)}_"
    weights = q[stage + "weights_bytes"]
    budget = q[stage + "budget_bytes"]
    most = int(q["memory_max_concurrency"])
    other = q["memory_other_bytes"]
    return Memory(
        fits=q["memory_slack_bytes"] >= 0,
        binding="weights" if budget < 0 else "memory",
        policy=case.stack.memory_policy,
        capacity_bytes_per_chip=case.chip.holds().value,
        usable_bytes_per_chip=q["memory_usable_bytes"]
        if case.stack.memory_meaning != "free"
        else weights + other + budget,
        weights_bytes_per_chip=weights,
        activations_bytes_per_chip=q["memory_activations_bytes"],
        buffers_bytes_per_chip=q["memory_buffers_bytes"],
        runtime_bytes_per_chip=q["memory_runtime_bytes"],
        kv_budget_bytes_per_chip=budget,
        kv_bytes_per_token_per_chip=q[stage + "token_bytes"],
        state_bytes_per_sequence_per_chip=q[stage + "state_bytes"],
        request_bytes_per_chip=q[stage + "request_bytes"],
        used_bytes_per_chip=q[stage + "used_bytes"] + other,
        length=length,
        max_concurrency=most,
        max_tokens=most * length,
        reserved_block_tokens=int(q["memory_request_block_tokens"]),
        reserved_bytes_per_request_per_chip=q[stage + "reserved_bytes"],
        reserved_max_concurrency=int(q["memory_reserved_concurrency"]),
        pool=Pool(case.chip.holds().value * lent, q["memory_pool_used_bytes"]),
    )


def memory_violations(q: dict[str, Any], memory: Memory) -> list[dict[str, Any]]:
    """The memory constraint where it is missed."""
    if memory.fits:
        return []
    over = -q["memory_slack_bytes"]
    held, may = show(memory.used_bytes_per_chip, "B"), show(memory.usable_bytes_per_chip, "B")
    sentence = f"a chip would hold {held} and may use {may}: {show(over, 'B')} too much"
    needed, available = memory.used_bytes_per_chip, memory.usable_bytes_per_chip
    return [{"constraint": "memory", "needed": needed, "available": available, "sentence": sentence}]
