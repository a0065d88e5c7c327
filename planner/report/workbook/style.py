"""Looks of the cells, and how texts and formulas are put into them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from planner.report.workbook.names import FAR, LEGAL

LONGEST_TEXT = 32_000
"""Letters of a cell, a little under the limit of a spreadsheet."""
UNIT_FORMATS = {
    "s": "[=0]0;[>=0.001]#,##0.000000;0.000E+00",
    "B": "[>=1000]#,##0;[<=-1000]-#,##0;General",
    "B/s": "0.000E+00",
    "FLOP": "0.000E+00",
    "FLOP/s": "0.000E+00",
    "USD": "#,##0.0000",
    "USD/s": "0.000000",
    "1/s": "#,##0.000",
    "headline ms": "[>=1000]#,##0;[>=10]0.0;0.000",
    "headline GB": "#,##0.00",
    "headline s": "[>=1000]#,##0;[>=10]0.0;0.000",
    "headline 1/s": "[>=1000]#,##0;[>=10]0.0;0.000",
    "headline USD/h": "#,##0.00",
    "headline USD": "[>=1000]#,##0;[>=10]0.00;0.0000",
}
"""How values of a unit are shown; plain counts as they are."""
EDIT, WORD, USUAL, FOLLOWS, FIXED = "edit", "word", "usual", "follows", "fixed"
LOOKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "title": {"bold": True, "font_size": 14},
    "note": {"italic": True, "font_color": "#595959"},
    "head": {"bold": True, "bottom": 1, "bg_color": "#D9E1F2"},
    "section": {"bold": True, "top": 1},
    "text": {"text_wrap": False},
    "wrap": {"text_wrap": True, "valign": "top"},
    EDIT: {"bg_color": "#FFF2CC", "font_color": "#0000FF", "border": 1, "border_color": "#BFBFBF"},
    WORD: {"bg_color": "#FFF2CC", "font_color": "#0000FF", "border": 1, "border_color": "#BFBFBF", "align": "right"},
    USUAL: {"bg_color": "#FFF9E5", "font_color": "#0000FF", "italic": True, "border": 4, "border_color": "#BFBFBF"},
    FOLLOWS: {"bg_color": "#EDEDED"},
    FIXED: {"font_color": "#7F7F7F", "align": "right"},
    "unit": {"indent": 1},
    "check": {"bold": True, "font_color": "#C00000"},
    "check, wrapped": {"bold": True, "font_color": "#C00000", "text_wrap": True, "valign": "top"},
    "legal": {"bold": True, "font_color": "#00803C"},
    "warning": {"bold": True, "font_color": "#B45F06"},
    "headline": {"bold": True, "align": "right"},
}


@dataclass
class Page:
    """One sheet of a workbook with its looks."""

    book: Any
    sheet: Any
    name: str
    looks: dict[tuple[str, str], Any] = field(default_factory=dict)

    def look(self, look: str = "plain", unit: str = "") -> Any:
        """The format of a look, with the number format of a unit."""
        key = (look, unit)
        if key not in self.looks:
            shown = UNIT_FORMATS.get(f"{look} {unit}") or UNIT_FORMATS.get(unit)
            numbers = {"num_format": shown} if shown else {}
            self.looks[key] = self.book.add_format({**LOOKS[look], **numbers})
        return self.looks[key]

    def text(self, row: int, column: int, text: str, look: str = "text") -> None:
        """A text, never read as a formula or a link; cut where a cell ends."""
        self.sheet.write_string(row, column, text[:LONGEST_TEXT], self.look(look))

    def number(self, row: int, column: int, value: float, unit: str = "", look: str = "plain") -> None:
        """A number."""
        self.sheet.write_number(row, column, value, self.look(look, unit))

    def formula(
        self, row: int, column: int, formula: str, value: float | str, unit: str = "", look: str = "plain"
    ) -> None:
        """A formula with the value it has now, for viewers that work nothing out."""
        known = value if isinstance(value, str) or math.isfinite(value) else "#NUM!"
        self.sheet.write_formula(row, column, formula, self.look(look, unit), known)

    def check(self, row: int, column: int, formula: str, value: str, look: str = "check") -> None:
        """A check: red sentences, green where it holds the word for legal."""
        self.formula(row, column, formula, value, look=look)
        rule = {"type": "cell", "criteria": "==", "value": f'"{LEGAL}"', "format": self.look("legal")}
        self.sheet.conditional_format(row, column, row, column, rule)
        warns = {"type": "text", "criteria": "begins with", "value": FAR, "format": self.look("warning")}
        self.sheet.conditional_format(row, column, row, column, warns)

    def unit(self, row: int, column: int, unit: str) -> None:
        """A unit beside its value; a plain count has none."""
        self.text(row, column, "" if unit in ("1", "word") else unit, "unit")

    def heads(self, row: int, *texts: str) -> None:
        """A row of column heads."""
        for column, text in enumerate(texts):
            self.text(row, column, text, "head")

    def widths(self, *widths: float) -> None:
        """Widths of the columns, in letters."""
        for column, width in enumerate(widths):
            self.sheet.set_column(column, column, width)

    def at(self, row: int, column: int) -> str:
        """'=Sheet!$A$1' of a cell, for a defined name."""
        return f"='{self.name}'!{place(row, column, fixed=True)}"


def place(row: int, column: int, *, fixed: bool = False) -> str:
    """'C12', or '$C$12'."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    return str(xl_rowcol_to_cell(row, column, row_abs=fixed, col_abs=fixed))
