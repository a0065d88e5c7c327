"""Cases met in public reports and questions, with the right value: what the library answers, case by case.

The cases are in fixtures/field_cases.yaml; those a command prints are golden cases, and those that are only reports are
in docs/field-cases.md. golden/field_index.yaml says for each id where it is.
"""

import json
import re
import shlex
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from conftest import Cli

from planner import Workload, estimate, fit
from planner.errors import BadLayout, PlannerError
from planner.evaluate.show import shown_model
from planner.evaluate.totals import cache_sizes, groups, totals
from planner.kinds.formats import splits, value_bytes
from planner.layout import Layout, cache_copies, head_refusal
from planner.model.tables import held_tables
from planner.quantities import Numbers
from planner.specs.huggingface import read
from planner.specs.library import load_chip, load_model, load_stack, load_system, names
from planner.specs.model import Model
from planner.stages import LAYER, heaviest
from planner.units import parse

TESTS = Path(__file__).resolve().parent
PUBLISHED, FIELD = TESTS / "fixtures" / "configs", TESTS / "fixtures" / "field_configs"
CASES: dict[str, Any] = yaml.safe_load((TESTS / "fixtures" / "field_cases.yaml").read_text(encoding="utf-8"))
CONFIGS: dict[str, Any] = CASES.pop("configs")
GIB = 2**30


def cases(check: str) -> Any:
    """The cases of one check as parameters, named by their ids."""
    counted: Counter[str] = Counter()
    found = []
    for case in CASES[check]:
        counted[case["id"]] += 1
        found.append(pytest.param(case, id=f"{case['id']}-{counted[case['id']]}"))
    return pytest.mark.parametrize("case", found)


def config(name: str) -> dict[str, Any]:
    """A small config by name, laid over its base."""
    own = dict(CONFIGS[name])
    base = CONFIGS[own.pop("base")] if "base" in own else {}
    if "fixture" in own:
        base = json.loads((PUBLISHED / f"{own.pop('fixture')}.json").read_text(encoding="utf-8"))
    return {**base, **own}


def from_config(folder: Path, data: dict[str, Any]) -> Model:
    """The model a config describes; `beside` goes into hf_quant_config.json."""
    whole = dict(data)
    side = whole.pop("beside", None)
    if side is not None:
        (folder / "hf_quant_config.json").write_text(json.dumps(side), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(whole), encoding="utf-8")
    return read(folder)


@cache
def model(name: str) -> Model:
    """A shipped model, or one of a fixture that is not shipped."""
    return load_model(name) if name in names("model") else read(FIELD / f"{name}.json")


def model_of(case: dict[str, Any], folder: Path) -> Model:
    """The model of a case, by name or by config."""
    inline = case.get("config") or (case.get("model") if case.get("model") in CONFIGS else None)
    return from_config(folder, config(inline)) if inline else model(case["model"])


def sizes(case: dict[str, Any]) -> Any:
    """Cache of a case's model at its format, one copy."""
    return cache_sizes(model(case["model"]), case.get("kv", "bf16"), "fp32")


@cases("pool")
def test_bytes_of_a_pool(case: dict[str, Any]) -> None:
    """So many tokens take so many bytes; which bytes are meant is part of the question."""
    kept = sizes(case)
    each = {
        "growing": kept.per_token * case["tokens"],
        "all": kept.per_token * case["tokens"] + kept.constant,
        "unwindowed": (kept.per_token + kept.per_token_in_window) * case["tokens"],
    }[case.get("part", "all")]
    assert each * case.get("requests", 1) / GIB == pytest.approx(case["gib"], rel=case["rtol"], abs=0)


@cases("longest")
def test_longest_request_in_a_budget(case: dict[str, Any]) -> None:
    """Full windows come off once; the rest of the budget is tokens of the layers that grow."""
    kept, budget = sizes(case), case["budget_gib"] * GIB
    most = int((budget - kept.constant) / kept.per_token)
    assert abs(most - case["tokens"]) <= case["within"]


