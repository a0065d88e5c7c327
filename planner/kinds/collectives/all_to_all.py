"""Dispatch and combine of expert parallelism.

    t = alpha + n (R - 1)/R copies bytes_per_copy / (B eta)

Bulk kernels (prefill) may send one copy to each other domain, where it is spread inside while the next arrive (the
stack's `spreads_far`): the slower of the two fabrics decides.
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

from planner.algebra import Q, distinct, maximum, minimum
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


def far_copies(top_k: Q, on: Any) -> Q:
    """Other domains that one token's experts are in: (m - 1) (1 - (1 - 1/m)^k) of m domains.

    Limits: experts are drawn with replacement (0.4 % low for 8 of 256 over 4 domains); a router that limits a token to
    some groups of experts (DeepSeek-V3: 4 of 8) reaches fewer: 13 to 33 % fewer on 4 to 16 domains.
    """
    domains = on.ranks.stage.domains
    return distinct(maximum(domains - 1, 0), 1 / domains, top_k)


def all_to_all(
    say: Say, name: str, sentence: str, travelling: Q, copy_bytes: Q, when: Q, on: Any, spread: Q | None = None
) -> Q:  # fmt: skip
    """Time of one dispatch or combine (`name` picks its constants) of `travelling` copies sent by this chip's tokens.

    `when` is 0 where every rank already holds every token and nothing is exchanged. `spread`: the copies that leave the
    domain where one goes to each other domain and is spread inside it; None: each copy goes all the way.
    """
    link = on.link.dispatch if name == "dispatch" else on.link.combine
    alpha = when * start_up(link, on.ranks.stage, on)
    if on.crosses_domains and spread is not None:
        inside = on.ranks.stage.inside
        near, far = travelling * copy_bytes * (inside - 1) / inside, spread * copy_bytes
        return exchange(say, name, sentence, link, near, far, alpha, at_once=True)
    near, far = split(travelling * copy_bytes * on.ranks.stage.others, on.ranks.stage, on)
    return exchange(say, name, sentence, link, near, far, alpha)
