"""`planner export`: the kernel as one file runs without the planner and gives its numbers, also for changed inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from deployments import DEPLOYMENTS, Deployment

import planner
from planner.errors import BadSpec
from planner.evaluate.estimate import HEADLINES, run
from planner.evaluate.exported import SAID, export_python
from planner.evaluate.variables import moved
from planner.specs.library import load_model, load_system

K3, SYSTEM = "kimi-k3", "zhenwu-m890-supernode"
POINT = (K3, "--on", SYSTEM, "--layout", "TP8 DP8", "--isl", "8k", "--osl", "1k", "--concurrency", "256")
JOB = planner.Workload(isl=8192, osl=1024, concurrency=256)
EXACT = 1e-12
CHECKED = ["plain", "pp7", "cp-dcp-pp", "replicas", "speculation", "own-draft", "waves", "two-domains", "every-term"]


def loaded(text: str) -> dict[str, Any]:
    """The names of an exported file."""
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec"), space)
    return space


def alone(folder: Path, code: str) -> Any:
    """What code prints as JSON in an interpreter that has neither this package nor anything of the environment."""
    isolated = (
        "import importlib.util as u, json, sys; assert 'planner' not in sys.modules; "
        "sys.modules['planner'] = None; "
        "s = u.spec_from_file_location('k', 'kernel.py'); k = u.module_from_spec(s); s.loader.exec_module(k); "
    )
    command = [sys.executable, "-I", "-W", "error", "-c", isolated + code]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout)


def test_the_file_runs_alone(cli: Cli, tmp_path: Path) -> None:
    """Its headlines are those of estimate; its own main prints them."""
    out = tmp_path / "kernel.py"
    answer = cli("export", *POINT, "--form", "python", "--out", str(out), "--json")
    assert (answer.code, answer.err) == (0, f"wrote {out}\n")
    assert answer.json["text"] == out.read_text()
    found = alone(tmp_path, "print(json.dumps({n: bool(v) if n == 'feasible' else float(v) "
                            "for n, v in k.headlines().items()}))")  # fmt: skip
    one = planner.estimate(K3, SYSTEM, "TP8 DP8", JOB, draws=10).to_dict()
    assert found.pop("feasible") is True
    assert found.pop("memory_slack_bytes") > 0
    for key, value in found.items():
        wanted = one
        for part in key.split("."):
            wanted = wanted[part]
        assert value == pytest.approx(wanted, rel=EXACT), key
    assert set(HEADLINES) <= set(found)
    printed = subprocess.run([sys.executable, "-I", str(out)], capture_output=True, text=True, check=True).stdout
    assert f"decode.tpot_s: {found['decode.tpot_s']}" in printed


def test_changed_inputs_follow(cli: Cli, tmp_path: Path) -> None:
    """What estimate says of the changed question, one by one and as arrays."""
    headlines = loaded(export_python(K3, SYSTEM, "TP8 DP8", JOB).text)["headlines"]
    for change in ({"isl": 32_768}, {"osl": 100}, {"concurrency": 1024}, {"prefix_hit": 0.5}, {"routing_skew": 1.3}):
        one = planner.estimate(K3, SYSTEM, "TP8 DP8", JOB.model_copy(update=change), draws=10)
        found = headlines(**{f"ask_{name}": value for name, value in change.items()})
        assert found["serving.ttft_s"] == pytest.approx(one.serving.ttft_s, rel=EXACT)
        assert found["decode.tpot_s"] == pytest.approx(one.decode.tpot_s, rel=EXACT)
        assert found["memory.max_concurrency"] == one.memory.max_concurrency
    loads = headlines(ask_concurrency=np.array([1.0, 256.0, 1e6]), ask_isl=[8192, 8192, 8192])
    assert loads["decode.tpot_s"].shape == (3,)
    assert loads["feasible"].tolist() == [True, True, False]
    assert np.isnan(loads["decode.tpot_s"][2])
    assert loads["memory.max_concurrency"][2] < 1e6
    beyond = headlines(ask_concurrency=1e6)
    assert (beyond["feasible"], beyond["decode.tpot_s"], beyond["cost.usd_per_million_output_tokens"]) == (
        False, None, None,
    )  # fmt: skip
    single = headlines(ask_osl=1)
    assert (single["feasible"], single["decode.tpot_s"]) == (True, None)
    assert single["serving.ttft_s"] > 0
    assert loads["decode.tpot_s"][1] == pytest.approx(headlines()["decode.tpot_s"], rel=EXACT)


@pytest.mark.parametrize("deployment", [d for d in DEPLOYMENTS if d.name in CHECKED], ids=lambda d: d.name)
def test_every_input_is_the_planners_own(deployment: Deployment) -> None:
    """Any input moved in the file moves the headlines as it moves the planner's."""
    case, point = deployment.case, deployment.point
    system = load_system(SYSTEM).model_copy(update=deployment.system_changes)
    text = export_python(
        case.model, system, str(deployment.parsed), deployment.workload, stack=case.stack, chips=deployment.lent
    ).text
    file = loaded(text)
    dotted = {name.replace(".", "_"): name for name in point.values}
    assert set(file["INPUTS"]) | set(file["FIXED"]) <= set(dotted)
    for symbol, (value, least, most, kind) in file["INPUTS"].items():
        if symbol in ("ask_length", "draft_steps", "ask_draft_tokens") or least == most:
            continue
        step = 1 if kind == "count" else 0.01 * value
        other = value + step if value + step <= most else value - step
        changed = moved(point, dotted[symbol], other)
        try:
            q = {name: row.value for name, row in run(changed)[0].rows.items()}
        except ZeroDivisionError:
            continue
        found = file["headlines"](**{symbol: other})
        assert found["feasible"] == (q["memory_slack_bytes"] >= 0)
        for key, name in SAID.items():
            if found["feasible"] or key.startswith("memory"):
                assert float(found[key]) == pytest.approx(q[name], rel=1e-9, abs=1e-15), (symbol, key)


