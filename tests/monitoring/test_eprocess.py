import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from any_input import any_two_labels
from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    PrefixForecaster,
    tps_scorer,
)
from trajscore import TrajectoryArray as Runs
from trajscore.datasets import make_trajectories
from trajscore.monitoring import LearnThenTestStop

ALPHAS = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]

# power and false alarms of the published package on HotpotQA, at each alpha
PUBLISHED_VILLE = (
    ".2246/.0043 .3130/.0080 .3934/.0252 .4831/.0608 .5828/.1229 .7020/.1787 .7679/.2518"
)
PUBLISHED_PAC = (
    ".3043/.0074 .4680/.0436 .5514/.0909 .7077/.1959 .7836/.2887 .7886/.3268 .8683/.4926"
)
PUBLISHED_THRESHOLDS = "19.173 5.890 3.853 2.385 1.783 1.599 1.233"


@pytest.fixture(scope="module")
def split(hotpotqa):
    """HotpotQA with the published split: rows to calibrate on and to test on, ids in file order."""
    X, y = hotpotqa
    chosen = np.random.default_rng(42).choice(X.ids, int(0.8 * len(X)), replace=False)
    is_calibration = np.isin(X.ids, chosen)
    return X, y, np.flatnonzero(is_calibration), np.flatnonzero(~is_calibration)


def shown(report):
    pairs = zip(report["power"], report["false_alarm_rate"], strict=True)
    return " ".join(f"{p:.4f}/{f:.4f}".replace("0.", ".") for p, f in pairs)


def test_published_ville(split):
    X, y, calibration, test = split
    process = DensityRatioEProcess(PrefixForecaster(), threshold="ville", alpha=ALPHAS)
    process.fit(X[calibration], y[calibration])
    assert shown(process.report(X[test], y[test])) == PUBLISHED_VILLE


def test_published_pac_with_an_explicit_split(split):
    X, y, calibration, test = split
    n = len(calibration)
    ratio_ids = np.random.default_rng(42).choice(X.ids[calibration], int(0.5 * n), replace=False)
    held_out = ~np.isin(X.ids[calibration], ratio_ids)
    process = DensityRatioEProcess(PrefixForecaster(), threshold="pac", alpha=ALPHAS, delta=0.05)
    process.fit(X[calibration], y[calibration], calibration=held_out)
    assert " ".join(f"{c:.3f}" for c in process.thresholds_) == PUBLISHED_THRESHOLDS
    assert shown(process.report(X[test], y[test])) == PUBLISHED_PAC
    rows = clone(process)
    rows.fit(X[calibration], y[calibration], calibration=np.flatnonzero(held_out))
    pd.testing.assert_series_equal(rows.thresholds_, process.thresholds_)


def test_m_is_the_odds_of_failure_against_the_base_odds():
    X, y = make_trajectories(300, lengths=(1, 6), random_state=0, return_X_y=True)
    process = DensityRatioEProcess(threshold="ville").fit(X, y)
    forecaster = PrefixForecaster(features="running", pooled=True, end="step").fit(X, y)
    F, rate = forecaster.transform(X).cells, y.mean()
    np.testing.assert_allclose(
        np.exp(process.transform(X).cells), (1 - F) / F * rate / (1 - rate), rtol=1e-12
    )


def test_decisions_agree_with_each_other():
    X, y = make_trajectories(600, lengths=(1, 8), random_state=0, return_X_y=True)
    process = DensityRatioEProcess(alpha=[0.1, 0.3], threshold="conformal").fit(X[:300], y[:300])
    new = X[300:]
    for alpha in (0.1, 0.3):
        steps, log_c = process.stopping_steps(new, alpha), np.log(process.thresholds_[alpha])
        for run, step in zip(process.transform(new), steps, strict=True):
            above = np.flatnonzero(run > log_c)
            assert step == (above[0] + 1 if len(above) else 0)
        assert (process.predict(new, alpha) == (steps == 0)).all()
        assert ((process.decision_function(new, alpha) < 0) == (steps > 0)).all()
    report = process.report(new, y[300:])
    flagged = process.stopping_steps(new) > 0
    assert report.loc[0.1, "power"] == flagged[y[300:] == 0].mean() == process.score(new, y[300:])
    assert report.loc[0.1, "false_alarm_rate"] == flagged[y[300:] == 1].mean()
    row = report.loc[0.1]
    assert row["power_low"] < row["power"] < row["power_high"]
    stops = process.stopping_steps(new)
    saved = np.where(stops > 0, new.lengths - stops, 0)
    failed = y[300:] == 0
    assert row["steps_saved_overall"] == pytest.approx(saved.sum() / new.lengths.sum())
    assert row["steps_saved"] == pytest.approx((saved / new.lengths)[failed].mean())
    assert row["power_before_end"] == (saved[failed] > 0).mean() < row["power"]
    assert row["power_longer"] == (stops[failed & (new.lengths > 1)] > 0).mean()
    assert row["mean_stopping_step"] == stops[stops > 0].mean()


