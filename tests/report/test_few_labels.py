"""Reports of runs of which few are labelled."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit
from sklearn.base import BaseEstimator
from trajscore.report._few_labels import by_few_labels, rates, success_rate

from trajscore import TrajectoryArray, evaluate
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.inference import LabelDesign, label_intervals
from trajscore.inference._labels import FewLabels
from trajscore.inference.units import any_units
from trajscore.metrics import tps_score
from trajscore.report._cards import RECALIBRATE, TOO_FEW
from trajscore.report._data import ALIVE, ALIVE_END, AS_GIVEN, BASE_RATE, CONSTANT
from trajscore.report._runs import Coverage

FAST = {"intervals": "influence", "calibrator": "platt"}


def judged(y, wrong, seed=0):
    """Return the verdicts of a judge that is wrong on a share of the runs."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(y)) < wrong, 1 - y, y)


def labelled(runs, judge, n=100, seed=0, groups=None):
    """Label the runs that a design chooses."""
    design = LabelDesign(n, random_state=seed).fit(runs.data, judge=judge, groups=groups)
    few = np.full(len(runs.data), -1)
    few[design.query()] = runs.target[design.query()]
    return few, design.probabilities_


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(1200, sharpness=1.5, noise=0.5, base_rate=0.7, random_state=0)


@pytest.fixture(scope="module")
def report(runs):
    judge = judged(runs.target, 0.15)
    few, probability = labelled(runs, judge)
    return evaluate(runs.data, few, judge=judge, label_probability=probability, **FAST)


def test_a_hundred_labels_say_what_all_do(runs, report):
    every = evaluate(runs.data, runs.target, **FAST).intervals
    for key in (
        ("forecast", "as_given", "TPS log"),
        ("forecast", "recalibrated", "TPS log"),
        ("forecast", "as_given", "T-Brier"),
        ("forecast", "as_given", "ECUAS_0"),
        ("forecast", "as_given", "AUROC"),
    ):
        own = report.intervals.loc[key]
        assert own["low"] < every.loc[key, "value"] < own["high"], key
        assert own["margin_low"] < every.loc[key, "margin"] < own["margin_high"], key
    assert report.cards.loc["forecast", "card"] == RECALIBRATE
    assert report.cards.loc["forecast", "n_runs"] == report.facts.n_labels == 100


def test_it_agrees_with_label_intervals(runs, report):
    judge = judged(runs.target, 0.15)
    few, probability = labelled(runs, judge)
    table = label_intervals(runs.data, few, judge=judge, label_probability=probability)
    for name in ("success rate", "judge wrong on successes", "judge wrong on failures"):
        np.testing.assert_allclose(
            report.from_labels.loc[name, ["value", "low", "high"]].astype(float),
            table.loc[name, ["value", "low", "high"]].astype(float),
            rtol=1e-9,
        )
    own = report.intervals.loc["forecast", "as_given", "TPS log"]
    np.testing.assert_allclose(own["value"], table.loc["TPS log", "value"], rtol=1e-9)
    np.testing.assert_allclose(own["margin"], table.loc["TPS log margin", "value"], rtol=1e-6)
    assert report.facts.success_rate == table.loc["success rate", "value"]


def test_labels_of_all_runs_give_the_usual_values(runs):
    X, y = runs.data[:300], runs.target[:300]
    few = evaluate(X, y, label_probability=1.0, **FAST).intervals
    every = evaluate(X, y, **FAST).intervals
    for name in ("TPS log", "TPS brier", "T-Brier", "ECUAS_1", "AUROC"):
        for column in ("value", "margin"):
            np.testing.assert_allclose(
                few.loc[("forecast", "as_given", name), column],
                every.loc[("forecast", "as_given", name), column],
                rtol=1e-9,
            )


def test_errors_by_bins_and_what_needs_every_outcome_are_left_out(report):
    for name in ("S-ECE", "S-ECE early", "T-ECE", "MCB log", "AUPRC", "AURC"):
        assert report.table[name].isna().all()
    assert report.by_step.empty
    assert report.equal_length.empty
    assert "calibration errors" in report.disclosures["labels"]
    assert "equal length" not in report.disclosures


