"""How evaluate makes intervals: of which kind, where, and that they are those of inference."""

from types import SimpleNamespace

import numpy as np
import pytest

from trajscore import TrajectoryArray, evaluate, metrics
from trajscore.core.weights import as_step_weights
from trajscore.inference.influence import influence_interval
from trajscore.inference.mean_intervals import by_bootstrap
from trajscore.inference.unseen_losses import unseen_reach
from trajscore.report import IntervalOptions
from trajscore.report._data import Options
from trajscore.report._intervals import _Cells
from trajscore.report._runs import Coverage


@pytest.fixture(scope="module")
def runs():
    """Runs with some overconfident forecasts, in tasks of four."""
    rng = np.random.default_rng(3)
    z = 1.5 * rng.normal(size=1200)
    p = 1 / (1 + np.exp(-z[:, None] - rng.normal(size=(1200, 3)) / 2))
    y = (rng.random(1200) < 1 / (1 + np.exp(-z))).astype(int)
    return TrajectoryArray.from_padded(p), y, np.repeat(np.arange(300), 4)


def test_many_regular_runs_need_no_replicate(runs, monkeypatch):
    X, y, _ = runs
    report = evaluate(X, y, calibrator=None, intervals=IntervalOptions(20))
    made = report.interval_methods["value"]
    assert set(made) == {"influence", "bounds"}
    is_error = made.index.get_level_values("metric").str.contains("ECE|MCB")
    assert set(made[is_error]) == {"bounds"}
    row = report.intervals.loc[("forecast", "as_given", "TPS log")]
    samples = metrics.tps_samples(y, X)
    ends = np.array(influence_interval(samples.mean(), samples - samples.mean()))
    assert row[["low", "high"]].tolist() == pytest.approx(ends.tolist())
    gained = samples - metrics.tps_samples(y, X.with_cells(np.full(len(X.cells), y.mean())))
    ends = np.array(influence_interval(gained.mean(), gained - gained.mean()))
    assert row[["margin_low", "margin_high"]].tolist() == pytest.approx(ends.tolist())
    monkeypatch.setattr("trajscore.report._intervals.bootstrap_units", None)  # is not called
    said = evaluate(X, y, intervals="influence").disclosures["intervals"]
    assert "influence of each run" in said
    assert "bootstrap" not in said


def test_influences_and_bootstrap_agree_where_runs_are_many(runs):
    X, y, _ = runs
    report = evaluate(X, y)
    one, made = report.intervals, report.interval_methods
    other = evaluate(X, y, intervals="bootstrap").intervals
    for level in ("", "margin_", "over_as_given_"):
        width = one[f"{level}high"] - one[f"{level}low"]
        usual = width.index[(width > 0) & (made[level[:-1] or "value"] == "influence")]
        for end in ("low", "high"):
            gap = (one - other).loc[usual, f"{level}{end}"].abs() / width[usual]
            assert gap.max() < 0.12


def test_few_failures_are_drawn_from(runs):
    X, _, _ = runs
    confident = X.with_cells(0.9 + X.cells / 10)
    y = np.ones(len(X), dtype=int)
    y[::50] = 0
    report = evaluate(confident, y, intervals=IntervalOptions(100))
    made = report.interval_methods["value"].loc["forecast"].loc["as_given"]
    assert made[["AUROC", "AURC", "TPS log"]].tolist() == ["bootstrap"] * 3
    assert made["T-ECE"] == "bounds"
    assert "fewer than 30 runs (or a quarter of all" in report.disclosures["intervals"]
    asked = evaluate(
        confident, y, intervals=IntervalOptions(100, method="influence")
    ).interval_methods
    assert "bootstrap" not in asked.to_numpy()


