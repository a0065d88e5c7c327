"""Uniform routing: how many assignments and how many distinct experts the slowest rank meets.

N tokens in the domain, E experts of which each token picks k, R ranks:

    assignments   mu = N k / R,                     A = i mu + sqrt(2 i mu ln R)
    distinct      D_all = E (1 - (1 - k/E)^N),      D = min(slots, D_all/R + sqrt(2 D_all/R (1 - D_all/E) ln R))

The square roots are the expected largest of R nearly independent counts (Gaussian tail). i >= 1 is a given skew: the
heaviest rank's mean load over the mean. slots: experts held by one rank, redundant ones included.
Limits: uniform choice apart from i; real routers touch fewer experts at small batches and load some ranks more.
Reference: D_all is the occupancy problem (W. Feller, An Introduction to Probability Theory, vol. 1, IV.2); the
maximum of
R Gaussians: S. Boucheron, G. Lugosi, P. Massart, Concentration Inequalities, 2013, section 2.5.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q, minimum, root
from planner.quantities import Say


def routing(say: Say, moe: Any, tokens: Q, on: Any) -> tuple[Q, Q]:
    """(assignments, distinct experts) on the slowest rank for `tokens` in the whole domain."""
    say = say.scope("routing")
    missed = say("missed", (1 - moe.top_k / moe.experts) ** tokens, "chance that no token picks a given expert")
    found = say("distinct_experts", moe.experts * (1 - missed), "distinct experts, whole domain")
    mean = say("mean_assignments", on.ask.routing_skew * moe.top_k * tokens / on.layout.ep, "assignments per rank")
    assigned = say("assignments", mean + root(2 * mean * moe.spread), "assignments on the slowest rank")
    busy = say("mean_experts", found / on.layout.ep, "distinct experts per rank")
    swing = root(2 * busy * missed * moe.spread)
    return assigned, say("experts", minimum(moe.slots, busy + swing), "distinct experts on the slowest rank")
