"""Configs on the command line: as MODEL of any command, shown, imported, and from the hub."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Cli

from planner.errors import BadFile
from planner.specs.huggingface import hub, read
from planner.specs.library import load_model

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = Path(__file__).resolve().parent / "fixtures" / "configs"
SYSTEM = "zhenwu-m890-supernode"
LLAMA = str(CONFIGS / "llama-3.1-8b.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a checkpoint has it."""
    place = tmp_path / "Llama-3.1-8B"
    place.mkdir()
    shutil.copy(LLAMA, place / "config.json")
    return place


def test_a_folder_or_its_config_is_a_model(folder: Path, cli: Cli) -> None:
    """Both name the same model, called by its folder; a trailing slash does not matter."""
    found = load_model(str(folder))
    assert found == load_model(str(folder / "config.json")) == load_model(f"{folder}/")
    assert found.name == "Llama-3.1-8B"
    answer = cli("fit", str(folder), "--on", SYSTEM, "--layout", "TP2", "--json")
    assert (answer.code, answer.json["model"]) == (0, "Llama-3.1-8B")


def test_a_folder_in_the_working_directory(folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name is a spec if there is one, else a folder here."""
    monkeypatch.chdir(folder.parent)
    assert load_model("Llama-3.1-8B").name == "Llama-3.1-8B"
    (folder.parent / "kimi-k3").mkdir()
    assert load_model("kimi-k3").layers == 93
    assert cli("specs", "show", "Llama-3.1-8B", "--json").json["derived"]["total_params"] == 8_030_261_248


def test_a_config_that_changed_is_read_again(folder: Path) -> None:
    """The record follows the file."""
    path = folder / "config.json"
    assert load_model(str(path)).layers == 32
    path.write_text(path.read_text().replace('"num_hidden_layers": 32', '"num_hidden_layers": 16'))
    os.utime(path, ns=(1, 1))
    assert load_model(str(path)).layers == 16


def test_show(cli: Cli) -> None:
    """A config is shown with what follows from it, though its maker's figures are not in it."""
    answer = cli("specs", "show", LLAMA)
    assert answer.code == 0
    assert "8,030,261,248" in answer.out
    assert cli("specs", "show", LLAMA, "--json").json["published"] is None
    assert cli("specs", "check", LLAMA, "--json").json == {
        "path": LLAMA, "kind": "model", "name": "llama-3.1-8b", "sound": True,
    }  # fmt: skip


def test_import_to_stdout_and_to_a_file(cli: Cli, tmp_path: Path) -> None:
    """The YAML is the record, its derived numbers are comments; a file is never written over without --force."""
    text = cli("specs", "import", LLAMA).out
    assert text.startswith("# Derived")
    assert "# parameters, text         8,030,261,248" in text
    out = tmp_path / "mine.yaml"
    first = cli("specs", "import", LLAMA, "--out", str(out))
    assert (first.code, first.out, out.read_text()) == (0, "", text)
    assert load_model(str(out)) == load_model(LLAMA)
    other = str(CONFIGS / "qwen3-0.6b.json")
    refused = cli("specs", "import", other, "--out", str(out))
    assert refused.code == 2
    assert "is there already" in refused.err
    assert out.read_text() == text
    assert cli("specs", "import", other, "--out", str(out), "--force").code == 0
    assert load_model(str(out)).name == "qwen3-0.6b"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize(
    ("out", "says"),
    [("model.json", "end it in .yaml"), ("no/such/folder/m.yaml", "there is no folder"), (".yaml/", "end it in .yaml")],
)
def test_import_where_nothing_can_be_written(cli: Cli, tmp_path: Path, out: str, says: str) -> None:
    """One line, and no file."""
    answer = cli("specs", "import", LLAMA, "--out", f"{tmp_path}/{out}")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert says in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["specs", "show"], ["specs", "import"], ["fit", "--on", SYSTEM]])
