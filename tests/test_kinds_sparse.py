"""Sparse attention kinds and hyper-connections: weights and caches worked out by hand, splits, readers in agreement."""

import math
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from test_dimensions import FACTORS, factor

from planner.evaluate.case import case_of, point_of
from planner.evaluate.compiled import arguments, compile_kernel
from planner.evaluate.estimate import run
from planner.evaluate.grid import evaluate
from planner.evaluate.inputs import Case
from planner.evaluate.sheet import build
from planner.evaluate.totals import CacheSizes, cache_sizes, numbers, totals
from planner.kinds.attention import ATTENTION, Attention
from planner.kinds.attention.gqa import mean_reach
from planner.kinds.residual import RESIDUAL, Residual
from planner.kinds.weights import parameters
from planner.layout import Layout, cache_copies
from planner.quantities import unit_of
from planner.specs.library import load_stack, load_system
from planner.specs.model import Model
from planner.specs.workload import Workload

Part = dict[str, Any]
PLAIN: Part = {"format": "bf16", "vector_format": "bf16"}
SUPERNODE = "zhenwu-m890-supernode"
MILLION = 1_000_000


def latent(heads: int, q_rank: int, nope: int, value: int, index_heads: int, **more: Any) -> Part:
    """A sparse MLA layer of the DeepSeek-V3.2 family."""
    shared = {"kv_rank": 512, "rope_dim": 64, "index_dim": 128, "index_topk": 2048}
    sizes = {"heads": heads, "q_rank": q_rank, "nope_dim": nope, "value_dim": value, "index_heads": index_heads}
    return {"kind": "sparse_mla", "layers": "rest", **PLAIN, **shared, **sizes, **more}


def compressed(ratio: int | None, heads: int = 64, q_rank: int = 1024, groups: int = 8, **more: Any) -> Part:
    """A layer of DeepSeek-V4-Flash, or with other sizes of Pro."""
    shared = {"head_dim": 512, "rope_dim": 64, "output_rank": 1024, "local_window": 128, "ratio": ratio}
    sizes = {"heads": heads, "q_rank": q_rank, "output_groups": groups}
    index = {"overlap": True, "index_heads": 64, "index_dim": 128, "index_topk": 512} if ratio == 4 else {}
    return {"kind": "compressed", "layers": "rest", **PLAIN, **shared, **sizes, **index, **more}


def blocks(**more: Any) -> Part:
    """A sparse layer of MiniMax-M3."""
    attention = {"heads": 64, "kv_heads": 4, "head_dim": 128, "value_dim": 128, "qk_norm": "head"}
    index = {"index_heads": 4, "index_dim": 128, "block": 128, "top_blocks": 16}
    return {"kind": "block_sparse", "layers": "rest", **PLAIN, **attention, **index, **more}


V32 = latent(128, 1536, 128, 128, 64)
GLM = latent(64, 2048, 192, 256, 32)
TEXT = {"router_bias": True, "routed_format": "bf16", "latent": None, **PLAIN}
MOE: Part = {"kind": "moe", "experts": 64, "top_k": 8, "inner": 2048, "shared_inner": 2048, "layers": "rest", **TEXT}


def model(width: int, layers: int, attention: dict[str, Part], moe: Part = MOE, residual: Part | None = None,
          dense: Part | None = None, vocabulary: int = 129_280) -> Model:  # fmt: skip
    """A model around attention groups: experts, and dense layers where given."""
    return Model.model_validate({
        "name": "made", "title": "made", "source": "test", "layers": layers, "width": width, "vocabulary": vocabulary,
        "max_context": 1 << 20, "tied_embeddings": False, "table_format": "bf16", "attention": attention,
        "feed_forward": {"moe": moe, **({"dense": dense} if dense else {})},
        "residual": residual or {"kind": "plain", "vector_format": "bf16"},
    })  # fmt: skip


def v4(width: int, layers: int, groups: dict[str, Part]) -> Model:
    """A model with the residual of DeepSeek-V4."""
    return model(width, layers, groups, residual={"kind": "hyper", "vector_format": "bf16", "streams": 4,
                                                  "layers": layers})  # fmt: skip


