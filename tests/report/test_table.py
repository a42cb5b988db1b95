"""The numbers of the table are those of the functions that have their names."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import PredefinedSplit

from judged import drawn, evaluate
from known_scores import collapsed, steps_of
from trajscore import PrefixForecaster, TrajectoryArray, metrics
from trajscore.calibration import AliveRate, EnsembleCrossFitCalibrator, cross_fit_traces
from trajscore.datasets import make_trajectories

BASE, ALIVE, ALIVE_END = "base rate", "alive rate", "alive rate, end known"


def test_columns_are_the_metrics_of_their_names(chess, report):
    X, y = chess
    failed = np.maximum(y, 0)
    calibrated = EnsembleCrossFitCalibrator().fit_transform(X["material"], y)
    for form, trace in (("as_given", X["material"]), ("recalibrated", calibrated)):
        row = report.table.loc[("material", form)]
        assert (row["n_runs"], row["n_censored"]) == (360, 67)
        for name, value in metrics.trajectory_diagnostics(failed, trace).items():
            assert row[name] == pytest.approx(value, abs=1e-12), name
        scores = {"TPS log": "log", "TPS brier": "brier", "TPS beta(4,2)": ("beta", 4, 2)}
        for name, score in scores.items():
            assert row[name] == pytest.approx(metrics.censored_tps_score(y, trace, score=score))
        for name in ("S-ECE", "S-ECE early", "S-ECE middle", "S-ECE late"):
            part = name.partition(" ")[2] or None
            expected = metrics.step_calibration_error(failed, trace, part=part)
            assert row[name] == pytest.approx(expected), name
        for n in (0, 1, 128):
            expected = metrics.ecuas_from_confidence(failed, collapsed(trace), n=n)
            assert row[f"ECUAS_{n}"] == pytest.approx(expected)


@pytest.mark.parametrize("phi", ["last", "min"])
def test_one_number_a_run_is_collapsed_as_asked(short_wins, fast, phi):
    X, y = short_wins
    report = evaluate(X, y, phi=phi, **fast)
    row, number = report.table.loc[("forecast", "as_given")], collapsed(X, phi)
    assert row["AUROC"] == pytest.approx(roc_auc_score(y, number))
    assert row["T-Brier"] == pytest.approx(np.mean((number - y) ** 2))
    assert row["ECUAS_1"] == pytest.approx(metrics.ecuas_from_confidence(y, number))


def test_the_miscalibration_is_what_the_best_map_gains(counted, short_wins):
    X, y = short_wins
    parts = metrics.tps_decomposition(y, X)
    row = counted.table.loc[("forecast", "as_given")]
    assert row["MCB log"] == pytest.approx(parts.miscalibration, abs=1e-9)
    assert counted.table.loc[(BASE, "constant"), "MCB log"] == pytest.approx(0, abs=1e-12)


def test_graded_outcomes_are_means_over_both(counted, short_wins, quick):
    X, y = short_wins
    graded = np.where(np.arange(len(y)) < 30, 0.25, y)
    row = evaluate(X, graded, calibrator=None, intervals=quick).table.loc[("forecast", "as_given")]
    assert row["TPS log"] == pytest.approx(metrics.tps_score(graded, X))
    right, wrong = ([metrics.ecuas_from_confidence([v], [c]) for c in collapsed(X)] for v in (1, 0))
    assert row["ECUAS_1"] == pytest.approx(np.mean(graded * right + (1 - graded) * wrong))


# ------------------------------------------------------------------ the best constant


@pytest.mark.filterwarnings("ignore:horizon=6 leaves")
@pytest.mark.parametrize(
    ("options", "weight"),
    [
        ({}, lambda t, n: 1 / np.sqrt(t)),
        ({"weights": "linear_front", "horizon": 6}, lambda t, n: np.maximum(7 - t, 0) / 21),
        ({"weights": "linear_front", "horizon": "own"}, lambda t, n: 2 * (n - t + 1) / (n * n + n)),
    ],
    ids=["early", "horizon", "as published"],
)
def test_the_base_rate_is_the_best_constant(short_wins, quick, options, weight):
    X, y = short_wins
    report = evaluate(X, y, families=("log", "brier"), **options, calibrator=None, intervals=quick)
    w = weight(steps_of(X), np.repeat(X.lengths, X.lengths))
    rate = np.average(np.repeat(y, X.lengths), weights=w)
    assert report.facts.base_rate == pytest.approx(rate)
    assert report.traces[BASE, "constant"].cells == pytest.approx(rate)
    row = report.table.loc[(BASE, "constant")]
    for name, score in zip(report.options.score_names, report.options.scores, strict=True):
        for other in (0.05, 0.3, rate - 1e-3, rate + 1e-3, 0.6, 0.95):
            constant = X.with_cells(np.full(len(X.cells), other))
            assert row[name] > metrics.tps_score(y, constant, score=score, **options)
        assert row[f"{name} margin"] == 0
    assert row[["S-ECE", "MCB log"]].max() < 1e-12
    assert report.table.loc[("forecast", "as_given"), "TPS log"] == pytest.approx(
        metrics.tps_score(y, X, **options)
    )


def test_one_number_a_run_has_the_rate_over_runs(short_wins, counted):
    _, y = short_wins
    row, rate = counted.table.loc[(BASE, "constant")], y.mean()
    assert row["T-ECE"] < 1e-12
    assert row["T-Brier"] == pytest.approx(rate * (1 - rate))
    assert row["AUROC"] == 0.5
    for n in (0, 1, 128):
        cost = metrics.ecuas_from_confidence(y, np.full(len(y), rate), n=n)
        assert row[f"ECUAS_{n}"] == pytest.approx(cost)


def test_steps_beyond_the_horizon_are_not_scored(short_wins, fast):
    X, y = short_wins
    options = {"weights": "uniform", "horizon": 5, **fast}
    report = evaluate(X, y, **options)
    n = int(np.maximum(X.lengths - 5, 0).sum())
    assert report.facts.n_unscored == n
    assert f"{n:,} not scored" in report.disclosures["steps beyond the horizon"]
    cut = evaluate(X.prefix(5), y, **options)
    assert cut.facts.n_unscored == 0
    ours, theirs = (one.table[report.options.score_names].loc["forecast"] for one in (report, cut))
    np.testing.assert_allclose(ours, theirs)


def test_margins_and_gains_are_differences_of_rows(report):
    table, base = report.table, report.table.loc[(BASE, "constant")]
    for name in report.options.score_names:
        np.testing.assert_allclose(table[f"{name} margin"], table[name] - base[name], atol=1e-12)
    for name in report.predictors:
        for metric in report.options.metrics:
            given, mapped = table.loc[name][metric][["as_given", "recalibrated"]]
            row = report.calibration_gain.loc[(name, metric)]
            sign = -1 if metric in report.options.lower_is_better else 1
            assert row[["as_given", "recalibrated"]].tolist() == pytest.approx([given, mapped])
            assert row["gain"] == pytest.approx(sign * (mapped - given), abs=1e-12)
            if metric != "ECUAS_128":  # whose differences have no interval
                assert row["gain_low"] <= row["gain"] + 1e-12
                assert row["gain"] <= row["gain_high"] + 1e-12


# ------------------------------------------------------------------ counting steps


@pytest.mark.parametrize("is_grouped", [False, True])
def test_the_alive_rates_are_made_out_of_fold(short_wins, counted, fast, is_grouped):
    X, y = short_wins
    groups = np.arange(len(y)) // 3 if is_grouped else None
    report = counted
    if is_grouped:
        report = evaluate(X, y, groups=groups, **fast)
    order = np.argsort(X.ids)
    X, y = X[order].with_ended(), y[order]
    groups = None if groups is None else groups[order]
    for name, end in ((ALIVE, None), (ALIVE_END, "step")):
        expected = cross_fit_traces(AliveRate(end=end), X, y, groups=groups)
        np.testing.assert_array_equal(report.traces[name, "as_given"].cells, expected.cells)
        row = report.table.loc[(name, "as_given")]
        assert row["TPS log"] == pytest.approx(metrics.tps_score(y, expected))


def test_numbers_over_counting_are_differences_of_rows(counted):
    table = counted.table
    for over, name in (("over_alive", ALIVE), ("over_alive_end", ALIVE_END)):
        for metric in (*counted.options.score_names, "AUROC"):
            reference = table.loc[(name, "as_given"), metric]
            for form in ("as_given", "recalibrated"):
                row = table.loc[("forecast", form)]
                assert row[f"{metric} {over}"] == pytest.approx(row[metric] - reference)
                assert row[f"{metric} {over}_low"] < row[f"{metric} {over}"]
            for key in ((name, "as_given"), (BASE, "constant")):
                assert np.isnan(table.loc[key, f"{metric} {over}"])
    assert table.loc[(ALIVE, "as_given"), "TPS log margin_low"] > 0  # here length tells


def test_what_knows_only_the_step_is_not_better_than_counting(quick):
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.4).astype(int)
    lengths = np.where(y, rng.integers(2, 9, 300), rng.integers(3, 13, 300))
    step = TrajectoryArray(np.zeros(lengths.sum()), lengths)
    step = step.with_cells(-1.0 * steps_of(step))
    noise = rng.normal(0, 1, len(step.cells))
    skill = step.with_cells(step.cells + 2 * np.repeat(y, lengths) + noise)
    report = evaluate({"step": step, "skill": skill}, y, families="log", intervals=quick)
    row = report.table.loc[("step", "recalibrated")]
    assert row["TPS log margin_low"] > 0  # it beats a constant
    assert row["TPS log over_alive_low"] < 0
    assert report.table.loc[("step", "as_given"), "AUROC over_alive_low"] <= 0
    assert report.table.loc[("skill", "recalibrated"), "TPS log over_alive_low"] > 0
    of_step, other = report.verdicts()
    assert "its ranking is not shown to differ from counting steps" in of_step
    assert "; it is not shown to differ from counting steps" in report.to_markdown()
    assert "better than counting steps (+" in other
    longer = lengths + 5 * (1 - y)
    noise = TrajectoryArray(rng.uniform(0.1, 0.9, longer.sum()), longer)
    text = " ".join(evaluate({"noise": noise}, y, together=True).to_text().split())
    assert "Does noise know anything? Not known yet: with its history and the step it goes" in text
    assert "but it is not shown to differ from counting steps" in text


@pytest.mark.parametrize("short", [0, 1], ids=["short runs fail", "short runs succeed"])
def test_counting_ranks_in_the_direction_that_it_learnt(fast, short):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    lengths = np.where(y == short, rng.integers(1, 5, 300), rng.integers(3, 9, 300))
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    table = evaluate(X, y, **fast).table
    assert table.loc[(ALIVE, "as_given"), "AUROC"] > 0.8
    assert table.loc[("forecast", "as_given"), "AUROC over_alive_high"] < 0


def test_counting_that_ranks_worse_than_chance_ranks_as_chance(rng, fast):
    X = TrajectoryArray(rng.random(900), rng.permutation(np.repeat([5, 10], 60)))
    y = np.arange(120) % 2  # of which lengths tell nothing
    table = evaluate(X, y, **fast).table
    assert table["AUROC"][[(ALIVE, "as_given"), (ALIVE_END, "as_given")]].min() >= 0.5


def test_a_run_that_counts_by_q_z_has_not_come_to_its_end(fast):
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.geometric(0.25, 800), 6)
    y = (rng.random(800) < np.where(lengths < 6, 0.8, 0.1)).astype(int)
    X = TrajectoryArray(np.full(lengths.sum(), 0.5), lengths)
    cut = np.where(lengths == 6, -1, y)
    report = evaluate(X, cut, censored=np.full(800, 0.1), **fast)
    found = report.traces[ALIVE_END, "as_given"]
    codes = report.runs.y
    last = found.cells[found.offsets[1:] - 1]
    assert last[(codes != -1) & (found.lengths == 2)].min() > 0.7  # it has come to its end
    before = found.cells[found.offsets[1:] - 2]
    assert abs(last - before)[codes == -1].max() < 0.2  # it goes on, for all that is known


def test_the_end_does_not_tell_which_outcomes_are_missing(fast):
    X, y = make_trajectories(1000, random_state=0, return_X_y=True)
    y = np.where(np.random.default_rng(0).random(1000) < 0.5, -1, y)
    report, said = (evaluate(X.with_ended(ended), y, **fast) for ended in (False, True))
    assert report.table.loc[(ALIVE_END, "as_given"), "AUROC"] < 0.56
    np.testing.assert_array_equal(
        report.traces[ALIVE_END, "as_given"].cells, said.traces[ALIVE_END, "as_given"].cells
    )


# ------------------------------------------------------------------ calibrators


def test_signals_are_ranked_as_given_and_scored_recalibrated():
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    signal = X.with_cells(10 * X.cells - 3)
    report = evaluate({"p": X, "odds": signal}, y, families="log", intervals=drawn(20))
    raw = report.table.loc[("odds", "as_given")]
    assert np.isnan(raw[["TPS log", "S-ECE", "T-Brier", "ECUAS_1", "MCB log"]].astype(float)).all()
    assert raw["AUROC"] == pytest.approx(metrics.trajectory_diagnostics(y, X)["AUROC"])
    assert report.table.loc[("odds", "recalibrated"), "TPS log margin"] > 0
    assert "as given it is not a probability" in report.verdicts()[1]
    said = report.disclosures["calibration"]
    assert "EnsembleCrossFitCalibrator() for p;" in said
    assert "link='identity') for odds" in said


def test_minus_a_risk_that_is_zero_but_for_rounding_is_no_probability():
    report = evaluate({"minus a risk": [[-2e-16, 0.0], [0.0, -2e-16]] * 10}, [0, 1] * 10)
    assert report.table["TPS log"].isna()["minus a risk", "as_given"]


def test_what_cannot_be_recalibrated_is_noted(quick):
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    turned = {"turned": X.with_cells(1 - X.cells)}
    notes = evaluate(turned, y, families="log", intervals=quick).notes
    assert any(note.startswith("turned") and "do not go with" in note for note in notes)
    few = evaluate([[0.5], [0.6]], [1, 0], intervals=drawn(10))
    assert any("not recalibrated" in note for note in few.notes)
    assert few.predictors == ["forecast"]
    assert "recalibrated" not in few.table.index.get_level_values("form")


# ------------------------------------------------------------------ at a step, at equal length


def test_numbers_at_a_step_are_of_the_runs_that_get_there(chess, report):
    X, y = chess
    success = np.where(y == 1, 1, 0)
    table = report.by_step.loc["material"].loc["as_given"]
    assert {1, 2, 3, 4, 6, 8, 10, 15, 20} <= set(table.index)
    for t in (1, 10, 30):
        there = X.lengths >= t
        p = X["material"].cells.ravel()[X.offsets[:-1][there] + t - 1]
        row = table.loc[t]
        assert row["n_runs"] == there.sum()
        assert row["success_rate"] == pytest.approx(success[there].mean())
        assert row["AUROC"] == pytest.approx(roc_auc_score(success[there], p))
        score = metrics.tps_samples(success[there], p[:, None]).mean()
        rate = np.full((there.sum(), 1), success[there].mean())
        margin = score - metrics.tps_samples(success[there], rate).mean()
        assert row[["score", "margin"]].to_numpy() == pytest.approx([score, margin])
        assert row["AUROC_low"] < row["AUROC"] < row["AUROC_high"]
        assert row["margin_low"] < row["margin"] < row["margin_high"]


def area_by_pairs(values, y, lengths):
    """Share of pairs of equally long runs in which the one that succeeded has more."""
    pairs = [
        (i, k) for i in np.flatnonzero(y == 1) for k in np.flatnonzero(y == 0)
        if lengths[i] == lengths[k]
    ]  # fmt: skip
    return np.mean([(values[i] > values[k]) + 0.5 * (values[i] == values[k]) for i, k in pairs])


@pytest.mark.parametrize("n_success", [10, 9])
def test_pairs_of_equally_long_runs_by_hand(rng, fast, n_success):
    lengths = np.repeat([1, 2, 3], [12, 12, 6])
    y = np.append(np.arange(24) % 2, np.ones(6, dtype=int))  # long ones have no partner
    y[np.flatnonzero(y[:24])[n_success:]] = 0
    cells = rng.random(lengths.sum())
    last = cells[np.cumsum(lengths) - 1] = np.round(rng.random(30), 1)
    X = TrajectoryArray(cells, lengths)
    widths = []
    for groups in (None, np.arange(30) // 2):
        found = evaluate(X, y, phi="last", groups=groups, **fast).equal_length.iloc[0]
        assert found["n_runs"] == 24
        if n_success == 9:
            assert found.drop("n_runs").isna().all()
            continue
        area = area_by_pairs(last, y, lengths)
        assert found["AUROC"] == pytest.approx(area)
        assert found["AUROC_low"] < area < found["AUROC_high"]
        assert found["over_length"] == pytest.approx(area - 0.5)
        widths.append(found["over_length_high"] - found["over_length_low"])
    assert len(set(widths)) == len(widths)


@pytest.mark.parametrize("longer_is", [-1, 1])
def test_what_is_left_of_length_in_a_bin_is_taken_off(rng, fast, longer_is):
    lengths = rng.integers(30, 60, 1000)
    y = (rng.random(1000) < 0.5 + longer_is * (lengths - 45) / 32).astype(int)
    X = TrajectoryArray(np.repeat(longer_is * lengths, lengths) * 1.0, lengths)
    report = evaluate({"steps": X}, y, **fast)
    row = report.equal_length.loc[("steps", "as_given")]
    assert row["AUROC"] > 0.53
    assert row[["over_length", "over_length_low", "over_length_high"]].tolist() == [0, 0, 0]


def test_a_learned_length_is_compared_within_folds(rng, fast):
    # at one step a length, learned, differs between folds alone
    fold = np.arange(300) % 5
    X = TrajectoryArray(np.ones(900), [3] * 300)
    y = (rng.random(300) < 0.2 + 0.15 * fold).astype(int)
    learned = PrefixForecaster(features="last", last=1)
    traces = cross_fit_traces(learned, X, y, cv=PredefinedSplit(fold))
    assert roc_auc_score(y, traces.steps(3)[:, 2]) < 0.4
    report = evaluate({"given": traces}, y, **fast)
    assert set(report.by_step["AUROC"]) == {0.5}
    assert set(report.equal_length["AUROC"]) == {0.5}


# ------------------------------------------------------------------ forms of the input


def test_the_order_of_rows_and_threads_do_not_matter(short_wins, quick):
    X, y = short_wins
    order = np.random.default_rng(0).permutation(len(y))
    groups, by = np.arange(300) // 3, np.arange(300) % 2
    options = {"families": "log", "intervals": quick}
    one = evaluate(X, y, groups=groups, by=by, **options)
    options |= {"groups": groups[order], "by": by[order], "n_jobs": 2}
    other = evaluate(X[order], y[order], **options)
    for name in ("table", "intervals", "cards", "by_step", "equal_length", "by"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))


def test_a_random_state_is_drawn_from_once(rng):
    y = (rng.random(200) < 0.08).astype(int)  # so few that some cards need the bootstrap
    X = TrajectoryArray(rng.beta(1, 12, 200), np.ones(200, dtype=int))
    two = {"a": X, "b": X.with_cells(X.cells**2)}
    options = {"families": "log", "calibrator": None}
    one, other = (
        evaluate({k: two[k] for k in names}, y, random_state=np.random.RandomState(3), **options)
        for names in ("ab", "ba")
    )
    one, other = one.cards, other.cards
    pd.testing.assert_frame_equal(one, other.loc[one.index], rtol=0, atol=0)


def test_inputs_in_other_forms(short_wins, fast):
    X, y = short_wins
    expected = evaluate(X, y, **fast)
    frame = pd.DataFrame(X.padded(), index=X.ids)
    for given in (frame, {"forecast": X}):
        pd.testing.assert_frame_equal(evaluate(given, y, **fast).table, expected.table)
    order = np.argsort(X.ids)
    np.testing.assert_array_equal(expected.traces["forecast", "as_given"].ids, X.ids[order])
    np.testing.assert_array_equal(expected.runs.y, y[order])


def test_progress_wraps_what_takes_long(short_wins, fast):
    X, y = short_wins
    seen = []

    def progress(jobs):
        seen.append(len(list(jobs)))
        return jobs

    X = {"a": X, "b": X.with_cells(X.cells**2)}
    report = evaluate(X, y, **fast, progress=progress)
    assert set(seen) == {2}  # predictors
    seen.clear()
    assert report.to_html(progress=progress)
    assert len(seen) == 1
    with pytest.raises(ValueError, match="progress"):
        evaluate(X, y, progress=True)


def test_hotpotqa_is_held_against_both_ways_of_counting(hotpotqa, quick):
    X, y = hotpotqa
    rows = np.arange(0, len(y), 8)
    report = evaluate(X[rows], y[rows], families="log", calibrator="platt", intervals=quick)
    row = report.table.loc[(report.predictors[0], "recalibrated")]
    assert row["TPS log over_alive_low"] > 0
    assert row["TPS log over_alive_end_high"] < 0
    assert "where it is known which step is the last" in report.verdicts()[0]
