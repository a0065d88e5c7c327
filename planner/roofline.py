"""Time of one operator: a soft roofline with a floor.

    t = floor (+)_q [ bytes / (BW e_m)  (+)_p  flops / (F e_c) ] + added,      x (+)_p y = (x^p + y^p)^(1/p)

    BW  memory bandwidth, B/s          e_m  share of it the kernel reaches
    F   peak rate of its format, FLOP/s   e_c  share of it the kernel reaches
    floor   time of the kernel with no work, s;  added  launches around an unfused kernel, s

p and q are the kernel's form (algebra.soft_max). p = 1: weights stream first, arithmetic follows (experts);
p = 1.5: dense products near the ridge; q = 2: the floor hides in the stream (recurrences).

Limits: below a few megabytes a working set may sit in the last-level cache and run faster than BW; not modelled.
The bound alone, max(bytes / BW, flops / F), is every operator's floor_s: no time may beat it.
Reference: S. Williams, A. Waterman, D. Patterson, "Roofline", CACM 52(4), 2009, softened by the p-norm.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from types import SimpleNamespace
from typing import Any

from planner.algebra import Q, maximum, soft_max
from planner.quantities import Say

BOUNDS = ("compute", "memory", "network", "latency")


def rates(say: Say, chip: Any, kernel: Any, more: Iterable[str] = ()) -> Any:
    """What a kernel reaches on a chip: its stream in B/s and, where it computes, its arithmetic in FLOP/s by format.

    more: formats it runs in beside its own, at its `fractions` of their peaks, else the same share.
    """
    reached = SimpleNamespace(**vars(kernel))
    reached.memory_bytes_per_s = chip.memory_bandwidth
    reached.stream_bytes_per_s = say(
        "stream_bytes_per_s", chip.memory_bandwidth * kernel.memory_fraction, "memory bandwidth this kernel reaches"
    )
    reached.peak_flops_per_s, reached.reach_flops_per_s = {}, {}
    own = [] if kernel.compute_format is None else [kernel.compute_format]
    for format in [*own, *sorted(set(more) - set(own))]:
        name = "" if format in own else f"{format}_"
        peak = reached.peak_flops_per_s[format] = getattr(chip, f"{format}_rate")
        share = getattr(getattr(kernel, "fractions", None), format, kernel.compute_fraction)
        reached.reach_flops_per_s[format] = say(
            f"{name}reach_flops_per_s", peak * chip.sustained * share, f"arithmetic this kernel reaches in {format}"
        )
    return reached


def operator(
    say: Say, name: str, sentence: str, kernel: Any, moved: Q, flops: Q | dict[str, Q] = 0, *,
    sequential: Q = 0, extra: Q = 0,
) -> Q:  # fmt: skip
    """Time of one run of a kernel that moves `moved` bytes and does `flops` FLOP; entered in the breakdown.

    flops: in the kernel's own format, or by format where one run computes in several, one after the other.
    sequential: a chain of dependent steps that neither bandwidth nor arithmetic shortens, s.
    extra: time that is neither stream nor arithmetic (per-row work of an exchange kernel), s.
    """
    say = say.scope(name)
    moved = say("bytes", moved * kernel.traffic, "bytes moved to and from memory")
    busy = moved / kernel.stream_bytes_per_s
    work = by_format(say, kernel, flops)
    if work:
        reach = [part / kernel.reach_flops_per_s[format] for format, part in work.items()]
        busy = soft_max(kernel.norm, busy, reduce(add, reach))
    if not is_zero(sequential):
        sequential = say("sequential_s", sequential, "steps that depend on each other")
        busy = busy + sequential
    time = say("time_s", soft_max(kernel.floor_norm, kernel.floor, busy) + kernel.added + extra, sentence)
    if say.keeps_floors:
        memory = moved / kernel.memory_bytes_per_s
        peak = [part / kernel.peak_flops_per_s[format] for format, part in work.items()]
        compute = reduce(add, peak) if work else 0.0
        fixed = kernel.floor + kernel.added + extra + sequential
        floor = say("floor_s", memory if not work else maximum(memory, compute), "bound alone, at peak rates")
        say.operator(
            name=name, sentence=sentence, time_s=time, floor_s=floor, flops=reduce(add, work.values()) if work else 0.0,
            bytes=moved, network_bytes=0.0,
            parts={"compute": compute, "memory": memory, "latency": fixed}, basis=kernel.basis,
        )  # fmt: skip
    return time


def by_format(say: Say, kernel: Any, flops: Q | dict[str, Q]) -> dict[str, Q]:
    """Arithmetic of a run, named, by the format it runs in; nothing where there is none."""
    if not isinstance(flops, dict):
        flops = {} if is_zero(flops) else {kernel.compute_format: flops}
    if len(flops) == 1:
        return {format: say("flops", part, "arithmetic") for format, part in flops.items()}
    return {format: say(f"{format}_flops", part, f"arithmetic in {format}") for format, part in flops.items()}


def exchange(
    say: Say, name: str, sentence: str, link: Any, near: Q, far: Q, alpha: Q, at_once: bool = False
) -> Q:  # fmt: skip
    """Time of one collective: alpha + near / (B_up eta) + far / (B_out eta_out); entered in the breakdown.

    at_once: both fabrics are busy at the same time, so that the larger of the two terms counts.

    near, far: bytes this chip sends inside and outside its scale-up domain; alpha: start-up time, s.
    """
    say = say.scope(name)
    near = say("network_bytes", near, "bytes this chip sends inside its scale-up domain")
    busy = near / link.near_bytes_per_s
    floor = near / link.near_peak_bytes_per_s
    if not is_zero(far):
        far = say("far_network_bytes", far, "bytes this chip sends outside its scale-up domain")
        outside, least = far / link.far_bytes_per_s, far / link.far_peak_bytes_per_s
        busy = maximum(busy, outside) if at_once else busy + outside
        floor = maximum(floor, least) if at_once else floor + least
    time = say("time_s", alpha + busy, sentence)
    if say.keeps_floors:
        floor = say("floor_s", floor, "bytes at the peak rate of the link")
        say.operator(
            name=name, sentence=sentence, time_s=time, floor_s=floor, flops=0.0, bytes=0.0, network_bytes=near + far,
            parts={"network": floor, "latency": alpha}, basis=link.basis,
        )  # fmt: skip
    return time


def fixed(say: Say, name: str, sentence: str, time: Q, basis: str) -> Q:
    """Time that no bound explains: launches, gaps, host work; entered in the breakdown as latency."""
    time = say.scope(name)("time_s", time, sentence)
    if say.keeps_floors:
        say.operator(
            name=name, sentence=sentence, time_s=time, floor_s=0.0, flops=0.0, bytes=0.0, network_bytes=0.0,
            parts={"latency": time}, basis=basis,
        )  # fmt: skip
    return time


def is_zero(value: Q) -> bool:
    """Structurally absent: the literal 0, not a quantity that happens to be 0."""
    return isinstance(value, int) and value == 0