FLASH = v4(4096, 43, {
    "near": compressed(None, layers="0-1"), "chosen": compressed(4), "heavy": compressed(128, layers="3-41/2"),
})  # fmt: skip
PRO_SIZES: Part = {"heads": 128, "q_rank": 1536, "groups": 16}
PRO = v4(7168, 61, {
    "heavy": compressed(128, **PRO_SIZES, layers="0, 1-59/2"), "chosen": compressed(4, **PRO_SIZES, index_topk=1024),
})  # fmt: skip
SPARSE = model(6144, 78, {
    "own": latent(64, 2048, 192, 256, 32, layers="0-2, 6-74/4"), "shared": {**GLM, "owns_indexer": False},
})  # fmt: skip
BLOCKS = model(6144, 60, {"plain": {**{k: v for k, v in blocks().items()
                                       if k not in ("index_heads", "index_dim", "block", "top_blocks")},
                                    "kind": "gqa", "layers": "0-2"}, "sparse": blocks()})  # fmt: skip


def count(part: Part, width: int) -> int:
    """Parameters of one layer."""
    record: Any = TypeAdapter(Attention).validate_python(part)
    return int(parameters(ATTENTION[record.kind].weights(numbers(record), width)))


@pytest.mark.parametrize(
    ("part", "width", "expected"),
    [
        # MLA 187,107,328 + index_q 1536 x 64 x 128 + index_k 7168 x 128 + weights 7168 x 64 + norm 2 x 128
        pytest.param(V32, 7168, 187_107_328 + 12_582_912 + 917_504 + 458_752 + 256, id="V3.2"),
        # q_a 6144 x 2048, q_b 2048 x 64 x 256, kv_a 6144 x 576, kv_b 512 x 64 x 448, output 16384 x 6144, norms
        pytest.param(
            {**GLM, "owns_indexer": False}, 6144,
            12_582_912 + 33_554_432 + 3_538_944 + 14_680_064 + 100_663_296 + 2048 + 512, id="GLM-5.2 shared",
        ),
        # q_a, q_b, kv 4096 x 512, output_a 64 x 512 x 1024, output_b 8 x 1024 x 4096, norms 1024 + 512, 64 sinks
        pytest.param(
            compressed(None), 4096, 4_194_304 + 33_554_432 + 2_097_152 + 33_554_432 + 33_554_432 + 1536 + 64,
            id="V4-Flash window",
        ),
        # the same, and value and gate 2 x 4096 x 512, bias 128 x 512, norm 512
        pytest.param(compressed(128), 4096, 106_956_352 + 4_194_304 + 65_536 + 512, id="V4-Flash heavy"),
        # compressor 2 x 4096 x 1024, bias 4 x 1024, norm 512; index_q 1024 x 8192, weights 4096 x 64;
        # its compressor 2 x 4096 x 256, bias 4 x 256, norm 128
        pytest.param(
            compressed(4), 4096,
            106_956_352 + 8_388_608 + 4096 + 512 + 8_388_608 + 262_144 + 2_097_152 + 1024 + 128, id="V4-Flash chosen",
        ),
        # q and output 2 x 6144 x 8192, k and v 2 x 6144 x 512, norms 256; index_q 6144 x 512, index_k 6144 x 128, 256
        pytest.param(
            blocks(), 6144, 100_663_296 + 6_291_456 + 256 + 3_145_728 + 786_432 + 256, id="MiniMax-M3",
        ),
    ],
)  # fmt: skip
def test_weights_of_a_layer(part: Part, width: int, expected: int) -> None:
    """Parameters of one layer against the shapes of the published code."""
    assert count(part, width) == expected


def test_weights_of_hyper_connections() -> None:
    """V4-Flash: a site 24 x 4 x 4096 + 24 + 3, two and two norms a layer; last 4 x 4 x 4096 + 4 + 1 and a norm."""
    record: Any = TypeAdapter(Residual).validate_python(
        {"kind": "hyper", "vector_format": "bf16", "streams": 4, "layers": 43}
    )
    kind, values = RESIDUAL["hyper"], numbers(record)
    assert int(parameters(kind.weights(values, 4096))) == 2 * (393_216 + 27) + 2 * 4096
    assert int(parameters(kind.final_weights(values, 4096))) == 65_536 + 5 + 4096
    assert kind.mixing_values(values, 4096) == (86 * (3 * 4 + 2) + 4 + 1) * 4096
    assert kind.live_sources(values) == 4


