"""``trajscore fit``: from a table or a log to a monitor, or to forecasts of new runs."""

import ast
import json
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from trajscore import DensityRatioEProcess, evaluate, trusted_types
from trajscore.cli import inputs
from trajscore.cli.main import HELP, main
from trajscore.cli.report import JUDGING, judge
from trajscore.datasets import make_trajectories
from trajscore.integrations import Guard
from trajscore.monitoring import Conformal, split_report
from trajscore.report import EvaluationOptions

skops = pytest.importorskip("skops.io")
JUDGED = "--censored=drop --calibrator=platt --weights=uniform --horizon=6 --missing=ffill"
WORDS = f"--score=judge --group=task {JUDGED}"
X, Y = make_trajectories(300, lengths=(1, 6), random_state=0, return_X_y=True)


def loaded(path):
    return skops.load(path, trusted=skops.get_untrusted_types(file=path))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = X.to_frame(id="run_id", step="step", value="judge")
    frame["solved"] = np.repeat(Y, X.lengths)
    frame["noise"] = np.random.default_rng(0).random(len(frame))
    frame["task"] = frame["run_id"] // 2
    frame.to_csv("runs.csv", index=False)
    return tmp_path


@pytest.fixture
def fit(run):
    return lambda words: run(f"fit {words}")


def test_it_is_the_process_of_python(folder, fit, monitored):
    words = "runs.csv --score judge --group run_id --alpha 0.3 --alpha 0.1 --out p.skops"
    code, out, err = fit(words)
    assert code == 0
    assert all(line.startswith("runs.csv: ") for line in err.splitlines())
    assert "300 of 300 runs" in out
    process = DensityRatioEProcess(alpha=[0.3, 0.1]).fit(X, Y, groups=X.ids)
    assert loaded("p.skops").thresholds_.tolist() == process.thresholds_.tolist()
    table = split_report(process, X, Y, groups=X.ids.astype(str), n_splits=10)
    for alpha, row in table.iterrows():
        assert (
            f"alpha = {alpha:g}: flagged {row.power_before_end:.0%} of failures before their last "
            f"step, which saves {row.steps_saved:.0%} of their steps ({row.power:.0%} with their "
            f"last step), and {row.false_alarm_rate:.0%} of successes (95% interval "
        ) in out
    assert "on average over sets of known runs" in out
    assert "--guarantee confident: with 90% confidence for this set; needs 24 successes" in out
    # the line that it says to send
    line = out.partition("send lines such as ")[2].splitlines()[0]
    assert monitored("p.skops", [line])[1][0]["step"] == 1
    assert "--threshold conformal" in fit(f"{words} --end-worth 0.5 --threshold ville")[2]
    assert fit(f"{words} --end-worth 0.5")[0] == 0
    process.set_params(threshold=Conformal(end_worth=0.5)).fit(X, Y, groups=X.ids)
    assert loaded("p.skops").thresholds_.tolist() == process.thresholds_.tolist()


def test_a_table_without_outcomes_is_read_once(folder, fit, monkeypatch):
    pd.read_csv("runs.csv").drop(columns="solved").to_csv("none.csv", index=False)
    load = Mock(wraps=inputs.load)
    monkeypatch.setattr(inputs, "load", load)
    code, out, _ = fit("none.csv --score judge --group run_id --alpha 0.2 --out p.skops")
    assert code == 0
    assert load.call_count == 1
    process = DensityRatioEProcess(alpha=0.2).fit(X)
    assert f"is below {process.thresholds_.iloc[0]:.3g}" in out
    assert fit("runs.csv --score judge --group run_id --refit p.skops --out q.skops")[0] == 0
    assert loaded("q.skops").promise()[:2] == (0.2, "successes")


def test_several_scores_are_sent_by_name(folder, fit):
    words = "runs.csv --score judge --score noise --alpha 0.2 --end unknown --threshold ville"
    code, out, _ = fit(f"{words} --out p.skops")
    assert code == 0
    line = json.loads(out.partition("send lines such as ")[2].splitlines()[0])
    assert line["score"].keys() == {"judge", "noise"}
    process = loaded("p.skops")
    assert (process.threshold, process.forecaster_.end) == ("ville", None)


