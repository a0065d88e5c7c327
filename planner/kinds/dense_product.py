"""One dense product of a layer: all its weight matrices, read once, times the tokens of the pass.

    t = floor (+)_q [ bytes / (BW e_m) (+)_p sum over formats f of 2 P_f n / (F_f e_c) ]

P_f is what this chip holds of the matrices that compute in format f (the stack's `computes`), n the tokens of the pass.
Activations are left out: at the widths in question they are under 2 % of the weights for a decode batch, and the
arithmetic hides them in prefill.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q
from planner.kinds.weights import Held
from planner.quantities import Say
from planner.roofline import operator


def dense_product(say: Say, name: str, sentence: str, held: list[Held], tokens: Q, on: Any) -> Q:
    """Time of the products of `tokens` rows with what this chip holds."""
    moved = sum(part.read_bytes for part in held)
    formats = sorted({format for part in held for format in part.computed})
    madd = on.constant.multiply_add_flops * tokens
    flops = {format: madd * sum(part.computed.get(format, 0) for part in held) for format in formats}
    return operator(say, name, sentence, on.kernel.dense, moved, flops)
