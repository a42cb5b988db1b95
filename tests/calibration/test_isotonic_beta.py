"""Isotonic and beta calibration: the same cross-fitting as Platt's, another map."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import any_two_labels, as_forecasts
from trajscore import PlattCrossFitCalibrator, TrajectoryArray, tps_scorer
from trajscore.calibration import BetaCrossFitCalibrator, IsotonicCrossFitCalibrator
from trajscore.metrics import tps_score
from trajscore.testing import check_trajectory_estimator

CALIBRATORS = [IsotonicCrossFitCalibrator(), BetaCrossFitCalibrator()]


def bent(rng, n_runs=2000, a=2.0, b=0.5, c=0.3):
    """Forecasts whose truth is a beta map of them, 3 steps a run."""
    p = rng.uniform(0.02, 0.98, n_runs)
    truth = expit(a * np.log(p) - b * np.log(1 - p) + c)
    y = (rng.random(n_runs) < truth).astype(int)
    return TrajectoryArray(np.repeat(p, 3), np.full(n_runs, 3)), y, truth


def test_beta_finds_its_own_family(rng):
    X, y, truth = bent(rng, 40_000)
    fitted = BetaCrossFitCalibrator(C=1e6).fit(X, y)
    assert (fitted.full_map_.a, fitted.full_map_.b, fitted.full_map_.c) == pytest.approx(
        (2.0, 0.5, 0.3), abs=0.12
    )
    assert np.abs(fitted.transform(X).cells[::3] - truth).max() < 0.03


def test_beta_leaves_out_an_end_that_points_the_wrong_way(rng):
    X, y, _ = bent(rng, 4000, a=2.0, b=-0.8)
    fitted = BetaCrossFitCalibrator().fit(X, y).full_map_
    assert fitted.b == 0
    assert fitted.a > 0
    backwards = BetaCrossFitCalibrator().fit(X, 1 - y).full_map_
    assert (backwards.a, backwards.b) == (0, 0) or min(backwards.a, backwards.b) >= 0
    flat = BetaCrossFitCalibrator().fit([[0.5, 0.5]] * 8, [0, 1] * 4).full_map_
    assert (flat.a, flat.b, flat.c) == (0, 0, 0)


def test_plain_isotonic_is_that_of_scikit_learn(rng):
    X, y, _ = bent(rng, 300)
    ours = IsotonicCrossFitCalibrator(prior=0, weights="uniform").fit(X, y).full_map_
    theirs = IsotonicRegression(out_of_bounds="clip").fit(X.cells[::3], y)
    grid = np.linspace(0, 1, 101)
    expected = np.clip(theirs.predict(grid), 1e-6, 1 - 1e-6)
    np.testing.assert_allclose(ours(grid), expected, rtol=0, atol=1e-6)  # the knots are clipped


def test_prior_keeps_isotonic_away_from_0_and_1(rng):
    X = TrajectoryArray.from_list([[0.1], [0.2], [0.8], [0.9]])
    y = [0, 0, 1, 1]
    with_prior = IsotonicCrossFitCalibrator().fit(X, y).full_map_
    # two failures and half a success below, two successes and half a failure above
    assert with_prior([0.1, 0.9]) == pytest.approx([0.5 / 2.5, 2 / 2.5])
    without = IsotonicCrossFitCalibrator(prior=0).fit(X, y).full_map_
    assert without([0.1, 0.9]) == pytest.approx([1e-6, 1 - 1e-6])


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_fit_transform_is_out_of_fold(calibrator, rng):
    noise = TrajectoryArray(rng.random(400), np.full(200, 2))
    y = rng.integers(0, 2, 200)
    held_out = calibrator.fit_transform(noise, y)
    seen = calibrator.fit(noise, y).transform(noise)
    assert tps_score(y, held_out) < tps_score(y, seen)
    other = y.copy()
    row = 17  # its own outcome does not move a run's own trace, unless it moves the folds
    other[row], swap = 1 - y[row], np.flatnonzero(y != y[row])[0]
    other[swap] = y[row]
    assert calibrator.fit_transform(noise, other).shape == held_out.shape


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_a_bent_signal_is_better_calibrated_than_by_platt(calibrator, rng):
    X, y, _ = bent(rng, 4000, a=4.0, b=0.05, c=1.0)
    platt = tps_score(y, PlattCrossFitCalibrator().fit_transform(X, y))
    assert tps_score(y, calibrator.fit_transform(X, y)) > platt


def test_isotonic_takes_any_rising_signal(rng):
    X, y, _ = bent(rng, 500)
    on_logit = X.with_cells(5 * logit(X.cells) - 3)
    seen, moved = (IsotonicCrossFitCalibrator().fit(Z, y).transform(Z) for Z in (X, on_logit))
    np.testing.assert_allclose(moved.cells, seen.cells, atol=1e-12)
    fit = IsotonicCrossFitCalibrator().fit_transform  # between values seen, it interpolates
    np.testing.assert_allclose(fit(on_logit, y).cells, fit(X, y).cells, atol=2e-3)
    with pytest.raises(ValueError, match="lies outside"):
        BetaCrossFitCalibrator().fit(on_logit, y)


def test_bad_parameters():
    X, y = [[0.1], [0.2], [0.8], [0.9]], [0, 1, 0, 1]
    for calibrator, message in (
        (IsotonicCrossFitCalibrator(prior=-1), "prior must be a number of runs"),
        (BetaCrossFitCalibrator(C=0), "C must be a positive number"),
        (BetaCrossFitCalibrator(censored="drop them"), "censored must be"),
    ):
        with pytest.raises(ValueError, match=message):
            calibrator.fit(X, y)


def test_tps_chooses_among_calibrators(rng):
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    X, y, _ = bent(rng, 1500, a=4.0, b=0.05, c=1.0)
    model = Pipeline([("calibrator", PlattCrossFitCalibrator())])
    grid = {"calibrator": [PlattCrossFitCalibrator(), *CALIBRATORS]}
    search = GridSearchCV(model, grid, scoring=tps_scorer, cv=3).fit(X, y)
    assert not isinstance(search.best_params_["calibrator"], PlattCrossFitCalibrator)


@any_two_labels
class AnyIsotonic(IsotonicCrossFitCalibrator):
    pass


@any_two_labels
class AnyBeta(BetaCrossFitCalibrator):
    """It reads forecasts."""

    def _check_runs(self, X, *, reset):
        return super()._check_runs(as_forecasts(X), reset=reset)


CROSS_FIT = "fit_transform is cross-fitted and so differs from fit().transform(), as documented"


@parametrize_with_checks(
    [AnyIsotonic(), AnyBeta()],
    expected_failed_checks=lambda _: {
        "check_transformer_general": CROSS_FIT,
        "check_transformer_data_not_an_array": CROSS_FIT,
    },
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_public_checks(calibrator):
    assert len(check_trajectory_estimator(calibrator)) == 10


def test_values_that_differ_by_rounding_are_one():
    X = TrajectoryArray.from_list([[one] for one in [0.2, 0.3, 0.3, 0.6] * 5])
    y = np.tile([0, 1, 0, 1], 5)
    rounded = X.with_cells(np.where(y == 1, X.cells * (1 + 1e-13), X.cells))
    assert len(np.unique(rounded.cells)) > len(np.unique(X.cells))
    maps = [IsotonicCrossFitCalibrator().fit(one, y).full_map_ for one in (rounded, X)]
    assert maps[0]([0.3, 0.3 * (1 + 1e-13)]) == pytest.approx(maps[1]([0.3, 0.3]))


def test_beta_takes_probabilities_only():
    signal = [[3.0, 2.0], [5.0, 1.0], [0.1, 0.2], [0.3, 0.4]]
    with pytest.raises(ValueError, match="forecast 3 lies outside"):
        BetaCrossFitCalibrator().fit(signal, [1, 1, 0, 0])
    IsotonicCrossFitCalibrator().fit(signal, [1, 1, 0, 0])
