"""Specs for a terminal."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from planner.report.console import console, table
from planner.units import show


def draw_names(found: dict[str, list[str]]) -> None:
    """Names by kind."""
    out = console()
    for kind, names in found.items():
        out.print(f"[bold]{kind}[/bold]")
        for name in names:
            out.print(f"  {name}")


def is_figure(value: Any) -> bool:
    """A dumped figure."""
    return isinstance(value, dict) and {"value", "unit", "status", "source"} <= set(value)


def draw_spec(found: dict[str, Any]) -> None:
    """Title, what follows from it, every figure with status and source."""
    out = console()
    out.print(f"[bold]{escape(found['title'])}[/bold] ({found['kind']} {found['name']})")
    if found.get("source"):
        out.print(f"[dim]{escape(found['source'])}[/dim]")
    if found.get("note"):
        out.print(escape(found["note"]))
    if "derived" in found:
        draw_derived(found)
    figures = list(collect(found, ""))
    if figures:
        grid = table()
        for name in ("field", "value", "range", "status", "source"):
            grid.add_column(name, overflow="fold")
        for name, figure in figures:
            unit = figure["unit"]
            ranged = figure["low"] != figure["high"]
            band = f"{show(figure['low'], unit)} to {show(figure['high'], unit)}" if ranged else ""
            grid.add_row(name, show(figure["value"], unit), band, figure["status"], escape(figure["source"]))
        out.print(grid)
    plain = table()
    plain.add_column("field")
    plain.add_column("value", overflow="fold")
    for name, value in found.items():
        if (
            isinstance(value, (int, str, bool))
            and value != ""
            and name not in ("title", "source", "note", "kind", "name")
        ):
            plain.add_row(
                name, escape(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
            )
    if "pool" in found:
        plain.add_row("pool", show(found["pool"]["capacity_bytes"], "B"))
    out.print(plain)


def collect(value: Any, path: str) -> Any:
    """(dotted name, figure) of every figure below."""
    if is_figure(value):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from collect(inner, f"{path}.{name}" if path else name)


def draw_derived(found: dict[str, Any]) -> None:
    """What follows from a model's fields, beside what its maker states."""
    out, derived, published = console(), found["derived"], found["published"]
    rows = table()
    rows.add_column("derived")
    rows.add_column("", justify="right")
    rows.add_column("")
    total, active = derived["total_params"], derived["active_params"]
    stated = beside(total, published["total_params"]) if published else ""
    rows.add_row("parameters, text", f"{total:,}", stated)
    stated = f"{beside(active, published['active_params'])}; {published['active_convention']}" if published else ""
    rows.add_row("active a token", f"{active:,}", stated or "head counted, input embedding not")
    if derived["draft_params"]:
        rows.add_row("draft layers", f"{derived['draft_params']:,}", "counted apart")
    if derived["vision_params"]:
        held = show(derived["weights_bytes_by_part"]["vision"], "B")
        rows.add_row("vision", f"{derived['vision_params']:,}", f"counted apart, {held}; loaded with --vision")
    rows.add_row("weights as shipped", show(derived["weights_bytes"], "B"), f"{derived['weights_bytes']:,} B")
    rows.add_row("cache a token", f"{derived['kv_bytes_per_token']:,.0f} B", derived["kv_format"])
    if derived["kv_bytes_per_token_with_draft"]:
        rows.add_row("  with draft layers", f"{derived['kv_bytes_per_token_with_draft']:,.0f} B", "")
    if derived["kv_bytes_per_token_in_window"]:
        rows.add_row("  while windows fill", f"{derived['kv_bytes_per_token_in_window']:,.0f} B more", "")
    formats = f"state {derived['state_format']}, windows {derived['kv_format']}"
    rows.add_row("state and full windows", f"{derived['state_bytes_per_sequence']:,.0f} B", formats)
    for name, count in derived["params_by_group"].items():
        rows.add_row(f"  {name}", f"{count:,}", "")
    out.print(rows)


def beside(value: float, stated: float) -> str:
    """What the maker states, and how far the value is from it."""
    return f"stated {stated:.4g}, {(value / stated - 1) * 100:+.2f} %"


def draw_check(found: dict[str, Any]) -> None:
    """One line."""
    console().print(f"{found['path']}: a sound {found['kind']} spec, {found['name']}")
