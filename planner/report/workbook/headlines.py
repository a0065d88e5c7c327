"""The numbers a reader looks for first, in the order they are read."""

from __future__ import annotations

from collections.abc import Callable

from planner.quantities import unit_of
from planner.report.workbook.formula import quoted
from planner.report.workbook.names import LEGAL, UNFIT
from planner.units import UNITS

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
    "cost per million tokens, input and output": "serving_cost_total_usd",
    "price of the chips lent": "serving_cost_bill_usd_per_s",
    "requests that fit in memory": "memory_max_concurrency",
    "requests an engine admits, in whole blocks": "memory_reserved_concurrency",
    "memory left on the fullest chip": "memory_slack_bytes",
}
"""What a headline is -> the quantity behind it."""
BETWEEN_TOKENS = ("serving_tpot_s", "serving_user_tokens_per_s")
"""What a request of one output token does not have."""
PER_CHIP, PER_USER = "output tokens/s per chip, as served", "output tokens/s per user"
HELD = ("memory_max_concurrency", "memory_reserved_concurrency", "memory_slack_bytes")
"""What is also a number where the load does not fit."""
SHOWN_IN = {"serving_tpot_s": "ms", "decode_step_s": "ms", "memory_slack_bytes": "GB",
            "serving_cost_bill_usd_per_s": "USD/h"}  # fmt: skip
"""Headlines that are not shown in the unit of their quantity."""
FITS = "fits in memory"
NOT_LEGAL = "not legal"
DOES_NOT_FIT = "does not fit"

At = Callable[[str], str]
"""Name of a quantity -> the cell that holds it."""


def unfit(check: str) -> str:
    """Condition: this check says that the load does not fit."""
    return f"LEFT({check},{len(UNFIT)})={quoted(UNFIT)}"


def worked_out(check: str, text: str) -> str:
    """A formula without its sign where the inputs are legal, fitting or not, else an empty cell."""
    return f'=IF(OR({check}={quoted(LEGAL)},{unfit(check)}),{text},"")'


def headline(quantity: str, at: At, check: str, osl: str) -> str:
    """Formula of one headline: the quantity where the inputs are legal and the load fits, else words."""
    factor = scale(quantity)
    shown = at(quantity) if factor == 1 else divided(at(quantity), factor)
    inner = f'IF({osl}=1,"-",{shown})' if quantity in BETWEEN_TOKENS else shown
    otherwise = inner if quantity in HELD else quoted(DOES_NOT_FIT)
    return worded(check, inner, otherwise)


def worded(check: str, text: str, otherwise: str = quoted(DOES_NOT_FIT)) -> str:
    """Formula of one of three: all is well, the load does not fit, the inputs are not legal."""
    return f"=IF({check}={quoted(LEGAL)},{text},IF({unfit(check)},{otherwise},{quoted(NOT_LEGAL)}))"


def divided(text: str, factor: float) -> str:
    """A value over a factor, by whole numbers only: 5 us are 5/1000000 s exactly."""
    return f"{text}/{factor:.0f}" if factor >= 1 else f"{text}*{1 / factor:.0f}"


def multiplied(text: str, factor: float) -> str:
    """A value times a factor, likewise."""
    return f"{text}*{factor:.0f}" if factor >= 1 else f"{text}/{1 / factor:.0f}"


def fits(check: str) -> str:
    """Formula of whether the load fits."""
    return worded(check, quoted("yes"), quoted("no"))


def verdict(at: At) -> str:
    """Formula without its sign of a check where the layout is legal: whether the load fits, and how many would."""
    many = f'{quoted(f"{UNFIT}: ")}&{at("memory_max_concurrency")}&" requests do"'
    return f"IF({at('memory_slack_bytes')}<0,{many},{quoted(LEGAL)})"


def verdict_now(quantities: dict[str, float]) -> str:
    """The same as written."""
    if quantities["memory_slack_bytes"] >= 0:
        return LEGAL
    return f"{UNFIT}: {quantities['memory_max_concurrency']:.0f} requests do"


def now(quantity: str, quantities: dict[str, float], osl: float) -> float | str:
    """What the headline is as written, where everything is legal."""
    if quantity not in HELD and quantities["memory_slack_bytes"] < 0:
        return DOES_NOT_FIT
    return "-" if quantity in BETWEEN_TOKENS and osl == 1 else quantities[quantity] / scale(quantity)


def fits_now(quantities: dict[str, float]) -> str:
    """Whether the load fits, as written."""
    return "yes" if quantities["memory_slack_bytes"] >= 0 else "no"


def unit(quantity: str) -> str:
    """The unit a headline is shown in."""
    return SHOWN_IN.get(quantity, unit_of(quantity))


def scale(quantity: str) -> float:
    """The unit a headline is shown in, in the unit of its quantity."""
    return UNITS[unit_of(quantity)][SHOWN_IN[quantity]] if quantity in SHOWN_IN else 1.0
