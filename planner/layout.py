"""Layouts: all whole-number work, done before any formula.

    chips = TP x DP x CP x PP       a stage is TP x DP x CP chips, and EP x ETP fills it
    TP attention tensor parallel    DP attention data parallel    CP prefill context parallel    PP pipeline
    EP expert parallel    ETP tensor parallel inside an expert    DCP decode context parallel, divides TP
    RED redundant experts: EP divides experts + RED

A rule is a name and a sentence; the search counts what each rule refuses, the command line prints the sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from planner.errors import BadLayout
from planner.kinds.attention import ATTENTION
from planner.kinds.feedforward import FEED_FORWARD
from planner.kinds.formats import FORMATS, splits
from planner.specs.model import Model

MOST_TP = 128
KEYS = ("TP", "DP", "EP", "ETP", "PP", "DCP", "CP", "RED")
BETWEEN = re.compile(r"\s+[x×]\s+|(?<=\d)[x×]\s*|[\s,*-]+|(?<=\d)(?=[A-WYZ])", re.IGNORECASE)
"""What may stand between two keys: 'TP8 DP8', 'TP8-DP8', 'TP8 x DP8', 'TP8DP8'."""
TOKEN = re.compile(r"^([A-Za-z]+)=?(\d{1,7})$", re.ASCII)


class Layout(NamedTuple):
    """One layout of one replica. `Layout.parse("TP8 DP8 EP64", model)` completes what is left out."""

    tp: int = 1
    dp: int = 1
    ep: int = 1
    etp: int = 1
    pp: int = 1
    dcp: int = 1
    cp: int = 1
    red: int = 0

    @property
    def stage_chips(self) -> int:
        """Chips of one pipeline stage."""
        return self.tp * self.dp * self.cp

    @property
    def chips(self) -> int:
        """Chips of one replica."""
        return self.stage_chips * self.pp

    def __str__(self) -> str:
        always = ("TP", "DP", "EP")
        given = {key: getattr(self, key.lower()) for key in KEYS}
        plain = {key: 0 if key == "RED" else 1 for key in KEYS}
        return " ".join(f"{key}{value}" for key, value in given.items() if key in always or value != plain[key])

    @staticmethod
    def parse(text: str, model: Model) -> Layout:
        """A layout as written, completed and checked against the model. Raises BadLayout."""
        return checked(complete(read_keys(text), model, text), model, text)


def read_keys(text: str) -> dict[str, int]:
    """'TP8 DP8,EP64' -> {'TP': 8, ...}, keys with or without a mark between them. Raises BadLayout."""
    found: dict[str, int] = {}
    for token in BETWEEN.split(text.strip()):
        match = TOKEN.match(token)
        if match is None or match[1].upper() not in KEYS:
            raise BadLayout("layout", f"{token!r} is not one of {' '.join(KEYS)} with a number", "write 'TP8 DP8 EP64'")
        key, value = match[1].upper(), int(match[2])
        if key in found:
            raise BadLayout("layout", f"{key} is given twice", "give each key once")
        if value < 1 and key != "RED":
            raise BadLayout("layout", f"{key}{value} is not at least 1", f"leave {key} out for 1")
        found[key] = value
    return found


def routed(model: Model) -> list[tuple[str, int, int, str]]:
    """(group, experts, inner, format of the routed weights) of every MoE group."""
    return [(n, g.experts, g.inner, g.routed_format) for n, g in model.feed_forward.items() if g.kind == "moe"]


def complete(keys: dict[str, int], model: Model, text: str) -> Layout:
    """Fill in what was left out: EP as large as legal, ETP the rest of the stage, RED the fewest that make EP legal."""
    values = {key.lower(): value for key, value in keys.items()}
    layout = Layout(**values)
    stage = layout.stage_chips
    if not routed(model):
        return layout
    fixed = {key: values[key] for key in ("ep", "etp", "red") if key in values}
    if "ep" not in fixed and "etp" not in fixed:
        options = [
            ep
            for ep in divisors(stage)
            if not expert_problem(layout._replace(ep=ep, etp=stage // ep), model, "red" in fixed)
        ]
        ep = max(options, default=stage)
        layout = layout._replace(ep=ep, etp=stage // ep)
    elif "ep" not in fixed and stage % fixed["etp"] == 0:
        layout = layout._replace(ep=stage // fixed["etp"])
    elif "etp" not in fixed and stage % fixed["ep"] == 0:
        layout = layout._replace(etp=stage // fixed["ep"])
    return layout if "red" in fixed else layout._replace(red=fewest_redundant(layout.ep, model))


def fewest_redundant(ep: int, model: Model) -> int:
    """The fewest redundant experts with which every MoE group splits over EP ranks."""
    need = 0
    for _, experts, _, _ in routed(model):
        need = max(need, -experts % ep)
    return need


def checked(layout: Layout, model: Model, text: str) -> Layout:
    """The layout if the model can have it. Raises BadLayout with the first rule it breaks."""
    for problem in problems(layout, model):
        raise BadLayout(f"layout {text.strip() or str(layout)}", *problem[1:])
    return layout


Problem = tuple[str, str, str]
"""(rule, what is wrong, what to do)."""


def head_refusal(tp: int, model: Model) -> str | None:
    """Why TP does not split the heads of some attention group, or None."""
    for name, group in model.attention.items():
        what = ATTENTION[group.kind].tp_problem(group, tp)
        if what:
            return f"{what} of {name}"
    return None


def head_problem(tp: int, model: Model) -> Problem | None:
    """TP splits the heads of every attention group."""
    what = head_refusal(tp, model)
    return ("heads", what, f"use TP of {listed(legal_tp(model))}") if what else None


def legal_tp(model: Model) -> tuple[int, ...]:
    """The attention TP degrees all groups allow, as far as anyone builds."""
    return tuple(tp for tp in range(1, MOST_TP + 1) if not head_refusal(tp, model))


def expert_problem(layout: Layout, model: Model, red_given: bool = True) -> Problem | None:
    """EP x ETP fills the stage, EP splits experts + RED, ETP splits the expert width."""
    stage = layout.stage_chips
    if not routed(model):
        if layout.ep * layout.etp * max(layout.red, 1) != 1:
            return (
                "experts",
                "the model has no experts, so EP and ETP are 1 and RED is 0",
                "leave EP, ETP and RED out",
            )
        return None
    if layout.ep * layout.etp != stage:
        what = (
            f"EP{layout.ep} x ETP{layout.etp} is {layout.ep * layout.etp}, and a stage has TP x DP x CP = {stage} chips"
        )
        return ("stage", what, f"make EP x ETP {stage}")
    for name, experts, inner, format in routed(model):
        if layout.ep > experts:
            return ("experts", f"EP{layout.ep} is more than the {experts} experts of {name}", f"use EP up to {experts}")
        if red_given and (experts + layout.red) % layout.ep:
            fewest = -experts % layout.ep
            what = f"EP{layout.ep} does not divide the {experts} + {layout.red} experts of {name}"
            return ("experts", what, f"use RED{fewest} or leave RED out")
        if layout.red > experts:
            return ("experts", f"RED{layout.red} is more than the {experts} experts of {name}", "use fewer")
        if not splits(inner, layout.etp, format):
            what = f"ETP{layout.etp} does not split the expert width {inner} of {name}" + in_blocks(format)
            whole = tuple(ways for ways in divisors(inner) if splits(inner, ways, format))
            return ("expert_width", what, f"use ETP of {listed(whole)}")
    return None


def width_problem(tp: int, model: Model) -> Problem | None:
    """TP splits the widths of dense and shared feed-forwards, in whole blocks where they are block-quantised."""
    for name, group in model.feed_forward.items():
        what = FEED_FORWARD[group.kind].tp_problem(group, tp)
        if what:
            return ("width", f"{what} of {name}", "use a TP that does")
    return None


def context_problem(layout: Layout, model: Model) -> Problem | None:
    """DCP divides TP and finds a cache to split."""
    if layout.tp % layout.dcp:
        return ("dcp", f"DCP{layout.dcp} does not divide TP{layout.tp}", f"use DCP of {listed(divisors(layout.tp))}")
    if layout.dcp > 1 and cache_copies(layout.tp, model) % layout.dcp:
        copies = cache_copies(layout.tp, model)
        what = f"DCP{layout.dcp} splits nothing: {copies} of the TP ranks hold the same growing cache"
        return ("dcp", what, f"use DCP of {listed(divisors(copies))}")
    return None


def stage_problem(pp: int, model: Model) -> Problem | None:
    """Every pipeline stage has a layer."""
    if pp > model.layers:
        return ("layers", f"PP{pp} is more than the {model.layers} layers", f"use PP up to {model.layers}")
    return None


def in_blocks(format: str) -> str:
    """' in blocks of 128' where a format has blocks."""
    block = FORMATS[format].block
    return f" in blocks of {block}" if block > 1 else ""


def problems(layout: Layout, model: Model) -> list[Problem]:
    """Every rule the layout breaks."""
    found = (
        head_problem(layout.tp, model),
        width_problem(layout.tp, model),
        stage_problem(layout.pp, model),
        context_problem(layout, model),
        expert_problem(layout, model),
    )
    return [problem for problem in found if problem]


def cache_copies(tp: int, model: Model) -> int:
    """TP ranks that hold the same growing cache: what DCP can split, the fewest over the groups that have one."""
    found = [ATTENTION[group.kind].copies(group, tp) for group in model.attention.values()]
    return min((copies for copies in found if copies > 1), default=1)


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """Divisors of n in order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return tuple(sorted({*small, *(n // d for d in small)}))


def listed(values: tuple[int, ...]) -> str:
    """Numbers as a phrase."""
    return ", ".join(map(str, values))


def legal(chips: int, model: Model, refused: Counter[str]) -> Iterator[Layout]:
    """Every legal layout of one replica on exactly `chips` chips; refusals are counted by rule, once per shape.

    RED is the fewest that make EP legal: more never helps under uniform routing.
    """
    for pp in divisors(chips):
        problem = stage_problem(pp, model)
        if problem:
            refused[problem[0]] += 1
            continue
        stage = chips // pp
        for tp in divisors(stage):
            rule = "heads" if head_refusal(tp, model) else "width" if width_problem(tp, model) else ""
            if rule:
                refused[rule] += len(divisors(stage // tp))
                continue
            for cp in divisors(stage // tp):
                yield from _experts(Layout(tp=tp, dp=stage // tp // cp, cp=cp, pp=pp), model, refused)


def _experts(layout: Layout, model: Model, refused: Counter[str]) -> Iterator[Layout]:
    stage = layout.stage_chips
    for ep in divisors(stage) if routed(model) else (1,):
        etp = stage // ep if routed(model) else 1
        whole = layout._replace(ep=ep, etp=etp, red=fewest_redundant(ep, model))
        problem = expert_problem(whole, model)
        if problem:
            refused[problem[0]] += 1
            continue
        for dcp in divisors(cache_copies(layout.tp, model)):
            yield whole._replace(dcp=dcp)
