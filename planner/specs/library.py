"""Find, read and validate spec files: a name in a spec folder, or a path to a YAML in the same form.

A model may also be a Hugging Face config.json, the folder it is in, or 'hf:organisation/repository'.

Folders, first found wins: the checkout beside the package, the copy inside an installed package, the user's own folder
(platformdirs: `planner/hardware_specs/...`, `planner/model_specs`).
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from planner.errors import BadFile, BadInput, BadSpec, UnknownName, nearest
from planner.record import Record
from planner.specs.hardware import Chip, System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.yaml_file import read_yaml

LARGEST_SPEC = 200_000  # bytes; the largest shipped is about 20 kB
LONGEST_NAME = 1000
LONGEST_LINE = 8
"""Stacks that build one on the other; shipped ones are at most two."""
LONGEST_FILE_NAME = 200
FOLDERS = {
    "model": "model_specs",
    "chip": "hardware_specs/chips",
    "system": "hardware_specs/systems",
    "stack": "hardware_specs/stacks",
}
WEIGHTS = (".gguf", ".safetensors", ".bin", ".pt", ".pth")
"""Endings of files that hold a model's weights, named by mistake for its config."""
CONFIG_MARKS: dict[str, type] = {"model_type": str, "architectures": list}
"""Keys of a Hugging Face config that no spec has."""
OWN = {"name", "title", "note"}
"""What a stack never takes over from the one it is like."""
COMMON = {"name", "title", "source", "note", "chip", "stack", "layers"}
"""Keys that several kinds of spec have, or that name one from another."""
R = TypeVar("R", bound=Record)


def folders(kind: str) -> list[Path]:
    """Where specs of a kind are looked for, in order."""
    from platformdirs import user_config_path

    package = Path(__file__).resolve().parents[1]
    below = FOLDERS[kind]
    places = [package.parent / below, package / below, user_config_path("planner") / below]
    return [place for place in places if place.is_dir()]


def names(kind: str) -> list[str]:
    """The names of a kind, sorted."""
    found = {path.stem for place in folders(kind) for path in place.glob("*.yaml") if path.is_file()}
    return sorted(name for name in found if name.isprintable())


def find(kind: str, name: str) -> Path:
    """The file of a name or path. Raises UnknownName, BadFile."""
    if not name or len(name) > LONGEST_NAME or "\0" in name:
        raise UnknownName(kind, f"{name[:40]!r} is not a name", f"see `planner specs list`; {nearest('', names(kind))}")
    if is_path(name):
        return existing(Path(name))
    if len(name) <= LONGEST_FILE_NAME:
        for place in folders(kind):
            if (place / f"{name}.yaml").is_file():
                return place / f"{name}.yaml"
    if is_file(name):
        return existing(Path(name))
    raise UnknownName(kind, f"unknown {kind} {name[:LONGEST_FILE_NAME]!r}", nearest(name, names(kind)))


def is_file(name: str) -> bool:
    """Whether a bare name is that of a file, or of a link, in the working folder."""
    try:
        return os.path.lexists(name) and not os.path.isdir(name)
    except (OSError, ValueError):
        return False


def existing(path: Path) -> Path:
    """The path if a file of sensible size is there. Raises BadFile."""
    try:
        found = path.exists()
    except OSError as error:
        raise BadFile(str(path), error.strerror or "cannot be looked up", "check the path") from None
    if path.is_dir():
        raise BadFile(str(path), "is a directory", "name a YAML file in it")
    if not found and path.is_symlink():
        raise BadFile(str(path), "is a link that leads nowhere", "name a YAML file")
    if not found:
        raise BadFile(str(path), "no such file", "give a name from `planner specs list` or the path of a YAML file")
    if not path.is_file():
        raise BadFile(str(path), "is not a regular file", "name a YAML file")
    if path.stat().st_size > LARGEST_SPEC:
        raise BadFile(
            str(path), f"is {path.stat().st_size:,} bytes, over the {LARGEST_SPEC:,} of a spec", "name a spec file"
        )
    return path


