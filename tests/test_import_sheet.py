"""`planner import-sheet`: rows of a table priced as `estimate` prices them, and every way a table can be wrong."""

from __future__ import annotations

import csv
import datetime
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

import planner
from planner.evaluate.many import COLUMNS
from planner.scenarios import workbook as reader
from planner.scenarios.table import RESULTS
from planner.scenarios.xlsx import parts_of, workbook
from planner.spreadsheet import best_layout

K3, SYSTEM = "kimi-k3", "zhenwu-m890-supernode"
HEADER = ["site", "Model", "System", "--Layout", "ISL", "osl", "Concurrency", "KV dtype", "prefix-hit", "remark"]
ROW = ["north", K3, SYSTEM, "TP8 DP8", 8192, "1k", 256, None, None, "a note"]
PLAIN = "model,system,layout,isl,osl,concurrency\n"
LINE = f"{K3},{SYSTEM},TP8 DP8,8k,1k,256\n"


def book(path: Path, rows: list[list[Any]]) -> str:
    """A workbook of these rows."""
    path.write_bytes(workbook("jobs", rows, 0, {}))
    return str(path)


def raw(path: Path, data: str, main: str = "") -> str:
    """A workbook whose rows are this XML. main: more XML in its workbook part."""
    head = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts_of("jobs", f"{head}{data}</sheetData></worksheet>").items():
            file.writestr(name, text.replace("</workbook>", f"{main}</workbook>"))
    return str(path)


def cells_of(path: Path) -> list[list[Any]]:
    """What a workbook or a CSV holds."""
    if path.suffix == ".xlsx":
        return reader.values(path, 10**6, 1000)[2]
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file))


def asked(cli: Cli, given: str, out: Path, *more: str) -> Any:
    """The JSON of an import that went well."""
    answer = cli("import-sheet", given, "--out", str(out), "--json", *more)
    assert (answer.code, answer.err) == (0, "")
    return answer.json


def refused(cli: Cli, given: str, out: Path, *more: str) -> str:
    """The one line of an import that was refused, with nothing written."""
    before = sorted(out.parent.iterdir()) if out.parent.is_dir() else []
    answer = cli("import-sheet", given, "--out", str(out), *more)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert (sorted(out.parent.iterdir()) if out.parent.is_dir() else []) == before
    return answer.err


def error_of(cli: Cli, folder: Path, **cell: Any) -> str:
    """The sentence of a row with these cells beside a row that is right."""
    names = [*HEADER[:-1], *(name for name in cell if name not in HEADER)]
    bad = dict(zip(names, ROW[:-1], strict=False)) | cell
    given = book(folder / "bad.xlsx", [names, ROW[:-1], [bad.get(name) for name in names]])
    (error,) = asked(cli, given, folder / "bad_out.xlsx", "--force")["errors"]
    assert error["row"] == 3
    written = cells_of(folder / "bad_out.xlsx")
    assert written[2][-1] == error["error"]
    assert set(written[2][len(names) : -1]) == {""}
    return str(error["error"])


