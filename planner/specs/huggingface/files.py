"""What a path is: a config.json, a folder with one, or something that is neither; strict JSON without surprises."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from planner.errors import BadFile

LARGEST_CONFIG = 8_000_000  # bytes; the largest seen is under 2 MB, a table of formats by expert
DEEPEST_CONFIG = 60
INSIDE = "_hf_quant_config"
"""Where a config kept alone, without its folder, may carry the separate quantisation file."""
CONFIG, SIDE_QUANTIZATION, ADAPTER = "config.json", "hf_quant_config.json", "adapter_config.json"
MAGIC = {b"GGUF": "a GGUF file", b"PK\x03\x04": "a zip archive", b"\x80\x02": "a pickle", b"\x80\x04": "a pickle"}


@dataclass(frozen=True)
class Files:
    """A config as read: its name for messages, its data, the separate quantisation file's data where there is one."""

    name: str
    data: dict[str, Any]
    side: dict[str, Any] | None


def opened(path: Path) -> Files:
    """The config at a path. Raises BadFile."""
    try:
        place, folder = (path / CONFIG, path) if path.is_dir() else (path, path.parent)
        if path.is_dir() and not place.is_file():
            adapter = (path / ADAPTER).is_file()
            wanted = "is the directory of an adapter" if adapter else "is a directory with no config.json in it"
            raise BadFile(str(path), wanted, "name a folder that holds a whole model's config.json")
        data, side = strict_json(place), folder / SIDE_QUANTIZATION
        inside = data.get(INSIDE)
        if not isinstance(inside, (dict, NoneType)):
            raise BadFile(str(place), f"{INSIDE} is {type(inside).__name__}, not an object", "check the config")
        return Files(str(place), data, strict_json(side) if os.path.lexists(side) else inside)
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else str(path)
        raise BadFile(where, error.strerror or "cannot be read", "check the path and its permissions") from None


def strict_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises BadFile: too large, binary, truncated, repeated keys, too deep."""
    size = path.stat().st_size
    if not path.is_file():
        raise BadFile(str(path), "is not a regular file", "name a config.json")
    with path.open("rb") as file:
        head = file.read(16)
    for magic, what in MAGIC.items():
        if head.startswith(magic):
            raise BadFile(str(path), f"is {what}, not a config", "name the model's config.json")
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < size:
        raise BadFile(str(path), "is a safetensors file, not a config", "name the model's config.json")
    if size > LARGEST_CONFIG:
        raise BadFile(str(path), f"is {size:,} bytes, over the {LARGEST_CONFIG:,} of a config", "name a config.json")
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
        data = json.loads(text, parse_constant=unsized, object_pairs_hook=unrepeated)
    except UnicodeDecodeError:
        raise BadFile(str(path), "is not UTF-8 text", "name the model's config.json") from None
    except RecursionError:
        raise too_deep(path) from None
    except ValueError as error:
        raise BadFile(str(path), f"is not sound JSON: {error}", "download the config.json again") from None
    if not isinstance(data, dict):
        raise BadFile(str(path), f"holds a JSON {type(data).__name__}, not an object", "name the model's config.json")
    refuse_deep(data, path)
    return data


def unsized(name: str) -> str:
    """NaN and Infinity are never a size, but published configs hold them where no size is read: kept as their names."""
    return name


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {twice!r} is given twice")
    return found


def refuse_deep(data: dict[str, Any], path: Path) -> None:
    """Level by level, so that what is read later may recurse without a thought."""
    level: list[Any] = [data]
    for _ in range(DEEPEST_CONFIG):
        inner = (entry for node in level for entry in (node.values() if isinstance(node, dict) else node))
        level = [entry for entry in inner if isinstance(entry, (dict, list))]
        if not level:
            return
    raise too_deep(path)


def too_deep(path: Path) -> BadFile:
    """The error to raise about nesting."""
    return BadFile(str(path), f"is nested deeper than {DEEPEST_CONFIG} levels", "name the model's config.json")
