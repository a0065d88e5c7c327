"""Worksheet functions: the numbers of `planner estimate` and `planner plan` as flat functions of cells and ranges.

Every argument is a cell or a range, named as the flag of the command line; cells hold what the flag would say (8192,
"8k", "50ms") and an empty one means the flag is not given. Out comes a number, or a block of the ranges' shape. Wrong
input is a sentence in its cell, never an exception. A deployment that does not fit in memory has no times and no cost:
its cell says by how much it misses. docs/spreadsheets.md says how each spreadsheet program calls them.

The arguments beside the deployment and its load, everywhere the same and all optional: stack (the system's), kv_dtype
(bf16), state_dtype (fp32), chunk (the stack's), arrivals (steady), memory_fraction (the stack's), prefix_hit (0),
routing_skew (1), draft_tokens (0), accepted_length (1), chips (one replica), vision (FALSE).
Source of every figure: the formulas of planner/kinds and planner/model, which `planner explain` shows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from planner.units import UNITS

Cell = Any
"""A number, text, nothing, or a range of them."""
MS, GB = UNITS["s"]["ms"], UNITS["B"]["GB"]
"""Seconds of a millisecond, bytes of a GB."""


def told(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a sentence for arguments it does not have; a host still sees its own arguments."""
    own = signature(function)

    @wraps(function)
    def answered(*cells: Cell, **named: Cell) -> Any:
        try:
            own.bind(*cells, **named)
        except TypeError as error:
            from planner.scenarios.ranges import no_argument

            return no_argument(function.__name__, tuple(own.parameters), named, str(error))
        return function(*cells, **named)

    answered.__signature__ = own  # type: ignore[attr-defined]
    return answered


@told
def tpot_ms(
    model: Cell = None, system: Cell = None, layout: Cell = None, isl: Cell = None, osl: Cell = None,
    concurrency: Cell = None, stack: Cell = None, kv_dtype: Cell = None, state_dtype: Cell = None, chunk: Cell = None,
    arrivals: Cell = None, memory_fraction: Cell = None, prefix_hit: Cell = None, routing_skew: Cell = None,
    draft_tokens: Cell = None, accepted_length: Cell = None, chips: Cell = None, vision: Cell = None,
) -> Any:  # fmt: skip
    """Time per output token as served, ms: (cycle - TTFT) / (OSL - 1), prefill and decode sharing the chips.

    Quantity: serving_tpot_s, `decode.tpot_s` of `planner estimate`; formulas in planner/model/serving.py.
    Limits: fixed lengths; the mean over requests; one output token has none.
    """
    return headline(locals(), "decode.tpot_s", MS)


@told
def ttft_ms(
    model: Cell = None, system: Cell = None, layout: Cell = None, isl: Cell = None, osl: Cell = None,
    concurrency: Cell = None, stack: Cell = None, kv_dtype: Cell = None, state_dtype: Cell = None, chunk: Cell = None,
    arrivals: Cell = None, memory_fraction: Cell = None, prefix_hit: Cell = None, routing_skew: Cell = None,
    draft_tokens: Cell = None, accepted_length: Cell = None, chips: Cell = None, vision: Cell = None,
) -> Any:  # fmt: skip
    """Time to first token as served, ms: a prompt's own prefill, others prefilling, and its wait behind them.

    Quantity: serving_ttft_s, `serving.ttft_s` of `planner estimate`; formulas in planner/model/serving.py.
    Limits: the mean; one prefill at a time in an attention group; `arrivals` "waves" for prompts that come at once.
    """
    return headline(locals(), "serving.ttft_s", MS)


@told
def tokens_per_second_per_chip(
    model: Cell = None, system: Cell = None, layout: Cell = None, isl: Cell = None, osl: Cell = None,
    concurrency: Cell = None, stack: Cell = None, kv_dtype: Cell = None, state_dtype: Cell = None, chunk: Cell = None,
    arrivals: Cell = None, memory_fraction: Cell = None, prefix_hit: Cell = None, routing_skew: Cell = None,
    draft_tokens: Cell = None, accepted_length: Cell = None, chips: Cell = None, vision: Cell = None,
) -> Any:  # fmt: skip
    """Output tokens a second over every chip lent: concurrency x OSL / cycle / chips.

    Quantity: serving_chip_tokens_per_s, `serving.tok_s_per_chip` of `planner estimate`; planner/model/serving.py.
    Limits: chips that no replica fills count as lent.
    """
    return headline(locals(), "serving.tok_s_per_chip")


