"""Recurrent attention kinds and absent sublayers: weights and states against hand-made sums, TP, readers, units."""

import math
import sys
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from deployments import SUPERNODE

from planner.evaluate.case import Point, case_of, point_of
from planner.evaluate.compiled import arguments, compile_kernel
from planner.evaluate.estimate import HEADLINES, run
from planner.evaluate.grid import columns, evaluate, slots_needed
from planner.evaluate.inputs import Case
from planner.evaluate.sheet import build
from planner.evaluate.totals import numbers
from planner.kinds.attention import ATTENTION
from planner.kinds.feedforward import FEED_FORWARD
from planner.kinds.formats import value_bytes
from planner.kinds.weights import held, parameters
from planner.layout import Layout
from planner.quantities import Numbers, unit_of
from planner.specs.model import Model
from planner.specs.workload import Workload

BF16 = {"format": "bf16", "vector_format": "bf16", "layers": "rest"}
DELTA = {"kind": "gated_delta", "key_heads": 16, "value_heads": 64, "key_dim": 128, "value_dim": 128, "conv_kernel": 4}
LIGHTNING = {"kind": "lightning", "heads": 64, "head_dim": 128}
MAMBA1 = {"kind": "mamba1", "inner": 8192, "state": 16, "step_rank": 256, "conv_kernel": 4}
MAMBA2 = {"kind": "mamba2", "heads": 128, "head_dim": 64, "state": 128, "groups": 8, "conv_kernel": 4, "chunk": 128}
"""Qwen3.5-397B-A17B (width 4096), MiniMax-M1 (6144), Jamba-1.5-Mini (4096), Nemotron-3-Super (4096)."""

PER_LAYER = [
    # 4096 x 12288 + 2 x 4096 x 8192 + 2 x 4096 x 64 + 12288 x 4 + 2 x 64 + 128;  12288 = 2 x 16 x 128 + 64 x 128
    ("gated-delta", DELTA, 4096, 118_014_208),
    # 5 x 6144 x 8192 + 8192
    ("lightning", LIGHTNING, 6144, 251_666_432),
    # 4096 x 16384 + 8192 x 288 + 256 x 8192 + 8192 x 4096 + 8192 x 5 + 8192 x 18 + 288;  288 = 256 + 2 x 16
    ("mamba1", MAMBA1, 4096, 105_308_448),
    # the same with biases on both projections (16384 + 4096), none on the convolution (- 8192), no norms (- 288)
    ("mamba1-biases", {**MAMBA1, "bias": True, "conv_bias": False, "norms": False}, 4096, 105_320_448),
    # 4096 x (2 x 8192 + 2 x 8 x 128 + 128) + 8192 x 4096 + (8192 + 2048) x 5 + 3 x 128 + 8192
    ("mamba2", MAMBA2, 4096, 109_635_968),
    # the same with biases on both projections (2 x 8192 + 2048 + 128 + 4096), none on the convolution (- 10240)
    ("mamba2-biases", {**MAMBA2, "bias": True, "conv_bias": False}, 4096, 109_648_384),
    ("none", {"kind": "none"}, 4096, 0),
]
PUBLISHED = [
    # Layers x one layer is what is left of the model's published parameter count once attention, feed-forward,
    # norms and tables are taken off it: 396,346,350,336, 456,089,655,296, 51,570,323,328 and 120,668,707,840.
    (DELTA, 4096, 45, 5_310_639_360),
    (LIGHTNING, 6144, 70, 17_616_650_240),
    (MAMBA1, 4096, 28, 2_948_636_544),
    (MAMBA2, 4096, 40, 4_385_438_720),
]


def group(sizes: dict[str, Any]) -> tuple[Any, Any]:
    """(kind, its record as numbers)."""
    kind = ATTENTION[sizes["kind"]]
    return kind, numbers(kind.record.model_validate({**BF16, **sizes}))


