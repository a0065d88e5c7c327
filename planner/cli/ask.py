"""The interview: asks for what a plan needs, tells what fits on the way, ends in the plan and the equivalent command.

Every question is declared in `answers`. The terminal library and the formulas are imported once a terminal is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from planner.cli import answers as a
from planner.errors import BadInput, ExitCode, PlannerError
from planner.units import show

DONE = "done"
DEPLOYMENT = ("model", "system", "stack")
REQUEST = (*DEPLOYMENT, "isl", "osl", "kv_dtype", "state_dtype")
HEADLINES: tuple[tuple[str, str, Callable[[Any], float | None]], ...] = (
    ("batch", "1", lambda best: best.concurrency),
    ("TTFT", "s", lambda best: best.serving.ttft_s),
    ("TPOT", "s", lambda best: best.decode.tpot_s),
    ("tok/s per chip", "1/s", lambda best: best.serving.tok_s_per_chip),
    ("tok/s per user", "1/s", lambda best: best.decode.tok_s_per_user),
    ("$/M output", "USD", lambda best: best.cost.usd_per_million_output_tokens),
)
"""(label, unit, value of an estimate) of what a changed answer is judged by."""


def interview() -> int:
    """Ask for what a plan needs; without a terminal, say which flags to give."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("planner", "the interview needs a terminal", f"give the question as flags: {a.usage()}")
    try:
        return conversation()
    except (KeyboardInterrupt, EOFError):
        raise typer.Abort from None  # typer would turn an interrupt into exit code 130 without a word


def conversation() -> int:
    """All questions, the plan, then one changed answer at a time; the exit code of the last plan."""
    from planner.report.table import draw_plan

    answers: a.Answers = {}
    for question in a.QUESTIONS:
        if a.applies(question, answers):
            answers = settled(question, answers)
    plan = planned(answers)
    draw_plan(plan)
    tell_command(answers)
    while (revision := changed_question(answers)) is not None:
        try:
            fresh = revised(revision, answers)
            after = planned(fresh)
        except PlannerError as error:
            tell(str(error))
            continue
        if after.best is None:
            draw_plan(after)
        draw_difference(plan, after)
        answers, plan = fresh, after
        tell_command(answers)
    return int(ExitCode.DONE if plan.best is not None else ExitCode.INFEASIBLE)


def settled(question: a.Question, answers: a.Answers) -> a.Answers:
    """The answers with one more, asked until it stands; what follows from it is told."""
    while True:
        fresh = {**answers, question.name: a.understood(question, asked(question, answers))}
        try:
            for line in facts(question.name, fresh):
                tell(line)
            return fresh
        except PlannerError as error:
            tell(str(error))


def revised(question: a.Question, answers: a.Answers) -> a.Answers:
    """The answers with one anew, and with those it leads to."""
    answers = settled(question, answers)
    if question.name == "load":
        for other in a.QUESTIONS:
            if other.load and a.applies(other, answers):
                answers = settled(other, answers)
    return answers


def asked(question: a.Question, answers: a.Answers) -> str:
    """The text of one answer that has passed its checks."""
    import questionary
    from prompt_toolkit.completion import FuzzyWordCompleter

    from planner.specs.library import names

    if question.choices:
        return chosen(question.prompt, [(choice, choice) for choice in question.choices], a.value(question, answers))
    message, default = f"{question.prompt} ({question.hint}):", a.default_of(question, answers)
    settings: dict[str, Any] = {
        "default": answers.get(question.name, ""),
        "placeholder": [("fg:ansibrightblack", default or ("" if question.required else "none"))],
        "validate": lambda text: a.trouble(question, text, answers) or True,
    }
    if not question.spec:
        return str(questionary.text(message, **settings).unsafe_ask())
    offered = names(question.spec)
    settings["completer"] = FuzzyWordCompleter(offered, WORD=True)
    settings["validate_while_typing"] = False  # half a name is no mistake
    return str(questionary.autocomplete(message, offered, **settings).unsafe_ask())


def chosen(message: str, choices: list[tuple[str, str]], default: str) -> str:
    """The value of one of (title, value), by arrows or by typing a part of its title."""
    import questionary
    from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings

    listed = [questionary.Choice(title, value) for title, value in choices]
    prompt = questionary.select(message, listed, default=default, use_search_filter=True, use_jk_keys=False)
    keys = KeyBindings()

    @keys.add("c-d", eager=True)
    def _(event: Any) -> None:
        event.app.exit(exception=EOFError)  # a list ignores this key by itself

    bindings = prompt.application.key_bindings
    prompt.application.key_bindings = merge_key_bindings([bindings, keys] if bindings else [keys])
    return str(prompt.unsafe_ask())


