"""Formats of weights in every spelling: which modules a scheme covers, and what is left plain."""

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import BadSpec
from planner.specs.huggingface import read
from planner.specs.huggingface.modules import Names, bare
from planner.specs.model import Model

DENSE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2048,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000,
    "max_position_embeddings": 4096,
}  # fmt: skip
MIXED: dict[str, Any] = {
    "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 1024, "num_hidden_layers": 2,
    "intermediate_size": 2048, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000,
    "max_position_embeddings": 4096, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 512,
}  # fmt: skip


def model(folder: Path, config: dict[str, Any], quantization: dict[str, Any] | None, side: Any = None) -> Model:
    """The model of a config with a quantisation, and with a separate file where one is given."""
    whole = config if quantization is None else {**config, "quantization_config": quantization}
    (folder / "config.json").write_text(json.dumps(whole), encoding="utf-8")
    if side is not None:
        (folder / "hf_quant_config.json").write_text(json.dumps(side), encoding="utf-8")
    return read(folder)


def group(format: str | None = None, targets: list[str] | None = None, **weights: Any) -> dict[str, Any]:
    """One group of compressed-tensors."""
    found: dict[str, Any] = {"targets": targets or ["Linear"], "weights": weights}
    return {**found, "format": format} if format else found


def packed(**groups: Any) -> dict[str, Any]:
    """A compressed-tensors scheme that leaves the head out."""
    return {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["lm_head"]}


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        (None, "bf16"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8_block"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "int4_g128"),
        ({"quant_method": "awq", "bits": 4, "group_size": 32}, "int4"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8"),
        (packed(g=group(type="int", num_bits=4, group_size=128, strategy="group")), "int4_g128"),
        (packed(g=group(type="int", num_bits=4, group_size=32, strategy="group")), "int4"),
        (packed(g=group(type="int", num_bits=8, strategy="channel")), "int8"),
        (packed(g=group(type="float", num_bits=8, strategy="channel")), "fp8"),
        (packed(g=group(type="float", num_bits=8, strategy="tensor")), "fp8"),
        (packed(g=group(type="float", num_bits=8, strategy="block", block_structure=[128, 128])), "fp8_block"),
        (packed(g=group("mxfp4-pack-quantized", type="float", num_bits=4, group_size=32)), "mxfp4"),
        (packed(g=group("nvfp4-pack-quantized", type="float", num_bits=4, group_size=16)), "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": ["lm_head"]}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, "nvfp4"),
        (
            {"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 128, "ignore": ["lm_head"]},
            "int4_g128",
        ),
    ],
    ids=str,
)
def test_every_spelling(tmp_path: Path, scheme: dict[str, Any] | None, expected: str) -> None:
    """One scheme for all: the matrices have its format, the table, norms and head are plain."""
    found = model(tmp_path, DENSE, scheme)
    assert found.feed_forward["dense"].format == found.attention["gqa"].format == expected
    assert (found.table_format, found.attention["gqa"].vector_format) == ("bf16", "bf16")
    assert found.note == ""


def test_a_separate_file_stands_for_the_scheme(tmp_path: Path) -> None:
    """hf_quant_config.json alone is enough, as NVIDIA publishes it; the cache format is only noted."""
    inner = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16, "exclude_modules": ["lm_head"]}
    found = model(tmp_path, DENSE, None, {"producer": {"name": "modelopt"}, "quantization": inner})
    assert found.attention["gqa"].format == "nvfp4"
    assert "cache of FP8" in found.note


def test_ignore_lists_by_glob_prefix_and_expression(tmp_path: Path) -> None:
    """Names are compared without their wrapper; layer 1 is not layer 10."""
    ignore = ["lm_head", "model.language_model.layers.1.*", "*.layers.2.self_attn.*", "re:model\\.layers\\.3\\.mlp.*"]
    scheme = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ignore}
    found = model(tmp_path, DENSE, scheme)
    kinds = [(found.attention[a].format, found.feed_forward[f].format) for a, f in found.layer_kinds()]
    assert kinds == [("nvfp4", "nvfp4"), ("bf16", "bf16"), ("bf16", "nvfp4"), ("nvfp4", "bf16")]


