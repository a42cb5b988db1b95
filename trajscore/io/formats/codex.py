"""Sessions of Codex: its rollout files, and what ``codex exec --json`` prints; one run a file."""

from typing import Any

from trajscore.io._messages import Message
from trajscore.io._run import Run, as_objects
from trajscore.io.conversation import Conversation
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import FORMATS, Record, as_fields, text_of, token_counts

_META = "session_meta"
_WORDS = FORMATS["codex"]


@register
class Codex(Format):
    name = "codex"
    holds = "payload"
    _layout = ("**/rollout-*.jsonl*",)  # of a year, month and day each

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        if not head.listed:
            return False
        if fields.get("type") in _WORDS["lines"]:
            return isinstance(fields.get("payload"), dict)
        return fields.get("type") == "thread.started" and "thread_id" in fields

    def runs(self, file: LogFile) -> RawRuns:
        lines = []
        for place, value in super().runs(file):
            if isinstance(value, dict):
                lines.append(value)
            else:
                yield place, value
        meta = next((line for line in lines if line.get("type") == _META), {})  # not its parent's
        file.is_head = "subagent" in as_fields(meta, "payload", "source")  # of another
        if lines and not file.is_head:
            yield file.place(0), lines

    def run(self, raw: Any, place: Place) -> Run:
        run = Run("")
        items: list[Message] = []
        usage: list[tuple[int, Record]] = []
        lines = list(map(_Line, as_objects(raw)))
        for line in _without_rolled_back(lines):
            if line.is_one_of("started") or line.asks:
                run.stop_reason = None
            _note(run, line)
            info = as_fields(line.payload, "info")  # of the last call of the model
            last = info.get("last_token_usage", line.payload.get("usage"))
            if isinstance(last, dict):
                usage.append((len(items), token_counts(last)))
            items += line.messages
        if n_back := sum(len(line.messages) for line in lines) - len(items):
            run.extra["n_left_out"] = {"taken back": n_back}
        run.id = place.name(run.meta.pop("id", None), stem(place.file))
        talk = Conversation(place, items)
        for index, tokens in usage:
            before = [
                step for step in talk.steps if step.actor == "agent" and step.index in range(index)
            ]
            if before:
                before[-1].extra.setdefault("tokens", tokens)
        return talk.finish(run)


class _Line:
    """A line of a session: its contents, with or without an envelope, as messages."""

    def __init__(self, fields: Record) -> None:
        inner = fields.get("payload", fields.get("item"))
        self.kind = str(fields.get("type"))
        self.payload: Record = as_fields(inner) or fields
        self.kinds = {self.kind, str(self.payload.get("type"))}
        self.messages = _messages_of(self.kind, self.payload)
        self.asks = any(message.get("role") == "user" for message in self.messages)

    def is_one_of(self, kinds: str) -> bool:
        return not self.kinds.isdisjoint(_WORDS[kinds])


def _without_rolled_back(lines: list[_Line]) -> list[_Line]:
    """Leave out the turns that the user took back, as many as a line says."""
    remaining: list[_Line] = []
    turns: list[int] = []  # where those of the user start
    start: int | None = None  # of a turn in which nothing is asked yet
    for line in lines:
        n_turns = line.payload.get("num_turns")
        if "thread_rolled_back" in line.kinds and isinstance(n_turns, int):
            first_turn = max(len(turns) - n_turns, 0)
            del remaining[next(iter(turns[first_turn:]), len(remaining)) :], turns[first_turn:]
            continue
        if line.is_one_of("started"):
            start = len(remaining)
        if line.asks:
            turns.append(len(remaining) if start is None else start)
            start = None
        remaining.append(line)
    return remaining


def _note(run: Run, line: _Line) -> None:
    """Set the session's name, its model, and how it ended."""
    payload = line.payload
    if line.kind in (_META, "thread.started") and "id" not in run.meta:  # a fork: its parent's
        run.meta["id"] = payload.get("id", payload.get("thread_id"))
        run.meta |= {key: payload[key] for key in ("cwd", "cli_version") if key in payload}
    elif line.kind == "turn_context":
        run.meta["model"] = payload.get("model")
    elif line.is_one_of("aborted"):
        reason = payload.get("reason")
        run.stop_reason = reason if isinstance(reason, str) else "error"
    elif line.is_one_of("completed"):
        run.stop_reason = "completed"


def _messages_of(of_line: str, item: Record) -> list[Message]:
    """Return the item of a line as messages; instructions are the system's."""
    kind = item.get("type")
    if of_line in _WORDS["no_items"] or of_line.startswith("turn."):
        return []
    if kind == "agent_message":
        return [{"role": "assistant", "content": item.get("text")}]
    if kind == "command_execution":
        call = {"id": item.get("id"), "arguments": item.get("command"), "type": "shell_call"}
        failed = item.get("exit_code") not in (0, None)
        return [{**call, "output": item.get("aggregated_output"), "is_error": failed}]
    if item.get("role") == "user" and kind == "message":
        text = text_of(item.get("content")).lstrip()
        if text.startswith(tuple(_WORDS["instructions"])):
            return [{**item, "role": "system"}]
    if kind in _WORDS["items"] or str(kind).endswith(("_call", "_call_output")):
        return [dict(item)]
    return []
