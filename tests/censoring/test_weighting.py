import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from scripts import load_script
from trajscore import TrajectoryArray
from trajscore.censoring import (
    StopHazard,
    doubly_robust_tps_score,
    ipcw_tps_score,
)
from trajscore.inference.influence import influence_interval
from trajscore.metrics import censored_tps_score, tps_samples, tps_score

OWN = {"weights": "linear_front", "horizon": "own"}
# outcomes are known here of runs that were cut off
pytestmark = pytest.mark.filterwarnings("ignore:row .* the run ended after:UserWarning")

REPEATS = 8


def errors_of(monitored, estimators, smooth=True, **how):
    """Mean error of each estimator over repeats, and the same in standard errors."""
    errors = []
    for seed in range(REPEATS):
        runs, X, y, stopped = monitored(3000, seed, smooth)
        truth = tps_score(runs.final_outcome, runs.data, score="brier", **how)
        errors.append([estimate(X, y, stopped, **how) - truth for estimate in estimators])
    table = np.array(errors)
    mean = table.mean(axis=0)
    return mean, mean / (table.std(axis=0, ddof=1) / np.sqrt(REPEATS))


def complete_only(X, y, stopped, **how):
    return tps_score(y[~stopped], X[~stopped], score="brier", **how)


def simple(X, y, stopped, **how):
    return censored_tps_score(y, X, score="brier", **how)


def hazard_of(X, stopped, **options):
    return StopHazard(**{"cv": 2, **options}).fit(X, stopped)


def ipcw(X, y, stopped, classifier=None, **how):
    hazard = hazard_of(X, stopped, classifier=classifier)
    return ipcw_tps_score(y, X, hazard, score="brier", **how)


def robust(X, y, stopped, classifier=None, **how):
    hazard = hazard_of(X, stopped, classifier=classifier)
    return doubly_robust_tps_score(y, X, hazard, score="brier", **how)


@pytest.mark.parametrize("how", [{}, OWN], ids=["step weights", "own"])
def test_repaired_scores_are_right_where_the_others_are_not(monitored, how):
    _, z = errors_of(monitored, [complete_only, simple, ipcw, robust], **how)
    assert (np.abs(z[:2]) > 4).all()
    assert (np.abs(z[2:]) < 3).all()


def test_one_right_model_is_enough(monitored):
    flat = DummyClassifier(strategy="prior")  # stops at the same rate, whatever the history
    none = DummyRegressor()  # no model of the score
    rich = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge())
    error, z = errors_of(
        monitored,
        [
            lambda *run: ipcw(*run, classifier=flat),
            lambda *run: robust(*run, classifier=flat, regressor=rich),
            lambda *run: robust(*run, regressor=none),
        ],
    )
    assert abs(z[0]) > 4
    # the quadratic model of the score is nearly right, that of stops exactly
    assert abs(error[1]) < 0.5 * abs(error[0])
    assert abs(z[1]) < 3
    assert abs(z[2]) < 3


@pytest.mark.parametrize("score", [ipcw_tps_score, doubly_robust_tps_score])
def test_contributions_average_to_the_score(monitored, score):
    _, X, y, stopped = monitored(600, 0)
    hazard = hazard_of(X, stopped)
    value, samples = score(y, X, hazard, return_samples=True)
    assert value == score(y, X, hazard)
    np.testing.assert_allclose(samples.mean(), value)
    weight = np.arange(600) % 3
    weighted, samples = score(y, X, hazard, sample_weight=weight, return_samples=True)
    assert abs(weighted - value) > 1e-4
    np.testing.assert_allclose(np.average(samples, weights=weight), weighted)


def survival_by_hand(hazard):
    """Chance of no stop at any step of each run, from those at the steps."""
    ends = np.cumsum(hazard.history_.lengths)[:-1]
    return np.array([np.prod(1 - steps) for steps in np.split(hazard.hazard_, ends)])


