"""Targets of a search: what may be asked of a deployment, as `metric<=limit`, `metric>=limit` or `bound=compute`.

A metric is a named quantity, or one derived from named quantities here:

    exchange_share = sum over layers of (dispatch + combine - what is hidden) / decode step
    wire_share     = the same without the start-up of each exchange: what its bytes take
    bound          = share of the decode step of one bound, less the largest share of another
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.errors import BadUnit, UnknownName, nearest
from planner.evaluate.breakdown import PHASES, bounds_over
from planner.evaluate.case import Point
from planner.evaluate.estimate import HEADLINES
from planner.quantities import Say, unit_of
from planner.roofline import BOUNDS
from planner.units import NUMBER, parse, show

Values = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """One thing to ask for. work: whose operators bind it; sense: the side of the limit that is meant.

    quantity: the named quantity that it is, where it is one.
    """

    sentence: str
    unit: str
    sense: str
    work: str
    rows: Callable[[Point, list[str]], list[str]]
    value: Callable[[Values, Point], Any]
    quantity: str = ""


def named(quantity: str, sentence: str, sense: str, work: str) -> Metric:
    """A named quantity as a metric."""
    return Metric(
        sentence, unit_of(quantity), sense, work, lambda point, known: [quantity], lambda q, point: q[quantity],
        quantity,
    )  # fmt: skip


EXCHANGED = ("dispatch_time_s", "combine_time_s", "overlap_time_s")
ENDS = ("dispatch", "combine")
SHARES = ("exchange_share", "wire_share")
"""Metrics people read in percent."""


def exchange_rows(point: Point, known: list[str]) -> list[str]:
    """The rows of every group's exchange, and the step."""
    groups = [name for name, _ in point.shape.feed_forward]
    rows = [f"decode_{group}_{part}" for group in groups for part in EXCHANGED]
    return [row for row in rows if row in known] + ["decode_step_s"]


def exchange_share(q: Values, point: Point) -> Any:
    """Exposed dispatch and combine over the step."""
    total: Any = 0.0
    for group, _ in point.shape.feed_forward:
        layers = point.values[f"count.{group}"]
        total = total + layers * sum(q[row] for part in EXCHANGED if (row := f"decode_{group}_{part}") in q)
    return total / q["decode_step_s"]


def wire_rows(point: Point, known: list[str]) -> list[str]:
    """Bytes of every group's exchange, the rates they go at, and the step."""
    groups = [name for name, _ in point.shape.feed_forward]
    rows = [f"decode_{group}_{end}_{far}network_bytes" for group in groups for end in ENDS for far in ("", "far_")]
    rows += [f"rate_{end}_{side}_bytes_per_s" for end in ENDS for side in ("near", "far")]
    return [row for row in rows if row in known] + ["decode_step_s"]


def wire_share(q: Values, point: Point) -> Any:
    """Bytes of dispatch and combine at the rates they reach over the step."""
    total: Any = 0.0
    for group, _ in point.shape.feed_forward:
        for end in ENDS:
            for prefix, side in (("", "near"), ("far_", "far")):
                sent = q.get(f"decode_{group}_{end}_{prefix}network_bytes", 0.0)
                total = total + point.values[f"count.{group}"] * sent / q[f"rate_{end}_{side}_bytes_per_s"]
    return total / q["decode_step_s"]


