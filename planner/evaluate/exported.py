"""The kernel of one deployment as one file of Python that needs numpy alone.

Every quantity keeps its own line and name, with its sentence, unit and reference below it; every input its value, unit,
range, status and source. The text is the compiled kernel's (compiled.py): nothing is written a second time. The layout
is fixed, because its legal values are whole-number work that formulas do not do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from textwrap import wrap
from typing import Any

from planner.errors import BadSpec, one_line
from planner.evaluate.case import Point, check_load, placed
from planner.evaluate.compiled import HEAD, parts
from planner.evaluate.entries import DRAFTS, Bounds, field_for, fields_by_name
from planner.evaluate.estimate import ANYWAY, HEADLINES, SILENT, run
from planner.evaluate.estimate import headlines as answered
from planner.evaluate.exported_tail import TAIL
from planner.evaluate.inputs import Case, Leaf
from planner.evaluate.results import Result
from planner.evaluate.sheet import build
from planner.evaluate.variables import FIXED, LEAST_FRACTION
from planner.kinds.formats import CHOICES, value_bytes
from planner.quantities import Quantity
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import MOST_DRAFTS, Workload

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
SIZES = " ".join(f"{name} {value_bytes(name):g}" for name in CHOICES)
CHOSEN = {
    "ask_arrivals": "export another with --arrivals",
    "ask_vision": "export another with --vision",
    "ask_stack": "export another with --stack, or change the inputs that begin with stack_ and kernel_",
    **dict.fromkeys(
        ("ask_kv_format", "ask_kv_dtype"),
        f"change ask_kv_value_bytes, the bytes of one value ({SIZES}), or export another with --kv-dtype, which is "
        "exact also where the format decides how the cache is laid out",
    ),
    **dict.fromkeys(
        ("ask_state_format", "ask_state_dtype"), "change ask_state_value_bytes, the bytes of one value (fp32 4 bf16 2)"
    ),
}
"""What is chosen by a word elsewhere -> how it is said in the file."""
HELD = ("layout.", *FIXED)
"""Inputs that are not to be changed: they follow from the layout and the model, or are definitions."""
WIDTH = 116
IMPORTS = HEAD[HEAD.index("from numpy") :].rstrip().replace(
    "import cbrt", "import array, asarray, cbrt, errstate, isfinite, nan, where"
)  # fmt: skip


@dataclass(frozen=True)
class Exported(Result):
    """`planner export`. inputs: those to change; fixed: those that cannot be; quantities: lines of the kernel.

    violations: why it does not fit as it stands, if it does not.
    """

    model: str
    system: str
    stack: str
    layout: str
    form: str
    inputs: int
    fixed: int
    quantities: int
    feasible: bool
    violations: list[dict[str, Any]]
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
    q = {name: row.value for name, row in run(point)[0].rows.items()}
    missed = answered(case, q, workload, lent)["violations"]
    known = fields_by_name(case, workload)
    bounds = {s: limits_of(dotted[s], case, workload, known) for s in changed}
    text = "".join((
        head(title, load, missed), IMPORTS, "\n\n\n",
        "INPUTS = {\n", *(entry(point, dotted[s], s, bounds[s]) for s in changed), "}\n",
        '"""What `headlines` can be asked to change: value here, least, most, and what it is."""\n\n',
        "FIXED = {\n", *(entry(point, dotted[s], s) for s in fixed), "}\n",
        '"""What follows from the layout and the model, and definitions."""\n\n',
        together(case, used), "\n\n",
        kernel(used, lines, outputs), TAIL,
    ))  # fmt: skip
    quantities = sum(line.startswith("    # ") for line in lines)
    return Exported(
        case.model.name, case.system.name, case.stack.name, str(found), "python", len(changed), len(fixed), quantities,
        not missed, missed, text,
    )  # fmt: skip


def limits_of(name: str, case: Case, workload: Workload, known: Mapping[str, Any]) -> Bounds:
    """What an input may be changed to; without drafts their formulas are not there."""
    if name in DRAFTS and not workload.draft_tokens:
        only = float(getattr(workload, name.removeprefix("ask.")))
        return Bounds(only, only, whole=True)
    if name == "ask.draft_tokens":
        return Bounds(1, MOST_DRAFTS, whole=True)
    if name in ("ask.isl", "ask.osl", "ask.length"):
        return Bounds(1, case.model.max_context - (name != "ask.length"), whole=True)
    if name == "ask.memory_fraction":
        return Bounds(LEAST_FRACTION, 1)
    return field_for(name, known, case)[0]


def together(case: Case, used: list[str]) -> str:
    """What `headlines` and its checks go by."""
    pairs = [(f"{group}_top_k", f"{group}_experts", 0) for group in case.model.feed_forward if f"{group}_top_k" in used]
    pairs += [("ask_accepted_length", "ask_draft_tokens", 1)] if "ask_accepted_length" in used else []
    silent = tuple(key for key, name in SAID.items() if name in SILENT)
    return (
        f"CONTEXT = {case.model.max_context}\n"
        '"""Tokens a request may reach: the model\'s longest context."""\n\n'
        f"AT_MOST = {tuple(pairs)!r}\n"
        '"""(name, other, more): the first is at most the second and so many more."""\n\n'
        f"CHOSEN = {mapping(CHOSEN)}\n"
        '"""What is chosen by a word elsewhere, and how it is said here."""\n\n'
        f"HEADLINES = {mapping(SAID)}\n"
        '"""Key in the JSON of `planner estimate` -> the quantity behind it."""\n\n'
        f"ANYWAY = {ANYWAY!r}\n"
        '"""How keys begin that a deployment has even where it does not fit."""\n\n'
        f"BETWEEN_TOKENS = {silent!r}\n"
        '"""Keys that mean nothing with one output token."""\n'
    )


def head(title: str, load: str, missed: list[dict[str, Any]]) -> str:
    """The file's own docstring. missed: why it does not fit."""
    unfit = "".join(f"# Does not fit as it stands: {one_line(one['sentence'])}.\n" for one in missed)
    title = one_line(title).replace("\\", "/").replace('"', "'")
    return (
        f'{unfit}"""{title}.\n\n{load}.\n\n'
        "The formulas of one deployment, exported by `planner export`; needs numpy alone. `headlines()` gives the\n"
        "headline quantities, `headlines(ask_concurrency=64, chip_memory_bandwidth=5e12)` those for changed inputs,\n"
        'which may be arrays. All values are in SI units; INPUTS lists what can be changed.\n"""\n\n'
        "from difflib import get_close_matches\n\n"
    )


def note(row: Quantity) -> str:
    """The comment below a quantity."""
    reference = f" Reference: {row.reference}" if row.reference else ""
    return one_line(f"{row.name} [{row.unit}]: {row.sentence}.{reference}")


def entry(point: Point, name: str, symbol: str, bounds: Bounds | None = None) -> str:
    """An input as an item of a dict, below what is known about it, with what it may be where it can be changed."""
    leaf = point.leaves.get(name)
    lines = wrap(one_line(about(leaf)), WIDTH, break_long_words=False) if leaf else ["1; of the layout"]
    comment = "".join(f"    # {line}\n" for line in lines)
    value = repr(float(point.values[name]))
    if bounds is not None:
        kind = "count" if bounds.whole else "above" if bounds.above else "number"
        value = f'({value}, {float(bounds.least)!r}, {float(bounds.most)!r}, "{kind}")'
    return f'{comment}    "{symbol}": {value},\n'


def about(leaf: Leaf) -> str:
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
