"""What the numbers of a workbook come from and how far they can be trusted: static, as written."""

from __future__ import annotations

from importlib.metadata import version

from planner.evaluate.ranges import basis
from planner.report.numbers import share
from planner.report.workbook.names import named
from planner.report.workbook.style import Page
from planner.search.workbook import Contents


def write(page: Page, contents: Contents, row: int) -> int:
    """Write the lines below the headlines; returns the row after them."""
    error, case = contents.case.stack.expected_error, contents.case
    replicas, chips, lent = (named("in", f"layout.{key}") for key in ("replicas", "chips", "lent"))
    values = contents.model.point.values
    copies, each, every = (int(values[f"layout.{key}"]) for key in ("replicas", "chips", "lent"))
    page.text(row, 0, "placed")
    text = f'={replicas}&IF({replicas}=1," replica"," replicas")&" on "&{replicas}*{chips}&" of "&{lent}&" chips lent"'
    now = f"{copies} replica{'' if copies == 1 else 's'} on {copies * each} of {every} chips lent"
    page.formula(row, 1, text, now)
    lines = {
        "range as written": f"static: {basis()}",
        "expected error": f"{error.basis}: {share(error.median_fraction)} median, {share(error.p90_fraction)} at the "
        "90th percentile, within the ranges",
        "model": case.model.name,
        "system": f"{case.system.name}, chip {case.chip.name}",
        "stack": case.stack.name,
        "written by": f"planner {version('capacity-planner')}",
        "repeated by": contents.command,
    }
    for number, (label, text) in enumerate(lines.items(), row + 1):
        page.text(number, 0, label)
        page.text(number, 1, text)
    return row + 1 + len(lines)
