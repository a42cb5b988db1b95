"""Events of a workflow, an object each: what a model was given and answered, what tools returned.

LlamaIndex streams them; a log gives them the id of their run, or holds one run after the other.
Others log when a run, a call of a model or of a tool starts and ends, and what was returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trajscore.io._spans import Span
from trajscore.io._vocabulary import USAGES, Kind, as_fields, first, span_kind, token_counts
from trajscore.io.fields import usual_names

_EVENTS = ({"current_agent_name"}, {"tool_name", "tool_kwargs"})  # fields that only events have
_WRAPPERS = ("data", "result")
# What AutoGen logs between the calls of a model, whose messages hold the same.
_BESIDE_CALLS = ({"tool_name", "arguments", "result", "agent_id"}, {"payload", "sender", "kind"})
_KINDS = ("event", "event_type", "type", "kind")
_MOMENT = re.compile(
    r"(?:on[_.])?(agent|chain|chat|episode|generation|llm|model|run|task|tool|workflow)[_.]"
    r"(start|end|error)(?:ed)?$"
)
_GIVEN = ("messages", "input", "inputs", "prompt", "args", "arguments", "question", "task")
_GAVE = ("output", "outputs", "response", "message", "content", "text", "result", "completion")


def moment_of(record: Any) -> tuple[str, str]:
    """Return what an event of a run is about, and whether it starts or ends; else "", "".

    >>> moment_of({"run_id": 7, "event": "tool_end"}), moment_of({"event": "tool_end"})
    (('tool', 'end'), ('', ''))
    """
    fields = as_fields(record)
    match = _MOMENT.match(str(first(fields, _KINDS)).lower())
    return (match[1], match[2]) if match and usual_names("id", fields) else ("", "")


def payload_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an event says, in an object of its own or beside its name."""
    return next((v for k in ("data", "payload") if (v := as_fields(record.get(k)))), record)


def is_event(record: Any) -> bool:
    """Tell an event, also within a wrapper."""
    fields = as_fields(record)
    if moment_of(fields) != ("", ""):
        return True
    inner = (is_event(fields[name]) for name in _WRAPPERS if isinstance(fields.get(name), dict))
    return any(names <= fields.keys() for names in _EVENTS) or any(inner)


def ends_run(record: Mapping[str, Any]) -> bool:
    """Tell the event with the result of a run, its last one."""
    return isinstance(_fields_of(record).get("result"), Mapping)


def is_beside_calls(record: Any) -> bool:
    """Tell an event that says nothing which the calls of a model in the same log do not."""
    return any(names <= as_fields(record).keys() for names in _BESIDE_CALLS)


def _fields_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = as_fields(record.get("data"))
    return inner if is_event(inner) else record


def spans_of_events(records: Iterable[Mapping[str, Any]]) -> Iterator[Span]:
    """Yield what each event of a run stands for, without starts and pieces of answers."""
    records = list(records)
    if any(moment_of(record) != ("", "") for record in records):
        yield from _spans_of_moments(records)
        return
    for index, record in enumerate(records):
        fields = _fields_of(record)
        output = fields.get("tool_output")
        if "delta" in fields:
            continue
        if "tool_kwargs" not in fields:
            answer = fields.get("response")
            yield (
                Span(index, "model", outputs=answer)
                if isinstance(answer, dict)
                else Span(index, inputs=fields)
            )
        elif output is not None:
            yield Span(
                index,
                "tool",
                name=fields.get("tool_name"),
                inputs=fields["tool_kwargs"],
                outputs=output,
                call=fields.get("tool_id"),
                error=True if as_fields(output).get("is_error") else None,
            )


def _spans_of_moments(records: list[Mapping[str, Any]]) -> Iterator[Span]:
    """Yield the calls that events end, with what the event that started each of them says."""
    started: dict[tuple[str, str], Mapping[str, Any]] = {}
    asks = any(_kind_of(r) == "model" and first(payload_of(r), _GIVEN) for r in records)
    for index, record in enumerate(records):
        (about, moment), fields, kind = moment_of(record), payload_of(record), _kind_of(record)
        call = first(fields, ("tool_call_id", "call_id"))
        name = first(fields, ("name", "tool", "tool_name"))
        key = (about, str(call or name))
        start = {} if moment == "start" else started.pop(key, {})
        inputs = first({**start, **fields}, _GIVEN)
        if moment == "start":
            started[key] = fields
        if kind == "other":
            is_task = moment == "start" and isinstance(inputs, str) and not asks
            yield Span(index, inputs=[{"role": "user", "content": inputs}] if is_task else None)
        elif moment != "start":
            outputs = first(fields, _GAVE)
            if kind == "model" and fields.get("tool_calls"):
                outputs = {"content": outputs, "tool_calls": fields["tool_calls"]}
            failed, tokens = True if moment == "error" else None, first(fields, USAGES)
            values = {"name": name, "inputs": inputs, "outputs": outputs, "call": call}
            yield Span(index, kind, **values, error=failed, tokens=token_counts(tokens))


def _kind_of(record: Mapping[str, Any]) -> Kind:
    about, _ = moment_of(record)
    return "model" if about == "model" else span_kind(about)
