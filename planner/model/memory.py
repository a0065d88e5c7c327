"""Memory of one chip: weights, cache, state, activations, buffers, runtime, against a fraction of its capacity.

    room       = fraction x capacity - runtime - activations - buffers
    requests_i = floor((room - weights_i) / request_i)          stage i; the fewest over the stages hold
    request_i  = length x cache growth + constant state, over the stage's layers
DP copies attention and dense weights; EP x ETP splits experts; what a group says is copied is held by every rank.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q, maximum, minimum, whole
from planner.kinds.weights import all_bytes, stored_bytes
from planner.model import tables
from planner.model.costs import Costs, over_layers
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


def request_by_group(say: Say, shape: Structure, on: Any) -> tuple[Costs, Costs]:
    """(growing bytes per token, constant bytes per sequence) of one request on one chip, one layer of every group."""
    growing: Costs = {}
    constant: Costs = {}
    for name, kind in shape.attention:
        grows, stays = kind.cache(on.groups[name], on)
        growing[name] = say(f"{name}_token_bytes", grows, f"{name}: cache of one token, one layer, on one chip")
        constant[name] = say(f"{name}_state_bytes", stays, f"{name}: state of one sequence, one layer, on one chip")
    return growing, constant


def activations(say: Say, shape: Structure, busy: Any, step_tokens: Q, on: Any) -> Q:
    """Peak of a pass: live residual sources and two widths of every token, the widest layer, logits in FP32.

    n = the larger of the prefill pass and the decode step, tokens on this chip.
    """
    tokens = say("tokens", maximum(busy.tokens, step_tokens), "tokens in flight on one chip")
    wide = on.model.width * on.stack.activation_value_bytes
    stream = tokens * (shape.residual.live_sources(on.residual) + 2) * wide
    layers = [tokens * kind.working(on.groups[name], on) for name, kind in shape.attention]
    layers += [feed.working(on.groups[name], busy, on) for name, feed in shape.feed_forward]
    logits = maximum(busy.sampled, step_tokens) * on.model.vocabulary / on.layout.tp * on.constant.logit_bytes
    return say("bytes", stream + maximum(*layers, logits), "activations of one chip")


def buffers(say: Say, shape: Structure, busy: Any, step_tokens: Q, on: Any) -> Q:
    """Dispatch and combine rows of the tokens that enter at this chip, times the stack's buffers."""
    tokens = maximum(busy.entering, step_tokens / (on.layout.tp * on.layout.cp))
    row: Q = 0
    for name, _ in shape.feed_forward:
        group = on.groups[name]
        if hasattr(group, "top_k"):
            width = on.model.width if group.latent is None else group.latent
            row = row + group.top_k * width * (on.stack.dispatch_value_bytes + on.stack.combine_value_bytes)
    return say("buffers_bytes", on.stack.exchange_buffers * tokens * row, "communication buffers of one chip")


def memory(say: Say, shape: Structure, group: Q, busy: Any, step_tokens: Q, on: Any) -> None:
    """Name what one chip holds, what is left, and how many requests of `length` tokens fit."""
    held = weights_by_group(say.scope("weights"), shape, on)
    growing, constant = request_by_group(say.scope("request"), shape, on)
    active = activations(say.scope("activations"), shape, busy, step_tokens, on)
    buffer = buffers(say, shape, busy, step_tokens, on)
    usable = say("usable_bytes", on.ask.memory_fraction * on.chip.memory, "memory the engine may use")
    runtime = say("runtime_bytes", on.stack.runtime, "contexts, graphs and workspaces")
    room = say("room_bytes", usable - runtime - active - buffer, "for weights and requests")
    fits = []
    used = []
    for i in range(shape.stages):
        counts = on.layout.stages[i]
        inner = say.scope(f"stage{i}")
        weights = inner("weights_bytes", over_layers(held, counts), f"weights of a chip in stage {i}")
        token = inner("token_bytes", over_layers(growing, counts), f"cache of one token, stage {i}")
        state = inner("state_bytes", over_layers(constant, counts), f"state of one sequence, stage {i}")
        request = inner("request_bytes", token * on.ask.length + state, f"one request of full length, stage {i}")
        fits.append(inner("requests", whole((room - weights) / request), f"requests that fit in stage {i}"))
        used.append(inner("used_bytes", weights + group * request, f"weights and requests in stage {i}"))
    fewest = say("requests", maximum(minimum(*fits), 0), "requests of a group that fit in every stage")
    say("max_concurrency", fewest * on.layout.dp * on.layout.replicas, "requests that fit, whole deployment")
    say("slack_bytes", room - maximum(*used), "room left on the fullest chip; negative: it does not fit")
    pool(say, held, growing, constant, group, active + buffer + runtime, on)


def pool(say: Say, held: Costs, growing: Costs, constant: Costs, group: Q, other: Q, on: Any) -> None:
    """Memory used by all chips of the deployment together, at this concurrency."""
    weights = over_layers(held, on.count)
    request = over_layers(growing, on.count) * on.ask.length + over_layers(constant, on.count)
    stage = on.layout.tp * on.layout.dp * on.layout.cp
    chips = stage * on.layout.pp
    total = on.layout.replicas * (stage * (weights + group * request) + chips * other)
    say("pool_used_bytes", total, "weights, requests and overheads of all chips")
