"""The operators of one float run as rows: cost, bound, nearness to the floor, and how well each is known."""

from __future__ import annotations

from typing import Any

from planner.algebra import Q
from planner.quantities import Operator, Say
from planner.stages import FIRST, LAST, LAYER, MIXED

PHASES = ("prefill", "decode")
ROUNDING = 1e-13
"""A smaller share of its phase is a difference of equal numbers."""
OVERLAPPED, FACTOR = "engine.pipeline", "engine.factor"


def repeats(operator: Operator, on: Any, chunks: Q) -> Q:
    """Runs of an operator in its phase: layers of its group, stages for a hop, once for what is counted whole."""
    passes = chunks if operator.phase == "prefill" else 1.0
    if operator.group == "once":
        return 1.0
    if operator.group == "hop":
        return on.layout.pp * passes
    return on.count[operator.group] * passes


def bound_of(parts: dict[str, float]) -> str:
    """The largest of the times each bound alone would take."""
    return max(parts, key=lambda name: parts[name])


def operator_name(operator: Operator) -> str:
    """'kda.core', 'layer.fixed'; hidden time is 'overlap'."""
    if operator.name == "overlap":
        return "overlap"
    group = {FIRST: "embedding", LAST: "head", LAYER: "layer", MIXED: "layer", "hop": "pipeline", "once": "engine"}
    return f"{group.get(operator.group, operator.group)}.{operator.name}"


def rows(say: Say, on: Any) -> list[dict[str, Any]]:
    """The breakdown: decode rows sum to the step, prefill rows to the TTFT of one prompt on an idle system."""
    chunks = say.rows["prompt_chunks"].value
    found = []
    whole = {phase: sum(abs(o.time_s) for o in say.operators if o.phase == phase) for phase in PHASES}
    for operator in say.operators:
        if operator.phase not in PHASES or abs(operator.time_s) <= whole[operator.phase] * ROUNDING:
            continue
        count = repeats(operator, on, chunks)
        time, floor = operator.time_s * count, operator.floor_s * count
        found.append({
            "phase": operator.phase,
            "operator": operator_name(operator),
            "sentence": operator.sentence,
            "count": round(count),
            "time_s": time,
            "floor_s": floor,
            "floor_share_fraction": floor / time if time > 0 else 0.0,
            "flops": operator.flops * count,
            "bytes": operator.bytes * count,
            "network_bytes": operator.network_bytes * count,
            "bound": bound_of(operator.parts),
            "basis": operator.basis,
        })  # fmt: skip
    return found


def bounds(breakdown: list[dict[str, Any]], steps: float, prefills: float) -> dict[str, float]:
    """Share of a request's work on the chips by bound: decode steps, prefills; hidden exchange off the network.

    Passes of a prompt that overlap in a pipeline are no bound of their own: they shorten all prefill rows alike. Nor is
    the prefill factor, which lengthens them alike.
    """
    total = dict.fromkeys(("compute", "memory", "network", "latency"), 0.0)
    for row in breakdown:
        weight = steps if row["phase"] == "decode" else prefills
        if row["operator"] == FACTOR or (row["operator"] == OVERLAPPED and row["time_s"] < 0):
            continue
        bound = "network" if row["operator"] == "overlap" else row["bound"]
        total[bound] += row["time_s"] * weight
    whole = sum(total.values())
    return {name: value / whole for name, value in total.items()} if whole else total


def bounds_over(say: Say, on: Any, phase: str) -> dict[str, Any]:
    """As `bounds` for one phase alone, on floats or arrays, where the bound of an operator may differ by element."""
    total: dict[str, Any] = dict.fromkeys(("compute", "memory", "network", "latency"), 0.0)
    for operator in say.operators:
        if operator.phase != phase:
            continue
        time = operator.time_s * repeats(operator, on, 1.0)
        if operator_name(operator) == OVERLAPPED:
            time = time * (time > 0)
        if operator.name == "overlap":
            total["network"] = total["network"] + time
            continue
        names = list(operator.parts)
        for i, name in enumerate(names):
            leads: Any = True
            for j, other in enumerate(names):
                mine, others = operator.parts[name], operator.parts[other]
                leads = leads * (mine > others if j < i else mine >= others)
            total[name] = total[name] + time * leads
    whole = sum(total.values())
    return {name: value / whole for name, value in total.items()}
