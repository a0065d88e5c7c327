"""The whole model of one deployment, in the order a reader would work it out."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import Any

from planner.kinds.collectives import fabric
from planner.kinds.weights import held
from planner.model.decode import in_group, step
from planner.model.memory import memory
from planner.model.prefill import load_of, pieces, prefill
from planner.model.serving import serve
from planner.model.structure import Structure
from planner.model.tables import held_tables
from planner.quantities import Say
from planner.roofline import rates


def reached(say: Say, on: Any) -> Any:
    """The inputs with every kernel's and collective's rates on this chip worked out."""
    on = copy(on)
    formats = {"dense": vars(on.stack.computes).values()}
    kernels = {name: rates(say.scope(name), on.chip, k, formats.get(name, ())) for name, k in vars(on.kernel).items()}
    experts = kernels["experts"]
    experts.floor = experts.floor if experts.narrow_floor is None else experts.narrow_floor
    links = {name: fabric.rates(say.scope(name), on.chip, link) for name, link in vars(on.link).items()}
    on.kernel, on.link = SimpleNamespace(**kernels), SimpleNamespace(**links)
    return on


def grouped(say: Say, on: Any) -> Any:
    """The inputs with every group of ranks that a collective spans."""
    on, layout = copy(on), on.layout
    spans = {
        "tp": layout.tp,
        "cp": layout.cp,
        "pp": layout.pp,
        "stage": layout.ep * layout.etp,
        "shards": layout.dcp * layout.cp,
        "decode_tp": layout.tp * layout.cp,
    }
    named = {name: say.scope(name)("count", count, f"ranks of {name}") for name, count in spans.items()}
    on.ranks = SimpleNamespace(**{name: fabric.ranks_of(say, name, count, on) for name, count in named.items()})
    return on


def sized(say: Say, shape: Structure, on: Any) -> Any:
    """The inputs with what one chip holds of every layer group and table worked out, once for all uses."""
    on = copy(on)
    on.groups = {name: copy(group) for name, group in on.groups.items()}
    for name, kind in shape.layers:
        group, inner = on.groups[name], say.scope(name, kind.reference)
        group.held = held(inner, kind.weights(group, on.model.width), kind.share(group, on), group, on)
        group.__dict__.update(kind.sizes(inner, group, on))
    on.tables = held_tables(say, shape, on)
    return on


def capacity(say: Say, shape: Structure, on: Any) -> tuple[Any, Any, Any, Any]:
    """Memory alone: what a chip holds and how many requests fit.

    Returns the inputs with all that was worked out, requests of a group, the cut prompt and the saturated pass's load.
    """
    on = grouped(say.scope("ranks"), reached(say.scope("rate"), on))
    on = sized(say.scope("chip"), shape, on)
    group = in_group(say, on)
    cut = pieces(say.scope("prompt"), on)
    busy = load_of(say.scope("saturated"), cut, cut.packed, on.layout.dp, on)
    fullest = load_of(say.scope("fullest"), SimpleNamespace(piece=on.ask.chunk, past=cut.past), 1, on.layout.dp, on)
    memory(say.scope("memory"), shape, group, fullest, on)
    return on, group, cut, busy


def deployment(say: Say, shape: Structure, on: Any) -> Say:
    """Memory, prefill, decode step, serving and cost of one deployment."""
    on, group, cut, busy = capacity(say, shape, on)
    alone, share = prefill(say, shape, cut, busy, on)
    one = step(say.scope("decode", phase="decode"), shape, group, on)
    serve(say.scope("serving"), shape, group, alone, share, one, on)
    return say
