import gzip
import inspect
import json
import re
from argparse import ArgumentParser

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray, evaluate, metrics
from trajscore.cli.main import main
from trajscore.cli.report import add_parser
from trajscore.core.score_families import LogScore
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions


@pytest.fixture
def table(tmp_path):
    X, y = make_trajectories(60, random_state=0, return_X_y=True)
    frame = X.to_frame(id="run_id", step="step", value="confidence")
    frame["solved"] = np.repeat(y, X.lengths)
    frame["noise"] = np.random.default_rng(0).random(len(frame))
    return frame, tmp_path


def run(capsys, *arguments):
    code = main(["report", *map(str, arguments), "--verbose", "--resamples", "20"])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "jsonl"])
def test_formats_and_guesses(table, capsys, ending):
    frame, folder = table
    path = folder / f"runs.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False)
    code, out, err = run(capsys, path)
    assert (code, err) == (0, "")
    assert "guessed run id: column 'run_id'" in out
    assert "scores: column 'confidence'" in out
    assert "confidence: too few runs; as given" in out


@pytest.mark.parametrize("name", ["isotonic", "none"])
def test_calibrator(table, capsys, name):
    frame, folder = table
    frame.to_csv(folder / "runs.csv", index=False)
    code, _, _ = run(capsys, folder / "runs.csv", "--calibrator", name, "--out", folder / "r.json")
    forms = json.loads((folder / "r.json").read_text())["predictors"]["confidence"]["forms"]
    assert code == 0
    assert ("recalibrated" in forms) == (name != "none")


def test_named_columns_and_page(table, capsys):
    frame, folder = table
    frame = frame.rename(columns={"run_id": "who", "confidence": "c"})
    path = folder / "runs.csv"
    frame.to_csv(path, index=False)
    page = folder / "report.html"
    code, out, _ = run(
        capsys, path, "--id", "who", "--score", "c", "--score", "noise", "--out", page,
        "--family", "beta(2,4)", "--weights", "uniform", "--phi", "last",
    )  # fmt: skip
    assert code == 0
    assert "noise:" in out
    assert "uniform" in out
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("options", "weights", "knows"),
    [
        ([], {}, None),
        (["--horizon", "4", "--end", "known"], {"horizon": 4}, True),
        (
            ["--weights", "linear_front", "--horizon", "own", "--end", "unknown"],
            {"weights": "linear_front", "horizon": "own"},
            False,
        ),
    ],
    ids=["default", "horizon", "as published"],
)
@pytest.mark.filterwarnings("ignore:horizon=4 leaves")
def test_horizon_and_end(table, capsys, options, weights, knows):
    frame, folder = table
    path, written = folder / "runs.csv", folder / "report.json"
    frame.to_csv(path, index=False)
    code, out, err = run(capsys, path, *options, "--out", written)
    assert (code, err) == (0, "")
    found = json.loads(written.read_text())
    assert found["options"]["knows_end"] == {"confidence": knows}
    X, y = TrajectoryArray.from_frame(
        frame, id="run_id", step="step", value="confidence", outcome="solved"
    )
    value = found["predictors"]["confidence"]["forms"]["as_given"]["metrics"]["TPS log"]["value"]
    assert value == pytest.approx(metrics.tps_score(y, X, **weights))
    line = f"\nNot scored: {np.maximum(X.lengths - 4, 0).sum()} steps beyond --horizon 4\n"
    assert (line in out) == ("4" in options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--weights", "linear_front"],
            "--weights linear_front needs a number of steps, over which it falls to zero; add",
        ),
        (
            ["--horizon", "0"],
            "argument --horizon: '0' is not a number of steps, such as 30, or own",
        ),
        (["--horizon", "its own"], "argument --horizon: 'its own' is not a number of steps"),
        (["--end", "yes"], "argument --end: invalid choice: 'yes'"),
        (["--weights", "early_front"], "argument --weights: invalid choice: 'early_front'"),
    ],
)
def test_weights_that_cannot_be_are_refused_at_once(capsys, options, said):
    try:
        code = main(["report", *options])
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert said in err


