"""One published figure with the configuration it was measured in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from planner.kinds.formats import FormatName
from planner.record import Record

Phase = Literal["served", "prefill", "decode"]
"""served: prefill and decode share the chips; the other two are isolated or disaggregated."""
Grade = Literal["A", "B", "C"]
"""A: complete and printed. B: one minor gap. C: a major gap, not scored and never fitted."""


@dataclass(frozen=True)
class Metric:
    """What a figure measures. scale: the figure times this is SI; faster: 1 where more is faster, -1 where less is."""

    unit: str
    scale: float
    faster: int
    sentence: str


METRICS: dict[str, Metric] = {
    "tpot_ms": Metric("ms", 1e-3, -1, "time per output token"),
    "itl_ms": Metric("ms", 1e-3, -1, "time between output tokens"),
    "ttft_ms": Metric("ms", 1e-3, -1, "time to first token"),
    "e2e_s": Metric("s", 1, -1, "request from arrival to last token, or a static batch"),
    "tok_s_total": Metric("tok/s", 1, 1, "output tokens of the whole deployment"),
    "tok_s_per_chip": Metric("tok/s/chip", 1, 1, "output tokens per chip"),
    "tok_s_per_user": Metric("tok/s", 1, 1, "output tokens one user sees"),
    "out_tok_s_per_node": Metric("tok/s/node", 1, 1, "output tokens per 8 chips"),
    "in_tok_s_per_chip": Metric("tok/s/chip", 1, 1, "prompt tokens per chip"),
    "in_tok_s_per_node": Metric("tok/s/node", 1, 1, "prompt tokens per 8 chips"),
    "inout_tok_s_total": Metric("tok/s", 1, 1, "prompt and output tokens of the whole deployment"),
    "inout_tok_s_per_chip": Metric("tok/s/chip", 1, 1, "prompt and output tokens per chip"),
    "fit_intercept_ms": Metric("ms", 1e-3, -1, "time per output token at no context"),
    "fit_slope_ms_per_token": Metric("ms/token", 1e-3, -1, "time per output token gained by a token of context"),
    "dispatch_us": Metric("us", 1e-6, -1, "one dispatch of an expert layer"),
    "combine_us": Metric("us", 1e-6, -1, "one combine of an expert layer"),
}
"""Every metric a table may name, with the one unit it takes."""
PER_NODE = 8  # chips: what 'per node' means in every table


class Measurement(Record):
    """One figure.

    model, system, stack: names of shipped specs, or paths. weights: what the checkpoint's matrices are stored in, null
    for as shipped. chips: of the pool that serves the phase. ep: null where it is not stated.
    counted: chips a rate per chip is counted over, where pools of other phases belong to it (null: `chips`).
    requests: in flight over the pool; null where `most` (all that fit) or where nothing depends on it.
    overlap: share of the experts' exchange hidden where two batches are interleaved; null for the stack's.
    tokens: of one pass per attention group, where a prefill figure states it. drafts, accepted: speculation.
    """

    id: str = Field(min_length=1, max_length=200)
    source: str = Field(min_length=1, description="group of rows that one publication gives")
    model: str
    weights: str | None = None
    kv_format: FormatName = "bf16"
    system: str
    stack: str
    chips: int = Field(ge=1, le=100_000)
    counted: int | None = Field(default=None, ge=1, le=100_000)
    tp: int = Field(default=1, ge=1)
    dp: int = Field(default=1, ge=1)
    ep: int | None = Field(default=None, ge=1)
    pp: int = Field(default=1, ge=1)
    dcp: int = Field(default=1, ge=1)
    phase: Phase
    arrivals: Literal["steady", "waves"] = "steady"
    isl: int = Field(ge=1)
    osl: int = Field(ge=1)
    requests: int | None = Field(default=None, ge=1)
    most: bool = False
    tokens: int | None = Field(default=None, ge=1)
    overlap: float | None = Field(default=None, ge=0, le=1)
    drafts: int = Field(default=0, ge=0)
    accepted: float = Field(default=1.0, ge=1)
    metric: str
    value: float = Field(gt=0)
    grade: Grade = "B"
    note: str = ""

    @property
    def measured(self) -> float:
        """The figure in SI."""
        return self.value * METRICS[self.metric].scale
