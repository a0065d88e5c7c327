"""Residual kinds, one file each. To add one: a file here and its name in this list and in the union."""

from typing import Annotated

from pydantic import Field

from planner.kinds.residual import attn_res, hyper, plain
from planner.kinds.residual.attn_res import AttnRes
from planner.kinds.residual.hyper import Hyper
from planner.kinds.residual.kind import ResidualKind
from planner.kinds.residual.plain import Plain

RESIDUAL: dict[str, ResidualKind] = {"plain": plain.KIND, "attn_res": attn_res.KIND, "hyper": hyper.KIND}
Residual = Annotated[Plain | AttnRes | Hyper, Field(discriminator="kind")]
