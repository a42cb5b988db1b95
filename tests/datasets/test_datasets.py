import hashlib
import re
import shutil

import numpy as np
import pytest

from trajscore import metrics
from trajscore.datasets import (
    _fetch,
    fetch_evaluator,
    fetch_expected_cost,
    load_chess,
    make_trajectories,
)


def test_chess_is_what_its_description_says():
    chess = load_chess(as_frame=True)
    X, y = chess.data, chess.target
    assert X.shape == (360, 60, 3)
    assert len(chess.frame) == len(X.cells) == 14_916
    assert (np.bincount(y + 1) == [67, 134, 159]).all()
    assert "14,916 rows" in chess.DESCR
    assert X.cells.min() >= 0
    assert X.cells.max() <= 1
    meta = X.meta
    assert set(meta["stop_reason"]) == {"game_over", "max_steps"}
    observed = y >= 0
    assert ((meta["stop_reason"] == "max_steps") == ~observed).all()
    assert (meta["final_outcome"][observed] == y[observed]).all()
    assert meta["final_outcome"][~observed].sum() == 25
    assert load_chess().frame is None


def test_chess_forecasts_are_informative():
    X, y = load_chess(return_X_y=True)
    done = y >= 0
    last = {
        name: metrics.trajectory_diagnostics(y[done], X[name][done], phi="last")["AUROC"]
        for name in X.channels
    }
    assert last["engine"] > 0.95 < last["material"]


def test_make_trajectories_is_a_martingale_that_ends_in_the_outcome():
    runs = make_trajectories(60_000, lengths=5, base_rate=0.3, information=0.7, random_state=0)
    q, y = runs.q.steps(5), runs.target
    error = 4 * 0.5 / np.sqrt(len(y))
    assert y.mean() == pytest.approx(0.3, abs=error)
    np.testing.assert_allclose(q.mean(axis=0), 0.3, atol=error)
    for t in range(5):
        order = np.argsort(q[:, t])
        for part in np.array_split(order, 10):
            bound = 4 * np.sqrt(0.25 / len(part))
            assert y[part].mean() == pytest.approx(q[part, t].mean(), abs=bound)
            if t < 4:  # and the next forecast has the present one as its mean
                assert q[part, t + 1].mean() == pytest.approx(q[part, t].mean(), abs=bound)


def test_make_trajectories_options():
    runs = make_trajectories(50, lengths=(2, 9), budget=4, random_state=0)
    assert runs.data.lengths.max() <= 4
    assert ((runs.target == -1) | (runs.target == runs.final_outcome)).all()
    assert (runs.target == -1).any()
    plain = make_trajectories(50, random_state=1)
    np.testing.assert_allclose(plain.data.cells, plain.q.cells, atol=1e-12)
    assert make_trajectories(50, random_state=1).data == plain.data
    given = make_trajectories(3, lengths=[1, 2, 3], random_state=0)
    assert given.data.lengths.tolist() == [1, 2, 3]
    assert make_trajectories(3, lengths=(4, 4)).data.lengths.tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"base_rate": 1.0}, "base_rate must lie strictly"),
        ({"base_rate": "half"}, "base_rate must lie strictly"),
        ({"lengths": [1, 2]}, "a pair, or 3 numbers"),
        ({"lengths": (5, 3)}, r"give the smaller length first, got .*; pass \(3, 5\)"),
        ({"lengths": (0, 3)}, "each of the two lengths must be a whole number"),
        ({"lengths": (1.5, 3)}, "each of the two lengths must be a whole number"),
        ({"lengths": 0}, "lengths must be a whole number of at least 1, got 0"),
        ({"lengths": 1.5}, "lengths must be a whole number of at least 1"),
        ({"lengths": [1, 0, 2]}, "row 1 has no steps"),
        ({"lengths": [1, 2.5, 2]}, "lengths must be whole numbers"),
        ({"n_runs": 5.5}, "n_runs must be a whole number of at least 1"),
        ({"n_runs": 0}, "n_runs must be a whole number of at least 1"),
        ({"noise": -1}, "noise must be a standard deviation of at least 0"),
        ({"sharpness": np.nan}, "sharpness must be one finite number"),
        ({"budget": 0}, "budget must be a whole number of at least 1"),
    ],
)
def test_make_trajectories_says_what_is_wrong(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_trajectories(**{"n_runs": 3, **kwargs})


@pytest.mark.parametrize(("name", "n_runs"), [("hotpotqa", 16_110), ("gsm8k", 5_978)])
def test_fetch_evaluator_from_a_local_copy(name, n_runs, tmp_path, public_file):
    file = f"{name}_w_scores_compressed.csv.gz"
    (tmp_path / "trajscore").mkdir()
    shutil.copyfile(public_file("evaluator", file), tmp_path / "trajscore" / file)
    X, y = fetch_evaluator(name, data_home=tmp_path, download_if_missing=False, return_X_y=True)
    assert len(X) == len(y) == n_runs
    bunch = fetch_evaluator(name, data_home=tmp_path, as_frame=True)
    assert bunch.data == X
    assert len(bunch.frame) == len(X.cells)


def test_fetch_evaluator_says_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match="name must be 'chessgames', .*, got 'hotpot'"):
        fetch_evaluator("hotpot")
    with pytest.raises(OSError, match="download_if_missing=True"):
        fetch_evaluator("math", data_home=tmp_path, download_if_missing=False)


def test_pinned_hashes(public_file):
    from trajscore.datasets._evaluator import _FILES

    for name in ("hotpotqa", "gsm8k"):
        path = public_file("evaluator", f"{name}_w_scores_compressed.csv.gz")
        assert hashlib.sha256(path.read_bytes()).hexdigest() == _FILES[name]


