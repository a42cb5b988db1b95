"""From the spans of a trace to one conversation.

A format makes a `Span` of each call of a model, of a tool, and of what is around them. `add_spans`
finds the order, the conversation that each call repeats, the results of tools, and the scores.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.frame import moment, zone_problem
from trajscore.io._messages import as_id
from trajscore.io._payloads import messages_in, result_in
from trajscore.io._run import MalformedRunError, Run, Step, leftover
from trajscore.io._thread import Thread
from trajscore.io.conversation import (
    Called,
    add_tokens,
    as_number,
    read_arguments,
    read_call,
)
from trajscore.io.fields import USUAL_FIELDS, scalar, usual_names
from trajscore.io.files import Place
from trajscore.io.vocabulary import (
    SPANS,
    Kind,
    Record,
    as_fields,
    first,
    is_own_score,
    span_kind,
    text_of,
    token_counts,
    unnested,
)

_OF_TURNS = ("model", "latency")  # fields of a span that its turn has


@dataclass(slots=True)
class Span:
    """One span of a trace."""

    id: Any = None
    kind: Kind = "other"
    parent: str | None = None
    start: Any = None  # a number, or a time as text
    end: Any = None
    name: str | None = None
    inputs: Any = None  # to a model, in any form; the arguments of a tool
    outputs: Any = None  # of a model, in any form; the result of a tool
    call: str | None = None  # id of the call that a tool answers
    error: bool | None = None
    cost: Any = None
    tokens: Record = field(default_factory=dict)  # by side, "input" and "output"
    scores: dict[str, Any] = field(default_factory=dict)
    extra: Record = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("id", "parent", "call", "name"):
            setattr(self, name, as_id(getattr(self, name)))
        if self.parent == self.id:
            self.parent = None


def read_span(of_format: str, record: Record, **more: Any) -> Span:
    """Return a span by the fields that words.toml names, and what else is known of it."""
    named = SPANS["fields"][of_format].items()
    parts = {part: first(record, names, blank=part not in _OF_TURNS) for part, names in named}
    parts["kind"] = span_kind(parts["kind"])
    parts["name"] = first(record, SPANS["tool_name"]) or parts["name"]
    parts["call"] = first(record, SPANS["tool_call_id"])
    parts["error"] = bool(parts.get("error")) or _failed(parts.pop("status", None)) or None
    parts["tokens"] = token_counts(parts.get("tokens", record))
    parts["extra"] = {name: parts.pop(name, None) for name in _OF_TURNS}
    return Span(**(parts | more))


def _failed(status: Any) -> bool:
    fields = as_fields(status)
    code = fields.get("status_code", fields.get("code", status))
    return str(code).upper().endswith("ERROR") or code == 2


def add_score(owner: Span | Run, name: Any, value: Any, run: Run) -> None:
    """Give a judgement to what it is of, but a guard's own; of several values the last counts."""
    if is_own_score(name):
        return
    if owner.scores.get(str(name), value) != value:
        run.extra["replaced_scores"] = run.extra.get("replaced_scores", 0) + 1
    owner.scores[str(name)] = value


def add_spans(place: Place, spans: Iterable[Span], run: Run) -> Run:
    """Put the conversation of the spans of a trace, and their scores, into its run."""
    tree = _Tree(_without_repeats(list(spans), run))
    tree.check_content()
    times = {k: str(span.start) for k, span in enumerate(tree.spans) if "-" in str(span.start)}
    if problem := zone_problem([*times.values()], "span", [*times]):
        raise ArgumentError(f"{place}: {problem}")
    thread = Thread(place)
    for index, (span, ends) in enumerate(tree.visits()):
        if span.kind == "other" or span.id in tree.around_models:
            _add_values(tree, thread, span, index, ends, run)
        elif ends or (span.kind == "tool" and tree.is_tool_again(span)):
            continue
        elif span.kind == "tool":
            _add_tool(thread, span, index, alone=not tree.has_models)
        elif tree.is_answered(span):
            _add_answer(thread, span, index)
        else:
            thread.weave(messages_in(span.inputs, "user"), index)
    if not any(step.actor == "agent" for step in thread.steps):
        around = (s for s, _ in tree.visits() if s.kind == "other" and s.outputs is not None)
        if (outermost := next(around, None)) is not None:
            _add_answer(thread, outermost, 0)
    run.task = run.task or as_id(scalar(USUAL_FIELDS.value(run.extra, "task")))
    unanswered = [s for s in tree.spans if s.kind == "model" and not tree.is_answered(s)]
    if unanswered:
        run.extra["unanswered"] = len(unanswered)
    _add_scores_and_stop(tree, thread.turns, run)
    thread.finish(run)
    add_tokens(run, (span.tokens for span in unanswered))
    return run


