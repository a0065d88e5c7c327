"""All-gather: every rank ends with what all the others hold.

    t = rounds alpha + sent / (B eta)

`sent` is what this chip sends to all its peers together, one way. Uses the constants of the all-reduce.
Reference: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q
from planner.kinds.collectives.fabric import Ranks, split, start_up
from planner.quantities import Say
from planner.roofline import exchange


def all_gather(say: Say, name: str, sentence: str, sent: Q, ranks: Ranks, on: Any, rounds: int = 1) -> Q:
    """Time of `rounds` exchanges that send `sent` bytes in all."""
    near, far = split(sent, ranks, on)
    return exchange(
        say, name, sentence, on.link.all_reduce, near, far, rounds * start_up(on.link.all_reduce, ranks, on)
    )
