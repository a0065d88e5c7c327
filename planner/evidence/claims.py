"""What a claimed speed-up would need to be true, over everything the statement leaves open.

Every set S of changes is priced under every case of the assumptions, all on arrays:

    v(S)    = ln( figure with S / figure with none )                       per claimed figure
    part_i  = sum over S without i of |S|! (n - |S| - 1)! / n!  ( v(S + i) - v(S) )          Shapley: mean over orders
    share_i = part_i / v(all)                                              the parts add up to v(all) exactly

A case holds where every claimed ratio is met within its tolerance. A case is left out where some S does not fit in
memory or misses a target for the decode step at the smallest batch. With a target each S runs the largest batch that
meets it, so a faster step also buys a larger batch.
Reference: L. Shapley, A value for n-person games, 1953.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import factorial
from typing import Any

import numpy as np

from planner.errors import BadInput, BadSpec
from planner.evaluate.case import Point, case_of, check_chips, check_workload, point_of
from planner.evaluate.grid import columns, evaluate, slots_needed
from planner.evaluate.grouped import structure_key
from planner.evaluate.inputs import Case, full_length
from planner.evaluate.results import Result
from planner.evidence.claim_file import METRICS, QUESTION, SOFTWARE, Claim, Patch, Workshop, read_claim, seconds, tokens
from planner.evidence.claim_length import lengths
from planner.evidence.claim_notes import notes
from planner.layout import Layout

Array = np.ndarray[Any, np.dtype[Any]]
LIMITS = frozenset({"memory_slack_bytes", "memory_requests", "decode_step_s"})
PERCENTILES = (10, 50, 90)
ROUNDING = 1e-12
"""A log of a ratio below this is none: nothing to share."""


@dataclass(frozen=True)
class Claims(Result):
    """`planner claims`.

    cases: per case its assumptions, whether it fits and holds, per figure the ratio of each change alone, of all, and
    the parts of ln(all). holds: how many cases, by figure and by choice. shares: per figure and change the 10th, 50th
    and 90th percentile over the cases that hold. length: growth of prompt and step with the length.
    """

    claim: dict[str, Any]
    cases: list[dict[str, Any]]
    holds: dict[str, Any]
    shares: dict[str, dict[str, dict[str, float]]]
    verdict: str
    notes: list[str]
    length: dict[str, Any] | None


@dataclass
class Priced:
    """Figures by name, [set of changes, software, question], and which cases are feasible, [software, question]."""

    changes: list[str]
    found: dict[str, Array]
    feasible: Array
    choices: list[dict[str, str]]

    def ratios(self, metric: str) -> Array:
        """Figure over the figure with no change."""
        return self.found[metric] / self.found[metric][0]


def claims(name: str | None = None) -> Claims:
    """The shipped claim, or that of a file, over all its assumptions. Raises BadInput leaves."""
    claim, path = read_claim(name)
    shop = Workshop(claim, path)
    priced = price(shop)
    return answer(claim, priced, lengths(shop))


def software(shop: Workshop) -> tuple[list[tuple[str, ...]], list[list[tuple[str | None, ...]]]]:
    """(every combination of software choices; per set of changes the same, None where a change replaces the choice)."""
    axes = shop.claim.axes(SOFTWARE)
    whole = list(product(*(list(axis.choices) for axis in axes.values())))
    names = list(shop.claim.changes)
    kept = []
    for mask in range(2 ** len(names)):
        made = {name for i, name in enumerate(names) if mask >> i & 1}
        replaced = [axis.before in made for axis in axes.values()]
        kept.append([tuple(None if gone else c for c, gone in zip(combo, replaced, strict=True)) for combo in whole])
    return whole, kept


def patches(shop: Workshop, mask: int, choices: tuple[str | None, ...]) -> list[tuple[str, Patch]]:
    """What is laid over the baseline, in order: choices, those `before` a change, changes."""
    axes = shop.claim.axes(SOFTWARE)
    chosen = [(name, axis, choice) for (name, axis), choice in zip(axes.items(), choices, strict=True) if choice]
    chosen.sort(key=lambda item: item[1].before is not None)
    found: list[tuple[str, Patch]] = [(f"assumptions.{n}.choices.{c}", axis.choices[c]) for n, axis, c in chosen]
    names = list(shop.claim.changes)
    return found + [(f"changes.{n}", shop.claim.changes[n]) for i, n in enumerate(names) if mask >> i & 1]


def built(shop: Workshop, mask: int, choices: tuple[str | None, ...]) -> Case:
    """The deployment's records under a set of changes and choices. Raises BadSpec."""
    laid = patches(shop, mask, choices)
    try:
        return case_of(shop.model_of(laid), shop.system, shop.stack_of(laid))
    except BadSpec as error:
        if error.where == str(shop.path):
            raise
        raise BadSpec(str(shop.path), f"{error.where}: {error.what}", error.do) from None


