"""The readers of a formula agree: floats, open grids, the kernel compiled from the sheet; and the search with all."""

import json
import math
import os
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from deployments import DEPLOYMENTS, LINEAR, NAMES, SUPERNODE, Deployment

from planner.evaluate.case import case_of, point_of
from planner.evaluate.compiled import arguments, compile_kernel, flat
from planner.evaluate.estimate import HEADLINES, estimate, run
from planner.evaluate.grid import columns, evaluate, evaluate_blocks, slots_needed
from planner.evaluate.sheet import build
from planner.layout import Layout, legal
from planner.search.plan import plan
from planner.search.space import batches, candidates
from planner.specs.workload import Slo, Workload

RTOL = 1e-12
LOADS = (1, 13, 200)
LAYOUTS_TRIED = 8
CANCELS = {
    "decode_pipeline_wait_pipeline_time_s": "decode_turn_s",
    "prefill_pipeline_overlap_pipeline_time_s": "prefill_plain_s",
}
"""Differences that vanish in theory -> what they are a difference of: the rounding of that is all that may remain."""


def same(a: float, b: float, whole: float = 0.0) -> bool:
    """Equal to twelve digits, or to the rounding of what both are a difference of."""
    return math.isclose(float(a), float(b), rel_tol=RTOL, abs_tol=4 * sys.float_info.epsilon * whole)


