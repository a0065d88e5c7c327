"""The shipped specs load, cite and match their schemas; every kind has a reference and a golden case."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from conftest import Cli
from pydantic import BaseModel

from planner.evaluate.case import case_of
from planner.evaluate.show import LOADERS
from planner.kinds.attention import ATTENTION
from planner.kinds.collectives import __all__ as COLLECTIVES
from planner.kinds.feedforward import FEED_FORWARD
from planner.kinds.formats import CHOICES, FORMATS
from planner.kinds.residual import RESIDUAL
from planner.record import RANGED, Figure
from planner.specs.library import FOLDERS, RECORDS, load_chip, load_model, load_stack, load_system, names
from planner.specs.schema import FILES, schemas, write

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = [(kind, path) for kind, folder in FOLDERS.items() for path in sorted((ROOT / folder).glob("*.yaml"))]
IDS = [f"{kind}-{path.stem}" for kind, path in SHIPPED]
shipped = pytest.mark.parametrize(("kind", "path"), SHIPPED, ids=IDS)
KINDS = {"attention": ATTENTION, "feedforward": FEED_FORWARD, "residual": RESIDUAL, "formats": FORMATS,
         "collectives": COLLECTIVES}  # fmt: skip
NOT_KINDS = {"__init__", "kind", "format", "fabric", "routing"}
"""Files of the kind folders that are no kind: what kinds share."""


def figures(record: Any, path: str = "") -> Iterator[tuple[str, Figure]]:
    """Every figure below a record with its dotted name."""
    if isinstance(record, Figure):
        yield path, record
    elif isinstance(record, BaseModel):
        for name in type(record).model_fields:
            yield from figures(getattr(record, name), f"{path}.{name}" if path else name)
    elif isinstance(record, dict):
        for name, inner in record.items():
            yield from figures(inner, f"{path}.{name}")


def load(kind: str, path: Path) -> Any:
    """The record of a shipped file, by name."""
    return LOADERS[kind](path.stem)


@shipped
def test_a_shipped_spec_loads_under_its_own_name(kind: str, path: Path, cli: Cli) -> None:
    """Each file is sound, is named like its record, and is listed."""
    record = load(kind, path)
    assert record.name == path.stem
    assert path.stem in names(kind)
    assert cli("specs", "check", str(path)).code == 0
    shown = cli("specs", "show", path.stem, "--json")
    assert shown.code == 0
    assert shown.json["kind"] == kind


@shipped
def test_every_figure_is_sourced(kind: str, path: Path) -> None:
    """Each number says where it comes from; an estimate has room around it, a published one has none."""
    record = load(kind, path)
    for name, figure in figures(record):
        assert figure.source.strip(), name
        assert figure.low <= figure.value <= figure.high, name
        if figure.status in RANGED:
            assert figure.low < figure.high, name
        if figure.status in ("published", "derived"):
            assert figure.low == figure.value == figure.high, name


@shipped
def test_every_spec_is_sourced_as_a_whole(kind: str, path: Path) -> None:
    """A spec without figures of its own still cites."""
    record = load(kind, path)
    assert list(figures(record)) or record.source.strip()


def test_every_system_has_its_chip_and_stack() -> None:
    """A system names a shipped chip and a stack whose kernels compute in formats of that chip."""
    for name in names("system"):
        system = load_system(name)
        chip, stack = load_chip(system.chip), load_stack(system.stack)
        assert system.chips == system.servers * system.chips_per_server, name
        assert 1 <= system.domain_chips <= system.chips, name
        case = case_of(names("model")[0], name)
        assert (case.chip, case.stack.name) == (chip, stack.name), name


@pytest.mark.parametrize("system", names("system"))
def test_every_system_runs_by_its_default_stack(system: str, cli: Cli) -> None:
    """No kernel of the stack asks for a rate its chip lacks: a dense model fits, and routed experts are priced."""
    load = ("--isl", "1k", "--osl", "128", "--concurrency", "8", "--json")
    dense = cli("estimate", "qwen3-32b", "--on", system, "--layout", "TP8", *load)
    assert dense.code == 0, dense.err
    routed = cli("estimate", "deepseek-r1", "--on", system, "--layout", "TP8 EP8", *load)
    assert routed.code in (0, 3), routed.err
    for answer in (dense, routed):
        assert answer.json["decode"]["tpot_s"] > 0


def test_chips_are_plausible_beside_each_other() -> None:
    """What no chip of these families does: FLOP a byte, bandwidths and powers out of proportion to one another."""
    for name in names("chip"):
        chip = load_chip(name)
        memory, up = chip.memory_bandwidth.value, chip.scale_up_bandwidth_each_way.value
        bf16, eight = chip.rate("bf16"), chip.rate("fp8") or chip.rate("int8")
        assert bf16 is not None, name
        assert eight is not None, f"{name}: an eight-bit rate"
        assert 30 <= bf16.value / memory <= 600, name
        assert 1.9 <= eight.value / bf16.value <= 4, name
        assert 3 <= memory / up <= 25, name
        assert 1 < up / chip.scale_out_bandwidth_each_way.value <= 100, name
        assert chip.power.value < chip.all_in_power.value < 4 * chip.power.value, name
        assert chip.memory.value <= chip.holds().value * 1.001, name


def test_headline_bandwidth_is_both_directions() -> None:
    """The vendor's headline counts both directions: twice what one way carries."""
    for name in names("chip"):
        chip = load_chip(name)
        assert chip.scale_up_bandwidth_both_ways.value == 2 * chip.scale_up_bandwidth_each_way.value, name


