"""What LangGraph streams and saves: updates, states, messages, and snapshots of a thread."""

from collections.abc import Iterable, Iterator
from typing import Any

from trajscore.io import vocabulary as keys
from trajscore.io._conversation import Conversation
from trajscore.io._messages import is_chat_list, is_message, type_of, unwrapped
from trajscore.io._run import Run, leftover
from trajscore.io._traces import EventFormat
from trajscore.io.fields import dig, usual_names
from trajscore.io.files import Place
from trajscore.io.registry import register
from trajscore.io.vocabulary import Record, as_fields, as_list, text_of

Part = tuple[str, Any]
"""What a chunk holds: a state ("values"), "updates" by node, one of the "messages", or nothing."""

_MODES = {"values", "updates", "messages", "debug", "custom", "checkpoints", "tasks"}
_NOTHING: Part = ("", None)
_THREAD = "configurable.thread_id"
# fields that hold the state of a run, and not the update of a node
_STATES = {*keys.STATES, *(name for sides in keys.CALL_SIDES for name in sides)}
_CHUNKED = ("name", "args", "id")  # of a call
_SNAPSHOT = (  # of a thread, whose fields JSON does not name where it is written as a tuple
    "values", "next", "config", "metadata", "created_at", "parent_config", "tasks", "interrupts",
)


@register
class LangGraph(EventFormat):
    name = "langgraph"
    holds = "langgraph_node"
    beside = ("values", "next", "config", "payload")
    lax = True

    def is_event(self, value: Any) -> bool:
        return part_of(value) is not None

    def is_log(self, value: Any) -> bool:
        states = [as_fields(state).get("messages") for state in as_list(value)[:2]]
        if len(states) > 1 and all(map(is_chat_list, states)) and states[0] != states[1]:
            short, long = sorted(states, key=len)
            return bool(long[: len(short)] == short)  # a state that grows
        return super().is_log(value)

    def run_of(self, event: Any) -> Any:
        fields = _snapshot(event) or as_fields(event[-1] if isinstance(event, list) else event)
        owners = (fields.get("config"), dig(fields, "payload.config"))
        named = [dig(owner, _THREAD) for owner in owners]
        return next(filter(None, (*named, dig(fields, "thread_id"))), None)

    def read(self, events: list[Any], place: Place, run: Run) -> Run:
        events = [_snapshot(event) or event for event in events]
        steps = [dig(event, "metadata.step") for event in (events[0], events[-1])]
        if None not in steps and steps[0] > steps[1]:  # as `get_state_history` yields them
            events = events[::-1]
        parts = [part_of(event) or ("values", event) for event in events]
        kinds = {kind for kind, _ in parts}
        states = [value for kind, value in parts if kind == "values"]
        updates = [value for kind, value in parts if kind == "updates"]
        if "values" not in kinds:
            states = [node for update in updates for node in update.values()]
        merged: dict[Any, list[Any]] = {}
        for state in states:
            run.extra |= leftover(as_fields(state), ("messages",))
            for position, message in enumerate(_listed(state)):
                key = unwrapped(message).get("id") or (position if "values" in kinds else id(message))
                merged[key] = [message]
        for kind, message in parts if not states else ():
            if kind == "messages":
                merged.setdefault(unwrapped(message).get("id") or id(message), []).append(message)
        kept = (pieces for pieces in merged.values() if type_of(pieces[0]) != "remove")
        return Conversation(place, list(map(_joined, kept))).finish(run)


def part_of(record: Any) -> Part | None:
    """Return what a chunk of a stream, or a snapshot, holds; None for anything else."""
    fields = _snapshot(record) or as_fields(record)
    if isinstance(record, list) and not fields:
        return _of_tuple(record)
    kind = fields.get("type")
    if "payload" in fields and kind in ("checkpoint", "task", "task_result"):  # of "debug"
        values = as_fields(fields["payload"]).get("values")
        return ("values", values) if kind == "checkpoint" else _NOTHING
    if {"values", "next", "config"} <= fields.keys():
        return "values", fields["values"]
    if "channel_values" in as_fields(fields, "checkpoint"):
        return "values", fields["checkpoint"]["channel_values"]
    if kind in _MODES and {"ns", "data"} <= fields.keys():
        return _of_mode(str(kind), fields["data"])
    if _is_update(fields):
        return "updates", {name: node for name, node in fields.items() if _listed(node)}
    return None


def _snapshot(values: Any) -> Record:
    """Return the fields of a snapshot that is written as a tuple; none for anything else."""
    if len(as_list(values)) < len(_SNAPSHOT) - 1 or "configurable" not in as_fields(values[2]):
        return {}
    return dict(zip(_SNAPSHOT, values, strict=False))


def _of_tuple(values: list[Any]) -> Part | None:
    """Return what a chunk holds behind the names of its graph and its mode, if it has these."""
    if not 2 <= len(values) <= 3:
        return None
    *front, value = values
    if isinstance(front[0], list) and all(isinstance(name, str) for name in front[0]):
        del front[0]
        if not front:
            return part_of(value) or (("values", value) if _listed(value) else None)
    if isinstance(front[0], str) and front[0] in _MODES:
        return _of_mode(front[0], value)
    if is_message(front[0]) and "langgraph_node" in as_fields(value):
        return "messages", front[0]
    return None


def _of_mode(mode: str, value: Any) -> Part:
    if mode in ("values", "updates"):
        return mode, as_fields(value)
    if mode == "messages" and as_list(value):
        return mode, value[0]
    return part_of(value) or _NOTHING


def _is_update(fields: Record) -> bool:
    """Tell the updates of nodes, each an object with messages, beside at most names of the run."""
    of_run = {name for part in ("id", "outcome", "task") for name in usual_names(part, fields)}
    nodes = {name: node for name, node in fields.items() if name not in of_run}
    are_nodes = all(isinstance(node, (dict, list, type(None))) for node in nodes.values())
    return are_nodes and any(_listed(nodes[name]) for name in nodes.keys() - _STATES)


def _listed(state: Any) -> list[Any]:
    """Return the messages of a state, or of the update of a node: a list, or a single one."""
    messages = as_fields(state).get("messages")
    if is_message(messages):
        return [messages]
    return messages if is_chat_list(messages) else []


def _joined(pieces: list[Any]) -> Any:
    """Return the message that its streamed pieces make up."""
    if len(pieces) == 1:
        return pieces[0]
    fields = [unwrapped(piece) for piece in pieces]
    message = {name: value for piece in fields for name, value in piece.items() if value}
    message["content"] = "".join(text_of(piece.get("content")) for piece in fields)
    calls: dict[Any, dict[str, Any]] = {}
    for chunk in _chunks(fields):
        call = calls.setdefault(chunk.get("index"), dict.fromkeys(_CHUNKED, ""))
        for name in _CHUNKED:
            call[name] += chunk.get(name) or ""
    return message | {"tool_calls": list(calls.values())}


def _chunks(fields: Iterable[Record]) -> Iterator[Record]:
    return (as_fields(chunk) for piece in fields for chunk in as_list(piece.get("tool_call_chunks")))
