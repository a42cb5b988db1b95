"""Refusing JSON that cannot be read: what was found, the nearest format, and how to name parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.io._vocabulary import as_fields, as_list

_MOST = 12  # names of fields that are shown
_NEAR = 2  # fields that a file and a format have in common

# Fields of records that hold too little of a run to be read.
_PARTIAL: dict[str, tuple[set[str], ...]] = {
    "spans of a trace in no known format": ({"root_span_id"}, {"span_data"}, {"span_parents"}),
    "calls of a model that do not name their run": (
        {"op_name", "trace_id", "inputs"},
        {"messages", "outputs", "kwargs", "uuid"},
    ),
    "answers without the turns before them": (
        {"output", "usage", "response_id"},
        {"response", "current_agent_name"},
        {"type", "message", "stop_reason", "checkpoint"},
    ),
    "events of a program": (
        {"new_agent", "type"},
        {"event_kind", "index", "part"},
        {"event", "agent_id", "nested_depth"},
        {"id", "name", "input", "triggers"},
        {"langgraph_step", "langgraph_node"},
        {"tool_name", "tool_kwargs"},
    ),
}


def unknown_json(
    file: Path, record: Mapping[str, Any], formats: Mapping[str, tuple[str, ...]], problem: str = ""
) -> ArgumentError:
    """Return the error for a JSON file by its first record, and the fields that formats have."""
    if not record and not problem:
        return ArgumentError(f"{file}: no JSON object could be read from it; give a log of runs")
    clauses = [problem or "the format is not known"]
    if record:
        clauses.append(f"the first record has the fields {_names(record)}")
    common = {name: [key for key in keys if key in record] for name, keys in formats.items()}
    nearest = max(common, key=lambda name: len(common[name]))
    if len(common[nearest]) >= _NEAR:
        missing = [key for key in formats[nearest] if key not in record]
        lacks = f", but there is no {_names(missing)}" if missing else ""
        clauses.append(f"the nearest format is {nearest}, for {_names(common[nearest])}{lacks}")
    return ArgumentError(
        f"{file}: {'; '.join(clauses)}. Pass the format as {{argument}} ({', '.join(formats)}), or "
        f"name the parts of a run, {_parts(record)}",
        "format",
    )


def _parts(record: Mapping[str, Any]) -> str:
    """Return how to name the parts of a run, by the longest list of objects in its record."""
    lists = {
        str(name): list(map(as_fields, value))
        for name, value in record.items()
        if as_list(value) and all(isinstance(item, dict) for item in value)
    }
    if not lists:
        return "{argument:fields=text=NAME}"
    name = max(lists, key=lambda name: len(lists[name]))
    keys = _names(lists[name][0])
    return f"{{argument:fields=steps={name},text=NAME}}, where an item of {name!r} has {keys}"


def refuse_partial(file: Path, item: Any) -> None:
    """Refuse a file whose first item holds too little of a run."""
    fields = as_fields(item)
    kinds = (
        kind for kind, marks in _PARTIAL.items() if any(mark <= fields.keys() for mark in marks)
    )
    kind = "pieces of answers as a model streams them" if _is_piece(fields) else next(kinds, None)
    if kind is not None:
        raise ValueError(
            f"{file} holds {kind}; save the messages of each whole run as JSON, or export its "
            f"trace by OpenTelemetry"
        )


def _is_piece(fields: Mapping[str, Any]) -> bool:
    """Tell a piece of an answer that a model streams, by OpenAI's interfaces or Anthropic's."""
    choice = as_fields(next(iter(as_list(fields.get("choices"))), None))
    kind = str(fields.get("type"))
    is_event = kind.startswith("response.") and "sequence_number" in fields
    is_start = kind == "message_start" and "message" in fields
    return ("delta" in choice and "message" not in choice) or is_event or is_start


def _names(names: Iterable[Any]) -> str:
    return ", ".join(map(repr, list(names)[:_MOST]))
