"""A monitor whose runs are kept in a SQLite file."""

import copy
import io as streams
import json
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from trajscore import DensityRatioEProcess, PrefixForecaster
from trajscore.datasets import make_trajectories
from trajscore.monitoring import _monitor
from trajscore.monitoring._service import serve
from trajscore.monitoring._state_file import StateFile, _checksum, _is_sound, packed, unpacked

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
    "process",
    [
        PROCESS,
        DensityRatioEProcess(PrefixForecaster(features="last"), alpha=0.3).fit(X, Y),
        DensityRatioEProcess(PrefixForecaster(), alpha=0.3, cross_fit=3).fit(X, Y),
        DensityRatioEProcess("passthrough", alpha=0.3).fit(X, Y),
        DensityRatioEProcess(alpha=0.3, ties="randomized").fit(X, Y),
    ],
    ids=["running", "last", "cross-fitted", "passthrough", "randomised"],
)
@pytest.mark.parametrize("durability", ["normal", "full"])
def test_a_monitor_goes_on_where_another_was(state, process, durability):
    whole = follow(process.monitor(), range(40))
    monitor = process.monitor(state=state, durability=durability)
    follow(monitor, range(40), stop=2)
    before = list(map(repr, monitor))  # with NaN where there is no threshold
    monitor.close()
    after = process.monitor(state=state)
    assert list(map(repr, after)) == before
    assert len(after) == (X.lengths[:40] > 2).sum() > 0
    late = follow(after, range(40), start=2)
    assert repr(late) == repr({row: last for row, last in whole.items() if row in late})


def test_an_end_is_said_late_after_a_restart(state):
    process = DensityRatioEProcess(
        PrefixForecaster(features="running", pooled=True, end="after"), alpha=0.3
    ).fit(X, Y)
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
        assert len(monitor) == 0
        monitor.update(0.4, "b", step=1)
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


@pytest.mark.parametrize("run", ["a", "", "\ud800", 7, -1, 2**70, "7", 'a "b"\n'])
def test_every_id_comes_back(state, run):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, run)
    assert [(last.id, type(last.id)) for last in reopened(monitor, state)] == [(run, type(run))]


@pytest.mark.parametrize("run", [1.5, (1, 2), None])
def test_ids_that_cannot_be_kept_are_refused(state, run):
    monitor = PROCESS.monitor(state=state)
    if run is None:
        assert monitor.update(0.4).id == "run"
        return
    with pytest.raises(TypeError, match="only ids that are text or integers can be kept"):
        monitor.update(0.4, run)
    assert len(monitor) == 0


def test_the_file_does_not_grow_with_runs_that_have_ended(state, monkeypatch):
    monkeypatch.setattr(_monitor, "_REMEMBERED", 5)
    monitor, sizes = PROCESS.monitor(state=state), []
    open_run = monitor.update(0.4, "open")
    for run in range(300):
        monitor.update(0.4, run)
        ended = monitor.update(0.3, run, done=True)
        sizes.append(state.stat().st_size)
    assert max(sizes) == sizes[10]
    after = reopened(monitor, state)
    assert list(after) == [open_run]
    assert after.update(0.3, 299, step=2, done=True) == ended
    for run in range(300, 310):  # the oldest are forgotten first, after a restart too
        after.update(0.3, run, done=True)
    after = reopened(after, state)
    assert after.update(0.3, 305, step=1, done=True).step == 1
    assert list(after) == [open_run]
    with pytest.raises(ValueError, match="got step 2, expected step 1"):
        after.update(0.3, 304, step=2, done=True)


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
    monkeypatch.setattr(_monitor.time, "monotonic", lambda: now)
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "old")
    now += 100
    monitor.update(0.4, "new")
    monkeypatch.setattr(_monitor.time, "time", lambda: 1e12)
    now = 5.0  # the machine was started anew, and years have gone by
    after = reopened(monitor, state)
    assert after.forget(101) == []
    assert after.forget(99) == ["old"]
    now += 50
    after = reopened(after, state)
    assert after.forget(60) == []
    now += 61
    assert after.forget(60) == ["new"]
    assert len(reopened(after, state)) == 0


# --------------------------------------------------------------------------- one owner


