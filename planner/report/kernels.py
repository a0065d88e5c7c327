"""Errors of kernel latencies as a table for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape

from planner.evidence.kernels import KernelReport
from planner.report.console import table

REASONS = 12


def render(report: KernelReport) -> RenderableType:
    """Errors by kernel, phase, loads and system; what was left out and why."""
    grid = table(f"{escape(report.table)}: predicted against measured")
    for name in ("kernel", "phase", "loads", "system"):
        grid.add_column(name)
    for name in ("rows", "median", "p90", "|ln| median", "|ln| p90", "bias"):
        grid.add_column(name, justify="right")
    for e in report.summary:
        numbers = [f"{value:.1%}" for value in (e.median, e.p90)] + [f"{v:.3f}" for v in (e.log_median, e.log_p90)]
        texts = [escape(text) for text in (e.kernel, e.phase, e.loads, e.system)]
        grid.add_row(*texts, f"{e.rows:,}", *numbers, f"{e.bias:+.1%}")
    if not report.skipped:
        return grid
    left = table(f"{len(report.skipped):,} of {len(report.rows) + len(report.skipped):,} rows left out")
    left.add_column("rows", justify="right")
    left.add_column("reason", overflow="fold")
    for reason, count in list(report.reasons.items())[:REASONS]:
        left.add_row(f"{count:,}", escape(reason))
    if len(report.reasons) > REASONS:
        left.add_row("", f"and {len(report.reasons) - REASONS} more reasons, in the JSON answer")
    return Group(grid, "", left)
