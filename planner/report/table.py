"""Plans, estimates and fits as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.markup import escape

from planner.evaluate.results import Estimate, Fit, Memory, Plan
from planner.report import plot
from planner.report.console import console, table
from planner.report.numbers import main_bound, ranged, share, written
from planner.units import show, show_time

FRONT_ROWS = 8
ASSUMPTION_ROWS = 15
WITH_SENTENCE = 110
"""Columns from which operators are explained in the table."""


def draw_plan(plan: Plan) -> None:
    """Ten best layouts, the front, what was ruled out, which inputs are estimates."""
    out = console()
    if plan.best is None:
        out.print(f"[bold]No layout meets the question.[/bold] {plan.model} on {plan.system} with {plan.stack}")
        if plan.nearest:
            near = plan.nearest
            missed = f"tightest constraint: {near['constraint']}, missed by {show(near['missed_by'], near['unit'])}"
            out.print(f"{missed}; the nearest point is {near['layout']} with {near['concurrency']} in flight:")
            out.print(escape(near["sentence"]))
        draw_rejected(plan)
        return
    best, workload = plan.best, plan.best.workload
    out.print(f"[bold]{plan.model} on {plan.system}[/bold], stack {plan.stack}, {best.layout.chips_lent} chips")
    out.print(
        f"prompt {workload['isl']:,} + output {workload['osl']:,} tokens, cache {workload['kv_format']}, state "
        f"{workload['state_format']}, {workload['arrivals']} arrivals; ranked by {plan.objective}. "
        f"Batch is requests in flight over all chips."
    )
    out.print(f"[dim]second lines: {best.range_basis}[/dim]\n")
    columns = plan_columns(out.width)
    grid = table()
    for name, _ in columns:
        left = name in ("layout", "bound by")
        grid.add_column(
            name, justify="left" if left else "right", no_wrap=name != "layout", min_width=LAYOUT if left else None
        )
    for rank, row in enumerate(plan.top, 1):
        grid.add_row(*(cell(rank, row) for _, cell in columns))
    out.print(grid)
    for note in notes(plan):
        out.print(f"[dim]{escape(note)}[/dim]")
    draw_front(plan)
    draw_rejected(plan)
    draw_assumptions(best)
    out.print(f"\n[dim]{plan.evaluated:,} points priced in {plan.seconds:.2f} s; {plan.feasible:,} feasible[/dim]")


Cell = Callable[[int, Estimate], str]
COLUMNS: tuple[tuple[int, str, Cell], ...] = (
    (0, "", lambda rank, row: str(rank)),
    (0, "layout", lambda rank, row: layout_cell(row)),
    (0, "batch", lambda rank, row: f"{row.concurrency:,}"),
    (0, "TTFT", lambda rank, row: ranged(row.serving.ttft_s, row.range.get("serving.ttft_s"), "s")),
    (0, "TPOT", lambda rank, row: ranged(row.decode.tpot_s, row.range.get("decode.tpot_s"), "s")),
    (
        0,
        "tok/s/chip",
        lambda rank, row: ranged(row.serving.tok_s_per_chip, row.range.get("serving.tok_s_per_chip"), "1/s"),
    ),
    (
        0,
        "tok/s/user",
        lambda rank, row: ranged(row.decode.tok_s_per_user, row.range.get("decode.tok_s_per_user"), "1/s"),
    ),
    (110, "GB/chip", lambda rank, row: held_cell(row)),
    (118, "pool", lambda rank, row: pool_cell(row)),
    (100, "$/M out", lambda rank, row: price_cell(row)),
    (92, "bound by", lambda rank, row: main_bound(row.bounds)),
)
"""(narrowest console that shows it, heading, cell) of every column of a plan; the narrower ones are in --json."""
LAYOUT = 9


def plan_columns(width: int) -> list[tuple[str, Cell]]:
    """The columns a console of this width has room for."""
    return [(name, cell) for least, name, cell in COLUMNS if width >= least]


def layout_cell(row: Estimate) -> str:
    """The layout, with its replicas below."""
    copies = row.layout.replicas
    return row.layout.text + (f"\n[dim]x {copies} replicas[/dim]" if copies > 1 else "")


def held_cell(row: Estimate) -> str:
    """Memory held on the fullest chip, of its capacity."""
    memory = row.memory
    return f"{memory.used_bytes_per_chip / 1e9:.1f}\n[dim]of {memory.capacity_bytes_per_chip / 1e9:.0f}[/dim]"


def pool_cell(row: Estimate) -> str:
    """Memory held on all chips, of theirs."""
    pool = row.memory.pool
    return f"{pool.used_bytes / 1e12:.2f}\n[dim]of {pool.capacity_bytes / 1e12:.3g} TB[/dim]"


def price_cell(row: Estimate) -> str:
    """The whole bill over output tokens."""
    pair = row.range.get("cost.usd_per_million_output_tokens")
    return ranged(row.cost.usd_per_million_output_tokens, pair, "USD")


def notes(plan: Plan) -> list[str]:
    """What a reader should know before using the table."""
    assert plan.best is not None
    error = plan.best.expected_error
    median, wide = share(error["median_fraction"]), share(error["p90_fraction"])
    return [
        *plan.notes,
        f"expected error {error['basis']}: {median} median, {wide} at the 90th percentile, within the ranges",
    ]


def draw_front(plan: Plan) -> None:
    """The front as a picture and a few of its points."""
    out = console()
    out.print("\n[bold]Front: no other point gives more to a user at the same yield of a chip[/bold]")
    out.print(plot.front(plan.front, out.width), markup=False)
    rows = table()
    for name in ("tok/s/user", "tok/s/chip", "TPOT", "TTFT", "batch", "layout"):
        rows.add_column(name, justify="left" if name == "layout" else "right")
    step = max(1, (len(plan.front) - 1) // (FRONT_ROWS - 1)) if len(plan.front) > 1 else 1
    for point in plan.front[::step]:
        copies = f" x {point['replicas']}" if point["replicas"] > 1 else ""
        rows.add_row(
            written(point["tok_s_per_user"], "1/s"), written(point["tok_s_per_chip"], "1/s"),
            show_time(point["tpot_s"]), show_time(point["ttft_s"]), f"{point['concurrency']:,}",
            point["layout"] + copies,
        )  # fmt: skip
    out.print(rows)


def draw_rejected(plan: Plan) -> None:
    """What ruled other layouts and points out."""
    out = console()
    out.print("\n[bold]Ruled out[/bold]")
    rows = table()
    rows.add_column("constraint")
    rows.add_column("count", justify="right")
    rows.add_column("why")
    for name, number in plan.rejected.items():
        rows.add_row(name, f"{number:,}", plan.rejected_sentences[name])
    out.print(rows)


def draw_assumptions(answer: Estimate | Fit) -> None:
    """Which inputs are estimates, their ranges, and how far each alone moves the answer."""
    out = console()
    fit = isinstance(answer, Fit)
    keys = ("memory.max_concurrency",) if fit else ("serving.tok_s_per_chip", "decode.tpot_s")
    rows = table("\nEstimated inputs, strongest first (effect of the low and the high end alone)")
    shown = out.width >= WITH_SENTENCE
    heads = (
        "input",
        "value",
        "range",
        *(("status",) if shown else ()),
        *(key.split(".")[1].removesuffix("_s") for key in keys),
    )
    for name in heads:
        rows.add_column(name, no_wrap=True)
    order = sorted(answer.assumptions, key=lambda row: -max(max(map(abs, row["effect"].get(key, [0]))) for key in keys))
    for row in order[:ASSUMPTION_ROWS]:
        unit = row["unit"]
        band = f"{show(row['low'], unit)} to {show(row['high'], unit)}"
        effects = [effect(row["effect"].get(key)) for key in keys]
        status = (row["status"],) if shown else ()
        rows.add_row(row["name"], show(row["value"], unit), band, *status, *effects)
    out.print(rows)
    more = len(answer.assumptions) - ASSUMPTION_ROWS
    if more > 0:
        out.print(f"[dim]and {more} weaker ones: --json lists all with their sources[/dim]")


def effect(pair: list[float] | None) -> str:
    """'-12 %, +9 %'; a dash where there is none."""
    low, high = ((round(change * 100, 1) or 0.0) for change in pair) if pair else (0.0, 0.0)
    return f"{low:+.1f}, {high:+.1f} %" if pair else "-"


def draw_estimate(answer: Estimate) -> None:
    """One layout: headlines with ranges, memory, operators."""
    out = console()
    layout = answer.layout
    out.print(f"[bold]{answer.model} on {answer.system}[/bold], stack {answer.stack}, {layout.placed}")
    for violation in answer.violations:
        out.print(f"[bold]does not fit:[/bold] {escape(violation['sentence'])}")
    rows = table()
    rows.add_column("")
    rows.add_column("value", justify="right")
    rows.add_column("range")
    for label, key, value, unit in headlines(answer):
        pair = answer.range.get(key)
        low_high = f"{written(pair[0], unit)} to {written(pair[1], unit)}" if pair and value is not None else ""
        rows.add_row(label, written(value, unit), f"[dim]{low_high}[/dim]")
    out.print(rows)
    error = answer.expected_error
    median, wide = share(error["median_fraction"]), share(error["p90_fraction"])
    out.print(
        f"[dim]ranges: {answer.range_basis} ({error['basis']}: {median} median, {wide} at the 90th percentile)[/dim]"
    )
    draw_memory(answer.memory)
    held = answer.memory
    admits = held.reserved_max_concurrency
    fewer = f", of which an engine admits {admits:,}, in whole blocks" if admits < held.max_concurrency else ""
    out.print(f"{pool(held)}; {held.max_concurrency:,} requests of {held.length:,} tokens fit{fewer}")
    for note in answer.notes:
        out.print(f"[bold]note:[/bold] {escape(note)}")
    draw_operators(answer.breakdown)
    draw_assumptions(answer)


def headlines(answer: Estimate) -> list[tuple[str, str, float | None, str]]:
    """(label, range key, value, unit) of what an estimate leads with."""
    d, s, p, c = answer.decode, answer.serving, answer.prefill, answer.cost
    return [
        (f"TTFT, {answer.concurrency:,} in flight", "serving.ttft_s", s.ttft_s, "s"),
        ("TTFT, one request, idle system", "prefill.ttft_s", p.ttft_s, "s"),
        ("TPOT as served", "decode.tpot_s", d.tpot_s, "s"),
        ("decode step alone", "decode.step_s", d.step_s, "s"),
        ("end to end", "serving.e2e_s", s.e2e_s, "s"),
        ("output tok/s per user", "decode.tok_s_per_user", d.tok_s_per_user, "1/s"),
        ("output tok/s per chip", "serving.tok_s_per_chip", s.tok_s_per_chip, "1/s"),
        ("decode tok/s per chip, decode alone", "decode.tok_s_per_chip", d.tok_s_per_chip, "1/s"),
        ("prompt tok/s per chip, prefill alone", "prefill.tok_s_per_chip", p.tok_s_per_chip, "1/s"),
        ("USD per million output tokens", "cost.usd_per_million_output_tokens", c.usd_per_million_output_tokens, "USD"),
        ("requests that fit", "memory.max_concurrency", float(answer.memory.max_concurrency), "1"),
    ]


def draw_memory(memory: Memory) -> None:
    """One chip as a bar."""
    out = console()
    out.print("\n[bold]Memory of a chip of the fullest stage[/bold]")
    other = memory.activations_bytes_per_chip + memory.buffers_bytes_per_chip
    requests = memory.used_bytes_per_chip - memory.weights_bytes_per_chip - other - memory.runtime_bytes_per_chip
    parts = [
        ("weights", memory.weights_bytes_per_chip),
        ("requests", requests),
        ("activations and buffers", other),
        ("runtime", memory.runtime_bytes_per_chip),
    ]
    for line in plot.bar(parts, memory.capacity_bytes_per_chip):
        out.print(line, markup=False)


def pool(memory: Memory) -> str:
    """All chips of the deployment together."""
    return f"pool {memory.pool.used_bytes / 1e12:.2f} of {memory.pool.capacity_bytes / 1e12:.3g} TB"


def draw_operators(rows: list[dict[str, Any]]) -> None:
    """Operators by time, phase by phase."""
    out = console()
    for phase in ("decode", "prefill"):
        mine = sorted((r for r in rows if r["phase"] == phase), key=lambda r: -r["time_s"])
        whole = sum(r["time_s"] for r in mine)
        grid = table(
            f"\n{phase}: {show_time(whole)} " + ("a step" if phase == "decode" else "for one prompt, idle system")
        )
        wide = out.width >= WITH_SENTENCE
        names = (
            "operator",
            "runs",
            "time",
            "share",
            "floor",
            "reached",
            "bound",
            "basis",
            *(("what",) if wide else ()),
        )
        for name in names:
            left = name in ("operator", "bound", "basis", "what")
            grid.add_column(name, justify="left" if left else "right", no_wrap=name != "what")
        for r in mine:
            grid.add_row(
                r["operator"], str(r["count"]), show_time(r["time_s"]), share(r["time_s"] / whole),
                show_time(r["floor_s"]), share(r["floor_share_fraction"]), r["bound"], r["basis"],
                *((r["sentence"],) if wide else ()),
            )  # fmt: skip
        out.print(grid)
