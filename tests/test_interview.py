"""The interview on a real pseudo-terminal: what is on the screen, what is asked again, and the exit codes."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

ROOT = Path(__file__).resolve().parent.parent
ROWS, COLUMNS, PATIENCE_S = 40, 130, 90
ENTER, CLEAR, INTERRUPT, END = "\r", "\x15", "\x03", "\x04"
PLANNER = [sys.executable, "-m", "planner.cli.app"]


class Terminal:
    """The program on a terminal of fixed size; stderr goes to a file so that it can be told from the screen."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.errors = folder, folder / "stderr"
        self.screen = pyte.HistoryScreen(COLUMNS, ROWS, history=5000)
        self.stream = pyte.Stream(self.screen)
        # Without this prompt_toolkit asks the terminal where the cursor is and waits for the answer.
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PROMPT_TOOLKIT_NO_CPR": "1"}
        environment |= {"PYTHONPATH": str(ROOT), "HOME": str(folder)}
        line = f"{shlex.join(PLANNER)} 2>{shlex.quote(str(self.errors))}"
        self.child = pexpect.spawn(
            "/bin/sh", ["-c", f"exec {line}"], dimensions=(ROWS, COLUMNS), env=environment, cwd=str(folder),
            encoding="utf-8", timeout=PATIENCE_S,
        )  # fmt: skip

    def text(self) -> str:
        """Everything printed so far, lines that scrolled away included."""
        gone = ["".join(line[x].data for x in range(COLUMNS)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in ["", *gone, *self.screen.display])

    def read(self) -> bool:
        """Take in what was printed; false when the program has ended."""
        try:
            self.stream.feed(self.child.read_nonblocking(65536, timeout=0.2))
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        return True

    def wait(self, text: str, times: int = 1) -> None:
        """Until the text has been printed so many times."""
        end = time.monotonic() + PATIENCE_S
        while self.text().count(text) < times:
            if not self.read() or time.monotonic() > end:
                raise AssertionError(f"{text!r} was not printed:\n{self.text()}\n{self.errors.read_text()}")

    def answer(self, prompt: str, keys: str, times: int = 1) -> None:
        """The keys once the prompt has been at the start of a line so many times."""
        self.wait("\n" + prompt, times)
        self.child.send(keys)

    def exit_code(self) -> int | None:
        """The exit code once the program has ended."""
        end = time.monotonic() + PATIENCE_S
        while self.read():
            assert time.monotonic() < end, self.text()
        self.child.close()
        return self.child.exitstatus


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.child.close(force=True)


def answer_all(terminal: Terminal, tpot: str = "50ms") -> None:
    """The answers of one whole interview."""
    terminal.answer("? Model", "kimi-k3" + ENTER)
    terminal.answer("? System", "zhenwu-m890-supernode" + ENTER)
    terminal.answer("? Software stack", ENTER)
    terminal.answer("? Prompt tokens", "8k" + ENTER)
    terminal.answer("? Output tokens", "1k" + ENTER)
    terminal.answer("? Cache precision", "fp8" + ENTER)
    terminal.answer("? Recurrent state precision", ENTER)
    terminal.answer("? Load", ENTER)
    terminal.answer("? TTFT target", "20s" + ENTER)
    terminal.answer("? TPOT target", tpot + ENTER)
    terminal.answer("? Arrivals", ENTER)
    terminal.answer("? Objective", ENTER)


def run(command: str) -> dict:
    """The answer of a printed command."""
    name, *arguments = shlex.split(command)
    assert name == "planner"
    done = subprocess.run([*PLANNER, *arguments, "--json"], capture_output=True, cwd=ROOT, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def commands(terminal: Terminal) -> list[str]:
    return [line for line in terminal.text().splitlines() if line.startswith("planner plan")]


def test_a_whole_interview_and_one_changed_answer(terminal):
    answer_all(terminal)
    terminal.wait("kimi-k3: context of 1,048,576 tokens")
    terminal.wait("requests of full context")
    terminal.wait("requests of 9,216 tokens fit in the roomiest layout (TP")
    terminal.wait("Ruled out")
    first = "planner plan kimi-k3 --on zhenwu-m890-supernode --isl 8k --osl 1k --kv-dtype fp8 --ttft 20s --tpot "
    terminal.wait(first + "50ms")

    terminal.answer("? Change one answer?", "TPOT" + ENTER)
    terminal.answer("? TPOT target", CLEAR + "100ms" + ENTER, times=2)
    terminal.wait(first + "100ms")
    terminal.answer("? Change one answer?", ENTER, times=2)
    assert terminal.exit_code() == 0
    assert terminal.errors.read_text() == ""

    before, after = (run(command)["best"] for command in commands(terminal))
    shown = terminal.text()
    shown = shown[shown.index("best layout") :].splitlines()
    assert [line.split("  ")[0].strip() for line in shown[1:8]] == [
        "layout", "batch", "TTFT", "TPOT", "tok/s per chip", "tok/s per user", "$/M output",
    ]  # fmt: skip
    assert before["layout"]["text"] in shown[1]
    assert after["layout"]["text"] in shown[1]
    assert f"{before['concurrency']:,}" in shown[2]
    assert f"{after['concurrency']:,}" in shown[2]
    rate = "serving", "tok_s_per_chip"
    percent = (after[rate[0]][rate[1]] / before[rate[0]][rate[1]] - 1) * 100
    assert shown[5].endswith(f"{percent:+.1f} %")


def test_letters_of_a_name_pick_it_and_a_load_leads_to_its_flag(terminal):
    terminal.answer("? Model", "kk3" + ENTER)
    terminal.answer("? System", "zhenwu-m890-supernode" + ENTER)
    terminal.answer("? Software stack", "migr" + ENTER)
    terminal.answer("? Prompt tokens", "4096" + ENTER)
    terminal.answer("? Output tokens", "256" + ENTER)
    terminal.answer("? Cache precision", ENTER)
    terminal.answer("? Recurrent state precision", "bf16" + ENTER)
    terminal.answer("? Load", "concurrency" + ENTER)
    terminal.answer("? Requests in flight", "64" + ENTER)
    terminal.answer("? TTFT target", ENTER)
    terminal.answer("? TPOT target", ENTER)
    terminal.answer("? Arrivals", "waves" + ENTER)
    terminal.answer("? Objective", "cost" + ENTER)
    asked = "planner plan kimi-k3 --on zhenwu-m890-supernode --stack sail-migration --isl 4096 --osl 256"
    others = "--arrivals waves --objective cost"
    terminal.wait(f"{asked} --state-dtype bf16 --concurrency 64 {others}"[:COLUMNS])

    terminal.answer("? Change one answer?", "Load" + ENTER)
    terminal.answer("? Load", "rate" + ENTER, times=2)
    terminal.answer("? Request rate", "2/s" + ENTER)
    terminal.wait("--rate 2/s")
    terminal.answer("? Change one answer?", ENTER, times=2)
    assert terminal.exit_code() == 0


def test_bad_answers_are_told_in_a_line_and_asked_again(terminal, tmp_path):
    terminal.answer("? Model", "kimi-k9" + ENTER)
    terminal.wait("unknown model 'kimi-k9'; did you mean kimi-k3?")
    terminal.child.send(CLEAR + "./no.yaml" + ENTER)
    terminal.wait("no.yaml: no such file")
    shipped = (ROOT / "model_specs" / "kimi-k3.yaml").read_text()
    (tmp_path / "my model.yaml").write_text(shipped)
    terminal.child.send(CLEAR + "./my model.yaml" + ENTER)
    terminal.answer("? System", "zhenwu-m" + ENTER)
    terminal.answer("? Software stack", ENTER)
    terminal.answer("? Prompt tokens", "TP8")
    terminal.wait("'TP8' is not a count")
    terminal.child.send(CLEAR + "2M")
    terminal.wait("exceed the 1048576 of kimi-k3")
    terminal.child.send(CLEAR + "1e999" + ENTER)
    terminal.wait("--isl: ")
    terminal.child.send(CLEAR + ENTER)
    terminal.wait("--isl: nothing was given; an answer is needed")
    terminal.child.send("1023k" + ENTER)
    terminal.answer("? Output tokens", "2k" + ENTER)
    terminal.wait("the largest --isl is")
    terminal.child.send(CLEAR + "1k" + ENTER)
    terminal.answer("? Cache precision", ENTER)
    terminal.answer("? Recurrent state precision", ENTER)
    terminal.wait("requests of 1,048,576 tokens fit")
    terminal.answer("? Load", ENTER)
    terminal.answer("? TTFT target", ENTER)
    terminal.answer("? TPOT target", "50")
    terminal.wait("--tpot: '50' has no unit; write it like '20ms'")
    terminal.child.send(ENTER + CLEAR + "TP8")
    terminal.wait("--tpot: 'TP8' is not a quantity")
    terminal.child.send(CLEAR + "1us" + ENTER)
    terminal.answer("? Arrivals", ENTER)
    terminal.answer("? Objective", ENTER)
    terminal.wait("No layout meets the question.")
    terminal.wait("planner plan './my model.yaml' --on zhenwu-m890-supernode --isl 1023k --osl 1k --tpot 1us")
    terminal.answer("? Change one answer?", ENTER)
    assert terminal.exit_code() == 3
    assert terminal.errors.read_text() == ""


@pytest.mark.parametrize("key", [INTERRUPT, END], ids=["ctrl-c", "ctrl-d"])
@pytest.mark.parametrize("place", ["? Model", "? Cache precision", "? Change one answer?"])
def test_a_stop_is_one_line_and_writes_nothing(terminal, tmp_path, key, place):
    if place == "? Change one answer?":
        answer_all(terminal)
    elif place == "? Cache precision":
        for prompt, text in (
            ("Model", "kimi-k3"), ("System", "zhenwu-m890-supernode"), ("Software", ""), ("Prompt", "8k"),
            ("Output", "1k"),
        ):  # fmt: skip
            terminal.answer(f"? {prompt}", text + ENTER)
    terminal.answer(place, key)
    assert terminal.exit_code() == 1
    assert terminal.errors.read_text() == "stopped\n"
    assert [path.name for path in tmp_path.iterdir()] == ["stderr"]


def test_without_a_terminal_the_flags_are_named():
    done = subprocess.run(PLANNER, capture_output=True, stdin=subprocess.DEVNULL, cwd=ROOT, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    flags = "planner plan MODEL --on SYSTEM --isl N --osl N"
    assert done.stderr == f"planner: the interview needs a terminal; give the question as flags: {flags}\n"


def test_nothing_heavy_is_imported_before_a_terminal_is_there():
    heavy = "numpy", "questionary", "prompt_toolkit", "pydantic", "sympy"
    code = f"import sys, planner.cli.ask; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True, check=True)
    assert done.stdout.strip() == "[]"
