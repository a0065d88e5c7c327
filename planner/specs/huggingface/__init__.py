"""Hugging Face `config.json` -> model record: read right, or refused in one line.

    files.py          what a path is: a config, a folder with one, or something else; strict JSON
    config.py         the language part of a config and typed access to its keys, aliases included
    quantization.py   which format each module's weights have: every spelling in use, ignore lists, mixed tables
    network.py        layers as a list -> groups of equal layers -> Model
    families/         one file per family of models: its layers from its keys

A family is chosen by `model_type`; an unknown one is refused, never read as another.
"""

from __future__ import annotations

from pathlib import Path

from planner.specs.huggingface.config import language_part
from planner.specs.huggingface.families import network_of
from planner.specs.huggingface.files import opened
from planner.specs.huggingface.network import model_of
from planner.specs.huggingface.quantization import quantization_of
from planner.specs.model import Model


def read(path: Path) -> Model:
    """The model a config.json, or a folder that holds one, describes. Raises BadFile, BadSpec."""
    files = opened(path)
    config = language_part(files)
    return model_of(config, network_of(config, quantization_of(files, config)))
