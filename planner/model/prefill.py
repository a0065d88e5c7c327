"""Prefill: passes of at most `chunk` tokens per attention group.

    new     = ISL (1 - hit),  chunks = ceil(new / chunk),  piece = new / chunks       (even pieces)
    past    = ISL hit + (new - piece)/2                                               (mean over the pieces)
    idle    = k [ all stages + (chunks - 1) slowest ]                                 one prompt, idle system
    share   = k chunks slowest / packed                                               one prompt among many
packed = max(1, floor(chunk / new)): among many, short prompts share a pass. k is the stack's prefill factor.
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
    new = say("new_tokens", on.ask.isl * (1 - on.ask.prefix_hit), "prompt tokens not in the prefix cache")
    chunks = say("chunks", ceil_div(new, on.ask.chunk), "passes over one prompt")
    piece = say("piece", new / chunks, "tokens of one pass over one prompt")
    past = say("past", on.ask.isl * on.ask.prefix_hit + (new - piece) / 2, "tokens already there, mean over passes")
    packed = say("packed", maximum(whole(on.ask.chunk / new), 1), "prompts in one saturated pass")
    return SimpleNamespace(chunks=chunks, piece=piece, past=past, packed=packed)


def load_of(cut: Any, sequences: Q, domain_tokens: Q, on: Any) -> Any:
    """What one pass brings to a chip: CP splits a prompt's tokens, TP the tokens that enter the experts' exchange."""
    tokens = cut.piece * sequences / on.layout.cp
    return SimpleNamespace(
        tokens=tokens,
        sequences=sequences,
        sampled=sequences,
        drafts=False,
        context=cut.past + cut.piece,
        past=cut.past,
        domain_tokens=domain_tokens,
        entering=tokens / on.layout.tp,
        replicated=1,
    )


def saturated_load(cut: Any, on: Any) -> Any:
    """The pass of a busy system: every attention group prefills, short prompts packed."""
    return load_of(cut, cut.packed, cut.piece * cut.packed * on.layout.dp, on)


def one_pass(say: Say, shape: Structure, load: Any, on: Any) -> tuple[Q, Q]:
    """(all stages, slowest stage) of one pass, before the prefill factor."""
    costs = by_group(say, shape, load, on, lambda kind: kind.prefill)
    return pass_time(say, shape, costs, hop(say.scope("pipeline", group="hop"), shape, load, on), on)


def prefill(say: Say, shape: Structure, cut: Any, on: Any) -> tuple[Q, Q]:
    """(one prompt on an idle system, one prompt's share of a saturated one)."""
    idle = say.scope("prefill", phase="prefill")
    whole_idle, slowest_idle = one_pass(idle, shape, load_of(cut, 1, cut.piece, on), on)
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
    alone = idle("idle_s", on.stack.prefill_factor * plain, "one prompt, idle system")
    busy = say.scope("saturated", phase="saturated")
    _, slowest = one_pass(busy, shape, saturated_load(cut, on), on)
    share = busy("share_s", on.stack.prefill_factor * cut.chunks * slowest / cut.packed, "one prompt among many")
    return alone, share
