"""`planner workbook`: a plan as a live spreadsheet."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli import options as o
from planner.cli.output import emit

Out = Annotated[str, typer.Option("--out", metavar="FILE.xlsx", help="the workbook to write")]
Force = Annotated[bool, typer.Option("--force", help="write over a file that is there")]
MaybeLayout = Annotated[
    str | None, typer.Option("--layout", metavar="LAYOUT", help="such as 'TP8 DP8 EP64'; default: the plan's best")
]


def workbook(
    context: typer.Context, model: o.Name, on: o.On, isl: o.Isl, osl: o.Osl, out: Out, force: Force = False,
    layout: MaybeLayout = None,
    concurrency: o.AnyConcurrency = None, rate: o.Rate = None, ttft: o.Ttft = None, tpot: o.Tpot = None,
    chips: o.Chips = None, objective: o.Objective = "throughput", top: o.Top = "5", stack: o.StackName = None,
    kv_dtype: o.KvDtype = "bf16", state_dtype: o.StateDtype = "fp32", chunk: o.Chunk = None,
    arrivals: o.Arrivals = "steady", memory_fraction: o.MemoryFraction = None, prefix_hit: o.PrefixHit = "0",
    routing_skew: o.RoutingSkew = "1", draft_tokens: o.DraftTokens = "0", accepted_length: o.AcceptedLength = "1",
    vision: o.Vision = False, as_json: o.Json = False,
) -> None:  # fmt: skip
    """A live spreadsheet: inputs to edit, every formula of the answer, layouts side by side, charts."""
    import time

    from planner.cli.progress import narrated
    from planner.evaluate.show import free

    workload = o.workload_of(
        isl=isl, osl=osl, concurrency=concurrency, kv_dtype=kv_dtype, state_dtype=state_dtype, chunk=chunk,
        arrivals=arrivals, memory_fraction=memory_fraction, prefix_hit=prefix_hit, routing_skew=routing_skew,
        draft_tokens=draft_tokens, accepted_length=accepted_length, vision=vision,
    )  # fmt: skip
    slo = o.slo_of(ttft, tpot, rate)
    free(out, force, (".xlsx",))
    from planner.report.workbook.book import write
    from planner.report.workbook.summary import draw_written
    from planner.search.workbook import contents, planned

    with narrated() as progress:
        found = planned(
            model, on, workload, layout=layout, slo=slo, stack=stack, chips=o.maybe_count(chips, "--chips"),
            objective=o.choice(objective, "--objective", ("throughput", "latency", "cost")),
            top=o.count(top, "--top"), progress=progress,
        )  # fmt: skip
        begin = time.perf_counter()
        progress("writing the workbook")
        answer = write(contents(found, repeating(context)), out, force, begin)
    emit(answer, as_json, draw_written)


def repeating(context: typer.Context) -> str:
    """The command line that writes the same workbook: what differs from the defaults, the file by its name alone."""
    import shlex
    from pathlib import Path

    words = ["planner", str(context.info_name)]
    for parameter in context.command.params:
        given = context.params.get(parameter.name or "")
        if parameter.name in ("force", "as_json", "context") or given == parameter.default or given is None:
            continue
        text = Path(given).name if parameter.name == "out" else str(given)
        words += [text] if parameter.param_type_name == "argument" else parameter.opts[:1]
        words += [] if parameter.param_type_name == "argument" or given is True else [text]
    return shlex.join(words)
