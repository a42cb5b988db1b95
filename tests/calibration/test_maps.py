"""Platt's, the beta, the isotonic and the ensemble map, against general optimisers and by hand."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline

import trajscore
from any_input import public_classes, reads_forecasts
from judged import evaluate
from known_agent import bent_forecasts
from trajscore import (
    PlattCrossFitCalibrator,
    PrefixForecaster,
    TrajectoryArray,
    calibration,
)
from trajscore.calibration import (
    AliveRate,
    BetaCrossFitCalibrator,
    EnsembleCrossFitCalibrator,
    IsotonicCrossFitCalibrator,
)
from trajscore.core.weights import step_weights
from trajscore.datasets import make_trajectories
from trajscore.metrics import tps_score

CALIBRATORS = [kind for kind in public_classes(calibration) if hasattr(kind, "keyword")]
PAPER = {"weights": "linear_front", "horizon": "own"}


@pytest.fixture(scope="module")
def runs():
    X, y = make_trajectories(80, sharpness=2, bias=0.5, random_state=1, return_X_y=True)
    return TrajectoryArray(X.cells, X.lengths, ids=np.random.default_rng(2).permutation(80)), y


def weights_of(X, how):
    """Step weights, scaled so that those of a run add up to one on average."""
    w = step_weights(X.lengths, **how)
    return w * len(X) / w.sum()


def penalised_fit(X, y, w, C=1.0):
    """Appendix D of the TPS paper solved by a general optimiser."""
    label, raw = np.repeat(y, X.lengths), logit(np.clip(X.cells, 1e-6, 1 - 1e-6))
    center = np.average(raw, weights=w)
    scale = np.sqrt(np.average((raw - center) ** 2, weights=w))
    x = (raw - center) / scale

    def loss(ab):
        z = ab[0] + ab[1] * x
        likelihood = np.sum(w * (label * log_expit(z) + (1 - label) * log_expit(-z)))
        return -likelihood + ab[1] ** 2 / (2 * C)

    return center, scale, minimize(loss, [0, 0], tol=1e-12).x


# ------------------------------------------------------------------ Platt


@pytest.mark.parametrize("how", [{}, PAPER], ids=["early", "paper"])
def test_platt_is_the_penalised_likelihood_of_appendix_d(runs, how):
    X, y = runs
    for C in (0.1, 1.0, 100.0):
        center, scale, (a, b) = penalised_fit(X, y, weights_of(X, how), C)
        fitted = PlattCrossFitCalibrator(C=C, **how).fit(X, y).full_map_
        found = (fitted.center, fitted.scale, fitted.intercept, fitted.slope)
        assert found == pytest.approx((center, scale, a, b), abs=1e-5)
        assert fitted.base_rate == pytest.approx(
            np.average(np.repeat(y, X.lengths), weights=weights_of(X, how))
        )
    # halves by label, sorted by id, alternating
    part = np.empty(len(y), dtype=int)
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        part[rows[np.argsort(X.ids[rows])]] = np.arange(len(rows)) % 2
    calibrator = PlattCrossFitCalibrator(**how)
    out = calibrator.fit_transform(X, y)
    for half in (0, 1):
        others, held_out = X[part != half], X[part == half]
        center, scale, (a, b) = penalised_fit(others, y[part != half], weights_of(others, how))
        z = a + b * (logit(np.clip(held_out.cells, 1e-6, 1 - 1e-6)) - center) / scale
        np.testing.assert_allclose(out[part == half].cells, expit(z), atol=1e-6)
    assert list(calibrator.maps_) == ["A", "B"]  # named after the fold that they are fitted on
    assert calibrator.maps_["A"].n_runs == (part == 0).sum()
    low, high = calibrator.calibrated_range_
    assert (low, high) == (out.cells.min(), out.cells.max())


def test_the_wrong_direction_falls_back_to_the_base_rate(runs):
    X, y = runs
    down = X.with_cells(1 - X.cells)
    rate = np.average(np.repeat(y, X.lengths), weights=step_weights(X.lengths))
    for increasing, wrong, right in ((True, down, X), (False, X, down), (None, down, X)):
        calibrator = PlattCrossFitCalibrator(increasing=increasing).fit(wrong, y)
        assert calibrator.summary()["fallback"].all()
        np.testing.assert_allclose(calibrator.transform(wrong).cells, rate)
        fitted = PlattCrossFitCalibrator(increasing=increasing).fit(right, y)
        assert not fitted.full_map_.fallback
    assert not PlattCrossFitCalibrator(increasing="auto").fit(down, y).full_map_.fallback
    risk = X.with_cells(-3 * X.cells)  # other signals than forecasts may point either way
    assert PlattCrossFitCalibrator(link="identity").fit(risk, y).full_map_.slope < 0
    strict = PlattCrossFitCalibrator(link="identity", increasing=True).fit(risk, y)
    assert strict.full_map_.fallback


def test_the_unit_of_a_signal_does_not_matter(runs):
    X, y = runs
    calibrator = PlattCrossFitCalibrator(link="identity")
    plain = calibrator.fit_transform(X.with_cells(X.cells - 0.5), y)
    for unit in (1e-300, 1e-8, 1e200, 1e307):
        out = calibrator.fit_transform(X.with_cells((X.cells - 0.5) * unit), y)
        np.testing.assert_allclose(out.cells, plain.cells, rtol=1e-8)
        assert not calibrator.summary()["fallback"].any()
        extreme = calibrator.transform(X.with_cells(np.full(len(X.cells), 1e308)))
        assert ((extreme.cells > 0) & (extreme.cells < 1)).all()
    # a run of weight zero does not set it
    cells, weight = X.cells.copy(), np.ones(len(y))
    cells[X.offsets[3] : X.offsets[4]], weight[3] = 1e300, 0
    signal = X.with_cells(cells)
    weighted = calibrator.fit(signal, y, sample_weight=weight).full_map_
    without = PlattCrossFitCalibrator(link="identity").fit(signal[weight > 0], y[weight > 0])
    assert weighted.slope == pytest.approx(without.full_map_.slope)


def test_no_likelihood_is_left_however_many_values_there_are(rng):
    n = 36_000
    p = rng.beta(2, 1, n)
    y = (rng.random(n) < p).astype(int)
    fitted = PlattCrossFitCalibrator().fit(p[:, None], y).full_map_
    x = (logit(np.clip(p, 1e-6, 1 - 1e-6)) - fitted.center) / fitted.scale
    residual = y - expit(fitted.intercept + fitted.slope * x)
    assert [residual.sum(), residual @ x - fitted.slope] == pytest.approx([0, 0], abs=n * 1e-10)
    beta = BetaCrossFitCalibrator().fit(p[:, None], y).full_map_
    assert (y - beta(p)).sum() == pytest.approx(0, abs=n * 1e-10)


def test_separate_outcomes_have_a_steep_map_without_a_warning():
    values, y = np.repeat([[0.2], [0.8]], 9, axis=0), np.repeat([0, 1], 9)
    for kind in (PlattCrossFitCalibrator, BetaCrossFitCalibrator):
        for C in (1e9, np.inf):  # tests turn warnings into errors
            np.testing.assert_allclose(
                kind(C=C).fit(values, y).full_map_(values[:, 0]), y, atol=1e-5
            )


# ------------------------------------------------------------------ beta

P = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
Y = np.array([0, 0, 1, 0, 1, 0, 1, 1])


def test_the_beta_map_is_the_best_of_its_family(rng):
    for C in (1.0, 10.0):
        fitted = BetaCrossFitCalibrator(C=C).fit(P[:, None], Y).full_map_

        def loss(theta, C=C):
            z = theta[0] * np.log(P) - theta[1] * np.log1p(-P) + theta[2]
            misfit = np.logaddexp(0, -z) * Y + np.logaddexp(0, z) * (1 - Y)
            return misfit.sum() + theta[:2] @ theta[:2] / (2 * C)

        bounds = [(0, None), (0, None), (None, None)]
        best = minimize(loss, [1, 1, 0], bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10})
        assert loss(np.array([fitted.a, fitted.b, fitted.c])) == pytest.approx(best.fun, rel=1e-6)
        expected = expit(fitted.a * np.log(P) - fitted.b * np.log(1 - P) + fitted.c)
        np.testing.assert_allclose(fitted(P.reshape(2, 4)), expected.reshape(2, 4), rtol=1e-12)
        np.testing.assert_array_equal(fitted([0, 1]), fitted([1e-6, 1 - 1e-6]))
    assert (fitted.n_runs, fitted.base_rate) == (8, pytest.approx(0.5))
    X, y, truth = bent_forecasts(rng, 40_000)
    fitted = BetaCrossFitCalibrator(C=1e6).fit(X, y)
    of_map = (fitted.full_map_.a, fitted.full_map_.b, fitted.full_map_.c)
    assert of_map == pytest.approx((2.0, 0.5, 0.3), abs=0.12)
    assert np.abs(fitted.transform(X).cells[::3] - truth).max() < 0.03
    logistic = PlattCrossFitCalibrator, BetaCrossFitCalibrator
    platt, beta = (kind(C=1e6).fit_transform(X, y) for kind in logistic)
    assert tps_score(y, beta) > tps_score(y, platt)


def test_the_beta_map_leaves_out_an_end_that_points_the_wrong_way(rng):
    X, y, _ = bent_forecasts(rng, 4000, a=2.0, b=-0.8)
    fitted = BetaCrossFitCalibrator().fit(X, y).full_map_
    assert (fitted.a > 0, fitted.b) == (True, 0)
    backwards = BetaCrossFitCalibrator().fit(P[:, None], (P < 0.35).astype(int)).full_map_
    assert (backwards.a, backwards.b, backwards.c) == (0, 0, pytest.approx(logit(3 / 8)))


# ------------------------------------------------------------------ isotonic


def test_levels_of_the_isotonic_map():
    X = [[value] for value in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)]
    fitted = IsotonicCrossFitCalibrator().fit(X, [0, 1, 0, 1, 1, 1]).full_map_
    # with half a success at the lowest value, and half a failure at the highest
    probabilities = [1 / 3, 0.5, 0.5, 6 / 7, 6 / 7]
    np.testing.assert_allclose(fitted.values, [0.1, 0.2, 0.3, 0.4, 0.6])
    np.testing.assert_allclose(fitted.probabilities, probabilities)
    assert (fitted.n_runs, fitted.base_rate) == (6, pytest.approx(4 / 6))
    # linear between knots, constant beyond them
    between = (probabilities[-3] + probabilities[-2]) / 2
    np.testing.assert_allclose(
        fitted([-1, 0.35, 2]), [probabilities[0], between, probabilities[-1]]
    )


# ------------------------------------------------------------------ ensemble


@pytest.fixture(scope="module")
def latent():
    """Runs of 2 to 8 steps whose forecasts see dimly what decides."""
    rng = np.random.default_rng(0)
    z, lengths = rng.normal(0, 1.2, 300), rng.integers(2, 9, 300)
    seen = np.repeat(z, lengths) + rng.normal(0, 1, lengths.sum())
    return TrajectoryArray(expit(seen).round(2), lengths), (rng.random(300) < expit(z)).astype(int)


@pytest.mark.parametrize(("link", "logistic"), [("logit", [2 / 3, 1 / 3]), ("identity", [1.0])])
def test_the_ensemble_is_the_mean_in_log_odds_of_its_members(link, logistic, latent):
    X, y = latent
    calibrator = EnsembleCrossFitCalibrator(link=link).fit(X, y)
    fitted, free = calibrator.full_map_, calibrator.summary()
    expected = [1 / (1 + (1000 / n) ** (2 / 3)) for n in free["n_runs"]]
    assert free["isotonic_share"].tolist() == pytest.approx(expected)
    shares = [*((1 - expected[-1]) * share for share in logistic), expected[-1]]
    np.testing.assert_allclose(fitted.shares, shares)
    platt = PlattCrossFitCalibrator(link=link, increasing=True)
    alone = [platt, *[BetaCrossFitCalibrator()] * (len(logistic) - 1), IsotonicCrossFitCalibrator()]
    values = np.linspace(0, 1, 41)
    odds = [logit(one.fit(X, y).full_map_(values)) for one in alone]
    np.testing.assert_allclose(logit(fitted(values)), np.average(odds, axis=0, weights=shares))


@pytest.mark.parametrize("link", ["logit", "identity"])
def test_the_ensemble_never_turns_a_signal_round(link, latent):
    X, y = latent
    rising = EnsembleCrossFitCalibrator(link=link).fit(X, y).full_map_
    assert (np.diff(rising(np.linspace(0.01, 0.99, 99))) > 0).all()
    fitted = EnsembleCrossFitCalibrator(link=link).fit(X, 1 - y)
    assert fitted.summary()["fallback"].all()
    np.testing.assert_allclose(fitted.full_map_([0.0, 0.5]), fitted.full_map_.base_rate)
    # a beta map that rises where Platt's falls is enough: few, low values are far from the others
    values = np.r_[np.full(4, 1e-6), np.linspace(0.9, 0.999, 40)][:, None]
    bent = np.r_[[1] * 4, np.arange(40) > 14].astype(int)
    platt = PlattCrossFitCalibrator(increasing=True).fit(values, bent).full_map_
    beta = BetaCrossFitCalibrator().fit(values, bent).full_map_
    assert platt.fallback
    assert beta.b > 0
    assert not EnsembleCrossFitCalibrator().fit(values, bent).full_map_.fallback


def test_outcomes_of_a_fold_do_not_move_its_own_forecasts(latent, rng):
    X, y = latent
    fold = np.arange(len(X)) % 2
    other = np.where(fold == 0, rng.permutation(y), y)
    own = np.repeat(fold == 0, X.lengths)
    for kind in CALIBRATORS:
        first, second = (kind(cv=PredefinedSplit(fold)).fit_transform(X, one) for one in (y, other))
        np.testing.assert_array_equal(first.cells[own], second.cells[own])
        assert (first.cells[~own] != second.cells[~own]).any()


# ------------------------------------------------------------------ what all have in common


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_a_signal_of_one_value_gets_the_base_rate(kind):
    for value in (0.0, 0.3, 1.0):
        X, y = np.full((8, 2), value), [1, 0, 0, 0] * 2
        # of two successes among eight runs, and half a run at each end for a rising map
        rate = 2.5 / 9 if kind is IsotonicCrossFitCalibrator else 0.25
        np.testing.assert_allclose(kind().fit(X, y).transform(X), rate, atol=1e-9)
    for link in ("logit", "identity"):
        assert PlattCrossFitCalibrator(link=link).fit(X, y).full_map_.fallback


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_weights_are_counts(runs, kind, rng):
    X, y = runs
    weight = rng.integers(0, 3, len(y))
    groups = rng.integers(0, 11, len(y))
    weight[groups == 4] = 0
    repeated, kept = np.repeat(np.arange(len(y)), weight), weight > 0
    grid = np.linspace(0.02, 0.98, 9)
    for cv in (2, 3):
        fits = [
            kind(cv=cv).fit(X[rows], y[rows], sample_weight=sw, groups=groups[rows])
            for rows, sw in ((np.arange(80), weight), (repeated, None), (kept, weight[kept]))
        ]
        for name in "ABC"[:cv]:
            maps = [fit.maps_[name](grid) for fit in fits]
            np.testing.assert_allclose(maps[1:], [maps[0]] * 2, atol=1e-8)
        np.testing.assert_allclose(fits[0].full_map_(grid), fits[1].full_map_(grid), atol=1e-8)
        assert fits[0].calibrated_range_ == pytest.approx(fits[2].calibrated_range_)
        ends = [fit.summary().loc["all", ["low", "high"]].tolist() for fit in fits]
        assert ends[0] == pytest.approx(ends[2])
    three = kind(cv=3)  # of more than two, maps are named after the fold that they are for
    out = three.fit_transform(X, y)
    held_out = np.flatnonzero(out.meta["cross_fit_fold"] == 0)
    np.testing.assert_array_equal(out[held_out].cells, three.maps_["A"](X[held_out].cells))
    many = kind(cv=28).fit(X, y).maps_
    assert list(many) == [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "fold27", "fold28"]


def test_what_censored_runs_are(runs):
    X, y = runs
    codes = np.where(np.arange(80) < 10, -1, y)

    def fit(codes, q_z=None, X=X, **how):
        return PlattCrossFitCalibrator(**how).fit(X, codes, q_z=q_z)

    failure, zeros = fit(codes), fit(np.maximum(codes, 0))
    assert failure.full_map_ == zeros.full_map_
    assert (failure.n_censored_, failure.n_dropped_) == (10, 0)
    drop, without = fit(codes, censored="drop"), fit(y[10:], X=X[10:])
    assert drop.full_map_.slope == pytest.approx(without.full_map_.slope, abs=1e-8)
    assert (drop.n_censored_, drop.n_dropped_) == (10, 10)
    assert drop.full_map_.n_runs == drop.summary().loc["all", "n_runs"] == 70
    soft = fit(codes, np.where(codes < 0, y, np.nan), censored="q_z")
    assert soft.full_map_.slope == pytest.approx(fit(y).full_map_.slope, abs=1e-8)
    half = PlattCrossFitCalibrator().fit(X, np.where(codes < 0, 0.5, codes))
    assert fit(codes, 0.5, censored="q_z").full_map_ == half.full_map_
    for q_z, censored, words in (
        (None, "q_z", "q_z"),
        (0.5, "failure", "q_z.*'failure'"),
        (None, "ignore", "censored .*'ignore'"),
    ):
        with pytest.raises(ValueError, match=words):
            fit(codes, q_z, censored=censored)


def test_bad_parameters_and_outcomes(runs):
    X, y = runs
    few = [[0.1], [0.2], [0.3], [0.4]]
    for kind, how, words in (
        (PlattCrossFitCalibrator, {"C": 0}, "C .*0"),
        (PlattCrossFitCalibrator, {"C": "a"}, "C .*'a'"),
        (PlattCrossFitCalibrator, {"link": "probit"}, "link .*'probit'"),
        (PlattCrossFitCalibrator, {"increasing": "yes"}, "increasing .*'yes'"),
        (BetaCrossFitCalibrator, {"C": -1.0}, "C .*-1"),
    ):
        with pytest.raises(ValueError, match=words):
            kind(**how).fit(X, y)
    for outcomes, words in (
        ([1, 1, 1, 1], "all runs are successes"),
        ([1, 0, 0, 0], "fold are failures.*cv"),
        ([0, 1, 1, 1], "fold are successes.*cv"),
    ):
        for kind in CALIBRATORS:
            with pytest.raises(ValueError, match=words):
                kind().fit(few, outcomes)
    with pytest.raises(ValueError, match="no training run"):
        PlattCrossFitCalibrator().fit(X[[]], y[[]])
    for kind in (BetaCrossFitCalibrator, EnsembleCrossFitCalibrator, PlattCrossFitCalibrator):
        with pytest.raises(ValueError, match=r"forecast 3 .*\[0, 1\]"):
            kind().fit([[3.0, 2.0], [5.0, 1.0], [0.1, 0.2], [0.3, 0.4]], [1, 1, 0, 0])


def noisy_runs(n_runs, seed):
    """Successes end after 1 to 10 steps, failures after 11 to 30; the truth, with noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_runs)
    lengths = np.where(y == 1, rng.integers(1, 11, n_runs), rng.integers(11, 31, n_runs))
    steps = np.concatenate([np.arange(1, n + 1) for n in lengths])
    going = np.maximum(11 - steps, 0) / 10  # share of the successes that are still going
    odds = logit(np.clip(going / (going + 1), 1e-4, 1 - 1e-4))
    return TrajectoryArray(expit(odds + rng.normal(size=len(odds))), lengths), y


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_forecasts_state_what_happens_where_length_tells(kind):
    X, y = noisy_runs(2000, 0)
    won = np.repeat(y, X.lengths)

    def stated_and_happened(**how):
        p = kind(**how).fit_transform(X, y).cells
        parts = np.array_split(np.argsort(p), 10)
        return p.mean(), np.array([[p[part].mean(), won[part].mean()] for part in parts])

    stated, tenths = stated_and_happened()
    assert abs(stated - won.mean()) < 0.03
    assert np.abs(tenths[:, 0] - tenths[:, 1]).max() < 0.12
    # by the convention of the paper they lean towards how short runs end
    stated, tenths = stated_and_happened(**PAPER)
    assert stated > won.mean() + 0.08
    assert tenths[-1, 0] > tenths[-1, 1] + 0.2


