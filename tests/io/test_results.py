"""Results of evaluation tools, a record a run, wherever a file of JSON lists them."""

import json

import pandas as pd
import pytest

from trajscore.cli.main import main
from trajscore.core.errors import ArgumentError
from trajscore.gates import RunSet
from trajscore.io.fields import Fields
from trajscore.io.outcome_tables import read_outcomes
from trajscore.io.registry import detect_log
from trajscore.io.results import (
    NO_STEPS,
    Result,
    is_result,
    is_results,
    json_rows,
    outcomes_only,
    with_measures,
)
from trajscore.io.tables import read_table

N_TASKS = 6


def promptfoo(passed):
    rows = [
        {
            "id": f"uuid {k} {passed}",
            "testIdx": k,
            "promptIdx": 0,
            "success": k in passed,
            "score": float(k in passed),
            "gradingResult": {"pass": k in passed, "componentResults": [{"pass": k in passed}]},
            "vars": {"question": f"q{k}"},
            "testCase": {"vars": {"question": f"q{k}"}, "assert": [{"type": "contains"}]},
            "response": {"output": "an answer"},
        }
        for k in range(N_TASKS)
    ]
    prompts = [{"raw": "{{question}}", "metrics": {"testPassCount": len(passed)}}]
    stats = {"successes": len(passed)}
    results = {"version": 3, "prompts": prompts, "results": rows, "stats": stats}
    return {"evalId": "eval", "results": results, "config": {"tests": [{"vars": {}}]}}


def deepeval(passed):
    def metric(name, score):
        return {"name": name, "threshold": 0.5, "success": score >= 0.5, "score": score}

    cases = [
        {
            "name": f"test_case_{k}",
            "input": f"question {k}",
            "success": k in passed,
            "metricsData": [metric("Relevancy", 0.7), metric("Toxicity", float(k not in passed))],
        }
        for k in range(N_TASKS)
    ]
    scores = [{"metric": "Relevancy", "scores": [0.7], "passes": 6, "fails": 0}]
    return {"testRunData": {"testCases": cases, "metricsScores": scores}, "testRunLink": None}


def helm(passed):
    return [
        {
            "instance_id": f"id{k}",
            "train_trial_index": 0,
            "stats": [
                {"name": {"name": "num_references", "split": "test"}, "sum": 4, "mean": 4.0},
                {"name": {"name": "exact_match", "split": "test"}, "mean": float(k in passed)},
            ],
        }
        for k in range(N_TASKS)
    ]


def lm_eval(passed):
    return [
        {
            "doc_id": k,
            "doc": {"question": "2 + 2"},
            "resps": [["4"]],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": float(k in passed),
        }
        for k in range(N_TASKS)
    ]


TOOLS = {
    "promptfoo.json": promptfoo,
    "deepeval.json": deepeval,
    "per_instance_stats.json": helm,
    "samples_gsm8k.jsonl": lm_eval,
}


@pytest.fixture
def results(tmp_path):
    """Write what a tool writes, of the tasks that passed."""

    def write(name, passed):
        path, data = tmp_path / f"{len(passed)}_{name}", TOOLS[name](passed)
        lines = data if name.endswith("jsonl") else [data]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


@pytest.mark.parametrize("name", TOOLS)
def test_runs_are_compared_task_by_task(results, capsys, name):
    base, new = results(name, {0, 1, 2, 4}), results(name, {0, 1})
    runs = RunSet.read(base)
    assert (runs.n_runs, runs.n_tasks, runs.predictors) == (N_TASKS, N_TASKS, [])
    assert runs.labels.sum() == 4
    assert main(["compare", str(base), str(new)]) == 0
    assert "Paired by task: 6 in both" in capsys.readouterr().out
    assert main(["check", str(new), "--baseline", str(base)]) in (1, 3)


@pytest.mark.parametrize("name", TOOLS)
def test_a_report_says_what_else_to_do(results, capsys, name):
    assert main(["report", str(results(name, {1}))]) == 2
    assert "holds outcomes of runs, and no steps" in capsys.readouterr().err


