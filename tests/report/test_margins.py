"""What predictors are held against: the best constant, and counting steps."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from trajscore import PlattCrossFitCalibrator, PrefixForecaster, TrajectoryArray, evaluate, metrics
from trajscore.calibration import AliveRate, cross_fit_traces
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._margins import _places_in_folds
from trajscore.streaming import iter_batches

QUICK = IntervalOptions(20, method="influence")
BASE, ALIVE, ALIVE_END = "base rate", "alive rate", "alive rate, end known"


def step_of(X):
    return np.concatenate([np.arange(1, n + 1) for n in X.lengths])


@pytest.fixture(scope="module")
def short_wins():
    """Runs of which short ones succeed, and what sees each outcome dimly."""
    rng = np.random.default_rng(3)
    y = (rng.random(300) < 0.4).astype(int)
    lengths = np.where(y == 1, rng.integers(1, 9, 300), rng.integers(3, 15, 300))
    ids = [f"r{k:03d}" for k in rng.permutation(300)]
    seen = 1.5 * np.repeat(y, lengths) - 0.7 + rng.normal(0, 1, lengths.sum())
    return TrajectoryArray(1 / (1 + np.exp(-seen)), lengths, ids=ids), y


@pytest.fixture(scope="module")
def report(short_wins):
    return evaluate(*short_wins, intervals=QUICK)


# -------------------------------------------------------------------------- the best constant


@pytest.mark.filterwarnings("ignore:horizon=6 leaves")
@pytest.mark.parametrize(
    ("options", "weight"),
    [
        ({}, lambda t, n: 1 / np.sqrt(t)),
        ({"weights": "uniform"}, lambda t, n: np.ones(len(t))),
        (
            {"weights": "linear_front", "horizon": 6},
            lambda t, n: np.maximum(7 - t, 0) / 21,
        ),
        ({"weights": "linear_front", "horizon": "own"}, lambda t, n: 2 * (n - t + 1) / (n * n + n)),
    ],
    ids=["early", "uniform", "horizon", "as published"],
)
def test_the_base_rate_is_the_best_constant(short_wins, options, weight):
    X, y = short_wins
    report = evaluate(X, y, **options, calibrator=None, intervals=QUICK)
    w = weight(step_of(X), np.repeat(X.lengths, X.lengths))
    rate = np.average(np.repeat(y, X.lengths), weights=w)
    assert report.facts.rate == pytest.approx(rate)
    assert report.traces[BASE, "constant"].cells == pytest.approx(rate)
    row = report.table.loc[(BASE, "constant")]
    others = [*np.linspace(0.01, 0.99, 99), rate - 1e-3, rate + 1e-3, y.mean()]
    for name, score in zip(report.options.score_names, report.options.scores, strict=True):
        scores = [
            metrics.tps_score(y, X.with_cells(np.full(len(X.cells), one)), score=score, **options)
            for one in others
            if abs(one - rate) > 1e-9
        ]
        assert row[name] > max(scores)
        assert row[f"{name} margin"] == 0
    assert row[["S-ECE", "MCB log"]].max() < 1e-12


def test_one_number_a_run_has_the_rate_over_runs(short_wins, report):
    _, y = short_wins
    row, rate = report.table.loc[(BASE, "constant")], y.mean()
    assert row["T-ECE"] < 1e-12
    assert row["T-Brier"] == pytest.approx(rate * (1 - rate))
    assert row["AUROC"] == 0.5
    for n in (0, 1, 128):
        cost = metrics.ecuas_from_confidence(y, np.full(len(y), rate), n=n)
        assert row[f"ECUAS_{n}"] == pytest.approx(cost)


def test_both_rates_are_named_where_they_differ(short_wins, report):
    X, y = short_wins
    rate = np.average(np.repeat(y, X.lengths), weights=1 / np.sqrt(step_of(X)))
    assert y.mean() - rate > 0.05
    said = (
        f"the best constant is the success rate over forecasts, {rate:.3f}, where the rate over "
        f"runs is {y.mean():.3f}"
    )
    assert said in report.disclosures["weights"]
    assert said in " ".join(report.to_text(verbose=True).split())
    found = json.loads(report.to_json())["runs"]
    assert found["rate_over_forecasts"] == pytest.approx(rate)
    assert found["success_rate"] == pytest.approx(y.mean())
    alike = evaluate(X[X.lengths > 2].prefix(3), y[X.lengths > 2], intervals=QUICK)
    assert "rate over runs" not in alike.disclosures["weights"]
    published = evaluate(X, y, weights="linear_front", horizon="own", intervals=QUICK)
    assert "rate over runs" not in published.disclosures["weights"]
    assert "rewards leaning towards how short runs end" in published.disclosures["weights"]


def test_steps_beyond_the_horizon_are_counted(short_wins):
    X, y = short_wins
    report = evaluate(X, y, weights="uniform", horizon=5, calibrator=None, intervals=QUICK)
    n = int(np.maximum(X.lengths - 5, 0).sum())
    assert f"{n:,} steps beyond the horizon are not scored" in report.disclosures["weights"]
    assert json.loads(report.to_json())["runs"]["steps_not_scored"] == n
    whole = evaluate(X, y, weights="uniform", horizon=14, calibrator=None, intervals=QUICK)
    assert "not scored" not in whole.disclosures["weights"]
    cut = evaluate(X.prefix(5), y, weights="uniform", horizon=5, calibrator=None, intervals=QUICK)
    scores = report.options.score_names
    np.testing.assert_allclose(
        report.table[scores].loc["forecast"], cut.table[scores].loc["forecast"]
    )


# -------------------------------------------------------------------------- counting steps


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("name", "end"), [(ALIVE, None), (ALIVE_END, "step")])
def test_the_alive_rate_is_made_out_of_fold(short_wins, name, end, grouped):
    X, y = short_wins
    groups = np.arange(len(y)) // 3 if grouped else None
    report = evaluate(X, y, groups=groups, calibrator=None, intervals=QUICK)
    order = np.argsort(X.ids)
    X, y = X[order].with_ended(), y[order]
    groups = None if groups is None else groups[order]
    expected = cross_fit_traces(AliveRate(end=end), X, y, groups=groups)
    found = report.traces[name, "as_given"]
    np.testing.assert_array_equal(found.cells, expected.cells)
    np.testing.assert_array_equal(found.ids, X.ids)
    row = report.table.loc[(name, "as_given")]
    assert row["TPS log"] == pytest.approx(metrics.tps_score(y, expected))
    assert row["TPS brier"] == pytest.approx(metrics.tps_score(y, expected, score="brier"))


def test_the_alive_rate_is_that_of_other_runs_still_going(short_wins, report):
    X, y = short_wins
    found = report.traces[ALIVE, "as_given"]
    y = y[np.argsort(X.ids)]
    fold = found.meta["cross_fit_fold"].to_numpy()
    assert set(fold) == set(range(5))
    for k in range(5):
        rate = y[fold != k].mean()
        for t in range(1, 10):  # from there on steps share a rate
            going = (fold != k) & (found.lengths >= t)
            rate = (y[going].sum() + 5 * rate) / (going.sum() + 5)
            here = found.cells[np.repeat(fold == k, found.lengths) & (step_of(found) == t)]
            np.testing.assert_allclose(here, rate)


def test_numbers_over_counting_are_differences_of_rows(report):
    for over, name in (("over_alive", ALIVE), ("over_alive_end", ALIVE_END)):
        for metric in (*report.options.score_names, "AUROC"):
            reference = report.table.loc[(name, "as_given"), metric]
            for form in ("as_given", "recalibrated"):
                row = report.table.loc[("forecast", form)]
                assert row[f"{metric} {over}"] == pytest.approx(row[metric] - reference)
                assert row[f"{metric} {over}_low"] < row[f"{metric} {over}"]
            assert np.isnan(report.table.loc[(name, "as_given"), f"{metric} {over}"])
            assert np.isnan(report.table.loc[(BASE, "constant"), f"{metric} {over}"])
    base = report.table.loc[(BASE, "constant"), "TPS log"]
    counted = report.table.loc[(ALIVE, "as_given")]
    assert counted["TPS log margin"] == pytest.approx(counted["TPS log"] - base)
    assert counted["TPS log margin_low"] > 0  # here length tells


def test_a_predictor_is_compared_on_the_runs_that_it_covers(short_wins):
    X, y = short_wins
    gaps = X.with_cells(np.where(np.repeat(np.arange(300) < 90, X.lengths), np.nan, X.cells))
    given = {"judge": X, "gaps": gaps}
    report = evaluate(given, y, missing="own_runs", calibrator=None, intervals=QUICK)
    order = np.argsort(X.ids)
    rows = np.flatnonzero((np.arange(300) >= 90)[order])
    alive = report.traces[ALIVE, "as_given"]
    assert len(alive) == 300
    counted = metrics.tps_score(y[order][rows], alive[rows])
    row = report.table.loc[("gaps", "as_given")]
    assert row["TPS log over_alive"] == pytest.approx(row["TPS log"] - counted)
    whole = report.table.loc[("judge", "as_given")]
    expected = whole["TPS log"] - report.table.loc[(ALIVE, "as_given"), "TPS log"]
    assert whole["TPS log over_alive"] == pytest.approx(expected)


def test_what_knows_only_the_step_is_not_better_than_counting():
    n_better = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = (rng.random(300) < 0.4).astype(int)
        X = TrajectoryArray.from_list(
            [np.zeros(n) for n in np.where(y, rng.integers(2, 9, 300), rng.integers(3, 13, 300))]
        )
        step = X.with_cells(-1.0 * step_of(X))
        skill = step.with_cells(
            step.cells + 2 * np.repeat(y, X.lengths) + rng.normal(0, 1, len(step.cells))
        )
        report = evaluate({"step": step, "skill": skill}, y, scores="log", intervals=QUICK)
        table = report.table
        row = table.loc[("step", "recalibrated")]
        assert row["TPS log margin_low"] > 0  # it beats a constant
        n_better += row["TPS log over_alive_low"] > 0
        n_better += table.loc[("step", "as_given"), "AUROC over_alive_low"] > 0
        assert table.loc[("skill", "recalibrated"), "TPS log over_alive_low"] > 0
        said, other = report.verdicts()
        assert re.search(
            "recalibrated (not distinguishable from|.* worse than) counting steps", said
        )
        assert "it is not shown to rank better than counting steps does" in said
        assert "better than counting steps [+" in other
        assert "it ranks better than counting steps does (AUROC +" in other
    assert n_better == 0


@pytest.mark.parametrize("short", [0, 1], ids=["short runs fail", "short runs succeed"])
def test_counting_ranks_in_the_direction_that_it_learnt(short):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    lengths = np.where(y == short, rng.integers(1, 5, 300), rng.integers(3, 9, 300))
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    table = evaluate(X, y, calibrator=None, intervals=QUICK).table
    assert table.loc[(ALIVE, "as_given"), "AUROC"] > 0.8
    assert table.loc[("forecast", "as_given"), "AUROC over_alive_high"] < 0


def test_counting_that_ranks_worse_than_chance_ranks_as_chance(rng):
    worst = 1.0
    for _ in range(5):  # of lengths that tell nothing rates are learnt that hold nowhere else
        X = TrajectoryArray(rng.random(900), rng.permutation(np.repeat([5, 10], 60)))
        table = evaluate(X, rng.integers(0, 2, 120), calibrator=None, intervals=QUICK).table
        areas = table["AUROC"][[(ALIVE, "as_given"), (ALIVE_END, "as_given")]]
        worst = min(worst, areas.min())
    assert worst == 0.5


def test_few_runs_are_counted_in_sample():
    report = evaluate([[0.5, 0.4], [0.6]], [1, 0], intervals=IntervalOptions(5))
    fitted = AliveRate().fit(report.traces["forecast", "as_given"], [1, 0])
    expected = fitted.transform(report.traces["forecast", "as_given"]).cells
    np.testing.assert_array_equal(report.traces[ALIVE, "as_given"].cells, expected)


# -------------------------------------------------------------------------- the end of a run


@pytest.fixture(scope="module")
def ending():
    """Runs that end of themselves when they succeed, mostly, and at the sixth step otherwise."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.geometric(0.25, 800), 6)
    y = (rng.random(800) < np.where(lengths < 6, 0.8, 0.1)).astype(int)
    own = np.minimum(0.75 ** np.arange(5, -1, -1), 1.0)  # at step t: P(the sixth is reached)
    X = TrajectoryArray(np.zeros(lengths.sum()), lengths)
    step = step_of(X)
    counts = X.with_cells(0.1 * own[step - 1] + 0.8 * (1 - own[step - 1]))
    # of those that go on, one step less can end them
    going = 0.1 * own[np.minimum(step, 5)] + 0.8 * (1 - own[np.minimum(step, 5)])
    is_last = step == np.repeat(lengths, lengths)
    knows = X.with_cells(np.where(is_last, np.where(step < 6, 0.8, 0.1), going))
    return {"counts": counts, "knows": knows}, y


