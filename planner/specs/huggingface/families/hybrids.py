"""State spaces or linear attention with softmax attention between: Jamba, Nemotron-H and Nemotron 3, MiniMax-M1.

Reference: modeling_jamba.py, modeling_nemotron_h.py and modeling_minimax.py in huggingface/transformers; draft layers:
nemotron_h_mtp.py in vllm-project/vllm.
"""

from __future__ import annotations

from planner.specs.huggingface.config import Config
from planner.specs.huggingface.draft import draft_extras
from planner.specs.huggingface.families.llama_like import W123, network
from planner.specs.huggingface.foreign import refuse_foreign
from planner.specs.huggingface.network import Network, Part
from planner.specs.huggingface.parts import NONE, dense, formats, gqa, moe, part, routed
from planner.specs.huggingface.quantization import Quantization

WORDS = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
"""Letters of hybrid_override_pattern -> words of layers_block_type."""


def jamba(config: Config, quant: Quantization) -> Network:
    """Jamba: one attention layer in a period, experts on every second layer."""
    refuse_foreign(config, "experts", "a state space")
    width, bias = config.count("hidden_size"), config.flag(False, "mamba_proj_bias")
    rank = config.get("mamba_dt_rank")
    step = -(-width // 16) if rank in (None, "auto") else config.count("mamba_dt_rank")
    inner = config.count("mamba_expand") * width
    periods = config.count("attn_layer_period"), config.count("expert_layer_period")
    offsets = config.number("attn_layer_offset"), config.number("expert_layer_offset")

    def attention(index: int) -> Part:
        path = f"model.layers.{index}"
        if index % periods[0] == offsets[0]:
            return gqa(config, quant, f"{path}.self_attn")
        modules = {"input": "in_proj", "selection": "x_proj", "step": "dt_proj", "output": "out_proj"}
        return part(
            "mamba1", formats(config, quant, f"{path}.mamba", dict(modules)), quant.plain, inner=inner,
            state=config.count("mamba_d_state"), step_rank=step, conv_kernel=config.count("mamba_d_conv"),
            conv_bias=config.flag(True, "mamba_conv_bias"), bias=bias,
        )  # fmt: skip

    def feed(index: int) -> Part:
        path = f"model.layers.{index}.feed_forward"
        if index % periods[1] != offsets[1] or config.count("num_experts") == 1:
            return dense(config, quant, path, config.count("intermediate_size"))
        return moe(config, quant, path, **routed(config, "intermediate_size"), router="router")

    return network(config, quant, attention, feed)


def words(config: Config, listed: str, pattern: str) -> list[str] | None:
    """Layer kinds from a list of words or a text of letters, or None. Raises BadSpec."""
    found: list[str] = []
    if config.data.get(listed) is not None:
        found = [str(entry) for entry in config.entries(listed)]
    elif config.data.get(pattern) is not None:
        found = [WORDS.get(letter, letter) for letter in config.text("", pattern)]
    else:
        return None
    for word in found:
        if word not in WORDS.values():
            raise config.wrong(listed, f"{word!r} is not one of {', '.join(WORDS.values())}")
    return found


def mixer(config: Config, quant: Quantization, path: str, word: str) -> tuple[Part, Part]:
    """One layer: a mixer alone, so either its attention or its feed-forward is none."""
    bias = config.flag(False, "mlp_bias")
    if word == "mamba":
        modules = {"input": "in_proj", "bc": "in_proj", "output": "out_proj"}
        return part(
            "mamba2", formats(config, quant, path, dict(modules)), quant.plain, heads=config.count("mamba_num_heads"),
            head_dim=config.count("mamba_head_dim"), state=config.count("ssm_state_size"),
            groups=config.count("n_groups"), conv_kernel=config.count("conv_kernel"),
            chunk=config.count("chunk_size"), conv_bias=config.flag(True, "use_conv_bias"),
            bias=config.flag(False, "mamba_proj_bias"),
        ), NONE  # fmt: skip
    if word == "attention":
        given = config.flag(False, "attention_bias")
        return gqa(config, quant, path, bias=given, output_bias=given), NONE
    if word == "mlp":
        return NONE, dense(config, quant, path, config.count("intermediate_size"), gated=False, bias=bias)
    shared = config.number("n_shared_experts")
    wide = shared * config.count("moe_shared_expert_intermediate_size") if shared else None
    return NONE, moe(
        config, quant, path, **routed(config), shared_inner=wide, router_bias=True, gated=False,
        latent=config.maybe_count("moe_latent_size"), latent_norm=False,
        latent_names=("fc1_latent_proj", "fc2_latent_proj"),
    )  # fmt: skip


def nemotron_h(config: Config, quant: Quantization) -> Network:
    """Nemotron-H and Nemotron 3: every layer is one mixer; experts of two matrices, in a latent where one is given."""
    refuse_foreign(config, "experts", "a state space", "experts in a latent", "layers of different make")
    kinds = words(config, "layers_block_type", "hybrid_override_pattern")
    if not kinds:
        raise config.wrong("layers_block_type or hybrid_override_pattern", "is missing: nothing names the layers")
    count = config.maybe_count("num_hidden_layers")
    if count not in (None, len(kinds)):
        raise config.wrong("num_hidden_layers", f"is {count}, and the layers named are {len(kinds)}")
    config = config.with_keys(num_hidden_layers=len(kinds))
    layers = [mixer(config, quant, f"backbone.layers.{index}.mixer", word) for index, word in enumerate(kinds)]
    found = network(config, quant, lambda i: layers[i][0], lambda i: layers[i][1])
    drafts, width = config.number_or(0, "num_nextn_predict_layers"), config.count("hidden_size")
    if drafts > len(kinds):
        raise config.wrong("num_nextn_predict_layers", f"{drafts} is more than the {len(kinds)} layers")
    if drafts:
        named = words(config, "mtp_layers_block_type", "mtp_hybrid_override_pattern")
        if not named:
            raise config.wrong("mtp_layers_block_type", "is missing: nothing names the draft layers")
        each = [mixer(config, quant, f"mtp.layers.{i}.mixer", word) for i, word in enumerate(named * drafts)]
        found.extras |= draft_extras(
            config, [a for a, _ in each if a is not NONE], [f for _, f in each if f is not NONE],
            [(drafts * (2 * width * width + 3 * width) + len(each) * width, quant.plain)],
            f"{drafts} draft step{'s' if drafts > 1 else ''} of {len(named)} layers for multi-token prediction", drafts,
        )  # fmt: skip
    return found


def minimax_m1(config: Config, quant: Quantization) -> Network:
    """MiniMax-M1: lightning attention where attn_type_list says 0, softmax attention where it says 1."""
    refuse_foreign(config, "experts", "linear attention")
    marks = [config.whole("attn_type_list", m, 0) for m in config.entries("attn_type_list", config.layers)]
    if config.number_or(0, "shared_intermediate_size"):
        raise config.wrong("shared_intermediate_size", "is not 0: shared experts are not read in this family")

    def attention(index: int) -> Part:
        path = f"model.layers.{index}.self_attn"
        if marks[index]:
            return gqa(config, quant, path)
        modules = {"qkv": "qkv_proj", "output_gate": "output_gate", "output": "out_proj"}
        sizes = {"heads": config.count("num_attention_heads"), "head_dim": config.count("head_dim")}
        return part("lightning", formats(config, quant, path, dict(modules)), quant.plain, **sizes)

    return network(
        config,
        quant,
        attention,
        lambda i: moe(
            config, quant, f"model.layers.{i}.block_sparse_moe", **routed(config, "intermediate_size"), names=W123
        ),
    )


TYPES = {"jamba": jamba, "nemotron_h": nemotron_h, "minimax_m1": minimax_m1}