def layer_of(sizes: dict[str, Any], tp: int, width: int = 4096) -> tuple[Any, Any, Any]:
    """(kind, record with what one chip of TP has, the inputs), FP32 state."""
    kind, record = group(sizes)
    on = SimpleNamespace(
        layout=SimpleNamespace(tp=tp, dp=1, cp=1, dcp=1),
        ask=SimpleNamespace(kv_value_bytes=2, state_value_bytes=value_bytes("fp32")),
        stack=SimpleNamespace(activation_value_bytes=2, computes=SimpleNamespace()),
        constant=SimpleNamespace(multiply_add_flops=2),
        kernel=SimpleNamespace(recurrent_prefill=SimpleNamespace(chunk=16)),
    )
    record.held = held(Numbers(), kind.weights(record, width), kind.share(record, on), record, on)
    record.__dict__.update(kind.sizes(Numbers(), record, on))
    return kind, record, on


@pytest.mark.parametrize(("sizes", "width", "expected"), [row[1:] for row in PER_LAYER], ids=[r[0] for r in PER_LAYER])
def test_weights_of_one_layer(sizes: dict[str, Any], width: int, expected: int) -> None:
    """The weight groups sum to the layer worked out by hand (the arithmetic is beside the number)."""
    kind, record = group(sizes)
    assert parameters(kind.weights(record, width)) == expected


@pytest.mark.parametrize(("sizes", "width", "layers", "expected"), PUBLISHED, ids=lambda v: str(v))
def test_weights_of_published_models(sizes: dict[str, Any], width: int, layers: int, expected: int) -> None:
    """All such layers of a model sum to their part of the published count, to the last parameter."""
    kind, record = group(sizes)
    assert layers * parameters(kind.weights(record, width)) == expected


@pytest.mark.parametrize(
    ("sizes", "tp", "matrix", "taps"),
    [
        # state values x 4 bytes, 3 past values of every channel x 2 bytes
        (DELTA, 1, 64 * 128 * 128 * 4, 3 * 12288 * 2),
        (DELTA, 8, 8 * 128 * 128 * 4, 3 * 1536 * 2),
        (LIGHTNING, 1, 64 * 128 * 128 * 4, 0),
        (LIGHTNING, 8, 8 * 128 * 128 * 4, 0),
        (MAMBA1, 1, 8192 * 16 * 4, 3 * 8192 * 2),
        (MAMBA1, 8, 1024 * 16 * 4, 3 * 1024 * 2),
        (MAMBA2, 1, 128 * 64 * 128 * 4, 3 * (8192 + 2048) * 2),
        (MAMBA2, 8, 16 * 64 * 128 * 4, 3 * (1024 + 256) * 2),
        # 16 ranks share 8 groups two by two: each holds B and C of one whole group
        (MAMBA2, 16, 8 * 64 * 128 * 4, 3 * (512 + 256) * 2),
        ({"kind": "none"}, 4, 0, 0),
    ],
)
def test_state_of_one_sequence(sizes: dict[str, Any], tp: int, matrix: int, taps: int) -> None:
    """The recurrent state in the state's format and the convolution's past in activations; TP splits both."""
    kind, record, on = layer_of(sizes, tp)
    kept = kind.cache(record, on)
    assert (kept.growing, kept.windowed) == (0, 0)
    assert kept.fixed(1) == kept.fixed(1_000_000) == matrix + taps


