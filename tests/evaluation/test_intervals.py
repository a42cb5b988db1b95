"""How evaluate makes intervals: of which kind, where, and that they are those of inference."""

import numpy as np
import pytest

from judged import drawn, evaluate
from trajscore import TrajectoryArray, metrics

FAST = {"calibrator": None, "families": "log"}


@pytest.fixture(scope="module")
def runs():
    """Runs with some overconfident forecasts."""
    rng = np.random.default_rng(3)
    z = 1.5 * rng.normal(size=1200)
    p = 1 / (1 + np.exp(-z[:, None] - rng.normal(size=(1200, 3)) / 2))
    y = (rng.random(1200) < 1 / (1 + np.exp(-z))).astype(int)
    return TrajectoryArray.from_padded(p), y


@pytest.fixture(scope="module")
def by_auto(runs):
    return evaluate(*runs, intervals=drawn(300))


def test_many_regular_runs_have_the_normal_interval_of_a_mean(runs, by_auto):
    X, y = runs
    made = by_auto.interval_methods["value"].xs("as_given", level="form")
    assert set(made[~made.index.get_level_values("metric").str.contains("ECUAS_128")]) == {
        "influence", "bounds",
    }  # fmt: skip
    is_error = made.index.get_level_values("metric").str.contains("ECE|MCB")
    assert set(made[is_error]) == {"bounds"}
    row = by_auto.intervals.loc[("forecast", "as_given", "TPS log")]
    samples = metrics.tps_samples(y, X)
    constant = metrics.tps_samples(y, X.with_cells(np.full(len(X.cells), y.mean())))
    for name, values in (("", samples), ("margin_", samples - constant)):
        half = 1.96 * values.std(ddof=1) / np.sqrt(1200)
        ends = row[[f"{name}low", f"{name}high"]].to_numpy()
        assert ends.mean() == pytest.approx(values.mean(), abs=half / 10)
        assert np.ptp(ends) / 2 == pytest.approx(half, rel=0.03)


def test_influences_and_bootstrap_agree_where_runs_are_many(runs, by_auto):
    one, made = by_auto.intervals, by_auto.interval_methods
    other = evaluate(*runs, intervals=drawn(300, "bootstrap")).intervals
    for level in ("", "margin_", "over_as_given_"):
        width = one[f"{level}high"] - one[f"{level}low"]
        usual = width.index[(width > 0) & (made[level[:-1] or "value"] == "influence")]
        for end in ("low", "high"):
            gap = (one - other).loc[usual, f"{level}{end}"].abs() / width[usual]
            assert gap.max() < 0.2


def test_the_bootstrap_draws_by_its_seed(runs):
    X, y = runs
    draws = drawn(400, "bootstrap")
    report = evaluate(X[:200], y[:200], **FAST, intervals=draws)
    assert "bootstrap" in report.disclosures["intervals"]

    again = evaluate(X[:200], y[:200], **FAST, intervals=draws)
    assert again.intervals.equals(report.intervals)
    other = evaluate(X[:200], y[:200], **FAST, intervals=draws | {"random_state": 1})
    assert other.intervals["value"].equals(report.intervals["value"])
    assert not other.intervals["low"].equals(report.intervals["low"])


def test_few_of_an_outcome_are_drawn_from(runs):
    X, _ = runs
    confident = X.with_cells(0.9 + X.cells / 10)
    y = (np.arange(1200) % 50 > 0).astype(int)
    report = evaluate(confident, y, **FAST, intervals=drawn(50))
    made = report.interval_methods["value"].loc["forecast"].loc["as_given"]
    assert made[["AUROC", "AURC", "TPS log"]].tolist() == ["bootstrap"] * 3
    assert made["T-ECE"] == "bounds"
    draws = drawn(method="influence", confidence_level=0.8)
    asked = evaluate(confident, y, **FAST, intervals=draws)
    assert "bootstrap" not in asked.interval_methods.to_numpy()
    assert "80%" in asked.disclosures["intervals"]
    assert asked.cards["confidence_level"].iloc[0] == pytest.approx(0.8)


def test_losses_not_seen_yet_are_in_the_interval(quick):
    y = np.arange(200) % 2
    p = np.where(y == 1, 0.6, 0.4)
    p[1:100:2] = 1 - 1e-6  # 50 of these, and all succeeded
    report = evaluate(TrajectoryArray.from_padded(p[:, None]), y, calibrator=None, intervals=quick)
    row = report.intervals.loc[("forecast", "as_given", "TPS log")]
    unseen = (1 - 0.05 ** (1 / 50)) * 50 / 200 * (np.log(1 - 1e-6) - np.log(1e-6))
    assert row["low"] == pytest.approx(row["value"] - unseen, rel=1e-9)
    assert row["margin_low"] == pytest.approx(row["margin"] - unseen, rel=1e-9)  # y is even
    assert report.cards["as_given_low"].iloc[0] == pytest.approx(row["margin_low"])
    at_step = report.by_step.loc[("forecast", "as_given", 1)]
    assert at_step["margin_low"] == pytest.approx(row["margin_low"])
    assert row["high"] - row["value"] < unseen / 5
    cost = report.intervals.loc[("forecast", "as_given", "ECUAS_0")]
    assert cost["high"] - cost["value"] > 3 * (cost["value"] - cost["low"])


