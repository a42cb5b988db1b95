"""``trajscore fit``: from a table to a monitor."""

import io as streams
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from trajscore import DensityRatioEProcess, PrefixForecaster
from trajscore.cli.fit import _tried
from trajscore.cli.main import main
from trajscore.datasets import make_trajectories
from trajscore.monitoring._persistence import load_process

pytest.importorskip("skops")
X, Y = make_trajectories(300, lengths=(1, 6), random_state=0, return_X_y=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = X.to_frame(id="run_id", step="step", value="judge")
    frame["solved"] = np.repeat(Y, X.lengths)
    frame["noise"] = np.random.default_rng(0).random(len(frame))
    frame["task"] = frame["run_id"] // 2
    frame.to_csv("runs.csv", index=False)
    return tmp_path


def run(capsys, *arguments):
    code = main(["fit", *map(str, arguments)])
    return (code, *capsys.readouterr())


def test_it_is_the_process_of_python(folder, capsys, monkeypatch):
    code, out, err = run(
        capsys, "runs.csv", "--score", "judge", "--group", "run_id", "--alpha", 0.3,
        "--alpha", 0.1, "--out", "p.skops",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "fitted on 300 of 300 runs" in out
    assert "alpha = 0.1: a run is flagged once M, its evidence of failing, is above " in out
    process = DensityRatioEProcess(alpha=[0.3, 0.1]).fit(X, Y, groups=X.ids)
    assert load_process("p.skops").thresholds_.tolist() == process.thresholds_.tolist()
    # the line that it says to send
    line = out.partition("send lines such as ")[2].splitlines()[0]
    stdin = streams.TextIOWrapper(streams.BytesIO(line.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert main(["monitor", "--model", "p.skops"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 1


def test_several_scores_are_sent_by_name(folder, capsys, monkeypatch):
    code, out, _ = run(
        capsys, "runs.csv", "--score", "judge", "--score", "noise", "--out", "p.skops",
        "--alpha", 0.2, "--end", "unknown", "--threshold", "ville",
    )  # fmt: skip
    assert code == 0
    assert '"score": {"judge": 0.552, "noise": 0.637}' in out
    process = load_process("p.skops")
    assert process.threshold == "ville"
    assert isinstance(process.forecaster_, PrefixForecaster)
    assert process.forecaster_.end is None


def test_a_flag_at_the_end_may_be_worth_less(folder, capsys):
    _, out, _ = run(
        capsys, "runs.csv", "--score", "judge", "--group", "run_id", "--alpha", 0.3,
        "--end-worth", 0.5, "--out", "p.skops",
    )  # fmt: skip
    assert "its evidence of failing, times what a flag is worth there, is above " in out
    process = DensityRatioEProcess(alpha=0.3, end_worth=0.5).fit(X, Y, groups=X.ids)
    assert load_process("p.skops").thresholds_.tolist() == process.thresholds_.tolist()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["runs.csv", "--out", "p.skops"],
            "several predictors, judge, noise; name those by --score",
        ),
        (["runs.csv", "--out", "none/p.skops"], "--out: the folder none does not exist"),
        (["runs.csv", "--out", "p.pickle"], "must end in .skops"),
        (["runs.csv", "--score", "judge", "--alpha", "2", "--out", "p.skops"], "alpha"),
        (["none.csv", "--out", "p.skops"], "none.csv does not exist"),
    ],
)
def test_bad_input_ends_with_one_sentence(folder, capsys, arguments, said):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not (folder / "p.skops").exists()


@pytest.mark.filterwarnings("default")
def test_a_warning_of_a_fit_is_a_line(folder, capsys):
    code, _, err = run(capsys, "runs.csv", "--score", "judge", "--alpha", 0.001, "--out", "p.skops")
    assert code == 0
    lines = err.splitlines()
    assert "for threshold='conformal' at alpha = 0.001: no run will be flagged" in lines[0]
    assert all(line.startswith("warning: ") for line in lines)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("levels", "warned"), [([0.3], False), ([0.3, 0.001], True)])
def test_a_level_that_tasks_are_too_few_for_is_said(folder, capsys, levels, warned):
    options = [part for level in levels for part in ("--alpha", level)]
    code, out, err = run(capsys, "runs.csv", "--score", "judge", *options, "--out", "p.skops")
    assert code == 0
    assert ("of each task one success counts" in err) == warned
    assert ("no run will be flagged" in out) == warned


def test_runs_that_are_left_out_are_counted(folder, capsys):
    frame = pd.read_csv("runs.csv")
    frame.loc[frame["run_id"] < 3, "judge"] = np.nan
    frame.loc[frame["run_id"].between(3, 7), "solved"] = -1
    frame.to_csv("fewer.csv", index=False)
    arguments = ["fewer.csv", "--score", "judge", "--out", "p.skops"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0, out
    assert "fitted on 292 of 300 runs; 5 without an outcome; 3 with a missing value" in out


def chats(n, folder):
    """Runs of which every other one fails, with apologies."""
    runs = []
    for k in range(n):
        answers = ["I am sorry, I cannot do that."] * 3 if k % 2 else ["Done."]
        messages = [{"role": "user", "content": "Cancel it."}]
        messages += [{"role": "assistant", "content": text} for text in answers]
        runs.append({"id": f"run {k}", "messages": messages, "success": k % 2 == 0})
    path = folder / f"{n}.json"
    path.write_text(json.dumps(runs))
    return str(path)


def test_a_guard_is_tried_on_runs_that_were_held_out(tmp_path, capsys):
    out = str(tmp_path / "guard.skops")
    assert main(["fit", chats(200, tmp_path), "--guard", "--alpha", "0.1", "--out", out]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "fitted on 200 of 200 runs" in text
    assert "100% of the failures are stopped (half of these by step " in text
    assert "), and 0% of the successes" in text


def test_where_half_of_the_runs_are_too_few_a_guard_is_not_tried(tmp_path, capsys):
    out = str(tmp_path / "guard.skops")
    assert main(["fit", chats(40, tmp_path), "--guard", "--alpha", "0.1", "--out", out]) == 0
    assert "half of these runs are too few to fit a guard" in capsys.readouterr().out


def test_a_guard_takes_no_scores(tmp_path, capsys):
    words = ["--guard", "--score", "judge", "--out", str(tmp_path / "guard.skops")]
    assert main(["fit", chats(40, tmp_path), *words]) == 2
    assert "--score is not used with --guard" in capsys.readouterr().err


class MadeGuard(BaseEstimator):
    """Stops each run that has its number of steps, and says on what it was fitted."""

    fits = ()

    def __init__(self, thresholds=(1.0,)):
        self.thresholds = thresholds

    def fit(self, runs, y, groups=None):
        type(self).fits += ((list(runs), list(y), list(groups)),)
        self.process_ = SimpleNamespace(thresholds_=np.array(self.thresholds))
        return self

    def stopping_steps(self, runs):
        return np.array(runs)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_guard_is_tried_on_the_other_half(monkeypatch, grouped):
    monkeypatch.setattr(MadeGuard, "fits", ())
    y = np.array([0, 1, 0, 1, -1, 0, 1, 0, 1])
    steps = [3, 0, 5, 2, 9, 0, 0, 6, 0]
    groups = np.array(list("aabbcdeff")) if grouped else None
    said = _tried(MadeGuard((np.inf, 1.0)), steps, y, groups)
    assert said == (
        "on runs that were held out, by two guards fitted on half of the runs each: 75% of the "
        "failures are stopped (half of these by step 5), and 25% of the successes"
    )
    known = [0, 1, 2, 3, 5, 6, 7, 8]
    tasks = known if groups is None else groups[known].tolist()
    places = list(zip([steps[k] for k in known], y[known].tolist(), tasks, strict=True))
    halves = [list(zip(*fit, strict=True)) for fit in MadeGuard.fits]
    assert len(halves) == 2
    assert sorted(halves[0] + halves[1]) == sorted(places)
    assert _tried(MadeGuard(), [0] * 9, y, groups).endswith(
        "each: 0% of the failures are stopped, and 0% of the successes"
    )


def test_half_of_the_runs_may_be_too_few_for_a_guard():
    y = np.arange(8) % 2
    said = "not tried on runs that were held out: half of these runs are too few to fit a guard"
    assert _tried(MadeGuard((np.inf, np.inf)), [1] * 8, y, None) == said
    assert _tried(MadeGuard(), [1] * 2, y[:2], None) == said


def test_a_score_that_is_the_outcome_is_refused(folder, capsys):
    code, _, err = run(capsys, "runs.csv", "--score", "solved", "--out", "p.skops")
    assert code == 2
    assert "--score names the outcome itself; name a score that is known while a run goes" in err


@pytest.mark.filterwarnings("default")
def test_a_model_that_flags_no_run_says_so(folder, capsys, monkeypatch):
    few = pd.read_csv("runs.csv").query("run_id < 12")
    few.to_csv("few.csv", index=False)
    code, out, _ = run(capsys, "few.csv", "--score", "judge", "--out", "p.skops")
    assert code == 0
    assert "wrote p.skops, which flags no run; use it with" in out
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(b"")))
    assert main(["monitor", "--model", "p.skops"]) == 0
    assert "warning: p.skops can flag no run: it was fitted on too few" in capsys.readouterr().err
