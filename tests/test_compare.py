"""Deployments side by side and break-evens: differences add up, ratios and crossings are what single runs give."""

from typing import Any

import pytest
from conftest import Cli

import planner
from planner.evaluate.break_even import NAMES, SERVER, break_even, servers_of
from planner.evaluate.case import placed
from planner.evaluate.compare import compare
from planner.evaluate.crossing import crossing, grid
from planner.evaluate.estimate import run
from planner.specs.library import load_model, load_system
from planner.specs.precision import in_precision
from planner.specs.workload import Workload

K3, LINEAR, SYSTEM = "kimi-k3", "kimi-linear-48b-a3b", "zhenwu-m890-supernode"
JOB = Workload(isl=8192, osl=1024, concurrency=128)
SETS: dict[str, dict[str, Any]] = {
    "layouts": {"models": [K3], "systems": [SYSTEM], "layouts": ["TP8 DP8", "TP4 DP16", "TP8 DP4 PP2"]},
    "stacks": {"models": [K3], "systems": [SYSTEM], "layouts": ["TP8 DP8"], "stacks": ["sail-tuned", "sail-migration"]},
    "systems": {"models": [LINEAR], "systems": [SYSTEM, "b200-8"], "layouts": ["TP8"]},
    "models": {"models": [LINEAR, "qwen3-30b-a3b"], "systems": [SYSTEM], "layouts": ["TP4"]},
    "weights": {
        "models": [LINEAR],
        "systems": [SYSTEM],
        "layouts": ["TP4"],
        "weights": ["bf16", "fp8", "int4-experts"],
    },
}


@pytest.mark.parametrize("name", SETS)
def test_differences_add_up(name: str) -> None:
    """Over operators they sum to the difference of the step and of the prompt, whatever is compared."""
    found = compare(SETS[name]["models"], SETS[name]["systems"], SETS[name]["layouts"], JOB,
                    stacks=SETS[name].get("stacks"), weights=SETS[name].get("weights"))  # fmt: skip
    first = found.variants[0]
    assert found.varied == [name.removesuffix("s") if name != "weights" else name]
    for variant in found.variants[1:]:
        for phase, total in variant.totals.items():
            difference = total - first.totals[phase]
            assert sum(variant.changed[phase].values()) == pytest.approx(difference, abs=1e-9 * first.totals[phase])


def test_headlines_are_the_estimators() -> None:
    """Values and ratios are those of single estimates."""
    found = compare([K3], [SYSTEM], ["TP8 DP8", "TP4 DP16"], JOB)
    one, two = (planner.estimate(K3, SYSTEM, layout, JOB) for layout in ("TP8 DP8", "TP4 DP16"))
    assert found.variants[0].headlines["decode.step_s"] == pytest.approx(one.decode.step_s, rel=1e-12)
    assert found.variants[1].ratios["serving.ttft_s"] == pytest.approx(two.serving.ttft_s / one.serving.ttft_s)
    assert set(found.variants[0].ratios.values()) == {1.0}


FLAGS = ["--on", SYSTEM, "--isl", "8k", "--osl", "1k", "--concurrency", "64"]


def test_the_command_prints_and_gives_json(cli: Cli) -> None:
    """Text names every deployment and operator; JSON has the keys."""
    line = ["compare", K3, *FLAGS, "--layout", "TP8 DP8|TP4 DP16"]
    drawn = cli(*line)
    assert (drawn.code, drawn.err) == (0, "")
    for word in ("over A", "TPOT as served", "decode step", "operator", "together", "kda.project"):
        assert word in drawn.out
    data = cli(*line, "--json").json
    assert list(data) == ["workload", "varied", "variants"]
    assert data["variants"][1]["name"] == "TP4 DP16 EP64"


def test_one_output_token_has_no_tpot(cli: Cli) -> None:
    """A row that means nothing is left out."""
    answer = cli("compare", K3, "--on", SYSTEM, "--isl", "8k", "--osl", "1", "--concurrency", "64",
                 "--layout", "TP8 DP8|TP4 DP16")  # fmt: skip
    assert answer.code == 0
    assert "TPOT" not in answer.out


def test_nothing_that_fits_is_exit_code_3(cli: Cli) -> None:
    """As for an estimate: a valid question, nothing feasible."""
    assert cli("compare", K3, *FLAGS, "--layout", "TP8|TP4").code == 3


