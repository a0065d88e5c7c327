"""Kernel latencies: the shipped excerpt against the formulas, the reader on bad tables, loads by hand, the fit."""

import json
from collections import defaultdict
from io import StringIO
from pathlib import Path
from statistics import median

import pytest
from conftest import Answer, Cli
from rich.console import Console

from planner.errors import BadFile, ExitCode
from planner.evidence.kernel_rows import read_kernels
from planner.evidence.kernels import is_kernel_table, predictions, validate_kernels
from planner.evidence.loads import balanced, power_law
from planner.report.kernels import render
from planner.specs.library import load_stack

TABLES = Path(__file__).resolve().parent.parent / "measurements" / "kernels"
MEDIANS = {
    "KDA decode, vLLM": 0.05,
    "KDA decode, SGLang": 0.05,
    "FlashKDA": 0.03,
    "Triton chunk_kda": 0.05,
    "TRT-LLM W4A8": 0.12,
    "TRT-LLM W4A16": 0.08,
    "Marlin, vLLM": 0.08,
    "Marlin, SGLang": 0.10,
    # On the whole table 0.10: the excerpt has more of the middle batches in which this kernel changes tiles.
    "Marlin, vLLM 0.24": 0.14,
    "MegaMoE": 0.06,
}
HEADER = "system,op,kernel,phase,batch,seq_len,kda_heads_per_rank,moe_tp,moe_ep,moe_dtype,num_tokens,distribution"
DECODE = "b200_sxm,kda_core,fused_kda_decode,generation,{batch},1,96,,,,,,{value}"
EXPERTS = "{system},routed_experts_3584x3072_top16_of_896,sglang_flashinfer_trtllm_moe,,,,,1,{ep},{dtype},{n},{load},50"


def written(path: Path, *rows: str, header: str = f"{HEADER},latency_us") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def experts(system="b200_sxm", ep=1, dtype="w4a8_mxfp4_mxfp8", n=64, load="balanced"):
    return EXPERTS.format(system=system, ep=ep, dtype=dtype, n=n, load=load)


@pytest.fixture(scope="module")
def shipped():
    return [validate_kernels(path) for path in sorted(TABLES.glob("*.csv"))]


def test_the_excerpt_is_met_within_the_stated_medians(shipped):
    off = defaultdict(list)
    for report in shipped:
        assert report.skipped == []
        for row in report.rows:
            off[row.label].append(abs(row.ratio - 1))
    assert {label: median(values) < MEDIANS[label] for label, values in off.items()} == dict.fromkeys(MEDIANS, True)


def test_every_excerpt_names_its_source_and_licence():
    for path in TABLES.glob("*.csv"):
        head = path.read_text(encoding="utf-8")[:400]
        assert "aiconfigurator at 095f58a5" in head
        assert "Apache-2.0" in head


def test_a_report_is_json_and_draws(shipped):
    report = shipped[0]
    assert json.loads(report.model_dump_json())["summary"][0]["rows"] > 0
    out = StringIO()
    Console(file=out, width=120).print(render(report))
    assert "median" in out.getvalue()
    assert report.summary[0].kernel in out.getvalue()


def test_a_kernel_table_is_known_by_its_columns(tmp_path):
    assert is_kernel_table(TABLES / "kda-decode.csv")
    assert not is_kernel_table(written(tmp_path / "other.csv", header="id,model,hardware"))
    assert not is_kernel_table(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (DECODE.format(batch=1, value=-3), "latency_us -3 is not above 0"),
        (DECODE.format(batch=1, value=0), "latency_us 0 is not above 0"),
        (DECODE.format(batch=1, value=""), "latency_us is not known (blank)"),
        (DECODE.format(batch=1, value="nan"), "latency_us nan is not a usable number"),
        (DECODE.format(batch=1.5, value=3), "batch 1.5 is not a whole number from 1"),
        (DECODE.format(batch=8, value=3), "the same kernel and sizes as line 2"),
        (DECODE.format(batch=1, value=3).replace("b200_sxm", "b2000"), "unknown system"),
        (DECODE.format(batch=1, value=3).replace("kda_core", "gemm"), "unknown op 'gemm'"),
        (DECODE.format(batch=1, value=3).replace("generation", "warm"), "unknown phase 'warm'"),
        (DECODE.format(batch=1, value=3).replace("fused", "fu\0sed"), "kernel has control characters"),
        (DECODE.format(batch=1, value=3).replace(",96,", ",7,"), "7 heads a rank do not divide"),
        (experts(ep=7, n=10**9), None),
        (experts(ep=9), "does not split 896 experts"),
        (experts(dtype="w8a8"), "moe_dtype 'w8a8' is not one of"),
        (
            experts(system="h100_sxm", dtype="w4a8_mxfp4_mxfp8"),
            "computes in fp8, the stack that prices the row in bf16",
        ),
        (experts(load="zipf"), "is not balanced or power_law_EXPONENT"),
        (experts(load="power_law_1.0"), "needs an exponent above 1"),
        (experts(load="power_law_1.2", n=8, ep=8), "the heaviest rank is chance"),
    ],
)
def test_a_row_that_cannot_be_priced_says_why(tmp_path, row, reason):
    rows, skipped = read_kernels(written(tmp_path / "k.csv", DECODE.format(batch=8, value=18.8), row))
    assert [s.line for s in skipped] == ([] if reason is None else [3])
    assert len(rows) == 2 - len(skipped)
    assert all(reason in s.reason for s in skipped)