def read(record: type[R], path: Path) -> R:
    """The record in a YAML file. Raises BadFile, BadSpec."""
    if record is Stack:
        return cast(R, read_stack(path))
    return checked(record, path, read_yaml(path))


def checked(record: type[R], path: Path, data: dict[str, Any]) -> R:
    """The record of a file's mapping. Raises BadSpec."""
    kind = kind_of_keys(data)
    if any(isinstance(data.get(key), shape) for key, shape in CONFIG_MARKS.items()):
        wanted = record.__name__.lower()
        raise BadSpec(str(path), f"is a model's config.json, and a {wanted} spec is needed", f"name a {wanted}")
    if kind is not None and RECORDS[kind] is not record:
        wanted = record.__name__.lower()
        raise BadSpec(str(path), f"is a {kind} spec, and a {wanted} is needed", f"name a {wanted}")
    try:
        return record.model_validate(data)
    except ValidationError as error:
        raise BadSpec(str(path), *describe(error, record, data)) from None


def read_stack(path: Path) -> Stack:
    """The stack in a YAML file and those it is like; each is checked as it stands. Raises BadFile, BadSpec."""
    stack, _ = told(path)
    return stack


def told(path: Path) -> tuple[Stack, dict[str, Any]]:
    """The stack in a YAML file, and all that it and those it is like say. Raises BadFile, BadSpec."""
    whole: dict[str, Any] = {}
    for file in reversed(lineage(path)):
        below = {key: value for key, value in whole.items() if key not in OWN}
        whole = merged(below, mapping(file))
        whole.pop("like", None)
        stack = checked(Stack, file, whole)
    return stack, whole


def lineage(path: Path) -> list[Path]:
    """The file of a stack and those it builds on by `like`, itself first. A path counts from the file's own folder."""
    files = [path]
    while "like" in mapping(files[-1]):
        where, like = str(files[-1]), mapping(files[-1])["like"]
        if not isinstance(like, str):
            raise BadSpec(where, f"like: {like!r} is not a name", "name a stack")
        try:
            base = find("stack", beside(files[-1].parent, like))
        except BadInput as error:
            raise type(error)(where, f"like: {error.what}", error.do) from None
        if base.resolve() in [file.resolve() for file in files]:
            raise BadSpec(where, f"like: {like} is like this stack in turn", "let one of them say everything")
        if len(files) == LONGEST_LINE:
            raise BadSpec(where, f"like: is the {LONGEST_LINE}th stack in a line", "build on one nearer its beginning")
        files.append(base)
    return files


def mapping(path: Path) -> dict[str, Any]:
    """What a YAML file says, read again only when it has changed."""
    return _mapping(path, path.stat().st_mtime_ns)


@cache
def _mapping(path: Path, changed_ns: int) -> dict[str, Any]:
    return read_yaml(path)


