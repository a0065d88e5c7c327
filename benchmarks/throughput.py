"""Estimates a second on one core, three ways: the formulas on open grids, compiled, and hand-written numpy.

    python benchmarks/throughput.py [--quick]

Runs on one core: the process is pinned to it where the system allows, and numpy starts no threads for these operations.
Times are processor time; the methods take turns, each with the block size it is fastest with.

A complete estimate is memory, prefill of one prompt on an idle system, saturated prefill, one decode step, serving and
cost of one deployment, down to all headline outputs and the memory slack, which are returned every time. Counted are
points that differ in their inputs, whose layouts are legal and which fit in memory.

Model and system: kimi-k3 on zhenwu-m890-supernode, all legal layouts that `planner plan` would try.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hand import hand

from planner.evaluate import compiled
from planner.evaluate.case import case_of, point_of
from planner.evaluate.estimate import HEADLINES, run
from planner.evaluate.grid import evaluate
from planner.evaluate.inputs import Leaf, asked, leaves
from planner.evaluate.sheet import build
from planner.search.space import Space, candidates, most_requests, narrowed, space_of
from planner.specs.workload import Workload

CASE = case_of("kimi-k3", "zhenwu-m890-supernode")
WORKLOAD = Workload(isl=8192, osl=1024)
LENT = 64
OUTPUTS = (*HEADLINES.values(), "memory_slack_bytes")

AXES = ("context", "cache", "chunk", "sample", "batch", "layout")
CONTEXTS = (2048.0, 8192.0, 32768.0, 131072.0)
CACHE_BYTES = (1.0, 2.0)
CHUNKS = (4096.0, 8192.0, 16384.0)
SAMPLES = 4
BATCHES = tuple(float(n) for n in (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48))
WIDTHS = (8, 16, 32, 64, 128, 256)
"""Layouts of an open grid evaluated together; every method is given its best."""
ROWS = 262_144
BLOCKS = (2048, 4096, 8192, 16384, 32768)
"""Flat rows evaluated together by the hand-written code; the compiled kernel keeps the planner's own block."""


