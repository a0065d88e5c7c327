"""bfloat16: the top half of binary32."""

from planner.kinds.formats.format import Format

FORMAT = Format("bf16", value_bits=16, reference="Kalamkar et al., A Study of BFLOAT16, arXiv:1905.12322")
