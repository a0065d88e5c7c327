"""Attention kinds, one file each. To add one: a file here and its name in this list and in the union."""

from typing import Annotated

from pydantic import Field

from planner.kinds.attention import (
    block_sparse,
    compressed,
    gated_delta,
    gqa,
    kda,
    lightning,
    mamba1,
    mamba2,
    mla,
    none,
    sparse_mla,
)
from planner.kinds.attention.block_sparse import BlockSparse
from planner.kinds.attention.compressed import Compressed
from planner.kinds.attention.gated_delta import GatedDelta
from planner.kinds.attention.gqa import Gqa
from planner.kinds.attention.kda import Kda
from planner.kinds.attention.kind import AttentionKind
from planner.kinds.attention.lightning import Lightning
from planner.kinds.attention.mamba1 import Mamba1
from planner.kinds.attention.mamba2 import Mamba2
from planner.kinds.attention.mla import Mla
from planner.kinds.attention.none import NoAttention
from planner.kinds.attention.sparse_mla import SparseMla

ATTENTION: dict[str, AttentionKind] = {
    "block_sparse": block_sparse.KIND,
    "compressed": compressed.KIND,
    "gated_delta": gated_delta.KIND,
    "gqa": gqa.KIND,
    "kda": kda.KIND,
    "lightning": lightning.KIND,
    "mamba1": mamba1.KIND,
    "mamba2": mamba2.KIND,
    "mla": mla.KIND,
    "none": none.KIND,
    "sparse_mla": sparse_mla.KIND,
}
Attention = Annotated[
    BlockSparse | Compressed | GatedDelta | Gqa | Kda | Lightning | Mamba1 | Mamba2 | Mla | NoAttention | SparseMla,
    Field(discriminator="kind"),
]
