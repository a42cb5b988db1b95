"""`trajscore report` on logs of runs."""

import gzip
import json
import re

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray, io
from trajscore.cli.main import main
from trajscore.core.errors import ArgumentError
from trajscore.io.fields import Fields
from trajscore.io.runs import LeftOut
from trajscore.report import _inputs
from trajscore.report._from_log import FromLog, find_confidences
from trajscore.report._inputs import FromTable, load


def talk(rng, k, words="It is there"):
    turns = []
    for _ in range(int(rng.integers(1, 5))):
        turns += [
            {"role": "user", "content": f"Where is bag {k}?"},
            {"role": "assistant", "content": words.format(p=rng.random())},
        ]
    return turns


def write_log(folder, words="It is there", name="results.json", n=24):
    rng = np.random.default_rng(0)
    simulations = [
        {
            "id": f"s{k:02d}",
            "task_id": f"t{k // 2}",
            "messages": talk(rng, k, words),
            "termination_reason": "max_steps" if k == 5 else "user_stop",
            "reward_info": {"reward": float(k % 3 == 0)},
        }
        for k in range(n)
    ]
    path = folder / name
    path.write_text(json.dumps({"info": {}, "simulations": simulations}))
    return path


def run(capsys, *arguments):
    code = main(["report", *map(str, arguments), "--verbose", "--resamples", "20"])
    out, err = capsys.readouterr()
    return code, out, err


def test_without_confidence_the_situation_is_judged(tmp_path, capsys):
    page = tmp_path / "report.html"
    code, out, err = run(capsys, write_log(tmp_path), "--out", page)
    assert (code, err) == (0, "")
    assert "the log has no confidence (neither token log-probabilities nor stated ones)" in out
    assert re.search("TRACER: [a-z ]+; as given it is not a probability", out)
    assert "turns: surprisal 0, " in out
    assert re.search(r"in (\d+) turns: .* repetition (\d+), agent_gap 0, user_gap \d+", out)
    assert re.search("^alive rate, end known +24", out, re.MULTILINE)
    assert "clusters of runs by 'task'" in out
    assert "1 of 24 runs not observed" in out
    assert page.exists()


def test_stated_confidence_is_judged(tmp_path, capsys):
    code, out, _ = run(capsys, write_log(tmp_path, "There. Confidence: {p:.2f}"))
    assert code == 0
    assert "verbal: in 100% of the agent's turns" in out
    assert re.search("verbal: [a-z ]+; as given", out)
    assert "TRACER" not in out


def test_chosen_predictors_and_groups(tmp_path, capsys):
    path = write_log(tmp_path)
    _, out, _ = run(capsys, path, "--score", "tool calls", "--group", "run")
    assert "TRACER given" not in out
    assert "24 clusters of runs by 'run'" in out
    code, _, err = run(capsys, path, "--score", "TRACR")
    assert (code, err.count("\n")) == (2, 1)
    assert "no predictor named 'TRACR'; did you mean 'TRACER'" in err
    code, _, err = run(capsys, path, "--group", "tusk")
    assert "did you mean 'task'" in err


def test_columns_of_tables_are_not_for_logs(tmp_path, capsys):
    path = write_log(tmp_path)
    for option in ("--step", "--risk"):
        code, _, err = run(capsys, path, option, "x")
        assert code == 2
        assert f"{option} names a column of a table, but" in err
    code, _, err = run(capsys, path, "--stop-reason", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "--stop-reason: no field of a run named 'x'" in err


def test_what_is_a_log(tmp_path):
    table = tmp_path / "table.jsonl"
    table.write_text('{"run_id": 1, "step": 1, "confidence": 0.4, "solved": 1}\n')
    chat = tmp_path / "logs" / "chat.jsonl"
    chat.parent.mkdir()
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    chat.write_text(json.dumps({"messages": messages, "success": True}) + "\n")
    packed = tmp_path / "chat.json.gz"
    packed.write_bytes(gzip.compress(chat.read_bytes()))
    assert isinstance(load(table).origin, FromTable)
    for path in (chat, chat.parent, packed):
        assert isinstance(load(path).origin, FromLog)
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"x": 1}\n')
    with pytest.raises(ValueError, match="no column has a usual name"):
        load(odd)


