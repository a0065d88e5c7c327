"""Attention kinds, one file each. To add one: a file here and its name in this list and in the union."""

from typing import Annotated

from pydantic import Field

from planner.kinds.attention import kda, mla
from planner.kinds.attention.kda import Kda
from planner.kinds.attention.kind import AttentionKind
from planner.kinds.attention.mla import Mla

ATTENTION: dict[str, AttentionKind] = {"kda": kda.KIND, "mla": mla.KIND}
Attention = Annotated[Kda | Mla, Field(discriminator="kind")]