@dataclass
class Question:
    """The columns every software runs: choices, layouts, and values by dotted name; step target or nan."""

    choices: list[dict[str, str]]
    layouts: list[Layout]
    values: dict[str, Array]
    target: Array
    means: list[dict[str, str]]

    @property
    def groups(self) -> Array:
        """Attention groups of each column."""
        return np.array([float(layout.dp) for layout in self.layouts])


def question(shop: Workshop, case: Case) -> Question:
    """Every combination of the choices that ask something. Raises BadSpec."""
    claim, path = shop.claim, shop.path
    axes = claim.axes(QUESTION)
    combos = [dict(zip(axes, combo, strict=True)) for combo in product(*(list(a.choices) for a in axes.values()))]
    said = []
    for combo in combos:
        chosen = [axes[axis].choices[choice] for axis, choice in combo.items()]
        said.append({key: getattr(choice, key) for choice in chosen for key in choice.says(QUESTION)})
    parsed: dict[str, Layout] = {}
    for text in {one["layout"] for one in said}:
        try:
            parsed[text] = Layout.parse(text, case.model)
            check_chips(case, parsed[text].chips, "the layout takes")
        except BadInput as error:
            raise type(error)(str(path), f"{error.where}: {error.what}", error.do) from None
    layouts = [parsed[one["layout"]] for one in said]
    base = shop.workload()
    isl = [tokens(one["isl"], path, "isl") for one in said]
    for length in set(isl):
        if length < 1:
            raise BadSpec(str(path), f"isl {length} is below 1", "give the tokens of a prompt")
        try:
            check_workload(case, base.model_copy(update={"isl": length}))
        except BadInput as error:
            raise type(error)(str(path), f"{error.where}: {error.what}", error.do) from None
    chips = [layout.chips for layout in layouts]
    values = columns(case.model, layouts, [1] * len(said), chips, slots_needed(case.model, layouts))
    values["ask.isl"] = np.array(isl, dtype=float)
    values["ask.length"] = full_length(values["ask.isl"], base.osl)
    each = np.array([one.get("requests_per_chip") or 0.0 for one in said])
    values["ask.concurrency"] = np.maximum(np.ceil(each * np.array(chips)), 1.0)
    ends = [one.get("chip", "central") for one in said]
    for name, leaf in point_of(case, layouts[0], base).leaves.items():
        if name.startswith("chip.") and leaf.uncertain:
            low, high = (leaf.high, leaf.low) if leaf.with_group.startswith("-") else (leaf.low, leaf.high)
            values[name] = np.array([{"low": low, "central": leaf.value, "high": high}[end] for end in ends])
    limits = [one.get("step_within") for one in said]
    target = np.array([np.nan if text is None else seconds(text, path, "step_within") for text in limits])
    return Question(combos, layouts, values, target, [one.get("means", {}) for one in said])


