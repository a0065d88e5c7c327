"""Why a number is what it is: operators, named quantities, formulas on request, growth with context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from planner.errors import BadInput, UnknownName, nearest
from planner.evaluate import breakdown
from planner.evaluate.case import Point, check_load, placed, point_of
from planner.evaluate.estimate import HEADLINES, check_says, run
from planner.evaluate.inputs import LENGTHS, Case, Leaf, given, setting
from planner.evaluate.results import Result
from planner.evaluate.targets import METRICS
from planner.kinds.formats import FormatName
from planner.layout import Layout
from planner.quantities import Say
from planner.specs.hardware import System
from planner.specs.model import Model
from planner.specs.stack import Stack
from planner.specs.workload import Workload

SHORTEST = 8192
FAR = 1024
"""Times the model's context: a prompt so long that what grows only linearly, as windows and choices do, is nothing."""
GROWS = 3
"""Arithmetic of twice the prompt over that of one: near 2 where linear, near 4 where quadratic."""
RATED: tuple[FormatName, ...] = ("bf16", "fp8", "mxfp4", "int8")

HEADLINE_NAMES = {**HEADLINES, **{name: metric.quantity for name, metric in METRICS.items() if metric.quantity}}
"""What people call a headline -> the quantity behind it; a target of `solve` is called the same here."""


@dataclass(frozen=True)
class Explanation(Result):
    """`planner explain`.

    quantities: name -> {value, unit, sentence, reference, and formula and latex where asked}. inputs: what all of them
    read, or, where one quantity is asked for, what that one reads; references likewise. closed_form: the quantity as
    one formula in the inputs asked for: {inputs, formula, numpy, latex}. model: facts of the
    model that need no layout. growth: per context the time of every part, and its exponent between neighbours.
    elasticities: input -> headline -> d ln headline / d ln input; kinks: where the two sides differ. one_more: what one
    more request in every attention group does. tornado: headline
    -> what each source of uncertainty does; narrow_most: headline -> the source to measure. Empty unless asked for.
    """

    model_name: str
    system: str
    stack: str
    layout: str
    concurrency: int
    model: dict[str, float]
    breakdown: list[dict[str, Any]]
    bounds: dict[str, float]
    roofline: dict[str, float]
    fits: bool
    max_concurrency: int
    quantity: str | None
    quantities: dict[str, dict[str, Any]]
    inputs: dict[str, dict[str, Any]]
    references: list[str]
    closed_form: dict[str, Any] | None
    growth: list[dict[str, Any]]
    elasticities: dict[str, dict[str, float | None]]
    kinks: list[dict[str, Any]]
    one_more: dict[str, Any]
    tornado: dict[str, list[dict[str, Any]]]
    narrow_most: dict[str, dict[str, Any]]


