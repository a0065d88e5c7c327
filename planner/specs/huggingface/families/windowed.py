"""Decoders with sliding windows on some layers: Gemma 3 and 4, gpt-oss, Llama 4, MiMo-V2, Step 3.5.

What the configs do not say, by model: Gemma has norms of queries and keys and takes most sizes from the library where
a key is absent; gpt-oss has biases on every matrix and sinks; Llama 4 has a shared expert on each layer of experts, as
wide as a routed one, and norms of queries and keys without weights. Reference: modeling files of the same names in
huggingface/transformers; step3p5.py, step3p5_mtp.py and mimo_v2_flash.py in vllm-project/vllm.
"""

from __future__ import annotations

from planner.specs.huggingface.config import Config
from planner.specs.huggingface.draft import draft_extras
from planner.specs.huggingface.families.deepseek import feed_forward
from planner.specs.huggingface.families.llama_like import network, sliding_layers
from planner.specs.huggingface.foreign import refuse_foreign
from planner.specs.huggingface.network import Network, Part
from planner.specs.huggingface.parts import dense, gqa, head_dim, moe, routed
from planner.specs.huggingface.quantization import Quantization

FUSED = ("gate_up_proj", "down_proj")
GEMMA_NORMS, GEMMA4_EXPERT_NORMS = 4, 4
"""Norms of a layer: before and after attention and feed-forward; and what Gemma 4 adds around its experts."""
GEMMA3_PATTERN, GPT_OSS_PATTERN = 6, 2  # every so many-th layer sees everything, where nothing lists them
LLAMA4_PATTERN = 4  # every fourth layer has no rotation and sees everything


def every(config: Config, pattern: int) -> list[bool]:
    """Whether each layer slides where all but every `pattern`-th do, unless layer_types says it."""
    if config.data.get("layer_types") is not None:
        return sliding_layers(config)
    pattern = config.maybe_count("sliding_window_pattern") or pattern
    return [(index + 1) % pattern != 0 for index in range(config.layers)]


def gemma3(config: Config, quant: Quantization) -> Network:
    """Gemma 3: five layers with a window to one without."""
    refuse_foreign(config)
    window, sliding = config.count("sliding_window"), every(config, GEMMA3_PATTERN)
    inner = config.count("intermediate_size")
    found = network(
        config,
        quant,
        lambda i: gqa(
            config, quant, f"model.layers.{i}.self_attn", window=window if sliding[i] else None, qk_norm="head"
        ),
        lambda i: dense(config, quant, f"model.layers.{i}.mlp", inner),
        tied=True,
    )
    found.residual = {**found.residual, "norms": GEMMA_NORMS}
    return found


def gemma4(config: Config, quant: Quantization) -> Network:
    """Gemma 4: full layers have heads of another width, their values the projected keys; experts beside a MLP."""
    refuse_foreign(config, "experts")
    window, sliding = config.count("sliding_window"), sliding_layers(config)
    same, mixture = config.flag(False, "attention_k_eq_v"), config.flag(False, "enable_moe_block")
    bias, inner = config.flag(False, "attention_bias"), config.count("intermediate_size")

    def attention(index: int) -> Part:
        path = f"model.layers.{index}.self_attn"
        common: Part = {"bias": bias, "output_bias": bias, "qk_norm": "head"}
        if sliding[index]:
            return gqa(config, quant, path, window=window, **common)
        dim = config.count_or_null("global_head_dim") or config.count("head_dim")
        keys = config.count("num_global_key_value_heads") if same else None
        return gqa(config, quant, path, dim=dim, kv_heads=keys, shares_keys=same, **common)

    def feed(index: int) -> Part:
        if not mixture:
            return dense(config, quant, f"model.layers.{index}.mlp", inner)
        return moe(
            config, quant, f"model.layers.{index}", **routed(config), shared_inner=inner, shared="mlp",
            router="router.proj", each=False, names=FUSED, shared_names=("gate_proj", "up_proj", "down_proj"),
        )  # fmt: skip

    found = network(config, quant, attention, feed, tied=True)
    found.residual = {**found.residual, "norms": GEMMA_NORMS}
    if mixture:  # three norms and a scale of the width around the experts, a scale for each of them
        scales = config.count("num_experts", "num_local_experts")
        found.residual = {**found.residual, "norms": GEMMA_NORMS + GEMMA4_EXPERT_NORMS, "other_values": scales}
    return found


def gpt_oss(config: Config, quant: Quantization) -> Network:
    """gpt-oss: biases on every matrix and on the router, sinks, experts stored together."""
    refuse_foreign(config, "experts")
    window, sliding = config.count_or_null("sliding_window"), every(config, GPT_OSS_PATTERN)
    bias = config.flag(True, "attention_bias")
    return network(
        config,
        quant,
        lambda i: gqa(
            config, quant, f"model.layers.{i}.self_attn", window=window if sliding[i] else None, bias=bias,
            output_bias=bias, sinks=True,
        ),
        lambda i: moe(
            config, quant, f"model.layers.{i}.mlp", **routed(config, "intermediate_size"), router="router", each=False,
            names=FUSED, expert_bias=True,
        ),
    )  # fmt: skip


