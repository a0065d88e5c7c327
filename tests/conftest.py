"""What the tests share: the command line run in process, and the option that rewrites pinned values."""

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import pytest

# Before typer and rich are imported: the same width, no colour, no spec folder of the user's own.
for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH"):
    os.environ.pop(name, None)
os.environ |= {"COLUMNS": "120", "NO_COLOR": "1", "XDG_CONFIG_HOME": os.devnull}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-pinned", action="store_true", help="rewrite the values of tests/golden/pinned")


@dataclass(frozen=True)
class Answer:
    """What one call of the command line left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Answer]


def call(*arguments: str) -> Answer:
    """Run `planner` with these arguments."""
    from planner.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(arguments))
    return Answer(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def cli() -> Cli:
    """The command line in process: arguments in, exit code and both streams out."""
    return call
