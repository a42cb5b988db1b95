import io
import json

import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor, _fleet_service
from trajscore.monitoring._fleet_service import FleetStream, _cells, batches_of_lines
from trajscore.monitoring._fleet_state import dumped, fingerprint, restore

N = 300


@pytest.fixture(scope="module")
def runs():
    made = make_trajectories(1500, lengths=(1, 5), random_state=0)
    cells = made.q.cells.copy()
    cells[made.q.offsets[2 * N] :] **= 0.3  # another judge
    return made.q.with_cells(cells), made.target


def fitted(runs, groups=None, **options):
    X, y = runs
    groups = None if groups is None else groups[:N]
    return FleetMonitor(n_after=100, **options).fit(X[:N], y[:N], groups)


def line(**message):
    return json.dumps(message).encode()


def lines_of_runs(runs, n=1200):
    """Every third outcome comes 20 runs later."""
    X, y = runs
    lines = []
    for k in range(N, N + n):
        outcome = None if k % 3 == 0 else int(y[k])
        lines.append(line(id=int(X.ids[k]), scores=X[k].tolist(), outcome=outcome))
        if k >= N + 20 and (k - 20) % 3 == 0:
            lines.append(line(id=int(X.ids[k - 20]), outcome=int(y[k - 20])))
    return lines


def same(a, b):
    return a.changes_ == b.changes_ and a.e_values_.equals(b.e_values_)


# ------------------------------------------------------------------- lines


def test_lines_are_runs_and_late_outcomes(runs):
    X, y = runs
    whole, stream = fitted(runs), FleetStream(fitted(runs))
    assert stream.take(lines_of_runs(runs, 60)) == []
    rows = np.arange(N, N + 60)
    late = (rows % 3 == 0) & (rows < N + 40)
    for k in rows:
        whole.update(X[k : k + 1], [-1 if k % 3 == 0 else y[k]])
        if k >= N + 20 and (k - 20) % 3 == 0:
            whole.add_outcomes([X.ids[k - 20]], [y[k - 20]])
    assert late.sum() > 10
    assert same(stream.fleet, whole)
    assert stream.n_lines == 60 + late.sum()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nothing", "not JSON; send an object such as"),
        (b"[1]", "not an object; send an object such as"),
        (line(id="a", score=[0.1]), "no key named 'score'; did you mean 'scores'?"),
        (line(scores=[0.1]), '"id" is missing: the run that the line belongs to'),
        (b'{"id": true, "outcome": 1}', '"id" must be text or a whole number, got true'),
        (line(id="a", scores=[0.1], outcome=2), '"outcome" must be 1, 0 or null, got 2'),
        (line(id="a", scores=[0.1], outcome=[]), '"outcome" must be 1, 0 or null'),
        (line(id="a"), '"scores" and "outcome" are missing'),
        (line(id="a", scores=[]), '"scores" must have a number for each step'),
        (line(id="a", scores=[0.1, "b"]), '"scores" must be finite numbers, got "b"'),
        (
            line(id="a", scores=[0.1, 1.2]),
            r'"scores" must be forecasts in \[0, 1\] as in the reference',
        ),
        (line(id="a", scores={"judge": [0.1]}), '"scores" must be a number for each step'),
        (line(id="a", outcome=1), "run 'a' is not waiting for an outcome"),
    ],
)
def test_lines_that_are_refused(runs, content, message):
    stream = FleetStream(fitted(runs))
    (error,) = stream.take([b"\n", content])
    assert error["line"] == 2
    with pytest.raises(ValueError, match=message):
        raise ValueError(error["error"])
    assert stream.fleet.n_runs_ == 0


def test_a_run_is_counted_once(runs):
    stream = FleetStream(fitted(runs))
    first = line(id="a", scores=0.3, outcome=None)
    (error,) = stream.take([first, first])
    assert "run 'a' was counted before; for a late outcome" in error["error"]
    assert stream.take([line(id="a", outcome=True)]) == []
    assert stream.fleet.n_runs_ == 1