@cases("copies")
def test_ranks_that_keep_the_same_tokens(case: dict[str, Any]) -> None:
    """Latents are whole on every rank, and heads repeat beyond their number: unique tokens are that much fewer."""
    copies = cache_copies(case["tp"], model(case["model"]))
    assert copies == case["copies"]
    assert case["gib"] / copies == case["unique_gib"]


@cases("heads")
def test_tp_that_heads_allow(case: dict[str, Any]) -> None:
    """TP divides the heads, whatever else it may break."""
    found = model(case["model"])
    assert [tp for tp in case["legal"] if head_refusal(tp, found)] == []
    assert all(head_refusal(tp, found) for tp in case["illegal"])
    if case.get("complete"):
        assert [tp for tp in range(1, 65) if not head_refusal(tp, found)] == case["legal"]


@cases("layouts")
def test_layouts_that_are_legal(case: dict[str, Any], tmp_path: Path) -> None:
    """A layout is taken, or refused with the rule that it breaks."""
    found = model_of(case, tmp_path)
    if case["refused"] is None:
        whole = str(Layout.parse(case["layout"], found)).split()
        assert set(case["layout"].split()) <= set(whole)
        return
    with pytest.raises(BadLayout, match=re.escape(case["refused"])):
        Layout.parse(case["layout"], found)


@cases("widths")
def test_widths_in_blocks(case: dict[str, Any]) -> None:
    """A whole width may end in part of a block, a cut one may not."""
    assert [tp for tp in case["tp"] if splits(case["width"], tp, case["format"])] == case["legal"]


@cases("slots")
def test_experts_of_a_rank(case: dict[str, Any]) -> None:
    """(experts + redundant) / EP, a whole number."""
    found = model(case["model"])
    layout = Layout.parse(case["layout"], found)
    assert (found.feed_forward["moe"].experts + layout.red) / layout.ep == case["slots"]


@cases("stages")
def test_stages_are_even(case: dict[str, Any]) -> None:
    """No stage has a layer more than it must; stages that hold no more than another are dropped from the list."""
    found = model(case["model"])
    layers = [stage[LAYER] for stage in heaviest(found, case["pp"])]
    counts = case["stages"]
    assert sum(size * count for size, count in counts.items()) == found.layers
    assert sum(counts.values()) == case["pp"]
    assert max(layers) == max(counts)
    assert min(layers) >= min(counts)


@cases("tables")
def test_tables_are_padded(case: dict[str, Any]) -> None:
    """Each rank's rows are a multiple of 64, so the padding depends on TP."""
    on = SimpleNamespace(
        layout=SimpleNamespace(tp=case["tp"]),
        model=SimpleNamespace(vocabulary=case["vocabulary"], width=1, table_value_bytes=1, table_format="bf16"),
        stack=SimpleNamespace(
            vocabulary_multiple=load_stack("nvidia-hopper").vocabulary_multiple, computes=SimpleNamespace()
        ),
    )
    held = held_tables(Numbers(), SimpleNamespace(speculates=False), on)  # type: ignore[arg-type]
    rows = held["head"]["tp"].all_bytes
    assert rows == pytest.approx(case["rows"], rel=1e-12)
    assert rows * case["tp"] == pytest.approx(case["padded"], rel=1e-12)


@cases("formats")
def test_bytes_of_a_format(case: dict[str, Any]) -> None:
    """Scales are part of a value's bytes."""
    found = value_bytes(case["format"]) * case["values"]
    assert found == pytest.approx(case["bytes"], rel=case["rtol"], abs=0)


@cases("units")
def test_units(case: dict[str, Any]) -> None:
    """GB is 10^9 bytes."""
    assert parse(case["text"], "B", "case") / GIB == pytest.approx(case["gib"], abs=0.005)


