"""Vision towers whose sizes a config gives, counted into extras; where it gives none, a sentence says so.

Reference: the towers' modules in huggingface/transformers (qwen3_vl, qwen3_5, gemma3 with siglip, gemma4) and in the
modelling files beside Kimi K2.5 and K3.
"""

from __future__ import annotations

from types import NoneType

from planner.specs.huggingface.config import Config
from planner.specs.huggingface.network import Part

CHANNELS = 3
OTHERS = ("audio_config", "speech_config", "talker_config", "code2wav_config")
Towers = tuple[dict[str, Part], list[str]]


def towers(config: Config, format: str) -> Towers:
    """(extras, notes) of what a config holds beside its language part."""
    for key in (*OTHERS, "vision_config"):
        if not isinstance(config.root.get(key), (dict, NoneType)):
            raise config.wrong(key, f"{type(config.root[key]).__name__} where an object is needed")
    notes = [
        f"The {key.removesuffix('_config')} part of the config is not counted."
        for key in OTHERS
        if config.root.get(key) is not None
    ]
    if config.root.get("vision_config") is None:
        return {}, notes
    tower = Config(config.where, config.root, config.root).inner("vision_config")
    kind = str(tower.data.get("model_type") or config.root.get("model_type") or "")
    count = next((count for prefix, count in TOWERS.items() if kind.startswith(prefix)), None)
    if count is None or any(tower.data.get(key) is None for key in NEEDED[count]):
        return {}, [*notes, "The vision tower is not counted: its sizes do not follow from the config."]
    body, projector = count(tower, config.count("hidden_size"))
    return {
        "vision_tower": {"parameters": body, "format": format, "part": "vision"},
        "projector": {"parameters": projector, "format": format, "part": "vision"},
    }, notes


def linear(inputs: int, outputs: int) -> int:
    """A matrix with its bias."""
    return inputs * outputs + outputs


def qwen(tower: Config, width: int) -> tuple[int, int]:
    """Qwen3-VL and Qwen3.5: biased blocks, learned positions, a merger of 2 x 2 patches, mergers of inner layers."""
    size, inner, depth = tower.count("hidden_size"), tower.count("intermediate_size"), tower.count("depth")
    patch, merge = tower.count("patch_size"), (tower.maybe_count("spatial_merge_size") or 2) ** 2 * size
    out = tower.maybe_count("out_hidden_size") or width
    deep = 3 if str(tower.data.get("model_type") or tower.root.get("model_type")).startswith("qwen3_vl") else 0
    if tower.data.get("deepstack_visual_indexes") is not None:
        deep = len(tower.entries("deepstack_visual_indexes"))
    block = 4 * size + linear(size, 3 * size) + linear(size, size) + linear(size, inner) + linear(inner, size)
    frames = tower.maybe_count("temporal_patch_size") or 2
    patches = linear(CHANNELS * frames * patch * patch, size)
    positions = (tower.maybe_count("num_position_embeddings") or 2304) * size
    merger = linear(merge, merge) + linear(merge, out)
    return depth * block + patches + positions, merger + 2 * size + deep * (merger + 2 * merge)


def moonvit(tower: Config, width: int) -> tuple[int, int]:
    """Kimi's MoonViT: K2.5 with biases and layer norms; K3, with its own attention width, without any bias."""
    size, inner = tower.count("vt_hidden_size"), tower.count("vt_intermediate_size")
    depth, patch = tower.count("vt_num_hidden_layers"), tower.count("patch_size")
    heads = tower.maybe_count("qkv_hidden_size")
    merged = 4 * (tower.maybe_count("mm_hidden_size") or size)
    out = tower.maybe_count("text_hidden_size") or width
    positions = 64 * 64 * size
    pixels = CHANNELS * patch * patch
    if heads is not None:
        block = 2 * size + 4 * size * heads + 2 * size * inner
        return depth * block + size + positions + pixels * size, merged * merged + merged * out + out
    block = 4 * size + linear(size, 3 * size) + linear(size, size) + linear(size, inner) + linear(inner, size)
    body = depth * block + 2 * size + positions + linear(pixels, size)
    return body, 2 * (merged // 4) + linear(merged, merged) + linear(merged, out)


def siglip(tower: Config, width: int) -> tuple[int, int]:
    """Gemma 3: SigLIP with learned positions, and one matrix with a norm into the language model."""
    size, inner, depth = tower.count("hidden_size"), tower.count("intermediate_size"), tower.count("num_hidden_layers")
    patch = tower.count("patch_size")
    block = 4 * size + 4 * linear(size, size) + linear(size, inner) + linear(inner, size)
    positions = (tower.count("image_size") // patch) ** 2 * size
    return depth * block + 2 * size + positions + linear(CHANNELS * patch * patch, size), size * width + size


def gemma4(tower: Config, width: int) -> tuple[int, int]:
    """Gemma 4: gated blocks with four norms and norms of queries and keys, two tables of positions."""
    size, inner, depth = tower.count("hidden_size"), tower.count("intermediate_size"), tower.count("num_hidden_layers")
    heads, patch = tower.count("num_attention_heads"), tower.count("patch_size")
    dim = tower.maybe_count("head_dim") or size // heads
    keys = tower.maybe_count("num_key_value_heads") or heads
    block = 4 * size + 2 * dim + 2 * size * heads * dim + 2 * size * keys * dim + 3 * size * inner
    positions = 2 * (tower.maybe_count("position_embedding_size") or 10240) * size
    return depth * block + positions + CHANNELS * patch * patch * size, size * width


TOWERS = {
    "qwen3_vl": qwen,
    "qwen3_5": qwen,
    "kimi": moonvit,
    "moonvit": moonvit,
    "gemma3": siglip,
    "siglip": siglip,
    "gemma4_vision": gemma4,
}
"""How a tower's model type begins -> its count; without one of its own, the whole model's."""
NEEDED = {
    qwen: ("hidden_size", "intermediate_size", "depth", "patch_size"),
    moonvit: ("vt_hidden_size", "vt_intermediate_size", "vt_num_hidden_layers", "patch_size"),
    siglip: ("hidden_size", "intermediate_size", "num_hidden_layers", "patch_size", "image_size"),
    gemma4: ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "patch_size"),
}
