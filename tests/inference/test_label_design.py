"""Which runs to label, and how many runs or labels are needed."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from trajscore import TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.inference import LabelDesign, labels_needed, runs_needed


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(400, sharpness=2, random_state=1)


def verdicts(runs):
    rng = np.random.default_rng(2)
    return np.where(rng.random(len(runs.target)) < 0.15, 1 - runs.target, runs.target)


def labelled(runs, rows):
    y = np.full(len(runs.target), -1)
    y[rows] = runs.target[rows]
    return y


def test_probabilities_are_how_often_runs_are_drawn(runs):
    judge, count = verdicts(runs), np.zeros(400)
    for seed in range(400):
        design = LabelDesign(60, random_state=seed).fit(runs.data, judge=judge)
        count[design.query()] += 1
    p = design.probabilities_
    z = (count / 400 - p) / np.sqrt(p * (1 - p) / 400)
    assert np.abs(z).max() < 5
    assert z.std() == pytest.approx(1, abs=0.15)


def test_the_same_whatever_the_order_of_rows(runs):
    order = np.random.default_rng(3).permutation(400)
    judge = verdicts(runs)
    design = LabelDesign(50, random_state=4).fit(runs.data, judge=judge)
    other = LabelDesign(50, random_state=4).fit(runs.data[order], judge=judge[order])
    np.testing.assert_array_equal(np.sort(order[other.query()]), design.query())
    np.testing.assert_array_equal(other.probabilities_, design.probabilities_[order])


def test_batches_together_are_right_on_average(runs):
    # the second batch depends on the labels of the first; no forecast is used here
    judge, values = verdicts(runs), []
    for seed in range(200):
        first = LabelDesign(40, random_state=seed).fit(runs.data, judge=judge)
        y = labelled(runs, first.query())
        then = LabelDesign(30, random_state=seed).fit(
            runs.data, y, judge=judge, label_probability=first.probabilities_
        )
        rows = np.unique([*first.query(), *then.query()])
        assert len(rows) == 70
        values.append((runs.target[rows] / then.probabilities_[rows]).sum() / 400)
    error = np.std(values) / np.sqrt(200)
    assert abs(np.mean(values) - runs.target.mean()) < 4 * error


def test_all_that_are_left_are_sure_to_be_drawn(runs):
    design = LabelDesign(1000, random_state=0).fit(runs.data)
    np.testing.assert_array_equal(design.query(), np.arange(400))
    np.testing.assert_allclose(design.probabilities_, 1)
    y = labelled(runs, np.arange(100))
    rest = LabelDesign(1000).fit(runs.data, y, label_probability=0.25)
    np.testing.assert_array_equal(rest.query(), np.arange(100, 400))
    np.testing.assert_allclose(rest.probabilities_, 1)


def test_is_an_estimator(runs):
    design = LabelDesign(30, random_state=0)
    assert clone(design).get_params() == design.get_params()
    with pytest.raises(NotFittedError):
        design.query()
    assert design.fit([[0.5], [0.6, 0.7], [0.2]]).query().tolist() == [0, 1, 2]


def test_no_probability_exceeds_one():
    # as in a bath that fills up: none above 1, the others in proportion to their sizes
    g = surer_at_most(FORECASTS)
    slope = margin_slope(FORECASTS, g)
    size = shares(slope, g, 50)
    for n_labels in (35, 45, 49):
        design = LabelDesign(n_labels, random_state=0).fit(of_one_step(FORECASTS))
        scale = brentq(lambda s, n=n_labels: np.minimum(1, s * size).sum() - n, 0, 100)
        np.testing.assert_allclose(design.probabilities_, np.minimum(1, scale * size), rtol=1e-8)
    assert (design.probabilities_ == 1).sum() > 1


FORECASTS = np.linspace(0.01, 0.99, 50)


def of_one_step(forecast):
    return TrajectoryArray(forecast, np.ones(len(forecast), dtype=int))


def surer_at_most(g):
    return np.clip(g, 0.03, 0.97)


def margin_slope(forecast, g):
    """What a success adds to the margin in log score of one step: log odds over the best."""
    return np.log(forecast / (1 - forecast)) - np.log(g.mean() / (1 - g.mean()))


def shares(slope, g, n_drawn):
    """Return the documented probabilities, of which none exceeds 1 here."""
    size = np.abs(slope) * np.sqrt(g * (1 - g))
    relative = size / size.mean() if size.any() else np.ones(len(g))
    return n_drawn / len(g) * (1.6 / 3 + 1.4 / 3 * relative)


def test_each_batch_has_its_share_of_all_kinds(runs):
    judge = verdicts(runs)
    design = LabelDesign(60, random_state=0).fit(runs.data, judge=judge)
    assert len(np.unique(design.query())) == 60
    assert (np.diff(design.query()) > 0).all()
    last = runs.data.cells[runs.data.offsets[1:] - 1]
    g = np.round(surer_at_most(last) + surer_at_most(judge), 9)
    drawn = np.isin(np.arange(400), design.query())
    for bound in np.unique(g):
        below = g <= bound
        assert abs(drawn[below].sum() - design.probabilities_[below].sum()) < 1


@pytest.mark.parametrize(("n_before", "share"), [(10, 1 / 2), (35, 2 / 3)])
def test_batches_count_by_their_sizes_or_by_what_they_take_of_the_rest(n_before, share):
    y = np.full(50, -1)
    y[:n_before] = np.arange(n_before) % 2
    before = n_before / 50
    design = LabelDesign(10, random_state=0)
    # a signal without a judge: all runs that are left are as likely as each other
    design.fit(of_one_step(FORECASTS - 0.5), y, label_probability=before)
    p = design.probabilities_
    if n_before < 20:  # from 20 labels on forecasts are fitted to them
        np.testing.assert_allclose(p[y < 0], 10 / (50 - n_before) / share)
    assert p[y < 0].sum() * share == pytest.approx(10)
    np.testing.assert_allclose(p[y >= 0], 1 / ((1 - share) / before + share))


@pytest.mark.parametrize(("n_labelled", "as_before"), [(19, True), (20, False)])
def test_from_20_labels_on_the_forecast_is_fitted_to_them(n_labelled, as_before):
    y = np.where(np.arange(50) < n_labelled, np.arange(50) % 2, -1)
    X = of_one_step(FORECASTS)
    p = (
        LabelDesign(1, random_state=0)
        .fit(X, y, label_probability=n_labelled / 50)
        .probabilities_[n_labelled:]
    )
    g = surer_at_most(FORECASTS[n_labelled:])
    slope = margin_slope(FORECASTS, surer_at_most(FORECASTS))[n_labelled:]
    expected = shares(slope, g, 1)
    assert np.allclose(p / p.sum(), expected / expected.sum()) == as_before


def test_a_judge_that_is_right_on_one_class_more_often():
    # verdicts of 1,000 runs: 720 of 800 passed and 80 failed successes, 80 and 120 failures
    k = (0.72 * 0.08 / 0.80) + (0.08 * 0.12 / 0.20)
    variance = (0.05 / 1.959964) ** 2 - 0.8 * 0.2 / 1000
    expected = 1 / (variance / k + 1 / 1000) + 1.959964**2 / 2
    n = labels_needed(0.05, n_runs=1000, success_rate=0.8, sensitivity=0.9, specificity=0.6)
    assert n == int(np.ceil(expected))


def test_a_width_that_all_labels_just_miss():
    # the half-width of 100 labels of 100 runs is 1.96 times .05
    with pytest.raises(ValueError, match="all 100 runs .* 0.098"):
        labels_needed(0.09799, n_runs=100)
    assert labels_needed(0.098, n_runs=100) == 100


def test_probabilities_are_as_documented():
    g, judge = surer_at_most(FORECASTS), np.arange(50) % 2
    both = (g + surer_at_most(judge)) / 2
    grades, one, half = np.linspace(0.1, 0.9, 50), np.ones(50), np.full(50, 0.5)
    ends = np.r_[0.0, FORECASTS[1:-1], 1.0]
    signal, high = of_one_step(FORECASTS - 0.5), of_one_step(2 * FORECASTS)
    for X, options, verdict, slope, forecast in [
        (of_one_step(FORECASTS), {}, None, margin_slope(FORECASTS, g), g),
        # a success of cell c has a score of -(1 - c)^2, a failure of -c^2
        (
            of_one_step(ends),
            {"score": "brier"},
            None,
            2 * (ends - surer_at_most(ends).mean()),  # of the best constant
            None,
        ),
        # verdict and last forecast count alike; of a signal only the judge forecasts, and the rate
        (of_one_step(FORECASTS), {}, judge, margin_slope(FORECASTS, both), both),
        (signal, {}, None, one, half),
        (high, {}, grades, one, grades),
        (of_one_step(half), {}, None, 0 * one, half),  # nothing moves it
    ]:
        design = LabelDesign(10, random_state=0, **options).fit(X, judge=verdict)
        expected = shares(slope, surer_at_most(ends) if forecast is None else forecast, 10)
        np.testing.assert_allclose(design.probabilities_, expected, err_msg=str(options))


def test_the_formula_by_hand():
    z, power = stats.norm.ppf(0.995), stats.norm.ppf(0.7)
    expected = (z + power) ** 2 * (0.3 / 0.05) ** 2 + z**2 / 2
    options = {"sd": 0.3, "power": 0.7, "alpha": 0.01}
    assert runs_needed(0.05, **options) == int(np.ceil(expected))
    # the deviation of a pilot is over n - 1
    pilot = np.array([0.1, -0.2, 0.4, 0.0, 0.3])
    assert runs_needed(0.05, pilot) == runs_needed(0.05, sd=pilot.std(ddof=1))


def with_effect(values, effect):
    """How many runs it takes at a design effect, of values with the pilot's deviation."""
    z, sd = stats.norm.ppf(0.975), values.std(ddof=1)
    return np.ceil(effect * ((z + stats.norm.ppf(0.8)) ** 2 * (sd / 0.3) ** 2 + z**2 / 2))


