"""What is asked of a deployment: lengths, load, formats of cache and state, targets."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError

from planner.errors import BadWorkload
from planner.kinds.formats import FormatName
from planner.record import Record

MOST_DRAFTS = 64
"""Tokens drafted for one verify step, far above what is in use."""
Arrivals = Literal["steady", "waves"]


class Question(Record):
    """A record a caller fills in: what is wrong with it is one sentence, like every other error here."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"])) or type(self).__name__
            raise BadWorkload(key, first["msg"].removeprefix("Value error, "), f"see {type(self).__name__}") from None


class Workload(Question):
    """One job.

    concurrency: null lets a plan search it. draft_tokens, accepted_length: 0 and 1 are no speculation. chunk, overlap:
    null is the stack's.
    """

    isl: int = Field(ge=1, description="prompt tokens of a request")
    osl: int = Field(ge=1, description="output tokens of a request")
    concurrency: int | None = Field(default=None, ge=1, description="requests in flight over the whole deployment")
    kv_format: FormatName = Field(default="bf16", description="format of the KV cache")
    state_format: Literal["fp32", "bf16"] = Field(default="fp32", description="format of recurrent states")
    chunk: int | None = Field(default=None, ge=1, description="prefill tokens per attention group and pass")
    arrivals: Arrivals = Field(default="steady", description="steady (spread evenly) or waves (all at once)")
    memory_fraction: float | None = Field(default=None, gt=0, le=1, description="share of the memory an engine may use")
    prefix_hit: float = Field(default=0.0, ge=0, lt=1, description="share of the prompt already cached")
    routing_skew: float = Field(default=1.0, ge=1, description="heaviest expert rank's mean load over the mean")
    draft_tokens: int = Field(default=0, ge=0, le=MOST_DRAFTS, description="drafts verified per step")
    accepted_length: float = Field(default=1.0, ge=1, description="tokens gained per step")
    vision: bool = False
    overlap: float | None = Field(
        default=None, ge=0, le=1, description="share of the experts' exchange hidden, as where two batches take turns"
    )


class Slo(Question):
    """Targets; null where there is none. rate: requests per second over the whole deployment."""

    ttft_s: float | None = Field(default=None, gt=0)
    tpot_s: float | None = Field(default=None, gt=0)
    rate_per_s: float | None = Field(default=None, gt=0)

    def given(self) -> dict[str, Any]:
        """The targets that are set."""
        return {name: value for name, value in self.model_dump().items() if value is not None}