def experts(count: int, top_k: int, inner: int, shared: int, **more: Any) -> Part:
    """Routed experts of a published model."""
    return {**MOE, "experts": count, "top_k": top_k, "inner": inner, "shared_inner": shared, **more}


@pytest.mark.parametrize(
    ("made", "total", "published"),
    [
        pytest.param(
            model(7168, 61, {"dsa": V32}, experts(256, 8, 2048, 2048),
                  dense={"kind": "dense", "layers": "0-2", "inner": 18_432, **PLAIN}),
            671_877_944_064, 671e9, id="DeepSeek-V3.2",
        ),
        pytest.param(
            model(6144, 78, {"dsa": GLM}, experts(256, 8, 2048, 2048), vocabulary=154_880,
                  dense={"kind": "dense", "layers": "0-2", "inner": 12_288, **PLAIN}),
            743_911_218_432, 744e9, id="GLM-5",
        ),
        pytest.param(
            model(6144, 60, dict(BLOCKS.model_dump()["attention"]), experts(128, 4, 3072, 3072), vocabulary=200_064,
                  dense={"kind": "dense", "layers": "0-2", "inner": 12_288, **PLAIN}),
            426_174_572_928, 427e9, id="MiniMax-M3",
        ),
        pytest.param(
            model(4096, 43, dict(FLASH.model_dump()["attention"]), experts(256, 6, 2048, 2048),
                  residual=FLASH.residual.model_dump()),
            284_332_240_471 + 3 * 256, 284e9, id="DeepSeek-V4-Flash",  # three hash layers have no router bias
        ),
    ],
)  # fmt: skip
def test_whole_models(made: Model, total: int, published: float) -> None:
    """Whole models to the parameter, within 0.2 % of what their makers say."""
    assert totals(made).total_params == total
    assert total == pytest.approx(published, rel=0.002)


def kept(part: Part, kv_format: str) -> CacheSizes:
    """Cache of one layer of this sort."""
    width = 7168 if part["kind"] == "sparse_mla" else 4096
    return cache_sizes(model(width, 1, {"only": {**part, "layers": "rest"}}), kv_format, "fp32")


@pytest.mark.parametrize(
    ("part", "kv_format", "expected"),
    [
        (V32, "bf16", 576 * 2 + 132),
        (V32, "fp8", 512 + 4 * 4 + 64 * 2 + 132),
        (V32, "nvfp4", 432 + 132),
        ({**V32, "owns_indexer": False}, "fp8", 656),
        (compressed(4), "bf16", (1024 + 132) / 4),
        (compressed(4), "fp8", (584 + 132) / 4),
        (compressed(4), "nvfp4", (384 + 132) / 4),
        ({**compressed(4), "index_format": "mxfp4"}, "fp8", (584 + 68) / 4),
        (compressed(128), "fp8", 584 / 128),
        (compressed(None), "fp8", 0),
        (blocks(), "bf16", 4 * 256 * 2 + 256),
        (blocks(index_format="fp8"), "fp8", 4 * 256 + 128),
    ],
)
def test_bytes_a_token_adds(part: Part, kv_format: str, expected: float) -> None:
    """What one layer's cache grows by, by format."""
    assert kept(part, kv_format).per_token == expected


@pytest.mark.parametrize(
    ("part", "state"),
    [
        # 8 rows of 2 x 2 x (512 + 128) values of 4 B; 128 rows of 2 x 512
        (compressed(4), 8 * 4 * 640 * 4),
        (compressed(128), 128 * 1024 * 4),
        (compressed(None), 0),
    ],
)
def test_window_and_state(part: Part, state: int) -> None:
    """A filled window of 128 records, and what the compressors keep."""
    found = kept(part, "fp8")
    assert found.per_token_in_window == 584
    assert found.constant == 128 * 584 + state


