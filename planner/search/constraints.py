"""Constraints of a plan: a name, the quantity it bounds, how far a point misses it, a sentence.

To add one: an entry in CONSTRAINTS. `missed` is the shortfall as a fraction of the limit; above 0 the point is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.algebra import Q
from planner.specs.workload import Slo
from planner.units import show, show_time


@dataclass(frozen=True)
class Constraint:
    """One constraint on evaluated points."""

    name: str
    quantity: str
    limit: Callable[[Slo], float | None]
    missed: Callable[[Q, float], Q]
    sentence: Callable[[float, float], str]
    why: str


CONSTRAINTS = (
    Constraint(
        "memory",
        "memory_slack_bytes",
        lambda slo: 0.0,
        lambda slack, limit: -slack,
        lambda slack, limit: f"the fullest chip is {show(-slack, 'B')} over what it may use",
        "one request does not fit beside the weights, or the asked concurrency does not",
    ),
    Constraint(
        "ttft",
        "serving_ttft_s",
        lambda slo: slo.ttft_s,
        lambda ttft, limit: ttft / limit - 1,
        lambda ttft, limit: f"TTFT is {show_time(ttft)} and {show_time(limit)} is asked",
        "the TTFT target is missed",
    ),
    Constraint(
        "tpot",
        "serving_tpot_s",
        lambda slo: slo.tpot_s,
        lambda tpot, limit: tpot / limit - 1,
        lambda tpot, limit: f"TPOT is {show_time(tpot)} and {show_time(limit)} is asked",
        "the TPOT target is missed",
    ),
    Constraint(
        "rate",
        "serving_requests_per_s",
        lambda slo: slo.rate_per_s,
        lambda rate, limit: 1 - rate / limit,
        lambda rate, limit: f"{rate:.3g} requests/s are served and {limit:.3g} are asked",
        "the request rate is not reached",
    ),
)

RULES = {
    "heads": "TP must divide the attention heads",
    "width": "TP must divide the width of dense and shared feed-forwards",
    "expert_width": "ETP must divide the width of an expert",
    "experts": "EP cannot exceed the experts, and must divide them with the redundant ones",
    "layers": "PP cannot exceed the layers",
    "idle_chips": "replicas would leave too many of the chips lent without work",
    **{constraint.name: constraint.why for constraint in CONSTRAINTS},
}
"""A sentence for every reason in `rejected`."""


def active(slo: Slo) -> list[tuple[Constraint, float]]:
    """The constraints that bind under these targets, with their limits."""
    found: list[tuple[Constraint, float]] = []
    for constraint in CONSTRAINTS:
        limit = constraint.limit(slo)
        if limit is not None:
            found.append((constraint, limit))
    return found
