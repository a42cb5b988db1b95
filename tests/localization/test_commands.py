"""``trajscore locate``, and the bundled runs with labels of their steps."""

import json

import numpy as np
import pandas as pd
import pytest

from trajscore import evaluate
from trajscore.cli.main import main
from trajscore.cli.report import judge
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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Labelled runs, with the first wrong step, and verdicts of people on each step; and others."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, first = (part[:90] for part in load_who_and_when(return_X_y=True))
    first = np.where(rng.random(len(X)) < 0.2, 0, first)
    frame = X.to_frame()
    frame["task"] = np.repeat(X.meta["question"].to_numpy(), X.lengths)
    frame["first_wrong"] = np.repeat(first, X.lengths)
    frame["verdict"] = np.where(frame["step"] == frame["first_wrong"], -1, rng.integers(0, 2))
    frame.loc[frame["run"] == X.ids[0], ["first_wrong", "verdict"]] = np.nan
    frame.to_csv("labelled.csv", index=False)
    X[:40].to_frame().to_csv("new.csv", index=False)
    return X, np.where(X.ids == X.ids[0], -1, first)


@pytest.mark.parametrize("label", ["--first-error first_wrong", "--step-label verdict"])
def test_a_table_says_where_each_new_run_went_wrong(folder, label, capsys):
    words = "--score code --score orchestrator"
    assert main(f"locate labelled.csv new.csv {words} {label} --out steps.csv".split()) == 0
    out = capsys.readouterr().out
    X, first = folder
    X = X[["code", "orchestrator"]]
    task = X.meta["question"].to_numpy()
    assert f"89 labelled runs, {(first > 0).sum()} with a wrong step; out of fold " in out
    P = FirstErrorLocator().fit_transform(X, first, task)
    window = FirstErrorWindow().fit(P, first, task)
    P = FirstErrorLocator().fit(X, first).transform(X[:40])
    table = pd.read_csv("steps.csv")
    assert table["run"].tolist() == P.ids.tolist()
    assert table["step"].tolist() == [run.argmax() + 1 for run in P]
    np.testing.assert_allclose(table["probability"], [run.max() for run in P], rtol=1e-9)
    np.testing.assert_allclose(table["probability_of_none"], [1 - run.sum() for run in P], 1e-9)
    inside = [np.flatnonzero(run) + 1 for run in window.transform(P)]
    for row, steps in zip(table.itertuples(), inside, strict=True):
        assert (row.window_start, row.window_end) == (steps[0], steps[-1])


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("--score noise --first-error first_wrong", 0, "do not show that the signals"),
        ("--score code", 2, "--first-error and --step-label is required"),
        ("--score code --first-error first", 2, "did you mean 'first_wrong'?"),
        ("--score code --first-error log_chars", 2, "first_error is"),
        ("--score code --step-label run", 2, "write right, neutral or wrong"),
    ],
)
def test_what_cannot_be_located_is_said(folder, words, code, text, capsys):
    for name in ("labelled.csv", "new.csv"):
        frame = pd.read_csv(name)
        noise = np.random.default_rng(1).random(len(frame))
        frame.assign(noise=noise).to_csv(name, index=False)
    try:
        ended = main(["locate", "labelled.csv", "new.csv", *words.split(), "--out=s.csv"])
    except SystemExit as end:
        ended = end.code
    assert ended == code
    assert text in "".join(capsys.readouterr())


