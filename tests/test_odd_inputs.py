"""Odd inputs get a result or a sentence, never a raw error."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judged import evaluate
from trajscore import DensityRatioEProcess, TrajectoryArray, metrics
from trajscore.datasets import make_trajectories
from trajscore.gates import Gate, RunSet

X, Y = make_trajectories(40, lengths=(1, 5), random_state=0, return_X_y=True)
PROCESS = DensityRatioEProcess(alpha=0.3).fit(X, Y)
quick = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
ODD = [
    *(None, True, 0, -1, 0.5, 1.5, 1e308, 10**400, float("nan"), float("inf"), 1j),
    *("", "a", "log", "\ud800", b"x", [], [[]], {}, {"a": [[0.5]]}, (), set(), [None], ["a"]),
    *([0.5], [[0.5], [0.4]], [[0.5, 0.6], [0.4]], [[0.5], [None]], [0, 1], [-1, -1], [[[0.5]]]),
    *(np.array(3), np.array([]), np.ones((2, 3)), np.ones((2, 3, 4)), np.arange(6) * 1j),
    *(np.array([1, 2], dtype="M8[D]"), np.array(["a", None], dtype=object), np.bool_(True)),
    *(pd.Series([0.5, 0.4]), pd.DataFrame({"a": [0.5, 0.4]}), pd.DataFrame(), pd.NA, pd.NaT),
    TrajectoryArray.from_list([[0.5, 0.6], [0.4]]),
    TrajectoryArray.from_list([[5.0], [-3.0]], ids=["a", "b"]),
    TrajectoryArray.from_list([]),
]
odd = st.sampled_from(ODD)
RAW = (
    *(AssertionError, AttributeError, LookupError, ArithmeticError, RecursionError, MemoryError),
    UnboundLocalError,
)


def is_clear(call):
    """Whether a call gives a result, or an error in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except RAW:
            raise
        except Exception as error:
            return bool(str(error).strip())
    return True


def altered(content, rng):
    """Cut, repeat, flip or replace a few bytes; or put in what breaks parsers."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(max(len(data), 1)))
        end = at + int(rng.integers(1, 30))
        kind = rng.integers(5)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            data[at:at] = data[at:end]
        elif kind == 3:
            data[at:end] = rng.bytes(end - at)
        else:
            odd = [b"null", b"1e999", b"NaN", b"[]", b"[" * 3000, b"9" * 400, b"\xff", b"\\ud800"]
            data[at:at] = odd[rng.integers(len(odd))]
    return bytes(data)


@quick
@given(given=odd, other=odd)
def test_doors_refuse_in_words(given, other):
    assert is_clear(lambda: TrajectoryArray.from_list(given, ids=other))
    assert is_clear(lambda: metrics.tps_score(given, [[0.5, 0.6], [0.4]]))
    assert is_clear(lambda: metrics.tps_score([1, 0], given, sample_weight=other))
    assert is_clear(lambda: RunSet(given, [1, 0], tasks=other))
    assert is_clear(lambda: RunSet([[0.5, 0.6], [0.4]], given, spent=other))
    assert is_clear(lambda: Gate(given, versus=other, margin=other))
    assert is_clear(lambda: PROCESS.monitor().update(given, other))
    assert is_clear(lambda: PROCESS.predict(given))


@pytest.mark.parametrize("name", ["families", "phi", "calibrator", "censored", "missing"])
def test_evaluate_refuses_options_in_words(name):
    for value in ODD:
        if value is not None:
            assert is_clear(lambda value=value: evaluate(X[:8], Y[:8], **{name: value}))


@quick
@given(seed=st.integers(0, 10**6))
def test_altered_files_are_read_or_refused(seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.mktemp("altered")
    X.save(folder / "runs.npz")
    monitor = PROCESS.monitor(state=folder / "state")
    monitor.update(0.4, "a", step=1)
    monitor.close()
    reads = {
        "runs.npz": TrajectoryArray.load,
        "state": lambda path: PROCESS.monitor(state=path).close(),
    }
    for name, read in reads.items():
        path = folder / name
        path.write_bytes(altered(path.read_bytes(), rng))
        assert is_clear(lambda path=path, read=read: read(path))


def test_each_line_is_answered_and_harms_no_other_run(tmp_path, rng, monitored):
    pytest.importorskip("skops.io").dump(PROCESS, tmp_path / "p.skops")
    line = b'{"id": "a", "step": 1, "score": 0.7, "end": false}'
    odd = [altered(line, rng).replace(b"\n", b" ") for _ in range(300)]
    lines = [b'{"id": "good", "score": 0.4}', *odd, b'{"id": "good", "score": 0.3, "step": 2}']
    code, answers, _ = monitored(tmp_path / "p.skops", lines)
    assert (code, len(answers)) == (2, sum(bool(one.strip()) for one in lines))
    alone = PROCESS.monitor()
    alone.update(0.4, "good")
    assert answers[-1]["log_e_value"] == alone.update(0.3, "good").log_e_value
