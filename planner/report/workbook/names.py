"""Defined names of a workbook: in_ for inputs, q_ for quantities, ok_ for tables of legal values.

The prefix keeps names such as TP8 or R apart from cells, which a spreadsheet would refuse.
"""

from __future__ import annotations

import re

from planner.errors import BadInput

LONGEST_NAME = 255
NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]")
CHECK, CHECK_VALUES, CHECK_LAYOUT = "check_all", "check_values", "check_layout"
"""Cells that hold LEGAL or a sentence; the sentence of the values, and of the layout, else empty."""
LEGAL = "legal, fits"
FAR = "far from"
"""How a warning begins that makes nothing illegal."""
UNFIT = "does not fit in memory"
"""How the sentence of a check begins where the layout is legal and the load is too much."""


def named(prefix: str, *parts: str) -> str:
    """'in', 'layout.tp' -> 'in_layout_tp'."""
    return NOT_IN_A_NAME.sub("_", "_".join((prefix, *parts)))


def distinct(names: list[str]) -> None:
    """No two names are one to a spreadsheet, which ignores case. Raises BadInput."""
    seen: dict[str, str] = {}
    for name in names:
        if len(name) > LONGEST_NAME:
            raise BadInput("workbook", f"the name {name} is over {LONGEST_NAME} letters", "shorten the names of groups")
        if name.lower() in seen:
            raise BadInput("workbook", f"{name} and {seen[name.lower()]} are one name", "rename a group of the model")
        seen[name.lower()] = name
