"""Which runs every number is of, and what unobserved ones and missing values stand for."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray, evaluate
from trajscore.calibration import PrefixForecaster
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._runs import (
    Coverage,
    few_clusters,
    out_of_range_values,
    outcome_problem,
)


@pytest.fixture(scope="module")
def budget():
    made = make_trajectories(200, lengths=(2, 9), budget=6, random_state=0)
    assert 20 < (made.target == -1).sum() < 100
    return made.data, made.target


@pytest.mark.parametrize(
    "calibrator", ["platt", PrefixForecaster(features="last", pooled=True)], ids=["platt", "prefix"]
)
@pytest.mark.parametrize("censored", ["failure", "drop", "q_z"])
def test_all_numbers_are_of_one_vector_of_labels(budget, censored, calibrator):
    X, y = budget
    q = np.linspace(0, 1, len(y)) if censored == "q_z" else None
    kept = y >= 0 if censored == "drop" else np.ones(len(y), dtype=bool)
    labels = np.where(y >= 0, y, 0 if q is None else q)
    options = {"calibrator": calibrator, "intervals": IntervalOptions(10)}
    found = evaluate(X, y, censored=censored, q_z=q, **options)
    expected = evaluate(X[kept], labels[kept], **options)
    # one reference knows which runs have ended: not those without an outcome, whatever they count
    ends = "alive rate, end known"
    columns = [name for name in expected.table if "alive_end" not in name and name != "n_censored"]
    tables = [one.table.drop(ends, level="predictor")[columns] for one in (found, expected)]
    pd.testing.assert_frame_equal(*tables)
    for key, trace in expected.traces.items():
        if key[0] == ends:
            continue
        np.testing.assert_array_equal(found.traces[key].cells, trace.cells)
        np.testing.assert_array_equal(found.labels[key], expected.labels[key])
    base = found.table.loc[("base rate", "constant")]
    assert base["T-ECE"] < 1e-12
    rate = labels[kept].mean()
    assert base["T-Brier"] == pytest.approx(rate * (1 - rate), abs=1e-12)


def test_how_unobserved_runs_count_is_said(budget):
    X, y = budget
    n, n_censored = len(y), int((y == -1).sum())
    words = f"the {n_censored} without an observed outcome count as "
    for given, said in (
        ({}, f"{n} runs; {words}failures"),
        ({"q_z": 0.4}, f"{n} runs; {words}their q_z of a success"),
        ({"censored": "drop"}, f"{n - n_censored} runs with an observed outcome; those without"),
    ):
        report = evaluate(X, y, intervals=IntervalOptions(5), **given)
        assert said in report.disclosures["runs"]
        assert f"every number is of {said}" in " ".join(report.to_text(verbose=True).split())
    assert report.excluded.to_numpy().tolist() == [
        ["all", "the outcome was not observed", n_censored]
    ]
    with pytest.raises(ValueError, match='q_z is read only with censored="q_z"'):
        evaluate(X, y, censored="drop", q_z=0.4)
    with pytest.raises(ValueError, match="censored must be"):
        evaluate(X, y, censored="leave")


def test_the_verdict_says_what_dropping_unobserved_runs_would_change(budget):
    X, y = budget
    report = evaluate(X, y, intervals=IntervalOptions(10))
    dropped = evaluate(X, y, censored="drop", intervals=IntervalOptions(10))
    without = dropped.table.loc[["forecast"], "TPS log margin"]
    pd.testing.assert_series_equal(report.sensitivity["observed_only"], without, check_names=False)
    expected = report.table.loc[["forecast"], "TPS log margin"]
    pd.testing.assert_series_equal(report.sensitivity["margin"], expected, check_names=False)
    said = report.verdicts()[0]
    form = ("forecast", "recalibrated")
    assert f"{without[form]:+.3f} recalibrated (by {without[form] - expected[form]:+.3f}" in said
    assert f"Without the {(y == -1).sum()} unobserved runs" in said
    assert "unobserved" not in dropped.verdicts()[0]


def test_a_sign_that_turns_without_unobserved_runs_is_said(chess):
    X, y = chess
    said = evaluate(X["material"], y, intervals=IntervalOptions(10)).verdicts()[0]
    assert re.search(r"\+0\.086 as given \(by \+0\.252, the other sign\)", said)


def test_the_first_screen_says_where_unobserved_runs_decide():
    runs = make_trajectories(400, lengths=(2, 6), information=0.5, random_state=0)
    X, y = runs.q, runs.target.copy()
    y[np.random.default_rng(0).random(400) < 0.5] = -1
    report = evaluate(X, y, intervals=IntervalOptions(10))
    alone = evaluate(X[y != -1], y[y != -1], intervals=IntervalOptions(10))
    columns = ["card", "as_given", "recalibrated_low"]
    pd.testing.assert_frame_equal(report.observed_cards[columns], alone.cards[columns])
    assert alone.cards["card"].iloc[0] == "use as it is" != report.cards["card"].iloc[0]
    n = int((y == -1).sum())
    card = alone.cards.iloc[0]
    margin = f"{card['as_given']:+.3f} [{card['as_given_low']:+.3f}, {card['as_given_high']:+.3f}]"
    stated = (
        f"What became of the {n} runs without an outcome, which count as failures here. If you "
        f"do not know their outcomes yet, the answer is: use forecast as it is ({margin} nats). "
        f"Leave them out then: censored='drop'."
    )
    for text in (str(report), report.to_text(verbose=True), report.to_markdown(), report.to_html()):
        plain = unescape(re.sub(r"\\|\*\*|<[^>]*>", "", text))
        assert " ".join(plain.split()).count(stated) == 1
    for other in (alone, evaluate(X, y, censored="drop", intervals=IntervalOptions(10))):
        assert other.observed_cards is None
        assert "no outcome" not in str(other)


def test_a_margin_that_turns_without_unobserved_runs_is_on_the_first_screen(chess):
    report = evaluate(*chess, intervals=IntervalOptions(10))
    stated = "material as given is +0.086 over the base rate, not"
    assert stated in " ".join(str(report).split())
    few = np.maximum(chess[1], 0)
    few[:5] = -1
    other = str(evaluate(chess[0], few, intervals=IntervalOptions(10)))
    assert "Without the 1 run that has no outcome, the choice stays" in " ".join(other.split())


def test_a_forecast_of_the_base_rate_is_the_same_as_it(ragged):
    X, y = ragged
    weight = 1 / np.sqrt(np.concatenate([np.arange(1, n + 1) for n in X.lengths]))
    rate = np.average(np.repeat(y, X.lengths), weights=weight)  # over forecasts, not over runs
    same = X.with_cells(np.full(len(X.cells), rate))
    for score in ("log", ("beta", 2, 4)):
        report = evaluate(same, y, scores=score, calibrator=None, intervals=IntervalOptions(20))
        assert report.verdicts()[0].startswith(
            "forecast: do not use; as given the same as the base rate;"
        )
    for far, said in ((1e-3, "the same as the base rate to 3 decimals;"), (0.05, "")):
        near = X.with_cells(np.full(len(X.cells), rate + far))
        found = evaluate(near, y, calibrator=None, intervals=IntervalOptions(20)).verdicts()[0]
        assert ("same as" in found) == bool(said)
        assert said in found


@pytest.fixture
def gappy(ragged):
    """Two predictors; one lacks 20 runs at step 2, the other 10 of these and 5 others at step 1."""
    X, y = ragged
    long = np.flatnonzero(X.lengths > 1)
    cells = X.cells.copy()
    cells[X.offsets[long[:20]] + 1] = np.nan
    other = 1 - X.cells
    other[X.offsets[long[10:25]]] = np.nan
    return {"a": X.with_cells(cells), "b": X.with_cells(other)}, y


def test_predictors_are_judged_on_the_same_runs(gappy):
    X, y = gappy
    report = evaluate(X, y, intervals=IntervalOptions(5))
    assert set(report.table["n_runs"]) == {len(y) - 25}
    assert report.excluded.to_numpy().tolist() == [
        ["all", "values of a and b are missing", 10],
        ["all", "a value of a is missing", 10],
        ["all", "a value of b is missing", 5],
    ]
    own = evaluate(X, y, missing="own_runs", intervals=IntervalOptions(5))
    assert own.table["n_runs"].tolist() == [180, 180, 185, 185, 200, 200, 200]
    with pytest.raises(ValueError, match="missing must be"):
        evaluate(X, y, missing="drop")


def test_a_stated_value_holds_until_the_next_one(gappy):
    X, y = gappy
    report = evaluate(X, y, missing="ffill", intervals=IntervalOptions(5))
    filled = {name: trace.ffill() for name, trace in X.items()}
    expected = evaluate(filled, y, intervals=IntervalOptions(5))
    pd.testing.assert_frame_equal(report.table, expected.table)
    assert report.excluded.to_numpy().tolist() == [["all", "a value of b is missing", 15]]
    assert "(a value of b is missing); missing='ffill' lets a value" in " ".join(
        str(report).split()
    )
    share = 20 / len(X["a"].cells)
    assert (
        report.notes[0] == f"a: {share:.1%} of its values were missing; the value before was used."
    )


def test_predictors_without_common_runs_are_refused_with_a_remedy(ragged):
    X, y = ragged
    half = np.repeat(np.arange(len(y)) < 100, X.lengths)
    halves = {"a": np.where(half, X.cells, np.nan), "b": np.where(half, np.nan, X.cells)}
    traces = {name: X.with_cells(cells) for name, cells in halves.items()}
    with pytest.raises(ValueError, match="0 of 200 runs have a value of every .*'own_runs'"):
        evaluate(traces, y)
    assert (
        len(evaluate(traces, y, missing="own_runs", intervals=IntervalOptions(2)).predictors) == 2
    )
    none = X.with_cells(np.full(len(X.cells), np.nan))
    report = evaluate({"a": X, "none": none}, y, intervals=IntervalOptions(2))
    assert report.table.loc[("a", "as_given"), "n_runs"] == 200
    assert report.notes == ["none: left out; it has too few complete runs of both outcomes."]


def test_a_base_rate_of_runs_that_weigh_unalike_is_explained(budget):
    X, y = budget
    paper = {"weights": "linear_front", "horizon": "own", "intervals": IntervalOptions(2)}
    report = evaluate(X, y, **paper)
    error = report.table.loc[("base rate", "constant"), "S-ECE"]
    assert error > 0.005
    assert f"the mean over runs, has an S-ECE of {error:.3f}" in report.disclosures["weights"]
    alike = evaluate(X, y, censored="drop", **paper)
    assert "S-ECE" not in alike.disclosures["weights"]
    by_step = evaluate(X, y, intervals=IntervalOptions(2))  # whose base rate is over forecasts
    assert by_step.table.loc[("base rate", "constant"), "S-ECE"] < 1e-12
    assert "S-ECE" not in by_step.disclosures["weights"]


@pytest.mark.parametrize(
    ("y", "problem"),
    [
        ([1, 0], ""),
        ([1, 0, -1], ""),
        ([1.0, 0.5], ""),
        ([1], "evaluation needs at least 2 runs, got 1"),
        ([-1, -1, -1], "none of the 3 runs has an observed outcome; give outcomes for some of"),
        ([1, 1], "all 2 observed runs are successes; an evaluation needs both outcomes"),
        ([0, 0, 0], "all 3 observed runs are failures; an evaluation needs both outcomes"),
        ([0.25, 0.25], "all 2 observed outcomes are 0.25; an evaluation needs both outcomes"),
        (
            [0, -1],
            "the only observed run is a failure, and 1 run without an outcome; an evaluation",
        ),
        (
            [1, 1, -1, -1],
            (
                "all 2 observed runs are successes, and 2 runs without an outcome (if such a run "
                "failed, its outcome is 0, not -1 or missing); an evaluation needs both outcomes"
            ),
        ),
        ([0.5, -1], "the only observed run is graded 0.5, and 1 run without an outcome; an eval"),
    ],
)
def test_outcomes_that_cannot_be_evaluated(y, problem):
    said = outcome_problem(np.array(y, dtype=float))
    assert said.startswith(problem)
    assert bool(said) is bool(problem)
    if len(y) > 1 and max(y) >= 0:  # where one of both is enough
        assert outcome_problem(np.array(y, dtype=float), needs_both=False) == ""


@pytest.mark.parametrize(
    ("cells", "facts"),
    [
        ([0.5, 1.2, 0.3, 0.4], {"place": "run 'a', step 2", "value": 1.2, "n": 1}),
        ([0.5, 0.2, -0.3, 0.4, 1.5], {"place": "run 'a', step 3", "value": -0.3, "n": 2}),
        ([0.5, 1.2], None),  # half of them
        ([0.0, 1.0, 0.3], None),
        ([-0.5, 0.0, 0.0], None),  # minus a risk
        ([0.5, np.nan, 1.5], None),
        ([0.5, np.nan, 0.2, 1.5], {"place": "run 'a', step 4", "value": 1.5, "n": 1}),
    ],
)
def test_the_few_values_outside_0_to_1(cells, facts):
    X = TrajectoryArray(np.array(cells), [len(cells)], ids=["a"], missing="allow")
    notes = out_of_range_values({"judge": X})
    assert [note.facts for note in notes] == ([] if facts is None else [facts])
    assert all((note.predictor, note.kind) == ("judge", "outside") for note in notes)


@pytest.mark.parametrize(("n", "is_few"), [(14, True), (15, False), (16, False)])
def test_fewer_than_fifteen_clusters_are_few(n, is_few):
    n_runs = 2 * n
    groups = np.repeat(np.arange(n), 2)
    runs = Coverage(np.zeros(n_runs), np.zeros(n_runs), groups, np.arange(n_runs))
    notes = few_clusters(runs)
    assert [(note.predictor, note.kind) for note in notes] == [
        ("intervals", "few clusters")
    ] * is_few
    for note in notes:
        assert note.facts == {"n": n, "effective": pytest.approx(n)}
    assert few_clusters(Coverage(np.zeros(4), np.zeros(4), None, np.arange(4))) == []
