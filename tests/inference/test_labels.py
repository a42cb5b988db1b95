"""Intervals from few labels and a judge: by a slow implementation, by simulation, refusals."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import binomtest, t
from sklearn.linear_model import LogisticRegression

from trajscore import TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.inference import LabelDesign, label_intervals
from trajscore.metrics import tps_score

RATE, SCORE, MARGIN = "success rate", "TPS log", "TPS log margin"
MISSED, PASSED = "judge wrong on successes", "judge wrong on failures"


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


class Slowly:
    """The estimates of the page, with the forecasts of scikit-learn, of runs in order."""

    def __init__(self, X, y, probability, judge, groups):
        self.n, self.labelled, self.groups = len(y), y >= 0, groups
        self.outcome = np.where(self.labelled, y, 0.0)
        self.inverse = self.labelled / probability
        unit = np.arange(self.n) if groups is None else groups
        self.unit = np.unique(unit, return_inverse=True)[1]
        self.forecast = self._forecast(X, judge)

    def _forecast(self, X, judge):
        low, high = X.cells.min(), X.cells.max()
        cells = logit(X.cells).clip(-5, 5) if low >= 0 and high <= 1 else X.cells
        by_run, steps = np.split(cells, X.offsets[1:-1]), np.log(X.lengths)
        Z = [[run[-1] for run in by_run], [run.mean() for run in by_run]]
        Z += [[run.min() for run in by_run], steps, (steps - steps.mean()) ** 2]
        Z = np.array(Z if judge is None else [*Z, judge], dtype=float).T
        spread = Z.std(axis=0)
        Z = (Z - Z.mean(axis=0)) / np.where(spread > 1e-12, spread, 1)
        if judge is not None:
            Z[:, -1] *= 2  # a verdict is shrunk less
        Z = np.c_[Z, np.full(self.n, np.sqrt(10))]  # the penalty on the constant is a tenth
        forecast, fold = np.empty(self.n), self._folds(X.ids)
        for k in np.unique(fold):
            train = self.labelled & (fold != k)
            fit = LogisticRegression(fit_intercept=False, solver="newton-cholesky", tol=1e-12)
            fit.fit(Z[train], self.outcome[train])
            forecast[fold == k] = fit.predict_proba(Z[fold == k])[:, 1]
        return forecast

    def _folds(self, ids):
        outcome = self.outcome.astype(int)
        if self.groups is None:
            n_folds, fold = min(10, np.bincount(outcome[self.labelled]).max()), 0 * outcome
            for kind in itertools.product((0, 1), (False, True)):  # they alternate within each
                rows = np.flatnonzero((outcome == kind[0]) & (self.labelled == kind[1]))
                fold[rows[np.argsort(ids[rows])]] = np.arange(len(rows)) % n_folds
            return fold
        has_label = np.bincount(self.unit, self.labelled) > 0
        n_folds, fold = max(2, min(10, has_label.sum())), np.empty(len(has_label), dtype=int)
        for kind in (has_label, ~has_label):
            fold[kind] = np.arange(kind.sum()) % n_folds
        return fold[self.unit]

    def sums(self, values):
        return np.bincount(self.unit, values)

    def row(self, success, failure, success_weight, failure_weight, is_rate, level=0.95):
        def terms(y):
            above = failure + y * (success - failure)
            return above, failure_weight + y * (success_weight - failure_weight)

        def residual(y):
            above, below = terms(y)
            return above - value * below

        def pseudo(trust):
            pairs = zip(terms(self.outcome), terms(self.forecast), strict=True)
            return [trust * g + self.inverse * (y - trust * g) for y, g in pairs]

        def ratio(trust):
            above, below = pseudo(trust)
            return above.sum() / below.sum(), self.n / below.sum()

        def spread(trust):
            guess = trust * residual(self.forecast)
            return (self.sums(guess + self.inverse * (residual(self.outcome) - guess)) ** 2).sum()

        value, _ = ratio(1)
        curve = np.polyfit([0, 0.5, 1], [spread(x) for x in (0, 0.5, 1)], 2)
        trust = np.clip(-curve[1] / (2 * curve[0]), 0, 1) if curve[0] > 1e-9 else 1.0
        value, scale = ratio(trust)
        above, below = pseudo(trust)
        sizes, psi = self.sums(np.ones(self.n)), self.sums(scale * (above - value * below))
        G = len(sizes)
        plain = (G - 1) / G * (psi**2 / (1 - sizes / self.n) ** 2).sum() / self.n**2
        guess = trust * residual(self.forecast)
        seen, other = residual(self.outcome) - guess, residual(1 - self.outcome) - guess
        noise = self.inverse * (self.inverse - 1) * self.labelled * (scale / self.n) ** 2
        of_labels = noise @ seen**2
        of_runs = max(plain - of_labels, 0)
        wrong = np.abs(self.outcome - self.forecast)
        expected = noise @ ((1 - wrong) * seen**2 + wrong * other**2)
        variance = of_runs + max(of_labels, expected) if is_rate else plain
        variance += 2 / self.labelled.sum() * (noise @ other**2)
        used = self.labelled & (terms(self.outcome)[1] > 0)
        in_unit = self.sums(used * self.inverse)
        q = t.ppf((1 + level) / 2, in_unit.sum() ** 2 / (in_unit**2).sum() - 1)
        half = q * np.sqrt(variance)
        low, high = value - half, value + half
        if is_rate:
            p, least = np.clip(value, 0, 1), 1 / (used.sum() + 2)
            inside = np.clip(p, least, 1 - least)
            n = inside * (1 - inside) / variance
            centre = (p + q**2 / (2 * n)) / (1 + q**2 / n)
            half = q * np.sqrt(p * (1 - p) / n + q**2 / (4 * n**2)) / (1 + q**2 / n)
            low, high = max(centre - half, 0), min(centre + half, 1)
            shown = [pair[used] for pair in terms(self.outcome)]
            low, high = low * shown[0].any(), high if (shown[0] < shown[1]).any() else 1.0
        alone = self.inverse @ (scale * residual(self.outcome)) ** 2 / self.inverse.sum()
        worth = min(alone / variance, self.n)
        value = np.clip(value, low, high)
        return [value, low, high, np.sqrt(variance), np.sqrt(of_runs), worth]

    def rates(self, judge, level):
        one, zero = np.ones(self.n), np.zeros(self.n)
        rows = {RATE: self.row(one, zero, one, one, True, level)}
        rows[MISSED] = self.row(1 - judge, zero, one, zero, True, level)
        rows[PASSED] = self.row(zero, judge, zero, one, True, level)
        return rows

    def scores(self, X, level):
        weight = 1 / np.sqrt(np.concatenate([np.arange(1, n + 1) for n in X.lengths]))
        run = np.repeat(np.arange(self.n), X.lengths)
        p = X.cells.clip(1e-6, 1 - 1e-6)
        success, failure, divisor = (
            np.bincount(run, weight * x) for x in (np.log(p), np.log1p(-p), np.ones(len(p)))
        )
        # the best constant is the forecast success rate, weighted as the score is
        zero = np.zeros(self.n)
        rate = self.row(divisor, zero, divisor, divisor, False)[0]
        rate = np.clip(rate, 0.5 / self.n, 1 - 0.5 / self.n)
        above = success - divisor * np.log(rate), failure - divisor * np.log1p(-rate)
        return {
            SCORE: self.row(success, failure, divisor, divisor, False, level),
            MARGIN: self.row(*above, divisor, divisor, False, level),
        }


NUMBERS = ["value", "low", "high", "std_error", "std_error_all", "worth"]


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("right", [(0.9, 0.8), (1.0, 1.0), (0.3, 0.2)])
def test_all_is_as_written_on_the_page(runs, clustered, right):
    rng = np.random.default_rng(5)
    y, judge = some_labels(runs.target, 120, rng), judged(runs.target, rng, right)
    groups = rng.integers(60, size=600) if clustered else None
    X = TrajectoryArray(runs.data.cells, runs.data.lengths, ids=np.arange(600))
    probability = np.clip(0.2 + 0.1 * rng.normal(size=600), 0.15, 0.4)
    table = label_intervals(
        X, y, judge=judge, groups=groups, label_probability=probability, confidence_level=0.9
    )
    slow = Slowly(X, y, probability, judge.astype(float), groups)
    rows = slow.rates(judge, 0.9) | slow.scores(X, 0.9)
    assert list(table.index) == list(rows)
    for name, row in rows.items():
        np.testing.assert_allclose(table.loc[name, NUMBERS].astype(float), row, 2e-5, err_msg=name)
    assert (table["n_labels"] == 120).all()
    assert (table["n_runs"] == 600).all()
    assert (table["note"] == "").all()


def test_signals_forecast_outcomes_as_they_are():
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=100)
    X = TrajectoryArray(3 * y + rng.normal(size=100), np.ones(100, dtype=int), ids=np.arange(100))
    labels = some_labels(y, 50, rng)
    table = label_intervals(X, labels, label_probability=0.5)
    slow = Slowly(X, labels, np.full(100, 0.5), None, None)
    one = np.ones(100)
    expected = slow.row(one, 0 * one, one, one, True)
    np.testing.assert_allclose(table.loc[RATE, NUMBERS].astype(float), expected, rtol=1e-5)
    assert [*table.index] == [RATE]  # without a judge, and of no forecast, there is no other
    for shift in (-0.5, 0.5):
        beyond = TrajectoryArray(np.linspace(0, 1, 100) + shift, np.ones(100, dtype=int))
        assert [*label_intervals(beyond, labels, label_probability=0.5).index] == [RATE]


def test_rows_in_any_order_give_the_same(runs):
    rng = np.random.default_rng(5)
    X = TrajectoryArray(runs.data.cells, runs.data.lengths, ids=rng.permutation(600))
    y, order = some_labels(runs.target, 80, rng), rng.permutation(600)
    options = {"judge": judged(runs.target, rng), "groups": rng.integers(60, size=600)}
    options |= {"label_probability": np.full(600, 80 / 600)}
    table = label_intervals(X, y, **options)
    other = label_intervals(X[order], y[order], **{k: v[order] for k, v in options.items()})
    np.testing.assert_array_equal(table.drop(columns="note"), other.drop(columns="note"))


def test_all_labels_give_what_all_outcomes_give(runs):
    y, grade = runs.target, np.linspace(0, 1, 600)
    table = label_intervals(runs.data, y, judge=grade, label_probability=1.0)
    value = table["value"]
    # the best constant is the success rate over steps, with their weights
    weight = np.add.reduceat(
        1 / np.sqrt(np.concatenate([np.arange(1, n + 1) for n in runs.data.lengths])),
        runs.data.offsets[:-1],
    )
    constant = runs.data.with_cells(np.full(len(runs.data.cells), y @ weight / weight.sum()))
    score = tps_score(y, runs.data)
    expected = {
        RATE: y.mean(), MISSED: 1 - grade[y == 1].mean(), PASSED: grade[y == 0].mean(),
        SCORE: score, MARGIN: score - tps_score(y, constant),
    }  # fmt: skip
    np.testing.assert_allclose(value[list(expected)], list(expected.values()))
    np.testing.assert_allclose(table["std_error"], table["std_error_all"])
    assert table.loc[RATE, "worth"] == pytest.approx(600, rel=0.003)
    brier = label_intervals(runs.data, y, label_probability=1, score="brier", weights="uniform")
    expected = tps_score(y, runs.data, score="brier", weights="uniform")
    assert brier.loc["TPS brier", "value"] == pytest.approx(expected)
    for name in (SCORE, MARGIN):
        row = table.loc[name]
        reach = t.ppf(0.975, 599) * row["std_error"]
        assert [row["low"], row["high"]] == pytest.approx(
            [value[name] - reach, value[name] + reach]
        )


@pytest.mark.parametrize("rate", [0, 1])
def test_a_rate_of_all_labels_that_are_alike(runs, rate):
    table = label_intervals(runs.data, np.full(600, rate), label_probability=1.0)
    row = table.loc[RATE]
    assert (row["value"], row["std_error"], row["worth"]) == (rate, 0, 600)
    assert ("failed" if rate else "succeeded") in table.loc[SCORE, "note"]
    assert table.loc[[SCORE, MARGIN], ["value", "low", "high"]].isna().all(axis=None)


def test_a_wrong_judge_does_not_bias(runs):
    # one that says the opposite of the truth in most runs, more so where runs are long
    X, truth, values = runs.data[:300], runs.target[:300], []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        wrong = rng.random(300) < 0.4 + 0.05 * X.lengths
        labels, judge = some_labels(truth, 60, rng), np.where(wrong, 1 - truth, truth)
        table = label_intervals(X, labels, judge=judge, label_probability=0.2)
        values.append(table.loc[RATE, "value"])
    assert abs(np.mean(values) - truth.mean()) < 4 * np.std(values) / np.sqrt(80)


def test_what_no_label_shows_may_never_happen_and_what_all_show_always(runs):
    # a judge that passes all successes, and one that passes all failures
    failed, long = runs.target == 0, runs.data.lengths > 6
    for seed in range(3):
        missed = table_of(runs, seed=seed, judge=~(failed & long)).loc[MISSED]
        assert missed["low"] == 0
        assert 0 < missed["high"] < 0.3
        passed = table_of(runs, seed=seed, judge=failed | long).loc[PASSED]
        assert passed["high"] == 1
        assert 0.5 < passed["low"] < 1


def test_intervals_of_a_nearly_perfect_judge_hold(n_simulations):
    population = make_trajectories(20_000, base_rate=0.7, sharpness=1.5, random_state=9)
    all_labels = label_intervals(population.data, population.target, label_probability=1.0)
    truth, n_repeats = all_labels["value"], max(n_simulations // 4, 40)

    def draw(rng):
        rows = rng.integers(20_000, size=400)
        X = TrajectoryArray(population.data[rows].cells, population.data.lengths[rows])
        y = population.target[rows]
        judge = judged(y, rng, (0.99, 0.98))
        design = LabelDesign(50, random_state=int(rng.integers(2**31))).fit(X, judge=judge)
        labels = np.full(400, -1)
        labels[design.query()] = y[design.query()]
        return label_intervals(X, labels, judge=judge, label_probability=design.probabilities_)

    tables = [draw(np.random.default_rng(seed)).loc[truth.index] for seed in range(n_repeats)]
    hits = sum((table["low"] <= truth) & (table["high"] >= truth) for table in tables)
    for name, count in hits.items():
        assert binomtest(count, n_repeats, 0.94).proportion_ci(0.999).high > 0.94, name


def test_fewest_labels_of_a_class(runs):
    for n_successes in (4, 5):
        rows = np.flatnonzero(runs.target == 1)[:n_successes]
        rows = [*rows, *np.flatnonzero(runs.target == 0)[:60]]
        y = np.full(600, -1)
        y[rows] = runs.target[rows]
        probability = (n_successes + 60) / 600
        table = label_intervals(runs.data, y, judge=np.zeros(600), label_probability=probability)
        row = table.loc[MISSED]
        if n_successes == 4:
            assert "4 labelled runs" in row["note"]
            assert np.isnan(row["value"])
        else:
            assert row["note"] == ""
            assert row["low"] > 0
            assert row["high"] == 1  # no label shows a run without a flag


def test_tasks_may_be_labelled_whole_and_few_of_them_warn(runs):
    tasks = np.repeat(np.arange(60), 10)
    for n_tasks in (20, 5, 2):
        y = np.where(tasks < n_tasks, runs.target, -1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = label_intervals(runs.data, y, label_probability=n_tasks / 60, groups=tasks)
        assert np.isfinite(table[["low", "high"]]).all(axis=None)
        found = [str(one.message) for one in caught]
        assert len(found) == (n_tasks < 15), found
        assert all(f"{n_tasks} clusters" in text for text in found)
    with pytest.raises(ValueError, match="one group"):
        y = np.where(tasks < 2, runs.target, -1)
        label_intervals(runs.data, y, label_probability=1 / 30, groups=np.maximum(tasks, 1))


def test_how_far_probabilities_may_be_off(runs):
    for probability, n_labels, fits in [
        (0.05, 60, True), (0.048, 60, False),  # 3.97 and 4.09 standard errors, less 1% of runs
        (0.145, 60, True), (0.152, 60, False),
        (1.0, 595, True), (1.0, 593, False),
    ]:  # fmt: skip
        y = some_labels(runs.target, n_labels, np.random.default_rng(11))
        if fits:
            label_intervals(runs.data, y, label_probability=probability)
        else:
            with pytest.raises(ValueError, match=f"{n_labels / probability:,.0f} runs.* 600"):
                label_intervals(runs.data, y, label_probability=probability)


def test_values_out_of_range_are_named_by_row(runs):
    y = some_labels(runs.target, 100, np.random.default_rng(12))
    probability = np.where(y < 0, 7.0, 1 / 6)  # of runs without a label anything may stand there
    judge, row = np.linspace(0, 1, 600), int(np.flatnonzero(y >= 0)[3])
    label_intervals(runs.data, y, label_probability=probability, judge=judge)
    for value in (-0.1, 0.0, 1.01, np.nan):
        off = np.where(np.arange(600) == row, value, probability)
        with pytest.raises(ValueError, match=f"row {row}.*label_probability is {value:g}"):
            label_intervals(runs.data, y, label_probability=off)
    for value in (-0.01, 1.01, np.nan):
        off = np.where(np.arange(600) == 42, value, judge)
        with pytest.raises(ValueError, match=f"row 42.*judge is {value:g}"):
            label_intervals(runs.data, y, label_probability=probability, judge=off)
