"""What is drawn is what a display holds, where its axes say."""

from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from trajscore import TrajectoryArray
from trajscore.monitoring import RawVerifier, token_savings
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
    ScoreDisplay,
    StepProfileDisplay,
    TerminationDisplay,
    TracerStripDisplay,
)
from trajscore.tracer import early_warning


def line_called(ax, label):
    (line,) = [line for line in ax.lines if line.get_label() == label]
    return line


def points(line):
    return np.transpose(line.get_data()).tolist()


def bars(container):
    """Place, and ends, of vertical error bars."""
    return [(x, low, high) for (x, low), (_, high) in container[2][0].get_segments()]


def wilson(rates, counts):
    tests = [binomtest(round(rate * n), n) for rate, n in zip(rates, counts, strict=True)]
    ends = [test.proportion_ci(method="wilson") for test in tests]
    return [(end.low, end.high) for end in ends]


def filled(area):
    """Lower and upper end of an area at each place."""
    x, y = area.get_paths()[0].vertices.T
    return {at: (y[x == at].min(), y[x == at].max()) for at in np.unique(x)}


def test_reliability():
    display = ReliabilityDisplay(np.array([0.2, 0.7]), np.array([0.1, 0.75]), np.array([10, 20]))
    ax = display.plot().ax_
    assert points(line_called(ax, "perfectly calibrated")) == [[0, 0], [1, 1]]
    assert points(display.line_[0]) == [[0.2, 0.1], [0.7, 0.75]]
    ends = [(low, high) for _, low, high in bars(display.line_)]
    np.testing.assert_allclose(ends, wilson([0.1, 0.75], [10, 20]))
    assert (ax.get_xlim(), ax.get_ylim()) == ((-0.02, 1.02), (-0.02, 1.02))


def profile():
    table = pd.DataFrame({"n_runs": [30, 20, 9], "n_observed": [30, 12, 3]}, index=[1, 2, 3])
    table["score"], table["std_error"] = [-0.6, -0.5, -0.4], [0.01, np.nan, 0.03]
    table["score_observed"], table["std_error_observed"] = [-0.6, -0.55, -0.3], [0.01, 0.02, 0.04]
    return table


def test_step_profile():
    display = StepProfileDisplay(profile(), "Brier").plot()
    ax, dashed = display.ax_, line_called(display.ax_, "observed alone")
    assert points(display.line_) == [[1, -0.6], [2, -0.5]]
    assert points(dashed) == [[1, -0.6], [2, -0.55]]
    of_all, of_observed = (filled(area) for area in ax.collections)
    assert of_all[1] == pytest.approx((-0.62, -0.58))
    assert of_all[2] == (-0.5, -0.5)  # of one run no error is known
    assert of_observed[2] == pytest.approx((-0.59, -0.51))
    behind = display.figure_.axes[1]
    assert behind.get_ylim() == (0, 1)
    assert filled(behind.collections[0])[2][1] == pytest.approx(0.4)
    assert points(display.plot(min_runs=3).line_)[-1] == [3, -0.4]
    assert points(line_called(display.ax_, "observed alone"))[-1] == [3, -0.3]
    assert len(display.plot(min_runs=31).line_.get_xdata()) == 0
    assert [text.get_text() for text in display.ax_.texts] == ["no step is reached by 31 runs"]
    assert not display.plot(min_runs=30).ax_.texts
    assert len(display.ax_.lines) == 1  # where all runs are observed


def intervals(*rows):
    keys = [(predictor, form, "TPS") for predictor, form, *_ in rows]
    index = pd.MultiIndex.from_tuples(keys, names=["predictor", "form", "metric"])
    return pd.DataFrame([row[2:] for row in rows], index=index, columns=["value", "low", "high"])