def test_ipcw_weighs_scores_and_steps_and_its_contributions_are_its_influence(monitored):
    _, X, y, stopped = monitored(400, 3)
    hazard = hazard_of(X, stopped, min_probability=1e-6)
    value, samples = ipcw_tps_score(y, X, hazard, score="brier", return_samples=True)
    N, D = sums_of_each(y, X, stopped)
    inverse = np.where(stopped, 0.0, 1 / survival_by_hand(hazard))

    def ratio(count):
        return np.sum(count * inverse * N) / np.sum(count * inverse * D)

    np.testing.assert_allclose(value, ratio(np.ones(400)), rtol=1e-12)
    check_influence(samples, value, ratio)


def test_ipcw_as_published_is_the_weighted_mean(monitored):
    _, X, y, stopped = monitored(400, 3)
    hazard = hazard_of(X, stopped, min_probability=1e-6)
    value, samples = ipcw_tps_score(y, X, hazard, score="brier", return_samples=True, **OWN)
    g = tps_samples(np.where(stopped, 0, y), X, score="brier", **OWN)
    inverse = np.where(stopped, 0.0, 1 / survival_by_hand(hazard))

    def weighted_mean(count):
        return np.sum(count * inverse * g) / np.sum(count * inverse)

    np.testing.assert_allclose(value, weighted_mean(np.ones(400)), rtol=1e-12)
    check_influence(samples, value, weighted_mean)


def check_influence(samples, value, score):
    """One more run of a kind moves the score by (contribution - score) / n."""
    n, step = len(samples), 1e-6
    more = [score(1 + step * (np.arange(n) == k)) for k in range(n)]
    influence = n * (np.array(more) - value) / step
    np.testing.assert_allclose(samples - value, influence, atol=1e-4)
    assert np.abs(influence).max() > 1


def sums_of_each(y, X, stopped):
    """Sum of w_t S of each run, 0 where it was stopped, and of w_t; by the Brier score."""
    N, D = np.zeros((2, len(X)))
    for k, (run, outcome) in enumerate(zip(X, y, strict=True)):
        w = 1 / np.sqrt(np.arange(1, len(run) + 1))
        N[k], D[k] = 0.0 if stopped[k] else -(w @ (run - outcome) ** 2), w.sum()
    return N, D


def test_standard_error_of_contributions_is_the_spread_of_scores(monitored):
    scores = {ipcw_tps_score: [], doubly_robust_tps_score: []}
    errors = {score: [] for score in scores}
    for seed in range(30):
        _, X, y, stopped = monitored(500, 100 + seed)
        hazard = hazard_of(X, stopped)
        for score in scores:
            value, samples = score(y, X, hazard, score="brier", return_samples=True)
            scores[score].append(value)
            errors[score].append(samples.std() / np.sqrt(500))
    for score in scores:
        # the spread of 30 scores is known to 13%
        assert 0.7 < np.mean(errors[score]) / np.std(scores[score]) < 1.45


