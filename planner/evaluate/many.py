"""Many deployments at once: the headlines of `estimate` for each, worked out on arrays by structure.

A row that cannot be priced has its error sentence, and the others are priced all the same. What rows share (records,
layouts, the leaves of their specs) is looked up once. Nothing is drawn, so there are no ranges here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from planner.errors import PlannerError
from planner.evaluate.case import Point, case_of, check_load, check_workload, chips_lent, shape_of
from planner.evaluate.estimate import ANYWAY, behind, check_finite, headlines, layout_of
from planner.evaluate.grouped import Group, by_structure
from planner.evaluate.inputs import Case, asked_values, layout_values, leaves
from planner.evaluate.results import Cost, Decode, LayoutAnswer, Memory, Prefill, Serving
from planner.layout import Layout
from planner.model.structure import Structure
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Workload
from planner.stages import heaviest
from planner.units import UNITS

BLOCK = 8_192
"""Rows priced together: their inputs take some 10 kB each."""


class Scenario(NamedTuple):
    """One deployment to price: the arguments of `estimate`. price: USD/s of a chip instead of the spec's."""

    model: str | Model
    system: str | System
    layout: str | Layout
    workload: Workload
    stack: str | Stack | None = None
    chips: int | None = None
    price: float | None = None


@dataclass(frozen=True)
class Headlines:
    """What `estimate` answers, without breakdown and ranges."""

    stack: str
    layout: LayoutAnswer
    chips_lent: int
    feasible: bool
    violations: list[dict[str, Any]]
    memory: Memory
    prefill: Prefill
    decode: Decode
    serving: Serving
    cost: Cost


class Column(NamedTuple):
    """A result as a column: its name, its key in the JSON of `estimate`, its unit where not the JSON's own."""

    name: str
    key: str
    unit: str = ""
    quantity: str = "B"


COLUMNS = (
    Column("feasible", "feasible"),
    Column("ttft_s", "serving.ttft_s"),
    Column("ttft_idle_s", "prefill.ttft_s"),
    Column("tpot_s", "decode.tpot_s"),
    Column("step_s", "decode.step_s"),
    Column("e2e_s", "serving.e2e_s"),
    Column("tok_s", "serving.tok_s"),
    Column("tok_s_per_chip", "serving.tok_s_per_chip"),
    Column("tok_s_per_user", "decode.tok_s_per_user"),
    Column("requests_per_s", "serving.requests_per_s"),
    Column("decode_tok_s_per_chip", "decode.tok_s_per_chip"),
    Column("prefill_tok_s_per_chip", "prefill.tok_s_per_chip"),
    Column("usd_per_million_output_tokens", "cost.usd_per_million_output_tokens"),
    Column("usd_per_million_input_tokens", "cost.usd_per_million_input_tokens"),
    Column("usd_per_million_total_tokens", "cost.usd_per_million_total_tokens"),
    Column("max_concurrency", "memory.max_concurrency"),
    Column("weights_gb_per_chip", "memory.weights_bytes_per_chip", "GB"),
    Column("request_gb_per_chip", "memory.request_bytes_per_chip", "GB"),
    Column("used_gb_per_chip", "memory.used_bytes_per_chip", "GB"),
    Column("usable_gb_per_chip", "memory.usable_bytes_per_chip", "GB"),
    Column("chips_lent", "chips_lent"),
    Column("layout_used", "layout.text"),
)
"""The headlines as columns of a table, in order."""
READ = [(attrgetter(c.key), UNITS[c.quantity][c.unit] if c.unit else None) for c in COLUMNS]
MEANT = [c.key.startswith(ANYWAY) for c in COLUMNS]
"""Whether a column has something to say of a deployment that does not fit."""


def cells(found: Headlines) -> list[Any]:
    """The columns of one row; None where a headline means nothing: TPOT of one token, times of what does not fit."""
    values = [value if scale is None or value is None else value / scale for value, scale in
              ((read(found), scale) for read, scale in READ)]  # fmt: skip
    return values if found.feasible else [value if meant else None for value, meant in zip(values, MEANT, strict=True)]


