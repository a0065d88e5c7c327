"""Hyper-connections: m residual streams, mixed by learned weights before and after every sublayer.

At each of 2 L sites the m streams of a token are flattened and projected to m weights that collapse them into the
sublayer's input, m that spread its output, and an m x m matrix that mixes the streams, made doubly stochastic by a few
Sinkhorn iterations. After the last layer m weights collapse the streams once more.
Weights of a site: (2 + m) m x m width, as many offsets, three scales; of the last: m x m width, m offsets, one scale.
Limits: reading a site's projection (1.6 MB for 4 streams of 4,096 in FP32) and its arithmetic are left out; they are
small against the layer's weights.
Reference: Z. Xie et al., mHC: Manifold-Constrained Hyper-Connections, arXiv:2512.24880; weights: transformers at
01976081, models/deepseek_v4 (DeepseekV4HyperConnection, DeepseekV4HyperHead).
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q
from planner.kinds.formats import FormatName
from planner.kinds.residual.kind import NORMS_PER_LAYER, SITES_PER_LAYER, ResidualKind, ResidualRecord
from planner.kinds.weights import Weight
from planner.record import Count

SCALES = 3  # of a site: for what collapses, spreads and mixes
COLLAPSED, SPREAD = 1, 1  # vectors of one width a site writes for the sublayer and reads from it
PASSES = 3  # times a site moves every stream: read to collapse, read to mix, written


class Hyper(ResidualRecord):
    """Sizes: streams (m), layers of the model. mixing_format: of the projections, offsets and scales."""

    kind: Literal["hyper"]
    streams: Count
    layers: Count
    mixing_format: FormatName = "fp32"


def weights(hyper: Any, width: Q) -> list[Weight]:
    """Two norms and two sites a layer."""
    outputs = (2 + hyper.streams) * hyper.streams
    site = outputs * hyper.streams * width + outputs + SCALES
    return [
        Weight("norms", NORMS_PER_LAYER * width, hyper.vector_value_bytes, "copied", product=False),
        Weight("mixing", SITES_PER_LAYER * site, hyper.mixing_value_bytes, "copied", product=False),
    ]


def final_weights(hyper: Any, width: Q) -> list[Weight]:
    """The last norm and the last collapse."""
    last = hyper.streams * hyper.streams * width + hyper.streams + 1
    return [
        Weight("norm", width, hyper.vector_value_bytes, "copied", product=False),
        Weight("final_mixing", last, hyper.mixing_value_bytes, "copied", product=False),
    ]


def mixing_values(hyper: Any, width: Q) -> Q:
    """Values read and written per token over all sites: 2 L (3 m + 2) + m + 1 vectors of the width.

    A site reads the streams to collapse them and writes the sublayer's input; later it reads the streams and the
    sublayer's output and writes the streams. The last one reads them and writes one vector.
    """
    site = PASSES * hyper.streams + COLLAPSED + SPREAD
    return (SITES_PER_LAYER * hyper.layers * site + hyper.streams + COLLAPSED) * width


def live_sources(hyper: Any) -> Q:
    """Every stream."""
    return hyper.streams


KIND = ResidualKind(
    record=Hyper, reference="arXiv:2512.24880", weights=weights, final_weights=final_weights,
    mixing_values=mixing_values, live_sources=live_sources,
)  # fmt: skip
