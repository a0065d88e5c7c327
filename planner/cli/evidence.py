"""Commands that hold the model against measurements."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from planner.cli import options as o
from planner.cli.output import emit
from planner.errors import BadInput


def validate(
    path: Annotated[
        str | None, typer.Argument(metavar="[FILE.csv]", help="a table of measurements; default: those that ship")
    ] = None,
    leave_out: Annotated[
        bool,
        typer.Option("--leave-out", help="also predict every source by stacks refitted without it; about a minute"),
    ] = False,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="also how often the ranges hold what was measured, engines unknown")
    ] = False,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE.html", help="write the report as a page")] = None,
    force: Annotated[bool, typer.Option("--force", help="write over a file that is there")] = False,
    as_json: o.Json = False,
) -> None:
    """Predicted against measured: the error by source, metric and phase, and the worst figures with their bound."""
    from pathlib import Path

    from planner.evaluate.show import HTML, free, written
    from planner.evidence.kernels import is_kernel_table, validate_kernels
    from planner.evidence.validate import validate as check
    from planner.report.console import console
    from planner.report.evidence import draw_validation, page
    from planner.report.kernels import render

    if out is not None:
        free(out, force, HTML)
    if path is not None and is_kernel_table(Path(path)):
        if out is not None or leave_out or coverage:
            raise BadInput(
                "validate", "a kernel table has no page and no sources to leave out", "leave the options out"
            )
        report = validate_kernels(Path(path))
        emit(report.model_dump() if as_json else report, as_json, lambda found: console().print(render(found)))
        return
    found = check(path, leave_out=leave_out, coverage=coverage)
    if out is not None:
        written(page(found), out, force, HTML)
        sys.stderr.write(f"wrote {out}\n")
    emit(found, as_json, draw_validation)


def calibrate(
    path: Annotated[str, typer.Argument(metavar="FILE.csv", help="a table of measurements; see docs/validation.md")],
    chip: Annotated[str, typer.Option("--chip", metavar="CHIP", help="the chip whose rows count")],
    stack: Annotated[str, typer.Option("--stack", metavar="STACK", help="the stack to start from")],
    out: Annotated[str, typer.Option("--out", metavar="FILE.yaml", help="the stack to write; its name is the file's")],
    force: Annotated[bool, typer.Option("--force", help="write over a file that is there")] = False,
    as_json: o.Json = False,
) -> None:
    """A stack fitted to measurements, with ranges, and what they cannot tell. One row is enough to anchor an engine."""
    from pathlib import Path

    from planner.evaluate.show import free, written
    from planner.evidence.calibrate import calibrate as adjust
    from planner.evidence.kernel_calibrate import calibrate_kernels
    from planner.evidence.kernel_rows import is_kernel_table
    from planner.report.console import console
    from planner.report.evidence import draw_calibration

    free(out, force)
    if is_kernel_table(Path(path)):
        kernels = calibrate_kernels(Path(path), chip=chip, stack=stack, name=Path(out).stem)
        written(kernels.text, out, force)
        sys.stderr.write(f"wrote {out}\n")
        emit(kernels, as_json, lambda found: console().print(found.text, markup=False, highlight=False))
        return
    found = adjust(path, chip=chip, stack=stack, name=Path(out).stem)
    written(found.text, out, force)
    sys.stderr.write(f"wrote {out}\n")
    emit(found, as_json, draw_calibration)