WITH_THE_END = "where it is known which step is the last (end= or --end says whether it is)"


def test_both_ways_of_counting_are_told_where_the_sentence_changes(ending, short_wins):
    X, y = ending
    report = evaluate(X, y, calibrator=None, intervals=QUICK)
    assert report.facts.knows_end == {"counts": None, "knows": None}
    counts, knows = report.verdicts()
    for said, first, other in (
        (counts, "not distinguishable from", r"0\.\d{3} nats worse than"),
        (knows, r"0\.\d{3} nats better than", "not distinguishable from"),
    ):
        both = rf"as given {first} counting steps \[[^]]*\], and {other} counting steps \[[^]]*\] "
        assert re.search(both + re.escape(WITH_THE_END), said)
    # cards say the same of the ranking
    intervals = report.intervals.copy()
    intervals.loc[("knows", "as_given", "AUROC"), ["over_alive_low", "over_alive_high"]] = 0.1, 0.2
    page = replace(report, intervals=intervals).to_html()
    both = "ranks better than counting steps does, and is not shown to rank better than counting"
    assert re.findall(rf"It {both} steps does {re.escape(WITH_THE_END)}\.", page)
    assert "It is not shown to rank better than counting steps does." in page
    # where both ways say the same, one is told
    X, y = short_wins
    nearly_sure = X.with_cells(0.1 + 0.8 * np.repeat(y, X.lengths))
    report = evaluate(nearly_sure, y, calibrator=None, intervals=QUICK)
    assert report.facts.knows_end == {"forecast": None}
    assert WITH_THE_END not in report.verdicts()[0]
    assert WITH_THE_END not in report.to_html()


