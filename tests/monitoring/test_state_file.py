"""A monitor whose runs are kept in a SQLite file."""

import copy
import functools
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from trajscore import DensityRatioEProcess, PrefixForecaster
from trajscore.datasets import make_trajectories
from trajscore.monitoring import Conformal

X, Y = make_trajectories(300, lengths=(1, 6), random_state=0, return_X_y=True)
PROCESS = DensityRatioEProcess(alpha=[0.3, 0.1]).fit(X, Y)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")


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


def steps(monitor):
    return {decision.id: decision.step for decision in monitor}


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": [0.3, 0.1]},
        {"forecaster": PrefixForecaster(features="last")},
        {"forecaster": PrefixForecaster()},
        {"threshold": Conformal("randomized")},
    ],
    ids=["running", "last", "prefix", "randomised"],
)
def test_a_monitor_goes_on_where_another_was(state, options):
    process = DensityRatioEProcess(**{"alpha": 0.3, **options}).fit(X, Y)
    whole = follow(process.monitor(), range(30))
    monitor = process.monitor(state=state, durability="full")
    follow(monitor, range(30), stop=2)
    before = list(map(repr, monitor))  # with NaN where there is no threshold
    monitor.close()
    after = process.monitor(state=state)
    assert list(map(repr, after)) == before
    assert len(after) == (X.lengths[:30] > 2).sum() > 0
    late = follow(after, range(30), start=2)
    assert repr(late) == repr({row: last for row, last in whole.items() if row in late})


def test_an_end_is_said_late_after_a_restart(state):
    forecaster = PrefixForecaster(features="running", pooled=True, end="after")
    process = DensityRatioEProcess(forecaster, alpha=0.3).fit(X, Y)
    monitor, reference = process.monitor(state=state), process.monitor()
    for follower in (monitor, reference):
        for score in (0.4, 0.2):
            follower.update(score, "a")
    monitor.close()
    assert process.monitor(state=state).finish("a") == reference.finish("a")


def test_a_step_that_comes_twice_is_answered_again(state):
    for monitor in (PROCESS.monitor(), PROCESS.monitor(state=state)):
        first = monitor.update(0.4, "a", step=1)
        assert monitor.update(0.4, "a", step=1) == first
        second = monitor.update(0.3, "a", step=2, done=True)
        assert monitor.update(0.3, "a", step=2, done=True) == second
        monitor.update(0.4, "b", step=1)
        assert steps(monitor) == {"b": 1}
        for step, score in [(3, 0.3), (1, 0.31), (0, 0.4)]:
            with pytest.raises(ValueError, match=rf"run 'b': got step {step}, expected step 2"):
                monitor.update(score, "b", step=step)
    again = reopened(monitor, state)
    assert again.update(0.3, "a", step=2, done=True) == second
    assert again.update(0.4, "b", step=1).step == 1
    with pytest.raises(ValueError, match="got step 3, expected step 2"):
        again.update(0.4, "b", step=3)
    with pytest.raises(ValueError, match="run 'a': step 3 comes after its end"):
        again.update(0.4, "a", step=3)
    assert again.update(0.1, "a").step == 1  # a new run of that id


def test_every_id_that_is_text_or_a_whole_number_comes_back(state):
    ids = ["a", "", "\ud800", 7, -1, 2**70, "7", 'a "b"\n']
    monitor = PROCESS.monitor(state=state)
    for run in ids:
        monitor.update(0.4, run)
    for run in (1.5, (1, 2)):
        with pytest.raises(TypeError, match=re.escape(f"run {run!r}: only ids that are text")):
            monitor.update(0.4, run)
    assert [last.id for last in reopened(monitor, state)] == ids


def test_the_file_does_not_grow_with_runs_that_have_ended(state):
    monitor, sizes = PROCESS.monitor(state=state), []
    open_run = monitor.update(0.4, "open")
    for run in range(1100):
        ended = monitor.update(0.3, run, step=1, done=True)
        sizes.append(state.stat().st_size)
    assert sizes[-1] <= sizes[1005] + 8192  # 1000 ends are remembered
    after = reopened(monitor, state)
    assert list(after) == [open_run]
    assert after.update(0.3, 1099, step=1, done=True) == ended
    after.update(0.3, "more", done=True)  # the oldest is forgotten, after a restart too
    with pytest.raises(ValueError, match="got step 2, expected step 1"):
        after.update(0.3, 100, step=2)
    with pytest.raises(ValueError, match="comes after its end"):
        after.update(0.3, 101, step=2)


def test_what_ends_and_what_is_reset_stays_so(state):
    monitor = PROCESS.monitor(state=state)
    for run in "abc":
        monitor.update(0.4, run)
    ended = monitor.finish("a")
    monitor.reset("b")
    after = reopened(monitor, state)
    assert [last.id for last in after] == ["c"]
    assert after.update(0.4, "a", step=1, done=True) == ended
    after.reset()
    assert len(reopened(after, state)) == 0


