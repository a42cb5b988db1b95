"""Runs that ended before the agent's first turn: in every rate and in no score."""

import json

import numpy as np
import pandas as pd
import pytest

from known_endpoint import completion, endpoint
from trajscore import StepConfidence, TracerSignals, TrajectoryArray, evaluate, io, metrics
from trajscore.cli.main import main
from trajscore.datasets import make_trajectories
from trajscore.gates import RunSet
from trajscore.monitoring import FleetMonitor

N, N_UNSTARTED = 100, 20


def records(name, n_unstarted):
    """Chats, each with a stated confidence; 60% succeed but for those that never started."""
    rng, runs = np.random.default_rng(3), []
    for k in range(N):
        solved = k % 5 < 3
        chat = [{"role": "user", "content": f"Do {k}"}]
        if k % 5 == 0 and k // 5 < n_unstarted:
            solved, stop = False, "error"
        else:
            stop = None
            for t in range(2):
                confidence = round(0.2 + 0.2 * solved + 0.5 * rng.random(), 2)
                chat += [{"role": "assistant", "content": f"{t}", "confidence": confidence}]
        runs.append({"id": f"{name}{k}", "messages": chat, "success": solved, "stop_reason": stop})
    return runs


def as_table(runs):
    """The same as a table: of a run without a turn of the agent, a row without step and score."""
    rows = []
    for run in runs:
        turns = [turn for turn in run["messages"] if turn["role"] == "assistant"]
        steps = [(t, turn["confidence"]) for t, turn in enumerate(turns, start=1)]
        for step, confidence in steps or [(None, None)]:
            rows.append((run["id"], step, confidence, run["success"], run["stop_reason"]))
    return pd.DataFrame(rows, columns=["id", "step", "confidence", "success", "stop_reason"])


@pytest.fixture(params=["log", "table"])
def paths(request, tmp_path):
    made = {}
    for name, n_unstarted in (("base", 0), ("bad", N_UNSTARTED)):
        runs = records(name, n_unstarted)
        path = tmp_path / f"{name}.{'jsonl' if request.param == 'log' else 'csv'}"
        if request.param == "log":
            path.write_text("\n".join(map(json.dumps, runs)))
        else:
            as_table(runs).to_csv(path, index=False)
        made[name] = str(path)
    return made


def test_a_report_counts_them_in_the_success_rate_alone(paths, tmp_path, capsys):
    out = tmp_path / "report.json"
    assert main(["report", paths["bad"], "--out", str(out)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "100 runs, 80 with forecasts · 160 steps · 40% succeeded" in said
    runs = json.loads(out.read_text())["runs"]
    assert (runs["n_counted"], runs["n_runs"], runs["success_rate"]) == (100, 80, 0.4)
    assert runs["rate_over_forecasts"] == 0.5
    assert [left["n_runs"] for left in runs["left_out"]] == [N_UNSTARTED]


def test_a_gate_sees_that_success_fell(paths, capsys):
    assert main(["check", paths["bad"], "--baseline", paths["base"], "--margin", "0.05"]) == 1
    assert "0.6 -> 0.4" in capsys.readouterr().out
    runs = RunSet.read(paths["bad"])
    assert (runs.n_runs, runs.success_rate, runs.lengths.min()) == (100, 0.4, 0)
    assert "forecasts of 20 not judged (ended before the first step)" in repr(runs)


def test_a_watch_says_the_same_rates(paths, capsys):
    main(["watch", paths["base"], paths["bad"]])
    out = capsys.readouterr().out
    assert "100 runs since the reference" in out
    assert "success: 60.0% in the reference, 40.0% since" in out
    assert "20 without a forecast" in out


@pytest.mark.filterwarnings("ignore:none of the 80 runs of the fit is flagged")
@pytest.mark.parametrize("guard", [[], ["--guard"]], ids=["process", "guard"])
def test_a_process_is_fitted_on_the_others(paths, tmp_path, capsys, guard):
    pytest.importorskip("skops")
    if guard and paths["bad"].endswith("csv"):
        pytest.skip("a guard reads logs")
    model = str(tmp_path / "model.skops")
    assert main(["fit", paths["bad"], "--out", model, *guard]) == 0
    assert "fitted on 80 of 100 runs; 20 with a missing value or no step" in capsys.readouterr().out


def test_a_judged_log_keeps_them(paths, tmp_path, capsys):
    pytest.importorskip("openai")
    if paths["bad"].endswith("csv"):
        pytest.skip("a judge reads logs")
    out = str(tmp_path / "judged.csv")
    with endpoint(lambda body: completion("Yes", {"Yes": -0.2, "No": -1.7})) as asked:
        url = ["--base-url", asked.url]
        assert main(["judge", paths["bad"], "--model", "m", "--out", out, *url]) == 0
        assert len(asked.bodies) == 160
    table = pd.read_csv(out)
    assert table["step"].isna().sum() == N_UNSTARTED
    assert table.groupby("run")["outcome"].first().mean() == 0.4
    assert RunSet.read(out).success_rate == 0.4


def test_user_rows_alone_are_a_run_without_a_step(tmp_path):
    rows = [("a", 1, "user", None, 0)]
    for name, solved in (("b", 1), ("c", 0), ("d", 1)):
        rows += [(name, 1, "user", None, solved), (name, 2, "assistant", 0.7, solved)]
    columns = ["run", "step", "role", "confidence", "success"]
    pd.DataFrame(rows, columns=columns).to_csv(path := tmp_path / "roles.csv", index=False)
    runs = RunSet.read(path)
    assert (runs.n_runs, runs.success_rate, runs.lengths.tolist()) == (4, 0.5, [0, 1, 1, 1])
    assert "1 run without a row of the agent" in runs.notes


# ------------------------------------------------------------------ logs in Python


def test_runs_keep_what_ended_before_it_began(tmp_path):
    over = {"messages": [{"role": "user", "content": "Hi"}], "success": False}
    turn = {"role": "assistant", "content": "Hello", "confidence": 0.9}
    (path := tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, [
        {"id": "a", "messages": [*over["messages"], turn], "success": True},
        {"id": "b", **over},
        {"id": "c", "messages": [], "stop_reason": "agent_error"},
        {"id": "d", "messages": [turn | {"content": "", "confidence": None}], "success": False},
        {"id": "e", "messages": []},  # nothing is known of it
        {"id": "f", "messages": [{"role": "bot9", "content": "Hi"}], "success": False},
    ])))  # fmt: skip
    with pytest.warns(UserWarning, match="2 of 6 runs could not be read"):
        runs = io.read_runs(path)
    assert [run.id for run in runs] == ["a", "b", "c", "d"]
    assert [run.ended_before_start for run in runs] == [False, True, True, True]
    assert io.outcomes(runs).tolist() == [1, 0, -1, 0]
    assert any("3 runs ended before the agent's first turn" in note for note in runs.notes)
    for signals in (StepConfidence(), TracerSignals()):
        X = signals.fit_transform(runs)
        assert X.ids.tolist() == ["a", "b", "c", "d"]
        assert X.lengths.tolist() == [int(X.lengths[0]), 0, 0, 0]


