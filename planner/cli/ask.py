"""The interview."""

from __future__ import annotations

import sys

from planner.errors import BadInput


def interview() -> int:
    """Ask for what a plan needs; without a terminal, say which flags to give."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        flags = "planner plan MODEL --on SYSTEM --isl N --osl N"
        raise BadInput("planner", "the interview needs a terminal", f"give the question as flags: {flags}")
    return 0
