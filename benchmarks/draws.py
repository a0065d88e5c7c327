"""Ranges of many draws: time of 10,000 draws of the estimated specs for ten points, and what a draw costs.

    python benchmarks/draws.py [--draws 10000] [--points 10] [--runs 5]

Ten loads of Kimi K3 on the Zhenwu M890 supernode, all headline outputs, as the rows of `planner plan --draws` are
drawn; one core, processor time, the best of the runs. For the ratio: one float run of one point, which is what a draw
would cost alone, and the usual number of draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from planner.evaluate.case import placed
from planner.evaluate.estimate import HEADLINES, run
from planner.evaluate.ranges import DRAWS, ranges
from planner.specs.workload import Workload

LIMIT_S = 1.0
"""What 10,000 draws of ten points are meant to stay under."""


def best(work: Callable[[], Any], runs: int) -> float:
    """Processor seconds of the fastest run."""
    taken = []
    for _ in range(runs):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> None:
    """Time the draws and print what they cost."""
    parser = argparse.ArgumentParser(description="ranges of many draws")
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    workload = Workload(isl=8192, osl=1024, concurrency=256)
    *_, point = placed("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8 EP64", workload, None, None)
    loads = np.asarray([64.0 * (i + 1) for i in range(given.points)])
    values = {**point.values, "ask.concurrency": loads}
    inputs = (point.shape, values, point.raw, point.leaves, HEADLINES)
    many = best(lambda: ranges(*inputs, given.draws), given.runs)
    usual = best(lambda: ranges(*inputs), given.runs)
    alone = best(lambda: run(point), given.runs)
    each = given.draws * given.points
    print(
        f"{given.draws:,} draws x {given.points} points: {many:.3f} s, {many / LIMIT_S:.2f} of the {LIMIT_S:g} s meant"
    )
    print(f"{DRAWS:,} draws x {given.points} points: {usual:.3f} s; {given.draws / DRAWS:.1f} times the draws take "
          f"{many / usual:.1f} times as long")  # fmt: skip
    print(f"a draw of a point: {many / each * 1e6:.2f} us; a float run of one: {alone * 1e6:,.0f} us, "
          f"{alone * each / many:,.0f} times as much")  # fmt: skip


if __name__ == "__main__":
    main()
