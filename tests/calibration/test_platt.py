import operator

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedGroupKFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import CROSS_FIT_CHECKS, any_two_labels
from trajscore import PlattCrossFitCalibrator, TrajectoryArray
from trajscore.calibration import BetaCrossFitCalibrator, _platt
from trajscore.core.weights import step_weights
from trajscore.datasets import make_trajectories
from trajscore.testing._estimator_checks import check_trajectory_estimator


@pytest.fixture
def runs():
    X, y = make_trajectories(80, sharpness=2, bias=0.5, random_state=1, return_X_y=True)
    ids = np.random.default_rng(2).permutation(80)
    return TrajectoryArray(X.cells, X.lengths, ids=ids), y


PAPER = {"weights": "linear_front", "horizon": "own"}


def early(X):
    """1/sqrt(t), scaled so that the weights of a run add up to one on average."""
    w = np.concatenate([1 / np.sqrt(np.arange(1, n + 1)) for n in X.lengths])
    return w * len(X) / w.sum()


def published(X):
    """Weights that fall in a line, and add up to one over each run."""
    return np.concatenate([np.arange(n, 0, -1) * 2 / (n * (n + 1)) for n in X.lengths])


CONVENTIONS = [({}, early), (PAPER, published)]


def penalised_fit(X, y, w, C=1.0):
    """Appendix D solved by a general optimiser."""
    label = np.repeat(y, X.lengths)
    raw = logit(np.clip(X.cells, 1e-6, 1 - 1e-6))
    center = np.average(raw, weights=w)
    scale = np.sqrt(np.average((raw - center) ** 2, weights=w))
    x = (raw - center) / scale

    def loss(ab):
        z = ab[0] + ab[1] * x
        return -np.sum(w * (label * log_expit(z) + (1 - label) * log_expit(-z))) + ab[1] ** 2 / (
            2 * C
        )

    best = minimize(loss, [0, 0], tol=1e-12)
    return center, scale, best.x


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(("how", "weights"), CONVENTIONS)
def test_is_the_penalised_likelihood_of_appendix_d(runs, how, weights, C):
    X, y = runs
    center, scale, (a, b) = penalised_fit(X, y, weights(X), C)
    fitted = PlattCrossFitCalibrator(C=C, **how).fit(X, y).full_map_
    assert fitted.center == pytest.approx(center)
    assert fitted.scale == pytest.approx(scale)
    assert fitted.intercept == pytest.approx(a, abs=1e-5)
    assert fitted.slope == pytest.approx(b, abs=1e-5)


@pytest.mark.parametrize(("how", "weights"), CONVENTIONS)
def test_halves_by_label_sorted_by_id_alternating(runs, how, weights):
    X, y = runs
    part = np.empty(len(y), dtype=int)
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        part[rows[np.argsort(X.ids[rows])]] = np.arange(len(rows)) % 2
    out = PlattCrossFitCalibrator(**how).fit_transform(X, y)
    for half in (0, 1):
        others = X[part != half]
        center, scale, (a, b) = penalised_fit(others, y[part != half], weights(others))
        held_out = X[part == half]
        expected = expit(a + b * (logit(np.clip(held_out.cells, 1e-6, 1 - 1e-6)) - center) / scale)
        np.testing.assert_allclose(out[part == half].cells, expected, atol=1e-6)
    maps = PlattCrossFitCalibrator().fit(X, y).maps_
    assert list(maps) == ["A", "B"]
    assert maps["A"].n_runs == (part == 0).sum()


def test_row_order_does_not_matter_at_all(runs, rng):
    X, y = runs
    order = rng.permutation(len(y))
    one = PlattCrossFitCalibrator().fit_transform(X, y)
    other = PlattCrossFitCalibrator().fit_transform(X[order], y[order])
    assert other == one[order]


def test_other_signals_than_forecasts_may_point_either_way(runs):
    X, y = runs
    risk = X.with_cells(-3 * X.cells)
    calibrator = PlattCrossFitCalibrator(link="identity").fit(risk, y)
    assert calibrator.full_map_.slope < 0
    strict = PlattCrossFitCalibrator(link="identity", increasing=True).fit(risk, y)
    assert strict.full_map_.fallback
    forecasts = PlattCrossFitCalibrator().fit(X.with_cells(1 - X.cells), y)
    assert forecasts.full_map_.fallback