def explain(
    model: str | Model,
    system: str | System,
    layout: str | Layout,
    workload: Workload,
    *,
    stack: str | Stack | None = None,
    chips: int | None = None,
    quantity: str | None = None,
    growth: bool = False,
    formulas: bool = False,
    closed_form: Sequence[str] | None = None,
    sensitivities: bool = False,
    tornado: bool = False,
    draws: int | None = None,
) -> Explanation:
    """The step and the prefill of one layout as operators and named quantities. Raises BadInput leaves.

    quantity: one of them, by its name or as a headline (tpot, decode.tpot_s), with all that it is made of. closed_form:
    inputs, or `specs` or `all`, in which to write it as one formula, every other input at its number.

    sensitivities, tornado: also how strongly inputs move the headlines, and what the estimated ones' ranges do.
    """
    case, found, _, point = placed(model, system, layout, workload, stack, chips)
    say, on = run(point)
    rows = breakdown.rows(say, on)
    q = {name: item.value for name, item in say.rows.items()}
    asked = HEADLINE_NAMES.get(quantity, quantity) if quantity is not None else None
    if asked in METRICS:
        parts = ", ".join(METRICS[asked].rows(point, list(say.rows)))
        raise BadInput("--quantity", f"{asked} is a share worked out from {parts}", "name one of these")
    if asked is not None and asked not in say.rows:
        raise UnknownName("--quantity", f"unknown quantity {quantity!r}", nearest(asked, [*HEADLINE_NAMES, *say.rows]))
    check_says([asked] if asked else [], workload.osl)
    if closed_form is not None and asked is None:
        raise BadInput("--closed-form", "needs one quantity", "name it with --quantity, such as --quantity tpot")
    book = sheet_of(point) if formulas or asked else None
    described = quantities(say, book, asked, formulas)
    used = inputs_of(book, asked) if book and asked else set(point.values)
    return Explanation(
        model_name=case.model.name,
        system=case.system.name,
        stack=case.stack.name,
        layout=str(found),
        concurrency=check_load(workload),
        model=facts(case, point),
        breakdown=rows,
        bounds=breakdown.bounds(rows, q["serving_steps"], q["group"]),
        roofline=roofline(case),
        fits=q["memory_slack_bytes"] >= 0,
        max_concurrency=int(q["memory_max_concurrency"]),
        quantity=asked,
        quantities=described,
        inputs={name: asdict(point.leaves.get(name) or of_layout(value)) for name, value in point.values.items()
                if name in used},
        references=sorted({say.rows[name].reference for name in described if say.rows[name].reference}),
        closed_form=written_in(closed_form, case, book, str(asked), say, point) if closed_form is not None else None,
        growth=growing(case, found, workload) if growth else [],
        **moved_by(point, sensitivities, tornado, draws),
    )  # fmt: skip


def moved_by(point: Point, sensitivities: bool, tornado: bool, draws: int | None) -> dict[str, Any]:
    """What moves the headlines, as far as it is asked for."""
    found: dict[str, Any] = {"elasticities": {}, "kinks": [], "one_more": {}, "tornado": {}, "narrow_most": {}}
    if sensitivities:
        from planner.evaluate.elasticity import elasticities, one_more

        known = elasticities(point)
        found |= {"elasticities": known.values, "kinks": known.kinks, "one_more": one_more(point)}
    if tornado:
        from planner.evaluate import tornado as bars
        from planner.evaluate.ranges import draws_of

        found |= {"tornado": bars.tornado(point), "narrow_most": bars.narrow_most(point, draws_of(draws))}
    return found


def of_layout(value: float) -> Leaf:
    """A number of the layout: its keys and what its stages hold."""
    return replace(given(value, "1"), source="layout")


def sheet_of(point: Point) -> Any:
    """The formulas of a deployment over symbols."""
    from planner.evaluate.sheet import build

    return build(point.shape, list(point.values), point.raw)


def inputs_of(book: Any, name: str) -> set[str]:
    """The inputs a quantity and all it is made of read."""
    read = {str(symbol) for row in book.needs((name,)) for symbol in book.expression(row).free_symbols}
    found = {dotted for dotted, symbol in book.inputs.items() if symbol in read}
    return found | LENGTHS if "ask.length" in found else found


def quantities(say: Say, book: Any, only: str | None, formulas: bool) -> dict[str, dict[str, Any]]:
    """Every named quantity, or one with what it is made of."""
    found = {}
    for name in say.rows if only is None else book.needs((only,)):
        row = say.rows[name]
        found[name] = {"value": row.value, "unit": row.unit, "sentence": row.sentence, "reference": row.reference}
        if formulas:
            from planner.evaluate.formula_text import latex, unicode

            expression = book.expression(name)
            found[name] |= {"formula": unicode(expression), "latex": latex(name, expression)}
    return found