def test_two_monitors_on_one_file_are_refused(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    state.with_name("link").symlink_to(state)
    state.with_name("hard").hardlink_to(state)
    for beside in state.parent.glob("state-*"):
        beside.unlink()  # the lock is on the file itself
    paths = [state.with_name(name) for name in ("state", "link", "hard")]
    for path in paths:
        with pytest.raises(ValueError, match="is in use by another monitor; end that one, or"):
            PROCESS.monitor(state=path)
    code = (
        "import sys; from pathlib import Path\n"
        "from trajscore.monitoring._state_file import StateFile\n"
        "for path in sys.argv[1:]:\n"
        "    try: StateFile(Path(path), {}, 'normal')\n"
        "    except ValueError as error: print(error)"
    )
    command = [sys.executable, "-c", code, *map(str, paths)]
    answers = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert answers.count("is in use by another monitor; end that one, or name another") == 3
    assert monitor.update(0.3, "a").step == 2
    monitor.close()
    monitor.close()
    assert steps(PROCESS.monitor(state=state)) == {"a": 2}


def test_a_monitor_notices_that_another_one_wrote(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    shutil.copy(state, state.with_name("copy"))  # which drops the locks of this process
    code = (
        "import sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1])\n"
        "db.execute('PRAGMA user_version = 3')"
    )
    subprocess.run([sys.executable, "-c", code, str(state)], check=True)
    with pytest.raises(ValueError, match="another monitor has written to .*; end this one"):
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
            os._exit("make another monitor after a fork" not in str(error))
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    second = monitor.update(0.3, "a")
    with pytest.raises(ValueError, match="is in use by another monitor"):
        PROCESS.monitor(state=state)
    assert list(reopened(monitor, state)) == [second]


def test_a_monitor_with_a_state_is_not_copied(state):
    monitor = PROCESS.monitor(state=state)
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a monitor with a state cannot be copied or pickled"):
            duplicate(monitor)
    assert monitor.update(0.4, "a").step == 1


def test_a_monitor_that_was_closed_keeps_nothing(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    monitor.close()
    with pytest.raises(ValueError, match="this monitor has closed .*; make another one"):
        monitor.update(0.3, "a")
    assert steps(monitor) == {"a": 1}


def test_a_file_that_is_deleted_is_written_anew(state):
    monitor = PROCESS.monitor(state=state)
    follow(monitor, range(20), stop=2)
    before = steps(monitor)
    state.unlink()
    with pytest.warns(UserWarning, match="was deleted while a monitor used it; it was written"):
        monitor.update(0.4, "a")
    assert monitor.update(0.3, "a").step == 2
    assert steps(reopened(monitor, state)) == before | {"a": 2}


def test_a_folder_that_is_deleted_refuses_steps_until_it_is_there_again(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    monitor = PROCESS.monitor(state=folder / "state")
    monitor.update(0.4, "a")
    shutil.rmtree(folder)
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist; create it first"):
        monitor.update(0.3, "a")
    folder.mkdir()
    with pytest.warns(UserWarning, match="was deleted"):
        assert monitor.update(0.3, "a", step=2).step == 2


def test_a_file_that_another_takes_the_place_of_is_not_written_to(state):
    monitor = PROCESS.monitor(state=state)
    monitor.update(0.4, "a")
    state.rename(state.with_name("old"))
    state.write_text("new")
    with pytest.raises(ValueError, match="another file has taken the place of .*; put the old"):
        monitor.update(0.3, "a")
    assert state.read_text() == "new"
    state.with_name("old").replace(state)
    assert monitor.update(0.3, "a").step == 2


# --------------------------------------------------------------------------- other files


def test_files_of_others_are_refused(state):
    PROCESS.monitor(state=state).update(0.4, "a")
    before = state.read_bytes()
    others = [
        DensityRatioEProcess(alpha=[0.3, 0.1]).fit(X[:200], Y[:200]),
        DensityRatioEProcess(alpha=[0.3, 0.1], random_state=1).fit(X, Y),
        DensityRatioEProcess(alpha=[0.3, 0.1], wait=0.5).fit(X, Y),
        DensityRatioEProcess(alpha=[0.3, 0.1], end_worth=1).fit(X, Y),
    ]
    for make in [lambda: PROCESS.monitor(alpha=0.1, state=state)] + [
        lambda other=other: other.monitor(state=state) for other in others
    ]:
        with pytest.raises(
            ValueError, match="was written with another fitted process, alpha or version"
        ):
            make()
        assert state.read_bytes() == before
    assert steps(PROCESS.monitor(state=state)) == {"a": 1}


def test_another_version_is_refused(state):
    monitor = PROCESS.monitor(state=state)
    monitor._file._owner = monitor._file._owner.replace(b'"version": 1', b'"version": 2')
    monitor._file._begin_to_write()
    monitor.close()
    with pytest.raises(
        ValueError, match="was written with another fitted process, alpha or version"
    ):
        PROCESS.monitor(state=state)


def sqlite_file(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE runs (name)")
    return path.read_bytes()


def test_a_file_of_others_stays_as_it_is(state):
    contents = [b"{}", b"", b"my notes\nline two\nline three" * 9, b"\x00\xff", sqlite_file(state)]
    for content in contents:
        state.write_bytes(content)
        with pytest.raises(ValueError, match="is not a trajscore monitor's state, or is damaged"):
            PROCESS.monitor(state=state)
        assert state.read_bytes() == content
        assert [path.name for path in state.parent.iterdir()] == ["state"]


def test_what_is_not_a_file_is_refused(state):
    paths = [state.parent]
    if hasattr(os, "mkfifo"):
        os.mkfifo(state)
        paths += [state, Path("/dev/full"), Path("/dev/zero")]
        state.with_name("link").symlink_to("/dev/full")
        paths.append(state.with_name("link"))
    for path in paths:
        with pytest.raises(ValueError, match="is a folder, a pipe or a device; name a file"):
            PROCESS.monitor(state=path)
    with pytest.raises(FileNotFoundError, match="the folder .* does not exist; create it first"):
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
        with pytest.raises(ValueError, match="another fitted process, alpha"):
            PROCESS.monitor(alpha=0.1, state=state)
    assert len(list(descriptors.iterdir())) == before
    assert list(state.parent.iterdir()) == [state]


# --------------------------------------------------------------------------- disks


class Failing:
    """A connection of which each change fails as on a disk that is full, or cannot be written."""

    def __init__(self, db, name):
        self.db, self.name = db, name

    def __enter__(self):
        return self.db.__enter__()

    def __exit__(self, *error):
        return self.db.__exit__(*error)

    def execute(self, query, *rest):
        if query.startswith("REPLACE"):
            error = sqlite3.OperationalError("failed")
            error.sqlite_errorname = self.name
            raise error
        return self.db.execute(query, *rest)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SQLITE_FULL", "failed; make room on the disk"),
        ("SQLITE_READONLY_DIRECTORY", "failed; make the file and its folder writable"),
        ("SQLITE_CORRUPT", "start the monitor again, which recovers the runs that are not damaged"),
        ("SQLITE_IOERR_WRITE", "failed; check the disk"),
    ],
)
def test_a_step_that_cannot_be_kept_does_not_count(state, name, message):
    monitor = PROCESS.monitor(state=state)
    first = monitor.update(0.4, "a")
    db, before = monitor._file._db, state.read_bytes()
    monitor._file._db = Failing(db, name)
    lines = [b'{"id": "a", "step": 2, "score": 0.3}', b'{"id": "b", "step": 1, "score": 0.4}']
    out = streams.StringIO()
    serve(monitor, lines, out)
    assert state.read_bytes() == before
    assert list(monitor) == [first]
    monitor._file._db = db
    serve(monitor, lines, out)
    *refused, second, _ = map(json.loads, out.getvalue().splitlines())
    assert [answer["line"] for answer in refused] == [1, 2]
    assert all(f"{message}; send the line again" in answer["error"] for answer in refused)
    assert second["step"] == 2
    assert steps(reopened(monitor, state)) == {"a": 2, "b": 1}


@needs_fork
def test_a_read_only_folder_is_refused_in_words():
    folder = tempfile.TemporaryDirectory()  # that of a test is closed to others
    state = Path(folder.name) / "state"
    PROCESS.monitor(state=state).update(0.4, "a")
    state.chmod(0o666)
    state.parent.chmod(0o555)
    child = os.fork()
    if child == 0:  # root may write anywhere
        os.setuid(65534) if os.getuid() == 0 else None
        try:
            PROCESS.monitor(state=state)
        except OSError as error:
            os._exit("make the file and its folder writable" not in str(error))
        except BaseException:
            os._exit(3)
        os._exit(2)
    status = os.waitpid(child, 0)[1]
    state.parent.chmod(0o755)
    assert os.waitstatus_to_exitcode(status) == 0
    assert steps(PROCESS.monitor(state=state)) == {"a": 1}
    folder.cleanup()


# --------------------------------------------------------------------------- damage


def kept(state, n=60):
    """A state of some runs, and their last decisions."""
    monitor = PROCESS.monitor(state=state)
    follow(monitor, range(n), stop=2)
    monitor.close()
    return {decision.id: decision for decision in PROCESS.monitor(state=state)}


def offset_of_content(state, run):
    """Where the numbers of a run are in the file."""
    with closing(sqlite3.connect(state)) as db:
        query = "SELECT content FROM runs WHERE id = ?"
        content = db.execute(query, (json.dumps(run).encode(),)).fetchone()[0]
    return state.read_bytes().index(content)


def damage(state, *places):
    data = bytearray(state.read_bytes())
    for place in places:
        data[place] ^= 0xFF
    state.write_bytes(data)


def test_a_damaged_run_is_named_and_the_others_go_on(state):
    expected = kept(state)
    run, *others = expected
    damage(state, offset_of_content(state, run) + 12)
    damaged = state.read_bytes()
    with pytest.warns(UserWarning, match=rf"was damaged; 1 run lost: {run}\. Begin"):
        monitor = PROCESS.monitor(state=state)
    assert [path.read_bytes() for path in state.parent.glob("state.damaged-*")] == [damaged]
    for _ in range(2):
        assert {last.id: last for last in monitor} == {other: expected[other] for other in others}
        for step in (None, 3):
            with pytest.raises(
                ValueError, match=f"run {run}: the state was damaged and may have lost"
            ):
                monitor.update(0.4, run, step=step)
        with pytest.raises(KeyError, match=f"run {run}: the state was damaged"):
            monitor.finish(run)
        monitor = reopened(monitor, state)
    assert monitor.update(0.4, run, step=1).step == 1
    assert monitor.update(0.4, run).step == 2
    assert len(reopened(monitor, state)) == len(expected)


def test_a_run_that_was_lost_is_reset(state):
    run, *_ = kept(state)
    damage(state, offset_of_content(state, run))
    with pytest.warns(UserWarning, match="1 run lost"):
        monitor = PROCESS.monitor(state=state)
    monitor.reset(run)
    assert reopened(monitor, state).update(0.4, run).step == 1


def test_a_cut_file_loses_no_run_without_a_word(state):
    kept(state)
    size = state.stat().st_size
    whole = state.read_bytes()
    for cut in (1, 4096, size // 2, size - 100, size):
        state.write_bytes(whole[:-cut])
        assert (outcome(state) == "whole") <= (cut == 1)


EXPECTED = {}


def outcome(state):
    """Open a damaged state; every run goes on as it was, or is named, or all are refused."""
    if not EXPECTED:
        EXPECTED.update(kept(state.with_name("sound")))
    with pytest.MonkeyPatch.context() as patch:
        messages = []
        patch.setattr("warnings.warn", lambda message, *_, **__: messages.append(str(message)))
        try:
            monitor = PROCESS.monitor(state=state)
        except ValueError as error:
            if "is not a trajscore monitor's state, or is damaged" not in str(error):
                raise
            return "refused"
    there = {decision.id: decision for decision in monitor}
    assert there == {run: EXPECTED[run] for run in there}
    missing = EXPECTED.keys() - there.keys()
    lost = re.search(r"was damaged; (\d+) runs? lost", " ".join(messages))
    assert len(missing) <= (int(lost[1]) if lost else 0)  # runs that have ended may be lost too
    for run in missing:
        with pytest.raises(ValueError, match="the state was damaged"):
            monitor.update(0.4, run)
    monitor.close()
    return "named" if messages else "whole"


@pytest.mark.slow
def test_damage_is_never_silent(state):
    kept(state)
    whole, rng = state.read_bytes(), np.random.default_rng(0)
    outcomes = []
    for trial in range(150):
        state.write_bytes(whole)
        places = rng.integers(len(whole), size=(1, 3, 30)[trial % 3])
        damage(state, *places)
        outcomes.append(outcome(state))
        for part in state.parent.glob("state.damaged-*"):
            part.unlink()
    assert set(outcomes) == {"refused", "named", "whole"}


def test_numbers_are_packed_exactly():
    like = (0, 0.0, np.empty((1, 0, 2)), (None, (np.empty(1), True)))
    value = (3, -0.1, np.arange(6.0).reshape(1, 3, 2), (None, (np.array([np.inf]), False)))
    assert repr(unpacked(like, packed(value))) == repr(value)


def test_a_process_that_was_not_fitted_has_no_monitor():
    with pytest.raises(NotFittedError):
        DensityRatioEProcess().monitor()


def test_slots_of_runs_that_ended_are_used_again(state):
    file = StateFile(state, {}, "normal")
    try:
        file.write({"a": b"1", "b": b"2", "c": b"3"})
        assert (file._slots, file._free) == ({"a": 1, "b": 2, "c": 3}, [])
        file.write({"a": None, "b": None})
        assert (file._slots, file._free) == ({"c": 3}, [1, 2])
        file.write({"d": b"4", "c": b"5"})  # the one that was freed last
        assert (file._slots, file._free) == ({"c": 3, "d": 2}, [1])
        file.write({"e": b"6", "f": b"7"})
        assert (file._slots, file._free) == ({"c": 3, "d": 2, "e": 1, "f": 4}, [])
        assert file._n_slots == 4
    finally:
        file.close()


@pytest.mark.parametrize(
    ("row", "is_sound"),
    [
        ((1, b"k", b"text", 0), True),
        ((2, b"k", b"text", 0), False),
        ((1, b"l", b"text", 0), False),
        ((1, b"k", b"test", 0), False),
        ((1, b"k", b"text", 1), False),
        (("1", b"k", b"text", 0), False),
        ((1, "k", b"text", 0), False),
        ((1, b"k", None, 0), False),
        ((None, None, None, 0), False),
    ],
)
def test_a_row_is_sound_whose_sum_is_its_own(row, is_sound):
    *content, off = row
    assert _is_sound(*content, _checksum(1, b"k", b"text") + off) == is_sound
