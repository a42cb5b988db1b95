"""Which runs every number is of, and what unobserved ones and missing values stand for."""

import numpy as np
import pandas as pd
import pytest

from judged import evaluate
from trajscore import TrajectoryArray, metrics
from trajscore.calibration import PrefixForecaster
from trajscore.datasets import make_trajectories
from trajscore.evaluation.runs import Exclusion, ExclusionKind


def with_holes(X, rows, step=1):
    """The same without a value at a step of these runs."""
    cells = X.cells.copy()
    cells[X.offsets[rows] + step - 1] = np.nan
    return X.with_cells(cells)


# ------------------------------------------------------------------ outcomes not observed


@pytest.mark.parametrize(
    ("censored", "calibrator"),
    [
        ("failure", "platt"),
        ("drop", "platt"),
        ("q_z", PrefixForecaster(features="last", pooled=True)),
    ],
    ids=["failure", "drop", "q_z"],
)
def test_all_numbers_are_of_one_vector_of_labels(budget, quick, censored, calibrator):
    X, y = budget[0][:90], budget[1][:90]
    q = np.linspace(0, 1, len(y)) if censored == "q_z" else None
    kept = y >= 0 if censored == "drop" else np.ones(len(y), dtype=bool)
    labels = np.where(y >= 0, y, 0 if q is None else q)
    options = {"calibrator": calibrator, "families": "log", "intervals": quick}
    found = evaluate(X, y, censored=censored if q is None else q, **options)
    expected = evaluate(X[kept], labels[kept], **options)
    # one reference knows which runs have ended: not those without an outcome, whatever they count
    ends = "alive rate, end known"
    columns = [name for name in expected.table if "alive_end" not in name and name != "n_censored"]
    tables = [one.table.drop(ends, level="predictor")[columns] for one in (found, expected)]
    pd.testing.assert_frame_equal(*tables)
    for key in [key for key in expected.traces if key[0] != ends]:
        np.testing.assert_array_equal(found.traces[key].cells, expected.traces[key].cells)
    np.testing.assert_array_equal(found.runs.labels, expected.runs.labels)
    assert found.facts.n_censored == (0 if censored == "drop" else (y == -1).sum())


def test_how_unobserved_runs_count_is_said(budget, fast):
    X, y = budget[0][:60], budget[1][:60]
    n, hidden = len(y), int((y == -1).sum())
    for given, words, n_runs in (
        ({}, "without an observed outcome count as failures", n),
        ({"censored": 0.4}, "without an observed outcome count with their q_z", n),
        ({"censored": "drop"}, "without an observed outcome count not at all", n - hidden),
    ):
        report = evaluate(X, y, **fast, **given)
        assert words in " ".join(report.to_text(verbose=True).split())
        assert set(report.table["n_runs"]) == {n_runs}
    assert report.excluded.to_numpy().tolist() == [["all", "the outcome was not observed", hidden]]


def test_what_dropping_unobserved_runs_would_change(budget, quick):
    X, y = budget[0][:120], budget[1][:120]
    options = {"calibrator": "platt", "families": "log", "intervals": quick}
    report = evaluate(X, y, **options)
    dropped = evaluate(X, y, censored="drop", **options)
    without = dropped.table.loc[["forecast"], "TPS log margin"]
    pd.testing.assert_series_equal(report.sensitivity["observed_only"], without, check_names=False)
    margin = report.table.loc[["forecast"], "TPS log margin"]
    pd.testing.assert_series_equal(report.sensitivity["margin"], margin, check_names=False)
    columns = ["card", "as_given", "as_given_low", "recalibrated", "recalibrated_high"]
    pd.testing.assert_frame_equal(report.observed_cards[columns], dropped.cards[columns])
    assert dropped.observed_cards is None


def test_margins_with_other_clips(quick):
    y = np.arange(40) % 2
    cells = np.where(y == 1, 0.7, 0.3)
    cells[[0, 1, 2]] = 1.0, 0.001, 0.995
    X = TrajectoryArray(cells, np.ones(40, dtype=int))
    for clip in (1e-6, 1e-2):
        report = evaluate(X, y, calibrator=None, families=[("log", clip), "brier"], intervals=quick)
        row = report.sensitivity.loc[("forecast", "as_given")]
        assert row["clipped"] == (1 if clip == 1e-6 else 3) / 40
        for name, value in {"clip_1e-6": 1e-6, "clip_1e-2": 1e-2}.items():
            score = metrics.tps_score(y, X, score=("log", value))
            assert row[name] == pytest.approx(score - np.log(0.5)), name
        assert row["margin"] == pytest.approx(row["clip_1e-6" if clip == 1e-6 else "clip_1e-2"])