def _without_repeats(spans: list[Span], run: Run) -> list[Span]:
    """Leave out, and count, spans with the content and the times of another, as if sent again."""
    pairs = [(s, hash(repr((s.kind, s.name, s.start, s.end, s.inputs, s.outputs)))) for s in spans]
    of_ids = {span.id: content for span, content in pairs}
    distinct: dict[Any, Span] = {}
    names: dict[Any, Any] = {}  # of each span, that of the span which stands for it
    for index, (span, content) in enumerate(pairs):
        has_content = span.start is not None and (span.inputs or span.outputs)
        key = (content, of_ids.get(span.parent)) if has_content else index
        earlier = distinct.setdefault(key, span)
        names[span.id] = earlier.id
        earlier.scores = {**span.scores, **earlier.scores}
    for span in distinct.values():
        span.parent = names.get(span.parent, span.parent)
    if n := len(spans) - len(distinct):
        run.extra["repeated"] = n
    return list(distinct.values())


# ------------------------------------------------------------------ the order of spans


class _Tree:
    """The spans of a trace, in the order in which things happened."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans
        self._has_text = any(s.kind == "model" and (s.inputs or s.outputs) for s in spans)
        self.has_models = any(span.kind == "model" for span in spans)
        self._by_id = {span.id: span for span in spans}
        self._inner: dict[str | None, list[Span]] = {}
        for span in spans:
            parent = span.parent if span.parent in self._by_id else None
            self._inner.setdefault(parent, []).append(span)
        self.outermost = self._inner.get(None, [])
        for siblings in self._inner.values():
            moments = [moment(span.start) for span in siblings if span.kind != "other"]
            if None not in moments:  # else the order of the log holds
                siblings.sort(key=lambda span: moment(span.start) or 0)
        answered = [span for span in spans if span.kind == "model" and span.outputs is not None]
        # spans that hold the messages of calls within
        self.around_models = {outer.id for span in answered for outer in self.around(span)}

    def is_tool_again(self, span: Span) -> bool:
        """Tell a span within that of the same call, or around several calls."""
        return span.name == "(merged tools)" or any(
            outer.kind == "tool" and outer.inputs == span.inputs for outer in self.around(span)
        )

    def check_content(self) -> None:
        """Refuse spans that are bare names and times, or without what their model was asked."""
        outputs = (str(span.outputs) for span in self.spans)
        if not self.has_models and any(text.startswith("AgentOutput(") for text in outputs):
            raise MalformedRunError("it has no call of a model; add llm_chat_callback() to it")
        if not self.spans or any(
            span.inputs or span.outputs or span.scores or usual_names("confidence", span.extra)
            for span in self.spans
        ):
            return
        raise MalformedRunError(
            "its spans have no content; before the program starts, export "
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT (true in older ones)"
        )

    def is_answered(self, span: Span) -> bool:
        """Tell a call of a model from a record that one began or ended, whose answer is elsewhere.

        A call that failed, was judged, or whose tokens were counted is a turn without an answer.
        """
        has_more = span.error or span.scores or span.tokens.get("output")
        has_answer = span.outputs is not None or span.id in self.around_models
        return has_answer or bool(has_more) or not self._has_text

    def around(self, span: Span) -> Iterator[Span]:
        """Yield the spans around a span, the innermost first."""
        seen = {span.id}  # spans may be each other's parents
        while (outer := self._by_id.get(span.parent or "")) is not None and outer.id not in seen:
            yield outer
            seen.add(outer.id)
            span = outer

    def visits(self) -> Iterator[tuple[Span, bool]]:
        """Yield each span twice, when it begins and when all within it has ended."""
        seen: set[int] = set()
        for root in [*self.outermost, *self.spans]:  # some may be each other's parents
            stack = [(root, False)]
            while stack:
                span, ends = stack.pop()
                if ends:
                    yield span, True
                elif id(span) not in seen:
                    seen.add(id(span))
                    yield span, False
                    stack.append((span, True))
                    stack += [(inner, False) for inner in self._inner.get(span.id, ())[::-1]]


# ------------------------------------------------------------------ what spans add


def _add_values(tree: _Tree, thread: Thread, span: Span, index: int, ends: bool, run: Run) -> None:
    """Add the messages of a span around others; what else the outermost one holds is the run's."""
    value = span.outputs if ends else span.inputs
    messages = messages_in(value, None)
    thread.weave(messages, index)
    around = tree.around(span)
    if not (messages or value is None or any(outer.inputs or outer.outputs for outer in around)):
        run.extra["output" if ends else "input"] = unnested(value)


