"""Events and states that graphs and workflows report: of LangGraph, LangChain and LlamaIndex."""

from typing import Any

from trajscore.core.stops import as_reason
from trajscore.io._conversation import Conversation
from trajscore.io._messages import as_id, find_messages, is_chat_list, is_message, unwrapped
from trajscore.io._run import Run, as_object, leftover
from trajscore.io._spans import Span, add_spans
from trajscore.io.fields import USUAL_FIELDS, dig
from trajscore.io.files import LogFile, Place, stem
from trajscore.io.formats.chat import new_run
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import Record, as_fields, as_list, first, span_kind, text_of

_MODES = {"values", "updates", "messages", "debug", "custom", "checkpoints", "tasks"}
_RUN_NAMES = (  # of what all events of a run share
    "metadata.thread_id", "config.configurable.thread_id",
    "payload.config.configurable.thread_id", "1.thread_id", "2.configurable.thread_id",
    "parent_ids.0", "messages.0.kwargs.id", "messages.0.id",
)  # fmt: skip
_WRAPPERS = ("", "data.", "value.")  # of an event, which some write beside its name
_CHUNKS = "tool_call_chunks"
_NOTHING = Span(None)


@register
class Events(Format):
    name = "events"
    holds = "event"
    beside = ("data", "parent_ids", "current_agent_name", "next", "payload")

    def recognise(self, head: Head) -> bool:
        lists = ([head.item], [head.fields], head.item, *head.fields.values())
        return head.whole and any(map(_is_log, lists))

    def runs(self, file: LogFile, options: Any) -> RawRuns:
        """Yield a run of each list of events, and of the lines that share the name of a run."""
        groups: dict[str, list[Any]] = {}
        name = stem(file.path)
        for place, item in super().runs(file, options):
            if groups or span_of(item):
                own = file.fields.id_of(item) if file.fields.ids else _run_name(item)
                name = own or name
                groups.setdefault(name, []).append(item)
            else:
                yield place, item
        for index, (name, events) in enumerate(groups.items()):
            last = as_fields(events[-1])
            names = file.fields.names(last, ("outcome", "task", "trial")).values()
            record = {"id": name if len(groups) > 1 else stem(file.path), "events": events}
            yield file.place(index), record | {path: dig(last, path) for path in names}

    def run(self, raw: Any, place: Place, options: Any) -> Run:
        raw = as_object({"events": raw} if isinstance(raw, list) else raw)
        logs = [name for name, value in raw.items() if _is_log(value)]
        if len(logs) != 1:
            raise self.malformed(f"it has {len(logs)} lists of events; write one run a file")
        events = raw[logs[0]]
        run = new_run(raw, place, {*logs})
        spans = [s for s in map(span_of, events) if s is not None and (s.inputs or s.outputs)]
        states = [span for span in spans if span.name == "values"]
        states.sort(key=lambda span: len(_listed(span.inputs)))
        for span in states:
            run.extra |= leftover(as_fields(span.inputs), ("messages",))
        if len(states) == 1:
            return Conversation(place, _listed(states[0].inputs)).finish(run)
        updates = [span for span in spans if span.name == "updates"]
        if not any(span.inputs or span.name in _MODES for span in spans):
            raise self.malformed("it has only answers; save all of handler.stream_events()")
        problems = (dig(events[-1], f"{path}exception.exception_message") for path in _WRAPPERS)
        run.stop_reason = as_reason(next(filter(None, problems), None))
        return add_spans(Conversation(place), _joined(states or updates or spans), run)


def span_of(event: Any) -> Span | None:
    """Return what an event, a chunk of a stream or a snapshot tells; None for anything else."""
    match event:
        case {"event": str(name), "data": dict(data), "run_id": _} if name.startswith("on_"):
            return _of_callback(name, data, event)
        case {"current_agent_name": _, "input": list(messages)}:
            return Span(None, inputs=messages)
        case {"current_agent_name": _, "response": dict(answer)}:
            return Span(None, "model", outputs=answer)
        case {"tool_name": name, "tool_kwargs": inputs, "tool_output": dict(result)}:
            error = result.get("is_error")
            text = text_of(first(result, ("blocks", "content")))
            call = event.get("tool_id")
            return Span(None, "tool", None, None, None, name, inputs, text, call, error)
        case (
            [list(), str(mode), data]
            | [str(mode), data]
            | {"type": str(mode), "ns": _, "data": data}
        ) if mode in _MODES:
            if mode == "values":
                return _of_state(data)
            return span_of(data) or _NOTHING
        case {"value": dict(data)} | {"data": dict(data)}:
            return span_of(data)
        case [list(graph), data] if all(isinstance(name, str) for name in graph):
            return span_of(data)
        case [message, {"langgraph_node": _}] if is_message(message):
            name = unwrapped(message).get("id")
            return Span(name, "model", name="messages", outputs=message)
        case {"type": "task" | "task_result", "payload": dict(data)}:
            return span_of(data) or _NOTHING
        case {"name": _, "input": _, "triggers": _}:
            return _NOTHING
        case {"name": str(name), "result": dict(data), "interrupts": _}:
            return _of_update({name: data})
        case (
            {"type": "checkpoint", "payload": {"values": state}}
            | {"values": state, "next": _, "config": _}
            | [dict(state), list(), {"configurable": _}, *_]
            | {"checkpoint": {"channel_values": state}}
        ):
            return _of_state(state)
        case {"messages": [{"lc": _, "kwargs": {"id": str()}}, *_]} | {
            "messages": [{"additional_kwargs": _, "id": str()}, *_]
        } if USUAL_FIELDS.id_of(event) is None:
            return _of_state(event)
        case dict() if _is_update(event):
            return _of_update(event)
    return None


