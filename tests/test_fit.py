"""`planner fit`: which number to plan with, the fullest stage, a server, padding, drafts, what the fraction means."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

from planner import fit
from planner.specs.library import load_stack, names

CONFIGS = Path(__file__).resolve().parent / "fixtures" / "configs"


def said(cli: Cli, *arguments: str) -> str:
    """What fit prints, on one line."""
    answer = cli("fit", *arguments)
    assert answer.code in (0, 3)
    return " ".join(answer.out.split())


@pytest.mark.parametrize(
    "name", [name for name in names("stack") if name.split("-")[0] in ("sglang", "trtllm", "vllm")]
)
def test_each_engine_has_its_own_fraction(name: str, cli: Cli) -> None:
    """SGLang bounds weights and cache, TensorRT-LLM takes a share of what is free, vLLM bounds everything."""
    stack = load_stack(name)
    engine = name.split("-")[0]
    meaning, value, word = {
        "sglang": ("static", 0.88, "--mem-fraction-static"),
        "trtllm": ("free", 0.9, "free_gpu_memory_fraction"),
        "vllm": ("all", 0.92, "--gpu-memory-utilization"),
    }[engine]
    assert (stack.memory_meaning, stack.memory_fraction.value) == (meaning, value)
    assert word in stack.memory_policy
    assert stack.memory_fraction.source


def test_text_names_stack_and_fraction(cli: Cli) -> None:
    """The first line has the stack, the last before the inputs what its fraction means."""
    text = said(cli, "qwen3-32b", "--on", "h200-8", "--layout", "TP2", "--stack", "sglang-hopper", "--max-len", "8k")
    assert "qwen3-32b on h200-8, stack sglang-hopper, TP2" in text
    assert "memory fraction 0.88 of stack sglang-hopper: fraction x capacity bounds weights and cache alone" in text


@pytest.mark.parametrize("stack", ["vllm-hopper", "sglang-hopper", "trtllm-hopper"])
@pytest.mark.parametrize("layout", ["TP2", "TP2 PP4"])
def test_what_is_usable_is_what_is_held_and_left(stack: str, layout: str) -> None:
    """usable = weights + activations + buffers + runtime + what is left for requests, whatever the fraction means."""
    found = fit("qwen3-32b", "h200-8", layout=layout, stack=stack, max_len=8192)
    parts = found.weights_bytes_per_chip + found.activations_bytes_per_chip + found.buffers_bytes_per_chip
    parts += found.runtime_bytes_per_chip + found.kv_budget_bytes_per_chip
    assert found.usable_bytes_per_chip == pytest.approx(parts, rel=1e-12)
    assert found.usable_bytes_per_chip <= found.capacity_bytes_per_chip


WINDOWS = ("gpt-oss-120b", "--on", "h200-8", "--layout", "TP8", "--max-len", "32k")


def test_plan_with_what_an_engine_admits(cli: Cli) -> None:
    """Between the two numbers the load fits by bytes, and a line says what an engine admits."""
    found = cli("fit", *WINDOWS, "--json").json
    by_bytes, admitted = found["max_concurrency"], found["reserved_max_concurrency"]
    assert admitted < by_bytes
    assert found["reserved_fits"] is True
    assert f"plan with {admitted:,} requests of 32,768 tokens" in said(cli, *WINDOWS)
    between = str((by_bytes + admitted) // 2)
    answer = cli("fit", *WINDOWS, "--concurrency", between, "--json")
    assert (answer.code, answer.json["fits"], answer.json["reserved_fits"]) == (0, True, False)
    line = f"{between} in flight fit by their bytes, but an engine that reserves whole blocks admits only {admitted:,}"
    assert line in said(cli, *WINDOWS, "--concurrency", between)
    assert "but an engine" not in said(cli, *WINDOWS, "--concurrency", str(admitted))


def test_stages_are_named() -> None:
    """61 layers over two stages: every distinct stage once, in order, and the fullest by its place."""
    found = fit("deepseek-v3", "h200-8", layout="TP4 PP2", max_len=8192)
    assert [(stage["stage"], stage["layers"], stage["alike"]) for stage in found.stages] == [
        (0, "0-30", 1),
        (1, "31-60", 1),
    ]
    worst = next(stage for stage in found.stages if stage["stage"] == found.worst_stage)
    assert worst["max_concurrency"] == found.max_concurrency == min(s["max_concurrency"] for s in found.stages)
    assert worst["weights_bytes_per_chip"] == found.weights_bytes_per_chip
    assert worst["kv_bytes_per_token_per_chip"] == found.kv_bytes_per_token_per_chip


def test_stages_that_another_dominates_are_listed(cli: Cli) -> None:
    """Inner stages of a plain decoder hold less than the first and the last; they count once with those alike."""
    arguments = ("llama-3.1-8b", "--on", "h200-8", "--layout", "PP4", "--max-len", "8k")
    found = cli("fit", *arguments, "--json").json
    assert [(stage["stage"], stage["alike"]) for stage in found["stages"]] == [(0, 1), (1, 2), (3, 1)]
    assert sum(stage["alike"] for stage in found["stages"]) == 4
    text = said(cli, *arguments)
    assert f"stage {found['worst_stage']} of 4 (layers " in text
    assert "(layers 8-15, 2 stages alike)" in text
    assert text.count("is the fullest") == 1
    assert "is the fullest" not in said(cli, *arguments[:3], "--layout", "TP2", "--max-len", "8k")


def test_one_server(cli: Cli) -> None:
    """Eight chips of the fullest stage, and how many such servers there are."""
    found = fit("kimi-k3", "zhenwu-m890-supernode", layout="TP8 DP8", max_len=8192)
    server = found.server
    assert server is not None
    assert server.chips * server.servers == 64
    assert server.capacity_bytes == server.chips * found.capacity_bytes_per_chip
    assert server.weights_bytes == server.chips * found.weights_bytes_per_chip
    held = server.weights_bytes + server.requests_bytes + server.other_bytes
    assert server.used_bytes == pytest.approx(held, rel=1e-12)
    small = fit("qwen3-32b", "h200-8", layout="TP2", max_len=8192).server
    assert small is not None
    assert (small.chips, small.servers) == (2, 1)
    assert "a server of 8 chips: " in said(cli, *WINDOWS)


def test_the_fewest_chips_have_a_layout(cli: Cli) -> None:
    """The layout named holds such a request."""
    found = fit("deepseek-v3", "h200-8", max_len=8192)
    assert found.min_chips_layout is not None
    again = fit("deepseek-v3", "h200-8", layout=found.min_chips_layout, max_len=8192)
    assert again.layout is not None
    assert again.layout.chips == found.min_chips
    assert again.max_concurrency >= 1
    text = said(cli, "deepseek-v3", "--on", "h200-8", "--layout", "TP8", "--max-len", "8k")
    assert f"fewest chips that hold one such request: {found.min_chips} (" in text


def test_padding_is_named(cli: Cli) -> None:
    """Experts of 2,880 are held 2,944 wide where the kernel takes multiples of 128; the bytes follow from the width."""
    found = fit("gpt-oss-120b", "h200-8", layout="TP1", max_len=8192, stack="nvidia-hopper")
    experts = next(entry for entry in found.padding if entry["what"] == "experts")
    assert (experts["from"], experts["to"]) == (2880, 2944)
    weights = 36 * 128 * 3 * 2880 * (2944 - 2880) * 17 / 32  # MXFP4: 4 bits, and 8 for every 32 of them
    biases = 36 * 128 * (2 * 2880 + 2880) * 2 * (2944 / 2880 - 1)
    assert experts["bytes_per_chip"] == pytest.approx(weights + biases, rel=1e-9)
    assert "experts padded from 2,880 to 2,944: +1.35" in said(
        cli, "gpt-oss-120b", "--on", "h200-8", "--layout", "TP1", "--stack", "nvidia-hopper"
    )
    assert fit("qwen3-32b", "h200-8", layout="TP2", max_len=8192).padding == []


def test_rows_of_the_vocabulary_are_padded() -> None:
    """Every rank's rows are a multiple of 64: 201,088 over 8 ranks are held as 201,216."""
    found = fit("gpt-oss-120b", "h200-8", layout="TP8", max_len=8192, stack="vllm-hopper")
    assert [(entry["what"], entry["from"], entry["to"]) for entry in found.padding] == [("vocabulary", 201088, 201216)]
    assert found.padding[0]["bytes_per_chip"] == pytest.approx(2 * 2880 * 2 * (201216 - 201088) / 8, rel=1e-9)