def test_one_matrix_apart_is_an_override(tmp_path: Path) -> None:
    """A projection left out of the scheme keeps its own format."""
    scheme = {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["o_proj"]}
    assert model(tmp_path, DENSE, scheme).attention["gqa"].overrides == {"output": "bf16"}


def test_a_group_in_two_formats_is_refused(tmp_path: Path) -> None:
    """Gate, up and down are one weight group here."""
    scheme = {"quant_method": "fp8", "modules_to_not_convert": ["down_proj"]}
    with pytest.raises(BadSpec, match="bf16 and fp8"):
        model(tmp_path, DENSE, scheme)


def test_experts_alone(tmp_path: Path) -> None:
    """Routed experts have their format, the router is never quantised."""
    scheme = packed(g=group(type="int", num_bits=4, group_size=32, strategy="group"))
    scheme["ignore"] = ["lm_head", "re:.*self_attn.*"]
    found = model(tmp_path, MIXED, scheme)
    moe = found.feed_forward["moe"]
    assert (moe.routed_format, moe.format, found.attention["gqa"].format) == ("int4", "bf16", "bf16")


def test_a_mixed_table(tmp_path: Path) -> None:
    """A table names modules or what holds them; what it does not name is plain."""
    table = {
        **{f"model.layers.{i}.mlp.experts": {"quant_algo": "NVFP4", "group_size": 16} for i in range(2)},
        "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
    }
    side = {"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": table}}
    found = model(tmp_path, MIXED, {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, side)
    assert found.feed_forward["moe"].routed_format == "nvfp4"
    first = found.attention[found.layer_kinds()[0][0]]
    assert (first.format, first.overrides) == ("bf16", {"q": "fp8"})


def test_experts_named_by_a_key_of_their_own(tmp_path: Path) -> None:
    """moe_quant_algo over FP8: experts by it, the rest stays in FP8."""
    scheme = {
        "quant_method": "fp8", "quant_algo": "MIXED_PRECISION", "moe_quant_algo": "NVFP4",
        "weight_block_size": [128, 128], "ignore": ["*.attn.*", "head"],
    }  # fmt: skip
    found = model(tmp_path, MIXED, scheme)
    assert found.feed_forward["moe"].routed_format == "nvfp4"
    assert found.attention["gqa"].format == "fp8_block"


def test_a_quantised_head_is_noted(tmp_path: Path) -> None:
    """The record has one format for both tables, so a note says what the head has."""
    found = model(tmp_path, DENSE, {"quant_method": "modelopt", "quant_algo": "NVFP4"})
    assert "head is stored as nvfp4" in found.note


@pytest.mark.parametrize(
    ("scheme", "says"),
    [
        ({"quant_method": "quark"}, "quant_method: 'quark'"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "no such weights"),
        ({}, "quant_method: is missing: the object is empty"),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, "128 x 128"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 64}, "groups of 64"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "3 bits"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"+:.*": {"bits": 8}}}, "dynamic"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP9"}, "'NVFP9'"),
        ({"quant_method": "modelopt"}, "quant_algo"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quantized_layers: is missing"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["re:("]}, "bad pattern"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": "lm_head"}, "list of module names"),
        (packed(), "no group says"),
        ({"quant_method": "fp8", "group_size": 17}, "fp8 has no groups"),
        ({"quant_method": "fp8", "fmt": "e9m9"}, "fmt: 'e9m9'"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128], "group_size": 64}, "groups of 128"),
        ({"quant_method": "fbgemm_fp8", "group_size": 17}, "fp8 has no groups"),
        ({"quant_method": "mxfp8", "group_size": 16}, "groups of 32"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "group_size": 17}, "fp8 has no groups"),
        ({"quant_method": "modelopt", "quant_algo": "MXFP4", "group_size": 16}, "groups of 32"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ", "group_size": 0}, "group_size: 0"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "group_size: 0"),
        ({"quant_method": "gptq", "bits": 4, "w_bit": 8, "group_size": 128}, "name the same thing"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "quant_algo": "FP8"}, "two schemes at once"),
        ({"quant_method": "fp8", "quant_algo": "NVFP4"}, "NVFP4 where quant_method says fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "bits": 8}, "8 where quant_algo says NVFP4"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": 0}, "int where an object is needed"),
        ({"quant_method": "mxfp4"}, "matches no module"),
        ({"quant_method": "fp8", "ignore": ["re:.*"]}, "matches no module"),
        (packed(g=group(targets=["re:.*nowhere.*"], type="int", num_bits=8)), "matches no module"),
        (packed(g=group("nvfp4zz", type="float", num_bits=4, group_size=16)), "'nvfp4zz': no such packing"),
        (packed(g=group("nvfp4-pack-quantized", type="float", num_bits=8)), "8 bits of float where the packing"),
        (packed(g=group("nvfp4-pack-quantized", type="float", num_bits=4, group_size=32)), "groups of 16"),
        (packed(g=group(type="int", num_bits=8, strategy="channel", group_size=32)), "32 where strategy is channel"),
        (packed(g=group(type="int", num_bits=4, strategy="group")), "None where strategy is group"),
        (packed(g=group(type="int", num_bits=8, strategy="rows")), "'rows' is not one of"),
        (packed(g=group(type="int", num_bits=8, strategy="block")), "no such format"),
        ({**packed(g=group(type="int", num_bits=8)), "sparsity_config": "sparse"}, "str where an object is needed"),
        (
            packed(a=group(type="int", num_bits=8), b=group(type="float", num_bits=8)),
            "Linear is int8 in one group and fp8 in another",
        ),
        (
            packed(
                a=group(targets=["re:.*proj"], type="int", num_bits=8),
                b=group(targets=["re:.*q_proj"], type="float", num_bits=8),
            ),
            "fp8 and int8 in different groups",
        ),
        (packed(g=group(type="float", num_bits=6)), "6 bits"),
        ({**packed(g=group(type="int", num_bits=8)), "sparsity_config": {"format": "sparse-24-bitmask"}}, "sparse"),
    ],
    ids=str,
)
def test_an_unknown_scheme_stops(tmp_path: Path, scheme: dict[str, Any], says: str) -> None:
    """Nothing unknown falls back to 16 bits."""
    with pytest.raises(BadSpec) as caught:
        model(tmp_path, DENSE, scheme)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_equal_groups_may_name_the_same_modules(tmp_path: Path) -> None:
    """Groups that say the same of a module do not contradict."""
    scheme = packed(a=group(type="int", num_bits=8), b=group(targets=["re:.*q_proj"], type="int", num_bits=8))
    assert model(tmp_path, DENSE, scheme).attention["gqa"].format == "int8"


