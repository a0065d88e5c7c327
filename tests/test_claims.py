"""The shipped claim, the split of a gain, cases one by one against the estimator, and claim files that are refused."""

import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import Cli

import planner
from planner.errors import BadInput
from planner.evidence.claim_file import Workshop, claim_path, read_claim
from planner.evidence.claims import Claims, claims, patches, shapley
from planner.specs.workload import Workload

SMALL = {
    "name": "small", "title": "a small claim", "source": "nobody", "url": "none", "date": "2026-01-01",
    "model": "kimi-linear-48b-a3b", "system": "zhenwu-m890-supernode", "baseline": "sail-migration",
    "claimed": {
        "ttft": {"ratio": 0.9, "tolerance": 0.2, "stated": "shorter", "unstated": "how"},
        "decode_per_chip": {"ratio": 1.5, "tolerance": 0.5, "stated": "faster", "unstated": "batch"},
    },
    "changes": {
        "E": {"title": "exchange", "like": "sail-tuned", "take": ["links.dispatch", "links.combine"]},
        "A": {"title": "recurrence", "like": "sail-tuned", "take": ["kernels.recurrent_decode"]},
    },
    "assumptions": {
        "before_e": {"title": "start-up before E", "before": "E", "choices": {
            "as it is": {}, "slow": {"stack": {"links": {"dispatch": {"alpha": "80 us"}}}}}},
        "layout": {"title": "layout", "choices": {"one": {"layout": "TP2 DP4"}, "two": {"layout": "TP4 DP2"}}},
        "prompt": {"title": "prompt", "choices": {"4k": {"isl": "4k"}}},
        "load": {"title": "load", "choices": {"four": {"requests_per_chip": 4}, "slo": {"step_within": "20 ms"}}},
        "chip": {"title": "chip", "choices": {"central": {"chip": "central"}, "low": {"chip": "low"}}},
    },
    "length": {"longest": 65536, "exponent": 1.1, "stated": "linear"},
}  # fmt: skip


def small(**changes: Any) -> dict[str, Any]:
    """The small claim with keys replaced, or left out where None; 'a.b' reaches into mappings."""
    data: dict[str, Any] = deepcopy(SMALL)
    for path, value in changes.items():
        *above, last = path.split(".")
        place = data
        for key in above:
            place = place[key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return data


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """A claim as a file."""

    def write(**changes: Any) -> str:
        path = tmp_path / "claim.yaml"
        path.write_text(yaml.safe_dump(small(**changes), sort_keys=False), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="module")
def shipped() -> Claims:
    return claims()


def test_parts_add_up_to_the_whole(shipped: Claims) -> None:
    """Shapley parts of every case sum to the log of the ratio together."""
    for case in shipped.cases:
        for metric in shipped.claim["claimed"]:
            if case["fits"]:
                parts = sum(case[metric]["shapley"].values())
                assert parts == pytest.approx(math.log(case[metric]["together"]), abs=1e-12)


def test_shares_add_up_to_one(shipped: Claims) -> None:
    """Over cases that hold, the parts of a figure are the whole of its gain; their ranges are ordered."""
    for bands in shipped.shares.values():
        assert set(bands) == {"E", "F", "A"}
        for band in bands.values():
            assert band["p10"] <= band["p50"] <= band["p90"]


def test_shapley_of_known_games() -> None:
    """A sum gives each its own; a pair that works only together is halved."""
    own = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])[:, None]
    assert shapley(own)[:, 0] == pytest.approx([1, 2, 4])
    pair = np.array([0.0, 0.0, 0.0, 1.0])[:, None]
    assert shapley(pair)[:, 0] == pytest.approx([0.5, 0.5])


