"""Read a YAML file into plain mappings: no tags, no aliases, no duplicate keys, no surprises of YAML 1.1."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from planner.errors import BadFile

DEEPEST_SPEC = 40  # levels of nesting; the deepest shipped is 5


class StrictLoader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML without duplicate keys: the second would silently win."""


def _mapping(loader: Any, node: Any) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is not text", key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
        seen.add(key)
    loader.flatten_mapping(node)
    return {loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value}


PLAIN = {
    "tag:yaml.org,2002:bool": (r"^(?:true|false)$", "tf"),
    "tag:yaml.org,2002:int": (r"^[-+]?(?:0|[1-9][0-9]{0,30})$", "-+0123456789"),
    "tag:yaml.org,2002:float": (r"^[-+]?[0-9]{1,30}\.[0-9]{0,30}(?:[eE][-+]?[0-9]{1,3})?$", "-+0123456789"),
    "tag:yaml.org,2002:null": (r"^(?:null|~|)$", ["n", "~", ""]),
}
"""What an unquoted scalar can be beside text: YAML 1.1 also reads 0100 as 64, 1:30 as 90 and no as false."""
StrictLoader.yaml_implicit_resolvers = {}
for tag, (pattern, first) in PLAIN.items():
    StrictLoader.add_implicit_resolver(tag, re.compile(pattern), list(first))
StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises BadFile with the line where reading stopped."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadFile(str(path), "is not UTF-8 text", "name a YAML spec file") from None
    except OSError as error:
        raise BadFile(str(path), error.strerror or "cannot be read", "check the path and its permissions") from None
    try:
        refuse_deep(text, path)
        data = yaml.load(text, Loader=StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise BadFile(
            str(path), f"bad YAML{line}: {getattr(error, 'problem', None) or error}", "mend the file"
        ) from None
    except (RecursionError, ValueError) as error:
        raise BadFile(str(path), f"cannot be read as YAML: {error}", "mend the file") from None
    if not text.strip():
        raise BadFile(str(path), "is empty", "see a shipped spec for the form")
    if not isinstance(data, dict):
        raise BadFile(
            str(path), f"holds {type(data).__name__}, not a mapping of keys", "see a shipped spec for the form"
        )
    return data


def refuse_deep(text: str, path: Path) -> None:
    """Nesting is counted on events, before any object is built; aliases are refused, since they can multiply."""
    depth = 0
    for event in yaml.parse(text, Loader=StrictLoader):
        tag = getattr(event, "tag", None)
        if tag:
            raise BadFile(str(path), f"uses the YAML tag {tag}", "write the plain value")
        if isinstance(event, yaml.AliasEvent):
            raise BadFile(str(path), "uses a YAML alias", "write the value out")
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > DEEPEST_SPEC:
                raise BadFile(
                    str(path), f"is nested deeper than {DEEPEST_SPEC} levels", "see a shipped spec for the form"
                )
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
