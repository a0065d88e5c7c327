"""Bad input of every kind: exit code 2, one line on stderr, nothing on stdout, no file left behind; never a fault."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Answer, Cli, call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.specs.library import LARGEST_SPEC

ROOT = Path(__file__).resolve().parent.parent
K3, LINEAR, SYSTEM = "kimi-k3", "kimi-linear-48b-a3b", "zhenwu-m890-supernode"
ESTIMATE = {"--on": SYSTEM, "--layout": "TP8 DP8", "--isl": "8k", "--osl": "1k", "--concurrency": "64"}
PLAN = {"--on": SYSTEM, "--isl": "4k", "--osl": "512", "--chips": "8"}
few = settings(
    derandomize=True, max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def estimate(model: str = K3, **changes: str | None) -> list[str]:
    """An estimate with some flags changed, or left out where None."""
    return line("estimate", model, ESTIMATE, changes)


def plan(model: str = LINEAR, **changes: str | None) -> list[str]:
    """A plan with some flags changed, or left out where None."""
    return line("plan", model, PLAN, changes)


def line(command: str, model: str, flags: dict[str, str], changes: dict[str, str | None]) -> list[str]:
    """Command, model and flags; `kv_dtype` stands for --kv-dtype."""
    whole = flags | {"--" + name.replace("_", "-"): value for name, value in changes.items()}
    return [command, model, *(part for name, value in whole.items() if value is not None for part in (name, value))]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder that must stay as the test left it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> set[str]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def refused(answer: Answer, folder: Path, before: set[str]) -> str:
    """The line on stderr, once everything else is as it should be."""
    assert answer.code == 2, (answer.err or answer.out)[:300]
    assert answer.out[:300] == ""
    assert answer.err.endswith("\n")
    assert answer.err.count("\n") == 1, answer.err
    assert len(answer.err) > 10
    assert "Traceback" not in answer.err
    assert "internal fault" not in answer.err
    assert all(c.isprintable() for c in answer.err[:-1]), repr(answer.err)
    assert contents(folder) == before
    return answer.err


FLAGS: dict[str, tuple[list[str], str]] = {
    "unknown-command": (["estimat"], "estimat"),
    "unknown-flag": ([*estimate(), "--frobnicate"], "frobnicate"),
    "no-model": (["plan"], "MODEL"),
    "no-layout": (estimate(layout=None), "--layout"),
    "no-interview-without-a-terminal": ([], "terminal"),
    "specs-alone": (["specs"], "list"),
    "unknown-model": (estimate("kimi-k4"), "did you mean kimi-k3"),
    "unknown-model-nothing-like-it": (estimate("zzzzzzzz"), "known: "),
    "empty-model": (estimate(""), "not a name"),
    "blank-model": (estimate("  "), "unknown model"),
    "long-model": (estimate("m" * 5000), "not a name"),
    "model-with-a-null": (estimate("kimi\0k3"), "not a name"),
    "model-with-escapes": (estimate("kimi\x1b[31mk3\n\r\t"), "unknown model"),
    "model-in-unicode": (estimate("基米-κ3-🚀\u202e"), "unknown model"),
    "model-with-a-surrogate": (estimate("kimi\udcff"), "unknown model"),
    "model-missing-file": (estimate("./none.yaml"), "no such file"),
    "model-long-path": (estimate("./" + "x" * 900 + ".yaml"), "yaml"),
    "model-a-folder": (estimate("./"), "is a directory"),
    "model-a-device": (estimate("/dev/null"), "not a regular file"),
    "model-is-a-system": (estimate(str(ROOT / f"hardware_specs/systems/{SYSTEM}.yaml")), "a model is needed"),
    "system-is-a-model": (estimate(on=str(ROOT / f"model_specs/{K3}.yaml")), "a system is needed"),
    "unknown-system": (estimate(on="zhenwu-m890-supernod"), "did you mean zhenwu-m890-supernode"),
    "empty-system": (estimate(on=""), "not a name"),
    "unknown-stack": (estimate(stack="sail-tune"), "did you mean sail-tuned"),
    "empty-stack": (estimate(stack=""), "name"),
    "unknown-spec": (["specs", "show", "kimi"], "kimi"),
    "empty-spec": (["specs", "show", ""], "spec"),
    "spec-with-a-null": (["specs", "show", "a\0b/"], "spec"),
    "check-missing-file": (["specs", "check", "./none.yaml"], "no such file"),
    "check-empty-path": (["specs", "check", ""], "director"),
    "check-null-path": (["specs", "check", "a\0b.yaml"], "name"),
    "check-long-path": (["specs", "check", "x" * 100_000], "x"),
    "unknown-kv-dtype": (estimate(kv_dtype="fp9"), "fp9"),
    "empty-kv-dtype": (estimate(kv_dtype=""), "--kv-dtype"),
    "unknown-state-dtype": (estimate(state_dtype="fp8"), "fp32 bf16"),
    "unknown-arrivals": (estimate(arrivals="wave"), "did you mean waves"),
    "unknown-objective": (plan(objective="speed"), "throughput latency cost"),
    "unknown-mode": (plan(mode="disagregated"), "--mode"),
    "unknown-quantity": (["explain", *estimate()[1:], "--quantity", "decode_step"], "did you mean decode_step_s"),
    "bare-tpot": (plan(tpot="50"), "'50' has no unit"),
    "bare-ttft": (plan(ttft="2"), "'2' has no unit"),
    "bare-rate": (plan(rate="20"), "'20' has no unit"),
    "tpot-in-bytes": (plan(tpot="50 GB"), "is a unit of B"),
    "tpot-unknown-unit": (plan(tpot="50 parsec"), "unknown unit parsec"),
    "tpot-zero": (plan(tpot="0ms"), "not above zero"),
    "tpot-negative": (plan(tpot="-5ms"), "not above zero"),
    "tpot-underflow": (plan(tpot="1e-400s"), "not above zero"),
    "tpot-huge": (plan(tpot="1e400s"), "not finite"),
    "tpot-nan": (plan(tpot="nan s"), "not a quantity"),
    "ttft-inf": (plan(ttft="inf"), "not a quantity"),
    "ttft-empty": (plan(ttft=""), "not a quantity"),
    "rate-zero": (plan(rate="0/s"), "not above zero"),
    "isl-zero": (estimate(isl="0"), "--isl"),
    "isl-negative": (estimate(isl="-5"), "--isl"),
    "isl-fraction": (estimate(isl="8.5"), "whole number"),
    "isl-unit": (estimate(isl="8 kB"), "not a count"),
    "isl-empty": (estimate(isl=""), "--isl"),
    "isl-word": (estimate(isl="many"), "--isl"),
    "isl-1e400": (estimate(isl="1e400"), "--isl"),
    "isl-1e30": (estimate(isl=str(10**30)), "--isl"),
    "isl-nan": (estimate(isl="nan"), "--isl"),
    "isl-inf": (estimate(isl="inf"), "--isl"),
    "isl-thousands-of-digits": (estimate(isl="1" * 5000), "--isl"),
    "isl-arabic-digits": (estimate(isl="٣"), "isl"),
    "osl-zero": (estimate(osl="0"), "--osl"),
    "osl-negative": (estimate(osl="-1"), "--osl"),
    "beyond-the-context": (estimate(isl="1M"), "the largest --isl is 1047552"),
    "output-beyond-the-context": (estimate(isl="1", osl="2M"), "ask for less"),
    "plan-beyond-the-context": (plan(isl="1M"), "the largest --isl is"),
    "fit-beyond-the-context": (["fit", K3, "--on", SYSTEM, "--max-len", "2M"], "use 1 to 1048576"),
    "fit-of-no-length": (["fit", K3, "--on", SYSTEM, "--max-len", "0"], "--max-len"),
    "fit-of-no-concurrency": (["fit", K3, "--on", SYSTEM, "--concurrency", "0"], "--concurrency"),
    "concurrency-zero": (estimate(concurrency="0"), "--concurrency"),
    "concurrency-negative": (estimate(concurrency="-64"), "--concurrency"),
    "concurrency-1e30": (estimate(concurrency=str(10**30)), "--concurrency"),
    "concurrency-1e400": (estimate(concurrency="1e400"), "--concurrency"),
    "plan-concurrency-1e30": (plan(concurrency=str(10**30)), "--concurrency"),
    "chunk-zero": (estimate(chunk="0"), "--chunk"),
    "chunk-1e30": (estimate(chunk=str(10**30)), "--chunk"),
    "top-zero": (plan(top="0"), "--top"),
    "top-1e30": (plan(top=str(10**30)), "--top"),
    "chips-zero": (plan(chips="0"), "--chips"),
    "chips-too-many": (plan(chips="65"), "zhenwu-m890-supernode has 64"),
    "chips-1e30": (plan(chips=str(10**30)), "--chips"),
    "chips-fewer-than-the-layout": (estimate(chips="8"), "8 chips cannot hold a layout of 64"),
    "explain-chips-fewer-than-the-layout": (["explain", *estimate(chips="8")[1:]], "8 chips cannot hold"),
    "layout-too-many-chips": (estimate(layout="TP8 DP16"), "takes 128 chips"),
    "layout-too-many-chips-in-fit": (["fit", K3, "--on", SYSTEM, "--layout", "TP8 DP16"], "takes 128 chips"),
    "layout-empty": (estimate(layout=""), "layout"),
    "layout-unknown-key": (estimate(layout="TP8 XP8"), "XP8"),
    "layout-heads": (estimate(layout="TP64"), "does not divide the 96 heads"),
    "layout-experts": (estimate(layout="TP8 DP6 EP48 RED0"), "use RED16"),
    "layout-ep-beyond-experts": (estimate(layout="DP1024 EP1024"), "more than the 896 experts"),
    "layout-control-characters": (estimate(layout="TP8\x00\x07\x1b[2J DP8"), "TP8"),
    "layout-unicode": (estimate(layout="TP８ DP８"), "layout"),
    "layout-huge": (estimate(layout="TP" + "8" * 10_000), "layout"),
    "memory-fraction-zero": (estimate(memory_fraction="0"), "0.01 to 1"),
    "memory-fraction-above-one": (estimate(memory_fraction="1.1"), "0.01 to 1"),
    "memory-fraction-nan": (estimate(memory_fraction="nan"), "0.01 to 1"),
    "memory-fraction-percent": (estimate(memory_fraction="90%"), "not a number"),
    "memory-fraction-empty": (estimate(memory_fraction=""), "not a number"),
    "prefix-hit-one": (estimate(prefix_hit="1"), "less than one token"),
    "prefix-hit-almost-one": (estimate(prefix_hit="0.9999"), "less than one token"),
    "prefix-hit-arabic-digits": (estimate(prefix_hit="٠.5"), "not a number"),
    "prefix-hit-underscores": (estimate(prefix_hit="0_1"), "not a number"),
    "prefix-hit-with-a-unit": (estimate(prefix_hit="0.5k"), "not a number"),
    "accepted-underscores": (estimate(draft_tokens="12", accepted_length="1_0"), "not a number"),
    "vision-of-none": ([*estimate(LINEAR), "--vision"], "has no vision part"),
    "vision-of-none-in-fit": (["fit", LINEAR, "--on", SYSTEM, "--vision"], "has no vision part"),
    "drafts-beyond-use": (estimate(draft_tokens="65", accepted_length="2"), "65 is over 64"),
    "prefix-hit-negative": (estimate(prefix_hit="-0.1"), "0 to 1"),
    "prefix-hit-nan": (estimate(prefix_hit="nan"), "0 to 1"),
    "prefix-hit-inf": (estimate(prefix_hit="inf"), "0 to 1"),
    "routing-skew-below-one": (estimate(routing_skew="0.5"), "1 to 1000"),
    "routing-skew-inf": (estimate(routing_skew="inf"), "1 to 1000"),
    "drafts-none-accepted": (estimate(draft_tokens="3"), "accepted"),
    "drafts-negative": (estimate(draft_tokens="-1"), "--draft-tokens"),
    "drafts-huge": (estimate(draft_tokens=str(10**30), accepted_length="2"), "--draft-tokens"),
    "accepted-without-drafts": (estimate(accepted_length="2"), "at most 1"),
    "accepted-beyond-drafts": (estimate(draft_tokens="1", accepted_length="3"), "at most 2"),
    "no-draft-model": (estimate(LINEAR, draft_tokens="1", accepted_length="1.5"), "names no draft model"),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_bad_flags_are_refused_in_one_line(name: str, folder: Path, cli: Cli) -> None:
    """A flag that cannot be meant is answered with where, what and what to do."""
    arguments, part = FLAGS[name]
    assert part in refused(cli(*arguments), folder, set())


@pytest.mark.parametrize("name", FLAGS)
def test_bad_flags_are_refused_in_json_too(name: str, folder: Path, cli: Cli) -> None:
    """With --json an error still puts nothing on stdout."""
    arguments, _ = FLAGS[name]
    if arguments and arguments[0] in ("plan", "estimate", "fit", "explain") and len(arguments) > 1:
        refused(cli(*arguments, "--json"), folder, set())


SHIPPED = {
    "model": f"model_specs/{LINEAR}.yaml",
    "chip": "hardware_specs/chips/zhenwu-m890.yaml",
    "system": f"hardware_specs/systems/{SYSTEM}.yaml",
    "stack": "hardware_specs/stacks/sail-tuned.yaml",
}


def changed(kind: str, change: Callable[[dict[str, Any]], Any]) -> str:
    """A shipped spec with one thing changed, as YAML."""
    data = deepcopy(shipped(kind))
    change(data)
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


@cache
def shipped(kind: str) -> dict[str, Any]:
    """A shipped spec as plain data."""
    return dict(yaml.safe_load((ROOT / SHIPPED[kind]).read_text(encoding="utf-8")))


def put(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set what lies under a path of keys."""

    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