def llama4(config: Config, quant: Quantization) -> Network:
    """Llama 4: experts on every step-th layer; attention in chunks but on layers without rotation."""
    refuse_foreign(config, "experts")
    count, step = config.layers, config.count("interleave_moe_layer_step")
    sparse = {index for index in range(count) if (index + 1) % step == 0}
    if config.data.get("moe_layers") is not None:
        sparse = {config.whole("moe_layers", entry, 0) for entry in config.entries("moe_layers")}
    rotated = [(index + 1) % LLAMA4_PATTERN != 0 for index in range(count)]
    if config.data.get("no_rope_layers"):
        rotated = [config.whole("no_rope_layers", mark, 0) == 1 for mark in config.entries("no_rope_layers", count)]
    chunk, bias = config.count_or_null("attention_chunk_size"), config.flag(False, "attention_bias")

    def feed(index: int) -> Part:
        path = f"model.layers.{index}.feed_forward"
        if index not in sparse:
            return dense(config, quant, path, config.count("intermediate_size_mlp"))
        sizes = routed(config, "intermediate_size")
        return moe(
            config, quant, path, **sizes, shared_inner=sizes["inner"], shared="shared_expert", router="router",
            each=False, names=FUSED, shared_names=("gate_proj", "up_proj", "down_proj"),
        )  # fmt: skip

    found = network(
        config,
        quant,
        lambda i: gqa(
            config, quant, f"model.layers.{i}.self_attn", window=chunk if rotated[i] else None, bias=bias,
            output_bias=bias,
        ),
        feed,
    )  # fmt: skip
    found.notes.append("Attention in chunks is taken for a window of a chunk.")
    return found


def mimo_v2(config: Config, quant: Quantization) -> Network:
    """MiMo-V2: values narrower than keys; layers with a window have heads of their own, and sinks."""
    refuse_foreign(config, "experts", "layers of different make")
    window = config.count("sliding_window", "sliding_window_size")
    marks = [config.whole("hybrid_layer_pattern", m, 0) for m in config.entries("hybrid_layer_pattern", config.layers)]
    sparse = [config.whole("moe_layer_freq", m, 0) for m in config.entries("moe_layer_freq", config.layers)]
    bias = config.flag(False, "attention_bias")

    def attention(index: int) -> Part:
        path, own = f"model.layers.{index}.self_attn", "swa_" if marks[index] else ""
        return gqa(
            config, quant, path, heads=config.count(f"{own}num_attention_heads"),
            kv_heads=config.count(f"{own}num_key_value_heads"), dim=config.count(f"{own}head_dim"),
            value_dim=config.count_or_null(f"{own}v_head_dim"), window=window if marks[index] else None, bias=bias,
            sinks=config.flag(False, "add_swa_attention_sink_bias" if own else "add_full_attention_sink_bias"),
        )  # fmt: skip

    found = network(config, quant, attention, lambda i: feed_forward(config, quant, i, not sparse[i]))
    found.notes.append("Draft layers have no key in this config and are not counted.")
    return found


def step(config: Config, quant: Quantization) -> Network:
    """Step 3.5 and 3.7: windows with heads of their own, a shared expert, draft layers with heads of their own."""
    refuse_foreign(config, "experts")
    window, sliding = config.count("sliding_window"), sliding_layers(config)
    other = config.inner("attention_other_setting") if config.data.get("attention_other_setting") else config
    norms: Part = {
        "qk_norm": "head",
        "output_gate": "headwise" if config.flag(False, "use_head_wise_attn_gate") else None,
    }
    sparse, drafts = step_experts(config), config.number_or(0, "num_nextn_predict_layers")
    if drafts > config.layers:
        raise config.wrong("num_nextn_predict_layers", f"{drafts} is more than the {config.layers} layers")

    def attention(index: int) -> Part:
        path = f"model.layers.{index}.self_attn"
        own = other if index >= len(sliding) or sliding[index] else config
        heads = own.count("num_attention_heads")
        keys = own.maybe_count("num_attention_groups", "num_key_value_heads")
        size = window if own is other and (index >= len(sliding) or sliding[index]) else None
        return gqa(config, quant, path, heads=heads, kv_heads=keys, dim=head_dim(config, heads), window=size, **norms)

    def feed(index: int) -> Part:
        path = f"model.layers.{index}"
        if index not in sparse:
            return dense(config, quant, f"{path}.mlp", config.count("intermediate_size"))
        return moe(
            config, quant, path, **routed(config), experts_path="moe", each=False, router="moe.gate",
            shared_inner=config.count_or_null("share_expert_dim"), shared="share_expert",
            router_bias=config.flag(False, "use_moe_router_bias"),
        )  # fmt: skip

    found = network(config, quant, attention, feed)
    if drafts:
        width, count = config.count("hidden_size"), config.layers
        own = drafts * (2 * width * width + 5 * width + config.count("vocab_size") * width)
        found.extras |= draft_extras(
            config, [attention(i) for i in range(count, count + drafts)],
            [feed(i) for i in range(count, count + drafts)], [(own, quant.plain)],
            f"{drafts} draft layers for multi-token prediction, each with a head of its own and a window", drafts,
        )  # fmt: skip
    return found


def step_experts(config: Config) -> set[int]:
    """Layers with experts: listed as text or numbers, else all but the first dense ones."""
    listed = config.get("moe_layers_enum")
    if listed is None:
        return set(range(config.count("first_k_dense_replace"), config.layers))
    entries = listed.split(",") if isinstance(listed, str) else listed
    if not isinstance(entries, list) or not all(str(entry).strip().isdecimal() for entry in entries):
        raise config.wrong("moe_layers_enum", "is not a list of layer numbers")
    return {config.whole("moe_layers_enum", int(str(entry)[:12]), 0) for entry in entries}


TYPES = {
    "gemma3": gemma3,
    "gemma3_text": gemma3,
    "gemma4": gemma4,
    "gemma4_text": gemma4,
    "gpt_oss": gpt_oss,
    "llama4": llama4,
    "llama4_text": llama4,
    "mimo_v2_flash": mimo_v2,
    "step3p5": step,
    "step3p7": step,
}