def test_scores():
    table = intervals(
        ("base rate", "constant", -0.65, -0.7, -0.6),
        ("judge", "as_given", -0.6, -0.7, -0.55),
        ("verbal", "as_given", -0.8, -0.8, -0.7),
        ("judge", "recalibrated", -0.5, -0.6, -0.4),
        ("verbal", "recalibrated", -0.5, -0.49, -0.4),  # a bound beyond the value
        ("other", "constant", -0.9, -0.9, -0.9),
    )
    display = ScoreDisplay.from_intervals(table, "TPS", name="runs")
    ax = display.ax_
    given, recalibrated = display.line_
    np.testing.assert_allclose(points(given[0]), [[-0.6, 1.14], [-0.8, 0.14]])
    np.testing.assert_allclose(points(recalibrated[0]), [[-0.5, 0.86], [-0.5, -0.14]])
    segments = [one[:, 0] for line in display.line_ for one in line[2][0].get_segments()]
    wanted = [(-0.7, -0.55), (-0.8, -0.7), (-0.6, -0.4), (-0.5, -0.4)]
    np.testing.assert_allclose(segments, wanted)
    assert display.reference == -0.65
    assert line_called(ax, "base rate").get_xdata() == [-0.65, -0.65]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["verbal", "judge"]
    assert ax.get_yticks().tolist() == [0, 1]
    assert ax.get_ylim() == (-0.6, 1.6)
    alone = ScoreDisplay.from_intervals(table.iloc[[1]], "TPS")
    assert alone.reference is None
    assert len(alone.line_) == 1
    assert not [line for line in alone.ax_.lines if line.get_label() == "base rate"]


def test_risk_coverage():
    best = np.array([0, 0, 1 / 3, 0.5])
    display = RiskCoverageDisplay(np.array([0.25, 1.0]), np.array([0.0, 0.5]), 0.2, best).plot()
    ax = display.ax_
    assert points(display.line_) == [[0.25, 0], [1, 0.5]]
    assert line_called(ax, "no ranking").get_ydata() == [0.5, 0.5]
    perfect = np.transpose([[0.25, 0.5, 0.75, 1], best])
    np.testing.assert_allclose(points(line_called(ax, "perfect ranking")), perfect)
    assert ax.get_xlim() == (-0.02, 1.02)
    assert display.line_.get_label() == "AURC = 0.200"
    assert display.plot(name="judge").line_.get_label() == "judge AURC = 0.200"


def test_cost_curve():
    gamma = np.linspace(0, 0.5, 41)[1:]
    weight = np.r_[100.0, 50.0, np.linspace(9, 1, 38)]
    display = CostCurveDisplay(gamma, gamma / 2, weight, 0.5, 0.125).plot()
    ax, behind = display.figure_.axes
    assert points(display.line_) == np.transpose([gamma, gamma / 2]).tolist()
    assert display.line_.get_label() == "system, ECUAS = 0.125"
    assert filled(behind.collections[0])[gamma[-1]] == (0, 1)
    assert behind.get_ylim() == pytest.approx((0, 9.9))  # the first twentieth may leave the picture
    assert ax.get_xlim() == (0, 0.5)
    always = line_called(ax, "always reject")
    display.figure_.canvas.draw()
    start, end = always.get_transform().transform(always.get_xydata())
    assert np.abs(ax.transData.inverted().transform([start, end]) @ [1, -1]).max() < 1e-9  # y = x
    low, high = ax.get_ylim()
    assert low < gamma[0] / 2
    assert 0.25 < high < 0.3
    display.plot(ax=ax, name="judge")
    assert len(ax.figure.axes) == 2  # one weight behind
    assert display.line_.get_label() == "judge, ECUAS = 0.125"


def test_termination():
    mechanism = ["informative", "administrative", "informative"]
    columns = {"mechanism": mechanism, "n_runs": [9, 4, 2], "n_successes": [5, 0, 0]}
    reasons = pd.DataFrame(columns, index=["done", "max_steps", "crash"])
    display = TerminationDisplay(reasons).plot(name="runs")
    ax = display.ax_
    ends = {of.get_label(): np.array(bars_of(of))[:, 2:0:-1].round(9) for of in ax.containers}
    assert ends.pop("administrative (4)").tolist() == [[1, 4]]
    assert ends.pop("informative (11)").tolist() == [[2, 9], [0, 2]]
    assert ends.popitem()[1].tolist() == [[2, 5], [1, 0], [0, 0]]  # the successes
    assert not ends
    texts = [(text.get_text(), *text.get_position()) for text in ax.texts]
    assert texts == [(" 9, 5 solved", 9, 2), (" 4", 4, 1), (" 2", 2, 0)]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["done", "max_steps", "crash"]
    assert ax.get_xlim() == pytest.approx((0, 1.25 * 9))


