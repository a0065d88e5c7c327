"""Families of models by `model_type`, one file each. To add one: a file here and its name in this list."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import nearest
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.families import deepseek, kimi, llama_like
from planner.specs.huggingface.foreign import refuse_architecture
from planner.specs.huggingface.network import Network
from planner.specs.huggingface.quantization import Quantization

Reader = Callable[[Config, Quantization], Network]
FILES: tuple[object, ...] = (llama_like, deepseek, kimi)
READERS: dict[str, Reader] = {kind: reader for file in FILES for kind, reader in file.TYPES.items()}  # type: ignore[attr-defined]


def network_of(config: Config, quantization: Quantization) -> Network:
    """The layers of a config by its family. Raises BadSpec where the model type is unknown."""
    refuse_architecture(config)
    reader = READERS.get(config.kind)
    if reader is None:
        named = repr(config.kind) if config.kind else "missing"
        raise config.wrong("model_type", f"{named}: no family of models here reads it", nearest(config.kind, READERS))
    return reader(config, quantization)
