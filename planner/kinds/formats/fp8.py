"""FP8 (E4M3 or E5M2) without block scales: one scale for a tensor or channel, too small to count."""

from planner.kinds.formats.format import Format

FORMAT = Format("fp8", value_bits=8, reference="Micikevicius et al., FP8 Formats for Deep Learning, arXiv:2209.05433")
