"""The live workbook: LibreOffice works it out as the kernel does, as written and after edits; what the file holds."""

import math
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import Cli
from spreadsheet import recalculated

import planner
from planner.errors import BadInput, BadLayout
from planner.evaluate.allowed import tables
from planner.evaluate.case import point_of
from planner.evaluate.entries import KEYS
from planner.evaluate.estimate import estimate, run
from planner.layout import Layout, expert_problem, routed
from planner.report.workbook import book as workbook
from planner.report.workbook.headlines import DOES_NOT_FIT, HEADLINES, HELD, NOT_LEGAL, scale, verdict_now
from planner.report.workbook.inputs import CHECKED, FIRST, SI, SOURCE, VALUE
from planner.report.workbook.layouts import CHECK, LEFT
from planner.report.workbook.names import LEGAL, distinct
from planner.search.workbook import Contents, contents, planned
from planner.specs.library import load_model
from planner.specs.workload import Slo, Workload

K3, SUPERNODE = "kimi-k3", "zhenwu-m890-supernode"
RTOL = 1e-9
VANISHED = 1e-290
"""Below it a double has lost its digits."""
CANCELS = {
    "decode_pipeline_wait_pipeline_time_s": "decode_turn_s",
    "prefill_pipeline_overlap_pipeline_time_s": "prefill_plain_s",
}
"""Differences that vanish in theory -> what they are a difference of: of that, rounding is all that may remain."""
ROUNDING = 1e-14
MOST_BYTES = 2_000_000


@dataclass(frozen=True)
class Question:
    """One workbook: what is asked of the planner."""

    model: str
    system: str
    workload: Workload
    layout: str | None = None
    chips: int | None = None
    top: int = 3
    slo: Slo | None = None


@dataclass(frozen=True)
class Edit:
    """What a reader types: cells of Inputs by name; and the same as a question to the kernel.

    layout, asked: the layout and the fields of the workload it amounts to; values: inputs that change.
    """

    cells: dict[str, Any]
    layout: str = "TP8 DP8"
    asked: dict[str, Any] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)


