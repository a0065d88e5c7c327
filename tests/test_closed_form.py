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


@pytest.mark.parametrize("isl", [4096, 16384, 32768])
def test_closed_form_moves_the_length_with_the_prompt(isl: int) -> None:
    """A request reaches ISL + OSL tokens: memory in the context follows, as it does when the whole is asked anew."""
    flags = ("qwen3-30b-a3b", "h100-8", "TP1 DP8")
    job = Workload(isl=4096, osl=1024, concurrency=128)
    found = explain(*flags, job, quantity="max_concurrency", closed_form=["context"])
    assert found.closed_form is not None
    space: dict[str, Any] = {}
    exec(HEAD, space)
    written = eval(found.closed_form["numpy"], space, {"ask_isl": float(isl)})
    asked = placed(*flags, Workload(isl=isl, osl=1024, concurrency=128), None, None)[3]
    assert written == value(asked, "memory_max_concurrency")


def test_closed_form_in_everything_is_drawn_and_can_be_evaluated(cli: Any) -> None:
    """All that the formula names is among the inputs, the layout too, so that a reader has every number."""
    job = ("explain", "llama-3.1-8b", "--on", "h100-8", "--layout", "TP8", "--isl", "1k", "--osl", "64",
           "--concurrency", "8", "--quantity", "step", "--closed-form", "all")  # fmt: skip
    done = cli(*job)
    assert done.code == 0
    assert "layout.tp" in done.out
    answer = cli(*job, "--json").json
    space: dict[str, Any] = {}
    exec(HEAD, space)
    values = {name.replace(".", "_"): answer["inputs"][name]["value"] for name in answer["closed_form"]["inputs"]}
    written = eval(answer["closed_form"]["numpy"], space, values)
    assert written == pytest.approx(answer["quantities"]["decode_step_s"]["value"], rel=1e-12)
    assert {"with_group", "low", "high", "source"} <= set(answer["inputs"]["chip.memory_bandwidth"])


def test_latex_of_a_power_of_ten_takes_a_power(cli: Any) -> None:
    done = cli(*ARGS, "--quantity", "step", "--closed-form", "hbm_bandwidth,bf16_rate", "--latex")
    assert r"\left(7.0 \cdot 10^{-6}\right)^2" in done.out
    assert "}^2" not in done.out.replace(r"\right)^2", "")


def test_what_people_call_a_capacity_is_the_one_that_counts(cli: Any) -> None:
    job = ("explain", "llama-3.1-8b", "--on", "h100-8", "--layout", "TP8", "--isl", "1k", "--osl", "64",
           "--concurrency", "8", "--quantity", "memory", "--closed-form", "hbm_capacity", "--json")  # fmt: skip
    assert cli(*job).json["closed_form"]["inputs"] == ["chip.usable_memory"]


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--quantity", "tpot", "--tornado"), "--quantity: is one view"),
        (("--growth", "--sensitivities"), "--growth: is one view"),
        (("--draws", "5"), "--draws: draws behind a tornado"),
        (("--specs",), "--specs: needs one quantity"),
        (("--quantity", ""), "--quantity: unknown quantity ''"),
        (("--quantity", "exchange_share"), "is a share worked out from decode_moe_dispatch_time_s"),
        (("--quantity", "decode_tokens_per_request", "--closed-form", "specs"), "no input of specs enters"),
    ],
)
def test_views_that_do_not_go_together_are_one_line(cli: Any, flags: tuple[str, ...], line: str) -> None:
    done = cli(*ARGS, *flags)
    assert done.code == 2
    assert not done.out
    assert line in done.err
    assert done.err.count("\n") == 1


def test_only_the_specs_behind_a_quantity(cli: Any) -> None:
    whole, short = cli(*ARGS, "--quantity", "usd"), cli(*ARGS, "--quantity", "usd", "--specs")
    assert len(short.out) < len(whole.out) / 2
    assert "chip.price" in short.out
    assert "Who says so" in short.out
    assert "soft15" not in short.out


def test_one_output_token_has_no_tpot_to_explain(cli: Any) -> None:
    flags = [*ARGS]
    flags[flags.index("1k")] = "1"
    done = cli(*flags, "--quantity", "tpot")
    assert (done.code, done.err) == (2, "osl: one output token has no time between tokens; ask for 2 or more\n")


def test_a_load_that_does_not_fit_is_said_first(cli: Any) -> None:
    flags = [*ARGS]
    flags[-1] = "100000"
    assert "does not fit: 2,040 requests do" in cli(*flags).out.splitlines()[1]
