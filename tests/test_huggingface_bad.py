"""Configs that are no configs, or not of a model read here: one line each, and never another model."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import BadInput, PlannerError
from planner.specs.huggingface import read
from planner.specs.model import Model

CONFIGS = Path(__file__).resolve().parent / "fixtures" / "configs"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.json"))


def facts(name: str) -> dict[str, Any]:
    """A fixture's JSON."""
    found: dict[str, Any] = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def refusal(path: Path) -> str:
    """The one line that a path is refused with."""
    with pytest.raises(BadInput) as caught:
        read(path)
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line or len(str(path)) > 200
    return line


def written(folder: Path, content: str | bytes | dict[str, Any]) -> Path:
    """A config.json of this content."""
    path = folder / "config.json"
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


LLAMA = json.dumps(facts("llama-3.1-8b"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (LLAMA[:-20], "not sound JSON"),
        ("", "not sound JSON"),
        ("[1, 2]", "JSON list"),
        ("null", "JSON NoneType"),
        ('{"model_type": "llama", "model_type": "qwen3"}', "'model_type' is given twice"),
        ("\xff\xfe{}".encode("latin-1"), "not UTF-8"),
        (b"GGUF\x03\x00\x00\x00" + bytes(64), "a GGUF file"),
        (b"\x10\x00\x00\x00\x00\x00\x00\x00" + b'{"a":{"b":1}}   ' + bytes(9), "a safetensors file"),
        (b"PK\x03\x04" + bytes(64), "a zip archive"),
        (b"\x80\x02}q\x00.", "a pickle"),
        ("[" * 100_000, "nested deeper"),
        ('{"a":' * 70 + "1" + "}" * 70, "nested deeper"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "not sound JSON"),
        ("{}", "has no language model in it (no hidden_size)"),
        ({"model_type": "clip", "vision_config": {"hidden_size": 768}}, "only vision_config"),
        ({"model_type": "whisper", "audio_config": {"hidden_size": 768}}, "only audio_config"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_config(tmp_path: Path, content: Any, says: str) -> None:
    """Broken, binary, nested or empty: named for what it is."""
    assert says in refusal(written(tmp_path, content))


def test_a_file_of_fifty_megabytes(tmp_path: Path) -> None:
    """A weight file by mistake is not read."""
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    assert "50,000,000 bytes" in refusal(path)


def test_folders_and_paths(tmp_path: Path) -> None:
    """An empty folder, an adapter's, a missing file, a device."""
    assert "no config.json in it" in refusal(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}", encoding="utf-8")
    assert "adapter" in refusal(tmp_path)
    assert "No such file" in refusal(tmp_path / "absent.json")
    assert "not a regular file" in refusal(Path("/dev/zero"))
    assert "too long" in refusal(tmp_path / ("x" * 300 + ".json"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model_type": "gpt_bigcode"}, "model_type: 'gpt_bigcode'"),
        ({"model_type": "lama"}, "did you mean llama?"),
        ({"model_type": None, "architectures": None}, "model_type: is missing"),
        ({"model_type": 7}, "model_type: 7 is not text"),
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": "4096"}, "'4096' is not a whole number"),
        ({"hidden_size": 4096.0}, "4096.0 is not a whole number"),
        ({"hidden_size": True}, "True is not a whole number"),
        ({"hidden_size": -4096}, "not within 1"),
        ({"hidden_size": 0}, "not within 1"),
        ({"hidden_size": 10**30}, "not within 1"),
        ({"hidden_size": math.nan}, "'NaN' is not a whole number"),
        ({"num_hidden_layers": math.inf}, "'Infinity' is not a whole number"),
        ({"num_hidden_layers": 100_000}, "more than the 2000"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_attention_heads": 24}, "24 does not divide hidden_size"),
        ({"num_key_value_heads": 5}, "5 does not divide the 32 query heads"),
        ({"vocab_size": None}, "vocab_size"),
        ({"max_position_embeddings": None}, "max_position_embeddings"),
        ({"tie_word_embeddings": "no"}, "'no' is not true or false"),
        ({"torch_dtype": "int3"}, "torch_dtype: 'int3'"),
        ({"layer_types": ["full_attention"]}, "1 entries for 32 layers"),
        ({"layer_types": ["chunked_attention"] * 32}, "'chunked_attention' is not one of"),
        ({"layer_types": ["sliding_attention"] * 32}, "sliding_window: is missing"),
        ({"layer_types": "full_attention"}, "str where a list is needed"),
        ({"num_local_experts": 8}, "stands for experts"),
        ({"kv_lora_rank": 512}, "stands for a latent cache"),
        ({"index_topk": 2048}, "stands for an indexer"),
        ({"linear_num_key_heads": 16}, "stands for linear attention"),
        ({"hc_mult": 4}, "stands for streams"),
        ({"architectures": ["LlamaForCausalLMEagle3"]}, "is a draft model"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "does not generate text"),
        ({"architectures": "LlamaForCausalLM"}, "not a list of names"),
    ],
    ids=str,
)
def test_a_key_that_is_wrong_is_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    """Missing, of another type, out of range, or the mark of another architecture."""
    config = {key: value for key, value in {**facts("llama-3.1-8b"), **change}.items() if value is not None}
    assert says in refusal(written(tmp_path, config))


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("qwen3.8-2.4t-a95b", {"shared_expert_intermediate_size": None}, "shared_expert_intermediate_size: is missing"),
        ("qwen3-30b-a3b", {"num_experts_per_tok": None}, "num_experts_per_tok"),
        ("qwen3-30b-a3b", {"num_experts_per_tok": 200}, "more than the 128 experts"),
        ("mimo-v2-flash", {"moe_layer_freq": 1}, "int where a list is needed"),
        ("mimo-v2-flash", {"hybrid_layer_pattern": [0] * 47}, "47 entries for 48 layers"),
        ("minimax-m2.7", {"attn_type_list": [0] * 62}, "entries other than 1"),
        ("minimax-m1", {"shared_intermediate_size": 512}, "shared_intermediate_size: is not 0"),
        ("kimi-linear-48b-a3b", {"linear_attn_config": {"kda_layers": [0]}}, "not within 1"),
        ("deepseek-v4-pro", {"compress_ratios": [4] * 60}, "60 entries for 62 layers"),
        ("deepseek-v4-pro", {"expert_dtype": "fp3"}, "expert_dtype: 'fp3'"),
        ("deepseek-v3", {"num_nextn_predict_layers": 100}, "more than the 61 layers"),
        ("nemotron-h-56b", {"hybrid_override_pattern": "M-X"}, "'X' is not one of"),
        ("nemotron-h-56b", {"num_hidden_layers": 117}, "is 117, and the layers named are 118"),
        ("nemotron-3-ultra-550b-a55b", {"layers_block_type": None}, "nothing names the layers"),
    ],
    ids=str,
)
def test_each_family_names_what_it_misses(tmp_path: Path, name: str, change: dict[str, Any], says: str) -> None:
    """Keys of their own, lists of the wrong length, layers that do not add up."""
    config = {key: value for key, value in {**facts(name), **change}.items() if value is not None}
    assert says in refusal(written(tmp_path, config))


def test_language_parts_wherever_they_are(tmp_path: Path) -> None:
    """text_config, llm_config, language_config and a thinker's text_config hold the same model; notes name the rest."""
    inner = facts("qwen3-30b-a3b")
    plain = read(written(tmp_path, inner))
    outer = {"model_type": "x", "architectures": ["InternVLChatModel"], "vision_config": {"hidden_size": 32}}
    for nested in (
        {"text_config": inner},
        {"llm_config": inner},
        {"language_config": inner},
        {"thinker_config": {"text_config": inner, "audio_config": {}}},
    ):
        found = read(written(tmp_path, {**outer, **nested}))
        assert (found.attention, found.feed_forward) == (plain.attention, plain.feed_forward)
        assert "vision tower is not counted" in found.note


def test_infinity_where_no_size_is_read(tmp_path: Path) -> None:
    """Published Nemotron configs hold a bare Infinity as a limit of time steps; it is no size and does no harm."""
    config = {**facts("nemotron-h-56b"), "time_step_limit": [0.0, math.inf]}
    assert read(written(tmp_path, config)).layers == 118


def test_annotations_are_not_read(tmp_path: Path) -> None:
    """Keys with an underscore say something about a config, not in it."""
    config = {**facts("llama-3.1-8b"), "_vocab_size": 7, "_quantization_config": {"quant_method": "fp8"}}
    assert read(written(tmp_path, config)).vocabulary == 128256


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
SIZES = st.integers(0, 5000) | VALUES


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of every value in a JSON, lists by their first entries."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    return [path] * bool(path) + [found for key, entry in inner for found in leaves(entry, (*path, key))]


@given(data=st.data())
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_model_or_one_line_and_nothing_else(tmp_path: Path, data: st.DataObject) -> None:
    """Any value anywhere in any config: a record comes back, or a refusal."""
    config = facts(data.draw(st.sampled_from(NAMES)))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(leaves(config)))
        place: Any = config
        for key in path[:-1]:
            place = place[key]
        if data.draw(st.booleans()) and isinstance(place, dict):
            del place[path[-1]]
        else:
            place[path[-1]] = data.draw(SIZES)
        if not leaves(config):
            break
    outcome(written(tmp_path, json.dumps(config)))


@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | VALUES.map(json.dumps).map(str.encode))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_refusal(tmp_path: Path, content: bytes) -> None:
    """No content of a file is a fault."""
    outcome(written(tmp_path, content))


def outcome(path: Path) -> None:
    """Reads a path; anything but a record or a refusal is a fault."""
    line = ""
    try:
        assert isinstance(read(path), Model)
    except PlannerError as error:
        line = str(error)
    assert "\n" not in line
