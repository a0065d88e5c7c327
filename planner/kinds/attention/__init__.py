"""Attention kinds, one file each. To add one: a file here and its name in this list and in the union."""

from typing import Annotated

from pydantic import Field

from planner.kinds.attention import gqa, kda, mla
from planner.kinds.attention.gqa import Gqa
from planner.kinds.attention.kda import Kda
from planner.kinds.attention.kind import AttentionKind
from planner.kinds.attention.mla import Mla

ATTENTION: dict[str, AttentionKind] = {"gqa": gqa.KIND, "kda": kda.KIND, "mla": mla.KIND}
Attention = Annotated[Gqa | Kda | Mla, Field(discriminator="kind")]
