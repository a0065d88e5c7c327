"""The language part of a config, and typed access to its keys: aliases, null, lists, the key in every complaint."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType
from typing import Any

from planner.errors import BadSpec, shown
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
    """The language part. `root` is the whole config; `where` names the file."""

    where: str
    data: dict[str, Any]
    root: dict[str, Any]

    def wrong(self, key: str, what: str, do: str = "check the config") -> BadSpec:
        """The error to raise about a key."""
        return BadSpec(self.where, f"{key}: {what}", do)

    def key(self, *keys: str) -> str | None:
        """The first of the aliases that is there and not null. Raises BadSpec where another says something else."""
        given = [key for key in keys if self.data.get(key) is not None]
        for other in given[1:]:
            one, two = self.data[given[0]], self.data[other]
            if one != two and keys[0] not in LIKE:
                what = f"{shown(two)} where {given[0]} says {shown(one)}: they name the same thing"
                raise self.wrong(other, what, "keep the one that holds")
        return given[0] if given else None

    def get(self, *keys: str) -> Any:
        """The value of the first of the aliases that is there and not null, else None."""
        key = self.key(*keys)
        return None if key is None else self.data[key]

    def maybe_count(self, *keys: str) -> int | None:
        """A whole number from 1, or None where no alias is given."""
        key = self.key(*keys)
        return None if key is None else self.whole(key, self.data[key], 1)

    def count(self, *keys: str) -> int:
        """A whole number from 1. Raises BadSpec."""
        found = self.maybe_count(*keys)
        if found is None:
            raise self.wrong(" or ".join(keys), "is missing", "give the whole config.json of the model")
        return found

    def number_or(self, default: int, *keys: str) -> int:
        """A whole number from 0, or what the architecture takes where the key is absent."""
        key = self.key(*keys)
        return default if key is None else self.whole(key, self.data[key], 0)

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
    return found
