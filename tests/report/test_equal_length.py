"""At one step, and between runs of equal length, the length of runs tells nothing."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import PredefinedSplit

from trajscore import PrefixForecaster, TrajectoryArray, evaluate
from trajscore.calibration import cross_fit_traces
from trajscore.core.parallel import Work
from trajscore.core.weights import as_step_weights
from trajscore.metrics import tps_samples
from trajscore.report import IntervalOptions
from trajscore.report._data import AS_GIVEN, Options
from trajscore.report._equal_length import _length, equal_length_table
from trajscore.report._rows import Row
from trajscore.report._runs import Coverage

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


# ------------------------------------------------------------------- by hand


def row_of(lengths, y, cells, groups=None):
    runs = Coverage(np.array(y), np.array(y, dtype=float), groups, np.arange(len(y)))
    return Row("a", AS_GIVEN, TrajectoryArray(cells, lengths), runs, True)


def area_by_pairs(values, y, lengths):
    """Share of pairs of equally long runs in which the one that succeeded has more."""
    won, lost = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    pairs = [(i, k) for i in won for k in lost if lengths[i] == lengths[k]]
    return np.mean([(values[i] > values[k]) + 0.5 * (values[i] == values[k]) for i, k in pairs])


@pytest.mark.parametrize("n_success", [10, 9])
def test_pairs_of_equally_long_runs_by_hand(rng, n_success):
    lengths = np.repeat([1, 2, 3], [12, 12, 6])
    y = np.append(np.arange(24) % 2, np.ones(6, dtype=int))  # long ones have no partner
    y[np.flatnonzero(y[:24])[n_success:]] = 0
    last = np.round(rng.random(30), 1)
    cells = rng.random(lengths.sum())
    cells[np.cumsum(lengths) - 1] = last
    options = Options(("log",), as_step_weights(), "last")
    for groups in (None, np.arange(30) // 2):
        row = row_of(lengths, y, cells, groups)
        table = equal_length_table([row], options, FEW, Work())
        found = table.loc[("a", AS_GIVEN)]
        assert found["n_runs"] == 24
        if n_success == 9:
            assert found.drop("n_runs").isna().all()
            continue
        area = area_by_pairs(last, y, lengths)
        assert found["AUROC"] == pytest.approx(area)
        assert found["AUROC_low"] < area < found["AUROC_high"]
        assert found["over_length"] == pytest.approx(area - 0.5)
        width = found["over_length_high"] - found["over_length_low"]
        assert width > 0.1


def test_lengths_have_the_sign_that_ranks_runs_better():
    y = np.array([0, 1, 1, 0])
    for lengths, sign in (([1, 2, 3, 1], 1), ([3, 2, 1, 3], -1), ([1, 1, 2, 2], -1)):
        row = row_of(lengths, y, np.full(sum(lengths), 0.5))
        assert _length(row).tolist() == [sign * n for n in lengths]