@pytest.mark.parametrize("ending", [".xlsx", ".csv"])
def test_a_table_comes_back_with_predictions(cli: Cli, tmp_path: Path, ending: str) -> None:
    """All columns of the user in order, then the numbers of estimate; an empty row stays empty."""
    given = book(tmp_path / "in.xlsx", [HEADER, ROW, [], [*ROW[:4], 4096.0, 100, 7, "fp8", 0.5, "=2+2"]])
    before = Path(given).read_bytes()
    out = tmp_path / f"out{ending}"
    found = asked(cli, given, out)
    assert (found["rows"], found["priced"], found["feasible"], found["refused"]) == (2, 2, 2, 0)
    assert found["notes"] == ["site", "remark"]
    written = cells_of(out)
    marked = ["'--Layout" if name == "--Layout" and ending == ".csv" else name for name in HEADER]
    assert written[0] == [*marked, *RESULTS]
    assert set(written[2]) == {""}
    assert [str(cell) for cell in written[3][:10]] == [
        "north", K3, SYSTEM, "TP8 DP8", *(("4096.0", "100.0", "7.0") if ending == ".xlsx" else ("4096", "100", "7")),
        "fp8", "0.5", "=2+2" if ending == ".xlsx" else "'=2+2",
    ]  # fmt: skip
    for line, job in (
        (1, planner.Workload(isl=8192, osl=1024, concurrency=256)),
        (3, planner.Workload(isl=4096, osl=100, concurrency=7, kv_format="fp8", prefix_hit=0.5)),
    ):
        one = planner.estimate(K3, SYSTEM, "TP8 DP8", job, draws=10).to_dict()
        row = dict(zip(written[0], written[line], strict=True))
        assert str(row["feasible"]).upper() == "TRUE"
        for column in COLUMNS[1:-2]:
            value = one
            for key in column.key.split("."):
                value = value[key]
            scale = 1e9 if "_gb_" in column.name else 1
            assert float(row[column.name]) * scale == pytest.approx(value, rel=1e-12), column.name
        assert (row["violation"], row["error"]) == ("", "")
    assert Path(given).read_bytes() == before


def test_results_of_an_earlier_run_are_replaced(cli: Cli, tmp_path: Path) -> None:
    """A table that was written can be read again, whatever was changed in it, and keeps its form."""
    given = book(tmp_path / "in.xlsx", [HEADER, ROW])
    asked(cli, given, tmp_path / "one.xlsx")
    asked(cli, str(tmp_path / "one.xlsx"), tmp_path / "two.xlsx")
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
    rows = cells_of(tmp_path / "one.xlsx")
    rows[1][4] = 100
    for row in rows:
        row.append("after" if row is rows[0] else "kept")
    asked(cli, book(tmp_path / "changed.xlsx", rows), tmp_path / "three.xlsx")
    again = cells_of(tmp_path / "three.xlsx")
    assert again[0] == rows[0]
    assert again[1][-1] == "kept"
    assert again[1][11] < rows[1][11]


def test_a_result_that_is_not_ours_is_refused(cli: Cli, tmp_path: Path) -> None:
    """A column of measured values is not overwritten."""
    given = book(tmp_path / "in.xlsx", [[*HEADER, "tpot_s"], [*ROW, 0.05]])
    assert "column K is named 'tpot_s'" in refused(cli, given, tmp_path / "out.xlsx")


def test_other_cells_come_back_as_they_were(cli: Cli, tmp_path: Path) -> None:
    """Dates, switches, odd text and numbers in note columns survive."""
    odd = [datetime.date(2025, 3, 1), datetime.datetime(2025, 3, 1, 12, 30), True, -1.5, "@x <&> \x0b _x0041_", "a\nb"]
    header = [*HEADER, "d", "e", "f", "g", "h", "i"]
    asked(cli, book(tmp_path / "in.xlsx", [header, [*ROW, *odd]]), tmp_path / "out.xlsx")
    assert cells_of(tmp_path / "out.xlsx")[1][10:16] == odd
    asked(cli, book(tmp_path / "in.xlsx", [header, [*ROW, *odd]]), tmp_path / "out.csv")
    assert cells_of(tmp_path / "out.csv")[1][10:14] == ["2025-03-01", "2025-03-01 12:30:00", "TRUE", "-1.5"]


