"""Sessions of Claude Code, as it keeps them, or as ``--output-format stream-json`` prints them.

Turns of subagents, messages that the program writes in the user's name, and turns that the user
took back are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from trajscore.io._conversation import Conversation
from trajscore.io._run import Run, as_object, as_objects
from trajscore.io._vocabulary import as_fields, first
from trajscore.io.files import LogFile, Place
from trajscore.io.registry import Format, Head, register
from trajscore.io.text import text_of

_TURNS = ("user", "assistant")
_SESSION = ("sessionId", "session_id")
_SUBAGENT = ("isSidechain", "parent_tool_use_id")
_ASIDE = ("isMeta", "isCompactSummary", "isApiErrorMessage")
# Lines of the user's that the program writes: commands, their output, an interruption.
_WRITTEN = ("<command-name>", "<command-message>", "<local-command-", "<bash-")
_INTERRUPTED = "[Request interrupted by user"
_META = ("cwd", "gitBranch", "version")
_TOKENS = {
    "input": ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    "output": ("output_tokens",),
}


@register
class ClaudeCode(Format):
    name, holds = "claude_code", "sessionId"
    beside = ("type", "uuid", "parentUuid", "message")
    _layout = ("*.jsonl*", "*/*.jsonl*")  # of a project, or of all

    def recognise(self, head: Head) -> bool:
        fields = head.fields
        if not head.listed or not isinstance(fields.get("type"), str):
            return False
        if any(name in fields for name in _SESSION):
            return fields["type"] in (*_TURNS, "system", "result") or "sessionId" in fields
        return bool({"leafUuid", "snapshot"} & fields.keys())

    def runs(self, file: LogFile, options: Any) -> Iterator[tuple[Place, Any]]:
        sessions: dict[str, list[Any]] = {}
        for _, index, line in file.items():
            if not isinstance(line, Mapping):
                yield file.place(index or 0), line
                continue
            name = first(line, _SESSION)
            name = next(reversed(sessions), None) if name is None else name
            is_part = line.get("type") in (*_TURNS, "result", "system") or "message" in line
            if name is not None and is_part:
                sessions.setdefault(str(name), []).append(line)
        whole = [lines for lines in sessions.values() if not _is_of_subagent(lines)]
        yield from ((file.place(index), lines) for index, lines in enumerate(whole))
        file.is_head = not whole  # a subagent's file, or one that only has a title

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        lines = as_objects(raw)
        names = [line[key] for key in _SESSION for line in lines if line.get(key)]
        run = Run(place.name(*names))
        left_out: Counter[str] = Counter()
        messages: dict[Any, dict[str, Any]] = {}
        for index, line in enumerate(_not_taken_back(lines, left_out)):
            run.meta |= {name: line[name] for name in _META if line.get(name)}
            if line.get("type") == "result":
                reason = str(line.get("subtype") or "").removeprefix("error_")
                run.stop_reason = "error" if reason == "during_execution" else reason or None
                run.meta |= {"cost": line.get("total_cost_usd"), "num_turns": line.get("num_turns")}
            elif line.get("type") in _TURNS:
                _add(messages, line, index, run, left_out)
        talk = Conversation(place)
        talk.add_all(list(messages.values()))
        if left_out:
            run.extra["n_left_out"] = dict(left_out)
        return talk.finish(run)


def _is_of_subagent(lines: list[Mapping[str, Any]]) -> bool:
    return all(_is_aside(line, _SUBAGENT) for line in lines if line.get("type") in _TURNS)


def _is_aside(line: Mapping[str, Any], kinds: tuple[str, ...]) -> bool:
    return any(line.get(kind) for kind in kinds)


def _not_taken_back(
    lines: list[Mapping[str, Any]], left_out: Counter[str]
) -> Iterator[Mapping[str, Any]]:
    """Leave out repeated lines, and the turns after a request that the user wrote again."""
    asked = {_text(line, "parentUuid"): _text(line, "uuid") for line in lines if _is_request(line)}
    gone: set[Any] = set()
    seen: set[Any] = set()
    for line in lines:
        name, above = _text(line, "uuid"), _text(line, "parentUuid")
        anew = above is not None and _is_request(line) and asked[above] != name
        if name is not None and (anew or above in gone):
            gone.add(name)
            left_out["taken back"] += 1
        elif name is None or name not in seen:
            seen.add(name)
            yield line


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _is_request(line: Mapping[str, Any]) -> bool:
    """Tell a request of the user from results and messages that the program writes."""
    message = line.get("message")
    if line.get("type") != "user" or not isinstance(message, Mapping):
        return False
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    results = any(as_fields(part).get("type") == "tool_result" for part in parts)
    return not results and not _is_aside(line, (*_SUBAGENT, *_ASIDE))


def _add(
    messages: dict[Any, dict[str, Any]],
    line: Mapping[str, Any],
    index: int,
    run: Run,
    left_out: Counter[str],
) -> None:
    """Add a line's message; the lines of one answer have its identifier."""
    message = as_object(line.get("message"))
    content = message.get("content")
    text, is_user = text_of(content), line["type"] == "user"
    if _is_aside(line, _SUBAGENT):
        left_out["subagent"] += 1
    elif _is_aside(line, _ASIDE) or (is_user and text.startswith(_WRITTEN)):
        left_out["put in"] += 1
    elif text.startswith(_INTERRUPTED):
        run.stop_reason = "interrupted"
    elif is_user:
        run.stop_reason = None
        messages[index] = {"role": "user", "content": content}
    else:
        stop = message.get("stop_reason")
        run.stop_reason = stop if isinstance(stop, str) and stop != "tool_use" else None
        empty: dict[str, Any] = {"role": "assistant", "content": [], "model": message.get("model")}
        turn = messages.setdefault(_text(message, "id") or index, empty)
        turn["content"] += (
            content if isinstance(content, list) else [{"type": "text", "text": text}]
        )
        run.meta |= {"model": message["model"]} if message.get("model") else {}
        turn["cost"] = line.get("costUSD")
        if usage := as_fields(message.get("usage")):
            turn["tokens"] = {
                side: sum(_number(usage.get(name)) for name in names)
                for side, names in _TOKENS.items()
            }


def _number(value: Any) -> float:
    return value if isinstance(value, (int, float)) else 0