SHORT = Workload(isl=8192, osl=1024)
QUESTIONS = {
    "k3": Question(K3, SUPERNODE, SHORT.model_copy(update={"concurrency": 256}), "TP8 DP8", top=2),
    "k3-plan": Question(K3, SUPERNODE, SHORT, top=8),
    "sparse": Question("deepseek-v3.2", SUPERNODE, SHORT.model_copy(update={"kv_format": "fp8"})),
    "dense": Question(
        "llama-3.1-70b", "h100-8", SHORT.model_copy(update={"arrivals": "waves"}), slo=Slo(ttft_s=5, tpot_s=0.05)
    ),
    "half": Question("llama-3.1-70b", "h100-8", Workload(isl=2000, osl=500, concurrency=64), "TP4", top=2),
    "two-domains": Question("kimi-k2", "h200-128", SHORT, chips=64, top=2),
    "drafts": Question(
        "nemotron-3-super-120b-a12b", "h100-8", Workload(isl=1000, osl=1, draft_tokens=2, accepted_length=1.8), top=2
    ),
    "redundant": Question(K3, SUPERNODE, SHORT.model_copy(update={"concurrency": 64}), "TP8 DP8 EP64 RED64", top=1),
}
EDITS = {
    "bandwidth": Edit(
        {"chip_memory_bandwidth": 3.1e12, "ask_isl": 30_000, "ask_concurrency": 100},
        asked={"isl": 30_000, "concurrency": 100},
        values={"chip.memory_bandwidth": 3.1e12},
    ),
    "cache-format": Edit({"ask_kv_format": "fp8", "ask_osl": 1}, asked={"kv_format": "fp8", "osl": 1}),
    "pipeline": Edit(
        {"layout_tp": 4, "layout_dp": 4, "layout_pp": 4, "layout_ep": 16, "ask_arrivals": "waves"},
        "TP4 DP4 PP4",
        {"arrivals": "waves"},
    ),
    "overfull": Edit({"ask_concurrency": 100_000}, asked={"concurrency": 100_000}),
    "expert-tensor": Edit(
        {"layout_ep": 32, "ask_state_format": "bf16", "ask_chunk": 3000},
        "TP8 DP8 EP32",
        {"state_format": "bf16", "chunk": 3000},
    ),
    "redundant": Edit({"layout_tp": 3, "layout_dp": 16, "layout_ep": 48}, "TP3 DP16 EP48"),
    "context-parallel": Edit(
        {"layout_dp": 2, "layout_cp": 2, "layout_dcp": 4, "layout_pp": 2, "layout_ep": 32, "ask_isl": 131_072},
        "TP8 DP2 CP2 DCP4 PP2",
        {"isl": 131_072},
    ),
    "replicas": Edit(
        {"layout_dp": 4, "layout_ep": 32, "ask_prefix_hit": 0.5, "ask_memory_fraction": 0.8, "chip_price": 0.001},
        "TP8 DP4",
        {"prefix_hit": 0.5, "memory_fraction": 0.8},
        {"chip.price": 0.001},
    ),
}
SPARSE_EDITS = {
    "sparse-bf16": Edit({"ask_kv_format": "bf16"}, "", {"kv_format": "bf16"}),
    "sparse-nvfp4": Edit({"ask_kv_format": "nvfp4", "ask_isl": 60_000}, "", {"kv_format": "nvfp4", "isl": 60_000}),
}
ILLEGAL: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"layout.tp": 5, "layout.dp": 8, "layout.pp": 1, "layout.ep": 40}, "TP5"),
    "experts": ({"layout.tp": 16, "layout.dp": 3, "layout.pp": 1, "layout.ep": 24, "layout.red": 5}, "RED5"),
    "cache": ({"layout.tp": 8, "layout.dp": 8, "layout.pp": 1, "layout.ep": 64, "layout.dcp": 3}, "DCP3"),
    "stage": ({"layout.tp": 8, "layout.dp": 8, "layout.pp": 1, "layout.ep": 16, "layout.etp": 2}, "EP16 x ETP2"),
    "expert-width": ({"layout.tp": 1, "layout.dp": 5, "layout.pp": 1, "layout.ep": 1}, "ETP5"),
    "batch": ({"ask.concurrency": 2.5}, "the batch must be a whole number"),
    "text": ({"layout.tp": "eight"}, "TP must be a whole number"),
    "chips": ({"layout.lent": 128}, "128 chips are lent, and the system has 64"),
}
"""What is typed over one column of Layouts each, and how the sentence begins."""
REFUSED = ("heads", "experts", "cache", "stage", "expert-width")
"""Those the kernel refuses as layouts too."""
WRONG = {
    "chip_memory_bandwidth": (0, "must be a number above 0"),
    "ask_kv_format": ("fp7", "is not one of the list"),
    "ask_length": (None, "ISL + OSL exceed the 1048576 tokens of the model; the largest ISL is 1047552"),
    "stack_runtime": (None, "must be a number of at least 0"),
    "ask_prefix_hit": (1.5, "must be a number of at least 0 and at most 1"),
    "ask_chunk": (0.5, "must be a whole number of at least 1"),
}
"""What is typed into Inputs, and what the check beside it says; the length follows from a prompt of two million."""


def made(question: Question) -> Contents:
    """The contents of one workbook."""
    return contents(
        planned(
            question.model, question.system, question.workload, layout=question.layout, chips=question.chips,
            top=question.top, slo=question.slo,
        )
    )  # fmt: skip


def typed(source: Path, target: Path, cells: dict[str, Any]) -> Path:
    """A copy of a workbook with these cells changed, as a reader would."""
    book = openpyxl.load_workbook(source)
    for name, value in cells.items():
        sheet, cell = book.defined_names[f"in_{name}"].attr_text.replace("$", "").split("!")
        found = book[sheet.strip("'")][cell]
        if found.column == SI + 1:
            in_si = re.fullmatch(r"=[A-Z]+\d+([*/])(\d+)", found.value)
            assert in_si
            found = found.offset(0, VALUE - SI)
            if isinstance(value, (int, float)):
                value = value / int(in_si[2]) if in_si[1] == "*" else value * int(in_si[2])
        found.value = value
    book.save(target)
    return target