def test_the_format_can_be_named(tmp_path, capsys):
    rows = [
        {"run": k // 2, "t": k % 2, "text": "x", "p": 0.1 * (k % 7), "y": k // 2 % 2}
        for k in range(40)
    ]
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert isinstance(load(path).origin, FromTable)
    assert load(path, format="jsonl").origin.coverage == {"verbal": 1.0}
    (tmp_path / "odd.json").write_text('{"a": 1}')
    assert "Pass the format as --format (atif" in run(capsys, tmp_path / "odd.json")[2]
    assert "no format named 'tau'; did you mean" in run(capsys, path, "--format", "tau")[2]


def test_what_was_guessed_is_data(tmp_path):
    frame = pd.DataFrame({"id": [1, 1, 2], "t": [0, 1, 0], "p": [0.5, 0.4, 0.3], "y": [1, 1, 0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    inputs = load(tmp_path / "t.csv", Fields(id="id", stop_reason=None, group="y"))
    assert inputs.origin.guessed == {"step": ("t",), "outcome": ("y",), "scores": ("p",)}
    assert inputs.origin.first_step == 0
    assert inputs.y.tolist() == [1, 0]
    assert list(inputs.groups) == [1, 0]
    assert inputs.stop_reason is None
    assert str(inputs) == (
        "guessed step: column 't'; outcome: column 'y'; scores: column 'p'; steps are counted "
        "from 0\n2 clusters of runs by 'y'"
    )
    known = load(tmp_path / "t.csv", Fields("id", "t", "y", scores=("p",)), first_step=0)
    assert str(known) == ""
    assert "chess" in str(load(None))


def test_what_was_found_in_a_log_is_data(tmp_path):
    inputs = load(write_log(tmp_path, "There. Confidence: {p:.2f}"))
    origin = inputs.origin
    assert (origin.n_runs, origin.left_out) == (24, [])
    assert (origin.coverage, origin.too_rare, origin.n_turns) == ({"verbal": 1.0}, {}, None)
    assert (inputs.group, inputs.n_groups) == ("task", 12)
    origin = load(write_log(tmp_path)).origin
    assert origin.coverage == {}
    assert list(origin.n_signals) == ["surprisal", "repetition", "agent_gap", "user_gap"]
    assert origin.n_signals["repetition"] > 0
    for part, fields in (("scores", Fields(scores=("x",))), ("step", Fields(step="t"))):
        with pytest.raises(ArgumentError) as error:
            load(write_log(tmp_path), fields)
        assert error.value.part == part


def test_what_is_left_out_is_said(tmp_path, capsys):
    path = write_log(tmp_path)
    raw = json.loads(path.read_text())
    raw["simulations"][1]["messages"] = [{"role": "user", "content": "Hello?"}]
    raw["simulations"][2] = {"id": "broken", "termination_reason": "user_stop"}
    path.write_text(json.dumps(raw))
    inputs = load(path)
    assert len(inputs.y) == 22
    assert [one.id for one in inputs.origin.left_out] == ["s01", "broken"]
    assert "2 of 24 runs could not be read and are left out" in str(inputs)
    assert "run 's01' (index 1): it has no turn of the agent" in str(inputs)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"simulations": [{"id": 1, "mess', "results.json"),
        ('{"info": {}, "simulations": []}', "there are no runs in"),
        ('{"info": {}, "results": []}', "the format is not known"),
        ('{"info": {}, "simulations": [{"id": 1}]}', "none of the 1 runs can be read as tau2"),
    ],
)
def test_bad_logs_end_with_one_sentence(tmp_path, capsys, content, message):
    path = tmp_path / "results.json"
    path.write_text(content)
    code, _, err = run(capsys, path)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_public_logs(public_file, capsys):
    code, out, _ = run(capsys, public_file("tau2", "airline_gpt-oss-120b.json"))
    assert code == 0
    assert "5 of 49 runs not observed" in out
    assert "too_many_errors" in out


def test_tokens_saved_of_a_log(tmp_path, capsys):
    log = write_log(tmp_path, n=80)
    told = json.loads(log.read_text())
    for simulation in told["simulations"]:
        for turn in simulation["messages"]:
            turn["usage"] = {"completion_tokens": 10}
    log.write_text(json.dumps(told))
    code, out, _ = run(capsys, log, "--monitor", "--splits", "2", "--score", "tool calls")
    assert code == 0
    assert "tokens saved: the same share of its own tokens" in " ".join(out.split())


# ------------------------------------------------------------------ each rule by itself


@pytest.mark.parametrize(
    ("columns", "fields", "has_none"),
    [
        ({"run": [1, 2], "p": 1}, Fields(), True),
        ({"run": [1, 1], "p": 1}, Fields(), False),
        ({"run": [1, 2], "step": 1}, Fields(), False),
        ({"run": [1, 2], "p": 1}, Fields(step="p"), False),
        ({"p": [1, 1]}, Fields(), True),
        ({"run": [1, 1], "id": [1, 2]}, Fields(), False),  # the first usual name counts
        ({"a": [1, 1], "b": [1, 2]}, Fields(id=("a", "b")), True),
        ({"a": [1, 2]}, Fields(id="x"), False),
    ],
)
def test_tables_of_a_row_a_run(columns, fields, has_none):
    assert _inputs._has_no_steps(pd.DataFrame(columns), fields) == has_none


def test_what_runs_of_a_table_cost():
    frame = pd.DataFrame({
        "run": [1, 1, 2, 2], "step": [1, 2, 1, 2], "p": 0.5, "solved": [1, 1, 0, 0],
        "cost": [3.0, 3.0, 4.0, 4.0], "tokens": [1, 2, np.nan, 5],
    })  # fmt: skip
    X = TrajectoryArray.from_frame(frame, id="run", step="step", value="p")
    spent = _inputs._spent_in_table(frame, frame["run"], X)
    assert {name: values.tolist() for name, values in spent.items()} == {
        "cost": [3.0, 4.0], "tokens": [3.0, 5.0],
    }  # fmt: skip
    uneven = frame.assign(cost=[1.0, 2.0, 4.0, 4.0])
    assert _inputs._spent_in_table(uneven, frame["run"], X)["cost"].tolist() == [3.0, 8.0]


def test_what_runs_of_a_log_cost():
    def run(*costs, **meta):
        steps = [io.Step("agent", "x", cost=cost) for cost in costs]
        return io.Run("a", [*steps, io.Step("user", "y", cost=99.0)], meta=meta)

    found = _inputs._spent_in_log([run(1.0, 2.0), run(1.0, None), run()])
    np.testing.assert_array_equal(found["cost"], [3, np.nan, np.nan])
    named = _inputs._spent_in_log([run(1.0, cost=5, input_tokens=7, api_cost=1), run(2.0)])
    assert set(named) == {"cost", "input_tokens", "api_cost"}
    np.testing.assert_array_equal(named["cost"], [5, np.nan])
    assert _inputs._spent_in_log([run(), run(x_cost=None)]) == {}


@pytest.mark.parametrize(
    ("tasks", "column"),
    [
        (["a", "a", "b", "b"], "task"), (["a", "a", "a", "a"], None), (["a", "b", "b", "b"], None),
        (["a", "a", None, None], None),
    ],
)  # fmt: skip
def test_tasks_of_a_table(tasks, column):
    frame = pd.DataFrame({"run": [1, 1, 2, 2], "task": tasks})
    assert _inputs._task_column(frame, Fields(id="run")) == column


@pytest.mark.parametrize(
    ("rule", "n_lost"),
    [(None, 0), ({"max steps": "administrative"}, 0), ({"x": "complete", "y": "complete"}, 2)],
)
def test_stops_that_no_run_has(rule, n_lost):
    runs = [io.Run("a", stop_reason="MaxSteps"), io.Run("b")]
    left_out = [LeftOut("f", 0, "c", "crash", "excluded"), LeftOut("f", 1, "d", "y")]
    remarks = _inputs.stops_not_met(rule, runs, left_out)
    assert len(remarks) == n_lost
    assert all(remark.endswith("; there are: max_steps, crash") for remark in remarks)
    assert len(_inputs.stops_not_met({"crash": "unknown"}, runs, left_out)) == 0
    (remark,) = _inputs.stops_not_met({"crash": "unknown"}, runs[1:], [])
    assert remark.endswith("; there are: none")


def test_confidences_that_enough_runs_have():
    def run(*confidences):
        return io.Run("a", [io.Step("agent", "x", confidence=one) for one in confidences])

    runs = [run(0.5, 0.6), run(0.4, None), run(0.3), run(None, 0.2)]
    origin = FromLog(4, [])
    found = find_confidences(runs, np.array([1, 0, 0, 1]), origin)
    assert list(found) == list(origin.coverage)
    (share,) = origin.coverage.values()
    assert share == pytest.approx(5 / 7)
    rare = FromLog(4, [])
    assert find_confidences(runs, np.array([1, 0, 1, 0]), rare) == {}
    assert list(rare.too_rare.values()) == [pytest.approx(5 / 7)]
    filled = FromLog(4, [])
    assert len(find_confidences(runs, np.array([1, 0, 1, 0]), filled, "ffill")) == 1


def test_minus_a_risk():
    risk = TrajectoryArray([np.nan, 0.5, np.nan, np.nan, 0.2], [2, 2, 1], missing="allow")
    found = _inputs._as_confidence(risk).cells
    np.testing.assert_array_equal(found, [0, -0.5, np.nan, np.nan, -0.2])


@pytest.mark.parametrize(
    ("tasks", "group", "expected"),
    [
        ("aab", None, ("task", ["a", "a", "b"])), ("aaa", None, (None, None)),
        (["a", None, "b"], None, (None, None)), ("aab", "task", ("task", ["a", "a", "b"])),
    ],
)  # fmt: skip
def test_clusters_of_a_log(tasks, group, expected):
    runs = [io.Run(str(k), task=task) for k, task in enumerate(tasks)]
    column, groups = _inputs._groups(runs, group)
    assert (column, groups if groups is None else groups.tolist()) == expected


def test_clusters_that_are_none():
    runs = [io.Run(str(k), task="a") for k in range(2)]
    with pytest.raises(ArgumentError, match="column 'task' does not name two clusters of runs"):
        _inputs._groups(runs, "task")
    with pytest.raises(ArgumentError, match="no column named 'x'"):
        _inputs._groups(runs, "x")


def test_a_confidence_of_1_beside_per_cent():
    runs = [
        io.Run(str(k), [io.Step("agent", f"Confidence: {c}")], outcome=k % 2)
        for k, c in enumerate((1, 50, 80, 1))
    ]
    origin = FromLog(4, [])
    find_confidences(runs, io.outcomes(runs), origin)
    assert "2 stated confidences of 1 not read, which may be certainty or 1 of" in origin.unused[0]
    assert "pass {argument:scales=verbal=100}" in origin.unused[0]


@pytest.mark.parametrize("in_text", [False, True])
def test_confidences_of_five(tmp_path, capsys, in_text):
    turns = [{"content": f"Confidence: {k}"} if in_text else {"content": "x", "confidence": k}
             for k in (1, 2, 3, 4, 5)]  # fmt: skip
    runs = [
        {"id": str(k), "messages": [{"role": "assistant", **turns[k % 5]}], "success": k % 5 > 2}
        for k in range(40)
    ]
    log = tmp_path / "log.json"
    log.write_text(json.dumps(runs))
    _, out, _ = run(capsys, log, "--verbose")
    assert "40 stated confidences from 1 to 5 not read" in " ".join(out.split())
    assert "pass --scale verbal=5" in " ".join(out.split())
    inputs = load(log, Fields(scales=(("verbal", 5.0),)))
    assert sorted(set(inputs.predictors["verbal"].cells.ravel())) == [0.2, 0.4, 0.6, 0.8, 1.0]
    with pytest.raises(ValueError, match="no predictor with a scale named 'tokens'"):
        load(log, Fields(scales=(("tokens", 5.0),)))


def test_parts_are_for_json_of_any_form(tmp_path, capsys):
    log = tmp_path / "log.json"
    log.write_text(json.dumps([{"id": "a", "messages": [{"role": "assistant", "content": "x"}]}]))
    code, _, err = run(capsys, log, "--format", "openai", "--field", "text=content")
    assert code == 2
    assert "--field names the parts of JSON in no known format, and the format is openai" in err


def test_rows_of_the_user_are_no_steps(tmp_path, capsys):
    rows = [
        {"conversation_id": f"c{k}", "turn": t, "role": ("user", "assistant")[t % 2 == 0],
         "confidence": k / 40 if t % 2 == 0 else None, "success": k % 2}
        for k in range(40) for t in (1, 2, 3, 4)
    ]  # fmt: skip
    table = tmp_path / "rows.csv"
    pd.DataFrame(rows).to_csv(table, index=False)
    inputs = load(table)
    assert inputs.predictors.lengths.tolist() == [2] * 40
    assert "80 of 160 rows left out: by column 'role' they are not the agent's" in str(inputs)
    for column in ("assistant", "user", "blue"):
        pd.DataFrame(rows).assign(role=column, confidence=0.5).to_csv(table, index=False)
        assert load(table).predictors.lengths.tolist() == [4] * 40


def test_a_table_of_a_row_a_run_keeps_its_ids(tmp_path):
    frame = pd.DataFrame({"run": ["b", "a", "c"], "p": [0.5, 0.9, 0.1], "y": [1, 0, 1]})
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    inputs = load(path, Fields(scores=("p",)), needs_scores=False)
    assert sorted(inputs.predictors["p"].ids) == ["a", "b", "c"]
    with pytest.raises(ArgumentError, match="no column has a usual name for the step"):
        load(path, Fields(scores=("p",)))
    assert inputs.origin.first_step is None
    assert "no column has steps, so each row is a run of one step" in inputs.origin.not_used
    frame.assign(p=frame["p"] * 100).drop(columns="run").to_csv(path, index=False)
    inputs = load(path, Fields(scores=("p",)), needs_scores=False)
    assert inputs.y.tolist() == [1, 0, 1]
    assert not inputs.has_ids
