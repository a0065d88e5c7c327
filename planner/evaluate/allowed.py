"""Which layout values a workbook may take, as tables worked out by the rules of planner.layout.

A table is looked up by its first column. `problem` is empty where the value is legal, else the sentence of the rule it
breaks; keys such as 'TP8 DCP4' are the legal pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

from planner.kinds.formats import CHOICES, value_bytes
from planner.layout import (
    Layout,
    Problem,
    context_problem,
    divisors,
    expert_problem,
    fewest_redundant,
    head_problem,
    head_refusal,
    listed,
    routed,
    stage_problem,
    width_problem,
)
from planner.specs.model import Model
from planner.specs.workload import Arrivals, Workload
from planner.stages import groups, heaviest

STATE_FORMATS = get_args(Workload.model_fields["state_format"].annotation)


@dataclass(frozen=True)
class Table:
    """A table of legal values: what it is, and its columns by name."""

    sentence: str
    columns: dict[str, list[Any]]


def told(problem: Problem | None) -> str:
    """A problem as a sentence, '' where there is none."""
    return f"{problem[1]}; {problem[2]}" if problem else ""


def judged(name: str, values: Iterable[int], problems: list[str]) -> dict[str, list[Any]]:
    """Columns of a key: every value, the legal ones alone, what is wrong with the others."""
    every = list(values)
    legal = [value for value, problem in zip(every, problems, strict=True) if not problem]
    return {name: every, "legal": legal, "problem": problems}


def stages_in(model: Model, chips: int) -> int:
    """The most heaviest stages of any pipeline on this many chips."""
    return max(len(heaviest(model, pp)) for pp in legal_pp(model, chips))


def legal_pp(model: Model, chips: int) -> list[int]:
    """Pipelines that fit on this many chips."""
    return [pp for pp in range(1, chips + 1) if not stage_problem(pp, model)]


def tables(model: Model, chips: int, slots: int) -> dict[str, Table]:
    """Every table of a model on a system of `chips`; pipeline stages are padded to `slots`."""
    return {**tensor(model, chips), **expert(model, chips), "pp": pipeline(model, chips, slots), **words()}


def tensor(model: Model, chips: int) -> dict[str, Table]:
    """TP by heads and widths; which DCP finds copies of the cache to split."""
    degrees = range(1, chips + 1)
    advice = next((problem[2] for tp in degrees if (problem := head_problem(tp, model))), "")
    heads = [head_refusal(tp, model) for tp in degrees]
    wrong = [
        told(("heads", what, advice) if what else width_problem(tp, model))
        for tp, what in zip(degrees, heads, strict=True)
    ]
    splits = {
        tp: tuple(dcp for dcp in divisors(tp) if not context_problem(Layout(tp=tp, dcp=dcp), model))
        for tp, problem in zip(degrees, wrong, strict=True)
        if not problem
    }
    return {
        "tp": Table(
            "TP: attention heads and widths of feed-forwards",
            {**judged("tp", degrees, wrong), "dcp": [listed(splits.get(tp, ())) for tp in degrees]},
        ),
        "tp_dcp": Table(
            "DCP: ranks of TP that hold the same cache",
            {"key": [f"TP{tp} DCP{dcp}" for tp, ways in splits.items() for dcp in ways]},
        ),
    }


def expert(model: Model, chips: int) -> dict[str, Table]:
    """EP with the fewest and the most redundant experts that make it legal, ETP."""
    ranks = range(1, chips + 1)
    least = [fewest_redundant(ep, model) for ep in ranks]
    filled = [Layout(dp=ep, ep=ep, red=red) for ep, red in zip(ranks, least, strict=True)]
    wrong = [told(expert_problem(layout, model)) for layout in filled]
    inside = [told(expert_problem(Layout(dp=etp, etp=etp), model)) for etp in ranks]
    most = min((experts for _, experts, _, _ in routed(model)), default=0)
    last = [max([red, *range(red, most + 1, ep)]) for ep, red in zip(ranks, least, strict=True)]
    return {
        "ep": Table(
            "EP: experts and redundant experts, from the fewest in steps of EP",
            {**judged("ep", ranks, wrong), "red": least, "most_red": last},
        ),
        "etp": Table("ETP: width of an expert", judged("etp", ranks, inside)),
    }


def pipeline(model: Model, chips: int, slots: int) -> Table:
    """PP with what its heaviest stages hold, padded by repeating the first."""
    degrees = range(1, chips + 1)
    columns = judged("pp", degrees, [told(stage_problem(pp, model)) for pp in degrees])
    held = [heaviest(model, pp) if not stage_problem(pp, model) else [] for pp in degrees]
    for slot in range(slots):
        for group in groups(model):
            columns[f"stage{slot}.{group}"] = [
                float(stages[slot if slot < len(stages) else 0][group]) if stages else None for stages in held
            ]
    return Table("PP: layers, and what the heaviest stages hold", columns)


def words() -> dict[str, Table]:
    """Formats with the bytes of a value, arrivals."""
    formats = {"kv_format": CHOICES, "state_format": STATE_FORMATS}
    return {
        **{
            name: Table(
                "format and bytes of a value", {"format": [*words], "bytes": [value_bytes(word) for word in words]}
            )
            for name, words in formats.items()
        },
        "arrivals": Table("how requests arrive", {"arrivals": [*get_args(Arrivals)]}),
    }