def test_both_lists_of_gptq_count(tmp_path: Path) -> None:
    """What either leaves out is plain."""
    left = {"modules_to_not_convert": ["q_proj"], "dynamic": {r"-:.*\.k_proj": {}}}
    found = model(tmp_path, DENSE, {"quant_method": "gptq", "bits": 4, "group_size": 128, **left})
    assert found.attention["gqa"].format == "bf16"
    assert found.attention["gqa"].overrides == {"v": "int4_g128", "output": "int4_g128"}


@pytest.mark.parametrize(
    ("stated", "side", "says"),
    [
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, {"quant_algo": "FP8"}, "hf_quant_config.json says 'FP8'"),
        ({"quant_method": "modelopt", "group_size": 16}, {"quant_algo": "NVFP4", "group_size": 32}, "says 32"),
    ],
    ids=str,
)
def test_two_files_that_differ(tmp_path: Path, stated: dict[str, Any], side: dict[str, Any], says: str) -> None:
    """Neither wins silently."""
    with pytest.raises(BadSpec, match=says):
        model(tmp_path, DENSE, stated, {"quantization": side})


def test_names() -> None:
    """Lists of names: a prefix, a glob, an expression, a last word, a word within."""
    names = Names.of(["model.layers.0*", "backbone.layers.7.mixer.gate", "*.shared.*", "re:.*vision.*", "lm_head"])
    assert bare("model.language_model.layers.3.mlp") == "layers.3.mlp"
    named = ("layers.0.mlp.up_proj", "layers.7.mixer.gate", "layers.5.mlp.shared.up_proj", "vision_tower.a", "lm_head")
    assert all(names.match(name) for name in named)
    assert not any(names.match(name) for name in ("layers.1.mlp", "layers.7.mixer.gates", "layers.5.mlp.up_proj"))
