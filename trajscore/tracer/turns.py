"""Runs, taken apart into flat arrays: one row a turn, or one row a token."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, compress
from typing import Any, Self, get_args

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from trajscore.core.array import TrajectoryArray
from trajscore.core.estimator import TraceTransformer
from trajscore.core.outcomes import CENSORED
from trajscore.core.values import (
    UNIT_ROUNDING,
    ArrayLike,
    BoolArray,
    FloatArray,
    IntArray,
    check_known,
    is_iterable,
    refuse_first,
    run_label,
    undefined_is_nan,
)
from trajscore.core.weights import row_chunks
from trajscore.core.within_runs import offsets_of, run_numbers
from trajscore.io import Run, Step, ToolCall, outcomes
from trajscore.io._run import Actor
from trajscore.io.logprobs import NOT_RECORDED, any_below_zero, any_recorded, are_recorded
from trajscore.io.runs import columns_of

# -inf, a probability of zero, is read as e^-100
LOWEST_LOGPROB = -100.0
# How much text is looked at together, in characters; a turn counts as some by itself.
_BATCH_CHARACTERS = 1 << 18
_CHARACTERS_OF_A_TURN = 64
_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=str)

_FUNCTION_WORDS = """
    a about after again all also am an and any are as at be because been before being but by can
    could did do does for from had has have he her here him his how i if in into is it its just
    may me might my no nor not now of off on once only or other our out over please shall she
    should so some such than that the their them then there these they this those through to too
    under until up very was we were what when where which while who whom why will with would you
    your
