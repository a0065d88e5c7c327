"""The few operations under the formulas: exact where they must be, and the same for every reader."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import algebra, nodes
from planner.evaluate.compiled import HEAD, NumpyPrinter
from planner.evaluate.formula_text import NameLatex, latex, unicode

X, Y, Z = sympy.symbols("x y z", real=True)
NODES = {
    "CeilDiv": (algebra.ceil_div, (525.0, 75.0), 7.0, r"\left\lceil \mathrm{x} / \mathrm{y} \right\rceil"),
    "Whole": (algebra.whole, (7.9,), 7.0, r"\left\lfloor \mathrm{x} \right\rfloor"),
    "Log2Ceil": (algebra.log2_ceil, (1025.0,), 11.0, r"\left\lceil \log_2 \mathrm{x} \right\rceil"),
    "Soft15": (algebra.soft15, (1.0, 4.0), 9.0 ** (2 / 3), r"\left( \mathrm{x}^{3/2} + \mathrm{y}^{3/2} \right)^{2/3}"),
    "Soft2": (algebra.soft2, (3.0, 4.0), 5.0, r"\sqrt{ \mathrm{x}^2 + \mathrm{y}^2 }"),
    "Root": (algebra.root, (6.25,), 2.5, r"\sqrt{ \mathrm{x} }"),
    "Most": (algebra.maximum, (3.0, 4.0, -1.0), 4.0, r"\max\left(\mathrm{x}, \mathrm{y}, \mathrm{z}\right)"),
    "Least": (algebra.minimum, (3.0, 4.0, -1.0), -1.0, r"\min\left(\mathrm{x}, \mathrm{y}, \mathrm{z}\right)"),
}
HALVES = {"Raised15", "Joined15"}
"""The two halves of a Soft15: nodes of the compiled kernel alone, no formula is written in them."""
matrix = pytest.mark.parametrize("name", NODES)
few = settings(derandomize=True, max_examples=100, deadline=None)


def symbolic(name: str) -> Any:
    """The operation on symbols."""
    operation, values, _, _ = NODES[name]
    return operation(*(X, Y, Z)[: len(values)])


def compiled(expression: Any) -> Any:
    """The expression as the numpy text of a kernel, ready to call with x, y, z."""
    space: dict[str, Any] = {}
    exec(f"{HEAD}\ndef f(x, y=None, z=None):\n    return {NumpyPrinter().doprint(expression)}\n", space)
    return space["f"]


def test_every_node_is_in_the_matrix() -> None:
    """A new node without a row here would be untested in every printer."""
    own = {name for name, kind in vars(nodes).items() if isinstance(kind, type) and issubclass(kind, nodes.Node)}
    assert own - {"Node"} - HALVES == set(NODES)


@matrix
def test_floats(name: str) -> None:
    """Floats in, the right float out."""
    operation, values, expected, _ = NODES[name]
    assert isinstance(operation(*values), float)
    assert operation(*values) == pytest.approx(expected, rel=1e-15)


@matrix
def test_arrays(name: str) -> None:
    """Arrays in, the same numbers out, broadcast like any numpy operation."""
    operation, values, expected, _ = NODES[name]
    columns = [np.full((3, 1), values[0]), *(np.full(2, v) for v in values[1:])]
    found = operation(*columns)
    assert isinstance(found, np.ndarray)
    assert np.allclose(found, expected, rtol=1e-15, atol=0)
    assert found.shape == ((3, 2) if len(values) > 1 else (3, 1))


@matrix
def test_arrays_beside_plain_numbers(name: str) -> None:
    """One array among plain numbers is enough for the array reader."""
    operation, values, expected, _ = NODES[name]
    found = operation(np.asarray([values[0], values[0]]), *values[1:])
    assert np.allclose(found, expected, rtol=1e-15, atol=0)


@matrix
def test_symbols_stay_what_they_are(name: str) -> None:
    """On symbols the operation is its own node, and sympy rearranges nothing in it."""
    expression = symbolic(name)
    assert type(expression).__name__ == name
    assert list(expression.args) == list((X, Y, Z)[: len(expression.args)])
    assert (expression + 1).xreplace({X: Y}).has(getattr(nodes, name))


@matrix
def test_nodes_evaluate_to_the_same_number(name: str) -> None:
    """A node whose symbols are replaced by numbers evaluates to what the floats give."""
    operation, values, _, _ = NODES[name]
    expression = symbolic(name).subs(dict(zip((X, Y, Z), map(sympy.Float, values), strict=False)))
    assert float(expression.evalf()) == pytest.approx(operation(*values), rel=1e-14)


@matrix
def test_compiled_numpy_text(name: str) -> None:
    """The text a kernel is compiled from gives the same numbers, on floats and on arrays."""
    operation, values, _, _ = NODES[name]
    function = compiled(symbolic(name))
    assert float(function(*values)) == pytest.approx(operation(*values), rel=1e-15)
    assert np.allclose(function(*(np.full(4, v) for v in values)), operation(*values), rtol=1e-15, atol=0)


def test_the_halves_of_a_soft_maximum_join_to_it() -> None:
    """Raised and joined again, two limits give their soft maximum, on the page, in numbers and compiled."""
    whole = nodes.Joined15(nodes.Raised15(X), nodes.Raised15(Y))
    expected = algebra.soft15(3.0, 7.0)
    assert float(compiled(whole)(3.0, 7.0)) == pytest.approx(expected, rel=1e-15)
    assert float(whole.subs({X: 3.0, Y: 7.0}).evalf()) == pytest.approx(expected, rel=1e-14)
    assert NameLatex().doprint(whole).count("3/2") == 2


@matrix
def test_latex(name: str) -> None:
    """Every node is written for a page."""
    assert NameLatex().doprint(symbolic(name)) == NODES[name][3]


@matrix
def test_latex_of_a_power(name: str) -> None:
    """A power of a node keeps its exponent outside."""
    text = NameLatex().doprint(sympy.Pow(symbolic(name), 3))
    assert text.endswith("}^{3}")
    assert text.count("{") == text.count("}")


@matrix
def test_text_for_a_terminal_names_no_numpy(name: str) -> None:
    """A formula on the terminal has no numpy function names."""
    text = unicode(symbolic(name))
    assert "maximum" not in text
    assert "minimum" not in text
    assert "*" not in text


@pytest.mark.parametrize("name", ["CeilDiv", "Log2Ceil", "Soft15", "Soft2"])
def test_latex_keeps_the_brackets_of_a_sum(name: str) -> None:
    """A sum under a power, a logarithm or a quotient stays in brackets on the page."""
    expression = NODES[name][0](X + Y, *([Z] if len(NODES[name][1]) > 1 else []))
    assert r"\left(\mathrm{x} + \mathrm{y}\right)" in NameLatex().doprint(expression)


def test_formulas_are_written_for_people() -> None:
    """A product has a dot between its names, a power a hat: names never run together."""
    formula = X * Y * (1 - Y / Z) ** X
    assert "**" not in unicode(formula)
    assert "··" not in unicode(formula)
    assert "^x" in unicode(formula)
    assert r"\mathrm{x} \cdot \mathrm{y}" in latex("some_name", formula)
    assert latex("some_name", X).startswith(r"\mathrm{some\_name} = ")


def test_nested_quotients_keep_their_brackets() -> None:
    """ceil((a + b) / (c d)) is compiled with the brackets it needs."""
    expression = algebra.ceil_div(X + Y, Y * Z)
    assert float(compiled(expression)(7.0, 2.0, 3.0)) == 2.0
    assert float(compiled(algebra.ceil_div(X / Y, Z))(100.0, 3.0, 5.0)) == 7.0
    assert float(compiled(algebra.ceil_div(X, Y / Z))(10.0, 3.0, 2.0)) == 7.0
    assert float(compiled(algebra.ceil_div(-X, Y - Z))(10.0, 5.0, 2.0)) == -3.0


def test_ceil_div_is_exact_for_whole_numbers() -> None:
    """ceil(a / b) of whole numbers is never one too many: 525 / 75 is 7, not 8."""
    a, b = np.meshgrid(np.arange(600.0), np.arange(1.0, 300.0))
    exact = -(-a.astype(int) // b.astype(int))
    assert np.array_equal(algebra.ceil_div(a, b), exact)
    assert np.array_equal(compiled(algebra.ceil_div(X, Y))(a, b), exact)
    floats = [[algebra.ceil_div(float(i), float(j)) for i in range(600)] for j in range(1, 300)]
    assert np.array_equal(floats, exact)
    assert algebra.ceil_div(525, 75) == 7


def test_ceil_div_of_symbols_is_exact() -> None:
    """The node itself never turns a quotient into a product with a rounded reciprocal."""
    node = nodes.CeilDiv(X, Y)
    for a, b in [(525, 75), (599, 299), (49, 49), (98, 49), (3, 7), (0, 5), (590, 59)]:
        assert float(node.subs({X: a, Y: b}).evalf()) == -(-a // b)


@few
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 1000))
def test_ceil_div_on_fractions(a: int, b: int, c: int) -> None:
    """On fractions (half a chunk, a third of a piece) the ceiling is that of the exact quotient, rounding apart."""
    x, y = a / c, float(b)
    exact = Fraction(a, c) / b
    near = math.isclose(exact, round(exact), rel_tol=1e-12)
    assert algebra.ceil_div(x, y) == math.ceil(exact) or near
    assert float(algebra.ceil_div(np.asarray([x]), y)[0]) == algebra.ceil_div(x, y)


@pytest.mark.parametrize("power", range(41))
def test_log2_ceil_at_powers_of_two(power: int) -> None:
    """log2 of a power of two is that power for every reader, and one above it counts one more."""
    value = float(2**power)
    for read in (
        algebra.log2_ceil,
        lambda v: float(algebra.log2_ceil(np.asarray([v]))[0]),
        lambda v: float(compiled(algebra.log2_ceil(X))(v)),
        lambda v: float(nodes.Log2Ceil(X).subs(X, sympy.Float(v)).evalf()),
    ):
        assert read(value) == power
        if power:
            assert read(value + 1) == power + 1
            assert read(value - 0.5) == power


@few
@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9))
def test_soft_maxima_lie_between_the_limits(x: float, y: float) -> None:
    """max <= p = 2 <= p = 1.5 <= sum, and one limit alone is itself."""
    four = [algebra.soft_max(norm, x, y) for norm in ("max", "2", "1.5", "1")]
    assert all(a <= b * (1 + 1e-12) for a, b in pairwise(four))
    assert four[0] == max(x, y)
    assert four[3] == x + y
    for norm in algebra.NORMS:
        assert algebra.soft_max(norm, x, 0.0) == pytest.approx(x, rel=1e-12)
        assert algebra.soft_max(norm, x, y) == pytest.approx(algebra.soft_max(norm, y, x), rel=1e-14)


@pytest.mark.parametrize("norm", algebra.NORMS)
def test_soft_max_scales(norm: str) -> None:
    """Twice both limits is twice the time: the norm has no scale of its own."""
    assert algebra.soft_max(norm, 6.0, 14.0) == pytest.approx(2 * algebra.soft_max(norm, 3.0, 7.0), rel=1e-14)


def test_one_value_chooses_the_reader() -> None:
    """Symbols go before arrays, arrays before numbers."""
    assert algebra.reader(1.0, 2) == "number"
    assert algebra.reader(1.0, np.ones(2)) == "array"
    assert algebra.reader(X, 2.0) == "symbol"
    assert algebra.reader(2.0, X + 1) == "symbol"


def test_several_is_zero_on_one_rank_alone() -> None:
    """One rank needs no exchange; any more need one."""
    assert [algebra.several(float(n)) for n in (1, 2, 3, 64)] == [0, 1, 1, 1]
    assert float(compiled(algebra.several(X))(1.0)) == 0
    assert float(compiled(algebra.several(X))(8.0)) == 1


@pytest.mark.parametrize(
    ("total", "share", "draws", "found"), [(8.0, 1.0, 3.0, 8.0), (1.0, 1.0, 1.0, 1.0), (5.0, 1.0, 0.0, 0.0)]
)
def test_distinct_where_every_pick_takes_everything(total: float, share: float, draws: float, found: float) -> None:
    """A share of 1 (one rank, or top-k of all experts) is no logarithm of zero."""
    assert algebra.distinct(total, share, draws) == found
    assert np.array_equal(algebra.distinct(np.full(2, total), np.full(2, share), draws), np.full(2, found))
    assert float(compiled(algebra.distinct(X, Y, Z))(total, share, draws)) == found