def test_runs_are_forgotten_after_time_with_a_monitor_whatever_the_clock_says(state, monkeypatch):
    now = 1e6
    monkeypatch.setattr("time.monotonic", lambda: now)
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "old")
    now += 100
    monitor.update(0.4, "new")
    monkeypatch.setattr("time.time", lambda: 1e12)
    now = 5.0  # the machine was started anew, and years have gone by
    after = reopened(monitor, state)
    assert after.forget(100) == []  # it is not older
    assert after.forget(99) == ["old"]
    now += 50
    after = reopened(after, state)
    assert after.forget(60) == []
    now += 61
    assert after.forget(60) == ["new"]
    assert len(reopened(after, state)) == 0


def in_a_process(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_two_monitors_on_one_file_are_refused(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    state.with_name("link").symlink_to(state)
    state.with_name("hard").hardlink_to(state)
    for beside in state.parent.glob("state-*"):
        beside.unlink()  # the lock is on the file itself
    for name in ("state", "link", "hard"):
        with pytest.raises(ValueError, match="is in use by another monitor"):
            PROCESS.monitor(state=state.with_name(name))
    lock = "import sqlite3 as s, sys; s.connect(sys.argv[1], timeout=0).execute('BEGIN EXCLUSIVE')"
    with pytest.raises(subprocess.CalledProcessError):
        in_a_process(lock, state)
    assert monitor.update(0.3, "a").step == 2
    monitor.close()
    monitor.close()
    assert steps(PROCESS.monitor(state=state)) == {"a": 2}


def test_a_monitor_notices_that_another_one_wrote(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    shutil.copy(state, state.with_name("copy"))  # which drops the locks of this process
    write = "import sqlite3 as s, sys; s.connect(sys.argv[1]).execute('PRAGMA user_version = 3')"
    in_a_process(write, state)
    with pytest.raises(ValueError, match="another monitor has written to .*state"):
        monitor.update(0.3, "a")
    assert steps(monitor) == {"a": 1}


@needs_fork
def test_a_fork_is_refused_and_harms_nothing(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    child = os.fork()
    if child == 0:
        try:
            monitor.update(0.3, "a")
        except ValueError as error:
            monitor.close()
            os._exit("after a fork" not in str(error))
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    second = monitor.update(0.3, "a")
    with pytest.raises(ValueError, match="is in use by another monitor"):
        PROCESS.monitor(state=state)
    assert list(reopened(monitor, state)) == [second]


def test_a_monitor_with_a_state_is_not_copied_and_keeps_nothing_once_closed(state):
    monitor = PROCESS.monitor(state=state)
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            duplicate(monitor)
    assert monitor.update(0.4, "a").step == 1
    monitor.close()
    with pytest.raises(ValueError, match="closed .*state"):
        monitor.update(0.3, "a")
    assert steps(monitor) == {"a": 1}


def test_a_file_that_is_deleted_is_written_anew(state):
    state = state.parent / "folder" / "state"
    state.parent.mkdir()
    monitor = PROCESS.monitor(state=state)
    follow(monitor, range(20), stop=2)
    before = steps(monitor)
    state.unlink()
    with pytest.warns(UserWarning, match="was deleted"):
        monitor.update(0.4, "a")
    shutil.rmtree(state.parent)
    with pytest.raises(FileNotFoundError, match="folder .* does not exist"):
        monitor.update(0.3, "a")
    state.parent.mkdir()
    with pytest.warns(UserWarning, match="was deleted"):
        assert monitor.update(0.3, "a", step=2).step == 2
    assert steps(reopened(monitor, state)) == before | {"a": 2}


def test_a_file_that_another_takes_the_place_of_is_not_written_to(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    state.rename(state.with_name("old"))
    state.write_text("new")
    with pytest.raises(ValueError, match="taken the place of .*state"):
        monitor.update(0.3, "a")
    assert state.read_text() == "new"
    state.with_name("old").replace(state)
    assert monitor.update(0.3, "a").step == 2


def test_a_state_is_gone_on_with_only_by_its_own_process(state):
    PROCESS.monitor(state=state).update(0.4, "a")
    before, options = state.read_bytes(), {"alpha": [0.3, 0.1]}
    pooled = PrefixForecaster(features="running", pooled=True)
    others = [
        DensityRatioEProcess(**options).fit(X[:200], Y[:200]),
        *(DensityRatioEProcess(**options, **more).fit(X, Y) for more in (
            {"random_state": 1}, {"log_offset": 0.5}, {"threshold": Conformal(end_worth=1)},
            {"threshold": "pac"}, {"forecaster": pooled})),
    ]  # fmt: skip
    ville = {"threshold": "ville"}
    for more in ({"log_offset": 0.5}, {"threshold": "randomized_ville"}):  # of the same limits
        other_state = state.with_name("ville" + next(iter(more)))
        DensityRatioEProcess(**ville).fit(X, Y).monitor(state=other_state)
        other = DensityRatioEProcess(**ville | more).fit(X, Y)
        with pytest.raises(ValueError, match="written with another fitted process, alpha"):
            other.monitor(state=other_state)
    for process, alpha in [(PROCESS, 0.1), *((other, None) for other in others)]:
        with pytest.raises(ValueError, match="written with another fitted process, alpha"):
            process.monitor(alpha, state)
        assert state.read_bytes() == before
    same = DensityRatioEProcess(**options).fit(X[::-1], Y[::-1])
    assert steps(same.monitor(state=state)) == {"a": 1}


def sqlite_file(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE runs (name)")
    return path.read_bytes()


def test_a_file_of_others_stays_as_it_is(state):
    for content in [b"{}", b"", b"my notes\nline two" * 9, b"\x00\xff", sqlite_file(state)]:
        state.write_bytes(content)
        with pytest.raises(ValueError, match="is not a trajscore monitor's state"):
            PROCESS.monitor(state=state)
        assert state.read_bytes() == content
        assert [path.name for path in state.parent.iterdir()] == ["state"]


def test_what_is_not_a_file_is_refused(state):
    paths = [state.parent]
    if hasattr(os, "mkfifo"):
        os.mkfifo(state)
        state.with_name("link").symlink_to("/dev/full")
        paths += [state, Path("/dev/zero"), state.with_name("link")]
    for path in paths:
        with pytest.raises(ValueError, match="is a folder, a pipe or a device"):
            PROCESS.monitor(state=path)
    with pytest.raises(FileNotFoundError, match="folder .* does not exist"):
        PROCESS.monitor(state=state / "none" / "state")
    with pytest.raises(ValueError, match="durability must be"):
        PROCESS.monitor(state=state.with_name("other"), durability="some")
    assert not state.with_name("other").exists()


def test_no_descriptor_and_no_file_is_left(state):
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("descriptors cannot be counted here")
    before = len(list(descriptors.iterdir()))
    for _ in range(3):
        monitor = PROCESS.monitor(state=state)
        monitor.update(0.4, "a")
        del monitor
        with pytest.raises(ValueError, match="another fitted process"):
            PROCESS.monitor(alpha=0.1, state=state)
    assert len(list(descriptors.iterdir())) == before
    assert list(state.parent.iterdir()) == [state]


class Disk(sqlite3.Connection):
    """A connection of which each change fails with an error of SQLite."""

    error = None

    def execute(self, query, *rest):
        if self.error and query.startswith("INSERT"):
            error = sqlite3.OperationalError("failed")
            error.sqlite_errorname = self.error
            raise error
        return super().execute(query, *rest)


def test_a_step_that_cannot_be_kept_does_not_count(state, monkeypatch):
    monkeypatch.setattr("sqlite3.connect", functools.partial(sqlite3.connect, factory=Disk))
    monitor = PROCESS.monitor(state=state)
    first, before = monitor.update(0.4, "a"), state.read_bytes()
    for name, remedy in [
        ("SQLITE_FULL", "make room on the disk"),
        ("SQLITE_READONLY_DIRECTORY", "writable"),
        ("SQLITE_CORRUPT", "start the monitor again"),
        ("SQLITE_IOERR_WRITE", "check the disk"),
    ]:
        monkeypatch.setattr(Disk, "error", name)
        for run, step in (("a", 2), ("b", 1)):
            with pytest.raises(OSError, match=f"state: failed; .*{remedy}"):
                monitor.update(0.3, run, step=step)
        assert state.read_bytes() == before
        assert list(monitor) == [first]
    monkeypatch.setattr(Disk, "error", None)
    assert monitor.update(0.3, "a", step=2).step == 2
    monitor.update(0.4, "b")
    assert steps(reopened(monitor, state)) == {"a": 2, "b": 1}


def kept(state, n=60):
    """A state of some runs, and their last decisions."""
    monitor = PROCESS.monitor(state=state)
    follow(monitor, range(n), stop=2)
    decisions = {decision.id: decision for decision in monitor}
    monitor.close()
    return decisions


def damage(state, *places):
    data = bytearray(state.read_bytes())
    for place in places:
        data[place] ^= 0xFF
    state.write_bytes(data)


def is_whole(state, expected):
    """Whether a damaged state is gone on with, with every run as it was; else it is refused."""
    try:
        monitor = PROCESS.monitor(state=state)
    except ValueError as error:
        if not re.search("is damaged; name another|is not a trajscore monitor's", str(error)):
            raise
        return False
    assert {decision.id: decision for decision in monitor} == expected
    monitor.close()
    return True


def test_damage_is_never_silent(state):
    expected, rng = kept(state), np.random.default_rng(0)
    whole = state.read_bytes()
    for trial in range(30):
        state.write_bytes(whole)
        damage(state, *rng.integers(len(whole), size=(1, 3, 30)[trial % 3]))
        is_whole(state, expected)
    for start in (0, whole.index(str(X[7][1]).encode())):  # its head, and a score of a run
        state.write_bytes(whole)
        damage(state, *range(start, start + 8))
        assert not is_whole(state, expected)
    for cut in (1, 4096, len(whole) // 2, len(whole) - 100, len(whole)):
        state.write_bytes(whole[:-cut])
        assert is_whole(state, expected) <= (cut == 1)
