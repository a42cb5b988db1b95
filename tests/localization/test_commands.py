"""``trajscore locate``, and the bundled runs with labels of their steps."""

import json

import numpy as np
import pandas as pd
import pytest

from trajscore import evaluate
from trajscore.cli.main import main
from trajscore.cli.report import judge
from trajscore.core.errors import TooFewRunsError
from trajscore.datasets import load_who_and_when
from trajscore.localization import FirstErrorLocator, FirstErrorWindow
from trajscore.report import EvaluationOptions


def test_the_bundled_labels_are_steps_of_their_runs():
    data = load_who_and_when()
    X, first = load_who_and_when(return_X_y=True)
    assert data.data == X
    assert X.shape == (184, 130, 7)
    assert len(X.cells) == 4092
    assert ((first >= 1) & (first <= X.lengths)).all()
    assert X.meta["question"].nunique() == 184 - 45
    for text in ("4,092 steps", "f4d2b6da", "MIT", "who_and_when_LICENSE.txt"):
        assert text in data.DESCR


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Where the same runs are as a log and as a table, and their first wrong steps."""
    rng = np.random.default_rng(0)
    table, lines, labels = [], [], {}
    for k, n in enumerate(rng.integers(1, 8, 120).tolist()):
        first = (int(np.argmax(np.append(rng.random(n) < 0.2, True))) + 1) % (n + 1)
        labels[f"r{k}"] = first if k else -1  # the first run is not labelled
        of_run = {"task": f"t{k // 2}", "solved": int(not first or k % 9 == 0)}
        of_run["first"] = first if k else None
        messages = [{"role": "user", "content": "Go"}]
        for t in range(1, n + 1):
            step = {"a": 0.8 - 0.6 * (t == first) + 0.2 * rng.random(), "b": rng.random()}
            human = "wrong" if t == first else "right"  # people stop at the first
            step["human"] = human if k and not 0 < first < t else None
            table.append({"run": f"r{k}", "step": t} | of_run | step)
            messages += [{"role": "assistant", "content": str(t)} | step]
            messages += [{"role": "user", "content": "And?"}][: n - t]
        lines.append(json.dumps({"id": f"r{k}", "messages": messages} | of_run))
    folder = tmp_path_factory.mktemp("runs")
    (folder / "runs.jsonl").write_text("\n".join(lines))
    pd.DataFrame(table).to_csv(folder / "runs.csv", index=False)
    return folder / "runs", np.array([labels[name] for name in sorted(labels)])


@pytest.fixture(scope="module")
def report(runs):
    return judge(f"{runs[0]}.jsonl --score a --score b --step-label human")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("label", ["--first-error=first", "--step-label=human"])
def test_a_table_says_where_each_new_run_went_wrong(runs, report, kind, label, tmp_path, capsys):
    file = f"{runs[0]}.{kind}"
    out = str(tmp_path / "steps.csv")
    assert main(["locate", file, file, "--score=a", "--score=b", "--out", out, label]) == 0
    assert f"119 labelled runs, {(runs[1] > 0).sum()} with a wrong" in capsys.readouterr().out
    X, groups = report.inputs_of("all together"), report.runs.groups
    held = FirstErrorLocator().fit_transform(X, runs[1], groups)
    window = FirstErrorWindow().fit(held, runs[1], groups)
    P = FirstErrorLocator().fit(X, runs[1]).transform(X)
    table = pd.read_csv(out).set_index("run").loc[X.ids]
    assert table["step"].tolist() == [run.argmax() + 1 for run in P]
    np.testing.assert_allclose(table["probability"], [run.max() for run in P], rtol=1e-9)
    np.testing.assert_allclose(table["probability_of_none"], [1 - run.sum() for run in P], 1e-9)
    inside = [np.flatnonzero(run) + 1 for run in window.transform(P)]
    for row, steps in zip(table.itertuples(), inside, strict=True):
        assert (row.window_start, row.window_end) == (steps[0], steps[-1])


@pytest.mark.parametrize("label", ["--first-error=first", "--step-label=human"])
def test_rows_of_users_move_no_label(runs, label, tmp_path, capsys):
    table = pd.read_csv(f"{runs[0]}.csv").assign(role="assistant")
    table[["step", "first"]] *= 2  # a user speaks before each step, and is wrong in run r1
    table["first"] = table["first"].where(table["run"] != "r1", 1)
    users = table.assign(step=table["step"] - 1, role="user", human="")
    pd.concat([users, table]).to_csv(file := f"{tmp_path}/roles.csv", index=False)
    assert main(["locate", file, file, "--score=a", label, f"--out={tmp_path}/steps.csv"]) == 0
    steps = pd.read_csv(f"{tmp_path}/steps.csv").set_index("run")
    truth = table.groupby("run")["first"].first().loc[lambda first: first > 1]
    assert (steps["step"].loc[truth.index] == truth).mean() > 0.9
    assert (steps[["window_start", "window_end"]] % 2 == 0).all(axis=None)
    assert ("step 1 of run 'r1'" in capsys.readouterr().err) == ("first" in label)


def test_missing_values_are_counted(runs, tmp_path, capsys):
    table = pd.read_csv(f"{runs[0]}.csv")
    table["b"] = table["b"].mask(table["step"] == 2)
    table.to_csv(gaps := f"{tmp_path}/gaps.csv", index=False)
    words = ["--score=a", "--score=b", "--first-error=first", f"--out={tmp_path}/steps.csv"]
    assert main(["locate", f"{runs[0]}.csv", gaps, *words]) == 0
    said = capsys.readouterr().out
    assert f"{gaps}: {table['b'].isna().sum()} missing values, taken as the mean" in said
    assert said.count("missing value") == 1
    assert len(pd.read_csv(tmp_path / "steps.csv")) == 120


def test_a_report_says_which_step_failed(runs, report):
    found = report.first_errors
    task = report.runs.groups
    X = report.inputs_of("a")
    P = FirstErrorLocator().fit_transform(X, runs[1], task)
    inside = FirstErrorWindow().fit(P, runs[1], task).transform(P)
    assert found.best == "a"
    assert [*found.windows] == np.flatnonzero(runs[1]).tolist()
    for row, (step, start, end) in found.windows.items():
        assert step == P[row].argmax() + 1
        assert (np.flatnonzero(inside[row]) + 1).tolist() == list(range(start, end + 1))
    row = found.table.loc["a"]
    said = f"{row['difference']:.2f} nats [{row['low']:.2f}, {row['high']:.2f}] better"
    page = report.to_html()
    for text in (report.to_text(), report.to_markdown(), report.to_json(), page):
        assert said in " ".join(text.split())
        assert "in 90 of 100 runs with a wrong step" in " ".join(text.split())
    assert "steps in a window" in report.to_text(verbose=True)
    assert json.loads(report.to_json())["locators"][0]["locator"] == found.table.index[0]
    marked = page.count("These are grey above")  # runs that are not said to have no wrong step
    assert 0 < marked < 60
    assert page.count('class="band window"') - 2 * marked in (0, 1)  # and the run to read first
    assert 'id="steps"' in page


def test_without_labels_or_without_a_gain_nothing_is_claimed(runs, report):
    for name, labels, is_told in (("a", None, False), ("b", runs[1], True)):
        options = EvaluationOptions(first_error=labels, together=False)
        page = evaluate(report.inputs_of(name), report.runs.y, options=options).to_html()
        assert ("No signal is shown to find it" in page) == is_told
        assert ("Which step failed" in page) == is_told
        assert 'class="band window"' not in page
        assert ("first wrong" in page) == is_told


def test_labels_of_python_go_with_their_rows(runs, report):
    X = report.inputs_of("a")
    y = report.runs.y
    few = np.where(np.cumsum(runs[1] > 0) <= 12, runs[1], -1)
    for labels, part in (
        (runs[1], f"{(runs[1] > 0).sum()} of 119 labelled runs"),
        (few, "label about 30"),
        (np.full(120, 99), "and the run has"),
        (np.zeros(120), "give runs in which"),
    ):
        try:
            options = EvaluationOptions(first_error=labels[::-1], together=False)
            report = evaluate(X[::-1], y[::-1], options=options)
            if labels.any():
                np.testing.assert_array_equal(report.first_errors.labels, labels)
            text = " ".join(" ".join([report.to_text(), *report.notes]).split())
        except ValueError as error:
            text = str(error)
        assert part in text


@pytest.mark.parametrize(
    "part", ["first_errors.compare_locators", "combined.CombinedForecaster.held_out"]
)
def test_only_too_few_runs_are_noted_and_no_fault_is_hidden(runs, report, part, monkeypatch):
    X = report.inputs_of("a")
    labels = EvaluationOptions(first_error=runs[1])
    for error, is_noted in ((TooFewRunsError("too few"), True), (ValueError("a fault"), False)):

        def broken(*_, error=error, **__):
            raise error

        monkeypatch.setattr(f"trajscore.evaluation.{part}", broken)
        if is_noted:
            notes = " ".join(evaluate(X, report.runs.y, options=labels).notes)
            assert "; too few" in notes
            continue
        with pytest.raises(ValueError, match="a fault"):
            evaluate(X, report.runs.y, options=labels)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("locate .csv --score b --first-error first", 0, "do not show that the signals"),
        ("locate .csv --score a", 2, "--first-error and --step-label is required"),
        ("locate .csv --score a --first-error frst", 2, "did you mean 'first'?"),
        ("locate .jsonl --score a --first-error human", 2, "field 'human' must be numbers"),
        ("report .csv --score a --step-label task", 2, "write right, neutral or wrong"),
        ("report .jsonl --score a --step-label huma", 2, "field 'huma'"),
        ("report .jsonl --score c --step-label human", 2, "no predictor named 'c'"),
        ("report .jsonl --first-error first", 2, "--step-label"),  # TRACER's steps are users', too
    ],
)
def test_what_cannot_be_located_is_said(runs, words, code, text, tmp_path, capsys):
    command, ending, *rest = words.split()
    files = [f"{runs[0]}{ending}"]
    if command == "locate":
        files += [*files, "--out", str(tmp_path / "steps.csv")]
    assert main([command, *files, *rest]) == code
    assert text in "".join(capsys.readouterr())
