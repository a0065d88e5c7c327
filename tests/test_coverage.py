"""How often the ranges hold what was measured, with the engine taken as one nobody has measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.evaluate.inputs import own_error
from planner.evaluate.ranges import spread
from planner.evidence import coverage as module
from planner.evidence.coverage import DRAWS, Coverage, coverages, drawn_figures
from planner.evidence.names import chip_of, table
from planner.evidence.predict import deployable, grouped, predictions
from planner.evidence.shipped import measurements
from planner.specs.stack import ExpectedError

HELD, WIDEST = 0.80, 2.5
"""At least so many figures lie in their range, and half of the ranges are narrower."""


@pytest.fixture(scope="module")
def found() -> list[Coverage]:
    return coverages(measurements())


def test_ranges_hold_what_was_measured_and_still_say_something(found: list[Coverage]) -> None:
    """With the engine unknown, and with stacks that no serving figure was ever fitted to."""
    assert len(found) == 2
    for row in found:
        assert row.n > 700
        assert row.covered_fraction >= HELD, row.what
        assert row.sources_covered_fraction >= HELD, row.what
        assert 1.2 < row.median_width <= WIDEST, row.what
        whole = sum(source["n"] * source["covered_fraction"] for source in row.by_source.values())
        assert whole / row.n == pytest.approx(row.covered_fraction)


def test_a_figure_drawn_without_ranges_is_the_prediction() -> None:
    """The draws run through the formulas of the predictions: leaves without ranges give the predicted figure back."""
    rows = [row.model_copy(update={"stack": table()["unknown"][chip_of(row.system)[1]]}) for row in measurements()[:40]]
    items = deployable(rows)[0]
    groups = grouped(items)
    central = predictions(groups, len(items))
    for group in groups:
        for item in group.items:
            item.point.leaves.clear()
        drawn = drawn_figures(group)
        assert drawn.shape == (DRAWS, len(group.items))
        assert np.allclose(drawn, central[group.index], rtol=1e-12, equal_nan=True)


def test_own_error_leaves_one_draw_in_ten_beyond_the_90th_percentile() -> None:
    expected = ExpectedError(basis="blind", median_fraction=0.18, p90_fraction=0.37, source="test")
    leaf = own_error(expected)
    position = (np.arange(100_000) + 0.5) / 100_000
    beyond = np.abs(np.log(spread(position, leaf))) > expected.p90_fraction
    assert leaf.value == 1
    assert leaf.low * leaf.high == pytest.approx(1)
    assert np.mean(beyond) == pytest.approx(0.10, abs=0.02)


def test_coverage_is_printed_and_in_json(cli: Any, found: list[Coverage], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.evidence.validate.coverages", lambda rows: found)
    answer = cli("validate", "--coverage", "--json").json
    assert [row["what"] for row in answer["coverage"]] == list(module.ENGINES.values())
    shown = cli("validate", "--coverage").out
    assert "median high / low" in shown
    assert f"{found[0].covered_fraction * 100:.0f} %" in shown


HEAD = "id,model,hardware,n_chips,framework,phase,metric,value,unit,tp,isl,osl,concurrency_or_batch\n"
UNSCORED = {
    "loaded-ttft": "a,Llama-3.1-8B,H100,8,vLLM,agg,ttft_ms,50,ms,8,1024,128,64\n",
    "hardly-fits": "a,Llama-3.1-70B,H100,2,vLLM,agg,tpot_ms,5,ms,2,8192,1024,14\n",
}


@pytest.mark.parametrize("name", UNSCORED)
def test_a_table_without_a_scored_figure_has_no_coverage(
    cli: Any, tmp_path: Any, name: str, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEAD + UNSCORED[name], encoding="utf-8")
    answer = cli("validate", str(path), "--coverage", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["coverage"] == []
    assert "no scored figure to hold ranges against" in cli("validate", str(path), "--coverage").out
    assert not recwarn.list


def test_tpot_of_one_output_token_is_skipped(cli: Any, tmp_path: Any) -> None:
    path = tmp_path / "t.csv"
    row = "{},Llama-3.1-8B,H100,8,vLLM,agg,tpot_ms,5,ms,8,1024,{},64\n"
    path.write_text(HEAD + row.format("a", 1) + row.format("b", 9), encoding="utf-8")
    answer = cli("validate", str(path), "--json").json
    assert [row["id"] for row in answer["rows"]] == ["b"]
    assert answer["skipped"][0]["id"] == "a"
    assert "no time between tokens" in answer["skipped"][0]["reason"]
