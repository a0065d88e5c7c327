"""One worksheet as an xlsx file: a zip of six small XML parts, and one that holds the cells.

Written out here because a table has hundreds of thousands of plain cells: text, numbers, switches, dates and a bold
header. Text is stored as text ("inline strings"), so nothing a cell says is ever taken for a formula.
Reference: ECMA-376, Office Open XML, part 1, SpreadsheetML.
"""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from bisect import bisect
from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from planner.scenarios.workbook import column_name

LONGEST_TEXT, MOST_ROWS, MOST_COLUMNS = 32_767, 1_048_576, 16_384
"""What a cell and a worksheet hold."""
FIRST_DAY, FIRST_SURE = datetime.datetime(1899, 12, 30), datetime.datetime(1900, 3, 1)
"""Days are counted from the first; before the second, spreadsheets disagree about a leap day."""
DAY_S = 86_400
DIGITS, MOST_DECIMALS, FIRST_DECIMALS = 4, 9, 6
"""Digits of a result that are shown, decimals at most, and the style of a number with none."""
POWERS = tuple(10.0**power for power in range(DIGITS - MOST_DECIMALS, DIGITS))
"""From each of these on a number is shown with one decimal less."""
BOLD, FORMS = 1, {datetime.date: 2, datetime.datetime: 3, datetime.time: 4, datetime.timedelta: 5}
CODES = ("yyyy\\-mm\\-dd", "yyyy\\-mm\\-dd\\ hh:mm:ss", "hh:mm:ss", "[h]:mm:ss")
UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\ufffe\uffff]|_x[0-9A-Fa-f]{4}_")
"""What XML cannot hold, and what would be read back as one of those."""

HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
PACKAGE, OFFICE = (
    "http://schemas.openxmlformats.org/package/2006",
    "http://schemas.openxmlformats.org/officeDocument/2006",
)
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
KINDS = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def letters(text: str) -> str:
    """Text as XML: control characters and what looks like an escaped one are escaped."""
    if UNWRITABLE.search(text):
        text = UNWRITABLE.sub(lambda m: f"_x005F{m[0]}" if len(m[0]) > 1 else f"_x{ord(m[0]):04X}_", text)
    return escape(text)


def serial(cell: Any) -> float | None:
    """A date or a time in days, or None where spreadsheets disagree about it."""
    if isinstance(cell, datetime.timedelta):
        return cell.total_seconds() / DAY_S
    if isinstance(cell, datetime.time):
        return (cell.hour * 3600 + cell.minute * 60 + cell.second) / DAY_S
    moment = datetime.datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, datetime.datetime):
        moment = cell.replace(tzinfo=None)
    return (moment - FIRST_DAY).total_seconds() / DAY_S if moment >= FIRST_SURE else None


def cell_xml(place: str, cell: Any, style: str = "") -> str:
    """One cell at a place such as 'B7'. style: ' s="1"', or nothing."""
    kind = type(cell)
    if kind is float or kind is int:
        return f'<c r="{place}"{style}><v>{cell!r}</v></c>'
    if kind is bool:
        return f'<c r="{place}"{style} t="b"><v>{int(cell)}</v></c>'
    if kind in FORMS:
        days = serial(cell)
        if days is not None:
            return f'<c r="{place}" s="{FORMS[kind]}"><v>{days!r}</v></c>'
        cell = str(cell)
    return f'<c r="{place}"{style} t="inlineStr"><is><t xml:space="preserve">{letters(cell)}</t></is></c>'


def style_of(value: float) -> int:
    """The style that shows a result's first digits: as many decimals as that takes."""
    size = abs(value)
    return FIRST_DECIMALS + (MOST_DECIMALS - bisect(POWERS, size) if size else 0)


