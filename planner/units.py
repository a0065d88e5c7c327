"""Quantities as people write them, in SI inside: "800 GB/s" is 8e11 bytes per second, "8k" tokens are 8192.

GB is 10^9 bytes and GiB is 2^30. Gb is bits: refused where bytes are meant, with the value in bytes, because an
eightfold slip in a bandwidth is silent otherwise. A bare number is refused where a unit is needed.
"""

from __future__ import annotations

import math
import re

from planner.errors import BadUnit

DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
BITS_PER_BYTE = 8


def _table() -> dict[str, dict[str, float]]:
    bytes_ = {f"{p}B": float(f) for p, f in {**DECIMAL, **BINARY}.items()}
    work = {f"{p}{w}": float(f) for p, f in DECIMAL.items() for w in ("FLOP", "OP")}
    rate = {f"{p}{w}": float(f) for p, f in DECIMAL.items() for w in ("FLOPS", "OPS", "FLOP/s", "OP/s")}
    return {
        "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
        "B": bytes_,
        "B/s": {f"{unit}/s": factor for unit, factor in bytes_.items()},
        "FLOP": work,
        "FLOP/s": rate,
        "W": {"W": 1.0, "kW": 1e3, "MW": 1e6},
        "USD/s": {"USD/h": 1 / 3600, "USD/chip-hour": 1 / 3600, "USD/s": 1.0},
        "1/s": {"/s": 1.0, "1/s": 1.0, "/min": 1 / 60, "/h": 1 / 3600, "req/s": 1.0},
    }


UNITS = _table()
EXAMPLES = {
    "s": "20ms",
    "B": "144 GB",
    "B/s": "400 GB/s",
    "FLOP": "1 TFLOP",
    "FLOP/s": "400 TFLOPS",
    "W": "700 W",
    "USD/s": "2.0 USD/h",
    "1/s": "20/s",
}
BITS = re.compile(r"^([kMGTP]?)(b|bit|bits)(/s|ps)$|^([kMGTP]?)(b|bit|bits)$")
NUMBER = re.compile(r"^\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*$", re.ASCII)
LARGEST_COUNT = 10**12
COUNTS = {"": 1, "k": 2**10, "K": 2**10, "M": 2**20, "m": 2**20, "G": 2**30}


def parse(text: object, unit: str, where: str) -> float:
    """The SI value of a quantity written with its unit.

    >>> parse("800 GB/s", "B/s", "example")
    800000000000.0

    Raises BadUnit: bare number, unknown unit, a unit of another dimension, bits for bytes, not finite.
    """
    example = f"write it like '{EXAMPLES[unit]}'"
    match = NUMBER.match(text) if isinstance(text, str) and len(text) < 80 else None
    if match is None:
        bare = isinstance(text, (int, float)) and not isinstance(text, bool)
        raise BadUnit(where, f"{text!r} has no unit" if bare else f"{text!r} is not a quantity", example)
    number, given = float(match[1]), match[2]
    if not math.isfinite(number):
        raise BadUnit(where, f"{text!r} is not finite", example)
    if given in UNITS[unit]:
        value = number * UNITS[unit][given]
        if not math.isfinite(value):
            raise BadUnit(where, f"{text!r} is out of range", example)
        return value
    if not given:
        raise BadUnit(where, f"{text!r} has no unit", example)
    raise BadUnit(where, f"{text!r}: {wrong_unit(number, given, unit)}", example)


def wrong_unit(number: float, given: str, unit: str) -> str:
    """Why `given` cannot stand where `unit` is needed."""
    bits = BITS.match(given)
    if bits and unit in ("B", "B/s"):
        prefix = bits[1] or bits[4] or ""
        return f"{given} counts bits; in bytes this is {number / BITS_PER_BYTE:g} {prefix}{unit}"
    for other, table in UNITS.items():
        if given in table:
            return f"{given} is a unit of {other}, and {unit} is needed"
    return f"unknown unit {given}, and {unit} is needed"


def parse_count(text: object, where: str) -> int:
    """A count of tokens or requests: 8192, 8k (= 8192) or 1M (= 1048576). Raises BadUnit."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = NUMBER.match(text) if isinstance(text, str) and len(text) < 40 else None
    if match is None or match[2] not in COUNTS:
        raise BadUnit(where, f"{text!r} is not a count", "write a whole number, 8k (= 8192) or 1M (= 1048576)")
    value = float(match[1]) * COUNTS[match[2]]
    if not abs(value) <= LARGEST_COUNT:
        raise BadUnit(where, f"{text!r} is over {LARGEST_COUNT:,}", "write a smaller number")
    if value != int(value):
        raise BadUnit(where, f"{text!r} is {value:g}, not a whole number", "write a whole number")
    return int(value)


SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms")),
    "B": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s")),
    "FLOP": ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP")),
    "FLOP/s": ((1e15, "PFLOPS"), (1e12, "TFLOPS"), (1e9, "GFLOPS")),
    "W": ((1e3, "kW"),),
}


def show(value: float | None, unit: str) -> str:
    """A value for people: 4e12, 'B/s' -> '4 TB/s'; None -> '-'."""
    if value is None:
        return "-"
    if unit == "s":
        return show_time(value)
    if unit == "USD/s":
        return f"{value * 3600:.4g} USD/h"
    if unit not in SCALES:
        return f"{value:,.4g}" if abs(value) < ROUNDS_TO_1E4 else f"{value:,.0f}"
    factor, name = scale_of(value, unit)
    return f"{value / factor:.4g} {name}"


def scale_of(value: float, unit: str) -> tuple[float, str]:
    """Factor and name of the unit people write a value of this size in: 4e12, 'B/s' -> (1e12, 'TB/s')."""
    if unit == "USD/s":
        return UNITS[unit]["USD/h"], "USD/h"
    for factor, name in SCALES.get(unit, ()):
        if abs(value) >= factor:
            return factor, name
    return (UNITS[unit]["us"], "us") if unit == "s" else (1.0, unit)


ROUNDS_TO_1E3, ROUNDS_TO_1E4 = 999.5, 9999.5
"""From here on three or four digits would be written with an exponent."""


def show_time(seconds: float) -> str:
    """Seconds for people: 0.0191 -> '19.1 ms', and never '1e+03 ms': what rounds up to a unit takes it."""
    size = abs(seconds)
    if size >= 100 or size == 0:
        return f"{seconds:,.0f} s"
    if size >= 1:
        return f"{seconds:.2f} s"
    if size * 1e3 >= ROUNDS_TO_1E3:
        return f"{seconds:.3g} s"
    if size * 1e6 >= ROUNDS_TO_1E3:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} us"
