"""Prefill: passes of at most `chunk` tokens per attention group.

    new     = max(ISL (1 - hit), 1),  chunks = ceil(new / chunk),  piece = new / chunks       (even pieces)
    past    = ISL - new + (new - piece)/2                                             (mean over the pieces)
    idle    = e (k [ all stages + (chunks - 1) slowest ] + o_first)                   one prompt, idle system
    share   = e k chunks slowest / packed                                             one prompt among many
packed = max(1, floor(chunk / new)): among many, short prompts share a pass. k is the stack's prefill factor, e
the model's own error: 1, with the range that measurements have shown.
Time is linear in the past, so the mean piece stands for all; against exact pieces the error is under 0.1 %.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from planner.algebra import Q, ceil_div, maximum, whole
from planner.model.costs import by_group, hop, pass_time
from planner.model.structure import Structure
from planner.quantities import Say
from planner.roofline import fixed


def pieces(say: Say, on: Any) -> Any:
    """How a prompt is cut: new tokens, chunks, tokens of a piece, mean past, prompts packed in a pass."""
    new = say("new_tokens", maximum(on.ask.isl * (1 - on.ask.prefix_hit), 1), "prompt tokens not in the prefix cache")
    chunks = say("chunks", ceil_div(new, on.ask.chunk), "passes over one prompt")
    piece = say("piece", new / chunks, "tokens of one pass over one prompt")
    past = say("past", on.ask.isl - new + (new - piece) / 2, "tokens already there, mean over passes")
    packed = say("packed", maximum(whole(on.ask.chunk / new), 1), "prompts in one saturated pass")
    return SimpleNamespace(chunks=chunks, piece=piece, past=past, packed=packed)


def load_of(say: Say, cut: Any, sequences: Q, groups: Q, on: Any) -> Any:
    """What one pass of `groups` attention groups brings to a chip.

    CP splits a prompt's tokens; TP splits the tokens that enter the experts' exchange.
    """
    tokens = say("tokens", cut.piece * sequences / on.layout.cp, "tokens of a pass on one chip")
    return SimpleNamespace(
        tokens=tokens,
        sequences=sequences,
        sampled=sequences,
        drafts=False,
        past=cut.past,
        domain_tokens=say("domain_tokens", cut.piece * sequences * groups, "tokens of a pass, all groups that prefill"),
        entering=say("entering", tokens / on.layout.tp, "tokens that enter the exchange at one chip"),
        same_tokens=on.ranks.tp,
    )


def one_pass(say: Say, shape: Structure, load: Any, on: Any) -> tuple[Q, Q]:
    """(all stages, slowest stage) of one pass, before the prefill factor."""
    costs = by_group(say, shape, load, on, lambda kind: kind.prefill)
    return pass_time(say, shape, costs, hop(say.scope("pipeline", group="hop"), shape, load, on), on)


def prefill(say: Say, shape: Structure, cut: Any, busy: Any, on: Any) -> tuple[Q, Q]:
    """(one prompt on an idle system, one prompt's share of a saturated one); `busy` is the saturated pass's load."""
    idle = say.scope("prefill", phase="prefill")
    whole_idle, slowest_idle = one_pass(idle, shape, load_of(idle, cut, 1, 1, on), on)
    plain = idle(
        "plain_s", whole_idle + (cut.chunks - 1) * slowest_idle, "all passes over one prompt, before the factor"
    )
    behind = "passes of one prompt that overlap in the pipeline"
    fixed(idle.scope("pipeline_overlap", group="once"), "pipeline", behind, plain - cut.chunks * whole_idle, "derived")
    factor = "measured over modelled prefill"
    fixed(
        idle.scope("engine", group="once"), "factor", factor, (on.stack.prefill_factor - 1) * plain,
        on.basis.prefill_factor,
    )  # fmt: skip
    before = "front end, tokenizer and admission"
    front = fixed(
        idle.scope("front", group="once"), "request", before, on.stack.first_token_time, on.basis.first_token_time
    )
    alone = idle("idle_s", (on.stack.prefill_factor * plain + front) * on.stack.model_error, "one prompt, idle system")
    full = say.scope("saturated", phase="saturated")
    _, slowest = one_pass(full, shape, busy, on)
    factors = on.stack.prefill_factor * on.stack.model_error
    share = full("share_s", factors * cut.chunks * slowest / cut.packed, "one prompt among many")
    return alone, share