def test_weights_split_over_tp() -> None:
    """What ends in heads or channels is split, a group's B and C are repeated beyond the groups, norms are copied."""
    _, delta, _ = layer_of(DELTA, 8)
    assert delta.held["tp"].parameters == (118_014_208 - 49_152 - 128 - 128) / 8
    assert delta.held["tp"].all_bytes == 2 * (118_014_208 - 128) / 8
    assert delta.held["copied"].all_bytes == 2 * 128
    _, mamba, _ = layer_of(MAMBA2, 16)
    assert mamba.held["kv"].parameters == 4096 * 2 * 8 * 128 / 8
    assert mamba.held["tp"].parameters == (4096 * (2 * 8192 + 128) + 8192 * 4096) / 16
    assert mamba.held["copied"].all_bytes == 0
    _, jamba, _ = layer_of(MAMBA1, 4)
    assert jamba.held["copied"].all_bytes == 2 * 288
    assert jamba.held["tp"].parameters == (4096 * 16384 + 8192 * 288 + 256 * 8192 + 8192 * 4096) / 4


@pytest.mark.parametrize(
    ("sizes", "tp", "problem"),
    [
        (DELTA, 16, None),
        (DELTA, 32, "TP32 does not divide the 16 key heads"),
        ({**DELTA, "key_heads": 48, "value_heads": 64}, 3, "TP3 does not divide the 64 value heads"),
        (LIGHTNING, 64, None),
        (LIGHTNING, 3, "TP3 does not divide the 64 heads"),
        (MAMBA1, 128, None),
        (MAMBA1, 3, "TP3 does not divide the 8192 channels"),
        (MAMBA2, 4, None),
        (MAMBA2, 16, None),
        (MAMBA2, 3, "TP3 does not divide the 128 heads"),
        ({**MAMBA2, "heads": 96}, 12, "TP12 neither divides nor is a multiple of the 8 groups"),
        ({"kind": "none"}, 7, None),
    ],
)
def test_what_tp_may_be(sizes: dict[str, Any], tp: int, problem: str | None) -> None:
    """TP divides what it splits and says what it does not divide; no cache is worth splitting over tokens."""
    kind = ATTENTION[sizes["kind"]]
    record = kind.record.model_validate({**BF16, **sizes})
    assert kind.tp_problem(record, tp) == problem
    assert kind.copies(record, tp) == 1


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # 64 heads x (6 x 128 x 128 + 16 x 3 x 128 + 16 x 16)
        (DELTA, 6_701_056),
        # 64 heads x (4 x 128 x 128 + 2 x 256 x 128)
        (LIGHTNING, 8_388_608),
        # 7 x 8192 x 16
        (MAMBA1, 917_504),
        # 128 heads x (4 x 64 x 128 + 128 x 64) + 8 groups x 128 x 128
        (MAMBA2, 5_373_952),
        ({"kind": "none"}, 0),
    ],
)
def test_core_arithmetic_of_one_token(sizes: dict[str, Any], expected: int) -> None:
    """FLOP of the core in prefill, all ranks, linear in the prompt."""
    kind, record, on = layer_of(sizes, 1)
    assert kind.core_flops(record, 1, on) == expected
    assert kind.core_flops(record, 1000, on) == 1000 * expected


# One small model with every kind: layers of a mixer and a feed-forward, and layers of one of them alone.
SMALL = {
    "name": "every-recurrence", "title": "every recurrence", "source": "made for this test", "layers": 12,
    "width": 4096, "vocabulary": 32_000, "max_context": 65_536, "tied_embeddings": False, "table_format": "bf16",
    "attention": {
        "delta": {**BF16, **DELTA, "layers": "0-1"},
        "light": {**BF16, **LIGHTNING, "layers": "2-3"},
        "mamba": {**BF16, **MAMBA1, "layers": "4-5"},
        "state": {**BF16, **MAMBA2, "layers": "6, 8"},
        "full": {**BF16, "kind": "gqa", "heads": 32, "kv_heads": 8, "head_dim": 128, "value_dim": 128,
                 "layers": "10-11"},
        "no_attention": {"kind": "none", "layers": "7, 9"},
    },
    "feed_forward": {
        "dense": {**BF16, "kind": "dense", "inner": 8192},
        "no_feed_forward": {"kind": "none", "layers": "6, 8, 10"},
    },
    "residual": {"kind": "plain", "vector_format": "bf16"},
}  # fmt: skip
WORKLOAD = Workload(isl=4096, osl=512, concurrency=24)
LAYOUTS = ["TP1", "TP8", "TP16", "TP4 DP2", "TP4 CP2", "TP2 PP3"]
RTOL = 1e-12


