"""Rows of a table as scenarios: everything that is wrong with a row, its targets, and the layout it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from planner.errors import BadInput, PlannerError
from planner.evaluate.many import Headlines, Scenario
from planner.layout import Layout, read_keys
from planner.scenarios.cells import (
    ASKED,
    DEFAULTS,
    REQUIRED,
    asked,
    job,
    said,
    sentence,
)
from planner.specs.flags import maybe_count, seconds, slo_of, usd_per_second
from planner.specs.library import load_model, load_stack, load_system
from planner.specs.workload import Slo

ORDINARY: dict[str, str | None] = {**DEFAULTS, "isl": "1k", "osl": "1k", "concurrency": "1"}
"""A job with nothing wrong, beside which one input is looked at alone."""
NEEDED = tuple(name for name in REQUIRED if name != "layout")
"""Inputs that every row gives, in order; a layout that is not given is searched."""
OPEN: dict[str, Any] = dict.fromkeys(REQUIRED)
NO_TARGETS = Slo()
LOADERS: dict[str, Callable[[str], Any]] = {"model": load_model, "system": load_system, "stack": load_stack}
FLAGS: dict[str, Callable[..., Any]] = {
    "chips": maybe_count, "price": usd_per_second, "ttft": seconds, "tpot": seconds,
}  # fmt: skip
UNMARKED = "calculate it in a spreadsheet program, or give a value"


@dataclass(frozen=True)
class Asked:
    """What a row asks for: its inputs as text, the scenario, its targets; or the sentence that says what is wrong."""

    given: Mapping[str, Any] = field(default_factory=dict)
    scenario: Scenario | None = None
    slo: Slo = field(default_factory=Slo)
    wrong: str = ""


@dataclass
class Reader:
    """Reads rows, which repeat one another. known: what has been looked up; read: what texts of cells are."""

    known: dict[Hashable, Any] = field(default_factory=dict)
    read: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def row(self, cells: Mapping[str, Any], marked: Mapping[str, str]) -> Asked:
        """What a row asks for. marked: inputs whose cell has no value, and why."""
        wrong: list[PlannerError] = [BadInput(name, why, UNMARKED) for name, why in marked.items()]
        given: dict[str, Any] = {**OPEN, **DEFAULTS}
        for name in dict.fromkeys((*NEEDED, *cells)):
            if name in marked:
                continue
            cell = cells.get(name)
            try:
                if isinstance(cell, str) and (name, cell) in self.read:
                    given[name] = self.read[name, cell]
                    continue
                given[name] = said(cell, name, NEEDED)
                if isinstance(cell, str):
                    self.read[name, cell] = given[name]
            except PlannerError as error:
                wrong.append(error)
                given[name] = None
        if wrong:
            return Asked(wrong=joined([*wrong, *self.faults(given)]))
        try:
            slo = targets(given)
            scenario = asked(given)
            return Asked(given, self.placed(given, scenario, slo) if given["layout"] is None else scenario, slo)
        except PlannerError as error:
            return Asked(given, wrong=self.told(given, error))

    def told(self, given: Mapping[str, Any], error: PlannerError) -> str:
        """Everything that is wrong with a row that cannot be priced: what single inputs are, else the error itself."""
        return joined(self.faults(given) or [error])

    def faults(self, given: Mapping[str, Any]) -> list[PlannerError]:
        """What is wrong with single inputs, each looked at alone."""
        looks: dict[str, Callable[[Any], Any]] = {name: partial(alone, name) for name in (*ASKED, "vision")}
        looks |= {**LOADERS, "layout": partial(self.read_layout, model=given["model"])}
        looks |= {name: partial(look, flag=name) for name, look in FLAGS.items()}
        found = [self.fault(name, given[name], look, given["model"] if name == "layout" else None)
                 for name, look in looks.items() if given[name] is not None]  # fmt: skip
        return [one for one in found if one is not None]

    def read_layout(self, layout: str, model: str | None) -> None:
        """The layout for the model, or alone where the model is in doubt. Raises PlannerError."""
        if model is None or self.fault("model", model, load_model) is not None:
            read_keys(layout)
        else:
            Layout.parse(layout, load_model(model))

    def fault(self, name: str, value: Any, look: Callable[[Any], Any], beside: Hashable = None) -> PlannerError | None:
        """What looking at this value of an input raises, if anything. beside: what else it depends on."""
        key = (name, value, beside)
        if key not in self.known:
            try:
                look(value)
                self.known[key] = None
            except PlannerError as error:
                self.known[key] = error.with_traceback(None)
        found: PlannerError | None = self.known[key]
        return found

    def placed(self, given: Mapping[str, Any], scenario: Scenario, slo: Slo) -> Scenario:
        """The scenario on the plan's best layout; every distinct question is searched once. Raises PlannerError."""
        key = (scenario._replace(price=None), slo)
        if key not in self.known:
            from planner.search.best_point import best_layout

            where = (given["model"], given["system"], scenario.workload, slo)
            try:
                self.known[key] = best_layout(*where, stack=given["stack"], chips=scenario.chips).layout
            except PlannerError as error:
                self.known[key] = error.with_traceback(None)
        if isinstance(self.known[key], PlannerError):
            raise self.known[key]
        return scenario._replace(layout=self.known[key])


def alone(name: str, value: str) -> None:
    """One property of the job beside ordinary ones. Raises BadInput leaves."""
    job({**ORDINARY, name: value})


def targets(given: Mapping[str, Any]) -> Slo:
    """The targets of a row. Raises BadInput leaves."""
    if given["ttft"] is None and given["tpot"] is None:
        return NO_TARGETS
    found: Slo = slo_of(given["ttft"], given["tpot"], mark="")
    return found


def joined(errors: list[PlannerError]) -> str:
    """Errors as one cell shows them."""
    return "; ".join(dict.fromkeys(sentence(error) for error in errors))


def met(found: Headlines, slo: Slo) -> list[bool | None]:
    """Whether TTFT and TPOT as served meet their targets; None without a target, and where there is no such time."""
    times = (found.serving.ttft_s, slo.ttft_s), (found.decode.tpot_s, slo.tpot_s)
    return [time <= target if found.feasible and target is not None and time is not None else None
            for time, target in times]  # fmt: skip
