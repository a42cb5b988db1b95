"""benchmarks/public_sets.py: readers of the public runs of the board."""

import csv
import gzip
import hashlib
import io
import json
import shutil
import tarfile

import numpy as np
import pytest

from scripts import load_script
from trajscore.io import outcomes, read_runs

public_sets = load_script("public_sets")


def _bytes_of(log):
    return json.dumps(log).encode()


def _pack(path, files):
    """Pack files as GitHub packs a commit, where a fetcher looks."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for file, content in files.items():
            content = content if isinstance(content, bytes) else _bytes_of(content)
            member = tarfile.TarInfo(file)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _publish(folder, files):
    """Put files where a fetcher looks, and return their checksums."""
    (folder / "trajscore").mkdir(exist_ok=True)
    for path, content in files.items():
        (folder / "trajscore" / path.rpartition("/")[2]).write_bytes(content)
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


# ------------------------------------------------------------------ InterCode


def _intercode_run(query, actions, reward):
    return {"query": query, "turn_history": {"actions": actions}, "summary": {"max_reward": reward}}


def test_intercode_names_tasks_and_databases(tmp_path, monkeypatch):
    runs = {
        "0": _intercode_run("who?", ["execute[ls]", "submit"], 1),
        "1": _intercode_run("how?", ["SELECT 1"], 0.99),
    }
    asked = [{"query": "how?", "db": "cars"}, {"query": "who?", "db": "poker"}]
    files = {"results/runs.json": _bytes_of(runs), "sql/asked.json": _bytes_of(asked)}
    (of_runs, log), (of_asked, questions) = _publish(tmp_path, files).items()
    monkeypatch.setattr(public_sets, "INTERCODE_FILES", {"sql_react": {of_runs: log}})
    monkeypatch.setattr(public_sets, "DATABASES", {of_asked: questions})
    found = public_sets.intercode("sql_react", tmp_path)
    assert [run.meta["environment"] for run in found] == ["poker", "cars"]
    assert [run.task for run in found] == ["poker/0", "cars/1"]
    assert outcomes(found).tolist() == [1, 0]
    calls = [call for run in found for step in run.steps for call in step.tool_calls]
    assert [(call.name, call.arguments) for call in calls] == [
        ("execute", "ls"), ("submit", "submit"), ("execute", "SELECT 1"),
    ]  # fmt: skip


def test_intercode_counts_tasks_by_file_system(tmp_path, monkeypatch):
    runs = {"0": _intercode_run("list", ["ls"], 1)}
    known = _publish(tmp_path, {f"results/fs_{k}.json": _bytes_of(runs) for k in (1, 2)})
    monkeypatch.setattr(public_sets, "INTERCODE_FILES", {"bash_react": known})
    found = public_sets.intercode("bash_react", tmp_path)
    assert [run.id for run in found] == ["fs_1/0", "fs_2/0"]


def test_intercode_from_a_local_copy(tmp_path, public_file):
    (tmp_path / "trajscore").mkdir()
    packed = public_file("intercode", "sql__gpt-3.5__ic_sql_react_10_turns.json.gz")
    name = "ic_sql_react_10_turns.json"
    (tmp_path / "trajscore" / name).write_bytes(gzip.decompress(packed.read_bytes()))
    questions = public_file("intercode", "ic_spider_dev.json")
    shutil.copyfile(questions, tmp_path / "trajscore" / questions.name)
    runs = public_sets.intercode("sql_react", tmp_path)
    lengths = [len(run.steps) for run in runs]
    assert (len(runs), outcomes(runs).sum(), max(lengths)) == (1034, 607, 11)
    assert len({run.meta["environment"] for run in runs}) == 20


# ------------------------------------------------------------------ BALROG


def _played(task, n_steps, progression):
    return {"task": task, "num_steps": n_steps, "progression": progression}


def _moves(*rows):
    file = io.StringIO()
    csv.writer(file).writerows([["Step", "Action", "Reasoning", "Observation"], *rows])
    return file.getvalue().encode()


def test_balrog_reads_one_game_of_an_archive(tmp_path, monkeypatch):
    results = {
        "LLM/b-agent/babyai/goto/goto_run_00.json": _played("goto", 3, 1.0),
        "LLM/b-agent/babyai/goto/goto_run_00.csv": _moves(
            [0, "left", "why", "a wall"], [1, "up", "", "a\r\ndoor\0"]
        ),
        "LLM/a-agent/babyai/open/open_run_01.json": _played("open", 2, 0.5),
        "LLM/a-agent/babyai/babyai_summary.json": {},
        "LLM/a-agent/minihack/maze/maze_run_00.json": _played("maze", 9, 0.0),
        "VLM/a-agent/babyai/open/open_run_00.json": _played("open", 4, 0.0),
    }
    files = {f"experiments-abc/submissions/{path}": result for path, result in results.items()}
    archive = public_sets.balrog_archive("babyai")
    _pack(tmp_path / "trajscore" / archive.file, files)
    with pytest.raises(ValueError, match="does not hold the published results of babyai: their"):
        public_sets.balrog("babyai", tmp_path)
    monkeypatch.setattr(public_sets, "checksum", lambda files: public_sets.GAMES["babyai"])
    episodes = public_sets.balrog("babyai", tmp_path)
    assert episodes.to_dict("list") == {
        "agent": ["a-agent", "b-agent"], "task": ["open", "goto"], "n_steps": [2, 3], "won": [0, 1],
    }  # fmt: skip
    (steps,) = public_sets.balrog_moves("babyai", tmp_path).values()
    # what a game answered to a move is known at that move, and nothing later
    assert [(step.text, step.observation) for step in steps] == [("why", "a wall"), ("", "a\ndoor")]
    assert [step.tool_calls[0].arguments for step in steps] == [{"to": "left"}, {"to": "up"}]


@pytest.mark.parametrize(
    ("name", "n_runs", "n_won"),
    [("babaisai", 1920, 590), ("babyai", 800, 415), ("minihack", 640, 63), ("textworld", 510, 66)],
)
def test_balrog_from_a_local_copy(name, n_runs, n_won, tmp_path, public_file):
    (tmp_path / "trajscore").mkdir()
    archive = public_file("balrog", public_sets.balrog_archive(name).file)
    shutil.copyfile(archive, tmp_path / "trajscore" / archive.name)
    episodes = public_sets.balrog(name, tmp_path)
    assert (len(episodes), episodes["won"].sum()) == (n_runs, n_won)
    assert episodes["agent"].nunique() == 16


def test_contents_are_checked_whatever_the_archive(tmp_path):
    path = tmp_path / "x.tar.gz"
    results = {f"top/{name}.json": number for number, name in enumerate("ab")}
    _pack(path, {**results, "top/c.txt": 3})
    found = public_sets.unpack(path, r"top/(.)\.json")
    assert found == {"a": b"0", "b": b"1"}
    _pack(path, dict(reversed(results.items())))
    assert list(public_sets.unpack(path, r"top/(.)\.json").items()) == list(found.items())
    assert public_sets.checksum(found) == hashlib.sha256(b"a\n1\n0b\n1\n1").hexdigest()


# ------------------------------------------------------------------ stated values


def test_game24_follows_the_paths_that_were_kept(tmp_path, monkeypatch):
    steps = [
        {"new_ys": ["a\n", "b\n"], "values": [60.0, 0.003]},
        {"new_ys": ["a\nc\n", "b\nd\n"], "values": [99.0, 30.0]},
    ]
    puzzle = {"idx": 900, "steps": steps, "ys": ["b\nd\n", "a\nc\n"], "infos": [{"r": 0}, {"r": 1}]}
    known = _publish(tmp_path, {public_sets.GAME24_FILE: _bytes_of([puzzle])})
    monkeypatch.setattr(public_sets, "GAME24_SHA256", *known.values())
    X, y = public_sets.game24(tmp_path)
    np.testing.assert_allclose(X.padded(), [[5e-5, 0.5], [1, 1]])
    assert (y.tolist(), X.meta["task"].tolist()) == ([0, 1], [900, 900])


def test_win_probability_is_of_the_first_team(tmp_path, monkeypatch):
    head = "season,team1,team2,period,secs,prob1,prob1_outcome,prob2,prob2_outcome"
    rows = ["2016,A,B,1,9,0.25,1,0.75,0", "2016,A,B,1,7,0.5,1,0.5,0", "2017,A,B,1,9,0.1,0,0.9,1"]
    known = _publish(tmp_path, {public_sets.BASKETBALL_FILE: "\n".join([head, *rows]).encode()})
    monkeypatch.setattr(public_sets, "BASKETBALL_SHA256", *known.values())
    X, y = public_sets.win_probability(tmp_path)
    assert [run.tolist() for run in X] == [[0.25, 0.5], [0.1]]
    assert (y.tolist(), X.ids.tolist()) == ([1, 0], ["2016 A - B", "2017 A - B"])


# ------------------------------------------------------------------ logs


def _of_repository(data_home, monkeypatch, name, files):
    archive = public_sets.ARCHIVES[name]
    _pack(data_home / "trajscore" / archive.file, files)
    with pytest.raises(ValueError, match=f"does not hold the published {archive.kind}"):
        public_sets.unpacked_log(name, data_home)
    monkeypatch.setattr(public_sets, "checksum", lambda files: archive.sha256)
    return public_sets.unpacked_log(name, data_home)


def test_runs_that_were_not_evaluated_are_no_failures(tmp_path, monkeypatch):
    step = {"action": "ls", "observation": "a.java", "thought": "look"}
    results = {
        "resolved": ["a__a-1"], "unresolved_ids": ["a__a-2"], "empty_patch_ids": ["a__a-3"],
        "error_ids": ["a__a-4"], "incomplete_ids": ["a__a-5"],
    }  # fmt: skip
    files = {
        f"trajs/a__a-{k}.traj": {
            "environment": "swe", "trajectory": [step] * k, "history": [],
            "info": {"exit_status": "x"},
        }
        for k in range(1, 6)
    } | {"results/results.json": results, "x.json": {}}  # fmt: skip
    top = "experiments-abc/evaluation/java/verified/agent"
    files = {f"{top}/{path}": content for path, content in files.items()}
    runs = read_runs(_of_repository(tmp_path, monkeypatch, "multi_swe_bench", files))
    assert [run.outcome for run in sorted(runs, key=len)] == [1, 0, 0, -1, -1]


def test_who_and_when_is_unpacked(tmp_path, monkeypatch):
    run = {"history": [{"role": "user", "content": "?"}], "mistake_step": "0"}
    files = {
        "x/Who&When/Hand-Crafted/1.json": run, "x/Who&When/Algorithm-Generated/1.json": run,
        "x/Who&When/notes.json": {}, "x/README.json": {},
    }  # fmt: skip
    folder = _of_repository(tmp_path, monkeypatch, "who_and_when", files)
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.json")}
    assert sorted(found) == ["Who&When/Algorithm-Generated/1.json", "Who&When/Hand-Crafted/1.json"]
    assert json.loads(found["Who&When/Hand-Crafted/1.json"].read_text()) == run


def test_tau_bench_from_a_local_copy(tmp_path, public_file):
    (tmp_path / "trajscore").mkdir()
    shutil.copy(public_file("tau_bench", public_sets.AIRLINE), tmp_path / "trajscore")
    assert len(read_runs(public_sets.tau_bench_log(tmp_path))) == 200