"""
# scikit-learn's ENGLISH_STOP_WORDS hold words that carry content in such logs: bill, call, name,
# system. With them, a tenth to a quarter of the repetitions of public logs are other numbers.
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_EDGES = ".,!?;:()[]{}<>\"'`*#-_/|\u2019\u2018\u201c\u201d\u3002\u3001\uff0c\uff01\uff1f"
_NUMERIC = re.compile(r"[\d.,:/%$€£+-]*\d[\d.,:/%$€£+-]*")
# scripts that do not put spaces between words: each character stands for itself
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")


class RunTransformer(TraceTransformer, BaseEstimator):
    """Base of the transformers from runs to channels; a subclass gives `_channels_of`."""

    # learned once, so that a step is not read by what comes after it
    reads_one_: bool | None = None
    reads_zero_: bool | None = None
    _learns = True

    def _channels_of(self, X: Any, *, reset: bool) -> TrajectoryArray:
        raise NotImplementedError

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Check parameters and runs (a list of Run), and learn what there is to learn."""
        self._channels_of(X, reset=True)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None) -> TrajectoryArray:
        """Fit and return the channels of runs (a list of Run), in one go."""
        return self._channels_of(X, reset=True)

    def transform(self, X: Any) -> TrajectoryArray:
        """Return the channels of runs (a list of Run), with the columns of `trajscore.io.meta`."""
        if self._learns:
            check_is_fitted(self)
        return self._channels_of(X, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.requires_fit = self._learns
        return tags


def chosen(
    names: Sequence[str] | None, have: Sequence[str], parameter: str, kind: str
) -> list[str]:
    """Return the channels that a parameter asks for; by default all."""
    if names is None:
        return list(have)
    if isinstance(names, str) or not len(names):
        raise ValueError(f"{parameter} must be a list of names of {', '.join(have)}, got {names!r}")
    check_known(names, have, kind, parameter)
    return list(names)


def as_names(names: Iterable[str] | None, parameter: str) -> frozenset[str] | None:
    """Return a set of words or names, or say that a parameter is one text."""
    if isinstance(names, str):
        raise ValueError(f"{parameter} must be a list, got the text {names!r}; pass [{names!r}]")
    if names is None:
        return None
    return frozenset(names)


# ------------------------------------------------------------------ turns and calls


@dataclass(frozen=True)
class Turns:
    """The turns of the chosen actors, run after run; `lengths` has their number in each run."""

    runs: list[Run]
    steps: list[Step]
    lengths: IntArray
    first_row: int = 0  # of these runs among all

    @cached_property
    def run_of(self) -> IntArray:
        """The row of the run of each turn."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def is_agent(self) -> BoolArray:
        """Whether each turn is the agent's."""
        return np.array([step.actor == "agent" for step in self.steps], dtype=bool)

    @cached_property
    def call_texts(self) -> list[list[str]]:
        """The calls of each turn, written as text."""
        return [[call_text(call) for call in step.tool_calls] for step in self.steps]

    def text_with_calls(self, turn: int) -> str:
        """Write a turn, what is said and what is called, as one text."""
        parts = [self.steps[turn].text.strip(), *self.call_texts[turn]]
        return "\n".join(part for part in parts if part)

    def place(self, turn: int) -> str:
        """Name the run and the message of a turn, for error messages."""
        row = int(self.run_of[turn])
        index = self.steps[turn].index
        step = turn - int(self.lengths[:row].sum()) + 1
        place = f"run {self.runs[row].id!r} (row {self.first_row + row}), step {step}"
        if file := self.runs[row].meta.get("file"):
            place = f"{file}, {place}"
        if index is not None:
            place += f" (message {index})"
        return place

    def batches(self) -> Iterator["Turns"]:
        """Split between runs, where enough text has come together."""
        offsets = offsets_of(self.lengths)
        sizes = [
            _CHARACTERS_OF_A_TURN + len(step.text) + sum(map(len, step.results))
            for step in self.steps
        ]
        for rows in row_chunks(offsets_of(sizes)[offsets], _BATCH_CHARACTERS):
            steps = self.steps[offsets[rows.start] : offsets[rows.stop]]
            yield Turns(self.runs[rows], steps, self.lengths[rows], rows.start)

    def only(self, rows: BoolArray, whose: str) -> "Turns":
        """Return some of the turns; every run that the agent began must have one."""
        lengths = np.bincount(self.run_of[rows], minlength=len(self.lengths))
        _refuse_empty(self.runs, lengths, whose)
        return Turns(self.runs, [self.steps[place] for place in np.flatnonzero(rows)], lengths)

    def container(self, cells: FloatArray, channels: Sequence[str]) -> TrajectoryArray:
        """Put one row of values a turn into a container, with what is known of the runs."""
        meta = columns_of(self.runs)
        del meta["run"], meta["outcome"]
        cells.flags.writeable = False  # so that the container keeps them without a copy
        return TrajectoryArray(
            cells,
            self.lengths,
            channels=channels,
            ids=[run.id for run in self.runs],
            meta=meta,
            ended=outcomes(self.runs) != CENSORED,
            missing="allow",
        )


def take_turns(runs: Any, actors: Iterable[str], reader: str) -> Turns:
    """Collect the turns of some actors; every run must have one, or have ended before its first."""
    wanted = frozenset(actors)
    checked = check_runs(runs, reader)
    lengths = np.zeros(len(checked), dtype=np.int64)
    steps: list[Step] = []
    for row, run in enumerate(checked):
        if not run.ended_before_start:
            turns = [step for step in run.steps if step.actor in wanted]
            lengths[row] = len(turns)
            steps += turns
    _refuse_empty(checked, lengths, " or ".join(sorted(wanted)))
    return Turns(checked, steps, lengths)


def _refuse_empty(runs: Sequence[Run], lengths: IntArray, whose: str) -> None:
    empty = [
        row for row in np.flatnonzero(lengths == 0).tolist() if not runs[row].ended_before_start
    ]
    if empty or not lengths.any():
        row = next(iter(empty), 0)
        others = [step.actor for step in runs[row].steps if step.actor not in get_args(Actor)]
        remedy = "leave it out"
        if others:
            remedy = f"actor must be 'agent', 'user' or 'environment', got {others[0]!r}"
        raise ValueError(f"run {runs[row].id!r} (row {row}) has no turn of the {whose}; {remedy}")


def check_runs(runs: Any, reader: str, may_be_empty: bool = False) -> list[Run]:
    """Refuse anything but a list of runs."""
    tables = (str, bytes, pd.DataFrame, pd.Series, np.ndarray, TrajectoryArray)
    if isinstance(runs, tables) or not is_iterable(runs):
        raise TypeError(
            f"{reader} reads runs of a log, got {type(runs).__name__}; read a log with "
            f"trajscore.io.read_runs(path), or use scores with TrajectoryArray.from_frame"
        )
    listed = list(runs)
    for row, run in enumerate(listed):
        if not isinstance(run, Run):
            raise TypeError(
                f"{reader} takes runs, but row {row} is of type {type(run).__name__}; make a run "
                f"of chat messages with trajscore.io.as_run(messages)"
            )
        for number, step in enumerate(run.steps, start=1):
            if not isinstance(step, Step):
                raise TypeError(
                    f"run {run_label(run.id)}: step {number} is {type(step).__name__}; give "
                    f"io.Step('agent', text)"
                )
    if not listed and not may_be_empty:
        raise ValueError(
            f"{reader} got an empty list of runs; .left_out of the log says what was skipped"
        )
    return listed


def call_text(call: ToolCall) -> str:
    """Write a call with its arguments in a fixed order."""
    arguments = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return f"{call.name} {arguments}"
    try:
        return f"{call.name} {_JSON.encode(arguments)}"
    except TypeError:  # keys that cannot be sorted stand as they came
        return f"{call.name} {arguments}"


# ------------------------------------------------------------------ tokens and words


def take_tokens(turns: Turns, reads_zero: bool | None) -> tuple[TrajectoryArray, bool]:
    """Return a run of log-probabilities for each turn, and tell whether zeros are recorded ones.

    A turn without any is empty, a missing one is NaN, and -inf is `LOWEST_LOGPROB`. What zeros are
    is decided for a log: for the runs of `fit`, or else for these.
    """
    if reads_zero is None:
        reads_zero = are_recorded(turns.runs)
    has_any = any_recorded if reads_zero else any_below_zero
    recorded = [step.logprobs or () for step in turns.steps]
    lengths = [len(logprobs) * has_any(logprobs) for logprobs in recorded]
    for turn, length in enumerate(lengths):
        strings = turns.steps[turn].tokens
        if length and strings is not None and len(strings) != length:
            raise ValueError(
                f"{turns.place(turn)}: there are {len(strings)} tokens for {length} logprobs; give "
                f"one for each, or no tokens"
            )
    flat = np.fromiter(chain.from_iterable(compress(recorded, lengths)), float)
    refuse_positive(flat, "the logprob", turns, offsets_of(lengths))
    flat[(flat <= NOT_RECORDED) & np.isfinite(flat)] = np.nan
    return TrajectoryArray(flat.clip(LOWEST_LOGPROB, 0.0), lengths, missing="allow"), reads_zero


def means_of_turns(values: FloatArray, tokens: TrajectoryArray) -> FloatArray:
    """Return the mean over the tokens of each turn whose value is not missing; NaN without one."""
    there = ~np.isnan(values)
    owner = run_numbers(tokens)[there]
    total: Any = np.bincount(owner, values[there], len(tokens))
    with undefined_is_nan():
        return total / np.bincount(owner, minlength=len(tokens))


def refuse_positive(logprobs: FloatArray, name: str, turns: Turns, offsets: IntArray) -> None:
    """Say at which token of which turn a log-probability is above 0."""

    def problem(token: int) -> str:
        turn = int(np.searchsorted(offsets, token, side="right")) - 1
        return (
            f"{turns.place(turn)}, token {token - offsets[turn]}: {name} {logprobs[token]:g} is "
            f"above 0; logprobs are natural logarithms of probabilities"
        )

    refuse_first(logprobs > UNIT_ROUNDING, problem)


@lru_cache(1 << 14)
def content_word(token: str) -> str | None:
    """Return the bare word, or None for a stop word, a number or punctuation."""
    word = token.strip().lower().strip(_EDGES)
    if not word or word in STOP_WORDS or _NUMERIC.fullmatch(word):
        return None
    return word


def content_words(text: str) -> set[str]:
    """Return the different content words of a text."""
    if not text.isascii():
        text = _UNSPACED.sub(r" \1 ", text)
    return {word for word in map(content_word, set(text.split())) if word is not None}
