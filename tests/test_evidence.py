"""Published measurements against the model: the shipped ones as golden cases, tables of one's own, bad rows."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from planner.errors import BadFile, PlannerError
from planner.evidence.fit import PARAMETERS, ROWS_PER_PARAMETER, scored
from planner.evidence.measurement import METRICS, Measurement
from planner.evidence.names import stack_name
from planner.evidence.predict import deployable, ready
from planner.evidence.rows import NEEDED, read_table
from planner.evidence.scores import by_source, orders, spread, tau
from planner.evidence.shipped import measurements, publications
from planner.evidence.validate import TTFT, Row, Validation, validate
from planner.specs.library import load_stack, names

FACTOR = 1.5
"""A figure is as predicted within this factor, or its file says why not. Repeats of one run differ by up to 1.2."""
STALE = 1.35
"""A figure that is listed as unexplained and comes closer than this is explained by now."""


@pytest.fixture(scope="module")
def whole() -> Validation:
    """All shipped figures predicted once."""
    return validate()


@pytest.fixture(scope="module")
def predicted(whole: Validation) -> dict[str, Row]:
    """Answers by id."""
    return {row.id: row for row in whole.rows}


FIGURES = measurements()
REASONS = {name: reason for p in publications() for reason, ids in p.unexplained.items() for name in ids}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.id)
def test_a_published_figure_is_predicted(figure: Measurement, predicted: dict[str, Row]) -> None:
    """Within a factor of 1.5 of what was published, unless the file names it with the reason why not."""
    off = abs(math.log(predicted[figure.id].ratio))
    if figure.id in REASONS:
        assert off > math.log(STALE), "explained by now: take it off the list"
    else:
        assert off <= math.log(FACTOR)


def test_the_table_is_wide_enough() -> None:
    """Rows, sources, and a name, address and date for each."""
    assert len(FIGURES) >= 150
    assert len({figure.source for figure in FIGURES}) >= 15
    assert len({figure.id for figure in FIGURES}) == len(FIGURES)
    for publication in publications():
        assert publication.url.startswith("https://"), publication.source
        assert publication.title, publication.source
        assert publication.date, publication.source
        assert {figure.source for figure in publication.figures} == {publication.source}


def test_errors_over_sources(whole: Validation) -> None:
    """Averages over sources, as they are reached: 13 and 30 %; Kimi K3 7 and 27 %; first tokens 13 %."""
    rates, k3, first = whole.overall
    assert rates.median_abs_log_ratio <= 0.135
    assert rates.p90_abs_log_ratio <= 0.32
    assert k3.median_abs_log_ratio <= 0.08
    assert k3.p90_abs_log_ratio <= 0.30
    assert first.median_abs_log_ratio <= 0.20
    assert whole.mean_kendall_tau is not None
    assert whole.mean_kendall_tau >= 0.8


def test_nothing_beats_its_bounds(whole: Validation) -> None:
    """No prediction is faster than its operators at peak rates, and no measurement either."""
    seen = 0
    for row in whole.rows:
        if row.metric in ("tpot_ms", "itl_ms") or (row.metric == TTFT and row.phase == "prefill"):
            assert row.floor_s > 0, row.id
            assert row.predicted * METRICS[row.metric].scale >= row.floor_s, row.id
            assert row.measured * METRICS[row.metric].scale >= row.floor_s, row.id
            seen += 1
    assert seen > 300


def test_prefill_layouts_of_kimi_k3_keep_their_order(predicted: dict[str, Row]) -> None:
    """At saturation on 16 GB200: PP16 > PP8 x TP2 > PP2 x TP8 > TEP16 > TP16."""
    rows = [f for f in FIGURES if f.source == "sglang-k3" and f.phase == "prefill"]
    best: dict[tuple[int, int, int | None], float] = {}
    for figure in rows:
        key = (figure.pp, figure.tp, figure.ep)
        best[key] = max(best.get(key, 0.0), predicted[figure.id].predicted)
    order = [(16, 1, None), (8, 2, None), (2, 8, None), (1, 16, 16), (1, 16, 1)]
    values = [best[key] for key in order]
    assert values == sorted(values, reverse=True)


def test_rows_per_parameter() -> None:
    """No stack has more than five fitted parameters, and each has ten rows."""
    items, left = deployable(measurements())
    assert not left
    for name in {item.row.stack for item in items}:
        fitted = [p.name for p in PARAMETERS if (leaf := ready_leaf(name, p.name)) is not None and leaf == "fitted"]
        mine = [item for item in items if item.row.stack == name and scored(item)]
        own = [p for p in fitted if f"fit to {len(mine)} figures" in ready_source(name, p)]
        assert len(own) <= min(5, max(1, len(mine) // ROWS_PER_PARAMETER)), name


def figure_of(stack: str, name: str) -> object:
    """The figure of a parameter in a stack."""
    loaded = load_stack(stack)
    kind, _, rest = name.partition(".")
    return getattr(loaded, rest) if kind == "stack" else getattr(loaded.kernels.experts, rest.partition(".")[2])


def ready_leaf(stack: str, name: str) -> str | None:
    """The status of a parameter in a stack."""
    return getattr(figure_of(stack, name), "status", None)


def ready_source(stack: str, name: str) -> str:
    """The source of a parameter in a stack."""
    return str(getattr(figure_of(stack, name), "source", ""))


GOOD = {
    "id": "a", "model": "qwen3-32b", "hardware": "h200-8", "n_chips": "8", "framework": "vLLM 0.18", "phase": "agg",
    "metric": "tpot_ms", "value": "12", "unit": "ms", "tp": "8", "isl": "1024", "osl": "512",
    "concurrency_or_batch": "16 global",
}  # fmt: skip
Table = Callable[[list[dict[str, str]]], Path]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A CSV file of rows."""

    def write(rows: list[dict[str, str]]) -> Path:
        path = tmp_path / "own.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"unit": "s"}, "tpot_ms in 's'; it is given in ms"),
        ({"value": "0"}, "value 0 is not above 0"),
        ({"value": "-3"}, "value -3 is not above 0"),
        ({"value": "fast"}, "value is not a plain number (fast)"),
        ({"value": "nan"}, "value is not a plain number (nan)"),
        ({"metric": "latency"}, "unknown metric 'latency'"),
        ({"model": "gpt-9"}, "unknown model 'gpt-9'"),
        ({"hardware": "X100"}, "unknown hardware 'X100'"),
        ({"phase": "training"}, "unknown phase 'training'; use agg, prefill or decode"),
        ({"tp": "0"}, "tp 0 is not a whole number from 1"),
        ({"tp": "2.5"}, "tp 2.5 is not a whole number from 1"),
        ({"isl": ""}, "isl is not known (blank)"),
        ({"concurrency_or_batch": ""}, "the load is not known (blank)"),
        ({"speculative": "MTP 3 steps"}, "speculation without an accepted length (MTP 3 steps)"),
        ({"weight_precision": "INT3"}, "unknown precision 'INT3'"),
        ({"quality": "Z"}, "grade"),
        ({"tp": "7", "n_chips": "7"}, "TP7 does not divide the 64 heads"),
        ({"tp": "16"}, "takes 16 chips, and the row has 8"),
        ({"tp": ""}, "tp is not known (blank)"),
        ({"value": "1,234"}, "value is not a plain number (1,234)"),
        ({"value": "1e-320"}, "value 1e-320 is not a usable number"),
        ({"isl": "0"}, "isl 0 is not a whole number from 1"),
        ({"concurrency_or_batch": "16 per-node"}, "the load is not known (16 per-node)"),
        ({"concurrency_or_batch": "0 global"}, "a load of 0 is not from 1"),
        ({"kv_precision": "q4"}, "unknown cache precision 'q4'"),
        ({"prefix_cache_hit": "0.5"}, "prefix cache are not priced"),
        ({"disaggregated": "maybe"}, "disaggregated 'maybe' is neither y nor n"),
        ({"framework": ""}, "framework is blank"),
        ({"model": "kimi-k3"}, "memory holds no request"),
        ({"model": "qwen3-235b-a22b", "ep": "3"}, "does not divide the 8 chips of a stage"),
        ({"isl": "99999999"}, "exceed the"),
    ],
    ids=lambda part: "" if isinstance(part, dict) else part[:24],
)
def test_a_bad_row_is_skipped_with_its_reason(table: Table, change: dict[str, str], reason: str) -> None:
    """The good row is priced, the bad one counted with what is wrong."""
    found = validate(table([GOOD, {**GOOD, "id": "b", **change}]))
    assert [row.id for row in found.rows] == ["a"]
    assert [row["id"] for row in found.skipped] == ["b"]
    assert reason in found.skipped[0]["reason"]