def values(deployment: Deployment) -> dict[str, float]:
    """Every named quantity on floats."""
    return {name: row.value for name, row in run(deployment.point)[0].rows.items()}


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_compiled_kernel_equals_floats(deployment: Deployment) -> None:
    """Every named quantity of the generated kernel is the float formula's."""
    point = deployment.point
    book = build(point.shape, list(point.values), point.raw)
    kernel, inputs = compile_kernel(book, tuple(book.rows))
    found = dict(zip(book.rows, kernel(*arguments(book, inputs, point.values)), strict=True))
    plain = values(deployment)
    assert list(found) == list(plain)
    wrong = {
        name: (float(value), plain[name])
        for name, value in found.items()
        if not same(value, plain[name], plain[CANCELS[name]] if name in CANCELS else 0.0)
    }
    assert wrong == {}


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_open_grid_equals_floats(deployment: Deployment) -> None:
    """Every headline of a batch x layout grid is what each of its points gives alone."""
    case, workload, point = deployment.case, deployment.workload, deployment.point
    sizes = sorted({deployment.parsed.chips, deployment.parsed.chips // 2} - {0})
    others = [layout for size in sizes for layout in legal(size, case.model, Counter())]
    layouts = [deployment.parsed, *others[:: max(1, len(others) // LAYOUTS_TRIED)]]
    replicas = [deployment.lent // layout.chips for layout in layouts]
    slots = slots_needed(case.model, layouts)
    padded = point_of(case, layouts[0], workload)
    shape = type(padded.shape)(**{**padded.shape.__dict__, "stages": slots})
    mesh = {
        **{name: value for name, value in point.values.items() if not name.startswith("layout.")},
        **columns(case.model, layouts, replicas, [deployment.lent] * len(layouts), slots),
        "ask.concurrency": np.asarray(LOADS, dtype=float)[:, None],
    }
    wanted = frozenset(HEADLINES.values())
    whole = evaluate(shape, mesh, point.raw, wanted)
    blocks = evaluate_blocks(shape, mesh, point.raw, wanted, len(LOADS))
    for i, load in enumerate(LOADS):
        asked = workload.model_copy(update={"concurrency": load})
        for j, layout in enumerate(layouts):
            alone = run(point_of(case, layout, asked, replicas[j], deployment.lent))[0].rows
            for name in wanted:
                on_grid = np.broadcast_to(whole[name], (len(LOADS), len(layouts)))[i, j]
                assert same(on_grid, alone[name].value), (name, str(layout), load)
                assert blocks[name][i, j] == on_grid, (name, str(layout), load)


def test_flat_columns_equal_floats() -> None:
    """The compiled kernel over flat columns longer than one block gives every row its own answer."""
    point = next(d for d in DEPLOYMENTS if d.name == "pp2").point
    outputs = tuple(HEADLINES.values())
    book = build(point.shape, list(point.values), point.raw)
    kernel, inputs = compile_kernel(book, outputs)
    loads = np.arange(1.0, 20_001.0)
    given = arguments(book, inputs, {**point.values, "ask.concurrency": loads})
    found = flat(kernel, given, len(loads), len(outputs))
    for row in (0, 777, 16_383, 16_384, 19_999):
        single = kernel(*arguments(book, inputs, {**point.values, "ask.concurrency": loads[row]}))
        for column, value in zip(found, single, strict=True):
            assert same(column[row], value)


def small_plan(**kwargs: Any) -> Any:
    """A plan small enough to check by hand: Kimi Linear on eight chips."""
    return plan(LINEAR, SUPERNODE, Workload(isl=4096, osl=512), chips=8, **kwargs)


def without_clock(answer: Any) -> Any:
    """A plan's JSON without the two times of the search itself."""
    return {name: value for name, value in answer.items() if name not in ("seconds", "setup_seconds")}


def swings(answer: dict[str, Any]) -> dict[str, Any]:
    """Take ranges and effects out of an answer: they come from a grid, so last digits may differ."""
    found = {f"range {key}": pair for key, pair in answer.pop("range").items()}
    for row in answer["assumptions"]:
        effect = row.pop("effect", {})
        found |= {f"{row['name']} on {key}": pair for key, pair in effect.items()}
    answer["assumptions"].sort(key=lambda row: row["name"])
    return found


def test_planned_points_reevaluated_alone_are_identical() -> None:
    """What the search prints about a layout is what `estimate` prints about it, ranges and effects to twelve digits."""
    found = small_plan(top=40)
    assert len(found.top) > 10
    for row in found.top:
        asked = Workload(isl=4096, osl=512, concurrency=row.concurrency)
        mine = estimate(LINEAR, SUPERNODE, row.layout.text, asked, chips=8).to_dict()
        other = row.to_dict()
        mine_swings, other_swings = swings(mine), swings(other)
        assert mine == other
        assert mine_swings.keys() == other_swings.keys()
        for key, pair in mine_swings.items():
            assert pair == pytest.approx(other_swings[key], rel=RTOL, abs=RTOL), key


def test_front_points_reevaluated_alone_agree() -> None:
    """A point of the front evaluated alone gives the two rates it stands for."""
    found = small_plan()
    assert found.front
    for row in found.front:
        asked = Workload(isl=4096, osl=512, concurrency=row["concurrency"])
        alone = estimate(LINEAR, SUPERNODE, row["layout"], asked, chips=8)
        assert same(alone.serving.tok_s_per_chip, row["tok_s_per_chip"])
        assert same(alone.decode.tok_s_per_user, row["tok_s_per_user"])
        assert same(alone.serving.ttft_s, row["ttft_s"])


@cache
def every_point(chips: int, concurrency: int | None) -> dict[tuple[str, int], dict[str, float]]:
    """Every (layout, concurrency) of Kimi Linear on `chips`, each evaluated alone on floats."""
    case = case_of(LINEAR, SUPERNODE)
    found = {}
    for layout in candidates(case.model, chips, Counter()):
        replicas = chips // layout.chips
        one = Workload(isl=4096, osl=512, concurrency=layout.dp * replicas)
        most = int(run(point_of(case, layout, one, replicas, chips))[0].rows["memory_requests"].value)
        tried = {min(int(b), most) for b in batches(most)} if most else set()
        loads = {b * layout.dp * replicas for b in tried} if concurrency is None else {concurrency}
        for load in loads:
            asked = one.model_copy(update={"concurrency": load})
            rows = run(point_of(case, layout, asked, replicas, chips))[0].rows
            found[str(layout), load] = {name: row.value for name, row in rows.items()}
    return found


def singles(chips: int, concurrency: int | None, slo: Slo) -> dict[tuple[str, int], dict[str, float]]:
    """The points that fit in memory and meet the targets."""
    return {
        place: q
        for place, q in every_point(chips, concurrency).items()
        if q["memory_slack_bytes"] >= 0
        and (slo.tpot_s is None or q["serving_tpot_s"] <= slo.tpot_s)
        and (slo.ttft_s is None or q["serving_ttft_s"] <= slo.ttft_s)
    }


@pytest.mark.parametrize(
    ("chips", "concurrency", "slo"),
    [(8, 64, Slo()), (8, 64, Slo(tpot_s=0.012)), (2, None, Slo()), (2, None, Slo(tpot_s=0.008, ttft_s=0.5))],
    ids=["load-given", "load-and-tpot", "batch-searched", "batch-and-targets"],
)
@pytest.mark.parametrize(
    ("objective", "quantity", "sign"),
    [
        ("throughput", "serving_chip_tokens_per_s", -1),
        ("latency", "serving_e2e_s", 1),
        ("cost", "serving_cost_output_usd", 1),
    ],
)
def test_plan_equals_brute_force(
    chips: int, concurrency: int | None, slo: Slo, objective: Any, quantity: str, sign: int
) -> None:
    """The search finds exactly what a loop of single evaluations finds: the count, the best, the order."""
    found = plan(
        LINEAR, SUPERNODE, Workload(isl=4096, osl=512, concurrency=concurrency), chips=chips, slo=slo, top=1000,
        objective=objective,
    )  # fmt: skip
    every = singles(chips, concurrency, slo)
    assert found.feasible == len(every) > 0
    best: dict[str, float] = {}
    for (layout, _), q in every.items():
        best[layout] = min(best.get(layout, math.inf), sign * q[quantity])
    assert {row.layout.text for row in found.top} == set(best)
    scores = [sign * every[row.layout.text, row.concurrency][quantity] for row in found.top]
    assert all(same(score, best[row.layout.text]) for score, row in zip(scores, found.top, strict=True))
    assert all(a <= b or same(a, b) for a, b in pairwise(scores))


def test_front_equals_brute_force() -> None:
    """The front holds exactly the points that no other beats in both rates."""
    found = plan(LINEAR, SUPERNODE, Workload(isl=4096, osl=512), chips=2)
    rates = {(q["serving_chip_tokens_per_s"], q["serving_user_tokens_per_s"]) for q in singles(2, None, Slo()).values()}
    ahead = {a for a in rates if not any(b[0] >= a[0] and b[1] >= a[1] and b != a for b in rates)}
    front = sorted((row["tok_s_per_chip"], row["tok_s_per_user"]) for row in found.front)
    assert len(front) == len(ahead)
    assert all(same(a[0], b[0]) and same(a[1], b[1]) for a, b in zip(front, sorted(ahead), strict=True))


def test_two_runs_print_the_same_bytes() -> None:
    """One question gives the same JSON in two processes with different hash seeds, the search's own times apart."""
    command = [sys.executable, "-m", "planner.cli.app", "plan", LINEAR, "--on", SUPERNODE, "--chips", "8"]
    command += ["--isl", "4k", "--osl", "512", "--json"]
    texts = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        out = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
        texts.append(json.dumps(without_clock(json.loads(out))))
    assert texts[0] == texts[1]


def test_layouts_written_and_read_back_are_identical() -> None:
    """A layout printed by a plan is the same layout when it is given to `estimate`."""
    model = case_of(LINEAR, SUPERNODE).model
    for layout in candidates(model, 16, Counter()):
        assert Layout.parse(str(layout), model) == layout
