"""`planner solve`: the value it gives meets the target and the next one does not, and what has no answer says so."""

import json
import math
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from deployments import DEPLOYMENTS, LINEAR, NAMES, SUPERNODE, Deployment

import planner
from planner.errors import BadInput, BadUnit, Infeasible, UnknownName
from planner.evaluate import breakdown
from planner.evaluate.case import Point, case_of, point_of
from planner.evaluate.estimate import run
from planner.evaluate.solve import Curve, solve
from planner.evaluate.targets import METRICS, target
from planner.evaluate.variables import FRIENDLY, moved, variable
from planner.layout import Layout
from planner.specs.workload import Workload

K3 = "kimi-k3"
POINT = [K3, "--on", SUPERNODE, "--layout", "TP8 DP8 EP64", "--isl", "8k", "--osl", "1k", "--concurrency", "64"]
ASK = Workload(isl=8192, osl=1024, concurrency=64)
CONTRACT = ("variable", "value", "unit", "binding", "target")
HAIR = 1e-9


def point(model: str, layout: str, workload: Workload) -> Point:
    """A deployment on the supernode."""
    case = case_of(model, SUPERNODE)
    return point_of(case, Layout.parse(layout, case.model), workload)


def metric(name: str, at: Point) -> float:
    """A metric on floats."""
    say, on = run(at)
    return float(target(name, list(say.rows)).value(say, on, at))