def test_the_shipped_claim_says_what_an_earlier_study_found(shipped: Claims) -> None:
    """The claim can hold, in few cases, in states that differ; expert arithmetic is the largest part of decode."""
    holds = shipped.holds
    assert 0 < holds["count"] < holds["of"] / 20
    assert holds["of"] + holds["left_out"] == holds["cases"] == len(shipped.cases)
    medians = {name: band["p50"] for name, band in shipped.shares["decode_per_chip"].items()}
    assert max(medians, key=lambda name: medians[name]) == "F"
    assert any("ttft: not identifiable which change is the largest" in note for note in shipped.notes)


def test_counts_by_choice_add_up(shipped: Claims) -> None:
    """Every assumption splits the same cases."""
    for choices in shipped.holds["by_assumption"].values():
        assert sum(count["holds"] for count in choices.values()) == shipped.holds["count"]
        assert sum(count["of"] for count in choices.values()) == shipped.holds["of"]


def test_a_prompt_does_not_stay_linear_to_the_longest(shipped: Claims) -> None:
    """A quarter of the layers attend to everything: the prompt ends up between linear and quadratic, a step below 1."""
    assert shipped.length is not None
    last = shipped.length["rows"][-1]
    assert last["tokens"] == 1048576
    assert 1.5 < last["prompt_exponent"] < 2
    assert 0 < last["step_exponent"] < 1
    assert shipped.length["within"]["prompt_s"] < 1048576 == shipped.length["within"]["step_s"]


def test_cases_are_what_the_estimator_gives(written: Callable[..., str]) -> None:
    """Arrays against one deployment at a time, with and without changes."""
    name = written()
    found = claims(name)
    claim, path = read_claim(name)
    shop = Workshop(claim, path)
    for case in found.cases:
        said = case["assumptions"]
        if said["load"] != "four" or said["chip"] != "central":
            continue
        layout = claim.assumptions["layout"].choices[said["layout"]].layout
        job = Workload(isl=4096, osl=1024, concurrency=32)
        rates, prompts = [], []
        for mask in range(4):
            choice = None if mask & 1 else said["before_e"]
            stack = shop.stack_of(patches(shop, mask, (choice,)))
            answer = planner.estimate(claim.model, claim.system, str(layout), job, stack=stack)
            rates.append(answer.decode.tok_s_per_chip)
            prompts.append(answer.prefill.ttft_s)
        assert case["decode_per_chip"]["together"] == pytest.approx(rates[3] / rates[0], rel=1e-12)
        assert case["decode_per_chip"]["alone"]["E"] == pytest.approx(rates[1] / rates[0], rel=1e-12)
        assert case["ttft"]["alone"]["A"] == pytest.approx(prompts[2] / prompts[0], rel=1e-12)


def test_a_target_runs_the_largest_batch_that_meets_it(written: Callable[..., str]) -> None:
    """At a fixed target a faster step also buys a larger batch: the ratio is no smaller than at a fixed batch."""
    found = claims(written())
    by = {(c["assumptions"]["before_e"], c["assumptions"]["layout"], c["assumptions"]["load"]): c
          for c in found.cases if c["assumptions"]["chip"] == "central"}  # fmt: skip
    for before, layout, load in by:
        if load == "slo" and by[before, layout, "slo"]["fits"]:
            fixed = by[before, layout, "four"]["decode_per_chip"]["together"]
            assert by[before, layout, "slo"]["decode_per_chip"]["together"] >= fixed * 0.95


def test_the_command_prints_and_gives_json(cli: Cli, written: Callable[..., str]) -> None:
    """Text and JSON of one claim file."""
    name = written()
    drawn = cli("claims", name)
    assert (drawn.code, drawn.err) == (0, "")
    for word in ("claimed", "alone", "holds in", "assumption", "decode step", "exponent"):
        assert word in drawn.out
    data = cli("claims", name, "--json").json
    assert list(data) == ["claim", "cases", "holds", "shares", "verdict", "notes", "length"]
    assert set(data["cases"][0]) == {"assumptions", "fits", "holds", "ttft", "decode_per_chip"}


