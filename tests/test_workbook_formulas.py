"""Expressions as a spreadsheet works them out: every node and trap, in one workbook that LibreOffice recalculates."""

import math
from collections.abc import Callable
from typing import Any

import openpyxl
import pytest
import sympy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spreadsheet import recalculated
from xlsxwriter import Workbook

from planner.errors import BadInput
from planner.evaluate.tape import number
from planner.nodes import CeilDiv, Joined15, Least, Log2Ceil, Most, Node, Raised15, Root, Soft2, Soft15, Whole
from planner.report.workbook.formula import CALLS, DEEPEST_FORMULA, FORMS, LONGEST_FORMULA, chosen, formula

X, Y, N = (sympy.Symbol(name, real=True) for name in "xyn")
"""x, y: any size; n: a whole number."""
HELD = sympy.Mul(-1, sympy.Pow(X, 2), evaluate=False)
NODES = {
    "ceil": CeilDiv(N, 7),
    "ceil-of-a-product": CeilDiv(N * 8, 8),
    "ceil-of-a-sum": CeilDiv(N + 3, Most(N - 4, 1)),
    "floor": Whole(Root(N)),
    "floor-below-zero": Whole(-Root(N)),
    "log2": Log2Ceil(N),
    "soft15": Soft15(X, Y),
    "soft2": Soft2(X / Y, Y / X),
    "raised15": Raised15(X + Y),
    "joined15": Joined15(Raised15(X), Raised15(Y)),
    "root": Root(X * Y),
    "root-of-a-difference": Root(Most(X - Y, 0)),
    "most": Most(X - Y, Y - X, 0),
    "least": Least(X, Y, N),
}
PLAIN = {
    "minus-a-square": HELD,
    "minus-a-square-plus": HELD + Y,
    "a-difference-of-differences": sympy.Add(X, -sympy.Add(Y, -N, evaluate=False), evaluate=False),
    "a-quotient": X / (Y * N),
    "one-over": 1 / X,
    "one-over-a-square": X**-2,
    "power-of-a-power": sympy.Pow(sympy.Pow(X, 3, evaluate=False), 2, evaluate=False),
    "power-to-a-power": sympy.Pow(2, sympy.Pow(sympy.Rational(1, 2), 2, evaluate=False) * N / N, evaluate=False),
    "small-base": (1 - sympy.Rational(1, 56)) ** N,
    "square-root": sympy.sqrt(X),
    "fractions": sympy.Rational(2, 3) * X - sympy.Rational(1, 3) * Y,
    "negative-numbers": -3 * X + sympy.Float("-2.5e-7") * Y,
    "large-numbers": X * sympy.Float("1e22") / Y,
    "minus-a-bracket": -(X + Y) / (X * Y),
    "logarithm": sympy.log(X) * sympy.exp(-Y / (X + Y)),
}
BRANCHES: dict[str, tuple[Any, Callable[[float, float, float], float]]] = {
    "less": (sympy.Piecewise((X, X < Y), (Y + 1, True)), lambda x, y, n: x if x < y else y + 1),
    "nested": (
        sympy.Piecewise((1, sympy.And(X >= Y, N > 3)), (2, sympy.Or(sympy.Eq(N, 1), X < 1)), (3, True)),
        lambda x, y, n: 1 if x >= y and n > 3 else 2 if n == 1 or x < 1 else 3,
    ),
    "several": (sympy.Max(X, Y) - sympy.Min(X, Y), lambda x, y, n: abs(x - y)),
}
WHOLE = [1, 2, 3, 7, 8, 14, 49, 525, 1024, 2**20, 2**30 + 1]


