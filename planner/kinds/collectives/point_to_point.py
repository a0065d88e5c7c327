"""Point to point: a pipeline stage hands its hidden states to the next.

    t = alpha + bytes / (B eta)

Each TP rank sends its share of the values. Between domains the scale-out network carries them.
Reference: alpha-beta model; R. Hockney, The communication challenge for MPP, Parallel Computing 20(3), 1994.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q, maximum, minimum
from planner.quantities import Say
from planner.roofline import exchange


def point_to_point(say: Say, name: str, sentence: str, size: Q, on: Any) -> Q:
    """Time of one hop of `size` bytes to the next pipeline stage; 0 where there is one stage."""
    link, pp = on.link.point_to_point, on.ranks.pp
    moved = pp.several * size
    if not on.crosses_domains:
        return exchange(say, name, sentence, link, moved, 0, pp.several * link.alpha)
    leaves = minimum(maximum(on.layout.chips - on.system.domain_chips, 0), 1)
    alpha = pp.several * (link.alpha + leaves * (link.far_alpha - link.alpha))
    return exchange(say, name, sentence, link, moved * (1 - leaves), moved * leaves, alpha)
