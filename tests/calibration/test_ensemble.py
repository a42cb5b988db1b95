"""The mean of three maps: what it is made of, and what its rows can rely on."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.model_selection import PredefinedSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import CROSS_FIT_CHECKS, any_two_labels, as_forecasts
from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import (
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)
from trajscore.calibration._ensemble import EnsembleMap
from trajscore.metrics import tps_score
from trajscore.testing import check_trajectory_estimator


def latent(rng, n_runs=300):
    """Runs of 2 to 8 steps whose forecasts see dimly what decides."""
    z, lengths = rng.normal(0, 1.2, n_runs), rng.integers(2, 9, n_runs)
    seen = np.repeat(z, lengths) + rng.normal(0, 1, lengths.sum())
    X = TrajectoryArray(expit(seen).round(2), lengths)
    return X, (rng.random(n_runs) < expit(z)).astype(int)


@pytest.mark.parametrize(("link", "logistic"), [("logit", [2 / 3, 1 / 3]), ("identity", [1.0])])
def test_it_is_the_mean_in_log_odds_of_its_members(link, logistic, rng):
    X, y = latent(rng)
    fitted = EnsembleCrossFitCalibrator(n_half=300, link=link).fit(X, y).full_map_
    assert fitted.isotonic_share == pytest.approx(0.5)
    platt = PlattCrossFitCalibrator(link=link, increasing=True)
    alone = [platt, *[BetaCrossFitCalibrator()] * (len(logistic) - 1), IsotonicCrossFitCalibrator()]
    shares = [*(0.5 * share for share in logistic), 0.5]
    values = np.linspace(0, 1, 41)
    odds = [logit(one.fit(X, y).full_map_(values)) for one in alone]
    np.testing.assert_allclose(logit(fitted(values)), np.average(odds, axis=0, weights=shares))


def test_the_isotonic_map_counts_more_with_more_runs(rng):
    X, y = latent(rng)
    maps = EnsembleCrossFitCalibrator().fit(X, y)
    assert maps.summary()["isotonic_share"].tolist() == pytest.approx(
        [1 / (1 + (1000 / n) ** (2 / 3)) for n in maps.summary()["n_runs"]]
    )
    free = EnsembleCrossFitCalibrator(n_half=0).fit(X, y)
    isotonic = IsotonicCrossFitCalibrator().fit(X, y)
    np.testing.assert_allclose(free.transform(X).cells, isotonic.transform(X).cells, rtol=1e-9)


def test_the_order_of_values_is_kept(rng):
    X, y = latent(rng)
    fitted = EnsembleCrossFitCalibrator().fit(X, y).full_map_
    assert (np.diff(fitted(np.linspace(0.01, 0.99, 99))) > 0).all()


@pytest.mark.parametrize("link", ["logit", "identity"])
def test_a_signal_is_never_turned_round(link, rng):
    X, y = latent(rng)
    fitted = EnsembleCrossFitCalibrator(link=link).fit(X, 1 - y)
    assert fitted.summary()["fallback"].all()
    assert np.ptp(fitted.full_map_(np.linspace(0, 1, 11))) == 0
    assert fitted.full_map_(0.5) == pytest.approx(fitted.full_map_.base_rate)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("link", ["logit", "identity"])
def test_a_signal_of_one_value_gets_the_base_rate(value, link):
    X, y = np.full((8, 2), value), [1, 0, 0, 0] * 2
    fitted = EnsembleCrossFitCalibrator(link=link).fit(X, y)
    assert fitted.full_map_.fallback
    assert fitted.full_map_.isotonic_share == 0
    np.testing.assert_allclose(fitted.transform(X), 0.25)


def test_forecasts_of_0_and_1_do_not_drown_the_others(rng):
    X, y = latent(rng, 1000)
    lapses = rng.random(len(X.cells)) < 0.05  # as where a model states 100 or 0 for want of more
    X = X.with_cells(np.where(lapses, rng.integers(0, 2, len(lapses)), X.cells))
    ensemble, platt = (
        tps_score(y, one.fit_transform(X, y))
        for one in (EnsembleCrossFitCalibrator(), PlattCrossFitCalibrator())
    )
    assert ensemble > platt + 0.01
    assert 0 < EnsembleCrossFitCalibrator().fit(X, y).full_map_(0.0) < 1


def test_outcomes_of_a_fold_do_not_move_its_own_forecasts(rng):
    X, y = latent(rng)
    fold = np.arange(len(X)) % 2
    calibrator = EnsembleCrossFitCalibrator(n_half=10, cv=PredefinedSplit(fold))
    first = calibrator.fit_transform(X, y)
    other = np.where(fold == 0, rng.permutation(y), y)
    second = calibrator.fit_transform(X, other)
    own = np.repeat(fold == 0, X.lengths)
    np.testing.assert_array_equal(first.cells[own], second.cells[own])
    assert (first.cells[~own] != second.cells[~own]).any()


def test_the_order_of_rows_does_not_matter(rng):
    X, y = latent(rng)
    order = rng.permutation(len(X))
    groups = np.arange(len(X)) // 3
    for clusters in (None, groups):
        moved = None if clusters is None else clusters[order]
        made = EnsembleCrossFitCalibrator().fit_transform(X, y, groups=clusters)
        shuffled = EnsembleCrossFitCalibrator().fit_transform(X[order], y[order], groups=moved)
        assert shuffled == made[order]


def test_weights_are_numbers_of_runs_and_grades_shares_of_them(rng):
    X, y = latent(rng, 120)
    values = np.linspace(0, 1, 21)
    twice = EnsembleCrossFitCalibrator(n_half=50).fit(X, y, sample_weight=np.full(120, 2.0))
    copies = np.repeat(np.arange(120), 2)
    repeated = EnsembleCrossFitCalibrator(n_half=50).fit(X[copies], y[copies])
    np.testing.assert_allclose(twice.full_map_(values), repeated.full_map_(values), rtol=1e-9)
    graded = EnsembleCrossFitCalibrator(n_half=50).fit(X[copies], np.where(y, 0.75, 0.25)[copies])
    won = np.stack([np.where(y, 1, 0), np.where(y, 1, 0)] * 2).T
    won[:, 0] = np.where(y, 0, 1)  # three of four runs end as graded
    four = np.repeat(np.arange(120), 4)
    whole = EnsembleCrossFitCalibrator(n_half=50).fit(
        X[four], won.ravel(), sample_weight=np.full(480, 0.5)
    )
    np.testing.assert_allclose(graded.full_map_(values), whole.full_map_(values), rtol=1e-9)


def test_bad_parameters():
    X, y = [[0.1], [0.2], [0.8], [0.9]], [0, 1, 0, 1]
    for calibrator, message in (
        (EnsembleCrossFitCalibrator(n_half=-1), "n_half must be a number of runs, at least 0"),
        (EnsembleCrossFitCalibrator(link="probit"), "link must be"),
    ):
        with pytest.raises(ValueError, match=message):
            calibrator.fit(X, y)
    with pytest.raises(ValueError, match="lies outside"):
        EnsembleCrossFitCalibrator().fit([[1.5], [0.2], [0.8], [0.9]], y)


@any_two_labels
class AnyEnsemble(EnsembleCrossFitCalibrator):
    """It reads forecasts."""

    def _check_runs(self, X, *, reset):
        return super()._check_runs(as_forecasts(X), reset=reset)


@parametrize_with_checks(
    [AnyEnsemble()],
    expected_failed_checks=lambda _: CROSS_FIT_CHECKS,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


def test_public_checks():
    assert len(check_trajectory_estimator(EnsembleCrossFitCalibrator())) == 10


@pytest.mark.parametrize(("a", "b", "rises"), [(1, 2, True), (2, -3, False), (1, -1, False)])
def test_a_beta_map_that_rises_is_enough(a, b, rises, rng, monkeypatch):
    falling = TrajectoryArray(np.repeat([0.2, 0.8], 20), np.ones(40, dtype=int))
    y = np.repeat([1, 0], 20)
    y[[3, 30]] = [0, 1]
    beta = SimpleNamespace(a=a, b=b)
    monkeypatch.setattr(BetaCrossFitCalibrator, "_fit_map", lambda self, sample: beta)
    monkeypatch.setattr(EnsembleMap, "__call__", lambda self, values: np.full(len(values), 0.5))
    fitted = EnsembleCrossFitCalibrator(n_half=40).fit(falling, y).full_map_
    assert (fitted.fallback, len(fitted.members)) == (not rises, 3 if rises else 1)
    shares = [1 / 3, 1 / 6, 1 / 2] if rises else [1.0]
    np.testing.assert_allclose(fitted.shares, shares)


@pytest.mark.parametrize(
    ("link", "shares"), [("logit", [1 / 3, 1 / 6, 1 / 2]), ("identity", [0.5, 0.5])]
)
def test_shares_of_members_by_hand(link, shares, rng):
    X, y = latent(rng, 60)
    fitted = EnsembleCrossFitCalibrator(n_half=60, link=link).fit(X, y).full_map_
    np.testing.assert_allclose(fitted.shares, shares)