def test_tasks_and_predictors(runs):
    X, y = runs
    both = TrajectoryArray(np.column_stack([X.cells, X.cells]), X.lengths, channels=["a", "b"])
    stream = FleetStream(fitted((both, y), np.arange(len(y)) // 2))
    scores = {"a": [0.1, 0.2], "b": [0.3, 0.4]}
    (error,) = stream.take([line(id=1, scores=scores)])
    assert '"task" is missing' in error["error"]
    lines = [line(id=k, scores=scores, task="x") for k in (1, 2)]
    assert stream.take(lines) == []
    assert stream.fleet.n_runs_ == 2
    assert stream.fleet.n_left_out_ == N // 2 + 1
    (error,) = stream.take([line(id=3, scores={"a": [1], "b": [0.5, 0.5]}, task="y")])
    assert "of each predictor" in error["error"]
    (error,) = stream.take([line(id=4, scores={"a": [1]}, task="z")])
    assert "must be an object with 'a', 'b'" in error["error"]


def test_lines_come_in_pieces():
    pieces = [b"one\ntwo\nth", b"ree\n", b"four", b" and more"]

    class File:
        def read1(self, size):
            return pieces.pop(0) if pieces else b""

    assert list(batches_of_lines(File())) == [[b"one", b"two"], [b"three"], [b"four and more"]]
    assert list(batches_of_lines(io.BytesIO(b""))) == []


# ------------------------------------------------------------------- state


def test_the_same_after_restarts(runs, tmp_path):
    lines = lines_of_runs(runs)
    whole = FleetStream(fitted(runs))
    whole.take(lines)
    assert whole.fleet.changes_
    assert whole.fleet.changes_[0].cause
    for start in range(0, len(lines), 190):
        stream = FleetStream(fitted(runs), tmp_path / "state")
        assert stream.n_lines == start
        assert stream.take(lines[start : start + 190]) == []
        stream.close()
    assert same(stream.fleet, whole.fleet)
    assert stream.fleet.n_late_outcomes_ == whole.fleet.n_late_outcomes_


def test_a_state_comes_back_to_the_last_digit(runs):
    X, y = runs
    tasks = np.arange(len(y)) % 700
    fleet, again = (fitted(runs, tasks) for _ in range(2))
    fleet.update(X[N:800], np.where(np.arange(N, 800) % 2, y[N:800], -1), tasks[N:800])
    restore(again, json.loads(json.dumps(dumped(fleet))))
    late = [run_id for run_id in X.ids[N:700] if run_id in fleet._waiting]
    for monitor in (fleet, again):
        monitor.add_outcomes(late, np.zeros(len(late)))
        monitor.update(X[800:], y[800:], tasks[800:])
    assert same(fleet, again)
    assert fleet.n_left_out_ == again.n_left_out_ > 0


def test_a_state_has_tasks_in_the_same_order_in_each_process(runs):
    tasks = [f"task {k % 700}" for k in range(len(runs[1]))]
    state = dumped(fitted(runs, tasks))
    assert state["tasks"] == sorted(tasks[:N])


def test_a_state_of_another_reference(runs, tmp_path):
    X, y = runs
    FleetStream(fitted(runs), tmp_path / "state").close()
    for other in (fitted(runs, alpha=0.1), fitted((X[1:], y[1:]))):
        assert fingerprint(other) != fingerprint(fitted(runs))
        with pytest.raises(ValueError, match="was written with another fitted process, alpha"):
            FleetStream(other, tmp_path / "state")


def test_a_damaged_state_is_refused(runs, tmp_path):
    path = tmp_path / "state"
    stream = FleetStream(fitted(runs), path)
    stream.take(lines_of_runs(runs, 50))
    stream.close()
    content = path.read_bytes()
    where = content.index(b'"random"')
    path.write_bytes(content[:where] + b"X" + content[where + 1 :])
    for _ in range(2):
        with pytest.raises(ValueError, match="is damaged, and the runs so far are lost; delete it"):
            FleetStream(fitted(runs), path)


def test_another_process_has_the_state(runs, tmp_path):
    stream = FleetStream(fitted(runs), tmp_path / "state")
    with pytest.raises(ValueError, match="is in use by another monitor"):
        FleetStream(fitted(runs), tmp_path / "state")
    stream.close()


def test_the_example_has_the_predictors_of_the_reference():
    with pytest.raises(ValueError, match=r'\{"a": \[0.7, 0.8\], "b": \[0.7, 0.8\]\}, "outcome"'):
        _cells([0.5], ["a", "b"], is_forecast=True)


def test_as_many_ids_are_remembered_as_said(runs, monkeypatch):
    monkeypatch.setattr(_fleet_service, "REMEMBERED", 3)
    stream = FleetStream(fitted(runs))
    for n, run in enumerate("abcd", start=1):
        assert stream.take([line(id=run, scores=[0.5], outcome=1)]) == []
        assert list(stream._ids) == list("abcd")[max(n - 3, 0) : n]
    (error,) = stream.take([line(id="b", scores=[0.5], outcome=1)])
    assert "run 'b' was counted before" in error["error"]
    assert stream.take([line(id="a", scores=[0.5], outcome=1)]) == []