def machine() -> str:
    """The processor's name, Python and numpy."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = said.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in said:
        name += f" (family {said['cpu family']}, model {said['model']}, AVX-512 {'avx512f' in said['flags']})"
    return f"{name}; Python {platform.python_version()}, numpy {np.__version__}"


def settle() -> None:
    """Have the C library keep freed memory: glibc learns from one large array freed, and then stops returning pages."""
    np.empty(4_000_000)


def on_axis(values: Any, axis: str) -> Any:
    """Values along one axis of the open grid."""
    shape = [1] * len(AXES)
    shape[AXES.index(axis)] = -1
    return np.asarray(values, dtype=float).reshape(shape)


def samples(numbers: dict[str, Leaf], rng: np.random.Generator) -> dict[str, Any]:
    """Draws of every uncertain figure of the specs, uniform over its range; those of a group move together."""
    draws: dict[str, Any] = {}
    found = {}
    for name, leaf in numbers.items():
        if leaf.uncertain:
            draw = draws.setdefault(leaf.with_group.lstrip("-") or name, rng.random(SAMPLES))
            draw = 1 - draw if leaf.with_group.startswith("-") else draw
            found[name] = on_axis(leaf.low + (leaf.high - leaf.low) * draw, "sample")
    return found


def open_grid(space: Space) -> dict[str, Any]:
    """The inputs on open axes: every value on the axis it varies along, requests on batch and layout."""
    numbers = leaves(space.case, space.workload)[0] | asked(space.workload, space.case.stack)
    contexts = on_axis(CONTEXTS, "context")
    return {
        **space.values,
        **samples(numbers, np.random.default_rng(1)),
        "ask.isl": contexts,
        "ask.length": contexts + space.workload.osl,
        "ask.kv_value_bytes": on_axis(CACHE_BYTES, "cache"),
        "ask.chunk": on_axis(CHUNKS, "chunk"),
        "ask.concurrency": on_axis(BATCHES, "batch") * (space.values["layout.dp"] * space.values["layout.replicas"]),
    }


def flat_rows(space: Space, kernel: compiled.Kernel, inputs: Callable[[dict[str, Any]], list[Any]]) -> dict[str, Any]:
    """ROWS distinct feasible deployments as columns, each with its own layout, lengths, formats and requests."""
    rng = np.random.default_rng(2)
    rows = 2 * ROWS
    pick = rng.integers(0, len(space.layouts), rows)
    varying = {
        "ask.isl": np.round(2.0 ** rng.uniform(10, 17, rows)),
        "ask.osl": np.round(2.0 ** rng.uniform(6, 12, rows)),
        "ask.kv_value_bytes": rng.choice(CACHE_BYTES, rows),
        "ask.chunk": rng.choice(CHUNKS, rows),
        "ask.concurrency": np.round(2.0 ** rng.uniform(0, 11, rows)),
    }
    _, first = np.unique(np.column_stack([pick, *varying.values()]), axis=0, return_index=True)
    values = {name: v[pick] if np.ndim(v) else v for name, v in space.values.items()} | varying
    values["ask.length"] = values["ask.isl"] + values["ask.osl"]
    slack = compiled.flat(kernel, inputs(values), rows, len(OUTPUTS))[OUTPUTS.index("memory_slack_bytes")]
    keep = np.sort(first)[slack[np.sort(first)] >= 0][:ROWS]
    assert len(keep) == ROWS, f"only {len(keep)} feasible rows"
    return {name: v[keep] if np.ndim(v) else v for name, v in values.items()}


def check() -> tuple[int, float]:
    """(points, worst relative difference) of the hand-written code against the planner's floats. Raises over 1e-9."""
    rng = np.random.default_rng(3)
    layouts = candidates(CASE.model, LENT, Counter())
    chosen = [layouts[i] for i in rng.integers(0, len(layouts), 400)]
    for key in ("tp", "dp", "pp", "dcp", "cp", "etp", "red"):
        assert len({getattr(layout, key) for layout in chosen}) > 2, f"the check has too few values of {key}"
    worst = 0.0
    for layout in chosen:
        replicas = int(rng.integers(1, LENT // layout.chips + 1))
        drafts = int(rng.integers(0, 4))
        job = Workload(
            isl=int(rng.choice([1, 100, 8192, 100_000, 1_000_000])),
            osl=int(rng.choice([1, 2, 1024])),
            concurrency=int(rng.choice([1, 3, 16, 100, 1000, 5000])),
            kv_format=str(rng.choice(["bf16", "fp8"])),
            prefix_hit=float(rng.choice([0, 0.3])),
            routing_skew=float(rng.choice([1, 1.5])),
        )
        point = point_of(CASE, layout, job, replicas)
        point.values.update({"ask.draft_tokens": drafts, "ask.accepted_length": 1 + drafts / 2})
        point.values.update({"stack.overlap": 0.3, "stack.request_time": 1e-4, "kernel.experts.row_time": 1e-9})
        exact, found = run(point)[0].rows, hand(point.values)
        for name in OUTPUTS:
            value = exact[name].value
            gap = abs(found[name] - value) / max(abs(value), 1e-300)
            assert gap < 1e-9, f"{name} differs by {gap:.1e} at {layout}, {job}"
            worst = max(worst, gap)
    return len(chosen), worst


def agree(found: Any, other: Any) -> float:
    """Worst relative difference of two sets of outputs."""
    pairs = zip(found, other, strict=True)
    return max(float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-300))) for a, b in pairs)


def cut(values: dict[str, Any], width: int, count: int) -> Iterator[dict[str, Any]]:
    """The open grid in blocks of `width` layouts."""
    for start in range(0, count, width):
        part = slice(start, start + width)
        yield {n: v[..., part] if np.ndim(v) and np.shape(v)[-1] == count else v for n, v in values.items()}


def hand_flat(values: dict[str, Any], block: int) -> list[Any]:
    """The hand-written code over flat columns, in blocks, as the compiled kernel is run."""
    found = [np.empty(ROWS) for _ in OUTPUTS]
    with np.errstate(all="ignore"):
        for start in range(0, ROWS, block):
            part = slice(start, start + block)
            answer = hand({name: v[part] if np.ndim(v) else v for name, v in values.items()})
            for column, name in zip(found, OUTPUTS, strict=True):
                column[part] = answer[name]
    return found