def test_rows_in_any_order():
    X, y = make_trajectories(400, lengths=(1, 6), random_state=1, return_X_y=True)
    order = np.random.default_rng(0).permutation(400)
    for options in (
        {"threshold": "pac", "alpha": 0.2},
        {"threshold": "conformal", "ties": "randomized"},
        {"threshold": "conformal", "cross_fit": 3},
        {"threshold": "randomized_ville"},
    ):
        one = DensityRatioEProcess(**options).fit(X, y)
        other = DensityRatioEProcess(**options).fit(X[order], y[order])
        assert (one.stopping_steps(X)[order] == other.stopping_steps(X[order])).all()


@pytest.mark.parametrize(
    "options", [{"threshold": "conformal"}, {"threshold": "conformal", "cross_fit": 3}], ids=str
)
def test_a_search_finds_the_same_in_any_order_of_rows(options):
    X, y = make_trajectories(200, lengths=3, random_state=0, return_X_y=True)
    order = np.random.default_rng(1).permutation(len(X))
    grid = {"features": ["prefix", "summary", "last"]}
    search = GridSearchCV(PrefixForecaster(), grid, scoring=tps_scorer, cv=3)
    one = DensityRatioEProcess(search, alpha=0.1, **options).fit(X, y)
    other = DensityRatioEProcess(search, alpha=0.1, **options).fit(X[order], y[order])
    for name in ("mean_test_score", "std_test_score"):  # folds follow the ids, not the rows
        np.testing.assert_array_equal(
            one.forecaster_.cv_results_[name], other.forecaster_.cv_results_[name]
        )
    np.testing.assert_array_equal(one.transform(X).cells, other.transform(X).cells)


@pytest.mark.filterwarnings("ignore:The forecasts of all 60 runs are the same")
def test_new_runs_do_not_have_the_uniforms_of_held_out_ones_with_the_same_ids():
    """All scores are tied: as many new runs would be flagged in every set as held-out ones are."""
    X = Runs.from_padded(np.full((60, 2), 0.5))
    y = np.r_[np.ones(55), np.zeros(5)]
    flagged = []
    for seed in range(12):
        process = DensityRatioEProcess(
            "passthrough", threshold="pac", alpha=0.3, ties="randomized", random_state=seed
        ).fit(X, y, calibration=np.arange(50))
        flagged.append(int((process.predict(X[:50]) == 0).sum()))
    assert len(set(flagged)) > 3
    assert 0 < np.mean(flagged) / 50 < 0.3


# ------------------------------------------------------------------ what is held out


