"""The longest context of a config, with the scaling of its rotary positions.

    default, mrope          max_position_embeddings
    llama3, longrope, su    max_position_embeddings, which already holds the scaling
    yarn, deepseek_yarn     original_max_position_embeddings x factor, whatever max_position_embeddings says
    linear, dynamic, ...    max_position_embeddings x factor
Gemma 3's max_position_embeddings already holds its factor. Where layer types have scalings of their own, the one that
scales counts.
Reference: vllm-project/vllm, config/model.py, _get_and_verify_max_len.
"""

from __future__ import annotations

from typing import Any

from planner.specs.huggingface.config import Config

HELD = ("llama3", "longrope", "su")
HELD_BY_MODEL = ("gemma3", "gemma3_text")
UNSCALED = ("default", "mrope")
LARGEST_FACTOR = 4096  # the largest seen is 64
LENGTHS = ("max_position_embeddings", "model_max_length", "max_sequence_length", "n_positions", "seq_length")


def context_of(config: Config) -> tuple[int, str]:
    """(the longest context, how a scaling makes it; empty without one). Raises BadSpec."""
    found = config.maybe_count(*LENGTHS)
    if found is None:
        raise config.wrong("max_position_embeddings", "is missing", "add it to the config: the longest context")
    for scaling in scalings(config):
        kind = str(scaling.get("rope_type") or scaling.get("type") or UNSCALED[0])
        factor = scaling.get("factor")
        if factor is None and (kind not in HELD and "yarn" not in kind):
            continue
        original = scaling.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
        if kind in HELD or config.kind in HELD_BY_MODEL:
            return found, f"{kind} scaling{by(factor)}, which max_position_embeddings already holds"
        start = found
        if "yarn" in kind and original is not None:
            start = config.whole("original_max_position_embeddings", original, 1)
        times = checked(config, factor)
        return int(start * times), f"{kind} scaling: {start:,} positions x {times:g}"
    return found, ""


def by(factor: Any) -> str:
    """' by 8', where a plain factor is given."""
    return f" by {factor:g}" if isinstance(factor, (int, float)) and not isinstance(factor, bool) else ""


def checked(config: Config, factor: Any) -> float:
    """A factor, 1 where it is left out. Raises BadSpec."""
    if factor is None:
        return 1.0
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor <= LARGEST_FACTOR:
        raise config.wrong("rope_scaling", f"factor {factor!r} is not a number from 1 to {LARGEST_FACTOR}")
    return float(factor)


def scalings(config: Config) -> list[dict[str, Any]]:
    """The scaling of all layers, or those of each type of layer."""
    stated = config.get("rope_scaling", "rope_parameters")
    if not isinstance(stated, dict):
        return []
    each = [inner for inner in stated.values() if isinstance(inner, dict)]
    return each or [stated]