BAD = {
    "alone": (["compare", K3, *FLAGS, "--layout", "TP8 DP8"], "one deployment alone"),
    "twice": (["compare", K3, *FLAGS, "--layout", "TP8 DP8|TP8 DP8"], "given twice"),
    "empty": (["compare", K3, *FLAGS, "--layout", "TP8 DP8|"], "empty part"),
    "unknown-model": (["compare", f"{K3},kimi-k4", *FLAGS, "--layout", "TP8 DP8"], "did you mean kimi-k3"),
    "unknown-stack": (["compare", K3, *FLAGS, "--layout", "TP8 DP8", "--stack", "sail-tuned,x"], "unknown stack"),
    "unknown-weights": (["compare", K3, *FLAGS, "--layout", "TP8 DP8", "--weights", "fp8,fp9"], "fp9"),
    "layout": (["compare", K3, *FLAGS, "--layout", "TP8 DP8|TP64"], "does not divide the 96 heads"),
    "too-many": (["compare", K3, *FLAGS, "--layout", "|".join(f"TP8 DP{n}" for n in range(1, 9)),
                  "--stack", "sail-tuned,sail-migration"], "at most 12"),
    "break-even": (["break-even", "attentio", K3, "--on", SYSTEM, "--layout", "TP8 DP8"], "did you mean attention"),
    "no-recurrence": (["break-even", "attention", "qwen3-8b", "--on", SYSTEM, "--layout", "TP8"], "has only gqa"),
    "no-experts": (["break-even", "experts", "qwen3-8b", "--on", SYSTEM, "--layout", "TP8"], "has no experts"),
    "one-chip": (["break-even", "tp-ep", LINEAR, "--on", SYSTEM, "--layout", "TP1"], "splits nothing"),
    "no-supernode": (["break-even", "supernode", LINEAR, "--on", "b200-8", "--layout", "TP8"], "larger than 8"),
    "too-many-chips": (["break-even", "tp-ep", K3, "--on", SYSTEM, "--layout", "TP8 DP16"], "takes 128 chips"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name: str, cli: Cli) -> None:
    """Where, what, what to do; exit code 2."""
    arguments, words = BAD[name]
    answer = cli(*arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), answer.err
    assert words in answer.err
    assert "internal fault" not in answer.err


def line(slope: float, start: float) -> Any:
    """A straight cost."""
    return lambda values: [start + slope * value for value in values]


@pytest.mark.parametrize("at", [2, 3, 17, 100, 777, 4095, 4096])
def test_a_crossing_is_exact(at: int) -> None:
    """The first whole x at which the second side is cheaper."""
    found = crossing("t", "x", ("a", "b"), (line(1, 0), line(0, at - 0.5)), 1, 4096)
    assert found.crossings == [{"at": float(at), "wins": "b"}]
    assert (found.wins_first, found.wins_last) == ("a", "b")


def test_no_crossing_says_who_wins() -> None:
    """One side throughout, or no difference."""
    assert crossing("t", "x", ("a", "b"), (line(1, 0), line(2, 0)), 1, 100).sentence == "none from 1 to 100: a wins"
    assert crossing("t", "x", ("a", "b"), (line(1, 0), line(1, 0)), 1, 100).sentence == "none: equal from 1 to 100"


def test_there_and_back() -> None:
    """Every crossing is found, in order."""
    bump: Any = lambda values: [abs(value - 500.0) for value in values]  # noqa: E731
    found = crossing("t", "x", ("bump", "flat"), (bump, line(0, 100.5)), 1, 4096)
    assert [(c["at"], c["wins"]) for c in found.crossings] == [(400.0, "bump"), (601.0, "flat")]


def test_the_grid_has_both_ends_once() -> None:
    """Whole, rising, from low to high."""
    for low, high in ((1, 1), (1, 8), (1024, 1048576)):
        points = grid(low, high)
        assert points == sorted(set(points))
        assert (points[0], points[-1]) == (low, high)


@pytest.mark.parametrize("name", NAMES)
def test_break_evens_print(name: str, cli: Cli) -> None:
    """Every comparison answers for the first model, as text and as JSON."""
    arguments = ["break-even", name, K3, "--on", SYSTEM, "--layout", "TP8 DP8"]
    drawn = cli(*arguments)
    assert (drawn.code, drawn.err) == (0, "")
    assert "break-even:" in drawn.out
    assert cli(*arguments, "--json").json["crossings"]


def step(model: Any, system: Any, layout: str, concurrency: int, stack: str | None = None) -> float:
    """A decode step by itself."""
    job = JOB.model_copy(update={"concurrency": concurrency})
    say, _ = run(placed(model, system, layout, job, stack, None)[3])
    return float(say.rows["decode_step_s"].value)


def test_the_crossing_of_formats_is_where_single_runs_cross() -> None:
    """FP8 experts overtake MXFP4 ones that are computed in BF16, at the batch found and not one earlier."""
    found = break_even("experts", K3, SYSTEM, "TP8 DP8", JOB, stack="sail-migration").crossings[0]
    at = int(found.crossings[0]["at"])
    model, system = load_model(K3), load_system(SYSTEM)

    def faster(group: int) -> bool:
        fp8, mxfp4 = (step(in_precision(model, f"{f}-experts"), system, "TP8 DP8", group * 8, "sail-migration")
                      for f in ("fp8", "mxfp4"))  # fmt: skip
        return fp8 < mxfp4

    assert faster(at)
    assert not faster(at - 1)


def test_recurrent_attention_wins_at_length() -> None:
    """One crossing: a state of one size against a cache that grows."""
    for found in break_even("attention", K3, SYSTEM, "TP8 DP8", JOB).crossings:
        assert found.wins_last == "kda"
        assert len(found.crossings) == 1
        assert 1024 < float(found.crossings[0]["at"]) < 65536


def test_servers_are_the_same_chips() -> None:
    """Only what joins them differs; inside one server nothing does."""
    system = load_system(SYSTEM)
    ordinary = servers_of(system)
    assert (ordinary.chips, ordinary.servers, ordinary.domain_chips) == (64, 8, SERVER)
    model = load_model(LINEAR)
    assert step(model, system, "TP8", 8) == pytest.approx(step(model, ordinary, "TP8", 8), rel=1e-12)
    assert step(model, system, "TP8 DP8", 512) != step(model, ordinary, "TP8 DP8", 512)


def test_caches_side_by_side_differ_in_what_reads_them(cli: Cli) -> None:
    flags = (
        "--on",
        "zhenwu-m890-supernode",
        "--layout",
        "TP8 DP8",
        "--isl",
        "8k",
        "--osl",
        "1k",
        "--concurrency",
        "64",
    )
    first, second = cli("compare", "kimi-k3", *flags, "--kv-dtype", "bf16,fp8", "--json").json["variants"]
    assert (first["kv_dtype"], second["kv_dtype"]) == ("bf16", "fp8")
    assert [name for name, change in second["changed"]["decode"].items() if change] == ["mla.core"]
    assert first["expected_error"]["basis"] == "blind"
    estimated = cli("estimate", "kimi-k3", *flags, "--kv-dtype", "fp8", "--json").json
    assert second["headlines"]["decode.step_s"] == estimated["decode"]["step_s"]


def test_one_layout_spelled_twice_is_refused(cli: Cli) -> None:
    flags = ("--on", "zhenwu-m890-supernode", "--isl", "8k", "--osl", "1k", "--concurrency", "64")
    done = cli("compare", "kimi-k3", *flags, "--layout", "TP8 DP8|tp8,dp8,ep64")
    assert done.code == 2
    assert done.err == "compare: TP8 DP8 EP64 is there twice; give each once\n"


def test_the_bill_turns_elsewhere_than_the_step(cli: Cli) -> None:
    """FP8 experts compute faster and read more: with prefill they are cheaper at a smaller batch than the step says."""
    found = cli("break-even", "experts", "gpt-oss-120b", "--on", "h100-8", "--layout", "TP8", "--json").json
    at = {(c["title"].split(" by ")[0], c["sides"][1]): c["crossings"][0]["at"] for c in found["crossings"]}
    assert at["bill per output token as served", "fp8"] < at["decode step alone", "fp8"]
    flags = ("--on", "h100-8", "--layout", "TP8", "--isl", "8k", "--osl", "1k")
    turn = int(at["bill per output token as served", "fp8"])
    for load, cheaper in ((turn, True), (turn - 1, False)):
        pair = cli("compare", "gpt-oss-120b", *flags, "--concurrency", str(load), "--weights",
                   "mxfp4-experts,fp8-experts", "--json").json["variants"]  # fmt: skip
        assert (pair[1]["ratios"]["cost.usd_per_million_output_tokens"] < 1) is cheaper


def test_a_crossing_beyond_memory_says_so(cli: Cli) -> None:
    shown = cli("break-even", "tp-ep", "deepseek-v3", "--on", "h200-8", "--layout", "TP8").out
    assert "(out of reach: " in shown
    nothing = cli("break-even", "experts", "kimi-k3", "--on", "h200-8", "--layout", "TP8")
    assert nothing.code == 3
    assert "0 and 0 requests fit" in nothing.out


def test_supernode_spreads_no_more_ranks_than_experts(cli: Cli) -> None:
    done = cli("break-even", "supernode", "minimax-m1", "--on", "zhenwu-m890-supernode", "--layout", "TP1", "--json")
    assert done.json["crossings"][-1]["high"] == 32


def test_a_stage_that_cannot_be_cut_both_ways_is_named(cli: Cli) -> None:
    done = cli("break-even", "tp-ep", "deepseek-v3", "--on", "zhenwu-m890-supernode", "--layout", "DP64")
    assert done.code == 2
    assert "its stages of 64 chips cannot have TP64 in the experts" in done.err


def test_experts_of_a_model_without_any_are_refused(cli: Cli) -> None:
    job = ("--on", "h200-8", "--layout", "TP8", "--isl", "1k", "--osl", "64", "--concurrency", "8")
    done = cli("compare", "llama-3.1-8b", *job, "--weights", "fp8-experts,bf16-experts")
    assert done.code == 2
    assert "has no experts" in done.err