@pytest.mark.parametrize("increasing", [True, False])
def test_the_wrong_direction_falls_back_to_the_base_rate(runs, increasing):
    X, y = runs
    wrong = X.with_cells(1 - X.cells) if increasing else X
    calibrator = PlattCrossFitCalibrator(increasing=increasing).fit(wrong, y)
    assert calibrator.full_map_.fallback
    assert calibrator.summary()["fallback"].all()
    rate = np.average(np.repeat(y, X.lengths), weights=step_weights(X.lengths))
    np.testing.assert_allclose(calibrator.transform(wrong).cells, rate)
    auto = PlattCrossFitCalibrator(increasing="auto").fit(wrong, y)
    assert not auto.full_map_.fallback


def test_any_real_signal_with_the_identity_link(runs):
    X, y = runs
    signal = X.with_cells(100 * X.cells - 300)
    out = PlattCrossFitCalibrator(link="identity").fit_transform(signal, y)
    assert ((out.cells > 0) & (out.cells < 1)).all()
    with pytest.raises(ValueError, match=r'outside \[0, 1\].*link="identity"'):
        PlattCrossFitCalibrator().fit(signal, y)


def test_a_constant_signal_gives_the_base_rate():
    X = TrajectoryArray.from_list([[0.9, 0.9]] * 20)
    y = (np.arange(20) < 6).astype(int)
    calibrator = PlattCrossFitCalibrator().fit(X, y)
    np.testing.assert_allclose(calibrator.transform(X).cells, 0.3, atol=1e-9)


def test_weight_zero_is_removed_and_weight_two_is_twice(runs):
    X, y = runs
    weight = np.ones(len(y))
    weight[[3, 8]] = 0
    weight[[4, 9]] = 2
    kept = np.r_[np.flatnonzero(weight), [4, 9]]
    weighted = PlattCrossFitCalibrator().fit(X, y, sample_weight=weight)
    repeated = PlattCrossFitCalibrator().fit(X[kept], y[kept])
    for name in ("A", "B"):
        assert weighted.maps_[name].slope == pytest.approx(repeated.maps_[name].slope, abs=1e-8)
    np.testing.assert_allclose(weighted.transform(X).cells, repeated.transform(X).cells, atol=1e-8)


def test_what_censored_runs_are(runs):
    X, y = runs
    codes = y.copy()
    codes[:10] = -1
    failure = PlattCrossFitCalibrator().fit(X, codes)
    zeros = PlattCrossFitCalibrator().fit(X, np.where(codes == -1, 0, codes))
    assert failure.full_map_.slope == zeros.full_map_.slope
    assert failure.n_censored_ == 10
    drop = PlattCrossFitCalibrator(censored="drop").fit(X, codes)
    without = PlattCrossFitCalibrator().fit(X[10:], y[10:])
    assert drop.full_map_.slope == pytest.approx(without.full_map_.slope, abs=1e-8)
    assert drop.n_dropped_ == 10
    truth = np.full(len(y), np.nan)
    truth[:10] = y[:10]
    soft = PlattCrossFitCalibrator(censored="q_z").fit(X, codes, q_z=truth)
    full = PlattCrossFitCalibrator().fit(X, y)
    assert soft.full_map_.slope == pytest.approx(full.full_map_.slope, abs=1e-8)
    with pytest.raises(ValueError, match="needs q_z"):
        PlattCrossFitCalibrator(censored="q_z").fit(X, codes)
    with pytest.raises(ValueError, match="read only with"):
        PlattCrossFitCalibrator().fit(X, codes, q_z=0.5)


def test_groups_stay_in_one_fold(runs):
    X, y = runs
    groups = np.arange(len(y)) // 4
    calibrator = PlattCrossFitCalibrator(cv=3)
    out = calibrator.fit_transform(X, y, groups=groups)
    order = np.argsort(X.ids)
    splits = StratifiedGroupKFold(3).split(X[order], y[order], groups[order])
    for k, (_, test) in enumerate(splits):
        rows = order[test]
        fitted = calibrator.maps_["ABC"[k]]
        np.testing.assert_array_equal(out[rows].cells, fitted(X[rows].cells))


