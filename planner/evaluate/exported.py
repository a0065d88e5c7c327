"""The kernel of one deployment as one file of Python that needs numpy alone.

Every quantity keeps its own line and name, with its sentence, unit and reference below it; every input its value, unit,
range, status and source. The text is the compiled kernel's (compiled.py): nothing is written a second time. The layout
is fixed, because its legal values are whole-number work that formulas do not do.
"""

from __future__ import annotations

from dataclasses import dataclass
from keyword import iskeyword
from textwrap import wrap
from typing import Any

from planner.errors import BadSpec, one_line
from planner.evaluate.case import Point, check_load, placed
from planner.evaluate.compiled import HEAD, parts
from planner.evaluate.estimate import HEADLINES
from planner.evaluate.inputs import Leaf
from planner.evaluate.results import Result
from planner.evaluate.sheet import build
from planner.evaluate.variables import FIXED
from planner.quantities import Quantity
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Workload

SAID = {
    **HEADLINES,
    "serving.tok_s": "serving_tokens_per_s",
    "serving.requests_per_s": "serving_requests_per_s",
    "cost.usd_per_million_input_tokens": "serving_cost_input_usd",
    "cost.usd_per_million_total_tokens": "serving_cost_total_usd",
    "memory.pool.used_bytes": "memory_pool_used_bytes",
    "memory_slack_bytes": "memory_slack_bytes",
}
"""Key of what `headlines` of the file returns -> the quantity behind it."""
HELD = ("layout.", *FIXED)
"""Inputs that are not to be changed: they follow from the layout and the model, or are definitions."""
WIDTH = 116
IMPORTS = HEAD[HEAD.index("from numpy") :].rstrip().replace("import cbrt", "import array, cbrt, errstate, isfinite")

TAIL = '''
HEADLINES = {headlines}
"""Key in the JSON of `planner estimate` -> the quantity behind it."""


def headlines(**changes):
    """The headline quantities for changed inputs, SI units. changes: names in INPUTS, numbers or numpy arrays.

    `feasible` is whether it fits in memory (memory_slack_bytes, the room left on the fullest chip, is not negative).
    ask_length, the tokens a request reaches, follows ask_isl and ask_osl unless it is changed itself. With one output
    token decode.tpot_s and decode.tok_s_per_user mean nothing. Raises TypeError for a name that is not in INPUTS,
    ValueError for what is no finite number.
    """
    for name, value in changes.items():
        if name not in INPUTS:
            close = get_close_matches(name, INPUTS, n=1) or get_close_matches("ask_" + name, INPUTS, n=1)
            fixed = "is fixed in this file: export another" if name in FIXED else "is no input"
            raise TypeError(f"{{name}} {{fixed}}" + (f"; did you mean {{close[0]}}?" if close else "; see INPUTS"))
        changes[name] = array(value, dtype=float)
        if not isfinite(changes[name]).all():
            raise ValueError(f"{{name}} is {{value!r}}, not a finite number")
    given = {{**FIXED, **INPUTS, **changes}}
    if "ask_length" not in changes:
        given["ask_length"] = given["ask_isl"] + given["ask_osl"]
    with errstate(all="ignore"):
        found = dict(zip(HEADLINES, kernel(**given), strict=True))
    found["feasible"] = found["memory_slack_bytes"] >= 0
    return found


if __name__ == "__main__":
    for key, value in headlines().items():
        print(f"{{key}}: {{value}}")
'''


@dataclass(frozen=True)
class Exported(Result):
    """`planner export`. inputs: those to change; fixed: those that cannot be; quantities: lines of the kernel."""

    model: str
    system: str
    stack: str
    layout: str
    form: str
    inputs: int
    fixed: int
    quantities: int
    text: str