def test_a_cell_too_many_is_no_shift(tmp_path: Path) -> None:
    """A number with a comma and without quotes is not read as two."""
    head, row = ",".join(GOOD), ",".join(GOOD.values())
    path = tmp_path / "t.csv"
    path.write_text(f"{head}\n{row}\n{row.replace('1024', '1,024').replace('a,', 'b,', 1)}\n", encoding="utf-8")
    found = validate(path)
    assert [row.id for row in found.rows] == ["a"]
    assert "more cells than columns" in found.skipped[0]["reason"]


@pytest.mark.parametrize(
    ("name", "text", "value"), [("tp", "8 (assumed)", 8), ("isl", "8k", 8192), ("isl", "~512 mean (nominal 1K)", 512)]
)
def test_numbers_with_words(table: Table, name: str, text: str, value: int) -> None:
    """What publications write beside a number."""
    assert getattr(read_table(table([{**GOOD, name: text}])).rows[0], name) == value


def test_few_rows_can_be_left_out(table: Table) -> None:
    """One engine and one source: nothing else to go by than the stack itself."""
    rows = [{**GOOD, "id": f"r{i}", "concurrency_or_batch": f"{i} global"} for i in range(1, 5)]
    found = validate(table(rows), leave_out=True)
    assert len(found.overall) >= 2