def pane_xml(top: int, frozen: int) -> str:
    """The header, and the first columns, stay in sight."""
    split = f'xSplit="{frozen}" ' if frozen else ""
    place, pane = column_name(frozen), "bottomRight" if frozen else "bottomLeft"
    return f'<pane {split}ySplit="{top + 1}" topLeftCell="{place}{top + 2}" activePane="{pane}" state="frozen"/>'


def sheet_xml(rows: Iterable[Sequence[Any]], top: int, widths: dict[int, int], frozen: int, results: range) -> str:
    """The worksheet. top: the row (0-based) of the bold header. frozen: columns in sight; results: those rounded."""
    names: list[str] = []
    parts = [f'{HEAD}<worksheet xmlns="{MAIN}"><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>']
    parts.append(f'<sheetViews><sheetView workbookViewId="0">{pane_xml(top, frozen)}</sheetView></sheetViews>')
    if widths:
        parts.append("<cols>")
        for place, width in sorted(widths.items()):
            parts.append(f'<col min="{place + 1}" max="{place + 1}" width="{width}" customWidth="1"/>')
        parts.append("</cols>")
    parts.append("<sheetData>")
    for line, row in enumerate(rows, 1):
        names += [column_name(place) for place in range(len(names), len(row))]
        style = f' s="{BOLD}"' if line == top + 1 else ""
        filled = [
            f'<c r="{names[place]}{line}" s="{style_of(cell)}"><v>{cell!r}</v></c>'
            if type(cell) is float and place in results
            else cell_xml(f"{names[place]}{line}", cell, style)
            for place, cell in enumerate(row)
            if cell is not None and cell != ""
        ]
        parts.append(f'<row r="{line}">{"".join(filled)}</row>')
    parts.append('</sheetData><pageSetup orientation="landscape" fitToHeight="0"/></worksheet>')
    return "".join(parts)


def styles_xml() -> str:
    """Plain, bold, the forms of dates and times, and numbers by their decimals."""
    every = (*CODES, "#,##0", *(f"0.{'0' * decimals}" for decimals in range(1, MOST_DECIMALS + 1)))
    codes = "".join(f'<numFmt numFmtId="{164 + i}" formatCode="{code}"/>' for i, code in enumerate(every))
    forms = "".join(
        f'<xf numFmtId="{164 + i}" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
        for i in range(len(every))
    )
    font = '<sz val="11"/><name val="Calibri"/><family val="2"/>'
    return (
        f'{HEAD}<styleSheet xmlns="{MAIN}"><numFmts count="{len(every)}">{codes}</numFmts>'
        f'<fonts count="2"><font>{font}</font><font><b/>{font}</font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
        f'<cellXfs count="{2 + len(every)}"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
        f'<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>{forms}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    )


def parts_of(sheet: str, cells: str) -> dict[str, str]:
    """Every part of the file by its name."""
    book, main = f"{OFFICE}/relationships", f"{KINDS}.sheet.main+xml"
    override = '<Override PartName="/xl/{}" ContentType="{}"/>'
    return {
        "[Content_Types].xml": f'{HEAD}<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{override.format("workbook.xml", main)}'
        f"{override.format('worksheets/sheet1.xml', f'{KINDS}.worksheet+xml')}"
        f"{override.format('styles.xml', f'{KINDS}.styles+xml')}</Types>",
        "_rels/.rels": f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{book}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'{HEAD}<workbook xmlns="{MAIN}" xmlns:r="{book}"><sheets>'
        f'<sheet name={quoteattr(sheet)} sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{book}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="rId2" Type="{book}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": styles_xml(),
        "xl/worksheets/sheet1.xml": cells,
    }


def workbook(
    sheet: str, rows: Iterable[Sequence[Any]], top: int, widths: dict[int, int], frozen: int = 0,
    results: range = range(0),
) -> bytes:  # fmt: skip
    """The file: one worksheet of this name; the same cells give the same bytes. The rest is told at `sheet_xml`."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, text in parts_of(sheet, sheet_xml(rows, top, widths, frozen, results)).items():
            file.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED, 1)
    return made.getvalue()