# ------------------------------------------------------------------ stops


def test_runs_that_no_budget_stopped_are_left_out_and_counted(chess, fast):
    X, y = chess[0]["material"][:120], chess[1][:120]
    hidden = np.flatnonzero(y == -1)
    reasons = np.where(y == -1, "max_steps", "game_over").astype(object)
    reasons[hidden[:9]] = ["parse_error"] * 5 + [None, np.nan, "", "crash"]
    report = evaluate(X, y, stop_reason=reasons, **fast)
    assert report.exclusions == {
        Exclusion(ExclusionKind.STOPPED, "crash"): 1,
        Exclusion(ExclusionKind.STOPPED, "parse_error"): 5,
        Exclusion(ExclusionKind.NO_STOP_REASON): 3,
    }
    rows = np.setdiff1d(np.arange(len(y)), hidden[:9])
    alone = evaluate(X[rows], y[rows], **fast)
    pd.testing.assert_frame_equal(report.table, alone.table)
    words = "Left out of every number: 5 runs (no outcome; stopped by parse_error, not by a budget)"
    for verbose in (True, False):
        assert words in " ".join(report.to_text(verbose=verbose).split())


def test_runs_that_were_lost_may_be_the_only_ones_that_a_predictor_knows(rng, fast):
    y = rng.integers(0, 2, 180)
    was_lost, ones = np.arange(180) >= 100, np.ones(180, dtype=int)
    says = np.where(y == 1, 0.8, 0.2) + rng.uniform(-0.05, 0.05, 180)
    X = {
        "early": TrajectoryArray(np.where(was_lost, rng.random(180), says), ones),
        "late": TrajectoryArray(np.where(was_lost, says, np.nan), ones, missing="allow"),
    }
    reasons = np.where(was_lost, "EnvironmentStartTimeoutError", "done")
    report = evaluate(X, y, stop_reason=reasons, **fast)
    assert report.predictors == ["early"]
    assert "Counted as recorded, the answer would be: use late" in report.notes[-1]


def test_stop_kinds_of_the_log_decide_who_is_left_out(chess, fast):
    X, y = chess[0]["material"][:80], chess[1][:80]
    reasons = np.where(y == -1, "timeout", "game_over")
    for kind, left_out in (("administrative", 0), ("informative", int((y == -1).sum()))):
        meta = {"stop_reason": reasons, "stop_kind": np.where(y == -1, kind, "complete")}
        noted = TrajectoryArray(X.cells, X.lengths, channels=X.channels, ids=X.ids, meta=meta)
        report = evaluate(noted, y, **fast)
        assert report.excluded["n_runs"].sum() == left_out
        assert {type(reason) for reason in report.left_out} <= {str}
    stops = np.where(y == -1, "max_steps", "done")  # what is given comes before what the log says
    assert evaluate(noted, y, stop_reason=stops, **fast).excluded.empty


# ------------------------------------------------------------------ missing values


@pytest.fixture(scope="module")
def gappy():
    """One predictor lacks 20 runs at step 2, the other 10 of these and 5 others at step 1."""
    rng = np.random.default_rng(0)
    lengths, y = rng.integers(1, 10, 200), rng.integers(0, 2, 200)
    X = TrajectoryArray(rng.random(lengths.sum()), lengths, ids=[f"r{k:03d}" for k in range(200)])
    long = np.flatnonzero(X.lengths > 1)
    other = X.with_cells(1 - X.cells)
    return {"a": with_holes(X, long[:20], 2), "b": with_holes(other, long[10:25])}, y


def test_predictors_are_judged_on_the_same_runs(gappy, fast):
    X, y = gappy
    report = evaluate(X, y, **fast)
    assert set(report.table["n_runs"]) == {175}
    assert report.excluded.to_numpy().tolist() == [
        ["all", "values of a and b are missing", 10],
        ["all", "a value of a is missing", 10],
        ["all", "a value of b is missing", 5],
    ]
    whole = ~np.any([[np.isnan(run).any() for run in trace] for trace in X.values()], axis=0)
    alone = evaluate({name: one[whole] for name, one in X.items()}, y[whole], **fast)
    pd.testing.assert_frame_equal(report.table, alone.table)