def test_a_formula_in_text_stays_text(cli: Cli, tmp_path: Path) -> None:
    """Neither a user's text nor our sentence about it becomes a formula; no cell of the output is one."""
    rows = [HEADER, ROW, ["=1+1", "=cmd|' /C calc'!A0", *ROW[2:]], ["+1", "@SUM(A1)", *ROW[2:]]]
    out = tmp_path / "out.xlsx"
    asked(cli, book(tmp_path / "in.xlsx", rows), out)
    with zipfile.ZipFile(out) as file:
        assert b"<f" not in file.read("xl/worksheets/sheet1.xml")
    written = cells_of(out)
    assert [row[0] for row in written[1:]] == ["north", "=1+1", "+1"]
    asked(cli, str(out), tmp_path / "out.csv")
    for row in cells_of(tmp_path / "out.csv")[1:]:
        assert not any(cell.startswith(("=", "@")) for cell in row)
        assert not row[-1].startswith(("+", "-"))


def formulas(*, value: str, kind: str = "", asks: bool = False, place: str = "E2") -> tuple[str, str]:
    """(rows, XML of the workbook) with a formula in one cell."""

    def cell(column: str, row: int, text: Any) -> str:
        if f"{column}{row}" == place:
            return f'<c r="{place}"{kind}><f>4096*2</f>{value}</c>'
        return "" if text is None else f'<c r="{column}{row}" t="inlineStr"><is><t>{text}</t></is></c>'

    rows = [HEADER, ROW, ROW]
    data = "".join(
        f'<row r="{i}">{"".join(cell("ABCDEFGHIJ"[k], i, text) for k, text in enumerate(row))}</row>'
        for i, row in enumerate(rows, 1)
    )
    return data, '<calcPr fullCalcOnLoad="1"/>' if asks else ""


def test_a_formula_gives_its_last_value(cli: Cli, tmp_path: Path) -> None:
    """The value a spreadsheet program calculated is used and written; the summary says that there were formulas."""
    given = raw(tmp_path / "in.xlsx", *formulas(value="<v>8192</v>"))
    found = asked(cli, given, tmp_path / "out.xlsx")
    assert (found["priced"], found["refused"], found["formulas"]) == (2, 0, 1)
    assert cells_of(tmp_path / "out.xlsx")[1][4] == 8192
    assert "1 formulas" in cli("import-sheet", given, "--out", str(tmp_path / "o.csv")).out


@pytest.mark.parametrize(
    "cell", [{"value": ""}, {"value": "<v></v>"}, {"value": "<v/>"}, {"value": "<v>0</v>", "asks": True}], ids=str
)
@pytest.mark.parametrize("place", ["E2", "I2"], ids=["needed", "optional"])
def test_a_formula_nobody_calculated_is_an_error_of_its_row(
    cli: Cli, tmp_path: Path, cell: dict[str, Any], place: str
) -> None:
    """Neither 0 nor a default is taken for it."""
    given = raw(tmp_path / "in.xlsx", *formulas(**cell, place=place))
    found = asked(cli, given, tmp_path / "out.xlsx")
    name = {"E2": "isl", "I2": "prefix_hit"}[place]
    assert found["errors"] == [{"row": 2, "error": f"{name}: is a formula that was never calculated; calculate it in a "
                                "spreadsheet program, or give a value"}]  # fmt: skip


def test_a_marked_cell_says_so_in_the_output(cli: Cli, tmp_path: Path) -> None:
    """Neither an error value nor a formula without a value turns into an empty cell or 0, in inputs and in notes."""
    for place, told in (("I2", "prefix_hit"), ("J2", "")):
        for cell, kind, text in (("<v>#N/A</v>", ' t="e"', "#N/A"), ("<v>0</v>", "", reader.NEVER)):
            given = raw(tmp_path / "in.xlsx", *formulas(value=cell, kind=kind, place=place, asks=True))
            found = asked(cli, given, tmp_path / "out.xlsx", "--force")
            assert found["refused"] == bool(told)
            assert cells_of(tmp_path / "out.xlsx")[1]["ABCDEFGHIJ".index(place[0])] == text
            again = asked(cli, str(tmp_path / "out.xlsx"), tmp_path / "again.csv", "--force")
            assert again["refused"] == bool(told)


