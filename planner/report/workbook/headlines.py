"""The numbers a reader looks for first, in the order they are read."""

from __future__ import annotations

from collections.abc import Callable

from planner.quantities import unit_of
from planner.report.workbook.formula import quoted
from planner.report.workbook.names import LEGAL

HEADLINES = {
    "TTFT, one prompt on an idle system": "prefill_idle_s",
    "TTFT, as served": "serving_ttft_s",
    "TPOT, as served": "serving_tpot_s",
    "decode step": "decode_step_s",
    "end to end": "serving_e2e_s",
    "output tokens/s per chip, as served": "serving_chip_tokens_per_s",
    "output tokens/s per user": "serving_user_tokens_per_s",
    "output tokens/s per chip, decode alone": "serving_decode_chip_tokens_per_s",
    "prompt tokens/s per chip, prefill alone": "serving_prefill_chip_tokens_per_s",
    "requests/s, whole deployment": "serving_requests_per_s",
    "cost per million output tokens": "serving_cost_output_usd",
    "cost per million input tokens": "serving_cost_input_usd",
    "requests that fit in memory": "memory_max_concurrency",
    "memory left on the fullest chip": "memory_slack_bytes",
}
"""What a headline is -> the quantity behind it."""
BETWEEN_TOKENS = ("serving_tpot_s", "serving_user_tokens_per_s")
"""What a request of one output token does not have."""
PER_CHIP, PER_USER = "output tokens/s per chip, as served", "output tokens/s per user"
FITS = "fits in memory"
NOT_LEGAL = "not legal"


def headline(quantity: str, at: Callable[[str], str], check: str, osl: str) -> str:
    """Formula of one headline: the quantity where the inputs are legal, else words."""
    inner = f'IF({osl}=1,"-",{at(quantity)})' if quantity in BETWEEN_TOKENS else at(quantity)
    return f"=IF({check}={quoted(LEGAL)},{inner},{quoted(NOT_LEGAL)})"


def fits(at: Callable[[str], str], check: str) -> str:
    """Formula of whether the load fits."""
    return f'=IF({check}={quoted(LEGAL)},IF({at("memory_slack_bytes")}>=0,"yes","no"),{quoted(NOT_LEGAL)})'


def now(quantity: str, quantities: dict[str, float], osl: float) -> float | str:
    """What the headline is as written, where everything is legal."""
    return "-" if quantity in BETWEEN_TOKENS and osl == 1 else quantities[quantity]


def fits_now(quantities: dict[str, float]) -> str:
    """Whether the load fits, as written."""
    return "yes" if quantities["memory_slack_bytes"] >= 0 else "no"


def unit(quantity: str) -> str:
    """The unit of a headline."""
    return unit_of(quantity)
