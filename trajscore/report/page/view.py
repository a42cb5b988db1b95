"""What all sections of the page look at: the report, its predictors in order, and the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from trajscore.core.array import TrajectoryArray
from trajscore.core.collapse import collapse
from trajscore.core.score_families import digits_of
from trajscore.core.type_aliases import FloatArray
from trajscore.core.values import is_number
from trajscore.io import Run, Step
from trajscore.report._cards import RECALIBRATE, USE, form_of, ranked
from trajscore.report._data import AS_GIVEN, BASE_RATE, CONSTANT, FORMS, RECALIBRATED, ReportData

_USAGE = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
_MOSTLY = 0.9  # of the steps have to say what they cost
NO_PROBABILITY = "No predictor is a probability, as given or recalibrated."
MOST_DRAWN = 12
"""Predictors beyond this number are in tables, not in pictures."""


@dataclass(frozen=True)
class Section:
    """A question, the sentence that answers it, and what its template shows."""

    id: str
    question: str
    answer: str
    parts: dict[str, Any] = field(default_factory=dict)


class View:
    """A report, as the sections of a page ask for it."""

    def __init__(self, data: ReportData, log: Iterable[Run] = ()) -> None:
        self.data = data
        self.log: Mapping[str, Run] = {str(run.id): run for run in log}
        self.names = ranked(data.cards)
        self.drawn = [name for name in self.names if self.is_scored(name)][:MOST_DRAWN]
        self.constant: TrajectoryArray = data.traces[BASE_RATE, CONSTANT]

    @property
    def cards(self) -> pd.DataFrame:
        """What to do with each predictor."""
        return self.data.cards

    @property
    def has_answer(self) -> bool:
        """Whether some predictor is shown to be worth acting on."""
        return bool(self.data.cards["card"].isin([USE, RECALIBRATE]).any())

    @property
    def digits(self) -> int:
        """Digits of the leading score."""
        return digits_of(self.data.score_name)

    @cached_property
    def best(self) -> str:
        """The predictor that is ranked first."""
        return self.names[0]

    def form(self, name: str) -> str:
        """Form that the card of a predictor speaks for."""
        return form_of(self.cards, name)

    def is_scored(self, name: str) -> bool:
        """Whether some form of a predictor is a probability."""
        return bool(self.forms(name))

    def forms(self, name: str) -> list[str]:
        """Return the forms of a predictor that are probabilities."""
        return [
            form
            for form in (AS_GIVEN, RECALIBRATED)
            if (name, form) in self.data.table.index
            and not pd.isna(self.data.table.loc[(name, form), self.data.score_name])
        ]

    def acted_on(self, name: str) -> tuple[str, str]:
        """Return the key of the form that a card speaks for, if it is a probability."""
        form = self.form(name)
        return name, form if form in self.forms(name) else self.forms(name)[0]

    def called(self, name: str) -> str:
        """Name a predictor with the form that is acted on."""
        return f"{name}, {FORMS[self.acted_on(name)[1]]}" if self.is_scored(name) else name

    def collapsed(self, key: tuple[str, str]) -> FloatArray:
        """Return one number a run."""
        options = self.data.options
        return collapse(self.data.traces[key], options.phi, options.weights)

    def ids(self, key: tuple[str, str]) -> list[str]:
        """Return the names of a row's runs."""
        return [str(name) for name in self.data.traces[key].ids]

    # ---------------------------------------------------------------- turns of a log

    def places(self, run: Run, n_steps: int) -> list[int]:
        """Return which turn of a log's run each step of a trace is; none if they do not match."""
        for actors in (("agent",), ("agent", "user")):
            turns = [k for k, step in enumerate(run.steps) if step.actor in actors]
            if len(turns) == n_steps:
                return turns
        return []

    def costs(self, key: tuple[str, str]) -> dict[str, FloatArray]:
        """Return what each step of a row cost, in tokens and in money, where the log says it."""
        trace = self.data.traces[key]
        costs_by_kind = {kind: np.full(len(trace.cells), np.nan) for kind in ("tokens", "money")}
        if not self.log:
            return {}
        for row, name in enumerate(self.ids(key)):
            run = self.log.get(name)
            places = [] if run is None else self.places(run, int(trace.lengths[row]))
            if run is None or not places:
                continue
            ends = [*places[1:], len(run.steps)]
            for k, (start, end) in enumerate(zip(places, ends, strict=True)):
                cell = trace.offsets[row] + k
                turns = run.steps[start:end]  # a turn, and what others said after it
                if any(step.actor == "agent" for step in turns):
                    costs_by_kind["tokens"][cell] = sum(_tokens(step) for step in turns) or np.nan
                    costs = [step.cost for step in turns if step.cost is not None]
                    costs_by_kind["money"][cell] = sum(costs) if costs else np.nan
                else:  # what users say costs nothing that is counted
                    costs_by_kind["tokens"][cell] = costs_by_kind["money"][cell] = 0.0
        return {
            kind: np.nan_to_num(cost)
            for kind, cost in costs_by_kind.items()
            if np.isfinite(cost).mean() >= _MOSTLY and np.nansum(cost) > 0
        }


def _tokens(step: Step) -> float:
    """Return the tokens that a turn was billed for, where the log says it; else those it has."""
    usage = step.extra.get("usage")
    if isinstance(usage, Mapping):
        counts = [usage.get(name, 0) for name in _USAGE]
        return float(sum(count for count in counts if count and is_number(count)))
    return float(len(step.tokens or ()))