def test_any_fraction_is_a_score_where_no_name_is_usual(table, capsys):
    frame, folder = table
    frame.rename(columns={"confidence": "c"}).to_csv(folder / "runs.csv", index=False)
    _, out, _ = run(capsys, folder / "runs.csv")
    assert "scores: columns 'c', 'noise'" in out


def test_steps_from_zero_are_said(table, capsys):
    frame, folder = table
    frame.assign(step=frame["step"] - 1).to_csv(folder / "runs.csv", index=False)
    code, out, _ = run(capsys, folder / "runs.csv")
    assert code == 0
    assert "steps are counted from 0" in out


def test_stop_reasons_and_missing_outcomes(table, capsys):
    frame, folder = table
    cut = frame["run_id"] < 9
    frame["stop_reason"] = np.where(frame["run_id"] < 3, "tool_error", "max_steps")
    frame["solved"] = frame["solved"].astype(float).mask(cut)
    frame.to_csv(folder / "runs.csv", index=False)
    _, out, _ = run(capsys, folder / "runs.csv")
    assert "stop reason: column 'stop_reason'" in out
    assert "Left out: 3 runs (no outcome; stopped by tool_error" in " ".join(out.split())
    assert "6 of 57 runs not observed" in out


def test_a_column_of_one_value_is_said_to_be_left_out(table, capsys):
    frame, folder = table
    frame.assign(certain=0.25, flag=1.0, temperature=0.7).to_csv(folder / "runs.csv", index=False)
    out = run(capsys, folder / "runs.csv")[1]
    assert "Left out: column 'certain' has one value, 0.25; name it with --score" in out
    assert out.count("has one value") == 1
    assert "has one value" not in run(capsys, folder / "runs.csv", "--score", "confidence")[1]


def test_bundled_data(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert "no table was given" in out
    assert "engine: recalibrate; as given" in out


def test_clusters(table, capsys):
    frame, folder = table
    frame.assign(task=frame["run_id"] // 3).to_csv(folder / "runs.csv", index=False)
    _, out, _ = run(capsys, folder / "runs.csv", "--group", "task")
    assert "by cluster of runs" in " ".join(out.split())  # however lines are broken


def broken_gzip(path):
    path.write_bytes(gzip.compress(b"run_id,step\n1,1\n" * 200)[:40])


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (lambda f: f, ["--score", "confidnce"], "--score: no column named 'confidnce'; did you"),
        (lambda f: f, ["--id", "x"], "--id: no column named 'x'"),
        (lambda f: f.drop(columns="solved"), [], "no column has a usual name for the outcome"),
        (lambda f: f.drop(columns="confidence").drop(columns="noise"), [], "looks like a score"),
        (lambda f: f.assign(solved=1), [], "all 60 observed runs are successes"),
        (lambda f: f.assign(step=f["step"] + 16), [], "pass --first-step 17"),
        (lambda f: pd.concat([f, f]), [], "more than once"),
        (
            lambda f: f.assign(confidence="high"),
            ["--score", "confidence"],
            "'high' in column 'confidence' is not a number",
        ),
        (lambda f: f.iloc[:0], [], "no rows"),
        (
            lambda f: f,
            ["--out", "/nonexistent/r.html"],
            "--out: the folder /nonexistent does not exist",
        ),
        (lambda f: f, ["--out", "."], "--out: . is a folder"),
        (
            lambda f: f.assign(solved="", stop_reason="parse_error"),
            [],
            "got 0; left out: 60 runs (no outcome; stopped by parse_error",
        ),
    ],
)
def test_bad_tables_end_with_one_sentence(table, capsys, change, arguments, message):
    frame, folder = table
    change(frame).to_csv(folder / "runs.csv", index=False)
    code, _, err = run(capsys, folder / "runs.csv", *arguments)
    assert code == 2
    assert message in err
    assert err.startswith("trajscore: ")
    assert len(err.strip().splitlines()) == 1


