"""What can go wrong, and the exit code each leaf carries.

    PlannerError
    |-- BadInput            2   the question cannot be asked as it stands
    |   |-- UnknownName     2   no such model, system, stack, key or option value
    |   |-- BadFile         2   a file that cannot be read as what it should be
    |   |-- BadSpec         2   a spec file that reads but does not say what it must
    |   |-- BadUnit         2   a number without its unit, or with the wrong one
    |   |-- BadLayout       2   a layout this model or system cannot have
    |   `-- BadWorkload     2   lengths, loads or targets that mean nothing
    `-- Infeasible          3   a valid question to which nothing fits

Every message has three short parts: where (file, key, flag), what is wrong (value and limit), what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum
from reprlib import Repr


class ExitCode(IntEnum):
    """Exit codes of the command line; part of its interface."""

    DONE = 0
    FAULT = 1
    BAD_INPUT = 2
    INFEASIBLE = 3


class PlannerError(Exception):
    """Base of everything this package raises on purpose."""

    exit_code = ExitCode.BAD_INPUT

    def __init__(self, where: str, what: str, do: str = "") -> None:
        self.where, self.what, self.do = one_line(where), one_line(what), one_line(do)
        super().__init__(str(self))

    @property
    def told(self) -> str:
        """What is wrong and what to do, where the reader knows the place."""
        return self.what + (f"; {self.do}" if self.do else "")

    def __str__(self) -> str:
        return f"{self.where}: {self.told}"


class BadInput(PlannerError):
    """The question cannot be asked as it stands."""


class UnknownName(BadInput):
    """No such model, system, stack, key or option value."""


class BadFile(BadInput):
    """A file that cannot be read as what it should be."""


class BadSpec(BadInput):
    """A spec file that reads but does not say what it must."""


class BadUnit(BadInput):
    """A number without its unit, or with the wrong one."""


class BadLayout(BadInput):
    """A layout this model or system cannot have."""


class BadWorkload(BadInput):
    """Lengths, loads or targets that mean nothing."""


class Infeasible(PlannerError):
    """A valid question to which nothing fits."""

    exit_code = ExitCode.INFEASIBLE


LONGEST_MESSAGE_PART = 400
NAMES_OFFERED = 6


def one_line(text: object) -> str:
    """Any text as one printable line: control characters escaped, white space folded, the middle of a long one cut."""
    whole, most = str(text), 4 * LONGEST_MESSAGE_PART
    folded = " ".join((whole if len(whole) <= most else f"{whole[: most // 2]} ... {whole[-most // 2 :]}").split())
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in folded)
    half = LONGEST_MESSAGE_PART // 2
    return printable if len(printable) <= LONGEST_MESSAGE_PART else f"{printable[:half]} ... {printable[-half:]}"


CUT = Repr()
CUT.maxlevel, CUT.maxlist, CUT.maxtuple, CUT.maxdict = 4, 8, 8, 8
CUT.maxstring = CUT.maxlong = CUT.maxother = 200


def shown(value: object) -> str:
    """A value as a message quotes it: lists, mappings and texts cut, however long they are."""
    return CUT.repr(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """'did you mean X?' when something close exists, what begins with the name first; else the known names."""
    names = sorted(known)
    begun = [known for known in names if name and known.lower().startswith(name.lower())]
    close = difflib.get_close_matches(name.lower()[:80], begun or names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    part = [known for known in names if name and name.lower() in known.lower()]
    if part:
        return "did you mean one of " + ", ".join(part[:NAMES_OFFERED]) + "?"
    return "known: " + ", ".join(names) if names else "none is known"
