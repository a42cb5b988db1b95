"""Whatever reads a log or a table, a stop reason means the same."""

import json

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray, evaluate, io
from trajscore.cli.main import main
from trajscore.tracer import StepConfidence

TURN = {"role": "assistant", "content": "Hello"}
KINDS = {
    "done": "complete", "user_stop": "complete", "max_steps": "administrative",
    "Max Turns": "administrative", "too_many_errors": "informative", "refusal": "informative",
    "timeout": "unknown", "huh": "unknown", "user_error": "excluded", "crash": "informative",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.* left out:UserWarning")
def test_every_reader_gives_the_same_answer(write):
    stopped = [{"id": reason, "messages": [TURN], "stop_reason": reason} for reason in KINDS]
    rows = [{"run": reason, "text": "x", "stop_reason": reason} for reason in KINDS]
    simulations = [run | {"termination_reason": run["stop_reason"]} for run in stopped]
    simulated = write("tau2.json", {"info": {}, "simulations": simulations})
    for path in (simulated, write("a.json", stopped), write("b.jsonl", rows, lines=True)):
        runs = io.read_runs(path)
        kinds = {run.id: run.stop_kind for run in runs}
        assert kinds | {run.id: run.kind for run in runs.left_out} == KINDS, path


def test_a_rule_is_asked_before_the_table(write, talk):
    runs = [{"id": k, "messages": talk, "stop_reason": k} for k in ("Max Steps", "timeout", "x")]
    path = write("a.json", runs)
    found = io.read_runs(path, rule={"timeout": "administrative", "max-steps": "informative"})
    assert [run.stop_kind for run in found] == ["informative", "administrative", "unknown"]
    found = io.read_runs(path, rule=lambda reason: "administrative")
    assert [run.stop_kind for run in found] == ["administrative"] * 3
    with pytest.warns(UserWarning, match=r"1 of 3 runs is left out, as .* \(x 1\)"):
        found = list(io.iter_runs(path, rule={"x": "excluded"}))
    assert len(found) == 2


LOST, CUT, ODD = "EnvironmentStartTimeoutError", "max_steps", "moon phase"
SENTENCES = (
    "9 runs that a budget ended without a success are not observed (max_steps 9)",
    "5 runs ended for reasons that are not known (moon phase 5) and count as recorded",
)


def ended_runs():
    """100 good runs, 12 that the harness lost, 9 at the end of a budget, 5 nobody knows of."""
    rng = np.random.default_rng(0)
    reasons = [None] * 100 + [LOST] * 12 + [CUT] * 9 + [ODD] * 5
    for k, reason in enumerate(reasons):
        success = reason is None and bool(rng.random() < 0.6)
        values = 0.3 + 0.3 * success + rng.uniform(-0.3, 0.3, 3)
        yield f"r{k:03}", success, reason, values.tolist()


def tables():
    """The same runs under usual names; with an error, which may be beside another reason."""
    rows = [
        (name, t, p, success, reason)
        for name, success, reason, values in ended_runs()
        for t, p in enumerate(values, start=1)
    ]
    frame = pd.DataFrame(rows, columns=["run", "step", "confidence", "success", "stop_reason"])
    lost = frame["stop_reason"] == LOST
    error = np.where(lost, f"sandbox.{LOST}: no answer after 600 s", "")
    beside = frame.assign(stop_reason=frame["stop_reason"].mask(lost, "done"), exception_type=error)
    return {
        "stop_reason": frame,
        "termination": frame.rename(columns={"stop_reason": "Termination"}),
        "exception_type": beside,
        "error": beside.rename(columns={"exception_type": "error"}),
    }


def chats():
    return [
        {"id": name, "messages": [TURN | {"confidence": p} for p in values], "success": success,
         "error" if reason == LOST else "stop_reason": reason}
        for name, success, reason, values in ended_runs()
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [*tables(), "chats", "rows"])
def test_lost_cut_and_odd_runs_in_python(kind, write):
    if kind in ("chats", "rows"):
        lines = kind == "rows"
        rows = tables()["stop_reason"].astype(object).to_dict("records")
        rows = [{k: v for k, v in row.items() if not pd.isna(v)} | {"text": "x"} for row in rows]
        path = write("a.jsonl", rows, lines=True) if lines else write("a.json", chats())
        with pytest.warns(UserWarning, match=rf"12 of 126 runs are left out, as .* \({LOST} 12\)"):
            runs = io.read_runs(path)
        assert [run.kind for run in runs.left_out] == ["excluded"] * 12
        X, y = StepConfidence().fit_transform(runs)["verbal"], io.outcomes(runs)
        said = "; ".join(runs.notes)
    else:
        with pytest.warns(UserWarning, match="12 of 126 runs are left out") as caught:
            X, y = TrajectoryArray.from_frame(
                tables()[kind], id="run", step="step", value="confidence", outcome="success"
            )
        (warning,) = caught
        said = str(warning.message)
        assert f"({LOST} 12)" in said
    assert all(sentence in said for sentence in SENTENCES), said
    assert f"such as rule='{ODD}=complete'" in said
    assert len(X) == len(y) == 114
    assert [(y == -1).sum(), (y[109:] == 0).sum()] == [9, 5]
    report = evaluate(X, y, calibrator=None)
    assert (report.facts.n_runs, report.facts.n_observed) == (114, 105)
    if kind == "stop_reason":  # reasons and outcomes given apart come to the same
        raw = tables()[kind].drop_duplicates("run")
        X = TrajectoryArray.from_frame(tables()[kind], id="run", step="step", value="confidence")
        apart = evaluate(X, raw["success"].to_numpy(), stop_reason=raw[kind].to_numpy())
        assert report.table.loc["confidence"].iloc[0].equals(apart.table.loc["confidence"].iloc[0])
        text = " ".join(str(apart).split())
        said = f"12 runs (lost by the harness: {LOST})", *SENTENCES, "9 runs hit their budget"
        assert all(sentence in text for sentence in said), text


@pytest.mark.parametrize("kind", [*tables(), "chats", "parquet", "outcomes"])
def test_lost_cut_and_odd_runs_on_the_command_line(kind, write, tmp_path, capsys):
    path = tmp_path / "a.csv"
    more = []
    if kind == "chats":
        path = write("a.json", chats())
    elif kind == "parquet":
        path = tmp_path / "a.parquet"
        tables()["stop_reason"].to_parquet(path)
    elif kind == "outcomes":
        frame = tables()["stop_reason"]
        frame[["run", "step", "confidence"]].to_csv(path, index=False)
        ends = frame.drop_duplicates("run")[["run", "success", "stop_reason"]]
        ends.to_csv(tmp_path / "ends.csv", index=False)
        more = ["--outcomes", str(tmp_path / "ends.csv")]
    else:
        tables()[kind].to_csv(path, index=False)
    assert not main(["report", str(path), "--out", str(tmp_path / "out.json"), *more])
    said = capsys.readouterr().out
    assert f"{LOST} 12" in said
    assert "12 of 126 runs are" in said
    assert all(sentence in said for sentence in SENTENCES), said
    assert f"--stop '{ODD}=complete'" in said
    assert "9 runs hit their budget" in said
    notes = json.loads((tmp_path / "out.json").read_text())["notes"]
    lost, odd = (next(note for note in notes if note.startswith(n)) for n in ("12 of 126", "5 of"))
    assert lost.startswith("12 of 126 runs were lost by the harness; left out. Counted as recorded")
    assert odd.startswith("5 of 114 runs ended for reasons that are not known; counted as recorded")


def test_the_other_choice_is_what_other_reasons_would_say():
    frame = tables()["stop_reason"]
    X = TrajectoryArray.from_frame(frame, id="run", step="step", value="confidence")
    ends = frame.drop_duplicates("run")
    y, reasons = ends["success"].to_numpy(), ends["stop_reason"].fillna("done")
    report = evaluate(X, y, stop_reason=reasons.to_numpy())
    for choice, reason, other in (("lost", LOST, "done"), ("unknown", ODD, LOST)):
        n, cards = report.other_choices[choice]
        otherwise = evaluate(X, y, stop_reason=reasons.replace(reason, other).to_numpy())
        assert n == (reasons == reason).sum()
        pd.testing.assert_frame_equal(cards, otherwise.cards)
    few = reasons.where(y == 1, ODD)  # without these no failure is left
    report = evaluate(X, y, stop_reason=few.to_numpy())
    assert report.other_choices["unknown"] == ((few == ODD).sum(), None)
    said = " ".join(report.notes)
    assert "Without them the answer would be: none, as too few runs are left" in said


def test_the_text_of_an_error_is_kept_beside_the_reason_that_it_gives(tmp_path):
    talk = [{"role": "user", "content": "Hi"}, TURN]
    errors = ["RuntimeError: all of it went wrong", {"type": "OSError", "message": "no room left"}]
    runs = [{"messages": talk, "success": False, "error": error} for error in errors]
    (tmp_path / "log.json").write_text(json.dumps(runs))
    read = io.read_runs(tmp_path / "log.json")
    assert [run.stop_reason for run in read] == ["RuntimeError", "OSError"]
    assert [run.extra["error"] for run in read] == errors
    assert not any("not read" in note for note in read.notes)
