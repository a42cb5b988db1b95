"""The options that say what to read: tables and logs as people have them."""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trajscore.cli.inputs import _bytes, _rule, _scale, reading
from trajscore.cli.main import _parser, _sentence, main
from trajscore.report._inputs import load


@pytest.fixture
def read(tmp_path):
    """Load a table or a log with options of the command line."""

    def read_one(data, *options, name="runs.csv"):
        path = tmp_path / name
        if isinstance(data, pd.DataFrame):
            data.to_csv(path, index=False)
        else:
            path.write_text("".join(json.dumps(one) + "\n" for one in data))
        arguments = _parser().parse_args(["report", str(path), *options])
        return load(arguments.table, **reading(arguments))

    return read_one


@pytest.fixture
def refuse(tmp_path, capsys):
    """Return the one sentence by which the command refuses a table."""

    def refuse_one(data, *options):
        data.to_csv(tmp_path / "runs.csv", index=False)
        assert main(["report", str(tmp_path / "runs.csv"), *options]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        return said

    return refuse_one


def steps(n=6, **columns):
    """Make a table of runs with two steps each."""
    runs = np.repeat(np.arange(n), 2)
    usual = {"run": runs, "step": np.tile([1, 2], n), "confidence": 0.25 + runs / 20}
    usual |= {"solved": runs % 2}
    return pd.DataFrame({name: c for name, c in (usual | columns).items() if c is not None})


def test_words_need_a_map(read, refuse):
    words = np.repeat(["pass", "fail", "timeout"] * 2, 2)
    said = refuse(steps(solved=words))
    assert "--map pass=1,fail=0,timeout=-1" in said
    said = refuse(steps(solved=words), "--map", "pass=1", "--map", "fail=0")
    assert "--map pass=1,fail=0,timeout=-1" in said  # with what is said already
    inputs = read(steps(solved=words), "--map", "pass=1,fail=0,timeout=-1")
    assert inputs.y.tolist() == [1, 0, -1] * 2


def test_an_outcome_on_the_last_row_only(read):
    last = np.where(np.tile([False, True], 6), np.repeat(np.arange(6), 2) % 2, np.nan)
    assert read(steps(solved=last)).y.tolist() == [0, 1] * 3


def test_ids_of_two_columns(read):
    names = {"task": np.repeat(list("aabbcc"), 2), "trial": np.repeat([1, 2] * 3, 2)}
    inputs = read(steps(run=None, **names), "--id", "task", "--id", "trial")
    assert list(inputs.predictors.ids) == ["a-1", "a-2", "b-1", "b-2", "c-1", "c-2"]
    assert "3 clusters of runs by 'task'" in str(inputs)


@pytest.mark.parametrize("times", ["text", "epoch", "rows"])
def test_steps_by_time_or_by_row(read, times):
    at = {
        "text": ["2026-01-01T00:00:05+00:00", "2026-01-01T00:00:01+00:00"],
        "epoch": [1767225605.5, 1767225601.25],
        "rows": [9, 9],
    }[times]
    table = steps(step=None, timestamp=at * 6, confidence=[0.75, 0.25] * 6)
    inputs = read(table, *(["--step", "rows"] if times == "rows" else []))
    wanted = [0.75, 0.25] if times == "rows" else [0.25, 0.75]
    assert inputs.predictors.cells[:2].ravel().tolist() == wanted


def test_times_that_are_the_same_want_the_order_of_rows(refuse):
    said = refuse(steps(step=["2026-01-01"] * 12))
    assert "for the order of the rows pass --step rows" in said


def test_a_table_of_outcomes(read, refuse, tmp_path):
    other = tmp_path / "outcomes.csv"
    pd.DataFrame({"id": [0, 1, 2, 3, 4, 9], "passed": ["y", "n", "y", "n", "y", "n"]}).to_csv(
        other, index=False
    )
    inputs = read(steps(solved=None), "--outcomes", str(other), "--map", "y=1,n=0")
    assert inputs.y.tolist() == [1, 0, 1, 0, 1, -1]
    assert "runs of the log that are not in the table of outcomes: 1" in str(inputs)
    assert "--outcomes" in refuse(steps(solved=None))
    said = refuse(steps(solved=None, run=np.repeat(list("abcdef"), 2)), "--outcomes", str(other))
    assert "no run id of the table ('a', 'a', 'b') is in the table of outcomes ('0'" in said


def test_settings_costs_and_outcomes_are_no_predictors(read):
    odd = np.linspace(0.1, 0.9, 12)
    table = steps(confidence=None, sure=odd, temperature=odd, cost_usd=odd, reward=odd)
    inputs = read(table.assign(reward=np.where(table["solved"] == 1, 0.75, 0.5)))
    assert inputs.predictors.channels == ("sure",)
    for name in ("temperature", "cost_usd", "reward"):
        assert f"Left out: column {name!r} " in str(inputs)


def test_scales_are_named_and_said(read, refuse):
    verbal = np.linspace(0, 100, 12)
    for name in ("verbal", "self_conf"):
        said = f"Left out: column {name!r} has values above 1; add --scale {name}=100"
        assert said in str(read(steps(**{name: verbal})))
    inputs = read(steps(verbal=verbal), "--scale", "verbal=100", "--score", "confidence")
    assert inputs.predictors.channels == ("confidence", "verbal")
    np.testing.assert_allclose(inputs.predictors["verbal"].cells.ravel(), verbal / 100)
    assert "row 1: " in refuse(steps(verbal=verbal), "--scale", "verbal=5")


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize(
    ("column", "options", "said"),
    [
        ("run", [], "starts at step 2"),
        ("step", [], "row 3: step "),
        ("confidence", [], "run 1"),
        ("confidence", ["--scale", "confidence=100"], "1"),
        ("confidence", ["--risk", "confidence"], "run 1"),
        ("solved", [], "column 'solved' has several values in run '1'"),
    ],
)
def test_integers_of_hundreds_of_digits(refuse, column, options, said, digits):
    table = steps().astype(object)
    table.loc[3, column] = "1" * digits
    sentence = refuse(table, *options)
    assert said in sentence
    assert len(sentence) < 1000


@pytest.mark.parametrize("options", [[], ["--scale", "confidence=100"], ["--risk", "confidence"]])
def test_words_among_numbers_are_refused(refuse, options):
    table = steps().astype(object)
    table.loc[3, "confidence"] = "n.k."
    named = ["--id", "run", "--outcome", "solved", "--confidence", "confidence"]
    said = refuse(table, *options, *named)
    assert "run 1, step 2: 'n.k.' in column 'confidence' is not a number" in said


def test_risks_point_the_other_way(read):
    table = steps(risk=np.linspace(0, 1, 12), loss=np.linspace(0, 9, 12))
    inputs = read(table, "--risk", "risk", "--risk", "loss")
    np.testing.assert_allclose(inputs.predictors["risk"].cells.ravel(), 1 - table["risk"])
    np.testing.assert_allclose(inputs.predictors["loss"].cells.ravel(), -table["loss"])


def test_what_a_stop_means(read):
    table = steps(solved=np.repeat([1, 0, 1, 0, np.nan, np.nan], 2))
    table["stop_reason"] = np.repeat(["done"] * 4 + ["timeout", "timeout"], 2)
    inputs = read(table, "--stop", "timeout=administrative")
    assert inputs.predictors.meta["stop_kind"].tolist()[-1] == "administrative"
    assert inputs.stop_reason is None


def test_a_stop_that_no_run_has_is_named(read):
    table = steps(why=np.repeat(["done", "Max Steps"] * 3, 2))
    rule = ["--stop-reason", "why", "--stop", "max_steps=informative", "--stop", "stepz=excluded"]
    inputs = read(table, *rule)
    assert inputs.predictors.meta["stop_kind"].tolist()[1] == "informative"
    assert "--stop: no run was stopped by 'stepz'; there are: done, max_steps" in str(inputs)


def test_a_stop_without_a_column_of_reasons_is_named(read):
    said = str(read(steps(), "--stop", "budget=excluded"))
    assert "--stop: no column of stop reasons was found; name it with --stop-reason" in said


@pytest.mark.parametrize("kind", ["float64", "Int64"])
def test_a_missing_time_is_no_order(tmp_path, kind):
    table = steps().rename(columns={"step": "time"})
    table["time"] = pd.array([1005, None, *range(2000, 2010)], dtype="Float64").astype(kind)
    table.to_parquet(tmp_path / "runs.parquet")
    with pytest.raises(ValueError, match="row 1: step .* in column 'time' is not a whole number"):
        load(tmp_path / "runs.parquet")


def test_a_table_in_json(read):
    rows = steps().to_dict("records")
    assert read(rows, name="rows.jsonl").y.tolist() == [0, 1] * 3
    listed = [{"id": f"r{k}", "messages": [{"role": "assistant", "content": "x"}]} for k in "ab"]
    inputs = read([run | {"verdict": "ok"} for run in listed], "--outcome", "verdict", "--map",
                  "ok=1", name="log.jsonl")  # fmt: skip
    assert inputs.y.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scale", "verbal"], "'verbal' is not NAME=TOP"),
        (["--scale", "verbal=-1"], "give a column and a number"),
        (["--stop", "timeout"], "give pairs such as timeout=administrative"),
    ],
)
def test_bad_options(capsys, options, said):
    with pytest.raises(SystemExit):
        _parser().parse_args(["report", "x.csv", *options])
    assert said in capsys.readouterr().err


