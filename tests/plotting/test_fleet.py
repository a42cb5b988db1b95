import numpy as np
import pandas as pd
import pytest

from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor
from trajscore.monitoring._fleet import FleetChange
from trajscore.plotting import FleetDisplay

N = 500


@pytest.fixture(scope="module")
def display():
    runs = make_trajectories(2000, lengths=(2, 8), random_state=0)
    X, y = runs.q, runs.target
    fleet = FleetMonitor(n_after=200).fit(X[:N], y[:N])
    cells = X[N:].cells.copy()
    start = X.offsets[2 * N] - X.offsets[N]
    cells[start:] **= 0.2
    display = FleetDisplay.from_estimator(fleet, X[N:].with_cells(cells), y[N:], name="agent")
    assert fleet.n_runs_ == 0
    return display, fleet


def test_evidence_up_to_its_alarm(display):
    shown, fleet = display
    assert list(shown.evidence) == fleet.e_values_.index.tolist()
    change = shown.changes[0]
    assert N < change.alarm < N + 100
    assert shown.evidence.loc[change.alarm, ("forecast", "")] >= 1
    assert (shown.evidence.loc[:N].max() < 1).all()
    waiting = shown.evidence.loc[change.alarm + 10 : change.alarm + 190]
    assert len(waiting) > 10
    assert waiting.isna().all(axis=None)
    assert (shown.evidence.loc[change.alarm + 250 :].max() < 1).all()


def test_changes_are_named(display):
    shown, _ = display
    change = shown.changes[0]
    texts = [text.get_text() for text in shown.ax_.texts]
    assert texts == [
        f"{change.cause}\nsince run {change.since:,}, alarm at {change.alarm:,}",
    ]
    assert shown.ax_.get_title() == "agent"
    labels = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert labels == ["length", "forecast", "success", "level", "slope"]
    assert len(shown.line_) == 5
    assert np.isfinite(shown.ax_.get_ylim()).all()


def test_the_line_of_alarms_and_all_evidence_are_in_view(display):
    shown, _ = display
    flat = [line for line in shown.ax_.lines if line not in shown.line_]
    assert [set(line.get_ydata()) for line in flat] == [{1}]
    low, high = shown.ax_.get_ylim()
    values = shown.evidence.to_numpy()
    assert low < np.nanmin(values)
    assert high > max(np.nanmax(values), 1)


def test_nothing_changed():
    runs = make_trajectories(700, random_state=0)
    fleet = FleetMonitor().fit(runs.q[:N], runs.target[:N])
    shown = FleetDisplay.from_estimator(fleet, runs.q[N:], n_points=20)
    assert shown.changes == []
    assert len(shown.evidence) == 20
    assert not shown.ax_.texts
    assert shown.evidence.index.tolist() == list(range(10, 201, 10))
    assert shown.ax_.get_ylim()[1] == pytest.approx(max(1, shown.evidence.max(axis=None)) + 0.1)


def test_evidence_is_noted_often_enough_to_see_each_wait():
    runs = make_trajectories(700, random_state=0)
    fleet = FleetMonitor(n_after=50).fit(runs.q[:N], runs.target[:N])
    shown = FleetDisplay.from_estimator(fleet, runs.q[N:], n_points=1)
    assert shown.evidence.index.tolist() == list(range(25, 201, 25))  # twice in 50 runs


@pytest.fixture
def evidence():
    columns = pd.MultiIndex.from_tuples([("length", ""), ("forecast", "$judge")])
    index = pd.Index([10, 20, 30], name="run")
    return pd.DataFrame([[-0.2, 0.1], [0.3, 1.4], [np.nan, -0.5]], index, columns)


def test_evidence_and_changes_are_drawn_where_they_were(evidence):
    changes = [
        FleetChange(1020, 1010, "forecast", "judge", 3.0, "level"),
        FleetChange(30, 22, "length", "", 3.0),
    ]
    display = FleetDisplay(evidence, changes).plot()
    ax = display.ax_
    length, forecast = display.line_
    assert (length.get_label(), forecast.get_label()) == ("length", r"forecast of \$judge")
    np.testing.assert_array_equal(length.get_xdata(), [10, 20, 30])
    np.testing.assert_array_equal(length.get_ydata(), [-0.2, 0.3, np.nan])
    np.testing.assert_array_equal(forecast.get_ydata(), [0.1, 1.4, -0.5])
    spans = [one.get_extents().transformed(ax.transData.inverted()) for one in ax.patches]
    np.testing.assert_allclose([(one.x0, one.x1) for one in spans], [(1010, 1020), (22, 30)])
    assert [one.xyann for one in ax.texts] == [(4, 6), (4, 32)]
    assert [(one.get_text(), one.xy) for one in ax.texts] == [
        ("level\nsince run 1,010, alarm at 1,020", (1020, 1)),
        ("cause not known yet\nsince run 22, alarm at 30", (30, 1)),
    ]
    assert ax.get_ylim() == pytest.approx((-0.5 - 0.1, 1.4 + 0.6 + 0.1))
    assert (ax.get_xlabel(), ax.get_title()) == ("run", "")


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [([0.2, 0.4, 0.3], -0.1, 1.1), ([-0.2, -0.3, 0.0], -0.4, 1.1), ([0.5, 2.0, 1.0], -0.1, 2.1)],
)
def test_zero_and_the_line_of_alarms_are_in_view(evidence, column, low, high):
    table = evidence.iloc[:, :1].copy()
    table.iloc[:, 0] = column
    assert FleetDisplay(table, []).plot().ax_.get_ylim() == pytest.approx((low, high))


def test_evidence_at_an_alarm_is_that_of_the_alarm(display):
    shown, fleet = display
    change = shown.changes[0]
    column = change.quantity, change.predictor
    threshold = fleet.e_values_["log_threshold"][column]
    assert shown.evidence.loc[change.alarm, column] == pytest.approx(change.log_e_value / threshold)


def test_each_label_is_beside_its_own_line(evidence):
    display = FleetDisplay(evidence, []).plot()
    legend = display.ax_.get_legend()
    named = {
        text.get_text(): line.get_color()
        for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    assert named == {line.get_label(): line.get_color() for line in display.line_}
    assert len(set(named.values())) == 2
