"""Llama as pruned by search: every layer has its own entry in block_configs, some without attention or feed-forward.

Reference: modeling_decilm.py beside nvidia/Llama-3_3-Nemotron-Super-49B-v1; Puzzle, arXiv:2411.19146.
"""

from __future__ import annotations

from planner.errors import shown
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.families.llama_like import network
from planner.specs.huggingface.foreign import refuse_foreign
from planner.specs.huggingface.network import Network, Part
from planner.specs.huggingface.parts import NONE, dense, gqa
from planner.specs.huggingface.quantization import Quantization

WIDTH_MULTIPLE = 256
LARGEST_MULTIPLE = 1000.0  # of the width, for a feed-forward; the largest seen is 5.25


def nas(config: Config, quant: Quantization) -> Network:
    """Llama-Nemotron: heads, window and width by layer."""
    refuse_foreign(config, "layers of different make")
    blocks = config.entries("block_configs", config.layers)
    if not all(isinstance(block, dict) for block in blocks):
        raise config.wrong("block_configs", "has entries that are no objects")
    entries = [Config(f"{config.where}: block_configs {i}", block, config.root) for i, block in enumerate(blocks)]
    return network(
        config,
        quant,
        lambda i: attention(config, quant, entries[i].inner("attention"), f"model.layers.{i}.self_attn"),
        lambda i: feed_forward(config, quant, entries[i].inner("ffn"), f"model.layers.{i}.mlp"),
    )


def kept(entry: Config) -> bool:
    """Whether the part is there. Raises BadSpec where it was replaced by something else."""
    if entry.flag(False, "replace_with_linear"):
        raise entry.wrong("replace_with_linear", "is true: a linear map in its place is not read here")
    return not entry.flag(False, "no_op")


def attention(config: Config, quant: Quantization, entry: Config, path: str) -> Part:
    """Grouped-query attention with the layer's own groups, or none."""
    if not kept(entry):
        return NONE
    heads, group = config.count("num_attention_heads"), entry.count("n_heads_in_group")
    if heads % group:
        raise entry.wrong("n_heads_in_group", f"{group} does not divide the {heads} heads")
    window, bias = entry.maybe_count("window_length"), config.flag(False, "attention_bias")
    return gqa(config, quant, path, kv_heads=heads // group, window=window, bias=bias, output_bias=bias)


def feed_forward(config: Config, quant: Quantization, entry: Config, path: str) -> Part:
    """A dense layer of the layer's own width: two thirds of a multiple of the model's, rounded up to 256; or none."""
    if not kept(entry):
        return NONE
    own = entry.maybe_count("intermediate_size")
    if own is not None:
        return dense(config, quant, path, own)
    multiple = entry.get("ffn_mult")
    if isinstance(multiple, bool) or not isinstance(multiple, (int, float)) or not 0 < multiple <= LARGEST_MULTIPLE:
        raise entry.wrong("ffn_mult", f"{shown(multiple)} is not a multiple of the width")
    inner = int(2 * multiple * config.count("hidden_size") / 3)
    return dense(config, quant, path, -(-inner // WIDTH_MULTIPLE) * WIDTH_MULTIPLE)


TYPES = {"nemotron-nas": nas}