def price(shop: Workshop) -> Priced:
    """Every set of changes under every case."""
    whole, kept = software(shop)
    rows: dict[Any, int] = {}
    points: list[Point] = []
    asked: Question | None = None
    index = np.empty((len(kept), len(whole)), dtype=int)
    for mask, combos in enumerate(kept):
        for at, combo in enumerate(combos):
            if (mask, combo) not in rows:
                case = built(shop, mask, combo)
                asked = asked or question(shop, case)
                rows[mask, combo] = len(points)
                points.append(point_of(case, asked.layouts[0], shop.workload()))
            index[mask, at] = rows[mask, combo]
    assert asked is not None
    read = {metric: [means.get(metric, metric) for means in asked.means] for metric in shop.claim.claimed}
    wanted = {METRICS[figure][0] for figures in read.values() for figure in figures}
    found = solved(points, asked, frozenset(wanted) | LIMITS)
    at_column = {
        metric: np.stack([found[METRICS[figure][0]][:, i] for i, figure in enumerate(figures)], axis=1)
        for metric, figures in read.items()
    }
    axes = list(shop.claim.axes(SOFTWARE))
    order = list(shop.claim.assumptions)
    choices = [{**dict(zip(axes, combo, strict=True)), **column} for combo in whole for column in asked.choices]
    return Priced(
        changes=list(shop.claim.changes),
        found={metric: values[index] for metric, values in at_column.items()},
        feasible=np.logical_and.reduce(found["feasible"][index]),
        choices=[{axis: choice[axis] for axis in order} for choice in choices],
    )


def solved(points: list[Point], asked: Question, wanted: frozenset[str]) -> dict[str, Array]:
    """The wanted quantities, [point, column], at the batch asked for or the largest that meets the target."""
    size = (len(points), len(asked.layouts))
    found = {name: np.empty(size) for name in wanted}
    found["feasible"] = np.empty(size, dtype=bool)
    groups: dict[Any, list[int]] = {}
    for at, point in enumerate(points):
        groups.setdefault(structure_key(point), []).append(at)
    for members in groups.values():
        for name, value in solved_group([points[at] for at in members], asked, wanted).items():
            found[name][members] = value
    return found


def solved_group(points: list[Point], asked: Question, wanted: frozenset[str]) -> dict[str, Array]:
    """The same for points of one structure: theirs on the first axis, columns on the second."""
    first = points[0]
    names = [n for n in first.values if not n.startswith("layout.") and n not in asked.values]
    values: dict[str, Any] = {}
    for name in names:
        column = np.array([point.values[name] for point in points])[:, None]
        values[name] = float(column[0, 0]) if (column == column[0, 0]).all() else column
    values |= asked.values
    stages = 1 + max(int(n.removeprefix("layout.stage").partition(".")[0]) for n in values if "layout.stage" in n)
    shape, size = replace(first.shape, stages=stages), (len(points), len(asked.layouts))

    def run(concurrency: Array, names: frozenset[str]) -> dict[str, Array]:
        q = evaluate(shape, {**values, "ask.concurrency": concurrency}, first.raw, names)
        return {name: np.broadcast_to(value, size) for name, value in q.items()}

    held = run(asked.values["ask.concurrency"], frozenset({"memory_requests"}))["memory_requests"]
    aims = np.broadcast_to(np.isfinite(asked.target), size)
    low, high = np.ones(size), np.maximum(held, 1)
    while aims.any() and (high - low)[aims].max() > 0:
        middle = np.ceil((low + high) / 2)
        meets = run(middle * asked.groups, frozenset({"decode_step_s"}))["decode_step_s"] <= asked.target
        low, high = np.where(meets, middle, low), np.where(meets, high, middle - 1)
    q = run(np.where(aims, low * asked.groups, asked.values["ask.concurrency"]), wanted)
    late = aims & (q["decode_step_s"] > asked.target)
    return {**{name: q[name] for name in wanted}, "feasible": (q["memory_slack_bytes"] >= 0) & ~late}


def shapley(logs: Array) -> Array:
    """Parts of logs[-1], [change, ...], from logs[set of changes, ...] with logs[0] = 0."""
    count = int(np.log2(len(logs)))
    parts = np.zeros((count, *logs.shape[1:]))
    for i in range(count):
        for mask in range(len(logs)):
            if not mask >> i & 1:
                made = mask.bit_count()
                weight = factorial(made) * factorial(count - made - 1) / factorial(count)
                parts[i] += weight * (logs[mask | 1 << i] - logs[mask])
    return parts


