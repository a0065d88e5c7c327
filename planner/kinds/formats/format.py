"""A number format: how many bytes one value takes with its share of scales, and how it may be cut.

bytes per value = (value_bits + scale_bits / group) / 8
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.units import BITS_PER_BYTE


@dataclass(frozen=True)
class Format:
    """value_bits per value; one scale of scale_bits for every `group` values (0 bits: no scale to count).

    block: a width split over ranks must leave each a multiple of this, since a block has one scale and kernels do not
    pad it (1: any width; a kernel that pads says so in its stack).
    """

    name: str
    value_bits: int
    reference: str
    scale_bits: int = 0
    group: int = 1
    block: int = 1

    @property
    def value_bytes(self) -> float:
        """Bytes of one value, its share of the scale included."""
        return (self.value_bits + self.scale_bits / self.group) / BITS_PER_BYTE