def test_published_totals_are_met() -> None:
    """Derived parameters lie within 3 % of what the maker states."""
    from planner.evaluate.totals import totals

    for name in names("model"):
        model = load_model(name)
        sums = totals(model)
        assert model.published is not None, f"{name}: state the maker's totals under `published`"
        stated = model.published.total_params
        assert abs(sums.total_params + sums.extra_params - stated) <= 0.03 * stated, name


@pytest.mark.parametrize("folder", KINDS)
def test_a_kind_folder_lists_its_files(folder: str) -> None:
    """A file in the folder that is missing from the list would be dead, a name without a file would not load."""
    files = {path.stem for path in (ROOT / "planner" / "kinds" / folder).glob("*.py")} - NOT_KINDS
    assert set(KINDS[folder]) == files


@pytest.mark.parametrize("folder", KINDS)
def test_every_kind_has_a_reference(folder: str) -> None:
    """Each kind cites where its formulas come from, in its declaration or its docstring."""
    for name in KINDS[folder]:
        module = import_module(f"planner.kinds.{folder}.{name}")
        declared = getattr(module, "KIND", None) or getattr(module, "FORMAT", None)
        text = declared.reference if declared else module.__doc__.partition("Reference:")[2]
        assert text.strip(), name


def golden() -> list[dict[str, Any]]:
    """All golden cases."""
    paths = sorted((ROOT / "tests" / "golden").glob("*/*.yaml"))
    return [case for path in paths for case in yaml.safe_load(path.read_text(encoding="utf-8"))]


def reached(case: dict[str, Any]) -> set[str]:
    """The kinds a golden case runs through: those of its model, and what its text names."""
    text = " ".join(str(case[key]) for key in ("id", "args", "key", "source")) + str(case.get("arithmetic", ""))
    words = set(text.lower().replace("_", " ").replace("-", " ").split())
    found = {name for folder in KINDS.values() for name in folder if set(name.split("_")) <= words}
    for model in names("model"):
        if model in case["args"].split():
            record = load_model(model)
            groups = [*record.attention.values(), *record.feed_forward.values(), record.residual]
            found |= {group.kind for group in groups}
            found |= {value for group in groups for key, value in group if key.endswith("format")}
    return found


@pytest.mark.parametrize("folder", ["attention", "feedforward", "residual"])
def test_every_kind_has_a_golden_case(folder: str) -> None:
    """A kind without a golden number is one nobody has checked (formats: below, collectives: test_collectives)."""
    covered = {kind for case in golden() for kind in reached(case)}
    assert set(KINDS[folder]) - covered == set()


BITS = {
    "bf16": 16,
    "fp8": 8,
    "fp8_block": 8 + 32 / (128 * 128),  # a 32-bit scale for a block of 128 x 128
    "fp32": 32,
    "int4_g128": 4 + 16 / 128,  # a 16-bit scale for 128 values
    "int4": 4 + 16 / 32,  # a 16-bit scale for 32 values
    "int8": 8,
    "mxfp4": 4 + 8 / 32,  # an 8-bit scale for 32 values
    "mxfp8": 8 + 8 / 32,
    "nvfp4": 4 + 8 / 16,  # an 8-bit scale for 16 values
}
"""Bits of one value worked out by hand from each format's definition."""


def test_every_format_is_worked_out_by_hand() -> None:
    """Scales are not free, and a format without a line above is one nobody has checked."""
    assert {name: format.value_bytes * 8 for name, format in FORMATS.items()} == BITS


def test_formats_on_the_command_line_exist() -> None:
    """Every choice of --kv-dtype is a format, and no format is listed under another's name."""
    assert set(CHOICES) <= set(FORMATS)
    assert all(format.name == name for name, format in FORMATS.items())


