"""Which format each module's weights have.

Spellings: `quantization_config` in the config (fp8, compressed-tensors, modelopt, mxfp4, gptq, awq, fbgemm_fp8, ...), or a
separate hf_quant_config.json. Ignore lists and mixed tables name modules by path, with patterns. An unknown scheme stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.specs.huggingface.config import Config
from planner.specs.huggingface.files import Files


@dataclass(frozen=True)
class Quantization:
    """format(path): the format of a module's weight, such as 'model.layers.3.mlp.experts.0.up_proj'.

    plain: the format of what no scheme covers. kv: the cache format the checkpoint names, or None: only a note, since the
    cache format is its own input.
    """

    plain: str
    format: Callable[[str], str]
    kv: str | None = None
    note: str = ""


def quantization_of(files: Files, config: Config) -> Quantization:
    """The scheme of a checkpoint. Raises BadSpec where it is unknown."""
    raise NotImplementedError
