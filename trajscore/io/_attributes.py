"""The attributes of spans in all forms in which tracers write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from trajscore.io._run import MalformedRunError
from trajscore.io._vocabulary import as_list, parsed

_HEAD = 40  # characters by which a text is told from messages of OpenInference
_MESSAGE = re.compile(r"""["']message\.""")  # in JSON, or as Python writes them
_WRAPPERS = ("message", "message_content", "tool_call", "evaluation")  # of OpenInference


def attributes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span by their dotted names."""
    attributes = record.get("attributes")
    if isinstance(attributes, list):  # OTLP
        return _from_pairs(attributes)
    if isinstance(attributes, dict):
        return _flat(attributes)
    named = {name[11:]: value for name, value in record.items() if name.startswith("attributes.")}
    return named or ({} if "body" in record else dict(record))


def plain(value: Any) -> Any:
    """Return the value that OTLP wraps with its type."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    kind, inner = next(iter(value.items()))
    if kind in ("arrayValue", "kvlistValue") and isinstance(inner, dict):
        values = as_list(inner.get("values"))
        if kind == "arrayValue":
            return list(map(plain, values))
        return _from_pairs(values)
    if kind == "intValue":  # a text, as numbers of JSON are too short for it
        if str(inner).lstrip("-").isdigit():
            return int(inner)
        return inner
    if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        return inner
    return value


def _from_pairs(pairs: Any) -> dict[str, Any]:
    fields = (pair for pair in pairs if isinstance(pair, dict))
    return {str(pair.get("key")): plain(pair.get("value")) for pair in fields}


def _flat(nested: Mapping[str, Any], path: str = "", depth: int = 8) -> dict[str, Any]:
    """Return the fields of nested objects by dotted names, and the objects too."""
    fields: dict[str, Any] = {}
    for name, value in nested.items():
        fields[f"{path}{name}"] = value
        if isinstance(value, dict) and depth:
            fields |= _flat(value, f"{path}{name}.", depth - 1)
    return fields


def read_attribute(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first of some attributes, also if it is spread over names with indices."""
    for name in names:
        if (value := attributes.get(name)) not in (None, ""):
            if not isinstance(value, str) or not _MESSAGE.search(value[:_HEAD]):
                return _untangled(value)
            if isinstance(messages := parsed(value), str):
                raise MalformedRunError(f"its {name} is not JSON, but what Python prints")
            return _untangled(messages)
        start = f"{name}."
        spread = {k[len(start) :]: v for k, v in attributes.items() if k.startswith(start)}
        if any(k.partition(".")[0].isdigit() for k in spread):
            return _untangled(spread)
    return None


def _untangled(value: Any) -> Any:
    """Return dotted names as nested objects, indices as lists, without wrappers."""
    if isinstance(value, list):
        return list(map(_untangled, value))
    if not isinstance(value, dict):
        return value
    nested: dict[str, Any] = {}
    for name, inner in value.items():
        key, _, rest = str(name).partition(".")
        if not rest:
            nested.setdefault(key, inner)
        elif isinstance(nested.setdefault(key, {}), dict):
            nested[key][rest] = inner
    fields = {key: _untangled(inner) for key, inner in nested.items()}
    if fields and all(key.isdigit() for key in fields):
        return [fields[key] for key in sorted(fields, key=int)]
    if len(fields) == 1 and next(iter(fields)) in _WRAPPERS:
        return next(iter(fields.values()))
    if "contents" in fields:
        fields["content"] = fields.pop("contents")
    return fields
