"""Validation and calibration for a terminal, and validation as one HTML page with its scatter."""

from __future__ import annotations

import html
import math
from typing import Any

from rich.markup import escape

from planner.evidence.calibrate import Calibration
from planner.evidence.coverage import Coverage
from planner.evidence.validate import Row, Validation
from planner.report.console import console, table
from planner.report.plot import scatter

MOST_SKIPPED = 12
"""Reasons shown in the terminal; JSON has every row."""


def draw_validation(found: Validation) -> None:
    """Errors by source, metric and phase; averages over sources; the worst rows; a scatter."""
    out = console()
    out.print(f"[bold]{escape(found.table)}[/bold]: {len(found.rows)} figures, {len(found.skipped)} skipped")
    grid = table()
    for name in ("source", "metric", "phase", "n", "median", "90 %", "bias", "order"):
        grid.add_column(name, justify="left" if name in ("source", "metric", "phase") else "right")
    for row in found.summary:
        tau = "" if row.kendall_tau is None else f"{row.kendall_tau:.2f}"
        grid.add_row(
            escape(row.source), row.metric, row.phase, str(row.n), f"{row.median_abs_log_ratio:.2f}",
            f"{row.p90_abs_log_ratio:.2f}", f"{row.bias_log_ratio:+.2f}", tau,
        )  # fmt: skip
    out.print(grid)
    out.print("[dim]of |ln(predicted / measured)|: 0.10 is 10 %; order: Kendall's tau over layouts of one job[/dim]\n")
    averages = table()
    for name in ("mean over sources", "figures", "sources", "median", "90 %"):
        averages.add_column(name, justify="left" if name == "mean over sources" else "right")
    for total in found.overall:
        averages.add_row(
            total.what, str(total.n), str(total.sources), f"{total.median_abs_log_ratio:.3f}",
            f"{total.p90_abs_log_ratio:.3f}",
        )  # fmt: skip
    out.print(averages)
    if found.coverage is not None:
        draw_coverage(found.coverage, out)
    if found.mean_kendall_tau is not None:
        out.print(f"order of layouts, mean over sources that measured several: {found.mean_kendall_tau:.2f}")
    draw_worst(found, out)
    points = [(row.measured, row.predicted) for row in found.rows if row.scored and row.unit == "ms"]
    if len(points) > 1:
        out.print("\npredicted against measured, ms")
        out.print(scatter(points, "measured, ms", "predicted, ms", out.width), highlight=False)
    draw_left(found, out)


def draw_coverage(rows: list[Coverage], out: Any) -> None:
    """How often the 10th to the 90th percentile holds what was measured."""
    if not rows:
        out.print("\nno scored figure to hold ranges against")
        return
    grid = table()
    for name in ("ranges, with the stack taken as", "figures", "held", "mean of sources", "median high / low"):
        grid.add_column(name, justify="left" if name.startswith("ranges") else "right")
    for row in rows:
        shares = (f"{share * 100:.0f} %" for share in (row.covered_fraction, row.sources_covered_fraction))
        grid.add_row(row.what, str(row.n), *shares, f"{row.median_width:.2f}")
    out.print()
    out.print(grid)


def draw_worst(found: Validation, out: Any) -> None:
    """The rows furthest off, with what bounds them."""
    worst = table()
    for name in ("worst", "stack", "metric", "measured", "predicted", "ratio", "bound"):
        worst.add_column(name, justify="right" if name in ("measured", "predicted", "ratio") else "left")
    for row in found.worst:
        worst.add_row(
            escape(row.id), row.stack, row.metric, f"{row.measured:.4g}", f"{row.predicted:.4g}", f"{row.ratio:.2f}",
            row.bound,
        )  # fmt: skip
    out.print()
    out.print(worst)


def draw_left(found: Validation, out: Any) -> None:
    """Why rows were skipped, and which no structure explains."""
    reasons: dict[str, list[str]] = {}
    for skipped in found.skipped:
        reasons.setdefault(skipped["reason"], []).append(skipped["id"])
    for reason, ids in sorted(reasons.items(), key=lambda item: -len(item[1]))[:MOST_SKIPPED]:
        first = ids[0] + (" and others" if len(ids) > 1 else "")
        out.print(f"skipped {len(ids)} ({escape(first)}): {escape(reason)}")
    if len(reasons) > MOST_SKIPPED:
        out.print(f"and {len(reasons) - MOST_SKIPPED} more reasons: --json lists every row")
    for part in found.unexplained:
        out.print(f"not explained: {len(part['ids'])} of {part['source']}: {escape(part['reason'])}")


