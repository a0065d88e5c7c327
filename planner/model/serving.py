"""Serving by the cycle form: what a request lives through when prefill and decode share the chips.

    steps = (OSL - 1) / accepted
    rho   = group share / (group share + steps D)                          how busy prefill is
    own   = idle prefill + rho max(share - idle prefill, 0)                one prompt's own prefill, others prefilling
    cycle = own + (group - 1) share + steps D                              end to end of one request, by Little's law
    rate  = C OSL / cycle
    TTFT  = own + wait,      TPOT = (cycle - TTFT) / (OSL - 1)
    wait  = (group - 1) share / 2                                          waves: all arrive at once
    wait  = min(that, group share^2 / (2 max(cycle - group share, share))) steady: M/D/1 at the prefill's utilisation

rate x cycle = C x OSL always holds, so throughput, TPOT and batch can never contradict each other.
Limits: fixed lengths; the mean, not a percentile; a single prefill server per attention group. The attention groups
step together: the cycle assumes that their prompts are prefilled in the same passes, as a balancing scheduler arranges;
groups that prefill at odds would make every other group wait as well.
Reference: J. Little, A proof for L = lambda W, 1961; M/D/1 wait: Pollaczek-Khinchine.
"""

from __future__ import annotations

from typing import Any

from planner.algebra import Q, maximum, minimum
from planner.model.structure import Structure
from planner.quantities import Say


def serve(say: Say, shape: Structure, group: Q, alone: Q, share: Q, step: Q, on: Any) -> None:
    """Name the headline times and rates of a served deployment."""
    gaps = maximum(on.ask.osl - 1, 1)
    steps = say("steps", (on.ask.osl - 1) / on.ask.accepted_length, "decode steps of one request")
    prefills, decodes = group * share, steps * step
    busy = say("prefill_busy", prefills / (prefills + decodes), "share of the time that goes to prefill")
    own = say("own_prefill_s", alone + busy * maximum(share - alone, 0), "one prompt's own prefill, others prefilling")
    cycle = say("e2e_s", own + (group - 1) * share + decodes, "a request from arrival to last token")
    longest = (group - 1) * share / 2
    if shape.arrivals == "waves":
        wait = say("wait_s", longest, "mean wait behind other prompts")
    else:
        idle = maximum(cycle - prefills, share)
        wait = say("wait_s", minimum(longest, prefills * share / (2 * idle)), "mean wait behind other prompts")
    ttft = say("ttft_s", own + wait, "time to first token as served")
    say("tpot_s", (cycle - ttft) / gaps, "time per output token as served")
    rate = say("tokens_per_s", on.ask.concurrency * on.ask.osl / cycle, "output tokens, whole deployment")
    say("requests_per_s", on.ask.concurrency / cycle, "requests completed, whole deployment")
    lent = on.layout.lent
    say("chip_tokens_per_s", rate / lent, "output tokens per chip lent")
    streaming = maximum(cycle - ttft, step / on.ask.accepted_length)
    say("user_tokens_per_s", gaps / streaming, "output tokens one user sees: 1 / TPOT")
    prompts = on.layout.dp * on.layout.replicas * on.ask.isl / share / lent
    say("prefill_chip_tokens_per_s", prompts, "prompt tokens per chip, saturated, nothing else running")
    per_step = on.ask.concurrency * on.ask.accepted_length / (step * lent)
    say("decode_chip_tokens_per_s", per_step, "output tokens per chip, decode alone")
    cost(say.scope("cost"), rate, on)


def cost(say: Say, rate: Q, on: Any) -> None:
    """The whole bill of the chips lent over each stream of tokens, USD per million tokens."""
    bill = say("bill_usd_per_s", on.chip.price * on.layout.lent, "all chips lent")
    million = on.constant.million
    say("output_usd", bill / rate * million, "bill over output tokens, per million")
    say("input_usd", bill / (rate / on.ask.osl * on.ask.isl) * million, "bill over input tokens, per million")
    total = rate / on.ask.osl * (on.ask.isl + on.ask.osl)
    say("total_usd", bill / total * million, "bill over input and output tokens, per million")
