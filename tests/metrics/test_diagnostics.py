import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from trajscore import metrics
from trajscore.core import ranking
from trajscore.metrics import trajectory_diagnostics as diagnostics

samples = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4)), min_size=2, max_size=30).filter(
    lambda rows: len({y for y, _ in rows}) == 2
)


@given(samples)
def test_rank_metrics_are_scikit_learns(rows):
    y, c = np.array(rows).T
    found = diagnostics(y, c[:, None] / 4)
    assert found["AUROC"] == pytest.approx(roc_auc_score(1 - y, -c), abs=1e-12)
    assert found["AUPRC"] == pytest.approx(average_precision_score(1 - y, -c), abs=1e-12)
    assert found["T-Brier"] == pytest.approx(brier_score_loss(y, c / 4), abs=1e-12)


@given(samples.filter(lambda rows: len(rows) <= 6))
def test_aurc_is_the_mean_over_all_orders_of_ties(rows):
    y, c = np.array(rows).T
    areas = []
    for order in itertools.permutations(range(len(y))):
        ranked = sorted(order, key=lambda k: -c[k])  # stable: ties keep the permuted order
        errors = np.cumsum(1 - y[ranked])
        areas.append(np.mean(errors / np.arange(1, len(y) + 1)))
    found = diagnostics(y, c[:, None] / 4)["AURC"]
    assert found == pytest.approx(np.mean(areas), abs=1e-12)


@given(samples, st.randoms(use_true_random=False))
def test_order_of_rows_and_weights(rows, random):
    y, c = np.array(rows).T
    F = c[:, None] / 4
    order = list(range(len(y)))
    random.shuffle(order)
    weight = np.ones(len(y))
    weight[0] = 3
    repeated = np.r_[0, 0, np.arange(len(y))]
    value = diagnostics(y, F)
    assert value.index.tolist() == ["AUROC", "AUPRC", "AURC", "T-ECE", "T-Brier"]
    assert not value.isna().any()
    np.testing.assert_allclose(diagnostics(y[order], F[order]), value, rtol=0, atol=1e-12)
    weighted = diagnostics(y, F, sample_weight=weight)
    np.testing.assert_allclose(weighted, diagnostics(y[repeated], F[repeated]), rtol=0, atol=1e-12)


def test_fractional_weights_continue_whole_ones():
    y, F = np.array([1, 0, 1]), np.array([[0.9], [0.5], [0.5]])
    near = diagnostics(y, F, sample_weight=[1.0, 1.0, 1.0 + 1e-9])
    assert near["AURC"] == pytest.approx(diagnostics(y, F)["AURC"], abs=1e-7)


def test_aurc_of_fractional_weights_continues_harmonic_numbers():
    def harmonic(x):
        return quad(lambda t: (1 - t**x) / (1 - t), 0, 1)[0]

    # a right run above a wrong one: the mean over k of (k - 1.5) / k for k from 1.5 to 2.75
    found = diagnostics([1, 0], [[0.9], [0.1]], sample_weight=[1.5, 1.25])["AURC"]
    expected = (1.25 - 1.5 * (harmonic(2.75) - harmonic(1.5))) / 2.75
    assert found == pytest.approx(expected, rel=1e-9)


def test_ece_never_splits_a_tie():
    # 95 runs at .5 and 5 at .9: quantile edges fall inside the tie
    y = np.r_[np.arange(95) < 40, np.ones(5)].astype(int)
    F = np.r_[np.full(95, 0.5), np.full(5, 0.9)][:, None]
    expected = abs(40 - 47.5) / 100 + abs(5 - 4.5) / 100
    assert diagnostics(y, F)["T-ECE"] == pytest.approx(expected)


def test_ece_puts_a_tie_around_an_edge_into_the_lower_bin():
    # 20 runs, 10 bins of two: the second and the third run are tied
    c = np.r_[0.1, 0.2, 0.2, np.linspace(0.4, 0.9, 17)]
    y = np.r_[1, 0, 1, np.tile([0, 1], 9)[:17]]
    bins = [slice(0, 3), slice(3, 4), *(slice(k, k + 2) for k in range(4, 20, 2))]
    gaps = [abs((y[part] - c[part]).sum()) for part in bins]
    assert diagnostics(y, c[:, None])["T-ECE"] == pytest.approx(sum(gaps) / 20)