def test_a_repeated_id_is_skipped(table: Table) -> None:
    """The second row of an id has its line number."""
    found = validate(table([GOOD, GOOD]))
    assert len(found.rows) == 1
    assert found.skipped == [{"id": "a (line 3)", "reason": "the id is given twice"}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no column 'id'"),
        ("id,model\n1,2\n", "has no column 'hardware'"),
        (",".join([*NEEDED, "colour"]) + "\n", "unknown column 'colour'"),
        (",".join([*NEEDED, "id"]) + "\n", "column 'id' is given twice"),
        (",".join(NEEDED) + "\n", "no row can be used"),
    ],
)
def test_a_table_without_a_usable_row_is_bad_input(tmp_path: Path, cli, text: str, told: str) -> None:  # type: ignore[no-untyped-def]
    """One line, exit code 2, nothing on stdout."""
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    for command in (["validate", str(path)],):
        answer = cli(*command)
        assert (answer.code, answer.out) == (2, "")
        assert told in answer.err
        assert answer.err.count("\n") == 1


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    """Missing, a folder, no text."""
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00\x81")
    for path in (tmp_path / "none.csv", tmp_path, tmp_path / "x.csv"):
        with pytest.raises(BadFile):
            validate(path)


def test_every_shipped_figure_survives_the_table(table: Table) -> None:
    """A table in the columns people fill in gives the record that ships."""
    row = {**GOOD, "kv_precision": "fp8", "weight_precision": "FP8", "framework": "vLLM 0.18.0", "date": "2026-03"}
    found = read_table(table([row])).rows[0]
    assert (found.stack, found.weights, found.kv_format, found.requests) == ("vllm-hopper", "fp8", "fp8", 16)
    assert (found.phase, found.arrivals) == ("served", "waves")