def drop(*path: str) -> Callable[[dict[str, Any]], None]:
    """Delete what lies under a path of keys."""

    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return change


BAND = "memory_bandwidth"
SPECS: dict[str, tuple[str, str]] = {
    "misspelt-key": (changed("model", lambda d: d.update(lyers=d.pop("layers"))), "did you mean layers"),
    "missing-field": (changed("model", drop("width")), "width is missing"),
    "extra-key": (changed("model", put("colour", value="red")), "unknown key colour"),
    "unknown-attention": (changed("model", put("attention", "mla", "kind", value="gqa2")), "attention"),
    "override-of-no-group": (
        changed("model", put("attention", "mla", "overrides", value={"outptu": "fp8"})),
        "attention.mla.overrides: no weight group 'outptu'",
    ),
    "misspelt-size-of-a-kind": (
        changed("model", lambda d: d["attention"]["mla"].update(hads=d["attention"]["mla"].pop("heads"))),
        "unknown key attention.mla.hads",
    ),
    "missing-size-of-a-kind": (changed("model", drop("attention", "mla", "heads")), "attention.mla.heads is missing"),
    "unknown-format": (changed("model", put("table_format", value="fp9")), "table_format"),
    "no-attention": (changed("model", put("attention", value={})), "attention"),
    "no-kind": (changed("model", drop("attention", "mla", "kind")), "attention"),
    "text-for-a-count": (changed("model", put("layers", value="27")), "layers"),
    "fraction-for-a-count": (changed("model", put("layers", value=27.5)), "layers"),
    "flag-for-a-count": (changed("model", put("layers", value=True)), "layers"),
    "zero-layers": (changed("model", put("layers", value=0)), "layers"),
    "negative-width": (changed("model", put("width", value=-2304)), "width"),
    "huge-width": (changed("model", put("width", value=10**30)), "width"),
    "infinite-total": (changed("model", put("published", "total_params", value=float("inf"))), "total_params"),
    "nan-total": (changed("model", put("published", "total_params", value=float("nan"))), "total_params"),
    "layers-outside": (changed("model", put("attention", "mla", "layers", value="3-99/4")), "not within 0-26"),
    "layers-overlap": (changed("model", put("feed_forward", "moe", "layers", value="0-26")), "layer 0 is in"),
    "layers-uncovered": (changed("model", put("feed_forward", "moe", "layers", value="2-26")), "layer 1 is in no"),
    "layers-nonsense": (changed("model", put("feed_forward", "moe", "layers", value="most")), "is not an index"),
    "layers-two-rests": (changed("model", put("feed_forward", "dense", "layers", value="rest")), "both take the rest"),
    "layers-empty": (changed("model", put("feed_forward", "moe", "layers", value="")), "layers"),
    "layers-step-zero": (changed("model", put("feed_forward", "moe", "layers", value="1-26/0")), "layers"),
    "top-k-beyond-experts": (changed("model", put("feed_forward", "moe", "top_k", value=257)), "top_k"),
    "a-trillion-layers": (changed("model", put("layers", value=10**12)), "more than the 2000 this planner reads"),
    "a-hundred-thousand-layers": (changed("model", put("layers", value=100_000)), "more than the 2000"),
    "group-in-both": (changed("model", lambda d: d["feed_forward"].update(mla=d["feed_forward"].pop("dense"))), "both"),
    "bare-bandwidth": (changed("chip", put(BAND, "value", value=4.0e12)), "has no unit"),
    "bits-for-bytes": (changed("chip", put(BAND, "value", value="32 Tb/s")), "counts bits; in bytes this is 4 TB/s"),
    "seconds-for-bytes": (changed("chip", put(BAND, "value", value="4 s")), "is a unit of s"),
    "unknown-unit": (changed("chip", put(BAND, "value", value="4 TB/fortnight")), "unknown unit"),
    "no-source": (changed("chip", drop(BAND, "source")), "source is missing"),
    "empty-source": (changed("chip", put(BAND, "source", value="")), "source"),
    "unknown-status": (changed("chip", put(BAND, "status", value="guessed")), "status"),
    "estimate-without-a-range": (changed("chip", lambda d: (d[BAND].pop("low"), d[BAND].pop("high"))), "a low and"),
    "low-above-high": (changed("chip", put(BAND, "low", value="5 TB/s")), "low"),
    "figure-without-a-mapping": (changed("chip", put(BAND, value="4 TB/s")), "must be a mapping"),
    "figure-null": (changed("chip", put(BAND, value=None)), BAND),
    "figure-list": (changed("chip", put(BAND, value=[4])), BAND),
    "no-bandwidth": (changed("chip", put(BAND, "low", value="0 TB/s")), "low 0 TB/s is not above 0"),
    "negative-floor": (changed("stack", put("kernels", "experts", "floor", "low", value="-1 us")), "not at least 0"),
    "fraction-of-none": (changed("stack", put("links", "dispatch", "fraction", "low", value=0)), "not above 0"),
    "fraction-above-one": (changed("stack", put("links", "dispatch", "fraction", "high", value=1.1)), "at most 1"),
    "huge-bandwidth": (changed("chip", put(BAND, "high", value="1e400 TB/s")), "not finite"),
    "no-chips": (changed("system", put("chips", value=0)), "chips"),
    "text-for-a-flag": (changed("system", put("pooled_memory", value="yes")), "pooled_memory"),
    "unknown-norm": (changed("stack", put("kernels", "dense", "norm", value="3")), "norm"),
    "number-for-a-norm": (changed("stack", put("kernels", "dense", "norm", value=1.5)), "norm"),
    "error-of-none": (changed("stack", put("expected_error", "median_fraction", value=0)), "median_fraction"),
    "negative-error": (changed("stack", put("expected_error", "p90_fraction", value=-0.3)), "p90_fraction"),
    "tenfold-error": (changed("stack", put("expected_error", "p90_fraction", value=10.0)), "p90_fraction"),
    "missing-kernel": (changed("stack", drop("kernels", "experts")), "experts is missing"),
    "format-without-a-fraction": (changed("stack", put("kernels", "dense", "compute_fraction", value=None)), "compute"),
    "duplicate-key": ("name: a\nlayers: 3\nlayers: 4\nattention: {}\n", "given twice"),
    "duplicate-key-deep": ("attention: {mla: {heads: 3, heads: 4}}\n", "given twice"),
    "number-as-a-key": ("attention: {3: 4}\n", "not text"),
    "list-as-a-key": ("? [a, b]\n: c\nattention: 3\n", "not text"),
    "bad-yaml": ("name: [unclosed\nattention: 3\n", "bad YAML"),
    "tabs": ("name:\n\t- a\nattention: 3\n", "bad YAML"),
    "alias-bomb": ("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nattention: [*c, *c]\n", "alias"),
    "alias-to-itself": ("attention: &a\n  b: *a\n", "alias"),
    "merge-key": ("base: &b {a: 1}\nattention: {<<: *b}\n", "alias"),
    "python-object": ("attention: !!python/object/apply:os.system ['touch pwned']\n", "YAML"),
    "python-tuple": ("attention: !!python/tuple [1, 2]\n", "YAML"),
    "unknown-tag": ("attention: !secret 3\n", "YAML"),
    "two-documents": ("attention: 3\n---\nattention: 4\n", "YAML"),
    "empty-file": ("", "is empty"),
    "only-a-comment": ("# nothing\n", "not a mapping"),
    "list-at-the-top": ("- a\n- b\n", "not a mapping"),
    "text-at-the-top": ("just words\n", "not a mapping"),
    "number-at-the-top": ("42\n", "not a mapping"),
    "no-known-key": ("colour: red\n", "has no key of a"),
    "null-attention": ("attention: null\n", "key"),
    "control-characters": ("attention: \x07\x1b[31m\n", "YAML"),
    "control-characters-escaped": ('attention: "\\x07\\x1b[31m\\n"\n', "attention|key"),
    "deep-flow": ("attention: " + "[" * 100_000, "nested deeper|bad YAML"),
    "deep-closed": ("attention: " + "[" * 90_000 + "]" * 90_000, "nested deeper|bad YAML"),
    "deep-mappings": ("attention: " + "{a: " * 45_000, "nested deeper"),
    "deep-blocks": ("\n".join(" " * i + "attention:" for i in range(300)), "nested deeper"),
    "long-key": ("attention: 3\n" + "k" * 100_000 + ": 1\n", "bad YAML"),
    "sexagesimal": (changed("model", put("layers", value=0)).replace("layers: 0", "layers: 1:30", 1), "layers"),
    "octal": (changed("model", put("layers", value=0)).replace("layers: 0", "layers: 033", 1), "layers"),
    "underscores": (changed("model", put("layers", value=0)).replace("layers: 0", "layers: 2_7", 1), "layers"),
    "yes-for-true": (changed("model", put("tied_embeddings", value=0)).replace("dings: 0", "dings: yes", 1), "tied"),
    "bad-date": ("attention: 2026-99-99\n", "YAML|attention|key"),
    "huge-whole-number": ("attention: " + "9" * 5000 + "\n", "YAML|attention|key"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECS)
def test_bad_spec_files_are_refused_in_one_line(name: str, folder: Path, cli: Cli) -> None:
    """A spec file that is wrong in one way is refused with the file and the key, and nothing in it is run."""
    text, part = SPECS[name]
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    error = refused(cli("specs", "check", "./spec.yaml"), folder, {"spec.yaml"})
    assert "spec.yaml" in error
    assert any(p in error for p in part.split("|")), error


@pytest.mark.parametrize("name", SPECS)
def test_bad_spec_files_are_refused_where_they_are_used(name: str, folder: Path, cli: Cli) -> None:
    """The same file as a model, a system or a stack is refused as well."""
    (folder / "spec.yaml").write_text(SPECS[name][0], encoding="utf-8")
    for arguments in (estimate("./spec.yaml"), plan("./spec.yaml"), plan(on="./spec.yaml"), plan(stack="./spec.yaml")):
        refused(cli(*arguments), folder, {"spec.yaml"})
    refused(cli("specs", "show", "./spec.yaml"), folder, {"spec.yaml"})


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\xff\xfe\x00\x01binary\x80\x81", "not UTF-8"),
        (bytes(range(256)) * 10, "not UTF-8"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 100, "YAML"),
        ("attention: é\n".encode("latin-1"), "not UTF-8"),
        ("attention: 3\n".encode("utf-16"), "not UTF-8"),
        (b"\xef\xbb\xbfattention: 3\n", "key|attention"),
        (b"attention: 3\n" + b"# filler\n" * 400_000, f"over the {LARGEST_SPEC:,} of a spec"),
    ],
    ids=["junk", "all-bytes", "program", "latin-1", "utf-16", "byte-order-mark", "three-megabytes"],
)
def test_files_that_are_no_text_are_refused(content: bytes, part: str, folder: Path, cli: Cli) -> None:
    """Binary junk, other encodings and files far too large are refused before they are read as YAML."""
    (folder / "spec.yaml").write_bytes(content)
    error = refused(cli("specs", "check", "./spec.yaml"), folder, {"spec.yaml"})
    assert any(p in error for p in part.split("|")), error


