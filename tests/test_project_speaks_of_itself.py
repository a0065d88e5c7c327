"""The tracked text names no package index, and every module stays short enough to read in one sitting."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINE_LIMIT = 350

# One letter of each word is bracketed so that this file does not match itself.
PACKAGE_INDEX = re.compile(r"index[-_]ur[l]|find[-_]link[s]|/simpl[e]\b", re.IGNORECASE)


def tracked_texts() -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    texts = {}
    for name in listed.decode().split("\0"):
        path = ROOT / name
        # Git lists a file removed from the work tree until the removal is staged.
        if name and path.is_file():
            content = path.read_bytes()
            if b"\0" not in content:
                texts[name] = content.decode()
    return texts


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a git checkout knows which files are tracked")
def test_no_tracked_text_names_a_package_index():
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in tracked_texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if PACKAGE_INDEX.search(line)
    ]
    assert found == []


def test_every_module_stays_short():
    modules = sorted((ROOT / "planner").rglob("*.py"))
    assert modules
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules}
    assert {name: count for name, count in lines.items() if count >= LINE_LIMIT} == {}
