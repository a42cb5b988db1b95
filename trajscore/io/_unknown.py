"""What to say of JSON that cannot be read: what to save instead, or how to name its parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import words_of
from trajscore.core.values import is_number
from trajscore.io._messages import is_chat_list
from trajscore.io._vocabulary import as_fields, as_list, parsed
from trajscore.io.fields import USUAL, by_keys, usual_names

_DEPTH = 4  # of nested objects that are searched
_SAMPLE = 20  # items of a list that are looked at
_TEXTS = {*USUAL["text"], "thought", "output", "answer", "response", "body", "say", "said"}
_BESIDE_TEXT = {
    "action": ("action", "act", "command"), "observation": ("observation", "obs", "tool_output"),
}  # fmt: skip
_KINDS = ("role", "type", "kind", "sender", "author")
_ACTORS = {*USUAL["actor"], "author", "speaker", "agent", "from", "sender", "user", "who"}
_IDS = {
    "id", "key", "conv", "conversation", "session", "run", "thread", "trace", "traj", "episode",
    "task",
}  # fmt: skip
_SHORT = 3  # words of a label
_MOST = 12  # names of fields that are shown
_LONGEST_NAME = 40  # of an actor
_FIELD = re.compile(r"[$@]?[^\W\d][\w.-]{0,40}")  # what a field of an object is called
_LONG = re.compile(r"[\u3040-\u9fff\uac00-\ud7a3]{4}")  # words of scripts that put no spaces
_NOT_TEXTS = {
    "id", "uuid", "time", "timestamp", "date", "at", "url", "uri", "path", "model", "version",
    "hash", "sha", "cost", "name", "key", "status", "type", "kind",
}  # fmt: skip
_OF_TASKS = {
    "goal", "task", "question", "prompt", "instruction", "description", "title", "label", "system",
    "query", "error",
}  # fmt: skip
_OF_TEXTS = {"text", "content", "message", "body"}
_ANSWERS = {"response", "answer", "output", "completion", "reply", "assistant", "choices"}
_SESSIONS = {"conversation", "run", "session", "thread", "trace"}
_REQUESTS = {
    "request", "input", "inputs", "prompt", "prompts", "tools", "functions", "function",
    "schema", "config", "metadata", "options",
}  # fmt: skip
_TEXTS_OF_SERVICES = ("message", "@message", "log", "msg", "line", "textPayload")
_SAMPLES = {
    "samples", "responses", "completions", "candidates", "rollouts", "attempts", "generations",
    "answers", "predictions",
}  # fmt: skip
_NEAR = 2  # fields that a file and a format have in common

Path_ = tuple[str, ...]

_STATE = "messages_to_dict(graph.get_state(config).values['messages'])"
_STREAMS = ("updates", "values", "messages", "tasks", "checkpoints", "debug", "custom")
_MEMORY = "[message.model_dump() for message in memory.get_all()]"
_EXPORTS = (  # that hold too little of a run, and what to save instead
    (
        {"output", "usage", "response_id"},
        "responses of OpenAI's Agents SDK, without the user's turns and the results of tools",
        "result.to_input_list()",
    ),
    ({"event_kind", "index", "part"}, "events of Pydantic AI", "result.all_messages_json()"),
    ({"new_agent", "type"}, "events of OpenAI's Agents SDK", "result.to_input_list()"),
    ({"id", "name", "input", "triggers"}, "tasks that LangGraph streams", _STATE),
    (
        {"step", "timestamp", "type", "payload"},
        "events that LangGraph streams for debugging",
        _STATE,
    ),
    ({"langgraph_step", "langgraph_node"}, "pieces of messages that LangGraph streams", _STATE),
    ({"response", "current_agent_name"}, "LlamaIndex's answers without the turns before", _MEMORY),
    ({"type", "message", "stop_reason", "checkpoint"}, "the last answer only", "agent.messages"),
    (
        {"message", "message_id", "created_at"},
        "messages of a session of Strands, one a file",
        "agent.messages",
    ),
    ({"event", "agent_id", "nested_depth"}, "events that Agno streams", "run_output.to_dict()"),
    ({"state", "workers", "is_running"}, "a context of LlamaIndex without messages", _MEMORY),
    (
        {"op_name", "trace_id", "inputs"},
        "calls of Weave, of which some are the model's and some are around them",
        "c.inputs['messages'] + [c.output['choices'][0]['message']] of each trace's last call c",
    ),
    (
        {"messages", "outputs", "kwargs", "uuid"},
        "calls of DSPy's model, which do not name their run",
        "{**inputs, **prediction.toDict()}",
    ),
)


def unknown_json(
    file: Path, record: Mapping[str, Any], formats: Mapping[str, tuple[str, ...]], problem: str = ""
) -> ArgumentError:
    """Return the error for a JSON file by its first record, and the fields that formats have."""
    names = f" (the fields of the JSON are {_names(list(record)[:_MOST])})" if record else ""
    text = f"{file}: {problem}. T" if problem else f"{file}: t"
    if not record and not problem:
        return ArgumentError(f"{file}: no JSON object could be read from it; give a log of runs")
    text += f"he format is not known{names}; "
    common = {name: [key for key in keys if key in record] for name, keys in formats.items()}
    nearest = max(common, key=lambda name: len(common[name]))
    if len(common[nearest]) >= _NEAR:
        missing = [key for key in formats[nearest] if key not in record]
        text += f"nearest is {nearest}, for {_names(common[nearest])}, but there is no "
        text += f"{_names(missing)}; " if missing else "list of runs; "
    if sides := side_by_side(file, record):
        return ArgumentError(f"{file}: {sides}", "format")
    parts = guess_parts(record)
    if (name := parts.get("steps")) in _SAMPLES:
        return ArgumentError(
            f"{file}: each record lists several answers in {name!r}. If each of them is a run, "
            f"write one a line, jq -c 'del(.{name}) + .{name}[]' {file} > runs.jsonl, and give "
            f"runs.jsonl; if they are the steps of a run, pass "
            f"{{argument:fields={','.join(f'{k}={v}' for k, v in parts.items())}}}",
            "format",
        )
    if parts:
        named = ",".join(f"{part}={path}" for part, path in parts.items())
        text += "if it holds steps, name their parts, such as "
        scalars = [name for name, value in record.items() if isinstance(value, (str, int))]
        ids = sorted((name for name in scalars if words_of(name) & _IDS), key=_rank_of_id)
        if "steps" not in parts and ids and not usual_names("id", record):
            text += f"{{argument:id={ids[0]}}} "
        text += f"{{argument:fields={named}}}, or "
    elif lists := {name: value for name, value in record.items() if as_list(value)}:
        name = max(lists, key=lambda name: len(lists[name]))
        wrappers = "".join(f' | .["{inner}"]' for inner in _wrapper(lists[name]))
        rows = f"jq -c '.. | .[\"{name}\"]? | arrays | .[]{wrappers}' {file} > rows.jsonl"
        text += f"if its {name!r} are runs or rows, write one a line, {rows}, and give "
        text += "rows.jsonl, or "
    return ArgumentError(text + f"name it with {{argument}}, one of {', '.join(formats)}", "format")


def _wrapper(rows: list[Any]) -> list[str]:
    """Return the field in which each of a list's items keeps its row, beside numbers of it."""
    objects = [
        {name for name, value in as_fields(row).items() if isinstance(value, dict)}
        for row in rows[:_SAMPLE]
    ]
    is_alone = len(objects[0]) == 1 and all(names == objects[0] for names in objects)
    return list(objects[0]) if is_alone else []