def _of_update(nodes: Record) -> Span:
    """Return the new message of a node, or several, which may repeat those of a graph within."""
    messages = [message for node in nodes.values() for message in _listed(node)]
    if len(messages) > 1:
        return Span(None, name="updates", inputs=messages)
    return Span(None, "model", name="updates", outputs=messages)


def _of_state(state: Any) -> Span:
    return Span(None, name="values", inputs=state)


def _of_callback(name: str, data: Record, event: Record) -> Span:
    """Return a call of a model or a tool that ended, or what goes into and out of all calls."""
    kind, _, phase = name.removeprefix("on_").rpartition("_")
    if span_kind(kind) == "other":
        return (
            _NOTHING
            if event.get("parent_ids")
            else Span(None, inputs=first(data, ("output", "input")))
        )
    if phase not in ("end", "error"):
        return _NOTHING
    return Span(
        None,
        span_kind(kind),
        name=event.get("name"),
        inputs=data.get("input"),
        outputs=first(data, ("output", "error")),
        error=phase == "error" or None,
    )


def _is_log(value: Any) -> bool:
    """Tell a list of the events of one run, by the first and the last of them."""
    ends = as_list(value)[:: max(len(as_list(value)) - 1, 1)]
    names = {*map(_run_name, ends)} - {None}
    return bool(ends) and span_of(ends[0]) is not None and len(names) <= 1


def _run_name(event: Any) -> str | None:
    """Return what an event says of its run; a task of a graph has an id of its own."""
    name = next(filter(None, (dig(event, path) for path in _RUN_NAMES)), None)
    is_task = {"triggers", "interrupts"} & as_fields(event).keys()
    return as_id(name) or (None if is_task else USUAL_FIELDS.id_of(as_fields(event)))


def _is_update(fields: Record) -> bool:
    """Tell the updates of nodes, each an object with messages, that are not a run of chats."""
    are_nodes = all(isinstance(node, (dict, list, type(None))) for node in fields.values())
    is_chat = find_messages(fields)[0] is not None
    has_name = USUAL_FIELDS.id_of(fields) is not None
    return any(map(_listed, fields.values())) and not is_chat and (are_nodes or has_name)


def _listed(state: Any) -> list[Any]:
    """Return the messages of a state, or of the update of a node: a list, or a single one."""
    messages = as_fields(state).get("messages")
    if is_message(messages):
        return [messages]
    return messages if is_chat_list(messages) else []


def _joined(spans: list[Span]) -> list[Span]:
    """Join the pieces of streamed messages, and give the other spans ids."""
    joined: dict[str, Span] = {}
    for number, span in enumerate(spans):
        span.id = span.id or str(number)
        earlier = joined.setdefault(span.id, span)
        if earlier is not span:
            earlier.outputs = _with_piece(unwrapped(earlier.outputs), unwrapped(span.outputs))
    return list(joined.values())


def _with_piece(message: Record, piece: Record) -> Record:
    """Return a streamed message with its next piece."""
    chunks = [*as_list(message.get(_CHUNKS)), *as_list(piece.get(_CHUNKS))]
    calls: dict[Any, dict[str, str]] = {}
    for chunk in chunks:
        call = calls.setdefault(chunk["index"], {"name": "", "args": "", "id": ""})
        for name in call:
            call[name] += chunk.get(name) or ""
    text = text_of(message.get("content")) + text_of(piece.get("content"))
    whole = {"content": text, "tool_calls": list(calls.values()), _CHUNKS: chunks}
    return {**message, **leftover(piece), **whole}