def written_in(asked: Sequence[str], case: Case, book: Any, name: str, say: Say, point: Point) -> dict[str, Any]:
    """One quantity as one formula in the inputs asked for. Raises UnknownName, BadInput."""
    from planner.evaluate.closed_form import closed_form, kept
    from planner.evaluate.compiled import NumpyPrinter
    from planner.evaluate.formula_text import latex, unicode
    from planner.evaluate.variables import dotted

    keep = kept(asked, lambda word: dotted(word, case), inputs_of(book, name), point.values)
    form = closed_form(book, name, point.values, {key: row.value for key, row in say.rows.items()}, keep)
    return {
        "inputs": sorted(keep), "formula": unicode(form), "numpy": NumpyPrinter().doprint(form),
        "latex": latex(name, form),
    }  # fmt: skip


def facts(case: Case, point: Point) -> dict[str, float]:
    """Arithmetic of the model alone: products per token without the head, and where attention passes them.

    Growing attention does a T^2 FLOP over a prompt of T, products b T: they meet at T = b / a. a is the second
    difference of a far prompt, (f(2T) - 2 f(T)) / 2 T^2, so that windows and top-k choices, which saturate, stay out.
    """
    from planner.evaluate.totals import totals
    from planner.kinds.attention import ATTENTION

    on = setting(point.shape, point.values, point.raw)
    sums = totals(case.model)
    head = sums.params_by_group.get("head", sums.params_by_group["embedding"])
    products = on.constant.multiply_add_flops * (sums.active_params - head)
    square, far = 0.0, float(case.model.max_context * FAR)
    for name, group in case.model.attention.items():
        core = ATTENTION[group.kind].core_flops
        once, twice = core(on.groups[name], far, on), core(on.groups[name], 2 * far, on)
        if twice > GROWS * once:
            square += on.count[name] * (twice - 2 * once) / (2 * far**2)
    meet = products / square if square else math.inf
    return {
        "gemm_flops_per_token_without_head": products,
        "attention_flops_per_token_squared": square,
        **({"attention_passes_gemm_at_tokens": meet} if square else {}),
    }


def roofline(case: Case) -> dict[str, float]:
    """The roofs of the chip: bandwidth and peak rates it has."""
    found = {"memory_bandwidth_bytes_per_s": case.chip.memory_bandwidth.value}
    for format in RATED:
        rate = case.chip.rate(format)
        if rate is not None:
            found[f"{format}_flops_per_s"] = rate.value
    return found


def growing(case: Case, layout: Layout, workload: Workload) -> list[dict[str, Any]]:
    """Decode step at a context and prefill of a prompt as long, part by part, doubling from 8k to the model's limit.

    exponent: d ln t / d ln context between a context and the one before: 0 constant, 1 linear, 2 quadratic.
    """
    found: list[dict[str, Any]] = []
    context = SHORTEST
    while context <= case.model.max_context:
        asked = workload.model_copy(update={"isl": context, "osl": 1})
        say, on = run(point_of(case, layout, asked))
        parts: dict[tuple[str, str], float] = {}
        for row in breakdown.rows(say, on):
            key = (row["phase"], row["operator"].split(".")[0] if row["operator"] != "overlap" else "overlap")
            key = (row["phase"], row["operator"]) if row["operator"].endswith(".core") else key
            parts[key] = parts.get(key, 0.0) + row["time_s"]
        parts["decode", "whole step"] = say.rows["decode_step_s"].value
        parts["prefill", "whole prompt"] = say.rows["prefill_idle_s"].value
        before = found[-1] if found else None
        found.append({"context": context, "parts": [
            {"phase": phase, "part": part, "time_s": time, "exponent": exponent(before, phase, part, time, context)}
            for (phase, part), time in parts.items()
        ]})  # fmt: skip
        context *= 2
    return found


def exponent(before: dict[str, Any] | None, phase: str, part: str, time: float, context: int) -> float | None:
    """Growth of one part since the context before."""
    if before is None:
        return None
    earlier = [row["time_s"] for row in before["parts"] if (row["phase"], row["part"]) == (phase, part)]
    if not earlier or earlier[0] <= 0 or time <= 0:
        return None
    return math.log(time / earlier[0]) / math.log(context / before["context"])