def test_every_failure_is_learned_from_and_a_share_of_the_successes_held_out():
    X, y = make_trajectories(400, lengths=(1, 6), random_state=0, return_X_y=True)
    successes = int(y.sum())
    process = DensityRatioEProcess(alpha=[0.2, 0.1]).fit(X, y)
    n = process.n_calibration_successes_
    assert n == (successes // 2 + 1) // 10 * 10 - 1  # alpha (n + 1) is whole
    assert process.base_rate_ == pytest.approx((successes - n) / (400 - n))
    pac = DensityRatioEProcess(threshold="pac", alpha=0.1).fit(X, y)
    assert pac.n_calibration_successes_ == successes // 2
    runs = DensityRatioEProcess(alpha=0.1, hold_out="runs").fit(X, y)
    assert runs.base_rate_ == pytest.approx(y.mean(), abs=0.005)
    few = np.flatnonzero(y == 1)[:15], np.flatnonzero(y == 0)[:30]
    small = DensityRatioEProcess(alpha=0.1).fit(X[np.concatenate(few)], np.repeat([1, 0], [15, 30]))
    assert small.n_calibration_successes_ == 9  # more than half, but fewer would flag nothing


def test_a_process_that_can_flag_nothing_says_what_is_missing():
    X, y = make_trajectories(300, lengths=3, random_state=0, return_X_y=True)
    constant = X.with_cells(np.full(len(X.cells), 0.5))
    with pytest.warns(UserWarning, match="The forecasts of all 300 runs are the same"):
        process = DensityRatioEProcess("passthrough", alpha=0.1).fit(constant, y)
    assert process.predict(constant).all()
    few = np.r_[np.flatnonzero(y == 1)[:40], np.flatnonzero(y == 0)[:4]]
    with pytest.warns(UserWarning, match="a step needs 5 runs of each outcome"):
        DensityRatioEProcess(PrefixForecaster(), alpha=0.1).fit(X[few], y[few])


def test_one_success_of_each_held_out_group_counts():
    X, y = make_trajectories(400, lengths=(1, 6), random_state=0, return_X_y=True)
    groups = np.arange(400) // 8
    process = DensityRatioEProcess("passthrough", alpha=0.1).fit(X, y, groups=groups)
    assert process.n_calibration_successes_ == 19  # of 50 groups, all with successes
    same = DensityRatioEProcess("passthrough", alpha=0.1).fit(X, y, groups=groups.astype(str))
    pd.testing.assert_series_equal(same.thresholds_, process.thresholds_)
    alone = DensityRatioEProcess("passthrough", alpha=0.1).fit(X, y, groups=np.arange(400))
    assert (
        alone.n_calibration_successes_
        == DensityRatioEProcess(alpha=0.1).fit(X, y).n_calibration_successes_
    )


def test_an_open_run_is_not_taken_for_one_that_ended():
    """Each prefix polled as a table of its own: the flags are those of the run followed live."""
    X, y = make_trajectories(900, lengths=(1, 6), random_state=0, return_X_y=True)
    y = np.where(X.lengths == 1, 0, y)  # giving up at once never succeeds
    process = DensityRatioEProcess(alpha=0.2).fit(X[:450], y[:450])
    new, good = X[450:], y[450:] == 1
    flagged = np.zeros(450, dtype=bool)
    for t in range(1, 6):
        flagged |= process.predict(new.prefix(t).with_ended(False)) == 0
    assert 0.02 < flagged[good].mean() <= 0.2 + 3 * np.sqrt(0.16 / good.sum())
    assert (process.predict(new.prefix(1).with_ended()) == 0)[good].all()  # had they been


# ------------------------------------------------------------------ the guarantee


def world(rng, n, discrete):
    """Forecasts of succeeding runs, (n, 3), of a known law: continuous, or of 3 distinct values."""
    if not discrete:
        return np.clip(rng.normal(0.6, 0.2, (n, 3)), 0.01, 0.99)
    traces = np.full((n, 3), 0.8)
    law = [0.02, 0.38, 0.6]
    traces[np.arange(n), rng.integers(0, 3, n)] = rng.choice([0.2, 0.5, 0.8], n, p=law)
    return traces


def rates(threshold, alpha, delta, n_sets, discrete, at_least=False):
    """True false-alarm rates of the thresholds from many calibration sets of 50 successes."""
    rng = np.random.default_rng(0)
    worst = np.sort(world(rng, 200_000, discrete).min(axis=1))
    y = np.r_[np.ones(60), np.zeros(60)]
    out = np.empty(n_sets)
    for k in range(n_sets):
        runs = Runs.from_padded(np.vstack([world(rng, 60, discrete), np.full((60, 3), 0.3)]))
        process = DensityRatioEProcess(
            "passthrough", threshold=threshold, alpha=alpha, delta=delta, random_state=k
        )
        # as many successes as failures are left for the base rate: M is the odds of failure
        process.fit(runs, y, calibration=np.r_[0:50, 60:110])
        limit = 1 / (1 + process.thresholds_.iloc[0])
        limit *= 1 + 1e-9 if at_least else 1 - 1e-9
        out[k] = np.searchsorted(worst, limit) / len(worst)
    return out


def margin(p, n):
    return 4 * np.sqrt(p * (1 - p) / n)


@pytest.mark.slow
@pytest.mark.parametrize("discrete", [False, True])
def test_guarantees_hold(discrete, n_simulations):
    n = n_simulations
    alpha, delta = 0.2, 0.1
    pac = rates("pac", alpha, delta, n, discrete)
    assert (pac > alpha).mean() <= delta + margin(delta, n)
    for threshold in ("conformal", "pac_marginal"):
        found = rates(threshold, alpha, delta, n, discrete)
        assert found.mean() <= alpha + 4 * found.std() / np.sqrt(n) + 1e-3


def lengths_that_tell(rng, n):
    """Runs that succeed or fail early, whose scores say something and whose lengths do, too."""
    y = (rng.random(n) < 0.6).astype(int)
    lengths = np.minimum(1 + rng.geometric(np.where(y == 1, 0.4, 0.2)), 12)
    scores = rng.normal(np.repeat(0.5 + 0.1 * y, lengths), 0.2)
    return Runs(scores, lengths, ids=rng.integers(2**60, size=n), ended=True), y


@pytest.mark.parametrize("end_worth", [0, 0.3])
def test_what_an_end_is_worth_moves_flags_forward_and_keeps_the_level(rng, end_worth):
    saved, flagged = np.zeros((2, 2)), []
    for seed in range(40):
        X, y = lengths_that_tell(rng, 200)
        new, outcome = lengths_that_tell(rng, 400)
        for k, worth in enumerate((None, end_worth)):
            process = DensityRatioEProcess(alpha=0.2, end_worth=worth, ties="randomized")
            report = process.set_params(random_state=seed).fit(X, y).report(new, outcome)
            saved[k] += report[["steps_saved", "power"]].to_numpy()[0] / 40
        flagged.append(report["false_alarm_rate"].iloc[0])
    assert saved[1, 0] > saved[0, 0]
    assert saved[1, 1] < saved[0, 1]
    error = np.std(flagged) / np.sqrt(len(flagged))
    assert abs(np.mean(flagged) - 0.2) < 4 * error


def test_forecasts_that_are_all_the_same_are_named_whatever_an_end_is_worth(runs):
    X, y = runs
    with pytest.warns(UserWarning, match="forecasts of all 120 runs are the same at every step"):
        DensityRatioEProcess("passthrough", end_worth=0.3, alpha=0.3).fit(
            X.with_cells(np.full(len(X.cells), 0.5)), y
        )


@pytest.mark.slow
def test_at_least_instead_of_more_than_breaks_the_guarantee_for_few_scores(n_simulations):
    # with 3 distinct scores an atom sits at the threshold; flagging it too mostly exceeds alpha
    strict = rates("pac", 0.2, 0.1, n_simulations // 10, True)
    published = rates("pac", 0.2, 0.1, n_simulations // 10, True, at_least=True)
    assert (strict > 0.2).mean() <= 0.1 + margin(0.1, n_simulations // 10)
    assert (published > 0.2).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("discrete", [False, True])
def test_randomised_ties_are_exact(discrete, n_simulations):
    rng = np.random.default_rng(1)
    alpha, flagged = 0.15, 0
    n_sets, n_new = n_simulations, 20
    for _ in range(n_sets):
        traces = world(rng, 50 + n_new, discrete)
        runs = Runs.from_padded(np.vstack([traces[:50], np.full((4, 3), 0.3)]))
        y = np.r_[np.ones(50), np.zeros(4)]
        process = DensityRatioEProcess(
            "passthrough", threshold="conformal", alpha=alpha, ties="randomized"
        ).fit(runs, y, calibration=np.r_[0:40, 50:52])
        new = Runs.from_padded(traces[50:])  # one seed, and the ids of held-out runs: as a user may
        flagged += (process.predict(new) == 0).sum()
    # rates of one set vary as Beta(n_c alpha, ...): allow for that beside the binomial error
    spread = np.sqrt(alpha * (1 - alpha) * (1 / 41 + 1 / n_new) / n_sets)
    assert flagged / (n_sets * n_new) == pytest.approx(alpha, abs=4 * spread)


def test_cross_fit_counts_the_held_out_successes_that_look_at_least_as_bad():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2  # three folds of equal base rates: their ratios differ in nothing
    cells = np.round(rng.random((60, 3)), 1)
    process = DensityRatioEProcess(
        "passthrough", threshold="conformal", alpha=[0.1, 0.3], cross_fit=3
    ).fit(Runs.from_padded(cells), y)
    new = np.round(rng.random((40, 3)), 1)
    worst = cells[y == 1].min(axis=1)
    count = 1 + (worst <= new.min(axis=1)[:, None] + 1e-9).sum(axis=1)
    for alpha, allowed in ((0.1, 3), (0.3, 9)):  # of 30 successes and the run itself
        X = Runs.from_padded(new)
        assert ((process.predict(X, alpha) == 0) == (count <= allowed)).all()
        np.testing.assert_array_equal(process.decision_function(X, alpha), count - allowed - 0.5)
        monitor = process.monitor(alpha)
        for row, scores in enumerate(new.tolist()):
            for score in scores:
                decision = monitor.update(score, row)
            assert decision.margin == count[row] - allowed - 0.5
            assert np.isnan(decision.log_threshold)


@pytest.mark.slow
def test_cross_fit_is_close_to_alpha_and_uses_every_run():
    rng = np.random.default_rng(0)
    rate = []
    for _ in range(12):
        X, y = make_trajectories(1200, lengths=4, random_state=rng.integers(10**6), return_X_y=True)
        process = DensityRatioEProcess(threshold="conformal", alpha=0.1, cross_fit=4)
        process.fit(X[:300], y[:300])
        assert process.n_calibration_successes_ == (y[:300] == 1).sum()
        rate.append(process.report(X[300:], y[300:])["false_alarm_rate"].iloc[0])
    assert 0.05 < np.mean(rate) < 0.15


# ------------------------------------------------------------------ scale and shape


def test_ten_thousand_steps_do_not_overflow():
    rng = np.random.default_rng(0)
    X = Runs(
        np.r_[np.full(10_000, 1e-9), np.full(9_000, 1.0), rng.random(40)],
        [10_000, 9_000] + [1] * 40,
    )
    y = np.r_[0, 1, rng.integers(0, 2, 40)]
    process = DensityRatioEProcess("passthrough", threshold="ville").fit(X, y)
    log_m = process.transform(X)
    assert np.isfinite(log_m.cells).all()
    assert np.isfinite(process.transform(X).cells).all()
    assert process.predict(X)[:2].tolist() == [0, 1]


def test_other_forecasters_and_plain_arrays():
    X, y = make_trajectories(400, lengths=(2, 6), random_state=0, return_X_y=True)
    process = DensityRatioEProcess(PlattCrossFitCalibrator(), alpha=0.2).fit(X, y)
    assert process.transform(X).shape == X.shape
    plain = DensityRatioEProcess(alpha=0.2).fit(X.padded(), y)
    same = DensityRatioEProcess(alpha=0.2).fit(X, y)
    # nothing says that the runs of a plain array have ended
    open_runs = X.with_ended(False)
    np.testing.assert_array_equal(plain.predict(X.padded()), same.predict(open_runs))
    assert plain.score(X.padded(), y) == same.score(X, y)
    assert plain.transform(X.padded()).shape == X.shape
    again = pickle.loads(pickle.dumps(clone(same).fit(X, y)))
    np.testing.assert_array_equal(again.predict(X), same.predict(X))


def test_two_folds_are_enough(runs):
    process = DensityRatioEProcess(threshold="conformal", alpha=0.2, cross_fit=2).fit(*runs)
    assert len(process.test_.folds) == 2


def test_bonferroni():
    X, y = make_trajectories(100, lengths=(2, 7), random_state=0, return_X_y=True)
    process = DensityRatioEProcess(threshold="bonferroni", alpha=[0.1, 0.2]).fit(X, y)
    np.testing.assert_allclose(process.thresholds_, [70, 35])


# ------------------------------------------------------------------ bad input


@pytest.fixture
def runs():
    return make_trajectories(120, lengths=(1, 5), random_state=0, return_X_y=True)


@pytest.mark.parametrize("share", [0.25, 0.75])
def test_the_share_that_is_held_out_is_a_choice(runs, share):
    X, y = runs
    process = DensityRatioEProcess(threshold="pac", alpha=0.3, calibration_fraction=share).fit(X, y)
    assert process.n_calibration_successes_ == int(share * y.sum())
    rule = LearnThenTestStop(alpha=0.3, lost_accuracy=None, calibration_fraction=share).fit(X, y)
    assert abs(rule.n_calibration_ - share * len(y)) <= 1


def test_unobserved_runs_are_left_out_and_counted(runs):
    X, y = runs
    y = y.astype(float)
    y[:20] = -1
    process = DensityRatioEProcess(alpha=0.2).fit(X, y)
    assert process.n_dropped_ == 20
    rest = DensityRatioEProcess(alpha=0.2).fit(X[20:], y[20:])
    pd.testing.assert_series_equal(rest.thresholds_, process.thresholds_)


def test_too_few_successes(runs):
    X, y = runs
    with pytest.warns(UserWarning, match=r"alpha = 0.01: no run will be flagged; .* 230"):
        process = DensityRatioEProcess(threshold="pac", alpha=0.01).fit(X, y)
    assert np.isinf(process.thresholds_.iloc[0])
    assert process.predict(X).all()
    for options in ({}, {"cross_fit": 3}):
        with pytest.warns(UserWarning, match="no run will be flagged; .* at least 999"):
            process = DensityRatioEProcess(threshold="conformal", alpha=0.001, **options).fit(X, y)
        assert process.predict(X).all()


@pytest.mark.parametrize("threshold", ["conformal", "pac"])
def test_no_uniform_flags_a_run_where_successes_are_too_few(threshold):
    X, y = make_trajectories(600, lengths=6, random_state=0, return_X_y=True)
    process = DensityRatioEProcess(threshold=threshold, ties="randomized", alpha=0.003)
    with pytest.warns(UserWarning, match="no run will be flagged"):
        process.fit(X, y)
    assert np.isinf(process.thresholds_.iloc[0])
    assert process.predict(X).all()
    assert process.report(X, y)["false_alarm_rate"].iloc[0] == 0
    monitor = process.monitor()
    assert not any(monitor.update(1e-3, row).flagged for row in range(600))


def test_longer_runs_than_any_seen(runs):
    X, y = runs
    process = DensityRatioEProcess(PrefixForecaster(), threshold="ville").fit(X, y)
    longer = Runs.from_list([[0.5] * 9, [0.4] * 7, [0.2]])
    with pytest.warns(
        UserWarning, match="2 runs longer than the longest run in fitting, which has 5 steps"
    ) as caught:
        log_m = process.transform(longer)
    assert len(caught) == 1
    with pytest.warns(
        UserWarning, match="2 runs longer than the longest run in fitting, which has 5 steps"
    ) as caught:
        process.score(longer, [0, 0, 1])
    assert len(caught) == 1
    assert (log_m[0][4:] == log_m[0][4]).all()


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"threshold": "pax"}, {}, "threshold must be 'pac', "),
        ({"alpha": 1.0}, {}, "alpha must lie strictly between 0 and 1"),
        ({"alpha": "a"}, {}, "alpha must be a number or a list of numbers"),
        ({"forecaster": LogisticRegression()}, {}, r"wrap a classifier as PrefixForecaster\(Logi"),
        ({"alpha": []}, {}, "alpha must lie strictly between 0 and 1"),
        ({"delta": 0}, {}, "delta must lie"),
        ({"ties": "maybe"}, {}, "ties must be"),
        ({"calibration_fraction": 1}, {}, "calibration_fraction must lie"),
        ({"cross_fit": 3, "threshold": "pac"}, {}, 'threshold="conformal"'),
        ({"hold_out": "failures"}, {}, "hold_out must be 'successes' or 'runs', got 'failures'"),
        ({"wait": -1}, {}, "wait must be a finite number >= 0, got -1"),
        ({"end_worth": -1}, {}, "end_worth must be a finite number >= 0, got -1"),
        ({"end_worth": np.inf}, {}, "end_worth must be a finite number >= 0, got inf"),
        (
            {"end_worth": 0.3, "threshold": "ville"},
            {},
            "held-out runs set, but 'ville' is one on M itself; take threshold=\"conformal\"",
        ),
        (
            {"forecaster": PrefixForecaster(), "threshold": "randomized_ville"},
            {},
            "needs a forecaster that knows the end of a run",
        ),
        ({"cross_fit": "5"}, {}, "cross_fit must be a whole number of at least 2, got '5'"),
        ({"cross_fit": 1}, {}, "cross_fit must be a whole number of at least 2"),
        ({"delta": "a"}, {}, "delta must lie strictly between 0 and 1, got 'a'"),
        ({"alpha": [0.1, 0.2, 0.1]}, {}, "alpha names a level more than once"),
        ({"forecaster": "passthru"}, {}, 'must be an estimator or "passthrough"'),
        ({}, {"calibration": [0, 1] * 60}, "names row 0 more than once"),
        ({"threshold": "ville"}, {"calibration": [1, 2]}, "threshold='ville' holds out no runs"),
        (
            {"threshold": "conformal", "cross_fit": 3},
            {"calibration": [1, 2]},
            "cross_fit=3 holds out no runs; leave calibration out",
        ),
        ({}, {"calibration": [1, 500]}, "calibration must be rows of X, from 0 to 119"),
        ({}, {"calibration": [True, False]}, "calibration must be rows of X, from 0 to 119"),
    ],
)
def test_bad_parameters(runs, options, arguments, message):
    with pytest.raises(ValueError, match=message):
        DensityRatioEProcess(**options).fit(*runs, **arguments)