def test_a_label_is_not_in_the_forecasts_of_its_own_run(runs):
    judge, groups = judged(runs.target, 0.15), np.arange(len(runs.data))  # folds by group alone
    few, probability = labelled(runs, judge)
    row = int(np.flatnonzero(few >= 0)[0])
    options = {"judge": judge, "label_probability": probability, "groups": groups, **FAST}
    traces = []
    for value in (0, 1):
        few[row] = value
        out = evaluate(runs.data, few, **options)
        trace = out.traces["forecast", "recalibrated"]
        traces.append(trace.cells[np.repeat(trace.ids == row, trace.lengths)])
    np.testing.assert_array_equal(*traces)


def test_the_score_of_recalibrated_forecasts_is_not_flattered(runs):
    gaps = []
    for seed in range(12):
        judge = judged(runs.target, 0.15, seed)
        few, probability = labelled(runs, judge, seed=seed)
        out = evaluate(runs.data, few, judge=judge, label_probability=probability, **FAST)
        trace = out.traces["forecast", "recalibrated"]
        truth = tps_score(runs.target[trace.ids.astype(int)], trace)
        gaps.append(out.intervals.loc[("forecast", "recalibrated", "TPS log"), "value"] - truth)
    assert abs(np.mean(gaps)) < 2.5 * np.std(gaps, ddof=1) / np.sqrt(len(gaps))


def test_the_order_of_rows_and_the_number_of_jobs_do_not_matter(runs, report):
    judge = judged(runs.target, 0.15)
    few, probability = labelled(runs, judge)
    order = np.random.default_rng(1).permutation(len(few))
    again = evaluate(
        runs.data[order], few[order], judge=judge[order], label_probability=probability[order],
        n_jobs=2, **FAST,
    )  # fmt: skip
    columns = ["value", "low", "high", "margin", "margin_low", "margin_high"]
    np.testing.assert_allclose(
        again.intervals[columns], report.intervals[columns], rtol=1e-7, atol=1e-12
    )


def test_a_worse_judge_widens_intervals_and_moves_nothing_far(runs, report):
    judge = judged(runs.target, 0.5)
    few, probability = labelled(runs, judge)
    worse = evaluate(runs.data, few, judge=judge, label_probability=probability, **FAST)
    widths = [
        np.ptp(out.from_labels.loc["success rate", ["low", "high"]].astype(float))
        for out in (worse, report)
    ]
    assert widths[0] > 1.1 * widths[1]
    truth = runs.target.mean()
    assert worse.from_labels.loc["success rate", "low"] < truth
    assert worse.from_labels.loc["success rate", "high"] > truth


def test_several_predictors_are_held_against_each_other(runs):
    judge = judged(runs.target, 0.15)
    few, probability = labelled(runs, judge)
    rng = np.random.default_rng(0)
    noise = runs.data.with_cells(rng.random(len(runs.data.cells)))
    X = {"good": runs.data, "noise": noise}
    out = evaluate(X, few, judge=judge, label_probability=probability, **FAST)
    (pair,) = out.pairs.to_dict("records")
    assert {pair["predictor"], pair["reference"]} == {"good", "noise"}
    sign = 1 if pair["predictor"] == "good" else -1
    assert sign * pair["difference"] > 0.03
    assert out.cards.loc["good", "card"] == RECALIBRATE
    assert out.cards.loc["noise", "card"] != RECALIBRATE


def test_runs_that_were_stopped_count_as_censored_says(runs):
    judge = judged(runs.target, 0.15)
    few, probability = labelled(runs, judge)
    stopped = np.arange(len(few)) >= 1000
    few, probability = np.where(stopped, -1, few), np.where(stopped, np.nan, probability)
    options = {"judge": judge, "label_probability": probability, **FAST}
    as_failures = evaluate(runs.data, few, **options)
    dropped = evaluate(runs.data, few, censored="drop", **options)
    assert as_failures.facts.n_censored == 200
    assert dropped.facts.n_runs == 1000
    assert as_failures.facts.n_labels == dropped.facts.n_labels == int((few >= 0).sum())
    rates = [out.from_labels.loc["success rate", "value"] for out in (as_failures, dropped)]
    assert abs(rates[0] - rates[1] * 1000 / 1200) < 0.02
    assert as_failures.observed_cards is not None
    assert dropped.observed_cards is None


