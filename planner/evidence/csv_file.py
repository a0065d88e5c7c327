"""Tables in CSV files: a header, then rows; lines that begin with # are comments."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from planner.errors import BadFile, nearest

LARGEST_TABLE, MOST_ROWS = 20_000_000, 5_000  # bytes; rows, which take some milliseconds each
MORE = "(more cells than columns)"
"""The column of what a row has beyond its header."""


def records(path: Path, needed: Sequence[str], known: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, cells by column) of every row with something in it. known: all columns there may be; empty: any.

    Raises BadFile for what is no table, a needed column that is missing, one that is not known or is given twice.
    """
    if not exists(path):
        raise BadFile(str(path), "is no file", "give a CSV table")
    if path.stat().st_size > LARGEST_TABLE:
        raise BadFile(str(path), f"is over {LARGEST_TABLE:,} bytes", "split the table")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot be read as text ({error.__class__.__name__})"
        raise BadFile(str(path), what, "save it as UTF-8 CSV") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if not line.startswith("#")]
    reader = csv.reader(line for _, line in lines)
    try:
        header = [name.strip() for name in next(reader, [])]
        missing = [name for name in needed if name not in header]
        if missing:
            raise BadFile(str(path), f"has no column {missing[0]!r}", f"needed: {', '.join(needed)}")
        for name in header:
            if known and name not in known:
                raise BadFile(str(path), f"unknown column {name!r}", nearest(name, known))
            if header.count(name) > 1:
                raise BadFile(str(path), f"column {name!r} is given twice", "give each column once")
        count = 0
        for cells in reader:
            if any(cell.strip() for cell in cells):
                count += 1
                if count > MOST_ROWS:
                    raise BadFile(str(path), f"has over {MOST_ROWS:,} rows", "split the table")
                padded = [cell.strip() for cell in cells] + [""] * (len(header) - len(cells))
                more = {MORE: "yes"} if any(padded[len(header) :]) else {}
                yield lines[reader.line_num - 1][0], dict(zip(header, padded, strict=False)) | more
    except csv.Error as error:
        raise BadFile(str(path), str(error), "save it as plain CSV") from None


def exists(path: Path) -> bool:
    """Whether there is a regular file of this name; a name no file can have is none."""
    try:
        return path.is_file()
    except OSError:
        return False