@dataclass(frozen=True)
class Shelf:
    """All workbooks of this file, before and after LibreOffice."""

    contents: dict[str, Contents]
    written: dict[str, Path]
    worked_out: dict[str, Any]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Every workbook written, edited and worked out anew, in one start of LibreOffice."""
    folder = tmp_path_factory.mktemp("workbooks")
    found = {name: made(question) for name, question in QUESTIONS.items()}
    files = {}
    for name, content in found.items():
        files[name] = folder / f"{name}.xlsx"
        files[name].write_bytes(workbook.packed(content))
    changes = {f"k3-{name}": ("k3", edit.cells) for name, edit in EDITS.items()}
    changes |= {name: ("sparse", edit.cells) for name, edit in SPARSE_EDITS.items()}
    changes["far"] = ("k3", {"chip_memory_bandwidth": 4e15})
    changes["strict"] = ("dense", {"target_tpot": 0.001})
    changes["one"] = ("k3", {"ask_isl": "8k"})
    changes["illegal"] = ("k3", {"layout_tp": 5})
    typed_in = {name: value for name, (value, _) in WRONG.items() if name != "ask_length"}
    changes["wrong"] = ("k3", {**typed_in, "ask_isl": 2_000_000})
    for name, (base, cells) in changes.items():
        files[name] = typed(files[base], folder / f"{name}.xlsx", cells)
    files["column"] = columns_typed(files["k3-plan"], folder / "column.xlsx", [COLUMN])
    files["columns"] = columns_typed(
        files["k3-plan"], folder / "columns.xlsx", [cells for cells, _ in ILLEGAL.values()]
    )
    done = recalculated(list(files.values()), folder)
    books = {name: openpyxl.load_workbook(file, data_only=True) for name, file in zip(files, done, strict=True)}
    return Shelf(found, files, books)


COLUMN = {"layout.tp": 8, "layout.dp": 2, "layout.pp": 4, "layout.ep": 16, "layout.dcp": 2, "ask.concurrency": 40}
"""What is typed over the first column of Layouts."""


def columns_typed(source: Path, target: Path, columns: list[dict[str, Any]]) -> Path:
    """A copy with the first columns of Layouts changed."""
    book = openpyxl.load_workbook(source)
    sheet = book["Layouts"]
    rows = {sheet.cell(row, 1).value: row for row in range(1, sheet.max_row + 1)}
    for number, cells in enumerate(columns, LEFT + 1):
        for name, value in cells.items():
            sheet.cell(rows[name], number).value = value
    book.save(target)
    return target


def named(book: Any) -> dict[str, Any]:
    """Quantity -> value of the sheet Model."""
    return {row[0]: row[1] for row in book["Model"].iter_rows(min_row=4, max_col=2, values_only=True) if row[0]}


def column_of(book: Any, number: int) -> dict[str, Any]:
    """What one column of Layouts has."""
    return {row[0]: row[LEFT + number] for row in book["Layouts"].iter_rows(min_row=5, values_only=True) if row[0]}


def value_of(book: Any, name: str) -> Any:
    """The value of a named cell."""
    sheet, cell = book.defined_names[name].attr_text.replace("$", "").split("!")
    return book[sheet.strip("'")][cell.partition(":")[0]].value


def differing(found: dict[str, Any], wanted: dict[str, float]) -> dict[str, tuple[Any, float]]:
    """Quantities that are not the kernel's."""
    wrong = {}
    for name, value in wanted.items():
        if name in found:
            whole = ROUNDING * abs(wanted[CANCELS[name]]) if name in CANCELS else 0.0
            other = found[name]
            same = isinstance(other, (int, float)) and math.isclose(other, value, rel_tol=RTOL, abs_tol=whole)
            if not same and not (isinstance(other, (int, float)) and abs(other) + abs(value) < VANISHED):
                wrong[name] = (other, value)
    return wrong