def test_places_that_are_no_file_are_refused(folder: Path, cli: Cli) -> None:
    """A directory, a broken link, a pipe and a file without permission are refused."""
    (folder / "dir.yaml").mkdir()
    (folder / "broken.yaml").symlink_to("nowhere.yaml")
    (folder / "loop.yaml").symlink_to("loop.yaml")
    os.mkfifo(folder / "pipe.yaml")
    (folder / "file").write_text("x", encoding="utf-8")
    before = contents(folder)
    for name in ("dir.yaml", "broken.yaml", "loop.yaml", "pipe.yaml", "file/below.yaml"):
        refused(cli("specs", "check", f"./{name}"), folder, before)
        refused(cli(*estimate(f"./{name}")), folder, before)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(folder: Path, cli: Cli) -> None:
    """A file without read permission is refused with the reason."""
    (folder / "secret.yaml").write_text("attention: 3\n", encoding="utf-8")
    (folder / "secret.yaml").chmod(0)
    refused(cli("specs", "check", "./secret.yaml"), folder, {"secret.yaml"})


def test_the_unchanged_specs_are_sound(folder: Path, cli: Cli) -> None:
    """The shipped files the cases above change are sound before the change."""
    for kind in ("model", "chip", "system", "stack"):
        (folder / f"{kind}.yaml").write_text(changed(kind, lambda data: None), encoding="utf-8")
        assert cli("specs", "check", f"./{kind}.yaml").code == 0
    assert cli(*plan("./model.yaml", on="./system.yaml", stack="./stack.yaml")).code == 0