def test_an_unknown_engine_is_priced_blind() -> None:
    """On a family of chips with an unfitted stack, and refused without one."""
    assert stack_name("MyEngine 3", "h200-8") == "engines-hopper"
    assert load_stack("engines-hopper").expected_error.basis == "blind"
    assert set(names("stack")) >= {"engines-hopper", "engines-blackwell", "vllm-hopper", "sglang-blackwell"}


def test_calibrating_on_own_rows(table: Table, tmp_path: Path, cli) -> None:  # type: ignore[no-untyped-def]
    """Rows made with a known fixed time give it back; the stack that is written loads and is used."""
    truth = {"layer": 90e-6}
    rows = []
    for i, (requests, isl) in enumerate([(1, 512), (4, 1024), (8, 1024), (16, 2048), (32, 1024), (64, 512)] * 2):
        one = Measurement(
            id=f"r{i}", source=f"s{i % 3}", model="qwen3-32b", system="h200-8", stack="engines-hopper", chips=8, tp=8,
            phase="served", isl=isl, osl=512, requests=requests, metric="tpot_ms", value=1.0,
        )  # fmt: skip
        from planner.evidence.predict import grouped, predictions

        value = predictions(grouped([ready(one)]), 1, {"stack.layer_time": truth["layer"]})[0]
        rows.append({**GOOD, "id": one.id, "source_group": one.source, "isl": str(isl), "value": f"{value * 1e3:.6f}",
                     "concurrency_or_batch": f"{requests} global", "note": "uniform"})  # fmt: skip
    out = tmp_path / "mine.yaml"
    answer = cli(
        "calibrate", str(table(rows)), "--chip", "h200", "--stack", "engines-hopper", "--out", str(out), "--json"
    )
    assert answer.code == 0, answer.err
    layer = next(row for row in answer.json["parameters"] if row["name"] == "stack.layer_time")
    assert layer["value"] == pytest.approx(truth["layer"] * 1e6, rel=0.01)
    assert layer["low"] <= layer["value"] <= layer["high"]
    assert "stack.first_token_time" in answer.json["not_identified"]
    stack = load_stack(str(out))
    assert stack.layer_time.value == pytest.approx(truth["layer"], rel=0.01)
    again = cli(
        "calibrate", str(table(rows)), "--chip", "h200", "--stack", "engines-hopper", "--out", str(out), "--json"
    )
    assert again.code == 2
    assert "is there already" in again.err


