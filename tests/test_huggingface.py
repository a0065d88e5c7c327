"""Configs of every family against what their makers publish: parameters, bytes on disk, cache, context, layers.

Each config in fixtures/configs holds the facts its model needs, with their source; nothing else of the published file.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner.evaluate.totals import cache_sizes, totals
from planner.specs.huggingface import read
from planner.specs.huggingface.families import FILES, READERS
from planner.specs.library import load_model
from planner.specs.model import Model

CONFIGS = Path(__file__).resolve().parent / "fixtures" / "configs"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.json"))
GIB = 2**30


@cache
def model(name: str) -> Model:
    """The model of a fixture."""
    return read(CONFIGS / f"{name}.json")


def facts(name: str) -> dict[str, Any]:
    """A fixture's JSON."""
    found: dict[str, Any] = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    return found


EXACT = {
    "llama-3.1-8b": 8_030_261_248,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "mixtral-8x7b": 46_702_792_704,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
}
"""Sums of the tensors, as the hub states them; a tied head counted once."""

COUNTED = {
    "deepseek-v3": 671.026e9,
    "deepseek-v3.2": 671.878e9,
    "glm-4.5": 352.796e9,
    "glm-5.2-fp8": 743.377e9,
    "jamba-1.5-large": 398.552e9,
    "kimi-k2.5": 1026.408e9,
    "kimi-k3": 2779.479e9,
    "kimi-linear-48b-a3b": 49.122e9,
    "llama-4-maverick": 400.711e9,
    "llama-4-scout": 107.769e9,
    "mimo-v2-flash": 308.778e9,
    "minimax-m1": 456.088e9,
    "minimax-m2.7": 228.689e9,
    "minimax-m3-flat": 426.174e9,
    "mistral-large-instruct-2407": 122.610e9,
    "nemotron-3-nano-30b-a3b": 31.578e9,
    "nemotron-3-ultra-550b-a55b": 549.306e9,
    "qwen3-30b-a3b": 30.532e9,
    "qwen3-32b": 32.762e9,
    "qwen3-next-80b-a3b": 79.674e9,
    "qwen3.5-122b-a10b": 122.111e9,
    "qwen3.5-27b": 26.895e9,
    "qwen3.8-2.4t-a95b": 2419.803e9,
    "gemma-3-27b-it": 27.009e9,
}
"""Sums over the tensors' shapes, worked out apart from this code, to six digits."""

STATED = {
    "deepseek-v4-flash": (284e9, 0.005),
    "deepseek-v4-pro": (1.6e12, 0.02),  # stated in two digits
    "gemma-4-26b-a4b": (25.2e9, 0.005),  # 26B with the tower
    "llama-3.3-nemotron-super-49b-nas": (49.9e9, 0.005),
    "nemotron-h-56b": (56e9, 0.01),
    "qwen3-vl-235b-a22b": (235e9, 0.005),
    "step-3.7-flash": (196.8e9, 0.0055),  # Step 3.5 Flash; the config kept has fewer heads on windows and no gates
}
"""What the maker says, rounded."""


def test_every_fixture_is_held_against_a_figure() -> None:
    """No config is read without a figure to compare with, and each says where it is from."""
    assert set(EXACT) | set(COUNTED) | set(STATED) == set(NAMES)
    assert all(facts(name)["_source"].startswith("https://") for name in NAMES)


def test_every_family_has_a_fixture() -> None:
    """A family file without a config to read is untested."""
    kinds = {str(facts(name)["model_type"]) for name in NAMES}
    kinds |= {str(facts(name).get("text_config", {}).get("model_type")) for name in NAMES}
    assert all(kinds & set(file.TYPES) for file in FILES)  # type: ignore[attr-defined]
    assert len(READERS) == sum(len(file.TYPES) for file in FILES)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", EXACT)
def test_parameters_to_the_last_one(name: str) -> None:
    """Where the sum of the tensors is known, it is met."""
    assert totals(model(name)).total_params == EXACT[name]


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_to_four_digits(name: str) -> None:
    """Parameters of the text model within 0.01 %."""
    assert totals(model(name)).total_params == pytest.approx(COUNTED[name], rel=1e-4)