def test_a_stated_value_holds_until_the_next_one(gappy, fast):
    X, y = gappy
    report = evaluate(X, y, missing="ffill", **fast)
    filled = {name: trace.ffill() for name, trace in X.items()}
    expected = evaluate(filled, y, **fast)
    pd.testing.assert_frame_equal(report.table, expected.table)
    assert report.excluded.to_numpy().tolist() == [["all", "a value of b is missing", 15]]
    share = 20 / len(X["a"].cells)
    assert report.notes[0].startswith(f"a: {share:.1%} of its values were missing")
    assert "ffill" not in str(report)  # what helps no further is not named again
    assert "Leave out b to score a on them, too" in " ".join(str(report).split())
    said = " ".join(str(evaluate(X, y, **fast)).split())
    assert "EvaluationOptions(missing='ffill') repeats the value" in said


def test_predictors_without_common_runs_are_refused_with_a_remedy(gappy, fast):
    X, y = gappy[0]["a"].ffill(), gappy[1]
    half = np.repeat(np.arange(200) < 100, X.lengths)
    halves = {
        "a": X.with_cells(np.where(half, X.cells, np.nan)),
        "b": X.with_cells(np.where(half, np.nan, X.cells)),
    }
    with pytest.raises(ValueError, match="0 of 200 runs .*one predictor at a time"):
        evaluate(halves, y)
    none = {"a": X, "none": X.with_cells(np.full(len(X.cells), np.nan))}
    report = evaluate(none, y, **fast)
    assert report.predictors == ["a"]
    assert report.notes[0].startswith("none: left out")
    with pytest.raises(ValueError, match="none.*at every step"):
        evaluate({"none": none["none"]}, y)


# ------------------------------------------------------------------ what is noted of runs


