"""A monitor whose steps are kept in a file."""

import errno
import io as streams
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.exceptions import NotFittedError

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories
from trajscore.monitoring import _journal, _monitor
from trajscore.monitoring._service import serve

X, Y = make_trajectories(300, lengths=(1, 6), random_state=0, return_X_y=True)
PROCESS = DensityRatioEProcess(alpha=[0.3, 0.1]).fit(X, Y)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def reopened(monitor, state):
    """The monitor that goes on where one was that is gone."""
    monitor.close()
    return PROCESS.monitor(state=state)


def follow(monitor, rows, start=0, stop=10):
    """Send steps of runs in turn; the last decision of each run."""
    last = {}
    for t in range(start, stop):
        for row in rows:
            if t < X.lengths[row]:
                done = t + 1 == X.lengths[row]
                last[row] = monitor.update(X[row][t], row, step=t + 1, done=done)
    return last


def test_a_monitor_goes_on_where_another_was(state):
    whole = follow(PROCESS.monitor(), range(40))
    follow(PROCESS.monitor(state=state), range(40), stop=2)
    after = PROCESS.monitor(state=state)
    assert len(after) == (X.lengths[:40] > 2).sum()
    found = follow(after, range(40), start=2)
    assert found == {row: one for row, one in whole.items() if row in found}
    assert found


def test_a_step_that_comes_twice_is_answered_again(state):
    for monitor in (PROCESS.monitor(), PROCESS.monitor(state=state)):
        first = monitor.update(0.4, "a", step=1)
        assert monitor.update(0.4, "a", step=1) == first
        second = monitor.update(0.3, "a", step=2, done=True)
        assert monitor.update(0.3, "a", step=2, done=True) == second
        assert len(monitor) == 0
        monitor.update(0.4, "b", step=1)
        for step, score in [(3, 0.3), (1, 0.31), (0, 0.4)]:
            with pytest.raises(ValueError, match=rf"run 'b': got step {step}, expected step 2"):
                monitor.update(score, "b", step=step)
    again = reopened(monitor, state)
    assert again.update(0.3, "a", step=2, done=True) == second


def test_a_line_that_is_not_whole_is_cut_off(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    monitor.update(0.3, "a")
    monitor.close()
    size = state.stat().st_size
    for cut in range(1, 20):
        os.truncate(state, size - cut)
        assert [one.step for one in PROCESS.monitor(state=state)] == [1]
        assert PROCESS.monitor(state=state).update(0.3, "a", step=2).step == 2
        assert state.stat().st_size == size


def test_a_step_that_cannot_be_kept_does_not_count(state, monkeypatch):
    monitor = PROCESS.monitor(state=state)
    first = monitor.update(0.4, "a")
    before = state.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:5]))
    with pytest.raises(OSError, match="only a part of a line could be written"):
        monitor.update(0.3, "a")
    monkeypatch.undo()
    assert state.read_bytes() == before
    assert list(monitor) == [first]
    second = monitor.update(0.3, "a", step=2)
    with pytest.raises(TypeError, match="only ids that are text or integers can be kept"):
        monitor.update(0.4, 1.5)
    assert [one.id for one in monitor] == ["a"]
    assert reopened(monitor, state).update(0.3, "a", step=2) == second


def test_the_file_does_not_grow_with_runs_that_have_ended(state, monkeypatch):
    monkeypatch.setattr(_journal, "_GROWTH", 2000)
    monkeypatch.setattr(_monitor, "_REMEMBERED", 5)
    monitor, sizes = PROCESS.monitor(state=state), []
    open_run = monitor.update(0.4, "open")
    for run in range(300):
        monitor.update(0.4, run)
        ended = monitor.update(0.3, run, done=True)
        sizes.append(state.stat().st_size)
    assert max(sizes) < 6000
    after = reopened(monitor, state)
    assert list(after) == [open_run]
    assert after.update(0.3, 299, step=2, done=True) == ended


def test_a_full_disk_harms_no_run(state, monkeypatch):
    monkeypatch.setattr(_journal, "_GROWTH", 300)
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    kept = state.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    lines = [b'{"id": "a", "step": 2, "score": 0.3}', b'{"id": "b", "step": 1, "score": 0.4}']
    out = streams.StringIO()
    with monkeypatch.context() as during:
        during.setattr(os, "write", full)
        serve(monitor, lines, out)
    assert state.read_bytes() == kept
    serve(monitor, lines, out)
    *refused, second, _ = map(json.loads, out.getvalue().splitlines())
    assert [one["line"] for one in refused] == [1, 2]
    assert all("No space left on device; send the line again" in one["error"] for one in refused)
    assert second["step"] == 2
    # there is room for lines, but none to write all of them anew
    monkeypatch.setattr(_journal, "replacing", full)
    for run in range(30):
        monitor.update(0.4, run)
    assert [one.id for one in reopened(monitor, state)] == ["a", "b", *range(30)]


