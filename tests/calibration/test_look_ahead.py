"""A forecaster that reads what it cannot know is caught, however it does it; honest ones pass."""

import re
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
    TrajectoryArray,
    check_outcomes,
    io,
)
from trajscore.calibration import IsotonicCrossFitCalibrator, cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.testing import check_trajectory_estimator


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


def cheat(name, hint):
    return type(name, (Halfway,), {"_hint": hint})


class IsRandomAtFirst(Halfway):
    def transform(self, X):
        cells = X.cells.copy()
        cells[X.offsets[:-1]] = np.random.default_rng().random(len(X))
        return X.with_cells(cells)


class LosesSteps(Halfway):
    def transform(self, X):
        return X if len(set(X.lengths.tolist())) > 1 else X.prefix(1)


class GainsAChannel(Halfway):
    def transform(self, X):
        return X if X.ended.any() else X.with_cells(np.column_stack([X.cells] * 2))


LEARNS_IDS = cheat(
    "LearnsIds", lambda s, X: [s.outcome_of_.get(i, s.rate_) for i in X.ids.tolist()]
)
USES_WIDTH = cheat("UsesWidth", lambda _, X: 1 / X.shape[1])
USES_MEAN = cheat("UsesMean", lambda _, X: np.add.reduceat(X.cells, X.offsets[:-1]) / X.lengths)
READS_IDS = cheat("ReadsIds", lambda _, X: [str(one).endswith("7") for one in X.ids])
CHEATS = [
    cheat("ReadsHorizon", lambda _, X: 1 / (X.lengths if X.horizon is None else X.horizon)),
    cheat("IfThere", lambda s, X: 1 if X.horizon is None else 1 / X.horizon),
    LEARNS_IDS,
    READS_IDS,
    cheat("ReadsEnded", lambda _, X: np.where(X.ended, 0.9, 0.1)),
    cheat("MetaIfThere", lambda s, X: X.meta.get("outcome", s.rate_)),
    cheat("UsesLength", lambda _, X: 1 / X.lengths),
    USES_WIDTH,
    USES_MEAN,
    cheat("UsesLast", lambda _, X: X.cells[X.offsets[1:] - 1]),
    cheat("UsesSeveral", lambda _, X: (X.ended & (X.horizon is not None)) + 0.0),
    cheat("IsRandom", lambda _, X: np.random.default_rng().random(len(X))),
    IsRandomAtFirst,
]

CRASHES = [
    (cheat("NeedsHorizon", lambda _, X: 1 / X.horizon), "TypeError"),
    (cheat("ReadsMeta", lambda _, X: 1 / X.meta["n_steps"].to_numpy()), "KeyError"),
]
HONEST = [
    Halfway(),
    PlattCrossFitCalibrator(),
    IsotonicCrossFitCalibrator(),
    TraceAggregator(),
    PrefixForecaster(features="last", last=2),
    PrefixForecaster(features="running", pooled=True, end="step"),
    PrefixForecaster(features="running", pooled=True, end="after"),
    make_pipeline(PlattCrossFitCalibrator(), PrefixForecaster(features="running")),
]


@pytest.fixture(scope="module")
def runs():
    X, y = make_trajectories(150, lengths=(1, 7), random_state=3, return_X_y=True)
    X = TrajectoryArray(
        X.cells, X.lengths, ids=[f"r{k:03d}" for k in range(150)], horizon=X.lengths + 3,
        meta={"n_steps": X.lengths, "outcome": y}, ended=True,
    )  # fmt: skip
    return X, y


def test_cheats_are_caught():
    for kind in CHEATS:
        with pytest.raises(AssertionError, match="check_no_look_ahead: .*Compute a value from"):
            check_trajectory_estimator(kind())
    for kind, error in CRASHES:
        with pytest.raises(AssertionError, match=f"{kind.__name__} raised {error}"):
            check_trajectory_estimator(kind())
    with pytest.raises(AssertionError, match="check_rows_alone"):
        check_trajectory_estimator(LosesSteps())