def test_an_error_value_is_an_error_of_its_row(cli: Cli, tmp_path: Path) -> None:
    """#N/A in an optional cell is not an empty one."""
    given = raw(tmp_path / "in.xlsx", *formulas(value="<v>#N/A</v>", kind=' t="e"', place="I2"))
    (error,) = asked(cli, given, tmp_path / "out.xlsx")["errors"]
    assert error["error"].startswith("prefix_hit: is the error value #N/A")


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ({"ISL": 8192.5}, "isl: '8192.5' is 8192.5, not a whole number"),
        ({"ISL": "many"}, "isl: 'many' is not a count"),
        ({"ISL": 0}, "isl: 0 is below 1"),
        ({"ISL": -5}, "isl: -5 is below 1"),
        ({"ISL": 1e13}, "is over 1,000,000,000,000"),
        ({"ISL": 1e300}, "is over 1,000,000,000,000"),
        ({"ISL": 10**8}, "isl + osl: 100000000 + 1024 tokens exceed the 1048576 of kimi-k3"),
        ({"ISL": True}, "isl: is TRUE; give a number"),
        ({"ISL": datetime.date(2025, 1, 2)}, "isl: is a date or a time (2025-01-02)"),
        ({"ISL": "nan"}, "isl: 'nan' is not a count"),
        ({"ISL": "inf"}, "isl: 'inf' is not a count"),
        ({"ISL": "8,19"}, "isl: '8,19' is not a count"),
        ({"ISL": "8192 chips"}, "isl: '8192 chips' is not a count"),
        ({"ISL": None}, "isl: is empty; give a number for isl"),
        ({"Model": None}, "model: is empty; give a model"),
        ({"Model": "kimi-k4"}, "did you mean kimi-k3"),
        ({"Model": 3}, "unknown model '3'"),
        ({"System": "nowhere"}, "unknown system 'nowhere'"),
        ({"--Layout": "TP7 DP8"}, "TP7"),
        ({"--Layout": "=1+1"}, "'=1+1' is not one of"),
        ({"Concurrency": 0.5}, "not a whole number"),
        ({"prefix-hit": 2}, "prefix-hit: 2 is not within 0 to 1"),
        ({"prefix-hit": "x%"}, "prefix-hit: 'x%' is not a number"),
        ({"KV dtype": "fp7"}, "kv-dtype: 'fp7' is not one of"),
        ({"stack": "nothing"}, "unknown stack 'nothing'"),
        ({"chips": 1000}, "asked for 1000 chips, and zhenwu-m890-supernode has 64"),
        ({"Draft tokens": 2}, "accepted-length"),
        ({"vision": "maybe"}, "vision: 'maybe' is neither yes nor no"),
    ],
    ids=str,
)
def test_a_wrong_cell_is_a_sentence_in_its_row(cli: Cli, tmp_path: Path, cell: dict[str, Any], told: str) -> None:
    """The row says what is wrong, the others are priced."""
    assert told in error_of(cli, tmp_path, **cell)


