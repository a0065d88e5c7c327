"""A claim as a file: ratios somebody states, the changes they are ascribed to, and what the statement leaves open.

    claimed       figure -> ratio after over before, tolerance, what is stated and what is not
    baseline      the stack before, by name or path
    changes       name -> fields taken from another stack (`like`, `take`), fields said here (`stack`), or both
    assumptions   name -> choices, the first being the reference

A choice is about software (like, take, stack, weights) or about the question (QUESTION below). One with
`before: X` describes what change X replaces: it holds where X is not made. Fields go in this order: baseline, choices,
choices `before`, changes as the file has them. Mappings merge by key; a plain value stands for a figure without range.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from planner.errors import BadInput, BadSpec, UnknownName, nearest
from planner.evaluate.estimate import check_says
from planner.record import Record
from planner.specs.library import beside, checked, describe, existing, find, load_model, load_system, merged, told
from planner.specs.model import Model
from planner.specs.precision import in_precision
from planner.specs.stack import Stack
from planner.specs.workload import Workload
from planner.specs.yaml_file import read_yaml
from planner.units import parse, parse_count

METRICS = {
    "ttft": ("prefill_idle_s", "time to first token of one prompt on an idle system"),
    "ttft_busy": ("saturated_share_s", "time of one prompt while every attention group prefills"),
    "ttft_served": ("serving_ttft_s", "time to first token as served"),
    "tpot": ("serving_tpot_s", "time per output token as served"),
    "step": ("decode_step_s", "time of a decode step"),
    "decode_per_chip": ("serving_decode_chip_tokens_per_s", "output tokens a second and chip, decode alone"),
    "output_per_chip": ("serving_chip_tokens_per_s", "output tokens a second and chip as served"),
}
"""What a ratio can be of: the quantity behind it, and in words."""
SOFTWARE = ("like", "take", "stack", "weights")
QUESTION = ("layout", "isl", "requests_per_chip", "step_within", "chip", "means")
NEEDED = {"layout": ("layout",), "isl": ("isl",), "load": ("requests_per_chip", "step_within")}
"""What some assumption must say, and the keys that say it."""
MOST_CHANGES, MOST_CASES = 5, 20_000
SHIPPED = "k3-day0-m890"


class Patch(Record):
    """Fields of a stack that differ."""

    like: str | None = None
    take: list[str] = Field(default=[])
    stack: dict[str, Any] = Field(default={})
    weights: str | None = None


class Change(Patch):
    """One named change."""

    title: str = Field(min_length=1)


class Choice(Patch):
    """One of several things that may have been so.

    requests_per_chip: a fixed batch; step_within: a fixed target for the decode step; chip: which end of its estimates;
    means: claimed figure -> the figure it is read as.
    """

    note: str = ""
    layout: str | None = None
    isl: str | int | None = None
    requests_per_chip: float | None = Field(default=None, ge=0.01, le=100_000)
    step_within: str | None = None
    chip: Literal["low", "central", "high"] | None = None
    means: dict[str, str] = Field(default={})

    def says(self, keys: tuple[str, ...]) -> list[str]:
        """Which of the keys this choice gives."""
        return [key for key in keys if getattr(self, key) not in (None, [], {})]


class Assumption(Record):
    """Something the statement leaves open."""

    title: str = Field(min_length=1)
    before: str | None = None
    choices: dict[str, Choice] = Field(min_length=1)


class Ratio(Record):
    """A stated ratio, after over before."""

    ratio: float = Field(gt=0)
    tolerance: float = Field(gt=0)
    stated: str = Field(min_length=1)
    unstated: str = Field(min_length=1)


class Length(Record):
    """What is stated of growth with length: at most this exponent up to the longest."""

    longest: int = Field(ge=16384)
    exponent: float = Field(gt=0)
    stated: str = Field(min_length=1)


class Claim(Record):
    """One claim file."""

    name: str = Field(min_length=1)
    title: str = Field(min_length=1)
    source: str = Field(min_length=1)
    url: str = Field(min_length=1)
    date: str = Field(min_length=1)
    note: str = ""
    model: str
    system: str
    baseline: str
    workload: dict[str, Any] = Field(default={})
    claimed: dict[str, Ratio] = Field(min_length=1)
    changes: dict[str, Change] = Field(min_length=1, max_length=MOST_CHANGES)
    assumptions: dict[str, Assumption] = Field(min_length=1)
    length: Length | None = None

    def axes(self, keys: tuple[str, ...]) -> dict[str, Assumption]:
        """The assumptions whose choices give some of these keys; software includes those that give nothing."""
        question = {n: a for n, a in self.assumptions.items() if any(c.says(QUESTION) for c in a.choices.values())}
        return question if keys == QUESTION else {n: a for n, a in self.assumptions.items() if n not in question}


def folder() -> Path:
    """Where the shipped claims are: beside the package in a checkout, inside an installed one."""
    package = Path(__file__).resolve().parents[1]
    places = [package.parent / "claims", package / "claims"]
    return next((place for place in places if place.is_dir()), places[0])


def claim_path(name: str | None) -> Path:
    """The file of a shipped claim's name, or of a path; none is the shipped one. Raises UnknownName, BadFile."""
    shipped = {path.stem: path for path in sorted(folder().glob("*.yaml"))}
    if name is None or name in shipped:
        return shipped.get(name or SHIPPED, folder() / f"{SHIPPED}.yaml")
    if "/" not in name and "\\" not in name and not name.endswith((".yaml", ".yml")):
        raise UnknownName("claims", f"unknown claim {name[:200]!r}", nearest(name, shipped))
    if "\0" in name:
        raise UnknownName("claims", "a path has no null characters", "name a YAML file")
    return existing(Path(name))


