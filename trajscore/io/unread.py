"""What is not read: texts and log-probabilities that no run holds, and files that are refused."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from operator import is_
from pathlib import Path
from typing import Any

from trajscore.core.errors import ArgumentError
from trajscore.core.outcomes import words_of
from trajscore.io._messages import is_message
from trajscore.io._run import Run, Step
from trajscore.io._smolagents import REPEATED
from trajscore.io.logprobs import names_logprobs, recorded_in
from trajscore.io.vocabulary import WORDS, Record, parsed, unnested

_BESIDE = {*WORDS["names"]["beside"]}
_LABELS = {*WORDS["names"]["labels"], *_BESIDE}
_LEFT_OUT = {*WORDS["names"]["left_out"]}
_OF_SILENCE = {*WORDS["names"]["silence"]}
_OF_CALLS = {"input", "tokens", "finish_reason"}  # in which no text is expected
_NESTED = (dict, list, tuple)
_FIRST_WORDS = 20  # of a text that are looked at


def count_unread(raw: Any, run: Run) -> tuple[Counter[str], Counter[str]]:
    """Count the texts that a run does not hold, and the log-probabilities of one without any."""
    unread = Counter[str]()
    scores = Counter[str]()
    if "n_left_out" in run.extra:
        return unread, scores
    held, _ = _contents(_values_of(run))
    held |= _contents([run.extra], beside_messages=True)[0]
    is_scored = any(step.logprobs is not None for step in run.steps)
    if not is_scored and _holds_all(raw, held):
        return unread, scores
    joined = "\n".join(held)
    texts = [text for step in run.steps for text in (step.text, step.observation)]
    turns = [text for text in texts if text and is_prose(text)]
    for path, value in _places(raw, held):
        if names_logprobs(path.rpartition(".")[2]):
            scores[path] += not is_scored and any(recorded_in(value))
        elif not any(turn in value for turn in turns):
            text = value.strip()  # in JSON, it stands with escapes
            escaped = json.dumps(text, ensure_ascii=False)[1:-1]
            unread[path] += not (text in joined or escaped in joined)
    return +unread, +scores


def _places(raw: Any, held: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the other texts within a record, and all log-probabilities, each with its way."""
    seen = set[str]()
    todo: list[tuple[str, Any]] = [("", raw)]
    while todo:
        path, value = todo.pop()
        if names_logprobs(path.rpartition(".")[2]):
            yield path, value
        elif isinstance(value, list):
            todo += ((path, inner) for inner in value)
        elif isinstance(value, dict):
            todo += _turn_fields(path, value)
        elif isinstance(value, str) and value not in held and value not in seen and is_prose(value):
            seen.add(value)
            inner = parsed(value)
            if inner is value:
                yield path, value
            else:
                todo.append((path, inner))


def _holds_all(raw: Any, held: set[str]) -> bool:
    """Tell that nothing is unread, as is usual, without looking where each text stands."""
    values = [raw]
    while values:
        texts, names = _contents(values)
        lacking = [text for text in texts - held if is_prose(text)]
        values = list(map(parsed, lacking))
        if any(map(names_logprobs, map(str, names))) or any(map(is_, values, lacking)):
            return False
    return True


def _contents(outer: Any, *, beside_messages: bool = False) -> tuple[set[str], set[Any]]:
    """Return all texts within an object or a list, and the names of all fields in it.

    With `beside_messages`, it leaves out messages, which nobody read, and reads texts of JSON.
    """
    texts = set[str]()
    names = set[Any]()
    containers = [outer]
    for container in containers:  # which get more
        values = container
        if isinstance(container, dict):
            if beside_messages and is_message(container):
                continue
            names.update(container)
            if "key" in container:  # it may be an attribute of OTLP
                names.add(str(container["key"]))
            values = container.values()
        for value_or_text in values:
            value = value_or_text
            if beside_messages and isinstance(value, str) and " " in value:
                value = unnested(value)
            if isinstance(value, str):
                texts.add(value)
            elif value and isinstance(value, _NESTED):
                containers.append(value)
    return texts, names


def _values_of(run: Run) -> list[Any]:
    """Return what a run holds, but for what is beside its messages."""
    values = [run.id, run.task, run.stop_reason, run.meta, run.scores]
    for step in run.steps:
        values += (step.text, step.observation, step.scores, *_beside_text(step))
        for call in step.tool_calls:
            values += (call.name, call.arguments, call.result, call.extra)
    return values