def kernel(content: Contents, layout: Layout, workload: Workload, values: dict[str, float]) -> dict[str, float]:
    """Every quantity of a deployment on floats."""
    lent = int(content.model.point.values["layout.lent"])
    point = point_of(content.case, layout, workload, lent // layout.chips, lent, slots=content.model.point.shape.stages)
    point = replace(point, values={**point.values, **values})
    return {name: float(row.value) for name, row in run(point)[0].rows.items()}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_quantity_is_the_kernels_as_written(name: str, shelf: Shelf) -> None:
    """Model, every column of Layouts, and the headlines of Results."""
    content, book = shelf.contents[name], shelf.worked_out[name]
    found = named(book)
    assert list(found) == list(content.model.quantities)
    assert differing(found, content.model.quantities) == {}
    assert value_of(book, "check_all") == verdict_now(content.model.quantities)
    for number, column in enumerate(content.columns):
        cells = column_of(book, number)
        assert cells[CHECK] == verdict_now(column.quantities)
        live = set(cells) & set(column.quantities)
        assert set(HEADLINES.values()) - live <= set(found)
        assert len(live) > len(found) / 3
        assert differing(cells, column.quantities) == {}


@pytest.mark.parametrize("name", QUESTIONS)
def test_values_are_in_the_file_for_viewers_that_work_nothing_out(name: str, shelf: Shelf) -> None:
    """Every cell of the file as written is what LibreOffice makes of it."""
    before, after = openpyxl.load_workbook(shelf.written[name], data_only=True), shelf.worked_out[name]
    for sheet in workbook.SHEETS:
        for row in before[sheet].iter_rows():
            for cell in row:
                old, new = cell.value, after[sheet][cell.coordinate].value
                if isinstance(old, (int, float)) and isinstance(new, (int, float)):
                    assert math.isclose(old, new, rel_tol=RTOL, abs_tol=1e-12), f"{sheet}!{cell.coordinate}"
                else:
                    assert (old or "") == (new or ""), f"{sheet}!{cell.coordinate}"


@pytest.mark.parametrize("name", [*EDITS, *SPARSE_EDITS])
def test_every_quantity_is_the_kernels_after_an_edit(name: str, shelf: Shelf) -> None:
    """What a reader types moves every number as the same question to the kernel does."""
    edit = {**EDITS, **SPARSE_EDITS}[name]
    base = "k3" if name in EDITS else "sparse"
    content, book = shelf.contents[base], shelf.worked_out[f"k3-{name}" if name in EDITS else name]
    layout = Layout.parse(edit.layout, content.case.model) if edit.layout else content.model.layout
    now = int(content.model.point.values["ask.concurrency"])
    asked = content.workload.model_copy(update={"concurrency": now, **edit.asked})
    wanted = kernel(content, layout, asked, edit.values)
    assert value_of(book, "check_all") == verdict_now(wanted)
    assert differing(named(book), wanted) == {}
    results = {row[0]: row[1] for row in book["Results"].iter_rows(max_col=2, values_only=True)}
    for label, quantity in HEADLINES.items():
        if wanted["memory_slack_bytes"] < 0 and quantity not in HELD:
            assert results[label] == DOES_NOT_FIT
        elif isinstance(results[label], str):
            assert (asked.osl, results[label]) == (1, "-")
        else:
            assert math.isclose(results[label] * scale(quantity), wanted[quantity], rel_tol=RTOL)
    for number, column in enumerate(content.columns):
        load = int(column.point.values["ask.concurrency"])
        own = kernel(content, column.layout, asked.model_copy(update={"concurrency": load}), edit.values)
        assert differing(column_of(book, number), own) == {}


def test_a_column_follows_its_own_keys(shelf: Shelf) -> None:
    """Keys and batch typed over a column move that column and no other."""
    content, book = shelf.contents["k3-plan"], shelf.worked_out["column"]
    layout = Layout.parse("TP8 DP2 PP4 EP16 DCP2", content.case.model)
    wanted = kernel(content, layout, content.workload.model_copy(update={"concurrency": 40}), {})
    cells = column_of(book, 0)
    assert cells[CHECK] == verdict_now(wanted)
    assert differing(cells, wanted) == {}
    assert differing(column_of(book, 1), content.columns[1].quantities) == {}
    assert differing(named(book), content.model.quantities) == {}


def headlines_of(book: Any) -> set[Any]:
    """The headlines of Results."""
    results = {row[0]: row[1] for row in book["Results"].iter_rows(max_col=2, values_only=True)}
    return {results[label] for label in HEADLINES}


@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_column_is_a_sentence(name: str, shelf: Shelf) -> None:
    """The check says what is wrong, no headline is a number, and the kernel refuses the same layout."""
    cells = column_of(shelf.worked_out["columns"], list(ILLEGAL).index(name))
    typed_in, begins = ILLEGAL[name]
    assert str(cells[CHECK]).startswith(begins)
    assert {cells[label] for label in HEADLINES} == {NOT_LEGAL}
    if name in REFUSED:
        keys = {key.removeprefix("layout.").upper(): value for key, value in typed_in.items()}
        with pytest.raises(BadLayout):
            Layout.parse(" ".join(f"{key}{value}" for key, value in keys.items()), load_model(K3))


def test_an_illegal_layout_is_the_sentence_of_the_kernel(shelf: Shelf) -> None:
    """On Inputs and in place of every headline of Results."""
    book = shelf.worked_out["illegal"]
    with pytest.raises(BadLayout) as refused:
        Layout.parse("TP5 DP8", load_model(K3))
    assert value_of(book, "check_layout") == value_of(book, "check_all") == refused.value.told
    assert headlines_of(book) == {NOT_LEGAL}
    errors = [cell.coordinate for row in book["Results"].iter_rows() for cell in row if cell.data_type == "e"]
    assert errors == []


def test_a_value_in_another_unit_is_a_warning(shelf: Shelf) -> None:
    """A bandwidth typed in GB/s where TB/s is meant is said beside it, and the numbers follow it all the same."""
    book = shelf.worked_out["far"]
    rows = book["Inputs"].iter_rows(min_row=FIRST + 1, values_only=True)
    said = {row[0]: row[CHECKED] for row in rows if row[CHECKED]}
    assert list(said) == ["chip.memory_bandwidth"]
    assert re.fullmatch(r"far from [\d.]+( to [\d.]+)? TB/s: check the unit", said["chip.memory_bandwidth"])
    assert value_of(book, "check_all") == LEGAL


def test_an_illegal_value_is_a_sentence_beside_it(shelf: Shelf) -> None:
    """Every wrong value is named in its row, they are counted above, and no headline is a number."""
    book = shelf.worked_out["wrong"]
    rows = book["Inputs"].iter_rows(min_row=FIRST + 1, values_only=True)
    said = {row[0]: row[CHECKED] for row in rows if row[CHECKED]}
    assert {name.replace(".", "_"): text for name, text in said.items()} == {
        name: text for name, (_, text) in WRONG.items()
    }
    assert value_of(book, "check_all") == f"{len(WRONG)} values are not legal: see column H"
    assert headlines_of(book) == {NOT_LEGAL}


def test_targets_are_judged_live(shelf: Shelf) -> None:
    """Met as planned; a shorter target is missed."""
    for name, said in (("dense", "yes"), ("strict", "no")):
        results = {row[0]: row[1] for row in shelf.worked_out[name]["Results"].iter_rows(max_col=2, values_only=True)}
        assert results["meets the target of TPOT"] == said
        assert results["meets the target of TTFT"] == "yes"


def test_ranges_are_those_of_an_estimate(shelf: Shelf) -> None:
    """Low and high beside a headline, as written."""
    content = shelf.contents["k3"]
    lent = int(content.model.point.values["layout.lent"])
    answer = estimate(K3, SUPERNODE, "TP8 DP8", content.workload, chips=lent)
    rows = {row[0]: row for row in shelf.worked_out["k3"]["Results"].iter_rows(max_col=5, values_only=True)}
    found = [end / 1000 for end in rows["TPOT, as served"][3:]]
    assert found == pytest.approx(answer.range["decode.tpot_s"], rel=RTOL)


def test_a_text_in_a_count_says_the_number(shelf: Shelf) -> None:
    """'8k' is a text to a spreadsheet."""
    book = shelf.worked_out["one"]
    rows = book["Inputs"].iter_rows(min_row=FIRST + 1, values_only=True)
    assert {row[0]: row[CHECKED] for row in rows}["ask.isl"] == "must be a number: 8k is 8192"
    assert value_of(book, "check_values").startswith("1 value is not legal")


@pytest.mark.parametrize("name", [K3, "glm-4.5-air", "step-3.7-flash", "llama-3.1-8b"])
def test_redundant_experts_go_in_steps(name: str) -> None:
    """From the fewest to the most in steps of EP is what the rule on experts allows, and nothing else."""
    model = load_model(name)
    table = tables(model, 24, 1)["ep"].columns
    most = max((experts for _, experts, _, _ in routed(model)), default=0)
    for ep, problem, least, last in zip(table["ep"], table["problem"], table["red"], table["most_red"], strict=True):
        legal = [red for red in range(most + ep) if not expert_problem(Layout(dp=ep, ep=ep, red=red), model)]
        assert legal == ([] if problem else list(range(least, last + 1, ep)))


CELL = re.compile(r"^(R|C|R\d*C\d*|[A-Za-z]{1,3}\d+)$", re.IGNORECASE)
LETTERS = re.compile(r"^[A-Za-z_][A-Za-z0-9_.]{0,254}$")


@pytest.mark.parametrize("name", ["k3-plan", "dense", "two-domains"])
def test_names_are_legal_and_unique(name: str, shelf: Shelf) -> None:
    """In the file itself: letters a spreadsheet takes, none like a cell, none twice whatever the case, none unused."""
    with zipfile.ZipFile(shelf.written[name]) as parts:
        text = parts.read("xl/workbook.xml").decode()
    names = re.findall(r'<definedName name="([^"_][^"]*)"', text)
    content = shelf.contents[name]
    assert len({found.lower() for found in names}) == len(names)
    assert [found for found in names if not LETTERS.match(found) or CELL.match(found)] == []
    assert {f"q_{found}" for found in content.formulas} <= set(names)
    assert {f"in_layout_{key}" for key in KEYS} <= set(names)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_second_reader_opens_it(name: str, shelf: Shelf) -> None:
    """Sheets, charts, validations; every formula within a cell; the file small."""
    assert shelf.written[name].stat().st_size < MOST_BYTES
    book = openpyxl.load_workbook(shelf.written[name])
    assert tuple(book.sheetnames) == workbook.SHEETS
    with zipfile.ZipFile(shelf.written[name]) as parts:
        assert sum(part.startswith("xl/charts/chart") for part in parts.namelist()) == 4
    assert len(book["Inputs"].data_validations.dataValidation) > 50
    longest = max(len(str(cell.value)) for sheet in book for row in sheet.iter_rows() for cell in row)
    assert longest < 8192


def test_names_that_are_one_name_are_refused() -> None:
    """A spreadsheet ignores case."""
    with pytest.raises(BadInput, match="are one name"):
        distinct(["in_a_B", "in_a_b"])


def test_a_warning_of_the_writer_is_an_error(monkeypatch: pytest.MonkeyPatch, shelf: Shelf) -> None:
    """A name it refuses would leave a formula without what it refers to."""
    original: Callable[..., dict[str, str]] = workbook.model.write
    monkeypatch.setattr(workbook.model, "write", lambda *given: {**original(*given), "TP8": "=Model!$A$1"})
    with pytest.raises(UserWarning, match="TP8"):
        workbook.packed(shelf.contents["dense"])


def test_texts_are_never_formulas(shelf: Shelf) -> None:
    """A source that begins with a sign of a formula stays a text."""
    content = shelf.contents["dense"]
    entries = [replace(entry, source="=1+1") for entry in content.entries]
    target = shelf.written["dense"].with_name("texts.xlsx")
    target.write_bytes(workbook.packed(replace(content, entries=entries)))
    book = openpyxl.load_workbook(target)
    cells = [
        cell
        for row in book["Inputs"].iter_rows(min_col=SOURCE + 1, max_col=SOURCE + 1)
        for cell in row
        if cell.value == "=1+1"
    ]
    assert len(cells) == len(entries)
    assert {cell.data_type for cell in cells} <= {"s", "f"}
    with zipfile.ZipFile(target) as parts:
        assert "<f>1+1</f>" not in parts.read("xl/worksheets/sheet1.xml").decode()


ASKED = ("llama-3.1-8b", "--on", "h100-8", "--isl", "1k", "--osl", "100")


def test_the_command_writes_a_file_once(cli: Cli, tmp_path: Path) -> None:
    """A summary as JSON; not over a file that is there; the same bytes for the same question."""
    out = tmp_path / "plan.xlsx"
    first = cli("workbook", *ASKED, "--out", str(out), "--json")
    assert first.code == 0
    assert set(first.json) == {"path", "sheets", "quantities", "inputs", "layouts", "bytes", "seconds"}
    data = out.read_bytes()
    assert first.json["bytes"] == len(data)
    again = cli("workbook", *ASKED, "--out", str(out))
    assert (again.code, again.out) == (2, "")
    assert "--force" in again.err
    assert cli("workbook", *ASKED, "--out", str(out), "--force").code == 0
    assert out.read_bytes() == data
    assert [file.name for file in tmp_path.iterdir()] == ["plan.xlsx"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--out", "plan.xls"), "end it in .xlsx"),
        (("--out", "nowhere/plan.xlsx"), "there is no folder"),
        (("--out", "plan.xlsx", "--layout", "TP8"), "--concurrency"),
        (("--out", "plan.xlsx", "--layout", "TP3", "--concurrency", "4"), "TP3"),
        (("--out", "plan.xlsx", "--objective", "beauty"), "--objective"),
        (("--out", "plan.xlsx", "--chips", "9"), "9 chips"),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line(
    flags: tuple[str, ...], said: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing on stdout, nothing written."""
    monkeypatch.chdir(tmp_path)
    answer = cli("workbook", *ASKED, *flags)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_feasible_is_said(cli: Cli, tmp_path: Path) -> None:
    """Without a layout there is nothing to write; with one there is."""
    asked = ("llama-3.1-8b", "--on", "h100-8", "--isl", "1k", "--osl", "100", "--tpot", "1us")
    out = str(tmp_path / "plan.xlsx")
    refused = cli("workbook", *asked, "--out", out)
    assert (refused.code, refused.err.count("\n")) == (3, 1)
    assert cli("workbook", *asked, "--out", out, "--layout", "TP2", "--concurrency", "4").code == 0


def test_a_given_layout_is_priced_as_estimate_does(shelf: Shelf) -> None:
    """One replica on its own chips, unless more are lent; the plan's columns keep the chips of the plan."""
    job = QUESTIONS["half"].workload
    one = planner.estimate("llama-3.1-70b", "h100-8", "TP4", job, draws=10)
    book = shelf.worked_out["half"]
    assert value_of(book, "in_layout_lent") == 4
    assert value_of(book, "q_serving_tpot_s") == pytest.approx(one.decode.tpot_s, rel=RTOL)
    sheet = book["Layouts"]
    (row,) = [row for row in range(1, sheet.max_row + 1) if sheet.cell(row, 1).value == "layout.lent"]
    assert sheet.cell(row, 3).value == 8
    (check,) = [row for row in range(1, sheet.max_row + 1) if sheet.cell(row, 1).value == "check"]
    assert sheet.cell(check, 3).value == "legal, fits"