def test_a_chip_without_a_rate_is_refused_by_its_kernel(folder: Path, cli: Cli) -> None:
    """A stack whose kernels compute in a format the chip lacks is refused, not priced at zero."""
    (folder / "hardware").mkdir()
    (folder / "chip.yaml").write_text(changed("chip", put("fp8_rate", value=None)), encoding="utf-8")
    (folder / "system.yaml").write_text(changed("system", put("chip", value="./chip.yaml")), encoding="utf-8")
    before = contents(folder)
    assert "has no such rate" in refused(cli(*estimate(on="./system.yaml")), folder, before)


INFEASIBLE = {
    "memory": ["plan", K3, "--on", SYSTEM, "--isl", "8k", "--osl", "1k", "--chips", "8"],
    "tpot": plan(tpot="1us"),
    "ttft": plan(ttft="1us"),
    "rate": plan(rate="1000000/s"),
    "concurrency": plan(concurrency="1000000"),
    "all": plan(tpot="1us", ttft="1us", rate="1000000/s"),
}


@pytest.mark.parametrize("name", INFEASIBLE)
def test_nothing_feasible_is_an_answer(name: str, folder: Path, cli: Cli) -> None:
    """A valid question with no feasible point exits 3, names the nearest one and by how much it misses."""
    drawn = cli(*INFEASIBLE[name])
    assert drawn.code == 3
    assert "nearest" in drawn.out
    found = cli(*INFEASIBLE[name], "--json")
    assert found.code == 3
    answer = found.json
    assert answer["best"] is None
    assert answer["top"] == answer["front"] == []
    assert answer["feasible"] == 0
    nearest = answer["nearest"]
    assert nearest["missed_by"] > 0
    assert nearest["sentence"]
    assert nearest["layout"].startswith("TP")
    reason = "memory" if name in ("memory", "concurrency") else name
    assert name == "all" or nearest["constraint"] == reason
    assert answer["rejected"][nearest["constraint"]] > 0
    assert contents(folder) == set()


