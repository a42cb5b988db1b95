"""``trajscore watch``: two tables in; what changed, an exit code, and a picture."""

import re

import numpy as np
import pandas as pd
import pytest

from trajscore.datasets import make_trajectories

N = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reference, quiet runs, and runs of another judge from the 200th on."""
    runs = make_trajectories(1600, lengths=(2, 8), random_state=0)
    cells = runs.q.cells.copy()
    cells[runs.q.offsets[N + 600] :] **= 0.2
    folder = tmp_path_factory.mktemp("watch")
    frame = runs.q.with_cells(cells).to_frame(id="run", step="step", value="judge")
    row = frame["run"].to_numpy()
    frame["solved"] = runs.target[row]
    parts = {"ref": row < N, "quiet": (row >= N) & (row < 2 * N), "runs": row >= 2 * N}
    for name, some in parts.items():
        frame[some].to_csv(folder / f"{name}.csv", index=False)
    return folder


NAMED = "--score judge --outcome solved --after 200"


@pytest.fixture
def watch(run):
    return lambda *words: run(f"watch {NAMED}", *words)


def test_nothing_changed(folder, watch, tmp_path):
    code, out, _ = watch(folder / "ref.csv", folder / "quiet.csv", "--alpha", 0.04)
    assert code == 0
    assert "400 runs since the reference, in the order of the file: no change shown\n" in out
    assert "at most 0.04" in out
    table = pd.read_csv(folder / "quiet.csv")
    for order, start in enumerate((table["run"], -table["run"])):
        table.assign(started=10_000 + start).to_csv(tmp_path / "new.csv")
        err = watch(folder / "ref.csv", tmp_path / "new.csv")[2]
        assert err.count("the order of the rows, not of column 'started'") == order


def test_a_change_is_dated_and_named(folder, watch, tmp_path):
    picture, metrics = tmp_path / "evidence.png", tmp_path / "watch.prom"
    options = ("--picture", picture, "--metrics", metrics)
    code, out, _ = watch(folder / "ref.csv", folder / "runs.csv", *options)
    assert code == 1
    said = re.search(r"Alarm at run (\d+): .* of judge changed, since about run (\d+)", out)
    alarm, since = map(int, said.groups())
    assert 100 < since < alarm < 260
    for line in ("at most 0.025", "Cause: forecasts", "What to do: ", "Success: ", "1 change"):
        assert line in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    lines = metrics.read_text().splitlines()
    assert lines[:3] == [
        "# HELP trajscore_runs Runs since the reference",
        "# TYPE trajscore_runs gauge",
        "trajscore_runs{} 800",
    ]
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert samples['trajscore_alarms{cause="forecasts"}'] == "1"
    assert samples['trajscore_alarms{cause="ranking"}'] == "0"
    rate = float(samples['trajscore_success_rate{runs="new"}'])
    assert f"{rate:.1%} since" in out
    assert float(samples['trajscore_e_value{quantity="level",predictor="judge"}']) > 0
    code, out, _ = watch(folder / "ref.csv", folder / "runs.csv", "--after", 700)
    assert code == 1
    assert "700 runs after the alarm (--after)" in out  # the cause is not known yet
    assert "Success" not in out


def test_the_order_is_that_of_rows(folder, watch, tmp_path):
    frame = pd.read_csv(folder / "runs.csv")
    frame["run"] = frame["run"].max() - frame["run"]  # ids fall, rows stay
    frame.to_csv(tmp_path / "runs.csv", index=False)
    outs = [watch(folder / "ref.csv", path / "runs.csv")[1] for path in (folder, tmp_path)]
    assert len({out[out.index("Alarm at run") :] for out in outs}) == 1


def test_scores_and_tasks(folder, watch, tmp_path):
    for name, first in (("ref", 0), ("runs", 1000)):
        frame = pd.read_csv(folder / f"{name}.csv")
        frame["judge"] = 100 * frame["judge"] - 50
        frame["task"], frame["b"] = first + frame["run"] // 4, frame["judge"] ** 2
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    code, out, _ = watch(tmp_path / "ref.csv", tmp_path / "runs.csv", "--score", "b")
    assert code == 1
    assert re.search(r"(?s)scores outside \[0, 1\].*Alarm at run .* of judge, b changed", out)
    assert "600 of them not counted" in out
    code, _, err = watch(tmp_path / "ref.csv", tmp_path / "ref.csv")
    assert code == 2
    assert "the same file" in err
    assert "--group" in err


def test_runs_without_outcomes_or_values(folder, watch, tmp_path):
    frame = pd.read_csv(folder / "ref.csv").assign(solved=-1)
    frame.to_csv(tmp_path / "ref.csv", index=False)
    code, out, _ = watch(tmp_path / "ref.csv", folder / "runs.csv")
    assert code == 1
    unwatched = "ref.csv: no run has an outcome: lengths and forecasts alone are watched"
    assert unwatched in out
    assert unwatched in watch(folder / "ref.csv", tmp_path / "ref.csv")[1]  # of the new runs, too
    frame.assign(judge=100 * frame["judge"]).to_csv(tmp_path / "percent.csv", index=False)
    code, _, err = watch(tmp_path / "percent.csv", folder / "runs.csv")
    assert code == 2
    assert "scores of REF lie outside [0, 1], and no run has an outcome" in err
    frame = pd.read_csv(folder / "quiet.csv")
    frame.loc[np.flatnonzero(frame["step"] == 2)[:3], "judge"] = np.nan
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    _, out, _ = watch(folder / "ref.csv", tmp_path / "gaps.csv")
    assert "3 without a forecast" in out
    assert "400 runs since the reference" in out
    rates = [
        pd.read_csv(path).groupby("run")["solved"].first().mean()
        for path in (folder / "ref.csv", tmp_path / "gaps.csv")
    ]
    assert "success: {:.1%} in the reference, {:.1%} since".format(*rates) in out


def test_what_cannot_be_used(folder, refuses, tmp_path):
    table = pd.read_csv(folder / "ref.csv").drop(columns="solved")
    table.to_csv(tmp_path / "no_outcome.csv", index=False)
    cases = [
        ("quiet.csv --picture nowhere/a.png", "nowhere does not exist"),
        ("quiet.csv --metrics nowhere/a.prom", "nowhere does not exist"),
        ("quiet.csv --picture a.csv", "--picture: a.csv must end in .png"),
        ("quiet.csv --alpha 2", "--alpha must"), ("quiet.csv --after 3", "--after must"),
        (tmp_path / "no_outcome.csv", "no_outcome.csv", "'solved'"),
    ]  # fmt: skip
    refuses([(folder / case, *named) for case, *named in cases], f"watch {NAMED} {folder}/ref.csv")


def test_runs_of_the_reference_are_counted(folder, watch, tmp_path):
    ref, new = (pd.read_csv(folder / f"{name}.csv") for name in ("ref", "quiet"))
    pd.concat([ref[ref["run"] < 50], new]).to_csv(tmp_path / "all.csv", index=False)
    _, out, _ = watch(folder / "ref.csv", tmp_path / "all.csv")
    assert "50 runs of NEW" in out
    assert "of NEW" not in watch(folder / "ref.csv", folder / "quiet.csv")[1]