def test_any_partition_of_runs_but_no_other_splitter(runs):
    from sklearn.model_selection import ShuffleSplit

    X, y = runs
    out = PlattCrossFitCalibrator(cv=KFold(4)).fit_transform(X, y)
    assert out.shape == X.shape
    with pytest.raises(ValueError, match="test fold"):
        PlattCrossFitCalibrator(cv=ShuffleSplit(2)).fit(X, y)


def test_frozen_and_cloned(runs):
    X, y = runs
    fitted = PlattCrossFitCalibrator().fit(X, y)
    frozen = FrozenEstimator(fitted).fit(X[:5], y[:5])
    assert frozen.transform(X) == fitted.transform(X)
    assert clone(fitted).get_params() == fitted.get_params()


def test_a_plain_array_stays_one():
    X, y = np.array([[0.9, 0.8], [0.7, np.nan], [0.2, 0.3], [0.4, 0.1]]), [1, 1, 0, 0]
    out = PlattCrossFitCalibrator().fit_transform(X, y)
    assert isinstance(out, np.ndarray)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(X))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0}, "C must be a positive number"),
        ({"C": "a"}, "C must be a positive number, got 'a'"),
        ({"link": "probit"}, "link must be"),
        ({"link": np.array(["logit"] * 2)}, "link must be 'logit' or 'identity'"),
        ({"censored": "ignore"}, "censored must be"),
        ({"increasing": "yes"}, "increasing must be"),
        ({"cv": 1}, "cv must be at least 2"),
        ({"weights": "front"}, "unknown weights"),
    ],
)
def test_bad_parameters(runs, params, message):
    with pytest.raises(ValueError, match=message):
        PlattCrossFitCalibrator(**params).fit(*runs)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1, 1], "all runs succeeded; calibration needs successes and failures"),
        ([0, 0, 0, 0], "all runs failed; calibration needs successes and failures"),
        ([1, 0, 0, 0], "in every fold"),
    ],
)
def test_one_class_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        PlattCrossFitCalibrator().fit([[0.1], [0.2], [0.3], [0.4]], y)


def test_other_channels_after_fit_are_refused(runs):
    X, y = runs
    both = TrajectoryArray.stack([X, X])
    with pytest.raises(ValueError, match="2 channels"):
        PlattCrossFitCalibrator().fit(X, y).transform(both)


def test_public_checks():
    assert len(check_trajectory_estimator(PlattCrossFitCalibrator())) == 10
    assert len(check_trajectory_estimator(PlattCrossFitCalibrator(link="identity", cv=3))) == 10


@any_two_labels
class AnyPlatt(PlattCrossFitCalibrator):
    pass


@parametrize_with_checks(
    [AnyPlatt(link="identity")],
    expected_failed_checks=lambda _: CROSS_FIT_CHECKS,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


def test_too_few_groups(runs):
    X, y = runs
    with pytest.raises(ValueError, match="there are 1 groups of runs, too few for 2 folds"):
        PlattCrossFitCalibrator().fit(X, y, groups=np.zeros(len(y)))


def test_splits_mean_the_rows_as_they_are_given(runs):
    X, y = runs  # their ids are in another order than the rows
    half = np.arange(len(y)) >= len(y) // 2
    out = PlattCrossFitCalibrator(cv=PredefinedSplit(half)).fit_transform(X, y)
    for part in (half, ~half):
        fitted = PlattCrossFitCalibrator().fit(X[~part], y[~part]).full_map_
        np.testing.assert_allclose(out[part].cells, fitted(X[part].cells), rtol=1e-9)
    splits = [(np.flatnonzero(half), np.flatnonzero(~half)), (~half, half)]
    assert PlattCrossFitCalibrator(cv=splits).fit_transform(X, y).cells.tolist() == pytest.approx(
        out.cells.tolist()
    )


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (
            [(range(10), range(40, 80)), (range(40, 80), range(40))],
            "split 0 of cv has row 10 in ne",
        ),
        ([(range(80), range(40)), (range(40), range(40, 80))], "split 0 of cv has row 0 in both"),
        ([(range(40), range(40, 99))], "not among the 80 runs"),
        (None, "cv must be a whole number, at least 2, or a splitter, got None"),
    ],
)
def test_splits_that_are_no_partition(runs, splits, message):
    cv = splits and [tuple(map(np.array, split)) for split in splits]
    with pytest.raises(ValueError, match=message):
        PlattCrossFitCalibrator(cv=cv).fit(*runs)