@pytest.mark.parametrize("name", STATED)
def test_parameters_as_stated(name: str) -> None:
    """Parameters within what a rounded figure allows."""
    value, tolerance = STATED[name]
    assert totals(model(name)).total_params == pytest.approx(value, rel=tolerance)


BYTES = {
    "gpt-oss-120b": (65_248_815_744, 1e-9),  # sum over the safetensors headers
    "deepseek-v3": (641.3 * GIB, 1e-4),
    "deepseek-v3.2": (642.14 * GIB, 1e-4),
    "deepseek-v4-pro": (805.34 * GIB, 1e-4),
    "glm-5.2-fp8": (703.75 * GIB, 1e-4),
    "kimi-k2.5": (554.32 * GIB, 1e-4),
    "kimi-k3": (1.56e12, 1e-3),  # stated in three digits
    "minimax-m2.7": (214.34 * GIB, 2e-4),
    "nemotron-3-nano-30b-a3b": (58.82 * GIB, 1e-4),
    "qwen3.5-27b": (55_563_006_776, 1e-4),
    "qwen3.5-122b-a10b": (232.99 * GIB, 1e-4),
    "qwen3.8-2.4t-a95b": (4_892_388_705_238, 1e-4),
    "gemma-4-26b-a4b": (48.07 * GIB, 1e-4),
    "llama-3.1-8b": (14.96 * GIB, 3e-4),
}
"""The files on the hub, headers included: text, vision, draft layers and their copies of the tables."""


@pytest.mark.parametrize("name", BYTES)
def test_bytes_close_on_the_files(name: str) -> None:
    """Formats, draft layers and towers add up to what is on disk."""
    value, tolerance = BYTES[name]
    found = totals(model(name))
    assert found.text_bytes + found.vision_bytes + found.draft_bytes == pytest.approx(value, rel=tolerance)


ACTIVE = {
    "deepseek-v3": 36.6e9,  # its README_WEIGHTS.md: 36.6B, the head's 0.9B included
    "gpt-oss-120b": 5.13e9,
    "gpt-oss-20b": 3.61e9,
    "kimi-k3": 104.2e9,
    "deepseek-v4-flash": 13.278e9,
}


@pytest.mark.parametrize("name", ACTIVE)
def test_active_parameters(name: str) -> None:
    """Parameters a token uses where the maker counts as this planner does: the head, not the input table."""
    assert totals(model(name)).active_params == pytest.approx(ACTIVE[name], rel=1e-3)


DRAFTS = {
    "deepseek-v3": 11.61e9,
    "glm-4.5": 3.988e9,
    "qwen3.8-2.4t-a95b": 26.38e9,
    "nemotron-3-ultra-550b-a55b": 11.2156e9,
}


@pytest.mark.parametrize("name", DRAFTS)
def test_draft_layers_are_counted_apart(name: str) -> None:
    """Draft layers are extras of part draft, one for each format, and no part of the model's parameters."""
    found = model(name)
    drafts = [extra for extra in found.extras.values() if extra.part == "draft"]
    assert sum(extra.parameters for extra in drafts) == pytest.approx(DRAFTS[name], rel=1e-3)
    assert len({extra.format for extra in drafts}) == len(drafts)
    assert totals(found).draft_params == sum(extra.parameters for extra in drafts)


def test_draft_copies_of_the_tables_are_in_the_files_alone() -> None:
    """DeepSeek-V3: 671.03B and 11.61B unique, 684.49B with the draft layer's copies of embedding and head."""
    found = model("deepseek-v3")
    copies = found.extras["draft_tables"]
    sums = totals(found)
    assert copies.part == "padding"
    assert sums.total_params + sums.draft_params + copies.parameters == pytest.approx(684.49e9, rel=1e-5)


