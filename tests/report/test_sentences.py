"""What is said of the numbers, beside them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from trajscore import TrajectoryArray, evaluate, metrics
from trajscore.core.collapse import aggregate
from trajscore.report import IntervalOptions
from trajscore.report._numbers import digits_that_show, with_interval
from trajscore.report._verdict import behind_counting


def test_the_gain_is_the_difference_of_the_two_rows(report):
    gain = report.calibration_gain
    rows = report.table.loc["engine"]
    for metric, sign in (
        ("TPS log", 1),
        ("AUROC", 1),
        ("S-ECE", -1),
        ("ECUAS_1", -1),
        ("AURC", -1),
    ):
        found = gain.loc[("engine", metric)]
        raw, calibrated = rows.loc["as_given", metric], rows.loc["recalibrated", metric]
        assert (found["as_given"], found["recalibrated"]) == pytest.approx((raw, calibrated))
        assert found["gain"] == pytest.approx(sign * (calibrated - raw))
        assert found["gain_low"] <= found["gain"] <= found["gain_high"]
    assert set(gain.index.get_level_values("predictor")) == set(report.predictors)
    text = report.to_text(verbose=True)
    assert re.search(r"engine, TPS log +-2\.952 +-0\.590 +\+2\.362 \[\+", text)


def test_gains_are_paired(chess):
    X, y = chess
    both = evaluate(X["engine"], y, intervals=IntervalOptions(100))
    low, high = both.calibration_gain.loc[("engine", "AUROC"), ["gain_low", "gain_high"]]
    alone = both.intervals.loc[("engine", "as_given", "AUROC")]
    assert high - low < (alone["high"] - alone["low"]) / 2
    assert evaluate(
        X["engine"], y, calibrator=None, intervals=IntervalOptions(5)
    ).calibration_gain.empty


def test_calibration_of_steps_leads(chess, report):
    X, y = chess
    failed, table = np.maximum(y, 0), report.table
    raw = report.traces["engine", "as_given"]
    order = np.argsort(X.ids, kind="stable")
    for part in (None, "early", "middle", "late"):
        name = "S-ECE" if part is None else f"S-ECE {part}"
        expected = metrics.step_calibration_error(failed[order], raw, part=part)
        assert table.loc[("engine", "as_given"), name] == pytest.approx(expected)
    expected = metrics.tps_decomposition(failed[order], raw).miscalibration
    assert table.loc[("engine", "as_given"), "MCB log"] == pytest.approx(expected)
    assert table.loc[("base rate", "constant"), ["S-ECE", "MCB log", "T-ECE"]].max() < 1e-12
    said = r"off by 0.268 \[0.\d+, 0.\d+\] as given, 0.027 \[0.000, 0.\d+\] recalibrated \(S-ECE\)"
    assert re.search(said, report.verdicts()[0])
    names = list(table)
    assert names.index("S-ECE") < names.index("T-ECE")


def test_a_difference_that_rounds_to_zero_has_no_sign():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = np.full((400, 1), y.mean()) + rng.normal(0, 1e-4, (400, 1))
    report = evaluate(X, y, calibrator=None, intervals=IntervalOptions(5))
    assert "as given the same as the base rate to 3 decimals;" in report.verdicts()[0]
    for text in (report.to_text(verbose=True), report.to_markdown(), report.to_html()):
        assert not re.search(r"-0\.0+\b", text)


def test_small_differences_have_digits_that_show_them():
    three = (0.0004, 0.0001, 0.0007)
    assert digits_that_show(three[0], 3) == 4
    assert with_interval(three, digits_that_show(three[0], 3), "+") == "+0.0004 [+0.0001, +0.0007]"
    assert with_interval((-0.0004, -0.001, 0.0), 3, "+") == "+0.000 [-0.001, +0.000]"


def test_a_margin_has_the_same_interval_wherever_it_is_stated(report):
    card = report.cards.loc["engine"]
    row = report.intervals.loc[("engine", "recalibrated", "TPS log")]
    assert card["recalibrated_high"] > row["margin_high"]  # as it holds for all predictors at once
    alone = f"[{row['margin_low']:+.3f}, {row['margin_high']:+.3f}]"
    low, high = (f"{card[f'recalibrated_{end}']:+.3f}" for end in ("low", "high"))
    assert f"[{low}, {high}]" in report.verdicts()[0]
    level = "95% for all 3 predictors at once"
    gain = f"{card['gain']:+.3f} [{card['gain_low']:+.3f}, {card['gain_high']:+.3f}]"
    texts = report.to_text(verbose=True), report.to_markdown(), report.to_html()
    for text in texts:
        plain = " ".join(re.sub("<[^>]*>", " ", text).split())
        assert f"[{low}, {high}]" in plain
        assert alone not in plain
    assert gain in texts[0]
    for text in texts:
        assert f"ntervals of TPS log margins hold at {level}" in " ".join(text.split())


def test_a_judge_that_beats_a_constant_and_not_counting_steps_is_named(hotpotqa):
    X, y = hotpotqa
    report = evaluate(X, y, intervals=IntervalOptions(2))
    said = behind_counting(report, "judge_probability")
    assert said.startswith("judge_probability beats a constant, but is 0.")
    assert " nats worse than counting steps where the last step is known [-0." in said
    assert said in " ".join(report.to_markdown().replace("\\", "").split())
    counting = "There, counting its steps, which is free, does better, by 0.03"
    assert counting in " ".join(str(report).split())
    knows = {"judge_probability": False}
    unknown = replace(report, facts=replace(report.facts, knows_end=knows))
    assert behind_counting(unknown, "judge_probability") == ""


@pytest.mark.parametrize(
    ("how", "of_steps", "of_runs"),
    [
        ({}, ["0.111", "0.011"], [0.049, 0.092]),
        (
            {"weights": "linear_front", "horizon": "own", "calibrator": "platt"},
            ["0.085", "0.047"],
            [0.043, 0.078],
        ),
    ],
    ids=["step weights", "as published"],
)
def test_hotpotqa_leads_with_its_steps(hotpotqa, how, of_steps, of_runs):
    X, y = hotpotqa
    report = evaluate(X, y, **how, intervals=IntervalOptions(2))
    gain = report.calibration_gain.loc["judge_probability", ["as_given", "recalibrated"]].round(3)
    assert [f"{one:.3f}" for one in gain.loc["S-ECE"]] == of_steps
    assert gain.loc["T-ECE"].tolist() == of_runs
    said = r"off by {} \[.*\] as given, {} \[.*\] recal".format(*of_steps)
    assert re.search(said, report.verdicts()[0])


def test_clipped_forecasts_are_counted_where_a_log_score_is_used(chess, report):
    X, y = chess
    share = np.mean((X["engine"].cells < 1e-6) | (X["engine"].cells > 1 - 1e-6))
    row = report.sensitivity.loc[("engine", "as_given")]
    assert row["clipped"] == pytest.approx(share)
    other = evaluate(X["engine"], y, scores=("log", 1e-2), intervals=IntervalOptions(2))
    margin = other.table.loc[("engine", "as_given"), "TPS log(clip=0.01) margin"]
    assert row["clip_1e-2"] == pytest.approx(margin)
    assert row["clip_1e-6"] == pytest.approx(row["margin"])
    said = report.disclosures["score"]
    assert (
        f"{share:.1%} of the forecasts of engine as given are clipped (its margin would be -0.574"
        in said
    )
    assert "forecasts clipped to [0.01, 1 - 0.01]" in other.disclosures["score"]
    without = evaluate(X["engine"], y, scores="brier", intervals=IntervalOptions(2))
    assert "clip" not in without.disclosures["score"]
    assert "clipped" not in without.sensitivity


def test_the_verdict_says_where_the_clip_decides():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    p = np.where(rng.random(300) < 0.08, 1 - y, y)  # sure, and wrong in a few cases
    said = evaluate(p[:, None].astype(float), y, intervals=IntervalOptions(5)).verdicts()[0]
    assert "The clip of the log score decides: as given the margin is" in said
    mild = 0.1 + 0.8 * p[:, None]
    assert "clip" not in evaluate(mild, y, intervals=IntervalOptions(5)).verdicts()[0]


def test_what_a_beta_score_asks_is_said(ragged):
    X, y = ragged
    assert (
        "beta(4,2) weighs high thresholds: it punishes overconfidence in runs that fail"
        in (evaluate(X, y, intervals=IntervalOptions(2)).disclosures["score"])
    )
    said = evaluate(
        X, y, scores=[("beta", 2, 4), ("beta", 3, 3)], intervals=IntervalOptions(2)
    ).disclosures["score"]
    assert "beta(2,4) weighs low thresholds: it punishes pessimism" in said
    assert "beta(3,3) weighs thresholds around one half" in said


def test_horizons_beyond_the_end_of_complete_runs_are_disclosed(ragged):
    X, y = ragged
    paper = {"weights": "linear_front", "horizon": "own", "intervals": IntervalOptions(2)}
    assert "horizon beyond" not in evaluate(X, y, **paper).disclosures["weights"]
    longer = TrajectoryArray(X.cells, X.lengths, horizon=np.maximum(X.lengths, 8), ids=X.ids)
    n = (X.lengths < 8).sum()
    said = evaluate(longer, y, **paper).disclosures["weights"]
    assert f"{n} runs with an observed outcome have a horizon beyond their end" in said
    cut = np.where(X.lengths < 8, -1, y)  # a budget may stop a run before its horizon
    assert "horizon beyond" not in evaluate(longer, cut, **paper).disclosures["weights"]
    # of step weights no run's own horizon is read
    assert "beyond" not in evaluate(longer, y, intervals=IntervalOptions(2)).disclosures["weights"]


def test_a_column_that_looks_like_a_risk_is_said_to(ragged):
    X, _ = ragged
    y = (aggregate(X, "weighted") > 0.5).astype(int)
    y[:20] = 1 - y[:20]
    notes = evaluate({"risk": X.with_cells(1 - X.cells)}, y, intervals=IntervalOptions(20)).notes
    assert any(note.startswith("risk: its AUROC is 0.") for note in notes)
    assert "high values go with failure. If it is a risk, give 1 minus it" in " ".join(notes)
    assert not evaluate(X, y, intervals=IntervalOptions(20)).notes


def test_a_column_that_gives_the_outcome_away_is_warned_of(ragged):
    X, y = ragged
    last = X.cells.copy()
    last[X.offsets[1:] - 1] = np.where(y == 1, 0.9, 0.8)
    given = {"judge": X.with_cells(last), "reward": X, "p_success": X}
    notes = evaluate(given, y, intervals=IntervalOptions(5)).notes
    given_away = [note for note in notes if "If it is the outcome" in note]
    assert [note.split(":")[0] for note in given_away] == ["judge", "reward"]
    assert (
        "judge: separates successes from failures without an error at the last step"
        in given_away[0]
    )
    assert "reward: is named like an outcome. If it is the outcome, or was made" in given_away[1]


def test_few_clusters_are_warned_of(ragged):
    X, y = ragged
    notes = evaluate(X, y, groups=np.arange(200) // 100, intervals=IntervalOptions(5)).notes
    assert notes[-1].startswith("intervals: there are 2 clusters of runs. Intervals from fewer")
    uneven = np.where(np.arange(200) < 100, 0, np.arange(200))
    notes = evaluate(X, y, groups=uneven, intervals=IntervalOptions(5)).notes
    assert "there are 101 clusters of runs, equivalent to 4.0 equally large ones" in notes[-1]
    assert not evaluate(X, y, groups=np.arange(200) // 10, intervals=IntervalOptions(5)).notes