@pytest.mark.parametrize("cv", [2, 3])
def test_weights_with_groups_are_repetitions(runs, cv, rng):
    X, y = runs
    weight = rng.integers(0, 3, len(y))
    groups = rng.integers(0, 11, len(y))
    weight[groups == 4] = 0
    repeated, kept = np.repeat(np.arange(len(y)), weight), weight > 0
    fits = [
        PlattCrossFitCalibrator(cv=cv).fit(X[rows], y[rows], sample_weight=sw, groups=groups[rows])
        for rows, sw in (
            (np.arange(len(y)), weight),
            (repeated, None),
            (kept, weight[kept]),
        )
    ]
    for other in fits[1:]:
        for name in ("all", *"ABC"[:cv]):
            slopes = [fit.summary().loc[name, "slope"] for fit in (fits[0], other)]
            assert slopes[0] == pytest.approx(slopes[1], abs=1e-8)
    out = fits[0].fit_transform(X, y, sample_weight=weight, groups=groups)
    assert ((out.cells > 0) & (out.cells < 1)).all()


@pytest.mark.parametrize("unit", [1e-300, 1e-8, 1.0, 1e200, 1e307])
def test_the_unit_of_a_signal_does_not_matter(runs, unit):
    X, y = runs
    signal = X.with_cells((X.cells - 0.5) * unit)
    calibrator = PlattCrossFitCalibrator(link="identity")
    plain = calibrator.fit_transform(X.with_cells(X.cells - 0.5), y)
    out = calibrator.fit_transform(signal, y)
    np.testing.assert_allclose(out.cells, plain.cells, rtol=1e-8)
    assert not calibrator.summary()["fallback"].any()
    extreme = calibrator.transform(X.with_cells(np.full(len(X.cells), 1e308)))
    assert ((extreme.cells > 0) & (extreme.cells < 1)).all()


def test_a_run_of_weight_zero_does_not_set_the_unit(runs):
    X, y = runs
    cells = X.cells.copy()
    cells[X.offsets[3] : X.offsets[4]] = 1e300
    weight = np.ones(len(y))
    weight[3] = 0
    signal = X.with_cells(cells)
    weighted = PlattCrossFitCalibrator(link="identity").fit(signal, y, sample_weight=weight)
    without = PlattCrossFitCalibrator(link="identity").fit(signal[weight > 0], y[weight > 0])
    assert not weighted.full_map_.fallback
    assert weighted.full_map_.slope == pytest.approx(without.full_map_.slope)


@pytest.mark.parametrize("value", [0.0, 0.9])
@pytest.mark.parametrize("link", ["logit", "identity"])
def test_a_signal_that_does_not_vary_is_flagged(value, link):
    X = TrajectoryArray.from_list([[value, value]] * 20)
    y = (np.arange(20) < 6).astype(int)
    calibrator = PlattCrossFitCalibrator(link=link).fit(X, y)
    assert calibrator.summary()["fallback"].all()
    np.testing.assert_allclose(calibrator.transform(X).cells, 0.3)


def test_as_many_maps_as_folds_or_an_error():
    X = TrajectoryArray.from_list([[0.1 * k] for k in range(1, 9)])
    y = [0, 1, 0, 1, 0, 1, 0, 1]
    assert len(PlattCrossFitCalibrator(cv=4).fit(X, y).maps_) == 4
    with pytest.raises(ValueError, match=r"cv = 5 is more than .* successes \(4\) and of fail"):
        PlattCrossFitCalibrator(cv=5).fit(X, y)
    # runs of weight zero do not fill a fold
    with pytest.raises(ValueError, match=r"cv = 4 is more than .* successes \(3\)"):
        PlattCrossFitCalibrator(cv=4).fit(X, y, sample_weight=[1, 1, 1, 1, 1, 1, 0, 0])
    # a fold without failures is no harm, as its map is fitted on the others
    assert len(PlattCrossFitCalibrator(cv=5).fit(X, [1, 1, 1, 1, 1, 1, 0, 0]).maps_) == 5