def test_drafts_take_memory(cli: Cli) -> None:
    """The same memory as estimate counts; a model without a draft is refused."""
    plain = fit("deepseek-v3", "h200-8", layout="TP8", max_len=8192)
    drafting = cli(
        "fit", "deepseek-v3", "--on", "h200-8", "--layout", "TP8", "--max-len", "8k", "--draft-tokens", "1", "--json"
    ).json
    estimated = cli(
        "estimate", "deepseek-v3", "--on", "h200-8", "--layout", "TP8", "--isl", "7k", "--osl", "1k",
        "--concurrency", "8", "--draft-tokens", "1", "--accepted-length", "1.5", "--json",
    ).json["memory"]  # fmt: skip
    assert drafting["draft_tokens"] == 1
    assert drafting["weights_bytes_per_chip"] == estimated["weights_bytes_per_chip"] > plain.weights_bytes_per_chip
    assert drafting["kv_bytes_per_token_per_chip"] > plain.kv_bytes_per_token_per_chip
    refused = cli("fit", "qwen3-32b", "--on", "h200-8", "--draft-tokens", "1")
    assert refused.code == 2
    assert "has no draft layers" in refused.err


def asking(folder: Path) -> str:
    """A config whose checkpoint asks for an FP8 cache."""
    config: dict[str, Any] = json.loads((CONFIGS / "qwen3-0.6b.json").read_text(encoding="utf-8"))
    weights = {"num_bits": 8, "type": "float", "strategy": "channel"}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor"},
        "ignore": ["lm_head"],
    }
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def test_a_checkpoint_that_asks_for_a_cache(tmp_path: Path, cli: Cli) -> None:
    """A note where the answer has another cache, in fit and estimate; none where it is the one asked for."""
    path = asking(tmp_path)
    note = "the checkpoint asks for a cache in fp8, and this answer has bf16: see --kv-dtype"
    load = ("--isl", "1k", "--osl", "1k", "--concurrency", "4")
    for command in (("fit", path), ("estimate", path, *load)):
        arguments = (*command, "--on", "h200-8", "--layout", "TP1")
        assert f"note: {note}" in " ".join(cli(*arguments).out.split())
        assert cli(*arguments, "--json").json["notes"] == [note]
        assert cli(*arguments, "--kv-dtype", "fp8", "--json").json["notes"] == []
    assert cli("fit", "qwen3-32b", "--on", "h200-8", "--layout", "TP2", "--json").json["notes"] == []


def test_a_vision_tower_has_a_line(cli: Cli) -> None:
    """specs show says how much is beside the text."""
    kimi = cli("specs", "show", "kimi-k3", "--json").json["derived"]
    assert kimi["vision_params"] > 0
    assert f"vision {kimi['vision_params']:,} counted apart" in " ".join(cli("specs", "show", "kimi-k3").out.split())
    assert "vision" not in cli("specs", "show", "qwen3-32b").out
