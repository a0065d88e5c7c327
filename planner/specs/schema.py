"""JSON Schemas of the spec files, for editors that check a YAML while it is written.

`python -m planner.specs.schema` writes them beside the specs. They describe files as people write them: a figure is a
mapping whose numbers are texts with units. What a record's own checks add (low <= value <= high, layers that add up) is
not in them. A stack that is `like` another may leave out what it takes over.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from planner.record import Figure, Record
from planner.specs.hardware import Chip, System
from planner.specs.model import Model
from planner.specs.stack import Stack

FILES: dict[str, tuple[type[Record], str]] = {
    "chip": (Chip, "hardware_specs/schema/chip.schema.json"),
    "model": (Model, "model_specs/schema/model.schema.json"),
    "stack": (Stack, "hardware_specs/schema/stack.schema.json"),
    "system": (System, "hardware_specs/schema/system.schema.json"),
}
"""Kind of spec -> (record, file of its schema)."""


class AsWritten(GenerateJsonSchema):
    """Defaults as they would stand in a YAML file."""

    def encode_default(self, dft: Any) -> Any:
        """A figure with its unit in the text, anything else as it is."""
        if not isinstance(dft, Figure):
            return super().encode_default(dft)
        value = dft.value if dft.unit == "1" else f"{dft.value:g} {dft.unit}"
        return {"value": value, "status": dft.status, "source": dft.source}


def schemas() -> dict[str, str]:
    """The text of every schema file, by kind of spec."""
    return {name: text(record) for name, (record, _) in FILES.items()}


def text(record: type[Record]) -> str:
    """One record's schema as the text of its file."""
    schema = record.model_json_schema(schema_generator=AsWritten)
    if record is Stack:
        schema = with_like(schema)
    whole = {"$schema": AsWritten.schema_dialect, **schema}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def with_like(schema: dict[str, Any]) -> dict[str, Any]:
    """A stack's schema with `like`, and with what is required only where there is none."""
    parts: dict[str, Any] = schema["$defs"]

    def needed(record: dict[str, Any]) -> dict[str, Any]:
        fields = record["properties"].items()
        inner = {key: needed(parts[field["$ref"].split("/")[-1]]) for key, field in fields if "$ref" in field}
        return {"required": record["required"], **({"properties": inner} if inner else {})}

    whole = needed(schema)
    for part in parts.values():
        part.pop("required")
    like = {"type": "string", "minLength": 1, "description": "the stack that says what is not said here"}
    schema["properties"] = {"like": like, **schema["properties"]}
    return {**schema, "required": ["name", "title"], "if": {"not": {"required": ["like"]}}, "then": whole}


def write(root: Path) -> list[Path]:
    """Write all schemas below a folder; the files written."""
    written = []
    for name, content in schemas().items():
        path = root / FILES[name][1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(__file__).resolve().parents[2]):
        print(path)
