"""One spec as an answer: its fields with sources, and for a model and a system what follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.errors import BadSpec, UnknownName, nearest
from planner.evaluate.case import case_of
from planner.evaluate.totals import cache_sizes, totals
from planner.kinds.attention import ATTENTION
from planner.specs.library import (
    FOLDERS,
    existing,
    is_path,
    kind_of_keys,
    load_chip,
    load_model,
    load_stack,
    load_system,
    names,
    read_yaml,
)
from planner.specs.model import Model

LOADERS = {"model": load_model, "chip": load_chip, "system": load_system, "stack": load_stack}


def kind_of(name: str) -> str:
    """model, chip, system or stack. Raises UnknownName, BadFile, BadSpec."""
    if is_path(name):
        found = kind_of_keys(read_yaml(existing(Path(name))))
        if found is None:
            raise BadSpec(name, "has no key of a model, chip, system or stack", "see a shipped spec for the form")
        return found
    for kind in FOLDERS:
        if name in names(kind):
            return kind
    every = [known for kind in FOLDERS for known in names(kind)]
    raise UnknownName("spec", f"unknown name {name!r}", nearest(name, every))


def show(name: str, kv_format: str = "bf16", state_format: str = "fp32") -> dict[str, Any]:
    """The spec's fields; for a model `derived`, for a system its chip, pool and defaults. Raises BadInput leaves."""
    kind = kind_of(name)
    record: Any = LOADERS[kind](name)
    fields = record.model_dump()
    if kind == "model":
        return {"kind": kind, **fields, **shown_model(record, kv_format, state_format)}
    if kind == "system":
        chip = load_chip(record.chip)
        pool = {"capacity_bytes": chip.memory.value * record.chips}
        return {"kind": kind, **fields, "pool": pool, "memory_bytes_per_chip": chip.memory.value}
    return {"kind": kind, **fields}


def shown_model(model: Model, kv_format: str, state_format: str) -> dict[str, Any]:
    """What follows from a model's fields alone."""
    sums = totals(model)
    per_token, per_sequence = cache_sizes(model, kv_format, state_format)
    return {
        "derived": {
            "total_params": sums.total_params,
            "active_params": sums.active_params,
            "weights_bytes": round(sums.text_bytes + sums.vision_bytes),
            "weights_bytes_by_part": {"text": round(sums.text_bytes), "vision": round(sums.vision_bytes), "draft": 0},
            "params_by_group": sums.params_by_group,
            "extra_params": sums.extra_params,
            "kv_format": kv_format,
            "kv_bytes_per_token": per_token,
            "kv_bytes_per_token_in_window": 0,
            "state_format": state_format,
            "state_bytes_per_sequence": per_sequence,
        },
        "attention_kinds": {name: group.kind for name, group in model.attention.items()},
        "references": {group.kind: ATTENTION[group.kind].reference for group in model.attention.values()},
    }


def check(path: str) -> dict[str, Any]:
    """{kind, name, path, sound} of a spec file. Raises BadFile, BadSpec, UnknownName with what is wrong."""
    place = str(existing(Path(path)))
    written = place if is_path(place) else f"./{place}"
    kind = kind_of(written)
    record: Any = LOADERS[kind](written)
    if kind == "system":
        case_of(next(iter(names("model"))), record)
    return {"path": path, "kind": kind, "name": record.name, "sound": True}
