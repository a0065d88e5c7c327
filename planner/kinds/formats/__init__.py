"""Number formats, one file each. To add one: a file here and its name in this list."""

from typing import Literal

from planner.kinds.formats import bf16, fp8, fp8_block, fp32, int4, int4_g128, int8, mxfp4, mxfp8, nvfp4
from planner.kinds.formats.format import Format

FILES = (bf16, fp8, fp8_block, fp32, int4, int4_g128, int8, mxfp4, mxfp8, nvfp4)
FORMATS: dict[str, Format] = {file.FORMAT.name: file.FORMAT for file in FILES}
FormatName = Literal["bf16", "fp8", "fp8_block", "fp32", "int4", "int4_g128", "int8", "mxfp4", "mxfp8", "nvfp4"]
CHOICES = ("bf16", "fp8", "int8", "int4", "mxfp4", "nvfp4")
"""What --kv-dtype, --weights and the like take."""


def value_bytes(name: str) -> float:
    """Bytes of one value of a format, scales included."""
    return FORMATS[name].value_bytes


def splits(width: int, ways: int, name: str) -> bool:
    """A width in this format can be cut over so many ranks: evenly, and each share a whole number of blocks."""
    return ways == 1 or (width % ways == 0 and width // ways % FORMATS[name].block == 0)