def merged(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """What own says over what base says: mappings by key, a figure as a whole."""
    whole = {**base, **own}
    for key in base.keys() & own.keys():
        both = base[key], own[key]
        if all(isinstance(one, dict) and "value" not in one for one in both):
            whole[key] = merged(*both)
    return whole


def describe(error: ValidationError, record: type[Record], data: Any) -> tuple[str, str]:
    """(what, do) of the first thing wrong, misspelt keys before missing ones."""
    problems = error.errors(include_url=False)
    first = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    key = written(data, first["loc"]) or "the file"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        missing = [str(p["loc"][-1]) for p in problems if p["type"] == "missing" and p["loc"][:-1] == first["loc"][:-1]]
        known = missing or (list(record.model_fields) if len(first["loc"]) == 1 else [])
        return f"unknown key {key}{more}", nearest(str(first["loc"][-1]), known) if known else "remove it"
    if first["type"] == "missing":
        return f"key {key} is missing{more}", "add it; see a shipped spec for the form"
    reason = first["msg"].removeprefix("Value error, ")
    return f"{key}: {reason}{more}", "mend the value"


def written(data: Any, loc: tuple[int | str, ...]) -> str:
    """The dotted path of a value as its file has it: without the kind's name, which a choice among kinds puts in."""
    path: list[str] = []
    for part in loc:
        if isinstance(data, dict) and part not in data and data.get("kind") == part:
            continue
        path.append(str(part))
        inside = (isinstance(data, dict) and part in data) or (isinstance(data, list) and isinstance(part, int))
        data = data[part] if inside else None
    return ".".join(path)


@cache
def _read(record: type[R], path: Path, changed_ns: tuple[int, ...]) -> R:
    return read(record, path)


RECORDS: dict[str, type[Record]] = {"model": Model, "chip": Chip, "system": System, "stack": Stack}


def kind_of_keys(data: dict[str, Any]) -> str | None:
    """The kind of spec whose keys a mapping has most of; None where it has none of any."""
    shared = {kind: len(set(data) & (set(record.model_fields) - COMMON)) for kind, record in RECORDS.items()}
    shared["stack"] += "like" in data
    best = max(shared, key=lambda kind: shared[kind])
    return best if shared[best] else None


def load(record: type[R], kind: str, name: str) -> R:
    """The record of a name or path, read again only when its file or one it is like has changed."""
    path = find(kind, name)
    files = lineage(path) if kind == "stack" else [path]
    return _read(record, path, tuple(file.stat().st_mtime_ns for file in files))


def load_model(name: str) -> Model:
    """The model of a name, a path or a repository. Raises UnknownName, BadFile, BadSpec."""
    if is_config(name):
        return load_config(name)
    return load(Model, "model", name)


def is_config(name: str) -> bool:
    """Whether a model is named by a Hugging Face config: a .json file, a folder, a repository on the hub."""
    if name.startswith("hf:"):
        return True
    if not name or len(name) > 1000 or "\0" in name:
        return False
    if name.endswith((".json", *WEIGHTS)):
        return True
    spelled = "/" in name or "\\" in name or name in (".", "..")
    yaml = name.endswith((".yaml", ".yml"))
    try:
        there = Path(name).is_dir() or (is_file(name) and not spelled and not yaml)
        return there and (spelled or name not in names("model"))
    except OSError:
        return False


def load_config(name: str) -> Model:
    """The model a Hugging Face config describes, read again only when its files have changed."""
    if not name.startswith("hf:"):
        return _read_config(Path(name), changed(Path(name)), "", "")
    from planner.specs.huggingface.hub import fetched

    path, repository = fetched(name)
    source = f"config.json of {repository} on the Hugging Face hub"
    return _read_config(path, changed(path), repository.split("/")[-1], source)


def changed(path: Path) -> tuple[int, ...]:
    """When the files that a config is read from were last written; a missing one is left to the reader."""
    folder = path if path.is_dir() else path.parent
    places = (path, folder / "config.json", folder / "hf_quant_config.json")
    return tuple(place.stat().st_mtime_ns if place.is_file() else 0 for place in places)


@cache
def _read_config(path: Path, changed_ns: tuple[int, ...], name: str, source: str) -> Model:
    from planner.specs import huggingface

    return huggingface.read(path, name, source)


def load_chip(name: str) -> Chip:
    """The chip of a name or path."""
    return load(Chip, "chip", name)


def load_system(name: str) -> System:
    """The system of a name or path. Paths in it count from its own folder; chip and stack are read when used."""
    system = load(System, "system", name)
    folder = find("system", name).parent
    update = {key: beside(folder, getattr(system, key)) for key in ("chip", "stack")}
    return system.model_copy(update=update)


def beside(folder: Path, name: str) -> str:
    """A path from a folder; a plain name is left alone."""
    return str(folder / name) if is_path(name) else name


def is_path(name: str) -> bool:
    """Written as a path, not as the name of a shipped spec."""
    return "/" in name or "\\" in name or name.endswith((".yaml", ".yml", ".json"))


def load_stack(name: str) -> Stack:
    """The software stack of a name or path."""
    return load(Stack, "stack", name)