@pytest.mark.parametrize(
    ("arguments", "binding"),
    [
        (["--for", "hbm_bandwidth", "--target", "tpot<=20ms"], "latency"),
        (["--for", "context", "--target", "memory"], "memory capacity"),
        (["--for", "context", "--target", "ttft<=2s"], "compute"),
        (["--for", "ep_bandwidth", "--target", "exchange_share<=15%"], "memory"),
        (["--for", "ep_bandwidth", "--target", "wire_share<=0.5%"], "memory"),
        (["--for", "batch", "--target", "tpot<=50ms"], "memory"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_the_contract_s_keys(arguments: list[str], binding: str, cli: Cli) -> None:
    """Every example of the help works, as JSON and drawn, and the value meets its target."""
    found = cli("solve", *POINT, *arguments, "--json")
    assert (found.code, found.err) == (0, "")
    assert all(key in found.json for key in CONTRACT)
    assert found.json["variable"] == arguments[1]
    assert found.json["binding"] == binding
    assert found.json["reached"] <= found.json["limit"] * (1 + HAIR) or found.json["extreme"] == "largest"
    drawn = cli("solve", *POINT, *arguments)
    assert drawn.code == 0
    assert found.json["sentence"] in " ".join(drawn.out.split())
    assert max(map(len, drawn.out.splitlines())) <= 120


def test_the_door_has_it() -> None:
    """The library's name, with the JSON's keys as attributes."""
    found = planner.solve(K3, SUPERNODE, "TP8 DP8", ASK, "hbm_bandwidth", "tpot<=30ms")
    assert found.value == pytest.approx(5.812e12, rel=1e-3)
    assert json.dumps(found.to_dict())
    assert set(CONTRACT) <= set(found.to_dict())


CONTINUOUS = [
    (K3, "TP8 DP8", "hbm_bandwidth", "tpot<=30ms", 1),
    (K3, "TP8 DP8", "hbm_bandwidth", "tpot<=20ms", 1),
    (K3, "TP8 DP8", "chip.price", "usd<=$5", -1),
    (K3, "TP8 DP8", "link.combine.alpha", "tpot<=35ms", -1),
    (K3, "TP8 DP8", "ep_bandwidth", "exchange_share<=15%", 1),
    (K3, "TP8 DP8", "ask.prefix_hit", "ttft<=0.8s", 1),
    (K3, "TP8 DP8", "stack.runtime", "memory>=50GB", -1),
    (LINEAR, "TP2 DP2", "bf16_rate", "idle_ttft<=300ms", 1),
    (LINEAR, "TP2 DP2", "kernel.dense.memory_fraction", "decode_step_s<=12.5ms", 1),
    ("llama-3.1-70b", "TP8", "hbm_bandwidth", "tok_s_per_user>=15", 1),
    ("deepseek-v3", "TP2 DP8", "scale_up_bandwidth", "wire_share<=1%", 1),
]


@pytest.mark.parametrize(("model", "layout", "name", "text", "side"), CONTINUOUS)
def test_a_continuous_value_is_the_edge(model: str, layout: str, name: str, text: str, side: int) -> None:
    """The value meets the target on floats, and a billionth to the worse side does not."""
    found = solve(model, SUPERNODE, layout, ASK, name, text)
    at = point(model, layout, ASK)
    goal = target(text, list(run(at)[0].rows))
    assert found.extreme == ("smallest" if side > 0 else "largest")

    def reached(value: float) -> float:
        placed = moved(at, found.input, value)
        say, on = run(placed)
        return float(goal.value(say, on, placed))

    assert found.reached == reached(found.value)
    assert math.isclose(found.reached, goal.limit, rel_tol=1e-8)
    assert goal.meets(reached(found.value * (1 + side * HAIR)))
    assert not goal.meets(reached(found.value * (1 - side * HAIR)))


COUNTS = [
    (K3, "TP8 DP8", "context", "memory", {}, 1),
    (K3, "TP8 DP8", "context", "memory", {"concurrency": 512}, 1),
    (K3, "TP8 DP8", "context", "ttft<=2s", {}, 1),
    (K3, "TP4 DP2 CP2 DCP2 PP4", "context", "ttft<=20s", {}, 1),
    (K3, "TP8 DP8", "batch", "tpot<=50ms", {}, 1),
    (K3, "TP8 DP8", "batch", "tok_s_per_chip>=40", {}, -1),
    (K3, "TP8 DP8", "batch", "usd<=12", {}, -1),
    (K3, "TP8 DP8", "osl", "tpot<=30ms", {}, -1),
    (LINEAR, "TP2 DP2", "context", "memory", {"concurrency": 64}, 1),
    ("gpt-oss-20b", "TP2 DP2", "context", "tpot<=5ms", {}, 1),
    ("gpt-oss-20b", "TP2 DP2", "batch", "memory", {"isl": 100_000}, 1),
    ("deepseek-v3", "DP32", "batch", "bound=compute", {"isl": 1024, "osl": 256}, -1),
]


@pytest.mark.parametrize(("model", "layout", "name", "text", "ask", "side"), COUNTS)
def test_both_neighbours_of_a_count(
    model: str, layout: str, name: str, text: str, ask: dict[str, Any], side: int
) -> None:
    """The count meets the target; the next one beyond misses it; the extreme one of a wide window is taken."""
    workload = ASK.model_copy(update=ask)
    found = solve(model, SUPERNODE, layout, workload, name, text)
    assert isinstance(found.value, int)
    assert found.extreme == ("largest" if side > 0 else "smallest")
    at = point(model, layout, workload)
    goal = target(text, list(run(at)[0].rows))

    def meets(value: float) -> bool:
        placed = moved(at, found.input, float(value))
        say, on = run(placed)
        return bool(goal.meets(goal.value(say, on, placed)))

    assert meets(found.value)
    assert found.neighbour is not None
    assert found.neighbour["value"] == found.value + side
    assert not meets(found.value + side)
    curve = Curve(at, variable(name, case_of(model, SUPERNODE), workload, at), goal, list(run(at)[0].rows))
    beyond = np.arange(found.value + side, max(found.value + side * 5000, 0), side, dtype=float)
    assert not goal.meets(curve(beyond)).any()


@pytest.mark.parametrize(("text", "last"), [("tpot<=9ms", True), ("tok_s_per_chip>=700", False), ("usd<=1", False)])
def test_a_count_equals_a_loop(text: str, last: bool) -> None:
    """Against every concurrency alone on floats: ceilings make rates dip, and the extreme one is found."""
    workload = Workload(isl=2000, osl=300, concurrency=10)
    at = point(LINEAR, "TP2 DP4", workload)
    goal = target(text, list(run(at)[0].rows))
    met = []
    for load in range(1, 400):
        placed = moved(at, "ask.concurrency", float(load))
        say, on = run(placed)
        if goal.meets(goal.value(say, on, placed)):
            met.append(load)
    assert 0 < len(met) < 399
    found = solve(LINEAR, SUPERNODE, "TP2 DP4", workload, "batch", text)
    assert found.value == (met[-1] if last else met[0])


def test_the_largest_context_is_what_fit_says() -> None:
    """Two ways to one number: `fit` bisects memory alone, with the passes of the longest prompt."""
    found = solve(K3, SUPERNODE, "TP8 DP8", ASK, "context", "memory")
    fitted = planner.fit(K3, SUPERNODE, layout="TP8 DP8", concurrency=64)
    assert found.value + ASK.osl == pytest.approx(fitted.max_length, rel=1e-3)


def test_the_model_s_context_is_an_answer() -> None:
    """Where everything fits, the limit of the context is the answer, and it says so."""
    found = solve(K3, SUPERNODE, "TP8 DP8", Workload(isl=1, osl=1024, concurrency=1), "context", "memory")
    assert found.value == 1048576 - 1024
    assert found.neighbour is None
    assert "limit of ask.isl" in found.binding
    assert "1,048,576" in found.binding


def test_what_is_sought_may_be_left_out(cli: Cli) -> None:
    """The concurrency that is asked for need not be given, and then there is no present value."""
    arguments = [argument for argument in POINT if argument not in ("--concurrency", "64")]
    found = cli("solve", *arguments, "--for", "concurrency", "--target", "tpot<=50ms", "--json")
    given = cli("solve", *POINT, "--for", "concurrency", "--target", "tpot<=50ms", "--json")
    assert found.json["value"] == given.json["value"] == 152
    assert found.json["present"] is None
    assert given.json["present"] == 64


BAD = {
    "unknown": (["--for", "hbm_bandwith", "--target", "tpot<=20ms"], ["hbm_bandwith", "did you mean hbm_bandwidth"]),
    "unknown-dotted": (["--for", "chip.bf16", "--target", "tpot<=20ms"], ["chip.bf16_rate"]),
    "definition": (["--for", "constant.million", "--target", "usd<=1"], ["definition"]),
    "derived": (["--for", "count.kda", "--target", "tpot<=20ms"], ["follows from the model"]),
    "unit": (["--for", "hbm_bandwidth", "--target", "tpot<=20GB"], ["unit of B", "s is needed"]),
    "bare": (["--for", "hbm_bandwidth", "--target", "tpot<=20"], ["no unit"]),
    "metric": (["--for", "hbm_bandwidth", "--target", "tpott<=20ms"], ["unknown metric", "tpot"]),
    "no-limit": (["--for", "hbm_bandwidth", "--target", "tpot"], ["no limit"]),
    "no-target": (["--for", "hbm_bandwidth", "--target", "<=20ms"], ["no target"]),
    "strict": (["--for", "hbm_bandwidth", "--target", "tpot<20ms"], ["no target"]),
    "bound": (["--for", "batch", "--target", "bound=disk"], ["compute memory network latency"]),
    "share": (["--for", "ep_bandwidth", "--target", "exchange_share<=x%"], ["not a number"]),
    "still": (["--for", "price", "--target", "tpot<=20ms"], ["tpot does not depend on chip.price"]),
    "met-anyway": (["--for", "hbm_bandwidth", "--target", "usd<=1e12"], ["met at every value"]),
    "no-drafts": (["--for", "draft_tokens", "--target", "tpot<=20ms"], ["--draft-tokens"]),
    "no-far": (["--for", "scale_out_bandwidth", "--target", "tpot<=20ms"], ["does not depend"]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_asked_is_one_line(name: str, cli: Cli) -> None:
    """Exit code 2, nothing on stdout, one line that says where, what and what to do."""
    arguments, words = BAD[name]
    found = cli("solve", *POINT, *arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err.count("\n") == 1
    assert found.err.startswith("--")
    assert [word for word in words if word not in found.err] == []


def test_a_missing_length_is_one_line(cli: Cli) -> None:
    """Only what is sought may be left out."""
    arguments = [argument for argument in POINT if argument not in ("--concurrency", "64")]
    found = cli("solve", *arguments, "--for", "context", "--target", "memory")
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert "--concurrency" in found.err


REACH = {
    "tpot": (["--for", "hbm_bandwidth", "--target", "tpot<=5ms"], ["the best is", "however large", "latency binds"]),
    "exchange": (["--for", "ep_bandwidth", "--target", "exchange_share<=5%"], ["the best is 10.4 %", "moe.experts"]),
    "share": (["--for", "kernel.dense.memory_fraction", "--target", "tpot<=30ms"], ["at 1, its limit", "at most 1"]),
    "memory": (["--for", "context", "--target", "memory>=200GB"], ["memory capacity binds", "weights"]),
    "compute": (["--for", "batch", "--target", "bound=compute"], ["trails by", "memory binds"]),
}


@pytest.mark.parametrize("name", REACH)
def test_out_of_reach_says_what_binds(name: str, cli: Cli) -> None:
    """Exit code 3 and one line: the best that can be reached, where, and what binds there."""
    arguments, words = REACH[name]
    found = cli("solve", *POINT, *arguments)
    assert (found.code, found.out, found.err.count("\n")) == (3, "", 1)
    assert [word for word in words if word not in found.err] == []


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_bounds_on_arrays_are_the_breakdown_s(deployment: Deployment) -> None:
    """The share of each bound in the decode step, as the breakdown's rows have it."""
    say, on = run(deployment.point)
    rows = [row for row in breakdown.rows(say, on) if row["phase"] == "decode"]
    found = breakdown.bounds_over(say, on, "decode")
    assert found == pytest.approx(breakdown.bounds(rows, 1.0, 0.0), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_the_exchange_s_share_is_the_breakdown_s(deployment: Deployment) -> None:
    """Dispatch and combine less what is hidden, over the step, from the rows people see."""
    say, on = run(deployment.point)
    parts = ("dispatch", "combine")
    times = [
        row["time_s"]
        for row in breakdown.rows(say, on)
        if row["phase"] == "decode" and (row["operator"] == "overlap" or row["operator"].split(".")[1] in parts)
        if not row["operator"].startswith("draft")
    ]
    found = metric("exchange_share<=1%", deployment.point)
    assert found == pytest.approx(sum(times) / say.rows["decode_step_s"].value, rel=1e-9, abs=1e-12)
    assert 0 <= metric("wire_share<=1%", deployment.point) <= 1


def test_every_friendly_name_and_metric_is_known() -> None:
    """No entry of either list is misspelt."""
    at = point(K3, "TP8 DP8", Workload(isl=8192, osl=1024, concurrency=64, draft_tokens=2, accepted_length=2))
    assert {name for name in FRIENDLY.values() if name not in at.leaves} <= {"chip.int8_rate"}
    say, _ = run(at)
    for name in METRICS:
        assert math.isfinite(METRICS[name].value({key: row.value for key, row in say.rows.items()}, at)), name


def test_errors_of_the_library() -> None:
    """The library raises what the command line prints."""
    with pytest.raises(UnknownName, match="did you mean"):
        solve(K3, SUPERNODE, "TP8 DP8", ASK, "concurency", "tpot<=20ms")
    with pytest.raises(BadUnit, match="unit of B"):
        solve(K3, SUPERNODE, "TP8 DP8", ASK, "batch", "tpot<=20GB")
    with pytest.raises(Infeasible, match="out of reach"):
        solve(K3, SUPERNODE, "TP8 DP8", ASK, "hbm_bandwidth", "tpot<=1ms")
    with pytest.raises(BadInput, match="no time between tokens"):
        solve(K3, SUPERNODE, "TP8 DP8", ASK.model_copy(update={"osl": 1}), "hbm_bandwidth", "tpot<=1ms")


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("tpot=20ms", "asks for one value"),
        ("tpot<=0ms", "is not above 0"),
        ("tpot<=-5ms", "is not above 0"),
        ("exchange_share<=5", "is no share"),
    ],
)
def test_a_target_that_means_nothing_is_refused(cli, target: str, told: str) -> None:  # type: ignore[no-untyped-def]
    """One value where a side is meant, no time at all, five hundred per cent."""
    answer = cli(
        "solve", "qwen3-8b", "--on", "h200-8", "--layout", "TP1", "--isl", "1k", "--osl", "256", "--concurrency", "4",
        "--for", "hbm_bandwidth", "--target", target,
    )  # fmt: skip
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err


def test_a_solution_says_how_surely_its_target_is_met() -> None:
    """The range of the metric at the solution, and the share of the draws that meet the target, by hand."""
    from planner.evaluate.case import placed
    from planner.evaluate.grid import evaluate
    from planner.evaluate.ranges import draws

    workload = planner.Workload(isl=8192, osl=1024, concurrency=64)
    deployment = ("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8 EP64")
    found = planner.solve(*deployment, workload, "hbm_bandwidth", "tpot<=30ms")
    point = placed(*deployment, workload, None, None)[3]
    drawn = {name: column for name, column in draws(point.leaves).items() if name != "chip.memory_bandwidth"}
    values = {**point.values, **drawn, "chip.memory_bandwidth": found.value}
    tpot = evaluate(point.shape, values, point.raw, frozenset({"serving_tpot_s"}))["serving_tpot_s"].ravel()
    assert found.reached_range is not None
    assert found.reached_range[0] < 0.030 < found.reached_range[1]
    assert 0.2 < np.mean(tpot <= 0.030) < 0.8
    assert found.met_fraction == pytest.approx(np.mean(tpot <= 0.030), abs=0.1)
    assert found.expected_error["basis"] == "blind"


def test_a_bound_has_no_range_and_exact_memory_is_met_in_every_draw() -> None:
    workload = planner.Workload(isl=8192, osl=1024, concurrency=64)
    on = ("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8 EP64", workload)
    short = planner.Workload(isl=1024, osl=256, concurrency=64)
    bound = planner.solve("deepseek-v3", "zhenwu-m890-supernode", "DP32", short, "batch", "bound=compute")
    assert (bound.reached_range, bound.met_fraction) == (None, None)
    fits = planner.solve(*on, "hbm_capacity", "memory")
    assert fits.met_fraction is not None
    assert 0 < fits.met_fraction < 1  # the runtime's memory is an estimate


@pytest.mark.parametrize(("variable", "target"), [("hbm_bandwidth", "tpot<=35ms"), ("batch", "tpot<=60ms"),
                                                  ("hbm_bandwidth", "tok_s_per_chip>=25")])  # fmt: skip
def test_a_confidence_is_the_share_of_draws_that_meet_the_target(variable: str, target: str) -> None:
    """At the answer as many draws meet it as asked; a step nearer, fewer; at the central values it is met with room."""
    workload = planner.Workload(isl=8192, osl=1024, concurrency=64)
    on = ("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8 EP64", workload, variable, target)
    plain, sure = planner.solve(*on), planner.solve(*on, confidence=0.7)
    assert plain.confidence_fraction is None
    assert plain.met_fraction is not None
    assert sure.met_fraction is not None
    assert plain.met_fraction < 0.7 <= sure.met_fraction < 0.7 + (0.01 if variable == "hbm_bandwidth" else 0.1)
    assert (sure.value > plain.value) is (sure.extreme == "smallest")
    assert "in 70 % of the draws" in sure.sentence


BESIDE = {
    "out-of-range": (["--for", "hbm_bandwidth", "--target", "tpot<=30ms", "--confidence", "9"], 2, "not within 0.5"),
    "no-number": (["--for", "hbm_bandwidth", "--target", "tpot<=30ms", "--confidence", "much"], 2, "is not a number"),
    "bound": (["--for", "batch", "--target", "bound=compute", "--confidence", "90%"], 2, "leave it out"),
    "too-sure": (["--for", "hbm_bandwidth", "--target", "tpot<=30ms", "--confidence", "99%"], 3, "however large it is"),
    "floor": (["--for", "hbm_bandwidth", "--target", "decode_moe_experts_floor_s<=50us"], 2, "unknown metric"),
    "search-ends": (["--for", "price", "--target", "usd>=1e8"], 3, "where the search ends"),
    "digits": (["--for", "price", "--target", "usd<=1_0"], 2, "is not a number"),
    "other-digits": (["--for", "price", "--target", "usd<=\u0661\u0660"], 2, "is not a number"),
}


@pytest.mark.parametrize("case", BESIDE)
def test_what_a_breaker_found_is_one_line(cli: Cli, case: str) -> None:
    flags, code, part = BESIDE[case]
    job = ("--on", "zhenwu-m890-supernode", "--layout", "TP8 DP8", "--isl", "8k", "--osl", "1k", "--concurrency", "64")
    done = cli("solve", "kimi-k3", *job, *flags)
    assert done.code == code
    assert not done.out
    assert part in done.err
    assert done.err.count("\n") == 1


def test_tpot_is_sought_from_two_output_tokens_on() -> None:
    """One output token has no time between tokens: refused where it is given, left out where it is searched."""
    on = ("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8")
    one = planner.Workload(isl=8192, osl=1, concurrency=64)
    for asked in ("tpot<=5s", "serving_tpot_s<=5s", "decode.tpot_s<=5s"):
        with pytest.raises(planner.PlannerError, match="no time between tokens"):
            planner.solve(*on, one, "hbm_bandwidth", asked)
    found = planner.solve(*on, planner.Workload(isl=8192, osl=1024, concurrency=64), "osl", "tpot<=100ms")
    assert found.value >= 2


def test_variables_stay_within_what_a_workload_may_say() -> None:
    on = ("deepseek-v3", "h200-8", "TP8")
    drafted = planner.Workload(isl=1024, osl=1024, concurrency=8, draft_tokens=3, accepted_length=2)
    assert planner.solve(*on, drafted, "draft_tokens", "tpot<=10s").value == 64
    job = planner.Workload(isl=1024, osl=64, concurrency=8)
    case = case_of(*on[:2])
    point = point_of(case, Layout.parse(on[2], case.model), job)
    assert variable("prefix_hit", case, job, point).high == 1 - 1 / 1024
    assert variable("memory_fraction", case, job, point).low == 0.01


def test_a_sought_prompt_takes_a_prefix_hit(cli: Cli) -> None:
    job = ("--on", "zhenwu-m890-supernode", "--layout", "TP8 DP8", "--osl", "1k", "--concurrency", "64")
    done = cli("solve", "kimi-k3", *job, "--for", "context", "--target", "memory", "--prefix-hit", "0.5", "--json")
    assert done.code == 0
    assert done.json["present"] is None
    assert done.json["words"]["present"] == ""


def test_next_to_the_best_is_said() -> None:
    workload = planner.Workload(isl=8192, osl=1024, concurrency=64)
    found = planner.solve("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8", workload, "hbm_bandwidth", "tpot<=20ms")
    assert found.close.startswith("within 0.21 % of the best any value gives")
