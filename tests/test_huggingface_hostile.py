"""Configs made to hang, to hide something or to say two things: answered soon, in one line."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.errors import BadInput, PlannerError
from planner.search.fit import fit
from planner.specs.huggingface import read
from planner.specs.huggingface.patterns import MOST_PATTERNS, choices, compiled
from planner.specs.library import LONGEST_LINE, load_stack

CONFIGS = Path(__file__).resolve().parent / "fixtures" / "configs"
SYSTEM = "zhenwu-m890-supernode"
SOON_S = 10.0


def changed(folder: Path, name: str, inner: str | None = None, **changes: Any) -> Path:
    """A config.json with some keys changed, in the language part where `inner` names it."""
    data = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    (data if inner is None else data[inner]).update(changes)
    path = folder / "config.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def refusal(path: Path) -> str:
    """The one line a path is refused with, and soon."""
    begun = time.monotonic()
    with pytest.raises(BadInput) as caught:
        read(path)
    assert time.monotonic() - begun < SOON_S
    assert "\n" not in str(caught.value)
    return str(caught.value)


NESTED = (r"((\w+\.?)+)+!$", r"(a|a)*!", r"(a?)*!", r"(?:(?:a|b)c)+", r"((a+))+", r"(a{2}){30}", r"(?=(\w+)+)!")
PLAIN = (
    r".*mlp\.(gate|up|gate_up|down)_proj.*", r"(?:.*\.)?mlp", r"^(?!.*vision).*", r"[(+*]+x(a)", r"\(a+\)+", r"(\w\w)*",
    r".*layers\.(\d+)\..*mlp\.experts\.(\d+)\..*(gate|up|down)_proj.*", r"(?i)a(?P<x>a+)b", r"[]a+]*", r"(x)(?(1)a|b)",
)  # fmt: skip


@pytest.mark.parametrize("pattern", NESTED)
def test_a_repeat_of_repeats_is_refused(pattern: str) -> None:
    """It could take for ever."""
    with pytest.raises(ValueError, match="repeats what itself repeats"):
        compiled(pattern)


@pytest.mark.parametrize("pattern", PLAIN)
def test_plain_patterns_are_read(pattern: str) -> None:
    """Those that checkpoints hold, and brackets where they are letters."""
    assert compiled(pattern).pattern == pattern


@pytest.mark.parametrize("pattern", ["a" * 201, ".*" * 7, "(.|.)" * 6, "(?x) (a+) +", "(a+)(?#b)+", "("])
def test_other_patterns_that_are_not_read(pattern: str) -> None:
    """Long ones, those with many choices, those whose repeats are hard to see, broken ones."""
    with pytest.raises(ValueError, match=r"longer|too many|comments|bad pattern"):
        compiled(pattern)


def test_choices() -> None:
    """Two for what stretches or branches, one for digits in a row of other things."""
    assert [choices(text) for text in (r"a\.b", r".*a", r"\d+", r"\d+\d+", r"a|b", r"(a|b|c)x{2}.*", r"\.*")] == [
        0,
        2,
        1,
        3,
        2,
        4,
        2,
    ]


@pytest.mark.parametrize(
    ("ignore", "says"),
    [
        ([f"re:{NESTED[0]}"], "repeats what itself repeats"),
        (["re:" + r".*\w" * 5 + "!"], "patterns that take more than 3 s"),
        ([f"re:.*a{i}" for i in range(20_000)], f"more patterns than the {MOST_PATTERNS:,}"),
        ([f"*a*b{i}*" for i in range(20_000)], f"more patterns than the {MOST_PATTERNS:,}"),
    ],
    ids=["nested", "many-ways", "many", "many-globs"],
)
@pytest.mark.parametrize("method", ["fp8", "compressed-tensors", "gptq"])
def test_lists_made_to_hang(tmp_path: Path, method: str, ignore: list[str], says: str) -> None:
    """Under every key that takes patterns."""
    scheme: dict[str, Any] = {"quant_method": method, "ignore": ignore}
    if method == "compressed-tensors":
        scheme["config_groups"] = {"g": {"targets": ignore, "weights": {"type": "float", "num_bits": 8}}}
        del scheme["ignore"]
    if method == "gptq":
        plain = [entry.removeprefix("re:") for entry in ignore]
        scheme = {
            "quant_method": method,
            "bits": 4,
            "group_size": 128,
            "dynamic": {f"-:{entry}": {} for entry in plain},
        }
        if plain == ignore:
            pytest.skip("gptq has no globs")
    assert says in refusal(changed(tmp_path, "llama-3.1-8b", quantization_config=scheme, num_hidden_layers=2000))


@pytest.mark.parametrize(
    ("name", "inner", "changes"),
    [
        ("kimi-k2.5", "text_config", {"hidden_size": 7_168_000}),
        ("mixtral-8x7b", None, {"hidden_size": 700_000}),
        ("jamba-1.5-large", None, {"mamba_dt_rank": 10**8}),
    ],
)
def test_fewest_chips_of_a_huge_model(tmp_path: Path, name: str, inner: str | None, changes: dict[str, Any]) -> None:
    """The search ends, without a number."""
    found = read(changed(tmp_path, name, inner, **changes))
    begun = time.monotonic()
    assert fit(found, SYSTEM).min_chips is None
    assert time.monotonic() - begun < SOON_S


def test_a_long_list_in_place_of_a_number(tmp_path: Path) -> None:
    """A config as large as any that is read: the message quotes its beginning."""
    line = refusal(changed(tmp_path, "llama-3.1-8b", hidden_size=[1] * 2_500_000))
    assert "[1, 1, 1, 1, 1, 1, 1, 1, ...] is not a whole number" in line


def test_a_long_line_of_stacks(tmp_path: Path) -> None:
    """Each like the one before."""
    before = "sail-tuned"
    for index in range(LONGEST_LINE):
        path = tmp_path / f"s{index}.yaml"
        path.write_text(yaml.safe_dump({"name": path.stem, "title": "a stack", "like": before}), encoding="utf-8")
        before = f"./{path.name}"
    assert load_stack(str(tmp_path / f"s{LONGEST_LINE - 2}.yaml")).name == f"s{LONGEST_LINE - 2}"
    with pytest.raises(PlannerError, match="th stack in a line"):
        load_stack(str(tmp_path / f"s{LONGEST_LINE - 1}.yaml"))


def test_a_quantisation_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Beside a sound config: a link to nowhere, a folder, a pipe, no object."""
    path, side = changed(tmp_path, "llama-3.1-8b"), tmp_path / "hf_quant_config.json"
    side.symlink_to(tmp_path / "nowhere")
    assert f"{side}: No such file" in refusal(path)
    side.unlink()
    side.mkdir()
    assert f"{side}: is not a regular file" in refusal(path)
    side.rmdir()
    os.mkfifo(side)
    assert f"{side}: is not a regular file" in refusal(path)
    side.unlink()
    side.write_text("[]", encoding="utf-8")
    assert f"{side}: holds a JSON list" in refusal(path)
    side.unlink()
    for inside in (0, "", [], "fp8"):
        assert "_hf_quant_config is" in refusal(changed(tmp_path, "llama-3.1-8b", _hf_quant_config=inside))


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("qwen3-30b-a3b", {"n_routed_experts": 64}, "name the same thing"),
        ("qwen3-30b-a3b", {"num_local_experts": 64}, "name the same thing"),
        ("qwen3-30b-a3b", {"moe_topk": 4}, "name the same thing"),
        ("llama-3.1-8b", {"n_layers": 16}, "name the same thing"),
        ("llama-3.1-8b", {"torch_dtype": "float32", "dtype": "bfloat16"}, "name the same thing"),
        (
            "llama-3.1-8b",
            {"quantization_config": {"quant_method": "fp8"}, "compression_config": {"quant_method": "mxfp8"}},
            "the two differ",
        ),
        ("qwen3-30b-a3b", {"decoder_sparse_step": 0}, "decoder_sparse_step: 0"),
        ("qwen3-30b-a3b", {"mlp_only_layers": 0}, "int where a list is needed"),
        ("deepseek-v3", {"moe_layer_freq": 0}, "moe_layer_freq: 0"),
        ("llama-3.1-8b", {"vision_config": 0}, "vision_config: int where an object is needed"),
        ("llama-3.1-8b", {"vision_config": []}, "vision_config: list where an object is needed"),
        ("llama-3.1-8b", {"audio_config": "whisper"}, "audio_config: str where an object is needed"),
        ("llama-3.1-8b", {"text_config": 7}, "text_config: int where an object is needed"),
        ("llama-3.1-8b", {"model_type": 0}, "model_type: 0 is not text"),
    ],
    ids=str,
)
def test_what_says_two_things_or_none(tmp_path: Path, name: str, changes: dict[str, Any], says: str) -> None:
    """Aliases that differ, zero and other types where a default would be silent."""
    assert says in refusal(changed(tmp_path, name, **changes))


