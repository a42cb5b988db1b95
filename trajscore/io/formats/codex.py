"""Sessions of Codex: its rollout files, and what ``codex exec --json`` prints; one run a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._run import Run, as_objects
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, register
from trajscore.io.vocabulary import text_of, token_counts

_META = "session_meta"
_LINES = (_META, "response_item", "event_msg", "turn_context", "compacted")
_NO_ITEMS = (_META, "event_msg", "turn_context", "compacted", "item.started")
_ITEMS = ("message", "reasoning")
# Starts of messages that the program writes in the user's name.
_INSTRUCTIONS = (
    "<user_instructions>", "<environment_context>", "<turn_aborted>", "# AGENTS.md instructions",
)  # fmt: skip
_STARTED = ("task_started", "turn_started", "turn.started")
_ABORTED = ("turn_aborted", "turn.failed", "error")


@register
class Codex(Format):
    name = "codex"
    holds = "payload"
    beside = ("type", "timestamp")
    _layout = ("**/rollout-*.jsonl*",)  # of a year, month and day each

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        if not head.listed:
            return False
        if fields.get("type") in _LINES:
            return isinstance(fields.get("payload"), Mapping)
        return fields.get("type") == "thread.started" and "thread_id" in fields

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        lines = []
        for _, index, value in file.items():
            if isinstance(value, Mapping):
                lines.append(value)
            else:
                yield file.place(index or 0), value
        meta = next((line for line in lines if line.get("type") == _META), {})  # not its parent's
        source = _payload(meta).get("source")
        file.is_head = isinstance(source, Mapping) and "subagent" in source  # of another session
        if lines and not file.is_head:
            yield file.place(0), lines

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        run = Run("")
        items: list[dict[str, Any]] = []
        usage: list[tuple[int, dict[str, Any]]] = []
        lines = as_objects(raw)
        for line in _without_rolled_back(lines):
            payload = _payload(line)
            kind = str(line.get("type"))
            new = _messages_of(line)
            if _starts(line) or _asks(new):
                run.stop_reason = None
            _note(run, line, payload)
            if kind == "event_msg" or kind.startswith("turn."):
                usage.append((len(items), _tokens(payload)))
            items += new
        if n_back := sum(map(len, map(_messages_of, lines))) - len(items):
            run.extra["n_left_out"] = {"taken back": n_back}
        run.id = place.name(run.meta.pop("id", None), stem(place.file))
        talk = Conversation(place)
        talk.add_all(items)
        for index, tokens in usage:
            before = [
                step for step in talk.steps if step.actor == "agent" and step.index in range(index)
            ]
            if before and tokens and "tokens" not in before[-1].extra:
                before[-1].extra["tokens"] = tokens
        return talk.finish(run)


def _without_rolled_back(lines: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out the turns that the user took back, as many as a line says."""
    remaining: list[Mapping[str, Any]] = []
    turns: list[int] = []  # where those of the user start
    start: int | None = None  # of a turn in which nothing is asked yet
    for line in lines:
        n_turns = _payload(line).get("num_turns")
        if _payload(line).get("type") == "thread_rolled_back" and isinstance(n_turns, int):
            first_turn = max(len(turns) - n_turns, 0)
            del remaining[next(iter(turns[first_turn:]), len(remaining)) :], turns[first_turn:]
            continue
        if _starts(line):
            start = len(remaining)
        if _asks(_messages_of(line)):
            turns.append(len(remaining) if start is None else start)
            start = None
        remaining.append(line)
    return remaining


def _starts(line: Mapping[str, Any]) -> bool:
    return line.get("type") in _STARTED or _payload(line).get("type") in _STARTED


def _asks(messages: list[dict[str, Any]]) -> bool:
    return any(message.get("role") == "user" for message in messages)


def _payload(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the contents of a line, with or without an envelope."""
    inner = line.get("payload", line.get("item"))
    if isinstance(inner, Mapping):
        return inner
    return line


def _note(run: Run, line: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
    """Set the session's name, its model, and how it ended."""
    kind = line.get("type")
    inner = payload.get("type")
    if kind in (_META, "thread.started") and "id" not in run.meta:  # a fork copies its parent's
        run.meta["id"] = payload.get("id", payload.get("thread_id"))
        run.meta |= {key: payload[key] for key in ("cwd", "cli_version") if key in payload}
    elif kind == "turn_context":
        run.meta["model"] = payload.get("model")
    elif inner in _ABORTED or kind in _ABORTED:
        reason = payload.get("reason")
        run.stop_reason = reason if isinstance(reason, str) else "error"
    elif kind == "turn.completed" or inner in ("task_complete", "turn_complete"):
        run.stop_reason = "completed"


def _tokens(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens of the last call of the model."""
    info = payload.get("info")
    last = info.get("last_token_usage") if isinstance(info, Mapping) else payload.get("usage")
    if isinstance(last, Mapping):
        return token_counts(last)
    return {}


def _messages_of(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the item of a line as messages; instructions are the system's."""
    of_line = str(line.get("type"))
    item = _payload(line)
    if of_line in _NO_ITEMS or of_line.startswith("turn."):
        return []
    kind = item.get("type")
    if kind == "agent_message":
        return [{"role": "assistant", "content": item.get("text")}]
    if kind == "command_execution":
        call = {"id": item.get("id"), "name": "shell", "arguments": item.get("command")}
        failed = item.get("exit_code") not in (0, None)
        result = {"role": "tool", "tool_call_id": item.get("id"), "error": failed or None}
        return [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            result | {"content": item.get("aggregated_output")},
        ]
    text = ""
    if kind == "message":
        text = text_of(item.get("content")).lstrip()
    if item.get("role") == "user" and text.startswith(_INSTRUCTIONS):
        return [{**item, "role": "system"}]
    is_item = kind in _ITEMS or str(kind).endswith(("_call", "_call_output"))
    if is_item:
        return [dict(item)]
    return []
