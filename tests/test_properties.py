"""What must hold for any deployment: monotone in the hardware, never under a floor, sums and identities that close."""

import math
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Cli
from deployments import DEPLOYMENTS, K3, LINEAR, NAMES, SUPERNODE, Deployment, figure
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.algebra import distinct
from planner.errors import BadLayout
from planner.evaluate.case import case_of, point_of
from planner.evaluate.estimate import estimate, run
from planner.evaluate.inputs import Case
from planner.layout import Layout, legal
from planner.model.memory import allowed
from planner.record import Figure
from planner.search.fit import fit
from planner.specs.library import load_model
from planner.specs.workload import Workload

CLOSE = 1e-9
HEADLINE_TIMES = ("prefill_idle_s", "saturated_share_s", "decode_step_s", "serving_e2e_s")
FASTER = (
    "memory_bandwidth",
    "bf16_rate",
    "fp8_rate",
    "mxfp4_rate",
    "scale_up_bandwidth_each_way",
    "scale_out_bandwidth_each_way",
    "compute_units",
)

few = settings(derandomize=True, max_examples=40, deadline=None)
deployments = st.sampled_from(DEPLOYMENTS)


def faster(case: Case, field: str, times: float) -> Case:
    """The same case on a chip that has more of one thing."""
    figure: Figure = getattr(case.chip, field)
    more = figure.model_copy(update={k: getattr(figure, k) * times for k in ("value", "low", "high")})
    return replace(case, chip=case.chip.model_copy(update={field: more}))


def quantities(deployment: Deployment, case: Case | None = None, **ask: Any) -> dict[str, float]:
    """Every named quantity of a deployment, on another case or workload if given."""
    layout, workload = deployment.parsed, deployment.workload.model_copy(update=ask)
    replicas = deployment.lent // layout.chips
    say, _ = run(point_of(case or deployment.case, layout, workload, replicas, deployment.lent))
    return {name: row.value for name, row in say.rows.items()}


def answer(deployment: Deployment, **ask: Any) -> Any:
    """The estimate of a deployment."""
    case, workload = deployment.case, deployment.workload.model_copy(update=ask)
    return estimate(case.model, case.system, deployment.layout, workload, stack=case.stack, chips=deployment.chips)


@few
@given(deployments, st.sampled_from(FASTER), st.floats(1.01, 50))
def test_more_hardware_is_never_slower(deployment: Deployment, field: str, times: float) -> None:
    """More bandwidth, arithmetic or link bandwidth shortens a time or leaves it."""
    before = quantities(deployment)
    after = quantities(deployment, faster(deployment.case, field, times))
    for name in HEADLINE_TIMES:
        assert after[name] <= before[name] * (1 + CLOSE), (name, field, times)


