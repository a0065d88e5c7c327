"""One cell as the text of a flag, and a row of cells as a scenario.

A spreadsheet has numbers where a command line has text: 8192.0 is 8192, 0.5 is 0.5. What is no amount (a date, TRUE, an
error value) is refused rather than taken for one.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

from planner.errors import BadInput, BadUnit
from planner.evaluate.many import Scenario
from planner.specs.flags import maybe_count, workload_of

REQUIRED = ("model", "system", "layout", "isl", "osl", "concurrency")
DEFAULTS: dict[str, str | None] = {
    "stack": None, "kv_dtype": "bf16", "state_dtype": "fp32", "chunk": None, "arrivals": "steady",
    "memory_fraction": None, "prefix_hit": "0", "routing_skew": "1", "draft_tokens": "0", "accepted_length": "1",
    "chips": None, "vision": "false",
}  # fmt: skip
"""What an empty cell of an optional input means: the defaults of `planner estimate`."""
INPUTS = (*REQUIRED, *DEFAULTS)
TEXTS = ("model", "system", "layout", "stack", "kv_dtype", "state_dtype", "arrivals")
SWITCHES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
LARGEST_WHOLE = 1e15
"""Up to here every whole number is exact as a float."""
DATES = (datetime.date, datetime.time, datetime.timedelta)


def empty(cell: Any) -> bool:
    """Nothing was entered: None, blank text, or the NaN by which tables of numbers mark a gap."""
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and cell != cell)


def text(cell: Any, name: str) -> str:
    """A cell as the flag `name` would be written. Raises BadInput, BadUnit."""
    if isinstance(cell, str):
        return cell.strip()
    if hasattr(cell, "item") and not isinstance(cell, DATES):
        cell = cell.item()  # a number of numpy or pandas
    if isinstance(cell, bool):
        if name == "vision":
            return str(cell).lower()
        raise BadInput(name, f"is {str(cell).upper()}", "give a name" if name in TEXTS else "give a number")
    if isinstance(cell, DATES):
        raise BadInput(name, f"is a date or a time ({cell})", "format the cell as a number or as text")
    if isinstance(cell, (int, float)):
        if not math.isfinite(cell):
            raise BadUnit(name, f"{cell} is not a finite number", "give a number")
        return str(int(cell)) if abs(cell) < LARGEST_WHOLE and cell == int(cell) else repr(cell)
    raise BadInput(name, f"is a {type(cell).__name__}", "give a number or text")


def texts(row: Mapping[str, Any]) -> dict[str, str | None]:
    """Every input of a row as text, defaults filled in. Raises BadInput leaves, each naming its input."""
    found: dict[str, str | None] = {}
    for name in REQUIRED:
        cell = row.get(name)
        if empty(cell):
            raise BadInput(name, "is empty", f"give {'a' if name in TEXTS else 'a number for'} {name}")
        found[name] = text(cell, name)
    for name, default in DEFAULTS.items():
        cell = row.get(name)
        found[name] = default if empty(cell) else text(cell, name)
    return found


def scenario(row: Mapping[str, Any]) -> Scenario:
    """The scenario of a row: inputs by the names of flags. Raises BadInput leaves."""
    given: dict[str, Any] = texts(row)
    model, system, layout = (given.pop(name) for name in ("model", "system", "layout"))
    stack, chips = given.pop("stack"), maybe_count(given.pop("chips"), "chips")
    switch = given.pop("vision").lower()
    if switch not in SWITCHES:
        raise BadInput("vision", f"{switch!r} is neither yes nor no", "give TRUE or FALSE")
    return Scenario(model, system, layout, workload_of(**given, vision=SWITCHES[switch]), stack, chips)


def sentence(error: Exception) -> str:
    """An error as a cell shows it: flags under their names in a table, and never anything that reads as a formula."""
    told = str(error).removeprefix("--")
    return f"'{told}" if told.startswith(FORMULA_SIGNS) else told


FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""Text that begins with one of these may be taken for a formula."""
