"""Answers on stdout."""

from __future__ import annotations

import json
import sys
from typing import Any


def emit(answer: Any, as_json: bool, draw: Any) -> None:
    """The answer on stdout: JSON, or drawn for people."""
    if as_json:
        data = answer if isinstance(answer, dict) else answer.to_dict()
        sys.stdout.write(json.dumps(data, indent=2, allow_nan=False) + "\n")
    else:
        draw(answer)
