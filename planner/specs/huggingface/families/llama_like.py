"""Decoders with grouped-query attention: Llama, Mistral, Mixtral, Qwen2 and Qwen3, GLM-4.5, MiniMax-M2.

What the configs do not say, by model: Qwen2 has biases on q, k and v; Qwen3 has norms of queries and keys by head,
GLM-4.5 where it says so, MiniMax-M2 over all heads. Routers are stored in FP32 by MiniMax-M2. Reference: modeling files
of the same names in huggingface/transformers.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import shown
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.draft import draft_extras, table_copies
from planner.specs.huggingface.foreign import refuse_foreign
from planner.specs.huggingface.network import Network, Part
from planner.specs.huggingface.parts import dense, gqa, moe, routed
from planner.specs.huggingface.quantization import Quantization
from planner.specs.huggingface.vision import towers

W123 = ("w1", "w3", "w2")
Layer = Callable[[int], Part]


def network(config: Config, quant: Quantization, attention: Layer, feed_forward: Layer, **rest: object) -> Network:
    """Layers in order, and the vision tower where there is one."""
    extras, notes = towers(config, quant.plain)
    layers = [(attention(index), feed_forward(index)) for index in range(config.layers)]
    return Network(layers=layers, table_format=quant.plain, extras=extras, notes=notes, **rest)  # type: ignore[arg-type]


def windows(config: Config, switched: bool = True) -> list[int | None]:
    """The window of every layer: by layer_types, else sliding_window on all unless it is switched off.

    switched: what a use_sliding_window of null means.
    """
    count = config.layers
    if config.data.get("layer_types") is not None:
        sliding = sliding_layers(config)
        size = config.maybe_count("sliding_window") if any(sliding) else None
        return [size if slides else None for slides in sliding]
    size = config.maybe_count("sliding_window") if config.flag(switched, "use_sliding_window") else None
    if size is None:
        return [None] * count
    first = config.number_or(0, "max_window_layers")
    return [size if index >= first else None for index in range(count)]


def sliding_layers(config: Config) -> list[bool]:
    """Whether each layer has a window, by layer_types; entries beyond the layers belong to draft layers."""
    kinds = config.entries("layer_types")
    known = {"full_attention": False, "sliding_attention": True}
    if len(kinds) < config.layers:
        raise config.wrong("layer_types", f"has {len(kinds)} entries for {config.layers} layers")
    for kind in kinds:
        if not isinstance(kind, str) or kind not in known:
            raise config.wrong("layer_types", f"{shown(kind)} is not one of {', '.join(known)}")
    found = [known[kind] for kind in kinds[: config.layers]]
    if any(found):
        config.count("sliding_window")
    return found


def plain(
    config: Config, quant: Quantization, *, bias: bool, qk_norm: str | None = None, switched: bool = True
) -> Network:
    """A dense decoder. bias, switched: what its attention_bias and use_sliding_window are where nothing says."""
    refuse_foreign(config)
    given, size = config.flag(bias, "attention_bias", "qkv_bias"), windows(config, switched)
    inner, mlp_bias = config.count("intermediate_size"), config.flag(False, "mlp_bias")
    output_bias = given and config.kind not in ("qwen2",)
    return network(
        config,
        quant,
        lambda i: gqa(
            config, quant, f"model.layers.{i}.self_attn", window=size[i], bias=given, output_bias=output_bias,
            qk_norm=qk_norm,
        ),
        lambda i: dense(config, quant, f"model.layers.{i}.mlp", inner, bias=mlp_bias),
    )  # fmt: skip


def llama(config: Config, quant: Quantization) -> Network:
    """Llama and Mistral."""
    return plain(config, quant, bias=False)


def qwen2(config: Config, quant: Quantization) -> Network:
    """Qwen2 and Qwen2.5: biases on q, k and v, none on the output; windows only where switched on."""
    return plain(config, quant, bias=True, switched=False)


def qwen3(config: Config, quant: Quantization) -> Network:
    """Qwen3: norms of queries and keys."""
    return plain(config, quant, bias=False, qk_norm="head", switched=False)


def sparse_layers(config: Config) -> list[bool]:
    """Which layers have experts, by decoder_sparse_step and mlp_only_layers."""
    step, only = config.maybe_count("decoder_sparse_step") or 1, set()
    if config.data.get("mlp_only_layers") is not None:
        only = {config.whole("mlp_only_layers", entry, 0) for entry in config.entries("mlp_only_layers")}
    return [index not in only and (index + 1) % step == 0 for index in range(config.layers)]


def qwen_moe(config: Config, quant: Quantization) -> Network:
    """Qwen2-MoE, Qwen3-MoE and Qwen3-VL: experts on all layers but those listed; Qwen2 has a gated shared expert."""
    refuse_foreign(config, "experts")
    second = config.kind == "qwen2_moe"
    bias, sparse = config.flag(second, "attention_bias", "qkv_bias"), sparse_layers(config)
    shared = config.number_or(0, "shared_expert_intermediate_size") if not second else None
    shared = config.count("shared_expert_intermediate_size") if second else shared
    return network(
        config,
        quant,
        lambda i: gqa(
            config, quant, f"model.layers.{i}.self_attn", bias=bias, output_bias=bias and not second,
            qk_norm=None if second else "head",
        ),
        lambda i: moe(
            config, quant, f"model.layers.{i}.mlp", **routed(config), shared_inner=shared, shared="shared_expert",
            shared_gate=bool(shared),
        ) if sparse[i] else dense(config, quant, f"model.layers.{i}.mlp", config.count("intermediate_size")),
    )  # fmt: skip


def mixtral(config: Config, quant: Quantization) -> Network:
    """Mixtral: experts on every layer, their width in intermediate_size."""
    refuse_foreign(config, "experts")
    size = windows(config)
    return network(
        config,
        quant,
        lambda i: gqa(config, quant, f"model.layers.{i}.self_attn", window=size[i]),
        lambda i: moe(
            config, quant, f"model.layers.{i}.block_sparse_moe", **routed(config, "intermediate_size"), names=W123
        ),
    )


def minimax_m2(config: Config, quant: Quantization) -> Network:
    """MiniMax-M2: norms over all heads of queries and keys, a correction per expert, no shared expert."""
    types = config.data.get("attn_type_list")
    if types is not None and config.entries("attn_type_list", config.layers) != [1] * config.layers:
        raise config.wrong("attn_type_list", "has entries other than 1: not every layer is softmax attention")
    refuse_foreign(config, "experts", "linear attention")
    if config.number_or(0, "shared_intermediate_size"):
        raise config.wrong("shared_intermediate_size", "is not 0: shared experts are not read in this family")
    norm = {"per_layer": "full", "per_head": "head"}.get(config.text("per_layer", "qk_norm_type"))
    if norm is None:
        raise config.wrong("qk_norm_type", f"{config.get('qk_norm_type')!r} is not one of per_layer, per_head")

    def feed_forward(index: int) -> Part:
        found = moe(
            config, quant, f"model.layers.{index}.block_sparse_moe", **routed(config, "intermediate_size"), names=W123,
            router_bias=config.flag(True, "use_routing_bias"),
        )  # fmt: skip
        found["overrides"] = {**found.get("overrides", {}), "router": "fp32"}
        return found

    found = network(
        config,
        quant,
        lambda i: gqa(
            config, quant, f"model.layers.{i}.self_attn", qk_norm=norm if config.flag(True, "use_qk_norm") else None
        ),
        feed_forward,
    )
    if config.flag(False, "use_mtp"):
        found.notes.append("The draft modules the config names are not in the published files and are not counted.")
    return found


def glm4_moe(config: Config, quant: Quantization) -> Network:
    """GLM-4.5 to 4.7: biases on q, k and v, first layers dense, a shared expert, draft layers."""
    refuse_foreign(config, "experts")
    norm = "head" if config.flag(False, "use_qk_norm") else None
    bias, dense_layers = config.flag(False, "attention_bias"), config.number("first_k_dense_replace")

    def attention(index: int) -> Part:
        return gqa(config, quant, f"model.layers.{index}.self_attn", bias=bias, qk_norm=norm)

    def feed_forward(index: int) -> Part:
        path = f"model.layers.{index}.mlp"
        if index < dense_layers:
            return dense(config, quant, path, config.count("intermediate_size"))
        shared = config.number("n_shared_experts") * config.count("moe_intermediate_size")
        return moe(config, quant, path, **routed(config), shared_inner=shared, router_bias=True)

    found = network(config, quant, attention, feed_forward)
    found.extras |= next_token_layers(config, quant, attention, feed_forward)
    return found


def next_token_layers(
    config: Config, quant: Quantization, attention: Layer, feed_forward: Layer, *, copies: bool = True
) -> dict[str, Part]:
    """Draft layers as DeepSeek-V3 has them: a whole layer, a projection of two vectors into one, three norms.

    copies: the files hold embedding and head once more for each.
    """
    count, width = config.number_or(0, "num_nextn_predict_layers"), config.count("hidden_size")
    if not count:
        return {}
    if count > config.layers:
        raise config.wrong("num_nextn_predict_layers", f"{count} is more than the {config.layers} layers")
    indices = range(config.layers, config.layers + count)
    others = [(count * (2 * width * width + 5 * width), quant.plain)]
    note = f"{count} draft layer{'s' if count > 1 else ''} for multi-token prediction"
    drafts = draft_extras(
        config, [attention(i) for i in indices], [feed_forward(i) for i in indices], others, note, count
    )
    return drafts | (table_copies(config, count, quant.plain) if copies else {})


TYPES = {
    "llama": llama,
    "mistral": llama,
    "qwen2": qwen2,
    "qwen2_moe": qwen_moe,
    "qwen3": qwen3,
    "qwen3_vl_text": qwen3,
    "qwen3_moe": qwen_moe,
    "qwen3_vl_moe": qwen_moe,
    "qwen3_vl_moe_text": qwen_moe,
    "mixtral": mixtral,
    "minimax_m2": minimax_m2,
    "glm4_moe": glm4_moe,
}