def read_claim(name: str | None) -> tuple[Claim, Path]:
    """A claim and its file, checked as far as it goes without running a formula. Raises BadInput leaves."""
    path = claim_path(name)
    data = read_yaml(path)
    try:
        claim = Claim.model_validate(data)
    except ValidationError as error:
        what, do = describe(error, Claim, data)
        raise BadSpec(str(path), what, do.replace("spec for the form", "claim for the form")) from None
    for metric, ratio in claim.claimed.items():
        if metric not in METRICS:
            raise BadSpec(str(path), f"claimed.{metric} has no meaning here", nearest(metric, METRICS))
        if ratio.tolerance >= ratio.ratio:
            what = f"claimed.{metric}: tolerance {ratio.tolerance:g} is not below the ratio {ratio.ratio:g}"
            raise BadSpec(str(path), what, "give what still counts as the stated ratio")
    for axis, assumption in claim.assumptions.items():
        check_assumption(claim, path, axis, assumption)
    for need, keys in NEEDED.items():
        if not any(choice.says(keys) for a in claim.assumptions.values() for choice in a.choices.values()):
            raise BadSpec(
                str(path), f"no assumption says the {need}", f"add one whose choices give {' or '.join(keys)}"
            )
    cases = 1
    for assumption in claim.assumptions.values():
        cases *= len(assumption.choices)
    if cases > MOST_CASES:
        raise BadSpec(str(path), f"{cases:,} combinations of choices", f"leave out some: at most {MOST_CASES:,}")
    return claim, path


def check_assumption(claim: Claim, path: Path, axis: str, assumption: Assumption) -> None:
    """`before` names a change, a question is asked by every choice of its axis, software is apart. Raises BadSpec."""
    where = f"assumptions.{axis}"
    if assumption.before is not None and assumption.before not in claim.changes:
        what = f"{where}: before: no change {assumption.before!r}"
        raise BadSpec(str(path), what, nearest(assumption.before, claim.changes))
    asked = {name: tuple(choice.says(QUESTION)) for name, choice in assumption.choices.items()}
    if not any(asked.values()):
        return
    if assumption.before is not None:
        raise BadSpec(str(path), f"{where}: `before` is for software", "leave it out: before and after share the rest")
    kinds = {next((n for n, keys in NEEDED.items() if key in keys), key) for keys in asked.values() for key in keys}
    for name, choice in assumption.choices.items():
        if choice.says(SOFTWARE) or len(asked[name]) != 1 or len(kinds) != 1:
            what = f"{where}.choices.{name} gives {', '.join([*choice.says(SOFTWARE), *asked[name]]) or 'nothing'}"
            raise BadSpec(str(path), what, f"every choice of {axis} gives one thing, the same: {sorted(kinds)[0]}")
    for name, choice in assumption.choices.items():
        for metric, figure in choice.means.items():
            if metric not in claim.claimed or figure not in METRICS:
                what = (
                    f"{where}.choices.{name}: means: {metric}: {figure} is not a claimed figure and one to read it as"
                )
                raise BadSpec(str(path), what, nearest(figure, METRICS))
    twice = [n for n, a in claim.axes(QUESTION).items() if n != axis
             and any(next((k for k, keys in NEEDED.items() if key in keys), key) in kinds
                     for c in a.choices.values() for key in c.says(QUESTION))]  # fmt: skip
    if twice:
        raise BadSpec(str(path), f"{where} and assumptions.{twice[0]} both give {sorted(kinds)[0]}", "make them one")


