"""The console every drawn answer uses: stdout, as wide as the terminal or COLUMNS says, 120 columns otherwise."""

from __future__ import annotations

import os
import sys
from typing import IO, Any, cast

from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 120
NARROWEST = 60


class Trimmed:
    """A text file without blanks at line ends: output that is kept in files and compared."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, text: str) -> int:
        """Write lines with their trailing blanks cut."""
        self.file.write("\n".join(line.rstrip(" ") for line in text.split("\n")))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


class Pipe(Console):
    """A console whose closed pipe is the caller's business."""

    def on_broken_pipe(self) -> None:
        """Let the command line end quietly."""
        raise BrokenPipeError


def width() -> int:
    """Columns to draw in."""
    given = os.environ.get("COLUMNS", "")
    if not sys.stdout.isatty():
        return max(int(given), NARROWEST) if given.isdigit() else PLAIN_WIDTH
    return max(os.get_terminal_size(sys.stdout.fileno()).columns, NARROWEST)


def console() -> Console:
    """A console on stdout."""
    terminal = sys.stdout.isatty()
    file = sys.stdout if terminal else cast(IO[str], Trimmed(sys.stdout))
    return Pipe(file=file, width=width(), highlight=False)


def table(title: str = "") -> Table:
    """A table in the house style; no value is ever cut."""
    return Table(
        title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
