"""What a workbook's own XML says that its values do not: how many rows, which formulas nobody calculated, error values.

An xlsx is a zip of XML parts. A value of a formula is the one cached at the last save; a program that writes formulas
without calculating them leaves it out, or writes 0 and asks for a calculation on loading.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree
from xml.parsers import expat

from planner.errors import BadFile

ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
PART, OVERLAP, MOST_XML = 1 << 20, 64, 10_000_000  # bytes: read at once, shared by two reads, of a table of contents
MOST_UNPACKED = 1_000_000_000
"""Bytes of all parts together, unpacked: far above what MOST_ROWS need."""
ROW, TOLD = re.compile(rb"<(?:\w+:)?row[ >/]"), re.compile(rb"<(?:\w+:)?f[ >/]|t=[\"']e[\"']")
NEVER = "(formula, never calculated)"
FAR = re.compile(rb"\br=[\"'](?=[A-Z]{3}|[A-Z]+[0-9]{5})([A-Z]{1,7})([0-9]{1,9})[\"']")
"""Places of cells with a third letter or a fifth digit."""
SAVE = "save it as .xlsx or .csv"


@dataclass
class Marks:
    """Cells (row, column), 0-based, whose value says less than it seems to, and why; how many formulas there are.

    texts: what stands in such a cell from here on, so that it is neither empty nor 0 when it is written.
    """

    cells: dict[tuple[int, int], str] = field(default_factory=dict)
    texts: dict[tuple[int, int], str] = field(default_factory=dict)
    formulas: int = 0


def is_workbook(path: Path) -> bool:
    """Whether the file begins as a workbook does, of whatever form."""
    with path.open("rb") as file:
        return file.read(len(OLE)).startswith((ZIP, OLE))


def refuse_other_forms(path: Path) -> None:
    """Only xlsx is read. Raises BadFile: old xls, xlsb, ods, under a password, no workbook."""
    if not zipfile.is_zipfile(path):
        head = path.read_bytes()[:MOST_XML]
        if head.startswith(OLE) and ENCRYPTED in head:
            raise BadFile(str(path), "is protected by a password", "save it without one")
        if head.startswith(OLE):
            raise BadFile(str(path), "is a workbook of the old form (.xls)", SAVE)
        raise BadFile(str(path), "is no sound workbook: its end is missing or damaged", "save it anew")
    with zipfile.ZipFile(path) as parts:
        names = set(parts.namelist())
        if "xl/workbook.xml" not in names:
            forms = {"xl/workbook.bin": "a binary workbook (.xlsb)", "content.xml": "an OpenDocument file (.ods)"}
            form = next((form for name, form in forms.items() if name in names), "a zip archive and no workbook")
            raise BadFile(str(path), f"is {form}", SAVE)
        if sum(part.file_size for part in parts.infolist()) > MOST_UNPACKED:
            raise BadFile(str(path), f"holds over {MOST_UNPACKED:,} bytes", "split the table")


def local(tag: str) -> str:
    """A tag or attribute without its namespace."""
    return tag.rpartition("}")[2].rpartition(":")[2]


def xml_of(parts: zipfile.ZipFile, name: str) -> Any:
    """A small part as a tree."""
    with parts.open(name) as file:
        return ElementTree.fromstring(file.read(MOST_XML))


def part_of(parts: zipfile.ZipFile, sheet: str) -> tuple[str, bool]:
    """(name of the part that holds a worksheet, whether all is to be calculated on loading)."""
    book = xml_of(parts, "xl/workbook.xml")
    asks = any(local(node.tag) == "calcPr" and node.get("fullCalcOnLoad") in ("1", "true") for node in book.iter())
    (held,) = [node for node in book.iter() if local(node.tag) == "sheet" and node.get("name") == sheet]
    own = next(value for key, value in held.attrib.items() if key.startswith("{") and local(key) == "id")
    targets = {node.get("Id"): node.get("Target", "") for node in xml_of(parts, "xl/_rels/workbook.xml.rels")}
    target = targets[own]
    return (target.lstrip("/") if target.startswith("/") else f"xl/{target}"), asks


def marks_of(path: Path, sheet: str, most_rows: int, most_columns: int) -> Marks:
    """The marks of a worksheet, in one pass; the cells are looked at one by one only where there are any.

    Raises BadFile for more rows than `most_rows`, counted before anything is read into memory, and for a stray cell so
    far away that the rectangle up to it would not fit there.
    """
    with zipfile.ZipFile(path) as parts:
        name, asks = part_of(parts, sheet)
        rows, told, tail = 0, False, b""
        with parts.open(name) as file:
            while data := file.read(PART):
                text = tail + data
                rows += len(ROW.findall(text)) - len(ROW.findall(tail))
                told = told or TOLD.search(text) is not None
                tail = text[-OVERLAP:]
                for match in FAR.finditer(text):
                    if column_of(match[1].decode()) >= most_columns or int(match[2]) > most_rows + 1:
                        what = f"has a cell at {match[1].decode()}{match[2].decode()}, far from any table"
                        raise BadFile(str(path), what, "delete it, or move the table")
                if rows > most_rows + 1:
                    what = f"has over {most_rows:,} rows (empty ones that are formatted count)"
                    raise BadFile(str(path), what, "split the table, or delete the rows below it")
        if not told:
            return Marks()
        with parts.open(name) as file:
            return told_cells(file, asks)


def told_cells(file: IO[bytes], asks: bool) -> Marks:
    """Formulas without a value and error values of a worksheet's XML."""
    marks = Marks()
    row, column = -1, -1
    formula, kind, value, inside = False, "", "", False

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal row, column, formula, kind, value, inside
        tag = local(tag)
        if tag == "row":
            row, column = int(attributes.get("r", row + 2)) - 1, -1
        elif tag == "c":
            reference = attributes.get("r", "").rstrip("0123456789")
            column = column_of(reference) if reference else column + 1
            formula, kind, value = False, attributes.get("t", "n"), ""
        elif tag == "f":
            formula = True
        inside = tag == "v"

    def end(tag: str) -> None:
        nonlocal inside
        inside = False
        if local(tag) != "c":
            return
        marks.formulas += formula
        if kind == "e":
            marks.cells[row, column], marks.texts[row, column] = f"is the error value {value}", value
        elif formula and (not value or (asks and kind == "n" and float(value) == 0)):
            marks.cells[row, column] = "is a formula that was never calculated"
            marks.texts[row, column] = NEVER

    def data(text: str) -> None:
        nonlocal value
        value += text if inside else ""

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, data
    parser.ParseFile(file)
    return marks


