import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile

import numpy as np
import pytest

from trajscore import metrics
from trajscore.datasets import (
    _balrog,
    _fetch,
    _game24,
    _intercode,
    _logs,
    _win_probability,
    fetch_balrog,
    fetch_evaluator,
    fetch_expected_cost,
    fetch_game24,
    fetch_intercode,
    fetch_logs,
    fetch_win_probability,
    load_chess,
    make_trajectories,
)
from trajscore.io import read_runs


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


def _bytes_of(log):
    return json.dumps(log).encode()


def _intercode_run(query, valid, reward):
    return {
        "query": query,
        "turn_history": {"valid_action": valid},
        "summary": {"max_reward": reward},
    }


def _publish(folder, files):
    """Put files where the fetcher of InterCode looks, and take their checksums for published."""
    (folder / "trajscore").mkdir()
    for path, content in files.items():
        (folder / "trajscore" / path.rpartition("/")[2]).write_bytes(content)
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


def test_intercode_names_tasks_and_databases(tmp_path, monkeypatch):
    runs = {"0": _intercode_run("who?", [False, True], 1), "1": _intercode_run("how?", [True], 0.5)}
    asked = [{"query": "how?", "db": "cars"}, {"query": "who?", "db": "poker"}]
    files = {"results/runs.json": _bytes_of(runs), "sql/asked.json": _bytes_of(asked)}
    (of_runs, log), (of_asked, questions) = _publish(tmp_path, files).items()
    monkeypatch.setattr(_intercode, "_FILES", {"sql_react": {of_runs: log}})
    monkeypatch.setattr(_intercode, "_DATABASES", {of_asked: questions})
    bunch = fetch_intercode("sql_react", data_home=tmp_path, download_if_missing=False)
    assert [run.tolist() for run in bunch.data] == [[0, 1], [1]]
    assert bunch.target.tolist() == [1, 0]
    assert bunch.data.meta["environment"].tolist() == ["poker", "cars"]
    assert bunch.data.meta["task"].tolist() == ["poker/0", "cars/1"]
    assert len(bunch.filenames) == 2


def test_intercode_counts_tasks_by_file_system(tmp_path, monkeypatch):
    runs = {"0": _intercode_run("list", [True], 1)}
    files = {f"results/fs_{k}.json": _bytes_of(runs) for k in (1, 2)}
    known = _publish(tmp_path, files)
    monkeypatch.setattr(_intercode, "_FILES", {"bash_react": known})
    X, _ = fetch_intercode("bash_react", data_home=tmp_path, return_X_y=True)
    assert X.ids.tolist() == ["fs_1/0", "fs_2/0"]
    assert X.meta["environment"].tolist() == ["fs_1", "fs_2"]


def test_fetch_intercode_from_a_local_copy(tmp_path, public_file):
    (tmp_path / "trajscore").mkdir()
    packed = public_file("intercode", "sql__gpt-3.5__ic_sql_react_10_turns.json.gz")
    name = "ic_sql_react_10_turns.json"
    (tmp_path / "trajscore" / name).write_bytes(gzip.decompress(packed.read_bytes()))
    questions = public_file("intercode", "ic_spider_dev.json")
    shutil.copyfile(questions, tmp_path / "trajscore" / questions.name)
    X, y = fetch_intercode("sql_react", data_home=tmp_path, return_X_y=True)
    assert (len(X), y.sum(), X.lengths.max()) == (1034, 607, 11)
    assert X.meta["environment"].nunique() == 20


def test_intercode_says_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match="name must be 'sql_react', .*, got 'sql'"):
        fetch_intercode("sql")
    with pytest.raises(OSError, match="download_if_missing=True"):
        fetch_intercode("bash_react", data_home=tmp_path, download_if_missing=False)


def _archive(folder, results):
    files = {f"experiments-abc/submissions/{path}": result for path, result in results.items()}
    _pack(folder / "trajscore" / _balrog._FILE, files)


