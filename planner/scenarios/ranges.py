"""Arguments of a worksheet function: cells and ranges in, a cell or a block of the same shape out.

Equal shapes go cell by cell, a scalar goes with every cell, and a column beside a row spans a block, as in a worksheet.
Whatever goes wrong is a sentence in the cell it concerns; nothing is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from planner.errors import BadInput, PlannerError, UnknownName, nearest, one_line
from planner.evaluate.many import Headlines, Scenario
from planner.scenarios.cells import empty, job, priced, scenario, sentence, text, texts
from planner.scenarios.table import MOST_ROWS, OTHER_NAMES
from planner.search.best_point import Best, best_layout, fewest_chips
from planner.search.plan import RANKED
from planner.specs.flags import choice, maybe_count, slo_of

Row = dict[str, Any]
MOMENTS = "mM"
"""Kinds of arrays of dates and times, whose cells stay what they are: as objects some turn into plain numbers."""
FLAT, BLOCK = 1, 2
"""Dimensions of a plain list, and of a range of rows and columns."""


def over(arguments: Mapping[str, Any], answer: Callable[[list[Row]], list[Any]]) -> Any:
    """What `answer` gives for every cell of the arguments' common shape.

    Lists come back as lists; an array or a column of a data frame as an array. A scalar for scalars.
    """
    try:
        ranges = {name: as_range(name, value) for name, value in arguments.items()}
        shape = shape_of(ranges)
        wide = {name: np.broadcast_to(cells, shape).ravel() for name, cells in ranges.items()}
        rows = [dict(zip(wide, cells, strict=True)) for cells in zip(*wide.values(), strict=True)]
        found = np.empty(len(rows), dtype=object)
        found[:] = answer(rows)
        if not shape:
            return found[0]
        block = found.reshape(shape)
        if all(isinstance(value, (list, tuple)) or ranges[name].ndim == 0 for name, value in arguments.items()):
            return block.tolist()
        return block if any(isinstance(cell, str) for cell in found) else np.array(block.tolist())
    except PlannerError as error:
        return sentence(error)
    except Exception as error:
        return one_line(f"internal fault: {type(error).__name__}: {error}")


def no_argument(function: str, own: Sequence[str], named: Mapping[str, Any], otherwise: str) -> str:
    """The sentence for a call with arguments the function does not have. otherwise: what is wrong if not that."""
    for name in named:
        if name not in own:
            meant = OTHER_NAMES.get(name.lower(), name.lower())
            do = f"did you mean {meant}?" if meant in own else nearest(name, own)
            return sentence(UnknownName(name, f"is no argument of {function}", do))
    return sentence(BadInput(function, otherwise, f"its arguments are {', '.join(own)}"))


def as_range(name: str, value: Any) -> Any:
    """A value as an array of cells; one cell has no dimension. Raises BadInput."""
    if isinstance(value, str) or not (isinstance(value, (list, tuple)) or getattr(value, "ndim", False)):
        cell = np.empty((), dtype=object)
        cell[()] = value
        return cell
    if isinstance(value, np.ndarray) and value.size > MOST_ROWS:
        raise BadInput(name, f"spans {value.size:,} cells", f"give at most {MOST_ROWS:,}")
    if isinstance(value, np.ma.MaskedArray):
        seen = np.array(value.data, dtype=object)
        seen[np.ma.getmaskarray(value)] = None
        return seen
    if isinstance(value, (list, tuple)):
        value = [line.tolist() if getattr(line, "ndim", 0) else line for line in value]
        lines = [isinstance(line, (list, tuple)) for line in value]
        if any(lines) and (not all(lines) or len({len(line) for line in value}) > 1):
            raise BadInput(name, "is a range whose rows are not equally long", "give a whole block")
        cells = np.empty((len(value), len(value[0])) if any(lines) else len(value), dtype=object)
        for place, line in enumerate(value):
            cells[place] = line
        return cells
    given = np.asarray(value)
    if given.dtype.kind not in MOMENTS:
        return np.asarray(value, dtype=object)
    moments = np.empty(given.shape, dtype=object)
    for at in np.ndindex(given.shape):
        moments[at] = given[at]
    return moments


def shape_of(ranges: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape all ranges have together. Raises BadInput where they have none, or where it is a guess."""
    shapes = {name: cells.shape for name, cells in ranges.items() if cells.ndim}
    told = ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in shapes.items())
    dimensions = {len(shape) for shape in shapes.values()}
    if len(dimensions) > 1 or max(dimensions, default=0) > BLOCK:
        what = f"a flat list beside a block of rows and columns ({told})"
        raise BadInput("ranges", what, "give all of them as rows and columns, or all flat")
    try:
        shape = np.broadcast_shapes(*shapes.values()) if shapes else ()
    except ValueError:
        raise BadInput("ranges", f"of different sizes ({told})", "give equal ranges, or a row and a column") from None
    size = int(np.prod(shape, dtype=float))
    if size > MOST_ROWS:
        raise BadInput("ranges", f"span {size:,} cells", f"give at most {MOST_ROWS:,}")
    return shape


