"""The language part of a config, and typed access to its keys: aliases, null, lists, the key in every complaint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any

from planner.errors import BadSpec, shown
from planner.specs.huggingface.defaults import CLASSES, TYPES, UNKNOWN
from planner.specs.huggingface.files import Files
from planner.specs.model import MOST_LAYERS

PARTS = ("llm_config", "text_config", "language_config", "thinker_config")
"""Where a multimodal config keeps its language part; tried in this order, again inside what is found."""
ARCHITECTURES = {
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "GptOssForCausalLM": "gpt_oss",
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}
"""Architecture -> model type, for configs that name only the first."""
LARGEST_SIZE = 10**9
LIKE = ("rope_scaling", "max_position_embeddings")
"""Keys whose aliases mean other things as well and may differ: the first there counts."""


@dataclass(frozen=True)
class Config:
    """The language part. `root` is the whole config; `where` names the file.

    A key that is there counts, null included; one that is left out takes what the model's class has for it. defaults:
    the class's; taken: those that were read, for a note.
    """

    where: str
    data: dict[str, Any]
    root: dict[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)

    def wrong(self, key: str, what: str, do: str = "check the config") -> BadSpec:
        """The error to raise about a key."""
        return BadSpec(self.where, f"{key}: {what}", do)

    def with_keys(self, **changes: Any) -> Config:
        """The same config with keys laid over it."""
        return replace(self, data={**self.data, **changes})

    def key(self, *keys: str) -> str | None:
        """The first of the aliases that is there and not null. Raises BadSpec where another says something else."""
        given = [key for key in keys if self.data.get(key) is not None]
        for other in given[1:]:
            one, two = self.data[given[0]], self.data[other]
            if one != two and keys[0] not in LIKE:
                what = f"{shown(two)} where {given[0]} says {shown(one)}: they name the same thing"
                raise self.wrong(other, what, "keep the one that holds")
        return given[0] if given else None

    def stated(self, *keys: str) -> tuple[str, Any] | None:
        """(alias, value) of the first alias that is not null, by the file or else by the class; None for null."""
        own = self.key(*keys)
        if own is not None:
            return own, self.data[own]
        if any(key in self.data for key in keys):
            return None
        found = next(((key, self.defaults[key]) for key in keys if self.defaults.get(key) is not None), None)
        if found is not None and isinstance(found[1], int) and not isinstance(found[1], bool):
            self.taken[found[0]] = found[1]
        return found

    def known(self, *keys: str) -> None:
        """Raises BadSpec where neither the file nor the class says anything of a key, null included."""
        if not any(key in self.data or key in self.defaults for key in keys):
            what = "is missing, and its class has no default known here"
            raise self.wrong(" or ".join(keys), what, "give the whole config.json of the model")

    def get(self, *keys: str) -> Any:
        """The first of the aliases that is stated, else None."""
        found = self.stated(*keys)
        return None if found is None else found[1]

    def maybe_count(self, *keys: str) -> int | None:
        """A whole number from 1, or None where no alias is stated."""
        found = self.stated(*keys)
        return None if found is None else self.whole(*found, 1)

    def count_or_null(self, *keys: str) -> int | None:
        """A whole number from 1, or None for null; never a guess. Raises BadSpec where nothing says which."""
        self.known(*keys)
        return self.maybe_count(*keys)

    def count(self, *keys: str) -> int:
        """A whole number from 1. Raises BadSpec."""
        found = self.maybe_count(*keys)
        if found is None:
            raise self.wrong(" or ".join(keys), "is missing", "give the whole config.json of the model")
        return found

    def number_or(self, default: int, *keys: str) -> int:
        """A whole number from 0, or what the architecture takes where the key is absent."""
        found = self.stated(*keys)
        return default if found is None else self.whole(*found, 0)

    def number(self, *keys: str) -> int:
        """A whole number from 0, 0 for null; never a guess. Raises BadSpec where nothing says which."""
        self.known(*keys)
        return self.number_or(0, *keys)

    def whole(self, key: str, value: Any, least: int) -> int:
        """A value as a whole number in range. Raises BadSpec."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, f"{shown(value)} is not a whole number")
        if not least <= value <= LARGEST_SIZE:
            raise self.wrong(key, f"{shown(value)} is not within {least} to {LARGEST_SIZE}")
        return value

    def flag(self, default: bool, *keys: str) -> bool:
        """true or false, or what the architecture takes where the key is absent."""
        value = self.get(*keys)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.wrong(keys[0], f"{shown(value)} is not true or false")
        return value

    def text(self, default: str, *keys: str) -> str:
        """A word, or a default."""
        value = self.get(*keys)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.wrong(keys[0], f"{shown(value)} is not text")
        return value

    def entries(self, key: str, length: int | None = None) -> list[Any]:
        """A list, of the given length where one is given. Raises BadSpec."""
        value = self.data.get(key)
        if not isinstance(value, list):
            raise self.wrong(key, f"{type(value).__name__} where a list is needed")
        if length is not None and len(value) != length:
            raise self.wrong(key, f"has {len(value)} entries for {length} layers")
        return value

    def inner(self, key: str) -> Config:
        """An object inside, with the same access. Raises BadSpec."""
        value = self.data.get(key)
        if not isinstance(value, dict):
            raise self.wrong(key, f"{type(value).__name__} where an object is needed")
        return Config(f"{self.where}: {key}", value, self.root)

    @property
    def layers(self) -> int:
        """Layers of the language model. Raises BadSpec."""
        found = self.count("num_hidden_layers", "n_layers", "num_layers")
        if found > MOST_LAYERS:
            raise self.wrong("num_hidden_layers", f"{found} is more than the {MOST_LAYERS} this planner reads")
        return found

    @property
    def kind(self) -> str:
        """The model type, which decides the family: the language part's own, the whole model's, or by architecture."""
        for data in (self.data, self.root):
            value = data.get("model_type")
            if value is not None and value != "":
                if not isinstance(value, str):
                    raise self.wrong("model_type", f"{shown(value)} is not text")
                return value
        named = self.data.get("architectures") or self.root.get("architectures")
        first = named[0] if isinstance(named, list) and named else None
        return ARCHITECTURES.get(first, "") if isinstance(first, str) else ""


def noted(config: Config) -> list[str]:
    """What the class said where the file said nothing."""
    if not config.taken:
        return []
    each = ", ".join(f"{key} not in the file: {value:,}" for key, value in config.taken.items())
    return [f"{each}, the default{'s' if len(config.taken) > 1 else ''} of {TYPES[config.kind]}."]


def language_part(files: Files) -> Config:
    """The part of a config that describes the language model. Raises BadSpec where there is none."""
    data: dict[str, Any] = files.data
    for _ in PARTS:
        for part in PARTS:
            if not isinstance(data.get(part), (dict, NoneType)):
                what = f"{type(data[part]).__name__} where an object is needed"
                raise BadSpec(files.name, f"{part}: {what}", "check the config")
        nested = next((data[part] for part in PARTS if isinstance(data.get(part), dict)), None)
        if nested is None:
            break
        data = nested
    found = Config(files.name, data, files.data)
    if "hidden_size" not in data and "d_model" not in data and "n_embd" not in data:
        parts = [key for key in files.data if key.endswith("_config")]
        has = f"only {', '.join(parts)}" if parts else "no hidden_size"
        raise found.wrong("config", f"has no language model in it ({has})", "name the config.json of a language model")
    if found.kind in UNKNOWN or found.root.get("model_type") in UNKNOWN:
        return found
    return replace(found, defaults=CLASSES.get(TYPES.get(found.kind, ""), {}))
