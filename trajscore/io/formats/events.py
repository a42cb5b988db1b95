"""Events and states that graphs and workflows report: of LangGraph, LangChain and LlamaIndex."""

from typing import Any

from trajscore.core.stops import as_reason
from trajscore.io._messages import as_id, find_messages, is_message, listed, unwrapped
from trajscore.io._results import result_messages
from trajscore.io._run import Run, as_object, leftover
from trajscore.io._spans import Span, add_spans
from trajscore.io.conversation import Conversation
from trajscore.io.fields import USUAL_FIELDS, dig
from trajscore.io.files import Broken, LogFile, Place, stem
from trajscore.io.formats.chat import named_runs, new_run
from trajscore.io.registry import Format, Head, RawRuns, register
from trajscore.io.vocabulary import (
    MESSAGE_OWNERS,
    WORDS,
    Record,
    Values,
    as_fields,
    as_list,
    first,
    parsed,
    span_kind,
    text_of,
)

_MAX_WRAPPERS = 3
_CHUNKS = "tool_call_chunks"
_SNAPSHOT = "config.configurable.checkpoint_id"  # ids of snapshots sort by their times


@register
class Events(Format):
    name = "events"
    holds = "event"

    def recognise(self, head: Head) -> bool:
        is_whole = head.whole and (head.listed or not named_runs(head.fields))
        is_log = any(map(_is_log, ([head.item], [head.fields], head.item)))
        return is_whole and (is_log or bool(_runs_in(head.fields)))

    def runs(self, file: LogFile) -> RawRuns:
        """Yield a run of each list of events, and of the lines that share the name of a run."""
        groups: dict[str, Values] = {}
        name = stem(file.path)
        for place, item in super().runs(file):
            if not isinstance(item, Broken) and (groups or span_of(item)):
                name_of = file.fields.id_of if file.fields.ids else _run_name
                name = name_of(item) or name
                groups.setdefault(name, []).append(item)
            else:
                for index, run in enumerate(_runs_in(as_fields(item)) or [item], place.index):
                    yield file.place(index), run
        for index, (name, events) in enumerate(groups.items()):
            last = as_fields(events[-1])
            names = file.fields.names(last, ("outcome", "task", "trial")).values()
            fields = as_fields(last, "data").items()
            numbers = [f"data.{name}" for name, value in fields if isinstance(value, (int, float))]
            of_run = {path: dig(last, path) for path in (*file.fields.ids, *names, *numbers)}
            record = {"id": name if len(groups) > 1 else stem(file.path), "events": events}
            yield file.place(index), record | of_run

    def run(self, raw: Any, place: Place) -> Run:
        raw = as_object({"events": raw} if isinstance(raw, list) else raw)
        logs = _logs(raw)
        if len(logs) != 1:
            raise self.malformed(f"it has {len(logs)} lists of events; write one run a file")
        run = new_run(raw, place, {*logs})
        events: Values = []
        above = None  # the snapshot before that of the newest state, which may be gone back to
        for event in sorted(*logs.values(), key=lambda e: str(dig(e, _SNAPSHOT)), reverse=True):
            if above in (None, dig(event, _SNAPSHOT)):
                events.append(event)
                above = dig(event, f"parent_{_SNAPSHOT}")
        spans = [s for s in map(span_of, events) if s and (s.inputs or s.outputs)]
        states = [span for span in spans if span.name == "values"]
        states.sort(key=lambda span: len(_listed(span.inputs)))
        for span in states:
            run.extra |= leftover(as_fields(span.inputs), ("messages",))
        if len(states) == 1:
            return Conversation(place, _listed(states[0].inputs)).finish(run)
        if all(span.kind == "tool" or not (span.inputs or span.name) for span in spans):
            raise self.malformed("it has only answers; save all of handler.stream_events()")
        calls = (span for span in spans if span.kind == "model" and not span.error)
        if any(isinstance(span.outputs, str) for span in calls):
            raise self.malformed(
                "its messages are what Python prints; write JSON with langchain_core.load.dumps"
            )
        failures = (as_reason(span.outputs) for span in spans if span.name == "failure")
        run.stop_reason = next(failures, None)
        updates = [span for span in spans if span.name == "updates"]
        return add_spans(place, _joined(states or updates or spans), run)


def span_of(event: Any) -> Span | None:
    """Return what an event, a chunk of a stream or a snapshot tells; None for anything else."""
    for _ in range(_MAX_WRAPPERS):
        if span := _of_program(event) or _of_graph(event):
            return span
        held = [as_fields(event).get(name) for name in WORDS["event_holders"]]
        match next((value for value in held if isinstance(value, (dict, list))), event):
            case [str() | list() as front, *rest] if all(isinstance(k, str) for k in front):
                event = rest[0] if len(rest) == 1 else rest
            case inner:
                event = inner
    return None


def _of_program(event: Any) -> Span | None:
    """Return what LangChain or LlamaIndex reports of a call."""
    match event:
        case {"event": str(name), "data": dict(data), "run_id": _} if name.startswith("on_"):
            return _of_callback(name, data, event)
        case {"current_agent_name": _, "input": list(messages)}:
            return Span(inputs=messages)
        case {"current_agent_name": _, "response": dict(answer)}:
            return Span(kind="model", outputs=answer)
        case {"tool_name": name, "tool_id": call, "tool_output": dict(result)}:
            return Span(
                kind="tool",
                name=name,
                inputs=event.get("tool_kwargs"),
                outputs=result,
                call=call,
                error=result.get("is_error"),
            )
        case {"exception": {"exception_message": str(text)}}:
            return Span(name="failure", outputs=text)
    return None


