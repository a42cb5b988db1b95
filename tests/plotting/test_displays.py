import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from trajscore import PlattCrossFitCalibrator, TraceAggregator, evaluate
from trajscore.metrics import ecuas_from_confidence, ecuas_score, step_profile
from trajscore.plotting import (
    CostCurveDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    ScoreDisplay,
    StepProfileDisplay,
    TerminationDisplay,
)
from trajscore.report import IntervalOptions


def drawn(display):
    """A display is drawn when it is made, and can be drawn again, elsewhere."""
    assert display.figure_ is display.ax_.figure
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first
    assert display.line_ is not None
    _, ax = plt.subplots()
    assert display.plot(ax=ax, name="mine").ax_ is ax


def test_reliability(runs):
    X, y = runs
    display = ReliabilityDisplay.from_predictions(y, X, phi="last")
    assert display.n_runs.sum() == 120
    assert display.n_runs @ display.success_rate == pytest.approx(y.sum())
    assert (np.diff(display.forecast) > 0).all()
    drawn(display)


def test_reliability_never_splits_ties_and_ignores_unobserved_runs():
    display = ReliabilityDisplay.from_predictions([1, 0, 1, -1], [[0.5]] * 4)
    assert display.n_runs.tolist() == [3]
    apart = ReliabilityDisplay.from_predictions([1, 0] * 6, [[0.5]] * 8 + [[0.7]] * 4, n_bins=4)
    assert apart.n_runs.tolist() == [8, 4]  # bins without a run are not drawn
    assert np.isfinite(apart.success_rate).all()


def test_reliability_of_few_runs_has_few_bins():
    few = np.linspace(0.1, 0.9, 25)[:, None]
    display = ReliabilityDisplay.from_predictions([0, 1] * 12 + [1], few)
    assert display.n_runs.tolist() == [13, 12]
    assert len(ReliabilityDisplay.from_predictions([0, 1] * 12 + [1], few, n_bins=5).n_runs) == 5


def test_step_profile(runs):
    X, y = runs
    display = StepProfileDisplay.from_predictions(y, X, score="brier")
    assert display.profile.equals(step_profile(y, X, score="brier"))
    drawn(display)
    shown = display.line_.get_xdata()
    assert (display.profile.loc[shown, "n_runs"] >= 10).all()


def test_step_profile_shows_the_observed_runs_and_the_share_of_the_others(runs):
    X, y = runs
    hidden = X.lengths > np.median(X.lengths)
    display = StepProfileDisplay.from_predictions(np.where(hidden, -1, y), X, name="judge")
    dashed = display.ax_.lines[1]
    assert dashed.get_label() == "judge, observed alone"
    assert dashed.get_linestyle() == "--"
    known = display.profile[display.profile["n_observed"] >= 10]
    np.testing.assert_array_equal(dashed.get_xdata(), known.index)
    np.testing.assert_array_equal(dashed.get_ydata(), known["score_observed"])
    behind = display.figure_.axes[1]
    assert behind.get_ylabel() == "share unobserved (grey)"
    drawn_to = behind.collections[0].get_paths()[0].vertices[:, 1].max()
    assert drawn_to == pytest.approx(
        1
        - (display.profile["n_observed"] / display.profile["n_runs"])[
            display.line_.get_xdata()
        ].min()
    )
    plain = StepProfileDisplay.from_predictions(np.where(hidden, -1, y), X, shade=False)
    assert len(plain.figure_.axes) == 1
    assert len(StepProfileDisplay.from_predictions(y, X).ax_.lines) == 1
    # all runs that reach the last steps are observed, and the observed ones are still apart
    short = StepProfileDisplay.from_predictions(np.where(hidden, y, -1), X)
    assert len(short.ax_.lines) == 2


def test_scores(runs):
    X, y = runs
    report = evaluate(X, y, intervals=IntervalOptions(20))
    display = ScoreDisplay.from_intervals(report.intervals, "TPS log")
    assert display.reference == report.table.loc[("base rate", "constant"), "TPS log"]
    drawn(display)
    assert len(display.line_) == 2


@pytest.fixture
def answers(rng):
    confidence = rng.random(300)
    return (rng.random(300) < confidence).astype(int), confidence


def test_risk_coverage(answers):
    display = RiskCoverageDisplay.from_predictions(*answers)
    assert display.risk[-1] == pytest.approx(1 - answers[0].mean())
    assert display.best[-1] == pytest.approx(display.risk[-1])
    drawn(display)


