"""The commands that set things side by side: compare, break-even, claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from planner.cli import options as o
from planner.cli.output import emit
from planner.errors import BadInput, ExitCode

Names = Annotated[str, typer.Argument(metavar="MODEL[,MODEL]", help="models, as in the other commands")]
Systems = Annotated[str, typer.Option("--on", metavar="SYSTEM[,SYSTEM]", help="systems")]
Layouts = Annotated[str, typer.Option("--layout", metavar="'L|L'", help="layouts, such as 'TP8 DP8|TP4 DP16'")]
Stacks = Annotated[str | None, typer.Option("--stack", metavar="S[,S]", help="stacks; default: each system's")]
Caches = Annotated[str, typer.Option("--kv-dtype", metavar="D[,D]", help="cache formats: bf16 fp8 int8 ...")]
Weights = Annotated[
    str | None,
    typer.Option("--weights", metavar="W[,W]", help="checkpoints: fp8, bf16, fp8-experts ...; default: as shipped"),
]


def parts(text: str, flag: str, mark: str = ",") -> list[str]:
    """What a list names, in order. Raises BadInput for an empty or repeated one."""
    found = [part.strip() for part in text.split(mark)]
    if "" in found:
        raise BadInput(flag, f"{text!r} has an empty part", f"write what there is with '{mark}' between")
    twice = next((part for part in found if found.count(part) > 1), None)
    if twice is not None:
        raise BadInput(flag, f"{twice} is given twice", "give each once")
    return found


def maybe_parts(text: str | None, flag: str) -> list[str] | None:
    """The same, or None where the flag was not given."""
    return None if text is None else parts(text, flag)


def compare(
    models: Names, on: Systems, layout: Layouts, isl: o.Isl, osl: o.Osl, concurrency: o.Concurrency,
    stack: Stacks = None, weights: Weights = None, kv_dtype: Caches = "bf16", state_dtype: o.StateDtype = "fp32",
    chunk: o.Chunk = None, arrivals: o.Arrivals = "steady", memory_fraction: o.MemoryFraction = None,
    prefix_hit: o.PrefixHit = "0", routing_skew: o.RoutingSkew = "1", as_json: o.Json = False,
) -> None:  # fmt: skip
    """Layouts, systems, stacks, models, weights, caches side by side: ratios, and which operator changed how much."""
    from planner.evaluate.compare import compare as weigh
    from planner.kinds.formats import CHOICES
    from planner.report.compare import draw_comparison

    caches = [o.choice(one, "--kv-dtype", CHOICES) for one in parts(kv_dtype, "--kv-dtype")]
    workload = o.workload_of(
        isl=isl, osl=osl, concurrency=concurrency, kv_dtype=caches[0], state_dtype=state_dtype, chunk=chunk,
        arrivals=arrivals, memory_fraction=memory_fraction, prefix_hit=prefix_hit, routing_skew=routing_skew,
        draft_tokens="0", accepted_length="1", vision=False,
    )  # fmt: skip
    found = weigh(
        parts(models, "MODEL"), parts(on, "--on"), parts(layout, "--layout", "|"), workload,
        stacks=maybe_parts(stack, "--stack"), weights=maybe_parts(weights, "--weights"), kv_formats=caches,
    )  # fmt: skip
    emit(found, as_json, draw_comparison)
    if not any(variant.fits for variant in found.variants):
        raise typer.Exit(int(ExitCode.INFEASIBLE))


def break_even(
    name: Annotated[str, typer.Argument(metavar="NAME", help="attention, experts, tp-ep or supernode")],
    model: o.Name, on: o.On, layout: o.LayoutText, isl: o.Isl = "8k", osl: o.Osl = "1k",
    concurrency: o.Concurrency = "256", stack: o.StackName = None, kv_dtype: o.KvDtype = "bf16",
    state_dtype: o.StateDtype = "fp32", as_json: o.Json = False,
) -> None:  # fmt: skip
    """From which context, batch or EP size on one way is cheaper than another, or that it never is."""
    from planner.evaluate.break_even import break_even as cross
    from planner.report.compare import draw_break_even

    workload = o.workload_of(
        isl=isl, osl=osl, concurrency=concurrency, kv_dtype=kv_dtype, state_dtype=state_dtype, chunk=None,
        arrivals="steady", memory_fraction=None, prefix_hit="0", routing_skew="1", draft_tokens="0",
        accepted_length="1", vision=False,
    )  # fmt: skip
    found = cross(name, model, on, layout, workload, stack=stack)
    emit(found, as_json, draw_break_even)
    loads = [crossing.fits for crossing in found.crossings if crossing.fits is not None]
    if loads and not any(max(fits) for fits in loads):
        raise typer.Exit(int(ExitCode.INFEASIBLE))


def claims(
    path: Annotated[
        str | None, typer.Argument(metavar="[FILE.yaml]", help="a claim file, or the name of a shipped one")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Under which assumptions a claimed speed-up holds, how its changes share it, and what nobody can tell."""
    from planner.evidence.claims import claims as weigh
    from planner.report.claims import draw_claims

    found = weigh(path)
    emit(found, as_json, draw_claims)
    if not found.holds["of"]:
        raise typer.Exit(int(ExitCode.INFEASIBLE))


COMMANDS: dict[str, Callable[..., Any]] = {"compare": compare, "break-even": break_even, "claims": claims}
