"""From the spans of a trace to one conversation.

A tracer writes one span for each call of a model, of a tool, and for what is around them. Whatever
the tracer, the format makes a `Span` of each, and `add_spans` does the rest: the order, calls that
are written twice, the conversation that each call repeats, results of tools, and scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trajscore.io._conversation import Conversation, as_number, listed, read_arguments, text_of
from trajscore.io._messages import parsed
from trajscore.io._run import Run, Step, ToolCall

Kind = Literal["model", "tool", "other"]


@dataclass(slots=True)
class Span:
    """What one span of a trace says.

    A call of a model has the messages that it was given and answered; a call of a tool its
    arguments and its result. `start` is whatever can be compared, None where it is not known.
    `call` is the identifier of the call that a tool answers. `tokens` counts them by kind
    ("input", "output"). `scores` are judgements of this span, by name.
    """

    id: str
    kind: Kind = "other"
    parent: str | None = None
    start: Any = None
    name: str | None = None
    given: Any = None
    answer: Any = None
    call: str | None = None
    error: bool | None = None
    cost: Any = None
    tokens: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def add_spans(talk: Conversation, spans: Iterable[Span], run: Run) -> Run:
    """Put the conversation that the spans of a trace hold into its run.

    A model's call around another one is written twice, and counts once. Scores of a model's call
    are those of its turn, scores of a tool those of the turn that called it, and all others those
    of the last turn within; without any, of the run. Without a call of a model, the conversation
    is what the outermost span gives and answers.
    """
    ordered = _in_order(list(spans))
    turns: dict[str, Step] = {}
    within = _within(ordered)
    calls = {one.id for one in ordered if one.kind == "model"}
    for index, one in enumerate(ordered):
        if one.kind == "model" and not calls & within[one.id]:
            _add_model(talk, one, index, turns)
        elif one.kind == "tool":
            _add_tool(talk, one, index, turns)
    if not any(step.actor == "agent" for step in talk.steps):
        _add_outermost(talk, ordered, turns)
    place = {id(step): k for k, step in enumerate(talk.steps)}
    for one in ordered:
        inner = [turns[name] for name in within[one.id] if name in turns]
        last = max(inner, key=lambda step: place[id(step)], default=None)
        step = turns.get(one.id, last)
        (run.scores if step is None else step.scores).update(one.scores)
    _count_tokens(run, talk.steps)
    return talk.finish(run)


def _in_order(spans: list[Span]) -> list[Span]:
    """Sort by the start, where all that matter have one; else the order of the log holds."""
    matter = [one for one in spans if one.kind != "other"]
    kinds = {type(one.start) for one in matter}
    if len(kinds) != 1 or any(one.start in (None, "") for one in matter):
        return spans
    known = [one for one in spans if type(one.start) in kinds]
    return sorted(known, key=lambda one: one.start) + [one for one in spans if one not in known]


def _within(spans: Sequence[Span]) -> dict[str, set[str]]:
    """Return the spans within each one, at any depth."""
    parents = {one.id: one.parent for one in spans}
    found: dict[str, set[str]] = {one.id: set() for one in spans}
    for name in parents:
        above, path = parents[name], {name}
        while above in found and above not in path:
            found[above].add(name)
            path.add(above)
            above = parents[above]
    return found


def _add_model(talk: Conversation, one: Span, index: int, turns: dict[str, Step]) -> None:
    for turn in talk.add_call(one.given, one.answer, index):
        if turn.actor == "agent" and one.id not in turns:
            turns[one.id] = turn
            turn.cost = as_number(one.cost, "cost", index) if turn.cost is None else turn.cost
            turn.extra |= {k: v for k, v in one.extra.items() if v is not None}
            tokens = {k: v for k, v in one.tokens.items() if v is not None}
            if tokens:
                turn.extra["tokens"] = tokens


def _add_tool(talk: Conversation, one: Span, index: int, turns: dict[str, Step]) -> None:
    """Give a tool's result to its call; a call that no message holds is the last turn's."""
    step, call = talk.answered(one.call, one.name)
    text = None if one.answer is None else text_of(parsed(one.answer))
    if call is None:
        step = next((turn for turn in reversed(talk.steps) if turn.actor == "agent"), None)
        if step is not None:
            call = ToolCall(one.name or "", read_arguments(one.given), one.call)
            step.tool_calls.append(call)
    if step is None or call is None:
        return
    turns[one.id] = step
    if call.result is None and text is not None:
        call.result = text
        step.observation = text if step.observation is None else f"{step.observation}\n{text}"
    call.error = one.error if call.error is None else call.error


def _add_outermost(talk: Conversation, spans: Sequence[Span], turns: dict[str, Step]) -> None:
    """Take the conversation of the first span that answers, from the outermost on."""
    known = {one.id for one in spans}
    for one in sorted(spans, key=lambda one: one.parent in known):
        if one.kind == "other" and one.answer is not None:
            talk.add_call(one.given, None, 0)
            talk.add_call(listed(one.answer, "assistant"), None, 0)  # it may repeat what was given
            agent = [step for step in talk.steps if step.actor == "agent"]
            if agent:
                turns[one.id] = agent[-1]
                return


def _count_tokens(run: Run, steps: Iterable[Step]) -> None:
    for step in steps:
        for kind, number in (step.extra.get("tokens") or {}).items():
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                name = f"{kind}_tokens"
                run.meta[name] = run.meta.get(name, 0) + number