def test_bad_input_ends_with_one_sentence(folder, refuses):
    frame = pd.read_csv("runs.csv")
    frame[["run_id", "step", "solved"]].to_csv("no_score.csv", index=False)
    frame.assign(judge=np.nan).to_csv("missing.csv", index=False)
    frame.rename(columns={"noise": "score"}).to_csv("two.csv", index=False)
    cases = [
        ("two.csv --out p.skops", "judge, score; name those by --score"),
        ("runs.csv --out none/p.skops", "--out: the folder none"),
        ("runs.csv --out p.pickle", "must end in .skops"),
        ("runs.csv --score judge --alpha 2 --out p.skops", "alpha"),
        ("none.csv --out p.skops", "none.csv does not exist"),
        ("runs.csv --score solved --out p.skops", "--score names the outcome"),
        ("no_score.csv --out p.skops", "--score"),
        ("missing.csv --score judge --out p.skops", "judge at every step"),
        ("runs.csv --guard --out p.skops", "--guard"),
        ("log.json --guard --score judge --out p.skops", "--score is not used with --guard"),
        ("runs.csv --weights uniform --out p.skops", "--weights is not used without"),
        ("runs.csv --refit p.skops --alpha 0.1 --out p.skops", "--refit takes from its file"),
        ("runs.csv --forecaster judge --alpha 0.1 --out p.skops", "--alpha is not used with"),
        ("runs.csv --forecaster jud --score judge --out p.skops", "'judge'"),
    ]
    refuses(cases, "fit")
    assert not (folder / "p.skops").exists()


@pytest.mark.filterwarnings("default")
def test_too_few_runs_or_tasks_are_said(folder, fit, monitored):
    words = "runs.csv --score judge --alpha 0.3 --out p.skops"
    code, out, err = fit(words)
    assert code == 0
    assert "warning: " not in err
    code, out, err = fit(f"{words} --alpha 0.001")
    assert code == 0
    assert "no run will be flagged" in out
    assert {line.split(": ")[0] for line in err.splitlines()} == {"runs.csv", "warning"}
    assert "alpha = 0.001" in err
    assert "--group" in err  # of each task one success counts
    pd.read_csv("runs.csv").query("run_id < 40").to_csv("few.csv", index=False)
    code, out, _ = fit("few.csv --score judge --group run_id --alpha 0.06 --out p.skops")
    assert code == 0
    assert "alpha = 0.06: four fifths of these runs are too few" in out
    pd.read_csv("runs.csv").query("run_id < 12").to_csv("few.csv", index=False)
    code, out, _ = fit("few.csv --score judge --out p.skops")
    assert code == 0
    assert "alpha = 0.05: no run will be flagged" in out
    code, _, err = monitored("p.skops", [])
    assert (code, "warning: p.skops can flag no run" in err) == (0, True)
    code, out, err = fit("runs.csv --score judge --threshold ville --alpha 1e-9 --out p.skops")
    assert (code, "none of the 300 runs of the fit is flagged at alpha = 1e-09" in err) == (0, True)
    assert "alpha = 1e-09: flagged none of them" in out


def test_runs_that_are_left_out_are_counted(folder, fit):
    frame = pd.read_csv("runs.csv")
    frame.loc[frame["run_id"] < 3, "judge"] = np.nan
    frame.loc[frame["run_id"].between(3, 7), "solved"] = -1
    frame.to_csv("fewer.csv", index=False)
    code, out, _ = fit("fewer.csv --score judge --out p.skops")
    assert code == 0
    assert "292 of 300 runs; 5 without an outcome; 3 with a missing value" in out


def test_a_guard_is_tried_on_runs_that_were_held_out(tmp_path, fit):
    runs = []  # of which every other one fails, with apologies
    for k in range(200):
        says = ["I am sorry, I cannot do that."] * 3 if k % 2 else ["Done."]
        talk = [{"role": "user", "content": "Cancel it."}]
        talk += [{"role": "assistant", "content": text} for text in says]
        runs.append({"id": f"run {k}", "messages": talk, "success": k % 2 == 0})
    log, out = tmp_path / "log.json", tmp_path / "guard.skops"
    log.write_text(json.dumps(runs))
    code, said, _ = fit(f"{log} --guard --alpha 0.1 --out {out}")
    assert code == 0
    assert "200 of 200 runs" in said
    assert "(100% with their last step), and 0% of successes (95% interval 0% to 7%)" in said
    assert Guard.load(out).process_.forecaster_.end == "step"
    assert fit(f"{log} --guard --alpha 0.1 --end unknown --out {out}")[0] == 0
    assert Guard.load(out).process_.forecaster_.end is None
    assert fit(f"{log} --guard --flags success --guarantee confident --out {out}")[0] == 0
    assert "0.05 of the failures, with 90% confidence" in repr(Guard.load(out))
    log.write_text(json.dumps([{**run, "success": None} for run in runs]))
    code, said, _ = fit(f"{log} --guard --alpha 0.3 --out {out}")
    assert code == 0
    assert "no run has an outcome" in said
    assert "promise: at most 0.3 of the runs, on average over sets of known runs" in said
    assert "saves 0.0% of all steps; how many of them fail is not known" in said
    log.write_text(json.dumps(runs))
    assert "at most 0.3 of the successes" in fit(f"{log} --guard --refit {out} --out {out}")[1]


