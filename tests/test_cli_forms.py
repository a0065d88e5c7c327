"""The command line's forms: help, names and errors as snapshots, tables by their words, JSON by the contract's keys."""

import re
from typing import Any

import pytest
from conftest import Answer, Cli
from syrupy.assertion import SnapshotAssertion

K3, LINEAR, SYSTEM = "kimi-k3", "kimi-linear-48b-a3b", "zhenwu-m890-supernode"
POINT = [K3, "--on", SYSTEM, "--layout", "TP8 DP8", "--isl", "8k", "--osl", "1k", "--concurrency", "256"]
PLAN = ["plan", LINEAR, "--on", SYSTEM, "--isl", "4k", "--osl", "512", "--chips", "8"]
WIDTH = 120


def shown(answer: Answer) -> str:
    """Exit code and both streams, spaces at line ends apart."""
    lines = [line.rstrip() for line in f"exit {answer.code}\n{answer.out}{answer.err}".splitlines()]
    return "\n".join(lines)


@pytest.mark.parametrize("arguments", [["--help"], ["specs", "--help"]], ids=" ".join)
def test_help(arguments: list[str], cli: Cli, snapshot: SnapshotAssertion) -> None:
    """What a newcomer meets first changes only on purpose; frames and options of typer's own may change."""
    text = cli(*arguments).out
    usage, _, commands = re.sub(r"[^\S\n]+", " ", re.sub(r"[\u2500-\u257f]", "", text)).partition("Options")
    lines = (usage + commands[commands.index("Commands") :]).splitlines()
    assert "\n".join(line.strip() for line in lines if line.strip()) == snapshot


def test_names(cli: Cli, snapshot: SnapshotAssertion) -> None:
    """Adding a spec shows in the list, and nothing leaves it unseen."""
    assert shown(cli("specs", "list")) == snapshot


ERRORS = {
    "unknown-model": ["estimate", "kimi-k4", *POINT[1:]],
    "unknown-system": ["plan", K3, "--on", "zhenwu-m890", "--isl", "8k", "--osl", "1k"],
    "bare-number": [*PLAN, "--tpot", "50"],
    "heads": ["estimate", *POINT, "--layout", "TP64"],
    "experts": ["estimate", *POINT, "--layout", "TP8 DP6 EP48 RED0"],
    "too-many-chips": ["estimate", *POINT, "--layout", "TP8 DP16"],
    "context": ["estimate", *POINT, "--isl", "1M"],
    "unknown-quantity": ["explain", *POINT, "--quantity", "decode_step"],
    "no-terminal": [],
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, cli: Cli, snapshot: SnapshotAssertion) -> None:
    """An error says where, what and what to do, in words that change only on purpose."""
    assert shown(cli(*ERRORS[name])) == snapshot