def e_process(threshold, **options):
    failing = [[k / 10, k / 10 + 1] + [5.0] * (k > 0) for k in range(10)]  # nine have a third step
    succeeding = [[-0.1 - k] + [-9.0] * (k < 9) for k in range(10)]
    log_m = TrajectoryArray.from_list(failing + succeeding)
    outcome = np.repeat([0, 1], 10)
    return EProcessDisplay(log_m, outcome, threshold, 0.1, np.array([0, 2, 19])).plot(**options)


def test_e_process():
    display = e_process(10.0)
    ax = display.ax_
    failing, succeeding = display.line_
    np.testing.assert_allclose(points(failing), [[1, 0.45], [2, 1.45]])
    np.testing.assert_allclose(points(succeeding), [[1, -4.6]])
    assert points(e_process(10.0, min_runs=9).line_[0])[-1] == [3, 5]
    runs = [
        [points(line) for line in ax.lines if line.get_alpha() and line.get_color() == color]
        for color in (failing.get_color(), succeeding.get_color())
    ]
    assert runs[0] == [[[1, 0], [2, 1]], [[2, 1]], [[1, 0.2], [2, 1.2], [3, 5]], [[3, 5]]]
    assert runs[1] == [[[1, -9.1]], [[1, -9.1]]]
    threshold = line_called(ax, "threshold, alpha = 0.1")
    assert threshold.get_ydata() == pytest.approx([np.log(10)] * 2)
    for nowhere in (np.inf, 0.0):
        labels = [line.get_label() for line in e_process(nowhere).ax_.lines]
        assert not [label for label in labels if "threshold" in label]


LEVELS = pd.Index([0.1, 0.4], name="alpha")


def rates(low):
    table = pd.DataFrame({"false_alarm_rate": [0.15, 0.5], "power": [0.3, 0.9]}, index=LEVELS)
    table["false_alarm_rate_low"], table["false_alarm_rate_high"] = low, [0.2, 0.6]
    table["power_low"], table["power_high"] = [0.2, 0.8], [0.4, 1.0]
    return table


def marks(ax, marker):
    """Places of the markers that no line joins; not those of the legend."""
    lines = [line for line in ax.lines if line.get_marker() == marker and len(line.get_xdata())]
    return [point for line in lines for point in points(line)]


def test_power():
    display = PowerDisplay({"raw": rates([0.11, 0.4])}).plot()
    left, right = display.ax_
    alarms, power = display.line_
    assert points(alarms) == [[0.1, 0.15], [0.4, 0.5]]
    assert points(power) == [[0.1, 0.3], [0.4, 0.9]]
    assert filled(left.collections[0])[0.4] == (0.4, 0.6)
    assert filled(right.collections[0])[0.4] == (0.8, 1.0)
    assert marks(left, "x") == [[0.1, 0.15]]  # an interval that reaches alpha is not above it
    assert marks(left, "o") == [[0.4, 0.5]]
    assert marks(right, "o") == [[0.1, 0.3], [0.4, 0.9]]
    assert not marks(right, "x")
    assert points(line_called(left, "alpha")) == [[0, 0], [0.4, 0.4]]
    assert left.get_xlim() == right.get_xlim() == pytest.approx((-0.008, 0.416))
    low, high = left.get_ylim()
    assert low == pytest.approx(-0.02 * high)
    assert right.get_ylim() == (-0.02, 1.02)
    kept = PowerDisplay({"raw": rates([0.1, 0.4])}).plot().ax_[0]
    assert [text.get_text() for text in kept.get_legend().get_texts()] == ["alpha", "raw"]


def savings(low):
    rule = RawVerifier(alpha=[0.1, 0.4]).fit([[0.5, 0.5]])
    made = token_savings(rule, [[0.9, 0.2], [0.3, 0.1]], [1, 0])
    shares = {"cost_share": [1.0, 0.6, 0.2], "accuracy_share": [1.0, 0.9, 0.0]}
    at_alpha = rates(low).assign(cost_share=[0.9, 0.5], accuracy_share=[0.95, 0.7])
    return replace(made, curve=pd.DataFrame(shares), at_alpha=at_alpha)