def side_by_side(file: Path, record: Mapping[str, Any]) -> str:
    """Say how to write the conversations that a record holds under several names; "" of others.

    They are the two sides of one call of a model, or runs of their own.
    """
    fields = _with_chats(record)
    names = [str(name) for name, value in fields.items() if is_chat_list(value)]
    if not names:
        return ""
    there = " and ".join(f'has("{name}")' for name in names)
    select = f"jq -c '.. | objects | select({there}) |"
    asked = [name for name in names if words_of(name) & _REQUESTS]
    answers = [name for name in names if words_of(name) & _ANSWERS and name not in asked]
    if len(asked) == len(answers) == 1 and len(names) == 2:
        ids = (name for name in fields if words_of(str(name)) & _SESSIONS)
        own = "".join(f'session_id: .["{name}"], ' for name in islice(ids, 1))
        call = f'{{{own}input: .["{asked[0]}"], output: .["{answers[0]}"]}}'
        return (
            f"each record is a call of a model, from {asked[0]!r} to {answers[0]!r}; write the "
            f"calls out, {select} {call}' {file} > calls.jsonl, and give calls.jsonl"
        )
    return (
        f"each record holds several conversations, {_names(names)}; write each as a run, {select} "
        f"{_runs_of_sides(fields, names)}' {file} > runs.jsonl, and give runs.jsonl"
    )


def _runs_of_sides(fields: Mapping[str, Any], names: list[str]) -> str:
    """Return the words of jq that make a run of each of an object's conversations."""
    starts = {name.rpartition("_")[0] for name in names}
    start = f"{starts.pop()}_" if len(starts) == 1 and "" not in starts else ""
    sides = [name.removeprefix(start) for name in names]
    own = f'side: $side, messages: .["{start}" + $side]'
    for name in usual_names("id", fields)[:1]:
        own += f', "{name}": "\\(.["{name}"])-\\($side)"'
    winners = (name for name, value in fields.items() if str(value).rpartition("_")[2] in sides)
    for name in islice(winners, 1):
        is_decided = f'test("_({"|".join(sides)})$")'
        own += f', won: (.["{name}"] | if {is_decided} then endswith("_" + $side) else null end)'
    listed = ", ".join(f'"{side}"' for side in sides)
    others = ", ".join(f'.["{name}"]' for name in names)
    return f"({listed}) as $side | del({others}) + {{{own}}}"


