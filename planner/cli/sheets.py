"""Commands around spreadsheets: a table of scenarios priced."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import options as o
from planner.cli.output import emit


def import_sheet(
    path: Annotated[str, typer.Argument(metavar="FILE", help="a table of scenarios, one a row: .xlsx or .csv")],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="the table to write: .xlsx or .csv")],
    force: Annotated[bool, typer.Option("--force", help="write over a file that is there")] = False,
    as_json: o.Json = False,
) -> None:
    """A table of scenarios with predictions beside them; columns are named as the flags of `planner estimate`."""
    from planner.report.sheets import draw_import
    from planner.scenarios.sheet_import import import_sheet as price

    emit(price(path, out, force), as_json, draw_import)
