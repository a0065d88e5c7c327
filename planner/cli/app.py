"""The command line: flags to questions, answers to tables or JSON, errors to one line and an exit code.

stdout is data, stderr is narration. Nothing heavier than typer is imported until a command runs.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import Annotated

import typer

from planner.cli import options as o
from planner.cli import study
from planner.cli.evidence import calibrate, validate
from planner.cli.output import emit
from planner.cli.sheets import export, import_sheet
from planner.cli.solve import solve
from planner.cli.workbook import workbook
from planner.errors import BadInput, ExitCode, PlannerError, one_line

app = typer.Typer(
    name="planner",
    help="Plan how a large open model is served: layouts, memory, TTFT, TPOT, throughput, cost, and the range on each.",
    add_completion=True,
    no_args_is_help=False,
    invoke_without_command=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
specs_app = typer.Typer(
    name="specs", help="List, show, check and import spec files.", no_args_is_help=False, invoke_without_command=True
)
app.add_typer(specs_app)


@app.callback()
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the version and stop", is_eager=True)] = False,
) -> None:
    """Without a command: the interview on a terminal."""
    if version:
        from importlib.metadata import version as installed

        sys.stdout.write(f"planner {installed('capacity-planner')}\n")
        raise typer.Exit(0)
    if context.invoked_subcommand is not None:
        return
    from planner.cli.ask import interview

    raise typer.Exit(interview())


@app.command()
def plan(
    model: o.Name, on: o.On, isl: o.Isl, osl: o.Osl, concurrency: o.AnyConcurrency = None, rate: o.Rate = None,
    ttft: o.Ttft = None, tpot: o.Tpot = None, chips: o.Chips = None, objective: o.Objective = "throughput",
    mode: o.Mode = "aggregated", top: o.Top = "10", stack: o.StackName = None, kv_dtype: o.KvDtype = "bf16",
    state_dtype: o.StateDtype = "fp32", chunk: o.Chunk = None, arrivals: o.Arrivals = "steady",
    memory_fraction: o.MemoryFraction = None, prefix_hit: o.PrefixHit = "0", routing_skew: o.RoutingSkew = "1",
    draft_tokens: o.DraftTokens = "0", accepted_length: o.AcceptedLength = "1", vision: o.Vision = False,
    draws: o.Draws = None, as_json: o.Json = False,
) -> None:  # fmt: skip
    """The best layouts for a workload under targets, the front, and what ruled the rest out."""
    from planner.cli.progress import narrated
    from planner.search.plan import plan as search

    workload = o.workload_of(
        isl=isl, osl=osl, concurrency=concurrency, kv_dtype=kv_dtype, state_dtype=state_dtype, chunk=chunk,
        arrivals=arrivals, memory_fraction=memory_fraction, prefix_hit=prefix_hit, routing_skew=routing_skew,
        draft_tokens=draft_tokens, accepted_length=accepted_length, vision=vision,
    )  # fmt: skip
    if mode.lower() != "aggregated":
        raise BadInput("--mode", f"{mode!r} is not built", "use aggregated: prefill and decode share the chips")
    slo = o.slo_of(ttft, tpot, rate)
    with narrated() as progress:
        answer = search(
            model, on, workload, slo=slo, stack=stack, chips=o.maybe_count(chips, "--chips"),
            objective=o.choice(objective, "--objective", ("throughput", "latency", "cost")),
            top=o.count(top, "--top"), draws=o.drawn(draws), progress=progress,
        )  # fmt: skip
    from planner.report.table import draw_plan

    emit(answer, as_json, draw_plan)
    if answer.best is None:
        raise typer.Exit(int(ExitCode.INFEASIBLE))


@app.command()
def estimate(
    model: o.Name, on: o.On, layout: o.LayoutText, isl: o.Isl, osl: o.Osl, concurrency: o.Concurrency,
    chips: o.Chips = None, stack: o.StackName = None, kv_dtype: o.KvDtype = "bf16", state_dtype: o.StateDtype = "fp32",
    chunk: o.Chunk = None, arrivals: o.Arrivals = "steady", memory_fraction: o.MemoryFraction = None,
    prefix_hit: o.PrefixHit = "0", routing_skew: o.RoutingSkew = "1", draft_tokens: o.DraftTokens = "0",
    accepted_length: o.AcceptedLength = "1", vision: o.Vision = False, draws: o.Draws = None, as_json: o.Json = False,
) -> None:  # fmt: skip
    """Memory, TTFT, TPOT, throughput and cost of one layout, operator by operator."""
    from planner.evaluate.estimate import estimate as price
    from planner.report.table import draw_estimate

    workload = o.workload_of(
        isl=isl, osl=osl, concurrency=concurrency, kv_dtype=kv_dtype, state_dtype=state_dtype, chunk=chunk,
        arrivals=arrivals, memory_fraction=memory_fraction, prefix_hit=prefix_hit, routing_skew=routing_skew,
        draft_tokens=draft_tokens, accepted_length=accepted_length, vision=vision,
    )  # fmt: skip
    answer = price(
        model, on, layout, workload, stack=stack, chips=o.maybe_count(chips, "--chips"),
        draws=o.drawn(draws),
    )  # fmt: skip
    emit(answer, as_json, draw_estimate)
    if not answer.feasible:
        raise typer.Exit(int(ExitCode.INFEASIBLE))


@app.command()
def fit(
    model: o.Name, on: o.On, layout: o.AnyLayout = None, max_len: o.MaxLen = None, concurrency: o.AnyConcurrency = None,
    stack: o.StackName = None, kv_dtype: o.KvDtype = "bf16", state_dtype: o.StateDtype = "fp32", chunk: o.Chunk = None,
    memory_fraction: o.MemoryFraction = None, draft_tokens: o.DraftTokens = "0", vision: o.Vision = False,
    as_json: o.Json = False,
) -> None:  # fmt: skip
    """Memory of one chip and of the pool, the largest concurrency and context, the fewest chips."""
    from planner.report.fit import draw_fit
    from planner.search.fit import fit as measure

    workload = o.workload_of(
        isl="1", osl="1", kv_dtype=kv_dtype, state_dtype=state_dtype, chunk=chunk, arrivals="steady",
        memory_fraction=memory_fraction, prefix_hit="0", routing_skew="1", draft_tokens=draft_tokens,
        accepted_length="1", vision=vision,
    )  # fmt: skip
    answer = measure(
        model, on, layout=layout, stack=stack, max_len=o.maybe_count(max_len, "--max-len"),
        concurrency=o.maybe_count(concurrency, "--concurrency"), workload=workload,
    )  # fmt: skip
    emit(answer, as_json, draw_fit)
    if not answer.fits:
        raise typer.Exit(int(ExitCode.INFEASIBLE))


@app.command()
def explain(
    model: o.Name, on: o.On, layout: o.LayoutText, isl: o.Isl, osl: o.Osl, concurrency: o.Concurrency,
    quantity: o.QuantityName = None, closed_form: o.ClosedForm = None, specs: o.SpecsOnly = False,
    latex: o.Latex = False, growth: o.Growth = False,
    sensitivities: o.Sensitivities = False, tornado: o.Tornado = False, draws: o.Draws = None,
    chips: o.Chips = None, stack: o.StackName = None, kv_dtype: o.KvDtype = "bf16", state_dtype: o.StateDtype = "fp32",
    chunk: o.Chunk = None, arrivals: o.Arrivals = "steady", memory_fraction: o.MemoryFraction = None,
    prefix_hit: o.PrefixHit = "0", routing_skew: o.RoutingSkew = "1", draft_tokens: o.DraftTokens = "0",
    accepted_length: o.AcceptedLength = "1", vision: o.Vision = False, as_json: o.Json = False,
) -> None:  # fmt: skip
    """Why: operators with floors and bounds, quantities with formulas, growth, roofline, what moves the answer."""
    asked = {
        "--quantity": quantity is not None,
        "--growth": growth,
        "--sensitivities or --tornado": sensitivities or tornado,
    }
    views = [flag for flag, given in asked.items() if given]
    if len(views) > 1:
        raise BadInput(views[0], f"is one view, and {views[1]} another", "ask for one at a time")
    if specs and quantity is None:
        raise BadInput("--specs", "needs one quantity", "name it with --quantity, such as --quantity usd")
    if draws is not None and not tornado:
        raise BadInput("--draws", "draws behind a tornado, which is not asked for", "add --tornado, or use `estimate`")
    from planner.evaluate.explain import explain as reason
    from planner.report.explain import draw_explanation

    workload = o.workload_of(
        isl=isl, osl=osl, concurrency=concurrency, kv_dtype=kv_dtype, state_dtype=state_dtype, chunk=chunk,
        arrivals=arrivals, memory_fraction=memory_fraction, prefix_hit=prefix_hit, routing_skew=routing_skew,
        draft_tokens=draft_tokens, accepted_length=accepted_length, vision=vision,
    )  # fmt: skip
    answer = reason(
        model, on, layout, workload, stack=stack, chips=o.maybe_count(chips, "--chips"), quantity=quantity,
        growth=growth, formulas=latex or quantity is not None,
        closed_form=None if closed_form is None else closed_form.split(","), sensitivities=sensitivities,
        tornado=tornado, draws=o.drawn(draws),
    )  # fmt: skip
    emit(answer, as_json, lambda found: draw_explanation(found, latex=latex, specs=specs))


app.command()(solve)
app.command()(workbook)


@specs_app.callback()
def specs_start(context: typer.Context) -> None:
    """List, show, check and import spec files."""
    if context.invoked_subcommand is None:
        raise PlannerError("planner specs", "needs a command", "use list, show, check or import")


@specs_app.command("list")
def specs_list(as_json: o.Json = False) -> None:
    """The names of all models, chips, systems and stacks."""
    from planner.report.specs import draw_names
    from planner.specs.library import FOLDERS, names

    emit({f"{kind}s": names(kind) for kind in FOLDERS}, as_json, draw_names)


@specs_app.command("show")
def specs_show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a model, chip, system or stack, or a path")],
    kv_dtype: o.KvDtype = "bf16", state_dtype: o.StateDtype = "fp32", as_json: o.Json = False,
) -> None:  # fmt: skip
    """One spec with its sources; for a model its parameters, bytes, cache and state."""
    from planner.evaluate.show import show
    from planner.kinds.formats import CHOICES
    from planner.report.specs import draw_spec

    kv, state = o.choice(kv_dtype, "--kv-dtype", CHOICES), o.choice(state_dtype, "--state-dtype", ("fp32", "bf16"))
    found = show(name, kv, state)
    emit(found, as_json, draw_spec)


@specs_app.command("check")
def specs_check(
    path: Annotated[str, typer.Argument(metavar="PATH", help="the YAML file of a model, chip, system or stack")],
    as_json: o.Json = False,
) -> None:
    """Whether a spec file is sound, and what it is."""
    from planner.evaluate.show import check
    from planner.report.specs import draw_check

    emit(check(path), as_json, draw_check)


@specs_app.command("import")
def specs_import(
    path: Annotated[str, typer.Argument(metavar="PATH", help="a config.json, a folder with one, or hf:org/repo")],
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="the YAML to write; default: stdout")] = None,
    force: Annotated[bool, typer.Option("--force", help="write over a file that is there")] = False,
) -> None:
    """A Hugging Face config as the YAML of a model, with its derived numbers as comments."""
    from planner.evaluate.show import imported, written

    text = imported(path)
    if out is None:
        sys.stdout.write(text)
    else:
        written(text, out, force)
        sys.stderr.write(f"wrote {out}\n")


app.command()(validate)
app.command()(calibrate)
app.command("import-sheet")(import_sheet)
app.command()(export)
for name, command in study.COMMANDS.items():
    app.command(name)(command)


INTERRUPTED = 130
"""What typer makes of Ctrl-C."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every failure is one line on stderr and its exit code."""
    gc.disable()  # a command lives under a second: collecting cycles costs 7 % of it and frees nothing
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """The exit code of one call."""
    try:
        result = app(arguments, prog_name="planner", standalone_mode=False)
        sys.stdout.flush()
        if result == INTERRUPTED:
            return failed("stopped", ExitCode.FAULT)
        return result if isinstance(result, int) else int(ExitCode.DONE)
    except PlannerError as error:
        return failed(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return failed("stopped", ExitCode.FAULT)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the reader is gone: nothing is left to say
        return int(ExitCode.DONE)
    except OSError as error:
        return failed(f"stdout: {error.strerror}; check where the output goes", ExitCode.FAULT)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # typer's own usage errors
        if usage is not None:
            command = getattr(getattr(error, "ctx", None), "command_path", "planner")
            return failed(f"{command}: {usage().rstrip('.')}; see `{command} --help`", ExitCode.BAD_INPUT)
        return failed(f"internal fault: {type(error).__name__}: {error}", ExitCode.FAULT)


def failed(message: str, code: int) -> int:
    """One line on stderr, if anyone can read it; the exit code."""
    with contextlib.suppress(OSError):
        sys.stderr.write(one_line(message) + "\n")
        sys.stderr.flush()
    return int(code)


if __name__ == "__main__":
    main()