def test_power_with_clusters_is_as_asked(rng):
    # trials of a task share half of their variance
    def draw(size, n_tasks, trials):
        shared = rng.normal(size=(size, n_tasks, 1))
        return shared + rng.normal(size=(size, n_tasks, trials))

    pilot = draw(1, 3000, 4)[0]
    n = runs_needed(0.3, pilot.ravel(), groups=np.repeat(np.arange(3000), 4))
    assert n == pytest.approx(runs_needed(0.3, sd=np.sqrt(2)) * (1 + 3 / 2), rel=0.08)
    means = 0.3 + draw(3000, n // 4, 4).mean(axis=2)
    seen = stats.ttest_1samp(means, 0, axis=1).pvalue < 0.05
    assert seen.mean() == pytest.approx(0.8, abs=0.04)


def test_design_effects_by_hand(rng):
    # 10 runs in 5 clusters of two equal ones: the variance of 5, estimated with n - 1, over that
    # of 10, estimated with n - 1
    values, groups = np.repeat(rng.normal(size=5), 2), np.repeat(np.arange(5), 2)
    assert runs_needed(0.3, values, groups=groups) == with_effect(values, 9 / 4)
    # below one it is not used
    values, groups = np.tile([1.0, -1.1], 20), np.repeat(np.arange(20), 2)
    assert runs_needed(0.3, values, groups=groups) == with_effect(values, 1)
