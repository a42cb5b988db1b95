"""What is noted of step weights: heavy runs, small groups, and what the published ones prefer."""

import re

import numpy as np
import pytest

from trajscore import TrajectoryArray, evaluate, metrics
from trajscore.calibration import AliveRate, cross_fit_traces
from trajscore.core.weights import as_step_weights
from trajscore.report import IntervalOptions
from trajscore.report._conventions import weight_notes
from trajscore.report._data import AS_GIVEN, BASE_RATE, CONSTANT, Options
from trajscore.report._rows import Row
from trajscore.report._runs import Coverage

QUICK = IntervalOptions(20, method="influence")
PUBLISHED = {"weights": "linear_front", "horizon": "own"}


def noted(report, words):
    return [note for note in report.notes if note.startswith("weights: ") and words in note]


@pytest.fixture(scope="module")
def short_wins():
    """Forecasts that read the steps taken alone: the true rate, and one that leans to short runs.

    The second weighs runs as published: by what step t weighs in a run of their length.
    """
    steps, n = np.arange(1, 31), 400
    law = {1: np.where(steps <= 10, 0.09, 0.1 / 20), 0: np.where(steps <= 10, 0.03, 0.7 / 20)}
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    lengths = np.where(y == 1, *(rng.choice(steps, n, p=law[k]) for k in (1, 0)))
    alive = {k: p[::-1].cumsum()[::-1] for k, p in law.items()}
    T, t = np.meshgrid(steps, steps, indexing="ij")
    weight = np.where(t <= T, 2 * (T - t + 1) / (T * (T + 1)), 0)
    weighed = {k: p @ weight for k, p in law.items()}
    step = np.concatenate([np.arange(k) for k in lengths])
    true, leaning = (one[1] / (one[0] + one[1]) for one in (alive, weighed))
    X = TrajectoryArray(true[step], lengths)
    return {"true": X, "leaning": X.with_cells(leaning[step])}, y


def test_another_predictor_under_published_weights_is_noted(short_wins):
    X, y = short_wins
    report = evaluate(X, y, calibrator=None, intervals=QUICK)
    (note,) = noted(report, "with the published weights")
    ours, theirs = (
        {name: metrics.tps_score(y, trace, **weights) for name, trace in X.items()}
        for weights in ({}, PUBLISHED)
    )
    tilted, alive = (
        cross_fit_traces(AliveRate(**weights), X["true"], y) for weights in (PUBLISHED, {})
    )
    leaning = metrics.tps_score(y, tilted, **PUBLISHED) - metrics.tps_score(y, alive, **PUBLISHED)
    assert leaning > 0.01
    assert note == (
        f"weights: with the published weights (weights='linear_front', horizon='own') leaning "
        f"leads true by {theirs['leaning'] - theirs['true']:.3f} nats; with these step weights "
        f"true leads by {ours['true'] - ours['leaning']:.3f} nats. Published weights reward "
        f"leaning towards how short runs end; here that alone is worth {leaning:+.3f} nats."
    )
    assert note in " ".join(report.to_text(verbose=True).split())
    page = report.to_html()
    of_data = page[page.index("<h3>The data</h3>") :]
    assert "leads true by" in of_data[: of_data.index("</ul>")]


def test_the_note_has_the_digits_of_the_score(short_wins):
    report = evaluate(*short_wins, scores=("beta", 4, 2), calibrator=None, intervals=QUICK)
    (note,) = noted(report, "with the published weights")
    assert re.search(r"leads true by 0\.\d{5}; with .* worth \+0\.\d{5}\.$", note)


def test_conventions_that_agree_are_not_noted(short_wins, report):
    X, y = short_wins
    published = evaluate(X, y, **PUBLISHED, calibrator=None, intervals=QUICK)
    assert noted(published, "published") == []
    assert published.cards["as_given"].idxmax() == "leaning"
    one = evaluate(X["true"], y, calibrator=None, intervals=QUICK)
    assert noted(one, "published") == []
    worse = X | {"leaning": X["true"].with_cells(1 - X["true"].cells)}
    both = evaluate(worse, y, calibrator=None, intervals=QUICK)
    assert noted(both, "published") == []
    # on chess they prefer another, where neither is shown to be better
    found = {}
    for weights in ({}, PUBLISHED):
        rows = {name: report.traces[name, "recalibrated"] for name in report.predictors}
        labels = report.labels["engine", "recalibrated"]
        scores = {name: metrics.tps_score(labels, X, **weights) for name, X in rows.items()}
        found[len(weights)] = max(scores, key=scores.get)
    assert len(set(found.values())) == 2
    assert noted(report, "published") == []


def test_predictors_of_other_runs_are_not_compared(short_wins):
    X, y = short_wins
    gone = np.repeat(np.arange(len(y)) < 20, X["true"].lengths)
    gaps = X | {"leaning": X["true"].with_cells(np.where(gone, np.nan, X["leaning"].cells))}
    report = evaluate(gaps, y, missing="own_runs", calibrator=None, intervals=QUICK)
    assert noted(report, "published") == []


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


def test_groups_of_few_runs_are_counted(short_wins):
    X, y = short_wins
    model = np.where(np.arange(400) < 19, "few", np.where(np.arange(400) < 39, "enough", "many"))
    by = {"model": model, "half": np.arange(400) % 2}
    report = evaluate(X["true"], y, by=by, calibrator=None, intervals=QUICK)
    (note,) = noted(report, "groups")
    assert note == (
        "weights: 1 of 3 groups by model has fewer than 20 runs. A score divides by the weight of "
        "the group's steps, so an average over such groups may prefer the wrong predictor."
    )


# ------------------------------------------------------------------- weights by hand


def noted_weights(lengths, labels=None, weights="uniform"):
    lengths = np.array(lengths)
    X = TrajectoryArray(np.full(lengths.sum(), 0.5), lengths)
    runs = Coverage(np.arange(len(X)) % 2, np.arange(len(X)) % 2.0, None, np.arange(len(X)))
    rows = [Row("a", AS_GIVEN, X, runs, True), Row(BASE_RATE, CONSTANT, X, runs, True)]
    options = Options(("log",), as_step_weights(weights), "weighted")
    return weight_notes(rows, labels or {}, options)


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
    notes = noted_weights(lengths)
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
    notes = noted_weights([1] * 60, labels)
    assert [(note.kind, note.facts) for note in notes] == [
        ("small groups", {"kind": "one", "n": 1, "n_groups": 3}),
        ("small groups", {"kind": "two", "n": 2, "n_groups": 3}),
    ]
