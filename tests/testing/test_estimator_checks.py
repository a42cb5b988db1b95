"""The public checks must be able to fail."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
    TracerScorer,
)
from trajscore.core.array import TrajectoryArray
from trajscore.core.outcomes import check_outcomes
from trajscore.datasets import load_chess
from trajscore.testing import CHECKS, check_trajectory_estimator
from trajscore.testing import _estimator_checks as checks
from trajscore.tracer import SAUP, MeanSurprisal, RunLength


class Good(TransformerMixin, BaseEstimator):
    def fit(self, X, y):
        self.rate_ = float(np.mean(check_outcomes(y) == 1))
        return self

    def transform(self, X):
        return X.with_cells((X.cells + self.rate_) / 2)


class LooksAhead(Good):
    def transform(self, X):
        means = np.repeat(np.add.reduceat(X.cells, X.offsets[:-1]) / X.lengths, X.lengths)
        return X.with_cells(means)


class LosesHorizon(Good):
    def transform(self, X):
        return TrajectoryArray(X.cells, X.lengths, ids=X.ids)


class OutOfRange(Good):
    def transform(self, X):
        return X.with_cells(X.cells + 1)


class UsesRowOrder(Good):
    def fit(self, X, y):
        self.rate_ = float(X.cells[0])
        check_outcomes(y)
        return self


class UsesOtherRows(Good):
    def transform(self, X):
        return X.with_cells(X.cells / X.cells.max())


class Remembers(Good):
    def fit(self, X, y):
        self.rate_ = (getattr(self, "rate_", 0.0) + super().fit(X, y).rate_) / 2
        return self


class TakesAnyOutcome(Good):
    def fit(self, X, y):
        self.rate_ = float(np.mean(y) / 3)
        return self


class ChangesItself(Good):
    def __init__(self, C=1):
        self.C = C

    def fit(self, X, y):
        self.C = 2
        return super().fit(X, y)


def test_a_good_one_passes():
    assert check_trajectory_estimator(Good()) == [check.__name__ for check in CHECKS]


@pytest.mark.parametrize("check", CHECKS)
def test_each_check_can_be_run_alone(check):
    check(Good())


@pytest.mark.parametrize(
    "estimator",
    [
        PlattCrossFitCalibrator(cv=3),
        PrefixForecaster(features="summary", pooled=True),
        TraceAggregator(),
    ],
)
def test_calibrators_and_forecasters_pass(estimator):
    assert len(check_trajectory_estimator(estimator)) == len(CHECKS)


@pytest.mark.parametrize(
    ("estimator", "channels"),
    [
        (TracerScorer(), ["surprisal", "repetition"]),
        (TracerScorer(aggregation="separate"), ["surprisal", "repetition", "agent_gap"]),
        (SAUP(), ["surprisal", "repetition"]),
        (MeanSurprisal(), ["surprisal"]),
        (RunLength(), ["surprisal"]),
        (DensityRatioEProcess(PlattCrossFitCalibrator(), threshold="ville"), None),
    ],
)
def test_scorers_of_risk_and_monitors_pass_without_probabilities(estimator, channels):
    passed = check_trajectory_estimator(estimator, channels=channels, probabilities=False)
    assert len(passed) == len(CHECKS) - 3


class LastChannel(Good):
    """Notes the values that it is fitted on, and passes on the last channel."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        self.seen.append(X.cells)
        return super().fit(X, y)

    def transform(self, X):
        return super().transform(X[X.channels[-1]])


def test_channels_beside_the_first_are_noisier_copies_of_it():
    check_trajectory_estimator(LastChannel(), channels=["a", "b", "c"])
    cells = max(LastChannel.seen, key=len)
    correlation = np.corrcoef(cells.T)[0]
    assert 0.99 > correlation[1] > correlation[2] > 0.5
    assert cells.min() >= 0
    assert cells.max() <= 1


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        (LooksAhead, "check_no_look_ahead"),
        (LosesHorizon, "check_runs_kept: the horizon"),
        (OutOfRange, "check_probabilities"),
        (UsesRowOrder, "check_row_order"),
        (UsesOtherRows, "check_no_look_ahead|check_rows_alone"),
        (Remembers, "check_refit"),
        (TakesAnyOutcome, "check_missing_outcomes"),
        (ChangesItself, "check_input_untouched"),
    ],
)
def test_each_fault_is_found(estimator, check):
    with pytest.raises(AssertionError, match=check):
        check_trajectory_estimator(estimator())


