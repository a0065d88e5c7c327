"""Elasticities against finite differences of the float path, bars against changed inputs, and what to measure."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from deployments import DEPLOYMENTS, NAMES, SUPERNODE, Deployment

import planner
from planner.evaluate.case import Point
from planner.evaluate.elasticity import QUANTITIES, Elasticities, elasticities, strongest
from planner.evaluate.estimate import run
from planner.evaluate.grid import evaluate
from planner.evaluate.inputs import Leaf
from planner.evaluate.ranges import DRAWS, draws, ranges
from planner.evaluate.tornado import ends, narrow_most, sources, tornado
from planner.evaluate.variables import movable, moved
from planner.specs.workload import Workload

K3 = "kimi-k3"
POINT = [K3, "--on", SUPERNODE, "--layout", "TP8 DP8 EP64", "--isl", "8k", "--osl", "1k", "--concurrency", "250"]
STEP, ONE_SIDED = 1e-4, 1e-6
"""Relative steps: of a central difference, extrapolated, and of a one-sided one."""
SIDES_TRIED = 6
PLAIN = next(deployment for deployment in DEPLOYMENTS if deployment.name == "plain")


@cache
def exact(name: str) -> tuple[Point, Elasticities]:
    """A deployment's point and elasticities."""
    point = next(deployment for deployment in DEPLOYMENTS if deployment.name == name).point
    return point, elasticities(point)


def headlines(point: Point) -> dict[str, float]:
    """The headline quantities on floats."""
    rows = run(point)[0].rows
    return {key: float(rows[quantity].value) for key, quantity in QUANTITIES.items()}


def at(point: Point, name: str, factor: float) -> dict[str, float]:
    """The headlines with one input times a factor."""
    return headlines(moved(point, name, point.values[name] * factor))


def central(point: Point, name: str) -> tuple[dict[str, float], dict[str, bool]]:
    """(d ln / d ln by two central differences extrapolated, whether they agree) for every headline."""
    base = headlines(point)
    slopes = []
    for step in (STEP, STEP / 2):
        up, down = at(point, name, 1 + step), at(point, name, 1 - step)
        slopes.append({key: (up[key] - down[key]) / (2 * step * base[key]) for key in base})
    found = {key: (4 * slopes[1][key] - slopes[0][key]) / 3 for key in base}
    return found, {key: abs(slopes[0][key] - slopes[1][key]) <= 1e-4 * max(1.0, abs(found[key])) for key in base}


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_elasticities_are_central_differences(deployment: Deployment) -> None:
    """Every eighth input that moves anything, and the strongest six, to 1e-6, wherever no kink lies at the point."""
    point, found = exact(deployment.name)
    kinked = {(row["input"], row["quantity"]) for row in found.kinks}
    order = strongest(found.values)
    compared = 0
    for name in dict.fromkeys([*order[:6], *order[::8]]):
        estimated, smooth = central(point, name)
        for key, value in found.values[name].items():
            if value is None or (name, key) in kinked or not smooth[key]:
                continue
            assert value == pytest.approx(estimated[key], rel=1e-6, abs=1e-9), (name, key)
            compared += 1
    assert compared > 20


def test_every_input_of_one_deployment() -> None:
    """All inputs, those that move nothing included."""
    point, found = exact("plain")
    kinked = {(row["input"], row["quantity"]) for row in found.kinks}
    assert list(found.values) == list(movable(point.leaves))
    for name, row in found.values.items():
        estimated, smooth = central(point, name)
        for key, value in row.items():
            if (name, key) not in kinked:
                assert smooth[key], (name, key)
                assert value == pytest.approx(estimated[key], rel=1e-6, abs=1e-9), (name, key)


