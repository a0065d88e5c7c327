"""The console every drawn answer uses: stdout, the terminal's width, 120 columns elsewhere."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 120


def console() -> Console:
    """A console on stdout."""
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)


def table(title: str = "") -> Table:
    """A table in the house style."""
    return Table(
        title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