def test_hazards_are_learnt_out_of_fold(monitored):
    _, X, _, stopped = monitored(600, 0)
    hazard = hazard_of(X, stopped, cv=3)
    assert (np.bincount(hazard.fold_[stopped]) >= stopped.sum() // 3).all()
    last = np.zeros(len(X.cells), dtype=bool)
    last[X.offsets[1:] - 1] = True
    own_end = last & ~np.repeat(stopped, X.lengths)
    assert (hazard.hazard_[own_end] == 0).all()
    assert (hazard.hazard_[~own_end] > 0).all()
    # with the prior as model: the share of stops among the steps at risk of the other folds
    flat = hazard_of(X, stopped, cv=3, classifier=DummyClassifier(strategy="prior"))
    np.testing.assert_array_equal(flat.fold_, hazard.fold_)
    fold = np.repeat(flat.fold_, X.lengths)
    event = last & np.repeat(stopped, X.lengths)
    for k in range(3):
        share = event[fold != k].sum() / (~own_end)[fold != k].sum()
        np.testing.assert_allclose(flat.hazard_[(fold == k) & ~own_end], share)


class Largest(RegressorMixin, BaseEstimator):
    """Predicts more than any target; so what is left of it is the largest target."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.full(len(X), 1e9)


@pytest.fixture
def outlived(monitored):
    """Runs of which nobody outlives one that was stopped, and their hazard."""
    _, X, y, stopped = monitored(400, 4)
    X = TrajectoryArray(np.r_[X.cells, np.full(14, 0.3)], np.r_[X.lengths, 14])
    y, stopped = np.r_[y, -1], np.r_[stopped, True]
    return X, y, stopped, hazard_of(X, stopped, classifier=DummyClassifier(strategy="prior"))


MODELS = [(DummyRegressor(), np.mean), (Largest(), np.max)]


@pytest.mark.parametrize(("regressor", "of_targets"), MODELS)
def test_doubly_robust_contributions_are_those_of_the_book(outlived, regressor, of_targets):
    X, y, stopped, hazard = outlived
    options = {"regressor": regressor, "score": "brier", "return_samples": True}
    value, samples = doubly_robust_tps_score(y, X, hazard, **options)
    N, D = (augmented(X, stopped, g, hazard, of_targets) for g in sums_of_each(y, X, stopped))
    np.testing.assert_allclose(value, N.mean() / D.mean(), rtol=1e-9)
    np.testing.assert_allclose(samples, value + (N - value * D) / D.mean(), rtol=1e-9)


@pytest.mark.parametrize(("regressor", "of_targets"), MODELS)
def test_doubly_robust_contributions_as_published(outlived, regressor, of_targets):
    X, y, stopped, hazard = outlived
    options = {"regressor": regressor, "score": "brier", "return_samples": True, **OWN}
    _, samples = doubly_robust_tps_score(y, X, hazard, **options)
    g = np.where(stopped, 0, tps_samples(np.where(stopped, 0, y), X, score="brier", **OWN))
    np.testing.assert_allclose(samples, augmented(X, stopped, g, hazard, of_targets), rtol=1e-9)


def test_the_usual_model_of_the_score_is_a_ridge_regression(outlived):
    X, y, _, hazard = outlived
    ridge = make_pipeline(StandardScaler(), Ridge())
    values = [doubly_robust_tps_score(y, X, hazard, regressor=model) for model in (None, ridge)]
    assert values[0] == values[1]
    unscaled = doubly_robust_tps_score(y, X, hazard, regressor=Ridge())
    assert abs(unscaled - values[0]) > 1e-6


def augmented(X, stopped, g, hazard, of_targets):
    """Inverse weights times g, and what was to be expected where a stop came, or did not."""
    models = [scores_to_come(X, stopped, g, hazard.fold_ != k, of_targets) for k in range(2)]
    expected = np.where(stopped, 0.0, g / survival_by_hand(hazard))
    for i in range(len(X)):
        own = np.arange(X.offsets[i], X.offsets[i + 1])
        stay = np.cumprod(1 - hazard.hazard_[own])
        for t in range(len(own) - 1 + stopped[i]):
            surprise = (t == len(own) - 1) - hazard.hazard_[own[t]]
            expected[i] += surprise / stay[t] * models[hazard.fold_[i]][t]
    return expected


def scores_to_come(X, stopped, g, train, of_targets):
    """Expected score of a run that goes on after each step, from runs of `train` that went on."""
    rows = np.flatnonzero(train)
    longest = X.lengths.max()
    value = np.full((len(X), longest), np.nan)
    whole = rows[~stopped[rows]]
    value[whole, X.lengths[whole] - 1] = g[whole]
    out = np.full(longest, np.nan)
    for t in range(longest - 1, -1, -1):
        at_risk = rows[X.lengths[rows] - 1 + stopped[rows] > t]
        went_on = at_risk[X.lengths[at_risk] - 1 > t]
        # where none went on: the mean score of those that were not stopped
        out[t] = of_targets(value[went_on, t + 1]) if len(went_on) else g[whole].mean()
        value[at_risk, t] = out[t]
    return out


class Recorder(DummyRegressor):
    seen = []  # noqa: RUF012

    def fit(self, X, y):
        self.seen.append(X)
        return super().fit(X, y)


@pytest.mark.parametrize("own", [False, True])
def test_the_models_of_score_and_steps_know_what_the_steps_so_far_score(monitored, own):
    _, X, y, stopped = monitored(100, 5)
    hazard = hazard_of(X, stopped)
    Recorder.seen.clear()
    how = OWN if own else {}
    doubly_robust_tps_score(y, X, hazard, regressor=Recorder(), score="brier", **how)
    step = np.concatenate([np.arange(1, n + 1) for n in X.lengths])
    # weights that tell the end of a run are left out, and means do not tell the number of steps
    each = np.column_stack([-((X.cells - 1) ** 2), -(X.cells**2)])
    each *= 1 if own else 1 / np.sqrt(step)[:, None]
    so_far = np.concatenate([np.cumsum(run, axis=0) for run in np.split(each, X.offsets[1:-1])])
    if own:
        so_far = so_far / step[:, None]
    expected = X.cells * so_far[:, 0] + (1 - X.cells) * so_far[:, 1]
    now = X.cells * each[:, 0] + (1 - X.cells) * each[:, 1]
    so_far = np.column_stack([so_far, expected, now])
    known = np.column_stack([hazard.features_, so_far])
    fold = np.repeat(hazard.fold_, X.lengths)
    goes_on = step < np.repeat(X.lengths, X.lengths)
    at_risk = goes_on | np.repeat(stopped, X.lengths)
    expected = [
        known[goes_on & (fold != k) & (step == t)]
        for k in range(2)
        for t in np.unique(step[at_risk])[::-1]
    ]
    # a model of the score and, with weights by step, one of what the steps to come weigh
    expected = [rows for rows in expected if len(rows)] * (1 if own else 2)
    assert len(Recorder.seen) == len(expected)
    for found, rows in zip(Recorder.seen, expected, strict=True):
        np.testing.assert_allclose(found, rows, rtol=1e-12)


@pytest.mark.parametrize("how", [{}, OWN], ids=["step weights", "own"])
def test_the_horizon_of_a_stopped_run_is_not_read(monitored, how):
    _, X, y, stopped = monitored(400, 7)
    hazard = hazard_of(X, stopped)
    longer = TrajectoryArray(X.cells, X.lengths, horizon=np.where(stopped, X.lengths, X.horizon))
    assert (longer.horizon < X.horizon).any()
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        assert score(y, longer, hazard, **how) == score(y, X, hazard, **how)


def test_repaired_scores_are_right_where_nobody_knows_how_long_a_run_would_have_been():
    informative_stops = load_script("informative_stops")
    design = informative_stops.DESIGNS["guide, 6 steps"]
    found = [informative_stops.estimates(1000, design, seed) for seed in range(8)]
    errors = {name: np.mean([one[name][0] - one[name][3] for one in found]) for name in found[0]}
    # a model of the score that saw the length a run came to was off by .03
    assert abs(errors["doubly robust"]) < 0.015
    assert abs(errors["IPCW"]) < 0.015


def test_no_stop_no_repair_and_row_order_does_not_matter(monitored, rng):
    runs, X, y, stopped = monitored(600, 1)
    order = rng.permutation(600)
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        assert score(runs.final_outcome, runs.data) == tps_score(runs.final_outcome, runs.data)
        nobody = StopHazard().fit(runs.data, np.zeros(600, dtype=bool))
        assert score(y, X) == score(y, X, StopHazard().fit(X, stopped))
        assert score(runs.final_outcome, runs.data, nobody) == score(runs.final_outcome, runs.data)
        plain = score(y, X, hazard_of(X, stopped))
        shuffled = score(y[order], X[order], hazard_of(X[order], stopped[order]))
        np.testing.assert_allclose(shuffled, plain, rtol=1e-6)
        by_task = StopHazard(cv=2).fit(X, stopped, groups=np.arange(600) // 3)
        assert np.ptp(by_task.fold_.reshape(-1, 3), axis=1).max() == 0
        np.testing.assert_allclose(score(y, X, by_task), plain, atol=0.03)


def test_budget_stops_keep_their_q(monitored, rng):
    _, X, y, stopped = monitored(600, 2)
    budget = ~stopped & (rng.random(600) < 0.2)
    codes = np.where(budget, -1, y)
    q = rng.random(600)
    hazard = StopHazard().fit(X, stopped)
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        same = score(codes, X, hazard, q_z=np.where(budget, y, np.nan))
        np.testing.assert_allclose(same, score(y, X, hazard), rtol=1e-12)
        assert score(codes, X, hazard) == score(codes, X, hazard, q_z=0)
    # linear in each q_z, and so extreme where each run has its worse, or its better, outcome
    worse, better = (tps_samples(np.full(600, one), X, normalize=False) for one in (0, 1))
    worse = worse > better
    low, high, failed, solved, mixed, half = (
        ipcw_tps_score(codes, X, hazard, q_z=one) for one in (worse, ~worse, 0, 1, q, 0.5)
    )
    assert low < mixed < high < low + 0.3
    np.testing.assert_allclose(half, (failed + solved) / 2, rtol=1e-12)
    inverse = np.where(stopped, 0.0, 1 / survival_by_hand(hazard))
    by_hand = censored_tps_score(codes, X, q_z=q, sample_weight=inverse)
    np.testing.assert_allclose(mixed, by_hand, rtol=1e-9)


class Unclipped:
    name = "unclipped log"

    def success(self, p):
        with np.errstate(divide="ignore"):
            return np.log(p)

    def failure(self, p):
        return self.success(1 - p)


def test_a_stopped_run_has_no_score_of_its_own(monitored):
    _, X, y, stopped = monitored(300, 6)
    hazard = hazard_of(X, stopped)
    sure = X.with_cells(np.where(np.repeat(stopped, X.lengths), 1.0, np.clip(X.cells, 0.01, 0.99)))
    value, samples = ipcw_tps_score(y, sure, hazard, score=Unclipped(), return_samples=True)
    assert np.isfinite(samples).all()
    assert value == ipcw_tps_score(
        y, sure.with_cells(np.minimum(sure.cells, 0.99)), hazard, score=Unclipped()
    )


def test_small_chances_are_reported():
    runs = 400
    X = TrajectoryArray(np.tile([0.1, 0.9], runs // 2).repeat(2), np.full(runs, 2))
    X = X.truncate(np.where((np.arange(runs) % 2 == 0) & (np.arange(runs) > 3), 1, 2))
    y = np.where(X.lengths == 1, -1, np.arange(runs) // 2 % 2)
    with pytest.warns(UserWarning, match="2 runs .* of not being stopped, raised to 0.2"):
        hazard = StopHazard(min_probability=0.2).fit(X, y == -1)
    assert hazard.survival_.min() == 0.2
    assert np.isfinite(ipcw_tps_score(y, X, hazard))


def test_a_hazard_that_does_not_fit():
    X = [[0.5, 0.4], [0.6, 0.6], [0.7, 0.2]]
    y = [-1, 1, 0]
    for options, match in (
        ({"stopped": [True, True, True]}, "all 3 runs were stopped"),
        ({"stopped": ["parse_error", "", ""]}, "3 booleans"),
        ({"stopped": [1, 0, 0]}, "3 booleans"),
        ({"stopped": [True, False, False], "groups": [1, 1, 1]}, "1 groups of runs, too few"),
    ):
        with pytest.raises(ValueError, match=match):
            StopHazard(cv=2).fit(X, **options)
    with pytest.raises(ValueError, match="cv must be at least 2"):
        StopHazard(cv=1).fit(X, [True, False, False])
    with pytest.raises(ValueError, match="cv = 5 is more than"):
        StopHazard().fit(X, [True, False, False])
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        with pytest.raises(NotFittedError):
            score(y, X, StopHazard())
        with pytest.raises(ValueError, match="row 1: its outcome was observed"):
            score(y, X, StopHazard(cv=2).fit(X, [True, True, False]))
        other = StopHazard(cv=2).fit(np.full((3, 3), 0.5), [True, False, False])
        with pytest.raises(ValueError, match="history of hazard and traces have 3 and 2 steps"):
            score(y, X, other)
        with pytest.raises(ValueError, match="all 3 runs were stopped"):
            score([-1, -1, -1], X)


@pytest.mark.parametrize("least", [0, 1.1, "a", None])
def test_bad_chances(least):
    with pytest.raises(ValueError, match=rf"min_probability must lie in \(0, 1\], got {least!r}"):
        StopHazard(min_probability=least).fit([[0.5], [0.6]], [True, False])


@pytest.mark.parametrize("score", [ipcw_tps_score, doubly_robust_tps_score])
@pytest.mark.parametrize(
    ("q_z", "match"), [([0.1, 0.2], "q_z must be one number or 60"), (2, "row 5: .* q_z is 2")]
)
def test_bad_q_z_of_repaired_scores(score, q_z, match):
    X = TrajectoryArray(np.random.default_rng(0).random(180), [3] * 60)
    y = np.where(np.arange(60) < 10, -1, np.arange(60) % 2)
    hazard = StopHazard().fit(X, np.arange(60) < 5)
    with pytest.raises(ValueError, match=match):
        score(y, X, hazard, q_z=q_z)


def test_history_and_traces_are_of_the_same_runs():
    X = TrajectoryArray.from_list([[0.5, 0.4], [0.6, 0.6], [0.7, 0.2]], ids=["a", "b", "c"])
    hazard = StopHazard(cv=2).fit(X[::-1], [True, False, False])
    with pytest.raises(ValueError, match="row 0 is run 'c' in the history of hazard, but run 'a'"):
        ipcw_tps_score([1, 0, -1], X, hazard)


def test_intervals_know_how_few_runs_stand_for_the_others(monitored):
    _, X, y, stopped = monitored(300, 9)
    hazard = hazard_of(X, stopped)
    task = np.arange(300) // 3
    factor = 300 / ((~stopped).sum() - 8)  # two for each of four features
    for score in (ipcw_tps_score, doubly_robust_tps_score):
        value, samples = score(y, X, hazard, return_samples=True)
        for groups in (None, task):
            low, high = influence_interval(
                value, np.sqrt(factor) * (samples - value), groups=groups, confidence_level=0.9
            )
            found = hazard.interval(samples, groups=groups, confidence_level=0.9)
            np.testing.assert_allclose(found, (low, high), rtol=1e-9)
    nobody = StopHazard().fit(X, np.zeros(300, dtype=bool))
    plain = influence_interval(value, np.sqrt(300 / 292) * (samples - value))
    np.testing.assert_allclose(nobody.interval(samples), plain, rtol=1e-9)
    with pytest.raises(ValueError, match=r"300 contributions, one for each run .* shape \(2,\)"):
        hazard.interval([0.1, 0.2])
    with pytest.raises(NotFittedError):
        StopHazard().interval(samples)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["12 steps", "5 trials a task"])
def test_intervals_of_few_runs_hold_the_score(name):
    informative_stops = load_script("informative_stops")
    found = informative_stops.table(150, informative_stops.DESIGNS[name], 60)
    assert (found["coverage"].dropna() >= 0.88).all()  # .93 but for three standard errors
    # the doubly robust score is nearer, and varies more
    spread, error = found["spread"], found["error"].abs()
    assert spread["doubly robust"] > 1.1 * spread["IPCW"]
    assert error["doubly robust"] < error["IPCW"]
