"""``trajscore watch``: tables and lines in, alarms out, and an exit code."""

import html
import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.cli import watch
from trajscore.cli.main import main
from trajscore.cli.watch import _a_week, _cost, _map_since, _Runs
from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor
from trajscore.monitoring._fleet import FleetChange

N = 400
STARTS = ("Alarm at run", "  Cause:", "  What to do:")


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
    start = pd.Timestamp("2026-01-05") + pd.to_timedelta(np.arange(len(y)), "h")
    frame["started"] = start[row].astype(str)
    for name, some in {
        "ref": row < N,
        "quiet": (row >= N) & (row < N + 400),
        "runs": row >= N + 400,
    }.items():
        frame[some].to_csv(folder / f"{name}.csv", index=False)
    frame[row >= N + 400].iloc[::-1].to_csv(folder / "backwards.csv", index=False)
    with (folder / "runs.jsonl").open("w") as file:
        for k in range(N + 400, len(y)):
            values = cells[X.offsets[k] : X.offsets[k + 1]].tolist()
            message = {"id": k, "scores": values, "outcome": int(y[k])}
            file.write(json.dumps(message) + "\n")
    return folder


def run(folder, capsys, *arguments, lines=None, monkeypatch=None):
    if lines is not None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    options = ("--reference", str(folder / "ref.csv"), "--score", "judge", "--outcome", "solved")
    code = main(["watch", "--after", "200", *map(str, arguments), *options])
    out, err = capsys.readouterr()
    return code, out, err


def events(out):
    return [json.loads(line) for line in out.splitlines()]


def test_lines_of_which_none_can_be_used(folder, capsys, monkeypatch):
    lines = b'{"id": 1, "score": [0.5]}\n{"id": 2, "score": [0.5]}\n'
    code, out, err = run(folder, capsys, lines=lines, monkeypatch=monkeypatch)
    assert code == 2
    assert "no line could be used: 2 lines refused" in err
    assert "no change" not in out


def test_quiet_runs(folder, capsys, tmp_path):
    page = tmp_path / "quiet.html"
    code, out, _ = run(folder, capsys, folder / "quiet.csv", "--html", page)
    assert "<h1>Nothing is shown to have changed</h1>" in page.read_text(encoding="utf-8")
    assert code == 0
    assert "400 runs since the reference: no change\nIf nothing changes, the chance of" in out


def test_a_table_with_a_change(folder, capsys, tmp_path):
    pytest.importorskip("skops")
    picture, new_map = tmp_path / "evidence.png", tmp_path / "map.skops"
    page = tmp_path / "watch.html"
    files = ("--picture", picture, "--recalibrated", new_map, "--html", page)
    options = (*files, "--time", "started")
    code, out, _ = run(folder, capsys, folder / "quiet.csv", folder / "runs.csv", *options)
    assert code == 1
    assert "the forecasts of judge changed, since about run 6" in out
    assert "\n  Cause: forecasts\n  What to do: The forecasts moved" in out
    assert "more of each 100 runs fail" in out
    assert "TPS log margin of judge, as given" in out
    assert "1,200 runs since the reference: 1 change" in out
    assert "Recalibrating gains +" in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = " ".join(html.unescape(page.read_text(encoding="utf-8")).split())
    alarm, cause, advice = (line.strip() for line in out.splitlines() if line.startswith(STARTS))
    assert f"<h1>{alarm}</h1>" in text
    assert "<figure><svg" in text
    assert f"<dt>Cause</dt><dd>{cause.removeprefix('Cause: ')}</dd>" in text
    assert f"<dd>{advice.removeprefix('What to do: ')}</dd>" in text
    assert "the chance of this alarm, at any time, was at most 0.025" in text
    assert "of each 100 runs fail</dd>" in text or "rose from" in text or "fell from" in text
    assert new_map.exists()


def test_the_order_is_that_of_times(folder, capsys):
    outs = [
        run(folder, capsys, folder / f"{name}.csv", "--json", "--time", "started")[1]
        for name in ("runs", "backwards")
    ]
    assert outs[0] == outs[1]
    change, status = events(outs[0])
    assert change["event"] == "change"
    assert change["cause"] == "forecasts"
    assert 90 < change["since"] < change["alarm"] < 260
    assert len(change["success_change"]) == 3
    assert status == {
        "event": "status",
        "n_runs": 800,
        "n_left_out": 0,
        "n_late_outcomes": 0,
        "n_changes": 1,
        "evidence": status["evidence"],
    }