def test_an_exception_is_named():
    with pytest.raises(AssertionError, match="raised ValueError: C must be"):
        check_trajectory_estimator(PlattCrossFitCalibrator(C=-1))


class BelowZero(Good):
    def transform(self, X):
        return X.with_cells(X.cells - 1)


class SeveralValues(Good):
    def transform(self, X):
        return X.with_cells(np.stack([X.cells, X.cells], axis=1))


class GivesArrays(Good):
    def transform(self, X):
        return X.padded()


@pytest.mark.parametrize(
    ("estimator", "check", "message"),
    [
        (BelowZero, checks.check_probabilities, r"returned values outside \[0, 1\]"),
        (OutOfRange, checks.check_probabilities, r"returned values outside \[0, 1\]"),
        (SeveralValues, checks.check_probabilities, "returned several values a step"),
        (GivesArrays, checks.check_runs_kept, "returned no TrajectoryArray"),
        (LosesHorizon, checks.check_runs_kept, "the horizon of the runs changed"),
        (UsesOtherRows, checks.check_rows_alone, "values depend on the other runs"),
    ],
)
def test_what_is_wrong_is_said(estimator, check, message):
    with pytest.raises(AssertionError, match=message):
        check(estimator())


class Notes(Good):
    """Notes what it is given."""

    fitted: ClassVar[list] = []
    transformed: ClassVar[list] = []

    def fit(self, X, y):
        self.fitted.append((X, y))
        return super().fit(X, y)

    def transform(self, X):
        self.transformed.append(X)
        return super().transform(X)


@pytest.fixture
def notes():
    Notes.fitted.clear()
    Notes.transformed.clear()
    return Notes()


def made(seed):
    """Eight runs of 1 to 4 steps; every second one succeeds, which ones the seed says."""
    lengths = np.array([1, 2, 3, 4, 4, 3, 2, 1])
    cells = np.linspace(0.1, 0.9, lengths.sum())
    return TrajectoryArray(cells, lengths), (np.arange(8) + seed + 1) % 2


@pytest.mark.parametrize("check", CHECKS)
def test_data_are_made_anew_for_each_check(check):
    seeds = []

    def make(seed):
        seeds.append(seed)
        return made(seed)

    check(Good(), make)
    assert seeds == ([0, 1] if check is checks.check_refit else [0])


def test_horizons_differ_from_lengths_where_runs_must_be_kept(notes):
    checks.check_runs_kept(notes, made)
    for X in (notes.fitted[0][0], notes.transformed[0]):
        assert X.lengths.tolist() == [1, 1, 2, 3, 3, 2, 1, 1]
        assert X.horizon.tolist() == [1, 2, 3, 4, 4, 3, 2, 1]


def test_six_outcomes_are_missing_and_recoded_ones_refused(notes):
    checks.check_missing_outcomes(notes, made)
    assert [y.tolist() for _, y in notes.fitted] == [
        [-1] * 6 + [1, 0],
        [0] * 6 + [2, 1],
    ]


def test_every_prefix_of_runs_of_which_all_is_known_is_tried(notes, monkeypatch):
    tried = []
    monkeypatch.setattr(
        checks, "find_look_ahead", lambda _, runs, values, seen: tried.append((runs, seen))
    )
    checks.check_no_look_ahead(notes, made)
    (X, y), (games, _) = notes.fitted
    assert X.ids.tolist() == [f"run {k}" for k in range(8)]
    assert X.horizon.tolist() == X.lengths.tolist() == X.meta["n_steps"].tolist()
    assert X.meta["outcome"].tolist() == y.tolist() == [1, 0] * 4
    assert X.meta["stop_reason"].tolist() == ["done", "failed"] * 4
    assert X.ended.all()
    assert [len(runs) for runs, _ in tried] == [8] * 8 + [len(games)] * 8
    assert [bool(runs.ended.all()) for runs, _ in tried] == ([True] * 4 + [False] * 4) * 2
    for row, length in enumerate(X.lengths.tolist()):
        assert {int(seen[row]) for _, seen in tried[:4]} == set(range(1, length + 1))


def test_games_are_the_first_forty_won_and_lost():
    X, y = load_chess(return_X_y=True)
    games, outcomes = checks._games(None)
    assert (games.n_channels, games.channels, len(games)) == (1, None, 80)
    assert outcomes.tolist() == y[np.isin(X.ids, games.ids)].tolist()
    for outcome in (0, 1):
        first = X.ids[y == outcome][:40]
        assert games.ids[outcomes == outcome].tolist() == first.tolist()
    assert games.cells.tolist() == X["engine"][np.isin(X.ids, games.ids)].cells.tolist()
