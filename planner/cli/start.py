"""The console script: standard streams made safe, then the command line; an interrupt while it loads is quiet too."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run `planner`."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for the life of the process
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Braille shows question marks, not a fault
    try:
        from planner.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