def _beside_text(step: Step) -> list[Any]:
    """Return the other fields of a turn; of one without words, only thoughts and errors."""
    if step.actor == "agent" and not step.text.strip():
        return [
            value
            for name, value in step.extra.items()
            if name == "parts" or words_of(str(name)) & _OF_SILENCE
        ]
    return [value for name, value in step.extra.items() if name not in _OF_CALLS]


def is_prose(text: str) -> bool:
    """Tell words from a number, a time, a code or a single word."""
    if " " not in text:
        return False
    words = text.split(None, _FIRST_WORDS)[:_FIRST_WORDS]
    have_letters = (any(map(str.isalpha, word[:_LONGEST])) for word in words)
    return any(have_letters) and any(have_letters)  # two of them


def _turn_fields(outer: str, record: Record) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object, unless they are beside the turns, each with its way."""
    if record.keys() == {"key", "value"}:  # an attribute of OTLP is one field
        record = {str(record["key"]): record["value"]}
    if not _LEFT_OUT.isdisjoint(record) and any(map(record.get, _LEFT_OUT)):
        return
    for name, value in record.items():
        path, is_label, is_beside = _field(outer, str(name))
        is_text = isinstance(value, str) and not value.startswith(("{", "["))
        if not (is_label if is_text else is_beside):
            yield path, value


@lru_cache(4096)  # objects of one log have the same names
def _field(outer: str, name: str) -> tuple[str, bool, bool]:
    """Return the way to a field, and whether it is beside the turns: as a text, or otherwise."""
    words = words_of(name)
    parts = (*outer.split("."), *name.split("."))  # also places of items, which are left out
    path = ".".join(part for part in parts if part and not part.isdigit())
    return path, bool(words & _LABELS), bool(words & _BESIDE) or name == REPEATED


_LONGEST = 200
_SHORTEST = 24  # characters of a path that are shown at least
_LONG = (
    (re.compile(r"\(([^(){}]{24})[^(){}]{4,}\)"), r"(\1…)"),
    (re.compile(r"'([^'{}]{14})[^'{}]{4,}'"), r"'\1…'"),
)
_INSTEAD = WORDS["instead"]


@contextmanager
def refusals(path: Path, *, named: bool = True) -> Iterator[None]:
    """Keep what refuses a file to one short sentence; put the path before it if not `named`."""
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        if len(error.args) != 1:  # of the system, or of a library
            raise
        short = error if isinstance(error, ArgumentError) else ArgumentError(str(error))
        if not named and path.name not in str(error):
            short.text = f"{path}: {short.text}"
        shorten(short, str(path))
        error.args = (short.in_options({}),)
        raise


def shorten(error: ArgumentError, path: str = "") -> None:
    """Shorten the path from the left, then lists in brackets, long names, and the end."""
    before, shown, rest = error.text.partition(path or "\n")
    error.text = before + shown + rest.replace(path or "\n", Path(path).name or " ")
    if path and (over := _excess(error)) > 0:
        length = max(len(path) - over - 1, _SHORTEST)
        error.text = error.text.replace(
            path, f"…{path[-length:]}" if length < len(path) - 1 else path
        )
    for long, short in _LONG:
        if _excess(error) > 0:
            error.text = long.sub(short, error.text)
    while isinstance(error.value, dict) and len(error.value) > 2 and _excess(error) > 0:
        error.value.popitem()
    if len(str(error.value)) > _LONGEST // 2 and _excess(error) > 0:
        error.value = None  # a word of any length cannot be typed
    while (over := _excess(error)) > 0:
        text = error.text[: -over - 1]
        if text.count("{") > text.count("}"):
            text = text[: text.rfind("{")]
        error.text = f"{text.rpartition(' ')[0] or text}…"


def _excess(error: ArgumentError) -> int:
    return len(error.in_options({})) - _LONGEST


def save_instead(names: Collection[str], least: int = 1) -> str:
    """Say what to save instead of what has these fields, known by at least `least`; or ""."""
    for marks, instead in _INSTEAD.items():
        if len(marks.split()) >= least and {*marks.split()} <= {*names}:
            return f"save {instead} instead"
    return ""
