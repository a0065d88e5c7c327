"""What may be typed into an input: the formula beside it that says what is wrong, and what is refused while typing."""

from __future__ import annotations

from typing import Any

from planner.evaluate.entries import WORDS, Bounds, Entry
from planner.record import LARGEST
from planner.report.workbook.formula import quoted
from planner.report.workbook.keys import not_whole
from planner.report.workbook.names import FAR, named

LISTED = {"layout.tp": "tp", "layout.ep": "ep", "layout.etp": "etp", "layout.pp": "pp"}
"""Keys offered as lists, with the table of their values."""
FAR_FROM_RANGE, FAR_FROM_VALUE = 3, 1000
"""Times beyond the range, or where there is none beyond the value as written, from which a unit is in doubt."""


def cell(name: str) -> str:
    """The defined name of an input."""
    return named("in", name)


def check(entry: Entry, at: str, longest: int) -> str:
    """Formula of what is wrong with the value in a cell, or ''. Layout and batch are checked elsewhere.

    at: the cell as typed, in the units of the entry. longest: the most tokens the model takes.
    """
    if entry.role == "word":
        table, column = words_of(entry.name)
        return f'IF(COUNTIF({named("ok", table, column)},{at})=0,"is not one of the list","")'
    if entry.name == "ask.length":
        most = f"{longest}-({at}-{cell('ask.isl')})"
        told = f'"ISL + OSL exceed the {longest} tokens of the model; the largest ISL is "&({most})'
        return f'IF(IFERROR({at}>{longest},0),{told},"")'
    if entry.role != "edit" or entry.name.startswith("layout.") or entry.name == "ask.concurrency":
        return ""
    bounds = entry.bounds
    rules = [(f"ISTEXT({at})", "must be a number: 8k is 8192")] if bounds.whole else []
    rules.append((outside(at, bounds), f"must be {phrase(bounds)}"))
    if entry.name == "ask.prefix_hit":
        rules.append((f"IFERROR({cell('ask.isl')}*(1-{at})<1-1E-9,0)", "leaves less than one token to prefill"))
    if entry.name == "ask.accepted_length":
        rules.append((f"IFERROR({at}>{cell('ask.draft_tokens')}+1,0)", "more than the drafts and one token"))
    if not entry.name.startswith(("ask.", "target.")):
        rules += far(entry, at)
    text = '""'
    for condition, sentence in reversed(rules):
        text = f"IF({condition},{quoted(sentence)},{text})"
    return text


def far(entry: Entry, at: str) -> list[tuple[str, str]]:
    """Condition and sentence of a value so far from what was written that its unit is in doubt; none for a zero."""
    ranged = entry.low != entry.high
    low, high = (entry.low, entry.high) if ranged else (float(entry.value), float(entry.value))
    if high <= 0:
        return []
    factor, unit = FAR_FROM_RANGE if ranged else FAR_FROM_VALUE, "" if entry.unit == "1" else f" {entry.unit}"
    written = f"{low:.4g} to {high:.4g}" if ranged else f"{high:.4g}"
    return [(f"OR({at}*{factor}<{low!r},{at}>{high!r}*{factor})", f"{FAR} {written}{unit}: check the unit")]


def words_of(name: str) -> tuple[str, str]:
    """(table, column) of the words of a choice."""
    table = WORDS[name]
    return table, "arrivals" if table == "arrivals" else "format"


def outside(at: str, bounds: Bounds) -> str:
    """The cell is no number, or none within the bounds; safe on texts and errors."""
    floor = f'COUNTIF({at},"{">" if bounds.above else ">="}{bounds.least:G}")'
    tests = f"{floor}=0"
    if bounds.most < LARGEST:
        tests = f'{floor}+COUNTIF({at},"<={bounds.most:.16G}")<2'
    return f"IF({tests},1,{not_whole(at, int(bounds.least))})" if bounds.whole else tests


def phrase(bounds: Bounds) -> str:
    """'a whole number of at least 1'."""
    kind = "a whole number" if bounds.whole else "a number"
    floor = f"above {bounds.least:G}" if bounds.above else f"of at least {bounds.least:G}"
    return f"{kind} {floor}" + (f" and at most {bounds.most:.16G}" if bounds.most < LARGEST else "")


def allowed(entry: Entry) -> dict[str, Any]:
    """What the spreadsheet itself refuses while typing."""
    if entry.role == "word":
        return {"validate": "list", "source": "=" + named("ok", *words_of(entry.name))}
    if entry.role != "edit":
        return {}
    if entry.name in LISTED:
        return {"validate": "list", "source": "=" + named("ok", LISTED[entry.name], "legal")}
    bounds = entry.bounds
    told = {"error_title": entry.name[:32], "error_message": f"must be {phrase(bounds)}"}
    kind = {"validate": "integer" if bounds.whole else "decimal", "ignore_blank": False}
    if bounds.above:
        return {**kind, **told, "criteria": ">", "value": bounds.least}
    if bounds.most < LARGEST:
        return {**kind, **told, "criteria": "between", "minimum": bounds.least, "maximum": bounds.most}
    return {**kind, **told, "criteria": ">=", "value": bounds.least}