def export_python(
    model: str | Model, system: str | System, layout: str, workload: Workload, *, stack: str | Stack | None = None,
    chips: int | None = None,
) -> Exported:  # fmt: skip
    """One deployment as one file of Python. Raises BadInput leaves."""
    case, found, lent, point = placed(model, system, layout, workload, stack, chips)
    book = build(point.shape, list(point.values), point.raw)
    outputs = tuple(dict.fromkeys(SAID.values()))
    used, lines = parts(book, outputs, tight=False, notes={name: note(row) for name, row in book.rows.items()})
    for name in (*used, *book.rows):
        if not name.isidentifier() or iskeyword(name):
            raise BadSpec(case.model.name, f"{name!r} cannot be a name in Python", "rename the layer group")
    dotted = {symbol: name for name, symbol in book.inputs.items()}
    changed = [s for s in used if not dotted[s].startswith(HELD)]
    fixed = [s for s in used if dotted[s].startswith(HELD)]
    title = f"{case.model.name} on {case.system.name}, stack {case.stack.name}, {found}, {lent} chips"
    load = (
        f"prompt {workload.isl:,} + output {workload.osl:,} tokens, {check_load(workload):,} in flight, "
        f"cache {workload.kv_format}, state {workload.state_format}, {workload.arrivals} arrivals"
    )
    text = "".join((
        head(title, load), IMPORTS, "\n\n\n",
        "INPUTS = {\n", *(entry(point, dotted[s], s) for s in changed), "}\n",
        '"""What `headlines` can be asked to change, with its value here."""\n\n',
        "FIXED = {\n", *(entry(point, dotted[s], s) for s in fixed), "}\n",
        '"""What follows from the layout and the model, and definitions."""\n\n\n',
        kernel(used, lines, outputs), TAIL.format(headlines=mapping(SAID)),
    ))  # fmt: skip
    quantities = sum(line.startswith("    # ") for line in lines)
    return Exported(
        case.model.name, case.system.name, case.stack.name, str(found), "python", len(changed), len(fixed), quantities,
        text,
    )  # fmt: skip


def head(title: str, load: str) -> str:
    """The file's own docstring."""
    title = one_line(title).replace("\\", "/").replace('"', "'")
    return (
        f'"""{title}.\n\n{load}.\n\n'
        "The formulas of one deployment, exported by `planner export`; needs numpy alone. `headlines()` gives the\n"
        "headline quantities, `headlines(ask_concurrency=64, chip_memory_bandwidth=5e12)` those for changed inputs,\n"
        'which may be arrays. All values are in SI units; INPUTS lists what can be changed.\n"""\n\n'
        "from difflib import get_close_matches\n\n"
    )


def note(row: Quantity) -> str:
    """The comment below a quantity."""
    reference = f" Reference: {row.reference}" if row.reference else ""
    return one_line(f"{row.name} [{row.unit}]: {row.sentence}.{reference}")


def entry(point: Point, name: str, symbol: str) -> str:
    """An input as an item of a dict, below what is known about it."""
    leaf = point.leaves.get(name)
    lines = wrap(one_line(known(leaf)), WIDTH, break_long_words=False) if leaf else ["1; of the layout"]
    comment = "".join(f"    # {line}\n" for line in lines)
    return f'{comment}    "{symbol}": {float(point.values[name])!r},\n'


def known(leaf: Leaf) -> str:
    """Unit, range, status and source of an input."""
    span = f"{leaf.low:.6g} to {leaf.high:.6g}" if leaf.uncertain else "no range"
    return f"{leaf.unit}; {span}; {leaf.status}; {leaf.source}"


def kernel(used: list[str], lines: list[str], outputs: tuple[str, ...]) -> str:
    """The function of all formulas."""
    arguments = ",\n    ".join(used)
    body = "\n".join(lines)
    returned = ",\n        ".join(outputs)
    return f"def kernel(\n    {arguments},\n):\n{body}\n    return (\n        {returned},\n    )\n\n"


def mapping(names: dict[str, Any]) -> str:
    """A dict, an item a line."""
    return "{\n" + "".join(f'    "{key}": "{value}",\n' for key, value in names.items()) + "}"