@cases("counts")
def test_counts_add_up(case: dict[str, Any], tmp_path: Path) -> None:
    """Makers count differently: with draft layers, with or without head and input table."""
    found = model_of(case, tmp_path)
    derived = shown_model(found, "bf16", "fp32")["derived"]
    known = {**derived["params_by_group"], **derived}
    value = sum(known[key] for key in case["plus"]) - sum(known[key] for key in case.get("minus", []))
    assert value == pytest.approx(case["value"], rel=case["rtol"], abs=0)


@cases("routed")
def test_routed_parameters(case: dict[str, Any]) -> None:
    """Experts at the width they work in."""
    parts = groups(model(case["model"])).values()
    routed = sum(count * w.parameters for count, weights in parts for w in weights if w.name == "routed")
    assert routed == pytest.approx(case["value"], rel=case["rtol"])


@cases("projected")
def test_projected_width(case: dict[str, Any]) -> None:
    """An output gate is as wide as the queries."""
    found = model(case["model"])
    _, weights = groups(found)["gqa"]
    wide = sum(w.parameters for w in weights if w.name in ("q", "k", "v", "output_gate"))
    assert wide / found.width == case["width"]


@cases("kinds")
def test_layers_of_each_kind(case: dict[str, Any], tmp_path: Path) -> None:
    """Layers by kind, from lists, patterns and frequencies."""
    if "fixture" in case:
        path = PUBLISHED / f"{case['fixture']}.json"
        assert case.get("absent") not in json.loads(path.read_text(encoding="utf-8"))
        found = read(path)
    else:
        found = model_of(case, tmp_path)
    kinds = [(found.attention[a].kind, found.feed_forward[f].kind) for a, f in found.layer_kinds()]
    assert Counter("+".join(pair) for pair in kinds) == case["layers"]


@cases("nested")
def test_language_part_is_found(case: dict[str, Any], tmp_path: Path) -> None:
    """The same model wherever the config keeps it; what stands beside it does not bind."""
    inner = config("base_dense")
    plain = from_config(tmp_path, inner)
    for key in reversed(case["within"]):
        inner = {key: inner}
    beside = {"architectures": ["SomeForConditionalGeneration"], "vision_config": {"num_heads": 3, "hidden_size": 9}}
    found = from_config(tmp_path, {**beside, **inner})
    note = {"note": plain.note}
    assert found.model_copy(update=note) == plain


@cases("refused")
def test_a_config_that_says_too_little_stops(case: dict[str, Any], tmp_path: Path) -> None:
    """Nothing is sized as another model, and nothing unknown falls back to 16 bits."""
    with pytest.raises(PlannerError) as caught:
        from_config(tmp_path, config(case["config"]))
    assert case["says"] in str(caught.value)
    assert "\n" not in str(caught.value)


@cases("stored")
def test_formats_of_a_config(case: dict[str, Any], tmp_path: Path) -> None:
    """Formats module by module."""
    found = from_config(tmp_path, config(case["config"]))
    assert {feed.routed_format for feed in found.feed_forward.values()} == {case["routed"]}
    assert {part.format for part in found.attention.values()} == {case["rest"]}


@cases("contexts")
def test_context_is_not_scaled_twice(case: dict[str, Any], tmp_path: Path) -> None:
    """max_position_embeddings holds the scaling already."""
    assert from_config(tmp_path, config(case["config"])).max_context == case["tokens"]


@cases("aliases")
def test_a_key_by_any_of_its_names(case: dict[str, Any], tmp_path: Path) -> None:
    """The key stands in a published config, and what is read follows its value."""
    data = json.loads((PUBLISHED / f"{case['fixture']}.json").read_text(encoding="utf-8"))
    part = next(node for node in (data, data.get("text_config", {})) if case["key"] in node)
    part.pop(case.get("without"), None)
    unit = part[case["each"]] if "each" in case else 1
    for value in (part[case["key"]], part[case["key"]] * 2):
        part[case["key"]] = value
        found = from_config(tmp_path, data)
        (moe,) = {getattr(f, case["field"]) for f in found.feed_forward.values() if f.kind == "moe"}
        assert moe == value * unit


