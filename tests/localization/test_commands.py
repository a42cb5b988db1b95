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
    """A folder with the same runs as a log and as a table, and their first wrong steps."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 8, 120)
    first = [
        1 + int(np.argmax(p < 0.2)) if (p < 0.2).any() else 0 for p in map(rng.random, lengths)
    ]
    rows, lines = [], []
    for k, (n, f) in enumerate(zip(lengths, first, strict=True)):
        messages = [{"role": "user", "content": "Go"}]
        for t in range(1, n + 1):
            bad = float(t == f)
            judges = {"a": round(0.8 - 0.6 * bad + 0.2 * rng.random(), 3), "b": rng.random()}
            human = "wrong" if bad else None if 0 < f < t else "right"  # people stop at the first
            row = {
                "run": f"r{k}",
                "task": f"t{k // 2}",
                "step": t,
                "solved": int(not f or k % 9 == 0),
            }
            rows.append(row | judges | {"human": human, "first": f})
            messages += [{"role": "assistant", "content": str(t), "human": human, **judges}]
            messages += [{"role": "user", "content": "And?"}] * (t < n)
        ends = {"id": row["run"], "task": row["task"], "solved": row["solved"], "first": f}
        lines.append(json.dumps(ends | {"messages": messages}))
    folder = tmp_path_factory.mktemp("runs")
    (folder / "runs.jsonl").write_text("\n".join(lines))
    pd.DataFrame(rows).to_csv(folder / "runs.csv", index=False)
    return folder, np.array(first)[np.argsort([f"r{k}" for k in range(120)])]


@pytest.fixture
def report(runs, monkeypatch):
    monkeypatch.chdir(runs[0])
    return judge("runs.csv --score a --score b --step-label human")


@pytest.mark.parametrize(
    "words", ["runs.csv --first-error first", "runs.jsonl --step-label human",
              "runs.jsonl --first-error first"],
)  # fmt: skip
def test_tables_and_logs_of_labels_say_the_same(runs, report, words):
    other = judge(f"{words} --score a --score b").first_errors
    np.testing.assert_array_equal(report.first_errors.labels, runs[1])
    np.testing.assert_array_equal(other.labels, runs[1])
    pd.testing.assert_frame_equal(other.table, report.first_errors.table)
    np.testing.assert_array_equal(other.windows, report.first_errors.windows)


def test_a_report_says_which_step_failed(runs, report):
    found = report.first_errors
    X = report.inputs_of("a")
    P = FirstErrorLocator().fit_transform(X, runs[1], report.runs.groups)
    window = FirstErrorWindow().fit(P, runs[1], report.runs.groups).transform(P)
    assert found.best == "a"
    inside = [
        (1 + p.argmax(), *(1 + np.flatnonzero(w)[[0, -1]])) for p, w in zip(P, window, strict=True)
    ]
    np.testing.assert_array_equal(found.windows, inside)
    row = found.table.loc["a"]
    said = f"{row['difference']:.2f} nats [{row['low']:.2f}, {row['high']:.2f}] better"
    texts = [report.to_text(), report.to_text(verbose=True), report.to_markdown(), report.to_json()]
    for text in (*texts, report.to_html()):
        flat = " ".join(text.split())
        assert said in flat
        assert "in 90 of 100 runs with a wrong step" in flat or text == texts[1]
    assert json.loads(texts[3])["locators"][0]["locator"] == found.table.index[0]
    page = report.to_html()
    assert page.count('class="band window"') == 2 * 60 + 1
    assert 'id="steps"' in page


def test_without_labels_or_without_a_gain_nothing_is_claimed(runs, report):
    without = judge("runs.csv --score a --score b")
    assert without.first_errors is None
    pages = [without.to_html(), judge("runs.csv --score b --step-label human").to_html()]
    for page, is_told in zip(pages, (False, True), strict=True):
        assert ("No signal is shown to find it" in page) == is_told
        assert ("Which step failed" in page) == is_told
        assert "band window" not in page.partition("<body")[2]
    assert "first wrong" not in without.to_text(verbose=True) + pages[0]


def test_labels_of_python_go_with_their_rows(runs, report):
    X = report.inputs_of("a")
    y = report.runs.y
    for rows in (slice(None), slice(None, None, -1)):
        options = EvaluationOptions(first_error=runs[1][rows], together=False)
        got = evaluate(X[rows], y[rows], options=options).first_errors
        np.testing.assert_array_equal(got.labels, runs[1])
    few = np.where(np.cumsum(runs[1] > 0) <= 12, runs[1], -1)
    texts = []
    for labels in (few, np.full(120, 99), np.zeros(120)):
        try:
            options = EvaluationOptions(first_error=labels, together=False)
            texts.append(evaluate(X, y, options=options).to_text())
        except ValueError as error:
            texts.append(str(error))
    for text, part in zip(
        texts, ("label about 30", "and the run has", "give runs in which"), strict=True
    ):
        assert part in " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("runs.jsonl --score a --step-label huma", "field 'huma'"),
        ("runs.jsonl --score c --step-label human", "field 'c'"),
        ("runs.jsonl --step-label task", "write right, neutral or wrong"),
        (
            "runs.jsonl --first-error first",
            "--step-label",
        ),  # TRACER's steps are those of users, too
        ("runs.csv --score a --first-error frst", "did you mean 'first'?"),
    ],
)
def test_labels_that_cannot_be_read_are_said(report, words, text, capsys):
    assert main(["report", *words.split()]) == 2
    assert text in capsys.readouterr().err