def test_labels_without_a_known_chance_are_taken_to_be_drawn_at_random_and_that_is_stated(runs):
    judge = judged(runs.target, 0.15)
    few = np.full(len(runs.data), -1)
    rows = np.random.default_rng(2).choice(len(few), 100, replace=False)
    few[rows] = runs.target[rows]
    assumed = evaluate(runs.data, few, judge=judge, **FAST)
    stated = evaluate(runs.data, few, judge=judge, label_probability=100 / 1200, **FAST)
    np.testing.assert_allclose(assumed.intervals["value"], stated.intervals["value"])
    assert "**assumed**: each run was equally likely" in assumed.disclosures["labels"]
    assert "assumed" not in stated.disclosures["labels"]
    assert "Data: check this. 100 of 1,200 runs are labelled" in " ".join(str(assumed).split())


def test_a_signal_that_is_no_probability_is_judged_by_its_map(runs):
    judge = judged(runs.target, 0.15)
    few, probability = labelled(runs, judge)
    X = runs.data.with_cells(10 * runs.data.cells - 3)
    out = evaluate(X, few, judge=judge, label_probability=probability, **FAST)
    assert out.cards.loc["forecast", "card"] == RECALIBRATE
    assert np.isnan(out.table.loc[("forecast", "as_given"), "TPS log"])
    assert out.cards.loc["forecast", "signal_high"] > 0


def test_too_few_failures_among_the_labels_say_how_many_to_label(runs):
    rng = np.random.default_rng(0)
    y = (np.arange(600) % 60 > 0).astype(int)
    few = np.full(600, -1)
    few[rng.choice(600, 40, replace=False)] = 1
    few[0] = 0
    out = evaluate(runs.data[:600], few, label_probability=41 / 600, **FAST)
    assert out.cards.loc["forecast", "card"] == TOO_FEW
    assert out.cards.loc["forecast", "n_needed"] > 0
    assert "labelled runs to say anything" in str(out)
    assert y.sum() == 590


def test_every_rendering_is_written(report, tmp_path):
    text = " ".join(report.to_text(verbose=True).split())
    assert "What the labels say." in text
    assert "judge wrong where forecast is low" in text
    assert "100 of 1,200 runs are labelled" in report.to_markdown()
    assert '"labels": [' in report.to_json()
    page = report.to_html()
    assert "100 labelled" in page
    assert "What the labels say" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": np.zeros(60)}, "by needs an outcome of every run"),
        ({"monitoring": True}, "label_intervals\\(flagged="),
        ({"missing": "own_runs"}, "leave out missing='own_runs'"),
        ({"judge": np.full(60, 2.0)}, "row 0: judge is 2"),
        ({"label_probability": 0.0}, "its label_probability is 0"),
    ],
)
def test_what_cannot_be_done_is_refused(options, words):
    X = TrajectoryArray(np.linspace(0, 1, 120), np.full(60, 2))
    y = np.where(np.arange(60) < 30, np.arange(60) % 2, -1)
    known = {"judge": np.ones(60), "label_probability": 0.5} | options
    with pytest.raises(ValueError, match=words):
        evaluate(X, y, **known)


def test_fewer_than_twenty_labels_are_refused(runs):
    few = np.full(len(runs.data), -1)
    few[:10] = np.arange(10) % 2
    with pytest.raises(ValueError, match=r"10 runs of 1,200 are labelled; label at least 20"):
        evaluate(runs.data, few, label_probability=0.01)


@pytest.fixture(scope="module")
def of_all(runs):
    """Return a report of runs that are all labelled, and the judge's verdicts."""
    X, y = runs.data[:300], runs.target[:300]
    judge = judged(y, 0.3)
    return evaluate(X, y, judge=judge, label_probability=1.0, **FAST), judge


def test_the_judge_is_wrong_as_often_as_counted(runs, of_all):
    report, judge = of_all
    X, wrong = runs.data[:300], judge != runs.target[:300]
    mean = np.array([X.cells[a:b].mean() for a, b in zip(X.offsets, X.offsets[1:], strict=False)])
    order = np.argsort(mean)
    for word, third in zip(("low", "middling", "high"), np.split(order, 3), strict=True):
        row = report.from_labels.loc[f"judge wrong where forecast is {word}"]
        assert row["value"] == pytest.approx(wrong[third].mean(), abs=0.011)
        assert row["low"] < row["value"] < row["high"]
    for name, outcome in (("successes", 1), ("failures", 0)):
        value = report.from_labels.loc[f"judge wrong on {name}", "value"]
        assert value == pytest.approx(wrong[runs.target[:300] == outcome].mean())