@pytest.mark.parametrize(("name", "shape"), [("sst2_gpt2", (1821, 2)), ("agnews_gpt2", (7600, 4))])
def test_fetch_expected_cost_from_a_local_copy(name, shape, tmp_path, public_file):
    (tmp_path / "trajscore").mkdir()
    for part in ("scores", "targets"):
        source = public_file("expected_cost", name, f"{part}.npy")
        shutil.copyfile(source, tmp_path / "trajscore" / f"{name}_{part}.npy")
    X, y = fetch_expected_cost(name, data_home=tmp_path, return_X_y=True)
    assert X.shape == shape
    assert y.max() == shape[1] - 1
    np.testing.assert_allclose(np.exp(X).sum(axis=1), 1)
    assert str(shape[1]) in fetch_expected_cost(name, data_home=tmp_path).DESCR


def test_fetch_expected_cost_says_what_is_wrong(tmp_path):
    with pytest.raises(OSError, match="download_if_missing=True"):
        fetch_expected_cost("sst2_gpt2", data_home=tmp_path, download_if_missing=False)
    for name in ("../else", "", None, 3):
        with pytest.raises(ValueError, match="not the name of a score set"):
            fetch_expected_cost(name)


def test_a_changed_file_is_not_fetched_anew_unasked(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "pooch.retrieve", lambda *args, **kwargs: pytest.fail("went to the network")
    )
    (tmp_path / "trajscore").mkdir()
    for part in ("scores", "targets"):
        np.save(tmp_path / "trajscore" / f"sst2_gpt2_{part}.npy", np.zeros(3))
    with pytest.raises(ValueError, match="sst2_gpt2_scores.npy is not the published file"):
        fetch_expected_cost("sst2_gpt2", data_home=tmp_path, download_if_missing=False)


_RAW = "https://raw.githubusercontent.com/"


@pytest.mark.parametrize(
    ("fetch", "start", "end", "is_pinned"),
    [
        (
            lambda **how: fetch_evaluator("math", **how),
            f"{_RAW}shuvom-s/e-valuator/main/data/",
            "math_w_scores_compressed.csv.gz",
            True,
        ),
        (
            lambda **how: fetch_expected_cost("sst2_gpt2", **how),
            f"{_RAW}luferrer/expected_cost/main/notebooks/data/sst2_gpt2/",
            "scores.npy",
            True,
        ),
        (
            lambda **how: fetch_expected_cost("other", **how),
            f"{_RAW}luferrer/expected_cost/main/notebooks/data/other/",
            "scores.npy",
            False,
        ),
    ],
)
def test_what_is_fetched_comes_from_its_publisher(
    tmp_path, monkeypatch, fetch, start, end, is_pinned
):
    asked = []

    def retrieve(url, known_hash, fname, path):
        asked.append((url, known_hash, path))
        raise OSError("no network here")

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(OSError, match="no network here"):
        fetch(data_home=tmp_path)
    ((url, known, folder),) = asked
    assert url.startswith(start)
    assert url.endswith(end)
    assert folder == tmp_path / "trajscore"
    assert known is None if not is_pinned else re.fullmatch("sha256:[0-9a-f]{64}", known)


def test_a_file_is_known_by_its_sum(tmp_path):
    (tmp_path / "trajscore").mkdir()
    file = tmp_path / "trajscore" / "x.txt"
    missing = f"{file} does not exist; pass download_if_missing=True, or put the file there"
    with pytest.raises(OSError) as error:
        _fetch.retrieve("url", "x.txt", None, tmp_path, download_if_missing=False)
    assert str(error.value) == missing
    file.write_bytes(b"abc")
    known = hashlib.sha256(b"abc").hexdigest()
    for sha256 in (None, known):
        found = _fetch.retrieve("url", "x.txt", sha256, tmp_path, download_if_missing=False)
        assert found == file
    assert _fetch.retrieve("url", "x.txt", known, tmp_path, download_if_missing=True) == file
    other = hashlib.sha256(b"abd").hexdigest()
    with pytest.raises(ValueError) as error:
        _fetch.retrieve("url", "x.txt", other, tmp_path, download_if_missing=False)
    assert str(error.value) == (
        f"{file} is not the published file: its SHA-256 does not start with {other[:12]}; pass "
        "download_if_missing=True to fetch it again"
    )


@pytest.mark.parametrize("name", ["", "a/b", ".a", 3, None])
def test_names_of_score_sets(name):
    with pytest.raises(ValueError, match="is not the name of a score set; use, say, 'sst2_gpt2'"):
        fetch_expected_cost(name)


def test_scores_become_log_probabilities(tmp_path):
    (tmp_path / "trajscore").mkdir()
    scores = np.array([[0.0, 0.0, np.log(2)], [np.log(3), 0.0, 0.0]], dtype=np.float32)
    np.save(tmp_path / "trajscore" / "other.set_scores.npy", scores)
    np.save(tmp_path / "trajscore" / "other.set_targets.npy", np.array([[2], [0]]))
    bunch = fetch_expected_cost("other.set", data_home=tmp_path, download_if_missing=False)
    np.testing.assert_allclose(np.exp(bunch.data), [[0.25, 0.25, 0.5], [0.6, 0.2, 0.2]], rtol=1e-6)
    assert (bunch.data.dtype, bunch.target.tolist()) == (np.float64, [2, 0])
    assert bunch.DESCR == "other.set: 2 samples of 3 classes; expected_cost, MIT."
    assert [name.rpartition("_")[2] for name in bunch.filenames] == ["scores.npy", "targets.npy"]
