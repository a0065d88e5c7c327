"""What tables call models, machines, engines and precisions: the shipped specs meant, by measurements/names.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from planner.errors import BadFile, UnknownName, nearest
from planner.specs.library import load_model, load_system
from planner.specs.library import names as shipped
from planner.specs.precision import PRECISIONS
from planner.specs.yaml_file import read_yaml


class Machine(NamedTuple):
    """A system and the ranks of a layout on what a table counts as one chip."""

    system: str
    ranks: int


@cache
def names(kind: str) -> tuple[str, ...]:
    """The shipped names of a kind, looked up once: a table asks for every row."""
    return tuple(shipped(kind))


def folder() -> Path:
    """Where the shipped measurements are: beside the package in a checkout, inside an installed one."""
    package = Path(__file__).resolve().parents[1]
    places = [package.parent / "measurements", package / "measurements"]
    return next((place for place in places if place.is_dir()), places[0])


@cache
def table() -> dict[str, Any]:
    """The tables of names."""
    return read_yaml(folder() / "names.yaml")


def model_name(text: str, key: str = "") -> str:
    """The shipped model a table means by a name or, failing that, an architecture key. Raises UnknownName."""
    known = {**{name.lower(): name for name in names("model")}, **lowered("models")}
    for name in (*spellings(text), *spellings(key)):
        found = known.get(name) or lowered("architectures").get(name)
        if found in names("model"):
            return str(found)
    hint = nearest(text, names("model"))
    raise UnknownName("model", f"unknown model {text!r}", hint if "did you" in hint else "see `planner specs list`")


def spellings(text: str) -> list[str]:
    """A name, the same without its organisation, and without endings that do not change its shapes, one by one."""
    name = text.strip().lower()
    found = [name, name.rpartition("/")[2]]
    while (ending := next((end for end in table()["endings"] if found[-1].endswith(end)), None)) is not None:
        found.append(found[-1].removesuffix(ending))
    return found


def machine(text: str) -> Machine:
    """The system a table means. Raises UnknownName."""
    known: dict[str, Any] = {name.lower(): {"system": name} for name in names("system")}
    known |= lowered("hardware")
    found = known.get(text.strip().lower())
    if found is None or found["system"] not in names("system"):
        raise UnknownName("hardware", f"unknown hardware {text!r}", nearest(text, known))
    return Machine(found["system"], found.get("ranks", 1))


@cache
def chip_of(system: str) -> tuple[str, str]:
    """(chip of a system, the family it is in or nothing): a table asks for every row."""
    chip = load_system(system).chip
    return chip, next((name for name, chips in table()["families"].items() if chip in chips), "")


def stack_name(engine: str, system: str, date: str = "") -> str:
    """The stack of an engine on a system at a date (2026-03-25); the unfitted one of its chips for an unknown engine.

    Raises UnknownName where there is none.
    """
    if engine in names("stack"):
        return engine
    chip, family = chip_of(system)
    entries = table()["engines"]
    named = next((e["name"] for e in entries if engine.strip().lower().startswith(e["name"].lower())), None)
    found = table()["unknown"].get(family)
    for entry in entries:
        if entry["name"] == named and family in entry["stacks"] and str(entry.get("since", "")) <= date:
            found = entry["stacks"][family]
    if found is None or found not in names("stack"):
        raise UnknownName("framework", f"no stack for {engine!r} on {chip}", nearest(engine, names("stack")))
    return str(found)


def weights_name(text: str, model: str) -> str | None:
    """The precision a table means for a model: the longest known beginning of what it says. Raises UnknownName."""
    known = {**{name: name for name in PRECISIONS}, **table()["weights"]}
    said = text.strip()
    name = said if said in known else max((n for n in known if n and said.startswith(n)), key=len, default=None)
    if name is None:
        raise UnknownName("weight_precision", f"unknown precision {text!r}", nearest(text, known))
    found = known[name]
    blocks = any(layer.format == "fp8_block" for layer in load_model(model).attention.values())
    return None if found is None or (found in ("fp8", "fp8_block") and blocks) else str(found)


def lowered(part: str) -> dict[str, Any]:
    """One table of names, by small letters."""
    found = table()[part]
    if not isinstance(found, dict):
        raise BadFile("measurements/names.yaml", f"{part} is not a mapping", "see the shipped file")
    return {str(name).lower(): value for name, value in found.items()}
