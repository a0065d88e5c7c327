"""Dispatch and combine of expert parallelism.

    t = alpha + n (R - 1)/R copies bytes_per_copy / (B eta)

n tokens enter at this chip; copies = min(k, EP) x ETP, or, where the library sends one copy to each distinct rank,
EP (1 - (1 - 1/EP)^k) x ETP. A library that sends one copy per chosen expert sends k; with EP < k an all-gather over the
EP groups moves less and is assumed. The start-up time does not grow from EP8 to EP64 inside one switch domain.
A stack whose exchange gathers has a copy of every token on every rank, R copies, and adds the partial outputs up where
they came from: an all-gather and a reduce-scatter, at what the stack states of its dispatch and combine.
Limits: no congestion, balanced traffic.
Reference: alpha-beta form fitted by others on NVL72 and DeepEP low-latency tables (see the stack's sources).
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q, distinct, minimum
from planner.kinds.collectives.fabric import split, start_up
from planner.quantities import Say
from planner.roofline import exchange


def copies(top_k: Q, on: Any) -> Q:
    """Copies of one token that travel: to its experts' ranks, and to every expert-TP rank behind each; or to all."""
    if on.stack.exchange == "gather":
        return on.layout.ep * on.layout.etp
    if on.stack.one_copy_per_rank:
        return distinct(on.layout.ep, 1 / on.layout.ep, top_k) * on.layout.etp
    return minimum(top_k, on.layout.ep) * on.layout.etp


def all_to_all(say: Say, name: str, sentence: str, travelling: Q, copy_bytes: Q, when: Q, on: Any) -> Q:
    """Time of one dispatch or combine (`name` picks its constants) of `travelling` copies sent by this chip's tokens.

    `when` is 0 where every rank already holds every token and nothing is exchanged.
    """
    link = on.link.dispatch if name == "dispatch" else on.link.combine
    near, far = split(travelling * copy_bytes * on.ranks.stage.others, on.ranks.stage, on)
    return exchange(say, name, sentence, link, near, far, when * start_up(link, on.ranks.stage, on))