def test_a_confidence_that_holds_until_the_next_one(read):
    said = {"role": "assistant", "content": "Confidence: 60%"}
    runs = [
        {"id": k, "messages": [said, {"role": "assistant", "content": "hm"}], "success": k % 2}
        for k in range(4)
    ]
    inputs = read(runs, name="log.jsonl")
    assert "verbal: in 50% of the agent's turns; too few runs have it at every turn (--mis" in str(
        inputs
    )
    assert "verbal" not in inputs.predictors
    path = next(iter(inputs.predictors.values())).meta["file"][0]
    assert list(load(Path(path), missing="ffill").predictors) == ["verbal"]


def test_messages_on_lines_of_their_own_are_a_log(read):
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Confidence: 60%"}]
    rows = [{"thread_id": k, **one} | {"success": k % 2} for k in range(4) for one in said]
    inputs = read(rows, name="log.jsonl")
    assert list(inputs.predictors) == ["verbal"]
    assert inputs.y.tolist() == [0, 1] * 2


def test_runs_that_cannot_be_told_apart_are_refused(read):
    talk = [{"role": "assistant", "content": "Confidence: 60%"}]
    runs = [{"id": "a", "n": k, "messages": talk, "success": k % 2} for k in range(4)]
    with pytest.raises(ValueError, match="4 runs have the id 'a'; name the field .* with id="):
        read(runs, name="log.jsonl")
    assert len(read(runs, "--id", "id", "--id", "n", name="log.jsonl").y) == 4


