"""What an engine reserves of one request: it hands out memory in blocks of tokens, not in bytes.

    grows      ceil(L / B) B                                  tokens of every layer whose cache grows
    windows    (ceil(min(w - 1 + chunk, L) / B) + 1) B        tokens of every layer with a window of w
    state      ceil(S / P) P,    P = B g                      bytes of every layer that keeps a state and no tokens
L tokens of the request, B tokens of a block, P bytes of a page: a block of one layer, g the bytes of a token in the
layer that keeps most. While a prompt is prefilled a window's layer holds what the first token of a pass still sees,
w - 1, and the pass itself; one more block, since a window need not begin where a block does. A pass is what the engine
batches at most: the chunk. State lies in the same pages as tokens, so it takes whole ones.
Limits: one allocator, whose layers all have blocks of B tokens; one state a request, no snapshots of it, nor one for
every draft; layers of a kind that do not divide evenly leave pages empty, which is not counted.
Reference: vllm-project/vllm, v1/kv_cache_interface.py, max_memory_usage_bytes of FullAttentionSpec, SlidingWindowSpec
and MambaSpec.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q, maximum
from planner.kinds.attention.kind import Cache
from planner.model.costs import Costs
from planner.quantities import Say


def reserved_by_group(say: Say, caches: dict[str, Cache], on: Any) -> Costs:
    """Bytes an engine reserves for one request on one chip, one layer of every group."""
    block = on.stack.block_tokens
    page = page_of(say, caches, block)
    return {
        name: say(
            f"{name}_reserved_bytes", kept.reserved(on.ask.length, block, on.ask.chunk, page),
            f"{name}: reserved for one request, one layer, on one chip",
        )
        for name, kept in caches.items()
    }  # fmt: skip


def page_of(say: Say, caches: dict[str, Cache], block: Q) -> Q:
    """Bytes of a page; the literal 0 in a model that keeps no tokens at all."""
    tokens = [kept.token for kept in caches.values() if kept.keeps_tokens]
    return say("page_bytes", block * maximum(*tokens), "a block of tokens in one layer, on one chip") if tokens else 0