@pytest.mark.parametrize(
    ("end", "knowing"),
    [
        (True, {"counts": True, "knows": True}),
        (False, {"counts": False, "knows": False}),
        ({"knows": True}, {"counts": None, "knows": True}),
        ({"knows": np.True_, "counts": False}, {"counts": False, "knows": True}),
    ],
    ids=["known", "unknown", "of one", "of each"],
)
def test_end_says_what_predictors_know(ending, end, knowing):
    X, y = ending
    report = evaluate(X, y, end=end, calibrator=None, intervals=QUICK)
    assert report.facts.knows_end == knowing
    assert json.loads(report.to_json())["options"]["knows_end"] == knowing
    page = report.to_html()
    for name, said in zip(X, report.verdicts(), strict=True):
        row = report.table.loc[(name, "as_given")]
        assert (WITH_THE_END in said) == (knowing[name] is None)
        over = "over_alive_end" if knowing[name] else "over_alive"
        ends = [row[f"TPS log {over}{part}"] for part in ("_low", "_high")]
        assert f"counting steps [{ends[0]:+.3f}, {ends[1]:+.3f}]" in said
        assert f"(AUROC {row[f'AUROC {over}']:+.3f} [" in said
    assert (WITH_THE_END in page) == (None in knowing.values())
    # numbers are the same, whatever is said of them
    assert report.table.equals(evaluate(X, y, calibrator=None, intervals=QUICK).table)