def changed_question(answers: a.Answers) -> a.Question | None:
    """The question to answer anew, or None when done."""
    rows = []
    for question in a.QUESTIONS:
        if a.applies(question, answers):
            flag = f" ({question.flag})" if question.flag else ""
            rows.append((f"{question.prompt}{flag}: {a.value(question, answers) or 'none'}", question.name))
    # Last, so that letters that match nothing do not point at it.
    name = chosen("Change one answer?", [*rows, (DONE, DONE)], DONE)
    return None if name == DONE else a.BY_NAME[name]


def facts(name: str, answers: a.Answers) -> list[str]:
    """What follows from the answer just given, as far as the others are known."""
    from planner.specs.library import load_model

    lines = []
    if name == "model":
        model = load_model(answers["model"])
        lines.append(f"{model.name}: context of {model.max_context:,} tokens")
    if name in DEPLOYMENT and "stack" in answers:
        lines += deployment_facts(answers)
    if name in REQUEST and "state_dtype" in answers:
        lines.append(request_fact(answers))
    return lines


def deployment_facts(answers: a.Answers) -> list[str]:
    """The system and stack in numbers, and what they hold of the model."""
    from planner.evaluate.case import case_of
    from planner.evaluate.totals import totals
    from planner.search.fit import fit

    model, system, stack = deployment(answers)
    case = case_of(model, system, stack)
    full = fit(model, system, stack=stack, workload=a.workload_of(answers))
    chips, engine, fewest = case.system.chips, case.stack, full.min_chips or "not found"
    return [
        f"{case.system.name}: {chips:,} chips of {show(case.chip.memory.value, 'B')}; stack {engine.name}: chunk "
        f"{engine.chunk:,} tokens, memory fraction {engine.memory_fraction.value:g}",
        f"weights {show(totals(case.model).text_bytes, 'B')}; fewest chips {fewest} (one request of full context); "
        f"{chips:,} chips hold {full.max_concurrency:,} requests of full context",
    ]


def request_fact(answers: a.Answers) -> str:
    """How many requests of the asked lengths fit at the asked precision."""
    from planner.search.fit import fit

    model, system, stack = deployment(answers)
    workload = a.workload_of(answers)
    length = workload.isl + workload.osl
    found = fit(model, system, stack=stack, max_len=length, workload=workload)
    if not found.max_concurrency:
        return f"no request of {length:,} tokens fits; the roomiest layout is {placed(found)}"
    return f"{found.max_concurrency:,} requests of {length:,} tokens fit in the roomiest layout ({placed(found)})"


def deployment(answers: a.Answers) -> tuple[str, str, str | None]:
    """(model, system, stack or None for the system's)."""
    return answers["model"], a.value(a.BY_NAME["system"], answers), answers["stack"] or None


def planned(answers: a.Answers) -> Any:
    """The plan the answers ask for."""
    from planner.cli.progress import narrated
    from planner.search.plan import plan

    model, system, stack = deployment(answers)
    with narrated() as progress:
        return plan(
            model, system, a.workload_of(answers), slo=a.slo_of(answers), stack=stack,
            objective=a.parsed("objective", answers), progress=progress,
        )  # fmt: skip


def draw_difference(before: Any, after: Any) -> None:
    """The best layout before and after a change, with the change in per cent."""
    from planner.report.console import console, table
    from planner.report.numbers import written

    grid = table()
    for name in ("best layout", "before", "after", "change"):
        grid.add_column(name, justify="left" if name == "best layout" else "right")
    old_layout, new_layout = placed(before.best), placed(after.best)
    grid.add_row("layout", old_layout, new_layout, "same" if old_layout == new_layout else "")
    for label, unit, read in HEADLINES:
        old, new = (None if plan.best is None else read(plan.best) for plan in (before, after))
        change = f"{(new / old - 1) * 100:+.1f} %" if old and new else ""
        grid.add_row(label, written(old, unit), written(new, unit), change)
    out = console()
    out.print()
    out.print(grid)


def placed(answer: Any) -> str:
    """The layout of an estimate or a fit with its replicas."""
    if answer is None:
        return "nothing fits"
    copies = answer.layout.replicas
    return answer.layout.text + (f" x {copies} replicas" if copies > 1 else "")


def tell(line: str) -> None:
    """One line beside the questions."""
    from planner.report.console import console

    console().print(f"  {line}", style="dim", markup=False, soft_wrap=True)


def tell_command(answers: a.Answers) -> None:
    """The equivalent command, unbroken so that it can be copied."""
    from planner.report.console import console

    console().print("\nThe same as a command:", style="bold")
    sys.stdout.write(a.command(answers) + "\n\n")
    sys.stdout.flush()
