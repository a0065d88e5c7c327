"""What the cases of a claim tell and do not tell, in sentences."""

from __future__ import annotations

import math
from typing import Any

from planner.evidence.claim_file import METRICS, NEEDED, Claim

APART = 0.9
"""Largest in this share of the cases that hold: then a change may be called the largest."""


def notes(
    claim: Claim, counts: dict[str, Any], shares: dict[str, Any], cases: list[dict[str, Any]], length: Any
) -> list[str]:
    """Sentences, most important first."""
    found = [f"{counts['count']:,} of the {counts['of']:,} cases that fit meet every stated ratio within its tolerance"]
    if counts["left_out"]:
        found[0] += (
            f"; {counts['left_out']:,} of {counts['cases']:,} do not fit in memory or miss a target before or after"
        )
    if counts["count"]:
        found += [*excluded(claim, counts), *largest(claim, cases), *unknown(claim, shares), *alone(claim, cases)]
    else:
        found.append(nearest_case(claim, cases))
    found += [under_loads(claim, metric, cases) for metric in claim.claimed]
    found.append(
        "gains neither add up nor multiply: what a change brings depends on the others, so parts are means over orders"
    )
    for metric, ratio in claim.claimed.items():
        read = any(choice.means for axis in claim.assumptions.values() for choice in axis.choices.values())
        taken = "" if read else f"; taken as {METRICS[metric][1]}"
        found.append(f"not stated for {metric}: {ratio.unstated}{taken}")
    return found + (growth(length) if length else [])


def quoted(names: list[str]) -> str:
    """Names as a phrase."""
    return ", ".join(f"'{name}'" for name in names)


def excluded(claim: Claim, counts: dict[str, Any]) -> list[str]:
    """Per assumption: choices under which the claim never holds, and those that stay open."""
    found, open_ones = [], []
    for axis, choices in counts["by_assumption"].items():
        never = [name for name, count in choices.items() if not count["holds"]]
        still = [name for name, count in choices.items() if count["holds"]]
        title = claim.assumptions[axis].title
        if never and len(choices) > 1:
            found.append(f"{title}: in this grid the claim never holds with {quoted(never)}")
        if len(still) > 1:
            open_ones.append(f"{title} ({len(still)} choices)")
    if open_ones:
        found.append("not identifiable, several choices can hold: " + "; ".join(open_ones))
    return found


def largest(claim: Claim, cases: list[dict[str, Any]]) -> list[str]:
    """Which change is the largest part of a figure, and in how many of the cases that hold."""
    found = []
    holding = [case for case in cases if case["holds"]]
    for metric in claim.claimed:
        wins = dict.fromkeys(claim.changes, 0)
        for case in holding:
            parts = case[metric]["shapley"]
            wins[max(parts, key=lambda name: abs(parts[name]))] += 1
        best = max(wins, key=lambda name: wins[name])
        if wins[best] >= APART * len(holding):
            found.append(f"{metric}: {best} ({claim.changes[best].title}) is the largest part in {wins[best]} of them")
        else:
            split = ", ".join(f"{name} in {count}" for name, count in wins.items())
            found.append(f"{metric}: not identifiable which change is the largest part: {split} of {len(holding)}")
    return found


def unknown(claim: Claim, shares: dict[str, Any]) -> list[str]:
    """Which pairs of changes have ranges of shares that overlap."""
    found = []
    for metric in claim.claimed:
        bands, names = shares[metric], list(shares[metric])
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1:]
                 if bands[a]["p10"] <= bands[b]["p90"] and bands[b]["p10"] <= bands[a]["p90"]]  # fmt: skip
        if pairs:
            said = ", ".join(f"{a} and {b}" for a, b in pairs)
            found.append(f"{metric}: the ranges of the shares overlap for {said}: their order is not identifiable")
    return found


def alone(claim: Claim, cases: list[dict[str, Any]]) -> list[str]:
    """Whether one change alone gives a stated ratio in some case that holds."""
    found = []
    for metric, stated in claim.claimed.items():
        enough = [name for name in claim.changes if any(
            case["holds"] and abs(case[metric]["alone"][name] - stated.ratio) <= stated.tolerance for case in cases
        )]  # fmt: skip
        who = f"{' or '.join(enough)} alone would do in some of them" if enough else "no change alone gives it"
        found.append(f"{metric}: {who}")
    return found


def under_loads(claim: Claim, metric: str, cases: list[dict[str, Any]]) -> str:
    """All changes together at the reference, one load after another: a fixed batch and a fixed target differ."""
    loads = {axis for axis, found in claim.assumptions.items()
             if any(choice.says(NEEDED["load"]) for choice in found.choices.values())}  # fmt: skip
    first = {axis: next(iter(found.choices)) for axis, found in claim.assumptions.items() if axis not in loads}
    said = []
    for case in cases:
        if all(case["assumptions"][axis] == choice for axis, choice in first.items()):
            load = ", ".join(case["assumptions"][axis] for axis in loads)
            said.append(f"{load} x {case[metric]['together']:.2f}" if case["fits"] else f"{load} does not fit")
    return f"{metric}, all together at the reference by load: " + "; ".join(said)


def nearest_case(claim: Claim, cases: list[dict[str, Any]]) -> str:
    """The case whose ratios are nearest to the stated ones."""

    def distance(case: dict[str, Any]) -> float:
        return max(abs(case[m]["together"] - r.ratio) / r.tolerance for m, r in claim.claimed.items())

    fitting = [case for case in cases if case["fits"]]
    if not fitting:
        return "no case fits: nothing can be said"
    best = min(fitting, key=distance)
    said = ", ".join(f"{metric} {best[metric]['together']:.3g}" for metric in claim.claimed)
    return f"the nearest case gives {said}: " + "; ".join(f"{k}: {v}" for k, v in best["assumptions"].items())


def growth(length: dict[str, Any]) -> list[str]:
    """How far growth stays within what is stated."""
    found = []
    for part, what in (("prompt_s", "time of a prompt"), ("step_s", "time of a decode step")):
        worst = max(row[part.replace("_s", "_exponent")] for row in length["rows"][1:])
        reached = length["within"][part]
        if reached == length["rows"][-1]["tokens"]:
            verdict = f"grows by at most the power {worst:.2f} up to {reached:,} tokens: as stated"
        else:
            verdict = (
                f"stays within the power {length['exponent']:g} up to {reached:,} tokens and reaches {worst:.2f}: "
                f"{times(length['rows'], part)}"
            )
        found.append(f"length: {what} {verdict}")
    return found


def times(rows: list[dict[str, Any]], part: str) -> str:
    """'1,024k tokens cost 693 times 8k, 128 times as many'."""
    many, more = rows[-1]["tokens"] // rows[0]["tokens"], rows[-1][part] / rows[0][part]
    assert math.isfinite(more)
    return f"{many} times the length takes {more:,.0f} times as long"
