"""One decode step: one token (or one verified draft) for every request in flight.

    b     = ceil(ceil(C / (DP replicas)) / m)      requests of a group in one micro-batch, m = min(PP, group)
    n     = b s                                    tokens of a group, s = draft tokens + 1
    step  = e [ max(all stages + hops, m (slowest stage + hop)) + o_step + group o_req ]
e is the model's own error: 1, with the range that measurements have shown.
Context is the mean one: ISL + OSL/2.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from planner.algebra import Q, ceil_div, maximum, minimum
from planner.model.costs import by_group, hop, pass_time
from planner.model.draft import draft_pass
from planner.model.structure import Structure
from planner.quantities import Say
from planner.roofline import fixed
from planner.stages import DRAFT


def in_group(say: Say, on: Any) -> Q:
    """Requests of the fullest attention group: ceil(C / (DP replicas))."""
    return say(
        "group", ceil_div(on.ask.concurrency, on.layout.dp * on.layout.replicas), "requests of an attention group"
    )


def step(say: Say, shape: Structure, group: Q, on: Any) -> Q:
    """Time of one step at this concurrency with nothing else running."""
    micro = say("micro_batches", minimum(on.layout.pp, group), "micro-batches in flight")
    sequences = say("sequences", ceil_div(group, micro), "requests of a group in one micro-batch")
    per_request = say("tokens_per_request", on.ask.draft_tokens + 1, "tokens verified per request")
    tokens = say("tokens", sequences * per_request, "tokens of a group in one micro-batch")
    present = minimum(on.ask.concurrency / on.layout.replicas / micro, sequences * on.layout.dp)
    load = SimpleNamespace(
        tokens=tokens,
        sequences=sequences,
        sampled=tokens,
        drafts=True,
        context=say("context", on.ask.isl + on.ask.osl / 2, "mean cached tokens per request"),
        past=0,
        domain_tokens=say("domain_tokens", present * per_request, "tokens of all groups in one micro-batch"),
        entering=say("entering", tokens / (on.layout.tp * on.layout.cp), "tokens that enter the exchange at one chip"),
        same_tokens=on.ranks.decode_tp,
    )
    costs = by_group(say, shape, load, on, lambda kind: kind.decode)
    if shape.draft_attention:
        costs[DRAFT] = draft_pass(say.scope(DRAFT, group=DRAFT), shape, load, on)
    whole, slowest = pass_time(say, shape, costs, hop(say.scope("pipeline", group="hop"), shape, load, on), on)
    turn = say("turn_s", maximum(whole, micro * slowest), "every micro-batch once")
    wait = "waiting for other micro-batches in the pipeline"
    fixed(say.scope("pipeline_wait", group="once"), "pipeline", wait, turn - whole, "derived")
    host = fixed(
        say.scope("host", group="once"), "requests", "host time per request", group * on.stack.request_time,
        on.basis.request_time,
    )  # fmt: skip
    sentence = "scheduling, sampling and launch of a step"
    once = fixed(say.scope("host", group="once"), "step", sentence, on.stack.step_time, on.basis.step_time)
    return say("step_s", (turn + host + once) * on.stack.model_error, "one decode step")
