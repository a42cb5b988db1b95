"""What each display computes, and what it takes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from known_scores import collapsed
from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    TraceAggregator,
    TracerScorer,
    TrajectoryArray,
)
from trajscore.datasets import make_trajectories
from trajscore.metrics import (
    ecuas_from_confidence,
    ecuas_score,
    step_profile,
    tps_decomposition,
    tps_score,
)
from trajscore.monitoring import Conformal, FleetMonitor, RawVerifier, token_savings
from trajscore.plotting import (
    CostCurveDisplay,
    DecompositionDisplay,
    EarlyWarningDisplay,
    EProcessDisplay,
    FleetDisplay,
    PowerDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SavingsDisplay,
    StepProfileDisplay,
    TerminationDisplay,
    TracerStripDisplay,
)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_reliability_has_quantile_bins_that_never_split_ties(runs):
    X, y = runs
    display = ReliabilityDisplay.from_predictions(y, X, phi="last")
    assert display.n_runs.sum() == 120
    assert display.n_runs @ display.success_rate == pytest.approx(y.sum())
    assert display.n_runs @ display.forecast == pytest.approx(collapsed(X, "last").sum())
    assert (np.diff(display.forecast) > 0).all()
    tied = ReliabilityDisplay.from_predictions([1, 0, 1, -1], [[0.5]] * 4)
    assert tied.n_runs.tolist() == [3]  # what was not observed is left out
    apart = ReliabilityDisplay.from_predictions([1, 0] * 6, [[0.5]] * 8 + [[0.7]] * 4, n_bins=4)
    assert apart.n_runs.tolist() == [8, 4]  # bins without a run are not drawn
    few = np.linspace(0.1, 0.9, 25)[:, None]
    y = [0, 1] * 12 + [1]
    assert ReliabilityDisplay.from_predictions(y, few).n_runs.tolist() == [13, 12]
    assert len(ReliabilityDisplay.from_predictions(y, few, n_bins=5).n_runs) == 5


def test_weights_are_those_of_the_metrics(runs):
    X, y = runs
    X = X.prefix(9)
    for weights in (
        {},
        {"weights": "uniform"},
        {"weights": "linear_front", "horizon": 9},
        {"weights": "linear_front", "horizon": "own"},
    ):
        parts = DecompositionDisplay.from_predictions(y, X, score="brier", **weights).table
        found = parts.loc["forecast"].to_dict()
        assert found == vars(tps_decomposition(y, X, score="brier", **weights))
        assert found["score"] == pytest.approx(tps_score(y, X, score="brier", **weights))
        display = ReliabilityDisplay.from_predictions(y, X, n_bins=5, **weights)
        assert display.n_runs @ display.forecast == pytest.approx(collapsed(X, **weights).sum())
    with pytest.raises(ValueError, match="'linear_front'"):
        ReliabilityDisplay.from_predictions(y, X, weights="linear_front")


def test_decomposition_by_step(runs):
    X, y = runs
    display = DecompositionDisplay.from_predictions(y, X, by="step")
    pd.testing.assert_frame_equal(display.table, tps_decomposition(y, X, by="step"))
    table = display.table[display.table["n_runs"] >= 10]
    lines = {line.get_label(): line for line in display.ax_.lines}
    assert list(lines) == ["recalibrated", "base rate", "score"]
    constant, best = -table["uncertainty"], table["discrimination"] - table["uncertainty"]
    for name, values in (
        ("recalibrated", best),
        ("base rate", constant),
        ("score", table["score"]),
    ):
        np.testing.assert_array_equal(lines[name].get_xdata(), table.index)
        np.testing.assert_allclose(lines[name].get_ydata(), values)
    areas = {area.get_label(): area.get_datalim(display.ax_.transData)
             for area in display.ax_.collections}  # fmt: skip
    gained, lost = areas["gained by discrimination"], areas["lost by miscalibration"]
    assert (gained.y0, gained.y1) == pytest.approx((constant.min(), best.max()))
    assert (lost.y0, lost.y1) == pytest.approx((table["score"].min(), best.max()))
    empty = display.plot(min_runs=121)
    assert [text.get_text() for text in empty.ax_.texts] == ["no step is reached by 121 runs"]
    with pytest.raises(ValueError, match='by="step" shows one predictor, got 2'):
        DecompositionDisplay.from_predictions(y, {"a": X, "b": X}, by="step")


def test_step_profile_shows_the_observed_runs_and_the_share_of_the_others(runs):
    X, y = runs
    hidden = np.where(X.lengths > np.median(X.lengths), -1, y)
    display = StepProfileDisplay.from_predictions(hidden, X, score="brier", name="judge")
    pd.testing.assert_frame_equal(display.profile, step_profile(hidden, X, score="brier"))
    known = display.profile[display.profile["n_observed"] >= 10]
    dashed = display.ax_.lines[1]
    assert (dashed.get_label(), dashed.get_linestyle()) == ("judge, observed alone", "--")
    np.testing.assert_array_equal(dashed.get_ydata(), known["score_observed"])
    assert len(StepProfileDisplay.from_predictions(hidden, X, shade=False).figure_.axes) == 1
    assert len(StepProfileDisplay.from_predictions(y, X).ax_.lines) == 1


@pytest.fixture
def answers(rng):
    confidence = rng.random(300)
    return (rng.random(300) < confidence).astype(int), confidence


def test_risk_coverage(answers):
    display = RiskCoverageDisplay.from_predictions(*answers)
    wrong = 1 - answers[0].mean()
    assert display.risk[-1] == pytest.approx(wrong)
    share = np.arange(1, 201) / 200  # with errors last
    np.testing.assert_allclose(display.best, np.maximum(share - answers[0].mean(), 0) / share)


@pytest.mark.parametrize(("n", "n_classes"), [(0.5, np.inf), (1, 2), (4, 4), (10_000, 3)])
def test_area_under_the_weighted_cost_curve_is_ecuas(answers, n, n_classes):
    correct, confidence = answers[0], 0.5 + answers[1] / 2
    display = CostCurveDisplay.from_predictions(correct, confidence, n=n, n_classes=n_classes)
    exact = ecuas_from_confidence(correct, confidence, n=n, n_classes=n_classes)
    assert display.ecuas == pytest.approx(exact)
    u_max = 1 - 1 / n_classes
    assert display.gamma[-1] == u_max
    assert display.weight[-1] == pytest.approx((n + 1) / u_max**2)
    if n < 100:  # of a grid that is fine enough
        area = np.mean(display.weight * display.cost) * u_max
        assert area == pytest.approx(display.ecuas, rel=0.02)


def test_cost_curves_at_the_ends():
    with pytest.warns(UserWarning, match=r"1 uncertainties lie above .* 0\.75"):
        CostCurveDisplay.from_predictions([0], [0.1], n_classes=4)
    low, high = CostCurveDisplay.from_predictions([1, 1], [1.0, 1.0]).ax_.get_ylim()
    assert low < 0
    assert high > 1


@pytest.fixture(scope="module")
def fitted():
    X, y = make_trajectories(1200, lengths=(2, 7), random_state=0, return_X_y=True)
    alpha = [0.1, 0.6, 0.2]
    rules = {"e-process": DensityRatioEProcess(alpha=alpha), "raw": RawVerifier(alpha=alpha)}
    return {key: rule.fit(X[:600], y[:600]) for key, rule in rules.items()}, X[600:], y[600:]


def test_savings_and_power(fitted):
    rules, X, y = fitted
    cost = X.with_cells(1 + X.cells)
    savings = SavingsDisplay.from_estimator(rules, X, y, cost=cost)
    expected = token_savings(rules["raw"], X, y, cost=cost)
    pd.testing.assert_frame_equal(savings.savings["raw"].curve, expected.curve)
    assert "false-alarm rate above alpha" in labels(savings.ax_)  # of the raw verifier
    one = SavingsDisplay.from_estimator(rules["e-process"], X, y)
    assert list(one.savings) == ["DensityRatioEProcess"]
    assert "false-alarm rate above alpha" not in labels(one.ax_)
    power = PowerDisplay.from_estimator(rules, X, y)
    same = PowerDisplay.from_reports({key: rule.report(X, y) for key, rule in rules.items()})
    for key, table in same.reports.items():
        assert table.index.tolist() == [0.1, 0.2, 0.6]  # sorted, to be joined by lines
        pd.testing.assert_frame_equal(power.reports[key], table)
    left, _ = power.plot(name="mine").ax_
    assert labels(left) == ["alpha", "e-process", "raw", "false-alarm rate above alpha"]
    _, axes = plt.subplots(2)
    named = PowerDisplay.from_reports(same.reports["e-process"], name="mine").plot(ax=axes)
    assert (named.ax_, labels(axes[0])) == (tuple(axes), ["alpha", "mine"])
    alone = PowerDisplay.from_estimator(RawVerifier().fit(X), X, y)
    assert list(alone.reports) == ["RawVerifier"]


def test_e_process(fitted):
    rules, X, y = fitted
    process, y = rules["e-process"], np.where(np.arange(len(y)) % 7 == 0, -1, y)
    display = EProcessDisplay.from_estimator(process, X, y, alpha=0.2, n_runs=20)
    assert (np.diff(display.shown) > 0).all()
    assert display.threshold == process.thresholds_[0.2]
    log_m = process.transform(X[y == 0]).steps(3)
    assert display.medians.loc[(0, 3), "median"] == np.median(log_m[:, 2])
    assert display.medians.loc[(0, 3), "n_runs"] == len(log_m)
    assert labels(display.ax_)[-1] == "threshold, alpha = 0.2"
    rows = np.random.default_rng(0).permutation(len(X))
    other = EProcessDisplay.from_estimator(process, X[rows], y[rows], n_runs=20)
    assert set(other.log_m[other.shown].ids) == set(display.log_m[display.shown].ids)
    for n_runs, shown in [(0, [0, 0]), (1, [1, 1]), (5, [3, 3]), (20, [10, 10])]:
        some = EProcessDisplay.from_estimator(process, X, y, n_runs=n_runs)
        assert np.bincount(some.outcome[some.shown], minlength=2).tolist() == shown
    weighted = DensityRatioEProcess(threshold=Conformal(end_worth=0.3), alpha=0.3).fit(X, y)
    weighted = EProcessDisplay.from_estimator(weighted, X, y, n_runs=5000)
    assert len(weighted.shown) == (y >= 0).sum()
    assert not any("threshold" in label for label in labels(weighted.ax_))


def test_fleet():
    runs = make_trajectories(1500, lengths=(2, 8), random_state=0)
    X, y = runs.q, runs.target
    fleet = FleetMonitor(n_after=200).fit(X[:500], y[:500])
    cells = X[500:].cells.copy()
    cells[X.offsets[900] - X.offsets[500] :] **= 0.2
    shown = FleetDisplay.from_estimator(fleet, X[500:].with_cells(cells), y[500:], name="agent")
    assert fleet.n_runs_ == 0
    assert list(shown.evidence) == fleet.e_values_.index.tolist()
    change = shown.changes[0]
    column = change.quantity, change.predictor
    assert column == ("forecast", "")
    assert 400 < change.alarm < 500
    assert (shown.evidence.loc[:400].max() < 1).all()
    assert shown.evidence.loc[change.alarm, column] == pytest.approx(
        change.log_e_value / fleet.e_values_["log_threshold"][column]
    )
    waiting = shown.evidence.loc[change.alarm + 5 : change.alarm + 190]
    assert len(waiting) > 10
    assert waiting.isna().all(axis=None)
    (text,) = shown.ax_.texts
    assert text.get_text().startswith(f"{change.cause}\nsince run {change.since:,}")
    assert labels(shown.ax_) == ["length", "forecast", "spread", "success", "level", "slope"]
    for n_after, n_points, apart in ((500, 20, 10), (50, 1, 25)):  # at least twice in n_after
        quiet = FleetMonitor(n_after=n_after).fit(X[:500], y[:500])
        display = FleetDisplay.from_estimator(quiet, X[500:700], n_points=n_points)
        assert display.evidence.index.tolist() == list(range(apart, 201, apart))
        assert display.changes == []
        assert not display.ax_.texts


def test_strip_of_a_run_by_row_or_id(signals):
    scorer = TracerScorer(k=0.2, beta=2).fit(signals)
    display = TracerStripDisplay.from_estimator(scorer, signals, "b")
    assert display.table["critical"].sum() == 2
    assert display.table["actor"].tolist() == ["user", "agent"] * 5
    assert display.table["repetition"].isna().sum() == 5
    assert display.ax_.get_title(loc="left") == "run 'b'"
    alone = signals[["surprisal"]]
    bare = TracerStripDisplay.from_estimator(TracerScorer().fit(alone), alone, -1).plot()
    assert [text.get_text() for text in bare.ax_.get_yticklabels()] == ["surprisal", "step risk"]
    for run, name in [(0, "a"), (np.int64(1), "b"), (-2, "a"), ("b", "b")]:
        made = TracerStripDisplay.from_estimator(scorer, signals, run)
        assert made.ax_.get_title(loc="left") == f"run '{name}'"
    for run in (2, -3, 1.5, None):
        with pytest.raises(ValueError, match="run must be .*below 2, got"):
            TracerStripDisplay.from_estimator(scorer, signals, run)
    with pytest.raises(KeyError, match="no run has the id 'c'"):
        TracerStripDisplay.from_estimator(scorer, signals, "c")


def test_early_warning(signals):
    scorer = TracerScorer().fit(signals)
    display = EarlyWarningDisplay.from_estimator(scorer, signals, [0, 1])
    assert list(display.warnings) == ["TracerScorer"]
    risk = scorer.transform(signals)
    several = EarlyWarningDisplay.from_predictions([0, 1], {"a": risk, "b": risk}, threshold=0.5)
    half = several.plot(early=0.5)
    assert [line.get_label().split(":")[0] for line in half.line_] == ["a", "b"]
    assert all("of failures by 50%" in line.get_label() for line in half.line_)
    _, alone = plt.subplots()
    assert several.plot(ax=alone).ax_ is alone


def test_displays_of_forecasters(runs):
    X, y = runs
    model = PlattCrossFitCalibrator().fit(X, y)
    F = model.transform(X)
    for display, field in [
        (StepProfileDisplay, "profile"),
        (ReliabilityDisplay, "success_rate"),
        (DecompositionDisplay, "table"),
    ]:
        made = display.from_estimator(model, X, y)
        same = display.from_predictions(y, F, name="PlattCrossFitCalibrator")
        np.testing.assert_array_equal(getattr(made, field), getattr(same, field))
        display.from_estimator(model, X, y, name="mine")
        with pytest.raises(TypeError, match="LogisticRegression has no method transform"):
            display.from_estimator(LogisticRegression(), X, y)


def test_displays_of_classifiers(runs):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = LogisticRegression(C=0.01, max_iter=500).fit(X, names)
    curve = CostCurveDisplay.from_estimator(model, X, names, n=1)
    assert curve.ecuas == pytest.approx(ecuas_score(names, model.predict_proba(X)))
    coverage = RiskCoverageDisplay.from_estimator(model, X, names)
    assert coverage.risk[-1] == pytest.approx((model.predict(X) != names).mean())
    pipeline = make_pipeline(PlattCrossFitCalibrator(), TraceAggregator()).fit(*runs)
    assert 0 < RiskCoverageDisplay.from_estimator(pipeline, *runs).risk[-1] < 0.5


def test_what_displays_do_not_take(runs, signals):
    X, y = runs
    for make, kind, message in [
        (lambda: EProcessDisplay([[1.0]], [1], 2.0, 0.1, [0]), TypeError, "log_m must .*list"),
        (lambda: PowerDisplay.from_reports([1]), TypeError, "reports must be tables"),
        (lambda: PowerDisplay.from_reports(pd.DataFrame({"power": [1.0]})), TypeError, "reports"),
        (lambda: PowerDisplay.from_reports({}), ValueError, "no reports"),
        (lambda: SavingsDisplay.from_estimator({}, X, y), ValueError, "no stopping rules"),
        (lambda: TerminationDisplay.from_audit(3), TypeError, "audit must .*got 3"),
        (lambda: TracerStripDisplay.from_estimator(None, signals.cells), TypeError, "ndarray"),
        (lambda: TracerStripDisplay.from_estimator(None, TrajectoryArray([0.1], [1])), ValueError,
         "X has no channels"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=message):
            make()