def test_what_does_not_fit_says_so(cli: Cli, tmp_path: Path) -> None:
    """A deployment beyond its memory has its memory and the violation, and neither times nor rates nor costs."""
    given = book(tmp_path / "in.xlsx", [HEADER, [*ROW[:6], 10**6, None, None, None]])
    found = asked(cli, given, tmp_path / "out.xlsx")
    assert (found["priced"], found["feasible"]) == (1, 0)
    names, row = cells_of(tmp_path / "out.xlsx")
    told = {name: cell for name, cell in dict(zip(names, row, strict=True)).items() if name in RESULTS and cell != ""}
    assert told["feasible"] is False
    assert told["max_concurrency"] == 2040
    assert "TB too much" in told["violation"]
    assert not [name for name in told if name.endswith("_s") or "usd" in name or "tok" in name]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("\n\n,,\n", "has no cell with anything in it"),
        (PLAIN, "has a header and no rows"),
        (PLAIN + "\n,,,,,\n", "has a header and no rows"),
        (LINE, "row 1 is no header"),
        ("model,system,layout,isl,osl,concurency\n" + LINE, "column 'concurency' is not known; rename it concurrency"),
        ("model,system,layout,isl\n" + LINE, "has no column 'osl'; needed: model, system"),
        ("model,System,SYSTEM,layout,isl,osl,concurrency\n" + LINE, "columns B and C are both 'system'"),
        ("model,on,system,layout,isl,osl,concurrency\n" + LINE, "columns B and C are both 'system'"),
        (PLAIN + f'{K3},"{SYSTEM},TP8\n', "row 2: unexpected end of data; save it as plain CSV"),
        (PLAIN + "\0\0\n", "is no text"),
        (PLAIN + "x,y,z,1,1,1\n", "none of its 1 rows can be priced; row 2: model"),
        ("model," * 1001 + "\n" + LINE, "has over 1,000 columns"),
        (PLAIN + "x" * 200_000 + LINE, "field larger than field limit"),
    ],
    ids=lambda text: str(text)[:40].replace("\0", "NUL"),
)
def test_a_wrong_csv_is_one_line(cli: Cli, tmp_path: Path, text: str, told: str) -> None:
    """What is no table of scenarios is refused, and nothing is written."""
    (tmp_path / "in.csv").write_text(text)
    assert told in refused(cli, str(tmp_path / "in.csv"), tmp_path / "out.csv")


@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_csv_keeps_its_form(cli: Cli, tmp_path: Path, separator: str, encoding: str) -> None:
    """Separator, encoding, mark and line ends are told from the file and kept; quotes and blanks survive."""
    line = [K3, SYSTEM, "TP8 DP8", "8k", "1k", "256", ' größer; "so", 1,5 ', "-x"]
    header = [*PLAIN.strip().split(","), "Bemerkung", "n"]
    for end, name in (("\r\n", "in.csv"), ("\n", "in.txt")):
        with (tmp_path / name).open("w", encoding=encoding, newline="") as file:
            csv.writer(file, delimiter=separator, lineterminator=end).writerows([header, [], line])
        asked(cli, str(tmp_path / name), tmp_path / "out.csv", "--force")
        data = (tmp_path / "out.csv").read_bytes()
        assert data[:2] == (tmp_path / name).read_bytes()[:2]
        text = data.decode(encoding)
        assert (text.count("\r\n"), text.count("\n")) == ((3, 3) if end == "\r\n" else (0, 3))
        rows = list(csv.reader(text.splitlines(), delimiter=separator))
        assert rows[0] == [*header, *RESULTS]
        assert rows[2][: len(line)] == [*line[:-1], "'-x"]  # marked as text: a spreadsheet would run it


def test_a_csv_in_another_encoding_is_refused(cli: Cli, tmp_path: Path) -> None:
    """No encoding is guessed."""
    (tmp_path / "in.csv").write_bytes((PLAIN + LINE).encode() + "größer".encode("cp1252"))
    assert "is not UTF-8 text (byte" in refused(cli, str(tmp_path / "in.csv"), tmp_path / "out.csv")


def test_a_separator_that_is_said_is_used(cli: Cli, tmp_path: Path) -> None:
    """Excel's own first line stays."""
    (tmp_path / "in.csv").write_text("sep=|\n" + (PLAIN + LINE).replace(",", "|"))
    asked(cli, str(tmp_path / "in.csv"), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("sep=|\nmodel|system|")


def test_forms_that_are_no_xlsx(cli: Cli, tmp_path: Path) -> None:
    """Old, binary, open-document, protected and damaged workbooks each have their line."""
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000)
    sound = workbook("jobs", [HEADER, ROW], 0, {})
    zips = {}
    for name in ("xl/workbook.bin", "content.xml", "other.txt"):
        with zipfile.ZipFile(tmp_path / "made", "w") as file:
            file.writestr(name, "x")
        zips[name] = (tmp_path / "made").read_bytes()
    (tmp_path / "made").unlink()
    for data, told in (
        (ole, "is a workbook of the old form (.xls); save it as .xlsx or .csv"),
        (ole + "EncryptedPackage".encode("utf-16-le"), "is protected by a password; save it without one"),
        (zips["xl/workbook.bin"], "is a binary workbook (.xlsb)"),
        (zips["content.xml"], "is an OpenDocument file (.ods)"),
        (zips["other.txt"], "is a zip archive and no workbook"),
        (sound[:1500], "is no sound workbook"),
        ((PLAIN + LINE).encode(), "is named like a workbook and is none"),
        (b"", "is empty"),
    ):
        (tmp_path / "in.xlsx").write_bytes(data)
        assert told in refused(cli, str(tmp_path / "in.xlsx"), tmp_path / "out.xlsx")


