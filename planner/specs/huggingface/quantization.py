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

from planner.errors import shown
from planner.specs.huggingface.config import Config
from planner.specs.huggingface.files import Files
from planner.specs.huggingface.modules import bare, stays_plain
from planner.specs.huggingface.schemes import ALGORITHMIC, METHODS, Scheme, modelopt

PLAIN = {"bfloat16": "bf16", "float16": "bf16", "half": "bf16", "float32": "fp32", "float": "fp32"}


CACHES = {"fp8": "fp8", "8-bit float": "fp8", "nvfp4": "nvfp4", "int8": "int8", "8-bit int": "int8"}


@dataclass(frozen=True)
class Quantization:
    """format(path): the format of a module's weight, such as 'model.layers.3.mlp.experts.0.up_proj'.

    plain: the format of what no scheme covers; covered: the modules asked for that one does, None without a
    scheme. kv: the cache format the checkpoint names, or None: only a note, since the cache format is its own input.
    """

    plain: str
    format: Callable[[str], str]
    kv: str | None = None
    note: str = ""
    covered: set[str] | None = None

    def refuse_idle(self, config: Config) -> None:
        """Raises BadSpec where a scheme is stated and none of the modules asked for is stored by it."""
        if self.covered is not None and not self.covered:
            what = "matches no module of the model, which would be read as not quantised"
            raise config.wrong("quantization_config", what)

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
    scheme = read_scheme(config, stated)
    covered: set[str] = set()

    def stored(name: str) -> str | None:
        named = scheme.named(name)
        if named is None and (stays_plain(name) or scheme.spared(name)):
            return None
        return named or scheme.default(name)

    @cache
    def format_of(path: str) -> str:
        try:
            found = stored(bare(path))
        except ValueError as error:
            raise config.wrong("quantization_config", f"holds {error}", "name modules more plainly") from None
        if found is None:
            return plain
        covered.add(path)
        return found

    return Quantization(plain, format_of, scheme.kv, scheme.note, covered)


def plain_format(config: Config) -> str:
    """The format of weights no scheme covers: the config's dtype, 16 bits where it says nothing."""
    for data in (config.data, config.root):
        said = {}
        for key in ("torch_dtype", "dtype"):
            value = data.get(key)
            if value is None:
                continue
            name = value.removeprefix("torch.") if isinstance(value, str) else ""
            if name not in PLAIN:
                raise config.wrong(key, f"{shown(value)} is not one of {', '.join(PLAIN)}")
            said[key] = PLAIN[name]
        if said:
            Config(config.where, said, {}).get("torch_dtype", "dtype")
            return next(iter(said.values()))
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
            elif value is not None and value != stated:
                raise config.wrong(key, "is there twice, and the two differ", "keep the one that holds")
    side = files.side
    if side is None:
        return stated
    inner = side.get("quantization", side)
    if not isinstance(inner, dict):
        raise config.wrong("hf_quant_config.json: quantization", f"{type(inner).__name__} where an object is needed")
    if stated is None:
        return {"quant_method": "modelopt", **inner}
    for key in ("quant_algo", "group_size"):
        if None not in (stated.get(key), inner.get(key)) and stated[key] != inner[key]:
            what = f"{shown(stated[key])} where hf_quant_config.json says {shown(inner[key])}"
            raise config.wrong(f"quantization_config: {key}", what, "keep the one that holds")
    return {**inner, **{key: value for key, value in stated.items() if value is not None}}


def read_scheme(config: Config, stated: dict[str, Any]) -> Scheme:
    """The scheme by its method. Raises BadSpec where it is unknown."""
    inner = Config(f"{config.where}: quantization_config", stated, config.root)
    method = inner.text("", "quant_method", "quant_type")
    if stated.get("quant_algo") is not None:
        if method not in ALGORITHMIC:
            what = f"{shown(stated['quant_algo'])} where quant_method says {method!r}: two schemes at once"
            raise inner.wrong("quant_algo", what, "keep the one that holds")
        return modelopt(inner)
    if method not in METHODS:
        known = ", ".join(sorted(METHODS))
        if not method:
            empty = "is missing" if stated else "is missing: the object is empty"
            raise inner.wrong("quant_method", empty, f"remove quantization_config, or name one of {known}")
        raise inner.wrong("quant_method", f"{method!r}: no such weights are known here", f"known: {known}")
    return METHODS[method](inner)