def test_a_calibrator_says_whether_it_knows_the_end(ending):
    X, y = ending
    for end, knows in ((None, False), ("step", True)):
        model = PrefixForecaster(features="last", pooled=True, end=end)
        report = evaluate(X["knows"], y, calibrator=model, intervals=QUICK)
        assert report.facts.knows_end == {"forecast": knows}
        said = evaluate(X["knows"], y, calibrator=model, end=not knows, intervals=QUICK)
        assert said.facts.knows_end == {"forecast": not knows}
    report = evaluate(X["knows"], y, calibrator=PlattCrossFitCalibrator(), intervals=QUICK)
    assert report.facts.knows_end == {"forecast": None}


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("known", "end must be True, False or None, got 'known'; True says that the predictor"),
        (1, "end must be True, False or None, got 1"),
        ({"knows": "yes"}, "end of predictor 'knows' must be True, False or None, got 'yes'"),
        ({"know": True}, "end: no predictor named 'know'; did you mean 'knows'"),
    ],
)
def test_what_end_cannot_be(ending, end, message):
    X, y = ending
    with pytest.raises(ValueError, match=message):
        evaluate(X, y, end=end)
    frame = TrajectoryArray.to_frame(X["knows"], id="run", step="t", value="knows")
    frame["counts"], frame["y"] = X["counts"].cells, np.repeat(y, X["knows"].lengths)
    columns = {"id": "run", "step": "t", "value": ["counts", "knows"], "outcome": "y"}
    with pytest.raises(ValueError, match=message):
        evaluate(iter_batches(frame, **columns), end=end)


