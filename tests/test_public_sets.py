"""benchmarks/public_sets.py: readers of the public runs of the board."""

import hashlib
import io
import json
import shutil
import tarfile

import numpy as np
import pytest

from scripts import load_script
from trajscore.io import read_runs

public_sets = load_script("public_sets")


def _pack(path, files):
    """Pack files as GitHub packs a commit, where a fetcher looks."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for file, content in files.items():
            content = json.dumps(content).encode()
            member = tarfile.TarInfo(file)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def test_game24_follows_the_paths_that_were_kept(tmp_path, monkeypatch):
    steps = [
        {"new_ys": ["a\n", "b\n"], "values": [60.0, 0.003]},
        {"new_ys": ["a\nc\n", "b\nd\n"], "values": [99.0, 30.0]},
    ]
    puzzle = {"idx": 900, "steps": steps, "ys": ["b\nd\n", "a\nc\n"], "infos": [{"r": 0}, {"r": 1}]}
    content = json.dumps([puzzle]).encode()
    (tmp_path / "trajscore").mkdir()
    (tmp_path / "trajscore" / public_sets.GAME24_FILE.rpartition("/")[2]).write_bytes(content)
    monkeypatch.setattr(public_sets, "GAME24_SHA256", hashlib.sha256(content).hexdigest())
    X, y, task, _ = public_sets.game24(tmp_path)
    np.testing.assert_allclose(X.padded(), [[5e-5, 0.5], [1, 1]])
    assert (y.tolist(), task) == ([0, 1], [900, 900])


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
    archive = public_sets.MULTI_SWE_BENCH
    _pack(tmp_path / "trajscore" / archive.file, files)
    with pytest.raises(ValueError, match="does not hold the published"):
        public_sets.unpacked_log(archive, tmp_path)
    monkeypatch.setattr(public_sets, "checksum", lambda files: archive.sha256)
    runs = read_runs(public_sets.unpacked_log(archive, tmp_path))
    assert [run.outcome for run in sorted(runs, key=len)] == [1, 0, 0, -1, -1]


def test_tau_bench_from_a_local_copy(tmp_path, public_file):
    (tmp_path / "trajscore").mkdir()
    shutil.copy(public_file("tau_bench", public_sets.AIRLINE), tmp_path / "trajscore")
    assert len(read_runs(public_sets.tau_bench_log(tmp_path))) == 200
