"""Sparse attention over keys and values: MiniMax-M3, and DeepSeek-V4 with its compressed cache.

Reference: models/minimax_m3 and models/deepseek_v4 in vllm-project/vllm; modeling_deepseek_v4.py in
huggingface/transformers.
"""

from __future__ import annotations

from planner.errors import shown
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.draft import draft_extras
from planner.specs.huggingface.families.llama_like import W123, network
from planner.specs.huggingface.foreign import refuse_foreign
from planner.specs.huggingface.network import Network, Part
from planner.specs.huggingface.parts import Modules, dense, formats, gqa, moe, part, routed
from planner.specs.huggingface.quantization import Quantization

OVERLAPPING = 4  # the ratio whose entries overlap, and among which an indexer chooses
EXPERT_DTYPES = {"fp4": "mxfp4", "fp8": None}
"""expert_dtype -> the experts' format, or None where it is the rest's."""
MIXING_PER_STREAM = 2  # of a site, beside the m that mix: one to collapse, one to spread


def minimax_m3(config: Config, quant: Quantization) -> Network:
    """MiniMax-M3: first layers dense in both senses, then chosen blocks of the cache and experts."""
    refuse_foreign(config, "experts", "an indexer")
    count, chosen = config.layers, config.inner("sparse_attention_config")
    marks = [config.whole("moe_layer_freq", m, 0) for m in config.entries("moe_layer_freq", count)]
    picks = [0] * count
    if chosen.flag(True, "use_sparse_attention"):
        entries = chosen.entries("sparse_attention_freq", count)
        picks = [chosen.whole("sparse_attention_freq", entry, 0) for entry in entries]
    disabled = chosen.entries("sparse_disable_index_value", count) if any(picks) else picks
    if any(pick and mark != 1 for mark, pick in zip(disabled, picks, strict=True)):
        raise chosen.wrong("sparse_disable_index_value", "has an index value on a sparse layer, which is not read here")
    norm: Part = {"qk_norm": "head"} if config.flag(True, "use_qk_norm") else {}

    def attention(index: int) -> Part:
        path = f"model.layers.{index}.self_attn"
        plain = gqa(config, quant, path, **norm)
        if not picks[index]:
            return plain
        modules = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "output": "o_proj"}
        indexer = {"index_q": "index_q_proj", "index_k": "index_k_proj"}
        sizes = {key: plain[key] for key in ("heads", "kv_heads", "head_dim", "value_dim")}
        return part(
            "block_sparse", formats(config, quant, path, {**modules, **indexer}), quant.plain, **sizes, **norm,
            index_heads=chosen.count("sparse_num_index_heads"), index_dim=chosen.count("sparse_index_dim"),
            block=chosen.count("sparse_block_size"), top_blocks=chosen.count("sparse_topk_blocks"),
        )  # fmt: skip

    def feed(index: int) -> Part:
        if not marks[index]:
            return dense(config, quant, f"model.layers.{index}.mlp", config.count("dense_intermediate_size"))
        sizes = routed(config, "intermediate_size")
        found = moe(
            config, quant, f"model.layers.{index}.block_sparse_moe", **sizes, names=W123,
            shared_names=("gate_proj", "up_proj", "down_proj"), router_bias=config.flag(False, "use_routing_bias"),
            shared_inner=config.number("n_shared_experts") * config.count("shared_intermediate_size"),
        )  # fmt: skip
        found["overrides"] = {**found.get("overrides", {}), "router": "fp32"}
        return found

    found = network(config, quant, attention, feed)
    if config.number_or(0, "num_mtp_modules"):
        found.notes.append("The draft modules the config names are not counted: it does not say what they are made of.")
    return found


def ratios(config: Config) -> list[int]:
    """Tokens an entry stands for, by layer; entries beyond the layers belong to draft layers."""
    entries = [config.whole("compress_ratios", entry, 0) for entry in config.entries("compress_ratios")]
    wanted = config.layers + config.number_or(0, "num_nextn_predict_layers")
    if len(entries) not in (config.layers, wanted):
        raise config.wrong("compress_ratios", f"has {len(entries)} entries for {wanted} layers, draft layers included")
    return entries + [0] * (wanted - len(entries))