def test_outcomes_of_a_log(results):
    table = read_outcomes(results("promptfoo.json", {1}), Fields(id="testIdx"))
    assert {run: row["outcome"] for run, row in table.items()} == {
        str(k): k == 1 for k in range(N_TASKS)
    }


def test_a_measure_whose_high_values_are_bad(results):
    path = results("deepeval.json", {0, 1})
    with pytest.raises(ArgumentError, match="outcome='not Toxicity'"):
        RunSet.read(path, Fields(outcome="Toxicity"))
    assert RunSet.read(path, Fields(outcome="not Toxicity")).labels.sum() == 2


def test_averages_are_refused(tmp_path, capsys):
    path = tmp_path / "results.json"
    averages = {"results": {"gsm8k": {"exact_match,none": 0.5}}, "configs": {"gsm8k": {}}}
    path.write_text(json.dumps(averages))
    assert main(["report", str(path)]) == 2
    assert "it holds averages" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "n_rows"),
    [
        ({"runs": [{"x": 1}, {"x": 2}]}, 2),
        ({"a": [{"x": 1}], "b": {"c": [{"solved": 1}, {"solved": 0}]}}, 2),
        ({"a": [{"solved": 1}], "b": [{"solved": 1}] * 3}, 3),
        ({"a": {"b": {"c": [{"x": 1}], "d": [{"x": 1}, 2]}}, "e": []}, 1),
        ([{"x": 1}], 1),
    ],
)
def test_rows_within_an_object(tmp_path, data, n_rows):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    assert len(list(json_rows(path))) == n_rows
    assert is_results(path) == ("solved" in json.dumps(data))


@pytest.mark.parametrize(
    "data",
    [
        {"a": 1}, {"a": [{"x": 1}], "b": [{"x": 1}]}, {"a": [1, 2]},
        {"a": {"b": {"c": {"d": [{"x": 1}]}}}},
    ],
)  # fmt: skip
def test_objects_without_rows(tmp_path, data):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="a single object"):
        list(json_rows(path))
    assert not is_results(path)


@pytest.mark.parametrize("steps", [[0.5, 0.4], [{"confidence": 0.5}]])
def test_scores_of_runs_with_outcomes_are_results(tmp_path, steps):
    for row, is_one in (
        ({"run": 1, "steps": steps, "solved": 1}, True),
        ({"run": 1, "steps": steps}, False),
        ({"run": 1, "steps": [{"text": "Hi"}], "solved": 1}, False),
        ({"run": 1, "solved": 1}, False),
    ):
        path = tmp_path / "a.json"
        path.write_text(json.dumps([row]))
        assert is_results(path) == is_one


def test_measures_become_columns():
    row = {"id": 1, "score": 2, "scores": [{"name": "score", "value": 1}, {"name": "b", "mean": 0}]}
    assert with_measures(row) == {"id": 1, "score": 2, "scores.score": 1, "b": 0}
    for other in ({"scores": [1, 2]}, {"scores": [{"name": "a"}]}, {"steps": [{"name": "a"}]}):
        assert with_measures(other) == other


def rows_of(tmp_path, data):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(data))
    return list(json_rows(path))


def test_outcomes_by_the_ids_of_runs(tmp_path):
    assert rows_of(tmp_path, {"a": True, "b": False}) == [
        {"id": "a", "outcome": True}, {"id": "b", "outcome": False}
    ]  # fmt: skip
    assert rows_of(tmp_path, {"a": {"solved": 1, "n": 2}, "b": {"solved": 0}}) == [
        {"id": "a", "solved": 1, "n": 2}, {"id": "b", "solved": 0}
    ]  # fmt: skip
    for data in ({"a": True, "b": 0.5}, {"a": {"solved": 1}, "b": {"n": 0}}, {"a": {"n": 1}}):
        with pytest.raises(ValueError, match="a single object"):
            rows_of(tmp_path, data)


