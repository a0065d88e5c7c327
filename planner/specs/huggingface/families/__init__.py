"""Families of models by `model_type`, one file each. To add one: a file here and its name in this list."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import nearest
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.families import deepseek, hybrids, kimi, llama_like, puzzle, qwen_next, sparse, windowed
from planner.specs.huggingface.foreign import refuse_architecture
from planner.specs.huggingface.network import Network
from planner.specs.huggingface.quantization import Quantization

Reader = Callable[[Config, Quantization], Network]
FILES: tuple[object, ...] = (llama_like, windowed, puzzle, deepseek, kimi, qwen_next, hybrids, sparse)
READERS: dict[str, Reader] = {kind: reader for file in FILES for kind, reader in file.TYPES.items()}  # type: ignore[attr-defined]


def network_of(config: Config, quantization: Quantization) -> Network:
    """The layers of a config by its family. Raises BadSpec where the model type is unknown."""
    refuse_architecture(config)
    reader = READERS.get(config.kind)
    if not config.kind:
        raise config.wrong("model_type", "is missing, and no architecture tells it", "give the whole config.json")
    if reader is None:
        close = nearest(config.kind, READERS)
        what = f"{config.kind!r}: no family of models here reads it"
        raise config.wrong("model_type", what, close if close.startswith("did") else "write the model as a YAML")
    return reader(config, quantization)