def _of_callback(name: str, data: Record, event: Record) -> Span:
    """Return a call of a model or a tool that ended, or what goes into and out of all calls."""
    word, _, phase = name.removeprefix("on_").rpartition("_")
    span = Span(kind=span_kind(word), name=event.get("name"))
    if span.kind == "other" and not event.get("parent_ids"):
        span.inputs = first(data, ("output", "input"))
    if span.kind != "other" and phase in ("end", "error"):
        span.inputs = data.get("input")
        span.outputs = first(data, ("output", "error"))
        span.error = phase == "error" or None
    return span


def _of_graph(event: Any) -> Span | None:
    """Return what LangGraph streams or saves."""
    match event:
        case [message, {"langgraph_node": _}] | {
            "message": message,
            "metadata": {"langgraph_node": _},
        } if is_message(message):
            name = unwrapped(message).get("id")
            return Span(name, "model", name="messages", outputs=message)
        case (
            [*_, "values", state]
            | {"type": "values", "data": state}
            | {"values": dict(state), "next": list()}
            | {"values": dict(state), "metadata": {"step": _}}
            | [dict(state), list(), {"configurable": _}, *_]
            | {"checkpoint": {"channel_values": state}}
        ):
            return Span(name="values", inputs=state)
        case {
            "messages": [
                {"lc": _, "kwargs": {"id": str()}} | {"additional_kwargs": _, "id": str()},
                *_,
            ]
        } if USUAL_FIELDS.id_of(event) is None:  # others are runs of chats
            return Span(name="values", inputs=event)
        case {"name": _, "input": _, "triggers": _}:
            return Span()
        case {"name": str(name), "result": dict(node), "interrupts": _}:
            return _of_update({name: node})
    return _of_update(event) if _is_update(as_fields(event)) else None


def _is_update(fields: Record) -> bool:
    """Tell the updates of nodes, each an object with messages, that are not a run of chats."""
    nodes = list(map(as_fields, fields.values()))
    is_chat = find_messages(fields)[0] or fields.keys() & {*MESSAGE_OWNERS}
    is_result = any(result_messages(node)[0] for node in nodes)
    if is_chat or is_result or not any(map(_listed, nodes)):
        return False
    are_nodes = all(isinstance(node, (dict, list, type(None))) for node in fields.values())
    is_state = fields.keys() & {*WORDS["event_holders"]}  # in a field of the line
    return are_nodes or not (is_state or USUAL_FIELDS.id_of(fields) is None)


def _of_update(nodes: Record) -> Span:
    """Return the new message of a node, or several, which may repeat those of a graph within."""
    messages = [message for node in nodes.values() for message in _listed(node)]
    if len(messages) > 1:
        return Span(name="updates", inputs=messages)
    return Span(kind="model", name="updates", outputs=messages)


def _is_log(value: Any) -> bool:
    """Tell a list of the events of one run, by the first and the last of them."""
    ends = as_list(value)[:: max(len(as_list(value)) - 1, 1)]
    names = {*map(_run_name, ends)} - {None}
    return bool(ends) and span_of(ends[0]) is not None and len(names) <= 1


def _logs(record: Any) -> dict[str, Values]:
    """Return the lists of events of an object, by name."""
    lists = {name: parsed(value) for name, value in as_fields(record).items()}
    return {
        name: events for name, events in lists.items() if name != "tool_calls" and _is_log(events)
    }


def _runs_in(fields: Record) -> list[Record]:
    """Return the runs of an object: itself, or those within."""
    if _logs(fields):
        return [fields]
    return named_runs(fields, _logs)


def _run_name(event: Any) -> str | None:
    """Return what an event says of its run; a task of a graph has an id of its own."""
    name = next(filter(None, (dig(event, path) for path in WORDS["event_runs"])), None)
    is_task = {"triggers", "interrupts"} & as_fields(event).keys()
    return as_id(name) or (None if is_task else USUAL_FIELDS.id_of(as_fields(event)))


def _listed(node: Any) -> Values:
    """Return the messages of a state, or of the update of a node."""
    return listed(as_fields(node).get("messages")) or []


def _joined(spans: list[Span]) -> list[Span]:
    """Return spans with ids: those of pieces of one message joined, without repeats of results."""
    joined: dict[str, Span] = {}
    before = None
    for number, span in enumerate(spans):
        if (before, span.kind) != ("tool", "other"):  # else in the next input, too
            span.id = span.id or str(number)
            earlier = joined.setdefault(span.id, span)
            if earlier is not span:
                earlier.outputs = _with_piece(unwrapped(earlier.outputs), unwrapped(span.outputs))
        before = span.kind
    return list(joined.values())


def _with_piece(message: Record, piece: Record) -> Record:
    """Return a streamed message with its next piece."""
    calls: dict[str, Record] = {}
    for chunk in map(as_fields, [*as_list(message.get(_CHUNKS)), *as_list(piece.get(_CHUNKS))]):
        place = str(chunk.get("index"))
        earlier = calls.get(place, {})
        arguments = text_of(earlier.get("args")) + text_of(chunk.get("args"))
        calls[place] = {**chunk, **leftover(earlier), "args": arguments}
    text = text_of(message.get("content")) + text_of(piece.get("content"))
    chunks = list(calls.values())
    return {**message, **leftover(piece), "content": text, _CHUNKS: chunks, "tool_calls": chunks}
