"""Tables of scenarios: 10,000 rows read, priced and written by whole commands, and what a row costs.

    python benchmarks/table.py [--rows 10000] [--runs 5]

Rows mix three models, four layouts, lengths, loads and cache formats on the Zhenwu M890 supernode. `planner
import-sheet` runs in a fresh process, interpreter start included, from a workbook into a workbook and from CSV into
CSV; for the ratio, the same rows priced on arrays in process, and one float run of one row, which is what a row would
cost alone.
"""

from __future__ import annotations

import argparse
import csv
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from command import processor, run

from planner.evaluate.case import placed
from planner.evaluate.estimate import run as priced_alone
from planner.evaluate.many import many
from planner.scenarios.cells import REQUIRED, scenario
from planner.scenarios.xlsx import workbook

LIMIT_S = 5.0
"""Wall seconds that 10,000 rows are meant to stay under."""
SYSTEM = "zhenwu-m890-supernode"
HEADER = ["site", *REQUIRED, "kv_dtype", "prefix_hit", "remark"]
SEED = 1


def rows(count: int) -> list[list[Any]]:
    """Scenarios as cells."""
    dice = random.Random(SEED)
    return [
        [
            f"site {place}", dice.choice(["kimi-k3", "kimi-linear-48b-a3b", "deepseek-v4-flash"]), SYSTEM,
            dice.choice(["TP8 DP8", "TP4 DP16", "TP8 DP4 PP2", "TP2 DP4"]), dice.choice([8192, 1024, "8k", 5000]),
            dice.choice([100, 1024]), dice.randint(1, 2000), dice.choice(["bf16", "fp8", None]),
            dice.choice([0, 0.5, None]), "a note",
        ]
        for place in range(count)
    ]  # fmt: skip


def main() -> None:
    """Time the commands, then what they do in process."""
    parser = argparse.ArgumentParser(description="tables of scenarios")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    table = rows(given.rows)
    print(f"{processor()}; {given.rows:,} rows, {given.runs} runs of each, the fastest")
    with tempfile.TemporaryDirectory() as folder:
        book, text = Path(folder) / "in.xlsx", Path(folder) / "in.csv"
        book.write_bytes(workbook("jobs", [HEADER, *table], 0, {}))
        with text.open("w", newline="") as file:
            csv.writer(file).writerows([HEADER, *table])
        for path in (book, text):
            out = path.with_stem("out")
            command = ("import-sheet", str(path), "--out", str(out), "--force")
            taken = [run(command) for _ in range(given.runs)]
            used, wall, peak = (min(column) for column in zip(*taken, strict=True))
            print(f"planner import-sheet, {path.suffix} into {out.suffix}: {used:.2f} s of processor, {wall:.2f} s of "
                  f"{LIMIT_S:g} s meant for 10,000, {peak / 1e6:.0f} MB")  # fmt: skip
    scenarios = [scenario(dict(zip(HEADER, row, strict=True))) for row in table]
    start = time.process_time()
    many(scenarios)
    each = (time.process_time() - start) / given.rows
    model, system, layout, workload, stack, chips, _ = scenarios[0]
    *_, point = placed(model, system, layout, workload, stack, chips)
    start = time.process_time()
    for _ in range(given.runs):
        priced_alone(point)
    alone = (time.process_time() - start) / given.runs
    print(f"a row priced on arrays: {each * 1e6:,.0f} us; the formulas of one row alone: {alone * 1e6:,.0f} us, "
          f"{alone / each:,.0f} times as much")  # fmt: skip


if __name__ == "__main__":
    main()