def test_one_sentence_names_all_that_is_to_be_said(table, capsys):
    frame, folder = table
    words = frame["solved"].map({1: "all passed", 0: "failed"})
    words = words.mask(frame["run_id"] == 0, "Passed")
    frame = (
        frame.drop(columns="solved")
        .assign(verdict=words, agent="gpt")
        .rename(columns={"run_id": "attempt"})
    )
    frame.to_csv(folder / "runs.csv", index=False)
    code, _, err = run(capsys, folder / "runs.csv")
    assert code == 2
    assert re.search("for the run id .*; name it with --id.* for the outcome", err)
    option = re.search(r"--outcome verdict --map '(.*)'", err)[1]
    assert sorted(option.split(",")) == ["Passed=1", "all passed=?", "failed=0"]
    named = ["--id", "attempt", "--outcome", "verdict", "--map", option.replace("?", "1")]
    assert run(capsys, folder / "runs.csv", *named)[0] == 0


def test_nothing_is_said_of_the_steps_of_an_empty_table(table, capsys):
    frame, folder = table
    frame.iloc[:0].to_csv(folder / "runs.csv", index=False)
    assert "steps are counted" not in run(capsys, folder / "runs.csv", "--score", "confidence")[1]


def test_a_page_that_cannot_be_written_is_refused_first(table, capsys):
    frame, folder = table
    frame.to_csv(folder / "runs.csv", index=False)
    _, out, _ = run(capsys, folder / "runs.csv", "--out", folder / "none" / "r.html")
    assert out == ""


def test_a_page_is_hinted_at_where_none_was_written(table, capsys):
    frame, folder = table
    path = folder / "runs.csv"
    frame.to_csv(path, index=False)
    asked = ["report", str(path), "--outcome", "solved", "--resamples", "20"]
    for more, hinted in (([], True), (["--out", str(folder / "r.html")], False)):
        assert main([*asked, *more]) == 0
        out = capsys.readouterr().out
        assert "All numbers: --verbose" in out
        assert ("a page: --out" in out) == hinted


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--monitor", "--known-share", "2"], "--known-share must lie strictly between 0 and 1"),
        (["--monitor", "--splits", "0"], "--splits must be a whole number"),
    ],
)
def test_errors_of_values_begin_with_the_option(table, capsys, options, match):
    frame, folder = table
    frame.to_csv(folder / "runs.csv", index=False)
    code, _, err = run(capsys, folder / "runs.csv", *options)
    assert code == 2
    assert err.startswith(f"trajscore: {match}")


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--jobs", "0", "is not a number of threads, such as 2, or -1 for all cores"),
        ("--jobs", "two", "is not a number of threads, such as 2, or -1 for all cores"),
        ("--seed", "-1", "is not a whole number from 0 to 4294967295"),
        ("--seed", "4294967296", "is not a whole number from 0 to 4294967295"),
        ("--seed", "None", "is not a whole number from 0 to 4294967295"),
        ("--resamples", "1.5", "is not a whole number"),
        ("--known-share", "half", "is not a number"),
        ("--family", "beta(0,0)", "the beta family needs a > 0 and b > 0, got (0.0, 0.0); for the"),
    ],
)
def test_values_that_an_option_does_not_take(option, value, problem, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["report", option, value])
    assert stop.value.code == 2
    value = "" if option == "--family" else f"{value!r} "
    err = capsys.readouterr().err
    assert err.startswith(f"trajscore: argument {option}: {value}{problem}")
    assert err.endswith("; see trajscore report --help\n")
    assert err.count("\n") == 1


def test_errors_name_the_options_of_the_command(table, capsys):
    frame, folder = table
    frame.to_csv(folder / "runs.csv", index=False)
    assert main(["report", str(folder / "runs.csv"), "--resamples", "0"]) == 2
    assert "trajscore: --resamples must be a whole number" in capsys.readouterr().err


