"""At one step, and between runs of equal length, the length of runs tells nothing."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import PredefinedSplit

from trajscore import PrefixForecaster, TrajectoryArray, evaluate
from trajscore.calibration import cross_fit_traces
from trajscore.metrics import tps_samples
from trajscore.report import IntervalOptions

FEW = IntervalOptions(5)


@pytest.fixture
def leaky(rng):
    """Long runs fail; "length" knows only how long they are, "skill" only how good."""
    lengths = rng.integers(2, 9, 400)
    y = (rng.random(400) < 1 - lengths / 10).astype(int)
    run = np.repeat(np.arange(400), lengths)
    noise = rng.normal(size=len(run)) / 9
    length = -lengths[run] + noise
    skill = 2 * y[run] + 8 * rng.normal(size=400)[run] / 6
    X = TrajectoryArray(np.stack([length, skill], 1), lengths, channels=["length so far", "skill"])
    return X, y


def test_numbers_at_a_step_are_of_the_runs_that_get_there(chess, report):
    X, y = chess
    success = np.where(y == 1, 1, 0)
    table = report.by_step.loc["material"]
    for t in (1, 10, 30):
        there = X.lengths >= t
        p = X["material"].cells.ravel()[X.offsets[:-1][there] + t - 1]
        row = table.loc["as_given", t]
        assert row["n_runs"] == there.sum()
        assert row["success_rate"] == pytest.approx(success[there].mean())
        assert row["AUROC"] == pytest.approx(roc_auc_score(success[there], p))
        score = tps_samples(success[there], p[:, None]).mean()
        rate = np.full((there.sum(), 1), success[there].mean())
        margin = score - tps_samples(success[there], rate).mean()
        assert row[["score", "margin"]].to_numpy() == pytest.approx([score, margin])
        assert row["AUROC_low"] < row["AUROC"] < row["AUROC_high"]
        assert row["margin_low"] < row["margin"] < row["margin_high"]
    assert "AUROC at a step" in report.to_text(verbose=True)


def test_what_knows_only_the_length_does_not_beat_it(leaky):
    report = evaluate(*leaky, calibrator=None, phi="last", intervals=FEW)
    assert report.table.loc[("length so far", "as_given"), "AUROC"] > 0.65
    row = report.equal_length.loc[("length so far", "as_given")]
    assert row["AUROC"] == pytest.approx(0.5, abs=0.07)
    assert row["over_length"] == row["AUROC"] - 0.5  # runs of 2 to 8 steps: exactly as long
    said, other = report.verdicts()
    assert "which counting steps cannot rank, it is not shown to rank better than chance" in said
    skill = report.equal_length.loc[("skill", "as_given")]
    assert skill["over_length_low"] > 0
    assert "which counting steps cannot rank, it ranks better than chance" in other


@pytest.mark.parametrize("longer_is", [-1, 1])
def test_what_is_left_of_length_in_a_bin_is_taken_off(rng, longer_is):
    lengths = rng.integers(30, 60, 1000)
    y = (rng.random(1000) < 0.5 + longer_is * (lengths - 45) / 32).astype(int)
    X = TrajectoryArray(np.repeat(longer_is * lengths, lengths) * 1.0, lengths)
    report = evaluate({"steps": X}, y, calibrator=None, intervals=FEW)
    row = report.equal_length.loc[("steps", "as_given")]
    assert row["AUROC"] > 0.53
    assert row[["over_length", "over_length_low", "over_length_high"]].tolist() == [0, 0, 0]


def test_a_learned_length_is_compared_within_folds(rng):
    # at one step a length, learned, differs between folds alone: those whose training runs succeed
    # less often hold more that do
    fold = np.arange(300) % 5
    X = TrajectoryArray(np.ones(900), [3] * 300)
    y = (rng.random(300) < 0.2 + 0.15 * fold).astype(int)
    learned = PrefixForecaster(features="last", last=1)
    traces = cross_fit_traces(learned, X, y, cv=PredefinedSplit(fold))
    assert roc_auc_score(y, traces.steps(3)[:, 2]) < 0.4
    report = evaluate({"given": traces}, y, calibrator=learned, intervals=FEW)
    assert report.by_step["AUROC"].tolist() == [0.5] * 6
    assert report.equal_length["AUROC"].tolist() == [0.5] * 2


def test_few_runs_of_equal_length(rng):
    y = np.arange(30) % 2
    lengths = np.where(y == 1, 5, 3)
    lengths[:4] = 4
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    report = evaluate(X, y, intervals=FEW)
    row = report.equal_length.loc[("forecast", "as_given")]
    assert row["n_runs"] == 4
    assert np.isnan(row["AUROC"])
    assert "too few runs are as long as one with another outcome" in report.verdicts()[0]
    assert report.by_step.loc["forecast"].loc["as_given"].index.tolist() == [1, 2, 3]
    few = evaluate(X[:12], np.arange(12) % 2, intervals=FEW)
    assert few.by_step.empty
    assert few.by_step.index.names == ["predictor", "form", "step"]
    assert "AUROC at a step, of" not in str(few)


def test_the_order_of_rows_changes_nothing(leaky, rng):
    X, y = leaky
    order = rng.permutation(len(y))
    once, again = (
        evaluate(X[rows], y[rows], groups=rows // 3, intervals=FEW)
        for rows in (np.arange(len(y)), order)
    )
    for name in ("by_step", "equal_length"):
        assert getattr(once, name).equals(getattr(again, name))


def test_clusters_widen_intervals(leaky):
    X, y = leaky
    again = TrajectoryArray(X.cells, X.lengths, channels=X.channels, ids=X.ids + len(y))
    twice, known = TrajectoryArray.concat([X, again]), {"calibrator": None, "intervals": FEW}
    alone = evaluate(twice, np.tile(y, 2), **known)
    pairs = evaluate(twice, np.tile(y, 2), groups=np.tile(np.arange(len(y)), 2), **known)
    for name in ("by_step", "equal_length"):
        narrow, wide = (
            getattr(one, name)["AUROC_high"] - getattr(one, name)["AUROC_low"]
            for one in (alone, pairs)
        )
        assert (wide > 1.3 * narrow).all()