@pytest.mark.parametrize(
    "arguments",
    [estimate(layout="TP8"), estimate(concurrency="1000000"), ["fit", K3, "--on", SYSTEM, "--layout", "TP8 DP1"]],
    ids=["weights", "cache", "fit"],
)
def test_what_does_not_fit_exits_3_with_numbers(arguments: list[str], cli: Cli) -> None:
    """A deployment beyond its memory is said to be so, with the numbers, and is never exit code 0."""
    drawn = cli(*arguments)
    assert drawn.code == 3
    assert "too much" in drawn.out
    found = cli(*arguments, "--json")
    assert found.code == 3
    (violation,) = found.json["violations"]
    assert violation["constraint"] == "memory"
    assert violation["needed"] > violation["available"]


def test_a_real_process_fails_the_same_way(folder: Path) -> None:
    """Through a real process the exit code, the single line and the empty stdout are the same."""
    command = [sys.executable, "-m", "planner.cli.app", *estimate("kimi-k4")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env)
    refused(Answer(done.returncode, done.stdout, done.stderr), folder, set())


def never_a_fault(answer: Answer) -> None:
    """Done, bad input or infeasible; an error is one line and leaves stdout empty."""
    assert answer.code in (0, 2, 3), answer.err
    assert "Traceback" not in answer.err
    if answer.code == 2:
        assert answer.out == ""
        assert answer.err.count("\n") == 1


