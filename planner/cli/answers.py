"""The questions of the interview, each a flag of `planner plan`; what answers mean, and the command that repeats them.

Answers are kept as typed, by the question's name; empty text takes the default.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.cli import options as o
from planner.errors import BadInput, PlannerError, one_line
from planner.kinds.formats import CHOICES

Answers = dict[str, str]
SEARCHED, IN_FLIGHT, RATE = "search the batch", "a concurrency", "a request rate"


def as_given(text: str, flag: str) -> str:
    """The text itself."""
    return text


@dataclass(frozen=True)
class Question:
    """One question. flag: empty where the answer is the argument or only leads to another question.

    spec: the kind of spec whose names are offered. load: the load that makes the question apply; empty: always.
    """

    name: str
    flag: str
    prompt: str
    hint: str = ""
    default: str = ""
    parse: Callable[[str, str], Any] = as_given
    choices: tuple[str, ...] = ()
    spec: str = ""
    load: str = ""
    required: bool = False
    metavar: str = ""


QUESTIONS = (
    Question("model", "", "Model", "name or path", spec="model", required=True, metavar="MODEL"),
    Question("system", "--on", "System", "name or path", spec="system", required=True, metavar="SYSTEM"),
    Question("stack", "--stack", "Software stack", "name or path", spec="stack"),
    Question("isl", "--isl", "Prompt tokens", "such as 8k", parse=o.count, required=True, metavar="N"),
    Question("osl", "--osl", "Output tokens", "such as 1k", parse=o.count, required=True, metavar="N"),
    Question("kv_dtype", "--kv-dtype", "Cache precision", default="bf16", choices=CHOICES),
    Question("state_dtype", "--state-dtype", "Recurrent state precision", default="fp32", choices=("fp32", "bf16")),
    Question("load", "", "Load", default=SEARCHED, choices=(SEARCHED, IN_FLIGHT, RATE)),
    Question(
        "concurrency", "--concurrency", "Requests in flight", "such as 64", parse=o.count, load=IN_FLIGHT, required=True
    ),
    Question("rate", "--rate", "Request rate", "such as 20/s", parse=o.per_second, load=RATE, required=True),
    Question("ttft", "--ttft", "TTFT target", "such as 2s", parse=o.seconds),
    Question("tpot", "--tpot", "TPOT target", "such as 50ms", parse=o.seconds),
    Question("arrivals", "--arrivals", "Arrivals", default="steady", choices=("steady", "waves")),
    Question("objective", "--objective", "Objective", default="throughput", choices=("throughput", "latency", "cost")),
)
BY_NAME = {question.name: question for question in QUESTIONS}


def applies(question: Question, answers: Answers) -> bool:
    """Whether the question makes sense under the chosen load."""
    return not question.load or question.load == value(BY_NAME["load"], answers)


def default_of(question: Question, answers: Answers) -> str:
    """The answer that empty text stands for: the system's stack, the only system there is, else the declared one."""
    from planner.specs.library import load_system, names

    if question.name == "stack":
        return load_system(value(BY_NAME["system"], answers)).stack
    if question.name == "system" and len(names("system")) == 1:
        return names("system")[0]
    return question.default


def value(question: Question, answers: Answers) -> str:
    """The answer or its default; empty where there is neither."""
    return answers.get(question.name) or default_of(question, answers)


def parsed(name: str, answers: Answers) -> Any:
    """What an answer means; None where it is empty or its question does not apply. Raises BadInput leaves."""
    question = BY_NAME[name]
    text = value(question, answers) if applies(question, answers) else ""
    return question.parse(text, question.flag) if text else None


def understood(question: Question, text: str) -> str:
    """The typed text without margins; letters that match only one name become that name."""
    from planner.specs.library import names

    text = text.strip()
    if not question.spec or not text or "/" in text or text in names(question.spec):
        return text
    letters = re.compile(".*".join(re.escape(letter) for letter in text), re.IGNORECASE)
    found = [name for name in names(question.spec) if letters.search(name)]
    return found[0] if len(found) == 1 else text


def trouble(question: Question, text: str, answers: Answers) -> str:
    """Why an answer cannot stand beside the others, in one line; empty when it can."""
    try:
        check(question, {**answers, question.name: understood(question, text)})
    except PlannerError as error:
        return str(error)
    except (ArithmeticError, OSError, ValueError) as error:  # a validator that raises leaves the terminal in disorder
        return one_line(f"{question.flag or question.name}: {error}")
    return ""


def check(question: Question, answers: Answers) -> None:
    """The answer means something, alone and with those given before. Raises BadInput leaves."""
    from planner.evaluate.case import case_of, check_workload
    from planner.specs.library import load_model, load_stack, load_system

    text = value(question, answers)
    if not text and question.required:
        raise BadInput(question.flag or question.name, "nothing was given", "an answer is needed")
    if question.spec:
        {"model": load_model, "system": load_system, "stack": load_stack}[question.spec](text)
    parsed(question.name, answers)
    if "model" in answers and "system" in answers:
        case = case_of(answers["model"], value(BY_NAME["system"], answers), answers.get("stack") or None)
        check_workload(case, workload_of(answers))
    slo_of(answers)


def workload_of(answers: Answers) -> Any:
    """The workload the answers describe; a length not yet known is one token."""
    from planner.specs.workload import Workload

    return Workload(
        isl=parsed("isl", answers) or 1,
        osl=parsed("osl", answers) or 1,
        concurrency=parsed("concurrency", answers),
        kv_format=parsed("kv_dtype", answers),
        state_format=parsed("state_dtype", answers),
        arrivals=parsed("arrivals", answers),
    )


def slo_of(answers: Answers) -> Any:
    """The targets the answers set."""
    from planner.specs.workload import Slo

    return Slo(ttft_s=parsed("ttft", answers), tpot_s=parsed("tpot", answers), rate_per_s=parsed("rate", answers))


def command(answers: Answers) -> str:
    """The command line that asks the same: required flags, and those that differ from their defaults."""
    words = ["planner", "plan"]
    for question in QUESTIONS:
        text = value(question, answers)
        if not applies(question, answers) or question.name == "load":
            continue
        if question.required or text != default_of(question, answers):
            words += [question.flag, text] if question.flag else [text]
    return shlex.join(words)


def usage() -> str:
    """The command line with the flags a plan cannot do without."""
    needed = [question for question in QUESTIONS if question.required and not question.load]
    return " ".join(["planner plan", *(f"{question.flag} {question.metavar}".strip() for question in needed)])