def _pack(path, files):
    """Pack files as GitHub packs a commit, where a fetcher looks."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for file, content in files.items():
            member = tarfile.TarInfo(file)
            member.size = len(_bytes_of(content))
            archive.addfile(member, io.BytesIO(_bytes_of(content)))


def _played(task, n_steps, progression):
    return {"task": task, "num_steps": n_steps, "progression": progression}


def test_balrog_reads_one_game_of_an_archive(tmp_path, monkeypatch):
    results = {
        "LLM/b-agent/babyai/goto/goto_run_00.json": _played("goto", 3, 1.0),
        "LLM/a-agent/babyai/open/open_run_01.json": _played("open", 2, 0.5),
        "LLM/a-agent/babyai/babyai_summary.json": {},
        "LLM/a-agent/minihack/maze/maze_run_00.json": _played("maze", 9, 0.0),
        "VLM/a-agent/babyai/open/open_run_00.json": _played("open", 4, 0.0),
    }
    _archive(tmp_path, results)
    with pytest.raises(ValueError, match="does not hold the published results of babyai: their"):
        fetch_balrog("babyai", data_home=tmp_path)
    monkeypatch.setattr(_fetch, "checksum", lambda results: _balrog._RESULTS["babyai"])
    bunch = fetch_balrog("babyai", data_home=tmp_path, download_if_missing=False)
    assert [run.tolist() for run in bunch.data] == [[1, 2], [1, 2, 3]]
    assert bunch.target.tolist() == [0, 1]
    assert bunch.data.meta["agent"].tolist() == ["a-agent", "b-agent"]
    assert bunch.data.meta["task"].tolist() == ["open", "goto"]
    assert bunch.data.meta["progression"].tolist() == [0.5, 1.0]


def test_contents_are_checked_whatever_the_archive(tmp_path):
    results = {f"LLM/agent/babyai/go/go_run_0{k}.json": _played("go", k + 1, 0.0) for k in (0, 1)}
    path, wanted = tmp_path / "trajscore" / _balrog._FILE, r".*/LLM/(.*_run_\d+)\.json"

    def checksum_in_error(results):
        _archive(tmp_path, results)
        with pytest.raises(ValueError, match="delete the file and fetch it again") as error:
            _fetch.of_archive(path, wanted, "0" * 64, "results")
        return str(error.value)

    first = checksum_in_error(results)
    assert checksum_in_error(dict(reversed(results.items()))) == first
    changed = {**results, "LLM/agent/babyai/go/go_run_00.json": _played("go", 1, 1.0)}
    assert checksum_in_error(changed) != first


@pytest.mark.parametrize(
    ("name", "n_runs", "n_won"),
    [("babaisai", 1920, 590), ("babyai", 800, 415), ("minihack", 640, 63), ("textworld", 510, 66)],
)
def test_fetch_balrog_from_a_local_copy(name, n_runs, n_won, tmp_path, public_file):
    (tmp_path / "trajscore").mkdir()
    archive = public_file("balrog", _balrog._FILE)
    shutil.copyfile(archive, tmp_path / "trajscore" / archive.name)
    X, y = fetch_balrog(name, data_home=tmp_path, return_X_y=True)
    assert (len(X), y.sum()) == (n_runs, n_won)
    assert X.meta["agent"].nunique() == 16


def test_balrog_says_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match="name must be 'babaisai', .*, got 'nle'"):
        fetch_balrog("nle")
    with pytest.raises(OSError, match="download_if_missing=True"):
        fetch_balrog("babyai", data_home=tmp_path, download_if_missing=False)


def _pinned(folder, monkeypatch, module, content):
    """Put a file where a fetcher looks, and take its checksum for the published one."""
    (folder / "trajscore").mkdir(exist_ok=True)
    (folder / "trajscore" / module._FILE).write_bytes(content)
    monkeypatch.setattr(module, "_SHA256", hashlib.sha256(content).hexdigest())


def test_game24_follows_the_paths_that_were_kept(tmp_path, monkeypatch):
    steps = [
        {"new_ys": ["a\n", "b\n"], "values": [60.0, 0.003]},
        {"new_ys": ["a\nc\n", "b\nd\n"], "values": [99.0, 30.0]},
    ]
    puzzle = {"idx": 900, "steps": steps, "ys": ["b\nd\n", "a\nc\n"], "infos": [{"r": 0}, {"r": 1}]}
    _pinned(tmp_path, monkeypatch, _game24, _bytes_of([puzzle]))
    bunch = fetch_game24(data_home=tmp_path, download_if_missing=False)
    np.testing.assert_allclose(bunch.data.padded(), [[5e-5, 0.5], [1, 1]])
    assert bunch.target.tolist() == [0, 1]
    assert bunch.data.meta["task"].tolist() == [900, 900]


def test_win_probability_is_of_the_first_team(tmp_path, monkeypatch):
    head = "season,team1,team2,period,secs,prob1,prob1_outcome,prob2,prob2_outcome"
    rows = ["2016,A,B,1,9,0.25,1,0.75,0", "2016,A,B,1,7,0.5,1,0.5,0", "2017,A,B,1,9,0.1,0,0.9,1"]
    _pinned(tmp_path, monkeypatch, _win_probability, "\n".join([head, *rows]).encode())
    bunch = fetch_win_probability(data_home=tmp_path, download_if_missing=False)
    assert [run.tolist() for run in bunch.data] == [[0.25, 0.5], [0.1]]
    assert bunch.target.tolist() == [1, 0]
    assert bunch.data.ids.tolist() == ["2016 A - B", "2017 A - B"]


@pytest.mark.parametrize("fetch", [fetch_game24, fetch_win_probability])
def test_fetchers_of_values_say_what_is_missing(fetch, tmp_path):
    with pytest.raises(OSError, match="download_if_missing=True"):
        fetch(data_home=tmp_path, download_if_missing=False)


def _of_model(n_steps):
    steps = [{"action": "ls", "observation": "a.java", "thought": "look"}] * n_steps
    return {"environment": "swe", "trajectory": steps, "history": [], "info": {"exit_status": "x"}}


def test_runs_that_were_not_evaluated_are_no_failures(tmp_path, monkeypatch):
    results = {
        "resolved": ["a__a-1"], "unresolved_ids": ["a__a-2"], "empty_patch_ids": ["a__a-3"],
        "error_ids": ["a__a-4"], "incomplete_ids": ["a__a-5"],
    }  # fmt: skip
    folder = "experiments-abc/evaluation/java/verified/agent"
    files = {f"trajs/a__a-{k}.traj": _of_model(k) for k in range(1, 6)}
    files |= {"results/results.json": results, "x.json": {}}
    _of_repository(tmp_path, "multi_swe_bench", {f"{folder}/{path}": files[path] for path in files})
    with pytest.raises(ValueError, match="does not hold the published runs of Multi-SWE-bench"):
        fetch_logs("multi_swe_bench", data_home=tmp_path)
    monkeypatch.setattr(_fetch, "checksum", lambda files: _logs._ARCHIVES["multi_swe_bench"][3])
    log = fetch_logs("multi_swe_bench", data_home=tmp_path, download_if_missing=False)
    runs = sorted(read_runs(log), key=len)
    assert [run.outcome for run in runs] == [1, 0, 0, -1, -1]


def _of_repository(data_home, name, files):
    repository, commit, *_ = _logs._ARCHIVES[name]
    _pack(data_home / f"trajscore/{repository.replace('/', '-')}-{commit[:12]}.tar.gz", files)


def test_who_and_when_is_unpacked(tmp_path, monkeypatch):
    run = {"history": [{"role": "user", "content": "?"}], "mistake_step": "0"}
    files = {
        "x/Who&When/Hand-Crafted/1.json": run, "x/Who&When/Algorithm-Generated/1.json": run,
        "x/Who&When/notes.json": {}, "x/README.json": {},
    }  # fmt: skip
    _of_repository(tmp_path, "who_and_when", files)
    with pytest.raises(ValueError, match="does not hold the published runs of Who&When"):
        fetch_logs("who_and_when", data_home=tmp_path, download_if_missing=False)
    monkeypatch.setattr(_fetch, "checksum", lambda files: _logs._ARCHIVES["who_and_when"][3])
    folder = fetch_logs("who_and_when", data_home=tmp_path, download_if_missing=False)
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.json")}
    assert sorted(found) == ["Who&When/Algorithm-Generated/1.json", "Who&When/Hand-Crafted/1.json"]
    assert json.loads(found["Who&When/Hand-Crafted/1.json"].read_text()) == run


def test_fetch_logs_from_a_local_copy(tmp_path, public_file):
    (tmp_path / "trajscore").mkdir()
    shutil.copy(public_file("tau_bench", "gpt-4o-airline.json"), tmp_path / "trajscore")
    path = fetch_logs("tau_bench", data_home=tmp_path, download_if_missing=False)
    assert len(read_runs(path)) == 200


def test_fetch_logs_says_what_is_wrong(tmp_path):
    with pytest.raises(
        ValueError, match="name must be 'tau_bench', 'multi_swe_bench' or 'who_and_when', got 'tau'"
    ):
        fetch_logs("tau")
    for name in ("tau_bench", "multi_swe_bench", "who_and_when"):
        with pytest.raises(OSError, match="download_if_missing=True"):
            fetch_logs(name, data_home=tmp_path, download_if_missing=False)


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
        (
            lambda **how: fetch_intercode("sql_react", **how),
            f"{_RAW}princeton-nlp/intercode/",
            "/data/results/sql/gpt-3.5/ic_sql_react_10_turns.json",
            True,
        ),
        (
            lambda **how: fetch_logs("tau_bench", **how),
            f"{_RAW}sierra-research/tau-bench/",
            "/historical_trajectories/gpt-4o-airline.json",
            True,
        ),
        (
            lambda **how: fetch_logs("multi_swe_bench", **how),
            "https://github.com/multi-swe-bench/experiments/archive/89888f160400",
            ".tar.gz",
            False,
        ),
        (
            lambda **how: fetch_balrog("babyai", **how),
            "https://github.com/balrog-ai/experiments/archive/989931c5f7ac",
            ".tar.gz",
            False,
        ),
        (
            fetch_game24,
            f"{_RAW}princeton-nlp/tree-of-thought-llm/",
            "/logs/game24/gpt-4_0.7_propose1_value3_greedy5_start900_end1000.json",
            True,
        ),
        (
            fetch_win_probability,
            f"{_RAW}fivethirtyeight/checking-our-work-data/",
            "/march_madness_in_game_men.csv",
            True,
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


def test_paths_of_game24_of_any_number(tmp_path, monkeypatch):
    steps = [{"new_ys": ["".join("abc"[: k + 1])], "values": [20.0 * k]} for k in range(3)]
    for k, step in enumerate(steps):
        step["new_ys"] = ["".join(f"{letter}\n" for letter in "abc"[: k + 1])]
    puzzle = {"idx": 7, "steps": steps, "ys": ["a\nb\nc\n"], "infos": [{"r": 1}]}
    _pinned(tmp_path, monkeypatch, _game24, _bytes_of([puzzle, puzzle | {"idx": 8}]))
    X, y = fetch_game24(data_home=tmp_path, download_if_missing=False, return_X_y=True)
    np.testing.assert_allclose(X.padded(), [[0, 1 / 3, 2 / 3]] * 2, rtol=1e-12)
    assert (X.lengths.tolist(), y.tolist(), X.meta["task"].tolist()) == ([3, 3], [1, 1], [7, 8])


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


def test_the_sum_of_paths_and_contents(tmp_path):
    both = _fetch.checksum({"a": b"xy", "b": b""})
    assert both == hashlib.sha256(b"a\n2\nxyb\n0\n").hexdigest()
    _pack(tmp_path / "trajscore" / "x.tar.gz", {"top/b.json": 1, "top/a.json": 2, "top/c.txt": 3})
    archive = tmp_path / "trajscore" / "x.tar.gz"
    wanted = {"a": b"2", "b": b"1"}
    sha256 = _fetch.checksum(wanted)
    found = _fetch.of_archive(archive, r"top/(.)\.json", sha256, "runs")
    assert list(found.items()) == list(wanted.items())
    with pytest.raises(ValueError) as error:
        _fetch.of_archive(archive, r"top/(.)\.json", "0" * 64, "runs")
    assert str(error.value) == (
        f"{archive} does not hold the published runs: their SHA-256 starts with {sha256[:12]}, not "
        f"with {'0' * 12}; delete the file and fetch it again"
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


def test_lengths_of_games_are_step_numbers():
    results = {"b/x": _played("x", 3, 1.0), "a/b/y": _played("y", 1, 0.5), "c": _played("z", 2, 0)}
    X, y = _balrog._as_runs(results)
    assert [run.tolist() for run in X] == [[1, 2, 3], [1], [1, 2]]
    assert (X.ids.tolist(), y.tolist()) == (["b/x", "a/b/y", "c"], [1, 0, 0])
    assert X.meta.to_dict("list") == {
        "agent": ["b", "a", "c"], "task": ["x", "y", "z"], "progression": [1, 0.5, 0],
    }  # fmt: skip


def test_only_the_full_reward_is_a_success_of_intercode():
    log = {str(k): _intercode_run("q", [True], reward) for k, reward in enumerate((1, 0.99, 0))}
    _, y = _intercode._as_runs([log], None)
    assert (y.tolist(), y.dtype) == ([1, 0, 0], np.int64)