def test_bad_files(tmp_path, capsys):
    assert "none.csv does not exist" in run(capsys, tmp_path / "none.csv")[2]
    (tmp_path / "x.txt").write_text("a")
    assert "expected the ending" in run(capsys, tmp_path / "x.txt")[2]
    (tmp_path / "empty.csv").write_text("")
    assert "empty.csv is empty" in run(capsys, tmp_path / "empty.csv")[2]
    broken_gzip(tmp_path / "cut.csv.gz")
    assert "cannot be read" in run(capsys, tmp_path / "cut.csv.gz")[2]


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("beta(2)", "'beta(2)' is not a score family; use 'log', 'log(clip)', 'brier' or 'beta("),
        ("logg", "'logg' is not a score family"),
        ("beta(2,x)", "is not a score family"),
        ("beta(0,0)", "the beta family needs a > 0 and b > 0"),
    ],
)
def test_bad_family(family, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["report", "--family", family])
    assert stop.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_report_with_monitoring(tmp_path, capsys):
    X, y = make_trajectories(250, lengths=(1, 4), random_state=0, return_X_y=True)
    frame = X.to_frame(id="run_id", step="step", value="confidence")
    frame.assign(solved=np.repeat(y, X.lengths)).to_csv(tmp_path / "runs.csv", index=False)
    page = tmp_path / "report.html"
    options = ["--known-share", 0.5, "--splits", 2]
    code, out, _ = run(capsys, tmp_path / "runs.csv", "--monitor", *options, "--out", page)
    assert code == 0
    assert "Stopping failing runs early" in out
    assert "flags no run" not in out
    few = frame.assign(solved=np.repeat(y, X.lengths))[frame["run_id"].isin(X.ids[:20])]
    few.to_csv(tmp_path / "few.csv", index=False)
    _, out, _ = run(capsys, tmp_path / "few.csv", "--monitor", "--splits", 2)
    assert "flags no run at alpha = 0.05" in out
    assert "too few successes are held out to set a threshold (alpha = 0.05 needs 19)" in out
    code, _, err = run(capsys, tmp_path / "runs.csv", *options)
    assert code != 0
    assert "--known-share and --splits need --monitor" in err
    assert "Stop failing runs early?" in page.read_text()


