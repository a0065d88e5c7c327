"""The inputs of a deployment as entries of a form: value, range, source, what may be typed, what follows by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import BaseModel

from planner.evaluate.case import Point
from planner.evaluate.inputs import Case, spec_parts
from planner.layout import routed
from planner.record import LARGEST, SMALLEST, Limits
from planner.specs.workload import Workload

Role = Literal["edit", "word", "follows", "fixed"]
KEYS = {
    "tp": "attention tensor parallel",
    "dp": "attention data parallel",
    "ep": "expert parallel",
    "etp": "tensor parallel inside an expert",
    "pp": "pipeline stages",
    "dcp": "decode context parallel",
    "cp": "prefill context parallel",
    "red": "redundant experts",
    "replicas": "copies of the layout on the chips lent",
    "lent": "chips lent to the deployment",
}
"""The layout's own entries, in the order people write them, with what they are."""
ASKED = ("isl", "osl", "concurrency", "chunk", "prefix_hit", "memory_fraction", "routing_skew", "draft_tokens",
         "accepted_length")  # fmt: skip
FOLLOWING = ("ask.length", "ask.kv_value_bytes", "ask.state_value_bytes")
DRAFTS = ("ask.draft_tokens", "ask.accepted_length")
COUNTED = ("count.", "constant.", "model.layers", "model.max_context", "residual.layers", "system.chips")
WORDS = {"ask.kv_format": "kv_format", "ask.state_format": "state_format", "ask.arrivals": "arrivals"}
"""Choices by name, with the table of their words."""
STRUCTURAL = ("format", ".kind", ".layers", "norm", ".exchange", ".memory_meaning")
"""Ends of the names of words that decide which formulas hold."""


@dataclass(frozen=True)
class Bounds:
    """What may be typed: least and most, whether the least itself is too small, whether only whole numbers."""

    least: float = 0.0
    most: float = LARGEST
    above: bool = False
    whole: bool = False


@dataclass(frozen=True)
class Entry:
    """One input: dotted name, value (a number or a word), unit, range, how well known, source, its part in the form.

    meaning: what it is, in the words of the record's field; may be empty.
    """

    name: str
    value: float | str
    unit: str
    low: float
    high: float
    status: str
    source: str
    role: Role
    bounds: Bounds = Bounds()
    meaning: str = ""


def bounds_of(record: type[BaseModel], field: str) -> Bounds:
    """What the record allows in a field; figures have Limits, counts the marks of their type."""
    info = record.model_fields[field]
    least, most, above, whole = 0.0, LARGEST, False, False
    todo: list[Any] = [info.annotation, *info.metadata]
    while todo:
        part = todo.pop()
        if isinstance(part, Limits):
            least, most, above = part.low, part.high, part.low == SMALLEST
        least, above = (part.gt, True) if hasattr(part, "gt") else (least, above)
        least = part.ge if hasattr(part, "ge") else least
        most = part.le if hasattr(part, "le") else part.lt if hasattr(part, "lt") else most
        whole |= part is int
        todo += [*get_args(part), *getattr(part, "metadata", ())]
    return Bounds(0.0 if above and least == SMALLEST else least, most, above, whole)


def fields_by_name(case: Case, workload: Workload) -> dict[str, tuple[Bounds, str]]:
    """Bounds and description of every number of the specs and the workload that has a field of its own."""
    parts = {prefix: type(record) for prefix, (record, _) in spec_parts(case, workload).items()}
    own: list[tuple[str, type[BaseModel], str]] = [(f"ask.{name}", Workload, name) for name in ASKED]
    own += [(f"{prefix}.{name}", record, name) for prefix, record in parts.items() for name in record.model_fields]
    return {where: (bounds_of(record, name), described(record, name)) for where, record, name in own}


def described(record: type[BaseModel], field: str) -> str:
    """What the record says a field is; may be empty."""
    return record.model_fields[field].description or ""


