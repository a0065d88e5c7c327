"""Kimi K3 on one scale-up domain written out by hand in numpy: what the planner's formulas are timed against.

The same memory, prefill, saturated prefill, decode, serving and cost as the planner's, for this one model, stack form
(norms of the kernels) and arrival pattern, with nothing of the planner imported. Scalars are combined before they meet
an array, a value that several terms need is worked out once, and terms of one form are added before they are scaled.
It takes floats, flat columns or open arrays by dotted name, and gives the headline outputs by the planner's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def soft(x15: Any, y: Any) -> Any:
    """(x^1.5 + y^1.5)^(2/3) of an x whose power is known."""
    return np.square(np.cbrt(x15 + y * np.sqrt(y)))


def power(x: Any) -> Any:
    """x^1.5."""
    return x * np.sqrt(x)


def hand(v: Mapping[str, Any]) -> dict[str, Any]:
    """The headline outputs and memory_slack_bytes of one deployment, or of as many as the arrays hold."""
    # Layout, and what depends on it alone.
    tp, dp, ep, etp, pp, dcp, cp, red, lent, replicas = (
        v[f"layout.{key}"] for key in ("tp", "dp", "ep", "etp", "pp", "dcp", "cp", "red", "lent", "replicas")
    )
    by_tp, by_ep = 1 / tp, 1 / ep
    stage, shards, tokens_tp = ep * etp, dcp * cp, tp * cp
    groups = dp * replicas
    several_tp, several_cp, several_pp = (np.minimum(n - 1, 1) for n in (tp, cp, pp))
    several_stage, several_shards, several_tokens = (np.minimum(n - 1, 1) for n in (stage, shards, tokens_tp))
    others_tp, others_stage, others_shards, others_tokens = (1 - 1 / n for n in (tp, stage, shards, tokens_tp))
    apart = np.minimum(dp * cp - 1, 1)
    together = 1 - apart
    more_cp = cp - 1

    # Rates: seconds per byte, per value and per multiply-add.
    bandwidth, bf16, madd = v["chip.memory_bandwidth"], v["chip.bf16_rate"], v["constant.multiply_add_flops"]

    def per_byte(kernel: str) -> Any:
        return v[f"kernel.{kernel}.traffic"] / (bandwidth * v[f"kernel.{kernel}.memory_fraction"])

    def per_flop(kernel: str, rate: Any) -> Any:
        return 1 / (rate * v["chip.sustained"] * v[f"kernel.{kernel}.compute_fraction"])

    def start(kernel: str) -> Any:
        return v[f"kernel.{kernel}.floor"] + v[f"kernel.{kernel}.added"]

    up = v["chip.scale_up_bandwidth_each_way"]
    sum_byte, hop_byte = 1 / (up * v["link.all_reduce.fraction"]), 1 / (up * v["link.point_to_point.fraction"])
    sum_alpha, hop_alpha = v["link.all_reduce.alpha"], v["link.point_to_point.alpha"]
    exchange_alpha = v["link.dispatch.alpha"] + v["link.combine.alpha"]
    dense_byte, dense_madd, dense_start = per_byte("dense"), madd * per_flop("dense", bf16), start("dense")
    value, width = v["stack.activation_value_bytes"], v["model.width"]
    row = width * value  # bytes of one token at the model's width

    # Weights on one chip.
    heads, d = v["kda.heads"], v["kda.head_dim"]
    inner, rank = heads * d, v["kda.decay_rank"]
    kda_copied = width * rank
    kda_params = (5 * width * inner + rank * inner + width * heads) * by_tp + kda_copied
    kda_vectors = (3 * inner * v["kda.conv_kernel"] + heads + inner) * v["kda.vector_value_bytes"]
    kda_read = kda_params * v["kda.value_bytes"]
    kda_held = kda_read + kda_vectors * by_tp + d * v["kda.vector_value_bytes"]

    mla_heads, latent_kv, q_rank = v["mla.heads"], v["mla.kv_rank"], v["mla.q_rank"]
    nope, rope, out = v["mla.nope_dim"], v["mla.rope_dim"], v["mla.value_dim"]
    mla_split = mla_heads * (q_rank * (nope + rope) + latent_kv * (nope + out) + 2 * out * width)
    mla_params = mla_split * by_tp + width * (q_rank + latent_kv + rope)
    mla_read = mla_params * v["mla.value_bytes"]
    mla_held = mla_read + (q_rank + latent_kv) * v["mla.vector_value_bytes"]

    wide_params = 3 * width * v["dense.inner"] * by_tp
    wide_held = wide_params * v["dense.value_bytes"]

    experts, top_k, latent = v["moe.experts"], v["moe.top_k"], v["moe.latent"]
    multiple = v["kernel.experts.width_multiple"]
    rank_inner = v["moe.inner"] / etp
    slots = (experts + red) * by_ep
    expert_bytes = 3 * latent * v["moe.routed_value_bytes"] * multiple * np.ceil(rank_inner / multiple)
    shared_params = 3 * width * v["moe.shared_inner"] * by_tp
    shared_held = shared_params * v["moe.value_bytes"]
    copied_params = width * (experts + 2 * latent)
    copied_read = copied_params * v["moe.value_bytes"]
    moe_small = copied_read + experts * v["moe.vector_value_bytes"] + latent * v["moe.value_bytes"]
    moe_held = slots * expert_bytes + shared_held + moe_small

    rows = v["stack.vocabulary_multiple"]
    head_params = np.ceil(v["model.vocabulary"] / (tp * rows)) * rows * width
    head_held = head_params * v["model.table_value_bytes"]
    vector = width * v["residual.vector_value_bytes"]
    layer_held, last_held = 6 * vector, head_held + 3 * vector

    # Time to read them, raised to 1.5 for the soft roofline.
    kda_15, mla_15, wide_15, shared_15, copied_15, head_15 = (
        power(size * dense_byte) for size in (kda_read, mla_read, wide_held, shared_held, copied_read, head_held)
    )
    kda_madd, mla_madd, wide_madd, shared_madd, copied_madd, head_madd = (
        count * dense_madd for count in (kda_params, mla_params, wide_params, shared_params, copied_params, head_params)
    )

    # Routing and exchange.
    dispatch, combine = v["stack.dispatch_value_bytes"], v["stack.combine_value_bytes"]
    missed = 1 - top_k / experts
    twice_spread = 2 * np.log(ep)
    share = v["ask.routing_skew"] * top_k * by_ep
    expert_byte, expert_start = per_byte("experts"), start("experts")
    expert_read = expert_bytes * expert_byte
    assigned_time = latent * (dispatch + combine) * expert_byte + rank_inner * (
        (value + dispatch) * expert_byte + 3 * latent * madd * per_flop("experts", v["chip.fp8_rate"])
    )
    row_time = together * v["kernel.experts.row_time"]
    exchange_start = several_stage * apart * exchange_alpha
    copies = np.minimum(top_k, ep) * etp * others_stage * apart
    copy_time = copies * (latent / up * (dispatch / v["link.dispatch.fraction"] + combine / v["link.combine.fraction"]))
    latent_start = together * several_stage * sum_alpha
    latent_byte = together * others_stage * (2 * latent * value * sum_byte)
    overlap = v["stack.overlap"]

    # What every token pays.
    blocks = np.ceil(v["residual.layers"] / v["residual.block"])
    layers, last_block = v["residual.layers"], v["residual.layers"] - (blocks - 1) * v["residual.block"]
    finished = v["residual.block"] * (blocks - 1) * (blocks - 2) / 2 + last_block * (blocks - 1)
    reads = 2 * (finished + 2 * layers) + 1
    stream_byte, stream_start = per_byte("stream"), start("stream")
    mixing = (reads + 2 * (2 * layers + 1)) * row / v["model.layers"] * stream_byte
    lookup = 2 * row * stream_byte
    sum_start, sum_token = several_tp * sum_alpha, others_tp * (2 * row * sum_byte)
    hop_start, hop_token = several_pp * hop_alpha, several_pp * by_tp * (row * (blocks + 1) * hop_byte)
    fixed = stream_start + v["stack.layer_time"]

    # State and cache of one chip.
    rank_heads = heads / tp
    matrix = rank_heads * (d * d * v["ask.state_value_bytes"])
    taps = 3 * (v["kda.conv_kernel"] - 1) * d * value * heads
    filters = 3 * v["kda.conv_kernel"] * d * v["kda.vector_value_bytes"] * heads
    cached_bytes = (latent_kv + rope) * v["ask.kv_value_bytes"]
    mla_rank_heads = mla_heads / tp

    # Prefill.
    conv_byte, conv_start = per_byte("convolution"), start("convolution")
    scan, scan_chunk = "recurrent_prefill", v["kernel.recurrent_prefill.chunk"]
    scan_flops = heads * (madd / 2) * (6 * d * d + 3 * scan_chunk * d + scan_chunk * scan_chunk) * per_flop(scan, bf16)
    scan_stream = inner * value * v["kernel.recurrent_prefill.streamed_vectors"] * per_byte(scan)
    linear = 6 * inner * value * conv_byte + np.maximum(scan_stream, scan_flops)
    kda_fixed = dense_start + conv_start + start(scan) + several_cp * sum_alpha + filters * conv_byte * by_tp
    relay_state = matrix * more_cp * (2 * sum_byte)
    attend_byte = (nope + rope + out) * value * per_byte("attention_prefill")
    attend_flop = madd * per_flop("attention_prefill", bf16)
    score_time, expand_time = (nope + rope + out) * attend_flop, latent_kv * (nope + out) * attend_flop
    mla_fixed = dense_start + start("attention_prefill") + several_cp * sum_alpha
    relay_latent = more_cp * ((latent_kv + rope) * value * sum_byte)
    units = v["chip.compute_units"]

    isl, osl, hit, chunk = v["ask.isl"], v["ask.osl"], v["ask.prefix_hit"], v["ask.chunk"]
    new = np.maximum(isl * (1 - hit), 1)
    chunks = np.ceil(new / chunk)
    piece = new / chunks
    past = isl - new + (new - piece) / 2
    packed = np.maximum(np.floor(chunk / new), 1)
    alone = piece / cp
    chain = alone * v["kernel.recurrent_prefill.token_time"]
    context = past + piece
    scored = score_time * (past + piece / 2)
    expanded = expand_time * past

    mixers = v["count.kda"] + v["count.mla"]

    def moe_layer(tokens: Any, entering: Any, domain: Any, reduce: Any, kda: Any, mla: Any) -> Any:
        shared = soft(shared_15, shared_madd * tokens) + dense_start
        copied = soft(copied_15, copied_madd * (tokens + apart * (entering - tokens))) + dense_start
        absent = missed**domain
        met = experts * by_ep * (1 - absent)
        mean = share * domain
        assigned = mean + np.sqrt(twice_spread * mean)
        active = np.minimum(slots, met + np.sqrt(twice_spread * met * absent))
        routed = active * expert_read + assigned * assigned_time + expert_start
        routed = routed + row_time * np.maximum(domain * top_k - assigned, 0)
        exchange = exchange_start + copy_time * entering
        work = routed + shared + copied
        time = work + exchange + reduce + latent_start + latent_byte * tokens
        beside = (v["count.kda"] * kda + v["count.mla"] * mla) / mixers
        return time - overlap * np.minimum(exchange, work + beside)

    stages = sum(name.endswith(".layer") for name in v if name.startswith("layout.stage"))

    def stage_times(kda: Any, mla: Any, moe: Any, first: Any, last: Any) -> Any:
        slowest = None
        for i in range(stages):
            at = f"layout.stage{i}."
            time = v[at + "kda"] * kda + v[at + "mla"] * mla + v[at + "moe"] * moe
            time = time + v[at + "embedding"] * first + v[at + "head"] * last
            slowest = time if slowest is None else np.maximum(slowest, time)
        return slowest

    def whole_model(kda: Any, mla: Any, moe: Any, first: Any, last: Any) -> Any:
        return v["count.kda"] * kda + v["count.mla"] * mla + v["count.moe"] * moe + first + last

    def one_pass(tokens: Any, sequences: Any, domain: Any) -> tuple[Any, ...]:
        """Time of a layer of every kind and of the hop; the embedding and the one dense layer are the first stage's."""
        reduce = sum_start + sum_token * tokens
        every = reduce + mixing * tokens + fixed
        rank_tokens = tokens * by_tp
        waves = np.ceil(sequences * rank_heads / units)
        kda = soft(kda_15, kda_madd * tokens) + kda_fixed + linear * rank_tokens + chain * waves
        kda = kda + relay_state * sequences
        read = mla_rank_heads * attend_byte * (tokens + context * sequences)
        attend = mla_rank_heads * (scored * tokens + expanded * sequences)
        mla = soft(mla_15, mla_madd * tokens) + soft(power(read), attend) + mla_fixed + relay_latent * tokens
        moe = moe_layer(tokens, rank_tokens, domain, reduce, kda, mla)
        kda, mla = kda + every, mla + every
        first = soft(wide_15, wide_madd * tokens) + dense_start + 2 * reduce + lookup * tokens + stream_start
        last = soft(head_15, head_madd * sequences) + dense_start
        return kda, mla, moe, first, last, hop_start + hop_token * tokens

    *parts, hop = one_pass(alone, 1.0, piece)
    once = whole_model(*parts) + pp * hop
    error = v["stack.model_error"]
    passes = v["stack.prefill_factor"] * (once + (chunks - 1) * (stage_times(*parts) + hop))
    idle = error * (passes + v["stack.first_token_time"])
    busy_tokens, busy_domain = alone * packed, piece * packed * dp
    *parts, hop = one_pass(busy_tokens, packed, busy_domain)
    full = error * v["stack.prefill_factor"] * chunks * (stage_times(*parts) + hop) / packed

    # Decode.
    concurrency, verified = v["ask.concurrency"], v["ask.draft_tokens"] + 1
    group = np.ceil(concurrency / groups)
    micro = np.minimum(pp, group)
    sequences = np.ceil(group / micro)
    tokens = sequences * verified
    domain = np.minimum(concurrency / (replicas * micro), sequences * dp) * verified
    reduce = sum_start + sum_token * tokens
    every = reduce + mixing * tokens + fixed
    step = "recurrent_decode"
    state_time = (2 * d * d * v["ask.state_value_bytes"] + 5 * d * value * verified) * heads * per_byte(step)
    state_flops = (3.5 * madd * d * d * verified) * heads * per_flop(step, bf16)
    recurrent = sequences * by_tp * np.maximum(state_time, state_flops)
    kda = soft(kda_15, kda_madd * tokens) + np.sqrt(v["kernel.recurrent_decode.floor"] ** 2 + np.square(recurrent))
    kda = kda + (sequences * (2 * taps * conv_byte) + filters * conv_byte) * by_tp
    kda = kda + (dense_start + conv_start + v["kernel.recurrent_decode.added"])
    cached = sequences * (isl + osl / 2) / shards
    tile = v["kernel.attention_decode.row_multiple"]
    row_heads = mla_rank_heads * dcp
    pair = (2 * latent_kv + rope) * madd * tile * per_flop("attention_decode", bf16)
    read = cached_bytes * per_byte("attention_decode") * cached
    core = soft(power(read), pair * np.ceil(row_heads * verified / tile) * cached)
    gather = row_heads * others_shards * ((2 * latent_kv + rope) * value * sum_byte) * tokens
    mla = soft(mla_15, mla_madd * tokens) + core + gather + several_shards * (2 * sum_alpha)
    mla = mla + (dense_start + start("attention_decode"))
    same = several_tokens * sum_alpha + others_tokens * (2 * row * sum_byte) * tokens
    moe = moe_layer(tokens, tokens / tokens_tp, domain, same, kda, mla)
    kda, mla = kda + every, mla + every
    first = soft(wide_15, wide_madd * tokens) + dense_start + 2 * reduce + lookup * tokens + stream_start
    last = soft(head_15, head_madd * tokens) + dense_start
    hop = hop_start + hop_token * tokens
    parts = [kda, mla, moe, first, last]
    turn = np.maximum(whole_model(*parts) + pp * hop, micro * (stage_times(*parts) + hop))
    one = error * (turn + group * v["stack.request_time"] + v["stack.step_time"])

    # Memory.
    widest = np.maximum(6 * inner, mla_heads * (2 * (nope + rope) + 3 * out))
    widest = np.maximum(widest, 2 * v["dense.inner"]) * value
    edge = latent * (dispatch + combine)
    full_tokens = chunk / cp
    full_rank = full_tokens * by_tp
    active = np.maximum(widest * full_rank, share * chunk * dp * (edge + 2 * value * rank_inner))
    active = active + (blocks + 3) * row * full_tokens + v["stack.exchange_buffers"] * top_k * edge * full_rank
    room = v["ask.memory_fraction"] * v["chip.memory"] - v["stack.runtime"] - active
    growing = cached_bytes / shards * v["ask.length"]
    constant = matrix + taps * by_tp
    fits = used = None
    for i in range(stages):
        at = f"layout.stage{i}."
        kda_layers, mla_layers, first_stage = v[at + "kda"], v[at + "mla"], v[at + "embedding"]
        weights = kda_layers * kda_held + mla_layers * mla_held + v[at + "moe"] * moe_held
        weights = weights + first_stage * (wide_held + head_held) + v[at + "head"] * last_held
        weights = weights + v[at + "layer"] * layer_held
        request = mla_layers * growing + kda_layers * constant
        some, taken = np.floor((room - weights) / request), weights + group * request
        fits, used = (some, taken) if fits is None else (np.minimum(fits, some), np.maximum(used, taken))

    # Serving and cost.
    accepted = v["ask.accepted_length"]
    steps, gaps = (osl - 1) / accepted, np.maximum(osl - 1, 1)
    prefills, decodes, behind = group * full, steps * one, (group - 1) * full
    own = idle + prefills / (prefills + decodes) * np.maximum(full - idle, 0)
    cycle = own + behind + decodes
    wait = np.minimum(behind / 2, prefills * full / (2 * np.maximum(cycle - prefills, full)))
    ttft = own + wait
    streaming = cycle - ttft
    rate = concurrency * osl / cycle
    return {
        "prefill_idle_s": idle,
        "serving_prefill_chip_tokens_per_s": groups * isl / (full * lent),
        "decode_step_s": one,
        "serving_decode_chip_tokens_per_s": concurrency * accepted / (one * lent),
        "serving_tpot_s": streaming / gaps,
        "serving_user_tokens_per_s": gaps / np.maximum(streaming, one / accepted),
        "serving_ttft_s": ttft,
        "serving_e2e_s": cycle,
        "serving_chip_tokens_per_s": rate / lent,
        "memory_max_concurrency": np.maximum(fits, 0) * groups,
        "serving_cost_output_usd": v["chip.price"] * v["constant.million"] * lent / rate,
        "memory_slack_bytes": room - used,
    }