def test_a_report_of_resolved_ids(tmp_path):
    data = {"resolved_ids": ["b"], "submitted_ids": ["a", "b"], "n_ids": 2, "error_ids": ["c"],
            "names": ["d"]}  # fmt: skip
    assert sorted((row["id"], row["resolved"]) for row in rows_of(tmp_path, data)) == [
        ("a", False), ("b", True), ("c", False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "refused"),
    [({"results", "configs"}, True), ({"results", "configs", "x"}, True), ({"results"}, False)],
)
def test_averages_are_told_by_their_fields(tmp_path, names, refused):
    data = {name: {"gsm8k": {"exact_match": 0.5}} for name in names}
    with pytest.raises(ValueError, match="averages" if refused else "a single object"):
        rows_of(tmp_path, data)
    assert rows_of(tmp_path, data | {"runs": [{"x": 1}]}) == [{"x": 1}]


@pytest.mark.parametrize(
    ("row", "is_one"),
    [
        ({"task": "t", "solved": 1}, True),
        ({"task": "t"}, False),
        ({"solved": 1}, False),
        ({"task": "t", "solved": 1, "step": 1}, False),
        ({"task": "t", "solved": 1, "confidence": 0.5}, False),
        ({"task": "t", "solved": 1, "score": 0.5}, False),
        ({"task": "t", "solved": 1, "score": 0.5, "answer": {"x": 1}}, True),
        ({"task": "t", "solved": 1, "confidence": 0.5, "answer": {"x": 1}}, False),
        ({"task": "t", "solved": 1, "steps": [{"text": "Hi"}]}, False),
        (with_measures({"scores": [{"name": "a", "value": 1}]}), True),
    ],
)
def test_which_records_are_results(row, is_one):
    assert is_result(row) is is_one


def test_rows_of_objects_only(tmp_path):
    with pytest.raises(ValueError, match="row 1 is int, not an object"):
        rows_of(tmp_path, [{"x": 1}, 2])


def test_the_longest_list_with_outcomes_is_that_of_the_runs(tmp_path):
    data = {
        "first": [{"solved": 1, "k": k} for k in range(2)],
        "second": {"inner": [{"solved": 1, "k": k} for k in range(3)]},
        "other": [{"k": k} for k in range(9)],
    }
    assert [row["k"] for row in rows_of(tmp_path, data)] == [0, 1, 2]
    assert isinstance(rows_of(tmp_path, data)[0], Result)
    for more in ({"step": 1}, {"steps": [{"text": "x"}]}):
        data = {"runs": [{"solved": 1} | more]}
        (row,) = rows_of(tmp_path, data)
        assert not isinstance(row, Result)


def test_measures_are_listed_under_usual_names():
    measures = [{"name": "m", "value": 1}]
    for name in ("stats", "metrics", "metricsData", "metrics_data", "scores", "evaluations"):
        row = with_measures({"id": 1, name: measures})
        assert row == {"id": 1, "m": 1}
        assert isinstance(row, Result)
    assert not isinstance(with_measures({"id": 1}), Result)


FRAME = pd.DataFrame([{"run": f"r{k}", "step": t, "confidence": 0.5 + k / 8, "solved": k}
                      for k in range(2) for t in (1, 2)])  # fmt: skip


@pytest.mark.parametrize("orient", ["records", "split", "columns", "index", "table"])
def test_tables_as_pandas_writes_them(tmp_path, orient):
    path = tmp_path / "t.json"
    FRAME.to_json(path, orient=orient)
    assert detect_log(path) is None
    assert read_table(path)[list(FRAME)].equals(FRAME)


def test_steps_of_runs_by_their_keys(tmp_path):
    run = {"steps": [{"confidence": 0.5}, {"confidence": 0.6}], "solved": 1}
    rows = rows_of(tmp_path, {"a": {"t0": run, "t1": run}, "b": {"t0": run}})
    assert [row["id"] for row in rows] == ["a-t0", "a-t1", "b-t0"]


def test_columns_as_lists(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"run": ["a", "b"], "p": [0.5, 0.25], "solved": [1, 0]}))
    assert read_table(path).to_dict("list") == {
        "run": ["a", "b"],
        "p": [0.5, 0.25],
        "solved": [1, 0],
    }
    path.write_text(json.dumps({"run": ["a", "b"], "solved": [1]}))
    with pytest.raises(ValueError, match="single object"):
        read_table(path)


