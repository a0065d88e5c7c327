"""Many deployments priced on arrays are what `estimate` says of each alone, errors included."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

import pytest
from deployments import DEPLOYMENTS, Deployment

import planner
from planner.errors import PlannerError
from planner.evaluate.many import COLUMNS, Headlines, Scenario, cells, many
from planner.specs.library import load_system

K3, SYSTEM = "kimi-k3", "zhenwu-m890-supernode"
EXACT = 1e-12
PARTS = ("feasible", "violations", "memory", "prefill", "decode", "serving", "cost")


def alone(scenario: Scenario) -> Any:
    """What `estimate` says of one scenario, or its error."""
    model, system, layout, workload, stack, chips, _ = scenario
    try:
        return planner.estimate(model, system, layout, workload, stack=stack, chips=chips, draws=10)
    except PlannerError as error:
        return error


def flattened(value: Any) -> list[Any]:
    """Every number and text of nested answers, in order."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flattened(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in flattened(item)]
    return [pytest.approx(value, rel=EXACT) if isinstance(value, float) else value]


def agree(found: Headlines | PlannerError, one: Any) -> None:
    """One row is what `estimate` says."""
    if isinstance(one, PlannerError):
        assert isinstance(found, PlannerError)
        assert str(found) == str(one)
        return
    assert isinstance(found, Headlines)
    assert (found.stack, found.chips_lent) == (one.stack, one.layout.chips_lent)
    mine, theirs = asdict(found), one.to_dict()
    for part in PARTS:
        if part != "violations":
            assert flattened(theirs[part]) == flattened(mine[part]), part
    assert [v["sentence"] for v in mine["violations"]] == [v["sentence"] for v in theirs["violations"]]


def drawn(count: int) -> list[Scenario]:
    """Random scenarios, some of which cannot be."""
    dice = random.Random(7)
    found = []
    for _ in range(count):
        model = dice.choice([K3, "kimi-linear-48b-a3b", "deepseek-v4-flash", "gpt-oss-20b", "no-such-model"])
        layout = dice.choice(["TP8 DP8", "TP4 DP2", "TP8 DP4 PP2", "TP2 DP2", "TP1", "TP7", "nonsense"])
        drafts = dice.choice([0, 0, 0, 2])
        workload = planner.Workload(
            isl=dice.choice([100, 8192, 50_000, 10**7]), osl=dice.choice([1, 300, 1024]),
            concurrency=dice.choice([None, 1, 7, 256, 20_000]), kv_format=dice.choice(["bf16", "fp8"]),
            state_format=dice.choice(["fp32", "bf16"]), chunk=dice.choice([None, 4096]),
            arrivals=dice.choice(["steady", "waves"]), memory_fraction=dice.choice([None, 0.7]),
            prefix_hit=dice.choice([0.0, 0.5]), routing_skew=dice.choice([1.0, 1.4]),
            draft_tokens=drafts, accepted_length=1.7 if drafts else 1.0, vision=dice.choice([False, False, True]),
        )  # fmt: skip
        stack, chips = dice.choice([None, None, "sail-migration", "no-such-stack"]), dice.choice([None, None, 64, 3])
        found.append(Scenario(model, SYSTEM, layout, workload, stack, chips))
    return found


def test_random_scenarios_are_what_estimate_says() -> None:
    """Structures, layouts, loads and errors mixed in one list."""
    scenarios = drawn(400)
    found = many(scenarios)
    for scenario, mine in zip(scenarios, found, strict=True):
        agree(mine, alone(scenario))
    assert sum(isinstance(mine, Headlines) for mine in found) > 60


def scenario_of(deployment: Deployment) -> Scenario:
    """A deployment of the tests, its changed records given as records."""
    case = deployment.case
    system = load_system(SYSTEM).model_copy(update=deployment.system_changes)
    return Scenario(case.model, system, deployment.parsed, deployment.workload, case.stack, deployment.chips)


def test_every_branch_of_the_formulas_is_what_estimate_says() -> None:
    """The deployments that between them take every branch."""
    scenarios = [scenario_of(deployment) for deployment in DEPLOYMENTS]
    for scenario, mine in zip(scenarios, many(scenarios), strict=True):
        agree(mine, alone(scenario))


def test_blocks_and_one_row_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many rows are priced together changes nothing but rounding."""
    scenarios = drawn(60)
    whole = many(scenarios)
    monkeypatch.setattr("planner.evaluate.many.BLOCK", 7)
    for one, other in zip(whole, many(scenarios), strict=True):
        if isinstance(one, PlannerError):
            assert str(one) == str(other)
        else:
            assert cells(one) == [pytest.approx(v, rel=EXACT) if isinstance(v, float) else v for v in cells(other)]  # type: ignore[arg-type]
    assert many([]) == []


def test_columns_are_keys_of_the_answer() -> None:
    """A column is a key of the JSON of `estimate`, in the unit its name says."""
    scenario = Scenario(K3, SYSTEM, "TP8 DP8", planner.Workload(isl=8192, osl=1024, concurrency=256))
    (found,), answer = many([scenario]), alone(scenario)
    assert isinstance(found, Headlines)
    told = answer.to_dict() | {"chips_lent": answer.layout.chips_lent}
    for column, value in zip(COLUMNS, cells(found), strict=True):
        wanted = told
        for key in column.key.split("."):
            wanted = wanted[key]
        if isinstance(wanted, str):
            assert value == wanted
            continue
        assert value == pytest.approx(wanted / 1e9 if "_gb_" in column.name else wanted, rel=EXACT), column.name
