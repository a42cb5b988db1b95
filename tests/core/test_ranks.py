"""Statistics of one confidence a run and of steps, against slow ways to compute them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from judged import evaluate
from known_intervals import numeric_influence, t_interval
from trajscore import TraceAggregator, TrajectoryArray, metrics
from trajscore.metrics import step_calibration_error, trajectory_diagnostics


def column(confidence):
    return np.reshape(confidence, (-1, 1))


def test_one_outcome_has_no_ranking():
    failed = trajectory_diagnostics([0, 0], [[0.5], [0.4]])
    assert np.isnan(failed["AUROC"])
    assert failed["AUPRC"] == failed["AURC"] == 1
    won = trajectory_diagnostics([1, 1], [[0.5], [0.4]])
    assert np.isnan(won[["AUROC", "AUPRC"]]).all()
    assert won["AURC"] == 0
    signal = trajectory_diagnostics([1, 0], [[1.5], [-3.0]])
    assert signal["AUROC"] == 1
    assert np.isnan(signal[["T-ECE", "T-Brier"]]).all()


def test_confidences_that_agree_to_twelve_digits_are_ties():
    for value in (0.3, -0.3, 1e-9, 12345.678, -7e20):
        for near, area in ((value * (1 + 3e-13), 0.5), (value * (1 + 3e-12), float(value > 0))):
            for y, expected in (([0, 1], area), ([1, 0], 1 - area)):
                found = trajectory_diagnostics(y, column([value, near]))["AUROC"]
                assert found == expected, (value, near)
    found = trajectory_diagnostics([0, 1], [[0.1, 0.2], [0.15, 0.15]], phi="mean")
    assert found["AUROC"] == 0.5


def binned(c, y, w, bins):
    return sum(abs((w * (y - c))[bins == k].sum()) for k in np.unique(bins)) / w.sum()


@pytest.mark.parametrize("n_bins", [1, 3, 10])
def test_calibration_errors_are_sums_over_bins(rng, n_bins):
    c, y = rng.integers(0, 30, 50) / 29, rng.integers(0, 2, 50)
    w = rng.uniform(0.5, 2, 50)
    width = np.array([min(int(np.floor(one * n_bins + 1e-9)), n_bins - 1) for one in c])
    middle = np.array([(w[c < one].sum() + w[c == one].sum() / 2) / w.sum() for one in c])
    weight = np.minimum(np.ceil(middle * n_bins - 1e-9) - 1, n_bins - 1)
    for strategy, bins in (("uniform", width), ("quantile", weight)):
        how = {"n_bins": n_bins, "strategy": strategy, "sample_weight": w}
        expected = binned(c, y, w, bins)
        assert step_calibration_error(y, column(c), **how) == pytest.approx(expected)
        assert trajectory_diagnostics(y, column(c), **how)["T-ECE"] == pytest.approx(expected)
        assert step_calibration_error(y, column(c), part="early", **how) == pytest.approx(expected)
        for part in ("middle", "late"):
            assert np.isnan(step_calibration_error(y, column(c), part=part, **how))


def test_ties_go_where_their_middle_rank_is():
    for weight, n_bins, bins in (
        ([1, 1, 1, 1], 2, [0, 0, 1, 1]),
        ([1, 1, 1], 2, [0, 0, 1]),  # a middle on an edge goes below it
        ([3, 1], 2, [0, 1]),
        ([1, 3], 2, [0, 1]),
        ([1, 1], 10, [2, 7]),
    ):
        c = np.arange(1, len(weight) + 1) / 8
        y, w = np.arange(len(weight)) % 2, np.array(weight, dtype=float)
        found = step_calibration_error(y, column(c), n_bins=n_bins, sample_weight=w)
        assert found == pytest.approx(binned(c, y, w, np.array(bins))), (weight, n_bins)
    for c in (0.07, 0.29, 0.57, 0.58):  # 0.57 * 100 is 56.99999999999999
        found = step_calibration_error([1, 0], [[c], [c + 0.005]], n_bins=100, strategy="uniform")
        assert found == pytest.approx(abs(1 - 2 * c - 0.005) / 2)
    assert step_calibration_error([1, 0], [[1.0], [0.0]], strategy="uniform") == 0


@pytest.mark.parametrize("alike", [False, True])  # then they are sorted after all
def test_more_steps_than_are_sorted_share_cells(alike):
    n = (1 << 22) + 2
    p = (np.arange(n) + 0.5) / n
    if alike:
        p[: n // 2] = 0.25 + 1e-8 * p[: n // 2]
    X, outcome = TrajectoryArray(p, [n // 2, n // 2]), np.repeat([1, 0], n // 2)
    slow = sum(abs(gaps.sum()) for gaps in np.array_split(outcome - p, 10)) / n
    found = step_calibration_error([1, 0], X, weights="uniform")
    assert found == pytest.approx(slow, abs=2e-6)


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 8, 60)
    y = rng.integers(0, 2, 60)
    p = np.clip(rng.integers(1, 9, lengths.sum()) / 10 + 0.15 * np.repeat(y, lengths), 0, 0.95)
    X = TrajectoryArray(p, lengths)
    return X, y, evaluate(X, y, calibrator=None, intervals="influence", families=["log", "brier"])


def test_intervals_rest_on_derivatives_in_the_weights_of_runs(judged):
    X, y, report = judged
    intervals = report.intervals.xs(("forecast", "as_given"), level=[0, 1])
    names = ["AUROC", "AUPRC", "AURC", "T-Brier"]
    found = intervals.loc[names]
    assert_allclose(found["value"], trajectory_diagnostics(y, X)[names])
    influence = numeric_influence(
        lambda w: trajectory_diagnostics(y, X, sample_weight=w)[names], len(y)
    )
    for (name, row), psi in zip(found.iterrows(), influence.T, strict=True):
        ends = t_interval(row["value"], psi, on_logit=name != "T-Brier")
        assert_allclose(row[["low", "high"]].astype(float), ends, rtol=2e-3, err_msg=name)


def test_the_public_judge_has_864_confidences(hotpotqa):
    X, y = hotpotqa
    model = TraceAggregator("weighted", weights="linear_front", horizon="own").fit(X)
    confidence = model.predict_proba(X)[:, 1]
    assert len(np.unique(confidence)) == 1790
    accepted, _, _ = metrics.risk_coverage_curve(y, confidence)
    assert len(np.unique(np.round(accepted, 12))) == 864