@told
def max_concurrency(
    model: Cell = None, system: Cell = None, layout: Cell = None, isl: Cell = None, osl: Cell = None,
    concurrency: Cell = None, stack: Cell = None, kv_dtype: Cell = None, state_dtype: Cell = None, chunk: Cell = None,
    arrivals: Cell = None, memory_fraction: Cell = None, prefix_hit: Cell = None, routing_skew: Cell = None,
    draft_tokens: Cell = None, accepted_length: Cell = None, chips: Cell = None, vision: Cell = None,
) -> Any:  # fmt: skip
    """Requests of ISL + OSL tokens that fit in memory, whole deployment: floor(budget / request) of the tightest stage.

    Quantity: memory_max_concurrency, `memory.max_concurrency` of `planner estimate`; planner/model/memory.py. The load
    is not needed: it does not depend on it.
    Limits: as many as fit, not as many as meet a target; 0 where not one does.
    """
    return headline(locals(), "memory.max_concurrency", anyway=True, alone=("concurrency",))


@told
def weights_gb_per_chip(
    model: Cell = None, system: Cell = None, layout: Cell = None, isl: Cell = None, osl: Cell = None,
    concurrency: Cell = None, stack: Cell = None, kv_dtype: Cell = None, state_dtype: Cell = None, chunk: Cell = None,
    arrivals: Cell = None, memory_fraction: Cell = None, prefix_hit: Cell = None, routing_skew: Cell = None,
    draft_tokens: Cell = None, accepted_length: Cell = None, chips: Cell = None, vision: Cell = None,
) -> Any:  # fmt: skip
    """Weights on one chip of the fullest pipeline stage, GB (10^9 bytes): DP copies attention, EP x ETP splits experts.

    Quantity: memory_stage..._weights_bytes, `memory.weights_bytes_per_chip` of `planner estimate`;
    planner/model/memory.py. Lengths and load are not needed: without them one request of one token in and out is
    taken, and they only tell which stage is fullest.
    Limits: padding that an engine adds is in `planner fit`.
    """
    return headline(locals(), "memory.weights_bytes_per_chip", GB, anyway=True, alone=("isl", "osl", "concurrency"))


@told
def kv_gb_per_sequence(
    model: Cell = None, system: Cell = None, layout: Cell = None, isl: Cell = None, osl: Cell = None,
    concurrency: Cell = None, stack: Cell = None, kv_dtype: Cell = None, state_dtype: Cell = None, chunk: Cell = None,
    arrivals: Cell = None, memory_fraction: Cell = None, prefix_hit: Cell = None, routing_skew: Cell = None,
    draft_tokens: Cell = None, accepted_length: Cell = None, chips: Cell = None, vision: Cell = None,
) -> Any:  # fmt: skip
    """Cache and state that one sequence of ISL + OSL tokens keeps on one chip of the fullest stage, GB (10^9 bytes).

    token x (ISL + OSL) + state, over the stage's layers. On a layout of one chip (TP1) that is the whole sequence.
    Quantity: memory_stage..._request_bytes, `memory.request_bytes_per_chip` of `planner estimate`;
    planner/model/memory.py. The load is not needed: it only tells which stage is fullest.
    Limits: what an engine reserves in whole blocks is `memory.reserved_bytes_per_request_per_chip` there.
    """
    return headline(locals(), "memory.request_bytes_per_chip", GB, anyway=True, alone=("concurrency",))