# ------------------------------------------------------------------ their names, and the last step


def test_names_of_calibrators(runs):
    X, y = runs
    signal = X.with_cells(3 * X.cells)
    named = {kind.keyword: kind for kind in CALIBRATORS if kind.keyword}
    assert named.items() >= {
        ("auto", EnsembleCrossFitCalibrator), ("platt", PlattCrossFitCalibrator),
        ("isotonic", IsotonicCrossFitCalibrator), ("beta", BetaCrossFitCalibrator),
    }  # fmt: skip
    for name, kind in named.items():
        known = {"link": "identity", "increasing": True}
        for_signals = {of: known[of] for of in kind().get_params() if of in known}
        for given, how in ((X, {}), (signal, for_signals)):
            options = {"calibrator": name, "weights": "uniform", "intervals": "influence"}
            if given is signal and reads_forecasts(kind(**how)):
                with pytest.raises(ValueError, match=f"{kind.__name__} .*calibrator='auto'"):
                    evaluate(given, y, **options)
                continue
            found = evaluate(given, y, **options).traces[("forecast", "recalibrated")]
            expected = kind(weights="uniform", **how).fit_transform(given, y)
            np.testing.assert_allclose(found.cells, expected[np.argsort(X.ids)].cells, rtol=1e-9)
    for calibrator, words in (
        ("spline", "calibrator .*'auto'.*'spline'"),
        (PlattCrossFitCalibrator, r"calibrator .*PlattCrossFitCalibrator\(\)"),
        (3, "calibrator .*3"),
        # a wrong parameter is the user's, and no property of the runs
        (PlattCrossFitCalibrator(C=0), r"C must be a number in \(0.*got 0"),
        (BetaCrossFitCalibrator(cv=1), "cv must be"),
        (IsotonicCrossFitCalibrator(weights="late"), "'late'"),
        (EnsembleCrossFitCalibrator(link="probit"), "link must be"),
        (PlattCrossFitCalibrator(censored="success"), "censored must be"),
        (make_pipeline(AliveRate(prior=0), PlattCrossFitCalibrator()), "prior must be"),
        (PrefixForecaster(end="step"), "pooled=True"),
        (PrefixForecaster(LogisticRegression(C=-1)), "'C' parameter"),
    ):
        with pytest.raises(ValueError, match=words):
            evaluate(X, y, calibrator=calibrator)
    few = evaluate(
        X[:3], [0, 1, 1], calibrator=PlattCrossFitCalibrator(cv=3), intervals="influence"
    )
    assert ("forecast", "recalibrated") not in few.traces
    with pytest.raises(ValueError, match="calibrator must be") as unknown:
        evaluate(X, y, calibrator="")
    assert re.findall(r"'(\w+)'", str(unknown.value)) == sorted(named)
    classes = dict(re.findall(r'"(\w+)"\s+\(`(\w+)`', trajscore.evaluate.__doc__))
    assert classes == {name: named[name].__name__ for name in ("auto", "platt")}


def test_a_class_that_is_not_public_has_no_name(runs):
    class Own(IsotonicCrossFitCalibrator):
        keyword = "own"

    with pytest.raises(ValueError, match="'platt', a forecaster or None, got 'own'"):
        evaluate(*runs, calibrator="own")
