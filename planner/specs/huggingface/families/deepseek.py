"""Latent attention with experts: DeepSeek-V2, V3 and R1, Kimi K2, and V3.2 and GLM-5 with an indexer.

Reference: modeling_deepseek_v3.py in huggingface/transformers; draft layers: deepseek_mtp.py in vllm-project/vllm.
"""

from __future__ import annotations

from planner.specs.huggingface.config import Config
from planner.specs.huggingface.families.llama_like import network, next_token_layers
from planner.specs.huggingface.foreign import refuse_foreign
from planner.specs.huggingface.network import Network, Part
from planner.specs.huggingface.parts import dense, formats, mla, mla_sizes, moe, part, routed
from planner.specs.huggingface.quantization import Quantization


def dense_layers(config: Config) -> list[bool]:
    """Which layers are dense: the first ones, or by a list of types or of 0 and 1."""
    count = config.layers
    if config.data.get("mlp_layer_types") is not None:
        kinds = config.entries("mlp_layer_types", count)
        if not set(map(str, kinds)) <= {"dense", "sparse"}:
            raise config.wrong("mlp_layer_types", "has entries other than dense and sparse")
        return [kind == "dense" for kind in kinds]
    if isinstance(config.data.get("moe_layer_freq"), list):
        marks = config.entries("moe_layer_freq", count)
        return [config.whole("moe_layer_freq", mark, 0) == 0 for mark in marks]
    first, step = config.number("first_k_dense_replace"), config.maybe_count("moe_layer_freq") or 1
    return [index < first or index % step != 0 for index in range(count)]


def feed_forward(config: Config, quant: Quantization, index: int, is_dense: bool, **rest: object) -> Part:
    """Dense, or experts with shared ones beside and a correction per expert."""
    path = f"model.layers.{index}.mlp"
    if is_dense:
        return dense(config, quant, path, config.count("intermediate_size"))
    count = config.number("n_shared_experts", "num_shared_experts")
    method = config.text("noaux_tc", "topk_method")
    sizes = routed(config)
    return moe(
        config, quant, path, **sizes, shared_inner=count * sizes["inner"], router_bias=method == "noaux_tc", **rest  # type: ignore[arg-type]
    )  # fmt: skip


def deepseek(config: Config, quant: Quantization) -> Network:
    """DeepSeek-V3, R1 and V3.1, Kimi K2 and K2.5."""
    refuse_foreign(config, "experts", "a latent cache")
    sparse = dense_layers(config)

    def attention(index: int) -> Part:
        return mla(config, quant, f"model.layers.{index}.self_attn")

    def feed(index: int) -> Part:
        return feed_forward(config, quant, index, index < len(sparse) and sparse[index])

    found = network(config, quant, attention, feed)
    found.extras |= next_token_layers(config, quant, attention, feed)
    return found


def indexed(config: Config, quant: Quantization) -> Network:
    """DeepSeek-V3.2 and GLM-5: an indexer on every layer, or on those that indexer_types calls full."""
    refuse_foreign(config, "experts", "a latent cache", "an indexer")
    sparse, owners = dense_layers(config), [True] * config.layers
    if config.data.get("indexer_types") is not None:
        kinds = config.entries("indexer_types", config.layers)
        if not set(map(str, kinds)) <= {"full", "shared"}:
            raise config.wrong("indexer_types", "has entries other than full and shared")
        owners = [kind == "full" for kind in kinds]

    def attention(index: int) -> Part:
        return sparse_mla(config, quant, f"model.layers.{index}.self_attn", index >= len(owners) or owners[index])

    def feed(index: int) -> Part:
        return feed_forward(config, quant, index, index < len(sparse) and sparse[index])

    found = network(config, quant, attention, feed)
    copies = config.kind == "deepseek_v32"
    found.extras |= next_token_layers(config, quant, attention, feed, copies=copies)
    return found


def sparse_mla(config: Config, quant: Quantization, path: str, owns: bool) -> Part:
    """Latent attention with an indexer. The projection that weighs its heads stays plain in every checkpoint."""
    chosen, overrides = formats(
        config,
        quant,
        path,
        {
            "q_a": "q_a_proj",
            "q_b": "q_b_proj",
            "kv_a": "kv_a_proj_with_mqa",
            "kv_b": "kv_b_proj",
            "output": "o_proj",
            **({"index_q": "indexer.wq_b", "index_k": "indexer.wk"} if owns else {}),
        },
    )
    if owns and chosen != quant.plain:
        overrides["index_weights"] = quant.plain
    return part(
        "sparse_mla", (chosen, overrides), quant.plain, **mla_sizes(config), index_heads=config.count("index_n_heads"),
        index_dim=config.count("index_head_dim"), index_topk=config.count("index_topk"), owns_indexer=owns,
    )  # fmt: skip


TYPES = {
    "deepseek_v3": deepseek,
    "kimi_k2": deepseek,
    "deepseek_v32": indexed,
    "glm_moe_dsa": indexed,
}
