"""Writing a live workbook after its plan: seconds, and times the plan of the same run.

    python benchmarks/workbook.py [--runs 5]

Every workbook is planned and written in a fresh process, as the command does it: what is timed after the plan builds
the sheet of formulas, prints it, and packs the file, imports of sympy and of the writer included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

QUESTIONS = (
    ("llama-3.1-70b", "h100-8"), ("kimi-k3", "zhenwu-m890-supernode"), ("deepseek-v4-flash", "h200-128"),
)  # fmt: skip
PROGRAM = """
import gc, sys, time
from planner.search.plan import plan
from planner.specs.workload import Workload
gc.disable()
model, system = sys.argv[1:]
workload = Workload(isl=8192, osl=1024)
plan(model, system, workload, top=5)
begin = time.process_time()
from planner.search.workbook import contents, planned
question = planned(model, system, workload)
planning = time.process_time()
from planner.report.workbook.book import packed
found = contents(question)
built = time.process_time()
data = packed(found)
done = time.process_time()
print(planning - begin, built - planning, done - built, len(data), len(found.formulas), len(found.columns))
"""
"""The first plan pays for its imports and is not counted; the second is."""


def run(model: str, system: str) -> list[float]:
    """(plan, sheet built, file packed) in processor seconds, then bytes, quantities, layouts."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, model, system]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [float(value) for value in done.stdout.split()]


def main() -> None:
    """Time every question in turns."""
    parser = argparse.ArgumentParser(description="writing a live workbook")
    parser.add_argument("--runs", type=int, default=5, help="runs of every question")
    runs = parser.parse_args().runs
    taken: dict[tuple[str, str], list[list[float]]] = {question: [] for question in QUESTIONS}
    for _ in range(runs):
        for question in QUESTIONS:
            taken[question].append(run(*question))
    print(f"{runs} runs of each; processor seconds, min / median, after the plan")
    print(f"{'sheet':>15}{'file':>15}{'together':>15}{'x plan':>8}{'kB':>7}{'formulas':>10}")
    for (model, system), rows in taken.items():
        together = [built + packed for _, built, packed, *_ in rows]
        columns = [[row[1] for row in rows], [row[2] for row in rows], together]
        cells = [f"{min(column):.2f} / {statistics.median(column):.2f}" for column in columns]
        ratio = statistics.median(whole / row[0] for whole, row in zip(together, rows, strict=True))
        kilobytes, quantities = rows[0][3] / 1e3, int(rows[0][4])
        print(
            "".join(f"{cell:>15}" for cell in cells)
            + f"{ratio:>8.1f}{kilobytes:>7.0f}{quantities:>10}   {model} on {system}"
        )
        assert ratio < MOST_PLANS, f"{model} on {system} takes {ratio:.1f} times its plan"


MOST_PLANS = 2.5
"""Times the plan of the same process that writing may take."""

if __name__ == "__main__":
    main()
