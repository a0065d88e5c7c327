"""One cell as the text of a flag, and a row of cells as a scenario.

A spreadsheet has numbers where a command line has text: 8192.0 is 8192, 0.5 is 0.5. What is no amount (a date, TRUE, an
error value) is refused rather than taken for one.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import BadInput, BadUnit, PlannerError
from planner.evaluate.many import Headlines, Scenario, many
from planner.specs.flags import maybe_count, usd_per_second, workload_of
from planner.specs.library import find, is_path
from planner.specs.workload import Workload

REQUIRED = ("model", "system", "layout", "isl", "osl", "concurrency")
DEFAULTS: dict[str, str | None] = {
    "stack": None, "kv_dtype": "bf16", "state_dtype": "fp32", "chunk": None, "arrivals": "steady",
    "memory_fraction": None, "prefix_hit": "0", "routing_skew": "1", "draft_tokens": "0", "accepted_length": "1",
    "chips": None, "vision": "false", "price": None, "ttft": None, "tpot": None,
}  # fmt: skip
"""What an empty cell of an optional input means: the defaults of `planner estimate`; the chip's price, no targets."""
INPUTS = (*REQUIRED, *DEFAULTS)
ASKED = ("isl", "osl", "concurrency", "kv_dtype", "state_dtype", "chunk", "arrivals", "memory_fraction", "prefix_hit",
         "routing_skew", "draft_tokens", "accepted_length")  # fmt: skip
"""Inputs that are properties of the job, beside vision."""
NAMES = {"model": "model", "system": "system", "stack": "stack"}
"""Inputs that name a spec -> the kind of spec."""
COUNTED = {
    "isl": "tokens?", "osl": "tokens?", "chunk": "tokens?", "draft_tokens": "tokens?", "chips": "chips?|gpus?",
    "concurrency": "requests?|reqs?|req",
}  # fmt: skip
"""Counts -> the word that may stand behind one."""
GROUPED = re.compile(r"^\d{1,3}(?:[,' \u00a0\u202f]\d{3})+$")
"""A count with a mark between thousands."""
SHARES = ("prefix_hit", "memory_fraction")
NOTHING = ("n/a", "na", "-", "–", "none")
"""Words for a cell that has nothing in it."""
TEXTS = ("model", "system", "layout", "stack", "kv_dtype", "state_dtype", "arrivals")
SWITCHES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
LARGEST_WHOLE = 1e15
"""Up to here every whole number is exact as a float."""
LARGEST_FLOAT = sys.float_info.max
GAPS = ("NAType", "NaTType", "MaskedConstant")
"""The gaps of pandas and numpy, by name: they are not loaded here."""
MOMENTS = ("timedelta64", "datetime64")
DATES = (datetime.date, datetime.time, datetime.timedelta)


def empty(cell: Any) -> bool:
    """Nothing was entered: None, blank text, or what marks a gap in tables of numbers."""
    if cell is None or (isinstance(cell, str) and not cell.strip()) or type(cell).__name__ in GAPS:
        return True
    if type(cell).__name__ in MOMENTS:
        return str(cell) == "NaT"
    return isinstance(cell, float) and cell != cell


def text(cell: Any, name: str) -> str:
    """A cell as the flag `name` would be written. Raises BadInput, BadUnit."""
    if isinstance(cell, str):
        return usual(cell.strip(), name)
    if type(cell).__name__ in MOMENTS:
        raise BadInput(name, f"is a date or a time ({cell})", "format the cell as a number or as text")
    if getattr(cell, "shape", None):
        raise BadInput(name, "is a range within a cell", "give one value a cell")
    if hasattr(cell, "item") and not isinstance(cell, DATES):
        cell = cell.item()  # a number of numpy or pandas
    if isinstance(cell, bool):
        if name == "vision":
            return str(cell).lower()
        raise BadInput(name, f"is {str(cell).upper()}", "give a name" if name in TEXTS else "give a number")
    if isinstance(cell, DATES):
        raise BadInput(name, f"is a date or a time ({cell})", "format the cell as a number or as text")
    if isinstance(cell, (int, float)):
        if isinstance(cell, int) and abs(cell) > LARGEST_FLOAT:
            raise BadUnit(name, "is far too large a number", "write a smaller one")
        if not math.isfinite(cell):
            raise BadUnit(name, f"{cell} is not a finite number", "give a number")
        return str(int(cell)) if abs(cell) < LARGEST_WHOLE and cell == int(cell) else repr(cell)
    raise BadInput(name, f"is a {type(cell).__name__}", "give a number or text")