@cache
def case() -> Case:
    """The small model on the supernode."""
    return case_of(Model.model_validate(SMALL), SUPERNODE)


def point(layout: str) -> Point:
    """The small model in this layout."""
    parsed = Layout.parse(layout, case().model)
    return point_of(case(), parsed, WORKLOAD, 1, parsed.chips)


def values(of: Point) -> dict[str, float]:
    """Every named quantity on floats."""
    return {name: row.value for name, row in run(of)[0].rows.items()}


def same(a: float, b: float, whole: float = 0.0) -> bool:
    """Equal to twelve digits, or to the rounding of what both are a difference of."""
    return math.isclose(float(a), float(b), rel_tol=RTOL, abs_tol=8 * sys.float_info.epsilon * whole)


@pytest.mark.parametrize("layout", ["TP16", "TP4 CP2", "TP2 PP3"])
def test_symbols_equal_floats(layout: str) -> None:
    """Every named quantity of the kernel compiled from symbols is the float formula's."""
    this = point(layout)
    book = build(this.shape, list(this.values), this.raw)
    kernel, inputs = compile_kernel(book, tuple(book.rows))
    found = dict(zip(book.rows, kernel(*arguments(book, inputs, this.values)), strict=True))
    plain = values(this)
    assert list(found) == list(plain)
    whole = max(plain["decode_turn_s"], plain["prefill_plain_s"])
    assert {n: (v, plain[n]) for n, v in found.items() if not same(v, plain[n], whole if n.endswith("_s") else 0)} == {}


