"""What is noted of step weights: heavy runs and small groups."""

import numpy as np
import pytest

from trajscore import TrajectoryArray, evaluate
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._data import AS_GIVEN, BASE_RATE, CONSTANT
from trajscore.report._groups import small_groups
from trajscore.report._rows import Row, heavy_run
from trajscore.report._runs import Coverage

QUICK = IntervalOptions(20, method="influence")
PUBLISHED = {"weights": "linear_front", "horizon": "own"}


def noted(report, words):
    return [note for note in report.notes if note.startswith("weights: ") and words in note]


def test_a_run_that_outweighs_the_others_is_named():
    rng = np.random.default_rng(0)
    lengths = np.append(np.full(60, 4), 1500)
    ids = [*(f"r{k}" for k in range(60)), "endless"]
    X, y = TrajectoryArray(rng.random(lengths.sum()), lengths, ids=ids), np.arange(61) % 2
    report = evaluate(X, y, calibrator=None, intervals=QUICK)
    weight = (1 / np.sqrt(np.arange(1, 1501))).sum()
    share = weight / (weight + 60 * (1 / np.sqrt(np.arange(1, 5))).sum())
    (note,) = noted(report, "moves every")
    assert note.startswith(
        f"weights: run endless (1,500 steps) has {share:.0%} of the weight of all "
        f"forecasts and moves every score. A horizon, such as horizon=30, limits"
    )
    assert note in report.to_html()
    for calm in ({"weights": "uniform", "horizon": 4}, PUBLISHED):
        assert noted(evaluate(X, y, **calm, calibrator=None, intervals=QUICK), "moves every") == []
    assert noted(evaluate(X[:60], y[:60], calibrator=None, intervals=QUICK), "moves every") == []
    # of few runs each holds much
    assert noted(evaluate(X[:6], y[:6], calibrator=None, intervals=QUICK), "moves every") == []


def test_groups_of_few_runs_are_counted():
    X, y = make_trajectories(400, random_state=0, return_X_y=True)
    model = np.where(np.arange(400) < 19, "few", np.where(np.arange(400) < 39, "enough", "many"))
    by = {"model": model, "half": np.arange(400) % 2}
    report = evaluate(X, y, by=by, calibrator=None, intervals=QUICK)
    (note,) = noted(report, "groups")
    assert note == (
        "weights: 1 of 3 groups by model has fewer than 20 runs. A score divides by the weight of "
        "the group's steps, so an average over such groups may prefer the wrong predictor."
    )


# ------------------------------------------------------------------- weights by hand


@pytest.mark.parametrize(
    ("lengths", "share"),
    [
        ([*[1] * 95, 5], None),  # just a twentieth of all weight
        ([*[1] * 94, 6], 0.06),
        ([*[1] * 18, 2], None),  # a tenth, of 19 runs
        ([*[1] * 16, 2, 2], None),
        ([4, *[1] * 18], 4 / 22),
        ([2, 1, 1], None),
    ],
)
def test_a_run_of_a_twentieth_of_the_weight_and_twice_its_share_is_named(lengths, share):
    X = TrajectoryArray(np.full(sum(lengths), 0.5), lengths)
    y = np.arange(len(X)) % 2
    runs = Coverage(y, y.astype(float), None, np.arange(len(X)))
    rows = [Row("a", AS_GIVEN, X, runs, True), Row(BASE_RATE, CONSTANT, X, runs, True)]
    notes = heavy_run(rows, as_step_weights("uniform"))
    assert [note.kind for note in notes] == ["heavy run"] * (share is not None)
    for note in notes:
        place = int(np.argmax(lengths))
        assert note.predictor == "weights"
        assert note.facts == {
            "run": place, "steps": max(lengths), "share": pytest.approx(share),
        }  # fmt: skip


def test_groups_of_less_than_twenty_runs_are_counted_by_kind():
    labels = {
        "one": np.repeat(["a", "b", "c"], [19, 20, 21]),
        "two": np.repeat(["a", "b", "c"], [1, 2, 57]),
        "none": np.repeat(["a", "b"], 30),
    }
    assert [(note.kind, note.facts) for note in small_groups(labels)] == [
        ("small groups", {"kind": "one", "n": 1, "n_groups": 3}),
        ("small groups", {"kind": "two", "n": 2, "n_groups": 3}),
    ]