def draw_calibration(found: Calibration) -> None:
    """What was fitted, how well, and what the rows cannot tell."""
    out = console()
    out.print(
        f"[bold]{escape(found.stack)}[/bold], like {found.like}: {found.rows} figures of {', '.join(found.sources)}"
    )
    grid = table()
    for name in ("parameter", "before", "fitted", "range", ""):
        grid.add_column(name, justify="left" if name in ("parameter", "") else "right")
    for row in found.parameters:
        unit = "" if row.unit == "1" else f" {row.unit}"
        told = "" if row.fitted and row.identified else ("not identified" if row.fitted else "not fitted: too few rows")
        band = f"{row.low:.4g} to {row.high:.4g}" if row.fitted else ""
        grid.add_row(row.name, f"{row.before:.4g}{unit}", f"{row.value:.4g}{unit}", band, told)
    out.print(grid)
    out.print(
        f"error over these figures: {found.before_median_abs_log_ratio:.2f} before, "
        f"{found.median_abs_log_ratio:.2f} median and {found.p90_abs_log_ratio:.2f} at 90 % after; {found.basis}"
    )
    for skipped in found.skipped[:MOST_SKIPPED]:
        out.print(f"skipped {escape(skipped['id'])}: {escape(skipped['reason'])}")
    if len(found.skipped) > MOST_SKIPPED:
        out.print(f"and {len(found.skipped) - MOST_SKIPPED} more rows: --json lists them")


PAGE = """<!doctype html><meta charset="utf-8"><title>Predicted against measured</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}}
table{{border-collapse:collapse;margin:1rem 0}}td,th{{padding:.15rem .7rem;text-align:right}}
td,th{{border-bottom:1px solid #ddd}}
td:first-child,th:first-child{{text-align:left}}circle{{fill:#2b6cb0;fill-opacity:.35}}line{{stroke:#999}}</style>
<h1>Predicted against measured</h1><p>{table}: {rows} figures, {skipped} skipped</p>{overall}{plot}{summary}{worst}"""
SIDE, EDGE = 520, 40


def page(found: Validation) -> str:
    """One self-contained HTML page."""
    averages = [(t.what, t.n, t.sources, f"{t.median_abs_log_ratio:.3f}", f"{t.p90_abs_log_ratio:.3f}")
                for t in found.overall]  # fmt: skip
    parts = [
        (s.source, s.metric, s.phase, s.n, f"{s.median_abs_log_ratio:.2f}", f"{s.p90_abs_log_ratio:.2f}",
         f"{s.bias_log_ratio:+.2f}", "" if s.kendall_tau is None else f"{s.kendall_tau:.2f}")
        for s in found.summary
    ]  # fmt: skip
    furthest = [(r.id, r.stack, r.metric, f"{r.measured:.4g}", f"{r.predicted:.4g}", f"{r.ratio:.2f}", r.bound)
                for r in found.worst]  # fmt: skip
    return PAGE.format(
        table=html.escape(found.table), rows=len(found.rows), skipped=len(found.skipped),
        overall=rows_of(("mean over sources", "figures", "sources", "median", "90 %"), averages),
        plot=svg([row for row in found.rows if row.scored and row.unit == "ms"]),
        summary=rows_of(("source", "metric", "phase", "n", "median", "90 %", "bias", "order"), parts),
        worst=rows_of(("worst", "stack", "metric", "measured", "predicted", "ratio", "bound"), furthest),
    )  # fmt: skip


def rows_of(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """An HTML table."""
    top = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def svg(rows: list[Row]) -> str:
    """A scatter of milliseconds, both axes logarithmic, with the line of agreement."""
    if not rows:
        return ""
    values = [math.log10(value) for row in rows for value in (row.measured, row.predicted)]
    low, high = min(values), max(values)
    scale = (SIDE - 2 * EDGE) / max(high - low, 1e-9)

    def at(value: float) -> float:
        return EDGE + (math.log10(value) - low) * scale

    dots = "".join(
        f'<circle cx="{at(r.measured):.1f}" cy="{SIDE - at(r.predicted):.1f}" r="4">'
        f"<title>{html.escape(r.id)}: {r.measured:.4g} measured, {r.predicted:.4g} predicted</title></circle>"
        for r in rows
    )
    line = f'<line x1="{EDGE}" y1="{SIDE - EDGE}" x2="{SIDE - EDGE}" y2="{EDGE}"/>'
    told = f"measured, ms: {10**low:.3g} to {10**high:.3g}; above the line: too slow"
    words = f'<text x="{EDGE}" y="{SIDE - 8}">{told}</text>'
    return f'<svg width="{SIDE}" height="{SIDE}" role="img">{line}{dots}{words}</svg>'