def test_ids_of_a_table_that_are_lists_are_refused(tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"run_id": [1], "step": 1, "confidence": 0.5, "success": 1}\n' * 2)
    assert main(["report", str(path)]) != 0
    assert "column 'run_id' has a list or an object as a run id" in capsys.readouterr().err


def test_a_scale_is_proposed_where_nothing_else_is_a_score(refuse):
    said = refuse(steps(confidence=None, verbal=np.arange(12) * 8))
    assert "if 100 means certainty in verbal, pass --scale verbal=100" in said


def test_columns_that_other_signs_separate(tmp_path, capsys):
    rows = [f"r{k};{t};0,{k + t};{k % 2}" for k in range(1, 7) for t in (1, 2)]
    (tmp_path / "a.csv").write_text("\n".join(["run;step;p;solved", *rows]))
    assert main(["report", str(tmp_path / "a.csv")]) == 0
    assert "scores: column 'p'" in capsys.readouterr().out


def test_options_that_do_nothing_are_refused(refuse):
    assert "--embedder is for logs, but" in refuse(steps(), "--embedder", "char")
    words = np.repeat(["good", "meh"], 6)
    message = refuse(steps(solved=words), "--map", "good=1,mhe=0")
    assert "--map 'good=1,meh=?'" in message  # without the misspelt word


def test_kinds_of_stops_are_checked(capsys):
    with pytest.raises(SystemExit):
        main(["report", "runs.csv", "--stop", "timeout=administratif"])
    assert "KIND is one of complete, administrative" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("500mb", 5 * 10**8), ("1.5k", 1500), ("2TB", 2 * 10**12), ("70", 70),
     (" 8 B", 8)],
)  # fmt: skip
def test_sizes(text, size):
    assert _bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "x", "inf", "4PB"])
def test_what_is_not_a_size(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a size; give one such as 4GB"):
        _bytes(text)


def test_what_load_is_to_know():
    parser = _parser()
    plain = reading(parser.parse_args(["report", "runs.csv"]))
    fields = plain.pop("fields")
    assert (fields.id, fields.scores, fields.group) == (None, (), None)
    assert [name for name, value in plain.items() if value is not None] == []
    options = ["--id", "run", "--stop", "timeout=administrative,crash=complete"]
    one = reading(parser.parse_args(["report", "runs.csv", *options]))
    assert one["fields"].id == "run"
    assert one["rule"] == {"timeout": "administrative", "crash": "complete"}
    two = reading(parser.parse_args(["report", "runs.csv", "--id", "task", "--id", "trial"]))
    assert two["fields"].id == ("task", "trial")


@pytest.mark.parametrize(
    "text", ["=administrative", "timeout=", "timeout=late", "a=complete,=complete"]
)
def test_a_stop_needs_a_reason_and_a_kind(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not REASON=KIND; give pairs such as"):
        _rule(text)


@pytest.mark.parametrize(
    ("text", "scale"), [("verbal=100", ("verbal", 100.0)), ("a=b=0.5", ("a=b", 0.5))]
)
def test_a_scale_is_a_column_and_its_top(text, scale):
    assert _scale(text) == scale


@pytest.mark.parametrize("text", ["verbal", "verbal=", "=100", "verbal=0", "verbal=-1", "verbal=x"])
def test_a_scale_needs_a_column_and_a_top(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not NAME=TOP; give a column and a"):
        _scale(text)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("no run 'a'"), "no run 'a'"),
        (KeyError(), ""),
        (KeyError("first", "second"), "first"),
        (ValueError("alpha must be small"), "--alpha must be small"),
        (ValueError("beta must be small"), "beta must be small"),
        (ValueError("alpha"), "alpha"),
        (ValueError("one", "two"), "('one', 'two')"),
    ],
)
def test_errors_are_said_in_options(error, text):
    assert _sentence(error, {"alpha": "--alpha"}) == text