def test_a_damaged_workbook_is_one_line(cli: Cli, tmp_path: Path) -> None:
    """Bytes overwritten anywhere: priced all the same, or one line; never a fault."""
    sound = workbook("jobs", [HEADER, ROW], 0, {})
    for place in range(0, len(sound), 41):
        (tmp_path / "in.xlsx").write_bytes(sound[:place] + b"\xff\x00\x7f" + sound[place + 3 :])
        answer = cli("import-sheet", str(tmp_path / "in.xlsx"), "--out", str(tmp_path / "out.csv"), "--force")
        assert answer.code in (0, 2), answer.err
        assert answer.err.count("\n") <= 1


def test_a_million_rows_are_refused_at_once(cli: Cli, tmp_path: Path) -> None:
    """Counted before they are read."""
    with (tmp_path / "in.csv").open("w") as file:
        file.write(PLAIN + LINE * 1_000_000)
    data = '<row><c t="inlineStr"><is><t>model</t></is></c></row>' * 1_000_000
    for given in (str(tmp_path / "in.csv"), raw(tmp_path / "in.xlsx", data)):
        start = time.process_time()
        assert "has over 200,000 rows" in refused(cli, given, tmp_path / "out.xlsx")
        assert time.process_time() - start < 5


@pytest.mark.parametrize("place", ["XFD1048576", "A1048576", "XFD1", "ALM2", "ZZZZZZ9"])
def test_a_stray_cell_far_away_is_refused(cli: Cli, tmp_path: Path, place: str) -> None:
    """The rectangle up to it is never built."""
    data = formulas(value="<v>8192</v>")[0].replace('<row r="3">', f'<row r="3"><c r="{place}"><v>1</v></c>')
    told = refused(cli, raw(tmp_path / "in.xlsx", data), tmp_path / "out.xlsx")
    assert f"has a cell at {place}, far from any table" in told


def test_where_the_output_goes(cli: Cli, tmp_path: Path) -> None:
    """Nothing is overwritten unasked, the input never."""
    given = tmp_path / "in.csv"
    given.write_text(PLAIN + LINE)
    (tmp_path / "there.csv").write_text("mine")
    assert "is there already; give --force" in refused(cli, str(given), tmp_path / "there.csv")
    assert (tmp_path / "there.csv").read_text() == "mine"
    asked(cli, str(given), tmp_path / "there.csv", "--force")
    for out in (given, tmp_path / "." / "in.csv"):
        assert "is the table that is read" in refused(cli, str(given), out, "--force")
    (tmp_path / "link.csv").symlink_to(given)
    assert "is the table that is read" in refused(cli, str(given), tmp_path / "link.csv", "--force")
    assert "there is no folder" in refused(cli, str(given), tmp_path / "none" / "out.csv")
    assert "end it in .xlsx or .csv" in refused(cli, str(given), tmp_path / "out.ods")
    assert "is no file" in refused(cli, str(tmp_path / "missing.csv"), tmp_path / "out.csv")
    assert "is no file" in refused(cli, str(tmp_path), tmp_path / "out.csv")
    assert given.read_text() == PLAIN + LINE


