"""NVFP4: E2M1 values in blocks of 16 with one FP8 scale: 4.5 bits a value; the tensor's own scale is not counted."""

from planner.kinds.formats.format import Format

FORMAT = Format(
    "nvfp4", value_bits=4, scale_bits=8, group=16, reference="NVIDIA, Introducing NVFP4, developer blog, 2025-06-24"
)
