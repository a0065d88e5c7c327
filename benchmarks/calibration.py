"""Time of fitting every stack and of predicting every shipped figure, as a ratio to one plain pass over the figures.

python benchmarks/calibration.py
"""

from __future__ import annotations

import time

from planner.evidence.fit import scored
from planner.evidence.predict import grouped, predictions
from planner.evidence.shipped import measurements
from planner.evidence.validate import deployable, fits, validate


def main() -> None:
    """Print the times and what they are worth in passes."""
    rows = measurements()
    items, _ = deployable(rows)
    groups = grouped(items)
    start = time.process_time()
    predictions(groups, len(items))
    once = time.process_time() - start
    start = time.process_time()
    found = fits([item for item in items if scored(item)])
    fitting = time.process_time() - start
    start = time.process_time()
    validate()
    whole = time.process_time() - start
    print(f"{len(items)} figures in {len(groups)} structures: {once:.2f} s a pass, {len(items) / once:,.0f} figures/s")
    print(f"fitting {len(found)} stacks: {fitting:.1f} s of processor time, {fitting / once:.0f} passes")
    print(f"validating all: {whole:.1f} s, {whole / once:.1f} passes, reading and bounds included")


if __name__ == "__main__":
    main()
