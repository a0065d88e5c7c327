"""Memory of one chip: weights, cache, state, activations, buffers, runtime, against a fraction of its capacity.

    budget_i   = fraction x capacity - runtime - activations - buffers - weights_i      (or as `allowed` says)
    requests_i = floor(budget_i / request_i)                    stage i; the fewest over the stages hold
    request_i  = length x cache growth + state and windows filled at that length, over the stage's layers
DP copies attention and dense weights; EP x ETP splits experts; what a group says is copied is held by every rank.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q, maximum, minimum, whole
from planner.kinds.attention.kind import Cache
from planner.kinds.weights import all_bytes, stored_bytes
from planner.model import tables
from planner.model.costs import Costs, over_layers
from planner.model.draft import with_last
from planner.model.reservation import reserved_by_group
from planner.model.structure import Structure
from planner.quantities import Say
from planner.stages import FIRST, LAST, LAYER


def weights_by_group(say: Say, shape: Structure, on: Any) -> Costs:
    """Bytes one chip holds of one layer of every group, and of the tables."""
    names = [name for name, _ in (*shape.attention, *shape.feed_forward)]
    found = {name: all_bytes(on.groups[name].held) for name in names}
    found[LAYER] = stored_bytes(shape.residual.weights(on.residual, on.model.width))
    found[FIRST] = tables.first_stage(shape, on)
    found[LAST] = tables.last_stage(shape, on) + stored_bytes(shape.residual.final_weights(on.residual, on.model.width))
    return {name: say(f"{name}_bytes", size, f"{name}: weights on one chip, one layer") for name, size in found.items()}


def request_by_group(say: Say, caches: dict[str, Cache], on: Any) -> tuple[Costs, Costs]:
    """(growing bytes per token, bytes that do not grow) of one request on one chip, one layer of every group."""
    growing: Costs = {}
    fixed: Costs = {}
    for name, kept in caches.items():
        growing[name] = say(f"{name}_token_bytes", kept.growing, f"{name}: cache of one token, one layer, on one chip")
        sentence = f"{name}: state and filled windows of one sequence, one layer, on one chip"
        fixed[name] = say(f"{name}_state_bytes", kept.fixed(on.ask.length), sentence)
    return growing, fixed


def activations(say: Say, shape: Structure, busy: Any, on: Any) -> Q:
    """Peak of a full prefill pass: live residual sources and two widths of every token, and the widest layer.

    An engine keeps room for `chunk` tokens of every group, whatever prompts come.

    A decode step holds less as long as its tokens are fewer than a pass's; its logits are in the runtime allowance, so
    that what fits does not depend on how much is in flight.
    """
    wide = on.model.width * on.stack.activation_value_bytes
    stream = busy.tokens * (shape.residual.live_sources(on.residual) + 2) * wide
    layers = [busy.tokens * kind.working(on.groups[name], on) for name, kind in shape.attention]
    layers += [feed.working(on.groups[name], busy, on) for name, feed in shape.feed_forward]
    return say("activations_bytes", stream + maximum(*layers), "activations of one chip")


def buffers(say: Say, shape: Structure, busy: Any, on: Any) -> Q:
    """Rows of the experts' exchange in a pass; layers take turns, so those of the widest kind of feed-forward."""
    rows = [feed.exchanged(on.groups[name], busy, on) for name, feed in shape.feed_forward]
    return say("buffers_bytes", maximum(*rows), "communication buffers of one chip")


def memory(say: Say, shape: Structure, group: Q, busy: Any, on: Any) -> None:
    """Name what one chip holds, what is left, and how many requests of `length` tokens fit.

    `reserved` is an engine's own answer, which hands out whole blocks (reservation.py).
    """
    held = weights_by_group(say.scope("weights"), shape, on)
    layers = (*shape.attention, *shape.draft_attention)
    caches = {name: kind.cache(on.groups[name], on) for name, kind in layers}
    growing, constant = (with_last(costs, shape) for costs in request_by_group(say.scope("request"), caches, on))
    blocks = with_last(reserved_by_group(say.scope("request"), caches, on), shape)
    active = activations(say, shape, busy, on)
    buffer = buffers(say, shape, busy, on)
    runtime = say("runtime_bytes", on.stack.runtime, "contexts, graphs and workspaces")
    other = say("other_bytes", runtime + active + buffer, "what is neither weight nor request")
    fits, reserved, slacks, usable = [], [], [], []
    for i in range(shape.stages):
        counts = on.layout.stages[i]
        inner = say.scope(f"stage{i}")
        weights = inner("weights_bytes", over_layers(held, counts), f"weights of a chip in stage {i}")
        token = inner("token_bytes", over_layers(growing, counts), f"cache of one token, stage {i}")
        state = inner("state_bytes", over_layers(constant, counts), f"state of one sequence, stage {i}")
        request = inner("request_bytes", token * on.ask.length + state, f"one request of full length, stage {i}")
        usable.append(allowed(weights, other, on))
        budget = inner("budget_bytes", usable[-1] - other - weights, f"for requests, stage {i}")
        taken = over_layers(blocks, counts)
        taken = inner("reserved_bytes", taken, f"what an engine reserves for one request, stage {i}")
        least = on.constant.least_request_bytes
        fits.append(inner("requests", whole(budget / maximum(request, least)), f"requests that fit in stage {i}"))
        reserved.append(whole(budget / maximum(taken, least)))
        slacks.append(inner("slack_bytes", budget - group * request, f"room left in stage {i}"))
        inner("used_bytes", weights + group * request, f"weights and requests in stage {i}")
    say("usable_bytes", minimum(*usable), "memory the fraction allows")
    fewest = say("requests", maximum(minimum(*fits), 0), "requests of a group that fit in every stage")
    replicas = on.layout.dp * on.layout.replicas
    say("max_concurrency", fewest * replicas, "requests that fit, whole deployment")
    say("reserved_concurrency", maximum(minimum(*reserved), 0) * replicas, "requests an engine admits, in whole blocks")
    say("slack_bytes", minimum(*slacks), "room left on the fullest chip; negative: it does not fit")
    pool(say, held, growing, constant, group, other, on)


def capacity(on: Any) -> Q:
    """Memory of one chip: what its driver reports where that is known, else the headline."""
    return on.chip.memory if on.chip.usable_memory is None else on.chip.usable_memory


def allowed(weights: Q, other: Q, on: Any) -> Q:
    """Bytes a chip may hold, by what the engine's fraction f means.

    all      f capacity                                            f bounds everything together (vLLM)
    static   min(f capacity + other, capacity)                     f bounds weights and cache alone (SGLang)
    free     other + weights + f (capacity - other - weights)      f is taken of what is left free (TensorRT-LLM)
    """
    share, whole_chip = on.ask.memory_fraction, capacity(on)
    if on.stack.memory_meaning == "all":
        return share * whole_chip
    if on.stack.memory_meaning == "static":
        return minimum(share * whole_chip + other, whole_chip)
    return other + weights + share * (whole_chip - other - weights)


def pool(say: Say, held: Costs, growing: Costs, constant: Costs, group: Q, other: Q, on: Any) -> None:
    """Memory used by all chips of the deployment together, at this concurrency."""
    weights = over_layers(held, on.count)
    request = over_layers(growing, on.count) * on.ask.length + over_layers(constant, on.count)
    stage = on.layout.tp * on.layout.dp * on.layout.cp
    chips = stage * on.layout.pp
    total = on.layout.replicas * (stage * (weights + group * request) + chips * other)
    say("pool_used_bytes", total, "weights, requests and overheads of all chips")