@pytest.mark.parametrize("kind", sorted(FILES))
def test_committed_schema_is_current(kind: str) -> None:
    """The schema beside the specs is what the records say; `python -m planner.specs.schema` writes it."""
    assert (ROOT / FILES[kind][1]).read_text(encoding="utf-8") == schemas()[kind]


def test_schemas_are_written_where_they_belong(tmp_path: Path) -> None:
    """The generator writes exactly the four files, and every kind of record has one."""
    written = write(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in written) == sorted(file for _, file in FILES.values())
    assert {kind: record for kind, (record, _) in FILES.items()} == RECORDS
    assert all(path.read_bytes().endswith(b"}\n") for path in written)


@shipped
def test_a_shipped_spec_matches_its_schema(kind: str, path: Path) -> None:
    """An editor that checks the YAML against the schema finds nothing wrong in a shipped file."""
    schema = json.loads(schemas()[kind])
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert [error.message for error in validator(schema).iter_errors(data)] == []


@shipped
def test_a_shipped_spec_names_its_schema(kind: str, path: Path) -> None:
    """The first line points an editor to the schema file."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.partition("$schema=")[2]).resolve() == (ROOT / FILES[kind][1]).resolve()


@shipped
def test_a_schema_refuses_what_the_record_refuses(kind: str, path: Path) -> None:
    """A misspelt key, a missing one and a bare number for a quantity are wrong in the editor too."""
    validator = jsonschema.Draft202012Validator(json.loads(schemas()[kind]))
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert not validator.is_valid({**data, "misspelt": 1})
    assert not validator.is_valid({key: value for key, value in data.items() if key != "title"})
    if kind == "chip":
        assert not validator.is_valid({**data, "memory": {**data["memory"], "value": 144}})
    if kind == "stack":
        fraction = {"value": 0.9, "status": "measured", "source": "a test"}
        assert validator.is_valid({**data, "memory_fraction": fraction})
        assert not validator.is_valid({**data, "memory_fraction": {**fraction, "value": 1.5}})


def test_schema_defaults_can_be_written() -> None:
    """A default shown by an editor is itself valid, so that it may be pasted."""
    schema = json.loads(schemas()["stack"])
    found = 0
    for record in schema["$defs"].values():
        for field in record["properties"].values():
            if isinstance(field.get("default"), dict):
                jsonschema.Draft202012Validator(field).validate(field["default"])
                found += 1
    assert found


LIKE = """
name: ours
title: Ours
like: nvidia-hopper
kernels:
  dense:
    memory_fraction: {value: 0.5, status: measured, source: our bench}
chunk: 4096
"""


def like(folder: Path, text: str = LIKE, name: str = "ours.yaml") -> str:
    """The path of a stack written in a folder."""
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_stack_like_another_differs_in_what_it_says(tmp_path: Path) -> None:
    """Mappings merge by key, a figure is replaced with its range, and the base's own words stay with it."""
    base, ours = load_stack("nvidia-hopper"), load_stack(like(tmp_path))
    dense = base.kernels.dense.model_copy(update={"memory_fraction": ours.kernels.dense.memory_fraction})
    kernels = base.kernels.model_copy(update={"dense": dense})
    assert (ours.kernels.dense.memory_fraction.low, ours.kernels.dense.memory_fraction.with_group) == (0.5, "")
    told = {"name": "ours", "title": "Ours", "note": "", "chunk": 4096, "kernels": kernels}
    assert ours == base.model_copy(update=told)


def test_a_stack_may_be_like_one_that_is_like_another(tmp_path: Path, cli: Cli) -> None:
    """A chain of paths, each from its own folder, down to a shipped stack; an edit of any of them is seen."""
    (tmp_path / "below").mkdir()
    like(tmp_path, LIKE.replace("name: ours", "name: middle"), "middle.yaml")
    top = like(tmp_path / "below", "name: top\ntitle: Top\nlike: ../middle.yaml\nblock_tokens: 8\n")
    assert cli("specs", "check", top).code == 0
    assert (load_stack(top).chunk, load_stack(top).block_tokens) == (4096, 8)
    like(tmp_path, LIKE.replace("4096", "2048"), "middle.yaml")
    assert load_stack(top).chunk == 2048