LAYOUT_TEXT = st.text(max_size=30) | st.lists(
    st.tuples(st.sampled_from(["TP", "DP", "EP", "ETP", "PP", "CP", "DCP", "RED", "tp", "X"]), st.integers(-1, 200)),
    max_size=5,
).map(lambda pairs: " ".join(f"{key}{value}" for key, value in pairs))


@few
@given(LAYOUT_TEXT)
def test_no_layout_text_is_a_fault(text: str) -> None:
    """Any text after --layout is an answer or a refusal."""
    never_a_fault(call(*estimate(layout="=" + text if text.startswith("-") else text)))


COUNT_TEXT = st.integers(-10, 10**7).map(str) | st.sampled_from(["1e400", "0", "-0", "1k", "1M", "1e6", "", " ", "١"])


@few
@given(COUNT_TEXT, COUNT_TEXT, COUNT_TEXT, st.sampled_from(["TP8 DP8", "TP8 DP4 PP2", "DP64", "TP8 CP8"]))
def test_no_lengths_and_loads_are_a_fault(isl: str, osl: str, load: str, layout: str) -> None:
    """Any lengths and concurrency are an answer or a refusal."""
    never_a_fault(call("estimate", K3, "--on", SYSTEM, f"--layout={layout}", f"--isl={isl}", f"--osl={osl}",
                       f"--concurrency={load}", "--json"))  # fmt: skip


