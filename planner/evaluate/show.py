"""One spec as an answer: its fields with sources, and for a model and a system what follows from them."""

from __future__ import annotations

from os.path import lexists
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml

from planner.errors import BadFile, BadSpec, UnknownName, nearest
from planner.evaluate.case import case_of
from planner.evaluate.totals import cache_sizes, totals
from planner.kinds.attention import ATTENTION
from planner.specs.huggingface.files import opened
from planner.specs.library import (
    FOLDERS,
    existing,
    is_config,
    is_path,
    kind_of_keys,
    load_chip,
    load_model,
    load_stack,
    load_system,
    names,
)
from planner.specs.model import Model
from planner.specs.yaml_file import read_yaml

LOADERS = {"model": load_model, "chip": load_chip, "system": load_system, "stack": load_stack}


def kind_of(name: str) -> str:
    """model, chip, system or stack. Raises UnknownName, BadFile, BadSpec."""
    shipped = [] if is_path(name) else [kind for kind in FOLDERS if name in names(kind)]
    if shipped:
        return shipped[0]
    if is_config(name):
        data = opened(Path(name)).data if name.endswith(".json") else {}
        kind = kind_of_keys(data)
        return kind if kind in ("chip", "system", "stack") else "model"
    if is_path(name):
        found = kind_of_keys(read_yaml(existing(Path(name))))
        if found is None:
            raise BadSpec(name, "has no key of a model, chip, system or stack", "see a shipped spec for the form")
        return found
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
    kept = cache_sizes(model, kv_format, state_format)
    return {
        "derived": {
            "total_params": sums.total_params,
            "active_params": sums.active_params,
            "weights_bytes": round(sums.text_bytes + sums.vision_bytes + sums.draft_bytes),
            "weights_bytes_by_part": {
                "text": round(sums.text_bytes),
                "vision": round(sums.vision_bytes),
                "draft": round(sums.draft_bytes),
            },
            "params_by_group": sums.params_by_group,
            "extra_params": sums.extra_params,
            "draft_params": sums.draft_params,
            "vision_params": sum(extra.parameters for extra in model.extras.values() if extra.part == "vision"),
            "kv_format": kv_format,
            "kv_bytes_per_token": kept.per_token,
            "kv_bytes_per_token_in_window": kept.per_token_in_window,
            "kv_bytes_per_token_with_draft": (
                None if kept.draft_per_token is None else kept.per_token + kept.draft_per_token
            ),
            "state_format": state_format,
            "state_bytes_per_sequence": kept.constant,
        },
        "attention_kinds": {name: group.kind for name, group in model.attention.items()},
        "references": {group.kind: ATTENTION[group.kind].reference for group in model.attention.values()},
    }


def check(path: str) -> dict[str, Any]:
    """{kind, name, path, sound} of a spec file. Raises BadFile, BadSpec, UnknownName with what is wrong."""
    if is_config(path) and kind_of(path) == "model":
        return {"path": path, "kind": "model", "name": load_model(path).name, "sound": True}
    place = str(existing(Path(path)))
    written_as = place if is_path(place) else f"./{place}"
    kind = kind_of(written_as)
    record: Any = LOADERS[kind](written_as)
    if kind == "system":
        case_of(next(iter(names("model"))), record)
    return {"path": path, "kind": kind, "name": record.name, "sound": True}


WIDEST = 120


def imported(name: str, kv_format: str = "bf16", state_format: str = "fp32") -> str:
    """A model as the text of its YAML, with what follows from it as comments. Raises BadInput leaves."""
    model = load_model(name)
    fields = yaml.safe_dump(model.model_dump(exclude_defaults=True), sort_keys=False, allow_unicode=True, width=WIDEST)
    lines = derived_lines(shown_model(model, kv_format, state_format)["derived"])
    return "\n".join(f"# {line}" for line in lines) + "\n" + fields


def derived_lines(derived: dict[str, Any]) -> list[str]:
    """What follows from a model's fields, a line each."""
    state = derived["state_bytes_per_sequence"]
    return [
        "Derived from the fields below; nothing here is read.",
        f"parameters, text         {derived['total_params']:,}",
        f"parameters, active       {derived['active_params']:,} a token, head counted, input embedding not",
        f"parameters, draft        {derived['draft_params']:,}",
        *([f"parameters, vision       {derived['vision_params']:,}"] if derived["vision_params"] else []),
        *(f"  {name:<22} {count:,}" for name, count in derived["params_by_group"].items()),
        f"bytes, as shipped        {derived['weights_bytes']:,}",
        *(f"  {part:<22} {size:,}" for part, size in derived["weights_bytes_by_part"].items()),
        f"cache, bytes a token     {derived['kv_bytes_per_token']:,.0f} in {derived['kv_format']}",
        f"  while windows fill     {derived['kv_bytes_per_token_in_window']:,.0f}",
        f"state, bytes a sequence  {state:,.0f} in {derived['state_format']}, windows full",
    ]


YAML, HTML = (".yaml", ".yml"), (".html", ".htm")


def free(out: str, force: bool, endings: tuple[str, ...] = YAML) -> None:
    """Nothing stands in the way of writing this file; a link to a file is written through, by force. Raises BadFile."""
    if not out.endswith(endings):
        kind = endings[0].removeprefix(".").upper()
        raise BadFile(out, f"is not the name of a file in {kind}", f"end it in {endings[0]}")
    try:
        if Path(out).is_dir():
            raise BadFile(out, "is a directory", "name a file in it")
        if lexists(out) and not Path(out).is_file():
            raise BadFile(out, "is there and is not a regular file", "give another name")
        if lexists(out) and not force:
            raise BadFile(out, "is there already", "give --force to write over it, or another name")
        if not Path(out).parent.is_dir():
            raise BadFile(out, f"there is no folder {Path(out).parent}", "make it first")
    except OSError as error:
        raise BadFile(out, error.strerror or "cannot be looked up", "check the path") from None


def written(text: str | bytes, out: str, force: bool, endings: tuple[str, ...] = YAML) -> None:
    """Write a file whole or not at all; over one that is there only by force. Raises BadFile.

    Where the name is a link to a file, by force that file has the new text and the link stays.
    """
    free(out, force, endings)
    try:
        data = text.encode() if isinstance(text, str) else text
        target = Path(out).resolve()
        with NamedTemporaryFile(dir=target.parent, suffix=".tmp", delete=False) as draft:
            place = Path(draft.name)
            try:
                draft.write(data)
                draft.flush()
                place.chmod(0o644)
                place.replace(target)
            except BaseException:
                place.unlink(missing_ok=True)
                raise
    except UnicodeEncodeError:
        raise BadFile(out, "the text holds letters that UTF-8 has not", "check the names in the source") from None
    except OSError as error:
        raise BadFile(out, error.strerror or "cannot be written", "check the folder and its permissions") from None
