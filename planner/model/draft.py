"""A checkpoint's own draft layers: K passes a step, each over the layers of one draft step.

    pass  = join(P, n) + layers(n) + head(b),      n = (K + 1 + K - 1) / K b = 2 b
    step += K pass / steps                         where every draft step has layers of its own, 1 of `steps` runs
b sequences. The first pass goes over the K + 1 tokens of the step before, so that the draft's cache is complete, each
later one over one token: 2 on average whatever K is. Layers are priced like the model's own, with the tables the model
has: embedding rows, and the head for one row a sequence. Weights and cache of the draft are the last stage's.
Limits: the prompt's pass through the draft layers is left out, a layer among all; experts run in the model's format; a
head of the draft's own is read beside the model's.
Reference: DeepSeek-V3 technical report, arXiv:2412.19437, section 2.2; vllm-project/vllm, v1/spec_decode/eagle.py.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from planner.algebra import Q
from planner.kinds.dense_product import dense_product
from planner.model.costs import Costs, every_layer, every_mixer, first
from planner.model.structure import Structure
from planner.quantities import Say
from planner.stages import LAST

PASS_TOKENS = 2  # of a sequence in one pass, on average over the passes of a step


def draft_pass(say: Say, shape: Structure, load: Any, on: Any) -> Q:
    """Time of one pass over the draft's layers, its head included."""
    one = copy(load)
    one.tokens = say("tokens", PASS_TOKENS * load.sequences, "tokens of a group in one draft pass")
    share = one.tokens / load.tokens
    one.domain_tokens, one.entering = load.domain_tokens * share, load.entering * share
    time = first(say.scope("embedding"), one, on)
    time = time + dense_product(say, "join", "hidden state and embedding joined", drafted(on), one.tokens, on)
    for name, kind in shape.draft_attention:
        inner = say.scope(name, kind.reference)
        time = time + kind.decode(inner, on.groups[name], one, on) + every_mixer(inner.scope("output"), one, on)
        time = time + every_layer(inner.scope("every"), shape, one, on)
    for name, feed in shape.draft_feed_forward:
        time = time + feed.layer(say.scope(name, feed.reference), on.groups[name], one, on)
    head = [*on.tables["head"].values()]
    time = time + dense_product(say, "logits", "output head of a draft pass", head, load.sequences, on)
    return say("pass_s", time, "one pass over the draft's layers")


def drafted(on: Any) -> list[Any]:
    """What one chip holds of the draft outside its layers."""
    return [*on.tables["draft"].values()]


def with_last(costs: Costs, shape: Structure) -> Costs:
    """What the draft's layers hold, counted with the last stage."""
    names = [name for name, _ in shape.draft_attention]
    own = {name: cost for name, cost in costs.items() if name not in names}
    return {**own, LAST: sum(costs[name] for name in names)} if names else own