@pytest.mark.parametrize(
    ("rows", "header"),
    [
        ([], f"{HEADER},latency_us"),
        ([DECODE.format(batch=1, value=-1)], f"{HEADER},latency_us"),
        ([DECODE.format(batch=1, value=1)], HEADER),
    ],
)
def test_a_table_without_a_usable_row_is_a_bad_file(tmp_path, rows, header):
    with pytest.raises(BadFile) as error:
        validate_kernels(written(tmp_path / "k.csv", *rows, header=header))
    assert error.value.exit_code == ExitCode.BAD_INPUT


def test_a_kernel_without_a_name_is_priced_by_its_systems_own_stack(tmp_path):
    row = DECODE.format(batch=8, value=60).replace("b200_sxm", "zhenwu-m890-supernode").replace("fused", "own")
    report = validate_kernels(written(tmp_path / "k.csv", row))
    assert report.rows[0].stack.startswith("sail")
    assert report.rows[0].predicted_s > 0


def test_a_decode_row_by_hand(tmp_path):
    """8 sequences on a B200: 8 x 96 heads x (2 x 65,536 + 5 x 256) B over 7.7 TB/s x 0.714, with a floor of 6.59 us."""
    rows, _ = read_kernels(written(tmp_path / "k.csv", DECODE.format(batch=8, value=18.803)))
    stream = 8 * 96 * (2 * 65_536 + 5 * 256) / (7.7e12 * 0.714)
    assert predictions(rows)[0] == pytest.approx((stream**2 + 6.59e-6**2) ** 0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("tokens", "ranks", "expected"),
    [
        (1, 1, (16, 16)),
        (4, 1, (64, 64)),
        (64, 1, (1024, 896)),
        (16384, 8, (32768, 112)),
        # Token t meets the first 14 experts where t mod 56 < 14: 0..13 and 56..63.
        (64, 64, (22, 14)),
        (896 * 10**6, 64, (896 * 10**6 * 16 / 64, 14)),
    ],
)
def test_balanced_loads_by_hand(tokens, ranks, expected):
    assert balanced(tokens, 896, 16, ranks) == expected


def test_a_power_law_gives_the_heaviest_rank_more_than_its_share():
    for ranks in (1, 8, 64):
        load = power_law(1024, 896, 16, ranks, 1.2)
        mean = 1024 * 16 / ranks
        assert load.assigned == mean if ranks == 1 else 1.1 * mean < load.assigned < 1024 * 896 / ranks
        assert 0 < load.active <= 896 / ranks


def test_a_fit_finds_the_values_that_made_a_table(tmp_path):
    pytest.importorskip("scipy")
    from planner.evidence.kernel_fit import fit_kernels

    rows, _ = read_kernels(TABLES / "kda-decode.csv")
    own = [row for row in rows if row.stack == "kernels-grace-vllm"]
    truth = {"kernel.recurrent_decode.floor": 5e-6, "kernel.recurrent_decode.memory_fraction": 0.6}
    made = [r.model_copy(update={"measured_s": float(t)}) for r, t in zip(own, predictions(own, truth), strict=True)]
    (fit,) = fit_kernels(made)
    assert fit.values == pytest.approx(truth, rel=1e-3)
    assert fit.left_out_median < 1e-3
    assert fit.systems == ["gb200-nvl72", "gb300-nvl72"]


def test_calibrating_kernels(tmp_path: Path, cli: Cli) -> None:
    """A table of one kernel gives a stack that prices its rows; two of a class, or another chip, are refused."""
    head, *body = [line for line in (TABLES / "kda-decode.csv").read_text().splitlines() if not line.startswith("#")]
    here = [line for line in body if line.startswith("b200_sxm,")]
    one = [line for line in here if line.split(",")[2] == "fused_kda_decode"]

    def calibrated(lines: list[str], chip: str, name: str) -> Answer:
        table = tmp_path / f"{name}.csv"
        table.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
        out = str(tmp_path / f"{name}.yaml")
        return cli("calibrate", str(table), "--chip", chip, "--stack", "nvidia-blackwell", "--out", out, "--json")

    answer = calibrated(one, "b200", "one")
    assert answer.code == 0, answer.err
    assert answer.json["kernels"][0]["median"] < 0.06
    assert load_stack(str(tmp_path / "one.yaml")).kernels.recurrent_decode.floor.status == "fitted"
    for lines, chip, told in ((one, "b300", "no row is on b300"), (here, "b200", "two kernels of one class")):
        refused = calibrated(lines, chip, "refused")
        assert (refused.code, refused.out) == (2, "")
        assert told in refused.err
    assert not (tmp_path / "refused.yaml").exists()