METRICS: dict[str, Metric] = {
    "tpot": named("serving_tpot_s", "TPOT as served", "<=", "request"),
    "ttft": named("serving_ttft_s", "TTFT as served", "<=", "prefill"),
    "idle_ttft": named("prefill_idle_s", "TTFT of one request on an idle system", "<=", "prefill"),
    "step": named("decode_step_s", "decode step alone", "<=", "decode"),
    "e2e": named("serving_e2e_s", "end to end", "<=", "request"),
    "tok_s_per_chip": named("serving_chip_tokens_per_s", "output tokens/s per chip", ">=", "request"),
    "tok_s_per_user": named("serving_user_tokens_per_s", "output tokens/s per user", ">=", "request"),
    "tok_s": named("serving_tokens_per_s", "output tokens/s", ">=", "request"),
    "rate": named("serving_requests_per_s", "requests completed per second", ">=", "request"),
    "usd": named("serving_cost_output_usd", "USD per million output tokens", "<=", "request"),
    "memory": named("memory_slack_bytes", "memory left on the fullest chip", ">=", "memory"),
    "max_concurrency": named("memory_max_concurrency", "requests that fit", ">=", "memory"),
    "exchange_share": Metric(
        "share of dispatch and combine in the decode step", "1", "<=", "decode", exchange_rows, exchange_share
    ),
    "wire_share": Metric(
        "share of the bytes of dispatch and combine in the decode step", "1", "<=", "decode", wire_rows, wire_share
    ),
}
"""Metrics by the name they are asked for with."""
BOUND = Metric("in the decode step", "1", ">=", "decode",
               lambda point, known: [], lambda q, point: q["bound"])  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A metric, which side of which limit meets it, and the text; `bound` where the metric is one."""

    name: str
    metric: Metric
    sense: str
    limit: float
    bound: str = ""

    @property
    def text(self) -> str:
        """'tpot<=20 ms'."""
        return f"bound={self.bound}" if self.bound else f"{self.name}{self.sense}{self.shown(self.limit)}"

    def shown(self, value: float) -> str:
        """A value of the metric for people."""
        if self.bound:
            return f"{self.bound} {'leads' if value >= 0 else 'trails'} by {abs(value) * 100:.3g} % of the time"
        if self.name in SHARES:
            return f"{value * 100:.3g} %"
        if self.metric.unit == "B" and abs(value) < 1:
            return "0 B"
        return f"${value:,.4g}" if self.metric.unit == "USD" else show(value, self.metric.unit)

    def meets(self, value: Any) -> Any:
        """Whether a value of the metric, or each of an array, meets the limit; what is no number does not."""
        return value <= self.limit if self.sense == "<=" else value >= self.limit

    def value(self, say: Say, on: Any, point: Point) -> Any:
        """The metric of a run, on floats or arrays."""
        if self.bound:
            shares = bounds_over(say, on, PHASES[1])
            return shares[self.bound] - largest(*(share for name, share in shares.items() if name != self.bound))
        return self.metric.value({name: row.value for name, row in say.rows.items()}, point)


def largest(*values: Any) -> Any:
    """The largest, element by element."""
    from planner.algebra import maximum

    return maximum(*values)


FORM = re.compile(r"^\s*([A-Za-z_][\w.]*)\s*(?:(<=|>=|=|≤|≥)\s*(.*\S))?\s*$")
SIGNS = {"≤": "<=", "≥": ">="}
LONGEST = 40
"""Letters of a number."""
HOW = "write it like 'tpot<=20ms', 'memory' or 'bound=compute'"


def target(text: str, known: list[str]) -> Target:
    """A target as people write it. known: the named quantities, each of which is a metric too.

    Raises UnknownName, BadUnit.
    """
    match = FORM.match(text)
    if match is None:
        raise BadUnit("--target", f"{text!r} is no target", HOW)
    name, given, limit = match[1], match[2], match[3]
    sign: str | None = SIGNS.get(given, given)
    if name.lower() == "bound":
        word = (limit or "").lower()
        if sign != "=" or word not in BOUNDS:
            raise UnknownName("--target", f"{text!r} names no bound", f"write bound= and one of {' '.join(BOUNDS)}")
        return Target("bound", BOUND, ">=", 0.0, word)
    metric = metric_of(name, known)
    if sign is None:
        if name.lower() != "memory":
            raise BadUnit("--target", f"{text!r} has no limit", HOW)
        return Target("memory", metric, ">=", 0.0)
    if sign == "=":
        raise BadUnit("--target", f"{text!r} asks for one value", f"write {metric.sense}, on which side it is met")
    found = amount(limit, metric.unit, name)
    if metric.unit in ("s", "USD") and found <= 0:
        raise BadUnit(f"--target {name}", f"{limit} is not above 0", HOW)
    return Target(name.lower() if name.lower() in METRICS else name, metric, sign, found)


def metric_of(name: str, known: list[str]) -> Metric:
    """The metric of a name, of a key of the JSON, or of any named quantity. Raises UnknownName."""
    if name.lower() in METRICS:
        return METRICS[name.lower()]
    quantity = HEADLINES.get(name, name)
    if quantity in known:
        work = (
            "memory" if quantity.startswith("memory_") else "prefill" if quantity.startswith("prefill_") else "decode"
        )
        sense = "<=" if unit_of(quantity) in ("s", "USD", "B") else ">="
        return named(quantity, quantity, sense, "request" if quantity.startswith("serving_") else work)
    raise UnknownName("--target", f"unknown metric {name!r}", nearest(name, [*METRICS, "bound", *known]))


def amount(text: str, unit: str, name: str) -> float:
    """A limit in the metric's unit: a share also in percent, a rate also as tok/s or bare. Raises BadUnit."""
    where = f"--target {name}"
    if unit == "USD":
        return plain(text.removeprefix("$").removesuffix("USD"), where, "write dollars, such as $5")
    if unit == "1":
        share = text.endswith("%")
        value = plain(text.removesuffix("%"), where, "write a plain number or a percentage") / (100 if share else 1)
        if name.lower().endswith("_share") and not 0 <= value <= 1:
            raise BadUnit(where, f"{text.strip()} is no share", "write 5% or 0.05")
        return value
    if unit == "1/s":
        text = re.sub(r"^([\d.eE+]+)$", r"\1/s", re.sub(r"\s*(tok|tokens?)/s$", "/s", text))
    return parse(text, unit, where)


def plain(text: str, where: str, do: str) -> float:
    """A finite number. Raises BadUnit."""
    match = NUMBER.match(text) if len(text) < LONGEST else None
    if match is None or match[2]:
        raise BadUnit(where, f"{text.strip()!r} is not a number", do)
    value = float(match[1])
    if not abs(value) < float("inf"):
        raise BadUnit(where, f"{text.strip()!r} is not finite", do)
    return value