def test_a_text_too_long_for_a_worksheet(cli: Cli, tmp_path: Path) -> None:
    """A cell is not cut in silence."""
    (tmp_path / "in.csv").write_text(PLAIN.strip() + ",note\n" + LINE.strip() + "," + "x" * 40_000 + "\n")
    assert "row 2 has a cell of over 32,767" in refused(cli, str(tmp_path / "in.csv"), tmp_path / "out.xlsx")
    asked(cli, str(tmp_path / "in.csv"), tmp_path / "out.csv")


def test_the_summary(cli: Cli, tmp_path: Path) -> None:
    """Rows, errors with their rows, notes, and the note that looks like a slip."""
    rows = [PLAIN.strip() + ",kv dtpe,owner", *[LINE.strip() + ",fp8,me"] * 2, "", *["x" + LINE.strip() + ",,"] * 7]
    (tmp_path / "in.csv").write_text("\n".join(rows))
    text = cli("import-sheet", str(tmp_path / "in.csv"), "--out", str(tmp_path / "out.xlsx")).out
    assert text.startswith("9 rows, 2 priced, 2 fit, 7 with an error; ")
    assert "row 5: model: unknown model 'xkimi-k3'" in text
    assert "and 2 more: see the column 'error'" in text
    assert "kept as notes: kv dtpe, owner" in text
    assert "column 'kv dtpe' is kept as a note; did you mean kv_dtype?" in text


def test_it_loads_no_sympy(tmp_path: Path) -> None:
    """Half a second of symbolic algebra is not for tables of numbers."""
    (tmp_path / "in.csv").write_text(PLAIN + LINE)
    program = (
        "import sys; from planner.cli.app import run; code = run(sys.argv[1:]); "
        "assert code == 0; print('sympy' in sys.modules, 'scipy' in sys.modules)"
    )
    arguments = ["import-sheet", str(tmp_path / "in.csv"), "--out", str(tmp_path / "out.xlsx")]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False False\n")


SPOKEN = """Jobs of spring,,,,,,,,,,,
,,,,,,,,,,,
id,Model,Hardware,layout,prompt tokens,Output-Tokens,batch size,KV format,price,TTFT,prefix hit,prefixhits
007,Kimi K3,Zhenwu M890 Supernode,TP8DP8,"8,192",1k tokens,256 requests,n/a,$2/h,2s,50%,x
2,kimi-k3,zhenwu-m890-supernode,,8 192,1k,64,fp8,4,,-,
3,kimi-k3,zhenwu-m890-supernode,,8k,1k,64,fp8,5 USD/h,100ms,none,
4,kimi-k3,zhenwu-m890-supernode,TP9 x DP8,8k,1.5,many,,-1,20,,
5,kimi-k3,zhenwu-m890-supernode,TP8 x DP8,8k,1k,100000,,,9s,,
"""


