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
from trajscore.datasets import load_chess, make_trajectories
from trajscore.testing import _estimator_checks as checks
from trajscore.testing import check_trajectory_estimator
from trajscore.testing._estimator_checks import CHECKS
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


class ChangesOutcomes(Good):
    def fit(self, X, y):
        y[0] = 1 - y[0]
        return super().fit(X, y)


class ChangesRuns(Good):
    def fit(self, X, y):
        object.__setattr__(X, "_ended", ~X.ended)
        return super().fit(X, y)


class ForgetsWhenPickled(Good):
    def __getstate__(self):
        return {"rate_": 0.0}


@pytest.mark.parametrize(
    ("estimator", "check", "message"),
    [
        (ChangesOutcomes, checks.check_input_untouched, "^changed y$"),
        (ChangesRuns, checks.check_input_untouched, "^changed X$"),
        (ChangesItself, checks.check_input_untouched, "^changed its parameters$"),
        (ForgetsWhenPickled, checks.check_persistence, "a pickled copy gives other values"),
        (UsesRowOrder, checks.check_row_order, "the fit depends on the order of rows"),
        (Remembers, checks.check_refit, "a second fit remembers the first"),
        (TakesAnyOutcome, checks.check_missing_outcomes, "accepted outcomes 0, 1, 2, in which"),
    ],
)
def test_each_check_alone_says_what_is_wrong(estimator, check, message):
    with pytest.raises(AssertionError, match=message):
        check(estimator(), made)


class Sure(Good):
    def transform(self, X):
        return X.with_cells(np.arange(len(X.cells)) % 2)


def test_0_and_1_are_probabilities():
    checks.check_probabilities(Sure(), made)


def test_a_score_must_be_finite(monkeypatch):
    checks.check_pipeline_scoring(Good(), made)
    for score in (np.nan, np.inf):
        monkeypatch.setattr(checks, "tps_score", lambda y, X, score=score: score)
        with pytest.raises(AssertionError, match="its score is not finite"):
            checks.check_pipeline_scoring(Good(), made)


def test_five_runs_are_tried_alone(notes):
    checks.check_rows_alone(notes, made)
    X = made(0)[0]
    assert notes.transformed == [*(X[[row]] for row in range(5)), X[:5]]


def test_values_are_the_same_up_to_a_billionth():
    X = TrajectoryArray([0.1, np.nan, 1000.0], [2, 1], missing="allow")
    assert checks._same(X, X.with_cells(X.cells + 0.9e-9))
    assert not checks._same(X, X.with_cells(X.cells + 1.5e-9))
    assert not checks._same(X, TrajectoryArray(X.cells, [1, 2], missing="allow"))


def test_the_data_are_sixty_runs_of_three_to_six_steps():
    for seed in (0, 3):
        X, y = checks._data(seed)
        runs, outcomes = make_trajectories(
            60, lengths=(3, 6), sharpness=1.5, noise=0.3, random_state=seed, return_X_y=True
        )
        assert runs == X
        assert y.tolist() == outcomes.tolist()
        assert (X.lengths.min(), X.lengths.max()) == (3, 6)


def test_channels_are_mixed_with_noise_of_the_seed():
    X = TrajectoryArray([0.1, 0.2, 0.3], [2, 1])
    noise = np.random.default_rng(2).random((3, 3))
    found = checks._in_channels(X, ["a", "b", "c"], 2)
    shares = (0, 0.25, 0.5)
    columns = [(1 - s) * X.cells + s * noise[:, k] for k, s in enumerate(shares)]
    np.testing.assert_allclose(found.cells, np.stack(columns, axis=1), rtol=1e-14)
    assert found.channels == ("a", "b", "c")
    assert checks._in_channels(X, None, 2) is X
    two = checks._games(["a", "b"])[0]
    assert two == checks._in_channels(checks._games(None)[0], ["a", "b"], 0)