@cases("commands")
def test_commands_say_why(case: dict[str, Any], cli: Cli) -> None:
    """One line and no traceback on stderr; where nothing fits, the constraint is named."""
    answer = cli(*shlex.split(case["args"]))
    assert answer.code == case["code"]
    said = answer.err if case["code"] == 2 else answer.out
    assert case["says"] in said
    assert "Traceback" not in answer.out + answer.err
    if case["code"] == 2:
        assert answer.out == ""
        assert answer.err.count("\n") == 1


def test_kv_09_tokens_come_with_a_length() -> None:
    """33.04 requests of 32,768 tokens are 1,082,655; of a hybrid, more tokens fit as requests grow longer."""
    assert round(33.04 * 32768) == 1082655
    short, long = (fit("qwen3.5-27b", "h200-8", layout="TP1", max_len=length) for length in (4096, 131072))
    for found in (short, long):
        assert found.max_tokens == found.max_concurrency * found.length
    assert long.max_tokens > short.max_tokens * 1.3


def test_kv_17_cache_format_is_an_input_of_its_own() -> None:
    """An 8-bit cache named by the checkpoint is noted and not taken; asked for, it halves the bytes."""
    found = model("gemma-4-31b-it-nvfp4")
    assert "names a cache of FP8" in found.note
    asked, default = cache_sizes(found, "fp8", "fp32"), cache_sizes(found, "bf16", "fp32")
    assert default.per_token == 2 * asked.per_token


def test_kv_17_engine_reserves_windows_for_its_batch() -> None:
    """The report's tokens: its budget over what one request takes, in parts of a request."""
    found = fit(model("gemma-4-31b-it-nvfp4"), "h200-8", layout="TP1", max_len=262144)
    request = found.reserved_bytes_per_request_per_chip
    assert request / found.length / 1024 == pytest.approx(108.2, rel=0.002)
    assert 103.92 * GIB / request * found.length == pytest.approx(1007303, rel=0.002)


def test_kv_32_bytes_are_those_of_a_length() -> None:
    """Bytes over tokens is no constant where windows fill: an answer says which length it is of."""
    found = [fit("deepseek-v4-flash", "h200-8", layout="TP2", max_len=length) for length in (1024, 65536)]
    short, long = (answer.request_bytes_per_chip / answer.length for answer in found)
    assert [answer.length for answer in found] == [1024, 65536]
    assert short > 2 * long


def test_kv_35_state_is_reserved_in_whole_pages() -> None:
    """Blocks of 1,056: 9 hold 9,240 tokens, and of 36 layers of state, three for each of 12 with tokens, each has one.

    The blocks of a request are those of all layers over the 12 that share one: 9 + 3 = 12 of 6,000, 500 requests.
    """
    found = fit("qwen3-next-80b-a3b", "h200-8", layout="TP2", max_len=9240)
    assert found.reserved_block_tokens == 1056
    block = 1056 * found.kv_bytes_per_token_per_chip
    assert 3 * block > found.state_bytes_per_sequence_per_chip > 2 * block
    assert found.reserved_bytes_per_request_per_chip == 12 * block
    assert 6000 * block // found.reserved_bytes_per_request_per_chip == 500
    assert found.reserved_max_concurrency == found.kv_budget_bytes_per_chip // (12 * block)


def test_fit_14_memory_is_that_of_all_parameters() -> None:
    """0.58 B for each of 125.1e9 parameters is 72.6 GB, over 48; the active ones alone would be 5."""
    sums = totals(model("qwen3.5-122b-a10b"))
    held = 0.58 * (sums.total_params + sums.extra_params)
    assert held == pytest.approx(72.6e9, rel=0.001)
    assert held > 48e9 > 0.58 * sums.active_params