def test_arrays_equal_floats() -> None:
    """Every headline of a load x layout grid is what each point gives alone."""
    model, loads = case().model, (1, 13, 200)
    layouts = [Layout.parse(text, model) for text in LAYOUTS]
    slots, lent = slots_needed(model, layouts), 16
    first = point_of(case(), layouts[0], WORKLOAD)
    shape = type(first.shape)(**{**first.shape.__dict__, "stages": slots})
    replicas = [lent // layout.chips for layout in layouts]
    mesh = {
        **{name: value for name, value in first.values.items() if not name.startswith("layout.")},
        **columns(model, layouts, replicas, [lent] * len(layouts), slots),
        "ask.concurrency": np.asarray(loads, dtype=float)[:, None],
    }
    wanted = frozenset(HEADLINES.values())
    whole = evaluate(shape, mesh, first.raw, wanted)
    for i, load in enumerate(loads):
        asked = WORKLOAD.model_copy(update={"concurrency": load})
        for j, layout in enumerate(layouts):
            alone = run(point_of(case(), layout, asked, replicas[j], lent))[0].rows
            for name in wanted:
                on_grid = np.broadcast_to(whole[name], (len(loads), len(layouts)))[i, j]
                assert same(on_grid, alone[name].value), (name, str(layout), load)


@pytest.mark.parametrize("base", ["s", "B", "FLOP"])
def test_quantities_scale_as_their_units(base: str) -> None:
    """No number with a unit hides in a formula: scaling one base unit scales every quantity as its name says."""

    def factor(unit: str) -> float:
        above, _, below = unit.partition("/")
        return (7.0 if above == base else 1.0) / (7.0 if below == base else 1.0)

    this = point("TP4 CP2")
    scaled = {**this.values, **{n: this.values[n] * factor(leaf.unit) for n, leaf in this.leaves.items()}}
    plain, found = values(this), values(Point(this.shape, scaled, this.raw, this.leaves))
    largest = {
        unit: max(abs(v) for n, v in plain.items() if unit_of(n) == unit) for unit in {unit_of(n) for n in plain}
    }
    wrong = {
        name: (value * factor(unit_of(name)), found[name])
        for name, value in plain.items()
        if not math.isclose(
            value * factor(unit_of(name)), found[name], rel_tol=1e-9,
            abs_tol=1e-9 * largest[unit_of(name)] * factor(unit_of(name)),
        )
    }  # fmt: skip
    assert wrong == {}


def test_bytes_of_a_decode_step() -> None:
    """TP8, 24 requests of one token: the core reads and writes 24 states and moves 24 tokens' vectors."""
    found = values(point("TP8"))
    # 2 x 24 x 8 heads x 128 x 128 x 4 + 24 x (2 x 2 + 3 x 8 heads) x 128 x 2
    assert found["decode_delta_core_bytes"] == 2 * 24 * 524_288 + 24 * 28 * 128 * 2
    # 2 x 24 x 8 x 128 x 128 x 4 + 24 x 4 x 8 x 128 x 2
    assert found["decode_light_core_bytes"] == 2 * 24 * 524_288 + 24 * 8192
    # 2 x 24 x 1024 x 16 x 4 + 1024 x 18 x 2 + 24 x (4 x 1024 + 288) x 2
    assert found["decode_mamba_core_bytes"] == 2 * 24 * 65_536 + 36_864 + 24 * 8768
    # 2 x 24 x 16 x 64 x 128 x 4 + 24 x (3 x 1024 + 2 x 128) x 2
    assert found["decode_state_core_bytes"] == 2 * 24 * 524_288 + 24 * 6656
    # 7 FLOP a state value and token, and 5 without the correction
    assert found["decode_delta_core_flops"] == 7 * 24 * 8 * 128 * 128
    assert found["decode_state_core_flops"] == 5 * 24 * 16 * 64 * 128


def test_exchanges_inside_a_layer() -> None:
    """The norm of all heads and the selection are sums over TP; a Mamba-2 norm only where ranks share a group."""
    one, eight, sixteen = (values(point(layout)) for layout in ("TP1", "TP8", "TP16"))
    for name in ("light_norm_reduce", "mamba_selection_reduce"):
        assert one[f"decode_{name}_time_s"] == 0 < eight[f"decode_{name}_time_s"]
    # 2 x 7/8 x 24 tokens x (256 + 2 x 16) values x 2 bytes
    assert eight["decode_mamba_selection_reduce_network_bytes"] == 2 * 7 / 8 * 24 * 288 * 2
    name = "decode_state_norm_reduce_time_s"
    assert one[name] == eight[name] == 0 < sixteen[name]


def test_an_absent_sublayer_costs_nothing() -> None:
    """No weights, state, time or operator of its own, in any phase."""
    say = run(point("TP8"))[0]
    absent = ("no_attention", "no_feed_forward")
    assert not [row for row in say.operators if row.group in absent]
    for name in absent:
        assert say.rows[f"memory_weights_{name}_bytes"].value == 0
    assert say.rows["memory_request_no_attention_token_bytes"].value == 0
    assert say.rows["memory_request_no_attention_state_bytes"].value == 0
    kind = FEED_FORWARD["none"]
    record = numbers(kind.record.model_validate({"kind": "none", "layers": "rest"}))
    assert (kind.weights(record, 4096), kind.working(record, None, None), kind.exchanged(record, None, None)) == (
        [],
        0,
        0,
    )


def test_recurrence_does_not_grow_with_the_context() -> None:
    """A longer context changes neither state nor decode time of a recurrent layer."""
    parsed = Layout.parse("TP8", case().model)
    short, long = (
        values(point_of(case(), parsed, WORKLOAD.model_copy(update={"isl": isl}), 1, 8)) for isl in (1024, 60_000)
    )
    for name in ("delta", "light", "mamba", "state"):
        for quantity in (f"decode_{name}_layer_s", f"memory_request_{name}_state_bytes"):
            assert short[quantity] == long[quantity]
