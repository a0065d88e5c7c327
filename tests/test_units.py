"""Quantities as people write them: units, prefixes, bits against bytes, bare numbers."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import BadUnit
from planner.report.numbers import span, written
from planner.units import EXAMPLES, UNITS, parse, parse_count, show, show_time

few = settings(derandomize=True, max_examples=200, deadline=None)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("800 GB/s", "B/s", 8e11),
        ("800GB/s", "B/s", 8e11),
        (" 4.9 TB/s ", "B/s", 4.9e12),
        ("144 GB", "B", 144e9),
        ("1 GiB", "B", 2**30),
        ("1.5 MiB", "B", 1.5 * 2**20),
        ("16 kB", "B", 16e3),
        ("20ms", "s", 0.02),
        ("2s", "s", 2.0),
        ("0.075 us", "s", 7.5e-8),
        ("3 µs", "s", 3e-6),
        ("5 ns", "s", 5e-9),
        ("2 min", "s", 120.0),
        ("400 TFLOPS", "FLOP/s", 4e14),
        ("1 PFLOP/s", "FLOP/s", 1e15),
        ("1e3 TOPS", "FLOP/s", 1e15),
        ("1.5 kW", "W", 1500.0),
        ("2.0 USD/h", "USD/s", 2 / 3600),
        ("20/s", "1/s", 20.0),
        ("90 req/s", "1/s", 90.0),
        ("30 /min", "1/s", 0.5),
    ],
)
def test_a_quantity_is_read_in_si(text: str, unit: str, value: float) -> None:
    """Decimal and binary prefixes, spaces or none, and the value is SI."""
    assert parse(text, unit, "here") == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "unit", "reason"),
    [
        ("50", "s", "has no unit"),
        (50, "s", "has no unit"),
        (1.5, "B", "has no unit"),
        ("400 Gb/s", "B/s", "counts bits; in bytes this is 50 GB/s"),
        ("800 Gbps", "B/s", "counts bits; in bytes this is 100 GB/s"),
        ("8 Mbit", "B", "counts bits; in bytes this is 1 MB"),
        ("20 ms", "B", "is a unit of s, and B is needed"),
        ("144 GB", "B/s", "is a unit of B, and B/s is needed"),
        ("400 TFLOPS", "FLOP", "is a unit of FLOP/s"),
        ("3 parsec", "s", "unknown unit parsec"),
        ("3 MS", "s", "unknown unit MS"),
        ("1e400 s", "s", "not finite"),
        ("nan s", "s", "not a quantity"),
        ("inf s", "s", "not a quantity"),
        ("", "s", "not a quantity"),
        ("ms", "s", "not a quantity"),
        ("1,5 s", "s", "unknown unit ,5|not a quantity"),
        ("1 2 s", "s", "not a quantity"),
        ("0x10 s", "s", "unknown unit|not a quantity"),
        (None, "s", "not a quantity"),
        (True, "s", "not a quantity"),
        ([], "s", "not a quantity"),
        ("9" * 5000 + " s", "s", "not a quantity"),
    ],
)
def test_what_is_no_quantity_is_refused(text: object, unit: str, reason: str) -> None:
    """Bare numbers, bits for bytes, other dimensions, unknown units and infinities each say what is wrong."""
    with pytest.raises(BadUnit, match=reason) as error:
        parse(text, unit, "the key")
    assert str(error.value).startswith("the key: ")
    assert EXAMPLES[unit] in str(error.value)


@pytest.mark.parametrize(("text", "value"), [("8192", 8192), ("8k", 8192), ("8K", 8192), ("1M", 2**20), ("1m", 2**20),
                                             ("0.5k", 512), ("1e3", 1000), (7, 7), (" 12 ", 12)])  # fmt: skip
def test_counts_take_binary_thousands(text: object, value: int) -> None:
    """8k tokens are 8192."""
    found = parse_count(text, "here")
    assert found == value
    assert isinstance(found, int)


@pytest.mark.parametrize(
    "text", ["", "k", "8.1", "0.3k", "8 kB", "eight", "1e400", "10" * 30, "nan", "inf", None, True, 1.5]
)
def test_what_is_no_count_is_refused(text: object) -> None:
    """Fractions, words, units and numbers beyond reason are no counts."""
    with pytest.raises(BadUnit):
        parse_count(text, "here")


def test_every_dimension_has_an_example_that_parses() -> None:
    """The example in an error message is itself legal."""
    assert set(EXAMPLES) == set(UNITS)
    for unit, text in EXAMPLES.items():
        assert parse(text, unit, "here") > 0


def test_no_unit_means_two_things() -> None:
    """A unit belongs to one dimension, or 'another unit' would be guessed."""
    owners: dict[str, str] = {}
    for dimension, table in UNITS.items():
        for name in table:
            assert owners.setdefault(name, dimension) == dimension


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4e12, "B/s", "4 TB/s"),
        (8e11, "B/s", "800 GB/s"),
        (1.44e11, "B", "144 GB"),
        (12, "B", "12 B"),
        (4e14, "FLOP/s", "400 TFLOPS"),
        (2 / 3600, "USD/s", "2 USD/h"),
        (None, "s", "-"),
        (0.0191, "s", "19.1 ms"),
        (1500.0, "W", "1.5 kW"),
    ],
)
def test_a_value_is_shown_for_people(value: float | None, unit: str, text: str) -> None:
    """Values come back in the unit people write."""
    assert show(value, unit) == text


@few
@given(st.floats(1e-9, 1e5))
def test_shown_times_read_back(seconds: float) -> None:
    """A time shown can be read again, to three digits."""
    text = show_time(seconds).replace(",", "")
    assert parse(text, "s", "here") == pytest.approx(seconds, rel=6e-3)


@few
@given(st.sampled_from(["B", "B/s", "FLOP/s", "W"]), st.floats(1, 1e18))
def test_shown_quantities_read_back(unit: str, value: float) -> None:
    """A quantity shown can be read again, to four digits."""
    assert parse(show(value, unit), unit, "here") == pytest.approx(value, rel=1e-3)


@few
@given(st.text(max_size=30), st.sampled_from(sorted(UNITS)))
def test_any_text_is_a_quantity_or_refused(text: str, unit: str) -> None:
    """Nothing but a finite value or BadUnit comes out of a quantity's reader, whatever goes in."""
    found: float | BadUnit
    try:
        found = parse(text, unit, "here")
    except BadUnit as error:
        found = error
    assert "\n" not in str(found) if isinstance(found, BadUnit) else math.isfinite(found)