def test_runs_of_a_cluster_are_no_evidence_of_their_own(runs, fast):
    X, y = runs
    rows = np.repeat(np.arange(150), 4)
    four = TrajectoryArray.from_padded(X.padded()[rows])
    one, copies, clusters = (
        evaluate(*given, **fast, groups=groups)
        for given, groups in (
            ((X[:150], y[:150]), None), ((four, y[rows]), None), ((four, y[rows]), rows),
        )
    )  # fmt: skip
    for table in ("intervals", "by_step", "equal_length"):
        found = [getattr(report, table).loc["forecast"] for report in (one, copies, clusters)]
        names = {"intervals": ("low", "high")}.get(table, ("AUROC_low", "AUROC_high"))
        if table == "intervals":
            found = [own.loc[[("as_given", "TPS log"), ("as_given", "AUROC")]] for own in found]
        widths = [(own[names[1]] - own[names[0]]).to_numpy() for own in found]
        np.testing.assert_allclose(widths[2], widths[0], rtol=0.03, err_msg=table)
        np.testing.assert_allclose(widths[1], widths[0] / 2, rtol=0.06, err_msg=table)
    cards = [report.cards.iloc[0] for report in (one, clusters)]
    ends = [card["as_given_high"] - card["as_given_low"] for card in cards]
    assert ends[0] == pytest.approx(ends[1], rel=0.03)
    assert clusters.runs.groups is not None
    assert "paired by cluster of runs" in clusters.disclosures["intervals"]


def test_calibration_errors_are_not_said_to_be_above_zero_by_chance(runs, by_auto, fast):
    X, y = runs
    calibrated = by_auto.intervals.loc[("forecast", "recalibrated", "S-ECE")]
    assert calibrated["low"] == 0 < calibrated["value"] < calibrated["high"]
    constant = by_auto.intervals.loc["base rate"].xs("S-ECE", level="metric")
    assert (constant[["low", "high"]] == 0).all(axis=None)  # calibrated by construction
    halved = evaluate(X.with_cells(X.cells / 2), y, **fast).intervals
    wrong = halved.loc["forecast"].loc["as_given"]
    assert (wrong.loc[["S-ECE", "T-ECE"], "low"] > 0).all()
    assert wrong.loc["MCB log", "low"] == 0
    # a base rate of the same runs has none, so the margin is the error itself
    margins = wrong.loc["T-ECE", ["margin", "margin_low", "margin_high"]]
    assert margins.tolist() == pytest.approx(wrong.loc["T-ECE", ["value", "low", "high"]].tolist())


@pytest.mark.parametrize(("n_rarer", "has_interval"), [(4, False), (5, True)])
def test_differences_need_five_runs_of_each_outcome(runs, fast, n_rarer, has_interval):
    X = runs[0][:40]
    for y in (np.arange(40) >= n_rarer, np.arange(40) < n_rarer):
        report = evaluate(X, y.astype(int), **fast)
        row, card = report.intervals.loc["forecast", "as_given", "TPS log"], report.cards.iloc[0]
        assert np.isfinite(row[["value", "low", "high", "margin"]].astype(float)).all()
        assert np.isfinite(row[["margin_low", "over_alive_high"]]).all() == has_interval
        assert np.isfinite([card["as_given_low"], card["as_given_high"]]).all() == has_interval
        assert ("[no interval]" in report.to_markdown()) != has_interval


def test_differences_of_costs_of_rare_errors_have_no_interval(by_auto):
    row = by_auto.intervals.loc["forecast", "recalibrated", "ECUAS_128"]
    assert np.isfinite(row[["low", "high", "margin", "over_as_given"]].astype(float)).all()
    assert np.isnan(row[["margin_low", "margin_high", "over_as_given_low"]].astype(float)).all()


def test_what_others_are_drawn_for_changes_nothing(runs):
    X, y = runs
    sure = X.with_cells(np.where(X.cells > 0.97, 1.0, X.cells))
    draws = drawn(30)
    alone = evaluate({"a": X[:300]}, y[:300], **FAST, intervals=draws).intervals
    beside = evaluate({"a": X[:300], "b": sure[:300]}, y[:300], **FAST, intervals=draws).intervals
    assert beside.loc[["a"]].equals(alone.loc[["a"]])
