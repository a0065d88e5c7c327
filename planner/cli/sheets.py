"""Commands around spreadsheets: a table of scenarios priced, the kernel as a file."""

from __future__ import annotations

import sys
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


def export(
    model: o.Name, on: o.On, layout: o.LayoutText, isl: o.Isl, osl: o.Osl, concurrency: o.Concurrency,
    out: Annotated[str, typer.Option("--out", metavar="FILE.py", help="the file to write")],
    form: Annotated[str, typer.Option("--form", metavar="F", help="python: a file that needs numpy alone")] = "python",
    force: Annotated[bool, typer.Option("--force", help="write over a file that is there")] = False,
    chips: o.Chips = None, stack: o.StackName = None, kv_dtype: o.KvDtype = "bf16", state_dtype: o.StateDtype = "fp32",
    chunk: o.Chunk = None, arrivals: o.Arrivals = "steady", memory_fraction: o.MemoryFraction = None,
    prefix_hit: o.PrefixHit = "0", routing_skew: o.RoutingSkew = "1", draft_tokens: o.DraftTokens = "0",
    accepted_length: o.AcceptedLength = "1", vision: o.Vision = False, as_json: o.Json = False,
) -> None:  # fmt: skip
    """The formulas of one deployment as one file to run elsewhere, every input and quantity with its meaning."""
    from planner.evaluate.exported import export_python
    from planner.evaluate.show import free, written
    from planner.report.export import draw_export

    o.choice(form, "--form", FORMS)
    free(out, force, PYTHON)
    workload = o.workload_of(
        isl=isl, osl=osl, concurrency=concurrency, kv_dtype=kv_dtype, state_dtype=state_dtype, chunk=chunk,
        arrivals=arrivals, memory_fraction=memory_fraction, prefix_hit=prefix_hit, routing_skew=routing_skew,
        draft_tokens=draft_tokens, accepted_length=accepted_length, vision=vision,
    )  # fmt: skip
    found = export_python(model, on, layout, workload, stack=stack, chips=o.maybe_count(chips, "--chips"))
    written(found.text, out, force, PYTHON)
    for missed in found.violations:
        sys.stderr.write(f"does not fit: {missed['sentence']}; its times, rates and costs are None in the file\n")
    sys.stderr.write(f"wrote {out}\n")
    emit(found, as_json, draw_export)


FORMS, PYTHON = ("python",), (".py",)