def drawn() -> list[tuple[float, float, int]]:
    """Values of (x, y, n) as hypothesis draws them, and every whole number that is near a trap."""
    found: list[tuple[float, float, int]] = [(3.7, 0.2, n) for n in WHOLE]
    sizes = st.floats(min_value=1e-9, max_value=1e15)

    @settings(max_examples=30, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(x=sizes, y=sizes, n=st.integers(1, 10**6))
    def draw(x: float, y: float, n: int) -> None:
        found.append((x, y, n))

    draw()
    return found


@pytest.fixture(scope="module")
def worked_out(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Any]:
    """(expression, line) -> what the spreadsheet makes of it."""
    folder = tmp_path_factory.mktemp("formulas")
    file, values = folder / "formulas.xlsx", drawn()
    every = {**NODES, **PLAIN, **{name: form for name, (form, _) in BRANCHES.items()}}
    with Workbook(str(file)) as book:
        sheet = book.add_worksheet()
        for row, (x, y, n) in enumerate(values):
            sheet.write_row(row, 0, (x, y, n))
            at = {"x": f"A{row + 1}", "y": f"B{row + 1}", "n": f"C{row + 1}"}
            for column, (name, form) in enumerate(every.items(), 3):
                sheet.write_formula(row, column, formula(form, at.__getitem__, name))
    (made,) = recalculated([file], folder)
    rows = list(openpyxl.load_workbook(made, data_only=True).worksheets[0].values)
    return {(name, line): rows[line][column] for column, name in enumerate(every, 3) for line in range(len(values))}


@pytest.mark.parametrize("name", [*NODES, *PLAIN, *BRANCHES])
def test_a_spreadsheet_reads_a_formula_as_the_nodes_do(name: str, worked_out: dict[tuple[str, int], Any]) -> None:
    """Nodes by their own `number`, the rest by the same floats."""
    for line, (x, y, n) in enumerate(drawn()):
        if name in BRANCHES:
            wanted = BRANCHES[name][1](x, y, n)
        else:
            wanted = number({**NODES, **PLAIN}[name], {"x": x, "y": y, "n": float(n)})
        found = worked_out[name, line]
        assert isinstance(found, (int, float)), f"{name} at {x, y, n}: {found}"
        assert math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12 * max(x, y)), f"{name} at {x, y, n}"


def test_a_choice_of_formulas_is_by_the_word_in_a_cell() -> None:
    """The last form stands for any other word."""
    text = chosen("A1", [(("bf16",), X), (("fp8", "int8"), Y), (("int4",), N)], str.upper, "latent")
    assert text == '=IF(A1="bf16",X,IF(OR(A1="fp8",A1="int8"),Y,N))'


def test_a_formula_no_cell_can_hold_is_refused() -> None:
    """Over the letters or the levels of a cell."""
    long = sympy.Add(*(sympy.Symbol(f"quantity_number_{i}", real=True) for i in range(600)))
    with pytest.raises(BadInput, match=f"a cell holds {LONGEST_FORMULA}"):
        formula(long, str, "memory_used_bytes")
    deep: Any = X
    for _ in range(DEEPEST_FORMULA + 1):
        deep = Root(1 + deep)
    with pytest.raises(BadInput, match=f"a cell holds {DEEPEST_FORMULA}"):
        formula(deep, str, "memory_used_bytes")


def test_every_node_has_a_form() -> None:
    """A node added to planner.nodes needs its form in a spreadsheet, and a case here."""
    kinds = set(Node.__subclasses__())
    assert kinds <= {*CALLS, *FORMS}
    assert kinds <= {type(part) for form in NODES.values() for part in sympy.preorder_traversal(form)}


def test_what_has_no_form_is_refused() -> None:
    """A function that spreadsheets do not share is a fault of ours, not a wrong number."""
    with pytest.raises(ValueError, match="no form in a spreadsheet"):
        formula(sympy.sin(X), str, "wave")


@pytest.mark.parametrize(("concurrency", "arrivals"), [(1, "steady"), (1, "waves"), (512, "steady")])
def test_arrivals_stay_open_where_they_give_the_same_number(concurrency: int, arrivals: str) -> None:
    """Alone nobody waits, and a saturated load waits the longest either way: the formulas differ all the same."""
    from planner.evaluate.case import placed
    from planner.evaluate.forms import ARRIVALS, forms_of
    from planner.specs.workload import Workload

    job = Workload(isl=1024, osl=100, concurrency=concurrency, arrivals=arrivals)
    found = forms_of(placed("llama-3.1-8b", "h100-8", "TP1", job, None, None)[3])
    assert [name for name, formula in found.formulas.items() if formula.choice == ARRIVALS] == ["serving_wait_s"]
