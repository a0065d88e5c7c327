"""A quantity as one formula in a few inputs, and the inputs and references a quantity rests on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner import Workload, explain
from planner.evaluate.case import Point, placed
from planner.evaluate.compiled import HEAD
from planner.evaluate.grid import evaluate

DEPLOYMENT = ("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8 EP64")
WORKLOAD = Workload(isl=8192, osl=1024, concurrency=256)
ARGS = ("explain", DEPLOYMENT[0], "--on", DEPLOYMENT[1], "--layout", DEPLOYMENT[2], "--isl", "8k", "--osl", "1k",
        "--concurrency", "256")  # fmt: skip


@pytest.fixture(scope="module")
def point() -> Point:
    return placed(*DEPLOYMENT, WORKLOAD, None, None)[3]


def value(point: Point, quantity: str, **changes: Any) -> float:
    """One quantity with some inputs changed."""
    dotted = {name.replace("__", "."): change for name, change in changes.items()}
    found = evaluate(point.shape, {**point.values, **dotted}, point.raw, frozenset({quantity}))[quantity]
    return float(np.ravel(found)[0])


@pytest.mark.parametrize("quantity", ["decode_mla_core_time_s", "decode_step_s", "serving_tpot_s", "prefill_idle_s"])
@pytest.mark.parametrize("factor", [1.0, 0.25, 7.0])
def test_closed_form_is_the_quantity_wherever_its_inputs_go(point: Point, quantity: str, factor: float) -> None:
    """Not only where it was written down: a maximum turns, and the form with it."""
    found = explain(*DEPLOYMENT, WORKLOAD, quantity=quantity, closed_form=["hbm_bandwidth", "chip.bf16_rate"])
    assert found.closed_form is not None
    assert found.closed_form["inputs"] == ["chip.bf16_rate", "chip.memory_bandwidth"]
    bandwidth, rate = point.values["chip.memory_bandwidth"] * factor, point.values["chip.bf16_rate"] / factor
    space: dict[str, Any] = {}
    exec(HEAD, space)
    written = eval(found.closed_form["numpy"], space, {"chip_memory_bandwidth": bandwidth, "chip_bf16_rate": rate})
    expected = value(point, quantity, chip__memory_bandwidth=bandwidth, chip__bf16_rate=rate)
    assert written == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("word", ["specs", "all"])
def test_closed_form_keeps_whole_groups_of_inputs(word: str) -> None:
    found = explain(*DEPLOYMENT, WORKLOAD, quantity="decode_mla_core_time_s", closed_form=[word])
    assert found.closed_form is not None
    kept = found.closed_form["inputs"]
    assert kept == sorted(set(kept))
    assert "chip.memory_bandwidth" in kept
    assert ("ask.isl" in kept) is (word == "all")
    assert all(name.replace(".", "_") in found.closed_form["formula"] for name in kept)


def test_inputs_of_a_quantity_are_those_that_move_it(point: Point) -> None:
    """Every input left out can be doubled without moving the quantity; every estimated one listed moves it."""
    name = "decode_mla_core_time_s"
    found = explain(*DEPLOYMENT, WORKLOAD, quantity=name)
    base = value(point, name)
    for other, leaf in point.leaves.items():
        doubled = value(point, name, **{other.replace(".", "__"): leaf.value * 2 + 1})
        if other not in found.inputs:
            assert doubled == base, other
        elif leaf.uncertain:
            low, high = (value(point, name, **{other.replace(".", "__"): end}) for end in (leaf.low, leaf.high))
            assert low != high, other
    assert "chip.memory_bandwidth" in found.inputs
    assert "chip.price" not in found.inputs
    assert all(row["source"] for row in found.inputs.values())
    assert found.references == ["DeepSeek-V2, arXiv:2405.04434, section 2.1 and appendix B"]


@pytest.mark.parametrize(("name", "quantity"), [("tpot", "serving_tpot_s"), ("decode.step_s", "decode_step_s")])
def test_headlines_are_quantities_by_their_everyday_names(cli: Any, name: str, quantity: str) -> None:
    done = cli(*ARGS, "--quantity", name, "--json")
    answer = done.json
    assert answer["quantity"] == quantity
    assert list(answer["quantities"])[-1] == quantity
    assert "ask.isl" in answer["inputs"]
    assert answer["references"]


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--quantity", "tpott"), "--quantity: unknown quantity 'tpott'; did you mean tpot"),
        (("--closed-form", "specs"), "--closed-form: needs one quantity"),
        (("--quantity", "tpot", "--closed-form", "hbm_bandwith"), "did you mean hbm_bandwidth"),
        (("--quantity", "step", "--closed-form", "chip.price"), "chip.price does not enter this quantity"),
        (("--quantity", "step", "--closed-form", ""), "names no input"),
        (("--quantity", "step", "--closed-form", "isl,,osl"), "names no input"),
    ],
)
def test_what_is_wrong_is_one_line(cli: Any, flags: tuple[str, ...], line: str) -> None:
    done = cli(*ARGS, *flags)
    assert done.code == 2
    assert not done.out
    assert line in done.err
    assert done.err.count("\n") == 1