@pytest.mark.parametrize("name", ["plain", "pp2", "waves", "replicas", "sparse-mla", "gather", "own-draft-windows"])
def test_both_sides_of_a_kink(name: str) -> None:
    """One-sided values are one-sided differences, and where a side is null the quantity jumps on that side."""
    point, found = exact(name)
    base = headlines(point)
    inputs = list(dict.fromkeys(row["input"] for row in found.kinks))
    assert inputs
    for name in inputs[:: max(1, len(inputs) // SIDES_TRIED)]:
        sides = {side: at(point, name, 1 + sign * ONE_SIDED) for side, sign in (("below", -1), ("above", 1))}
        near = {side: at(point, name, 1 + sign * ONE_SIDED / 2) for side, sign in (("below", -1), ("above", 1))}
        for row in (row for row in found.kinks if row["input"] == name):
            for side, sign in (("below", -1), ("above", 1)):
                key = row["quantity"]
                change = sides[side][key] / base[key] - 1
                half = near[side][key] / base[key] - 1
                if row[side] is None:
                    assert half == pytest.approx(change, rel=1e-2), "half the step, the same jump"
                else:
                    slope = (4 * half - change) / (sign * ONE_SIDED)
                    assert row[side] == pytest.approx(slope, rel=1e-4, abs=1e-6), (row, side)


@pytest.mark.parametrize("name", ["plain", "pp7", "two-domains", "every-term", "speculation"])
def test_time_scales(name: str) -> None:
    """With every time longer and every rate slower by one factor all times grow by it: elasticities add up to 1."""
    point, found = exact(name)
    powers = {"s": 1, "B/s": -1, "FLOP/s": -1}
    for key, power in (("ttft", 1), ("tpot", 1), ("tok_s_per_chip", -1)):
        total = sum(powers.get(point.leaves[name].unit, 0) * (row[key] or 0.0) for name, row in found.values.items())
        assert total == pytest.approx(power, rel=1e-9), key


def test_a_price_is_a_price() -> None:
    """The bill is proportional to the price; the rest does not know it; cost is the price over the throughput."""
    _, found = exact("plain")
    assert found.values["chip.price"] == {"ttft": 0.0, "tpot": 0.0, "tok_s_per_chip": 0.0, "usd": 1.0}
    for name, row in found.values.items():
        if name != "chip.price" and None not in (row["usd"], row["tok_s_per_chip"]):
            assert row["usd"] == pytest.approx(-row["tok_s_per_chip"], abs=1e-12), name


def test_one_output_token_has_no_tpot() -> None:
    """Null in the elasticities, absent from the bars."""
    point, found = exact("one-token")
    assert {row["tpot"] for row in found.values.values()} == {None}
    assert "tpot" not in tornado(point)
    assert "tpot" not in narrow_most(point)


def set_to(point: Point, names: list[str], pick: Any) -> Point:
    """The point with some inputs at what `pick` makes of their leaves."""
    for name in names:
        point = moved(point, name, pick(point.leaves[name]))
    return point


def low(leaf: Leaf) -> float:
    """The low end of a source."""
    return ends(leaf)[0]


def high(leaf: Leaf) -> float:
    """The high end of a source."""
    return ends(leaf)[1]


def test_bars_are_changed_inputs() -> None:
    """Every bar is what a run with that source's inputs changed gives, and bars come longest first."""
    point = PLAIN.point
    base = headlines(point)
    for key, rows in tornado(point).items():
        assert rows
        for row in rows[:6]:
            assert row["low"] == pytest.approx(headlines(set_to(point, row["inputs"], low))[key], rel=1e-12)
            assert row["high"] == pytest.approx(headlines(set_to(point, row["inputs"], high))[key], rel=1e-12)
            assert row["effect"] == pytest.approx([row["low"] / base[key] - 1, row["high"] / base[key] - 1])
        lengths = [abs(row["high"] - row["low"]) for row in rows]
        assert lengths == sorted(lengths, reverse=True)


def test_groups_move_together() -> None:
    """Each uncertain input belongs to one source; members with a minus are swung against the rest."""
    leaves = PLAIN.point.leaves
    found = sources(leaves)
    members = [name for names in found.values() for name in names]
    assert sorted(members) == sorted(name for name, leaf in leaves.items() if leaf.uncertain)
    assert "link.dispatch.alpha" in found["fabric"]
    assert low(leaves["link.dispatch.alpha"]) == leaves["link.dispatch.alpha"].high


def test_the_one_to_measure_narrows_most() -> None:
    """No other source leaves a narrower range when it is fixed; the range itself is the one `estimate` prints."""
    point = PLAIN.point
    found = narrow_most(point)
    wanted = dict(QUANTITIES)
    whole = ranges(point.shape, point.values, point.raw, point.leaves, wanted)
    drawn = draws(point.leaves)
    for key, best in found.items():
        assert best["range"] == pytest.approx([float(v) for v in whole[key][:, 0]], rel=1e-12)
        width = best["narrowed"][1] - best["narrowed"][0]
        assert best["shrinks_fraction"] == pytest.approx(1 - width / (best["range"][1] - best["range"][0]))
    widths = {}
    for source, names in sources(point.leaves).items():
        rest = {name: column for name, column in drawn.items() if name not in names}
        values = []
        for i in range(0, DRAWS, 64):
            one = {name: float(column[i, 0]) for name, column in rest.items()}
            values.append(headlines(Point(point.shape, {**point.values, **one}, point.raw, point.leaves))["tpot"])
        found_on_grid = evaluate(point.shape, {**point.values, **rest}, point.raw, frozenset(QUANTITIES.values()))
        column = found_on_grid[QUANTITIES["tpot"]][:, 0]
        assert values == pytest.approx(column[::64], rel=1e-12)
        widths[source] = float(np.ptp(np.percentile(column, (10, 90))))
    best = found["tpot"]["input"]
    assert widths[best] == min(width for source, width in widths.items() if source != "stack.model_error")


def test_the_json_and_the_tables(cli: Cli) -> None:
    """Keys of the contract, null where nothing was asked; a table, bars and a sentence for every headline."""
    arguments = ["explain", *POINT, "--sensitivities", "--tornado"]
    found = cli(*arguments, "--json").json
    assert set(found["elasticities"]["chip.memory_bandwidth"]) == {"ttft", "tpot", "tok_s_per_chip", "usd"}
    assert found["elasticities"]["chip.memory_bandwidth"]["tpot"] < 0
    assert set(found["tornado"]) == set(found["narrow_most"]) == {"ttft", "tpot", "tok_s_per_chip", "usd"}
    assert all({"input", "inputs", "low", "high", "effect"} <= set(row) for row in found["tornado"]["tpot"])
    assert math.isfinite(sum(row["low"] for row in found["tornado"]["usd"]))
    assert found["narrow_most"]["usd"]["input"] == "chip.price"
    drawn = cli(*arguments).out
    words = (
        "Elasticities",
        "stack.prefill_factor",
        "a | b",
        "weaker ones",
        "█",
        "Measuring chip.price would narrow USD",
    )
    assert [word for word in words if word not in " ".join(drawn.split())] == []
    assert max(map(len, drawn.splitlines())) <= 120
    plain = cli("explain", *POINT, "--json").json
    assert (plain["elasticities"], plain["tornado"], plain["narrow_most"]) == ({}, {}, {})


def test_draws_are_asked_for(cli: Cli) -> None:
    """More draws, said so, near the usual range; the usual number is the default; absurd numbers are refused."""
    usual = cli("estimate", *POINT, "--json").json
    same = cli("estimate", *POINT, "--draws", str(DRAWS), "--json").json
    many = cli("estimate", *POINT, "--draws", "10000", "--json").json
    assert usual == same
    assert "10000 draws" in many["range_basis"]
    for key, pair in many["range"].items():
        assert pair == pytest.approx(usual["range"][key], rel=0.05), key
    for text in ("1", "10000000", "x", "0"):
        found = cli("estimate", *POINT, "--draws", text)
        assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)


def test_draws_in_a_plan() -> None:
    """A plan's rows say how many draws they rest on, and one alone gives the same range."""
    asked = Workload(isl=4096, osl=512, concurrency=64)
    found = planner.plan("kimi-linear-48b-a3b", SUPERNODE, asked, chips=8, draws=2000, top=3)
    assert all("2000 draws" in row.range_basis for row in found.top)
    row = found.top[0]
    alone = planner.estimate("kimi-linear-48b-a3b", SUPERNODE, row.layout.text, asked, chips=8, draws=2000)
    for key, pair in alone.range.items():
        assert pair == pytest.approx(row.range[key], rel=1e-12), key


def test_draws_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting the draws into blocks changes nothing."""
    point = PLAIN.point
    inputs = (point.shape, point.values, point.raw, point.leaves, dict(QUANTITIES))
    whole = ranges(*inputs)
    monkeypatch.setattr("planner.evaluate.ranges.BLOCK", 100)
    for key, pair in ranges(*inputs).items():
        assert np.array_equal(pair, whole[key]), key


def test_one_more_request_in_every_group_is_a_whole_step(cli: Cli) -> None:
    """The load is a count: beside its elasticity stands what the next whole request of every group does."""
    flags = ("kimi-k3", "--on", "zhenwu-m890-supernode", "--layout", "TP8 DP8", "--isl", "8k", "--osl", "1k")
    found = cli("explain", *flags, "--concurrency", "256", "--sensitivities", "--json").json["one_more"]
    now, then = (cli("estimate", *flags, "--concurrency", str(load), "--json").json for load in (256, 264))
    assert found["requests"] == 8
    ratio = then["serving"]["tok_s_per_chip"] / now["serving"]["tok_s_per_chip"]
    assert found["effect"]["tok_s_per_chip"] == pytest.approx(ratio - 1, rel=1e-9)
    assert found["effect"]["tpot"] == pytest.approx(then["decode"]["tpot_s"] / now["decode"]["tpot_s"] - 1, rel=1e-9)


def test_members_of_a_group_stand_by_what_they_move() -> None:
    """The first named of a group is the one that moves the headline most by itself."""
    point = PLAIN.point
    for key, rows in tornado(point).items():
        for row in rows:
            moves = []
            for name in row["inputs"]:
                low, high = (headlines(set_to(point, [name], end))[key] for end in (lambda x: x.low, lambda x: x.high))
                moves.append(abs(high - low))
            assert moves == sorted(moves, reverse=True)


def test_what_narrows_by_less_than_a_percent_is_not_named() -> None:
    for best in narrow_most(PLAIN.point).values():
        assert best["shrinks_fraction"] >= 0.01
        assert best["input"] != "stack.model_error"
        assert best["chip"] is None or any(name.startswith("chip.") for name in best["chip"]["inputs"])