def timed(work: Callable[[], object]) -> float:
    """Processor seconds of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def race(methods: dict[str, Callable[[], object]], repetitions: int) -> dict[str, list[float]]:
    """Processor seconds of every method, the methods taking turns in every repetition."""
    taken: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(repetitions):
        for name, work in methods.items():
            taken[name].append(timed(work))
    return taken


def report(title: str, taken: dict[str, list[float]], points: int, notes: dict[str, str]) -> None:
    """Millions of estimates a second, best and median, and how the others compare to hand-written in the same run."""
    print(f"\n{title}")
    print(f"  {'':<14}{'best':>9}{'median':>9}   million estimates/s")
    for name, seconds in taken.items():
        best, middle = (points / s / 1e6 for s in (min(seconds), statistics.median(seconds)))
        print(f"  {name:<14}{best:>9.2f}{middle:>9.2f}   {notes[name]}")
    for name in [n for n in taken if n != "hand-written"]:
        ratios = [h / s for h, s in zip(taken["hand-written"], taken[name], strict=True)]
        best = min(taken["hand-written"]) / min(taken[name])
        print(f"  {name} / hand-written: {best:.2f} of the bests, {statistics.median(ratios):.2f} median of the turns")


def best_of(sizes: tuple[int, ...], work: Callable[[int], object]) -> int:
    """The block size a method is fastest with, of two tries each."""
    return min(sizes, key=lambda size: min(timed(lambda: work(size)) for _ in range(2)))


def race_open(space: Space, kernel: compiled.Kernel, inputs: Callable[[dict[str, Any]], list[Any]], turns: int) -> None:
    """Open grids: uncompiled, compiled and by hand."""
    values, count, wanted = open_grid(space), len(space.layouts), frozenset(OUTPUTS)
    for axis in (CONTEXTS, CACHE_BYTES, CHUNKS, BATCHES, space.layouts):
        assert len(set(axis)) == len(axis), "a point of the grid is there twice"

    def by_hand(part: dict[str, Any]) -> list[Any]:
        found = hand(part)
        return [found[name] for name in OUTPUTS]

    def uncompiled(part: dict[str, Any]) -> list[Any]:
        found = evaluate(space.shape, part, space.raw, wanted)
        return [found[name] for name in OUTPUTS]

    ways: dict[str, Callable[[dict[str, Any]], Any]] = {
        "uncompiled": uncompiled,
        "compiled": lambda part: kernel(*inputs(part)),
        "hand-written": by_hand,
    }
    whole = [len(CONTEXTS), len(CACHE_BYTES), len(CHUNKS), SAMPLES, len(BATCHES), count]
    feasible = 0
    for part in cut(values, WIDTHS[-1], count):
        found, other, third = (way(part) for way in ways.values())
        assert agree(found, third) < 1e-9, "uncompiled and hand-written differ"
        assert agree(other, third) < 1e-9, "compiled and hand-written differ"
        slack = found[OUTPUTS.index("memory_slack_bytes")]
        width = np.shape(part["layout.tp"])[-1]
        feasible += int(np.count_nonzero(np.broadcast_to(slack, (*whole[:-1], width)) >= 0))

    def run_all(way: Callable[[dict[str, Any]], Any], width: int) -> None:
        with np.errstate(all="ignore"):
            for part in cut(values, width, count):
                way(part)

    widths = {name: best_of(WIDTHS, partial(run_all, way)) for name, way in ways.items()}
    methods = {name: partial(run_all, way, widths[name]) for name, way in ways.items()}
    shape = " x ".join(f"{n} {axis}" for n, axis in zip(whole, AXES, strict=True))
    total = int(np.prod(whole))
    title = f"(a, c) open grid of {shape} = {total:,}, of which {feasible:,} distinct, legal and feasible are counted"
    notes = {name: f"{width} layouts a block" for name, width in widths.items()}
    report(title, race(methods, turns), feasible, notes)


def race_flat(space: Space, kernel: compiled.Kernel, inputs: Callable[[dict[str, Any]], list[Any]], turns: int) -> None:
    """Flat rows in blocks: compiled and by hand."""
    values = flat_rows(space, kernel, inputs)
    given = inputs(values)
    block = best_of(BLOCKS, lambda size: hand_flat(values, size))

    def by_kernel() -> list[Any]:
        return compiled.flat(kernel, given, ROWS, len(OUTPUTS))

    gap = agree(by_kernel(), hand_flat(values, block))
    assert gap < 1e-9, f"compiled and hand-written differ by {gap:.1e}"
    taken = race({"compiled": by_kernel, "hand-written": lambda: hand_flat(values, block)}, turns)
    notes = {"compiled": f"{compiled.BLOCK} rows a block", "hand-written": f"{block} rows a block"}
    report(f"(b) {ROWS:,} flat rows, all distinct, legal and feasible", taken, ROWS, notes)


def main() -> None:
    """Check, then time."""
    parser = argparse.ArgumentParser(description="estimates a second on one core")
    parser.add_argument("--quick", action="store_true", help="three repetitions in place of eleven")
    turns = 3 if parser.parse_args().quick else 11
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    settle()
    print(machine())
    points, worst = check()
    print(f"hand-written against the planner's floats: {points} points, worst relative difference {worst:.1e}")
    space = space_of(CASE, WORKLOAD, LENT, candidates(CASE.model, LENT, Counter()))
    space = narrowed(space, np.flatnonzero(most_requests(space) >= 1))
    start = time.process_time()
    book = build(space.shape, list(space.values), space.raw)
    kernel, names = compiled.compile_kernel(book, OUTPUTS)
    print(f"{len(space.layouts)} layouts; sheet and kernel built in {time.process_time() - start:.2f} s, not counted")

    def inputs(values: dict[str, Any]) -> list[Any]:
        return compiled.arguments(book, names, values)

    race_open(space, kernel, inputs, turns)
    race_flat(space, kernel, inputs, turns)


if __name__ == "__main__":
    main()
