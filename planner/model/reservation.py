"""What an engine reserves of one request: it hands out memory in blocks of tokens, not in bytes.

    grows      ceil(L / B) B                                  tokens of every layer whose cache grows
    windows    (ceil(min(w - 1 + chunk, L) / B) + 1) B        tokens of every layer with a window of w
    state      P = B g                                        bytes of every layer that keeps a state and no tokens
    B          b, beside states ceil(S / (b g)) b             so that a page holds the largest state S of a layer
L tokens of the request, b tokens of the stack's block, B of the block in use; P bytes of a page, which is a block of
one layer; g the bytes of a token in the layer that keeps most; all of it on one chip. While a prompt is prefilled a
window's layer holds what the first token of a pass still sees, w - 1, and the pass itself; one more block, since a
window need not begin where a block does. A pass is what the engine batches at most: the chunk.
Limits: one allocator, whose layers all have blocks of B tokens; b the multiple that the attention kernel of the stack
asks for; one state a request, no snapshots of it, nor one for every draft; layers of a kind that do not divide evenly
leave pages empty, which is not counted.
Reference: vllm-project/vllm, v1/kv_cache_interface.py, max_memory_usage_bytes of FullAttentionSpec, SlidingWindowSpec
and MambaSpec; platforms/interface.py, _align_hybrid_block_size.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q, ceil_div, maximum
from planner.kinds.attention.kind import Cache
from planner.model.costs import Costs
from planner.quantities import Say


def reserved_by_group(say: Say, caches: dict[str, Cache], on: Any) -> Costs:
    """Bytes an engine reserves for one request on one chip, one layer of every group."""
    block, page = block_and_page(say, list(caches.values()), on)
    return {
        name: say(
            f"{name}_reserved_bytes", kept.reserved(on.ask.length, block, on.ask.chunk, page),
            f"{name}: reserved for one request, one layer, on one chip",
        )
        for name, kept in caches.items()
    }  # fmt: skip


def block_and_page(say: Say, caches: list[Cache], on: Any) -> tuple[Q, Q | None]:
    """(tokens of a block, bytes of a page); no page in a model that keeps no tokens at all."""
    block = on.stack.block_tokens
    tokens = [kept.token for kept in caches if kept.keeps_tokens]
    states = [kept.constant for kept in caches if kept.keeps_state_alone]
    if tokens and states:
        block = ceil_div(maximum(*states), maximum(*tokens) * block) * block
    block = say("block_tokens", block, "tokens of a block, whose page holds the state of a layer")
    if not tokens:
        return block, None
    return block, say("page_bytes", block * maximum(*tokens), "a block of one layer, on one chip")
