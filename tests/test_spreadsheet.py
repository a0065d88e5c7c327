"""Worksheet functions: estimate's numbers for cells and ranges, sentences for what is wrong, hosts' examples."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import planner
from planner import spreadsheet
from planner.evaluate.exported import export_python
from planner.search.plan import plan
from planner.spreadsheet import (
    best_layout,
    chips_needed,
    kv_gb_per_sequence,
    max_concurrency,
    tokens_per_second_per_chip,
    tpot_ms,
    ttft_ms,
    usd_per_million_tokens,
    weights_gb_per_chip,
)

K3, LINEAR, SYSTEM = "kimi-k3", "kimi-linear-48b-a3b", "zhenwu-m890-supernode"
WHERE = (K3, SYSTEM, "TP8 DP8")
EXACT = 1e-12
PAGE = Path(__file__).resolve().parents[1] / "docs" / "spreadsheets.md"


def one(isl: int = 8192, osl: int = 1024, concurrency: int = 256, layout: str = "TP8 DP8", **more: Any) -> Any:
    """What estimate says."""
    job = planner.Workload(isl=isl, osl=osl, concurrency=concurrency, **more)
    return planner.estimate(K3, SYSTEM, layout, job, draws=10)


def test_cells_are_what_estimate_says() -> None:
    """Numbers, floats as a worksheet passes them, texts with units, empty cells."""
    answer = one()
    for cells in (
        (8192, 1024, 256),
        (8192.0, 1024.0, 256.0),
        ("8k", "1k", "256"),
        (np.float64(8192), np.int64(1024), 256),
    ):
        assert tpot_ms(*WHERE, *cells) == pytest.approx(answer.decode.tpot_s * 1e3, rel=EXACT)
        assert ttft_ms(*WHERE, *cells, None, "", None) == pytest.approx(answer.serving.ttft_s * 1e3, rel=EXACT)
        assert tokens_per_second_per_chip(*WHERE, *cells) == pytest.approx(answer.serving.tok_s_per_chip, rel=EXACT)
        for of, value in (
            (None, answer.cost.usd_per_million_output_tokens),
            ("output", answer.cost.usd_per_million_output_tokens),
            ("Input", answer.cost.usd_per_million_input_tokens),
            ("total", answer.cost.usd_per_million_total_tokens),
        ):
            assert usd_per_million_tokens(*WHERE, *cells, of=of) == pytest.approx(value, rel=EXACT)
    assert max_concurrency(*WHERE, 8192, 1024) == answer.memory.max_concurrency
    assert weights_gb_per_chip(*WHERE) == pytest.approx(answer.memory.weights_bytes_per_chip / 1e9, rel=EXACT)
    request = answer.memory.request_bytes_per_chip / 1e9
    assert kv_gb_per_sequence(*WHERE, 8192, 1024) == pytest.approx(request, rel=EXACT)


def test_every_flag_has_its_argument() -> None:
    """Keywords are the flags' names, and each reaches the formulas."""
    plain = tpot_ms(*WHERE, 8192, 1024, 256)
    for given, change in (
        ({"kv_dtype": "fp8"}, {"kv_format": "fp8"}),
        ({"state_dtype": "bf16"}, {"state_format": "bf16"}),
        ({"chunk": "4k"}, {"chunk": 4096}),
        ({"prefix_hit": 0.5}, {"prefix_hit": 0.5}),
        ({"routing_skew": "1.4"}, {"routing_skew": 1.4}),
        ({"draft_tokens": 2.0, "accepted_length": 1.7}, {"draft_tokens": 2, "accepted_length": 1.7}),
    ):
        found = tpot_ms(*WHERE, 8192, 1024, 256, **given)
        assert found == pytest.approx(one(**change).decode.tpot_s * 1e3, rel=EXACT)
        assert found != plain
    assert ttft_ms(*WHERE, 8192, 1024, 256, arrivals="waves") > ttft_ms(*WHERE, 8192, 1024, 256)
    assert max_concurrency(*WHERE, 8192, 1024, memory_fraction=0.8) < max_concurrency(*WHERE, 8192, 1024)
    assert tpot_ms(*WHERE, 8192, 1024, 256, stack="sail-migration") > plain
    assert weights_gb_per_chip(*WHERE, vision=True) > weights_gb_per_chip(*WHERE)
    both = tpot_ms(K3, SYSTEM, "TP8 DP4", 8192, 1024, 256, chips=[32, 64])
    assert both[1] < both[0]


