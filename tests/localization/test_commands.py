"""``trajscore locate``, and the bundled runs with labels of their steps."""

import numpy as np
import pandas as pd
import pytest

from trajscore.cli.main import main
from trajscore.datasets import load_who_and_when
from trajscore.localization import FirstErrorLocator, FirstErrorWindow


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
