"""The measurements that ship with the planner: one file a publication, its figures with their configuration.

source, title, url, date, note     what was published, where and when
common                             fields that all its figures share
figures                            the rest, one figure a line, in the fields of `planner.evidence.measurement`
unexplained                        reason -> ids of the figures that no structure explains, scored all the same
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from planner.errors import BadFile
from planner.evidence.measurement import Measurement
from planner.evidence.names import folder
from planner.record import Record
from planner.specs.yaml_file import read_yaml

NAMES = "names.yaml"


class Publication(Record):
    """One file of measurements."""

    source: str
    title: str
    url: str
    date: str
    note: str = ""
    unexplained: dict[str, list[str]] = Field(default={})
    figures: list[Measurement]


def read_publication(path: Path) -> Publication:
    """A file of measurements. Raises BadFile."""
    data = read_yaml(path)
    common: dict[str, Any] = data.pop("common", {})
    data["figures"] = [{**common, "source": data.get("source"), **figure} for figure in data.get("figures", [])]
    try:
        found = Publication.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BadFile(str(path), f"{where}: {first['msg']}", "see the other files of measurements") from None
    known = {figure.id for figure in found.figures}
    for ids in found.unexplained.values():
        for name in ids:
            if name not in known:
                raise BadFile(str(path), f"unexplained: no figure {name!r}", "name a figure of this file")
    return found


@cache
def publications() -> tuple[Publication, ...]:
    """Every shipped file, in order of its name."""
    return tuple(read_publication(path) for path in sorted(folder().glob("*.yaml")) if path.name != NAMES)


def measurements() -> list[Measurement]:
    """Every shipped figure."""
    return [figure for publication in publications() for figure in publication.figures]