def field_for(name: str, known: Mapping[str, tuple[Bounds, str]], case: Case) -> tuple[Bounds, str]:
    """Bounds and description of one number: its own, those of the mapping it is in, or above zero.

    known: of `fields_by_name`.
    """
    bounds, meaning = known.get(name) or known.get(name.rpartition(".")[0], (Bounds(above=True), ""))
    if name == "system.domain_chips":
        bounds = Bounds(1, case.system.chips - 1, whole=True)
    return bounds, meaning


def entries(case: Case, workload: Workload, point: Point, used: frozenset[str]) -> list[Entry]:
    """Every number the formulas use, the layout's keys, the choices, and what is fixed; question and layout first."""
    known, sizes = fields_by_name(case, workload), sized(case)
    names = [name for name in point.leaves if name in used or name in ("model.max_context", "system.chips")]
    names.sort(key=lambda name: not name.startswith("ask."))
    found = [word(name, workload) for name in WORDS]
    for name in names:
        leaf = point.leaves[name]
        role = role_of(name, sizes, workload)
        bounds, meaning = field_for(name, known, case)
        status = "chosen" if leaf.source == "workload" else leaf.status
        shown = (leaf.value, leaf.unit, leaf.low, leaf.high, status, leaf.source)
        found.append(Entry(name, *shown, role, bounds, meaning))
    return [*found, *layout_entries(point.values, case), *structural(point, workload)]


def sized(case: Case) -> tuple[str, ...]:
    """Prefixes of the model's own sizes, on which the legal layouts depend."""
    return tuple(f"{name}." for name in (*case.model.attention, *case.model.feed_forward, "residual", "draft"))


def role_of(name: str, sizes: tuple[str, ...], workload: Workload) -> Role:
    """Whether an input is typed, follows from others, or is built into the workbook."""
    if name in FOLLOWING:
        return "follows"
    if name.startswith(COUNTED) or (name in DRAFTS and not workload.draft_tokens):
        return "fixed"
    is_size = name.startswith((*sizes, "model.")) and not name.endswith("value_bytes")
    return "fixed" if is_size else "edit"


def word(name: str, workload: Workload) -> Entry:
    """A choice of words."""
    field = name.removeprefix("ask.")
    value, meaning = getattr(workload, field), described(Workload, field)
    return Entry(name, value, "word", 0, 0, "chosen", "workload", "word", meaning=meaning)


def layout_entries(values: Mapping[str, float], case: Case) -> list[Entry]:
    """The layout's keys, then what its stages hold."""
    most = max((experts for _, experts, _, _ in routed(case.model)), default=0)
    found = []
    for key, meaning in KEYS.items():
        value = values[f"layout.{key}"]
        bounds = Bounds(0, most, whole=True) if key == "red" else Bounds(1, case.system.chips, whole=True)
        found.append(Entry(f"layout.{key}", value, "1", value, value, "chosen", "layout", "edit", bounds, meaning))
    for name, value in values.items():
        if name.startswith("layout.") and name not in {f"layout.{key}" for key in KEYS}:
            found.append(Entry(name, value, "1", value, value, "derived", "layout", "follows"))
    return found


def structural(point: Point, workload: Workload) -> list[Entry]:
    """Words, flags and absences that decide which formulas hold."""
    switches: dict[str, Any] = {
        "ask.vision": workload.vision,
        "ask.speculates": point.shape.speculates,
        "system.crosses_domains": point.shape.crosses_domains,
    }
    words = {
        name: value
        for name, value in point.raw.items()
        if name not in WORDS and (value is None or isinstance(value, bool) or name.endswith(STRUCTURAL))
    }
    return [
        Entry(name, plain(value), "word", 0, 0, "fixed", "decides which formulas hold", "fixed")
        for name, value in (switches | words).items()
        if not isinstance(value, dict)
    ]


def plain(value: object) -> str:
    """A word, a flag or an absence as text."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
