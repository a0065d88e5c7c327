"""Deployments side by side for one workload: headlines with ratios to the first, and who gained or lost how much.

    step_k - step_1     = sum over operators of ( time in k - time in 1 )        one decode step
    prompt_k - prompt_1 = the same over the prefill of one prompt on an idle system

An operator that one side does not have counts 0 there, so the differences add up whatever is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from planner.errors import BadWorkload
from planner.evaluate import breakdown
from planner.evaluate.case import check_load, placed
from planner.evaluate.estimate import HEADLINES, SILENT, layout_of, run
from planner.evaluate.results import Result
from planner.kinds.formats import FormatName
from planner.specs.library import load_model
from planner.specs.precision import in_precision
from planner.specs.workload import Workload

TOTALS = {"decode": "decode_step_s", "prefill": "prefill_idle_s"}
"""What the operators of a phase add up to."""
MOST = 12


@dataclass(frozen=True)
class Compared(Result):
    """One deployment. ratios: headline over that of the first. changed: phase -> operator -> seconds over the first."""

    name: str
    model: str
    system: str
    stack: str
    weights: str | None
    layout: str
    chips: int
    fits: bool
    kv_dtype: str
    expected_error: dict[str, Any]
    headlines: dict[str, float]
    ratios: dict[str, float | None]
    totals: dict[str, float]
    changed: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Comparison(Result):
    """`planner compare`. varied: what the deployments differ in."""

    workload: dict[str, Any]
    varied: list[str]
    variants: list[Compared]


@dataclass(frozen=True)
class Variant:
    """One choice of everything that may vary."""

    model: str
    weights: str | None
    system: str
    stack: str | None
    layout: str
    cache: FormatName


def compare(
    models: list[str],
    systems: list[str],
    layouts: list[str],
    workload: Workload,
    *,
    stacks: list[str] | None = None,
    weights: list[str] | None = None,
    kv_formats: list[FormatName] | None = None,
) -> Comparison:
    """Every combination against the first. kv_formats: caches to compare, else the workload's. Raises BadInput."""
    axes: dict[str, list[Any]] = {
        "model": models, "weights": weights or [None], "system": systems, "stack": stacks or [None], "layout": layouts,
        "cache": kv_formats or [workload.kv_format],
    }  # fmt: skip
    varied = [name for name, choices in axes.items() if len(choices) > 1]
    variants = [Variant(*combo) for combo in product(*axes.values())]
    if len(variants) < 2:
        raise BadWorkload("compare", "one deployment alone", "give two layouts ('TP8 DP8|TP4 DP16'), or two names")
    if len(variants) > MOST:
        raise BadWorkload("compare", f"{len(variants)} deployments", f"give at most {MOST}")
    found: list[Compared] = []
    times: list[dict[str, dict[str, float]]] = []
    for variant in variants:
        asked = workload.model_copy(update={"kv_format": variant.cache})
        one, rows = priced(variant, asked, varied, found[0] if found else None)
        if any(one.name == other.name for other in found):
            raise BadWorkload("compare", f"{one.name} is there twice", "give each once")
        changed = {phase: difference(rows[phase], times[0][phase]) for phase in TOTALS} if times else empty()
        found.append(Compared(**{**one.__dict__, "changed": changed}))
        times.append(rows)
    return Comparison(workload.model_dump(), varied, found)


def empty() -> dict[str, dict[str, float]]:
    """No difference in either phase."""
    return {phase: {} for phase in TOTALS}


def priced(
    variant: Variant, workload: Workload, varied: list[str], first: Compared | None
) -> tuple[Compared, dict[str, dict[str, float]]]:
    """(headlines of one deployment, seconds of every operator by phase)."""
    model = in_precision(load_model(variant.model), variant.weights)
    case, layout, lent, point = placed(model, variant.system, variant.layout, workload, variant.stack, None)
    check_load(workload)
    say, on = run(point)
    said = {key: name for key, name in HEADLINES.items() if workload.osl > 1 or name not in SILENT}
    headlines = {key: float(say.rows[name].value) for key, name in said.items()}
    held = {"model": case.model.name, "weights": variant.weights or "as shipped", "system": case.system.name,
            "stack": case.stack.name, "layout": layout_of(layout, 1, lent).text,
            "cache": variant.cache}  # fmt: skip
    rows: dict[str, dict[str, float]] = empty()
    for row in breakdown.rows(say, on):
        times = rows[row["phase"]]
        times[row["operator"]] = times.get(row["operator"], 0.0) + row["time_s"]
    return Compared(
        name=", ".join(str(held[name]) for name in varied),
        model=case.model.name, system=case.system.name, stack=case.stack.name, weights=variant.weights,
        layout=held["layout"], chips=lent, fits=bool(say.rows["memory_slack_bytes"].value >= 0),
        kv_dtype=variant.cache, expected_error=case.stack.expected_error.model_dump(),
        headlines=headlines,
        ratios={key: ratio(value, (first.headlines if first else headlines)[key]) for key, value in headlines.items()},
        totals={phase: float(say.rows[name].value) for phase, name in TOTALS.items()},
        changed=empty(),
    ), rows  # fmt: skip


def ratio(value: float, first: float) -> float | None:
    """value / first; none over 0."""
    return value / first if first else None


def difference(own: dict[str, float], first: dict[str, float]) -> dict[str, float]:
    """Seconds every operator takes more than in the first, the largest change before the smaller ones."""
    names = [*first, *(name for name in own if name not in first)]
    found = {name: own.get(name, 0.0) - first.get(name, 0.0) for name in names}
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))