def test_a_stray_value_among_probabilities_is_pointed_at(fast):
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    one, two, half = (X.cells.copy() for _ in range(3))
    one[X.offsets[5] + 1] = two[X.offsets[5] + 1] = 1.7
    two[X.offsets[7]] = -0.2
    half[: len(half) // 2 + 1] = 2.0  # half of them, which are no slips
    risk = np.where(X.cells < 0.3, -0.0001, 0.0)  # minus a risk, mostly 0
    cells = {"one": one, "two": two, "half": half, "risk": risk, "odds": 10 * X.cells - 3}
    traces = {name: X.with_cells(values) for name, values in cells.items()}
    notes = evaluate(traces, y, **fast).notes
    said = {note.split(":")[0]: note for note in notes if "correct it" in note}
    assert list(said) == ["one", "two"]
    assert said["one"].startswith("one: run 5, step 2: 1.7 lies outside [0, 1]")
    assert "the first of" not in said["one"]
    assert "(the first of 2 such values)" in said["two"]


@pytest.mark.parametrize("n", [5, 4])
def test_what_may_leak_the_outcome_is_noted(fast, n):
    y = np.repeat([1, 0, -1], [n + 1, n + 3, 2])  # the first run has no step
    last = {name: np.tile([0.2, 0.6], 10)[: len(y)] for name in (
        "final_reward", "label", "p_success", "predicted_reward", "judge_label", "signal",
    )}  # fmt: skip
    last |= {"right": np.where(y == 1, 0.9, 0.1), "wrong": np.where(y == 0, 0.9, 0.1)}
    last["token_probability"] = last["right"]  # of tokens, which cannot know
    X = {}
    for name, values in last.items():
        cells = np.column_stack([np.full(len(y), 0.5), values])[1:].ravel()
        X[name] = TrajectoryArray(cells, [0] + [2] * (len(y) - 1), missing="allow")
    notes = evaluate(X, y, **fast).notes
    said = [note.split(":")[0] for note in notes if "ignore all results" in note]
    assert said == ["final_reward", "label"] + ["right", "wrong"] * (n == 5)


def test_what_points_the_other_way_is_called_a_risk(useful, fast):
    turned = useful.X["true"].with_cells(1 - useful.X["true"].cells)
    report = evaluate({"turned": turned, "ok": useful.X["true"]}, useful.y, **fast)
    assert [note.split(":")[0] for note in report.notes if "--risk" in note] == ["turned"]


def test_a_run_that_holds_much_of_the_weight_is_named(fast):
    rng = np.random.default_rng(0)
    lengths = np.where(np.arange(60) == 7, 400, 2)
    X, y = TrajectoryArray(rng.random(lengths.sum()), lengths), rng.integers(0, 2, 60)
    report = evaluate(X, y, **fast)
    (note,) = [note for note in report.notes if "of the weight" in note]
    share = (1 / np.sqrt(np.arange(1, 401))).sum()
    share /= share + 59 * (1 + 1 / np.sqrt(2))
    assert f"run 7 (400 steps) has {share:.0%} of the weight" in note
    alike = evaluate(X.prefix(2), y, **fast)
    assert not any("of the weight" in note for note in alike.notes)


@pytest.mark.parametrize("n", [2, 3])
def test_an_alive_rate_learnt_from_the_runs_that_it_is_judged_on_is_noted(fast, n):
    X, y = make_trajectories(3, random_state=0, return_X_y=True)[0], [1, 0, 1]
    notes = evaluate(X[:n], y[:n], **fast).notes
    assert any("learnt from the same runs" in note for note in notes) == (n == 2)


def test_few_clusters_are_noted(fast):
    X, y = make_trajectories(120, random_state=0, return_X_y=True)
    for n, is_few in ((14, True), (15, False)):
        notes = evaluate(X, y, groups=np.arange(120) % n, **fast).notes
        assert any("there are 14 clusters" in note for note in notes) == is_few


# ------------------------------------------------------------------ who knows the end


@pytest.fixture(scope="module")
def ending():
    """Runs that end of themselves when they succeed, mostly, and at the sixth step otherwise."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.geometric(0.25, 800), 6)
    y = (rng.random(800) < np.where(lengths < 6, 0.8, 0.1)).astype(int)
    own = np.minimum(0.75 ** np.arange(5, -1, -1), 1.0)  # at step t: P(the sixth is reached)
    X = TrajectoryArray(np.zeros(lengths.sum()), lengths)
    step = np.concatenate([np.arange(1, n + 1) for n in lengths])
    counts = X.with_cells(0.1 * own[step - 1] + 0.8 * (1 - own[step - 1]))
    going = 0.1 * own[np.minimum(step, 5)] + 0.8 * (1 - own[np.minimum(step, 5)])
    is_last = step == np.repeat(lengths, lengths)
    knows = X.with_cells(np.where(is_last, np.where(step < 6, 0.8, 0.1), going))
    return {"counts": counts, "knows": knows}, y


@pytest.mark.parametrize(("end", "knowing"), [(None, None), (np.True_, True), (False, False)])
def test_end_says_against_which_counting_predictors_are_held(ending, fast, end, knowing):
    X, y = ending
    report = evaluate(X, y, end=end, **fast)
    assert report.facts.knows_end == knowing
    for name, said in zip(X, report.verdicts(), strict=True):
        row = report.table.loc[(name, "as_given")]
        overs = ["over_alive_end" if knowing else "over_alive"]
        if knowing is None:  # both are told, as they say different things here
            overs = ["over_alive", "over_alive_end"]
        for over in overs:
            low, high = row[f"TPS log {over}_low"], row[f"TPS log {over}_high"]
            assert f" [{low:+.3f}, {high:+.3f}] nats)" in said
        assert ("where it is known which step is the last" in said) == ("over_alive_end" in overs)


def test_a_calibrator_says_whether_it_knows_the_end(ending, quick):
    X, y = ending[0]["knows"][:200], ending[1][:200]
    for own, end, knows in ((None, None, False), ("step", None, True), ("step", False, False)):
        model = PrefixForecaster(features="last", pooled=True, end=own)
        report = evaluate(X, y, calibrator=model, end=end, families="log", intervals=quick)
        assert report.facts.knows_end is knows


def test_one_value_a_run_is_sent_to_metrics_of_one_number(short_wins):
    X, y = short_wins
    cells = np.full(len(X.cells), np.nan)
    cells[X.offsets[1:] - 1] = 0.5  # of a judge that read the whole run
    with pytest.raises(ValueError, match=r"judge one number a run by metrics\.Answers"):
        evaluate(X.with_cells(cells), y)
