"""MXFP4: E2M1 values in blocks of 32 with one 8-bit power-of-two scale: 4.25 bits a value."""

from planner.kinds.formats.format import Format

FORMAT = Format(
    "mxfp4", value_bits=4, scale_bits=8, group=32, reference="OCP Microscaling Formats (MX) v1.0, 2023, table 1"
)