def compressed(config: Config, quant: Quantization, path: str, ratio: int) -> Part:
    """A layer with a window, and behind it entries of `ratio` tokens; 0 for the window alone."""
    plain, picky = quant.plain, ratio == OVERLAPPING
    modules: Modules = {"q_a": "wq_a", "q_b": "wq_b", "kv": "wkv", "output_a": "wo_a", "output_b": "wo_b"}
    format, overrides = formats(config, quant, path, modules | ({"index_q": "indexer.wq_b"} if picky else {}))
    if format != plain:
        kept = (["compressor"] if ratio else []) + (["index_weights", "index_compressor"] if picky else [])
        overrides |= dict.fromkeys(kept, plain)
    indexer = {
        "index_heads": config.count("index_n_heads"),
        "index_dim": config.count("index_head_dim"),
        "index_topk": config.count("index_topk"),
    }
    return part(
        "compressed", (format, overrides), plain, heads=config.count("num_attention_heads"),
        head_dim=config.count("head_dim"), rope_dim=config.count("qk_rope_head_dim"),
        q_rank=config.count("q_lora_rank"), output_groups=config.count("o_groups"),
        output_rank=config.count("o_lora_rank"), local_window=config.count("sliding_window"), ratio=ratio or None,
        overlap=picky, **(indexer if picky else {}),
    )  # fmt: skip


def deepseek_v4(config: Config, quant: Quantization) -> Network:
    """DeepSeek-V4: four residual streams; the first layers pick experts by a table, without a correction per expert."""
    refuse_foreign(config, "experts", "an indexer", "compressed attention", "streams between layers")
    if config.count("num_key_value_heads") != 1:
        raise config.wrong("num_key_value_heads", "is not 1: the cache of this family has one key for all heads")
    drafts, width = config.number_or(0, "num_nextn_predict_layers"), config.count("hidden_size")
    streams = config.count("hc_mult")
    if drafts > config.layers:
        raise config.wrong("num_nextn_predict_layers", f"{drafts} is more than the {config.layers} layers")
    ratio, hashed, stored = ratios(config), config.number("num_hash_layers"), config.get("expert_dtype")
    if stored is not None and (not isinstance(stored, str) or stored not in EXPERT_DTYPES):
        raise config.wrong("expert_dtype", f"{shown(stored)} is not one of {', '.join(EXPERT_DTYPES)}")

    def feed(path: str, by_table: bool) -> Part:
        sizes = routed(config)
        found = moe(
            config, quant, path, **sizes, names=W123, router_bias=not by_table,
            shared_inner=config.number("n_shared_experts") * sizes["inner"],
        )  # fmt: skip
        if found["routed_format"] in ("fp8", "fp8_block") and stored is not None:
            found["routed_format"] = EXPERT_DTYPES[stored] or found["routed_format"]
        return found

    found = network(
        config,
        quant,
        lambda i: compressed(config, quant, f"layers.{i}.attn", ratio[i]),
        lambda i: feed(f"layers.{i}.ffn", i < hashed),
    )
    if hashed:
        found.notes.append("Tables that pick experts by token on the first layers are not counted.")
    found.residual = {"kind": "hyper", "vector_format": quant.plain, "streams": streams, "layers": config.layers}
    if drafts:
        outputs = (MIXING_PER_STREAM + streams) * streams
        mixing = 2 * (outputs * streams * width + outputs + 3) + streams * streams * width + streams + 1
        projections = [(drafts * width * width, quant.format(f"mtp.0.{name}")) for name in ("e_proj", "h_proj")]
        found.extras |= draft_extras(
            config, [compressed(config, quant, f"mtp.{i}.attn", ratio[config.layers + i]) for i in range(drafts)],
            [feed(f"mtp.{i}.ffn", False) for i in range(drafts)],
            [*projections, (drafts * 5 * width, quant.plain), (drafts * mixing, "fp32")],
            f"{drafts} draft layer{'s' if drafts > 1 else ''} for multi-token prediction", drafts,
        )  # fmt: skip
    return found


TYPES = {
    "minimax_m3": minimax_m3,
    "minimax_m3_vl": minimax_m3,
    "minimax_m3_vl_text": minimax_m3,
    "deepseek_v4": deepseek_v4,
}
