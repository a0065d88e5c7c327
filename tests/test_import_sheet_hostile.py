"""Workbooks that spreadsheet programs do not write, or that say less than they seem to."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest
from conftest import Answer, Cli

HEAD = ["model", "system", "layout", "isl", "osl", "concurrency", "kv_dtype", "note"]
ROW = ["llama-3.1-8b", "h100-8", "TP8", 1024, 64, 8, None, None]
SHEET = "xl/worksheets/sheet1.xml"
Try = Callable[..., Answer]


@pytest.fixture
def attempt(tmp_path: Path, cli: Cli) -> Try:
    """A table of two rows as a workbook whose sheet's XML is changed by a function, through import-sheet."""

    def run(change: Callable[[str], str], *flags: str, rows: int = 2) -> Answer:
        plain, changed, out = (tmp_path / name for name in ("plain.xlsx", "in.xlsx", "out.xlsx"))
        book = openpyxl.Workbook()
        for row in [HEAD, *[ROW] * rows]:
            book.active.append(row)
        book.save(plain)
        with zipfile.ZipFile(plain) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                data = old.read(name)
                new.writestr(name, change(data.decode()) if name == SHEET else data)
        answer = cli("import-sheet", str(changed), "--out", str(out), *flags)
        if answer.code == 2:
            assert not answer.out
            assert answer.err.count("\n") == 1
            assert not out.exists()
        return answer

    return run


def before_end(text: str) -> Callable[[str], str]:
    """More XML at the end of the rows."""
    return lambda xml: xml.replace("</sheetData>", text + "</sheetData>", 1)


FAR = {
    "row-number": '<row r="4294967290"><c><v>1</v></c></row>',
    "last-row": '<row r="1048576"><c><v>1</v></c></row>',
    "lower-case": '<row r="9"><c r="xfd1048576"><v>1</v></c></row>',
    "spaced": '<row r="9"><c r = "XFD1048576"><v>1</v></c></row>',
    "corner-within-the-limits": '<row r="200000"><c r="ALK200000"><v>1</v></c></row>',
    "wide-and-long": '<row r="9"><c r="ALK9"><v>1</v></c></row><row r="20000"><c r="A20000"><v>1</v></c></row>',
}


@pytest.mark.parametrize("name", FAR)
def test_a_cell_far_away_is_refused_before_anything_is_read(name: str, attempt: Try) -> None:
    answer = attempt(before_end(FAR[name]))
    assert answer.code == 2
    assert "far from any table" in answer.err


def test_entities_are_refused_before_they_unfold(attempt: Try) -> None:
    levels = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 9))
    kind = f'<!DOCTYPE x [<!ENTITY a0 "0123456789">{levels}]>'
    answer = attempt(
        lambda xml: (kind + xml).replace(
            "</sheetData>", '<row r="9"><c r="A9"><f>1</f><v>&a8;</v></c></row></sheetData>'
        )
    )
    assert answer.code == 2
    assert "in a form no spreadsheet program writes" in answer.err


def test_a_formula_that_gives_empty_text_was_calculated(attempt: Try) -> None:
    """LibreOffice and Excel store it as a text with an empty value: an empty cell, so the default."""
    made = '<c r="G2" t="str"><f>IF(A2="x","fp8","")</f><v></v></c>'
    answer = attempt(
        lambda xml: xml.replace('<c r="F2" t="n"><v>8</v></c>', f'<c r="F2" t="n"><v>8</v></c>{made}', 1), "--json"
    )
    assert answer.code == 0, answer.err
    assert answer.json["priced"] == 2


def test_a_formula_without_a_value_was_not(attempt: Try) -> None:
    made = '<c r="G2"><f>IF(A2="x","fp8","bf16")</f><v></v></c>'
    answer = attempt(
        lambda xml: xml.replace('<c r="F2" t="n"><v>8</v></c>', f'<c r="F2" t="n"><v>8</v></c>{made}', 1), "--json"
    )
    assert answer.json["priced"] == 1
    assert "never calculated" in answer.json["errors"][0]["error"]


def test_merged_cells_speak_for_no_row_below_the_first(attempt: Try) -> None:
    """One value over two rows: whether it means both is not said, and the default would be a silent guess."""

    def merge(xml: str) -> str:
        xml = xml.replace(
            '<c r="F2" t="n"><v>8</v></c>',
            '<c r="F2" t="n"><v>8</v></c><c r="G2" t="inlineStr"><is><t>fp8</t></is></c>',
        )
        return xml.replace("</sheetData>", '</sheetData><mergeCells count="1"><mergeCell ref="G2:G3"/></mergeCells>')

    answer = attempt(merge, "--json")
    assert answer.json["priced"] == 1
    assert "is merged with G2: give it a value of its own" in answer.json["errors"][0]["error"]


@pytest.mark.parametrize("mark", ['t="e"', 't = "e"', "t='e'"])
def test_an_error_value_is_one_however_it_is_spelt(mark: str, attempt: Try) -> None:
    answer = attempt(
        lambda xml: xml.replace('<c r="E2" t="n"><v>64</v></c>', f'<c r="E2" {mark}><v>#N/A</v></c>', 1), "--json"
    )
    assert answer.json["priced"] == 1
    assert "is the error value #N/A" in answer.json["errors"][0]["error"]


@pytest.mark.parametrize("value", ["NaN", "INF", "1e999"])
def test_a_number_that_is_none_is_no_gap(value: str, attempt: Try, tmp_path: Path) -> None:
    """In an optional column it is an error and not the default; as a note it stays, as text."""
    made = f'<c r="F2" t="n"><v>8</v></c><c r="G2"><v>{value}</v></c>'
    answer = attempt(lambda xml: xml.replace('<c r="F2" t="n"><v>8</v></c>', made, 1), "--json")
    assert answer.code == 0, answer.err
    assert answer.json["priced"] == 1
    assert "no finite number" in answer.json["errors"][0]["error"]
    with zipfile.ZipFile(tmp_path / "out.xlsx") as parts:
        xml = parts.read(SHEET).decode()
    assert "<v>inf</v>" not in xml
    assert "<v>nan</v>" not in xml


def test_text_that_reads_as_a_formula_is_marked_as_text_in_csv_and_comes_back(cli: Cli, tmp_path: Path) -> None:
    """A quote before what a spreadsheet would run, none before plain numbers; reading the table takes it off."""
    notes = ["=1+2", "+cmd|' /C calc'!A1", "@SUM(A1)", "-2+3", "-5", "+5", "-5 %", "it's", "'quoted"]
    table = tmp_path / "in.csv"
    rows = [",".join([*map(str, ["llama-3.1-8b", "h100-8", "TP8", 1024, 64, 8, ""]), f'"{note}"']) for note in notes]
    table.write_text("\n".join([",".join(HEAD), *rows]) + "\n", encoding="utf-8")
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    assert cli("import-sheet", str(table), "--out", str(first)).code == 0
    lines = first.read_text(encoding="utf-8").splitlines()[1:]
    shown = [line.split(",")[7].strip('"') for line in lines]
    assert shown == ["'=1+2", "'+cmd|' /C calc'!A1", "'@SUM(A1)", "'-2+3", "-5", "+5", "-5 %", "it's", "'quoted"]
    assert cli("import-sheet", str(first), "--out", str(second)).code == 0
    assert second.read_bytes() == first.read_bytes()
