"""The whole model of one deployment, in the order a reader would work it out."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import Any

from planner.kinds.collectives import fabric
from planner.kinds.weights import held, shares
from planner.model.decode import in_group, step
from planner.model.memory import memory
from planner.model.prefill import pieces, prefill, saturated_load
from planner.model.serving import serve
from planner.model.structure import Structure
from planner.model.tables import held_tables
from planner.quantities import Say
from planner.roofline import rates


def reached(say: Say, on: Any) -> Any:
    """The inputs with every kernel's and collective's rates on this chip worked out."""
    on = copy(on)
    kernels = {name: rates(say.scope(name), on.chip, k) for name, k in vars(on.kernel).items()}
    links = {name: fabric.rates(say.scope(name), on.chip, link) for name, link in vars(on.link).items()}
    on.kernel, on.link = SimpleNamespace(**kernels), SimpleNamespace(**links)
    return on


def sized(say: Say, shape: Structure, on: Any) -> Any:
    """The inputs with what one chip holds of every layer group and table worked out, once for all uses."""
    on = copy(on)
    groups = {name: copy(group) for name, group in on.groups.items()}
    for name, kind in shape.attention:
        groups[name].held = held(say.scope(name), kind.weights(groups[name], on.model.width), shares(on.layout.tp))
    for name, feed in shape.feed_forward:
        weights = feed.weights(groups[name], on.model.width)
        groups[name].held = held(say.scope(name), weights, feed.share(groups[name], on))
    on.groups, on.tables = groups, held_tables(say, shape, on)
    return on


def capacity(say: Say, shape: Structure, on: Any) -> tuple[Any, Any, Any]:
    """Memory alone: what a chip holds and how many requests fit. Returns (inputs with rates, group, cut prompt)."""
    on = sized(say.scope("weights"), shape, reached(say.scope("rate"), on))
    group = in_group(say, on)
    cut = pieces(say.scope("prompt"), on)
    tokens = group * (on.ask.draft_tokens + 1)
    memory(say.scope("memory"), shape, group, saturated_load(cut, on), tokens, on)
    return on, group, cut


def deployment(say: Say, shape: Structure, on: Any) -> Say:
    """Memory, prefill, decode step, serving and cost of one deployment."""
    on, group, cut = capacity(say, shape, on)
    alone, share = prefill(say, shape, cut, on)
    one = step(say.scope("decode", phase="decode"), shape, group, on)
    serve(say.scope("serving"), shape, group, alone, share, one, on)
    return say
