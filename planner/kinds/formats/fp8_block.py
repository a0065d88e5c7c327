"""FP8 (E4M3) weights in blocks of 128 x 128 with one FP32 scale: 8.002 bits a value."""

from planner.kinds.formats.format import Format

FORMAT = Format(
    "fp8_block", value_bits=8, scale_bits=32, group=128 * 128, block=128,
    reference="DeepSeek-V3 technical report, arXiv:2412.19437, section 3.3 (fine-grained quantization)",
)  # fmt: skip