def test_fit_16_a_stack_that_gathers_is_the_shipped_one_otherwise() -> None:
    """The fixture differs from the shipped stack in its exchange alone: every token goes to every rank, and back."""
    gathers, sends = (
        load_stack(str(TESTS / "fixtures" / "field_stacks" / "nvidia-blackwell-gather.yaml")),
        load_stack("nvidia-blackwell"),
    )
    assert (gathers.exchange, sends.exchange) == ("gather", "send")
    own = {"name": sends.name, "title": sends.title, "note": sends.note, "exchange": "send"}
    assert gathers.model_copy(update=own) == sends
    job = Workload(isl=16384, osl=2, concurrency=8)
    slow, fast = (estimate("deepseek-v4-pro", "b300-8", "DP8 EP8", job, stack=stack) for stack in (gathers, sends))
    assert slow.prefill.ttft_s > fast.prefill.ttft_s
    assert slow.memory.buffers_bytes_per_chip > 2 * fast.memory.buffers_bytes_per_chip


def test_fit_18_needed_and_reserved_are_told_apart() -> None:
    """The engine may use 0.9 of the memory there is whatever the model; what a small model needs is another number."""
    found = fit("qwen3-8b", "h100-8", layout="TP1", max_len=8192, concurrency=1, workload=Workload(
        isl=1, osl=1, memory_fraction=0.9,
    ))  # fmt: skip
    assert found.usable_bytes_per_chip == pytest.approx(0.9 * 79.18 * 2**30)
    assert 16e9 < found.used_bytes_per_chip < 25e9


def test_p_03_no_bandwidth_above_the_peak() -> None:
    """22.564 GB x 170/256 in 3.77 ms is 3.98 TB/s; all experts would be 5.98, more than an H200 has."""
    peak = load_chip("h200").memory_bandwidth.value
    active = 22.564e9 * 170 / 256
    assert active == pytest.approx(14.989e9, rel=0.001)
    assert active / 3.77e-3 == pytest.approx(3.98e12, rel=0.002)
    assert active / 3.77e-3 < peak < 22.564e9 / 3.77e-3
    job = Workload(isl=4096, osl=512, concurrency=64)
    rows = estimate("mixtral-8x7b", "h200-8", "TP2", job).breakdown
    assert rows
    assert [row["operator"] for row in rows if row["bytes"] > peak * row["time_s"] * (1 + 1e-9)] == []


def test_p_17_prompts_that_arrive_together() -> None:
    """Eight prompts served one by one wait (8 + 1) / 2 prefills on average."""
    job = Workload(isl=9000, osl=256, concurrency=8, arrivals="waves")
    found = estimate("qwen3-8b", "h200-8", "TP1", job, stack="nvidia-hopper")  # no time of a front end
    assert found.serving.ttft_s / found.prefill.ttft_s == pytest.approx(4.5, rel=0.005)


def test_p_24_drafts_do_not_multiply_a_prefill_pass() -> None:
    """A pass has a budget of tokens: drafting three more per step leaves its activations as they are."""
    plain = {"isl": 8192, "osl": 1024, "concurrency": 16}
    jobs = Workload(**plain), Workload(**plain, draft_tokens=3, accepted_length=2.0)
    one, other = (estimate("kimi-k3", "gb200-nvl72", "TP16", job).memory for job in jobs)
    assert other.activations_bytes_per_chip == one.activations_bytes_per_chip
    assert other.buffers_bytes_per_chip == one.buffers_bytes_per_chip


