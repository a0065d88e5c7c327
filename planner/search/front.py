"""The front of two rates: points that no other beats in both."""

from __future__ import annotations

from typing import Any

import numpy as np

BINS = 1024


def front(first: Any, second: Any) -> Any:
    """Indices of the points not dominated in (first, second), both better when higher, by falling `first`.

    Sort by the first rate, then sweep: a point stays if its second rate beats all seen before. Ties in both keep the
    earlier point, so that two runs agree. Most points fall beforehand to a better one in a higher bin of the first.
    """
    kept = contenders(first, second)
    order = kept[np.lexsort((kept, -second[kept], -first[kept]))]
    best = np.maximum.accumulate(second[order])
    leads = np.empty(len(order), dtype=bool)
    leads[:1] = True
    leads[1:] = second[order][1:] > best[:-1]
    return order[leads]


def contenders(first: Any, second: Any) -> Any:
    """Indices of the points that no point in a higher bin of `first` dominates."""
    edges = np.linspace(first.min(), first.max(), BINS)
    bins = np.searchsorted(edges, first, side="right")
    highest = np.full(BINS + 2, -np.inf)
    np.maximum.at(highest, bins, second)
    above = np.maximum.accumulate(highest[::-1])[::-1]
    return np.flatnonzero(second > above[bins + 1])
