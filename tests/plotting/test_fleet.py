import numpy as np
import pytest

from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor
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