def test_honest_forecasters_pass(runs):
    assert "check_no_look_ahead" in check_trajectory_estimator(Halfway())
    process = DensityRatioEProcess(threshold="ville")
    assert "check_no_look_ahead" in check_trajectory_estimator(process, probabilities=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for estimator in HONEST:
            cross_fit_traces(estimator, *runs)
        # what ids tell of other runs is no use out of fold
        cross_fit_traces(LEARNS_IDS(), *runs)


def test_cross_fitting_warns_of_cheats_by_run_step_and_values(runs):
    X, y = runs
    cheats = [(kind, "but .* to its first .* alone") for kind in CHEATS]
    for kind, words in [*cheats, *CRASHES, (GainsAChannel, "number of values")]:
        if kind in (LEARNS_IDS, USES_WIDTH):
            continue
        with pytest.warns(UserWarning, match=f"{kind.__name__} .*{words}") as caught:
            cross_fit_traces(kind(), X, y)
        assert len(caught) == 1
        assert caught[0].filename == __file__
    said = []
    for order in (np.arange(150), np.random.default_rng(0).permutation(150)):
        with pytest.warns(UserWarning, match="UsesMean") as caught:
            traces = cross_fit_traces(USES_MEAN(), X[order], y[order])
        said.append(str(caught[0].message))
    assert said[0] == said[1]
    pattern = (
        r"step (\d+) of run '(r\d+)' it gives ([\d.]+) .* but ([\d.]+) to its first (\d+) step"
    )
    step, run, whole, prefix, seen = re.search(pattern, said[0]).groups()
    row = traces.ids.tolist().index(run)
    assert float(whole) == pytest.approx(traces[row][int(step) - 1], rel=1e-5)
    scores = X[X.ids.tolist().index(run)]
    assert int(step) <= int(seen) < len(scores)
    expected = (scores[int(step) - 1] + scores[: int(seen)].mean()) / 2
    assert float(prefix) == pytest.approx(expected, rel=1e-5)


class CutsRuns(Halfway):
    """Notes what it is asked to forecast."""

    given = ()

    def transform(self, X):
        CutsRuns.given += (X,)
        return X


def test_twenty_runs_are_cut_before_their_end_and_nothing_is_known_of_them(runs):
    X, y = runs
    CutsRuns.given = ()
    cross_fit_traces(CutsRuns(), X, y, cv=2)
    whole, prefixes = CutsRuns.given[:2]
    assert len(prefixes) == 20
    starts = {run[0]: len(run) for run in whole}
    assert all(1 <= len(run) < starts[run[0]] for run in prefixes)
    long = [run[0] for run in whole[np.argsort(whole.ids)] if len(run) > 1]
    assert {prefixes[0][0], prefixes[19][0]} == {long[0], long[-1]}  # spread over all runs
    assert prefixes.ids.dtype.kind == "U"
    assert not set(prefixes.ids) & set(X.ids)
    assert len(set(prefixes.ids)) == 20
    assert (prefixes.horizon, prefixes.meta.shape[1], prefixes.ended.any()) == (None, 0, False)


class ReadsTrial(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        hint = np.array([float(run.meta.get("reward", 0.5)) for run in X])
        S = ActionSignals(["agent_turns"]).fit_transform(X)
        return S.with_cells(np.repeat(hint, S.lengths))


def test_runs_of_a_log_are_cut_too():
    logs = []
    for k in range(30):
        turns = [io.Step("agent" if t % 2 else "user", f"word {t} {k}") for t in range(4 + k % 7)]
        logs.append(io.Run(f"r{k}", turns, outcome=k % 2, meta={"reward": k % 2}))
    y = io.outcomes(logs)
    model = make_pipeline(ActionSignals(), PrefixForecaster(features="running", pooled=True))
    cross_fit_traces(model, logs, y)
    with pytest.warns(UserWarning, match=r"gives [01] to .* but 0\.5 to .*meta"):
        cross_fit_traces(ReadsTrial(), logs, y)
    short = [io.Run(run.id, run.steps[:3], outcome=run.outcome, meta=run.meta) for run in logs]
    cross_fit_traces(ReadsTrial(), short, y)