def test_ranges_have_the_shape_of_what_goes_in() -> None:
    """Cell by cell, a scalar with all, a column beside a row as a block, lists and arrays as they came."""
    column, row = [[8192.0], ["16k"], [32768]], [[64, 256]]
    block = tpot_ms(*WHERE, column, 1024, row)
    assert isinstance(block, list)
    assert [len(line) for line in block] == [2, 2, 2]
    for i, isl in enumerate((8192, 16384, 32768)):
        for k, load in enumerate((64, 256)):
            assert block[i][k] == pytest.approx(one(isl, 1024, load).decode.tpot_s * 1e3, rel=EXACT)
    assert tpot_ms(*WHERE, [["8k"]], 1024, [[64]]) == [[pytest.approx(block[0][0], rel=EXACT)]]
    assert tpot_ms(*WHERE, ["8k", "16k"], 1024, [64, 256]) == pytest.approx([block[0][0], block[1][1]], rel=EXACT)
    array = tpot_ms(*WHERE, np.array([8192.0, 16384.0]), 1024, 64)
    assert isinstance(array, np.ndarray)
    assert array.dtype == float
    assert array.tolist() == pytest.approx([block[0][0], block[1][0]], rel=EXACT)
    mixed = tpot_ms(*WHERE, np.array([8192.0, np.nan]), 1024, 64)
    assert mixed.dtype == object
    assert mixed[1] == "isl: is empty; give a number for isl"
    models = tpot_ms([[K3], [LINEAR], ["kimi-k4"]], SYSTEM, "TP8 DP8", 8192, 1024, 64)
    assert models[0][0] == pytest.approx(block[0][0], rel=EXACT)
    assert "did you mean" in models[2][0]
    assert tpot_ms(*WHERE, [], 1024, 64) == []


class Column:
    """What numpy needs of a data frame's column."""

    ndim = 1

    def __init__(self, cells: list[Any]) -> None:
        self.cells = cells

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.cells, dtype=dtype or object)


def test_a_column_of_a_data_frame_is_a_range() -> None:
    """Without pandas being loaded; its gaps are empty cells."""
    gap = type("NAType", (), {})()
    found = max_concurrency(*WHERE, Column([8192, 8192.0]), 1024, None, None, Column(["fp8", gap]))
    assert found.tolist() == [one(kv_format="fp8").memory.max_concurrency, one().memory.max_concurrency]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({"isl": 8192.5}, "isl: '8192.5' is 8192.5, not a whole number"),
        ({"isl": None}, "isl: is empty; give a number for isl"),
        ({"isl": True}, "isl: is TRUE; give a number"),
        ({"isl": float("inf")}, "isl: inf is not a finite number"),
        ({"isl": 1e300}, "is over 1,000,000,000,000"),
        ({"isl": 10**9}, "exceed the 1048576 of kimi-k3"),
        ({"isl": object()}, "isl: is a object; give a number or text"),
        ({"isl": np.datetime64("2025-01-01")}, "isl: is a date or a time"),
        ({"model": ""}, "model: is empty; give a model"),
        ({"model": "=1+1"}, "unknown model '=1+1'"),
        ({"layout": "TP7"}, "TP7 does not divide"),
        ({"concurrency": 10**7}, "does not fit: a chip would hold"),
        ({"osl": 1}, "osl: one output token has no time per output token"),
        ({"isl": [1, 2], "osl": [1, 2, 3]}, "ranges: of different sizes (isl 2, osl 3)"),
        ({"isl": [[1], [2]], "osl": [1, 2]}, "ranges: a flat list beside a block"),
        ({"isl": [[1], [2, 3]]}, "isl: is a range whose rows are not equally long"),
        ({"isl": [[[1]]]}, "isl: is a list"),
        ({"isl": np.zeros((2, 2, 2))}, "ranges: a flat list beside a block"),
        ({"isl": np.zeros((1000, 1)), "osl": np.zeros((1, 1000))}, "ranges: span 1,000,000 cells"),
    ],
    ids=str,
)
def test_a_wrong_cell_is_a_sentence(cells: dict[str, Any], told: str) -> None:
    """Never an exception."""
    found = tpot_ms(
        **{"model": K3, "system": SYSTEM, "layout": "TP8 DP8", "isl": 8192, "osl": 1024, "concurrency": 256} | cells
    )
    while isinstance(found, list):
        found = found[0]
    assert told in found
    assert not found.startswith(("=", "+", "-", "@"))


