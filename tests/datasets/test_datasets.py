"""Data that are made, shipped, or fetched from their publishers."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr, ndtri

from scripts import PROJECT
from trajscore import metrics, step_weights
from trajscore.datasets import (
    fetch_evaluator,
    fetch_expected_cost,
    load_chess,
    load_real_runs,
    make_trajectories,
)


def test_chess_is_what_its_description_says():
    chess = load_chess(as_frame=True)
    X, y = chess.data, chess.target
    assert X.shape == (360, 60, 3)
    assert len(chess.frame) == len(X.cells) == 14_916
    assert (np.bincount(y + 1) == [67, 134, 159]).all()
    assert "14,916 rows" in chess.DESCR
    assert 0 <= X.cells.min() <= X.cells.max() <= 1
    meta, observed = X.meta, y >= 0
    assert set(meta["stop_reason"]) == {"game_over", "max_steps"}
    assert ((meta["stop_reason"] == "max_steps") == ~observed).all()
    assert (meta["final_outcome"][observed] == y[observed]).all()
    assert meta["final_outcome"][~observed].sum() == 25
    assert load_chess().frame is None
    X, y = load_chess(return_X_y=True)
    last = {
        name: metrics.trajectory_diagnostics(y[y >= 0], X[name][y >= 0], phi="last")["AUROC"]
        for name in X.channels
    }
    assert last["engine"] > 0.95 < last["material"]


@pytest.mark.slow
def test_the_truth_of_real_runs_is_calibrated_and_ends_in_the_outcome():
    real = load_real_runs(task="parcel")
    q, y = real.q, real.target
    assert (list(q.ids), list(q.lengths)) == (list(real.data.ids), list(real.data.lengths))
    last = q.offsets[1:] - 1
    np.testing.assert_array_equal(q.cells[last], y)
    assert 0 <= q.cells.min() <= q.cells.max() <= 1
    for step in range(4):
        (alive,) = np.nonzero(q.lengths > step)
        chance = q.cells[q.offsets[alive] + step]
        for part in [slice(None), *np.array_split(np.argsort(chance), 5)]:
            spread = np.sqrt((chance * (1 - chance))[part].sum())
            assert abs((y[alive] - chance)[part].sum()) <= 3 * spread + 1e-4, step
    assert load_real_runs(model="smollm2_135m", task="ring").q is None
    data = Path(real.filename).with_name("parcel_truth.npz").read_bytes()
    assert hashlib.sha256(data).hexdigest().startswith("cae6b9b500ad")
    # the page of the truth is of these chances: the distance of the base rate
    stored = json.loads((PROJECT / "docs" / "stored" / "truth.json").read_text("utf-8"))["both"]
    rate = np.average(np.repeat(y, q.lengths), weights=step_weights(q.lengths))
    lost = metrics.regret(q, q.with_cells(np.full(len(q.cells), rate))).mean()
    assert stored["distance"]["log"]["base rate"][0] == pytest.approx(lost, abs=1e-9)


def test_forecasts_are_a_martingale_that_ends_in_the_outcome():
    runs = make_trajectories(40_000, lengths=5, base_rate=0.3, information=0.7, random_state=0)
    q, y = runs.q.steps(5), runs.target
    error = 4 * 0.5 / np.sqrt(len(y))
    assert y.mean() == pytest.approx(0.3, abs=error)
    np.testing.assert_allclose(q.mean(axis=0), 0.3, atol=error)
    for t in range(5):
        for part in np.array_split(np.argsort(q[:, t]), 10):
            bound = 4 * np.sqrt(0.25 / len(part))
            assert y[part].mean() == pytest.approx(q[part, t].mean(), abs=bound)
            if t < 4:  # and the next forecast has the present one as its mean
                assert q[part, t + 1].mean() == pytest.approx(q[part, t].mean(), abs=bound)


@pytest.mark.parametrize("lengths", [[1, 2, 3], [4]])
def test_the_truth_is_that_of_the_walk_that_was_drawn(lengths):
    information, rate, n = 0.6, 0.3, len(lengths)
    options = {"lengths": lengths, "base_rate": rate, "information": information}
    made = make_trajectories(n, **options, random_state=5, noise=0.7, sharpness=2.0, bias=0.5)
    rng, threshold = np.random.RandomState(5), ndtri(1 - rate)
    drawn = rng.standard_normal(sum(lengths)).tolist()
    rest = rng.standard_normal(n) * np.sqrt(1 - information)
    for run, length in enumerate(lengths):
        seen = 0.0
        for step in range(1, length + 1):
            seen += drawn.pop(0) * np.sqrt(information / length)
            left = 1 - information * step / length
            expected = ndtr((seen - threshold) / np.sqrt(left))
            assert made.q[run][step - 1] == pytest.approx(expected, rel=1e-12)
        assert made.target[run] == (seen + rest[run] > threshold)
    noise = 0.7 * rng.standard_normal(sum(lengths))  # on the log-odds that are scaled and shifted
    signal = expit(2 * logit(made.q.cells) + 0.5 + noise)
    np.testing.assert_allclose(made.data.cells, signal, rtol=1e-9)


def test_lengths():
    drawn = make_trajectories(3000, lengths=(2, 4), random_state=0).data.lengths
    np.testing.assert_allclose(np.bincount(drawn)[2:], 1000, atol=100)
    for lengths, expected in [
        (3, [3, 3, 3]), ((4, 4), [4, 4, 4]), ((2, 3, 4), [2, 3, 4]), ([1, 2, 3], [1, 2, 3])
    ]:  # fmt: skip
        assert make_trajectories(3, lengths=lengths).data.lengths.tolist() == expected
    assert make_trajectories(2, lengths=[1, 2]).data.lengths.tolist() == [1, 2]  # not a pair


def test_a_budget_cuts_runs_whose_outcome_stays_known_elsewhere():
    whole = make_trajectories(60, lengths=(2, 6), random_state=1)
    lengths = whole.data.lengths
    for budget in (1, 4, 6, 7):
        cut = make_trajectories(60, lengths=(2, 6), budget=budget, random_state=1)
        assert cut.data.lengths.tolist() == np.minimum(lengths, budget).tolist()
        assert cut.data.horizon.tolist() == lengths.tolist()
        assert cut.data.ended.tolist() == (lengths <= budget).tolist()
        assert cut.target.tolist() == np.where(lengths > budget, -1, whole.target).tolist()
        assert cut.final_outcome.tolist() == whole.target.tolist()
        np.testing.assert_array_equal(cut.q.cells, whole.q.prefix(budget).cells)


def test_what_is_made_unasked():
    made = make_trajectories(random_state=3)
    asked = make_trajectories(
        200, lengths=(3, 12), base_rate=0.5, information=0.6, sharpness=1, bias=0, noise=0,
        budget=None, random_state=3, return_X_y=False,
    )  # fmt: skip
    assert (made.data, made.q) == (asked.data, asked.q)
    np.testing.assert_allclose(made.data.cells, made.q.cells, atol=1e-11)
    X, y = make_trajectories(random_state=3, return_X_y=True)
    assert made.data == X
    assert y.tolist() == made.target.tolist()
    sure = make_trajectories(60, lengths=1, information=1 - 1e-9, random_state=0)
    assert (sure.q.cells.min(), sure.q.cells.max()) == (0, 1)  # a signal is never certain
    np.testing.assert_allclose(sure.data.cells.min(), 1e-12, rtol=1e-6)


def test_parameters_out_of_range():
    for options, message in [
        ({"base_rate": 1.0}, "base_rate must"), ({"base_rate": "half"}, "base_rate must"),
        ({"information": 0}, "information must"),
        ({"lengths": [1, 2]}, "lengths must be .* 3 numbers, got 2"),
        ({"lengths": (5, 3)}, r"lengths .*pass \(3, 5\)"),
        ({"lengths": (0, 3)}, "each of the two lengths must"),
        ({"lengths": 0}, "lengths must .*got 0"), ({"lengths": [1, 0, 2]}, "row 1 has no steps"),
        ({"lengths": [1, 2.5, 2]}, "lengths must be whole numbers"),
        ({"n_runs": 5.5}, "n_runs must"), ({"n_runs": 0}, "n_runs must"),
        ({"noise": -0.1}, "noise must .*-0.1"), ({"sharpness": np.nan}, "sharpness must"),
        ({"sharpness": [1, 2]}, "sharpness must"), ({"bias": np.inf}, "bias must .*inf"),
        ({"budget": 0}, "budget must"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            make_trajectories(**{"n_runs": 3, **options})


@pytest.fixture
def home(tmp_path):
    (tmp_path / "trajscore").mkdir()
    return tmp_path


@pytest.mark.parametrize(("name", "n_runs"), [("hotpotqa", 16_110), ("gsm8k", 5_978)])
def test_fetch_evaluator_from_a_local_copy(name, n_runs, home, public_file):
    file = f"{name}_w_scores_compressed.csv.gz"
    shutil.copyfile(public_file("evaluator", file), home / "trajscore" / file)
    bunch = fetch_evaluator(name, data_home=home, download_if_missing=False, as_frame=True)
    assert len(bunch.data) == len(bunch.target) == n_runs
    assert len(bunch.frame) == len(bunch.data.cells)


@pytest.mark.parametrize(("name", "shape"), [("sst2_gpt2", (1821, 2)), ("agnews_gpt2", (7600, 4))])
def test_fetch_expected_cost_from_a_local_copy(name, shape, home, public_file):
    for part in ("scores", "targets"):
        source = public_file("expected_cost", name, f"{part}.npy")
        shutil.copyfile(source, home / "trajscore" / f"{name}_{part}.npy")
    X, y = fetch_expected_cost(name, data_home=home, download_if_missing=False, return_X_y=True)
    assert (X.shape, y.max()) == (shape, shape[1] - 1)


def test_scores_become_log_probabilities(home):
    scores = np.array([[0.0, 0.0, np.log(2)], [np.log(3), 0.0, 0.0]], dtype=np.float32)
    np.save(home / "trajscore" / "other.set_scores.npy", scores)
    np.save(home / "trajscore" / "other.set_targets.npy", np.array([[2], [0]]))
    bunch = fetch_expected_cost("other.set", data_home=home, download_if_missing=False)
    np.testing.assert_allclose(np.exp(bunch.data), [[0.25, 0.25, 0.5], [0.6, 0.2, 0.2]], rtol=1e-6)
    assert (bunch.data.dtype, bunch.target.tolist()) == (np.float64, [2, 0])
    assert [name.rpartition("_")[2] for name in bunch.filenames] == ["scores.npy", "targets.npy"]


def test_what_is_fetched_comes_from_its_publisher(home, monkeypatch):
    asked = []

    def retrieve(url, known_hash, fname, path):
        asked.append((url, known_hash, path))
        raise OSError("no network here")

    monkeypatch.setattr("pooch.retrieve", retrieve)
    for fetch, name, where, is_pinned in [
        (fetch_evaluator, "math", "shuvom-s/e-valuator/main/data/math_w_scores", True),
        (fetch_expected_cost, "sst2_gpt2", "luferrer/expected_cost/main/notebooks/data/sst2", True),
        (fetch_expected_cost, "other", "luferrer/expected_cost/main/notebooks/data/other", False),
    ]:
        with pytest.raises(OSError, match="no network here"):
            fetch(name, data_home=home)
        url, known, folder = asked.pop()
        assert url.startswith(f"https://raw.githubusercontent.com/{where}")
        assert folder == home / "trajscore"
        assert known is None if not is_pinned else re.fullmatch("sha256:[0-9a-f]{64}", known)


def test_a_changed_file_is_neither_taken_nor_fetched_anew_unasked(home, monkeypatch):
    monkeypatch.setattr("pooch.retrieve", lambda *_, **__: pytest.fail("went to the network"))
    path = home / "trajscore" / "sst2_gpt2_scores.npy"
    path.write_bytes(b"abc")
    assert not hashlib.sha256(b"abc").hexdigest().startswith("61e13c77c2f4")
    with pytest.raises(
        ValueError, match=r"sst2_gpt2_scores.npy is not .*61e13c77c2f4.*download_if"
    ):
        fetch_expected_cost("sst2_gpt2", data_home=home, download_if_missing=False)
    for fetch, name in ((fetch_evaluator, "math"), (fetch_expected_cost, "agnews_gpt2")):
        with pytest.raises(OSError, match="does not exist.*download_if_missing=True"):
            fetch(name, data_home=home, download_if_missing=False)


def test_names_of_data():
    with pytest.raises(ValueError, match="name must be 'chessgames', .*'hotpot'"):
        fetch_evaluator("hotpot")
    for name in ("../else", "", "a/b", ".a", 3, None):
        with pytest.raises(ValueError, match=f"{name!r} is not the name of a score set"):
            fetch_expected_cost(name)