def test_a_log_in_which_no_agent_ever_began_is_refused(tmp_path):
    (path := tmp_path / "log.jsonl").write_text('{"id": "a", "messages": [], "success": false}')
    with pytest.raises(ValueError, match=r"none of the 1 run has a turn of the agent; .*fields"):
        io.read_runs(path, format="openai")


# ------------------------------------------------------------------ containers


def test_a_table_goes_there_and_back():
    X = TrajectoryArray.from_list([[0.5, 0.6], [], [0.2]], missing="allow", ids=list("abc"))
    assert X.lengths.tolist() == [2, 0, 1]
    frame = X.to_frame().assign(ok=[1, 1, 0, 0])
    for table in (frame, frame.assign(step=pd.to_datetime(frame["step"], unit="s"))):
        back, y = TrajectoryArray.from_frame(
            table.sample(frac=1, random_state=1), id="run", step="step", value="value",
            outcome="ok", missing="allow",
        )  # fmt: skip
        order = np.argsort(back.ids)
        assert back[order].lengths.tolist() == [2, 0, 1]
        assert back[order].cells.tolist() == X.cells.tolist()
        assert y[order].tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    "take",
    [
        lambda X, y: metrics.tps_score(y, X),
        lambda X, y: FleetMonitor(forecaster=None).fit(X[:2], y[:2]),
        lambda X, y: TrajectoryArray.from_list([[0.5], []]),
        lambda X, y: TrajectoryArray.from_frame(X.to_frame(), id="run", step="step", value="value"),
    ],
    ids=["score", "few", "list", "frame"],
)
def test_what_needs_steps_names_the_row(take):
    X = TrajectoryArray.from_list([[0.5, 0.6], [], [0.2]], missing="allow")
    with pytest.raises(ValueError, match=r"row 1|needs 50"):
        take(X, [1, 0, 1])


def test_an_evaluation_scores_the_others():
    runs = make_trajectories(200, random_state=0)
    X = TrajectoryArray.from_list(
        [*runs.q.to_list(), *[[]] * 50], missing="allow", ids=[f"{k:03d}" for k in range(250)]
    )
    y = np.append(runs.target, np.zeros(50, dtype=int))
    report, alone = evaluate(X, y), evaluate(X[:200], y[:200])
    pd.testing.assert_frame_equal(report.intervals, alone.intervals)
    assert report.facts.success_rate == report.facts.base_rate_of_runs == y.mean()
    assert alone.facts.success_rate == runs.target.mean()
    assert report.excluded["n_runs"].tolist() == [50]


# ------------------------------------------------------------------ fleets


def test_a_fleet_sees_that_runs_end_before_they_begin():
    runs = make_trajectories(3000, random_state=0)
    X, y = runs.q, runs.target.copy()
    rng = np.random.default_rng(0)
    over = np.append(np.zeros(1500, dtype=bool), rng.random(1500) < 0.3)
    y[over] = 0
    lists = [[] if is_over else run for is_over, run in zip(over, X.to_list(), strict=True)]
    fleet = FleetMonitor().fit(X[:1000], y[:1000])
    fleet.update(TrajectoryArray.from_list(lists, missing="allow")[1000:], y[1000:])
    change = fleet.changes_[0]
    assert change.quantity in ("length", "success")
    assert abs(change.since - 500) < 150  # the true change is at run 501
    assert change.cause == "runs without a forecast"
    assert fleet.n_without_forecast_ == over.sum()


@pytest.mark.slow
def test_quiet_streams_with_gaps_that_tell_the_outcome_seldom_have_an_alarm():
    n_alarms = 0
    for seed in range(20):
        runs = make_trajectories(1500, random_state=seed)
        X, y = runs.q, runs.target
        rng = np.random.default_rng(seed)
        gaps = rng.random(1500) < np.where(y == 1, 0.05, 0.3)
        cells = X.cells.copy()
        cells[X.offsets[:-1][gaps]] = np.nan
        X = X.with_cells(cells)
        fleet = FleetMonitor(random_state=seed).fit(X[:500], y[:500])
        fleet.update(X[500:], y[500:])
        assert fleet.n_without_forecast_ == gaps.sum()
        n_alarms += len(fleet.changes_) > 0
    assert n_alarms <= 3  # 1 of 20 is expected at most; more than 3 have a chance of .016