MODEL_TEXT = (ROOT / f"model_specs/{LINEAR}.yaml").read_text(encoding="utf-8")
LINES = [number for number, text in enumerate(MODEL_TEXT.splitlines()) if text and not text.startswith("#")]
VALUES = st.sampled_from(
    ["0", "1", "-1", "3", "1000000000000", "1.5", "null", "true", "rest", "bf16", "[]", "{}", "''"]
)


@st.composite
def mutated_models(draw: st.DrawFn) -> str:
    """A shipped model with a few lines dropped, doubled, cut or given another value."""
    lines = MODEL_TEXT.splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.sampled_from(LINES))
        how = draw(st.sampled_from(["value", "value", "value", "drop", "double", "cut", "junk"]))
        text = lines[at]
        if how == "value" and ":" in text:
            lines[at] = text.partition(":")[0] + ": " + draw(VALUES)
        elif how == "drop":
            lines[at] = "# dropped"
        elif how == "double":
            lines[at] = text + "\n" + text
        elif how == "cut":
            lines[at] = text[: draw(st.integers(0, len(text)))]
        elif how == "junk":
            lines[at] = draw(st.text(max_size=20).filter(lambda t: max(t, default=" ") < "\ud800"))
    return "\n".join(lines)


@settings(few, max_examples=250)
@given(text=mutated_models() | st.text(max_size=60).map(lambda t: t.encode("utf-8", "ignore").decode()))
def test_no_spec_text_is_a_fault(tmp_path: Path, text: str) -> None:
    """Any model file is shown and priced, or refused: never a fault, never a traceback."""
    path = tmp_path / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    checked = call("specs", "check", str(path))
    never_a_fault(checked)
    never_a_fault(call("specs", "show", str(path), "--json"))
    for arguments in (
        estimate(str(path), layout="TP2 DP2", isl="100", osl="10"),
        plan(str(path), isl="100", osl="10", chips="4"),
    ):
        answer = call(*arguments, "--json")
        never_a_fault(answer)
        assert checked.code == 0 or answer.code == 2