# ------------------------------------------------------------------------- reports, and logs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Where the same runs are as a log and as a table, and their first wrong steps."""
    rng = np.random.default_rng(0)
    table, lines, first = [], [], {}
    for k, n in enumerate(rng.integers(1, 8, 120).tolist()):
        wrong = np.append(rng.random(n) < 0.2, True)
        f = (int(np.argmax(wrong)) + 1) % (n + 1)
        first[f"r{k}"] = f
        of_run = {"task": f"t{k // 2}", "solved": int(not f or k % 9 == 0), "first": f}
        messages = [{"role": "user", "content": "Go"}]
        for t in range(1, n + 1):
            human = "wrong" if t == f else "right"
            step = {"a": 0.8 - 0.6 * (t == f) + 0.2 * rng.random(), "b": rng.random()}
            step["human"] = None if 0 < f < t else human  # people stop at the first
            table.append({"run": f"r{k}", "step": t} | of_run | step)
            messages += [{"role": "assistant", "content": str(t)} | step]
            messages += [{"role": "user", "content": "And?"}][: n - t]
        lines.append(json.dumps({"id": f"r{k}", "messages": messages} | of_run))
    folder = tmp_path_factory.mktemp("runs")
    (folder / "runs.jsonl").write_text("\n".join(lines))
    pd.DataFrame(table).to_csv(folder / "runs.csv", index=False)
    return folder / "runs", np.array([first[name] for name in sorted(first)])


@pytest.fixture(scope="module")
def report(runs):
    return judge(f"{runs[0]}.jsonl --score a --score b --step-label human")


@pytest.mark.parametrize(
    "words",
    [".csv --first-error first", ".csv --step-label human", ".jsonl --first-error first",
     ".jsonl --step-label human"],
)  # fmt: skip
def test_tables_and_logs_of_labels_say_the_same(runs, report, words, tmp_path):
    file, *label = f"{runs[0]}{words}".split()
    out = str(tmp_path / "steps.csv")
    assert main(["locate", file, file, "--score=a", "--score=b", "--out", out, *label]) == 0
    X = report.inputs_of("all together")
    P = FirstErrorLocator().fit(X, runs[1]).transform(X)
    table = pd.read_csv(out).set_index("run").loc[X.ids]
    np.testing.assert_allclose(table["probability_of_none"], [1 - p.sum() for p in P], rtol=1e-9)


def test_a_report_says_which_step_failed(runs, report):
    found = report.first_errors
    task = report.runs.groups
    X = report.inputs_of("a")
    P = FirstErrorLocator().fit_transform(X, runs[1], task)
    inside = FirstErrorWindow().fit(P, runs[1], task).transform(P)
    assert found.best == "a"
    for run, window, (step, start, end) in zip(P, inside, found.windows, strict=True):
        assert step == run.argmax() + 1
        assert (np.flatnonzero(window) + 1).tolist() == list(range(start, end + 1))
    row = found.table.loc["a"]
    said = f"{row['difference']:.2f} nats [{row['low']:.2f}, {row['high']:.2f}] better"
    page = report.to_html()
    for text in (report.to_text(), report.to_markdown(), report.to_json(), page):
        assert said in " ".join(text.split())
        assert "in 90 of 100 runs with a wrong step" in " ".join(text.split())
    assert "steps in a window" in report.to_text(verbose=True)
    assert json.loads(report.to_json())["locators"][0]["locator"] == found.table.index[0]
    assert page.count('class="band window"') == 2 * 60 + 1
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
        (runs[1], f"{(runs[1] > 0).sum()} of 120 labelled runs"),
        (few, "label about 30"),
        (np.full(120, 99), "and the run has"),
        (np.zeros(120), "give runs in which"),
    ):
        try:
            options = EvaluationOptions(first_error=labels[::-1], together=False)
            report = evaluate(X[::-1], y[::-1], options=options)
            np.testing.assert_array_equal(report.first_errors.labels, labels)
            text = " ".join(report.to_text().split())
        except ValueError as error:
            text = str(error)
        assert part in text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (".jsonl --score a --step-label huma", "field 'huma'"),
        (".jsonl --score c --step-label human", "no predictor named 'c'"),
        (".jsonl --step-label content", "field 'content'"),
        (".jsonl --first-error first", "--step-label"),  # steps of TRACER are users', too
        (".csv --score a --step-label task", "write right, neutral or wrong"),
        (".csv --score a --first-error frst", "did you mean 'first'?"),
    ],
)
def test_labels_that_cannot_be_read_are_said(runs, words, text, capsys):
    assert main(["report", *f"{runs[0]}{words}".split()]) == 2
    assert text in capsys.readouterr().err