def test_a_claim_nobody_meets_names_the_nearest_case(written: Callable[..., str]) -> None:
    """No case: no shares, and the nearest case in a sentence."""
    ratio = {"ratio": 50.0, "tolerance": 0.1, "stated": "x", "unstated": "y"}
    found = claims(written(**{"claimed.decode_per_chip": ratio, "length": None}))
    assert found.holds["count"] == 0
    assert found.length is None
    assert any("the nearest case gives" in note for note in found.notes)


def test_a_figure_that_does_not_move_has_no_shares(cli: Cli, written: Callable[..., str]) -> None:
    """A gain of nothing is split among nobody, and the answer stays plain JSON."""
    change = {"N": {"title": "nothing", "like": "sail-migration", "take": ["kernels.stream"]}}
    one = {"ratio": 1.0, "tolerance": 0.1, "stated": "same", "unstated": "all"}
    answer = cli(
        "claims", written(**{"changes": change, "claimed": {"ttft": one}, "assumptions.before_e": None}), "--json"
    )
    assert answer.code == 0, answer.err
    assert answer.json["shares"] == {"ttft": {}}
    assert answer.json["holds"]["count"] == answer.json["holds"]["of"] > 0


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no-baseline": ({"baseline": None}, "baseline is missing"),
    "unknown-baseline": ({"baseline": "sail-tune"}, "did you mean sail-tuned"),
    "unknown-model": ({"model": "kimi-k4"}, "did you mean kimi-k3"),
    "unknown-system": ({"system": "zhenwu"}, "unknown system"),
    "no-changes": ({"changes": {}}, "changes"),
    "unknown-key": ({"chnages": {}}, "unknown key chnages"),
    "unknown-stack-field": ({"changes.E": {"title": "e", "stack": {"linkz": {}}}}, "changes.E: unknown key linkz"),
    "unknown-nested-field": (
        {"changes.E": {"title": "e", "stack": {"links": {"dispatch": {"alfa": "1 us"}}}}}, "links.dispatch.alfa"),
    "unknown-taken-field": (
        {"changes.E": {"title": "e", "like": "sail-tuned", "take": ["links.dispach"]}}, "did you mean dispatch"),
    "takes-from-nothing": ({"changes.E": {"title": "e", "take": ["links"]}}, "add `like: STACK`"),
    "taken-from-unknown": ({"changes.E.like": "sail-tunde"}, "did you mean sail-tuned"),
    "ratio-without-a-meaning": (
        {"claimed": {"speed": {"ratio": 2.0, "tolerance": 0.1, "stated": "x", "unstated": "y"}}}, "speed has no"),
    "ratio-without-what-is-stated": ({"claimed.ttft": {"ratio": 0.9, "tolerance": 0.1}}, "stated is missing"),
    "ratio-of-zero": ({"claimed.ttft.ratio": 0}, "claimed.ttft.ratio"),
    "tolerance-above-the-ratio": ({"claimed.ttft.tolerance": 0.95}, "not below the ratio"),
    "before-unknown": ({"assumptions.before_e.before": "X"}, "no change 'X'"),
    "before-a-question": ({"assumptions.layout.before": "E"}, "`before` is for software"),
    "no-layout": ({"assumptions.layout": None}, "no assumption says the layout"),
    "no-load": ({"assumptions.load": None}, "no assumption says the load"),
    "mixed": ({"assumptions.prompt.choices": {"a": {"isl": "4k", "layout": "TP8"}}}, "both give layout"),
    "two-things": ({"assumptions.chip.choices": {"a": {"chip": "low", "means": {"ttft": "step"}}}}, "gives one thing"),
    "read-as-nothing": ({"assumptions.r": {"title": "r", "choices": {"a": {"means": {"ttft": "speed"}}}}}, "speed"),
    "software-in-a-question": (
        {"assumptions.prompt.choices": {"a": {"isl": "4k", "weights": "fp8"}}}, "gives one thing"),
    "twice": ({"assumptions.again": {"title": "t", "choices": {"a": {"isl": "8k"}}}}, "both give isl"),
    "bad-layout": ({"assumptions.layout.choices": {"a": {"layout": "TP3"}}}, "TP3"),
    "layout-beyond-the-system": ({"assumptions.layout.choices": {"a": {"layout": "TP8 DP16"}}}, "128 chips"),
    "bad-length": ({"assumptions.prompt.choices": {"a": {"isl": "many"}}}, "isl"),
    "beyond-the-context": ({"assumptions.prompt.choices": {"a": {"isl": "2M"}}}, "exceed"),
    "bare-target": ({"assumptions.load.choices": {"a": {"step_within": "20"}}}, "no unit"),
    "unknown-weights": (
        {"assumptions.before_e.choices": {"a": {"weights": "fp9"}}}, "unknown precision 'fp9'"),
    "unknown-chip-end": ({"assumptions.chip.choices": {"a": {"chip": "best"}}}, "chip"),
    "figure-without-unit": (
        {"assumptions.before_e.choices": {"a": {"stack": {"links": {"dispatch": {"alpha": 80}}}}}}, "80"),
    "rate-the-chip-lacks": (
        {"changes.E": {"title": "e", "stack": {"computes": {"int8": "int8"}}},
         "assumptions.before_e": {"title": "w", "choices": {"a": {"weights": "int8"}}}}, "no such rate"),
    "length-beyond-the-context": ({"length.longest": 4194304}, "length"),
    "workload-key": ({"workload": {"osll": 3}}, "osll"),
    "a-prompt-beside-the-assumptions": ({"workload": {"isl": 4096}}, "isl is set by the assumptions"),
    "one-output-token": (
        {"workload": {"osl": 1}, "claimed": {"tpot": {"ratio": 0.9, "tolerance": 0.1, "stated": "x", "unstated": "y"}}},
        "no time between tokens"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_claim_is_one_line(name: str, cli: Cli, written: Callable[..., str]) -> None:
    """Where, what, what to do; exit code 2; nothing on stdout."""
    changes, words = BAD[name]
    answer = cli("claims", written(**changes))
    assert (answer.code, answer.out) == (2, ""), answer.err
    assert answer.err.count("\n") == 1
    assert words in answer.err
    assert "internal fault" not in answer.err
    assert "claim.yaml" in answer.err


@pytest.mark.parametrize("name", ["k3-day0", "./none.yaml", "a\0b.yaml", "", "/dev/null", "./"])
def test_no_such_claim(name: str, cli: Cli) -> None:
    """A name or path that is no claim."""
    answer = cli("claims", name)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1), answer.err
    assert "internal fault" not in answer.err


def test_shipped_claims_read() -> None:
    """Every shipped claim is sound and named like its file."""
    for path in claim_path(None).parent.glob("*.yaml"):
        claim, _ = read_claim(path.stem)
        assert claim.name == path.stem
    with pytest.raises(BadInput):
        read_claim("none")


def test_a_claim_nothing_fits_is_infeasible(cli: Cli, written: Callable[..., str]) -> None:
    """A valid question without an answer: exit code 3, the reason still printed and in the JSON."""
    path = written(**{"assumptions.load.choices": {"a": {"requests_per_chip": 99999}}})
    done = cli("claims", path)
    assert done.code == 3
    assert "no case fits: nothing can be said" in done.out
    assert cli("claims", path, "--json").json["verdict"] == "no case fits: nothing can be said"


def test_the_verdict_says_how_many_and_the_reference(shipped: Claims) -> None:
    holds = shipped.holds
    assert f"possible, not shown: {holds['count']:,} of the {holds['of']:,} cases" in shipped.verdict
    assert f"ttft x {shipped.cases[0]['ttft']['together']:.3g}" in shipped.verdict
    assert "the reference case does not" in shipped.verdict
