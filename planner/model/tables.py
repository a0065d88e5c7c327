"""Weights outside the layer kinds: embedding, output head, vision tower, draft model.

Embedding and head are vocabulary x width, split over attention TP, each rank's rows padded to the stack's multiple. The
vision tower is copied on every chip of the first stage, and only where it is loaded. A draft is split over attention TP
on the last stage.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from planner.algebra import Q, ceil_div, several
from planner.kinds.weights import Held, Shares, Weight, all_bytes, held, shares
from planner.model.structure import Structure
from planner.quantities import Say


def embedding(on: Any) -> list[Weight]:
    """The input table."""
    return [Weight("embedding", on.model.vocabulary * on.model.width, on.model.table_value_bytes, "tp", product=False)]


def head(on: Any) -> list[Weight]:
    """The output table."""
    return [Weight("head", on.model.vocabulary * on.model.width, on.model.table_value_bytes, "tp")]


def draft(on: Any) -> list[Weight]:
    """The draft model, read whole once per verify step; of a checkpoint's own draft layers what is in no layer."""
    return [Weight("draft", on.draft.parameters, on.draft.value_bytes, "tp")]


def held_tables(say: Say, shape: Structure, on: Any) -> dict[str, dict[str, Held]]:
    """What one chip holds of each table, by table and sharding."""
    rows = ceil_div(on.model.vocabulary, on.layout.tp * on.stack.vocabulary_multiple) * on.stack.vocabulary_multiple
    table: Shares = {"tp": say("table_share", rows / on.model.vocabulary, "rows of a table on one rank, padded")}
    tables = SimpleNamespace(format=on.model.table_format)
    found = {
        "embedding": held(say.scope("embedding"), embedding(on), table, tables, on),
        "head": held(say.scope("head"), head(on), table, tables, on),
    }
    if shape.speculates:
        found["draft"] = held(say.scope("draft"), draft(on), shares(on.layout.tp), on.draft, on)
    return found


def first_stage(shape: Structure, on: Any) -> Q:
    """Bytes one chip of the first stage holds beside its layers; a tied table is held once where there is one stage."""
    table = all_bytes(on.tables["embedding"])
    kept = table * several(on.layout.pp) if shape.tied else table
    return kept + on.model.vision_bytes if shape.vision else kept


def last_stage(shape: Structure, on: Any) -> Q:
    """Bytes one chip of the last stage holds beside its layers."""
    table = all_bytes(on.tables["head"])
    if not shape.speculates:
        return table
    layers = [all_bytes(on.groups[name].held) for name, _ in (*shape.draft_attention, *shape.draft_feed_forward)]
    return table + all_bytes(on.tables["draft"]) + sum(layers)
