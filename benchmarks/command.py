"""Whole commands: processor time, wall time and peak memory, interpreter start included.

    python benchmarks/command.py [--runs 15]

Every command runs in a fresh process; the commands take turns. Times are of warm starts: files in the page cache,
bytecode written. Also checked: planning imports no sympy.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time

PLANNER = (sys.executable, "-m", "planner.cli.app")
COMMANDS = {
    "planner --help": ("--help",),
    "planner specs list": ("specs", "list"),
    "planner plan kimi-k3 --on zhenwu-m890-supernode --isl 8k --osl 1k": (
        "plan", "kimi-k3", "--on", "zhenwu-m890-supernode", "--isl", "8k", "--osl", "1k",
    ),
}  # fmt: skip
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of one unit of ru_maxrss."""


def run(arguments: tuple[str, ...]) -> tuple[float, float, float]:
    """(processor seconds, wall seconds, peak bytes) of one fresh process. Raises if it fails."""
    start = time.perf_counter()
    child = subprocess.Popen([*PLANNER, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"{' '.join(arguments)} ended with {child.returncode}"
    return used.ru_utime + used.ru_stime, wall, used.ru_maxrss * RSS_UNIT


def imported(arguments: tuple[str, ...]) -> set[str]:
    """Names of all modules a command imports."""
    traced = [sys.executable, "-X", "importtime", *PLANNER[1:], *arguments]
    found = subprocess.run(traced, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    lines = [line for line in found.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip() for line in lines}


def processor() -> str:
    """The processor's name."""
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def main() -> None:
    """Check the imports, then time."""
    parser = argparse.ArgumentParser(description="whole commands")
    parser.add_argument("--runs", type=int, default=15, help="runs of every command")
    runs = parser.parse_args().runs
    print(f"{processor()}; Python {platform.python_version()}; {runs} runs of each, min / median")
    for text, arguments in COMMANDS.items():
        names = imported(arguments)
        assert "planner.cli.app" in names or "planner" in names, "the import trace is empty"
        heavy = sorted({name.split(".")[0] for name in names} & {"sympy"})
        assert not (heavy and arguments[0] == "plan"), f"{text} imports {heavy}"
        print(f"{text}: {len(names)} modules, {'sympy among them' if heavy else 'no sympy'}")
    taken: dict[str, list[tuple[float, float, float]]] = {text: [] for text in COMMANDS}
    for _ in range(runs):
        for text, arguments in COMMANDS.items():
            taken[text].append(run(arguments))
    print(f"\n{'processor s':>15}{'wall s':>15}{'peak MB':>15}")
    for text, figures in taken.items():
        columns = zip(*figures, strict=True)
        scales = ((1, 3), (1, 3), (1e-6, 1))
        cells = [
            f"{min(v) * scale:.{digits}f} / {statistics.median(v) * scale:.{digits}f}"
            for v, (scale, digits) in zip(columns, scales, strict=True)
        ]
        print("".join(f"{cell:>15}" for cell in cells) + f"   {text}")


if __name__ == "__main__":
    main()
