"""What a judge is shown and asked of runs: before it is asked, and once it is answered."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.parallel import Work
from trajscore.core.values import FloatArray, as_count, as_path, check_choice, number_of
from trajscore.io import Run, Step
from trajscore.io.unread import is_prose
from trajscore.judging.answers import FORMS, Answer, Cache, Endpoint, Form, url_of
from trajscore.tracer.turns import Turns, call_text, take_turns

CHANNEL = "judge"
_QUESTIONS = {"step": "Is the agent's last message, with its calls, a right step towards its task?"}


class Judged(NamedTuple):
    """The forecasts of a judge, the answers that were asked for, and what is missing or cut."""

    traces: TrajectoryArray
    new: list[Answer]
    notes: list[str]


@dataclass(frozen=True)
class Questions:
    """What is to be asked of a model: each different text once, by its key."""

    endpoint: tuple[str, str, Form]
    cache: Path | None
    work: Work
    turns: Turns
    keys: list[str]  # of each turn
    texts: dict[str, str]
    n_cut: int

    @cached_property
    def left(self) -> list[str]:
        """The keys that the cache did not answer at first; it is not made for that."""
        if self.cache is None or not self.cache.exists():
            return list(self.texts)
        with closing(Cache(self.cache)) as cache:
            return [key for key in self.texts if key not in cache]

    @property
    def n_tokens(self) -> tuple[int, int]:
        """An estimate of the tokens of what is left, and the most that the answers may have."""
        n_chars = sum(len(self.texts[key]) for key in self.left)
        return n_chars // 3, len(self.left) * self.endpoint[2].options["max_tokens"]

    def ask(self) -> Judged:
        """Ask what the cache does not know, and put each answer there as it comes."""
        with closing(Cache(self.cache)) as cache:
            new = self._ask(cache) if self.left else []
            answers = [cache[key] for key in self.keys]
        # None becomes NaN
        cells = np.array([answer.probability for answer in answers], dtype=float)
        traces = self.turns.container(cells[:, None], (CHANNEL,))
        return Judged(traces, new, list(self._notes(cells, answers)))

    def _ask(self, cache: Cache) -> list[Answer]:
        new: list[Answer] = []
        errors: list[ValueError] = []
        with closing(Endpoint(*self.endpoint)) as endpoint:

            def ask(key: str) -> None:
                if errors:  # answers that are under way are kept, and no more are asked for
                    return
                try:
                    answer = endpoint.ask(
                        self.texts[key], lambda: self.turns.place(self.keys.index(key))
                    )
                    cache[key] = answer
                    new.append(answer)
                except ValueError as error:
                    errors.append(error)

            list(self.work.share(ask, self.left))
        if errors:
            raise errors[0]
        return new

    def _notes(self, cells: FloatArray, answers: Sequence[Answer]) -> Iterator[str]:
        """Count the answers that could not be read, of which the first is named, and the cuts."""
        if n_missing := np.isnan(cells).sum():
            first = int(np.argmax(np.isnan(cells)))
            yield (
                f"Missing: {n_missing:,} of {number_of(len(cells), 'answer')}, which cannot be "
                f"read as {self.endpoint[2].words}; that of {self.turns.place(first)} is "
                f"{answers[first].text[:60]!r}"
            )
        if self.n_cut:
            yield f"Cut: {self.n_cut:,} of {number_of(len(cells), 'record')}, longer than max_chars"


def questions(judge: Any, runs: Any) -> Questions:
    """Check a judge and runs, and write what is to be asked, without asking it."""
    check_choice(judge.answer, "answer", tuple(FORMS))
    for name in ("model", "question"):
        text = getattr(judge, name)
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{name} must be a text, got {text!r}")
    most = as_count(judge.max_chars, "max_chars", least=200)
    work = Work(as_count(judge.concurrency, "concurrency"), judge.progress)
    cache = None if judge.cache is None else as_path(judge.cache, "cache")
    url = url_of(judge.base_url)
    form = FORMS[judge.answer]
    turns = take_turns(runs, ("agent",), type(judge).__name__)
    begun = (run for run in turns.runs if not run.ended_before_start)
    records = [record for run in begun for record in prefixes(run)]
    question = _QUESTIONS.get(judge.question, judge.question)
    texts = [make_prompt(cut(record, most), question, form.words) for record in records]
    # a request is named by all that is asked, without keeping its text
    asked = [json.dumps((url, judge.model, judge.answer, text)) for text in texts]
    keys = [hashlib.sha256(request.encode()).hexdigest() for request in asked]
    n_cut = sum(len(record) > most for record in records)
    by_key = dict(zip(keys, texts, strict=True))
    return Questions((url, judge.model, form), cache, work, turns, keys, by_key, n_cut)


_FURTHER_LINE = "\n| "  # no line of a text can pose as the start of another, or as the question
_END = "\nThe record ends here."


def make_prompt(record: str, question: str, answer: str) -> str:
    """Return what is asked; the record comes first, so that a server reads it once for a run."""
    start = f"An agent works on a task. Its record so far:\n\n{record}\n\n"
    return f"{start}Question: {question} Answer with {answer}.\nAnswer:"


def prefixes(run: Run) -> Iterator[str]:
    """Write, for each turn of the agent, the task and the messages up to and including it."""
    heard = _heard(run)
    task = (run.task or "").strip()
    # an id says nothing of a task, an object may hold its answer, and most runs begin with the task
    is_text = is_prose(task) and not task.startswith(("{", "["))
    lines = []
    if is_text and task not in run.steps[0].text:
        lines.append(_entry("task", task))
    for place, step in enumerate(run.steps):
        lines += heard[place] + _turn(step)
        if step.actor == "agent":
            yield "\n".join([*lines, _END])


def _entry(who: str, text: str) -> str:
    return _FURTHER_LINE.join(f"{who}: {text}".splitlines())


def _heard(run: Run) -> dict[int, list[str]]:
    """Return instructions and results of tools, by the number of turns that were made before."""
    heard: dict[int, list[str]] = defaultdict(list)
    instructions = run.extra.get("system", [])
    places = run.extra.get("system_after", [0] * len(instructions))
    for place, text in zip(places, instructions, strict=True):
        heard[place].append(_entry("system", text))
    for place, step in enumerate(run.steps, start=1):
        heard[step.extra.get("answered_after", place)] += [
            _entry("result", text) for text in step.results
        ]
    return heard


def _turn(step: Step) -> list[str]:
    who: str = step.actor
    if who == "environment":
        who = str(step.extra.get("role", who))
    entries = [_entry("call", call_text(call)) for call in step.tool_calls]
    text = step.text.strip()
    if text or not entries:
        entries.insert(0, _entry(who, text))
    return entries


def cut(text: str, most: int) -> str:
    """Leave out the middle of a text that is too long, and say so there: two thirds are its end."""
    if len(text) <= most:
        return text
    marker = "\n[... {:,} characters left out ...]" + _FURTHER_LINE
    room = most - len(marker.format(len(text)))
    head = room // 3
    return text[:head] + marker.format(len(text) - room) + text[head - room :]