@few
@given(st.text(max_size=30))
def test_any_text_is_a_count_or_refused(text: str) -> None:
    """Nothing but a whole number or BadUnit comes out of a count's reader."""
    found: int | BadUnit
    try:
        found = parse_count(text, "here")
    except BadUnit as error:
        found = error
    assert "\n" not in str(found) if isinstance(found, BadUnit) else isinstance(found, int)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.9996, "1 s"), (0.99949, "999 ms"), (1.0, "1.00 s"), (9.996e-4, "1 ms"), (9.99e-4, "999 us"), (0.617, "617 ms")],
)
def test_what_rounds_up_to_a_unit_takes_it(seconds: float, text: str) -> None:
    """Never 1e+03 of the smaller one."""
    assert show_time(seconds) == text


def test_no_exponents_for_people() -> None:
    """A range across a unit, and rates and counts just below a power of ten."""
    assert span([0.617, 0.9997], "s") == "[dim]617 ms-1 s[/dim]"
    assert written(999.7, "1/s") == "1,000"
    assert show(9999.9, "1") == "10,000"


@given(st.floats(1e-6, 1e5))
@settings(max_examples=300)
def test_times_have_no_exponent(seconds: float) -> None:
    """Whatever the size, from a microsecond up."""
    assert "e" not in show_time(seconds)
