"""Every flag once: its name and its help; planner.specs.flags turns its text into a value."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planner.specs.flags import choice as choice
from planner.specs.flags import confidence_of as confidence_of
from planner.specs.flags import count as count
from planner.specs.flags import maybe_count as maybe_count
from planner.specs.flags import number as number
from planner.specs.flags import per_second as per_second
from planner.specs.flags import positive as positive
from planner.specs.flags import seconds as seconds
from planner.specs.flags import slo_of as slo_of
from planner.specs.flags import workload_of as workload_of
from planner.units import parse_count


def drawn(text: str | None) -> int | None:
    """The draws asked for; how many there may be is said where they are drawn. Raises BadUnit."""
    return None if text is None else parse_count(text, "--draws")


def complete(kind: str) -> Any:
    """A completer of the names of a kind of spec."""

    def names_of(incomplete: str) -> list[str]:
        from planner.specs.library import names

        return [name for name in names(kind) if name.startswith(incomplete)]

    return names_of


Name = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        autocompletion=complete("model"),
        help="a name in model_specs/, a YAML, a config.json or its folder, hf:org/repo",
    ),
]
On = Annotated[
    str,
    typer.Option(
        "--on", metavar="SYSTEM", autocompletion=complete("system"), help="a name in hardware_specs/systems/, or a path"
    ),
]
LayoutText = Annotated[str, typer.Option("--layout", metavar="LAYOUT", help="such as 'TP8 DP8 EP64'")]
AnyLayout = Annotated[
    str | None, typer.Option("--layout", metavar="LAYOUT", help="such as 'TP8 DP8 EP64'; default: roomiest")
]
Isl = Annotated[str, typer.Option("--isl", metavar="N", help="prompt tokens of a request: 8192 or 8k")]
Osl = Annotated[str, typer.Option("--osl", metavar="N", help="output tokens of a request: 1024 or 1k")]
Concurrency = Annotated[str, typer.Option("--concurrency", metavar="N", help="requests in flight, whole deployment")]
AnyConcurrency = Annotated[
    str | None,
    typer.Option("--concurrency", metavar="N", help="requests in flight, whole deployment; default: searched"),
]
Rate = Annotated[str | None, typer.Option("--rate", metavar="R", help="requests to serve, such as 20/s")]
Ttft = Annotated[str | None, typer.Option("--ttft", metavar="T", help="target for time to first token, such as 2s")]
Tpot = Annotated[str | None, typer.Option("--tpot", metavar="T", help="target for time per output token, such as 50ms")]
Chips = Annotated[str | None, typer.Option("--chips", metavar="N", help="chips lent; replicas fill them")]
StackName = Annotated[
    str | None,
    typer.Option(
        "--stack", metavar="STACK", autocompletion=complete("stack"), help="software stack; default: the system's"
    ),
]
KvDtype = Annotated[str, typer.Option("--kv-dtype", metavar="D", help="cache format: bf16 fp8 int8 int4 mxfp4 nvfp4")]
StateDtype = Annotated[str, typer.Option("--state-dtype", metavar="D", help="recurrent state format: fp32 bf16")]
Chunk = Annotated[
    str | None, typer.Option("--chunk", metavar="N", help="prefill tokens per pass; default: the stack's")
]
Arrivals = Annotated[str, typer.Option("--arrivals", metavar="A", help="steady or waves")]
MemoryFraction = Annotated[
    str | None, typer.Option("--memory-fraction", metavar="F", help="share of memory usable, 0 to 1")
]
PrefixHit = Annotated[str, typer.Option("--prefix-hit", metavar="F", help="share of the prompt already cached, 0 to 1")]
RoutingSkew = Annotated[
    str, typer.Option("--routing-skew", metavar="F", help="heaviest expert rank over the mean, from 1")
]
DraftTokens = Annotated[str, typer.Option("--draft-tokens", metavar="K", help="tokens drafted and verified per step")]
AcceptedLength = Annotated[
    str, typer.Option("--accepted-length", metavar="A", help="tokens gained per step, 1 to K + 1")
]
Vision = Annotated[bool, typer.Option("--vision", help="load the vision tower on the first stage")]
Objective = Annotated[str, typer.Option("--objective", metavar="O", help="throughput, latency or cost")]
Mode = Annotated[str, typer.Option("--mode", metavar="M", help="aggregated: prefill and decode share the chips")]
Top = Annotated[str, typer.Option("--top", metavar="N", help="layouts to show")]
MaxLen = Annotated[
    str | None, typer.Option("--max-len", metavar="N", help="tokens of a request; default: the model's context")
]
QuantityName = Annotated[
    str | None, typer.Option("--quantity", metavar="NAME", help="one named quantity: its formula and value")
]
Latex = Annotated[bool, typer.Option("--latex", help="formulas as LaTeX")]
ClosedForm = Annotated[
    str | None,
    typer.Option(
        "--closed-form",
        metavar="INPUTS",
        help="--quantity as one formula in these inputs: hbm_bandwidth,..., specs or all",
    ),
]
SpecsOnly = Annotated[bool, typer.Option("--specs", help="only the specs and citations behind --quantity")]
Growth = Annotated[bool, typer.Option("--growth", help="time of each part against context, 8k to the model's limit")]
Sensitivities = Annotated[
    bool, typer.Option("--sensitivities", help="how strongly every input moves TTFT, TPOT, throughput and cost")
]
Tornado = Annotated[
    bool, typer.Option("--tornado", help="what each estimated input's range does, and which one to measure")
]
Draws = Annotated[
    str | None, typer.Option("--draws", metavar="N", help="draws of the estimated specs behind a range; default: 512")
]
For = Annotated[
    str, typer.Option("--for", metavar="VARIABLE", help="the input to find: hbm_bandwidth, context, chip.price, ...")
]
TargetText = Annotated[
    str,
    typer.Option("--target", metavar="TARGET", help="'tpot<=20ms', 'memory', 'exchange_share<=5%', 'bound=compute'"),
]
Confidence = Annotated[
    str | None,
    typer.Option("--confidence", metavar="C", help="share of the draws in which the target is to be met: 90%"),
]
MaybeIsl = Annotated[str | None, typer.Option("--isl", metavar="N", help="prompt tokens of a request, unless sought")]
MaybeOsl = Annotated[str | None, typer.Option("--osl", metavar="N", help="output tokens of a request, unless sought")]
MaybeConcurrency = Annotated[
    str | None, typer.Option("--concurrency", metavar="N", help="requests in flight, unless sought")
]
Json = Annotated[bool, typer.Option("--json", help="the answer as JSON on stdout")]