def test_calling_with_nothing_says_what_is_missing() -> None:
    """An omitted argument is an empty cell."""
    for function in spreadsheet.FUNCTIONS:
        assert function() == "model: is empty; give a model"


def test_an_argument_there_is_not_is_a_sentence() -> None:
    """Names people know from elsewhere with the one that is meant; the host sees each function's own arguments."""
    for name, told in (
        ("kv_format", "kv_format: is no argument of tpot_ms; did you mean kv_dtype?"),
        ("batch_size", "batch_size: is no argument of tpot_ms; did you mean concurrency?"),
        ("concurency", "concurency: is no argument of tpot_ms; did you mean concurrency?"),
    ):
        assert tpot_ms(*WHERE, 8192, 1024, **{name: 3}) == told
    assert "multiple values for argument" in tpot_ms(*WHERE, 8192, 1024, 64, isl=3)
    assert "too many positional" in best_layout(*range(30))
    assert list(inspect.signature(best_layout).parameters)[:4] == ["model", "system", "isl", "osl"]
    assert inspect.getfullargspec(tpot_ms).args[:3] == ["model", "system", "layout"]


def test_a_fault_is_a_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens, the worksheet goes on."""
    monkeypatch.setattr("planner.scenarios.cells.many", lambda scenarios: 1 / 0)
    assert tpot_ms(*WHERE, 1, 2, 3) == "internal fault: ZeroDivisionError: division by zero"


def test_the_best_layout_is_that_of_plan() -> None:
    """Under every objective and target."""
    for given, slo in (({}, {}), ({"tpot": "20ms"}, {"tpot_s": 0.02}), ({"rate": "2/s"}, {"rate_per_s": 2})):
        for objective in ("throughput", "latency", "cost"):
            job = planner.Workload(isl=8192, osl=1024)
            best = plan(LINEAR, SYSTEM, job, slo=planner.Slo(**slo), chips=8, objective=objective, draws=10, top=1).best  # type: ignore[arg-type]
            assert best_layout(LINEAR, SYSTEM, "8k", "1k", chips=8, objective=objective, **given) == best.layout.text
    assert best_layout(K3, SYSTEM, "8k", "1k", 64, chips=[8])[0].startswith(
        "kimi-k3 on zhenwu-m890-supernode: no layout"
    )
    assert best_layout(K3, SYSTEM, "8k", "1k", tpot=50) == "tpot: '50' has no unit; write it like '20ms'"
    assert "objective: 'speed' is not one of" in best_layout(K3, SYSTEM, "8k", "1k", objective="speed")


@pytest.mark.parametrize(
    ("load", "target", "slo"),
    [
        (500, {}, {}),
        (4000, {}, {}),
        (300, {"tpot": "12ms"}, {"tpot_s": 0.012}),
        (None, {"rate": "9/s"}, {"rate_per_s": 9}),
        (64, {"ttft": "300ms"}, {"ttft_s": 0.3}),
        (64, {"tpot": "1ms"}, {"tpot_s": 0.001}),
    ],
    ids=str,
)
def test_the_fewest_chips_are_those_plan_needs(load: Any, target: dict[str, str], slo: dict[str, float]) -> None:
    """The first number of chips for which plan has an answer, found by asking it for each."""
    job = planner.Workload(isl=8192, osl=1024, concurrency=load)
    wanted = None
    for chips in range(1, 65):
        found = plan(LINEAR, SYSTEM, job, slo=planner.Slo(**slo), chips=chips, draws=10, top=1)
        if found.best is not None:
            wanted = chips
            break
    given = chips_needed(LINEAR, SYSTEM, 8192, 1024, load, **target)
    if wanted is None:
        assert "no layout on up to 64 chips: TPOT is" in given
    else:
        assert given == wanted


def test_the_fewest_chips_for_memory_are_those_of_fit() -> None:
    """One request of full length."""
    smallest = planner.fit(K3, SYSTEM, max_len=9216, concurrency=1)
    assert chips_needed(K3, SYSTEM, 8192, 1024, 1) == smallest.min_chips


def test_contract_and_docstrings() -> None:
    """The names others rely on, each with its formula page."""
    assert spreadsheet.__all__ == [
        "tpot_ms", "ttft_ms", "tokens_per_second_per_chip", "max_concurrency", "weights_gb_per_chip",
        "kv_gb_per_sequence", "chips_needed", "usd_per_million_tokens", "best_layout",
    ]  # fmt: skip
    for function in spreadsheet.FUNCTIONS:
        text = function.__doc__ or ""
        assert "Quantit" in text
        assert "Limits:" in text
        assert "planner/" in text


def blocks() -> dict[str, list[str]]:
    """The Python of the page by heading."""
    found: dict[str, list[str]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        found[part.partition("\n")[0]] = re.findall(r"```python\n(.*?)```", part, flags=re.DOTALL)
    return found


class Frame(dict[str, Any]):
    """As much of a data frame as the page uses."""

    def __init__(self, cells: dict[str, list[Any]]) -> None:
        super().__init__({name: Column(column) for name, column in cells.items()})


def host(**names: Any) -> ModuleType:
    """A stand-in for a module that is not here."""
    module = ModuleType("host")
    module.__dict__.update(names)
    return module


def test_the_page_for_pandas_and_notebooks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Both run as they stand; pandas itself where it is installed."""
    try:
        import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore] # noqa: F401
    except ImportError:
        monkeypatch.setitem(sys.modules, "pandas", host(DataFrame=Frame))
    names: dict[str, Any] = {}
    exec(blocks()["pandas"][0], names)
    assert list(names["jobs"]["tpot_ms"]) == pytest.approx(
        [one(i, 1024, c).decode.tpot_s * 1e3 for i, c in ((8192, 256), (32768, 64), (4096, 1024))], rel=EXACT
    )
    exec(blocks()["Notebooks and plain Python"][0], names)
    assert [len(row) for row in names["table"]] == [3, 3, 3]
    assert names["layout"].startswith("TP")
    capsys.readouterr()