TABLES = {
    "plan": (PLAN, ["layout", "batch", "TTFT", "TPOT", "tok/s/chip", "tok/s/user", "GB/chip", "$/M out", "bound by",
                    "Front", "Ruled out", "Estimated inputs", "requests in flight over all chips", "expected error",
                    "sail-tuned", "8 chips"]),
    "estimate": (["estimate", *POINT], ["TTFT", "TPOT", "end to end", "tok/s per user", "tok/s per chip", "weights",
                                        "USD per million", "requests that fit", "Memory of a chip", "decode:",
                                        "prefill:", "pool",
                                        "operator", "floor", "reached", "bound", "basis", "Estimated inputs"]),
    "fit": (["fit", K3, "--on", SYSTEM], ["capacity", "usable", "weights", "activations", "communication buffers",
                                          "runtime", "left for requests", "cache per token", "state per sequence",
                                          "fewest chips", "memory fraction", "1,048,576 tokens"]),
    "explain": (["explain", *POINT], ["operator", "floor", "bound", "References", "named quantities", "arXiv"]),
    "formula": (["explain", *POINT, "--quantity", "decode_step_s", "--latex"],
                ["decode_step_s", r"\mathrm{decode\_step\_s}"]),
    "sensitivities": (["explain", *POINT, "--sensitivities"],
                      ["Elasticities", "input", "chip.memory_bandwidth", "weaker"]),
    "tornado": (["explain", *POINT, "--tornado"], ["TTFT", "TPOT", "$/M out", "group of", "would narrow"]),
    "solve": (["solve", *POINT, "--for", "context", "--target", "memory"],
              ["ask.isl =", "the largest that meets", "there:", "now, at 8,192", "bound there by"]),
    "model": (["specs", "show", K3], ["parameters, text", "active a token", "weights as shipped", "cache a token",
                                      "state and full windows", "kda", "mla", "moe", "max_context"]),
    "chip": (["specs", "show", "zhenwu-m890"],
             ["memory_bandwidth", "TB/s", "estimated", "source", "2.8 TB/s to 4.9 TB/s"]),
    "system": (["specs", "show", SYSTEM], ["pool", "9.216 TB", "chips", "64", "ICN64"]),
    "nothing-fits": ([*PLAN, "--tpot", "1us"], ["nearest", "tightest constraint: tpot", "TPOT is", "Ruled out"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables_have_their_words_and_fit_the_width(name: str, cli: Cli) -> None:
    """Drawn answers keep their columns and headings, and never run over 120 columns."""
    arguments, words = TABLES[name]
    found = cli(*arguments)
    assert found.code == (3 if name == "nothing-fits" else 0)
    assert found.err == ""
    folded = " ".join(found.out.split())
    assert [word for word in words if word not in folded] == []
    longest = max(found.out.splitlines(), key=len)
    formulas = name == "formula"
    assert formulas or len(longest) <= WIDTH, longest
    assert "\x1b" not in found.out


@pytest.mark.parametrize("name", TABLES)
def test_drawn_answers_hold_no_raw_numbers(name: str, cli: Cli) -> None:
    """People read rounded numbers: no seventeen-digit floats, no NaN, no Python objects."""
    text = cli(*TABLES[name][0]).out
    assert re.findall(r"\d\.\d{9,}", text) == []
    assert re.findall(r"\bnan\b|\binf\b|None\b|<[a-z_.]+ object", text) == []


LAYOUT = ["TP", "DP", "EP", "ETP", "PP", "DCP", "CP", "RED", "chips"]
MEMORY = [
    "fits", "binding", "policy", "capacity_bytes_per_chip", "weights_bytes_per_chip", "activations_bytes_per_chip",
    "runtime_bytes_per_chip", "kv_budget_bytes_per_chip", "kv_bytes_per_token_per_chip",
    "state_bytes_per_sequence_per_chip", "max_concurrency", "max_tokens", "pool.capacity_bytes", "pool.used_bytes",
]  # fmt: skip
ESTIMATE = [
    "model", "system", "stack", "feasible", "violations", "prefill.ttft_s", "prefill.tok_s_per_chip", "decode.step_s",
    "decode.tok_s_per_chip", "decode.tpot_s", "decode.tok_s_per_user", "serving.ttft_s", "serving.e2e_s",
    "serving.tok_s_per_chip", "serving.arrivals", "cost.usd_per_million_output_tokens",
    "cost.usd_per_million_input_tokens", "cost.usd_per_million_total_tokens", "breakdown", "range", "expected_error",
    "assumptions", *(f"layout.{key}" for key in LAYOUT), *(f"memory.{key}" for key in MEMORY),
]  # fmt: skip
BREAKDOWN = ["phase", "operator", "count", "time_s", "floor_s", "flops", "bytes", "network_bytes", "bound", "basis"]
KEYS: dict[str, tuple[list[str], list[str]]] = {
    "specs-list": (["specs", "list"], ["models", "chips", "systems", "stacks"]),
    "specs-show": (["specs", "show", K3], [
        "derived.total_params", "derived.active_params", "derived.weights_bytes", "derived.weights_bytes_by_part.text",
        "derived.weights_bytes_by_part.vision", "derived.weights_bytes_by_part.draft", "derived.params_by_group",
        "derived.kv_bytes_per_token", "derived.kv_bytes_per_token_in_window", "derived.state_bytes_per_sequence",
        "layers", "attention_kinds", "max_context"]),
    "fit": (["fit", K3, "--on", SYSTEM], [*MEMORY, "min_chips"]),
    "fit-layout": (["fit", K3, "--on", SYSTEM, "--layout", "TP8 DP8", "--max-len", "8k", "--concurrency", "64"],
                   [*MEMORY, "min_chips"]),
    "fit-not": (["fit", K3, "--on", SYSTEM, "--layout", "TP8"], [*MEMORY, "min_chips"]),
    "estimate": (["estimate", *POINT], ESTIMATE),
    "estimate-infeasible": (["estimate", *POINT, "--concurrency", "1000000"], ESTIMATE),
    "estimate-one-token": (["estimate", *POINT, "--osl", "1"], ESTIMATE),
    "plan": (PLAN, ["evaluated", "feasible", "seconds", "setup_seconds", "top", "front", "rejected", "nearest",
                    *(f"best.{key}" for key in ESTIMATE)]),
    "plan-infeasible": ([*PLAN, "--tpot", "1us"], ["evaluated", "feasible", "seconds", "setup_seconds", "best", "top",
                        "front", "rejected", "nearest.constraint", "nearest.missed_by", "nearest.layout"]),
    "explain": (["explain", *POINT], ["breakdown", "quantities.decode_step_s.value", "quantities.decode_step_s.unit",
                                      "quantities.decode_step_s.sentence", "inputs", "references", "model",
                                      "elasticities", "kinks", "tornado", "narrow_most"]),
    "solve": (["solve", *POINT, "--for", "hbm_bandwidth", "--target", "tpot<=60ms"],
              ["variable", "value", "unit", "binding", "target", "extreme", "reached", "neighbour"]),
}  # fmt: skip


def has(data: Any, key: str) -> bool:
    """A dotted key is present."""
    for part in key.split("."):
        if not isinstance(data, dict) or part not in data:
            return False
        data = data[part]
    return True


@pytest.mark.parametrize("name", KEYS)
def test_json_has_the_contract_s_keys(name: str, cli: Cli) -> None:
    """Scripts read these keys: every one is there, whatever the answer."""
    arguments, keys = KEYS[name]
    found = cli(*arguments, "--json")
    assert found.code in (0, 3)
    assert found.err == ""
    assert [key for key in keys if not has(found.json, key)] == []


def test_json_rows_have_the_contract_s_keys(cli: Cli) -> None:
    """Rows of breakdown, assumptions, front, violations and ranges carry what the contract says."""
    answer = cli("estimate", *POINT, "--json").json
    assert all(set(BREAKDOWN) <= set(row) for row in answer["breakdown"])
    assert all({"name", "value", "low", "high", "source"} <= set(row) for row in answer["assumptions"])
    assert {"basis", "median_fraction"} <= set(answer["expected_error"])
    assert answer["expected_error"]["basis"] in ("calibrated", "anchored", "blind")
    assert all(has(answer, key) and low <= high for key, (low, high) in answer["range"].items())
    assert "decode.tpot_s" in answer["range"]
    plan = cli(*PLAN, "--json").json
    assert all({"tok_s_per_chip", "tok_s_per_user"} <= set(row) for row in plan["front"])
    assert plan["best"] == plan["top"][0]
    assert plan["feasible"] <= plan["evaluated"]
    late = cli("estimate", *POINT, "--concurrency", "1000000", "--json").json
    assert all({"constraint", "needed", "available", "sentence"} <= set(row) for row in late["violations"])
    assert late["violations"]


def test_hidden_time_is_an_entry_of_its_own(cli: Cli) -> None:
    """Overlap shows as a negative row, so that rows still add up."""
    rows = cli("estimate", *POINT, "--stack", "sail-tuned", "--json").json["breakdown"]
    assert all(row["time_s"] < 0 for row in rows if row["operator"] == "overlap")


def test_a_quantity_without_a_meaning_is_null(cli: Cli) -> None:
    """One output token has no time between tokens."""
    answer = cli("estimate", *POINT, "--osl", "1", "--json").json
    assert answer["decode"]["tpot_s"] is None
    assert answer["decode"]["tok_s_per_user"] is None
    assert "TPOT" in cli("estimate", *POINT, "--osl", "1").out


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        ([*POINT, "--layout", "tp8,dp8,ep64"], POINT),
        ([*POINT, "--isl", "8192", "--osl", "1024"], POINT),
        ([*POINT, "--kv-dtype", "BF16"], POINT),
        ([*POINT, "--arrivals", "STEADY", "--prefix-hit", "0.0"], POINT),
        ([*POINT, "--chips", "64"], POINT),
    ],
    ids=["layout", "lengths", "format", "arrivals", "chips"],
)
def test_two_ways_to_say_the_same(arguments: list[str], same: list[str], cli: Cli) -> None:
    """Case, commas and 8k for 8192 change nothing in the answer."""
    assert cli("estimate", *arguments, "--json").out == cli("estimate", *same, "--json").out


def test_every_command_takes_json(cli: Cli) -> None:
    """--json is an option of every command, and help names it."""
    for command in ("plan", "estimate", "fit", "explain", "solve"):
        assert "--json" in cli(command, "--help").out
    for command in ("list", "show", "check"):
        assert "--json" in cli("specs", command, "--help").out


def test_kv_precision_is_an_input_of_its_own(cli: Cli) -> None:
    """Half the bytes a value, half the cache a token; the weights stay."""
    wide = cli("fit", K3, "--on", SYSTEM, "--layout", "TP8 DP8", "--json").json
    narrow = cli("fit", K3, "--on", SYSTEM, "--layout", "TP8 DP8", "--kv-dtype", "fp8", "--json").json
    assert narrow["kv_bytes_per_token_per_chip"] == wide["kv_bytes_per_token_per_chip"] / 2
    assert narrow["weights_bytes_per_chip"] == wide["weights_bytes_per_chip"]
    assert narrow["state_bytes_per_sequence_per_chip"] == wide["state_bytes_per_sequence_per_chip"]