@pytest.mark.parametrize("name", ["hf:nobody", "hf:a/b/c", "hf:", "absent.json", "hf:nobody/nothing"])
def test_names_that_lead_nowhere(cli: Cli, command: list[str], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line at once."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    begun = time.monotonic()
    answer = cli(command[0], *command[1:2], name) if command[0] == "specs" else cli("fit", name, *command[1:])
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert time.monotonic() - begun < 3


class Away:
    """A stand-in for huggingface_hub that has one cached repository and no network."""

    class errors:
        class EntryNotFoundError(Exception):
            pass

    class utils:
        @staticmethod
        def build_hf_headers() -> dict[str, str]:
            return {}

    def __init__(self, cached: Path) -> None:
        self.cached = cached

    def hf_hub_url(self, repository: str, file: str, revision: str | None = None) -> str:
        return f"http://127.0.0.1:9/{repository}/{file}"

    def hf_hub_download(self, repository: str, file: str, **rest: object) -> str:
        assert rest["local_files_only"], "nothing is fetched from a hub that did not answer"
        if repository != "org/cached":
            raise self.errors.EntryNotFoundError
        return str(self.cached)


def test_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is cached is used; what is not is asked for once, and a hub that is away costs no waiting."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    away = Away(folder / "config.json")
    monkeypatch.setattr(hub, "library", lambda name: away)
    found = load_model("hf:org/cached")
    assert (found.name, found.layers) == ("cached", 32)
    assert "org/cached" in found.source
    begun = time.monotonic()
    with pytest.raises(BadFile, match="cannot be reached"):
        load_model("hf:org/other")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadFile, match="HF_HUB_OFFLINE is set"):
        load_model("hf:org/other")
    assert time.monotonic() - begun < 1


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub is an extra, and the line says how to get it."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(BadFile, match=r"pip install '\.\[hub\]'"):
        load_model("hf:org/repo")


def test_reading_is_light() -> None:
    """Neither numpy nor sympy nor the hub's library is loaded to read, show or import a config."""
    program = (
        "import io, sys\nfrom contextlib import redirect_stdout\nfrom planner.cli.app import run\n"
        "with redirect_stdout(io.StringIO()):\n"
        "    codes = run(['specs', 'show', sys.argv[1]]), run(['specs', 'import', sys.argv[1]])\n"
        "print(codes, [n for n in ('numpy', 'sympy', 'huggingface_hub') if n in sys.modules])"
    )
    command = [sys.executable, "-c", program, str(CONFIGS / "kimi-k3.json")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert found == "(0, 0) []\n"


@pytest.mark.parametrize("name", ["kimi-k3", "deepseek-v4-pro", "glm-5.2-fp8"])
def test_reading_is_fast(name: str) -> None:
    """Under 50 ms of processor time once the records are built; the best of nine, since machines stutter."""
    times = []
    for _ in range(9):
        begun = time.process_time()
        read(CONFIGS / f"{name}.json")
        times.append(time.process_time() - begun)
    assert min(times) < 0.05


@pytest.mark.parametrize(
    ("name", "says"),
    [("loop", "symbolic links"), ("g.gguf", "a GGUF file"), ("model.safetensors", "a safetensors file")],
)
def test_a_bare_name_of_a_file(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str) -> None:
    """What is there by that name is looked at, in a folder or not."""
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("g.gguf").write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(64))
    Path("model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00" + b'{"a":{"b":1}}   ' + bytes(9))
    for command in (["fit", name, "--on", SYSTEM], ["specs", "show", name], ["specs", "import", name]):
        answer = cli(*command)
        assert (answer.code, answer.err.count("\n")) == (2, 1)
        assert says in answer.err
    assert "leads nowhere" in cli("fit", "qwen3-0.6b", "--on", "loop").err
    Path("a100").write_text("not a spec", encoding="utf-8")
    assert cli("specs", "show", "a100").code == 0


@pytest.mark.parametrize(("flag", "kind"), [("--on", "system"), ("--stack", "stack")])
def test_a_config_in_place_of_another_spec(cli: Cli, flag: str, kind: str) -> None:
    """It is a model's, and that is said."""
    on = [] if flag == "--on" else ["--on", SYSTEM]
    assert f"a model's config.json, and a {kind} spec is needed" in cli("fit", "qwen3-0.6b", *on, flag, LLAMA).err


def test_out_is_a_regular_file_or_absent(cli: Cli, tmp_path: Path) -> None:
    """Links that lead nowhere and pipes are refused, forced or not; a link to a file is written through by force."""
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "dangling.yaml").symlink_to("nowhere.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("loop", "dangling", "pipe"):
        for force in ([], ["--force"]):
            answer = cli("specs", "import", LLAMA, "--out", str(tmp_path / f"{name}.yaml"), *force)
            assert answer.code == 2
            assert "not a regular file" in answer.err
    target, link = tmp_path / "target.yaml", tmp_path / "link.yaml"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target.name)
    assert "is there already" in cli("specs", "import", LLAMA, "--out", str(link)).err
    assert cli("specs", "import", LLAMA, "--out", str(link), "--force").code == 0
    assert link.is_symlink()
    assert load_model(str(target)) == load_model(LLAMA)


def test_a_failed_write_leaves_nothing(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the file nor a draft of it."""

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    answer = cli("specs", "import", LLAMA, "--out", str(tmp_path / "m.yaml"))
    assert (answer.code, list(tmp_path.iterdir())) == (2, [])
    assert "No space left" in answer.err
