"""Texts and log-probabilities of a record that no part of its run holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from trajscore.core.meanings import words_of
from trajscore.io._messages import is_message
from trajscore.io._run import Run, Step
from trajscore.io._vocabulary import parsed
from trajscore.io.logprobs import names_logprobs, recorded_in

# fmt: off
_BESIDE = {  # words for what is said of a tool or a program, and not in a turn
    "config", "configuration", "parameters", "resource", "schema", "scope", "tools",
}
_LABELS = {  # the same, where it is a text
    "backstory", "comment", "description", "explanation", "goal", "id", "instructions", "label",
    "msg", "name", "rationale", "reason", "summary", "title", "url", "version",
}
# fmt: on
_LEFT_OUT = ("isSidechain", "isMeta", "isCompactSummary", "is_copied_context", "is_demo")
_OF_SILENCE = {"error", "errors", "reasoning", "thinking", "thought", "thoughts"}
_OF_CALLS = ("input", "tokens", "finish_reason")  # in which no text is expected
_FIRST_WORDS = 20  # of a text that are looked at
_LONGEST = 40  # characters of them


@lru_cache(1024)
def _is_beside(name: str, is_text: bool) -> bool:
    """Tell a field of what is said of a tool or a program, and not in a turn."""
    return not words_of(name).isdisjoint(_BESIDE | _LABELS if is_text else _BESIDE)


def count_unread(raw: Any, run: Run) -> tuple[Counter[str], Counter[str]]:
    """Count the texts that a run does not hold, and the log-probabilities of one without any."""
    unread: Counter[str] = Counter()
    scores: Counter[str] = Counter()
    if "n_left_out" in run.extra:
        return unread, scores
    turns, others = _texts_of(run)
    known, joined = {*turns, *others}, ""
    is_scored = any(step.logprobs is not None for step in run.steps)
    todo: list[tuple[str, Any]] = [("", raw)]
    while todo:
        path, value = todo.pop()
        if names_logprobs(path.rpartition(".")[2]):
            scores[path] += not is_scored and any(recorded_in(value))
        elif not isinstance(value, str):
            todo += _within(path, value)
        elif value not in known and is_prose(value):
            inner = parsed(value)
            joined = joined or "\n".join(known)
            known.add(value)
            if inner is not value:
                todo.append((path, inner))
            elif value.strip() not in joined and not any(turn in value for turn in turns):
                unread[path] += 1
    return unread, +scores


def _texts_of(run: Run) -> tuple[set[str], set[str]]:
    """Return what turns say and observe, and the other texts of a run."""
    turns: set[str] = set()
    others: list[Any] = [run.id, run.task, run.stop_reason, run.meta, run.scores]
    others += _beside_messages(run.extra)
    for step in run.steps:
        turns |= {text for text in (step.text, step.observation) if text and is_prose(text)}
        others += [step.text, step.observation, *_beside_text(step), step.scores]
        for call in step.tool_calls:
            others += [call.name, call.arguments, call.result, call.extra]
    texts: set[str] = set()
    while others:
        value = others.pop()
        if isinstance(value, str):
            texts.add(value)
        elif isinstance(value, (dict, list, tuple)):
            others += value.values() if isinstance(value, dict) else value
    return turns, texts


def _beside_messages(value: Any) -> Iterator[str]:
    """Yield the texts of fields of a run that are not messages, which nobody read."""
    value = parsed(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)) and not is_message(value):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _beside_messages(inner)


def _beside_text(step: Step) -> Iterator[Any]:
    """Yield the other fields of a turn; of one without words, only thoughts and errors."""
    is_silent = step.actor == "agent" and not step.text.strip()
    for name, value in step.extra.items():
        is_known = not is_silent or name == "parts" or words_of(str(name)) & _OF_SILENCE
        if is_known and name not in _OF_CALLS:
            yield value


def is_prose(text: str) -> bool:
    """Tell words from a number, a time, a code or a single word."""
    if " " not in text:
        return False
    words = text.split(None, _FIRST_WORDS)[:_FIRST_WORDS]
    return sum(any(map(str.isalpha, word[:_LONGEST])) for word in words) > 1


def _within(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what an object holds, with its name, but not what is beside turns."""
    if isinstance(value, list):
        yield from ((path, inner) for inner in value)
        return
    fields = value if isinstance(value, dict) else {}
    if fields.keys() == {"key", "value"}:  # an attribute of OTLP
        fields = {str(fields["key"]): fields["value"]}
    if any(map(fields.get, _LEFT_OUT)):
        return
    for name, inner in fields.items():
        is_text = isinstance(inner, str) and not inner.startswith(("{", "["))
        if not _is_beside(str(name), is_text):
            yield _path(path, str(name)), inner


@lru_cache(1024)
def _path(outer: str, name: str) -> str:
    """Return the way to a field, without the places of items."""
    return ".".join(p for p in (*outer.split("."), *name.split(".")) if p and not p.isdigit())