def test_whole_caches_as_reported() -> None:
    """Pools and bytes per token that engines and makers have reported."""
    v32 = cache_sizes(model(7168, 61, {"dsa": V32}), "fp8", "fp32").per_token
    assert 1_462_784 * v32 / 2**30 == pytest.approx(65.49, rel=1e-3)
    glm = cache_sizes(SPARSE, "nvfp4", "fp32").per_token
    assert glm + 432 + 132 == 37_032  # one draft layer with its own indexer
    ratios = {}
    for name, made in (("pro", PRO), ("flash", FLASH)):
        groups = {n: {**g.model_dump(), "index_format": "mxfp4"} for n, g in made.attention.items()}
        found = cache_sizes(model(made.width, made.layers, groups), "fp8", "fp32").per_token
        ratios[name] = v32 / found
    assert ratios == {"pro": pytest.approx(9.5, rel=0.01), "flash": pytest.approx(13.7, rel=0.01)}


def test_keys_that_are_values_are_cached_twice() -> None:
    """Gemma 4 31B: 1,007,303 tokens reported in 103.92 GiB at 262,144 a request, windows of 1,024 + 8,192 + 16."""
    sizes: Part = {"kind": "gqa", "heads": 32, "qk_norm": "head", **PLAIN}
    found = cache_sizes(model(5376, 60, {
        "near": {**sizes, "layers": "rest", "kv_heads": 16, "head_dim": 256, "value_dim": 256, "window": 1024},
        "all": {**sizes, "layers": "5-59/6", "kv_heads": 4, "head_dim": 512, "value_dim": 512, "shares_keys": True},
    }), "bf16", "fp32")  # fmt: skip
    assert (found.per_token, found.constant) == (10 * 8192, 50 * 16_384 * 1024)
    request = 262_144 * found.per_token + (1024 + 8192 + 16) * found.per_token_in_window
    assert 103.92 * 2**30 / request * 262_144 == pytest.approx(1_007_303, rel=1e-4)


def test_a_record_says_what_does_not_fit() -> None:
    """Half an indexer, an indexer without entries, indexer heads without key-value heads."""
    for part in ({**compressed(4), "index_topk": None}, {**compressed(4), "ratio": None}, blocks(index_heads=8)):
        with pytest.raises(ValidationError):
            TypeAdapter(Attention).validate_python(part)


def test_splits() -> None:
    """TP divides heads and output groups; DCP splits what ranks repeat, never a window."""

    def problem(part: Part, tp: int) -> str | None:
        record: Any = TypeAdapter(Attention).validate_python(part)
        return ATTENTION[record.kind].tp_problem(record, tp)

    assert problem(compressed(4), 8) is None
    assert "output groups" in str(problem(compressed(4), 16))
    assert "heads" in str(problem(V32, 3))
    assert problem(blocks(), 8) is None
    assert [cache_copies(8, made) for made in (FLASH, SPARSE, BLOCKS)] == [8, 8, 2]


def case(made: Model) -> Case:
    """The model on the shipped system."""
    system = load_system(SUPERNODE)
    return case_of(made, system, load_stack(system.stack))


def values(made: Model, layout: str, **ask: Any) -> dict[str, float]:
    """Every named quantity of one deployment."""
    workload = Workload(**{"isl": 8192, "osl": 1024, "concurrency": 64, "kv_format": "fp8", **ask})
    point = point_of(case(made), Layout.parse(layout, made), workload)
    return {name: row.value for name, row in run(point)[0].rows.items()}


def test_dcp_splits_the_growing_part() -> None:
    """DCP 8 on TP8: an eighth of the entries and of the scored keys; window and state stay whole."""
    whole, split = values(FLASH, "TP8 DP8"), values(FLASH, "TP8 DP8 DCP8")
    assert split["memory_request_chosen_token_bytes"] == whole["memory_request_chosen_token_bytes"] / 8
    assert split["memory_request_chosen_state_bytes"] == whole["memory_request_chosen_state_bytes"]
    assert split["decode_chosen_index_bytes"] == whole["decode_chosen_index_bytes"] / 8
    assert whole["decode_chosen_gather_time_s"] == 0.0 < split["decode_chosen_gather_time_s"]


def test_decode_reads_what_is_chosen() -> None:
    """Past k tokens only the indexer's bytes grow; a layer that shares a selection has no indexer."""
    short, long = (values(SPARSE, "TP8 DP8", isl=isl, osl=1) for isl in (32_768, 65_536))
    assert long["decode_own_core_bytes"] == short["decode_own_core_bytes"] == 8 * 2048 * 656
    tokens = 8 * (65_536 + 0.5)
    assert long["decode_own_index_bytes"] == tokens * 132
    assert "decode_shared_index_bytes" not in long
    assert long["decode_shared_core_bytes"] == long["decode_own_core_bytes"]
    blocked = values(BLOCKS, "TP4 DP16", isl=65_536, osl=1, kv_format="bf16")
    assert blocked["decode_sparse_core_bytes"] == 4 * 2048 * 512
    assert blocked["decode_sparse_index_bytes"] == 4 * (65_536 + 0.5) * 256


