"""Names of modules and the lists that pick some of them: exact paths, globs, regular expressions, bare last words.

Checkpoints wrap the same decoder differently ('model.layers', 'language_model.model.layers', 'backbone.layers'), so
names are compared without the wrapper.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from planner.specs.huggingface.patterns import MOST_PATTERNS, Allowance, compiled

WRAPPER = re.compile(r"(?:(?:model|language_model|backbone|text_model|thinker)\.)+")
WRAPPED = ("", "model.", "model.language_model.", "language_model.model.", "backbone.")
"""How a bare path is spelled in full, for regular expressions that ask for a wrapper."""
MOST_STARTS = 10 * MOST_PATTERNS


def bare(path: str) -> str:
    """'language_model.model.layers.0.mlp' -> 'layers.0.mlp'."""
    wrapper = WRAPPER.match(path)
    return path if wrapper is None else path[wrapper.end() :]


@dataclass(frozen=True)
class Names:
    """A list of module names, ready to be asked."""

    exact: frozenset[str]
    starts: tuple[str, ...]
    globs: re.Pattern[str] | None
    patterns: tuple[re.Pattern[str], ...]
    allowance: Allowance = field(default_factory=Allowance)

    @classmethod
    def of(cls, entries: Iterable[str]) -> Names:
        """Entries as written: 're:...', globs with '*', plain paths. Raises ValueError for a bad expression."""
        exact: set[str] = set()
        starts: list[str] = []
        globs: list[str] = []
        patterns: list[re.Pattern[str]] = []
        for entry in entries:
            if len(starts) > MOST_STARTS or len(globs) // 2 + len(patterns) > MOST_PATTERNS:
                raise ValueError(f"more patterns than the {MOST_PATTERNS:,} read here")
            if entry.startswith("re:"):
                patterns.append(compiled(entry[3:]))
            elif entry.endswith("*") and not set(entry[:-1]) & set("*?["):
                starts.append(bare(entry[:-1]))
            elif set(entry) & set("*?["):
                globs += [fnmatch.translate(bare(entry)), fnmatch.translate(bare(entry) + ".*")]
            else:
                exact.add(bare(entry))
        joined = re.compile("|".join(globs)) if globs else None
        return cls(frozenset(exact), tuple(starts), joined, tuple(patterns))

    def match(self, name: str) -> bool:
        """Whether the list names this module (bare), one it is inside of, its last words, or any one word of it.

        Raises ValueError where its patterns take too long.
        """
        if self.starts and name.startswith(self.starts):
            return True
        if self.exact and any(part in self.exact for part in (*ancestors(name), *endings(name), *name.split("."))):
            return True
        if self.globs is not None and self.allowance.any((self.globs,), (name, f"model.{name}")):
            return True
        return bool(self.patterns) and self.allowance.any(self.patterns, [wrapper + name for wrapper in WRAPPED])


def ancestors(name: str) -> list[str]:
    """'a.b.c' -> 'a.b.c', 'a.b', 'a'."""
    found = [name]
    while (cut := name.rfind(".")) > 0:
        name = name[:cut]
        found.append(name)
    return found


def endings(name: str) -> list[str]:
    """'a.b.c' -> 'b.c', 'c'."""
    found = []
    while (cut := name.find(".")) >= 0:
        name = name[cut + 1 :]
        found.append(name)
    return found


def among_experts(name: str) -> bool:
    """Whether a module is one of the routed experts, or all of them stored together."""
    return ".experts" in name


def is_head(name: str) -> bool:
    """Whether a module is the output head."""
    return name in ("lm_head", "head")


ROUTERS = ("gate", "router", "shared_expert_gate")


def stays_plain(name: str) -> bool:
    """What no scheme in use quantises unless it says so by name: norms, convolutions, tables, routers, vectors."""
    last = name[name.rfind(".") + 1 :]
    if last in ROUTERS or last.endswith(("conv1d", "bias", "A_log")) or "norm" in last or "embed" in last:
        return True
    return ".router." in name
