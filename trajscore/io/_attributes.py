"""The attributes of a span, whatever wrote them, by one name each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

TOOL_NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
TOOL_CALL = ("gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id")

_WRAPPERS = ("message", "message_content", "tool_call", "evaluation")  # of OpenInference


def first(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first of some fields that says something."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)


def attributes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span by their dotted names, whatever wrote them."""
    found = record.get("attributes")
    if isinstance(found, list):  # OTLP
        pairs = [one for one in found if isinstance(one, Mapping)]
        return {str(one.get("key")): plain(one.get("value")) for one in pairs}
    if isinstance(found, Mapping):
        return _flat(found)
    own = {name[11:]: value for name, value in record.items() if name.startswith("attributes.")}
    return own or ({} if "body" in record else dict(record))


def plain(value: Any) -> Any:
    """Return the value that OTLP wraps with its type."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    kind, inner = next(iter(value.items()))
    if kind == "arrayValue" and isinstance(inner, Mapping):
        return [plain(one) for one in _values(inner)]
    if kind == "kvlistValue" and isinstance(inner, Mapping):
        pairs = [one for one in _values(inner) if isinstance(one, Mapping)]
        return {str(one.get("key")): plain(one.get("value")) for one in pairs}
    if kind == "intValue":  # a text, as numbers of JSON are too short for it
        return int(inner) if str(inner).lstrip("-").isdigit() else inner
    return inner if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue") else value


def _flat(nested: Mapping[str, Any], path: str = "", depth: int = 8) -> dict[str, Any]:
    """Return the fields of objects within objects by dotted names, and the objects too."""
    found: dict[str, Any] = {}
    for name, value in nested.items():
        found[f"{path}{name}"] = value
        if isinstance(value, Mapping) and depth:
            found |= _flat(value, f"{path}{name}.", depth - 1)
    return found


def find(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first of some attributes, also one that is spread over indexed names."""
    for name in names:
        if attributes.get(name) not in (None, ""):
            return _untangled(attributes[name])
        start = f"{name}."
        spread = {k[len(start) :]: v for k, v in attributes.items() if k.startswith(start)}
        if any(one.split(".", 1)[0].isdigit() for one in spread):
            return _untangled(spread)
    return None


def _untangled(value: Any) -> Any:
    """Return dotted names as objects within objects, indices as lists, without wrappers."""
    if isinstance(value, list):
        return [_untangled(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    nested: dict[str, Any] = {}
    for name, inner in value.items():
        first, _, rest = str(name).partition(".")
        if not rest:
            nested.setdefault(first, inner)
        elif isinstance(nested.setdefault(first, {}), dict):
            nested[first][rest] = inner
    found = {name: _untangled(inner) for name, inner in nested.items()}
    if found and all(name.isdigit() for name in found):
        return [found[name] for name in sorted(found, key=int)]
    if len(found) == 1 and next(iter(found)) in _WRAPPERS:
        return next(iter(found.values()))
    if "contents" in found:
        found["content"] = found.pop("contents")
    return found


def _values(wrapped: Any) -> list[Any]:
    listed = wrapped.get("values") if isinstance(wrapped, Mapping) else None
    return listed if isinstance(listed, list) else []
