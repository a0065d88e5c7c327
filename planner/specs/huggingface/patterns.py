"""Regular expressions out of a config: only those that come to an end soon.

A search that steps back tries every way to share a name among the parts that can stretch. A repeat of what itself
repeats or branches doubles the ways with every letter, so it is refused; the rest are counted, digits for half, since
no name holds many; and all searches of one list have an allowance of time together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter

LONGEST_PATTERN = 200
MOST_PATTERNS = 1000
MOST_CHOICES = 10
"""What a pattern may hold of parts that stretch or branch, two for each and one for digits; ten take half a second at
worst, a real pattern a millionth of that."""
ALLOWANCE_S = 3.0
TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[^(:=!<>P)]*\)|.", re.DOTALL)
REPEAT = re.compile(r"(?:[*+?]|\{\d*,?\d*\})[?+]?")
DIGITS = ("\\d", "[0-9]")
ANYTHING = re.compile(r"(?<!\\)\.\*\$?$")
"""What ends a pattern and never fails, so that no search steps back from it."""
UNREAD = re.compile(r"\(\?(?:[a-wyzA-Z]*x|#)")
"""Comments and free spacing, where a repeat need not stand behind what it repeats."""
HEAD = re.compile(r"\?(?:P?<\w+>|[:=!>]|<[=!]|[a-zA-Z-]*:|\([^)]*\))")


class Allowance:
    """The time all matches of one list may take."""

    def __init__(self) -> None:
        self.left_s = ALLOWANCE_S

    def any(self, patterns: Iterable[re.Pattern[str]], names: Sequence[str]) -> bool:
        """Whether a pattern matches the beginning of a name. Raises ValueError once the time is used up."""
        now = begun = perf_counter()
        end = begun + self.left_s
        found = False
        for pattern in patterns:
            for name in names:
                if pattern.match(name):
                    found = True
                    break
            now = perf_counter()
            if now > end:
                raise ValueError(f"patterns that take more than {ALLOWANCE_S:g} s, the last {pattern.pattern!r}")
            if found:
                break
        self.left_s = end - now
        return found


def compiled(text: str) -> re.Pattern[str]:
    """The pattern. Raises ValueError where it is not sound or could take for ever."""
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"a pattern of {len(text)} characters is longer than the {LONGEST_PATTERN} read here")
    try:
        found = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"a bad pattern: {error}") from None
    if UNREAD.search(text):
        raise ValueError(f"{text!r} has comments or free spacing, which is not read here")
    if choices(text) > MOST_CHOICES:
        raise ValueError(f"{text!r} has too many parts that repeat or branch")
    return found


def choices(text: str) -> int:
    """What a sound pattern holds of parts that stretch or branch. Raises ValueError for a repeat of such a part."""
    outer: list[tuple[int, bool]] = []  # of the groups around: choices before them, whether they branch
    count, branches, inside, last = 0, False, 0, ""
    for token, repeat in tokens(ANYTHING.sub("", text)):
        if token == "(":
            outer.append((count, branches))
            branches = False
        elif token == ")":
            before, around = outer.pop()
            count += 2 * branches
            inside, branches = count - before, around
        elif token == "|":
            branches = True
        if repeat:
            if token == ")" and inside and repeat[0] != "?":
                raise ValueError(f"{text!r} repeats what itself repeats or branches")
            count += 1 if token in DIGITS and last not in DIGITS else 2
        last = token
    return count + 2 * branches


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """(one character, class or bracket; the repeat behind it)."""
    place = 0
    while place < len(text):
        token = TOKEN.match(text, place)
        place = token.end() if token else len(text)
        repeat = REPEAT.match(text, place)
        if token and token[0] == "(":
            head = HEAD.match(text, place)
            place, repeat = head.end() if head else place, None
        if repeat and repeat[0] != "{}":
            place = repeat.end()
        yield token[0] if token else "", repeat[0] if repeat else ""