def column_of(letters: str) -> int:
    """'A' -> 0, 'AA' -> 26."""
    found = 0
    for letter in letters:
        found = found * 26 + ord(letter) - ord("A") + 1
    return found - 1


def column_name(place: int) -> str:
    """0 -> 'A', 26 -> 'AA'."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def values(path: Path, most_rows: int, most_columns: int) -> tuple[str, int, list[list[Any]], Marks]:
    """(name of the first worksheet, how many there are, its cells from A1 on, its marks). Raises BadFile."""
    from python_calamine import CalamineError, PasswordError, SheetTypeEnum, load_workbook

    try:
        refuse_other_forms(path)
        book = load_workbook(str(path))
        sheets = [sheet.name for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
        if not sheets:
            raise BadFile(str(path), "has no worksheet", "put the table in one")
        marks = marks_of(path, sheets[0], most_rows, most_columns)
        cells = book.get_sheet_by_name(sheets[0]).to_python(skip_empty_area=False)
        for (row, column), text in marks.texts.items():
            if row < len(cells):
                cells[row] += [""] * (column + 1 - len(cells[row]))
                cells[row][column] = text
        return sheets[0], len(sheets), cells, marks
    except PasswordError:
        raise BadFile(str(path), "is protected by a password", "save it without one") from None
    except (CalamineError, zipfile.BadZipFile, ElementTree.ParseError, expat.ExpatError, *DAMAGED) as error:
        what = f"is no sound workbook ({type(error).__name__})"
        raise BadFile(str(path), what, "open it in a spreadsheet program and save it anew") from None


DAMAGED = (KeyError, ValueError, StopIteration, EOFError, NotImplementedError, RuntimeError, OSError, zlib.error)
"""What parts that lack something, or are not what they should be, make the readers raise."""