def test_one_row_anchors_an_engine(table: Table, tmp_path: Path, cli) -> None:  # type: ignore[no-untyped-def]
    """A single figure moves the fixed time until it is met; the rest is said not to be identified."""
    out = tmp_path / "anchor.yaml"
    answer = cli(
        "calibrate", str(table([{**GOOD, "value": "20"}])), "--chip", "h200", "--stack", "engines-hopper", "--out",
        str(out), "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert answer.json["basis"] == "anchored"
    assert answer.json["median_abs_log_ratio"] < 0.02 < answer.json["before_median_abs_log_ratio"]
    assert len(answer.json["not_identified"]) >= len(PARAMETERS) - 2
    layer = load_stack(str(out)).layer_time
    assert layer.low < layer.value < layer.high


def test_a_first_token_does_not_keep_the_step_from_being_fitted(table: Table, tmp_path: Path, cli) -> None:  # type: ignore[no-untyped-def]
    """One parameter for two rows: the one that moves both."""
    rows = [{**GOOD, "value": "14"}, {**GOOD, "id": "b", "metric": "ttft_ms", "value": "150",
            "concurrency_or_batch": "1 global"}]  # fmt: skip
    out = str(tmp_path / "two.yaml")
    answer = cli("calibrate", str(table(rows)), "--chip", "h200", "--stack", "engines-hopper", "--out", out, "--json")
    assert answer.code == 0, answer.err
    assert [row["name"] for row in answer.json["parameters"] if row["fitted"]] == ["stack.layer_time"]


def test_what_the_rows_cannot_tell_writes_no_stack(table: Table, tmp_path: Path, cli) -> None:  # type: ignore[no-untyped-def]
    """A figure that no fixed time meets is refused, and so is the name of a shipped stack."""
    for value, name, told in (("1000000", "far", "identify no parameter"), ("12", "vllm-hopper", "shipped stack")):
        out = tmp_path / f"{name}.yaml"
        answer = cli(
            "calibrate", str(table([{**GOOD, "value": value}])), "--chip", "h200", "--stack", "engines-hopper", "--out",
            str(out),
        )  # fmt: skip
        assert (answer.code, answer.out) == (2, "")
        assert told in answer.err
        assert not out.exists()


def test_calibrating_refuses(table: Table, tmp_path: Path, cli) -> None:  # type: ignore[no-untyped-def]
    """Unknown chip or stack, no row on the chip."""
    path, out = str(table([GOOD])), str(tmp_path / "o.yaml")
    for chip, stack, told in (
        ("h999", "engines-hopper", "unknown chip"),
        ("h200", "nothing", "unknown stack"),
        ("b200", "engines-blackwell", "no row on b200 can be used"),
    ):
        answer = cli("calibrate", path, "--chip", chip, "--stack", stack, "--out", out)
        assert (answer.code, answer.out) == (2, "")
        assert told in answer.err
    assert not Path(out).exists()


def test_the_page_is_written_whole(tmp_path: Path, cli) -> None:  # type: ignore[no-untyped-def]
    """The report as one HTML file with its scatter, and JSON with the contract's keys."""
    out = tmp_path / "v.html"
    answer = cli("validate", "--out", str(out), "--json")
    assert answer.code == 0
    text = out.read_text(encoding="utf-8")
    assert text.count("<circle") > 300
    assert "src=" not in text
    assert "href=" not in text
    data = json.loads(answer.out)
    assert {"id", "metric", "phase", "measured", "predicted", "ratio"} <= set(data["rows"][0])
    keys = {"n", "median_abs_log_ratio", "p90_abs_log_ratio", "bias_log_ratio", "kendall_tau"}
    assert keys <= set(data["summary"][0])


def test_scores() -> None:
    """Kendall's tau by hand; medians over sources, each with one voice."""
    assert tau([(1, 1), (2, 2), (3, 3)]) == 1
    assert tau([(1, 3), (2, 2), (3, 1)]) == -1
    assert tau([(1, 1), (1, 2)]) is None
    assert spread([0.1, -0.2, 0.3]) == (pytest.approx(0.2), pytest.approx(0.28), pytest.approx(0.1))
    first = FIGURES[0]
    rows = [(first.model_copy(update={"source": s}), log) for s, log in (("a", 0.1), ("a", 0.1), ("b", 0.3))]
    assert by_source(rows) == (pytest.approx(0.2), pytest.approx(0.2))
    assert orders([(first, 0.0)]) == {}


def test_a_row_no_layout_fits_is_refused() -> None:
    """A layout the model cannot have is a sentence, not a number."""
    row = FIGURES[0].model_copy(update={"model": "qwen3-32b", "weights": None, "tp": 7, "dp": 1, "ep": None})
    with pytest.raises(PlannerError):
        ready(row)


def test_predictions_are_finite() -> None:
    """Every shipped figure has a meaning in its phase."""
    items, _ = deployable(FIGURES)
    from planner.evidence.predict import grouped, predictions

    assert np.isfinite(predictions(grouped(items), len(items))).all()