def test_the_code_of_a_report_forecasts_elsewhere_what_the_report_says(folder, capsys):
    sharp = X.with_cells(X.cells**4)
    y = np.where(np.arange(300) % 7, Y, -1)
    frame = pd.read_csv("runs.csv").assign(judge=sharp.cells, solved=np.repeat(y, X.lengths))
    frame.to_csv("runs.csv", index=False)
    assert main(["report", "runs.csv", *WORDS.split(), "--code", "--out", "r.md"]) == 0
    code = "".join(capsys.readouterr().out.split("\n\nwrote")[0].partition("import numpy")[1:])
    assert code in Path("r.md").read_text()
    taken = {name.split()[0] for part in JUDGING for name in HELP["options"][part]}
    assert taken == {word.partition("=")[0] for word in JUDGED.split()}  # a new one is tried, too
    assert "trajscore fit runs.csv --group=task --score=judge --out=stop.skops" in code
    assert main(shlex.split(code.rpartition(": trajscore ")[2])) == 0
    Path("new.py").write_text(f"{code}\nnp.save('p.npy', p)\n")
    subprocess.run([sys.executable, "new.py"], check=True, capture_output=True)
    how = {"groups": X.ids // 2, "censored": "drop", "calibrator": "platt", "weights": "uniform",
           "options": EvaluationOptions(horizon=6, missing="ffill")}  # fmt: skip
    run = ast.literal_eval(code.partition("transform(")[2].partition(")[0]")[0])
    name = code.partition("report.forecaster('")[2].partition("'")[0]
    p = evaluate({"judge": sharp}, y, **how).forecaster(name).transform(run)
    read = skops.load("forecaster.skops", trusted=trusted_types())
    assert np.abs([np.load("p.npy") - p[0], (read.transform(run) - p)[0]]).max() < 1e-12
    frame.rename(columns={"judge": "a'\n\rimport os  #"}).to_csv("odd.csv", index=False)
    assert main(["report", "odd.csv", "--score", "a'\n\rimport os  #", "--code"]) == 0
    code = "".join(capsys.readouterr().out.partition("import numpy")[1:])
    assert "import os" not in [*map(ast.unparse, ast.parse(code).body)]


@pytest.mark.parametrize("name", ["judge", "judge with its history"])
def test_runs_that_go_on_are_forecast(folder, fit, capsys, name):
    assert fit(f"runs.csv {WORDS} --forecaster '{name}' --out f.skops")[0] == 0
    new = X[:9].to_frame(id="run_id", step="step", value="judge")
    new.to_csv("new.csv", index=False)
    gaps = new["step"] == 2
    new.assign(judge=new["judge"].mask(gaps)).to_csv("gaps.csv", index=False)
    assert main(["forecast", "f.skops", "new.csv", "--out", "p.csv"]) == 0
    expected = judge(f"runs.csv {WORDS}").forecaster(name).transform(X[:9]).to_frame()
    assert np.abs(pd.read_csv("p.csv").to_numpy() - expected.to_numpy()).max() < 1e-12
    for words, n_left_out in (("", gaps.sum()), ("--missing ffill", 0)):
        assert main(["forecast", "f.skops", "gaps.csv", "--out", "p.csv", *words.split()]) == 0
        assert (f"{n_left_out} runs left out" in capsys.readouterr().out) == bool(n_left_out)
        assert pd.read_csv("p.csv")["run"].nunique() == 9 - n_left_out


def test_a_log_of_running_runs_is_forecast(folder, fit):
    says = [{"role": "assistant", "content": f"Confidence: {10 * k + 10}%"} for k in range(9)]
    runs = [{"messages": [says[k % 9]] * 2, "success": k % 4 > 0} for k in range(60)]
    Path("log.json").write_text(json.dumps(runs))
    Path("new.json").write_text(json.dumps([{**run, "success": None} for run in runs[:2]]))
    assert fit("log.json --forecaster verbal --out f.skops")[0] == 0
    assert main(["forecast", "f.skops", "new.json", "--out", "p.csv"]) == 0
    p = judge("log.json").forecaster("verbal").transform([[0.1, 0.1], [0.2, 0.2]])
    assert np.abs(pd.read_csv("p.csv")["forecast"] - p.ravel()).max() < 1e-12
    Path("new.json").write_text(json.dumps(runs).replace("Confidence", "Says"))
    assert "fit --guard" in fit("new.json --forecaster 'all together' --out f.skops")[2]
