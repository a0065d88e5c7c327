"""Records: frozen pydantic models whose every number knows its unit, source and status.

A `Figure` is one number of a spec. An undisclosed one is an estimate and must carry a low and a high, so that every
answer that depends on it can carry a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from planner.errors import BadUnit
from planner.units import EXAMPLES, parse

Status = Literal["published", "secondary", "derived", "measured", "fitted", "analogy", "estimated", "assumed"]
SMALLEST, LARGEST = 1e-30, 1e30
"""No figure of a spec comes near either; beyond them products underflow and overflow."""
RANGED = ("estimated", "assumed", "analogy")


class Record(BaseModel):
    """A frozen record: unknown keys are refused, text is not turned into numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    @field_validator("*", mode="after")
    @classmethod
    def printable(cls, value: Any) -> Any:
        """Texts of specs are shown on terminals: no control characters."""
        if isinstance(value, str) and not value.isprintable():
            raise ValueError(f"{value!r} has control characters")
        return value


class Figure(Record):
    """One number with its unit, its range, where it comes from and how well it is known.

    low and high bound an estimate; a published figure has low = value = high.
    `with_group` names figures that are uncertain together: one draw moves all of a group, and '-name' moves against it.
    """

    value: float
    low: float
    high: float
    unit: str
    status: Status
    source: str = Field(min_length=1)
    note: str = ""
    with_group: str = ""

    @model_validator(mode="after")
    def ordered(self) -> Figure:
        """low <= value <= high, and an estimate has room between them."""
        if not self.low <= self.value <= self.high:
            raise ValueError(f"low {self.low:g} <= value {self.value:g} <= high {self.high:g} does not hold")
        if self.status in RANGED and self.low == self.high:
            raise ValueError(f"a figure with status {self.status} needs a low and a high that differ")
        return self


def in_unit(unit: str, zero: bool, most: float) -> Any:
    """A validator that turns a written figure (with unit strings) into SI, or leaves a Figure alone.

    zero: the figure may be 0. Nothing may be below 0 or above `most`.
    """

    def read(raw: object) -> object:
        if isinstance(raw, Figure):
            return raw
        if not isinstance(raw, dict):
            raise ValueError(f"{raw!r} must be a mapping with value, status and source; {example(unit)}")
        if "value" not in raw:
            raise ValueError(f"value is missing; {example(unit)}")
        given = dict(raw)
        given.setdefault("low", given.get("value"))
        given.setdefault("high", given.get("value"))
        try:
            for key in ("value", "low", "high"):
                given[key] = number(given[key]) if unit == "1" else parse(given[key], unit, key)
        except BadUnit as error:
            raise ValueError(str(error)) from None
        for key in ("value", "low", "high"):
            if isinstance(given[key], float) and not (SMALLEST <= given[key] <= most or (zero and given[key] == 0)):
                raise ValueError(f"{key} {raw.get(key, raw.get('value'))} is not {within(zero, most)}")
        return {**given, "unit": unit}

    return read


def within(zero: bool, most: float) -> str:
    """The legal range as a phrase."""
    floor = "at least 0" if zero else "above 0"
    return f"{floor} and at most {most:g}"


def example(unit: str) -> str:
    """How a value of this unit is written."""
    return "write a plain number" if unit == "1" else f"write the value like '{EXAMPLES[unit]}'"


def number(raw: object) -> object:
    """A plain number as float; anything else is left for the record to refuse."""
    return float(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw


def written(unit: str, zero: bool, most: float) -> dict[str, Any]:
    """JSON Schema of a figure as it is written in YAML."""
    one: dict[str, Any] = {"type": "number", "minimum" if zero else "exclusiveMinimum": 0, "maximum": most}
    if unit != "1":
        one = {
            "type": "string",
            "pattern": r"^\s*[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*\S+\s*$",
            "examples": [EXAMPLES[unit]],
        }
    return {
        "type": "object",
        "description": f"a figure in {unit}" if unit != "1" else "a pure number",
        "properties": {
            "value": one,
            "low": one,
            "high": one,
            "status": {"enum": list(Status.__args__)},  # type: ignore[attr-defined]
            "source": {"type": "string", "minLength": 1},
            "note": {"type": "string"},
            "with_group": {"type": "string"},
        },
        "required": ["value", "status", "source"],
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Limits:
    """The least and the most a figure may be."""

    low: float
    high: float


def read(unit: str, zero: bool = False, most: float = LARGEST) -> tuple[Any, Any, Limits]:
    """How a figure of this unit is read, described and bounded; `zero` where none of it is a legal amount."""
    bounds = Limits(0.0 if zero else SMALLEST, most)
    return BeforeValidator(in_unit(unit, zero, most)), WithJsonSchema(written(unit, zero, most)), bounds


def limits(record: type[BaseModel], field: str) -> Limits | None:
    """The limits of a figure, or of the figures of a mapping; None where the field holds none."""
    info = record.model_fields[field]
    todo: list[Any] = [info.annotation, *info.metadata]
    while todo:
        part = todo.pop()
        if isinstance(part, Limits):
            return part
        todo += get_args(part)
    return None


Seconds = Annotated[Figure, *read("s", zero=True)]
Bytes = Annotated[Figure, *read("B")]
SpareBytes = Annotated[Figure, *read("B", zero=True)]
BytesPerSecond = Annotated[Figure, *read("B/s")]
FlopsPerSecond = Annotated[Figure, *read("FLOP/s")]
Watts = Annotated[Figure, *read("W")]
UsdPerSecond = Annotated[Figure, *read("USD/s", zero=True)]
Number = Annotated[Figure, *read("1")]
SpareNumber = Annotated[Figure, *read("1", zero=True)]
Fraction = Annotated[Figure, *read("1", most=1)]
SpareFraction = Annotated[Figure, *read("1", zero=True, most=1)]
Count = Annotated[int, Field(ge=1, le=10**12)]