def test_ece_has_equal_bins_without_ties(rng):
    c = rng.random(1000)
    y = (rng.random(1000) < c).astype(int)
    order = np.argsort(c)
    gaps = [abs((y[part] - c[part]).sum()) for part in np.split(order, 10)]
    assert diagnostics(y, c[:, None])["T-ECE"] == pytest.approx(sum(gaps) / 1000)


def test_many_weightings_at_once(rng):
    c, y = rng.integers(0, 5, 40) / 4, rng.integers(0, 2, 40).astype(float)
    groups = ranking.TieGroups(c, y)
    weights = rng.integers(0, 4, (3, 40)).astype(float)
    sums = groups.sums(weights)
    for name in ("auroc", "auprc", "aurc"):
        function = getattr(ranking, name)
        single = [float(function(*groups.sums(row))) for row in weights]
        np.testing.assert_allclose(function(*sums), single)


def test_aggregators():
    traces = [[0.9, 0.6, 0.3], [0.2]]
    for phi, expected in {
        "last": [0.3, 0.2],
        "mean": [0.6, 0.2],
        "min": [0.3, 0.2],
        "weighted": [(0.9 + 0.6 / 2**0.5 + 0.3 / 3**0.5) / (1 + 1 / 2**0.5 + 1 / 3**0.5), 0.2],
    }.items():
        np.testing.assert_allclose(metrics.aggregate(traces, phi), expected)
    for own, expected in {
        "linear_front": [(3 * 0.9 + 2 * 0.6 + 0.3) / 6, 0.2],
        "exponential_front": [(4 * 0.9 + 2 * 0.6 + 0.3) / 7, 0.2],
        "uniform": [0.6, 0.2],
    }.items():
        np.testing.assert_allclose(metrics.aggregate(traces, weights=own, horizon="own"), expected)
    # steps beyond a horizon weigh nothing
    np.testing.assert_allclose(
        metrics.aggregate(traces, weights="linear_front", horizon=2),
        [(2 * 0.9 + 0.6) / 3, 0.2],
    )
    with pytest.raises(
        ValueError, match="phi must be 'last', 'mean', 'min' or 'weighted', got 'max'"
    ):
        metrics.aggregate(traces, "max")


def test_what_does_not_exist_is_nan():
    one_class = diagnostics([1, 1], [[0.1], [0.2]])
    assert one_class.index[one_class.isna()].tolist() == ["AUROC", "AUPRC"]
    signal = diagnostics([1, 0], [[0.1], [1.2]])
    assert signal.index[signal.isna()].tolist() == ["T-ECE", "T-Brier"]
    assert diagnostics([1, 0], [[-0.1], [0.2]])["AUROC"] == 0


def test_phi_weights_and_bins_are_those_asked_for(rng):
    F, y = rng.random((40, 3)), rng.integers(0, 2, 40)
    for how in ({"phi": "last"}, {"weights": "uniform"}, {"phi": "min"}):
        collapsed = metrics.aggregate(F, **how)[:, None]
        np.testing.assert_allclose(diagnostics(y, F, **how), diagnostics(y, collapsed))
    assert diagnostics(y, F, n_bins=1)["T-ECE"] == pytest.approx(
        abs(y.mean() - metrics.aggregate(F).mean())
    )


def test_recalibration_moves_tps_and_hardly_auroc(hotpotqa):
    from trajscore import PlattCrossFitCalibrator

    X, y = hotpotqa
    own = {"weights": "linear_front", "horizon": "own"}  # as the paper
    for how, gain, ranked in ((own, 0.0358, 0.0097), ({}, 0.0691, 0.0138)):
        calibrated = PlattCrossFitCalibrator(**how).fit_transform(X, y)
        moved = metrics.tps_score(y, calibrated, **how) - metrics.tps_score(y, X, **how)
        assert moved == pytest.approx(gain, abs=5e-4)
        better = (diagnostics(y, calibrated, **how) - diagnostics(y, X, **how))["AUROC"]
        assert better == pytest.approx(ranked, abs=1e-4)


