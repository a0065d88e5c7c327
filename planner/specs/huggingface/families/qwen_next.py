"""Gated DeltaNet with full attention between: Qwen3-Next, Qwen3.5 and their successors, dense or with experts.

What the configs do not say: full attention has norms of queries and keys by head and, unless attn_output_gate is
false, a gate as wide as its output in the query projection; the shared expert has a gate. Reference: modeling files of
the same names in huggingface/transformers; qwen3_5_mtp.py in vllm-project/vllm.
"""

from __future__ import annotations

from planner.errors import shown
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.draft import draft_extras
from planner.specs.huggingface.families.llama_like import network, sparse_layers
from planner.specs.huggingface.foreign import refuse_foreign
from planner.specs.huggingface.network import Network, Part
from planner.specs.huggingface.parts import dense, formats, gqa, moe, part, routed
from planner.specs.huggingface.quantization import Quantization

INTERVAL = 4  # every fourth layer is full attention, where the config says nothing
FULL, LINEAR = "full_attention", "linear_attention"


def linear_layers(config: Config) -> list[bool]:
    """Which layers are linear: by layer_types, else all but every full_attention_interval-th."""
    if config.data.get("layer_types") is None:
        interval = config.maybe_count("full_attention_interval") or INTERVAL
        return [(index + 1) % interval != 0 for index in range(config.layers)]
    kinds = config.entries("layer_types", config.layers)
    for kind in kinds:
        if kind not in (FULL, LINEAR):
            raise config.wrong("layer_types", f"{shown(kind)} is not one of {FULL}, {LINEAR}")
    return [kind == LINEAR for kind in kinds]


def delta(config: Config, quant: Quantization, path: str, fused: bool) -> Part:
    """A linear layer. fused: q, k, v and gate are one matrix, decay and learning rate another."""
    names = {
        "qkv": "in_proj_qkvz" if fused else "in_proj_qkv",
        "output_gate": "in_proj_qkvz" if fused else "in_proj_z",
        "decay": "in_proj_ba" if fused else "in_proj_a",
        "learning_rate": "in_proj_ba" if fused else "in_proj_b",
        "output": "out_proj",
    }
    return part(
        "gated_delta", formats(config, quant, path, dict(names)), quant.plain,
        key_heads=config.count("linear_num_key_heads"), value_heads=config.count("linear_num_value_heads"),
        key_dim=config.count("linear_key_head_dim"), value_dim=config.count("linear_value_head_dim"),
        conv_kernel=config.count("linear_conv_kernel_dim"),
    )  # fmt: skip


def qwen_next(config: Config, quant: Quantization) -> Network:
    """Qwen3-Next and Qwen3.5."""
    refuse_foreign(config, "experts", "linear attention")
    first, mixture = config.kind == "qwen3_next", config.kind != "qwen3_5" and config.kind != "qwen3_5_text"
    if not mixture:
        refuse_foreign(config, "linear attention")
    linear, bias = linear_layers(config), config.flag(False, "attention_bias")
    gate = "elementwise" if config.flag(True, "attn_output_gate") else None
    sparse = sparse_layers(config) if mixture else [False] * config.layers

    def full(path: str) -> Part:
        return gqa(config, quant, path, output_gate=gate, qk_norm="head", bias=bias, output_bias=bias)

    def attention(index: int) -> Part:
        path = f"model.layers.{index}"
        return delta(config, quant, f"{path}.linear_attn", first) if linear[index] else full(f"{path}.self_attn")

    def feed(path: str, has_experts: bool) -> Part:
        if not has_experts:
            return dense(config, quant, path, config.count("intermediate_size"))
        shared = config.count("shared_expert_intermediate_size")
        return moe(config, quant, path, **routed(config), shared_inner=shared, shared="shared_expert", shared_gate=True)

    found = network(config, quant, attention, lambda i: feed(f"model.layers.{i}.mlp", sparse[i]))
    drafts = config.number_or(0, "mtp_num_hidden_layers")
    if drafts > config.layers:
        raise config.wrong("mtp_num_hidden_layers", f"{drafts} is more than the {config.layers} layers")
    if drafts:
        width = config.count("hidden_size")
        paths = [f"mtp.layers.{index}" for index in range(drafts)]
        found.extras |= draft_extras(
            config, [full(f"{path}.self_attn") for path in paths], [feed(f"{path}.mlp", mixture) for path in paths],
            [(2 * width * width + 3 * width + drafts * 2 * width, quant.plain)],
            f"{drafts} draft layer{'s' if drafts > 1 else ''} for multi-token prediction", drafts,
        )  # fmt: skip
        if config.flag(False, "mtp_use_dedicated_embeddings"):
            raise config.wrong("mtp_use_dedicated_embeddings", "is true: tables of the draft layers are not read here")
    elif first:
        found.notes.append("Draft layers have no key in this config and are not counted.")
    return found


TYPES = dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), qwen_next)
