"""Plain residual stream: one running sum, a norm before each sublayer and one at the end.

Reference: R. Xiong et al., On Layer Normalization in the Transformer Architecture, arXiv:2002.04745 (pre-norm).
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q
from planner.kinds.residual.kind import NORMS_PER_LAYER, ResidualKind, ResidualRecord
from planner.kinds.weights import Weight


class Plain(ResidualRecord):
    """No sizes of its own."""

    kind: Literal["plain"]


def weights(plain: Any, width: Q) -> list[Weight]:
    """Two norms a layer."""
    return [Weight("norms", NORMS_PER_LAYER * width, plain.vector_value_bytes, "copied", product=False)]


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