def test_savings():
    display = SavingsDisplay({"raw": savings([0.11, 0.4]), "b": savings([0.0, 0.0])}).plot()
    ax = display.ax_
    assert points(line_called(ax, "random runs at step 1")) == [[0.2, 0], [1, 1]]
    assert points(display.line_[0]) == [[1, 1], [0.6, 0.9], [0.2, 0]]
    assert display.line_[0].get_label() == "raw, area 0.70"
    assert marks(ax, "x") == [[0.9, 0.95]]
    assert marks(ax, "o") == [[0.5, 0.7], [0.9, 0.95], [0.5, 0.7]]
    assert (ax.get_xlim(), ax.get_ylim()) == ((-0.02, 1.02), (-0.02, 1.02))
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[-2:] == ["levels", "false-alarm rate above alpha"]


def test_early_warning():
    columns = {"AUROC": [0.6, 0.8], "AUROC_low": [0.5, 0.7], "AUROC_high": [0.7, 0.9]}
    by_step = pd.DataFrame(columns, index=[1, 2])
    # of 11 steps: failing runs are flagged at steps 1, 3, 6 and never, others at 10 and never
    risk = [[float(t >= step) for t in range(1, 12)] for step in (1, 3, 6, 99, 10, 99)]
    found = early_warning([0, 0, 0, 0, 1, 1], risk, threshold=0.5)
    display = EarlyWarningDisplay({"risk": replace(found, by_step=by_step)}).plot(name="runs")
    left, right = display.ax_
    (line,) = display.line_
    detected = dict(points(line))
    assert [detected[x] for x in (0, 0.19, 0.2, 0.49, 0.5, 1)] == [0.25, 0.25, 0.5, 0.5, 0.75, 0.75]
    assert line.get_label() == "risk: 50% of failures by 20%"
    alarms = [one for one in left.lines if one.get_linestyle() == ":" and len(one.get_xdata())]
    assert [dict(points(one))[1.0] for one in alarms] == [0.5]
    assert [one.get_color() for one in alarms] == [line.get_color()]
    ends = left.patches[0].get_extents().transformed(left.transData.inverted())
    assert (ends.x0, ends.x1) == pytest.approx((0, 0.2), abs=1e-12)
    assert (left.get_xlim(), left.get_ylim()) == ((-0.02, 1.02), (-0.02, 1.02))
    assert points(line_called(right, "risk")) == [[1, 0.6], [2, 0.8]]
    assert filled(right.collections[0])[2] == (0.7, 0.9)
    assert [one.get_ydata() for one in right.lines if one.get_linestyle() == "--"] == [[0.5, 0.5]]
    display.plot(ax=plt.figure().add_subplot())
    assert len(display.figure_.axes) == 1


def bars_of(container):
    return [(bar.get_x(), bar.get_x() + bar.get_width(), bar.get_y() + bar.get_height() / 2)
            for bar in container]  # fmt: skip


def decomposition(lost, gained):
    table = pd.DataFrame({"miscalibration": lost, "discrimination": gained, "uncertainty": 0.25})
    table.insert(0, "score", table["discrimination"] - table["miscalibration"] - 0.25)
    return DecompositionDisplay(table, "Brier").plot()


def test_decomposition():
    """Bars lead from the base rate to the best map, and back to the score."""
    display = decomposition([0.05, 0.01], [0.1, 0.0])
    ax = display.ax_
    gained, lost = ax.containers
    np.testing.assert_allclose(bars_of(gained), [(-0.25, -0.15, 1.17), (-0.25, -0.25, 0.17)])
    np.testing.assert_allclose(bars_of(lost), [(-0.2, -0.15, 0.83), (-0.26, -0.25, -0.17)])
    np.testing.assert_allclose(points(display.line_), [(-0.2, 0.83), (-0.26, -0.17)])
    places = [(-0.15, 1.17), (-0.25, 0.17), (-0.15, 0.83), (-0.25, -0.17)]
    np.testing.assert_allclose([text.xy for text in ax.texts], places)
    segments = [[(-0.25, 0.5), (-0.25, 1.5)], [(-0.25, -0.5), (-0.25, 0.5)]]
    np.testing.assert_allclose(ax.collections[0].get_segments(), segments)
    np.testing.assert_allclose(ax.get_xlim(), (-0.26 - 0.06 * 0.11, -0.15 + 0.2 * 0.11))
    for parts, texts in [  # as many decimals as show three digits of each part
        (([0.05, 0.01], [0.1, 0.0]), ["+0.1000", "+0.0000", "-0.0500", "-0.0100"]),
        (([0.2, 0.01], [0.5, 0.02]), ["+0.500", "+0.020", "-0.200", "-0.010"]),
        (([0.002], [0.5]), ["+0.50000", "-0.00200"]),
        (([0.0], [0.05]), ["+0.0500", "-0.0000"]),
        (([0.0], [0.0]), ["+0.000", "-0.000"]),
    ]:
        found = [text.get_text() for text in decomposition(*parts).ax_.texts]
        assert [text.replace("\N{MINUS SIGN}", "-") for text in found] == texts
    left, right = decomposition([0.0], [0.0]).ax_.get_xlim()  # around the only value
    assert left < -0.25 < right < left + 0.01


