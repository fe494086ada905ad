"""YAML as plain texts, lists and mappings.

PyYAML parses it, and none of its constructors runs: a scalar is the text that it is written as, so
that a class called `no` is not False.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tfrecreg.api import MissingExtraError, RawDataError, safe

YamlValue: TypeAlias = "str | Sequence[YamlValue] | Mapping[str, YamlValue]"
"""A scalar, a list or a mapping."""


def read_yaml(path: str, text: str) -> Mapping[str, YamlValue]:
    """The mapping that the text of a YAML file consists of; empty for an empty file."""
    yaml = _require_yaml()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        found = "" if node is None else _value(yaml, node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}"
        reason = getattr(error, "problem", None) or "it is nested too deeply or has odd characters"
        raise RawDataError(
            f"`{safe(path)}`{where} cannot be read as YAML: {safe(reason)}",
            hint="correct the file; `train`, `val` and `names` are expected",
        ) from None
    if found == "":
        return {}
    if not isinstance(found, Mapping):
        raise RawDataError(
            f"`{safe(path)}` is not a mapping: expected `train: …`, `val: …` and `names: …`",
            hint="another file may describe the dataset: --option data=FILE",
        )
    return found


def _require_yaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ModuleNotFoundError:
        raise MissingExtraError("reading `data.yaml`", "yaml") from None


def _value(yaml: Any, node: Any) -> YamlValue:
    """A node without its tag."""
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_value(yaml, each) for each in node.value]
    found: dict[str, YamlValue] = {}
    for key, value in node.value:
        name = _value(yaml, key)
        if not isinstance(name, str):
            raise yaml.MarkedYAMLError(problem="a key is not a text", problem_mark=key.start_mark)
        if name in found:
            raise yaml.MarkedYAMLError(
                problem=f"the key `{name}` occurs twice", problem_mark=key.start_mark
            )
        found[name] = _value(yaml, value)
    return found
