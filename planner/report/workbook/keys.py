"""Formulas of a layout's keys: what follows from others, and the sentence of what is illegal.

The rules themselves are in planner.layout; here values are only looked up in the tables it worked out. What stands as a
formula is definitions: chips = TP x DP x CP x PP, EP x ETP = TP x DP x CP, redundant experts in steps of EP, replicas
that fit the chips lent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from planner.evaluate.inputs import full_length
from planner.layout import Layout
from planner.report.workbook.formula import formula, quoted, written
from planner.report.workbook.names import named

Cell = Callable[[str], str]
"""Dotted name of an input -> the cell or defined name that holds it."""


def symbol(name: str) -> Any:
    """A symbol of a dotted name, for definitions that are functions elsewhere."""
    return sympy.Symbol(name, real=True)


LAYOUT = Layout(*(symbol(f"layout.{key}") for key in Layout._fields))


def lookup(table: str, by: str, column: str, value: str) -> str:
    """What a table has in a column beside a value."""
    return f"INDEX({named('ok', table, column)},MATCH({value},{named('ok', table, by)},0))"


def following(cell: Cell) -> dict[str, str]:
    """Dotted name -> formula of what follows from other inputs."""
    return {
        "ask.length": formula(full_length(symbol("ask.isl"), symbol("ask.osl")), cell, "ask.length"),
        "ask.kv_value_bytes": "=" + lookup("kv_format", "format", "bytes", cell("ask.kv_format")),
        "ask.state_value_bytes": "=" + lookup("state_format", "format", "bytes", cell("ask.state_format")),
        "layout.chips": formula(LAYOUT.chips, cell, "layout.chips"),
    }


def usual(cell: Cell, moe: bool) -> dict[str, str]:
    """Dotted name -> formula a key has unless somebody writes over it."""
    replicas = f"=INT({cell('layout.lent')}/{cell('layout.chips')})"
    if not moe:
        return {"layout.replicas": replicas}
    return {
        "layout.etp": f"=({written(LAYOUT.stage_chips, cell)})/{cell('layout.ep')}",
        "layout.red": "=" + lookup("ep", "ep", "red", cell("layout.ep")),
        "layout.replicas": replicas,
    }


def held(name: str, cell: Cell) -> str:
    """Formula of 'layout.stage0.GROUP': what the table of pipelines has for this PP."""
    return "=" + lookup("pp", "pp", name.removeprefix("layout."), cell("layout.pp"))


def not_whole(cell: str, least: int) -> str:
    """The cell holds anything but a whole number of at least `least`; safe on texts and errors."""
    return f'IF(COUNTIF({cell},">={least}")=0,1,{cell}<>INT({cell}))'


def problem(cell: Cell, moe: bool, chips: int, before: str = "", otherwise: str = '""') -> str:
    """Formula of the first rule a layout breaks, or the formula `otherwise`. chips: those of the system.

    before: a cell with a sentence that goes first.
    """
    at = {key: cell(f"layout.{key}") for key in (*Layout._fields, "replicas", "lent", "chips")}
    stage = written(LAYOUT.stage_chips, cell)
    tests: list[tuple[str, str]] = [(f'{before}<>""', before)] if before else []
    for key, what in (("tp", "TP"), ("dp", "DP"), ("cp", "CP"), ("pp", "PP"), ("dcp", "DCP"), ("ep", "EP"),
                      ("lent", "chips lent")):  # fmt: skip
        tests.append((not_whole(at[key], 1), quoted(f"{what} must be a whole number of at least 1")))
    load = cell("ask.concurrency")
    tests.append((not_whole(load, 1), quoted("the batch must be a whole number of at least 1: 8k is 8192")))
    tests += [
        (f"{at['lent']}>{chips}", f'{at["lent"]}&" chips are lent, and the system has {chips}"'),
        (f"{at['chips']}>{at['lent']}", f'{at["lent"]}&" chips cannot hold a layout of "&{at["chips"]}'),
        (not_whole(at["replicas"], 1), quoted("replicas must be a whole number of at least 1")),
        (
            f"{at['replicas']}*{at['chips']}>{at['lent']}",
            f'{at["replicas"]}&" replicas of "&{at["chips"]}&" chips are more than the chips lent"',
        ),
        *judged("tp", at["tp"]),
        *judged("pp", at["pp"]),
        (
            f'COUNTIF({named("ok", "tp_dcp", "key")},"TP"&{at["tp"]}&" DCP"&{at["dcp"]})=0',
            f'"DCP"&{at["dcp"]}&" does not split the cache of TP"&{at["tp"]}&"; use DCP of "&'
            + lookup("tp", "tp", "dcp", at["tp"]),
        ),
        *judged("ep", at["ep"]),
    ]
    least, most = (lookup("ep", "ep", column, at["ep"]) for column in ("red", "most_red"))
    steps = f"(({at['red']}-{least})/{at['ep']})"
    whole = "EP does not divide the chips of a stage, TP x DP x CP"
    if moe:
        product = f"{at['ep']}*{at['etp']}"
        tests += [
            (not_whole(at["etp"], 1), quoted(whole)),
            (
                f"{product}<>{stage}",
                f'"EP"&{at["ep"]}&" x ETP"&{at["etp"]}&" is "&{product}&", and a stage has TP x DP x CP = "&{stage}',
            ),
        ]
    tests += [
        *judged("etp", at["etp"]),
        (
            f"IF({not_whole(at['red'], 0)},1,IF({at['red']}>{most},1,{steps}<>INT({steps})))",
            f'"RED"&{at["red"]}&" does not make the experts divide over EP"&{at["ep"]}&"; use RED"&{least}',
        ),
    ]
    text = otherwise
    for condition, sentence in reversed(tests):
        text = f"IF({condition},{sentence},{text})"
    return text


def judged(key: str, value: str) -> list[tuple[str, str]]:
    """A key's own table: outside it, or a value it refuses in a sentence."""
    sentence = lookup(key, key, "problem", value)
    outside = f'"{key.upper()}"&{value}&" is more than the chips of the system"'
    return [(f"COUNTIF({named('ok', key, key)},{value})=0", outside), (f'{sentence}<>""', sentence)]
