"""From the spans of a trace to one conversation.

A format makes a `Span` of each call of a model, of a tool, and of what is around them. `add_spans`
finds the order, the conversation that each call repeats, the results of tools, and the scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trajscore.io._conversation import Conversation, as_number, read_arguments, read_call, text_of
from trajscore.io._payloads import messages_in, result_in
from trajscore.io._run import Run, Step, ToolCall
from trajscore.io._thread import Thread, set_result
from trajscore.io._vocabulary import Kind, unnested
from trajscore.io.fields import USUAL_FIELDS, scalar


@dataclass(slots=True)
class Span:
    """One span of a trace."""

    id: Any
    kind: Kind = "other"
    parent: str | None = None
    start: Any = None  # a number, or a time as text
    name: str | None = None
    given: Any = None  # to a model, in any form; the arguments of a tool
    answer: Any = None  # of a model, in any form; the result of a tool
    call: str | None = None  # id of the call that a tool answers
    error: bool | None = None
    cost: Any = None
    tokens: Mapping[str, Any] = field(default_factory=dict)  # by side, "input" and "output"
    scores: dict[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("id", "parent", "call", "name"):
            value = getattr(self, name)
            setattr(self, name, None if value in (None, "") else str(value))


def add_spans(talk: Conversation, spans: Iterable[Span], run: Run) -> Run:
    """Put the conversation of the spans of a trace, and their scores, into its run."""
    tree = _Tree(list(spans))
    thread = Thread(talk)
    turns: dict[str, Step] = {}
    for index, (one, ends) in enumerate(tree.visits()):
        if one.kind == "model" and not tree.repeats(one):
            if not ends and not tree.is_told_around(one):
                _add_model(thread, one, index, turns)
        elif one.kind == "tool":
            if not ends:
                _add_tool(thread, one, index, turns, alone=not tree.has_models)
        else:
            value = one.answer if ends else one.given
            messages = messages_in(value, None)
            thread.weave(messages, index)
            if not messages and value is not None and tree.is_first_to_tell(one):
                run.extra["output" if ends else "input"] = unnested(value)
    if not any(step.actor == "agent" for step in talk.steps):
        _add_outermost(thread, tree, 0, turns)
    if run.stop_reason is None and any(one.error for one in tree.outermost if one.kind == "other"):
        run.stop_reason = "error"
    if run.task is None:
        task = scalar(USUAL_FIELDS.value(run.extra, "task"))
        run.task = None if task is None else str(task)
    _add_scores(tree, turns, run)
    count_tokens(run, talk.steps)
    return talk.finish(run)


# ------------------------------------------------------------------ the order of spans


class _Tree:
    """The spans of a trace, in the order in which things happened."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans
        known = self._known = {one.id: one for one in spans}
        self._inner: dict[str | None, list[Span]] = {}
        for one in spans:
            above = one.parent if one.parent in known and one.parent != one.id else None
            self._inner.setdefault(above, []).append(one)
        for siblings in self._inner.values():
            moments = [moment(one.start) for one in siblings if one.kind != "other"]
            if None not in moments:  # else the order of the log holds
                siblings.sort(key=lambda one: moment(one.start) or 0)
        self._has_models: dict[str, bool] = {}
        for one, ends in self.visits():
            if ends:
                inner = self._inner.get(one.id, ())
                self._has_models[one.id] = any(
                    (child.kind == "model" and child.answer is not None)
                    or self._has_models.get(child.id)
                    for child in inner
                )
        self.has_models = any(one.kind == "model" for one in spans)

    @property
    def outermost(self) -> list[Span]:
        return self._inner.get(None, [])

    def repeats(self, one: Span) -> bool:
        """Tell a call of a model around others that say what it says."""
        return self._has_models.get(one.id, False)

    def is_first_to_tell(self, one: Span) -> bool:
        """Tell a span around which there is none that was given or answered anything."""
        return not any(above.given or above.answer for above in self._around(one))

    def is_told_around(self, one: Span) -> bool:
        """Tell a call of a model of which only the call around it says something."""
        says = one.given is not None or one.answer is not None
        return not says and any(above.kind == "model" for above in self._around(one))

    def _around(self, one: Span) -> Iterator[Span]:
        """Yield the spans around one, from within."""
        seen = {one.id}
        while (above := self._known.get(one.parent)) is not None and above.id not in seen:
            seen.add(above.id)
            yield above
            one = above

    def visits(self) -> Iterator[tuple[Span, bool]]:
        """Yield each span twice, when it begins and when all within it has ended."""
        seen: set[int] = set()
        for first in [*self._inner.get(None, ()), *self.spans]:  # the latter where they go in rings
            waiting = [(first, False)]
            while waiting:
                one, ends = waiting.pop()
                if ends:
                    yield one, True
                elif id(one) not in seen:
                    seen.add(id(one))
                    yield one, False
                    waiting.append((one, True))
                    waiting += [(inner, False) for inner in self._inner.get(one.id, ())[::-1]]


