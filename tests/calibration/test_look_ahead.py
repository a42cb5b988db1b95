"""A forecaster that reads what it cannot know is caught, however it does it; honest ones pass."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from trajscore import (
    ActionSignals,
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TraceAggregator,
    TracerScorer,
    TrajectoryArray,
    io,
)
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
    cross_fit_traces,
)
from trajscore.calibration.look_ahead import LookAhead, find_look_ahead, sample_look_ahead
from trajscore.core.outcomes import check_outcomes
from trajscore.datasets import make_trajectories
from trajscore.testing import check_trajectory_estimator
from trajscore.testing._estimator_checks import CHECKS
from trajscore.tracer import SAUP, MeanSurprisal, RunLength, ToolCallCount

check_no_look_ahead = next(check for check in CHECKS if check.__name__ == "check_no_look_ahead")


class Halfway(TransformerMixin, BaseEstimator):
    """Half of the score and half of what a subclass says of each run."""

    def fit(self, X, y):
        self.rate_ = float(np.mean(check_outcomes(y) == 1))
        self.outcome_of_ = dict(zip(X.ids.tolist(), np.asarray(y).tolist(), strict=True))
        return self

    def transform(self, X):
        hint = np.broadcast_to(self._hint(X), len(X))
        return X.with_cells((X.cells + np.repeat(hint, X.lengths)) / 2)

    def _hint(self, X):
        return self.rate_


class ReadsHorizon(Halfway):
    def _hint(self, X):
        return 1 / (X.lengths if X.horizon is None else X.horizon)


class NeedsHorizon(Halfway):
    def _hint(self, X):
        return 1 / X.horizon


class ReadsHorizonIfThere(Halfway):
    def _hint(self, X):
        return self.rate_ if X.horizon is None else 1 / X.horizon


class LearnsIds(Halfway):
    def _hint(self, X):
        return [self.outcome_of_.get(one, self.rate_) for one in X.ids.tolist()]


class ReadsIds(Halfway):
    def _hint(self, X):
        return [str(one).endswith("7") for one in X.ids]


class ReadsEnded(Halfway):
    def _hint(self, X):
        return np.where(X.ended, 0.9, 0.1)


class ReadsMeta(Halfway):
    def _hint(self, X):
        return 1 / X.meta["n_steps"].to_numpy()


class ReadsMetaIfThere(Halfway):
    def _hint(self, X):
        return X.meta.get("outcome", self.rate_)


class UsesLength(Halfway):
    def _hint(self, X):
        return 1 / X.lengths


class UsesWidth(Halfway):
    def _hint(self, X):
        return 1 / X.shape[1]


class UsesMean(Halfway):
    def _hint(self, X):
        return np.add.reduceat(X.cells, X.offsets[:-1]) / X.lengths


class UsesLast(Halfway):
    def _hint(self, X):
        return X.cells[X.offsets[1:] - 1]


class UsesSeveral(Halfway):
    def _hint(self, X):
        return (X.ended & (X.horizon is not None)) + 0.0


class IsRandom(Halfway):
    def _hint(self, X):
        return np.random.default_rng().random(len(X))


class IsRandomAtFirst(Halfway):
    def transform(self, X):
        cells = X.cells.copy()
        cells[X.offsets[:-1]] = np.random.default_rng().random(len(X))
        return X.with_cells(cells)


class LosesSteps(Halfway):
    def transform(self, X):
        return X if len(set(X.lengths.tolist())) > 1 else X.prefix(1)


CHEATS = [
    (ReadsHorizon, "on the horizon|on later steps"),
    (IsRandomAtFirst, "The value is another one at each call"),
    (NeedsHorizon, "transform of the first steps of runs raises TypeError: .* on the horizon"),
    (
        ReadsHorizonIfThere,
        "The value depends on the horizon; do not read it unless it was known before",
    ),
    (LearnsIds, "The value depends on the ids of the runs; do not read them"),
    (ReadsIds, "The value depends on the ids of the runs"),
    (ReadsEnded, "The value depends on ended before the last step; read it at the last step alone"),
    (
        ReadsMeta,
        "raises KeyError: 'n_steps'. The value depends on meta; do not read what was not known",
    ),
    (ReadsMetaIfThere, "The value depends on meta"),
    (UsesLength, "The value depends on later steps, on the length of the run"),
    (UsesWidth, "The value depends on later steps"),
    (UsesMean, "The value depends on later steps"),
    (UsesLast, "The value depends on later steps"),
    (UsesSeveral, "The value depends on several of ids, meta, horizon and ended"),
    (IsRandom, "The value is another one at each call"),
]

HONEST = [
    Halfway(),
    PlattCrossFitCalibrator(),
    IsotonicCrossFitCalibrator(),
    BetaCrossFitCalibrator(),
    TraceAggregator(),
    PrefixForecaster(),
    PrefixForecaster(features="last", last=2),
    *(
        PrefixForecaster(features=features, pooled=True, end=end)
        for features in ("last", "summary", "running")
        for end in (None, "step", "after")
    ),
    make_pipeline(PlattCrossFitCalibrator(), PrefixForecaster(features="summary")),
    DensityRatioEProcess(threshold="ville"),
]


@pytest.mark.parametrize(("cheat", "message"), CHEATS)
def test_cheats_are_caught(cheat, message):
    with pytest.raises(AssertionError, match=message):
        check_no_look_ahead(cheat())


@pytest.mark.parametrize("cheat", [one for one, _ in CHEATS] + [LosesSteps])
def test_all_checks_catch_cheats(cheat):
    with pytest.raises(AssertionError):
        check_trajectory_estimator(cheat())


@pytest.mark.parametrize("estimator", HONEST, ids=repr)
def test_honest_forecasters_pass(estimator):
    check_no_look_ahead(estimator)


@pytest.mark.parametrize(
    "scorer",
    [TracerScorer(), TracerScorer(aggregation="separate"), SAUP(), MeanSurprisal(), RunLength()],
    ids=repr,
)
def test_honest_scorers_pass(scorer):
    check_trajectory_estimator(scorer, channels=["surprisal", "repetition"], probabilities=False)


def test_a_count_of_calls_passes():
    check_trajectory_estimator(ToolCallCount(), channels=["tool_calls"], probabilities=False)


# ------------------------------------------------------------------ in cross-fitting


@pytest.fixture(scope="module")
def runs():
    X, y = make_trajectories(150, lengths=(1, 7), random_state=3, return_X_y=True)
    X = TrajectoryArray(
        X.cells, X.lengths, ids=[f"r{k:03d}" for k in range(150)], horizon=X.lengths + 3,
        meta={"n_steps": X.lengths, "outcome": y}, ended=True,
    )  # fmt: skip
    return X, y


@pytest.mark.parametrize(
    ("cheat", "message"), [pair for pair in CHEATS if pair[0] not in (LearnsIds, UsesWidth)]
)
def test_cross_fitting_warns_of_cheats(runs, cheat, message):
    X, y = runs
    with pytest.warns(UserWarning, match=f"{cheat.__name__} would forecast other values") as caught:
        cross_fit_traces(cheat(), X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=message):
        cross_fit_traces(cheat(), X, y, n_jobs=2)


def test_what_ids_tell_of_other_runs_is_no_use_out_of_fold(runs):
    cross_fit_traces(LearnsIds(), *runs)


def test_the_warning_names_run_step_and_values(runs):
    X, y = runs
    said = []
    for order in (np.arange(150), np.random.default_rng(0).permutation(150)):
        with pytest.warns(UserWarning, match="would forecast other") as caught:
            traces = cross_fit_traces(UsesMean(), X[order], y[order])
        said.append(str(caught[0].message))
    assert said[0] == said[1]
    words = said[0].split()
    row = X.ids.tolist().index(words[words.index("run") + 1].strip("'"))
    whole = traces[np.flatnonzero(order == row)[0]]
    assert (
        f" it gives {whole[int(words[words.index('step') + 1]) - 1]:.6g} to the whole run"
        in said[0]
    )


@pytest.mark.parametrize("estimator", HONEST[:-1], ids=repr)
def test_cross_fitting_says_nothing_of_honest_ones(runs, estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cross_fit_traces(estimator, *runs)


def test_runs_of_one_step_have_no_later_ones():
    X = TrajectoryArray(np.linspace(0.1, 0.9, 60), np.ones(60, dtype=int), ended=True)
    y = np.arange(60) % 2
    cross_fit_traces(UsesMean(), X, y)
    with pytest.warns(UserWarning, match="the ids of the runs"):
        cross_fit_traces(ReadsIds(), X, y)


class ReadsTrial(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        hint = np.array([float(run.meta.get("reward", 0.5)) for run in X])
        S = ActionSignals().fit_transform(X)
        return S.with_cells(np.repeat(hint, S.lengths))


def test_runs_of_a_log_are_cut_too():
    logs = []
    for k in range(30):
        turns = [io.Step("agent" if t % 2 else "user", f"word {t} {k}") for t in range(2 + k % 7)]
        logs.append(io.Run(f"r{k}", turns, outcome=k % 2, meta={"reward": k % 2}))
    y = io.outcomes(logs)
    model = make_pipeline(ActionSignals(), PrefixForecaster(features="running", pooled=True))
    model.fit(logs, y)
    assert sample_look_ahead(model.transform, logs, model.transform(logs)) is None
    whole = ReadsTrial().transform(logs)
    found = sample_look_ahead(ReadsTrial().transform, logs, whole)
    assert (found.cause, found.prefix) == ("meta", 0.5)
    assert found.whole == logs[whole.ids.tolist().index(found.run)].outcome
    short = [run for run in logs if len(run) < 4]
    assert sample_look_ahead(ReadsTrial().transform, short, ReadsTrial().transform(short)) is None


# ------------------------------------------------------------------ what a prefix is


def prefixes_of(seen, **fields):
    """The prefixes that a transform is given, whose values are never those of whole runs."""
    given = []

    def transform(X):
        given.append(X)
        return X.with_cells(-1 - X.cells)

    X = TrajectoryArray(np.arange(6.0), [1, 2, 3], **fields)
    find_look_ahead(transform, X, X, np.array(seen))
    return given


def test_nothing_is_known_of_a_prefix_but_its_steps_and_the_end_of_a_whole_run():
    known = {
        "ids": ["a", "b", "c"], "meta": {"m": [1, 2, 3]}, "horizon": [4, 5, 6],
        "ended": [True, True, False],
    }  # fmt: skip
    bare, again, ids, meta, horizon, ended, everything = prefixes_of([1, 1, 3], **known)
    assert bare.cells.tolist() == [0, 1, 3, 4, 5]
    assert bare.lengths.tolist() == [1, 1, 3]
    assert bare.ids.dtype.kind == "U"
    assert not set(bare.ids) & {"a", "b", "c"}
    assert len(set(bare.ids)) == 3
    assert bare.horizon is None
    assert bare.meta.shape[1] == 0
    assert bare.ended.tolist() == [True, False, False]  # the second run goes on
    assert again.ids.tolist() == bare.ids.tolist()
    assert ids.ids.tolist() == everything.ids.tolist() == ["a", "b", "c"]
    assert meta.meta["m"].tolist() == everything.meta["m"].tolist() == [1, 2, 3]
    assert horizon.horizon.tolist() == everything.horizon.tolist() == [4, 5, 6]
    assert ended.ended.tolist() == everything.ended.tolist() == [True, True, False]
    assert (ids.horizon, meta.horizon) == (None, None)
    assert (horizon.meta.shape[1], ended.meta.shape[1]) == (0, 0)


def test_the_first_value_that_differs_is_named():
    X = TrajectoryArray([0.1, 0.2, 0.3, 0.4, 0.5], [2, 3], ids=["a", "b"])

    def of_the_mean(runs):
        each = np.add.reduceat(runs.cells, runs.offsets[:-1]) / runs.lengths
        return runs.with_cells(np.repeat(each, runs.lengths))

    whole = of_the_mean(X)
    assert find_look_ahead(of_the_mean, X, whole, np.array([2, 3])) is None
    found = find_look_ahead(of_the_mean, X, whole, np.array([2, 1]))
    assert (found.cause, found.run, found.step, found.seen) == ("steps", "b", 1, 1)
    assert (found.whole, found.prefix) == pytest.approx((0.4, 0.3))
    assert str(found) == (
        "At step 1 of run 'b' it gives 0.4 to the whole run, but 0.3 to its first 1 step alone. "
        "The value depends on later steps, on the length of the run or on other runs; compute it "
        "from the steps so far"
    )
    assert str(LookAhead("random", error="ValueError: no")) == (
        "Its transform of the first steps of runs raises ValueError: no. The value is another one "
        "at each call; seed it in fit"
    )


@pytest.mark.parametrize(("apart", "agrees"), [(0.9e-6, True), (4e-6, False)])
def test_values_agree_up_to_a_millionth(apart, agrees):
    X = TrajectoryArray([0.5, 0.5], [2])
    found = find_look_ahead(lambda runs: runs.with_cells(runs.cells + apart), X, X, np.array([1]))
    assert (found is None) == agrees


@pytest.mark.parametrize(("n_runs", "looked_at"), [(5, 5), (20, 20), (400, 20)])
def test_a_few_runs_are_cut_before_their_end(n_runs, looked_at):
    lengths = np.resize([2, 5], n_runs)
    X = TrajectoryArray(np.arange(lengths.sum()) * 1.0, lengths)
    given = []

    def transform(runs):
        given.append(runs)
        return runs

    assert sample_look_ahead(transform, X, X) is None
    (sample,) = given
    assert len(sample) == looked_at
    starts = [run[0] for run in sample]
    whole = {run[0]: len(run) for run in X}
    assert all(1 <= len(run) < whole[run[0]] for run in sample)
    assert len(set(starts)) == looked_at
    assert {starts[0], starts[-1]} == {X[0][0], X[n_runs - 1][0]}  # spread over all runs


def test_a_transform_whose_form_depends_on_later_steps_is_caught():
    X = TrajectoryArray(np.arange(1.0, 9.0), [4, 4])

    def loses_a_step(runs):
        return runs if runs.lengths.max() > 3 else runs.prefix(1)

    found = find_look_ahead(loses_a_step, X, X, np.array([3, 2]))
    assert (found.cause, found.error) == ("steps", "ValueError: the number of steps changed")

    def has_a_channel_more(runs):
        cells = runs.cells if runs.lengths.max() > 3 else np.column_stack([runs.cells] * 2)
        return runs.with_cells(cells)

    found = find_look_ahead(has_a_channel_more, X, X, np.array([3, 2]))
    assert found.error == "ValueError: the number of values a step changed"
