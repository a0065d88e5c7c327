"""What a command loads: listing, checking and helping stay light, and planning never loads the symbolic reader."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import planner

ROOT = Path(__file__).resolve().parent.parent
K3, SYSTEM = "kimi-k3", "zhenwu-m890-supernode"
HEAVY = ("numpy", "sympy")
CONTRACT = (
    "load_model", "load_system", "load_stack", "Layout", "Workload", "Slo", "fit", "estimate", "plan", "sweep", "solve",
    "explain", "PlannerError",
)  # fmt: skip
"""The library's names that others build on."""

PROGRAM = """
import io, sys
from contextlib import redirect_stdout
from planner.cli.app import run
with redirect_stdout(io.StringIO()) as out:
    code = run(sys.argv[1:])
print(code, len(out.getvalue()) > 0, *(name for name in ("numpy", "sympy") if name in sys.modules))
"""


def loaded(program: str, *arguments: str) -> list[str]:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["plan", "--help"],
        ["specs", "list"],
        ["specs", "list", "--json"],
        ["specs", "show", K3],
        ["specs", "show", K3, "--json"],
        ["specs", "show", SYSTEM],
        ["specs", "check", f"model_specs/{K3}.yaml"],
    ],
    ids=" ".join,
)
def test_light_commands_load_neither(arguments: list[str]) -> None:
    """Help, listing, showing and checking specs need neither numpy nor sympy."""
    assert loaded(PROGRAM, *arguments) == ["0", "True"]


POINT = [K3, "--on", SYSTEM, "--isl", "8k", "--osl", "1k", "--layout", "TP8 DP8", "--concurrency", "64"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", K3, "--on", SYSTEM, "--isl", "8k", "--osl", "1k"],
        ["plan", K3, "--on", SYSTEM, "--isl", "8k", "--osl", "1k", "--concurrency", "64", "--json"],
        ["estimate", *POINT],
        ["fit", K3, "--on", SYSTEM, "--layout", "TP8 DP8"],
        ["explain", *POINT],
        ["explain", *POINT, "--tornado"],
        ["solve", *POINT, "--for", "hbm_bandwidth", "--target", "tpot<=30ms"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_pricing_commands_load_no_sympy(arguments: list[str]) -> None:
    """Half a second of symbolic algebra is loaded only where a formula is shown."""
    code, printed, *heavy = loaded(PROGRAM, *arguments)
    assert (code, printed) == ("0", "True")
    assert "sympy" not in heavy


def test_a_formula_does_load_sympy() -> None:
    """The check above can fail: a formula and its derivatives need sympy."""
    assert "sympy" in loaded(PROGRAM, "explain", *POINT, "--sensitivities")
    assert "sympy" in loaded(PROGRAM, "explain", *POINT, "--quantity", "decode_step_s")


def test_the_door_loads_neither() -> None:
    """`import planner` costs nothing until a name is used."""
    program = (
        "import sys, planner; dir(planner); print(*(n for n in ('numpy', 'sympy', 'pydantic') if n in sys.modules))"
    )
    assert loaded(program) == []


def test_records_load_neither() -> None:
    """Loading a model, a system and a stack needs neither numpy nor sympy."""
    program = (
        "import sys, planner; planner.load_model('kimi-k3'); s = planner.load_system('zhenwu-m890-supernode');"
        "planner.load_stack(s.stack); planner.Layout, planner.Workload, planner.Slo, planner.PlannerError;"
        "print(*(n for n in ('numpy', 'sympy') if n in sys.modules))"
    )
    assert loaded(program) == []


def test_the_door_names_what_the_contract_promises() -> None:
    """Every name behind the door is promised or an addition that loads; none that exists is missing."""
    written = {path.stem for path in (ROOT / "planner").rglob("*.py")}
    promised = {name for name in CONTRACT if name not in ("sweep", "solve") or name in written}
    assert promised <= set(planner.__all__)
    assert planner.__all__ == sorted(planner.__all__) == dir(planner)
    for name in planner.__all__:
        assert getattr(planner, name) is not None


def test_an_unknown_name_says_what_the_door_has() -> None:
    """A misspelt name is answered with the names there are."""
    with pytest.raises(AttributeError, match="load_model"):
        planner.estimat  # noqa: B018


def test_no_formula_module_imports_numpy_or_sympy() -> None:
    """Formulas use the operations of planner.algebra, so that every reader can run them."""
    for folder in ("kinds", "model", "specs"):
        for path in (ROOT / "planner" / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"^\s*(import|from) (numpy|sympy|math)\b", text, re.MULTILINE), path
