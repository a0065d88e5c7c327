"""The README shows real output: every transcript in it is what the command prints today.

`python tests/test_readme.py` writes the transcripts anew.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from planner.cli.app import run

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"<!-- transcript -->\n```console\n\$ (?P<command>planner .*)\n(?P<output>(?:.*\n)*?)```\n")
TIMED = re.compile(r"priced in [0-9.]+ s")


def printed(command: str) -> str:
    """What a command prints, without trailing blanks and with its own duration masked."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run(shlex.split(command)[1:])
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
    return TIMED.sub("priced in 0.2 s", text)


def transcripts() -> dict[str, str]:
    """Command -> output as the README has it."""
    return {match["command"]: match["output"] for match in BLOCK.finditer(README.read_text())}


@pytest.mark.parametrize("command", list(transcripts()))
def test_a_transcript_is_what_the_command_prints(command: str) -> None:
    """A reader gets what the README promises."""
    assert printed(command) == transcripts()[command]


def test_the_readme_has_transcripts() -> None:
    """A change of the README's form cannot empty this test."""
    assert len(transcripts()) >= 4


def test_the_library_example_runs() -> None:
    """The Python block of the README works as it stands."""
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    assert names["best"].decode.tpot_s <= 0.05  # type: ignore[attr-defined]


if __name__ == "__main__":
    text = README.read_text()
    for match in reversed(list(BLOCK.finditer(text))):
        block = f"<!-- transcript -->\n```console\n$ {match['command']}\n{printed(match['command'])}```\n"
        text = text[: match.start()] + block + text[match.end() :]
    README.write_text(text)