WRONG_LIKE = {
    "unknown": (LIKE.replace("nvidia-hopper", "nvidia-hoper"), "ours.yaml: like: unknown stack", "did you mean"),
    "no-file": (LIKE.replace("nvidia-hopper", "./none.yaml"), "ours.yaml: like: no such file", "YAML"),
    "itself": (LIKE.replace("nvidia-hopper", "./ours.yaml"), "ours.yaml: like: ./ours.yaml is like", "one of them"),
    "cycle": (LIKE.replace("nvidia-hopper", "./other.yaml"), "other.yaml: like: ./ours.yaml is like", "one of them"),
    "no-text": (LIKE.replace("nvidia-hopper", "[a]"), "like: ['a'] is not a name", "name a stack"),
    "empty": (LIKE.replace("nvidia-hopper", ""), "like: None is not a name", "name a stack"),
    "a-chip": (LIKE.replace("nvidia-hopper", "./chip.yaml"), "chip.yaml: is a chip spec", "name a stack"),
    "strange-key": (LIKE.replace("dense", "dens"), "ours.yaml: unknown key kernels.dens", "remove it"),
    "part-of-a-figure": (LIKE.replace("value: 0.5, ", ""), "kernels.dense.memory_fraction: value is missing", "mend"),
    "no-name": (LIKE.replace("name: ours", ""), "ours.yaml: key name is missing", "add it"),
    "a-wrong-base": (LIKE.replace("nvidia-hopper", "./bad.yaml"), "bad.yaml: unknown key chunks", "did you mean"),
}


@pytest.mark.parametrize("name", WRONG_LIKE)
def test_a_wrong_like_is_refused_in_one_line(name: str, tmp_path: Path, cli: Cli) -> None:
    """Where, what, what to do; a mistake in the base is told of the base."""
    text, said, todo = WRONG_LIKE[name]
    like(tmp_path, LIKE.replace("nvidia-hopper", "./ours.yaml"), "other.yaml")
    like(tmp_path, LIKE.replace("chunk", "chunks"), "bad.yaml")
    like(tmp_path, (ROOT / "hardware_specs/chips/h100.yaml").read_text(encoding="utf-8"), "chip.yaml")
    drawn = cli("specs", "check", like(tmp_path, text))
    assert drawn.code == 2
    assert said in drawn.err
    assert todo in drawn.err
    assert len(drawn.err.splitlines()) == 1


def test_the_schema_asks_for_everything_only_without_like() -> None:
    """An editor lets a stack that is like another leave things out, and still knows its keys and figures."""
    validator = jsonschema.Draft202012Validator(json.loads(schemas()["stack"]))
    data = yaml.safe_load(LIKE)
    assert validator.is_valid(data)
    assert not validator.is_valid({key: value for key, value in data.items() if key != "like"})
    assert not validator.is_valid({**data, "kernels": {"dens": {}}})
    assert not validator.is_valid({**data, "kernels": {"dense": {"memory_fraction": {"value": 0.5}}}})


@pytest.mark.parametrize(
    ("model", "stack", "arithmetic", "travels"),
    [
        ("qwen3-30b-a3b", "nvidia-hopper", "bf16", "bf16"),
        ("deepseek-v3", "nvidia-hopper", "fp8", "mxfp8"),
        ("kimi-k3", "nvidia-hopper", "fp8", "mxfp8"),
        ("kimi-k3", "nvidia-hopper-w4a16", "bf16", "mxfp8"),
    ],
)
def test_experts_run_in_no_fewer_bits_than_they_have(model: str, stack: str, arithmetic: str, travels: str) -> None:
    """BF16 experts are computed and sent in BF16 whatever an engine does for narrower ones."""
    shipped = load_stack(stack)
    ours = case_of(model, "h200-8", stack).stack
    assert (ours.kernels.experts.compute_format, ours.dispatch_format) == (arithmetic, travels)
    assert (ours.kernels.experts == shipped.kernels.experts.model_copy(update={"fractions": {}})) == (
        arithmetic == shipped.kernels.experts.compute_format
    )
    assert set(ours.computes.items()) <= set(shipped.computes.items())


def test_bf16_experts_are_bound_by_the_bf16_rate(cli: Cli) -> None:
    """The bound of a prefill's experts is their FLOP over the chip's BF16 rate."""
    rows = cli(
        "explain", "qwen3-30b-a3b", "--on", "h200-8", "--layout", "TP1", "--isl", "8k", "--osl", "1k",
        "--concurrency", "1", "--json",
    ).json["breakdown"]  # fmt: skip
    experts = next(row for row in rows if (row["phase"], row["operator"]) == ("prefill", "moe.experts"))
    rate = load_chip("h200").rate("bf16")
    assert rate is not None
    assert experts["floor_s"] == pytest.approx(experts["flops"] / rate.value, rel=1e-9)
