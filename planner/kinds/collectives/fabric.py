"""Which bytes of a collective leave the scale-up domain: the part that the scale-out network carries.

Ranks are numbered with TP innermost, then CP, DP and PP, so a group of R ranks fills min(R, S) places of a domain of S
chips before it spills. A system that is one domain has no far part at all (the structure says so, not a number).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from planner.algebra import Q, ceil_div, maximum, minimum, several
from planner.quantities import Say


def rates(say: Say, chip: Any, link: Any) -> Any:
    """What a collective reaches each way on the scale-up fabric and on the scale-out network, B/s."""
    reached = SimpleNamespace(**vars(link))
    reached.near_peak_bytes_per_s = chip.scale_up_bandwidth_each_way
    reached.far_peak_bytes_per_s = chip.scale_out_bandwidth_each_way
    reached.near_bytes_per_s = say(
        "near_bytes_per_s", chip.scale_up_bandwidth_each_way * link.fraction, "reached one way inside the domain"
    )
    reached.far_bytes_per_s = say(
        "far_bytes_per_s", chip.scale_out_bandwidth_each_way * link.far_fraction, "reached one way outside the domain"
    )
    return reached


@dataclass(frozen=True)
class Ranks:
    """A group of R ranks, with what every collective over it needs, worked out once.

    several: 0 on one rank, 1 on more. others: (R - 1)/R. Where a system has several domains of S chips also
    leaves: 1 where R > S; outside: the share of a rank's peers outside its domain; inside: min(R, S); domains: R / S.
    """

    count: Q
    several: Q
    others: Q
    leaves: Q = 0
    outside: Q = 0
    inside: Q = 0
    domains: Q = 0


def ranks_of(say: Say, name: str, count: Q, on: Any) -> Ranks:
    """The group of `count` ranks under this name."""
    say = say.scope(name)
    many = say("several", several(count), "0 on one rank, 1 on more")
    others = say("others", (count - 1) / count, "share of the ranks that are not this one")
    if not on.crosses_domains:
        return Ranks(count, many, others)
    beyond = say("beyond", maximum(count - on.system.domain_chips, 0), "ranks outside this one's domain")
    return Ranks(
        count, many, others,
        leaves=say("leaves", minimum(beyond, 1), "1 where the group is larger than a domain"),
        outside=say("outside", beyond / maximum(count - 1, 1), "share of the peers outside the domain"),
        inside=say("inside", minimum(count, on.system.domain_chips), "ranks in one domain"),
        domains=say("domains", ceil_div(count, on.system.domain_chips), "domains the group spans"),
    )  # fmt: skip


def split(sent: Q, ranks: Ranks, on: Any) -> tuple[Q, Q]:
    """(near, far) of `sent` bytes that go in equal parts to all peers."""
    if not on.crosses_domains:
        return sent, 0
    far = sent * ranks.outside
    return sent - far, far


def start_up(link: Any, ranks: Ranks, on: Any) -> Q:
    """alpha inside the domain, alpha_far as soon as the group leaves it; 0 on one rank."""
    if not on.crosses_domains:
        return ranks.several * link.alpha
    return ranks.several * (link.alpha + ranks.leaves * (link.far_alpha - link.alpha))
