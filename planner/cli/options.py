"""Every flag once: its name, its help, and how its text becomes a value."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planner.errors import BadInput, BadUnit, BadWorkload, UnknownName, nearest
from planner.units import NUMBER, parse, parse_count


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


SHORTEST_S = 1e-9
LONGEST_NUMBER = 40  # letters
ROUNDING = 1e-9  # of a share such as 1 - 1/3


def choice(text: str, flag: str, allowed: tuple[str, ...]) -> Any:
    """One of the allowed words, case ignored. Raises UnknownName."""
    if text.lower() not in allowed:
        close = nearest(text, allowed)
        do = close if close.startswith("did you mean") and "one of" not in close else f"use {allowed[0]}, or another"
        raise UnknownName(flag, f"{text!r} is not one of {' '.join(allowed)}", do)
    return text.lower()


def count(text: str, flag: str, least: int = 1) -> int:
    """A whole number of at least `least`; 8k is 8192. Raises BadUnit, BadWorkload."""
    value = parse_count(text, flag)
    if value < least:
        raise BadWorkload(flag, f"{text} is below {least}", f"give a whole number from {least}")
    return value


def maybe_count(text: str | None, flag: str) -> int | None:
    """A count, or None where the flag was not given."""
    return None if text is None else count(text, flag)


def seconds(text: str | None, flag: str) -> float | None:
    """A duration above zero, or None. Raises BadUnit, BadWorkload."""
    if text is None:
        return None
    value = positive(parse(text, "s", flag), text, flag)
    if value < SHORTEST_S:
        raise BadWorkload(flag, f"{text} is shorter than any answer of a machine", "give at least 1ns")
    return value


def per_second(text: str | None, flag: str) -> float | None:
    """A rate above zero, or None."""
    return None if text is None else positive(parse(text, "1/s", flag), text, flag)


def confidence_of(text: str | None) -> float | None:
    """'90%' or '0.9' as a share, or None. Raises BadUnit, BadWorkload."""
    if text is None:
        return None
    share = text.strip()
    scale = 100 if share.endswith("%") else 1
    return number(share.removesuffix("%"), "--confidence", 0.5 * scale, 0.99 * scale) / scale


def positive(value: float, text: str, flag: str) -> float:
    """The value if it is above zero. Raises BadWorkload."""
    if value <= 0:
        raise BadWorkload(flag, f"{text} is not above zero", "give a positive value")
    return value


def number(text: str, flag: str, low: float, high: float) -> float:
    """A plain number within [low, high]. Raises BadUnit, BadWorkload."""
    match = NUMBER.match(text) if len(text) < LONGEST_NUMBER else None
    if match is None or match[2]:
        raise BadUnit(flag, f"{text!r} is not a number", f"give a number from {low:g} to {high:g}")
    value = float(match[1])
    if not low <= value <= high:
        raise BadWorkload(flag, f"{text} is not within {low:g} to {high:g}", "give a value in that range")
    return value


def workload_of(
    *, isl: str, osl: str, concurrency: str | None = None, kv_dtype: str, state_dtype: str, chunk: str | None,
    arrivals: str, memory_fraction: str | None, prefix_hit: str, routing_skew: str, draft_tokens: str,
    accepted_length: str, vision: bool, some_isl: bool = True,
) -> Any:  # fmt: skip
    """The workload the flags describe. some_isl: the prompt is asked for, and does not stand in for one that is sought.

    Raises BadInput leaves, each naming its flag.
    """
    from planner.kinds.formats import CHOICES
    from planner.specs.workload import MOST_DRAFTS, Workload

    fraction = None if memory_fraction is None else number(memory_fraction, "--memory-fraction", 0.01, 1)
    hit, prompt = number(prefix_hit, "--prefix-hit", 0, 1), count(isl, "--isl")
    if some_isl and prompt * (1 - hit) < 1 - ROUNDING:
        what = f"{prefix_hit} of {prompt} tokens leaves less than one token to prefill"
        raise BadInput("--prefix-hit", what, "give a smaller share")
    drafts = count(draft_tokens, "--draft-tokens", 0)
    if drafts > MOST_DRAFTS:
        raise BadWorkload("--draft-tokens", f"{draft_tokens} is over {MOST_DRAFTS}", f"draft at most {MOST_DRAFTS}")
    return Workload(
        isl=prompt,
        osl=count(osl, "--osl"),
        concurrency=maybe_count(concurrency, "--concurrency"),
        kv_format=choice(kv_dtype, "--kv-dtype", CHOICES),
        state_format=choice(state_dtype, "--state-dtype", ("fp32", "bf16")),
        chunk=maybe_count(chunk, "--chunk"),
        arrivals=choice(arrivals, "--arrivals", ("steady", "waves")),
        memory_fraction=fraction,
        prefix_hit=hit,
        routing_skew=number(routing_skew, "--routing-skew", 1, 1000),
        draft_tokens=drafts,
        accepted_length=number(accepted_length, "--accepted-length", 1, 1000),
        vision=vision,
    )