def test_a_stream_that_goes_on(folder, capsys, monkeypatch, tmp_path):
    lines = (folder / "runs.jsonl").read_bytes().splitlines(keepends=True)
    state = ("--state", tmp_path / "state", "--json")
    parts = [lines[:150], lines[150:300], [*lines[300:], b"nothing\n"]]
    answers = [
        run(folder, capsys, *state, lines=b"".join(part), monkeypatch=monkeypatch) for part in parts
    ]
    assert [code for code, _, _ in answers] == [0, 1, 0]
    names = [[event["event"] for event in events(out)] for _, out, _ in answers]
    assert names == [["status"], ["alarm", "status"], ["cause", "status"]]
    assert '"error": "not JSON; send an object' in answers[2][2]
    at_once = run(folder, capsys, lines=b"".join(lines), monkeypatch=monkeypatch)
    assert at_once[0] == 1
    assert "Alarm at run 2" in at_once[1]
    assert "Cause of the alarm at run 2" in at_once[1]


def test_a_stream_in_words_with_a_map(folder, capsys, monkeypatch, tmp_path):
    pytest.importorskip("skops")
    lines = (folder / "runs.jsonl").read_bytes()
    option = ("--recalibrated", tmp_path / "map.skops")
    _, out, _ = run(folder, capsys, *option, lines=lines, monkeypatch=monkeypatch)
    assert "Recalibrating gains +" in out
    assert "  What to do: The forecasts moved" in out


@pytest.mark.slow
def test_killed_and_gone_on_with(folder, tmp_path):
    lines = (folder / "runs.jsonl").read_bytes().splitlines(keepends=True)
    command = [sys.executable, "-m", "trajscore", "watch", "--reference", str(folder / "ref.csv")]
    command += ["--score", "judge", "--outcome", "solved", "--after", "200", "--json"]
    state = ["--state", str(tmp_path / "state")]
    process = subprocess.Popen(
        [*command, *state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    process.stdin.write(b"".join(lines[:300]))
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["event"] == "alarm"
    process.kill()
    process.communicate()
    # the state has all runs to which an alarm was answered; a run that is sent again is refused
    outs = [
        subprocess.run([*command, *more], input=b"".join(lines), capture_output=True, check=False)
        for more in (state, [])
    ]
    resumed, whole = (events(out.stdout.decode()) for out in outs)
    assert resumed[-1] == whole[-1]
    assert resumed[-2] == whole[-2]


def test_a_map_that_takes_more_outcomes(folder, capsys, monkeypatch, tmp_path):
    lines = (folder / "runs.jsonl").read_bytes().splitlines(keepends=True)[:250]
    new_map = tmp_path / "map.skops"
    options = {"lines": b"".join(lines), "monkeypatch": monkeypatch}
    code, _, err = run(folder, capsys, "--recalibrated", new_map, **options)
    assert code == 1
    assert "no new map: there are " in err
    assert "a new map needs 20 of each outcome, so wait for more runs" in err
    assert not new_map.exists()


def test_scores_and_tasks(folder, capsys, monkeypatch, tmp_path):
    for name in ("ref", "runs"):
        frame = pd.read_csv(folder / f"{name}.csv")
        frame["judge"] = 100 * frame["judge"] - 50
        frame["task"] = frame["run"] // 4
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    code, out, _ = run(tmp_path, capsys, tmp_path / "runs.csv")
    assert code in (0, 1)
    assert "scores outside [0, 1]: a forecaster is fitted on the reference" in out
    assert "900 of them not counted: their task came before, here or" in out
    lines = b"".join(
        json.dumps({"id": k, "scores": [k, -k], "outcome": None, "task": k}).encode() + b"\n"
        for k in (1, 2, 500)
    )
    code, out, err = run(tmp_path, capsys, "--json", lines=lines, monkeypatch=monkeypatch)
    assert "error" not in err
    status = events(out)[-1]
    assert (status["n_runs"], status["n_left_out"]) == (3, 300 + 2)


def test_a_reference_without_outcomes(folder, capsys, tmp_path):
    frame = pd.read_csv(folder / "ref.csv").assign(solved=-1)
    frame.to_csv(tmp_path / "ref.csv", index=False)
    code, out, _ = run(tmp_path, capsys, folder / "runs.csv")
    assert code == 1
    assert "the reference has no outcomes: lengths and forecasts alone are watched" in out


def test_options_that_do_not_go_together(folder, capsys, monkeypatch):
    code, _, err = run(folder, capsys, folder / "quiet.csv", "--state", "state")
    assert code == 2
    assert "--state is for a stream on standard input; leave it out" in err
    code, _, err = run(folder, capsys, "--picture", "a.png", lines=b"", monkeypatch=monkeypatch)
    assert code == 2
    assert "--picture is for tables and logs" in err
    code, _, err = run(folder, capsys, folder / "quiet.csv", "--time", "judge_at")
    assert code == 2
    assert "judge_at" in err
    code, _, err = run(folder, capsys, folder / "quiet.csv", "--picture", "nowhere/a.png")
    assert code == 2
    assert "nowhere does not exist" in err
    code, _, err = run(folder, capsys, folder / "quiet.csv", "--alpha", "2")
    assert code == 2
    assert "--alpha must lie strictly between 0 and 1" in err
    code, _, err = run(folder, capsys, folder / "quiet.csv", "--after", "3")
    assert code == 2
    assert "--after must be a whole number of at least 50, got 3" in err


def test_files_and_columns_that_do_not_fit(folder, capsys, tmp_path):
    ref = folder / "ref.csv"
    code, out, err = run(folder, capsys, ref, "--recalibrated", tmp_path / "map.skops")
    assert code == 0
    assert f"note: both sets of runs are the same file, {ref}" in err
    assert out.endswith(f"no alarm, so {tmp_path / 'map.skops'} was not written\n")
    for option, name, ending in (("picture", "e.csv", ".png"), ("recalibrated", "m", ".skops")):
        code, _, err = run(folder, capsys, ref, f"--{option}", tmp_path / name)
        assert (code, err) == (
            2,
            f"trajscore: --{option}: {tmp_path / name} must end in {ending}\n",
        )
    _, _, err = run(folder, capsys, ref, "--time", "begun")
    assert f"{ref}: --time: no column named 'begun'; there are: run, " in err
    table = pd.read_csv(ref).drop(columns="solved")
    table.to_csv(tmp_path / "no_outcome.csv", index=False)
    code = main(["watch", str(tmp_path / "no_outcome.csv"), "--reference", str(ref)])
    assert code == 2
    assert "no_outcome.csv: no column has a usual name for the outcome" in (
        err := capsys.readouterr().err
    )
    assert "without outcomes, add an empty column" in err


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (None, ""),
        (["2026-01-05"], ""),
        (["2026-01-05", "2026-01-12"], "2"),
        (["2026-01-05", "2026-01-05"], ""),
        (["2026-01-05", "2026-01-06", "2026-01-07", "2026-01-19"], "2"),
        ([1.0, 2.0, 9.0], ""),
    ],
)
def test_runs_of_a_week(times, said):
    if times is not None:
        times = np.array(times, dtype="M8[s]" if isinstance(times[0], str) else float)
    assert _a_week(_Runs(None, None, None, times)) == said