def headlines(key: str, unit: float, *, anyway: bool, alone: Sequence[str]) -> Callable[[list[Row]], list[Any]]:
    """An answer for rows of `estimate`: the figure of this key of its JSON in a unit, or the row's sentence.

    anyway: also where the deployment does not fit in memory; otherwise that is the sentence. alone: inputs that may be
    left out, and are then 1. A {} in the key is the row's `of`.
    """

    def asked(row: Row) -> Scenario | PlannerError:
        try:
            if "of" in row:
                bill(row)
            return scenario({**row, **{name: 1 for name in alone if empty(row.get(name))}})
        except PlannerError as error:
            return error

    def told(one: Headlines | PlannerError | None, row: Row) -> Any:
        if not isinstance(one, Headlines):
            return sentence(one) if one is not None else ""
        if not (one.feasible or anyway):
            return f"does not fit: {'; '.join(missed['sentence'] for missed in one.violations)}"
        value = attrgetter(key.format(bill(row)) if "of" in row else key)(one)
        if value is None:
            return "osl: one output token has no time per output token; give at least 2"
        return value / unit if unit != 1 else value

    def answer(rows: list[Row]) -> list[Any]:
        return [told(one, row) for one, row in zip(priced([asked(row) for row in rows]), rows, strict=True)]

    return answer


def bill(row: Row) -> Any:
    """Which tokens a bill is spread over."""
    return choice("output" if empty(row["of"]) else text(row["of"], "of"), "of", ("output", "input", "total"))


def searched(read: Callable[[Best], Any], *, fewest: bool) -> Callable[[list[Row]], list[Any]]:
    """An answer for rows of `plan`: what is read of its best point, or a sentence; equal rows are searched once."""

    def answer(rows: list[Row]) -> list[Any]:
        known: dict[Hashable, Any] = {}
        return [one(row, known) for row in rows]

    def one(row: Row, known: dict[Hashable, Any]) -> Any:
        try:
            given: dict[str, Any] = texts(row, ("model", "system", "isl", "osl"))
            given |= {name: None if empty(row.get(name)) else text(row[name], name) for name in TARGETS}
            key = tuple(given.items())
            if key not in known:
                known[key] = read(found(given))
            return known[key]
        except PlannerError as error:
            return sentence(error)

    def found(given: dict[str, Any]) -> Best:
        slo = slo_of(given["ttft"], given["tpot"], given["rate"], mark="")
        deployment = (given["model"], given["system"], job(given), slo)
        if fewest:
            return fewest_chips(*deployment, stack=given["stack"])
        objective = choice(given["objective"] or "throughput", "objective", tuple(RANKED))
        chips = maybe_count(given["chips"], "chips")
        return best_layout(*deployment, stack=given["stack"], chips=chips, objective=objective)

    return answer


TARGETS = ("rate", "ttft", "tpot", "objective")
"""What a search is asked for beside the inputs of an estimate."""