@dataclass
class Shelf:
    """What rows share, made once; so is the refusal of what cannot be made."""

    held: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` makes. Raises the PlannerError it raised, again."""
        if key not in self.held:
            try:
                self.held[key] = make()
            except PlannerError as error:
                self.held[key] = error
        found = self.held[key]
        if isinstance(found, PlannerError):
            raise found.with_traceback(None)
        return found


def named(record: Any) -> Hashable:
    """What tells one record from another: its name where it is given by name."""
    return record if isinstance(record, (str, Layout)) else id(record)


def many(scenarios: Sequence[Scenario]) -> list[Headlines | PlannerError]:
    """The headlines of every scenario as `estimate` gives them, or the error it raises, in order.

    Arrays and floats may round the last digit otherwise: equal to 1e-12.
    """
    shelf, found = Shelf(), []
    for start in range(0, len(scenarios), BLOCK):
        found += block(scenarios[start : start + BLOCK], shelf)
    return found


def block(scenarios: Sequence[Scenario], shelf: Shelf) -> list[Headlines | PlannerError]:
    """The same for as many rows as fit in memory together."""
    found: list[Any] = [None] * len(scenarios)
    places, ready = [], []
    for place, scenario in enumerate(scenarios):
        try:
            ready.append(placed_once(scenario, shelf))
            places.append(place)
        except PlannerError as error:
            found[place] = error
    for group in by_structure(point for *_, point in ready):
        rows = quantities(group)
        for i, q in zip(group.index, rows, strict=True):
            case, layout, lent, _ = ready[i]
            workload = scenarios[places[i]].workload
            try:
                check_finite(q)
                found[places[i]] = Headlines(case.stack.name, layout, lent, **headlines(case, q, workload, lent))
            except PlannerError as error:
                found[places[i]] = error
    return found


def quantities(group: Group) -> Iterator[dict[str, Any]]:
    """The named quantities of every row of a group on floats."""
    found = group.run({}, behind(group.first.shape.stages))
    columns = [column.tolist() for column in found.values()]
    return (dict(zip(found, row, strict=True)) for row in zip(*columns, strict=True))


def placed_once(scenario: Scenario, shelf: Shelf) -> tuple[Case, LayoutAnswer, int, Point]:
    """(case, layout, chips lent, point) as `placed` gives them, from what other rows looked up. Raises BadInput leaves.

    The point has no leaves: nothing is drawn.
    """
    model, system, layout, workload, stack, chips, price = scenario
    records = (named(model), named(system), named(stack))
    case: Case = shelf.once(records, lambda: case_of(model, system, stack))
    check_workload(case, workload)
    check_load(workload)
    form = (workload.draft_tokens > 0, workload.kv_format, workload.arrivals, workload.vision)
    answer, lent, shape, raw, values = shelf.once(
        (*records, named(layout), chips, *form), lambda: shared(case, layout, chips, workload, (records, *form), shelf)
    )
    own = {} if price is None else {"chip.price": price}
    return case, answer, lent, Point(shape, values | asked_values(workload, case.stack) | own, raw, {})


def shared(
    case: Case, layout: str | Layout, chips: int | None, workload: Workload, form: Hashable, shelf: Shelf
) -> tuple[LayoutAnswer, int, Structure, dict[str, Any], dict[str, float]]:
    """(layout, chips lent, structure, structural values, numbers) of a layout, whatever the lengths and the load.

    Layouts of as many distinct stages share their structure. Raises BadInput leaves.
    """
    found = Layout.parse(layout, case.model) if isinstance(layout, str) else layout
    lent = chips_lent(case, found, chips)
    numbers, raw = shelf.once(("specs", form), lambda: specs(case, workload))
    slots = len(heaviest(case.model, found.pp))
    shape = shelf.once(("shape", form, slots), lambda: shape_of(case, workload, slots))
    answer = layout_of(found, lent // found.chips, lent)
    return answer, lent, shape, raw, numbers | layout_values(case.model, found, lent // found.chips, lent, slots)


def specs(case: Case, workload: Workload) -> tuple[dict[str, float], dict[str, Any]]:
    """(numbers, structural values) of the specs."""
    numbers, raw = leaves(case, workload)
    return {name: leaf.value for name, leaf in numbers.items()}, raw
