"""A spinner on stderr for work that takes over a second, on a terminal only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 1.0


@contextmanager
def narrated() -> Iterator[Callable[[str], None]]:
    """Gives a function that names the stage at work; after a second the name is shown until the work ends."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console

    status = Console(stderr=True).status("working")
    timer = threading.Timer(PATIENCE_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda stage: status.update(stage)
    finally:
        timer.cancel()
        status.stop()