def test_the_page_for_decorators(monkeypatch: pytest.MonkeyPatch) -> None:
    """xlwings and PyXLL: what is registered is called as the host would call it."""
    told: list[tuple[str, int]] = []

    def arg(name: str, ndim: int) -> Any:
        told.append((name, ndim))
        return lambda function: function

    monkeypatch.setitem(sys.modules, "xlwings", host(func=lambda function: function, arg=arg))
    names: dict[str, Any] = {}
    exec(blocks()["xlwings"][0], names)
    assert ("isl", 2) in told
    assert names["tpot_ms"](*([[cell]] for cell in (*WHERE, 8192.0, "1k", 256.0))) == [
        [pytest.approx(one().decode.tpot_s * 1e3, rel=EXACT)]
    ]

    monkeypatch.setitem(sys.modules, "pyxll", host(xl_func=lambda category, auto_resize: lambda function: function))
    names = {}
    exec(blocks()["PyXLL"][0], names)
    assert set(spreadsheet.__all__) <= set(names)
    assert names["best_layout"](K3, SYSTEM, "8k", "1k", None, None, None, "50ms").startswith("TP")


def test_the_page_for_exported_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """xlwings Lite and Python in Excel: the exported file pasted, or run from a column of cells."""
    text = export_python(K3, SYSTEM, "TP8 DP8", planner.Workload(isl=8192, osl=1024, concurrency=256)).text
    monkeypatch.setitem(sys.modules, "xlwings", host(func=lambda function: function))
    names: dict[str, Any] = {"__name__": "main"}
    assert text.splitlines()[-3] == 'if __name__ == "__main__":'
    exec("\n".join(text.splitlines()[:-3]) + "\n" + blocks()["xlwings Lite"][0], names)
    assert names["planned"]("decode.tpot_s", 8192.0, 256.0) == pytest.approx(one().decode.tpot_s, rel=EXACT)
    assert len(names["planned"]("memory.max_concurrency", 8192.0, [[1.0], [2.0]])) == 2

    cells = np.array([[line or None] for line in text.splitlines()] + [[None]] * 10, dtype=object)
    sheet = {"np": np, "xl": lambda place: cells, "__name__": "py"}
    first, second = blocks()["Python in Excel"]
    exec(first, sheet)
    assert eval(second, sheet)[2] == pytest.approx(one().decode.tpot_s, rel=EXACT)