def test_a_run_that_counts_by_q_z_goes_on(ending):
    X, y = ending
    cut = np.where(X["knows"].lengths == 6, -1, y)
    report = evaluate(X, cut, q_z=np.full(800, 0.1), calibrator=None, intervals=QUICK)
    found = report.traces[ALIVE_END, "as_given"]
    codes = report.outcomes[ALIVE_END, "as_given"]
    last = found.cells[found.offsets[1:] - 1]
    before = found.cells[found.offsets[1:] - 2]
    assert last[(codes != -1) & (found.lengths == 2)].min() > 0.7  # it has come to its end
    at_six = codes == -1
    assert abs(last - before)[at_six].max() < 0.2  # it goes on, for all that is known


def test_the_end_does_not_tell_which_outcomes_are_missing():
    X, y = make_trajectories(1000, random_state=0, return_X_y=True)
    missing = np.random.default_rng(0).random(1000) < 0.5
    y = np.where(missing, -1, y)
    report = evaluate(X.with_ended(False), y, calibrator=None, intervals=QUICK)
    assert report.table.loc[(ALIVE_END, "as_given"), "AUROC"] < 0.56
    said = evaluate(X.with_ended(), y, calibrator=None, intervals=QUICK)
    np.testing.assert_array_equal(
        report.traces[ALIVE_END, "as_given"].cells, said.traces[ALIVE_END, "as_given"].cells
    )


def test_hotpotqa_is_held_against_both_ways_of_counting(hotpotqa):
    report = evaluate(*hotpotqa, intervals=IntervalOptions(2))
    said = report.verdicts()[0]
    assert "recalibrated 0.020 nats better than counting steps [+0.017, +0.023]" in said
    assert f"0.033 nats worse than counting steps [-0.037, -0.030] {WITH_THE_END}" in said


def test_places_are_shares_of_their_fold():
    confidence, fold = np.array([5.0, 1.0, 1.0, 9.0, 9.0, 7.0]), np.array([0, 0, 0, 0, 1, 1])
    places = _places_in_folds(confidence, fold)
    np.testing.assert_allclose(places, [3 / 4, 1.5 / 4, 1.5 / 4, 1, 1, 1 / 2])