def _add_answer(thread: Thread, span: Span, index: int) -> None:
    for turn in thread.add_call(span.inputs, span.outputs, index):
        if turn.actor == "agent" and span.id not in thread.turns:
            thread.turns[span.id] = turn
            turn.span = span.id
            if turn.cost is None:
                turn.cost = as_number(span.cost, f"message {index}: its cost")
            turn.extra |= leftover(span.extra)
            if tokens := leftover(span.tokens):
                turn.extra["tokens"] = tokens


def _add_tool(thread: Thread, span: Span, index: int, *, alone: bool) -> None:
    """Give a tool's result to its call; a call that no message holds goes to the last turn."""
    result, key = result_in(span.outputs)
    key = span.call or key
    text = None
    if span.outputs is not None:
        text = text_of(result)
    arguments = read_arguments(unnested(span.inputs))
    called = _call_of_span(thread, key, span.name, arguments, text)
    if called is None:
        last = next((turn for turn in reversed(thread.steps) if turn.actor == "agent"), None)
        fields = {"name": span.name or "", "arguments": arguments, "id": key}
        if last is None or alone:
            turn = {"role": "assistant", "content": "", "tool_calls": [fields]}
            last = thread.insert(turn, index)
            last.span = span.id
        else:
            last.tool_calls.append(read_call(fields))
        called = last, last.tool_calls[-1]
    step, call = called
    thread.turns[span.id] = step
    thread.ran.add(id(call))
    if call.result is None and text is not None:
        thread.set_result(step, call, text)
    if arguments and call.arguments in ({}, ""):
        call.arguments = arguments
    call.id = call.id or key
    if call.error is None:
        call.error = span.error


def _call_of_span(
    thread: Thread, key: str | None, name: str | None, arguments: Any, text: str | None
) -> Called | None:
    """Return the turn and the call that a tool's span belongs to: by identifier, or by name."""
    called = thread.call_of_id(key)
    if called is not None:
        return called
    # a span may have other words before the name of the call
    names = {name, *str(name).split()[-1:], str(name).rpartition(".")[2]} if name else set()
    left = [
        (step, call)
        for step in thread.steps
        for call in step.tool_calls
        if id(call) not in thread.ran
    ]
    named = [pair for pair in left if pair[1].name in names]
    if not named and arguments and "." in str(name):  # of a function around the tool
        named = [pair for pair in left if pair[1].arguments == arguments]
    inner = as_fields(arguments).get("input", arguments)
    same = [pair for pair in named if pair[1].arguments in (arguments, inner)]
    # with the same arguments and result, as far as they are known
    likely = [pair for pair in (*same, *named[::-1]) if pair[1].result in (None, text)]
    return next(iter(likely or same), None)


def _add_scores_and_stop(tree: _Tree, turns: dict[str, Step], run: Run) -> None:
    """Give each span's scores to its turn, the last one within it, or the run; set its stop."""
    if run.stop_reason is None and any(s.error for s in tree.outermost if s.kind == "other"):
        run.stop_reason = "error"
    last: dict[str, Step] = {}
    for span, ends in tree.visits():
        if not ends:
            continue
        step = turns.get(span.id) or last.get(span.id)
        (step or run).scores.update(span.scores)
        if step is not None and span.parent is not None:
            last[span.parent] = step