def test_what_a_killed_monitor_left_half_written_is_removed(state):
    other = state.with_name(".state2.0a.part")
    for part in (state.with_name(".state.0a1b2c3d.part"), other):
        part.write_bytes(b"half")
    PROCESS.monitor(state=state)
    assert sorted(state.parent.iterdir()) == [state.with_name(".state.lock"), other, state]


def test_runs_without_a_score_for_long_are_forgotten(state, monkeypatch):
    now = 1e9
    monkeypatch.setattr(_monitor.time, "time", lambda: now)
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "old")
    now += 100
    monitor.update(0.4, "new")
    after = reopened(monitor, state)
    assert after.forget(99) == ["old"]
    after = reopened(after, state)
    assert [one.id for one in after] == ["new"]
    assert after.forget(99) == []


def test_what_ends_and_what_is_reset_stays_so(state):
    monitor = PROCESS.monitor(state=state)
    for run in "abc":
        monitor.update(0.4, run)
    ended = monitor.finish("a")
    monitor.reset("b")
    after = reopened(monitor, state)
    assert [one.id for one in after] == ["c"]
    assert after.update(0.4, "a", step=1, done=True) == ended
    after.reset()
    assert len(reopened(after, state)) == 0


def test_two_monitors_on_one_file_are_refused(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    with pytest.raises(ValueError, match="is in use by another monitor"):
        PROCESS.monitor(state=state)
    code = (
        "import sys; from pathlib import Path; from trajscore.monitoring._journal import Journal\n"
        "try: Journal(Path(sys.argv[1]), {})\n"
        "except ValueError as error: print(error)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(state)], capture_output=True, text=True, check=True
    )
    assert "is in use by another monitor" in told.stdout
    link = state.with_name("link")
    link.symlink_to(state)
    with pytest.raises(ValueError, match="is in use by another monitor"):
        PROCESS.monitor(state=link)
    monitor._journal.rewrite(monitor._records())  # another file takes its place
    with pytest.raises(ValueError, match="is in use by another monitor"):
        PROCESS.monitor(state=state)
    monitor.close()
    monitor.close()
    assert len(PROCESS.monitor(state=state)) == 1
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist"):
        PROCESS.monitor(state=state / "none" / "state")


def test_no_descriptor_is_left_open(state):
    descriptors = Path("/proc/self/fd")

    def count():
        return len(list(descriptors.iterdir()))

    if not descriptors.is_dir():
        pytest.skip("descriptors cannot be counted here")
    before = count()
    for _ in range(3):
        monitor = PROCESS.monitor(state=state)
        monitor.update(0.4, "a")
        monitor._journal.rewrite(monitor._records())
        del monitor
    assert count() == before


def test_files_of_others_are_refused(state):
    PROCESS.monitor(state=state).update(0.4, "a")
    with pytest.raises(ValueError, match="was written with another process or level"):
        PROCESS.monitor(alpha=0.1, state=state)
    other = DensityRatioEProcess(alpha=[0.3, 0.1]).fit(X[:200], Y[:200])
    with pytest.raises(ValueError, match="was written with another process or level"):
        other.monitor(state=state)
    for text in ("", "[1]\n", "{}\n", json.dumps({"format": "else"}) + "\n", "[" * 5000 + "\n"):
        state.write_text(text)
        with pytest.raises(ValueError, match="is not a trajscore monitor's state"):
            PROCESS.monitor(state=state)
        assert state.read_text() == text


@pytest.mark.parametrize("content", [b"{}", b"my notes\nline two\nline three", b"\x00\xff"])
def test_a_file_of_others_stays_as_it_is(state, content):
    state.write_bytes(content)
    with pytest.raises(ValueError, match="is not a trajscore monitor's state"):
        PROCESS.monitor(state=state)
    assert state.read_bytes() == content


def test_a_process_that_was_not_fitted_has_no_monitor():
    with pytest.raises(NotFittedError):
        DensityRatioEProcess().monitor()