def test_importing_costs_nothing_heavy() -> None:
    """A worksheet loads the functions before it needs numpy."""
    import subprocess

    program = "import sys, planner.spreadsheet; print(*(n for n in ('numpy', 'sympy', 'pydantic') if n in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


ODD = {
    "months": (np.timedelta64(8192, "M"), "is a date or a time"),
    "nanoseconds": (np.timedelta64(8192, "ns"), "is a date or a time"),
    "moment": (np.datetime64("1970-01-01T00:00:00.000008192", "ns"), "is a date or a time"),
    "no-moment": (np.datetime64("NaT"), "is empty"),
    "masked": (np.ma.masked, "is empty"),
    "huge": (10**400, "far too large"),
    "longer-than-python-prints": (10**5000, "far too large"),
    "array-in-a-cell": ([[np.array([1, 2]), 3]], "is a range within a cell"),
    "a-million-squared": (np.broadcast_to(8192, (10**6, 10**6)), "spans 1,000,000,000,000 cells"),
    "far-year": (np.array([10**15], "M8[Y]"), "is a date or a time"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_amount_is_a_sentence_and_never_an_amount(name: str) -> None:
    """Numbers hidden in dates, masks and arrays are not taken for lengths; nothing is an internal fault."""
    value, told = ODD[name]
    found = spreadsheet.tpot_ms("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8", value, "1k", 256)
    cell = found if isinstance(found, str) else np.ravel(np.asarray(found, dtype=object))[0]
    assert isinstance(cell, str)
    assert told in cell
    assert "internal fault" not in cell


def test_a_masked_cell_is_empty_and_a_list_of_arrays_a_block() -> None:
    deployment = ("kimi-k3", "zhenwu-m890-supernode", "TP8 DP8")
    masked = spreadsheet.tpot_ms(*deployment, np.ma.array([8192, 1024], mask=[0, 1]), "1k", 256)
    assert isinstance(masked[0], float)
    assert "is empty" in masked[1]
    block = spreadsheet.tpot_ms(*deployment, [np.array([1024, 2048]), np.array([4096, 8192])], "1k", 256)
    assert np.shape(block) == (2, 2)