@few
@given(deployments, st.sampled_from(FASTER), st.floats(1.01, 50))
def test_more_hardware_never_lengthens_an_operator(deployment: Deployment, field: str, times: float) -> None:
    """No operator loses by more of anything; what is a balance of others (waiting, hidden time) is not one."""
    before = run(deployment.point)[0].operators
    case = faster(deployment.case, field, times)
    layout = deployment.parsed
    point = point_of(case, layout, deployment.workload, deployment.lent // layout.chips, deployment.lent)
    for old, new in zip(before, run(point)[0].operators, strict=True):
        if old.group != "once" and old.name != "overlap":
            assert new.time_s <= old.time_s * (1 + CLOSE), (old.phase, old.group, old.name, field)


@few
@given(deployments, st.integers(1, 5000), st.integers(1, 100_000), st.integers(1, 3000))
def test_no_operator_beats_its_floor(deployment: Deployment, load: int, isl: int, osl: int) -> None:
    """A predicted time is never under the bytes and the arithmetic at peak rates."""
    workload = deployment.workload.model_copy(update={"concurrency": load, "isl": isl, "osl": osl})
    layout = deployment.parsed
    point = point_of(deployment.case, layout, workload, deployment.lent // layout.chips, deployment.lent)
    for operator in run(point)[0].operators:
        assert operator.floor_s <= operator.time_s * (1 + CLOSE) or operator.floor_s == 0, (
            operator.phase, operator.group, operator.name,
        )  # fmt: skip


@few
@given(deployments, st.integers(1, 5000), st.integers(1, 200_000), st.integers(1, 5000))
def test_every_quantity_is_finite_and_times_are_not_negative(
    deployment: Deployment, load: int, isl: int, osl: int
) -> None:
    """No workload gives a NaN, an infinity or a negative headline."""
    q = quantities(deployment, concurrency=load, isl=isl, osl=osl)
    assert [name for name, value in q.items() if not math.isfinite(value)] == []
    assert all(q[name] >= 0 for name in HEADLINE_TIMES)
    assert q["serving_ttft_s"] >= q["prefill_idle_s"] > 0
    assert q["memory_max_concurrency"] >= 0


@few
@given(deployments, st.integers(1, 3000), st.integers(1, 500))
def test_more_load_never_shortens_a_step(deployment: Deployment, load: int, more: int) -> None:
    """A decode step with more requests in flight is never shorter, and a request never ends sooner."""
    before, after = quantities(deployment, concurrency=load), quantities(deployment, concurrency=load + more)
    if after["decode_micro_batches"] == before["decode_micro_batches"]:
        assert after["decode_step_s"] >= before["decode_step_s"] * (1 - CLOSE)
    assert after["memory_slack_bytes"] <= before["memory_slack_bytes"] + 1


@few
@given(deployments, st.integers(1, 100_000), st.integers(1, 100_000))
def test_a_longer_prompt_never_costs_less(deployment: Deployment, isl: int, more: int) -> None:
    """TTFT on an idle system and the memory of a request grow with the prompt."""
    before, after = quantities(deployment, isl=isl), quantities(deployment, isl=isl + more)
    assert after["memory_stage0_request_bytes"] >= before["memory_stage0_request_bytes"]
    if after["prompt_chunks"] == before["prompt_chunks"]:
        assert after["prefill_idle_s"] >= before["prefill_idle_s"] * (1 - CLOSE)


@few
@given(st.integers(1, 1000), st.data(), st.integers(0, 100_000), st.integers(0, 1000))
def test_distinct_experts_grow_to_all(experts: int, data: st.DataObject, tokens: int, more: int) -> None:
    """Distinct experts: monotone in tokens, at most all, k after one token, none after none."""
    top_k = data.draw(st.integers(1, experts))
    share = top_k / experts
    few_of, many = distinct(experts, share, tokens), distinct(experts, share, tokens + more)
    assert 0 <= few_of <= many * (1 + CLOSE) <= experts * (1 + CLOSE)
    assert distinct(experts, share, 0) == 0
    assert distinct(experts, share, 1) == pytest.approx(top_k, rel=CLOSE)
    if tokens:
        assert few_of >= top_k * (1 - CLOSE)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_experts_on_a_rank_stay_within_its_slots(deployment: Deployment) -> None:
    """The slowest rank meets at least the mean of the distinct experts and at most those it holds."""
    layout = deployment.parsed
    for load in (1, 3, 64, 5000):
        q = quantities(deployment, concurrency=load)
        experts = load_model(deployment.model).feed_forward["moe"].experts
        for phase in ("prefill", "saturated", "decode"):
            found, held = q[f"{phase}_moe_routing_distinct_experts"], q[f"{phase}_moe_routing_experts"]
            slots = (experts + layout.red) / layout.ep
            assert found / layout.ep * (1 - CLOSE) <= held <= slots * (1 + CLOSE), (phase, load)
            assert found <= experts * (1 + CLOSE)
            mean = q[f"{phase}_moe_routing_mean_assignments"]
            assert q[f"{phase}_moe_routing_assignments"] >= mean * (1 - CLOSE)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_rates_times_and_loads_agree(deployment: Deployment) -> None:
    """Little's law and the definitions hold: tokens in flight, TTFT + gaps = end to end, rates are reciprocals."""
    found = answer(deployment)
    workload, lent = deployment.workload, deployment.lent
    serving, decode = found.serving, found.decode
    tokens = workload.concurrency * workload.osl
    assert serving.tok_s_per_chip * lent * serving.e2e_s == pytest.approx(tokens, rel=CLOSE)
    assert serving.tok_s == pytest.approx(serving.tok_s_per_chip * lent, rel=CLOSE)
    assert serving.requests_per_s * workload.osl == pytest.approx(serving.tok_s, rel=CLOSE)
    per_step = workload.concurrency * workload.accepted_length / (decode.step_s * lent)
    assert decode.tok_s_per_chip == pytest.approx(per_step, rel=CLOSE)
    if workload.osl == 1:
        assert decode.tpot_s is None
        assert decode.tok_s_per_user is None
    else:
        assert decode.tpot_s * (workload.osl - 1) + serving.ttft_s == pytest.approx(serving.e2e_s, rel=CLOSE)
        assert decode.tok_s_per_user * decode.tpot_s == pytest.approx(1, rel=CLOSE)
    price = deployment.case.chip.price.value * lent
    million = 1e6
    cost = found.cost
    assert cost.usd_per_million_output_tokens == pytest.approx(price / serving.tok_s * million, rel=CLOSE)
    both = 1 / cost.usd_per_million_output_tokens + 1 / cost.usd_per_million_input_tokens
    assert 1 / cost.usd_per_million_total_tokens == pytest.approx(both, rel=CLOSE)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_breakdown_sums_to_the_phases(deployment: Deployment) -> None:
    """The operators of decode add up to the step, those of prefill to the TTFT of one prompt on an idle system."""
    for load in (1, 200):
        found = answer(deployment, concurrency=load)
        for phase, whole in (("decode", found.decode.step_s), ("prefill", found.prefill.ttft_s)):
            parts = [row["time_s"] for row in found.breakdown if row["phase"] == phase]
            assert math.fsum(parts) == pytest.approx(whole, rel=CLOSE), (phase, load)
        assert math.fsum(found.bounds.values()) == pytest.approx(1, rel=CLOSE)


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_breakdown_rows_are_whole(deployment: Deployment) -> None:
    """Every row names a known bound and basis, counts at least one run, and only hidden time is negative."""
    for row in answer(deployment).breakdown:
        assert row["bound"] in ("compute", "memory", "network", "latency")
        assert row["basis"] in ("measured", "fitted", "analogy", "assumed", "derived"), row
        assert row["count"] >= 1
        assert row["time_s"] > 0 or row["operator"] in ("overlap", "engine.pipeline", "engine.factor"), row
        assert min(row["floor_s"], row["flops"], row["bytes"], row["network_bytes"]) >= 0


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_memory_parts_sum(deployment: Deployment) -> None:
    """Used memory is its parts, the budget is what the rest leaves, and the pool is the chips together."""
    found = answer(deployment)
    memory, q = found.memory, quantities(deployment)
    other = memory.activations_bytes_per_chip + memory.buffers_bytes_per_chip + memory.runtime_bytes_per_chip
    requests = q["group"] * memory.request_bytes_per_chip
    assert memory.used_bytes_per_chip == pytest.approx(memory.weights_bytes_per_chip + other + requests, rel=CLOSE)
    left = memory.usable_bytes_per_chip - memory.weights_bytes_per_chip - other
    assert memory.kv_budget_bytes_per_chip == pytest.approx(left, rel=CLOSE, abs=1)
    one = memory.kv_bytes_per_token_per_chip * memory.length + memory.state_bytes_per_sequence_per_chip
    assert memory.request_bytes_per_chip == pytest.approx(one, rel=CLOSE)
    assert memory.usable_bytes_per_chip <= memory.capacity_bytes_per_chip
    assert memory.pool.capacity_bytes == pytest.approx(memory.capacity_bytes_per_chip * deployment.lent, rel=CLOSE)
    assert memory.max_tokens == memory.max_concurrency * memory.length
    assert memory.fits == (memory.used_bytes_per_chip <= memory.usable_bytes_per_chip * (1 + CLOSE))


@pytest.mark.parametrize("name", ["plain", "pp2", "cp", "replicas", "fp8-cache", "cp-dcp-pp"])
def test_max_concurrency_is_the_last_that_fits(name: str) -> None:
    """The printed concurrency fits and one more request per attention group does not."""
    deployment = next(d for d in DEPLOYMENTS if d.name == name)
    most = int(quantities(deployment)["memory_max_concurrency"])
    ways = deployment.parsed.dp * (deployment.lent // deployment.parsed.chips)
    assert most > 0
    assert most % ways == 0
    at_most = quantities(deployment, concurrency=most)
    if at_most["memory_activations_bytes"] == quantities(deployment)["memory_activations_bytes"]:
        assert at_most["memory_slack_bytes"] >= 0
        assert quantities(deployment, concurrency=most + ways)["memory_slack_bytes"] < 0


def token_bytes(layout: str, model: str = K3) -> float:
    """Cache of one token on one chip."""
    found = fit(model, SUPERNODE, layout=layout, max_len=8192)
    return found.kv_bytes_per_token_per_chip


def test_a_latent_cache_is_split_by_dcp_and_not_by_tp() -> None:
    """Every TP rank holds the whole latent; DCP and CP share its tokens; DP changes nothing on a chip."""
    whole = token_bytes("TP1 DP8")
    assert token_bytes("TP8 DP1") == token_bytes("TP2 DP4") == whole
    assert token_bytes("TP8 DCP4") == pytest.approx(whole / 4, rel=CLOSE)
    assert token_bytes("TP4 CP2") == pytest.approx(whole / 2, rel=CLOSE)
    assert token_bytes("TP4 CP2 DCP2") == pytest.approx(whole / 4, rel=CLOSE)


def test_a_recurrent_state_is_split_by_tp_and_not_by_dcp() -> None:
    """State is per head: TP divides it, DCP and DP leave it."""
    states = {t: fit(K3, SUPERNODE, layout=t, max_len=8192).state_bytes_per_sequence_per_chip
              for t in ("TP1 DP8", "TP8", "TP8 DCP8")}  # fmt: skip
    assert states["TP8"] == pytest.approx(states["TP1 DP8"] / 8, rel=CLOSE)
    assert states["TP8 DCP8"] == states["TP8"]


@few
@given(st.integers(1, 4000), st.integers(1, 4000))
def test_traffic_of_a_token_does_not_depend_on_the_batch(load: int, other: int) -> None:
    """What a token sends in an all-reduce is the same in every batch."""
    deployment = DEPLOYMENTS[0]
    for name in ("decode_mixed_reduce_network_bytes", "decode_moe_reduce_network_bytes"):
        one, two = quantities(deployment, concurrency=load), quantities(deployment, concurrency=other)
        assert one[name] / one["decode_tokens"] == pytest.approx(two[name] / two["decode_tokens"], rel=CLOSE)
        assert one[name] > 0


def test_traffic_ends_where_nothing_is_shared() -> None:
    """One chip sends nothing at all."""
    deployment = next(d for d in DEPLOYMENTS if d.name == "one-chip")
    sent = {n: v for n, v in quantities(deployment).items() if n.endswith("network_bytes")}
    assert sent
    assert set(sent.values()) == {0.0}
    assert all(row["network_bytes"] == 0 for row in answer(deployment).breakdown)


@pytest.mark.parametrize(
    ("model", "layout", "experts"),
    [(K3, "DP1024 EP1024", 896), (K3, "TP32 DP32 EP1024", 896), (LINEAR, "DP512 EP512", 256),
     (LINEAR, "DP512 EP512 RED256", 256)],
)  # fmt: skip
def test_ep_beyond_the_experts_is_refused(model: str, layout: str, experts: int) -> None:
    """Expert parallelism cannot split an expert, whatever redundancy is asked for."""
    with pytest.raises(BadLayout, match=f"more than the {experts} experts"):
        Layout.parse(layout, load_model(model))


@few
@given(st.integers(1, 64), st.data())
def test_chips_are_the_product_of_the_ways(chips: int, data: st.DataObject) -> None:
    """Chips = TP x DP x CP x PP, a stage is EP x ETP chips, DCP divides TP."""
    layouts = list(legal(chips, load_model(LINEAR), Counter()))
    if layouts:
        layout = data.draw(st.sampled_from(layouts))
        assert layout.tp * layout.dp * layout.cp * layout.pp == layout.chips == chips
        assert layout.ep * layout.etp * layout.pp == chips
        assert layout.tp % layout.dcp == 0


def test_more_chips_never_hold_less() -> None:
    """The most requests any legal layout holds grows, or stays, with the chips of a replica doubling."""
    case = case_of(LINEAR, SUPERNODE)
    workload = Workload(isl=65_000, osl=536)
    most = []
    for chips in (1, 2, 4, 8, 16):
        points = (point_of(case, layout, workload) for layout in legal(chips, case.model, Counter()))
        most.append(max(run(point)[0].rows["memory_max_concurrency"].value for point in points))
    assert most[0] >= 0
    assert most[-1] > 0
    assert most == sorted(most)


def test_more_chips_never_hold_less_through_fit(cli: Cli) -> None:
    """The fewest chips that `fit` names do hold a request, and one chip fewer holds none."""
    found = cli("fit", LINEAR, "--on", SUPERNODE, "--max-len", "64k", "--json").json
    case = case_of(LINEAR, SUPERNODE)
    workload = Workload(isl=65_535, osl=1)
    fewest = found["min_chips"]

    def held(chips: int) -> float:
        points = [point_of(case, layout, workload) for layout in legal(chips, case.model, Counter())]
        return max((run(point)[0].rows["memory_max_concurrency"].value for point in points), default=0)

    assert held(fewest) >= 1
    assert all(held(chips) == 0 for chips in range(1, fewest))


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=NAMES)
def test_ranges_hold_the_value(deployment: Deployment) -> None:
    """Every range has the value inside, low below high, and none is given for a headline that is null."""
    found = answer(deployment).to_dict()
    for key, (low, high) in found["range"].items():
        part, name = key.split(".")
        assert low <= found[part][name] * (1 + CLOSE), key
        assert high >= found[part][name] * (1 - CLOSE), key
    assert ("decode.tpot_s" in found["range"]) == (found["decode"]["tpot_s"] is not None)


def test_fixed_times_count_what_they_are_per() -> None:
    """Host time is paid per request of a group, layer time per layer, in each decode step."""
    base = DEPLOYMENTS[0]
    before = quantities(base)
    for name, times in (("request_time", before["group"]), ("layer_time", base.case.model.layers)):
        old = getattr(base.case.stack, name)
        more = figure(old, old.value + 1e-3)
        after = quantities(replace(base, stack_changes={name: more}))
        assert after["decode_step_s"] - before["decode_step_s"] == pytest.approx(1e-3 * times, rel=1e-9), name


def test_overlap_stays_between_the_longer_and_both() -> None:
    """Hidden communication never beats the longer of the two and never loses to doing them in turn."""
    base = DEPLOYMENTS[0]
    for share in (0.0, 0.5, 1.0):
        figure = base.case.stack.overlap.model_copy(update={"value": share, "low": share, "high": share})
        q = quantities(replace(base, stack_changes={"overlap": figure}))
        talk = q["decode_moe_dispatch_time_s"] + q["decode_moe_combine_time_s"]
        work = q["decode_moe_experts_time_s"] + q["decode_moe_shared_time_s"]
        both = talk + work + q["decode_moe_overlap_time_s"]
        assert max(talk, work) * (1 - CLOSE) <= both <= (talk + work) * (1 + CLOSE)


@pytest.mark.parametrize(
    ("meaning", "room"),
    [
        ("all", 0.9 * 100 - 20 - 50),  # 50 of weights and 20 beside them, all below 90
        ("static", min(0.9 * 100, 100 - 20) - 50),  # the 20 take more than the tenth that is left
        ("free", 0.9 * (100 - 20 - 50)),
    ],
)
def test_a_memory_fraction_means_what_its_engine_says(meaning: str, room: float) -> None:
    """The same 0.9 of a chip of 100 leaves three different caches; a driver's smaller figure replaces the headline."""
    on = SimpleNamespace(
        ask=SimpleNamespace(memory_fraction=0.9),
        stack=SimpleNamespace(memory_meaning=meaning),
        chip=SimpleNamespace(memory=120.0, usable_memory=100.0),
    )
    assert allowed(50.0, 20.0, on) - 20.0 - 50.0 == pytest.approx(room, rel=1e-12)
    base = DEPLOYMENTS[0]
    slack = {m: quantities(replace(base, stack_changes={"memory_meaning": m})) for m in ("all", "static", "free")}
    fits = {m: q["memory_slack_bytes"] for m, q in slack.items()}
    assert fits["static"] >= fits["all"], "what is beside weights and cache is not taken out of the fraction"