def test_bad_runs(runs):
    X, y = runs
    with pytest.raises(ValueError, match="none of the 3 held-out runs succeeded"):
        DensityRatioEProcess().fit(X, y, calibration=np.flatnonzero(y == 0)[:3])
    with pytest.raises(ValueError, match="none of the 0 held-out runs succeeded"):
        DensityRatioEProcess().fit(X, y, calibration=np.array([], dtype=int))
    with pytest.raises(NotFittedError):
        _ = DensityRatioEProcess().thresholds_
    with pytest.raises(ValueError, match="have the same outcome"):
        DensityRatioEProcess().fit(X, y, calibration=np.flatnonzero(y == 0))
    with pytest.raises(ValueError, match="the runs have 0 failures"):
        DensityRatioEProcess().fit(X, np.ones(120))
    with pytest.raises(ValueError, match="run 0: outcome 0.5 must be 0 or 1"):
        DensityRatioEProcess().fit(X, np.r_[0.5, y[1:]])
    with pytest.raises(ValueError, match="step 2.*missing"):
        DensityRatioEProcess().fit(Runs.from_list([[0.5, np.nan]], missing="allow"), [1])
    process = DensityRatioEProcess(threshold="ville").fit(X, y)
    with pytest.raises(
        ValueError, match=r"alpha=0\.3 was not fitted; the fitted levels are 0\.05\. Give"
    ):
        process.predict(X, alpha=0.3)
    with pytest.raises(ValueError, match="no run failed, so power"):
        process.score(X, np.ones(120))
    two = Runs(np.stack([X.cells, X.cells], axis=1), X.lengths, channels=["a", "b"])
    with pytest.raises(ValueError, match="was fitted on 1 channel, got 2"):
        process.predict(two)
    process.fit(two, y)
    with pytest.raises(ValueError, match="fitted on the channels a, b, got b, a"):
        process.predict(two[["b", "a"]])
    with pytest.raises(ValueError, match="outside"):
        DensityRatioEProcess("passthrough").fit(X.with_cells(X.cells + 1), y).transform(X)


