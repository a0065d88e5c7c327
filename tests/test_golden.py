"""Golden cases: derived by hand, published by others, pinned to today's value. One file of YAML never mixes them."""

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import call

GOLDEN = Path(__file__).resolve().parent / "golden"
SORTS = ("derived", "published", "pinned")
NEEDED = {"id", "args", "key", "value", "rtol", "source"}


def cases() -> list[tuple[str, Path, dict[str, Any]]]:
    """(sort, file, case) of every golden case."""
    return [
        (sort, path, case)
        for sort in SORTS
        for path in sorted((GOLDEN / sort).glob("*.yaml"))
        for case in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


CASES = cases()


@cache
def answer(args: str) -> Any:
    """The JSON of one command; a question without a feasible answer still has one."""
    found = call(*shlex.split(args), "--json")
    assert found.code in (0, 3), found.err
    return json.loads(found.out)


def dig(data: Any, key: str) -> Any:
    """The value under a dotted key; keys of the data may hold dots themselves, list items are numbered."""
    parts = key.split(".")
    while parts:
        if isinstance(data, list):
            data, parts = data[int(parts[0])], parts[1:]
            continue
        size = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in data), 0)
        assert size, f"{key}: no {parts[0]} among {', '.join(data)}"
        data, parts = data[".".join(parts[:size])], parts[size:]
    return data


def agrees(found: Any, value: Any, rtol: float) -> bool:
    """Numbers within rtol (0: exactly), anything else equal."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and isinstance(found, (int, float)):
        return abs(found - value) <= rtol * abs(value)
    return bool(found == value)


def rewrite(path: Path, name: str, value: Any) -> None:
    """Put a new value into the case of this id; every other byte of the file stays."""
    blocks = re.split(r"(?m)^(?=- id: )", path.read_text(encoding="utf-8"))
    (index,) = [i for i, block in enumerate(blocks) if re.match(rf"- id: {re.escape(name)}\s*\n", block)]
    blocks[index], count = re.subn(r"(?m)^  value: .*$", f"  value: {json.dumps(value)}", blocks[index])
    assert count == 1
    path.write_text("".join(blocks), encoding="utf-8")


@pytest.mark.parametrize(("sort", "path", "case"), CASES, ids=[case["id"] for _, _, case in CASES])
def test_golden_case_holds(sort: str, path: Path, case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    """A number somebody worked out, published or pinned is the number the command line prints."""
    found = dig(answer(case["args"]), case["key"])
    if agrees(found, case["value"], case["rtol"]):
        return
    if sort == "pinned" and request.config.getoption("--update-pinned"):
        rewrite(path, case["id"], found)
        return
    off = f", off by {found / case['value'] - 1:+.3e}" if isinstance(found, (int, float)) and case["value"] else ""
    pytest.fail(f"{case['key']} is {found!r} and {case['value']!r} is expected{off}")


def test_golden_ids_are_unique() -> None:
    """Two cases of one id would hide one of them."""
    names = [case["id"] for _, _, case in CASES]
    assert sorted(names) == sorted(set(names))


def test_golden_cases_are_complete() -> None:
    """Every case says where its value comes from, and a derived one shows the arithmetic."""
    for sort, path, case in CASES:
        assert set(case) >= NEEDED, f"{path.name}: {case.get('id')}"
        assert case["source"].strip(), case["id"]
        assert 0 <= case["rtol"] < 1, case["id"]
        if sort == "derived":
            assert case.get("arithmetic", "").strip(), f"{case['id']} shows no arithmetic"


def test_update_touches_only_its_value(tmp_path: Path) -> None:
    """Rewriting a pinned value leaves the rest of its file alone."""
    path = tmp_path / "some.yaml"
    text = "# note\n- id: a\n  args: x\n  value: 1\n  rtol: 0\n\n- id: ab\n  args: y\n  value: 2.5 \n  rtol: 0\n"
    path.write_text(text, encoding="utf-8")
    rewrite(path, "ab", 3.25)
    assert path.read_text(encoding="utf-8") == text.replace("value: 2.5 ", "value: 3.25")


def test_dig_reads_dotted_keys_and_lists() -> None:
    """A key such as range.decode.tpot_s.0 finds its number although the range's own keys hold dots."""
    assert dig({"range": {"decode.tpot_s": [1.0, 2.0]}, "a": {"b": 3}}, "range.decode.tpot_s.1") == 2.0
    assert dig({"a": {"b": 3}}, "a.b") == 3
    with pytest.raises(AssertionError, match="no c"):
        dig({"a": {"b": 3}}, "a.c")


def test_agreement_is_exact_at_rtol_zero() -> None:
    """rtol 0 means equal, and a missing number agrees with none."""
    assert agrees(3, 3, 0)
    assert not agrees(3.0000001, 3, 0)
    assert agrees(1.0005, 1, 1e-3)
    assert not agrees(None, 0, 1e-3)