def answer(claim: Claim, priced: Priced, length: dict[str, Any] | None) -> Claims:
    """Cases, counts, shares and what they tell."""
    names = priced.changes
    ratios = {metric: priced.ratios(metric).reshape(2 ** len(names), -1) for metric in claim.claimed}
    parts = {metric: shapley(np.log(ratio)) for metric, ratio in ratios.items()}
    fits = priced.feasible.reshape(-1)
    met = {m: fits & (abs(ratios[m][-1] - r.ratio) <= r.tolerance) for m, r in claim.claimed.items()}
    holds = np.logical_and.reduce(list(met.values()))
    cases = []
    for at, chosen in enumerate(priced.choices):
        case: dict[str, Any] = {"assumptions": chosen, "fits": bool(fits[at]), "holds": bool(holds[at])}
        for metric in claim.claimed if fits[at] else ():
            case[metric] = {
                "alone": {name: float(ratios[metric][1 << i, at]) for i, name in enumerate(names)},
                "together": float(ratios[metric][-1, at]),
                "shapley": {name: float(parts[metric][i, at]) for i, name in enumerate(names)},
            }
        cases.append(case)
    shares: dict[str, dict[str, dict[str, float]]] = {}
    for metric in claim.claimed:
        moved = holds & (abs(np.log(ratios[metric][-1])) > ROUNDING)
        whole = parts[metric][:, moved] / np.log(ratios[metric][-1, moved])
        shares[metric] = {
            name: {f"p{p}": float(np.percentile(whole[i], p)) for p in PERCENTILES}
            for i, name in enumerate(names) if moved.any()
        }  # fmt: skip
    counts = {
        "count": int(holds.sum()), "of": int(fits.sum()), "cases": len(cases), "left_out": int((~fits).sum()),
        "by_figure": {metric: int(found.sum()) for metric, found in met.items()},
        "by_assumption": by_assumption(claim, priced.choices, holds, fits),
    }  # fmt: skip
    stated = {
        **claim.model_dump(include={"name", "title", "source", "url", "date", "note", "model", "system", "baseline"}),
        "claimed": {m: {**r.model_dump(), "meaning": METRICS[m][1]} for m, r in claim.claimed.items()},
        "changes": {name: change.title for name, change in claim.changes.items()},
        "assumptions": {axis: found.title for axis, found in claim.assumptions.items()},
    }
    told = notes(claim, counts, shares, cases, length)
    return Claims(stated, cases, counts, shares, verdict(claim, counts, cases[0]), told, length)


def verdict(claim: Claim, counts: dict[str, Any], reference: dict[str, Any]) -> str:
    """The answer in one sentence."""
    holds, of = counts["count"], counts["of"]
    if not of:
        return "no case fits: nothing can be said"
    if not holds:
        return f"not reproduced: none of the {of:,} cases that fit meets every stated ratio"
    if holds == of:
        return f"holds in every one of the {of:,} cases that fit"
    found = ", ".join(
        f"{metric} x {reference[metric]['together']:.3g}" for metric in claim.claimed if metric in reference
    )
    does = "meets them" if reference["holds"] else "does not"
    case = f"the reference case {does} ({found})" if found else "the reference case does not fit"
    share = f"{holds:,} of the {of:,} cases that fit ({holds / of * 100:.2g} %)"
    return f"possible, not shown: {share} meet every stated ratio; {case}"


def by_assumption(claim: Claim, choices: list[dict[str, str]], holds: Array, fits: Array) -> dict[str, Any]:
    """Per assumption and choice how many cases hold, of how many."""
    found: dict[str, Any] = {}
    for axis, assumption in claim.assumptions.items():
        chosen = np.array([choice[axis] for choice in choices])
        found[axis] = {
            name: {"holds": int((holds & (chosen == name)).sum()), "of": int((fits & (chosen == name)).sum())}
            for name in assumption.choices
        }
    return found
