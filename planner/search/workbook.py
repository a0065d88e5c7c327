"""What a live workbook holds: a plan's layouts, one of them in full, its formulas, inputs and legal values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from planner.errors import BadWorkload, Infeasible
from planner.evaluate.allowed import Table, stages_in, tables
from planner.evaluate.breakdown import repeats
from planner.evaluate.case import Point, case_of, chips_lent, point_of
from planner.evaluate.entries import Bounds, Entry, entries
from planner.evaluate.estimate import HEADLINES, run
from planner.evaluate.forms import Formula, Term, forms_of
from planner.evaluate.inputs import Case
from planner.evaluate.ranges import ranges
from planner.evaluate.results import LayoutAnswer, Plan
from planner.layout import Layout
from planner.quantities import unit_of
from planner.search.constraints import Constraint, active
from planner.search.plan import Objective, plan
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Slo, Workload

MEMORY = "memory"
"""The constraint that is no target."""


@dataclass(frozen=True)
class Column:
    """One layout under its load: the numbers of its inputs, and every quantity as the formulas give it."""

    layout: Layout
    point: Point
    quantities: dict[str, float]
    operators: list[float]

    def __str__(self) -> str:
        return placed(str(self.layout), int(self.point.values["layout.replicas"]))


@dataclass(frozen=True)
class Contents:
    """Everything the sheets show.

    model: the layout of the sheet Model; columns: those of the sheet Layouts. symbols: dotted name -> symbol of every
    input. targets: what the question asks for, with its limits. bands: the range of every headline quantity of `model`.
    command: what repeats the workbook; may be empty.
    """

    case: Case
    workload: Workload
    plan: Plan
    model: Column
    columns: list[Column]
    formulas: dict[str, Formula]
    terms: list[Term]
    symbols: dict[str, str]
    entries: list[Entry]
    tables: dict[str, Table]
    targets: list[tuple[Constraint, float]]
    bands: dict[str, list[float]]
    command: str


@dataclass(frozen=True)
class Planned:
    """A question with its plan. given: the layout asked for, if any.

    lent: chips of the layout in full, as `estimate` takes them: one replica of a given one; whole: chips of the plan.
    """

    case: Case
    workload: Workload
    plan: Plan
    given: Layout | None
    lent: int
    whole: int
    slo: Slo


def planned(
    model: str | Model,
    system: str | System,
    workload: Workload,
    *,
    layout: str | None = None,
    slo: Slo | None = None,
    stack: str | Stack | None = None,
    chips: int | None = None,
    objective: Objective = "throughput",
    top: int = 5,
    progress: Callable[[str], None] = lambda stage: None,
) -> Planned:
    """The plan behind a workbook, and the layout if one is given.

    Raises BadInput leaves; Infeasible where no layout is given and none meets the question.
    """
    case = case_of(model, system, stack)
    whole = case.system.chips if chips is None else chips
    lent = whole
    given = None if layout is None else Layout.parse(layout, case.model)
    if given is not None:
        lent = chips_lent(case, given, chips)
        if workload.concurrency is None:
            raise BadWorkload("--concurrency", "is not given", "with --layout say how many requests are in flight")
    found = plan(
        model, system, workload, slo=slo, stack=stack, chips=chips, objective=objective, top=top, progress=progress
    )
    if given is None and found.best is None:
        near = f": {found.nearest['sentence']}" if found.nearest else ""
        where = f"{case.model.name} on {case.system.name}"
        raise Infeasible(where, f"no layout meets the question{near}", "see `planner plan`, or give --layout")
    return Planned(case, workload, found, given, lent, whole, slo or Slo())


def contents(planned: Planned, command: str = "") -> Contents:
    """What the sheets show of a plan. command: what repeats it."""
    case, workload, given = planned.case, planned.workload, planned.given
    slots = stages_in(case.model, case.system.chips)

    def column(layout: Layout, concurrency: int, lent: int) -> Column:
        asked = workload.model_copy(update={"concurrency": concurrency})
        return column_of(point_of(case, layout, asked, lent // layout.chips, lent, slots=slots), layout)

    columns = [column(layout_of(answer.layout), answer.concurrency, planned.whole) for answer in planned.plan.top]
    chosen = columns[0] if given is None else column(given, workload.concurrency or 1, planned.lent)
    forms = forms_of(chosen.point)
    dotted = {symbol: name for name, symbol in forms.inputs.items()}
    symbols = [formula.uses for formula in forms.formulas.values()] + [term.uses for term in forms.terms]
    used = frozenset(dotted[symbol] for uses in symbols for symbol in uses if symbol in dotted)
    targets = [(constraint, limit) for constraint, limit in active(planned.slo) if constraint.name != MEMORY]
    return Contents(
        case=case,
        workload=workload,
        plan=planned.plan,
        model=chosen,
        columns=columns or [chosen],
        formulas=forms.formulas,
        terms=forms.terms,
        symbols=forms.inputs,
        entries=[*entries(case, workload, chosen.point, used), *(target(*found) for found in targets)],
        tables=tables(case.model, case.system.chips, slots),
        targets=targets,
        bands=bands_of(chosen.point),
        command=command,
    )


def target(constraint: Constraint, limit: float) -> Entry:
    """A target as an entry of the form."""
    name, unit, meaning = (
        f"target.{constraint.name}",
        unit_of(constraint.quantity),
        f"target of {constraint.name.upper()}",
    )
    return Entry(name, limit, unit, limit, limit, "chosen", "workload", "edit", Bounds(above=True), meaning)


def bands_of(point: Point) -> dict[str, list[float]]:
    """[low, high] of every headline that carries a range, by quantity, as an estimate of this point has it."""
    wanted = {name: name for name in HEADLINES.values()}
    found = ranges(point.shape, point.values, point.raw, point.leaves, wanted)
    return {name: [float(end) for end in pair[:, 0]] for name, pair in found.items()}


def placed(layout: str, replicas: int) -> str:
    """'TP8 DP2 x 4'."""
    return f"{layout} x {replicas}" if replicas > 1 else layout


def layout_of(answer: LayoutAnswer) -> Layout:
    """The layout of an answer."""
    return Layout(**{key: getattr(answer, key.upper()) for key in Layout._fields})


def column_of(point: Point, layout: Layout) -> Column:
    """One float run."""
    say, on = run(point)
    quantities = {name: float(row.value) for name, row in say.rows.items()}
    chunks = quantities["prompt_chunks"]
    times = [float(o.time_s * repeats(o, on, chunks)) for o in say.operators if o.phase in ("prefill", "decode")]
    return Column(layout, point, quantities, times)


def varying(contents: Contents, needed: Iterable[str]) -> list[str]:
    """What the needed quantities are made of that depends on the layout or the load, in the sheet's order."""
    formulas, symbols = contents.formulas, contents.symbols
    wanted: set[str] = set()
    todo = list(needed)
    while todo:
        name = todo.pop()
        if name in formulas and name not in wanted:
            wanted.add(name)
            todo += formulas[name].uses
    moved = {s for name, s in symbols.items() if name.startswith("layout.") or name == "ask.concurrency"}
    found = []
    for name, formula in formulas.items():
        if formula.uses & moved:
            moved.add(name)
            if name in wanted:
                found.append(name)
    return found