@any_two_labels
class AnyProcess(DensityRatioEProcess):
    pass


@parametrize_with_checks(
    [
        AnyProcess(alpha=0.3, threshold="ville"),
        AnyProcess(alpha=0.3, threshold="conformal"),
        AnyProcess(alpha=0.3, end_worth=0.3),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn(estimator, check):
    check(estimator)


def test_pooled_forecasters_are_said_to_extrapolate(runs):
    X, y = runs
    forecaster = PrefixForecaster(features="summary", pooled=True)
    process = DensityRatioEProcess(forecaster, threshold="ville").fit(X, y)
    with pytest.warns(UserWarning, match="1 run longer than .* extrapolate"):
        process.predict(Runs.from_list([[0.5] * 9]))


def test_what_is_frozen_knows_the_end_as_what_it_holds(runs):
    X, y = runs
    end_aware = PrefixForecaster(features="running", pooled=True, end="step")
    processes = [
        DensityRatioEProcess(FrozenEstimator(one.fit(X, y)), threshold="randomized_ville").fit(X, y)
        for one in (end_aware, make_pipeline(clone(end_aware)))
    ]
    alone, in_pipeline = (process.transform(X).cells for process in processes)
    np.testing.assert_array_equal(alone, in_pipeline)


def test_no_runs_at_all(runs):
    X, y = runs
    for options in ({}, {"threshold": "randomized_ville"}):
        process = DensityRatioEProcess(alpha=0.2, **options).fit(X, y)
        assert len(process.transform(X[:0])) == 0
        for method in (process.predict, process.decision_function, process.stopping_steps):
            assert method(X[:0]).shape == (0,)
    with pytest.raises(ValueError, match="none of the 0 runs has an observed outcome"):
        process.report(X[:0], [])
    with pytest.raises(ValueError, match="none of the 120 runs has an observed outcome"):
        process.report(X, -np.ones(120))
    for outcomes in ([], -np.ones(120)):
        with pytest.raises(ValueError, match="has an observed outcome"):
            DensityRatioEProcess().fit(X[: len(outcomes)], outcomes)


def test_grades_are_refused_and_unobserved_runs_counted(runs):
    X, y = runs
    process = DensityRatioEProcess(threshold="ville").fit(X, y)
    for method in (process.report, process.score):
        with pytest.raises(ValueError, match=r"run 3: outcome 0\.5 must be 0 or 1"):
            method(X, np.r_[y[:3], 0.5, y[4:]])
    censored = np.where(np.arange(120) < 20, -1, y)
    report = process.report(X, censored)
    assert report["n_dropped"].tolist() == [20]
    assert process.report(X[20:], y[20:])["n_dropped"].tolist() == [0]
    assert report["power"].iloc[0] == process.score(X[20:], y[20:])


def test_weights_of_a_score(runs):
    X, y = runs
    process = DensityRatioEProcess(threshold="ville", alpha=0.5).fit(X, y)
    weight = np.random.default_rng(0).integers(0, 3, 120)
    rows = np.repeat(np.arange(120), weight)
    repeated = Runs.from_list([X[int(row)] for row in rows])
    assert process.score(X, y, weight) == pytest.approx(process.score(repeated, y[rows]))
    for wrong, message in [
        (np.ones(3), "give one for each run"),
        (np.zeros(120), "all sample weights are zero"),
        (np.full(120, np.nan), "NaN"),
        (-np.ones(120), "row 0: sample_weight -1 is negative"),
        (y, "all failed runs have weight zero"),
    ]:
        with pytest.raises(ValueError, match=message):
            process.score(X, y, sample_weight=wrong)


@pytest.mark.parametrize("hold_out", ["successes", "runs"])
@pytest.mark.parametrize("is_grouped", [False, True])
def test_what_is_held_out(hold_out, is_grouped):
    y = np.tile([1, 1, 0, 1], 50)
    groups = np.arange(200) // (5 if is_grouped else 1)
    process = DensityRatioEProcess(alpha=0.2, hold_out=hold_out, calibration_fraction=0.25)
    random = np.random.RandomState(0)
    process.alphas_ = np.array([0.2])
    rows = process._held_out_rows(y, np.arange(200), None, groups, random)
    if hold_out == "runs" and not is_grouped:  # in the share of each outcome
        assert len(rows) == 50
        assert y[rows].sum() in (37, 38)
    elif is_grouped:  # all runs of some of the groups
        counts = np.bincount(groups[rows], minlength=40)
        assert set(counts.tolist()) == {0, 5}
        assert (counts > 0).sum() == process._n_held_out(40)
    else:
        assert y[rows].all()
        assert len(rows) == process._n_held_out(150)
