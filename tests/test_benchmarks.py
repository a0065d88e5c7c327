"""The benchmark compares like with like: its hand-written code gives the planner's numbers."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def test_the_hand_written_code_agrees_with_the_formulas() -> None:
    """A formula that moves without hand.py following would make the ratio meaningless."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from throughput import check
    finally:
        sys.path.remove(str(BENCHMARKS))
    points, worst = check()
    assert points == 400
    assert worst < 1e-9