@told
def usd_per_million_tokens(
    model: Cell = None, system: Cell = None, layout: Cell = None, isl: Cell = None, osl: Cell = None,
    concurrency: Cell = None, stack: Cell = None, kv_dtype: Cell = None, state_dtype: Cell = None, chunk: Cell = None,
    arrivals: Cell = None, memory_fraction: Cell = None, prefix_hit: Cell = None, routing_skew: Cell = None,
    draft_tokens: Cell = None, accepted_length: Cell = None, chips: Cell = None, vision: Cell = None, of: Cell = None,
) -> Any:  # fmt: skip
    """The whole bill of the chips lent over a million tokens, USD. of: "output" (default), "input" or "total".

    bill / rate: three views of one bill, prefill and decode together, and not parts of it.
    Quantities: serving_cost_output_usd, ..._input_usd, ..._total_usd; `cost` of `planner estimate`;
    planner/model/serving.py.
    Limits: the price of the chips alone, at the load given; nothing for idle hours.
    """
    return headline(locals(), "cost.usd_per_million_{}_tokens")


@told
def chips_needed(
    model: Cell = None, system: Cell = None, isl: Cell = None, osl: Cell = None, concurrency: Cell = None,
    rate: Cell = None, ttft: Cell = None, tpot: Cell = None, stack: Cell = None, kv_dtype: Cell = None,
    state_dtype: Cell = None, chunk: Cell = None, arrivals: Cell = None, memory_fraction: Cell = None,
    prefix_hit: Cell = None, routing_skew: Cell = None, draft_tokens: Cell = None, accepted_length: Cell = None,
    vision: Cell = None,
) -> Any:  # fmt: skip
    """The fewest chips of the system on which some legal layout holds the load and meets the targets.

    Every number of chips from one on is tried with every legal layout that fills it, priced as `planner plan` prices
    it: more chips do not always help, so nothing is skipped. concurrency: requests in flight; without it any load that
    meets the targets counts, as one request at a time. rate, ttft, tpot: targets with their unit ("20/s", "2s",
    "50ms").
    Quantities: memory_slack_bytes, serving_ttft_s, serving_tpot_s, serving_requests_per_s (planner/search).
    Limits: central values of the specs; some seconds where a large system has no answer.
    """
    return best(locals(), lambda found: found.chips, fewest=True)


@told
def best_layout(
    model: Cell = None, system: Cell = None, isl: Cell = None, osl: Cell = None, concurrency: Cell = None,
    rate: Cell = None, ttft: Cell = None, tpot: Cell = None, stack: Cell = None, kv_dtype: Cell = None,
    state_dtype: Cell = None, chunk: Cell = None, arrivals: Cell = None, memory_fraction: Cell = None,
    prefix_hit: Cell = None, routing_skew: Cell = None, draft_tokens: Cell = None, accepted_length: Cell = None,
    chips: Cell = None, objective: Cell = None, vision: Cell = None,
) -> Any:  # fmt: skip
    """The layout `planner plan` ranks first, as text such as "TP8 DP8 EP64".

    All legal layouts on the chips (all of the system's unless `chips` says fewer), at the concurrency given or at
    every batch, under the targets rate, ttft and tpot ("20/s", "2s", "50ms"). objective: "throughput" (default),
    "latency" or "cost".
    Quantities ranked by: serving_chip_tokens_per_s, serving_e2e_s, serving_cost_output_usd (planner/search/plan.py).
    Limits: central values of the specs; a tenth of a second to a second a cell.
    """
    return best(locals(), lambda found: str(found.layout))


def headline(
    given: dict[str, Any], key: str, unit: float = 1.0, *, anyway: bool = False, alone: tuple[str, ...] = ()
) -> Any:
    """A figure of `estimate` for every cell, in a unit. anyway: also of what does not fit; alone: needed no more."""
    from planner.scenarios.ranges import headlines, over

    return over(given, headlines(key, unit, anyway=anyway, alone=alone))


def best(given: dict[str, Any], read: Callable[[Any], Any], *, fewest: bool = False) -> Any:
    """What a search finds for every cell."""
    from planner.scenarios.ranges import over, searched

    return over(given, searched(read, fewest=fewest))


FUNCTIONS = (
    tpot_ms, ttft_ms, tokens_per_second_per_chip, max_concurrency, weights_gb_per_chip, kv_gb_per_sequence,
    chips_needed, usd_per_million_tokens, best_layout,
)  # fmt: skip
"""All of them, for a host that registers functions one by one."""
__all__ = [function.__name__ for function in FUNCTIONS]
