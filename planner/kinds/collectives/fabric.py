"""Which bytes of a collective leave the scale-up domain: the part that the scale-out network carries.

Ranks are numbered with TP innermost, then CP, DP and PP, so a group of R ranks fills min(R, S) places of a domain of S
chips before it spills. A system that is one domain has no far part at all (the structure says so, not a number).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from planner.algebra import Q, maximum, minimum, several
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


def split(sent: Q, ranks: Q, on: Any) -> tuple[Q, Q]:
    """(near, far) of `sent` bytes that go in equal parts to R - 1 peers: max(R - S, 0) of them sit outside."""
    if not on.crosses_domains:
        return sent, 0
    far = sent * maximum(ranks - on.system.domain_chips, 0) / maximum(ranks - 1, 1)
    return sent - far, far


def start_up(link: Any, ranks: Q, on: Any) -> Q:
    """alpha inside the domain, alpha_far as soon as the group leaves it; 0 on one rank."""
    if not on.crosses_domains:
        return several(ranks) * link.alpha
    leaves = minimum(maximum(ranks - on.system.domain_chips, 0), 1)
    return several(ranks) * (link.alpha + leaves * (link.far_alpha - link.alpha))