def test_a_rare_outcome_takes_no_influences_until_enough_runs_have_it():
    rng = np.random.default_rng(0)
    for n, kind in ((1000, "bootstrap"), (2000, "influence")):
        y = (np.arange(n) >= n // 20).astype(int)  # 50 and 100 failures
        X = TrajectoryArray.from_padded(np.clip(0.9 + 0.05 * rng.normal(size=(n, 1)), 0.5, 0.99))
        report = evaluate(X, y, calibrator=None, intervals=IntervalOptions(20))
        assert report.interval_methods["value"]["forecast", "as_given", "TPS brier"] == kind


def test_losses_not_seen_yet_are_in_the_interval():
    y = np.arange(200) % 2
    p = np.where(y == 1, 0.6, 0.4)
    p[1:100:2] = 1 - 1e-6  # 50 of these, and all succeeded
    X = TrajectoryArray.from_padded(p[:, None])
    report = evaluate(X, y, calibrator=None, intervals="influence")
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


def test_few_clusters_take_t_and_many_runs_in_them_do_not_help(runs):
    X, y, tasks = runs
    alone = evaluate(X, y, intervals=IntervalOptions(50)).intervals
    few = evaluate(X, y, groups=tasks // 30, intervals=IntervalOptions(50))
    assert few.interval_methods.loc[("forecast", "as_given", "TPS log"), "value"] == "influence"
    assert "paired by cluster of runs" in few.disclosures["intervals"]
    samples = metrics.tps_samples(y, X)
    with pytest.warns(UserWarning, match="there are 10 clusters of runs"):
        ends = influence_interval(samples.mean(), samples - samples.mean(), groups=tasks // 30)
    row = few.intervals.loc[("forecast", "as_given", "TPS log")]
    assert row[["low", "high"]].tolist() == pytest.approx(np.array(ends).tolist(), rel=0.03)
    assert row["value"] == pytest.approx(alone.loc[("forecast", "as_given", "TPS log"), "value"])


def test_calibration_errors_are_not_said_to_be_above_zero_by_chance(runs):
    X, y, _ = runs
    intervals = evaluate(X, y, intervals=IntervalOptions(10)).intervals
    calibrated = intervals.loc[("forecast", "recalibrated", "S-ECE")]
    assert calibrated["low"] == 0 < calibrated["value"] < calibrated["high"]
    constant = intervals.loc["base rate"].xs("S-ECE", level="metric")
    assert (constant[["low", "high"]] == 0).all(axis=None)  # calibrated by construction
    halved = evaluate(
        X.with_cells(X.cells / 2), y, calibrator=None, intervals=IntervalOptions(10)
    ).intervals
    wrong = halved.loc["forecast"].loc["as_given"]
    assert (wrong.loc[["S-ECE", "T-ECE"], "low"] > 0).all()
    assert wrong.loc["MCB log", "low"] == 0
    # a base rate of the same runs has none, so the margin is the error itself
    margins = wrong.loc["T-ECE", ["margin", "margin_low", "margin_high"]]
    values = wrong.loc["T-ECE", ["value", "low", "high"]]
    assert margins.tolist() == pytest.approx(values.tolist())


def test_unknown_kind_is_refused(runs):
    X, y, _ = runs
    with pytest.raises(ValueError, match="intervals must be 'auto', 'bootstrap' or 'influence'"):
        evaluate(X, y, intervals="t")


def test_means_of_very_many_runs_have_the_intervals_of_a_bootstrap(rng, monkeypatch):
    q = rng.beta(2, 2, 4000)
    y = (rng.random(4000) < q).astype(int)
    some_sure = np.where(rng.random(4000) < 0.02, (q > 0.5).astype(float), q)
    X = TrajectoryArray.from_padded(np.stack([q, some_sure], axis=1))

    def drawn(**others):
        report = evaluate({"forecast": X, **others}, y)
        table = report.intervals[(report.interval_methods == "bootstrap").any(axis=1)]
        return table.loc[["forecast"]]

    few = drawn()
    assert ("forecast", "as_given", "ECUAS_128") in few.index  # which few runs decide
    monkeypatch.setattr("trajscore.report._intervals._MANY_RUNS", 1000)
    many = drawn()
    for name in ("", "margin_", "over_as_given_"):
        width = few[f"{name}high"] - few[f"{name}low"]
        for end in ("low", "high"):
            moved = (many[name + end] - few[name + end]) / width
            assert moved.abs().max() < 0.1
    # another one, of which other metrics are drawn, changes nothing
    other = TrajectoryArray.from_padded(np.where(q > 0.97, 1.0, q)[:, None].repeat(2, axis=1))
    np.testing.assert_array_equal(drawn(other=other).loc[many.index], many)


def cells_of(labels, method="influence"):
    labels = np.array(labels, dtype=float)
    runs = Coverage(labels, labels, None, np.arange(len(labels)))
    options = Options(("log",), as_step_weights(), "weighted")
    row = SimpleNamespace(runs=runs, key=("a", "as_given"))
    return _Cells([row], options, IntervalOptions(20, method=method))


def test_replicates_widen_what_they_are_drawn_for(rng):
    cells = cells_of([0, 1] * 10)
    names = cells.names
    n_levels, _, n_metrics = cells.shape
    cells.method[:, 0, 1] = "bootstrap"
    cells.method[:, 0, 2] = "influence"
    cells.estimate[:] = rng.normal(0, 0.1, cells.shape)
    cells.skewness[:] = 0.2
    cells.low[:], cells.high[:] = -0.5, 0.05
    drawn = rng.normal(0, 0.2, (50, n_levels, n_metrics))
    before = cells.low.copy(), cells.high.copy()
    cells.resample(0, drawn, 0.9)
    others = np.arange(n_metrics) != 1
    np.testing.assert_array_equal(cells.low[:, :, others], before[0][:, :, others])
    np.testing.assert_array_equal(cells.high[:, :, others], before[1][:, :, others])
    own = drawn[:, :, 1]
    changes = np.column_stack([own[:, 0], *(own[:, 0] - own[:, k] for k in range(1, n_levels))])
    low, high = by_bootstrap(changes, cells.estimate[:, 0, 1], cells.skewness[:, 0, 1], 0.9)
    np.testing.assert_allclose(cells.low[:, 0, 1], np.minimum(-0.5, low))
    np.testing.assert_allclose(cells.high[:, 0, 1], np.maximum(0.05, high))
    assert cells.marked(0) == [names[1]]
    cells.draw_all(0)
    assert cells.marked(0) == [names[1], names[2]]


@pytest.mark.parametrize(("n_rarer", "n_levels"), [(4, 1), (5, 5)])
def test_differences_of_few_runs_and_of_costs_of_rare_errors_have_no_interval(n_rarer, n_levels):
    cells = cells_of([1] * n_rarer + [0] * 20)
    cells.method[:] = "influence"
    column = cells.names.index("ECUAS_128")
    withheld = cells._withheld()
    assert (~withheld).sum(axis=0)[0].tolist() == [
        1 if k == column else n_levels for k in range(len(cells.names))
    ]
    assert not withheld[0].any()
    cells.method[:, 0, 0] = ""
    assert not cells._withheld()[:, 0, 0].any()


def test_what_has_not_happened_yet_is_that_of_the_difference():
    cells = cells_of([0] + [1] * 29)
    column = cells.names.index("TPS log")
    n = len(cells.names)
    changes = -1.0 * np.arange(30) / 30, -0.5 * np.ones(30) / 30
    known = []
    for value, change in zip((-0.3, -0.4), changes, strict=True):
        values = np.full(n, np.nan)
        values[column] = value
        influence = {"TPS log": np.linspace(-0.01, 0.01, 30) * value}
        known.append(
            SimpleNamespace(
                values=values, errors={}, influence=influence, change={"TPS log": change}
            )
        )
    cells.fill(0, 0, known[0], None)
    cells.fill(1, 0, *known)
    units = cells.units[0]
    for level, change in enumerate((changes[0], changes[0] - changes[1])):
        width = (cells.high - cells.low)[level, 0, column] / 2
        below, above = unseen_reach(change, units, 1 - 0.95, width)
        assert max(below, above) > 0
        assert cells.unseen[:, level, 0, column].tolist() == pytest.approx([below, above])
    assert cells.estimate[:2, 0, column].tolist() == pytest.approx([-0.3, 0.1])
    assert cells.method[:2, 0, column].tolist() == ["influence"] * 2