def test_step_profile(ragged):
    X, y = ragged
    profile = metrics.step_profile(y, X, score="brier")
    assert profile["n_runs"].tolist() == [(X.lengths >= t).sum() for t in profile.index]
    alive = X.lengths >= 4
    errors = -((X.steps(4)[:, 3] - y[alive]) ** 2)
    assert profile.loc[4, "score"] == pytest.approx(errors.mean())
    expected = errors.std(ddof=1) / np.sqrt(alive.sum())
    assert profile.loc[4, "std_error"] == pytest.approx(expected)
    doubled = metrics.step_profile(y, X, score="brier", sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(doubled["score"], profile["score"])


def test_step_profile_tells_observed_runs_apart(ragged):
    X, y = ragged
    hidden = X.lengths > 5
    codes = np.where(hidden, -1, y)
    profile = metrics.step_profile(codes, X, q_z=0.3, score="brier")
    alone = metrics.step_profile(y[~hidden], X[~hidden], score="brier")
    columns = {"n_observed": "n_runs", "score_observed": "score", "std_error_observed": "std_error"}
    for found, expected in columns.items():
        np.testing.assert_allclose(profile[found][: len(alone)], alone[expected])
    assert (profile["n_observed"].iloc[5:] == 0).all()
    assert profile["score_observed"].iloc[5:].isna().all()
    soft = metrics.step_profile(np.where(hidden, 0.3, y), X, score="brier")
    pd.testing.assert_series_equal(profile["score"], soft["score"])
    assert (soft["n_observed"] == soft["n_runs"]).all()


def test_standard_errors_need_two_runs():
    profile = metrics.step_profile([1, 0], [[0.5, 0.5], [0.9]], score="brier")
    assert profile.loc[1, "std_error"] == pytest.approx((0.81 - 0.25) / 2)
    assert np.isnan(profile.loc[2, "std_error"])


def test_step_profile_counts_a_run_as_often_as_its_weight_says(ragged, rng):
    X, y = ragged
    weight = rng.integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    pd.testing.assert_frame_equal(
        metrics.step_profile(y, X, sample_weight=weight), metrics.step_profile(y[rows], X[rows])
    )
    half = metrics.step_profile(y, X, sample_weight=np.full(len(y), 0.5))
    assert half["n_runs"].iloc[0] == len(y) / 2


def test_bad_input(ragged):
    X, y = ragged
    with pytest.raises(ValueError, match="there are no runs to score; give at least one"):
        diagnostics([], X[[]])
    with pytest.raises(ValueError, match="run '.*': the outcome is not observed"):
        diagnostics(np.r_[-1, y[1:]], X)
    with pytest.raises(
        ValueError, match="phi must be 'last', 'mean', 'min' or 'weighted', got 'max'"
    ):
        diagnostics(y, X, phi="max")


@pytest.mark.parametrize("n_bins", [0, 1.5, True, None, "ten"])
def test_number_of_bins(n_bins):
    with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1"):
        diagnostics([1, 0], [[0.5], [0.5]], n_bins=n_bins)


def test_bins_of_equal_width_as_the_paper_has_them(rng):
    c, y = rng.integers(0, 11, 200) / 10, rng.integers(0, 2, 200)
    gaps = [0.0] * 5
    for value, label in zip(c, y, strict=True):
        gaps[min(int(np.floor(value * 5 + 1e-9)), 4)] += label - value
    found = diagnostics(y, c[:, None], n_bins=5, strategy="uniform")["T-ECE"]
    assert found == pytest.approx(np.abs(gaps).sum() / 200)
    with pytest.raises(ValueError, match="strategy must be"):
        diagnostics(y, c[:, None], strategy="equal")


def test_a_grade_is_a_part_of_a_success():
    # a run graded .25 is a quarter of a success and three quarters of a failure
    F = np.array([[0.2], [0.6], [0.9]])
    y, repeated = np.array([0.25, 0, 1]), np.array([1, 0, 0, 0, 1])
    weight = [0.25, 0.75, 1, 1, 1]
    split = diagnostics(repeated[[0, 1, 2, 4]], F[[0, 0, 1, 2]], sample_weight=np.r_[weight[:3], 1])
    graded = diagnostics(y, F)
    names = ["AUROC", "AUPRC", "AURC", "T-ECE"]
    np.testing.assert_allclose(graded[names], split[names])
