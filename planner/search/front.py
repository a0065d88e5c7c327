"""The front of two rates: points that no other beats in both."""

from __future__ import annotations

from typing import Any

import numpy as np


def front(first: Any, second: Any) -> Any:
    """Indices of the points not dominated in (first, second), both better when higher, by falling `first`.

    Sort by the first rate, then sweep: a point stays if its second rate beats all seen before. Ties in both keep the
    earlier point, so that two runs agree.
    """
    order = np.lexsort((np.arange(len(first)), -second, -first))
    best = np.maximum.accumulate(second[order])
    leads = np.empty(len(order), dtype=bool)
    leads[:1] = True
    leads[1:] = second[order][1:] > best[:-1]
    return order[leads]
