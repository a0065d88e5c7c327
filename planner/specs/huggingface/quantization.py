"""Which format each module's weights have.

Spellings: `quantization_config` in the config (fp8, compressed-tensors, modelopt, mxfp4, gptq, awq, fbgemm_fp8), or a
separate hf_quant_config.json. Ignore lists and mixed tables name modules by path, with patterns. An unknown scheme
stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.specs.huggingface.config import Config
from planner.specs.huggingface.files import Files
from planner.specs.huggingface.modules import bare, stays_plain
from planner.specs.huggingface.schemes import METHODS, Scheme, modelopt

PLAIN = {"bfloat16": "bf16", "float16": "bf16", "half": "bf16", "float32": "fp32", "float": "fp32"}


CACHES = {"fp8": "fp8", "8-bit float": "fp8", "nvfp4": "nvfp4", "int8": "int8", "8-bit int": "int8"}


@dataclass(frozen=True)
class Quantization:
    """format(path): the format of a module's weight, such as 'model.layers.3.mlp.experts.0.up_proj'.

    plain: the format of what no scheme covers. kv: the cache format the checkpoint names, or None: only a note, since
    the cache format is its own input.
    """

    plain: str
    format: Callable[[str], str]
    kv: str | None = None
    note: str = ""

    @property
    def cache_format(self) -> str | None:
        """The named cache as a format; None where it names none, or none known here."""
        return CACHES.get((self.kv or "").lower())

    def notes(self, table_format: str) -> list[str]:
        """What the scheme says that a record has no place for."""
        found = [self.note] if self.note else []
        head = self.format("lm_head")
        if head != table_format:
            found.append(f"The head is stored as {head} and counted as {table_format}, as the embedding is.")
        if self.kv:
            found.append(f"The checkpoint names a cache of {self.kv}; the cache format is an input of its own.")
        return found


def quantization_of(files: Files, config: Config) -> Quantization:
    """The scheme of a checkpoint. Raises BadSpec where it is unknown."""
    plain = plain_format(config)
    stated = stated_scheme(files, config)
    if stated is None:
        return Quantization(plain, lambda path: plain)
    scheme = read_scheme(files, config, stated)

    @cache
    def format_of(path: str) -> str:
        name = bare(path)
        named = scheme.named(name)
        if named is not None:
            return named
        if stays_plain(name) or scheme.spared(name):
            return plain
        return scheme.default(name) or plain

    return Quantization(plain, format_of, scheme.kv, scheme.note)


def plain_format(config: Config) -> str:
    """The format of weights no scheme covers: the config's dtype, 16 bits where it says nothing."""
    for data in (config.data, config.root):
        for key in ("torch_dtype", "dtype"):
            value = data.get(key)
            if value is None:
                continue
            name = value.removeprefix("torch.") if isinstance(value, str) else ""
            if name not in PLAIN:
                raise config.wrong(key, f"{value!r} is not one of {', '.join(PLAIN)}")
            return PLAIN[name]
    return "bf16"


def stated_scheme(files: Files, config: Config) -> dict[str, Any] | None:
    """The quantisation as the config states it, completed from the separate file. Raises BadSpec."""
    stated: dict[str, Any] | None = None
    for data in (config.root, config.data):
        for key in ("quantization_config", "compression_config"):
            value = data.get(key)
            if value is not None and stated is None:
                if not isinstance(value, dict):
                    raise config.wrong(key, f"{type(value).__name__} where an object is needed")
                stated = value
    side = files.side
    if side is None:
        return stated
    inner = side.get("quantization", side)
    if not isinstance(inner, dict):
        raise config.wrong("hf_quant_config.json: quantization", f"{type(inner).__name__} where an object is needed")
    if stated is None:
        return {"quant_method": "modelopt", **inner}
    return {**inner, **{key: value for key, value in stated.items() if value is not None}}


def read_scheme(files: Files, config: Config, stated: dict[str, Any]) -> Scheme:
    """The scheme by its method. Raises BadSpec where it is unknown."""
    inner = Config(f"{config.where}: quantization_config", stated, config.root)
    if stated.get("quant_algo") is not None:
        return modelopt(inner)
    method = inner.text("", "quant_method", "quant_type")
    if method not in METHODS:
        known = ", ".join(sorted(METHODS))
        if not method:
            empty = "is missing" if stated else "is missing: the object is empty"
            raise inner.wrong("quant_method", empty, f"remove quantization_config, or name one of {known}")
        raise inner.wrong("quant_method", f"{method!r}: no such weights are known here", f"known: {known}")
    return METHODS[method](inner)
