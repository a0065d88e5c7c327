"""Number formats, one file each. To add one: a file here and its name in this list."""

from typing import Literal

from planner.kinds.formats import bf16, fp8, fp32, int4, int8, mxfp4, mxfp8, nvfp4

FORMATS = {f.FORMAT.name: f.FORMAT for f in (bf16, fp8, fp32, int4, int8, mxfp4, mxfp8, nvfp4)}
FormatName = Literal["bf16", "fp8", "fp32", "int4", "int8", "mxfp4", "mxfp8", "nvfp4"]
CHOICES = ("bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4")
"""What --kv-dtype, --weights and the like take."""


def value_bytes(name: str) -> float:
    """Bytes of one value of a format, block scales included."""
    return FORMATS[name].value_bytes
