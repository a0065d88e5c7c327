"""INT4 with one 16-bit scale for every 128 values: 4.125 bits a value; zero points are not counted."""

from planner.kinds.formats.format import Format

FORMAT = Format(
    "int4_g128", value_bits=4, scale_bits=16, group=128, block=128, reference="Lin et al., AWQ, arXiv:2306.00978"
)