def test_fleet():
    columns = pd.MultiIndex.from_tuples([("length", ""), ("forecast", "$judge")])
    rows = [[-0.2, 0.1], [0.3, 1.4], [np.nan, -0.5]]
    evidence = pd.DataFrame(rows, pd.Index([10, 20, 30], name="run"), columns)
    changes = [
        SimpleNamespace(alarm=1020, since=1010, cause="level"),
        SimpleNamespace(alarm=30, since=22, cause=""),
    ]
    display = FleetDisplay(evidence, changes).plot()
    ax, (length, forecast) = display.ax_, display.line_
    assert (length.get_label(), forecast.get_label()) == ("length", r"forecast of \$judge")
    np.testing.assert_array_equal(length.get_ydata(), [-0.2, 0.3, np.nan])
    assert points(forecast) == [[10, 0.1], [20, 1.4], [30, -0.5]]
    spans = [one.get_extents().transformed(ax.transData.inverted()) for one in ax.patches]
    np.testing.assert_allclose([(one.x0, one.x1) for one in spans], [(1010, 1020), (22, 30)])
    assert [one.xyann for one in ax.texts] == [(4, 6), (4, 32)]
    assert [(one.get_text(), one.xy) for one in ax.texts] == [
        ("level\nsince run 1,010, alarm at 1,020", (1020, 1)),
        ("cause not known yet\nsince run 22, alarm at 30", (30, 1)),
    ]
    assert ax.get_ylim() == pytest.approx((-0.5 - 0.1, 1.4 + 0.6 + 0.1))
    for column, low, high in [  # 0 and the line of alarms are in view
        ([0.2, 0.4, 0.3], -0.1, 1.1), ([-0.2, -0.3, 0.0], -0.4, 1.1), ([0.5, 2.0, 1.0], -0.1, 2.1)
    ]:  # fmt: skip
        table = evidence.iloc[:, :1].copy()
        table.iloc[:, 0] = column
        assert FleetDisplay(table, []).plot().ax_.get_ylim() == pytest.approx((low, high))


def strip(n, critical, risk):
    table = pd.DataFrame({"risk": risk, "critical": np.isin(np.arange(1, n + 1), critical)})
    table = table.assign(surprisal=0.0, repetition=np.nan, agent_gap=np.nan, user_gap=np.nan)
    return TracerStripDisplay(table, "long").plot()


def test_strip():
    """Each critical episode is framed, and of long runs some steps are labelled."""
    display = strip(61, [1, 7, 8, 9, 61], np.linspace(0, 1, 61))
    frames = [(one.get_x(), one.get_y(), one.get_width(), one.get_height())
              for one in display.ax_.patches]  # fmt: skip
    assert frames == [(0.5, 0, 1, 2), (6.5, 0, 3, 2), (60.5, 0, 1, 2)]
    assert display.ax_.get_xticks().tolist() == list(range(1, 62, 3))
    assert strip(60, [], 0.5).ax_.get_xticks().tolist() == list(range(1, 61, 2))
    assert (display.ax_.get_xlim(), display.ax_.get_ylim()) == ((0.5, 61.5), (2, 0))
    assert display.line_.get_clim() == (0, 1)
    assert display.line_.get_array().ravel()[-1] == 1
    low, high = strip(3, [], 0.0).line_.get_clim()  # of a run without any risk
    assert (low, high) == (0, pytest.approx(0, abs=1e-6))
    assert high > 0
    widths = [strip(n, [], 0.5).figure_.get_size_inches()[0] for n in (10, 60)]
    assert widths == pytest.approx([6.8, 14])
