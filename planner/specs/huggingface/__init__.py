"""Hugging Face `config.json` -> model record: read right, or refused in one line.

    files.py          what a path is: a config, a folder with one, or something else; strict JSON
    config.py         the language part of a config and typed access to its keys, aliases included
    defaults.py       what a model's class takes where the file leaves a key out
    rope.py           the longest context, with the scaling of rotary positions
    schemes.py        one reader per quantisation method
    patterns.py       regular expressions that come to an end soon
    modules.py        module names, and lists that pick some of them
    quantization.py   which format each module's weights have: every spelling in use, ignore lists, mixed tables
    parts.py          attention and feed-forward parts from sizes and module names
    draft.py          draft layers, counted apart;  vision.py  vision towers
    foreign.py        what a family does not read is refused
    hub.py            a config from the hub
    network.py        layers as a list -> groups of equal layers -> Model
    families/         one file per family of models: its layers from its keys

A family is chosen by `model_type`; an unknown one is refused, never read as another.
"""

from __future__ import annotations

from pathlib import Path

from planner.specs.huggingface.config import language_part
from planner.specs.huggingface.families import network_of
from planner.specs.huggingface.files import CONFIG, opened
from planner.specs.huggingface.network import model_of
from planner.specs.huggingface.quantization import quantization_of
from planner.specs.model import Model


def read(path: Path, name: str = "", source: str = "") -> Model:
    """The model a config.json, or a folder that holds one, describes. Raises BadFile, BadSpec.

    name, source: what to call it and where it is from; by default its folder's or its file's name.
    """
    files = opened(path)
    config = language_part(files)
    quantization = quantization_of(files, config)
    network = network_of(config, quantization)
    network.notes += quantization.notes(network.table_format)
    network.cache_format = quantization.cache_format
    quantization.refuse_idle(config)
    place = Path(files.name)
    own = place.resolve().parent.name if place.name == CONFIG else place.stem
    return model_of(config, network, name or own or "model", source or f"{place.name}, read as it is")
