"""`planner solve`: an input from a target."""

from __future__ import annotations

from planner.cli import options as o
from planner.cli.output import emit
from planner.errors import BadInput

ASKED = {"context": "isl", "isl": "isl", "ask.isl": "isl", "osl": "osl", "ask.osl": "osl", "batch": "concurrency",
         "concurrency": "concurrency", "ask.concurrency": "concurrency"}  # fmt: skip
"""Variables that are flags of the workload: the one that is sought need not be given."""


def solve(
    model: o.Name, on: o.On, layout: o.LayoutText, variable: o.For, target: o.TargetText, isl: o.MaybeIsl = None,
    osl: o.MaybeOsl = None, concurrency: o.MaybeConcurrency = None, chips: o.Chips = None, stack: o.StackName = None,
    kv_dtype: o.KvDtype = "bf16", state_dtype: o.StateDtype = "fp32", chunk: o.Chunk = None,
    arrivals: o.Arrivals = "steady", memory_fraction: o.MemoryFraction = None, prefix_hit: o.PrefixHit = "0",
    routing_skew: o.RoutingSkew = "1", draft_tokens: o.DraftTokens = "0", accepted_length: o.AcceptedLength = "1",
    confidence: o.Confidence = None, vision: o.Vision = False, as_json: o.Json = False,
) -> None:  # fmt: skip
    """The value of one input at which a target is just met: bandwidth for a TPOT, context for a memory, batch."""
    from planner.evaluate.solve import solve as search
    from planner.report.solve import draw_solution

    given = {"isl": isl, "osl": osl, "concurrency": concurrency}
    sought = ASKED.get(variable.lower())
    for name, value in given.items():
        if value is None and name != sought:
            raise BadInput(f"--{name}", "is not given", f"only the variable of --for may be left out, here {variable}")
    workload = o.workload_of(
        isl=isl or "1", osl=osl or "1", concurrency=concurrency or "1", kv_dtype=kv_dtype, state_dtype=state_dtype,
        chunk=chunk, arrivals=arrivals, memory_fraction=memory_fraction, prefix_hit=prefix_hit,
        routing_skew=routing_skew, draft_tokens=draft_tokens, accepted_length=accepted_length, vision=vision,
        some_isl=isl is not None,
    )  # fmt: skip
    answer = search(
        model, on, layout, workload, variable, target, stack=stack, chips=o.maybe_count(chips, "--chips"),
        confidence=o.confidence_of(confidence),
        given=sought is None or given[sought] is not None,
    )  # fmt: skip
    emit(answer, as_json, draw_solution)
