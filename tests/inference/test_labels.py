"""Intervals from few labels and a judge: what they estimate, coverage, clusters, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest, t

from trajscore import TrajectoryArray
from trajscore.core.score_families import get_family
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.inference import LabelDesign, label_intervals
from trajscore.inference._labels import (
    FewLabels,
    OutcomeRatio,
    _bounds,
    _check_total,
    _folds,
    above_constant,
    check_verdict,
    outcome_features,
    rate_of,
    ridge_logistic,
    score_of_outcomes,
    shares_by_outcome,
    weighted_rate,
)
from trajscore.inference.rate_intervals import wilson_interval
from trajscore.inference.units import any_units
from trajscore.metrics import tps_score

RATE, SCORE, MARGIN = "success rate", "TPS log", "TPS log margin"


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(600, base_rate=0.6, sharpness=1.5, random_state=1)


def judged(y, rng, right=(0.9, 0.8)):
    """Verdicts of a judge that is right on these shares of successes and failures."""
    return np.where(rng.random(len(y)) < np.where(y == 1, *right), y, 1 - y)


def some_labels(y, n_labels, rng):
    rows = rng.choice(len(y), n_labels, replace=False)
    labels = np.full(len(y), -1)
    labels[rows] = y[rows]
    return labels


def table_of(runs, n_labels=80, seed=0, **given):
    rng = np.random.default_rng(seed)
    given.setdefault("judge", judged(runs.target, rng))
    y = some_labels(runs.target, n_labels, rng)
    return label_intervals(runs.data, y, label_probability=n_labels / len(y), **given)


# -------------------------------------------------------------------- what it estimates


def test_all_labels_give_what_all_outcomes_give(runs):
    table = label_intervals(runs.data, runs.target, label_probability=1.0)
    assert table.loc[RATE, "value"] == pytest.approx(runs.target.mean())
    assert table.loc[SCORE, "value"] == pytest.approx(tps_score(runs.target, runs.data))
    np.testing.assert_allclose(table["std_error"], table["std_error_all"])
    assert (table["n_labels"] == 600).all()


def test_margin_is_that_over_the_best_constant(runs):
    weights = as_step_weights().of(runs.data)
    rate = weights.rate(runs.target.astype(float))
    constant = runs.data.with_cells(np.full(len(runs.data.cells), rate))
    best = tps_score(runs.target, constant)
    table = label_intervals(runs.data, runs.target, label_probability=1.0)
    assert table.loc[MARGIN, "value"] == pytest.approx(tps_score(runs.target, runs.data) - best)


def test_a_wrong_judge_does_not_bias(runs):
    # one that says the opposite of the truth in most runs, more so where runs are long
    y, lengths = runs.target, runs.data.lengths
    truth, values = y.mean(), []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        wrong = rng.random(600) < 0.4 + 0.05 * lengths
        labels = some_labels(y, 60, rng)
        table = label_intervals(
            runs.data, labels, judge=np.where(wrong, 1 - y, y), label_probability=0.1
        )
        values.append(table.loc[RATE, "value"])
    error = np.std(values) / np.sqrt(200)
    assert abs(np.mean(values) - truth) < 4 * error


def test_a_good_judge_makes_labels_worth_more(runs):
    poor, good = (
        table_of(runs, judge=judged(runs.target, np.random.default_rng(3), right))
        for right in [(0.5, 0.5), (0.97, 0.95)]
    )
    assert good.loc[RATE, "worth"] > 2 * poor.loc[RATE, "worth"]
    assert good.loc[RATE, "std_error"] < poor.loc[RATE, "std_error"]


def test_errors_of_the_judge_are_estimated_by_class():
    runs = make_trajectories(4000, random_state=2)
    judge = judged(runs.target, np.random.default_rng(4), (0.95, 0.7))
    table = table_of(runs, 400, judge=judge)
    for name, share in [("successes", 0.05), ("failures", 0.3)]:
        row = table.loc[f"judge wrong on {name}"]
        assert row["low"] < share < row["high"]
        assert row["high"] - row["low"] < 0.25


def test_false_alarms_and_power_of_a_monitor(runs):
    flagged = runs.data.cells[runs.data.offsets[:-1]] < 0.5
    table = label_intervals(runs.data, runs.target, flagged=flagged, label_probability=1.0)
    assert table.loc["false alarm rate", "value"] == pytest.approx(flagged[runs.target == 1].mean())
    assert table.loc["power", "value"] == pytest.approx(flagged[runs.target == 0].mean())
    few = table_of(runs, flagged=flagged).loc[["false alarm rate", "power"]]
    assert (few["low"] < few["value"]).all()
    assert (few["value"] < few["high"]).all()


def test_what_no_label_shows_may_never_happen(runs):
    # a monitor that flags no success: of some seeds the estimate is above zero all the same
    flagged = (runs.target == 0) & (runs.data.lengths > 6)
    for seed in range(5):
        alarms = table_of(runs, seed=seed, flagged=flagged).loc["false alarm rate"]
        assert alarms["low"] == 0
        assert 0 < alarms["high"] < 0.3


def test_what_all_labels_show_may_always_happen(runs):
    # a monitor that flags all failures: of some seeds the estimate is below one all the same
    flagged = (runs.target == 0) | (runs.data.lengths > 6)
    for seed in range(5):
        power = table_of(runs, seed=seed, flagged=flagged).loc["power"]
        assert power["high"] == 1
        assert 0.5 < power["low"] < 1


def test_without_a_judge_the_trace_alone_forecasts(runs):
    table = table_of(runs, judge=None)
    assert [*table.index] == [RATE, SCORE, MARGIN]


@pytest.mark.parametrize(("factor", "shift"), [(10, -3), (1, -0.5), (1, 0.5)])
def test_a_signal_that_is_no_forecast_has_a_rate_alone(runs, factor, shift):
    signal = runs.data.with_cells(factor * runs.data.cells + shift)
    rng = np.random.default_rng(0)
    table = label_intervals(signal, some_labels(runs.target, 80, rng), label_probability=80 / 600)
    assert [*table.index] == [RATE]


def test_rows_in_any_order_give_the_same(runs):
    rng = np.random.default_rng(5)
    X = TrajectoryArray(runs.data.cells, runs.data.lengths, ids=rng.permutation(600))
    y, judge = some_labels(runs.target, 80, rng), judged(runs.target, rng)
    groups, order = rng.integers(60, size=600), rng.permutation(600)
    probability = np.full(600, 80 / 600)
    options = {"judge": judge, "groups": groups, "label_probability": probability}
    table = label_intervals(X, y, **options)
    other = label_intervals(
        X[order], y[order], **{name: values[order] for name, values in options.items()}
    )
    np.testing.assert_array_equal(table.drop(columns="note"), other.drop(columns="note"))


@given(
    arrays(float, 60, elements=st.floats(0.01, 0.99)),
    arrays(bool, 60),
    st.floats(0, 1),
)
def test_pseudo_terms_are_right_on_average_whatever_the_forecast(forecast, y, trust):
    # over what may be drawn: each run's label with chance 1/4, or not
    chance, means = 0.25, []
    ratio = shares_by_outcome(np.linspace(0, 1, 60))[0]
    for inverse in (0.0, 1 / chance):
        labels = FewLabels(y * (inverse > 0), np.full(60, inverse), forecast, None)
        means.append(labels.pseudo_terms(ratio, trust))
    average = chance * means[1] + (1 - chance) * means[0]
    np.testing.assert_allclose(average, ratio.terms(y), atol=1e-12)


def test_influences_are_derivatives():
    rng = np.random.default_rng(6)
    runs = make_trajectories(50, random_state=3)
    log, y = get_family("log"), rng.random(50)
    tps = score_of_outcomes(runs.data, log, as_step_weights())
    rate = weighted_rate(tps).at(y)[0]
    every = [rate_of(50), tps, *shares_by_outcome(rng.random(50))]
    for ratio in every:
        value, influence, slope = ratio.at(y)
        moved = y + 1e-6 * (np.arange(50) == 7)
        assert (ratio.at(moved)[0] - value) * 50 / 1e-6 == pytest.approx(slope[7], rel=1e-4)
        assert influence.sum() == pytest.approx(0, abs=1e-9)
    # the best constant moves with the outcomes, which to first order changes nothing
    value, _, slope = above_constant(tps, log, rate).at(y)
    moved = y + 1e-5 * (np.arange(50) == 7)
    again = above_constant(tps, log, weighted_rate(tps).at(moved)[0]).at(moved)[0]
    assert (again - value) * 50 / 1e-5 == pytest.approx(slope[7], rel=1e-3)


def test_regression_is_that_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(7)
    Z = np.column_stack([rng.normal(size=(80, 3)), np.ones(80)])
    y = (rng.random(80) < 0.6).astype(float)
    ours = ridge_logistic(Z, y, np.ones((1, 80), dtype=bool))[0]
    scaled = Z * [1, 1, 1, np.sqrt(10)]  # the penalty on the constant is a tenth
    theirs = LogisticRegression(fit_intercept=False, tol=1e-10).fit(scaled, y).coef_[0]
    np.testing.assert_allclose(ours, theirs * [1, 1, 1, np.sqrt(10)], rtol=1e-4)


def test_no_label_is_in_its_own_forecast_nor_in_that_of_its_group(runs):
    rng = np.random.default_rng(8)
    y, groups = some_labels(runs.target, 100, rng), rng.integers(80, size=600)
    row = int(np.argmax(y >= 0))
    flipped = y.copy()
    flipped[row] = 1 - y[row]
    probability = np.full(600, 1 / 6)
    forecasts = [
        FewLabels.of(runs.data, some, probability, None, groups).forecast for some in (y, flipped)
    ]
    same = groups == groups[row]
    np.testing.assert_array_equal(forecasts[0][same], forecasts[1][same])
    assert (forecasts[0][~same] != forecasts[1][~same]).any()


# ---------------------------------------------------------------------------- coverage


def _held(truth, draw, n_simulations):
    """Count how often each interval holds the truth."""
    hits = dict.fromkeys(truth, 0)
    for seed in range(n_simulations):
        table = draw(np.random.default_rng(seed))
        for name, value in truth.items():
            hits[name] += table.loc[name, "low"] <= value <= table.loc[name, "high"]
    return hits


def _truth(population):
    tps = score_of_outcomes(population.data, get_family("log"), as_step_weights())
    y = population.target.astype(float)
    margin = above_constant(tps, get_family("log"), weighted_rate(tps).at(y)[0])
    return {RATE: y.mean(), SCORE: tps.at(y)[0], MARGIN: margin.at(y)[0]}


@pytest.mark.parametrize("right", [(0.9, 0.8), (0.99, 0.98)])
@pytest.mark.parametrize("n_labels", [50, 100])
def test_intervals_hold(right, n_labels, n_simulations):
    population = make_trajectories(20_000, base_rate=0.7, sharpness=1.5, random_state=9)

    def draw(rng):
        rows = rng.integers(20_000, size=1000)
        X = TrajectoryArray(population.data[rows].cells, population.data.lengths[rows])
        y = population.target[rows]
        judge = judged(y, rng, right)
        design = LabelDesign(n_labels, random_state=int(rng.integers(2**31))).fit(X, judge=judge)
        labels = np.full(1000, -1)
        labels[design.query()] = y[design.query()]
        return label_intervals(X, labels, judge=judge, label_probability=design.probabilities_)

    for name, count in _held(_truth(population), draw, n_simulations).items():
        assert binomtest(count, n_simulations, 0.94).proportion_ci(0.999).high > 0.94, name


def test_intervals_of_clusters_hold(n_simulations):
    def draw(rng):
        # trials of one task share their chance of success
        ease = np.repeat(rng.beta(1, 1, 150), 4)
        y = (rng.random(600) < ease).astype(int)
        forecast = np.clip(ease + 0.1 * rng.normal(size=600), 0.02, 0.98)
        X = TrajectoryArray(forecast, np.ones(600, dtype=int))
        tasks = np.repeat(np.arange(150), 4)
        return label_intervals(
            X,
            some_labels(y, 200, rng),
            judge=judged(y, rng),
            label_probability=1 / 3,
            groups=tasks,
        )

    count = _held({RATE: 0.5}, draw, n_simulations)[RATE]
    assert binomtest(count, n_simulations, 0.94).proportion_ci(0.999).high > 0.94


# ----------------------------------------------------------------- refusals, bad inputs


def test_without_a_failure_there_is_a_rate_and_no_score(runs):
    y = np.full(600, -1)
    y[:40] = 1
    table = label_intervals(runs.data, y, label_probability=40 / 600)
    assert table.loc[RATE, "low"] < 0.99 < table.loc[RATE, "high"]
    assert table.loc[[SCORE, MARGIN], ["value", "low", "high"]].isna().all(axis=None)
    assert table.loc[MARGIN, "note"] == "No labelled run failed; label more runs"


def test_few_groups_warn_and_one_is_refused(runs):
    with pytest.warns(UserWarning, match="there are 5 clusters of runs"):
        table_of(runs, groups=np.arange(600) % 5)
    with pytest.raises(ValueError, match="all labelled runs are of one group"):
        table_of(runs, groups=np.zeros(600, dtype=int))


def test_tasks_may_be_labelled_whole(runs):
    tasks = np.repeat(np.arange(60), 10)
    y = np.where(np.isin(tasks, np.arange(0, 60, 3)), runs.target, -1)
    table = label_intervals(runs.data, y, label_probability=0.25, groups=tasks)
    assert np.isfinite(table[["low", "high"]]).all(axis=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [1] * 10 + [-1] * 590}, "10 runs of 600 are labelled; label at least 20"),
        ({"label_probability": 0.0}, "row 0: the run is labelled, but its label_probability is 0"),
        ({"label_probability": np.nan}, "row 0: the run is labelled, but its .* is nan"),
        ({"label_probability": [0.1, 0.2]}, r"one number or 600, one for each run, got .*\(2,\)"),
        ({}, "the labelled runs stand for 1,200 runs, but there are 600"),
        ({"judge": [1, 0]}, r"judge must be 600 verdicts, one for each run, got shape \(2,\)"),
        ({"judge": [2] * 600}, "row 0: judge is 2; give 0, 1 or a grade"),
        ({"judge": [np.nan] * 600}, "row 0: judge is nan"),
        ({"flagged": [1]}, "flagged must be 600 verdicts"),
        ({"y": [0.5] + [1] * 599}, "outcome 0.5 must be 0 or 1"),
        ({"confidence_level": 95}, "confidence_level must lie strictly between 0 and 1"),
    ],
)
def test_bad_input_is_named(runs, change, message):
    arguments = {"y": runs.target, "label_probability": 0.5} | change
    with pytest.raises(ValueError, match=message):
        label_intervals(runs.data, arguments.pop("y"), **arguments)


# ------------------------------------------------------------------- variances by hand


def half_labelled(forecast_of_success):
    """Return 100 runs, half of them successes, of which every fifth is labelled by chance."""
    truth, is_labelled = np.arange(100) % 2, np.arange(100) // 2 % 5 == 0
    forecast = np.where(truth == 1, forecast_of_success, 1 - forecast_of_success)
    outcome = (truth * is_labelled).astype(float)
    return FewLabels(outcome, 5.0 * is_labelled, forecast, any_units(None, 100))


@pytest.mark.parametrize(
    ("forecast", "trust", "of_runs", "of_labels"),
    [
        # two pseudo-disagreements with a forecast that is never wrong: 2/20 of .04
        (1.0, 1, 0.25, 0.004),
        # the outcomes of 20 runs, .04 times .25, and a tenth of that again
        (0.5, 1, 0.25, 0.011),
        # labels show errors of .1; expected are (.9 .01 + .1 .81) times .04
        (0.9, 1, 0.25, 0.04 * 0.09 + 0.004 * 0.81),
        # a forecast that is always wrong is not used
        (0.1, 0, 0.25, 0.011),
    ],
)
def test_variance_of_a_rate_by_hand(forecast, trust, of_runs, of_labels):
    labels = half_labelled(forecast)
    ratio = rate_of(100)
    assert labels.trust(ratio) == pytest.approx(trust)
    row = labels.estimate(ratio, 0.95)
    assert row["value"] == pytest.approx(0.5)
    # sums of squares over 99 rather than 100
    assert row["std_error_all"] ** 2 == pytest.approx(of_runs / 100, rel=0.06)
    added = row["std_error"] ** 2 - row["std_error_all"] ** 2
    assert added == pytest.approx(of_labels, rel=1e-6)
    # of the labels alone: .25 / 20 would be the variance
    assert row["worth"] == pytest.approx(0.25 / row["std_error"] ** 2)
    assert (row["n_labels"], row["n_runs"], row["note"]) == (20, 100, "")


def test_the_forecast_counts_as_far_as_it_makes_the_variance_least(runs):
    rng = np.random.default_rng(10)
    y = some_labels(runs.target, 120, rng)
    poor = judged(runs.target, rng, (0.6, 0.7)).astype(float)
    probability, ratio = np.full(600, 0.2), rate_of(600)
    labels = FewLabels.of(runs.data, y, probability, poor, None)
    # as sure as if the judge were nearly always right
    labels = replace(labels, forecast=0.05 + 0.9 * poor)
    trust, value = labels.trust(ratio), labels.pseudo_terms(ratio)[0].mean()
    assert 0.05 < trust < 0.95
    shares = np.linspace(0, 1, 101)
    best = shares[np.argmin([_spread_around(labels, ratio, value, share) for share in shares])]
    assert trust == pytest.approx(best, abs=0.006)


def _spread_around(labels, ratio, value, share):
    guess = share * (labels.forecast - value)
    return ((guess + labels.inverse * (labels.outcome - value - guess)) ** 2).sum()


def test_a_ratio_without_weight_has_no_value():
    labels = half_labelled(0.9)
    empty = replace(rate_of(100), success_weight=np.zeros(100), failure_weight=np.zeros(100))
    assert labels.trust(empty) == 1
    assert np.isnan(labels.value(empty))
    row = labels.estimate(empty, 0.95)
    assert row["note"] == "Only 0 labelled runs count here; at least 5 are needed"


def test_intervals_of_scores_are_as_wide_as_their_errors(runs):
    table = label_intervals(runs.data, runs.target, label_probability=1.0)
    quantile = t.ppf(0.975, 599)
    for name in (SCORE, MARGIN):
        row = table.loc[name]
        assert row["high"] - row["value"] == pytest.approx(quantile * row["std_error"])
        assert row["value"] - row["low"] == pytest.approx(quantile * row["std_error"])
    assert table.loc[SCORE, "std_error"] == pytest.approx(
        tps_by_run(runs).std(ddof=1) / np.sqrt(600), rel=1e-6
    )


def tps_by_run(runs):
    tps = score_of_outcomes(runs.data, get_family("log"), as_step_weights())
    value = tps.at(runs.target.astype(float))[0]
    above, below = tps.terms(runs.target.astype(float))
    return (above - value * below) / below.mean()


def test_an_interval_of_a_rate_is_wilsons(runs):
    row = label_intervals(runs.data, runs.target, label_probability=1.0).loc[RATE]
    rate = runs.target.mean()
    n = rate * (1 - rate) / row["std_error"] ** 2
    assert n == pytest.approx(600, rel=0.003)
    low, high = wilson_interval(rate, n, t.ppf(0.975, 599))
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    assert row["worth"] == pytest.approx(600, rel=0.003)


@pytest.mark.parametrize("rate", [0, 1])
def test_a_rate_of_all_labels_that_are_alike(runs, rate):
    table = label_intervals(runs.data, np.full(600, rate), label_probability=1.0)
    row = table.loc[RATE]
    assert (row["value"], row["std_error"], row["worth"]) == (rate, 0, 600)
    note = "No labelled run failed" if rate else "No labelled run succeeded"
    assert table.loc[SCORE, "note"] == f"{note}; label more runs"


def test_labels_that_are_all_alike_leave_as_much_open_as_one_of_two_more_would(runs):
    y = some_labels(np.ones(600, dtype=int), 40, np.random.default_rng(15))
    row = label_intervals(runs.data, y, label_probability=40 / 600).loc[RATE]
    n = (41 / 42) * (1 / 42) / row["std_error"] ** 2
    low, _ = wilson_interval(1.0, n, t.ppf(0.975, 39))
    assert row["low"] == pytest.approx(low)


@pytest.mark.parametrize("n_successes", [4, 5])
def test_fewest_labels_of_a_class(runs, n_successes):
    rows = [*np.flatnonzero(runs.target == 1)[:n_successes], *np.flatnonzero(runs.target == 0)[:60]]
    y = np.full(600, -1)
    y[rows] = runs.target[rows]
    table = label_intervals(
        runs.data, y, flagged=np.ones(600), label_probability=(n_successes + 60) / 600
    )
    row = table.loc["false alarm rate"]
    if n_successes < 5:
        assert row["note"] == "Only 4 labelled runs count here; at least 5 are needed"
        assert np.isnan(row["value"])
    else:
        assert row["note"] == ""
        assert (row["low"] > 0, row["high"]) == (True, 1)  # no label shows a run without a flag
    assert (table.loc["power", "low"] > 0, table.loc["power", "high"]) == (True, 1)


# ----------------------------------------------------------------- inputs, features, folds


@pytest.mark.parametrize(
    ("probability", "n_labels", "fits"),
    [
        (0.05, 60, True), (0.048, 60, False),  # 3.97 and 4.09 standard errors, less 1% of runs
        (0.145, 60, True), (0.152, 60, False),
        (1.0, 595, True), (1.0, 593, False),
    ],
)  # fmt: skip
def test_how_far_probabilities_may_be_off(runs, probability, n_labels, fits):
    y = some_labels(runs.target, n_labels, np.random.default_rng(11))
    if fits:
        label_intervals(runs.data, y, label_probability=probability)
        return
    with pytest.raises(ValueError, match=f"stand for {n_labels / probability:,.0f} runs"):
        label_intervals(runs.data, y, label_probability=probability)


@pytest.mark.parametrize("value", [-0.1, 0.0, 1.01])
def test_a_probability_of_a_labelled_run_is_above_0_and_at_most_1(runs, value):
    y = some_labels(runs.target, 100, np.random.default_rng(12))
    probability = np.where(y < 0, 7.0, 1 / 6)  # of runs without a label anything may stand there
    label_intervals(runs.data, y, label_probability=probability)
    row = int(np.flatnonzero(y >= 0)[3])
    probability[row] = value
    with pytest.raises(ValueError, match=f"row {row}: the run is labelled, but .* is {value:g}"):
        label_intervals(runs.data, y, label_probability=probability)


def test_a_grade_that_is_out_of_range_is_named(runs):
    judge = np.linspace(0, 1, 600)
    table_of(runs, judge=judge)
    for value in (-0.01, 1.01):
        judge[42] = value
        with pytest.raises(ValueError, match=f"row 42: judge is {value:g}"):
            table_of(runs, judge=judge)


def test_twenty_labels_are_enough(runs):
    assert np.isfinite(table_of(runs, 20).loc[RATE, "low"])
    with pytest.raises(ValueError, match="19 runs of 600 are labelled"):
        table_of(runs, 19)


def test_what_forecasts_outcomes(runs):
    X, judge = runs.data, judged(runs.target, np.random.default_rng(13)).astype(float)
    log_odds = np.log(X.cells / (1 - X.cells)).clip(-5, 5)
    by_run = np.split(log_odds, X.offsets[1:-1])
    steps = np.log(X.lengths)
    columns = [
        [run[-1] for run in by_run], [run.mean() for run in by_run], [run.min() for run in by_run],
        steps, (steps - steps.mean()) ** 2, judge,
    ]  # fmt: skip
    features = outcome_features(X, judge)
    for k, column in enumerate(columns):
        scale = 2 if k == 5 else 1  # a verdict is shrunk less
        standard = (column - np.mean(column)) / np.std(column) * scale
        np.testing.assert_allclose(features[:, k], standard, atol=1e-9)
    assert (features[:, 6:] == 1).all()
    assert outcome_features(X, None).shape == (600, 6)


@pytest.mark.parametrize("values", [(-1.0, 1.0), (0.0, 2.0)])
def test_signals_forecast_outcomes_as_they_are(values):
    cells = np.linspace(*values, 40)
    features = outcome_features(TrajectoryArray(cells, np.ones(40, dtype=int)), None)
    np.testing.assert_allclose(features[:, 0], (cells - cells.mean()) / cells.std())
    assert (features[:, 3:5] == 0).all()  # lengths that do not vary say nothing


def test_labels_are_spread_over_ten_folds(runs):
    y = some_labels(runs.target, 100, np.random.default_rng(14))
    rows = np.flatnonzero(y >= 0)
    fold = _folds(runs.data.ids, runs.target, y >= 0, None)
    counts = np.array([np.bincount(fold[rows][y[rows] == k]) for k in (0, 1)])
    assert counts.shape == (2, 10)
    assert (np.ptp(counts, axis=1) <= 1).all()
    groups = np.repeat(np.arange(60), 10)
    by_group = _folds(runs.data.ids, runs.target, y >= 0, groups)
    assert all(len(set(by_group[groups == k])) == 1 for k in range(60))
    assert set(by_group) == set(range(10))
    own = by_group[::10]
    has_label = np.isin(np.arange(60), groups[rows])
    for kind in (has_label, ~has_label):
        counts = np.bincount(own[kind], minlength=10)
        assert np.ptp(counts) <= 1


def test_labels_of_two_groups_are_in_two_folds(runs):
    groups = np.arange(600) % 3
    y = np.where((groups < 2) & (np.arange(600) % 6 < 5), runs.target, -1)
    with pytest.warns(UserWarning, match="clusters of runs"):
        table = label_intervals(runs.data, y, label_probability=(y >= 0).mean(), groups=groups)
    assert np.isfinite(table.loc[RATE, "low"])


def test_weights_of_which_none_counts_are_refused():
    X = TrajectoryArray(np.full(6, 0.5), [2, 3, 1])
    with pytest.raises(ValueError, match="weights for steps 1 to 3 are all zero"):
        score_of_outcomes(X, get_family("log"), as_step_weights(lambda step: 0.0 * step))


# ------------------------------------------------------------------- small inputs by hand


def test_a_ratio_its_influences_and_slopes_by_hand():
    ratio = OutcomeRatio(*np.array([[3.0, 1], [1, 0], [2, 2], [1, 3]]))
    value, influence, slope = ratio.at(np.array([1.0, 0]))
    assert value == pytest.approx(3 / 5)  # (3 + 0) / (2 + 3)
    np.testing.assert_allclose(influence, [0.4 * (3 - 1.2), 0.4 * (0 - 1.8)])
    np.testing.assert_allclose(slope, [0.4 * (2 - 0.6), 0.4 * (1 + 0.6)])


@pytest.mark.parametrize(("rate", "constant"), [(0.0, 0.125), (0.5, 0.5), (1.0, 0.875)])
def test_the_best_constant_is_half_a_run_from_0_and_1(rate, constant):
    zero, weight = np.zeros(4), np.array([1.0, 2, 3, 4])
    margin = above_constant(OutcomeRatio(zero, zero, weight, weight), get_family("log"), rate)
    np.testing.assert_allclose(margin.success, -weight * np.log(constant))
    np.testing.assert_allclose(margin.failure, -weight * np.log(1 - constant))


def test_an_interval_of_few_labels_by_hand():
    row = half_labelled(0.5).estimate(rate_of(100), 0.9)
    low, high = wilson_interval(0.5, 0.25 / row["std_error"] ** 2, t.ppf(0.95, 19))
    assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_all_is_trusted_where_all_is_known():
    ones = np.ones(100)
    labels = FewLabels(ones, ones, ones, any_units(None, 100))
    assert labels.trust(rate_of(100)) == 1


def test_shares_of_verdicts_with_all_labels(runs):
    grade = np.linspace(0, 1, 600)
    table = label_intervals(runs.data, runs.target, judge=grade, label_probability=1.0)
    wrong = table.loc[["judge wrong on successes", "judge wrong on failures"], "value"]
    y = runs.target
    np.testing.assert_allclose(wrong, [1 - grade[y == 1].mean(), grade[y == 0].mean()])


def test_clusters_are_counted_of_labelled_runs(runs):
    tasks = np.repeat(np.arange(60), 10)
    y = np.where(tasks < 5, runs.target, -1)
    with pytest.warns(UserWarning, match="there are 5 clusters of runs; "):
        label_intervals(runs.data, y, label_probability=5 / 60, groups=tasks)


@pytest.mark.parametrize("value", [-0.01, 1.01, np.nan])
def test_a_verdict_is_in_0_to_1(value):
    np.testing.assert_array_equal(check_verdict([0, 0.5, 1], 3, "judge"), [0, 0.5, 1])
    with pytest.raises(ValueError, match=f"row 1: judge is {value:g}; give 0, 1 or a grade"):
        check_verdict([0, value, 1], 3, "judge")


def test_two_labelled_groups_are_enough():
    inverse = np.array([2.0, 0, 2, 0])
    _check_total(inverse, any_units(np.array([0, 0, 1, 1]), 4))
    with pytest.raises(ValueError, match="all labelled runs are of one group"):
        _check_total(inverse, any_units(np.array([0, 1, 0, 1]), 4))


@pytest.mark.parametrize(
    ("value", "n_used", "is_rate", "expected"),
    [
        (0.5, 8, False, (0.5 - 0.4, 0.5 + 0.4)),
        (0.5, 8, True, wilson_interval(0.5, 25.0, 4.0)),
        (1.2, 8, True, wilson_interval(1.0, 9.0, 4.0)),  # as if .9, of .1 times .9
        (-0.2, 8, True, wilson_interval(0.0, 9.0, 4.0)),
        (0.0, 3, True, wilson_interval(0.0, 16.0, 4.0)),  # as if .2
    ],
)
def test_bounds_by_hand(value, n_used, is_rate, expected):
    assert _bounds(value, 0.01, 4.0, n_used, is_rate) == pytest.approx(expected)
