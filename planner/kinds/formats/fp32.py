"""IEEE 754 binary32."""

from planner.kinds.formats.format import Format

FORMAT = Format("fp32", value_bits=32, reference="IEEE 754-2019, binary32")
