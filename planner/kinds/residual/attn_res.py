"""Block attention residuals: each sublayer reads a learned mixture of the outputs of earlier blocks of layers.

With L layers in blocks of c, every sublayer mixes the embedding, the finished blocks and the running sum of its own
block: a site in block j reads j + 2 sources, one fewer at a block's first site (no running sum yet), and the final
mixture reads all ceil(L/c) + 1. Sites: 2 L + 1. Two extra vectors per site hold the mixing weights' query and norm.
Reference: Kimi K3 technical report, arXiv:2607.24653 (attention residuals); counts checked against ROCm/ATOM
model_ops/attention_residual.py at ffdf3bb5: 187 sites and 1,003 source reads for K3.
"""

from __future__ import annotations

from typing import Any, Literal

from planner.algebra import Q, ceil_div
from planner.kinds.residual.kind import NORMS_PER_LAYER, SITES_PER_LAYER, ResidualKind, ResidualRecord
from planner.kinds.weights import Weight
from planner.record import Count

VECTORS_PER_SITE = 2
WRITTEN_PER_SITE = 2  # the mixture, and the sublayer's output into the running sum


class AttnRes(ResidualRecord):
    """Sizes: layers per block, layers of the model."""

    kind: Literal["attn_res"]
    block: Count
    layers: Count


def weights(res: Any, width: Q) -> list[Weight]:
    """Two norms and the mixing vectors of two sites, a layer."""
    vectors = NORMS_PER_LAYER + SITES_PER_LAYER * VECTORS_PER_SITE
    return [Weight("norms_and_mixing", vectors * width, res.vector_value_bytes, "copied", product=False)]


def final_weights(res: Any, width: Q) -> list[Weight]:
    """The last norm and the mixing vectors of the last site."""
    return [Weight("final", (1 + VECTORS_PER_SITE) * width, res.vector_value_bytes, "copied", product=False)]


def source_reads(res: Any) -> Q:
    """Source vectors read per token over all sites.

    blocks B = ceil(L/c), the last one of l = L - (B - 1) c layers:
    reads = 2 [ c (B-1)(B-2)/2 + l (B-1) + 2 L ] - B + (B + 1)
    """
    blocks = ceil_div(res.layers, res.block)
    last = res.layers - (blocks - 1) * res.block
    finished = res.block * (blocks - 1) * (blocks - 2) / 2 + last * (blocks - 1)
    return SITES_PER_LAYER * (finished + 2 * res.layers) - blocks + live_sources(res)


def mixing_values(res: Any, width: Q) -> Q:
    """Values read and written per token over all sites."""
    sites = SITES_PER_LAYER * res.layers + 1
    return (source_reads(res) + WRITTEN_PER_SITE * sites) * width


def live_sources(res: Any) -> Q:
    """Finished blocks and the embedding: ceil(L/c) + 1 vectors per token at most."""
    return ceil_div(res.layers, res.block) + 1


KIND = ResidualKind(
    record=AttnRes, reference="arXiv:2607.24653", weights=weights, final_weights=final_weights,
    mixing_values=mixing_values, live_sources=live_sources,
)  # fmt: skip
