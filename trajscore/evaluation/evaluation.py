"""An evaluation: the numbers that reports, gates and commands read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from trajscore.calibration.fixed_step import AUROC, auroc_interval, step_table
from trajscore.core.array import TrajectoryArray
from trajscore.core.score_families import digits_of
from trajscore.evaluation.combined import Purchase
from trajscore.evaluation.first_errors import FirstErrors
from trajscore.evaluation.groups import InGroup
from trajscore.evaluation.options import (
    AS_GIVEN,
    FORMS,
    GAIN,
    MARGIN,
    OVER_ALIVE,
    OVER_ALIVE_END,
    OVER_AS_GIVEN,
    OVER_LENGTH,
    RECALIBRATED,
    MonitoringOptions,
    Note,
    Options,
    RowKey,
)
from trajscore.evaluation.recommendation import (
    Interval,
    OtherChoice,
    Recommendation,
    Shown,
    ranked,
)
from trajscore.evaluation.rows import Row, Rows, among_equals, row_index
from trajscore.evaluation.runs import Counts, EvaluatedRuns, Exclusion

CLIPS = {"clip_1e-6": 1e-6, "clip_1e-2": 1e-2}
"""Columns of the margins of log scores with another clip; a sure forecast costs 13.8 or 4.6."""


@dataclass(frozen=True, kw_only=True)
class Facts(Counts):
    """How the numbers came about."""

    censored: str  # what unobserved runs stand for: "failure", "q_z", or "drop": left out
    rate: float  # success rate over forecasts, the best constant under the step weights
    knows_end: bool | None  # whether predictors know the end of a run; None: unsaid
    calibrators: dict[str, str] | None  # of each predictor; None if none was asked for
    monitoring: MonitoringOptions | None


@dataclass(frozen=True)
class Source:
    """Where the runs come from, and when they were judged."""

    name: str = ""  # of the file
    outcome: str = ""  # of the outcomes, such as a column
    command: str = ""
    words: tuple[str, ...] = ()  # of it: the file, and how predictors are recalibrated
    guesses: str = ""  # what was guessed of the file, for people
    created: str = ""  # ISO 8601, UTC
    version: str = ""  # of trajscore


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Numbers of an evaluation; `trajscore.report.Report` says what they are."""

    rows: Rows = field(repr=False)
    intervals: pd.DataFrame
    interval_methods: pd.DataFrame
    exclusions: Mapping[Exclusion, int]  # number of runs that are left out
    monitoring: pd.DataFrame | None
    recommended: list[Recommendation]  # in the order of the rows
    pairs: pd.DataFrame | None
    signals: pd.DataFrame | None
    purchase: Purchase | None
    first_errors: FirstErrors | None
    groups: list[InGroup]
    otherwise: dict[str, tuple[int, list[Recommendation] | None]]  # under other choices of runs
    options: Options
    facts: Facts
    ends: pd.DataFrame  # outcome and stop reason of each run that counts
    remarks: list[Note]
    source: Source

    # -------------------------------------------------------------------- what was judged

    @property
    def runs(self) -> EvaluatedRuns:
        """The runs that every row is of."""
        return self.rows.runs

    @cached_property
    def traces(self) -> dict[RowKey, TrajectoryArray]:
        """The traces that were scored, by predictor and form."""
        return {row.key: row.traces for row in self.rows}

    @property
    def predictors(self) -> list[str]:
        """Names of the predictors, without the references."""
        return list(dict.fromkeys(row.predictor for row in self.rows.predictors))

    def rows_of(self, name: str) -> list[Row]:
        """Return the rows of a predictor: as given, if it is, and recalibrated, if it can be."""
        return [row for row in self.rows.predictors if row.predictor == name]

    def forms_of(self, name: str) -> list[str]:
        """Return the forms of a predictor that are probabilities."""
        return [row.form for row in self.rows_of(name) if row.is_probability]

    def first_form(self, name: str) -> str:
        """Return the form that a predictor is given in; of signals together, the only one."""
        return self.rows_of(name)[0].form

    def signals_of(self, name: str) -> tuple[str, ...]:
        """Return the signals that a predictor is made of: itself, or several."""
        return self.rows_of(name)[0].signals or (name,)

    def inputs_of(self, name: str) -> TrajectoryArray:
        """Return the values as given, of one or more signals, that a predictor is made of."""
        signals = self.signals_of(name)
        traces = [self.traces[signal, AS_GIVEN] for signal in signals]
        return traces[0] if len(traces) == 1 else TrajectoryArray.stack(traces, channels=signals)

    @property
    def score_name(self) -> str:
        """Name of the leading score, a column of `table`."""
        return self.options.score_names[0]

    @property
    def digits(self) -> int:
        """Digits with which the leading score is written."""
        return digits_of(self.score_name)

    @property
    def observed(self) -> list[Recommendation] | None:
        """What to do by the runs with an observed outcome alone; None where all are."""
        return self.otherwise.get("observed", (0, None))[1]

    @cached_property
    def groups_by_kind(self) -> dict[str, list[InGroup]]:
        """The groups of runs, by their kind, if there are any."""
        kinds = dict.fromkeys(each.by for each in self.groups)
        return {kind: [each for each in self.groups if each.by == kind] for kind in kinds}

    @cached_property
    def recommendations(self) -> dict[str, Recommendation]:
        """What to do with each predictor, the best first."""
        return {each.predictor: each for each in ranked(self.recommended)}

    @property
    def best(self) -> Recommendation:
        """What to do with the predictor that is ahead."""
        return next(iter(self.recommendations.values()))

    @property
    def is_small(self) -> bool:
        """Whether there are too few runs to say anything of a predictor that varies."""
        return self.best.varies and self.best.has_too_few_runs

    @property
    def singles(self) -> list[Recommendation]:
        """What to do with each signal alone, the best first."""
        return [each for each in self.recommendations.values() if not each.best_alone]

    def other_choice(self, choice: str) -> OtherChoice:
        """Return what would be recommended under another choice of runs; of none, as today."""
        n_runs, others = self.otherwise.get(choice, (self.facts.n_censored, self.recommended))
        if others is None:
            return OtherChoice(n_runs, None, stays=False)
        here = self.best
        best = ranked(others)[0]
        there = next((each for each in others if each.predictor == here.predictor), best)
        is_same = there.predictor == here.predictor
        is_contrary = is_same and {here.at_its_word, there.at_its_word} == {Shown.YES, Shown.NO}
        stays = here.action == best.action
        is_change = here.is_useful and best.is_useful and best.predictor != here.predictor
        if self.pairs is not None and is_change:
            # the same if today's runs do not tell the two apart, and the other may be used alike
            is_pair = self.pairs[["predictor", "reference"]].isin([here.predictor, best.predictor])
            of_pair = self.pairs[is_pair.all(axis=1)]
            is_tied = bool(((of_pair["low"] <= 0) & (of_pair["high"] >= 0)).any())
            stays = is_tied and is_same and there.action == here.action
        return OtherChoice(n_runs, best, stays and not is_contrary)

    @cached_property
    def length_ranking(self) -> Interval:
        """AUROC of short runs before long ones, of the runs that have an outcome."""
        observed = self.runs.take(np.flatnonzero(self.runs.observed))
        lengths = observed.X.lengths.astype(float)
        stratum = np.zeros(len(lengths), dtype=np.int64)
        level = self.options.settings.confidence_level
        return Interval(*auroc_interval(-lengths, observed.labels, stratum, observed.groups, level))

    # -------------------------------------------------------------------- tables, once asked for

    @cached_property
    def cards(self) -> pd.DataFrame:
        """What to do with each predictor, and the numbers that decided it."""
        return _cards(self.recommended)

    @property
    def observed_cards(self) -> pd.DataFrame | None:
        """The same of the runs with an observed outcome alone; None where all are."""
        return None if self.observed is None else _cards(self.observed)

    @property
    def other_choices(self) -> dict[str, tuple[int, pd.DataFrame | None]]:
        """How many runs could be counted otherwise, and the cards then."""
        return {
            choice: (n, None if others is None else _cards(others))
            for choice, (n, others) in self.otherwise.items()
        }

    @cached_property
    def by(self) -> pd.DataFrame | None:
        """The cards within groups of runs, and whether groups differ; None without groups."""
        keys = [(each.by, each.group, each.best.predictor) for each in self.groups]
        cards = [
            each.best.card() | {"own": each.margin, "p_value": each.p_value} for each in self.groups
        ]
        index = pd.MultiIndex.from_tuples(keys, names=["by", "group", "predictor"])
        return pd.DataFrame(cards, index).drop(columns="tied") if keys else None

    @cached_property
    def table(self) -> pd.DataFrame:
        """Counts, all metrics, and what scores and AUROC are above the references."""
        intervals, options, facts = self.intervals, self.options, self.facts
        counts = pd.DataFrame(index=row_index(self.rows))
        counts[["n_runs", "n_censored"]] = facts.n_runs, facts.n_censored
        for row in self.rows.counting:  # of batches, these are of the sample
            counts.loc[row.key] = len(row.runs), int((~row.runs.observed).sum())
        values = intervals["value"].unstack("metric")
        table = counts.join(values.reindex(index=counts.index, columns=options.metrics))
        for metric in (*options.score_names, "AUROC"):
            differences = intervals.xs(metric, level="metric")
            over = OVER_ALIVE + OVER_ALIVE_END
            for column in over if metric == "AUROC" else MARGIN + over:
                table[f"{metric} {column}"] = differences[column]
        return table

    @cached_property
    def calibration_gain(self) -> pd.DataFrame:
        """What recalibration does to each metric of each predictor; a gain above 0 is better."""
        is_calibrated = self.intervals.index.get_level_values("form") == RECALIBRATED
        rows = self.intervals[is_calibrated].droplevel("form").dropna(subset=OVER_AS_GIVEN[0])
        is_lower = rows.index.get_level_values("metric").isin(self.options.lower_is_better)
        gain = rows[OVER_AS_GIVEN].set_axis(GAIN, axis=1)
        gain[is_lower] *= -1
        gain[GAIN[1:]] = np.sort(gain[GAIN[1:]])  # what was the lower end may be the upper one
        as_given = rows["value"] - rows[OVER_AS_GIVEN[0]]
        return pd.DataFrame({"as_given": as_given, "recalibrated": rows["value"]}).join(gain)

    @cached_property
    def by_step(self) -> pd.DataFrame:
        """AUROC and leading score at steps, of the runs that are at least that long."""
        options = self.options
        rows = self.rows.predictors

        def table(row: Row) -> pd.DataFrame:
            return step_table(
                row.traces,
                row.runs.labels,
                row.runs.groups,
                row.traces if row.is_probability else None,
                options.scores[0],
                options.settings.confidence_level,
            )

        return pd.concat(list(options.quiet.work.share(table, rows)), keys=row_index(rows))

    @cached_property
    def equal_length(self) -> pd.DataFrame:
        """AUROC over pairs of equally long runs, and what it is above that of length there."""
        rows = self.rows.predictors
        options = self.options.quiet
        numbers = options.work.share(lambda row: among_equals(row, options), rows)
        columns = ["n_runs", *AUROC, *OVER_LENGTH]
        table = pd.DataFrame(list(numbers), row_index(rows), columns, dtype=float)
        return table.astype({"n_runs": np.int64})

    @cached_property
    def sensitivity(self) -> pd.DataFrame:
        """The margin of each probability, of the observed runs alone, and with other clips."""
        options = self.options
        judged = [row for row in self.rows.predictors if row.is_probability]
        table = pd.DataFrame({"margin": _margins(judged, self.recommended)}, row_index(judged))
        if self.observed is not None:
            table["observed_only"] = _margins(judged, self.observed)
        clips = [family.clip for family in options.scores if family.clip is not None]
        if clips:
            cells = (row.traces.cells for row in judged)
            table["clipped"] = [((p < clips[0]) | (p > 1 - clips[0])).mean() for p in cells]
        leading = options.scores[0]
        for name, clip in CLIPS.items() if leading.clip is not None else ():
            other = replace(leading, clip=clip), options.weights  # type: ignore[call-arg]
            constant = self.rows.base.score(*other)
            table[name] = [(row.score(*other) - constant).mean for row in judged]
        return table


def _cards(recommended: list[Recommendation]) -> pd.DataFrame:
    index = pd.Index([each.predictor for each in recommended], name="predictor")
    return pd.DataFrame([each.card() for each in recommended], index)


def _margins(rows: list[Row], recommended: list[Recommendation]) -> list[float]:
    margins = {
        (each.predictor, form): each.interval(form).estimate
        for each in recommended
        for form in FORMS
    }
    # under another choice of runs, signals together may not be made, or of other signals
    return [margins.get(row.key, np.nan) for row in rows]