def _with_chats(fields: Mapping[str, Any], depth: int = _DEPTH) -> Mapping[str, Any]:
    """Return the object within a record that holds several conversations; {} if none does."""
    if sum(map(is_chat_list, fields.values())) > 1:
        return fields
    inner = (_with_chats(as_fields(value), depth - 1) for value in fields.values() if depth)
    return next(filter(None, inner), {})


def guess_parts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return which fields may be the steps of a run, and the text and the actor of a step."""
    runs = by_keys(record, _lists_objects)
    record = runs[0][1] if len(runs) > 1 else record
    lists = [(path, items) for path, items in _lists(record) if _prose(_texts(items))]
    if any(words_of(str(k)) & _SESSIONS for k, v in record.items() if isinstance(v, (str, int))):
        lists = [(path, items) for path, items in lists if len(items) > 1]  # else it is a step
    parts: dict[str, str] = {}
    steps: list[Any] = [record]
    if lists:
        where, steps = max(lists, key=lambda item: (_has_text(item[1]), len(item[1])))
        parts["steps"] = ".".join(where)
    names = {name for step in steps for name in step}
    others = {part: [n for n in usual if n in names][:1] for part, usual in _BESIDE_TEXT.items()}
    texts = _texts(steps)
    prose = _prose(texts)
    prose = [path for path in prose if [path[-1]] not in others.values()] or prose
    prose = [path for path in prose if not _is_shown(path)] or prose
    if not lists:  # a text of a record may be anything
        prose = [path for path in prose if any(_says(path)) or _is_long(texts[path][0])]
    prose = [path for path in prose if 2 * len(texts[path]) > len(steps)] or prose
    if not prose:
        return {}
    text = max(prose, key=lambda path: (_says(path), len(texts[path][0])))
    parts["text"] = ".".join(text)
    parts |= {
        part: name
        for part, own in others.items()
        for name in own
        if name not in USUAL[part] and name != parts["text"]
    }
    actors = [path for path in texts if _is_actor(path) and _are_names(texts[path])]
    actors = actors or [path for path in texts if path not in prose and _may_be_roles(texts[path])]
    actors = actors or [(name,) for name in _KINDS if _are_codes([s.get(name) for s in steps])]
    if actors:
        actor = min(actors, key=lambda path: (len(path), path))
        parts["actor"] = ".".join(actor)
    return parts


def _rank_of_id(name: str) -> tuple[bool, bool]:
    """Return 0 for a name of what several records share, and more for other names."""
    words = words_of(name)
    return not words & _SESSIONS, not words & {"id", "key"}


def _prose(texts: dict[Path_, list[str]]) -> list[Path_]:
    """Return the paths of what somebody says: words, under names that are not those of others."""
    return [
        path
        for path, values in texts.items()
        if not (words_of(path[-1]) & _NOT_TEXTS or any(map(_is_of_task, path)))
        and sum(" " in (v := value.strip()) or _LONG.search(v) is not None for value in values) * 2
        >= len(values)
    ]


def _is_of_task(name: str) -> bool:
    """Tell a field of what the agent was asked, such as queryText."""
    words = words_of(name)
    return bool(words) and (words - _OF_TEXTS or words) <= _OF_TASKS


def _is_shown(path: Path_) -> bool:
    """Tell what the agent sees from what it says."""
    return any(words_of(name) & set(_BESIDE_TEXT["observation"]) for name in path)


def _says(path: Path_) -> tuple[bool, bool]:
    """Return how sure it is that a path leads to what the agent says, and not the user."""
    name = next((name for name in reversed(path) if not name.isdigit()), "")
    return bool(words_of(".".join(path)) & _ANSWERS), name.lower() in _TEXTS


def _are_codes(values: list[Any]) -> bool:
    """Tell numbers that stand for who speaks."""
    return all(type(value) is int for value in values) and len(set(values)) == 2


def _may_be_roles(values: list[str]) -> bool:
    """Tell who speaks in a script whose words for it are not known."""
    are_short = all(" " not in value and len(value) <= _LONGEST_NAME for value in values)
    return are_short and 1 < len(set(values)) <= _MOST and not any(map(str.isascii, values))


def _is_actor(path: Path_) -> bool:
    """Tell who speaks: its field, or the kind within it."""
    *_, outer, name = ("", *map(str.lower, path))
    return name in _ACTORS or (outer in _ACTORS and name in ("kind", "role", "type"))


def _is_long(text: str) -> bool:
    return len(text.split()) > _SHORT or _LONG.search(text) is not None


def _are_names(values: list[str]) -> bool:
    return all(len(value) <= _LONGEST_NAME and "/" not in value for value in values)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _lists(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, list[Any]]]:
    """Yield the lists of objects within a value, with their paths, also those within others."""
    if isinstance(value, list):
        objects = [item for item in value[:_SAMPLE] if isinstance(item, dict)]
        if objects:
            yield path, objects
        if len(value) == 1 and isinstance(value[0], list):
            yield from _lists(value[0], (*path, "0"))
        value = objects[0] if objects else None
    if isinstance(value, dict) and len(path) < _DEPTH and not _is_by_id(value):
        for name, inner in value.items():
            if not words_of(str(name)) & _REQUESTS:
                yield from _lists(inner, (*path, str(name)))


def _lists_objects(value: Any) -> bool:
    return any(isinstance(next(iter(as_list(v)), None), dict) for v in as_fields(value).values())


def _is_by_id(fields: Mapping[str, Any]) -> bool:
    """Tell an object whose names are data, such as ids, from one with fields."""
    return any(not _FIELD.fullmatch(str(name)) for name in fields)


def _has_text(steps: list[Any]) -> bool:
    return any(path[-1].lower() in _TEXTS for path in _prose(_texts(steps)))


def _texts(steps: list[Any]) -> dict[Path_, list[str]]:
    """Return the texts under each path within steps."""
    texts: dict[Path_, list[str]] = {}
    for step in steps:
        for path, value in _leaves(step):
            if isinstance(value, str) and value.strip():
                texts.setdefault(path, []).append(value)
    return texts


def _leaves(value: Mapping[str, Any], path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    for name, inner in value.items() if not _is_by_id(value) else ():
        if isinstance(inner, dict) and len(path) < _DEPTH:
            if not words_of(str(name)) & _REQUESTS:
                yield from _leaves(inner, (*path, str(name)))
        elif isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict):
            yield from _leaves(inner[0], (*path, str(name), "0"))
        elif isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], str):
            yield (*path, str(name), "0"), inner[0]
        else:
            yield (*path, str(name)), inner


def _is_piece(fields: Mapping[str, Any]) -> bool:
    """Tell a piece of an answer that a model streams, by OpenAI's interfaces or Anthropic's."""
    choice = as_fields(next(iter(as_list(fields.get("choices"))), None))
    kind = str(fields.get("type"))
    is_event = kind.startswith("response.") and "sequence_number" in fields
    is_start = kind == "message_start" and "message" in fields
    return ("delta" in choice and "message" not in choice) or is_event or is_start


def json_text_field(fields: Mapping[str, Any]) -> str | None:
    """Return the field in which a service for logs keeps a record as JSON text, if one does."""
    inner = (as_fields(next(iter(as_list(value)), None)) for value in fields.values())
    for record in (fields, *inner):
        if not {str(name).lower() for name in record} & {"role", "type", *_ACTORS}:
            for name in filter(record.get, _TEXTS_OF_SERVICES):
                if isinstance(record[name], str) and isinstance(parsed(record[name]), dict):
                    return name
    return None


def what_instead(item: Any) -> str | None:
    """Say what an item of a file is and what to save instead, if it holds too little to be read."""
    if _is_piece(as_fields(item)):
        return (
            "holds pieces of answers as a model streams them; save whole answers with the messages "
            "before them, stream.get_final_completion().model_dump() in OpenAI's client and "
            "stream.get_final_message().model_dump() in Anthropic's"
        )
    if name := json_text_field(as_fields(item)):
        path = f'.. | .["{name}"]? | strings | fromjson'
        return (
            f"keeps its records as JSON text in {name!r}; write them out, jq -c '{path}' FILE > "
            f"log.jsonl, and give log.jsonl"
        )
    if isinstance(item, list):
        if any(map(is_number, item)) and not any(isinstance(v, (dict, list)) for v in item):
            return (
                "holds rows without the names of their columns; write the table again, in pandas "
                "with orient='records'"
            )
        if len(item) == 2 and item[0] in (*_STREAMS, []) and isinstance(item[1], (dict, list)):
            return f"holds what several streams of LangGraph gave; save {_STATE} as JSON"
        return next(filter(None, map(what_instead, item[:2])), None)
    for names, kind, instead in _EXPORTS:
        is_row = "payload" in names and not isinstance(as_fields(item).get("payload"), Mapping)
        if names <= as_fields(item).keys() and not is_row:
            return f"holds {kind}; save {instead} as JSON, for each run or all of them"
    return None
