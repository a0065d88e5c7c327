"""Chips and systems as records. Every number carries unit, source and status; peaks are dense.

A bandwidth field says which way it counts: `each_way` is one direction, `both_ways` the vendor's headline sum.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from planner.kinds.formats import FormatName
from planner.record import Bytes, BytesPerSecond, Count, Figure, FlopsPerSecond, Number, Record, UsdPerSecond, Watts

AS_OTHERS = Figure(value=1, low=1, high=1, unit="1", status="derived", source="definition: as the stack's other chips")


class Chip(Record):
    """One accelerator.

    A rate that the chip does not have is null; a kernel that asks for it is refused.
    """

    name: str = Field(min_length=1)
    title: str
    vendor: str
    memory: Bytes = Field(description="memory capacity of one chip")
    usable_memory: Bytes | None = Field(default=None, description="memory a driver reports, where it is known")
    memory_bandwidth: BytesPerSecond = Field(description="peak bandwidth to that memory")
    bf16_rate: FlopsPerSecond | None = Field(description="peak dense BF16 rate")
    fp8_rate: FlopsPerSecond | None = Field(description="peak dense FP8 rate")
    mxfp4_rate: FlopsPerSecond | None = Field(description="peak dense MXFP4 rate")
    int8_rate: FlopsPerSecond | None = Field(default=None, description="peak dense INT8 rate")
    sustained: Number = Field(
        default=AS_OTHERS, description="rate that products sustain, over what the fractions of a stack say of its chips"
    )
    compute_units: Number = Field(description="compute units a kernel sees")
    scale_up_bandwidth_each_way: BytesPerSecond = Field(description="scale-up bandwidth of one chip, one direction")
    scale_up_bandwidth_both_ways: BytesPerSecond = Field(description="the headline: both directions summed")
    scale_out_bandwidth_each_way: BytesPerSecond = Field(description="network bandwidth of one chip, one direction")
    power: Watts = Field(description="thermal design power of one chip")
    all_in_power: Watts = Field(description="facility power per chip: host, network and cooling included")
    price: UsdPerSecond = Field(description="price of one chip")

    def holds(self) -> Figure:
        """The memory there is: what a driver reports, else the headline."""
        return self.usable_memory or self.memory

    def rate(self, format: FormatName) -> Figure | None:
        """Peak rate at a compute format, or None."""
        return getattr(self, f"{format}_rate", None)


class System(Record):
    """Chips joined by fabrics. One chip's memory is its own; `pooled` systems report the sum as well."""

    name: str = Field(min_length=1)
    title: str
    chip: str
    stack: str = Field(description="default software stack")
    chips: Count
    servers: Count
    chips_per_server: Count
    domain_chips: Count = Field(description="chips of one scale-up domain: all pairs one switch hop")
    fabric: str = Field(description="name of the scale-up fabric")
    pooled_memory: bool
    source: str = Field(min_length=1)
    note: str = ""

    @model_validator(mode="after")
    def adds_up(self) -> System:
        """Servers hold all chips, and a domain is not larger than the system."""
        if self.servers * self.chips_per_server != self.chips:
            held = f"{self.servers} servers x {self.chips_per_server} chips"
            raise ValueError(f"{held} are not the {self.chips} chips of the system")
        if self.domain_chips > self.chips:
            raise ValueError(f"a domain of {self.domain_chips} chips is larger than the system of {self.chips}")
        return self
