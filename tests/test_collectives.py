"""Each collective held against its arithmetic worked out by hand, inside one domain and across two."""

from typing import Any

import pytest
from deployments import DEPLOYMENTS

from planner.evaluate.estimate import run
from planner.kinds.collectives import __all__ as COLLECTIVES

WIDTH, LATENT, TOP_K = 7168, 3584, 16  # Kimi K3
LATENT_VALUES, HEADS, KV_RANK, ROPE = 512 + 64, 96, 512, 64
BF16, MXFP8 = 2, 33 / 32  # bytes a value, scales included

# (collective, deployment, quantities said under this prefix, bytes inside the domain, bytes outside, start-up)
HAND: list[tuple[str, str, str, Any, Any, str]] = [
    # TP8: every rank sends its eighth seven times, twice: 2 x 7/8 of n x 7168 BF16 values.
    ("all_reduce", "plain", "decode_mixed_reduce", lambda n: 2 * 7 / 8 * n * WIDTH * BF16, None, "all_reduce.alpha"),
    # TP16 over two domains of 8: the same inside, and between the two domains each chip's eighth, 2 x 1/2 of it.
    ("all_reduce", "two-domains", "decode_mixed_reduce", lambda n: 2 * 7 / 8 * n * WIDTH * BF16,
     lambda n: 2 * 1 / 2 * n * WIDTH * BF16 / 8, "all_reduce.far_alpha"),
    # EP64 behind TP8: an eighth of the tokens enters here, 16 copies each, 63 of 64 leave; MXFP8 out, BF16 back.
    ("all_to_all", "plain", "decode_moe_dispatch", lambda n: n / 8 * TOP_K * 63 / 64 * LATENT * MXFP8, None,
     "dispatch.alpha"),
    ("all_to_all", "plain", "decode_moe_combine", lambda n: n / 8 * TOP_K * 63 / 64 * LATENT * BF16, None,
     "combine.alpha"),
    # EP32 (TP16 x DP2) over domains of 8: 7 of 31 peers inside, 24 outside.
    ("all_to_all", "two-domains", "decode_moe_dispatch", lambda n: n / 16 * TOP_K * 31 / 32 * LATENT * MXFP8 * 7 / 31,
     lambda n: n / 16 * TOP_K * 31 / 32 * LATENT * MXFP8 * 24 / 31, "dispatch.far_alpha"),
    # All ranks gather: EP16 behind TP2, half of the tokens enters here and goes to all the 15 others, and back.
    ("all_to_all", "gather", "decode_moe_dispatch", lambda n: n / 2 * 15 * LATENT * MXFP8, None, "dispatch.alpha"),
    ("all_to_all", "gather", "decode_moe_combine", lambda n: n / 2 * 15 * LATENT * BF16, None, "combine.alpha"),
    # DCP4 of TP8: queries and outputs of 96/8 x 4 heads, (2 x 512 + 64) values each, 3 of 4 parts leave, two rounds.
    ("all_gather", "dcp", "decode_mla_gather", lambda n: n * HEADS / 8 * 4 * (2 * KV_RANK + ROPE) * BF16 * 3 / 4, None,
     "2 all_reduce.alpha"),
    # CP2: the other rank's new latents.
    ("all_gather", "cp", "prefill_mla_relay", lambda n: 8192 / 2 * LATENT_VALUES * BF16, None, "all_reduce.alpha"),
    # Two stages: 9 residual sources (ceil(93 / 12) blocks and the embedding), an eighth a TP rank.
    ("point_to_point", "pp2", "decode_pipeline_hop", lambda n: n * WIDTH * 9 * BF16 / 8, None, "point_to_point.alpha"),
    ("point_to_point", "two-domains", "decode_pipeline_hop", lambda n: 0.0, lambda n: n * WIDTH * 9 * BF16 / 16,
     "point_to_point.far_alpha"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("collective", "name", "prefix", "near", "far", "alpha"), HAND, ids=[f"{h[1]}-{h[2]}" for h in HAND]
)
def test_a_collective_is_its_hand_arithmetic(
    collective: str, name: str, prefix: str, near: Any, far: Any, alpha: str
) -> None:
    """Bytes inside and outside the domain, and start-up plus bytes over the reached rates."""
    deployment = next(d for d in DEPLOYMENTS if d.name == name)
    q = {key: row.value for key, row in run(deployment.point)[0].rows.items()}
    values, tokens = deployment.point.values, q["decode_tokens"]
    rounds, link = (2, alpha[2:]) if alpha.startswith("2 ") else (1, alpha)
    kind = link.partition(".")[0]
    assert q[f"{prefix}_network_bytes"] == pytest.approx(near(tokens), rel=1e-12, abs=1e-9)
    time = rounds * values[f"link.{link}"]
    time += near(tokens) / (values["chip.scale_up_bandwidth_each_way"] * values[f"link.{kind}.fraction"])
    if far is not None:
        assert q[f"{prefix}_far_network_bytes"] == pytest.approx(far(tokens), rel=1e-12)
        time += far(tokens) / (values["chip.scale_out_bandwidth_each_way"] * values[f"link.{kind}.far_fraction"])
    assert q[f"{prefix}_time_s"] == pytest.approx(time, rel=1e-12)


def test_every_collective_is_worked_out_by_hand() -> None:
    """A collective without a case above is one nobody has checked."""
    assert {case[0] for case in HAND} == set(COLLECTIVES)


@pytest.mark.parametrize("name", ["plain", "dp1", "dcp", "cp", "pp2"])
def test_one_domain_has_no_far_part(name: str) -> None:
    """Inside one scale-up domain nothing touches the network card."""
    deployment = next(d for d in DEPLOYMENTS if d.name == name)
    assert not [key for key in run(deployment.point)[0].rows if "far_network" in key]


def test_a_domain_as_large_as_the_system_changes_nothing() -> None:
    """A group that fits its domain costs the same whether or not the system has other domains."""
    one = next(d for d in DEPLOYMENTS if d.name == "replicas")
    many = type(one)(**{**one.__dict__, "system_changes": {"domain_chips": 32}})
    a = {key: row.value for key, row in run(one.point)[0].rows.items()}
    b = {key: row.value for key, row in run(many.point)[0].rows.items()}
    for key in ("decode_step_s", "prefill_idle_s", "serving_e2e_s"):
        assert a[key] == pytest.approx(b[key], rel=1e-12)
