"""What fits, as a table and sentences for a terminal."""

from __future__ import annotations

from rich.markup import escape

from planner.evaluate.results import Fit
from planner.report.console import console, table
from planner.report.table import draw_assumptions, draw_memory, pool
from planner.units import show


def draw_fit(answer: Fit) -> None:
    """Memory of one layout."""
    out = console()
    where = answer.layout.placed if answer.layout else ""
    out.print(f"[bold]{answer.model} on {answer.system}[/bold], stack {answer.stack}, {where}")
    for violation in answer.violations:
        out.print(f"[bold]does not fit:[/bold] {escape(violation['sentence'])}")
    rows = table()
    rows.add_column("one chip, fullest stage")
    rows.add_column("", justify="right")
    for label, value in (
        ("capacity", answer.capacity_bytes_per_chip),
        ("usable", answer.usable_bytes_per_chip),
        ("weights", answer.weights_bytes_per_chip),
        ("activations", answer.activations_bytes_per_chip),
        ("communication buffers", answer.buffers_bytes_per_chip),
        ("runtime", answer.runtime_bytes_per_chip),
        ("left for requests", answer.kv_budget_bytes_per_chip),
        ("cache per token", answer.kv_bytes_per_token_per_chip),
        ("state per sequence", answer.state_bytes_per_sequence_per_chip),
        (f"one request of {answer.length:,} tokens", answer.request_bytes_per_chip),
    ):
        rows.add_row(label, show(value, "B"))
    out.print(rows)
    draw_memory(answer)
    for line in (*requests(answer), *stages(answer), *made_of(answer)):
        out.print(escape(line))
    for note in answer.notes:
        out.print(f"[bold]note:[/bold] {escape(note)}")
    fraction = f"memory fraction {answer.memory_fraction:g} of stack {answer.stack}: {answer.policy}"
    out.print(f"[dim]{escape(fraction)}[/dim]")
    draw_assumptions(answer)


def requests(answer: Fit) -> list[str]:
    """How many requests to plan with, and how long they may be."""
    admitted, by_bytes = answer.reserved_max_concurrency, answer.max_concurrency
    found = [
        f"plan with {admitted:,} requests of {answer.length:,} tokens: an engine admits them in whole blocks of "
        f"{answer.reserved_block_tokens:,} tokens; by their bytes alone {by_bytes:,} fit"
    ]
    if answer.fits and not answer.reserved_fits:
        found.append(
            f"{answer.concurrency or 1:,} in flight fit by their bytes, but an engine that reserves whole blocks "
            f"admits only {admitted:,}"
        )
    most = f"{answer.max_length:,} tokens" if answer.max_length else "none fits"
    found.append(f"longest request with {answer.concurrency or 1:,} in flight: {most}")
    fewest = f"{answer.min_chips:,} ({answer.min_chips_layout})" if answer.min_chips else "not found"
    return [*found, f"fewest chips that hold one such request: {fewest}"]


def stages(answer: Fit) -> list[str]:
    """Pipeline stages, the fullest first; nothing for one stage."""
    count = answer.layout.PP if answer.layout else 1
    if count == 1:
        return []
    found = []
    for stage in sorted(answer.stages, key=lambda s: s["stage"] != answer.worst_stage):
        alike = f", {stage['alike']} stages alike" if stage["alike"] > 1 else ""
        fullest = " is the fullest" if stage["stage"] == answer.worst_stage else ""
        found.append(
            f"stage {stage['stage']} of {count} (layers {stage['layers']}{alike}){fullest}: "
            f"{show(stage['weights_bytes_per_chip'], 'B')} of weights and "
            f"{show(stage['kv_bytes_per_token_per_chip'], 'B')} of cache a token on a chip, "
            f"{stage['max_concurrency']:,} requests by their bytes"
        )
    return found


def made_of(answer: Fit) -> list[str]:
    """The pool, one server, and what padding and drafts add."""
    found = [pool(answer)]
    if answer.server is not None:
        server = answer.server
        found.append(
            f"a server of {server.chips} chips: {show(server.weights_bytes, 'B')} of weights and "
            f"{show(server.requests_bytes, 'B')} of requests, {show(server.used_bytes, 'B')} of "
            f"{show(server.capacity_bytes, 'B')} in all"
        )
    for padded in answer.padding:
        sizes = f"from {padded['from']:,} to {padded['to']:,}"
        found.append(f"{padded['what']} padded {sizes}: +{show(padded['bytes_per_chip'], 'B')} a chip")
    if answer.draft_tokens:
        found.append(f"drafting {answer.draft_tokens} a step: the last stage holds the draft's weights and cache too")
    return found
