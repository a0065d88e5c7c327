"""Workbooks worked out anew by LibreOffice, without a window."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ALWAYS_RECALCULATES = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse">
<value>0</value></prop></item>
</oor:items>
"""
"""Files of other programs keep the values they were saved with unless this is set."""
PATIENCE_S = 300


def soffice() -> str:
    """The program, or the test is skipped; where CI runs it must be there."""
    found = shutil.which("soffice") or shutil.which("libreoffice")
    if found is None:
        why = "LibreOffice Calc is not installed: no spreadsheet program to check the workbook with"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


def recalculated(files: list[Path], folder: Path) -> list[Path]:
    """Copies of the files with every formula worked out anew, all in one start of the program."""
    program = soffice()
    profile, target = folder / "profile", folder / "recalculated"
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(ALWAYS_RECALCULATES)
    command = [program, f"-env:UserInstallation={profile.as_uri()}", "--headless", "--norestore", "--convert-to",
               "xlsx", "--outdir", str(target), *map(str, files)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    made = [target / file.name for file in files]
    missing = [file.name for file in made if not file.is_file()]
    assert not missing, f"not converted: {missing}: {done.stderr or done.stdout}"
    return made
