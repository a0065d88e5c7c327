"""Capacity planner and roofline cost model for serving large open models.

    >>> import planner
    >>> answer = planner.estimate(
    ...     "kimi-k3", "zhenwu-m890-supernode", "TP8 DP8 EP64", planner.Workload(isl=8192, osl=1024, concurrency=512))
    >>> answer.feasible
    True

Names are loaded when first used, so importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

DOOR = {
    "Layout": "planner.layout",
    "PlannerError": "planner.errors",
    "Slo": "planner.specs.workload",
    "Workload": "planner.specs.workload",
    "claims": "planner.evidence.claims",
    "compare": "planner.evaluate.compare",
    "estimate": "planner.evaluate.estimate",
    "explain": "planner.evaluate.explain",
    "fit": "planner.search.fit",
    "load_model": "planner.specs.library",
    "load_stack": "planner.specs.library",
    "load_system": "planner.specs.library",
    "plan": "planner.search.plan",
    "solve": "planner.evaluate.solve",
}
__all__ = sorted(DOOR)


def __getattr__(name: str) -> Any:
    if name not in DOOR:
        raise AttributeError(f"module 'planner' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(DOOR[name]), name)


def __dir__() -> list[str]:
    return __all__
