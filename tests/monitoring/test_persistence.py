"""Files of fitted processes: written whole or not at all, read only if they work."""

import re

import numpy as np
import pytest

from trajscore import DensityRatioEProcess
from trajscore.datasets import make_trajectories
from trajscore.monitoring._persistence import _try_out, load_process, save_fitted

pytest.importorskip("skops")

X, Y = make_trajectories(120, lengths=(1, 5), random_state=0, return_X_y=True)


@pytest.fixture(scope="module", params=[None, 0.3])
def process(request):
    return DensityRatioEProcess(alpha=[0.1, 0.3], end_worth=request.param).fit(X, Y)


def test_what_is_read_decides_as_what_was_written(process, tmp_path):
    path = tmp_path / "p.skops"
    path.write_text("old")
    save_fitted(process, path)
    assert [file.name for file in tmp_path.iterdir()] == ["p.skops"]
    for place in (path, str(path)):
        again = load_process(place)
        np.testing.assert_array_equal(again.thresholds_, process.thresholds_)
        np.testing.assert_array_equal(again.predict(X, 0.3), process.predict(X, 0.3))


def test_a_file_that_cannot_be_written_leaves_the_old_one(process, tmp_path):
    path = tmp_path / "p.skops"
    path.write_text("old")
    with pytest.raises(Exception, match="generator"):
        save_fitted((step for step in X), path)
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, r"p\.skops does not exist; write it with trajscore fit"),
        (b"text", r"p\.skops is not a \.skops file; write one with trajscore fit"),
        ([1, 2], r"a list, not a DensityRatioEProcess; trajscore fit writes a Density"),
    ],
)
def test_other_files_are_refused(tmp_path, content, problem):
    path = tmp_path / "p.skops"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        save_fitted(content, path)
    with pytest.raises(OSError if content is None else ValueError, match=problem):
        load_process(path)


def test_a_damaged_file_is_refused(process, tmp_path):
    path = tmp_path / "p.skops"
    save_fitted(process, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"p\.skops is (not a \.skops file|damaged)"):
        load_process(path)


class Unknown:
    """A type of a user's own."""


def test_types_that_nobody_trusts_are_named(tmp_path):
    path = tmp_path / "p.skops"
    save_fitted([Unknown()], path)
    name = f"{Unknown.__module__}.Unknown"
    problem = re.escape(f"holds {name}, which could do harm when loaded") + ".*--trust "
    with pytest.raises(ValueError, match=problem + re.escape(name)):
        load_process(path)
    with pytest.raises(ValueError, match="holds a list, not a DensityRatioEProcess"):
        load_process(path, trusted=[name])


def test_a_process_that_does_not_work_is_refused(tmp_path):
    process = DensityRatioEProcess().fit(X, Y)
    del process.test_.__dict__["alphas"]
    save_fitted(process, tmp_path / "p.skops")
    with pytest.raises(ValueError, match=r"p\.skops holds a process that does not work: "):
        load_process(tmp_path / "p.skops")


def test_all_levels_are_tried_for_two_steps():
    steps = []

    class Monitor:
        def update(self, score, run, done=False):
            steps.append((score, run, done))

    class Test:
        n_channels, alphas = 3, (0.1, 0.2)

    class Process:
        test_ = Test()
        levels = ()

        def monitor(self, alpha):
            self.levels += (alpha,)
            return Monitor()

    process = Process()
    _try_out(process)
    assert process.levels == (0.1, 0.2)
    assert steps == [([0.5] * 3, "a", False), ([0.5] * 3, "a", True)] * 2
    steps.clear()
    Test.n_channels = 1
    _try_out(process)
    assert steps[0] == (0.5, "a", False)
