"""Keys that a file leaves out: the default of the model's class, with a note, or a refusal; never a guess."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

from planner.errors import BadInput
from planner.specs.huggingface import read
from planner.specs.huggingface.defaults import CLASSES, TYPES, UNKNOWN
from planner.specs.huggingface.families import READERS
from planner.specs.model import Model

CONFIGS = Path(__file__).resolve().parent / "fixtures" / "configs"


def without(folder: Path, name: str, *keys: str, **changes: Any) -> Path:
    """A fixture without some keys, or with others."""
    config: dict[str, Any] = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    inner = config.get("text_config", config)
    for key in keys:
        del inner[key]
    inner.update(changes)
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def layers(model: Model) -> tuple[Any, Any]:
    """What a model's layers are."""
    return model.attention, model.feed_forward


@pytest.mark.parametrize(
    ("name", "keys", "note"),
    [
        ("qwen3-32b", ["head_dim"], "head_dim not in the file: 128, the default of Qwen3Config."),
        ("mixtral-8x7b", ["num_key_value_heads"], "num_key_value_heads not in the file: 8, the default of Mixtral"),
        ("gpt-oss-120b", ["head_dim", "num_key_value_heads"], "head_dim not in the file: 64, the defaults of GptOss"),
        ("gpt-oss-20b", ["layer_types", "sliding_window"], "sliding_window not in the file: 128"),
        (
            "deepseek-v3",
            ["first_k_dense_replace", "n_shared_experts", "q_lora_rank"],
            "first_k_dense_replace not in the file: 3, q_lora_rank not in the file: 1,536, "
            "n_shared_experts not in the file: 1, the defaults of DeepseekV3Config.",
        ),
        ("glm-5.2-fp8", ["q_lora_rank", "qk_nope_head_dim", "v_head_dim"], "v_head_dim not in the file: 256"),
        ("kimi-k2.5", ["n_shared_experts"], "n_shared_experts not in the file: 1, the default of DeepseekV3Config."),
        ("jamba-1.5-large", ["attn_layer_offset", "expert_layer_offset"], "attn_layer_offset not in the file: 4"),
        ("deepseek-v4-pro", ["num_hash_layers", "n_shared_experts"], "num_hash_layers not in the file: 3"),
        ("minimax-m2.7", ["head_dim", "num_key_value_heads"], "head_dim not in the file: 128"),
        ("llama-4-scout", ["attention_chunk_size", "head_dim"], "attention_chunk_size not in the file: 8,192"),
        ("qwen3.5-27b", ["linear_num_key_heads", "head_dim"], "linear_num_key_heads not in the file: 16"),
        ("mimo-v2-flash", ["v_head_dim", "num_key_value_heads"], "v_head_dim not in the file: 128"),
        ("gemma-3-27b-it", [], "vocab_size not in the file: 262,208"),
    ],
    ids=str,
)
def test_a_key_that_is_left_out_is_the_class_s(tmp_path: Path, name: str, keys: list[str], note: str) -> None:
    """The model is read as with the key, and a note says what was taken from where."""
    found = read(without(tmp_path, name, *keys))
    assert layers(found) == layers(read(CONFIGS / f"{name}.json"))
    assert note in found.note


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("kimi-k3", "q_lora_rank"),
        ("kimi-k3", "num_shared_experts"),
        ("minimax-m1", "num_key_value_heads"),
        ("mimo-v2-flash", "swa_v_head_dim"),
        ("qwen3-32b", "vocab_size"),
        ("qwen3-30b-a3b", "num_experts_per_tok"),
        ("deepseek-v3", "max_position_embeddings"),
    ],
)
def test_a_key_no_class_has_is_refused(tmp_path: Path, name: str, key: str) -> None:
    """One line that names the key."""
    with pytest.raises(BadInput, match=rf"{key}.*is missing") as caught:
        read(without(tmp_path, name, key))
    assert "\n" not in str(caught.value)


