"""INT8 with one scale for a tensor or channel, too small to count."""

from planner.kinds.formats.format import Format

FORMAT = Format("int8", value_bits=8, reference="Jacob et al., arXiv:1712.05877")
