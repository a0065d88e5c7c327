"""What an engine reserves of one request: it hands out memory in blocks of tokens, not in bytes.

    grows      ceil(L / B) B                                  tokens of every layer whose cache grows
    windows    (ceil(min(w - 1 + chunk, L) / B) + 1) B        tokens of every layer with a window of w
L tokens of the request, B tokens of a block. While a prompt is prefilled a window's layer holds what the first token of
a pass still sees, w - 1, and the pass itself; one more block, since a window need not begin where a block does. A pass
is what the engine batches at most: the chunk.
Limits: one allocator, whose layers all have blocks of B tokens; prefix caching keeps more.
Reference: vllm-project/vllm, v1/kv_cache_interface.py, FullAttentionSpec and SlidingWindowSpec.max_memory_usage_bytes.
"""

from __future__ import annotations

from typing import Any

from planner.kinds.attention.kind import Cache
from planner.model.costs import Costs
from planner.quantities import Say


def reserved_by_group(say: Say, caches: dict[str, Cache], on: Any) -> Costs:
    """Bytes an engine reserves for one request on one chip, one layer of every group."""
    block = on.stack.block_tokens
    return {
        name: say(
            f"{name}_reserved_bytes", kept.reserved(on.ask.length, block, on.ask.chunk),
            f"{name}: reserved for one request, one layer, on one chip",
        )
        for name, kept in caches.items()
    }  # fmt: skip