def test_equal_ids_are_said_to_be_the_cause():
    X = TrajectoryArray.from_list([[0.5]] * 101, ids=["x"] * 101)
    with pytest.raises(ValueError, match="the 101 runs have 1 different ids, too few for 2 folds"):
        PlattCrossFitCalibrator().fit(X, np.arange(101) % 2)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(100), "groups must be 80 labels"),
        (np.arange(4), "groups must be 80 labels"),
        ([None, *range(79)], "row 0: groups is missing"),
        ([np.nan, *range(79)], "row 0: groups is missing"),
    ],
)
def test_groups_name_one_for_each_run(runs, groups, message):
    with pytest.raises(ValueError, match=message):
        PlattCrossFitCalibrator().fit(*runs, groups=groups)


def test_ranges_leave_runs_of_weight_zero_out(runs):
    X, y = runs
    weight = np.ones(len(y))
    weight[np.argmax(np.maximum.reduceat(X.cells, X.offsets[:-1]))] = 0
    kept = weight > 0
    weighted = PlattCrossFitCalibrator().fit(X, y, sample_weight=weight)
    without = PlattCrossFitCalibrator().fit(X[kept], y[kept])
    assert weighted.calibrated_range_ == pytest.approx(without.calibrated_range_)
    assert weighted.summary().loc["all", "high"] == pytest.approx(
        without.summary().loc["all", "high"]
    )


def test_the_output_has_the_name_that_is_claimed(runs):
    X, y = runs
    named = X.with_cells(X.cells, channels=["judge"])
    for runs_, name in ((X, "probability"), (named, "judge")):
        calibrator = PlattCrossFitCalibrator()
        out = calibrator.fit_transform(runs_, y)
        assert out.channels == calibrator.transform(runs_).channels == (name,)
        assert calibrator.get_feature_names_out().tolist() == [name]
    scores = TrajectoryArray.stack([named, named], channels=["judge", "verbal"])
    pick = [FunctionTransformer(operator.itemgetter(name)) for name in scores.channels]
    union = FeatureUnion(
        [(str(k), make_pipeline(one, PlattCrossFitCalibrator())) for k, one in enumerate(pick)],
        verbose_feature_names_out=False,
    )
    assert union.fit_transform(scores, y).channels == ("judge", "verbal")


def test_no_runs(runs):
    X, y = runs
    with pytest.raises(ValueError, match="there are no runs to calibrate on"):
        PlattCrossFitCalibrator().fit(X[[]], y[[]])


@pytest.mark.parametrize("calibrator", [PlattCrossFitCalibrator(), BetaCrossFitCalibrator()])
def test_many_distinct_values_are_merged_without_a_trace(calibrator, rng, monkeypatch):
    p = rng.beta(2, 1, 50_000)
    X = TrajectoryArray(p, np.full(10_000, 5))
    y = (rng.random(10_000) < p[::5]).astype(int)
    merged = calibrator.fit(X, y).full_map_(X.cells)
    monkeypatch.setattr(_platt, "_MANY", 10**9)
    each = calibrator.fit(X, y).full_map_(X.cells)
    assert 0 < abs(merged - each).max() < 1e-6


@pytest.mark.parametrize(("censored", "n_dropped"), [("failure", 3), ("drop", 7)])
def test_runs_that_do_not_count_are_counted(censored, n_dropped):
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 2)), np.tile([1, 0], 15)
    y[:4] = -1
    weight = np.r_[np.ones(27), np.zeros(3)]
    calibrator = PlattCrossFitCalibrator(censored=censored).fit(X, y, sample_weight=weight)
    assert (calibrator.n_censored_, calibrator.n_dropped_) == (4, n_dropped)
    assert calibrator.summary().loc["all", "n_runs"] == 30 - n_dropped