@pytest.mark.parametrize("key", ["spatial_merge_size", "temporal_patch_size", "num_position_embeddings"])
def test_zero_in_a_vision_tower(tmp_path: Path, key: str) -> None:
    """A size of nothing is no size."""
    data = json.loads((CONFIGS / "qwen3-vl-235b-a22b.json").read_text(encoding="utf-8"))
    vision = {**data["vision_config"], key: 0}
    assert f"{key}: 0 is not within" in refusal(changed(tmp_path, "qwen3-vl-235b-a22b", vision_config=vision))


def test_aliases_that_agree(tmp_path: Path) -> None:
    """Saying the same twice is no contradiction, and lengths of a context are not one thing."""
    same = {"n_routed_experts": 128, "torch_dtype": "torch.bfloat16", "dtype": "bfloat16", "seq_length": 4096}
    assert read(changed(tmp_path, "qwen3-30b-a3b", **same)).feed_forward["moe"].experts == 128


def test_null_outside_hides_nothing(tmp_path: Path) -> None:
    """The inner value counts where the outer one is null; where both say something, the outer."""
    for outer, inner, tied in ((None, True, True), (None, False, False), (False, True, False)):
        data = json.loads((CONFIGS / "qwen3-0.6b.json").read_text(encoding="utf-8")) | {"tie_word_embeddings": inner}
        path = tmp_path / "config.json"
        path.write_text(json.dumps({"text_config": data, "tie_word_embeddings": outer}), encoding="utf-8")
        assert read(path).tied_embeddings is tied