def test_columns_of_one_length(tmp_path):
    assert rows_of(tmp_path, {"solved": [1, 0]}) == [{"solved": 1}, {"solved": 0}]
    assert rows_of(tmp_path, {"id": ["a"], "solved": [1]}) == [{"id": "a", "solved": 1}]
    for data in (
        {"solved": [], "id": []}, {"id": ["a"], "n": [1]}, {"solved": [1], "n": 3},
        {"solved": [1, 0], "id": ["a"]},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="a single object"):
            rows_of(tmp_path, data)
    columns = {"id": {"0": "a", "1": "b"}, "solved": {"0": 1, "1": 0}}
    assert rows_of(tmp_path, columns) == [{"id": "a", "solved": 1}, {"id": "b", "solved": 0}]
    split = {"columns": ["id", 1], "data": [["a", 2], ["b", 3]]}
    assert rows_of(tmp_path, split) == [{"id": "a", "1": 2}, {"id": "b", "1": 3}]
    with pytest.raises(ValueError, match="a single object"):
        rows_of(tmp_path, {"columns": ["id"], "data": ["a"]})


def test_outcomes_below_several_keys_are_those_of_runs_only_with_steps(tmp_path):
    run = {"solved": 1}
    with pytest.raises(ValueError, match="a single object"):
        rows_of(tmp_path, {"m": {"t0": run, "t1": run}})
    stepped = run | {"step": 1}
    assert rows_of(tmp_path, {"m": {"t0": stepped}}) == [{"id": "m-t0"} | stepped]
    (row,) = rows_of(tmp_path, {"t0": run})
    assert isinstance(row, Result)
    (row,) = rows_of(tmp_path, {"t0": stepped})
    assert not isinstance(row, Result)


def test_rows_are_looked_for_within_three_objects(tmp_path):
    rows = [{"x": 1}]
    assert rows_of(tmp_path, {"a": {"b": {"c": rows}}}) == rows
    with pytest.raises(ValueError, match="a single object"):
        rows_of(tmp_path, {"a": {"b": {"c": {"d": rows}}}})
    assert rows_of(tmp_path, {"a": rows, "b": [1], "c": []}) == rows
    assert rows_of(tmp_path, {}) == rows_of(tmp_path, []) == []


@pytest.mark.parametrize(
    ("row", "is_one"),
    [
        ({"solved": 1, "steps": [0.5]}, True), ({"solved": 1, "steps": [{"p": 0.5}]}, True),
        ({"solved": 1, "steps": [{"text": "x"}]}, False), ({"solved": 1, "step": 1, "p": 1}, True),
        ({"solved": 1, "step": 1}, False), ({"solved": 1, "p": 1}, False),
        ({"steps": [0.5]}, False),
        ({"solved": 1, "steps": [{"text": "x"}], "p": 0.5}, True), ({"task": 1, "solved": 1}, True),
        ({"task": 1, "solved": 1, "log": [{"a": 1}]}, False),
        ({"task": 1, "solved": 1, "log": [1]}, True), ({"task": 1, "solved": 1, "a": ["x"]}, True),
    ],
)  # fmt: skip
def test_files_of_results(tmp_path, row, is_one):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([row]))
    assert is_results(path) is is_one
    text = NO_STEPS.format(path) if is_result(row) else ""
    assert outcomes_only(path) == text


def test_files_that_hold_no_rows_are_no_results(tmp_path):
    for text in ("[1]", "[]", "oops", '{"a": 1}'):
        path = tmp_path / "rows.json"
        path.write_text(text)
        assert (is_results(path), outcomes_only(path)) == (False, "")


def test_columns_with_other_rows_are_no_table(tmp_path):
    for other in ({"0": "a"}, {"1": "a"}, {"1": "a", "2": "b"}, {}):
        with pytest.raises(ValueError, match="a single object"):
            rows_of(tmp_path, {"solved": {"0": 1, "1": 0}, "id": other, "n": {"0": 1, "1": 2}})


def test_one_column_of_outcomes_by_id(tmp_path):
    data = {"solved": {"0": 1, "1": 0}}
    assert rows_of(tmp_path, data) == [{"solved": 1}, {"solved": 0}]


def test_rows_of_which_some_are_no_lists(tmp_path):
    with pytest.raises(ValueError, match="a single object"):
        rows_of(tmp_path, {"columns": ["id"], "data": [["a"], "b"]})