def test_an_indexer_computes_at_the_rate_of_its_keys() -> None:
    """FP8 keys at the FP8 rate, BF16 keys at the BF16 rate, where arithmetic bounds the scores."""

    def floor(index_format: str) -> float:
        groups = {name: {**g.model_dump(), "index_format": index_format} for name, g in SPARSE.attention.items()}
        found = values(model(6144, 78, groups), "TP8 DP8", isl=65_536)
        return found["prefill_own_index_floor_s"]

    chip = case(SPARSE).chip
    assert chip.fp8_rate is not None
    assert chip.bf16_rate is not None
    assert floor("bf16") / floor("fp8") == pytest.approx(chip.fp8_rate.value / chip.bf16_rate.value)


@pytest.mark.parametrize(("past", "own"), [(0, 10), (0, 100), (90, 20), (100, 7), (500, 50)])
def test_mean_reach_is_the_mean(past: int, own: int) -> None:
    """The closed form against a sum of small steps."""
    steps = 10_000
    points = [past + own * (i + 0.5) / steps for i in range(steps)]
    assert mean_reach(past, own, 100) == pytest.approx(sum(min(t, 100) for t in points) / steps, rel=1e-6)


DEPLOYED: list[tuple[str, Model, str, Part]] = [
    ("flash", FLASH, "TP8 DP4 CP2", {}),
    ("flash-dcp", FLASH, "TP8 DP8 DCP4", {"draft_tokens": 0, "isl": 100_000}),
    ("flash-bf16", FLASH, "TP4 DP4 PP2", {"kv_format": "bf16"}),
    ("sparse", SPARSE, "TP8 DP8 DCP2", {"kv_format": "nvfp4"}),
    ("sparse-cp", SPARSE, "TP4 DP4 CP2", {"isl": 100_000, "chunk": 3000, "prefix_hit": 0.3}),
    ("blocks", BLOCKS, "TP8 DP4 DCP2 CP2", {"isl": 20_000}),
]


@pytest.mark.parametrize(("made", "layout", "ask"), [d[1:] for d in DEPLOYED], ids=[d[0] for d in DEPLOYED])
def test_readers_agree_and_units_hold(made: Model, layout: str, ask: Part) -> None:
    """Floats, arrays and the kernel compiled from symbols give the same; every quantity scales as its unit."""
    workload = Workload(**{"isl": 8192, "osl": 1024, "concurrency": 100, "kv_format": "fp8", **ask})
    point = point_of(case(made), Layout.parse(layout, made), workload)
    plain = {name: row.value for name, row in run(point)[0].rows.items()}
    book = build(point.shape, list(point.values), point.raw)
    kernel, inputs = compile_kernel(book, tuple(book.rows))
    found = dict(zip(book.rows, kernel(*arguments(book, inputs, point.values)), strict=True))
    held = {name: np.asarray([value, value]) for name, value in point.values.items()}
    arrays = evaluate(point.shape, held, point.raw, frozenset(plain))
    for name, value in plain.items():
        if "_pipeline_" in name:
            continue  # differences that vanish
        assert math.isclose(float(found[name]), value, rel_tol=1e-12), name
        assert np.allclose(arrays.get(name, value), value, rtol=1e-12, atol=0), name  # a grid leaves floors out
    scaled = dict(point.values)
    for name, leaf in point.leaves.items():
        scaled[name] *= factor(leaf.unit, frozenset({"B"}))
    more = {
        name: row.value for name, row in run(type(point)(point.shape, scaled, point.raw, point.leaves))[0].rows.items()
    }
    bytes_ = [name for name in plain if unit_of(name) == "B" and "_pipeline_" not in name]
    assert all(math.isclose(more[name], FACTORS["B"] * plain[name], rel_tol=1e-9) for name in bytes_)
    assert any(name.endswith("index_bytes") for name in bytes_)
