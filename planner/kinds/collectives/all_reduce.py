"""All-reduce: every rank ends with the sum.

    t = alpha + 2 (R - 1)/R bytes / (B eta)

On one rank both terms vanish. Across domains of S chips it is hierarchical: 2 (S-1)/S bytes inside, then
2 (m-1)/m bytes / S per chip between the m = R/S domains.
Reference: P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms, JPDC 69(2), 2009.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q
from planner.kinds.collectives.fabric import Ranks, start_up
from planner.quantities import Say
from planner.roofline import exchange

PASSES = 2  # reduce-scatter, then all-gather


def all_reduce(say: Say, name: str, sentence: str, size: Q, ranks: Ranks, on: Any, when: Q = 1) -> Q:
    """Time to sum `size` bytes over `ranks`; `when` is 0 where the layout does not need it."""
    link, sent = on.link.all_reduce, PASSES * size * when
    near: Q = sent * ranks.others
    far: Q = 0
    if on.crosses_domains:
        near = sent * (ranks.inside - 1) / ranks.inside
        far = sent * (ranks.domains - 1) / ranks.domains / ranks.inside
    return exchange(say, name, sentence, link, near, far, when * start_up(link, ranks, on))
