"""Kimi Linear and Kimi K3: delta attention with latent attention between, experts, in K3 in a latent and with attention
residuals.

Layer numbers in linear_attn_config are 1-based. Rank of decay and gate is the head width. Reference: modeling_kimi.py
beside moonshotai/Kimi-Linear-48B-A3B-Instruct; Kimi K3 technical report, arXiv:2607.24653.
"""

from __future__ import annotations

from planner.specs.huggingface.config import Config
from planner.specs.huggingface.families.deepseek import dense_layers
from planner.specs.huggingface.families.llama_like import network
from planner.specs.huggingface.foreign import refuse_foreign
from planner.specs.huggingface.network import Network, Part
from planner.specs.huggingface.parts import dense, formats, mla, moe, part, routed
from planner.specs.huggingface.quantization import Quantization

LATENT = "routed_expert_hidden_size"


def delta_layers(config: Config) -> set[int]:
    """Indices from 0 of the delta layers; with the full ones they cover every layer once. Raises BadSpec."""
    linear, count = config.inner("linear_attn_config"), config.layers
    found: dict[str, set[int]] = {}
    for key in ("kda_layers", "full_attn_layers"):
        found[key] = {linear.whole(key, entry, 1) - 1 for entry in linear.entries(key)}
    delta, full = found["kda_layers"], found["full_attn_layers"]
    if delta & full or delta | full != set(range(count)):
        raise linear.wrong("kda_layers", f"with full_attn_layers does not name each of the {count} layers once")
    return delta


def kda(config: Config, quant: Quantization, path: str) -> Part:
    """A delta layer; its decay and gate go through the head width."""
    linear = config.inner("linear_attn_config")
    dim, whole = linear.count("head_dim"), linear.flag(False, "use_full_rank_gate")
    chosen = formats(
        config,
        quant,
        path,
        {
            "qkv": ("q_proj", "k_proj", "v_proj"),
            "output": "o_proj",
            "decay_in": "f_a_proj",
            "decay_out": "f_b_proj",
            "learning_rate": "b_proj",
            **({"output_gate": "g_proj"} if whole else {"output_gate_in": "g_a_proj", "output_gate_out": "g_b_proj"}),
        },
    )
    return part(
        "kda", chosen, "fp32", heads=linear.count("num_heads"), head_dim=dim,
        conv_kernel=linear.count("short_conv_kernel_size"), decay_rank=dim, output_gate_rank=None if whole else dim,
    )  # fmt: skip


def kimi(config: Config, quant: Quantization) -> Network:
    """Kimi Linear, and K3 where the keys of its latent and residuals are there."""
    refuse_foreign(
        config, "experts", "a latent cache", "linear attention", "experts in a latent", "streams between layers"
    )
    delta, first = delta_layers(config), dense_layers(config)
    gate, latent = config.flag(False, "mla_use_output_gate"), config.maybe_count(LATENT)

    def attention(index: int) -> Part:
        path = f"model.layers.{index}.self_attn"
        return kda(config, quant, path) if index in delta else mla(config, quant, path, output_gate=gate)

    def feed(index: int) -> Part:
        if first[index]:
            return dense(config, quant, f"model.layers.{index}.mlp", config.count("intermediate_size"))
        sizes = routed(config)
        return moe(
            config, quant, f"model.layers.{index}.block_sparse_moe", **sizes, names=("w1", "w3", "w2"),
            shared_inner=config.number("num_shared_experts", "n_shared_experts") * sizes["inner"],
            shared_names=("gate_proj", "up_proj", "down_proj"), router_bias=True, latent=latent,
            latent_norm=config.flag(True, "latent_moe_use_norm"),
        )  # fmt: skip

    if config.number_or(0, "num_nextn_predict_layers"):
        raise config.wrong("num_nextn_predict_layers", "is not 0: no draft layers of this family are known")
    found = network(config, quant, attention, feed)
    block = config.maybe_count("attn_res_block_size")
    if block is not None:
        found.residual = {"kind": "attn_res", "vector_format": quant.plain, "block": block, "layers": config.layers}
    if latent is not None and quant.format("model.layers.1.mlp.experts.0.w1") != quant.plain:
        found.notes.append(
            "Latent projections, router and residual vectors are not in the ignore list but are BF16 in the files;"
            " the checkpoint's bytes close only that way."
        )
    return found


TYPES = {"kimi_linear": kimi, "kimi_k3": kimi}
