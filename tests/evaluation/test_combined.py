"""All signals together: one more row, what each signal adds, and what is said of it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import trajscore
from trajscore import TrajectoryArray, evaluate
from trajscore.calibration import CombinedForecaster
from trajscore.datasets import load_chess, load_real_runs
from trajscore.metrics import tps_score
from trajscore.report import EvaluationOptions

QUICK = EvaluationOptions(families="log", intervals="influence")
ALONE = EvaluationOptions(families="log", intervals="influence", together=False)


def made(n, seed, worth, n_noise=0):
    """Runs of 1 to 6 steps with signals, each of which knows something that the others do not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    lengths = rng.integers(1, 7, n)
    known = np.repeat(2.0 * y - 1, lengths)[:, None] * np.append(worth, np.zeros(n_noise))
    cells = expit(known + rng.normal(size=known.shape))
    return TrajectoryArray(cells, lengths, channels=[f"s{k}" for k in range(cells.shape[1])]), y


@pytest.fixture(scope="module")
def two_of_four():
    return evaluate(*made(400, 0, (0.5, 0.5), 2), options=QUICK)


def test_it_leads_where_it_is_better_by_what_matters(two_of_four):
    best, alone, *_ = two_of_four.recommendations.values()
    assert (best.predictor, best.action) == ("all together", "combine")
    assert best.best_alone == alone.predictor
    assert best.gain.low > 0
    assert best.gain.estimate == pytest.approx(best.margin.estimate - alone.margin.estimate)
    answer = trajscore.report.wording.answer(two_of_four)
    assert answer.predictor == "all together"
    assert next(each.shown for each in answer.statements) == "yes"


def test_its_row_is_what_the_forecaster_gives_out_of_fold():
    X, y = made(150, 1, (0.4, 0.4))
    groups = np.arange(150) // 2
    report = evaluate(X, y, groups=groups, weights="uniform", options=QUICK)
    forecaster = CombinedForecaster(weights="uniform")
    traces = forecaster.fit_transform(X, y, groups=groups)
    row = report.traces["all together", "recalibrated"]
    np.testing.assert_array_equal(row.cells, traces.cells)
    value = tps_score(y, traces, weights="uniform")
    assert report.table.loc[("all together", "recalibrated"), "TPS log"] == pytest.approx(value)
    fitted = report.forecaster("all together")
    np.testing.assert_allclose(fitted.transform(X).cells, forecaster.transform(X).cells, atol=1e-12)
    assert set(report.pairs["predictor"]) | set(report.pairs["reference"]) == {*report.predictors}


@pytest.mark.parametrize("name", ["engine", "material"])
def test_one_signal_has_its_history(name):
    X, y = load_chess(return_X_y=True)
    report = evaluate(X[name], y, options=QUICK)
    called = f"{X[name].channels[0]} with its history"
    assert report.signals is None
    assert report.cards.index[-1] == called
    np.testing.assert_array_equal(
        report.traces[called, "recalibrated"].cells,
        CombinedForecaster().fit_transform(X[name], np.maximum(y, 0)).cells,
    )


def test_what_each_signal_adds(two_of_four):
    table = two_of_four.signals
    whole = two_of_four.recommendations["all together"]
    assert list(table.index) == ["s0", "s1", "s2", "s3"]
    assert list(table.index[table["order"] > 0]) == ["s0", "s1"]
    assert set(table.index[table["loss_low"] > 0]) == {"s0", "s1"}
    last = table.loc[table["order"].idxmax(), "reached"]
    assert abs(last - whole.margin.estimate) <= whole.matters / 2
    now = two_of_four.cards.loc[table.index, "recalibrated"]
    np.testing.assert_allclose(table["now"], now, atol=1e-12)
    # of a signal with its history alone, nothing is approximated but the grid of the share
    X, y = made(400, 0, (0.5, 0.5), 2)
    of_first = evaluate(X["s0"], y, options=QUICK).cards["recalibrated"].iloc[-1]
    assert table.loc["s0", "with_history"] == pytest.approx(of_first, abs=0.001)
    without = evaluate(X[["s0", "s2", "s3"]], y, options=QUICK)
    loss = whole.margin.estimate - without.cards.loc["all together", "recalibrated"]
    assert table.loc["s1", "loss"] == pytest.approx(loss, abs=0.002)


def test_noise_stays_behind():
    X, y = made(200, 3, (1.0,), 3)
    cells = X.cells.copy()
    cells[:, 0] = np.repeat(cells[X.offsets[:-1], 0], X.lengths)  # which has no history
    report = evaluate(X.with_cells(cells), y, options=QUICK)
    first, *_, last = report.recommendations.values()
    assert (first.predictor, last.predictor) == ("s0", "all together")
    reason = trajscore.report.wording.answer(report).reason
    assert "together they are not shown to gain anything that matters over s0" in reason.text
    assert last.action == "no gain shown"


def test_nothing_else_changes_but_how_sure_cards_are():
    X, y = load_chess(return_X_y=True)
    alone, with_all = (evaluate(X, y, options=options) for options in (ALONE, QUICK))
    assert alone.signals is None
    assert "all together" not in alone.predictors
    others = with_all.table.drop("all together", level="predictor")
    pd.testing.assert_frame_equal(others, alone.table)
    shared = with_all.cards.drop("all together")
    for name in ("as_given", "recalibrated", "gain"):
        np.testing.assert_allclose(shared[name], alone.cards[name], atol=1e-12)
        assert (shared[f"{name}_low"] < alone.cards[f"{name}_low"]).all()
    error_rates = 1 - with_all.cards["confidence_level"]
    assert error_rates.sum() == pytest.approx(0.05)


@pytest.mark.slow
def test_counting_steps_is_said_with_the_number_without_unobserved_runs():
    real = load_real_runs(model="gemma3_270m", task="ring")
    report = evaluate(real.data, real.target, groups=real.data.meta["question"], options=QUICK)
    answer = trajscore.report.wording.answer(report)
    observed = report.observed_cards.loc["all together"]
    share = 100 * observed["recalibrated"] * 0.02 / observed["matters"]
    assert "Counting steps alone goes " in answer.reason.text
    assert answer.budget.endswith(f"both answers stay, at {share:.0f}%.")
    margins = report.cards["recalibrated"]
    assert margins["all together"] > 2 * margins.drop("all together").max()


def test_rows_in_any_order_and_groups_and_batches():
    X, y = made(160, 5, (0.6, 0.6))
    X = X._replace(ids=np.arange(160))
    order = np.random.default_rng(0).permutation(160)
    by = np.where(np.arange(160) % 2, "a", "b")
    first = evaluate(X, y, by={"kind": by}, options=QUICK)
    other = evaluate(X[order], y[order], by={"kind": by[order]}, options=QUICK)
    pd.testing.assert_frame_equal(first.cards, other.cards)
    pd.testing.assert_frame_equal(first.signals, other.signals)
    assert ("kind", "a", "all together") in first.by.index


def test_what_a_price_buys():
    X, y = made(300, 7, (0.3, 0.8))
    options = EvaluationOptions(families="log", intervals="influence", prices={"s1": 0.002})
    report = evaluate(X, y, options=options)
    bought = report.purchase
    assert bought.signals == ["s1"]
    assert bought.cost == pytest.approx(0.002 * X.lengths.mean())
    assert bought.stopped > bought.stopped_without > 0
    assert "Forecasts cost 0.00" in " ".join(str(report).split())
    nameless = EvaluationOptions(prices={"s7": 1.0})
    with pytest.raises(ValueError, match="s7"):
        evaluate(X, y, options=nameless)
