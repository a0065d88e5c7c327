"""FP8 (E4M3) weights in blocks of 128 x 128 with one FP32 scale: 8.002 bits a value.

Limit: a matrix holds ceil(rows / 128) x ceil(columns / 128) scales, and a part of a block counts here as a part. Where
128 does not divide a side, a scale or less is missing for each block of the other: the 576 rows of DeepSeek-V3's keys
and values have 5 rows of scales and not 4.5, in all 6,944 B of 688 GB.
"""

from planner.kinds.formats.format import Format

FORMAT = Format(
    "fp8_block", value_bits=8, scale_bits=32, group=128 * 128, block=128,
    reference="DeepSeek-V3 technical report, arXiv:2412.19437, section 3.3 (fine-grained quantization)",
)  # fmt: skip
