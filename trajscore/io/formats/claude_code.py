"""Sessions of Claude Code, as it keeps them, or as ``--output-format stream-json`` prints them.

Turns of subagents, messages that the program writes in the user's name, and turns that the user
took back are left out and counted.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from trajscore.io._messages import Message, as_id
from trajscore.io._run import Run, as_object, as_objects
from trajscore.io.conversation import Conversation
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import (
    FORMATS,
    Record,
    Values,
    as_fields,
    as_list,
    first,
    is_amount,
    text_of,
)

_TURNS = ("user", "assistant")
_SESSION = ("sessionId", "session_id")
_WORDS = FORMATS["claude_code"]


@register
class ClaudeCode(Format):
    name = "claude_code"
    holds = "sessionId"
    _layout = ("*.jsonl*", "*/*.jsonl*")  # of a project, or of all

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        if not head.listed or not isinstance(fields.get("type"), str):
            return False
        if "session_id" in fields and fields["type"] in _WORDS["lines"]:
            return True
        return bool({"sessionId", "leafUuid", "snapshot"} & fields.keys())

    def runs(self, file: LogFile) -> RawRuns:
        sessions: dict[str, Values] = {}
        for place, line in super().runs(file):
            if not isinstance(line, dict):
                yield place, line
                continue
            name = first(line, _SESSION)
            if name is None:
                name = next(reversed(sessions), None)
            if name is not None and (line.get("type") in _WORDS["lines"] or "message" in line):
                sessions.setdefault(str(name), []).append(line)
        whole = [
            lines
            for lines in sessions.values()
            if not all(_is_aside(line, "subagent") for line in lines if line.get("type") in _TURNS)
        ]
        for index, lines in enumerate(whole):
            yield file.place(index), lines
        file.is_head = not whole  # a subagent's file, or one that only has a title

    def run(self, raw: Any, place: Place) -> Run:
        lines = as_objects(raw)
        names = [line[key] for key in _SESSION for line in lines if line.get(key)]
        run = Run(place.name(*names))
        session = _Session(run)
        left_out = session.left_out
        for line in _not_taken_back(lines, left_out):
            run.meta |= {name: line[name] for name in _WORDS["meta"] if line.get(name)}
            if line.get("type") == "result":
                reason = str(line.get("subtype") or "").removeprefix("error_")
                run.stop_reason = "error" if reason == "during_execution" else reason or None
                run.meta |= {"cost": line.get("total_cost_usd"), "num_turns": line.get("num_turns")}
            elif line.get("type") in _TURNS:
                session.add(line)
        talk = Conversation(place, session.messages)
        if n := left_out.pop("repeated", 0):
            run.extra["repeated"] = n
        if left_out:
            run.extra["n_left_out"] = dict(left_out)
        return talk.finish(run)


def _is_aside(line: Record, *kinds: str) -> bool:
    return any(line.get(name) for kind in kinds for name in _WORDS[kind])


def _not_taken_back(lines: list[Record], left_out: Counter[str]) -> Iterator[Record]:
    """Leave out repeated lines, and the turns after a request that the user wrote again."""
    links = [(as_id(line.get("uuid")), as_id(line.get("parentUuid"))) for line in lines]
    requests = list(map(_is_request, lines))
    asked = {above: name for (name, above), asks in zip(links, requests, strict=True) if asks}
    gone: set[Any] = set()
    seen: set[Any] = set()
    for line, (name, above), asks in zip(lines, links, requests, strict=True):
        anew = above is not None and asks and asked[above] != name
        if name is not None and (anew or above in gone):
            gone.add(name)
            left_out["taken back"] += 1
        elif name is None or name not in seen:
            seen.add(name)
            yield line
        else:
            left_out["repeated"] += 1


def _is_request(line: Record) -> bool:
    """Tell a request of the user from results and messages that the program writes."""
    message = line.get("message")
    parts = as_list(as_fields(message).get("content"))
    is_users = line.get("type") == "user" and isinstance(message, dict)
    return is_users and not (any(map(_is_result, parts)) or _is_aside(line, "subagent", "aside"))


def _is_result(part: Any) -> bool:
    return as_fields(part).get("type") == "tool_result"


class _Session:
    """The messages of a session; a block that is repeated replaces the earlier one."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.left_out = Counter[str]()
        self.messages: list[Message] = []
        self._turn: Message = {}  # of the last answer
        self._turns: dict[str, Message] = {}  # by a line, and by what identifies an answer
        self._results: dict[int, list[Values]] = {}  # of the calls of a turn, by its id()
        self._n_user = 0  # lines of the user
        self._asked: Any = None  # the last of these

    def add(self, line: Record) -> None:
        """Add a line's message."""
        message = as_object(line.get("message"))
        text = text_of(message.get("content"))
        is_user = line["type"] == "user"
        if _is_aside(line, "subagent"):
            self.left_out["subagent"] += 1
        elif _is_aside(line, "aside") or (is_user and text.startswith(tuple(_WORDS["written"]))):
            self.left_out["put in"] += 1
        elif text.startswith("[Request interrupted by user"):
            self.run.stop_reason = "interrupted"
        elif is_user:
            self._add_of_user(message.get("content"))
        else:
            self._add_answer(message, text, line)

    def _add_of_user(self, content: Any) -> None:
        self.run.stop_reason = None
        self._asked = content
        self._n_user += 1
        if isinstance(content, list):
            parts = self._results.setdefault(id(self._turn) if self._turn else 0, [])
            content = [
                block
                for block in content
                if not _is_result(block)
                or not any(self._replace(earlier, block) for earlier in parts)
            ]
            parts.append(content)
        if content != []:
            self.messages.append({"role": "user", "content": content})

    def _add_answer(self, message: Record, text: str, line: Record) -> None:
        """Add a line of an answer, which goes on until the next line of the user."""
        stop, name, model = (message.get(key) for key in ("stop_reason", "id", "model"))
        self.run.stop_reason = stop if isinstance(stop, str) and stop != "tool_use" else None
        if model:
            self.run.meta["model"] = model
        request = line.get("requestId")
        names: list[str] = []
        if isinstance(name, str):  # which a proxy may give to all answers
            names = [
                json.dumps([message, request, self._asked]),
                json.dumps([name, request or self._n_user]),
            ]
        turn = next((self._turns[key] for key in names if key in self._turns), None)
        if turn is None:
            turn = {"role": "assistant", "content": [], "model": model}
            self.messages.append(turn)
        self._turns |= dict.fromkeys(names, turn)
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": text}]
        new = [block for block in blocks if not self._replace(turn["content"], block)]
        turn["content"] += new
        if not new:
            self._drop_repeated_request(turn)
        self._turn = turn
        turn["cost"] = line.get("costUSD")
        if usage := as_fields(message, "usage"):
            turn["tokens"] = {
                side: sum(filter(is_amount, map(usage.get, names)))
                for side, names in _WORDS["tokens"].items()
            }

    def _replace(self, blocks: Values, block: Any) -> bool:
        """Put a block in the place of one that it repeats; tell whether there is one."""
        place = next((k for k, earlier in enumerate(blocks) if _repeats(block, earlier)), None)
        if place is not None:
            blocks[place] = block
            self.left_out["repeated"] += 1
        return place is not None

    def _drop_repeated_request(self, turn: Message) -> None:
        """Take out what stands before an answer for the second time."""
        before = next(k for k, message in enumerate(self.messages) if message is turn)
        while before and self.messages[-1] == self.messages[before - 1]:
            self.messages.pop()
            self.left_out["repeated"] += 1
            before -= 1


def _repeats(block: Any, earlier: Any) -> bool:
    """Tell a block that stands again, or has grown while it was streamed."""
    later = as_fields(block)
    former = as_fields(earlier)
    if later.get("type") != former.get("type"):
        return False
    name = first(later, ("id", "tool_use_id"))
    if name is not None:
        return name == first(former, ("id", "tool_use_id"))
    text, start = (first(fields, ("text", "thinking")) for fields in (later, former))
    has_grown = isinstance(text, str) and isinstance(start, str) and text.startswith(start)
    return has_grown or block == earlier