def moment(value: Any) -> int | None:
    """Return a time as a whole number that can be compared with others of the same log.

    >>> moment("2026-01-01T00:00:00Z") < moment("2026-01-01T00:00:00.5Z"), moment("17"), moment("")
    (True, 17, None)
    """
    if isinstance(value, bool) or value in (None, ""):
        return None
    if isinstance(value, (int, float)) or (isinstance(value, str) and value.isdigit()):
        try:
            return int(value)
        except (ValueError, OverflowError):  # no number, infinite, too long
            return None
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round((time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6)


# ------------------------------------------------------------------ what spans add


def _add_model(thread: Thread, one: Span, index: int, turns: dict[str, Step]) -> None:
    for turn in thread.add_call(one.given, one.answer, index):
        if turn.actor == "agent" and one.id not in turns:
            turns[one.id] = turn
            turn.cost = as_number(one.cost, "cost", index) if turn.cost is None else turn.cost
            turn.extra |= {k: v for k, v in one.extra.items() if v is not None}
            tokens = {k: v for k, v in one.tokens.items() if v is not None}
            if tokens:
                turn.extra["tokens"] = tokens


def _add_tool(
    thread: Thread, one: Span, index: int, turns: dict[str, Step], *, alone: bool
) -> None:
    """Give a tool's result to its call; a call that no message holds is the last turn's."""
    talk = thread.talk
    answer, key = result_in(one.answer)
    text = None if one.answer is None else text_of(answer)
    arguments = read_arguments(unnested(one.given))
    step, call = _call_of_span(thread, one.call or key, one.name, arguments, text)
    if call is None:
        step = next((turn for turn in reversed(talk.steps) if turn.actor == "agent"), None)
        made = {"name": one.name or "", "arguments": arguments, "id": one.call or key}
        if step is None or alone:
            turn = {"role": "assistant", "content": "", "tool_calls": [made]}
            step = thread.add_turn(turn, index)
            call = step.tool_calls[0]
        else:
            call = read_call(made, index)
            step.tool_calls.append(call)
    if step is None:
        return
    turns[one.id] = step
    thread.ran.add(id(call))
    if call.result is None and text is not None:
        set_result(step, call, text)
        call.extra["result"] = "span"
    call.id = call.id or one.call or key
    call.error = one.error if call.error is None else call.error


def _call_of_span(
    thread: Thread, key: str | None, name: str | None, arguments: Any, text: str | None
) -> tuple[Step | None, ToolCall | None]:
    """Return the turn and the call that a tool's run belongs to: by identifier, or by name."""
    step, call = thread.talk.call_of_id(key)
    if call is not None:
        return step, call
    named = [
        (step, call)
        for step in thread.talk.steps
        for call in step.tool_calls
        if id(call) not in thread.ran and _is_named(call, name)
    ]
    inner = arguments.get("input", arguments) if isinstance(arguments, Mapping) else arguments
    same = [pair for pair in named if pair[1].arguments in (arguments, inner)]
    ways = (  # with the same arguments and result, as far as they are known
        (pair for pair in same if pair[1].result in (None, text)),
        (pair for pair in reversed(named) if pair[1].result is None),
        (pair for pair in named if pair[1].result == text),
        same,
    )
    return next((pair for way in ways for pair in way), (None, None))


def _is_named(call: ToolCall, name: str | None) -> bool:
    """Tell whether a span has the name of a call, maybe behind other words."""
    return bool(name) and (call.name == name or str(name).split()[-1:] == [call.name])


def _add_outermost(thread: Thread, tree: _Tree, index: int, turns: dict[str, Step]) -> None:
    """Take the conversation of the first span that answers, from the outermost on."""
    for one, ends in tree.visits():
        if not ends and one.answer is not None and one.kind == "other":
            _add_model(thread, one, index, turns)
            return


def _add_scores(tree: _Tree, turns: dict[str, Step], run: Run) -> None:
    """Give each span's scores to its turn, or the last one within it, or else to the run."""
    last: dict[str, Step] = {}
    for one, ends in tree.visits():
        if not ends:
            continue
        step = turns.get(one.id) or last.get(one.id)
        (run.scores if step is None else step.scores).update(one.scores)
        if step is not None and one.parent is not None:
            last[one.parent] = step


def count_tokens(run: Run, steps: Iterable[Step]) -> None:
    for step in steps:
        for kind, number in (step.extra.get("tokens") or {}).items():
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                name = f"{kind}_tokens"
                run.meta[name] = run.meta.get(name, 0) + number