def test_p_26_a_checkpoint_drafts_with_its_own_layers() -> None:
    """The gain of a draft shrinks with the batch; K drafts are K passes; without drafts nothing of it is held."""
    plain = {"isl": 8192, "osl": 1024}
    gains = []
    for concurrency in (1, 128, 256):
        alone, drafted = (
            estimate("qwen3.8-2.4t-a95b", "gb200-nvl72", "TP8 DP8", Workload(**plain, concurrency=concurrency, **ask))
            for ask in ({}, {"draft_tokens": 1, "accepted_length": 1.648})
        )
        assert drafted.memory.weights_bytes_per_chip > alone.memory.weights_bytes_per_chip
        assert not [row for row in alone.breakdown if row["operator"].startswith("draft.")]
        gains.append(drafted.serving.tok_s_per_chip / alone.serving.tok_s_per_chip - 1)
    assert 0.648 > gains[0] > gains[1] > gains[2] > 0
    passes = [
        sum(row["time_s"] for row in found.breakdown if row["operator"].startswith("draft."))
        for found in (
            estimate("deepseek-v3", "h200-8", "TP8", Workload(isl=1000, osl=100, concurrency=8, draft_tokens=k,
                                                              accepted_length=1.5))
            for k in (1, 3)
        )
    ]  # fmt: skip
    assert passes[1] == pytest.approx(3 * passes[0], rel=1e-12)


def test_p_28_cost_of_a_million_tokens() -> None:
    """2.50 USD an hour over 2,324 tokens/s is 0.2988 USD a million, and an estimate's cost is that of its own rate."""
    assert parse("2.5 USD/h", "USD/s", "case") / 2324 * 1e6 == pytest.approx(0.2988, abs=5e-5)
    found = estimate("qwen3-32b", "h100-8", "TP8", Workload(isl=4096, osl=512, concurrency=64))
    price = load_chip(load_system("h100-8").chip).price.value
    expected = price / found.serving.tok_s_per_chip * 1e6
    assert found.cost.usd_per_million_output_tokens == pytest.approx(expected, rel=1e-9)


def test_c_19_cache_does_not_follow_the_parameters(tmp_path: Path) -> None:
    """Twice the feed-forward is more parameters and the same cache."""
    small, large = (from_config(tmp_path, {**config("base_dense"), "intermediate_size": n}) for n in (3072, 6144))
    assert totals(large).total_params > totals(small).total_params
    assert cache_sizes(large, "bf16", "fp32") == cache_sizes(small, "bf16", "fp32")


INDEX: dict[str, list[str]] = yaml.safe_load((TESTS / "golden" / "field_index.yaml").read_text(encoding="utf-8"))
PLACES = {"golden", "test", "table"}


def shown() -> dict[str, set[str]]:
    """Where each id is shown, found by looking."""
    found: dict[str, set[str]] = {}
    for path in sorted((TESTS / "golden").glob("*/field_*.yaml")):
        for case in yaml.safe_load(path.read_text(encoding="utf-8")):
            assert case["source"].startswith("https://"), case["id"]
            found.setdefault(case["case"], set()).add("golden")
    for case in (case for check in CASES.values() for case in check):
        assert case["url"].startswith("https://"), case["id"]
        found.setdefault(case["id"], set()).add("test")
    text = (TESTS.parent / "docs" / "field-cases.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        match = re.match(r"\| ([A-Z]+-\d\d) \| \[[^\]]+\]\(https://[^)]+\) \| ", line)
        if match:
            found.setdefault(match[1], set()).add("table")
    return found


def test_every_case_is_where_the_index_says() -> None:
    """All ids of the index are shown as golden case, test or report, and nothing else is."""
    assert set().union(*INDEX.values()) == PLACES
    assert {name: sorted(where) for name, where in shown().items()} == {n: sorted(w) for n, w in INDEX.items()}


def test_single_tests_exist() -> None:
    """Every case of `once` has a test under its own id."""
    tests = " ".join(name for name in globals() if name.startswith("test_"))
    assert [case["id"] for case in CASES["once"] if f"test_{case['id'].lower().replace('-', '_')}_" not in tests] == []
