"""Tokens each expert receives in a kernel benchmark, and what the timed rank of an expert-parallel group meets.

balanced     token t picks experts (t + i E/k) mod E, i < k; with fewer than E/k tokens they spread evenly over a stride
power law    shares of E experts drawn from P(x) ~ x^-a between two bounds, scaled to N k and rounded; what an expert
             gets beyond N goes to the lightest until they are full, then rounding is made good one assignment each
             from the lightest on; the heaviest rank is the timed one

Ranks hold E/R experts in order. Counts of a power law are means over seeded draws: the benchmark's own draw is unknown.
Reference: ai-dynamo/aiconfigurator at 095f58a5, collector (balanced_logits, power_law_logits_v3).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

DRAWS = 64
MANY = (1.0, 0.8)
"""Bounds of a share where assignments outnumber experts: 1 and 0.8 N."""
FEW = (0.01, 2.0)
"""Bounds otherwise."""


class Load(NamedTuple):
    """assigned: rows of the timed rank; active: its experts that receive any."""

    assigned: float
    active: float


@cache
def balanced(tokens: int, experts: int, top_k: int, ranks: int) -> Load:
    """The timed rank is the first. Every E tokens give each expert k, so only what is beyond them is spread out."""
    stride = math.ceil(experts / top_k)
    cycles, left = divmod(tokens, experts)
    token, choice = np.arange(left)[:, None], np.arange(top_k)[None, :]
    first = token if tokens >= stride else np.floor(token * stride / tokens).astype(int)
    counts = cycles * top_k + np.bincount(((first + choice * stride) % experts).ravel(), minlength=experts)
    own = counts[: experts // ranks]
    return Load(float(own.sum()), float((own > 0).sum()))


@cache
def power_law(tokens: int, experts: int, top_k: int, ranks: int, exponent: float) -> Load:
    """Means over the draws."""
    rng = np.random.default_rng(0)
    low, high = (MANY[0], MANY[1] * tokens) if tokens * top_k > experts else FEW
    uniform, power = rng.random((DRAWS, experts)), 1 - exponent
    shares = ((high**power - low**power) * uniform + low**power) ** (1 / power)
    counts = np.rint(shares / shares.sum(1, keepdims=True) * tokens * top_k)
    for row in counts:
        settle(row, tokens, tokens * top_k)
    ranked = counts.reshape(DRAWS, ranks, -1)
    heaviest = ranked[np.arange(DRAWS), ranked.sum(2).argmax(1)]
    return Load(float(heaviest.sum(1).mean()), float((heaviest > 0).sum(1).mean()))


def settle(counts: np.ndarray[Any, np.dtype[np.float64]], most: int, wanted: int) -> None:
    """Make counts add up to `wanted` with none above `most`, in place."""
    excess = np.maximum(counts - most, 0).sum()
    np.minimum(counts, most, out=counts)
    order = np.argsort(counts)
    room = most - counts[order]
    counts[order] += np.clip(excess - (np.cumsum(room) - room), 0, room)
    missing = int(wanted - counts.sum())
    while missing > 0:
        given = np.argsort(np.where(counts < most, counts, np.inf))[:missing]
        counts[given] += 1
        missing -= len(given)
    while missing < 0:
        taken = np.argsort(counts)[:-missing]
        taken = np.where(counts[taken] > 0, taken, counts.argmax())
        np.subtract.at(counts, taken, 1)
        missing += len(taken)