@pytest.mark.parametrize("n_classes", [2, 4, np.inf])
def test_cost_curve_of_a_large_n(answers, n_classes):
    correct, confidence = answers[0], 0.5 + answers[1] / 2
    display = CostCurveDisplay.from_predictions(correct, confidence, n=10_000, n_classes=n_classes)
    expected = ecuas_from_confidence(correct, confidence, n=10_000, n_classes=n_classes)
    assert display.ecuas == pytest.approx(expected)
    u_max = 1 - 1 / n_classes
    assert display.weight[-1] == pytest.approx(10_001 / u_max**2)
    assert display.ax_.get_xlim() == (0, display.gamma[-1])
    drawn(display)


def test_cost_curve_counts_uncertainties_that_are_too_large():
    with pytest.warns(UserWarning, match=r"1 uncertainties lie above .* 0\.75"):
        CostCurveDisplay.from_predictions([0], [0.1], n_classes=4)


def test_cost_curve_of_a_system_that_costs_nothing():
    display = CostCurveDisplay.from_predictions([1, 1], [1.0, 1.0])
    low, high = display.ax_.get_ylim()
    assert low < 0
    assert high > 1


@pytest.mark.parametrize("n", [0.5, 1, 4])
def test_area_under_the_weighted_cost_curve_is_ecuas(answers, n):
    display = CostCurveDisplay.from_predictions(*answers, n=n)
    area = np.mean(display.weight * display.cost)
    assert area == pytest.approx(display.ecuas, rel=0.01)
    drawn(display)


def test_termination():
    counts = {"done": 5, "max_steps": 3, "parse_error": 1, "infrastructure_error": 1}
    reasons = [reason for reason, n in counts.items() for _ in range(n)]
    display = TerminationDisplay.from_predictions([1, 1, 0, 1, 0, -1, -1, -1, -1, -1], reasons)
    assert display.reasons["n_runs"].to_dict() == counts
    display.plot(name="runs")
    assert len(display.line_) == 4
    assert [text.get_text() for text in display.ax_.texts] == [" 5, 3 solved", " 3", " 1", " 1"]
    _, ax = plt.subplots()
    assert display.plot(ax=ax).ax_ is ax


def test_displays_draw_where_and_how_they_are_told(runs):
    X, y = runs
    _, ax = plt.subplots()
    display = ReliabilityDisplay.from_predictions(y, X, ax=ax, name="judge", color="#123456")
    assert display.ax_ is ax
    assert display.line_[0].get_color() == "#123456"
    assert [one.get_text() for one in ax.get_legend().get_texts()] == [
        "perfectly calibrated",
        "judge",
    ]
    assert plt.get_fignums() == [ax.figure.number]  # nothing is drawn elsewhere
    profile = StepProfileDisplay.from_predictions(y, X, min_runs=1000)
    assert len(profile.line_.get_xdata()) == 0


def test_displays_of_forecasters(runs):
    X, y = runs
    model = PlattCrossFitCalibrator().fit(X, y)
    forecasts = model.transform(X)
    profile = StepProfileDisplay.from_estimator(model, X, y, score="brier")
    expected = StepProfileDisplay.from_predictions(y, forecasts, score="brier")
    pd.testing.assert_frame_equal(profile.profile, expected.profile)
    assert profile.line_.get_label() == "PlattCrossFitCalibrator"
    reliability = ReliabilityDisplay.from_estimator(model, X, y, phi="last", name="mine")
    expected = ReliabilityDisplay.from_predictions(y, forecasts, phi="last")
    assert np.array_equal(reliability.success_rate, expected.success_rate)
    with pytest.raises(TypeError, match="has no method transform"):
        ReliabilityDisplay.from_estimator(LogisticRegression(), X, y)


def test_displays_of_classifiers(runs):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = LogisticRegression(C=0.01, max_iter=500).fit(X, names)
    proba = model.predict_proba(X)
    curve = CostCurveDisplay.from_estimator(model, X, names, n=1)
    assert curve.ecuas == pytest.approx(ecuas_score(names, proba))
    coverage = RiskCoverageDisplay.from_estimator(model, X, names)
    assert coverage.risk[-1] == pytest.approx((model.predict(X) != names).mean())
    traces, outcomes = runs
    pipeline = make_pipeline(PlattCrossFitCalibrator(), TraceAggregator()).fit(traces, outcomes)
    of_runs = RiskCoverageDisplay.from_estimator(pipeline, traces, outcomes)
    assert 0 < of_runs.risk[-1] < 0.5