def test_what_the_file_says() -> None:
    """Inputs with unit, range, status and source; every quantity with its sentence; nothing of the day it was made."""
    found = export_python(K3, SYSTEM, "TP8 DP8", JOB)
    text = found.text
    assert text.startswith('"""kimi-k3 on zhenwu-m890-supernode, stack sail-tuned, TP8 DP8 EP64, 64 chips.\n')
    assert '    "chip_memory_bandwidth": (4000000000000.0, 0.0, 1e+30, "above"),\n' in text
    assert "    # B/s; 2.8e+12 to 4.9e+12; estimated; " in text
    assert "    # serving_tpot_s [s]: time per output token as served." in text
    assert " Reference: " in text
    assert "import planner" not in text
    body = text[text.index("def kernel") :]
    for name in ("decode_step_s", "memory_stage0_weights_bytes", "serving_wait_s"):
        assert f"\n    {name} = " in body
    assert found.quantities == body.count("\n    # ")
    assert text == export_python(K3, SYSTEM, "TP8 DP8", JOB).text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"ask_concurency": 3}, "ask_concurency is no input; did you mean ask_concurrency?"),
        ({"concurrency": 3}, "concurrency is no input; did you mean ask_concurrency?"),
        ({"layout_tp": 4}, "layout_tp is fixed in this file: export another"),
        ({"zzz": 4}, "zzz is no input; see INPUTS"),
        ({"tp": 4}, "tp is fixed in this file"),
        ({"price": 4}, "did you mean chip_price?"),
        ({"ask_kv_format": "fp8"}, "is chosen by a word: change ask_kv_value_bytes"),
        ({"arrivals": "waves"}, "export another with --arrivals"),
        ({"ask_isl": float("nan")}, "ask_isl is nan: give a whole number from 1 to 1,048,575"),
        ({"ask_isl": [1.0, float("inf")]}, "ask_isl is inf: give a whole number"),
        ({"ask_isl": "many"}, "ask_isl is 'many', not a number: give a whole number from 1 to"),
        ({"ask_isl": 8192.5}, "ask_isl is 8192.5: give a whole number"),
        ({"ask_isl": 1_048_000}, "ask_isl + ask_osl is beyond the model's context: give at most 1,048,576 tokens"),
        ({"ask_concurrency": True}, "not a number"),
        ({"ask_concurrency": [1, None]}, "not a number"),
        ({"ask_concurrency": 0}, "ask_concurrency is 0: give a whole number from 1 on"),
        ({"ask_prefix_hit": 1}, "leaves less than one token"),
        ({"ask_memory_fraction": 1.1}, "give a number from 0.01 to 1"),
        ({"ask_draft_tokens": 3}, "ask_draft_tokens is 3: give nothing but 0, or export another"),
        ({"chip_memory_bandwidth": 0}, "chip_memory_bandwidth is 0: give a number above 0"),
        ({"chip_price": -1}, "chip_price is -1: give a number from 0 on"),
        ({"moe_top_k": 1000}, "moe_top_k is over moe_experts"),
    ],
    ids=str,
)
def test_a_wrong_change_is_refused(change: dict[str, Any], told: str) -> None:
    """Unknown names with the nearest; what is no number."""
    file = loaded(export_python(K3, SYSTEM, "TP8 DP8", JOB).text)
    with pytest.raises((TypeError, ValueError), match=None) as caught:
        file["headlines"](**change)
    assert told in str(caught.value)


