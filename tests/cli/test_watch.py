"""``trajscore watch``: two tables in; what changed, an exit code, and a picture."""

import re

import numpy as np
import pandas as pd
import pytest

from trajscore.cli.main import main
from trajscore.datasets import make_trajectories

N = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reference, quiet runs, and runs of another judge from the 200th on."""
    runs = make_trajectories(1600, lengths=(2, 8), random_state=0)
    X, y = runs.q, runs.target
    cells = X.cells.copy()
    cells[X.offsets[N + 600] :] **= 0.2
    folder = tmp_path_factory.mktemp("watch")
    frame = X.with_cells(cells).to_frame(id="run", step="step", value="judge")
    row = frame["run"].to_numpy()
    frame["solved"] = y[row]
    for name, some in {
        "ref": row < N,
        "quiet": (row >= N) & (row < N + 400),
        "runs": row >= N + 400,
    }.items():
        frame[some].to_csv(folder / f"{name}.csv", index=False)
    return folder


def run(capsys, reference, new, *options):
    files = (str(reference), str(new))
    named = ("--score", "judge", "--outcome", "solved", "--after", "200")
    code = main(["watch", *files, *named, *map(str, options)])
    out, err = capsys.readouterr()
    return code, out, err


def test_nothing_changed(folder, capsys):
    code, out, _ = run(capsys, folder / "ref.csv", folder / "quiet.csv")
    assert code == 0
    assert out.endswith(
        "400 runs since the reference: no change\n"
        "If nothing changes, the chance of any alarm is at most 0.05\n"
    )


def test_a_table_with_a_change(folder, capsys, tmp_path):
    picture = tmp_path / "evidence.png"
    code, out, _ = run(capsys, folder / "ref.csv", folder / "runs.csv", "--picture", picture)
    assert code == 1
    said = re.search(r"Alarm at run (\d+): .* of judge changed, since about run (\d+)\.", out)
    alarm, since = map(int, said.groups())
    assert 100 < since < alarm < 260
    assert "\n  If nothing had changed, the chance of this alarm was at most 0.025.\n" in out
    assert "\n  Cause: forecasts\n  What to do: The forecasts moved" in out
    assert "  Success: " in out
    assert "800 runs since the reference: 1 change" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_cause_that_is_not_known_yet(folder, capsys):
    code, out, _ = run(capsys, folder / "ref.csv", folder / "runs.csv", "--after", 700)
    assert code == 1
    assert (
        "  Cause: named 700 runs after the alarm (--after)\n  What to do: Wait for more runs" in out
    )
    assert "Success" not in out


def test_the_order_is_that_of_rows(folder, capsys, tmp_path):
    frame = pd.read_csv(folder / "runs.csv")
    frame["run"] = frame["run"].max() - frame["run"]  # ids fall, rows stay
    frame.to_csv(tmp_path / "runs.csv", index=False)
    outs = [run(capsys, folder / "ref.csv", path / "runs.csv")[1] for path in (folder, tmp_path)]
    answers = [out[out.index("Alarm at run") :] for out in outs]
    assert answers[0] == answers[1]


def test_scores_and_tasks(folder, capsys, tmp_path):
    for name, first in (("ref", 0), ("runs", 1000)):
        frame = pd.read_csv(folder / f"{name}.csv")
        frame["judge"] = 100 * frame["judge"] - 50
        frame["task"] = first + frame["run"] // 4
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    code, out, _ = run(capsys, tmp_path / "ref.csv", tmp_path / "runs.csv")
    assert code in (0, 1)
    assert "scores outside [0, 1]: a forecaster is fitted on the reference" in out
    assert "600 of them not counted: their task came before" in out
    code, _, err = run(capsys, tmp_path / "ref.csv", tmp_path / "ref.csv")
    assert code == 2
    assert "note: both sets of runs are the same file" in err
    assert "name a column of run ids with --group" in err


def test_a_reference_without_outcomes(folder, capsys, tmp_path):
    frame = pd.read_csv(folder / "ref.csv").assign(solved=-1)
    frame.to_csv(tmp_path / "ref.csv", index=False)
    code, out, _ = run(capsys, tmp_path / "ref.csv", folder / "runs.csv")
    assert code == 1
    assert "the reference has no outcomes: lengths and forecasts alone are watched" in out


def test_runs_with_a_missing_value_are_left_out(folder, capsys, tmp_path):
    frame = pd.read_csv(folder / "quiet.csv")
    frame.loc[np.flatnonzero(frame["step"] == 2)[:3], "judge"] = np.nan
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    _, out, _ = run(capsys, folder / "ref.csv", tmp_path / "gaps.csv")
    assert f"{tmp_path / 'gaps.csv'}: left out: 3 runs with a missing value" in out
    assert "397 runs since the reference" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--picture", "nowhere/a.png"), "nowhere does not exist"),
        (("--picture", "a.csv"), "--picture: a.csv must end in .png"),
        (("--alpha", "2"), "--alpha must lie strictly between 0 and 1"),
        (("--after", "3"), "--after must be a whole number of at least 50, got 3"),
    ],
)
def test_options_that_cannot_be_used(folder, capsys, options, message):
    code, _, err = run(capsys, folder / "ref.csv", folder / "quiet.csv", *options)
    assert code == 2
    assert message in err


def test_a_file_without_outcomes_is_named(folder, capsys, tmp_path):
    table = pd.read_csv(folder / "ref.csv").drop(columns="solved")
    table.to_csv(tmp_path / "no_outcome.csv", index=False)
    code = main(["watch", str(folder / "ref.csv"), str(tmp_path / "no_outcome.csv")])
    assert code == 2
    assert "no_outcome.csv: no column has a usual name for the outcome" in capsys.readouterr().err
