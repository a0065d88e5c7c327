"""Cost of a pass by layer group, and how groups add up over stages.

all stages   sum over groups of count x cost
slowest      max over the distinct heaviest stages of the same sum with that stage's counts
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

from planner.algebra import Q, maximum
from planner.kinds.collectives import all_reduce, point_to_point
from planner.kinds.dense_product import dense_product
from planner.model.structure import Structure
from planner.quantities import Say
from planner.roofline import fixed, operator
from planner.stages import DRAFT, FIRST, LAST, LAYER, MIXED

Costs = dict[str, Q]


def by_group(say: Say, shape: Structure, load: Any, on: Any, attention: Callable[..., Any]) -> Costs:
    """Time of one layer of every group over one pass; `attention(kind)` picks the decode or prefill formula."""
    costs: Costs = {}
    for name, kind in shape.attention:
        inner = say.scope(name, kind.reference, group=name)
        costs[name] = attention(kind)(inner, on.groups[name], load, on)
    layers = [on.count[name] for name, kind in shape.attention if kind.present]
    beside = sum(on.count[name] * costs[name] for name, kind in shape.attention if kind.present)
    load.beside = say("attention_s", beside / reduce(add, layers), "one attention layer, mean over the model")
    for name, feed in shape.feed_forward:
        inner = say.scope(name, feed.reference, group=name)
        costs[name] = feed.layer(inner, on.groups[name], load, on)
    costs[MIXED] = every_mixer(say.scope(MIXED, group=MIXED), load, on)
    costs[LAYER] = every_layer(say.scope(LAYER, group=LAYER), shape, load, on)
    costs[FIRST] = first(say.scope(FIRST, group=FIRST), load, on)
    costs[LAST] = last(say.scope(LAST, group=LAST), shape, load, on)
    return costs


def every_mixer(say: Say, load: Any, on: Any) -> Q:
    """What every layer with attention pays: its output over TP, all-reduce(n width)."""
    size = load.tokens * on.model.width * on.stack.activation_value_bytes
    return all_reduce(say, "reduce", "attention output over TP", size, on.ranks.tp, on)


def every_layer(say: Say, shape: Structure, load: Any, on: Any) -> Q:
    """What every layer pays: residual mixing and fixed time. A layer of one sublayer counts half.

    t = n values / layers / (BW e_m) + o
    """
    time: Q = 0
    values = shape.residual.mixing_values(on.residual, on.model.width)
    if not (isinstance(values, int) and values == 0):
        moved = load.tokens * values * on.stack.activation_value_bytes / on.count[LAYER]
        mixing = "mixing of residual sources, replicated on every TP rank"
        time = operator(say, "residual", mixing, on.kernel.stream, moved)
    overhead = "launches, gaps and small kernels, beyond the modelled floors"
    return say("layer_s", time + fixed(say, "fixed", overhead, on.stack.layer_time, on.basis.layer_time), "every layer")


def first(say: Say, load: Any, on: Any) -> Q:
    """Embedding rows of the pass, read and written, and their sum over TP, whose ranks hold parts of the table.

    t = 2 n width a / (BW e_m) + all-reduce(n width)
    """
    size = load.tokens * on.model.width * on.stack.activation_value_bytes
    lookup = operator(say, "lookup", "embedding rows", on.kernel.stream, 2 * size)
    return lookup + all_reduce(say, "reduce", "embedding rows over TP", size, on.ranks.tp, on)


def last(say: Say, shape: Structure, load: Any, on: Any) -> Q:
    """Output head over the rows that need logits; with a separate draft one pass of it and its layers' fixed time."""
    time = dense_product(say, "logits", "output head", [*on.tables["head"].values()], load.sampled, on)
    if shape.speculates and load.drafts and not shape.draft_attention:
        drafted = [*on.tables["draft"].values()]
        time = time + dense_product(say, "draft", "draft model, one pass", drafted, load.sampled, on)
        overhead = "fixed time of the draft's layers"
        time = time + fixed(
            say, "draft_fixed", overhead, on.draft.layers * on.stack.layer_time, on.basis.layer_time
        )  # fmt: skip
    return time


def hop(say: Say, shape: Structure, load: Any, on: Any) -> Q:
    """Hand-over between stages: n width live residual sources / TP values."""
    sources = shape.residual.live_sources(on.residual)
    size = load.tokens * on.model.width * sources * on.stack.activation_value_bytes / on.layout.tp
    return point_to_point(say, "hop", "hidden states to the next pipeline stage", size, on)


def over_layers(costs: Costs, counts: dict[str, Q]) -> Q:
    """Sum over groups of count x cost."""
    return sum(counts[name] * cost for name, cost in costs.items())


def folded(say: Say, shape: Structure, costs: Costs) -> Costs:
    """The same costs with what layers pay counted with their sublayers: fewer terms in every sum.

    Attention carries its all-reduce and half of what a layer pays, the feed-forward the other half.
    """
    half = costs[LAYER] / 2
    mixer = say("mixer_s", costs[MIXED] + half, "what a layer pays with its attention")
    extra: Costs = {name: mixer if kind.present else 0 for name, kind in shape.attention}
    extra |= {name: half if feed.present else 0 for name, feed in shape.feed_forward}
    whole = {name: say(f"{name}_all_s", costs[name] + more, f"{name} with what its layer pays")
             for name, more in extra.items()}  # fmt: skip
    return {**whole, **{name: costs[name] for name in (FIRST, LAST, DRAFT) if name in costs}}


def pass_time(say: Say, shape: Structure, costs: Costs, hand_over: Q, on: Any) -> tuple[Q, Q]:
    """(all stages with their hops, slowest stage with its hop)."""
    parts = folded(say, shape, costs)
    whole = over_layers(parts, on.count) + on.layout.pp * hand_over
    stages = [
        say(f"stage{i}_s", over_layers(parts, on.layout.stages[i]), f"heaviest stage {i}") for i in range(shape.stages)
    ]
    through = say("all_stages_s", whole, "one pass, every stage in turn")
    return through, say("slowest_stage_s", maximum(*stages) + hand_over, "slowest stage with its hop")