def test_differences_are_those_of_the_values(of_all):
    every = of_all[0].intervals
    values = every["value"]
    for form in ("as_given", "recalibrated"):
        for name in ("TPS log", "T-Brier", "ECUAS_0", "AUROC"):
            own = every.loc[("forecast", form, name)]
            others = {
                "margin": (BASE_RATE, CONSTANT),
                "over_alive": (ALIVE, AS_GIVEN),
                "over_alive_end": (ALIVE_END, AS_GIVEN),
                "over_as_given": ("forecast", "as_given"),
            }
            for column, key in others.items():
                is_empty = form == "as_given" and column == "over_as_given"
                if is_empty or (name in ("T-Brier", "ECUAS_0") and "alive" in column):
                    assert np.isnan(own[column])
                else:
                    difference = own["value"] - values[(*key, name)]
                    assert own[column] == pytest.approx(difference, abs=1e-6), (name, column)


def test_an_interval_of_ranks_is_symmetric_in_log_odds(of_all):
    row = of_all[0].intervals.loc["forecast", "as_given", "AUROC"]
    low, value, high = logit(row[["low", "value", "high"]].astype(float))
    assert high - value == pytest.approx(value - low)
    assert 0 < row["low"] < row["high"] < 1


# ------------------------------------------------------------------ by hand


def all_labelled(y):
    y = np.array(y, dtype=float)
    return FewLabels(y, np.ones(len(y)), np.full(len(y), 0.5), any_units(None, len(y)))


@pytest.mark.parametrize(
    ("y", "lengths", "over_steps", "over_runs"),
    [
        ([1, 0, 1, 0], [1, 1, 1, 1], 0.5, 0.5),
        ([1, 0, 0, 0], [5, 1, 1, 1], 5 / 8, 0.25),
        ([1, 1, 1, 1], [1, 2, 1, 2], 7 / 8, 7 / 8),  # never further than half a run
        ([0, 0, 0, 0], [1, 2, 1, 2], 1 / 8, 1 / 8),
    ],
)
def test_rates_over_forecasts_and_over_runs(y, lengths, over_steps, over_runs):
    trace = TrajectoryArray(np.full(sum(lengths), 0.5), lengths)
    found = rates(all_labelled(y), trace, as_step_weights("uniform"))
    assert found == pytest.approx((over_steps, over_runs))


@pytest.mark.parametrize(
    ("y", "inverse", "forecast", "rate"),
    [
        ([1, 0, 1, 0], [1, 1, 1, 1], 0.5, 0.5),
        ([1, 0, 1, -1], [1, 1, 1, 1], 0.5, 2 / 3),  # of those that were observed
        ([1, 1, 1, 1], [4, 4, 4, 4], 0.5, 1.0),  # no share is above 1
        ([0, 0, 0, 0], [4, 4, 4, 4], 0.5, 0.0),
    ],
)
def test_the_success_rate_of_few_labels(y, inverse, forecast, rate):
    y = np.array(y)
    known = np.maximum(y, 0).astype(float)
    few = FewLabels(known, np.array(inverse, dtype=float), np.full(4, forecast), any_units(None, 4))
    runs = Coverage(y, known, None, np.arange(4), few=few)
    assert success_rate(runs) == pytest.approx(rate)
    assert success_rate(replace(runs, few=None)) == pytest.approx(y[y >= 0].mean())


class Mean(BaseEstimator):
    """Forecasts the mean outcome of the runs that it is fitted to, and how many these are."""

    def fit(self, X, y):
        self.mean_, self.n_ = y.mean(), len(X)
        return self

    def transform(self, X):
        return X.with_cells(np.full(len(X.cells), self.mean_ + 10 * self.n_))


def test_forecasts_of_a_fold_are_made_without_its_labels():
    fold = np.array([0, 1, 1, 2])
    by_fold = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 0.0, 0.1]])
    few = FewLabels(np.zeros(4), np.ones(4), np.full(4, 0.5), any_units(None, 4), fold, by_fold)
    X = TrajectoryArray(np.zeros(7), [1, 2, 1, 3])
    found = by_few_labels(Mean(), X, few)
    expected = [30 + 0.3, *[20 + 0.65] * 3, *[30 + 1.9 / 3] * 3]
    np.testing.assert_allclose(found.cells, expected)
