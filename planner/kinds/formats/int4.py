"""INT4 with one 16-bit scale for every 32 values."""

from planner.kinds.formats.format import Format

FORMAT = Format(
    "int4",
    value_bits=4,
    scale_bits=16,
    group=32,
    block=32,
    reference="Frantar et al., GPTQ, arXiv:2210.17323 (group scales)",
)