def test_a_column_of_tasks_makes_clusters(table, capsys):
    frame, folder = table
    frame.assign(task_id=frame["run_id"] // 3).to_csv(folder / "runs.csv", index=False)
    _, out, _ = run(capsys, folder / "runs.csv")
    assert "20 clusters of runs by 'task_id'" in out
    assert "by cluster of runs" in " ".join(out.split())  # however lines are broken
    _, out, _ = run(capsys, folder / "runs.csv", "--group", "run_id")
    assert "60 clusters of runs by 'run_id'" in out
    for no_cluster in (1, frame["step"]):
        frame.assign(task=no_cluster).to_csv(folder / "runs.csv", index=False)
        code, out, _ = run(capsys, folder / "runs.csv")
        assert code == 0
        assert "clusters" not in out


def test_what_gives_the_outcome_away_is_no_guess(table, capsys):
    frame, folder = table
    frame = frame.rename(columns={"confidence": "c"})
    frame["final_reward"] = frame["solved"] * 0.7
    last = ~frame["run_id"].duplicated(keep="last")
    frame["state"] = frame["noise"].mask(last, 0.1 + 0.5 * frame["solved"])
    frame.to_csv(folder / "runs.csv", index=False)
    _, out, _ = run(capsys, folder / "runs.csv")
    assert "scores: columns 'c', 'noise'" in out
    assert "Left out: column 'final_reward' is named like an outcome" in out
    assert "Left out: column 'state' separates successes from failures" in out
    _, out, _ = run(capsys, folder / "runs.csv", "--score", "state")
    assert "note: state: separates successes from failures" in out
    frame.drop(columns=["c", "noise"]).to_csv(folder / "runs.csv", index=False)
    code, _, err = run(capsys, folder / "runs.csv")
    assert code == 2
    assert "looks like a score may leak the outcome ('final_reward': is named like" in err


def test_missing_values_and_unobserved_runs_as_asked(table, capsys):
    frame, folder = table
    frame["solved"] = frame["solved"].astype(float).mask(frame["run_id"] < 5)
    frame["confidence"] = frame["confidence"].mask((frame["step"] == 2) & (frame["run_id"] < 20))
    frame.to_csv(folder / "runs.csv", index=False)
    chosen = ("--score", "confidence", "--score", "noise")
    _, out, _ = run(capsys, folder / "runs.csv", *chosen, "--missing", "ffill")
    out = " ".join(out.split())  # however lines are broken
    assert "60 runs; the 5 without an observed outcome" in out
    assert "of its values were missing; the value before was used" in out
    _, out, _ = run(capsys, folder / "runs.csv", *chosen, "--censored", "drop")
    assert "(a value of confidence is missing)" in " ".join(out.split())
    assert "5 runs (the outcome was not observed)" in " ".join(out.split())


@pytest.mark.parametrize(("ending", "start"), [("json", '{\n "format"'), ("md", "# ")])
def test_out_goes_by_its_ending(table, capsys, ending, start):
    frame, folder = table
    frame.to_csv(folder / "runs.csv", index=False)
    out = folder / f"report.{ending}"
    code, said, _ = run(capsys, folder / "runs.csv", "--out", out)
    assert code == 0
    assert f"wrote {out}" in said
    assert out.read_text().startswith(start)
    if ending == "json":
        source = json.loads(out.read_text())["source"]
        assert source["name"] == str(folder / "runs.csv")
        assert source["command"].startswith(f"trajscore report {folder / 'runs.csv'} --out ")
        assert source["guesses"].startswith("guessed run id: column 'run_id'")


def test_an_ending_that_is_not_known_is_refused_before_the_work(table, capsys):
    _, folder = table
    code, out, err = run(capsys, folder / "absent.csv", "--out", folder / "report.pdf")
    assert (code, out) == (2, "")
    assert "report.pdf must end in one of .html, .json, .md, which says what is written" in err


def test_one_screen_unless_all_is_asked_for(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["report", "--resamples", "20"]) == 0
    short = capsys.readouterr().out
    assert len(short.splitlines()[2:]) <= 24  # below what says what was judged
    assert max(map(len, short.splitlines())) <= 80
    assert "material  recalibrate" in short
    assert "AURC" not in short
    assert "AURC" in run(capsys)[1]


def test_groups_of_a_table(table, capsys):
    frame, folder = table
    frame["model"] = np.where(frame["run_id"] % 2, "small", "large")
    frame.to_csv(folder / "runs.csv", index=False)
    path = folder / "runs.csv"
    code, _, _ = run(capsys, path, "--by", "model", "--out", folder / "r.json")
    assert code == 0
    rows = json.loads((folder / "r.json").read_text())["by"]
    assert {row["group"] for row in rows} == {"small", "large"}
    assert main(["report", str(path), "--by", "model", "--resamples", "20"]) == 0
    out = capsys.readouterr().out
    said = " ".join(out.split())
    assert (
        "By model, the 2 groups are not shown to differ in how well confidence works (p = " in said
    )
    assert re.search(r"runs.csv \u00b7 60 runs \u00b7 .*steps", said)
    assert (
        "--by: no column named 'modle'; did you mean 'model'"
        in run(capsys, path, "--by", "modle")[2]
    )


def test_the_defaults_of_the_command_are_those_of_evaluate():
    command = vars(add_parser(ArgumentParser().add_subparsers()).parse_args([]))
    defaults = {name: one.default for name, one in inspect.signature(evaluate).parameters.items()}
    for name in ("weights", "horizon", "phi", "calibrator", "censored", "missing", "end"):
        assert command[name] == defaults[name]
    assert command["family"] == LogScore()
    draws = IntervalOptions()
    assert command["n_resamples"] == draws.n_resamples
    assert command["random_state"] == draws.random_state
    assert command["n_jobs"] == -1


def test_words_are_those_of_the_command_line(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["trajscore", "report", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert "usage: trajscore report" in capsys.readouterr().out


def test_help_has_defaults_and_examples(capsys):
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for part in ("(early)", "(weighted)", "(1000)", "examples: trajscore report runs.csv"):
        assert part in text
