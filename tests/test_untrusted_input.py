"""What a log, a table or a model that somebody else made may try, and numbers beyond machines."""

import base64
import io as streams
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from refused import must_refuse
from trajscore import DensityRatioEProcess, TrajectoryArray, evaluate, io
from trajscore.cli.main import main
from trajscore.datasets import make_trajectories
from trajscore.integrations import Guard
from trajscore.report import EvaluationOptions

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
BAD = "a\x1b[2J\x00\r\u202eb"
SHOWN = r"a\x1b[2J\x00\r\u202eb"
FEW = ["--resamples", "10", "--calibrator", "none"]


def table(name=str, n=40):
    """Return a table of runs of two steps, whose ids `name` makes."""
    rng, run = np.random.default_rng(0), np.repeat(np.arange(n), 2)
    y, noise = rng.integers(0, 2, n)[run], rng.normal(0, 0.2, 2 * n)
    p, step = np.clip(0.4 + 0.2 * y + noise, 0, 1), np.tile([1, 2], n)
    return pd.DataFrame({"run": [name(k) for k in run], "step": step, "outcome": y, "judge": p})


@pytest.mark.parametrize("kind", ["table", "log"])
def test_names_and_texts_are_shown_and_do_not_act(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = table(lambda k: f"{k}{BAD}").rename(columns={"judge": BAD})
    records, named = frame.assign(task=BAD, other=1, team=BAD).to_dict("records"), ["--score", BAD]
    if kind == "log":
        records, named, turn = [], [], {"role": "assistant", "content": BAD}
        for run, rows in frame.groupby("run"):
            facts = {"id": run, "task": BAD, "outcome": int(rows["outcome"].iloc[0])}
            messages = [turn | {"confidence": p} for p in rows[BAD]]
            records.append(facts | {"stop_reason": BAD, "messages": messages})
    Path("t.jsonl").write_text("\n".join(map(json.dumps, records)))
    for out in ("r.html", "r.md"):
        by = ["--by", "team"] if named else []
        assert main(["report", "t.jsonl", *named, *by, *FEW, "--verbose", "--out", out]) == 0
        assert SHOWN in (text := Path(out).read_text()).replace("\\\\", "\\")
        assert not CONTROL.search(text)
    assert main(["compare", "t.jsonl", "t.jsonl", *named]) == 0
    assert main(["report", "t.jsonl", "--score", f"{BAD}c"]) == 2
    said = capsys.readouterr()
    assert SHOWN in said.out
    assert not CONTROL.search(said.out + said.err)


@pytest.mark.parametrize("name", ["x" * 200_000, "x y " * 50_000], ids=["word", "words"])
def test_endless_names_are_cut(name):
    columns = {"id": "run", "step": "step", "value": "judge", "outcome": "outcome", "meta": "task"}
    frame = table(lambda k: f"{name}{k}", n=20).assign(task=name)
    X, y = TrajectoryArray.from_frame(frame, **columns)
    few = EvaluationOptions(n_resamples=10)
    report = evaluate(
        {"judge": X}, y, calibrator=None, by={"team": frame["task"][::2]}, options=few
    )
    for text in (report.to_text(verbose=True), report.to_markdown(), report.to_html()):
        assert len(text) < 1_000_000


def test_no_cell_of_the_table_of_a_page_is_a_formula():
    X, y = make_trajectories(100, lengths=3, random_state=0, return_X_y=True)
    page = evaluate({"=cmd": X, "-0.5": X}, y, calibrator=None).to_html()
    link = re.search('data:text/csv;base64,([^"]+)', page)[1]
    cells = pd.read_csv(streams.BytesIO(base64.b64decode(link)))
    assert {"'=cmd", "'-0.5"} < set(cells["predictor"])
    assert (cells["margin_low"] < 0).any()


def test_texts_of_csv_come_back(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["=1+1", "'=1+1", "+a", "-x", "@y", "\tz", "\rq", "'a", "a=b", "-1"]
    written = [f"'{name}" if re.match(r"'*[=+\-@\t\r]", name) else name for name in names]
    frame = table(lambda k: f"{written[k // 4]}{k}").rename(columns={"judge": "'=judge"})
    frame.drop(columns="outcome").to_csv("t.csv", index=False, quoting=2)
    raw = table(lambda k: f"{names[k // 4]}{k}").drop_duplicates("run")
    raw[["run", "outcome"]].to_json("y.jsonl", orient="records", lines=True)
    assert main(["report", "t.csv", "--score", "=judge", "--outcomes", "y.jsonl", *FEW]) == 0
    said = capsys.readouterr().out
    assert "40 runs" in said
    assert "not in the" not in said


WORDS = (
    "monitor --model m.skops, report m.eval, report t.parquet, report t.csv --outcomes t.parquet"
)


@pytest.mark.parametrize("words", WORDS.split(", "))
def test_what_unpacks_to_far_more_is_refused(words, tmp_path, monkeypatch, capsys):
    pytest.importorskip("skops" if words.startswith("monitor") else "pyarrow")
    monkeypatch.chdir(tmp_path)
    path = words.split()[-1]
    table().to_csv("t.csv", index=False)
    if path == "t.parquet":
        pd.DataFrame({"run": "a", "step": np.ones(17_000_000, np.int8)}).to_parquet(path)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("x", bytes(300_000_000))
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert f"{path} unpacks to more than 256,000,000 bytes" in said
    assert "--max-size" in said


def test_odd_columns():
    rows = [
        ("run", [["a"], ["b"]], "p", "'run' holds a list"),
        ("p", [10**5000, 0.3], "p", "run 'a'.*step 1"),
        ("p", [0.5, 0.3], "run", "'run' holds the run ids"),
    ]

    def read(column, values, score):
        frame = pd.DataFrame({"run": ["a", "b"], "step": 1, "p": 0.5})
        frame[column] = pd.Series(values, dtype=object)
        TrajectoryArray.from_frame(frame, id="run", step="step", value=score)

    must_refuse(read, rows)


def test_a_column_that_numbers_the_runs_is_noted(tmp_path, capsys):
    table().assign(place=np.repeat(np.arange(40), 2) + 1000).to_csv(tmp_path / "t.csv", index=False)
    assert main(["report", str(tmp_path / "t.csv"), "--score", "place", "--verbose", *FEW]) == 0
    assert "note: place: has another whole number for each run" in capsys.readouterr().out


@pytest.mark.parametrize("messages", [None, 5, True, "text", {"a": 1}])
def test_messages_are_asked_for(messages):
    for take in (Guard().look, io.as_run):
        with pytest.raises(ValueError, match=type(messages).__name__):
            take(messages)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_scores_whose_squares_are_infinite(share):
    X, y = make_trajectories(100, lengths=3, random_state=0, return_X_y=True)
    far = np.random.default_rng(0).random(len(X.cells)) < share
    with pytest.raises(ValueError, match=r"run .*, step \d: the score 1e\+308"):
        DensityRatioEProcess().fit(X.with_cells(np.where(far, 1e308, X.cells)), y)


def test_models_that_are_not_fitted(tmp_path, capsys):
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "100%.skops"
    skops.dump(Guard(), path)
    with pytest.raises(ValueError, match=r"100%\.skops.* not fitted"):
        Guard.load(path)
    skops.dump(DensityRatioEProcess(), path)
    assert main(["monitor", "--model", str(path)]) == 2
    assert "100%.skops" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a full disk")
def test_a_full_disk_names_the_file(tmp_path):
    (tmp_path / "x.npz").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"x\.npz"):
        TrajectoryArray.from_list([[0.5]]).save(tmp_path / "x.npz")