def usual(written: str, name: str) -> str:
    """What people write in a table as the command line has it: '8,192 tokens' -> '8192', '90%' -> '0.9', 'Kimi K3'."""
    if name in COUNTED:
        bare = re.sub(rf"\s*(?:{COUNTED[name]})$", "", written, flags=re.IGNORECASE)
        return re.sub(r"\D", "", bare) if GROUPED.match(bare) else bare
    if name in SHARES and written.endswith("%"):
        try:
            return repr(float(written[:-1]) / 100)
        except ValueError:
            return written
    if name in NAMES:
        dashed = re.sub(r"[\s_]+", "-", written.lower())
        return dashed if dashed != written and not is_path(written) and shipped(NAMES[name], dashed) else written
    return written


def shipped(kind: str, name: str) -> bool:
    """Whether a spec of this name is in the spec folders."""
    try:
        find(kind, name)
    except PlannerError:
        return False
    return True


def nothing(cell: Any, name: str) -> bool:
    """A cell that says nothing: empty, or a word for it where the input may be left out."""
    if empty(cell):
        return True
    if not isinstance(cell, str):
        return False
    optional = name not in REQUIRED or name == "layout"
    return optional and cell.strip().lower() in NOTHING


def said(cell: Any, name: str, required: Sequence[str] = REQUIRED) -> str | None:
    """One input as text, its default where the cell says nothing. Raises BadInput leaves."""
    if not nothing(cell, name):
        return text(cell, name)
    if name in required:
        raise BadInput(name, "is empty", f"give {'a' if name in TEXTS else 'a number for'} {name}")
    return DEFAULTS.get(name)


def texts(row: Mapping[str, Any], required: Sequence[str] = REQUIRED) -> dict[str, str | None]:
    """Every input of a row as text, defaults filled in. Raises BadInput leaves, each naming its input."""
    found = {name: said(cell, name, ()) for name, cell in row.items() if name in INPUTS}
    for name in required:
        if found.get(name) is None:
            said(None, name, required)
    return {**dict.fromkeys(REQUIRED), **DEFAULTS, **found}


def job(given: Mapping[str, Any]) -> Workload:
    """The workload among the inputs. Raises BadInput leaves."""
    switch = given["vision"].lower()
    if switch not in SWITCHES:
        raise BadInput("vision", f"{switch!r} is neither yes nor no", "give TRUE or FALSE")
    found: Workload = workload_of(**{name: given[name] for name in ASKED}, vision=SWITCHES[switch])
    return found


def scenario(row: Mapping[str, Any]) -> Scenario:
    """The scenario of a row: inputs by the names of flags. Raises BadInput leaves."""
    return asked(texts(row))


def asked(given: Mapping[str, Any]) -> Scenario:
    """The scenario of a row's texts. Raises BadInput leaves."""
    chips = maybe_count(given["chips"], "chips")
    price = usd_per_second(given["price"], "price")
    return Scenario(given["model"], given["system"], given["layout"], job(given), given["stack"], chips, price)


def priced(asked: Sequence[Scenario | PlannerError | None]) -> list[Headlines | PlannerError | None]:
    """Every scenario priced; errors and gaps stay where they are."""
    found: list[Headlines | PlannerError | None] = [None if isinstance(one, Scenario) else one for one in asked]
    places = [place for place, one in enumerate(asked) if isinstance(one, Scenario)]
    for place, answer in zip(places, many([one for one in asked if isinstance(one, Scenario)]), strict=True):
        found[place] = answer
    return found


def sentence(error: Exception) -> str:
    """An error as a cell shows it: flags under their names in a table, and never anything that reads as a formula."""
    told = str(error).removeprefix("--")
    return f"'{told}" if told.startswith(FORMULA_SIGNS) else told


FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""Text that begins with one of these may be taken for a formula."""
