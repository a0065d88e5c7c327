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

    isl, osl: prompt and output tokens of a request. concurrency: requests in flight over the whole deployment; null
    lets a plan search it.
    chunk: prefill tokens per attention group and pass (null: the stack's). prefix_hit: share of the prompt already
    cached.
    arrivals: steady (spread evenly) or waves (all at once). routing_skew: heaviest expert rank's mean load over the
    mean.
    draft_tokens, accepted_length: drafts verified per step, tokens gained per step (null and 1: no speculation).
    overlap: share of the experts' exchange hidden behind computation, as where two batches take turns (null: the
    stack's).
    """

    isl: int = Field(ge=1)
    osl: int = Field(ge=1)
    concurrency: int | None = Field(default=None, ge=1)
    kv_format: FormatName = "bf16"
    state_format: Literal["fp32", "bf16"] = "fp32"
    chunk: int | None = Field(default=None, ge=1)
    arrivals: Arrivals = "steady"
    memory_fraction: float | None = Field(default=None, gt=0, le=1)
    prefix_hit: float = Field(default=0.0, ge=0, lt=1)
    routing_skew: float = Field(default=1.0, ge=1)
    draft_tokens: int = Field(default=0, ge=0, le=MOST_DRAFTS)
    accepted_length: float = Field(default=1.0, ge=1)
    vision: bool = False
    overlap: float | None = Field(default=None, ge=0, le=1)


class Slo(Question):
    """Targets; null where there is none. rate: requests per second over the whole deployment."""

    ttft_s: float | None = Field(default=None, gt=0)
    tpot_s: float | None = Field(default=None, gt=0)
    rate_per_s: float | None = Field(default=None, gt=0)

    def given(self) -> dict[str, Any]:
        """The targets that are set."""
        return {name: value for name, value in self.model_dump().items() if value is not None}