def test_wrong_questions(cli: Cli, tmp_path: Path) -> None:
    """One line each, and no file."""
    (tmp_path / "there.py").write_text("mine")
    for more, told in (
        (("--form", "julia", "--out", str(tmp_path / "k.py")), "--form: 'julia' is not one of python; use python"),
        (("--out", str(tmp_path / "k.txt")), "end it in .py"),
        (("--out", str(tmp_path / "there.py")), "is there already; give --force"),
        (("--out", str(tmp_path / "none" / "k.py")), "there is no folder"),
        (("--out", str(tmp_path / "k.py"), "--layout", "TP7"), "TP7"),
        (("--out", str(tmp_path / "k.py"), "--isl", "x"), "--isl: 'x' is not a count"),
    ):
        answer = cli("export", *POINT, *more)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.count("\n") == 1
        assert told in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["there.py"]
    assert (tmp_path / "there.py").read_text() == "mine"
    assert cli("export", *POINT, "--out", str(tmp_path / "there.py"), "--force").code == 0


def test_what_does_not_fit_is_written_and_said(cli: Cli, tmp_path: Path) -> None:
    """One line on stderr, a comment at the top of the file, and no times."""
    out = tmp_path / "k.py"
    answer = cli("export", *POINT[:-1], "100000", "--out", str(out))
    assert answer.code == 0
    assert answer.err.startswith("does not fit: a chip would hold ")
    assert answer.err.count("\n") == 2
    assert out.read_text().startswith("# Does not fit as it stands: a chip would hold ")
    file = loaded(out.read_text())
    assert file["__doc__"].startswith("kimi-k3 on ")
    assert file["headlines"]()["serving.ttft_s"] is None
    assert file["headlines"](ask_concurrency=64)["serving.ttft_s"] > 0


def test_names_cannot_become_code() -> None:
    """A name of a spec stays text; a layer group that is no name in Python is refused."""
    model = load_model(K3)
    text = export_python(model.model_copy(update={"name": 'x"""; import os #'}), SYSTEM, "TP8 DP8", JOB).text
    assert loaded(text)["__doc__"].startswith("x'''; import os # on ")
    groups = {("class x" if name == "kda" else name): group for name, group in model.attention.items()}
    with pytest.raises(BadSpec, match="cannot be a name in Python"):
        export_python(model.model_copy(update={"attention": groups}), SYSTEM, "TP8 DP8", JOB)
