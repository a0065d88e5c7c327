"""A software stack: what the kernels and collectives of one engine reach on one chip family.

A fraction belongs to the kernel, not to the chip. `basis` says how each kernel's numbers are known:
measured on this stack, fitted to end-to-end figures of it, by analogy with a measured relative, or assumed.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from planner.kinds.formats import FormatName
from planner.record import Count, Figure, Fraction, Number, Record, Seconds, SpareBytes, SpareFraction, SpareNumber

Basis = Literal["measured", "fitted", "analogy", "assumed"]
Norm = Literal["1", "1.5", "2", "max"]

ONCE = Figure(value=1, low=1, high=1, unit="1", status="derived", source="definition: each byte moved once")
NOTHING = Figure(value=0, low=0, high=0, unit="s", status="derived", source="definition: no launches around the kernel")


class Kernel(Record):
    """One kernel's form and what it reaches. An unfused operator has traffic above 1 and time added."""

    kernel: str = Field(description="name of the kernel the numbers belong to")
    basis: Basis
    fused: bool = Field(description="one launch does the operator; otherwise see traffic and added")
    floor: Seconds = Field(description="time with no work")
    memory_fraction: Fraction = Field(description="share of peak memory bandwidth reached")
    compute_format: FormatName | None = Field(description="format whose peak rate bounds the arithmetic")
    compute_fraction: Fraction | None = Field(description="share of that peak reached")
    fractions: dict[FormatName, Fraction] = Field(
        default={}, description="share of the peak reached in other formats than compute_format, where it differs"
    )
    norm: Norm = Field(description="how stream and arithmetic share time: exponent of the soft maximum")
    floor_norm: Norm = Field(description="how the floor and the work share time")
    traffic: Number = Field(default=ONCE, description="bytes moved over the bytes that must move")
    added: Seconds = Field(default=NOTHING, description="launches around an unfused kernel")

    @model_validator(mode="after")
    def computes(self) -> Kernel:
        """compute_format and compute_fraction come together."""
        if (self.compute_format is None) != (self.compute_fraction is None):
            raise ValueError("compute_format and compute_fraction must both be given or both be null")
        return self


class ScanKernel(Kernel):
    """A chunkwise recurrence: a chain of token steps beside the stream."""

    token_time: Seconds = Field(description="time of one dependent token step")
    streamed_vectors: Number = Field(description="head_dim vectors moved per token and head")
    chunk: Count = Field(description="tokens of one chunk of the chunkwise form")


class ExpertKernel(Kernel):
    """Grouped products over the experts of a rank."""

    width_multiple: Count = Field(description="inner width per rank is padded to a multiple of this")
    row_time: Seconds = Field(description="time per routed row of the domain that belongs to another rank")
    narrow_floor: Seconds | None = Field(
        default=None,
        description="floor where 4-bit weights are not widened to 16 bits: fused kernels; null: as `floor`",
    )
    expert_time: Seconds = Field(default=NOTHING, description="time per active expert beside its bytes")
    widening_fraction: Fraction = Field(
        description="share of the peak reached where weights are widened to the format the product computes in"
    )


class DecodeKernel(Kernel):
    """Decode attention: the rows of a rank (heads x tokens of a sequence) are padded to a tile."""

    row_multiple: Number = Field(description="rows of one tile of the kernel")


class Kernels(Record):
    """The kernel classes every stack describes; kinds choose among them."""

    dense: Kernel
    experts: ExpertKernel
    attention_decode: DecodeKernel
    attention_prefill: Kernel
    recurrent_decode: Kernel
    recurrent_prefill: ScanKernel
    convolution: Kernel
    stream: Kernel


class Link(Record):
    """One collective on the scale-up fabric (alpha, fraction) and on the network outside it (far_...)."""

    library: str
    basis: Basis
    alpha: Seconds = Field(description="start-up time inside the scale-up domain")
    fraction: Fraction = Field(description="share of the one-way scale-up bandwidth reached")
    far_alpha: Seconds = Field(description="start-up time once the group leaves the domain")
    far_fraction: Fraction = Field(description="share of the one-way network bandwidth reached")


class Links(Record):
    """The collectives every stack describes."""

    all_reduce: Link
    dispatch: Link
    combine: Link
    point_to_point: Link


class ExpectedError(Record):
    """How far predictions of this stack have been, or are expected to be, from measurements."""

    basis: Literal["calibrated", "anchored", "blind"]
    median_fraction: float = Field(gt=0, lt=10)
    p90_fraction: float = Field(gt=0, lt=10)
    source: str


class Stack(Record):
    """One software state on one chip family."""

    name: str = Field(min_length=1)
    title: str
    chip_family: str
    note: str = ""
    kernels: Kernels
    links: Links
    one_copy_per_rank: bool = Field(description="dispatch sends one copy per distinct rank, not per expert")
    scatters_tokens: bool = Field(
        default=False, description="one attention group splits its tokens over TP before experts that are whole"
    )
    spreads_far: bool = Field(description="prefill sends one copy of a token to each other domain, spread inside it")
    computes: dict[FormatName, FormatName] = Field(
        description="format of weights -> format their products compute in; 16 bits where a format is not named"
    )
    exchange: Literal["send", "gather"] = Field(
        default="send", description="tokens are sent to their experts' ranks, or all ranks gather all tokens"
    )
    dispatch_format: FormatName
    combine_format: FormatName
    activation_format: FormatName
    layer_time: Seconds = Field(
        description="fixed time per layer beyond the modelled floors: launches, gaps, small kernels"
    )
    step_time: Seconds = Field(description="fixed time of each decode step: scheduling, sampling, launch")
    request_time: Seconds = Field(description="host time per request of a group in each step")
    first_token_time: Seconds = Field(
        description="time before a first token that no chip spends: front end, tokenizer, admission"
    )
    prefill_factor: Number = Field(description="measured over modelled prefill pass")
    overlap: SpareFraction = Field(description="share of dispatch and combine hidden behind computation")
    exchange_buffers: SpareNumber = Field(description="copies of dispatch and combine rows held for communication")
    runtime: SpareBytes = Field(description="memory of the runtime: contexts, graphs, workspaces")
    memory_fraction: Fraction = Field(description="share of the chip's memory the engine may use")
    memory_meaning: Literal["all", "static", "free"] = Field(
        description="the fraction bounds everything together, weights and cache alone, or cache in what is left"
    )
    memory_policy: str = Field(description="what the memory fraction means in this engine, in words")
    block_tokens: Count = Field(
        description="tokens of a cache block; beside recurrent states blocks are a multiple of it"
    )
    vocabulary_multiple: Count = Field(description="rows of the tables on each rank are padded to a multiple of this")
    chunk: Count = Field(description="default prefill tokens per group and pass")
    expected_error: ExpectedError