class Workshop:
    """Builds the software of a claim: model, system, and the stack under any changes and choices."""

    def __init__(self, claim: Claim, path: Path) -> None:
        self.claim, self.path = claim, path
        self.sayings: dict[str, dict[str, Any]] = {}
        try:
            self.model = load_model(beside(path.parent, claim.model))
            self.system = load_system(beside(path.parent, claim.system))
            self.base = self.said(claim.baseline)
        except BadInput as error:
            raise type(error)(str(path), f"{error.where}: {error.what}", error.do) from None
        for name, change in claim.changes.items():
            self.stack_of([(f"changes.{name}", change)])
        for axis, assumption in claim.axes(SOFTWARE).items():
            for name, choice in assumption.choices.items():
                self.stack_of([(f"assumptions.{axis}.choices.{name}", choice)])
                self.model_of([(f"assumptions.{axis}.choices.{name}", choice)])

    def said(self, stack: str) -> dict[str, Any]:
        """All that a stack's file and those it is like say."""
        if stack not in self.sayings:
            self.sayings[stack] = told(find("stack", beside(self.path.parent, stack)))[1]
        return self.sayings[stack]

    def workload(self) -> Workload:
        """The question as far as the file fixes it. Raises BadSpec."""
        own = sorted({"isl", "concurrency"} & set(self.claim.workload))
        if own:
            what = f"workload: {own[0]} is set by the assumptions, case by case"
            raise BadSpec(str(self.path), what, "say it there: isl, requests_per_chip or step_within")
        try:
            asked = Workload(**{"isl": 1, "osl": 1024, "concurrency": 1, **self.claim.workload})
            check_says((METRICS[name][0] for name in self.claim.claimed if name in METRICS), asked.osl)
            return asked
        except BadInput as error:
            raise BadSpec(str(self.path), f"workload: {error.where}: {error.what}", error.do) from None

    def stack_of(self, patches: list[tuple[str, Patch]]) -> Stack:
        """The stack under patches, each with its place in the file. Raises BadSpec, UnknownName."""
        whole, place = self.base, "baseline"
        for place, patch in patches:
            whole = self.patched(whole, place, patch)
        try:
            return checked(Stack, self.path, whole)
        except BadSpec as error:
            raise BadSpec(str(self.path), f"{place}: {error.what}", error.do) from None

    def patched(self, whole: dict[str, Any], place: str, patch: Patch) -> dict[str, Any]:
        """What a stack says once a patch is laid over it."""
        if patch.take:
            if patch.like is None:
                raise BadSpec(str(self.path), f"{place}: takes fields from no stack", "add `like: STACK`")
            try:
                other = self.said(patch.like)
            except BadInput as error:
                raise type(error)(str(self.path), f"{place}: like: {error.what}", error.do) from None
            for field in patch.take:
                whole = taken(whole, other, field.split("."), f"{self.path}", f"{place}: take: {field}")
        return merged(whole, figures(patch.stack, whole, f"assumed by the claim {self.claim.name}"))

    def model_of(self, patches: list[tuple[str, Patch]]) -> Model:
        """The model in the weights the last patch names. Raises UnknownName."""
        model = self.model
        for place, patch in patches:
            try:
                model = in_precision(self.model, patch.weights) if patch.weights else model
            except BadInput as error:
                raise type(error)(str(self.path), f"{place}: {error.what}", error.do) from None
        return model


def taken(whole: dict[str, Any], other: dict[str, Any], field: list[str], where: str, place: str) -> dict[str, Any]:
    """A stack's mapping with one field, at any depth, as another stack has it. Raises BadSpec."""
    key, *below = field
    if key not in other:
        raise BadSpec(where, f"{place} is not in that stack", nearest(key, other))
    if not below:
        return {**whole, key: other[key]}
    if not isinstance(other[key], dict) or "value" in other[key]:
        raise BadSpec(where, f"{place} goes below a value", "name the field itself")
    return {**whole, key: taken(whole.get(key, {}), other[key], below, where, place)}


def figures(own: dict[str, Any], base: dict[str, Any], source: str) -> dict[str, Any]:
    """Plain values written out as figures where the stack has one, or where its kernels may."""
    found: dict[str, Any] = {}
    for key, value in own.items():
        under = base.get(key)
        if isinstance(value, dict) and "value" not in value:
            found[key] = figures(value, under if isinstance(under, dict) else {}, source)
        elif not isinstance(value, (dict, list, bool)) and (key in DEFAULTED or is_figure(under)):
            found[key] = {"value": value, "status": "derived", "source": source}
        else:
            found[key] = value
    return found


DEFAULTED = ("traffic", "added", "expert_time")
"""Figures of kernels that a stack need not give."""


def is_figure(value: Any) -> bool:
    """A figure as YAML has it."""
    return isinstance(value, dict) and "value" in value


def tokens(value: str | int, path: Path, where: str) -> int:
    """A number of tokens. Raises BadSpec."""
    try:
        return parse_count(str(value), where)
    except BadInput as error:
        raise BadSpec(str(path), f"{where}: {error.what}", error.do) from None


def seconds(value: str, path: Path, where: str) -> float:
    """A target. Raises BadSpec."""
    try:
        found = parse(value, "s", where)
    except BadInput as error:
        raise BadSpec(str(path), f"{where}: {error.what}", error.do) from None
    if found <= 0:
        raise BadSpec(str(path), f"{where}: {value} is not above zero", "give a positive time")
    return found