def figures(kind: str) -> list[tuple[str, ...]]:
    """The path of every figure, count and flag of a shipped spec."""

    def walk(data: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for key, value in data.items():
            if isinstance(value, dict) and "value" not in value:
                yield from walk(value, (*path, key))
            else:
                yield (*path, key)

    return list(walk(shipped(kind), ()))


NUMBERS = st.sampled_from([0, -1, 1e-300, 1e-12, 0.5, 1, 2, 3, 1e12, 1e300])


@st.composite
def mutated_hardware(draw: st.DrawFn) -> dict[str, str]:
    """A chip, a system or a stack of which one figure is out of all reason."""
    kind = draw(st.sampled_from(["chip", "stack", "system"]))
    path = draw(st.sampled_from(figures(kind)))
    number = draw(NUMBERS)

    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        old = data[path[-1]]
        if not isinstance(old, dict):
            data[path[-1]] = number
            return
        unit = str(old["value"]).partition(" ")[2]
        new = f"{number} {unit}" if unit else number
        data[path[-1]] = {**old, "value": new, "status": "published"}
        for end in ("low", "high"):
            data[path[-1]].pop(end, None)

    return {kind: changed(kind, change)}


@settings(few, max_examples=200)
@given(texts=mutated_hardware())
def test_no_figure_is_a_fault(tmp_path: Path, texts: dict[str, str]) -> None:
    """A bandwidth of nothing, a negative fraction or a price beyond reason is priced or refused, never a fault."""
    plain = (ROOT / SHIPPED["system"]).read_text(encoding="utf-8")
    for kind, text in ({"system": plain} | texts).items():
        placed = text.replace("chip: zhenwu-m890\n", f"chip: {tmp_path / 'chip.yaml'}\n") if "chip" in texts else text
        (tmp_path / f"{kind}.yaml").write_text(placed, encoding="utf-8")
    system = str(tmp_path / "system.yaml")
    stack = str(tmp_path / "stack.yaml") if "stack" in texts else "sail-tuned"
    never_a_fault(call(*estimate(LINEAR, on=system, stack=stack, layout="TP2 DP2", isl="100", osl="10"), "--json"))
    never_a_fault(call(*plan(on=system, stack=stack, isl="100", osl="10", chips="2"), "--json"))
