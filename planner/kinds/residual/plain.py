"""Plain residual stream: one running sum, a norm before each sublayer and one at the end.

Reference: R. Xiong et al., On Layer Normalization in the Transformer Architecture, arXiv:2002.04745 (pre-norm).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.algebra import Q
from planner.kinds.residual.kind import NORMS_PER_LAYER, ResidualKind, ResidualRecord
from planner.kinds.weights import Weight
from planner.record import Count


class Plain(ResidualRecord):
    """Norms of a layer, and other values stored with it (scales of routers and experts)."""

    kind: Literal["plain"]
    norms: Count = NORMS_PER_LAYER
    other_values: int = Field(default=0, ge=0, le=10**9)


def weights(plain: Any, width: Q) -> list[Weight]:
    """The norms of a layer (two, or four where outputs are normed as well) and what else is stored with it."""
    size = plain.norms * width + plain.other_values
    return [Weight("norms", size, plain.vector_value_bytes, "copied", product=False)]


def final_weights(plain: Any, width: Q) -> list[Weight]:
    """The last norm."""
    return [Weight("norm", width, plain.vector_value_bytes, "copied", product=False)]


def mixing_values(plain: Any, width: Q) -> Q:
    """Nothing is read or written beyond what the sublayers already move."""
    return 0


def live_sources(plain: Any) -> Q:
    """One running sum."""
    return 1


KIND = ResidualKind(
    record=Plain, reference="arXiv:2002.04745", weights=weights, final_weights=final_weights,
    mixing_values=mixing_values, live_sources=live_sources,
)  # fmt: skip