@pytest.mark.parametrize("ending", [".xlsx", ".csv"])
def test_a_table_as_people_write_it(cli: Cli, tmp_path: Path, ending: str) -> None:
    """A title, other words, units in cells, prices, targets, a layout left open, and all that is wrong with a row."""
    (tmp_path / "in.csv").write_text(SPOKEN)
    found = asked(cli, str(tmp_path / "in.csv"), tmp_path / f"out{ending}")
    assert (found["rows"], found["priced"], found["feasible"], found["above"]) == (5, 3, 2, 1)
    assert found["near"] == {}
    assert found["notes"] == ["id", "prefixhits"]
    written = cells_of(tmp_path / f"out{ending}")
    assert [cell for cell in written[0] if cell] == ["Jobs of spring"]
    lines = [dict(zip(written[2], row, strict=True)) for row in written[3:]]
    one, two, three, four, five = lines
    assert one["id"] == "007"
    assert two["id"] == (2 if ending == ".xlsx" else "2")
    assert [str(line["meets_ttft"]).upper() for line in lines] == ["TRUE", "", "", "", ""]
    job = planner.Workload(isl=8192, osl=1024, concurrency=256, prefix_hit=0.5)
    priced = planner.estimate(K3, SYSTEM, "TP8 DP8", job, draws=10)
    assert float(one["ttft_s"]) == pytest.approx(priced.serving.ttft_s, rel=1e-12)
    assert float(one["usd_per_million_output_tokens"]) == pytest.approx(
        priced.cost.usd_per_million_output_tokens, rel=1e-12
    )
    best = best_layout(K3, SYSTEM, "8k", "1k", 64, kv_dtype="fp8")
    assert (one["layout_used"], two["layout_used"]) == ("TP8 DP8 EP64", best)
    twice = planner.Workload(isl=8192, osl=1024, concurrency=64, kv_format="fp8")
    cost = planner.estimate(K3, SYSTEM, best, twice, draws=10).cost.usd_per_million_output_tokens
    assert float(two["usd_per_million_output_tokens"]) == pytest.approx(2 * cost, rel=1e-12)
    assert "no layout on 64 chips" in three["error"]
    for told in ("TP9 does not divide", "osl: '1.5'", "concurrency: 'many'", "price: -1 is below", "ttft: '20' has no"):
        assert told in four["error"]
    assert str(five["feasible"]).upper() == "FALSE"
    assert (five["ttft_s"], five["meets_ttft"]) == ("", "")
    again = asked(cli, str(tmp_path / f"out{ending}"), tmp_path / f"again{ending}")
    assert (again["rows"], again["priced"], again["above"]) == (5, 3, 1)
    assert cells_of(tmp_path / f"again{ending}") == written


def test_a_note_that_names_an_input(cli: Cli, tmp_path: Path) -> None:
    """Said where the table lacks that input, so that no target is lost in silence."""
    (tmp_path / "in.csv").write_text(PLAIN.strip() + ",tpot target\n" + LINE.strip() + ",50ms\n")
    text = cli("import-sheet", str(tmp_path / "in.csv"), "--out", str(tmp_path / "out.csv")).out
    assert "column 'tpot target' is kept as a note; did you mean tpot?" in text


def test_no_row_can_be_priced(cli: Cli, tmp_path: Path) -> None:
    """The first three rows say why."""
    (tmp_path / "in.csv").write_text(PLAIN + LINE.replace("8k", "x") * 4)
    told = refused(cli, str(tmp_path / "in.csv"), tmp_path / "out.csv")
    assert "none of its 4 rows can be priced; row 2: isl: 'x' is not a count" in told
    assert "row 4: " in told
    assert "row 5" not in told


def test_two_headers_below_a_title_are_no_guess(cli: Cli, tmp_path: Path) -> None:
    """Only one row that could be the header is taken for it."""
    (tmp_path / "in.csv").write_text("title\n" + (PLAIN + LINE) * 2)
    assert "row 1 is no header" in refused(cli, str(tmp_path / "in.csv"), tmp_path / "out.csv")


def test_how_a_workbook_looks(cli: Cli, tmp_path: Path) -> None:
    """Four digits shown and all kept, headers that fit, deployment and header in sight, landscape."""
    openpyxl = pytest.importorskip("openpyxl")
    asked(cli, book(tmp_path / "in.xlsx", [HEADER, ROW]), tmp_path / "out.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").worksheets[0]
    names = {cell.value: cell for cell in sheet[1]}
    for name, form in (("tpot_s", "0.00000"), ("ttft_s", "0.000"), ("tok_s", "#,##0"), ("used_gb_per_chip", "0.00")):
        assert sheet.cell(2, names[name].column).number_format == form, name
    assert (sheet.freeze_panes, sheet.page_setup.orientation) == ("E2", "landscape")
    for name, cell in names.items():
        assert sheet.column_dimensions[cell.column_letter].width > len(name)