def test_kimi_specs_agree_with_the_ones_written_by_hand() -> None:
    """The shipped YAMLs of both Kimi models and their configs give the same groups."""
    for name in ("kimi-k3", "kimi-linear-48b-a3b"):
        by_hand, by_config = load_model(name), model(name)
        assert by_config.layer_kinds() == by_hand.layer_kinds()
        for part in ("attention", "feed_forward"):
            mine, theirs = getattr(by_hand, part), getattr(by_config, part)
            assert {key: value.model_copy(update={"layers": ""}) for key, value in mine.items()} == {
                key: value.model_copy(update={"layers": ""}) for key, value in theirs.items()
            }
        assert by_config.residual == by_hand.residual
        assert by_config.max_context == by_hand.max_context == 1048576
    tower = {"vision_tower", "projector"}
    assert all(model("kimi-k3").extras[x].parameters == load_model("kimi-k3").extras[x].parameters for x in tower)


def kinds(name: str) -> dict[str, int]:
    """Layers by (attention, feed-forward) kind."""
    found = model(name)
    counts: dict[str, int] = {}
    for attention, feed in found.layer_kinds():
        key = f"{found.attention[attention].kind}+{found.feed_forward[feed].kind}"
        counts[key] = counts.get(key, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nemotron-3-ultra-550b-a55b", {"mamba2+none": 48, "none+moe": 48, "gqa+none": 12}),
        ("nemotron-3-nano-30b-a3b", {"mamba2+none": 23, "none+moe": 23, "gqa+none": 6}),
        ("jamba-1.5-large", {"mamba1+dense": 36, "mamba1+moe": 27, "gqa+moe": 0, "gqa+dense": 9}),
        ("kimi-k3", {"kda+dense": 1, "kda+moe": 68, "mla+moe": 24}),
        ("llama-4-maverick", {"gqa+dense": 24, "gqa+moe": 24}),
        ("minimax-m1", {"lightning+moe": 70, "gqa+moe": 10}),
        ("minimax-m3-flat", {"gqa+dense": 3, "block_sparse+moe": 57}),
        ("qwen3.8-2.4t-a95b", {"gated_delta+moe": 69, "gqa+moe": 23}),
        ("deepseek-v4-pro", {"compressed+moe": 61}),
    ],
)
def test_layers_of_each_kind(name: str, expected: dict[str, int]) -> None:
    """Layers by kind; 1-based lists, periods, patterns and per-layer lists all end up at the right places."""
    found = kinds(name)
    if name == "jamba-1.5-large":
        assert sum(n for key, n in found.items() if key.startswith("gqa")) == 9
        assert sum(n for key, n in found.items() if key.endswith("moe")) == 36
    else:
        assert found == expected


CACHES = {
    "deepseek-v3": (70_272, 0),  # 61 (512 + 64) 2 B
    "llama-3.1-8b": (131_072, 0),
    "qwen3.5-27b": (65_536, 0),
    "gpt-oss-120b": (36_864, 36_864),  # 18 layers each way, 8 heads, 64 + 64
    "mimo-v2-flash": (23_040, 199_680),  # 9 x 4 and 39 x 8 heads, 192 + 128
    "gemma-4-26b-a4b": (20_480, 204_800),  # keys and values both, although one projection makes them
    "llama-3.3-nemotron-super-49b-nas": (49 * 4096, 0),  # 31 of 80 layers have no attention
}


@pytest.mark.parametrize("name", CACHES)
def test_cache_of_a_token(name: str) -> None:
    """Bytes per token in BF16, of the layers that grow and of those with a window."""
    found = cache_sizes(model(name), "bf16", "fp32")
    assert (found.per_token, found.per_token_in_window) == CACHES[name]


CONTEXTS = {"deepseek-v3": 163_840, "llama-4-scout": 10_485_760, "gpt-oss-20b": 131_072, "gemma-3-27b-it": 131_072}


@pytest.mark.parametrize("name", CONTEXTS)
def test_context_is_not_scaled_twice(name: str) -> None:
    """max_position_embeddings already holds the scaling."""
    assert model(name).max_context == CONTEXTS[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_yaml_loads_back_to_the_same_record(name: str, tmp_path: Path) -> None:
    """What `specs import` writes is the record that was read."""
    from planner.evaluate.show import imported

    path = tmp_path / "model.yaml"
    path.write_text(imported(str(CONFIGS / f"{name}.json")), encoding="utf-8")
    assert load_model(str(path)) == model(name)