def test_null_is_not_absent(tmp_path: Path) -> None:
    """Null keeps its own meaning: as wide as width over heads, no window, no low rank."""
    found = read(without(tmp_path, "qwen3-32b", head_dim=None)).attention["gqa"]
    assert getattr(found, "head_dim", None) == 5120 // 64
    straight = read(without(tmp_path, "deepseek-v3", q_lora_rank=None)).attention["mla"]
    assert getattr(straight, "q_rank", 0) is None
    mistral = {"model_type": "mistral", "architectures": ["MistralForCausalLM"]}
    whole = read(without(tmp_path, "llama-3.1-8b", **mistral, sliding_window=None))
    assert list(whole.attention) == ["gqa"]
    assert list(read(without(tmp_path, "llama-3.1-8b", **mistral)).attention) == ["sliding"]


def test_a_class_that_has_what_is_not_read_is_refused(tmp_path: Path) -> None:
    """A Gemma 4 without the key has inputs per layer, which the reader does not know."""
    with pytest.raises(BadInput, match="hidden_size_per_layer_input: stands for inputs per layer"):
        read(without(tmp_path, "gemma-4-26b-a4b", "hidden_size_per_layer_input"))


def test_the_note_is_shown(tmp_path: Path, cli: Cli) -> None:
    """specs show says what was taken."""
    shown = cli("specs", "show", str(without(tmp_path, "qwen3-32b", "head_dim")))
    assert "head_dim not in the file: 128, the default of Qwen3Config" in " ".join(shown.out.split())


def test_every_model_type_has_a_class() -> None:
    """All but those whose class is not known, and every class has a reader."""
    assert set(READERS) - set(TYPES) == set(UNKNOWN)
    assert set(TYPES.values()) == set(CLASSES)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


@pytest.mark.parametrize(
    ("stated", "scaling", "longest", "says"),
    [
        (40960, YARN, 131072, "yarn scaling: 32,768 positions x 4"),
        (131072, YARN, 131072, "yarn scaling: 32,768 positions x 4"),
        (40960, {"type": "yarn", "factor": 2.0}, 81920, "yarn scaling: 40,960 positions x 2"),
        (1048576, {**YARN, "rope_type": "deepseek_yarn", "factor": 32}, 1048576, "deepseek_yarn scaling: 32,768"),
        (8192, {"type": "linear", "factor": 4}, 32768, "linear scaling: 8,192 positions x 4"),
        (8192, {"type": "dynamic", "factor": 2.0}, 16384, "dynamic scaling: 8,192 positions x 2"),
        (131072, {**YARN, "rope_type": "llama3"}, 131072, "llama3 scaling by 4, which max_position_embeddings already"),
        (131072, {"type": "longrope", "short_factor": [1.0]}, 131072, "longrope scaling, which max_position"),
        (131072, {"type": "su"}, 131072, "su scaling, which max_position"),
        (40960, {"rope_type": "default"}, 40960, ""),
        (40960, {"mrope_section": [1, 2], "rope_type": "mrope"}, 40960, ""),
        (40960, {"full_attention": YARN, "sliding_attention": {"rope_type": "default"}}, 131072, "yarn scaling"),
    ],
)
def test_scaled_positions(
    tmp_path: Path, cli: Cli, stated: int, scaling: dict[str, Any], longest: int, says: str
) -> None:
    """The longest context as an engine derives it, never scaled twice, and specs show says how."""
    path = without(tmp_path, "qwen3-32b", max_position_embeddings=stated, rope_scaling=scaling)
    found = read(path)
    assert found.max_context == longest
    assert found.context_note.startswith(says)
    assert bool(found.context_note) == bool(says)
    assert " ".join(found.context_note.split()) in " ".join(cli("specs", "show", str(path)).out.split())
    refused = cli("fit", str(path), "--on", "h200-8", "--max-len", str(longest + 1))
    assert refused.code == 2
    assert found.context_note in refused.err


@pytest.mark.parametrize("factor", [0.5, True, "four", 10**9])
def test_a_factor_that_is_none(tmp_path: Path, factor: Any) -> None:
    """Refused by its key."""
    with pytest.raises(BadInput, match="rope_scaling: factor"):
        read(without(tmp_path, "qwen3-32b", rope_scaling={**YARN, "factor": factor}))
