"""The formulas on open arrays: layouts on the last axis, batches before it, draws before those.

Each sub-expression lives on its own few axes, constants stay scalars, and only wanted outputs are kept. Blocks keep the
working set in cache. No sympy, no compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from planner.algebra import Q
from planner.evaluate.inputs import setting
from planner.layout import Layout
from planner.model.deployment import deployment
from planner.model.structure import Structure
from planner.quantities import Say, keeping
from planner.specs.model import Model
from planner.stages import heaviest

Arrays = dict[str, np.ndarray[Any, np.dtype[np.float64]]]
HEAP = 4_000_000
"""Doubles in a block just under the 32 MiB that glibc still takes into account."""
BLOCK = 32_768
"""Points evaluated together: about 350 temporaries of 256 kB pass through the cache."""


def columns(model: Model, layouts: list[Layout], replicas: Iterable[int], lent: Iterable[int], slots: int) -> Arrays:
    """Layout numbers under `layout.`, one value per layout; stages are worked out once per PP."""
    names = ("tp", "dp", "ep", "etp", "pp", "dcp", "cp", "red", "chips")
    found: dict[str, Any] = {f"layout.{name}": [getattr(layout, name) for layout in layouts] for name in names}
    found["layout.replicas"], found["layout.lent"] = list(replicas), list(lent)
    held = {pp: heaviest(model, pp) for pp in sorted({layout.pp for layout in layouts})}
    order = np.asarray([layout.pp for layout in layouts])
    arrays = {name: np.asarray(values, dtype=float) for name, values in found.items()}
    for slot in range(slots):
        for group in next(iter(held.values()))[0]:
            column = np.empty(len(layouts))
            for pp, stages in held.items():
                column[order == pp] = stages[slot if slot < len(stages) else 0][group]
            arrays[f"layout.stage{slot}.{group}"] = column
    return arrays


def slots_needed(model: Model, layouts: Iterable[Layout]) -> int:
    """The most distinct heaviest stages any of the layouts has."""
    return max(len(heaviest(model, pp)) for pp in {layout.pp for layout in layouts})


def evaluate(
    shape: Structure,
    values: Mapping[str, Q],
    raw: Mapping[str, Any],
    wanted: frozenset[str],
    formulas: Callable[[Say, Structure, Any], object] = deployment,
) -> dict[str, Q]:
    """The wanted quantities on whatever arrays the values are, unbroadcast."""
    say = keeping(wanted)
    with np.errstate(all="ignore"):
        formulas(say, shape, setting(shape, values, raw))
    return {name: quantity.value for name, quantity in say.rows.items()}


def warm_heap() -> None:
    """Have the C library keep freed temporaries for the next ones instead of returning each to the system.

    glibc raises its threshold for doing so to the size of a freed block; sweeps run 1.5 times as fast. Never touched,
    the block takes no memory. Elsewhere it does nothing.
    """
    np.empty(HEAP)


def evaluate_blocks(
    shape: Structure, values: Mapping[str, Q], raw: Mapping[str, Any], wanted: frozenset[str], rows: int
) -> Arrays:
    """As evaluate, over (batch, layout) meshes cut along the layouts; every output is broadcast to the mesh.

    Values that are arrays have the layouts on their last axis; `rows` is the length of the axis before it.
    """
    warm_heap()
    count = max(np.shape(v)[-1] for v in values.values() if np.ndim(v))
    width = max(1, BLOCK // rows)
    found = {name: np.empty((rows, count)) for name in wanted}
    for start in range(0, count, width):
        part = slice(start, min(start + width, count))
        block = {name: v[..., part] if np.ndim(v) and np.shape(v)[-1] == count else v for name, v in values.items()}
        for name, value in evaluate(shape, block, raw, wanted).items():
            found[name][:, part] = value
    return found
