"""How the text of a flag, a cell or an argument becomes a value: the same words wherever a job is described."""

from __future__ import annotations

import re
from typing import Any

from planner.errors import BadInput, BadUnit, BadWorkload, UnknownName, nearest
from planner.units import NUMBER, parse, parse_count

SHORTEST_S = 1e-9
LONGEST_NUMBER = 40  # letters
HOURLY = re.compile(r"^\s*\$?\s*([+-]?[\d.]+)\s*(?:\$|USD)?\s*(?:/\s*(?:h|hr|hour|chip-hour))?\s*$", re.IGNORECASE)
"""A price an hour as people write it."""
ROUNDING = 1e-9  # of a share such as 1 - 1/3


def choice(text: str, flag: str, allowed: tuple[str, ...]) -> Any:
    """One of the allowed words, case ignored. Raises UnknownName."""
    if text.lower() not in allowed:
        close = nearest(text, allowed)
        do = (
            close
            if close.startswith("did you mean") and "one of" not in close
            else "use " + allowed[0] + ", or another" * (len(allowed) > 1)
        )
        raise UnknownName(flag, f"{text!r} is not one of {' '.join(allowed)}", do)
    return text.lower()


def count(text: str, flag: str, least: int = 1) -> int:
    """A whole number of at least `least`; 8k is 8192. Raises BadUnit, BadWorkload."""
    value = parse_count(text, flag)
    if value < least:
        raise BadWorkload(flag, f"{text} is below {least}", f"give a whole number from {least}")
    return value


def maybe_count(text: str | None, flag: str) -> int | None:
    """A count, or None where the flag was not given."""
    return None if text is None else count(text, flag)


def seconds(text: str | None, flag: str) -> float | None:
    """A duration above zero, or None. Raises BadUnit, BadWorkload."""
    if text is None:
        return None
    value = positive(parse(text, "s", flag), text, flag)
    if value < SHORTEST_S:
        raise BadWorkload(flag, f"{text} is shorter than any answer of a machine", "give at least 1ns")
    return value


def per_second(text: str | None, flag: str) -> float | None:
    """A rate above zero, or None."""
    return None if text is None else positive(parse(text, "1/s", flag), text, flag)


def usd_per_second(text: str | None, flag: str) -> float | None:
    """The price of a chip, USD/s, or None: '2 USD/h', '$2/h', or a bare 2, USD/h. Raises BadUnit, BadWorkload."""
    if text is None:
        return None
    match = HOURLY.match(text)
    value = parse(f"{match[1]} USD/h" if match else text, "USD/s", flag)
    if value < 0:
        raise BadWorkload(flag, f"{text} is below zero", "give a price from 0 on")
    return value


def slo_of(ttft: str | None, tpot: str | None, rate: str | None = None, mark: str = "--") -> Any:
    """The targets the flags describe. mark: what stands before a flag's name where there are flags. Raises BadInput."""
    from planner.specs.workload import Slo

    return Slo(
        ttft_s=seconds(ttft, f"{mark}ttft"), tpot_s=seconds(tpot, f"{mark}tpot"),
        rate_per_s=per_second(rate, f"{mark}rate"),
    )  # fmt: skip


def confidence_of(text: str | None) -> float | None:
    """'90%' or '0.9' as a share, or None. Raises BadUnit, BadWorkload."""
    if text is None:
        return None
    share = text.strip()
    scale = 100 if share.endswith("%") else 1
    return number(share.removesuffix("%"), "--confidence", 0.5 * scale, 0.99 * scale) / scale


def positive(value: float, text: str, flag: str) -> float:
    """The value if it is above zero. Raises BadWorkload."""
    if value <= 0:
        raise BadWorkload(flag, f"{text} is not above zero", "give a positive value")
    return value


def number(text: str, flag: str, low: float, high: float) -> float:
    """A plain number within [low, high]. Raises BadUnit, BadWorkload."""
    match = NUMBER.match(text) if len(text) < LONGEST_NUMBER else None
    if match is None or match[2]:
        raise BadUnit(flag, f"{text!r} is not a number", f"give a number from {low:g} to {high:g}")
    value = float(match[1])
    if not low <= value <= high:
        raise BadWorkload(flag, f"{text} is not within {low:g} to {high:g}", "give a value in that range")
    return value


def workload_of(
    *, isl: str, osl: str, concurrency: str | None = None, kv_dtype: str, state_dtype: str, chunk: str | None,
    arrivals: str, memory_fraction: str | None, prefix_hit: str, routing_skew: str, draft_tokens: str,
    accepted_length: str, vision: bool, some_isl: bool = True,
) -> Any:  # fmt: skip
    """The workload the flags describe. some_isl: the prompt is asked for, and does not stand in for one that is sought.

    Raises BadInput leaves, each naming its flag.
    """
    from planner.kinds.formats import CHOICES
    from planner.specs.workload import MOST_DRAFTS, Workload

    fraction = None if memory_fraction is None else number(memory_fraction, "--memory-fraction", 0.01, 1)
    hit, prompt = number(prefix_hit, "--prefix-hit", 0, 1), count(isl, "--isl")
    if some_isl and prompt * (1 - hit) < 1 - ROUNDING:
        what = f"{prefix_hit} of {prompt} tokens leaves less than one token to prefill"
        raise BadInput("--prefix-hit", what, "give a smaller share")
    drafts = count(draft_tokens, "--draft-tokens", 0)
    if drafts > MOST_DRAFTS:
        raise BadWorkload("--draft-tokens", f"{draft_tokens} is over {MOST_DRAFTS}", f"draft at most {MOST_DRAFTS}")
    return Workload(
        isl=prompt,
        osl=count(osl, "--osl"),
        concurrency=maybe_count(concurrency, "--concurrency"),
        kv_format=choice(kv_dtype, "--kv-dtype", CHOICES),
        state_format=choice(state_dtype, "--state-dtype", ("fp32", "bf16")),
        chunk=maybe_count(chunk, "--chunk"),
        arrivals=choice(arrivals, "--arrivals", ("steady", "waves")),
        memory_fraction=fraction,
        prefix_hit=hit,
        routing_skew=number(routing_skew, "--routing-skew", 1, 1000),
        draft_tokens=drafts,
        accepted_length=number(accepted_length, "--accepted-length", 1, 1000),
        vision=vision,
    )