@pytest.mark.parametrize(
    ("low", "high", "a_week", "said"),
    [
        (-0.25, -0.125, "", "fell {}, so that 12 to 25 more of each 100 runs fail"),
        (-0.25, -0.004, "70", "fell {}, so that 0 to 25 more of each 100 runs fail; 70 runs come"),
        (-0.25, 0.0, "70", "Success went {}: from +0 to +25 more of each 100 runs fail"),
        (-0.25, 0.125, "", "Success went {}: from -12 to +25 more of each 100 runs fail"),
        (0.0, 0.25, "", "Success went {}: from -25 to +0 more of each 100 runs fail"),
        (0.004, 0.25, "", "Waiting costs no runs: success rose {}"),
    ],
)
def test_what_waiting_costs(low, high, a_week, said):
    success = {"base": 0.75, "new": 0.5, "change_low": low, "change_high": high}
    said = said.format("from 75.0% to 50.0%")
    if said.startswith("fell"):
        said = f"Cost of waiting: success {said}"
    if said.endswith("come"):
        said += " in a week"
    assert _cost(pd.Series(success), a_week) == said


@pytest.mark.parametrize(("predictor", "column"), [("b", 1), ("a", 0), ("", 0)])
def test_a_map_is_of_the_predictor_that_changed(monkeypatch, predictor, column):
    cells = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    X = TrajectoryArray(cells, [2, 1], channels=["a", "b"])
    fleet = FleetMonitor()
    fleet.forecaster_ = None
    fleet.changes_ = [FleetChange(9, 3, "length", name, 6.0) for name in ("a", predictor)]
    monkeypatch.setattr(watch, "recalibration", lambda X, y, groups: (X, y, groups))
    of, y, groups = _map_since(fleet, _Runs(X, [1, 0], ["s", "t"], None))
    assert of.cells.ravel().tolist() == cells[:, column].tolist()
    assert (y, groups) == ([1, 0], ["s", "t"])
    plain = _Runs(TrajectoryArray([0.5], [1]), [1], None, None)
    assert _map_since(fleet, plain)[0] is plain.X


def test_a_quiet_stream_has_no_map(folder, capsys, monkeypatch, tmp_path):
    lines = b"".join((folder / "runs.jsonl").read_bytes().splitlines(keepends=True)[:9])
    option = ("--recalibrated", tmp_path / "map.skops")
    code, out, err = run(folder, capsys, *option, lines=lines, monkeypatch=monkeypatch)
    assert (code, "no new map" in err) == (0, False)
    assert out.endswith(f"no alarm, so {tmp_path / 'map.skops'} was not written\n")
