"""A forecast that stops its own runs is refused; stops by anything else are not."""

import numpy as np
import pytest

from trajscore import TrajectoryArray, evaluate
from trajscore.censoring import (
    censored_tps_interval,
    doubly_robust_tps_score,
    ipcw_tps_score,
    practice_shift,
    termination_audit,
)
from trajscore.core.own_stops import _round_number, own_threshold
from trajscore.core.stops import FORECAST_STOPS, mechanism_of
from trajscore.core.within_runs import first_step_above
from trajscore.datasets import make_trajectories
from trajscore.metrics import censored_tps_samples, censored_tps_score, tps_score

REFUSED = r"stopped \d+ of these 400 runs itself.*below 0\.3,.*replay all predictors"


@pytest.fixture
def world():
    """Whole runs, and two other forecasts of them: the first with noise, and recalibrated."""
    runs = make_trajectories(400, lengths=(3, 9), information=0.8, random_state=0)
    X, rng = runs.data, np.random.default_rng(1)
    odds = np.log(X.cells) - np.log1p(-X.cells)
    noisy = 1 / (1 + np.exp(-odds - 0.7 * rng.normal(size=len(odds))))
    mapped = 1 / (1 + np.exp(-0.5 * odds + 0.2))
    return X, runs.final_outcome, X.with_cells(noisy), X.with_cells(mapped)


def stopped_by(X, flag, reason="monitor"):
    """Stop runs at the first step that is flagged; return what makes containers, and who was."""
    first = first_step_above(X, np.where(flag, 1.0, 0.0), np.full(len(X), 0.5))
    stopped = (first > 0) & (first < X.lengths)  # at its end a run can no longer be stopped
    Z = np.where(stopped, first, X.lengths)
    meta = {"stop_reason": np.where(stopped, reason, "done")}

    def cut(trace):
        short = trace.truncate(Z)
        return TrajectoryArray(short.cells, short.lengths, ids=X.ids, meta=meta)

    return cut, stopped


@pytest.mark.parametrize("outcome", [-1, 0])  # not seen, or taken for a failure
@pytest.mark.parametrize("reason", ["monitor", "Stopped by monitor", "early-stopped", "Guard"])
def test_a_monitor_that_stops_below_a_threshold_is_refused(world, outcome, reason):
    X, y, noisy, _ = world
    cut, stopped = stopped_by(X, X.cells < 0.3, reason)
    codes = np.where(stopped, outcome, y)
    assert stopped.sum() > 50
    message = f"predictor 'judge' stopped {stopped.sum()} of these 400 runs itself.*below 0.3,"
    for predictors in ({"judge": cut(X)}, {"other": cut(noisy), "judge": cut(X)}):
        with pytest.raises(ValueError, match=message):
            evaluate(predictors, codes)
    # the reasons may be given apart
    reasons = np.where(stopped, reason, "done")
    with pytest.raises(ValueError, match=message):
        evaluate({"judge": X.truncate(cut(X).lengths)}, codes, stop_reason=reasons)


def test_why_stopped_runs_do_not_judge_the_forecast_that_stopped_them(world):
    X, y, _, _ = world
    # whoever states that the runs which it stops will fail is right wherever that is written down
    sure = X.with_cells(np.where(X.cells < 0.3, 0.001, X.cells))
    cut, stopped = stopped_by(X, X.cells < 0.3)
    failed = np.where(stopped, 0, y)
    assert censored_tps_score(failed, cut(sure)) > censored_tps_score(failed, cut(X)) + 0.01
    assert censored_tps_score(y, sure) < censored_tps_score(y, X) - 0.03
    with pytest.raises(ValueError, match="predictor 'sure' stopped"):
        evaluate({"sure": cut(sure)}, failed)


def test_what_the_same_flag_stops_is_the_same_forecast(world):
    X, y, _, mapped = world
    cut, stopped = stopped_by(X, X.cells < 0.3)
    # a recalibration has another threshold, and flags the same steps
    with pytest.raises(ValueError, match="predictor 'mapped' stopped"):
        evaluate({"mapped": cut(mapped)}, np.where(stopped, -1, y))


@pytest.mark.parametrize("reason", ["monitor", "flagged", "max_steps"])
def test_other_stops_are_not_refused(world, reason):
    X, y, noisy, _ = world
    rng, n = np.random.default_rng(2), len(X.cells)
    step = np.concatenate([np.arange(1, k + 1) for k in X.lengths])
    flags = {
        "a budget": step == 5,
        "a budget of each run": step == np.repeat(rng.integers(2, 9, len(X)), X.lengths),
        "a coin": rng.random(n) < 0.1,
        "another forecast": noisy.cells < 0.3,
        "often, below a threshold": (X.cells < 0.3) & (rng.random(n) < 0.8),
    }
    for flag in flags.values():
        cut, stopped = stopped_by(X, flag, reason)
        assert stopped.sum() > 30
        codes = np.where(stopped, -1, y)
        report = evaluate({"judge": cut(X)}, codes, intervals="influence", calibrator=None)
        assert np.isfinite(report.table.loc[("judge", "as_given"), "TPS log"])


def test_a_budget_is_a_budget_whatever_the_forecast_says_of_it(world):
    X, y, _, _ = world
    # what is left of the budget is lowest where it stops runs
    step = np.concatenate([np.arange(1, k + 1) for k in X.lengths])
    left = X.with_cells(1 - step / 10)
    cut, stopped = stopped_by(X, step == 4, "max_steps")
    evaluate({"left": cut(left)}, np.where(stopped, -1, y), intervals="influence")


def test_a_complete_replay_is_judged(world):
    X, y, noisy, _ = world
    report = evaluate({"judge": X, "other": noisy}, y, intervals="influence")
    assert len(report.cards) == 2


def test_few_runs_and_few_steps_tell_nothing(world):
    X, _, _, _ = world
    cut, stopped = stopped_by(X, X.cells < 0.3)
    short = cut(X)
    assert own_threshold(short, stopped) == 0.3
    rows = np.flatnonzero(stopped)
    four = np.r_[np.flatnonzero(~stopped), rows[:4]]
    assert own_threshold(short[four], stopped[four]) is None
    few = np.r_[np.flatnonzero(~stopped)[:5], rows[:9]]
    assert own_threshold(short[few], stopped[few]) is None
    assert own_threshold(short, np.zeros(400, dtype=bool)) is None


def test_one_run_that_goes_on_below_it_is_enough(world):
    X, _, _, _ = world
    cut, stopped = stopped_by(X, X.cells < 0.3)
    short = cut(X)
    cells = short.cells.copy()
    row = int(np.flatnonzero(~stopped & (short.lengths > 2))[0])
    cells[short.offsets[row]] = 0.01
    assert own_threshold(short.with_cells(cells), stopped) is None
    # below it at its own end it would have been too late
    cells = short.cells.copy()
    cells[short.offsets[row + 1] - 1] = 0.01
    assert own_threshold(short.with_cells(cells), stopped) == 0.3


def test_signals_of_any_size_and_missing_values(world):
    X, _, _, _ = world
    cut, stopped = stopped_by(X, X.cells < 0.3)
    short = cut(X)
    for scale in (1e-6, -7.0, 1e5):
        signal = short.cells if scale > 0 else short.cells - 1
        found = own_threshold(short.with_cells(abs(scale) * signal), stopped)
        ends = abs(scale) * signal[short.offsets[1:][stopped] - 1]
        assert ends.max() < found
        assert found == pytest.approx(abs(scale) * (0.3 if scale > 0 else -0.7), rel=0.05)
    assert own_threshold(short.with_cells(np.full(len(short.cells), 0.5)), stopped) is None
    gaps = short.cells.copy()
    gaps[short.offsets[:-1][short.lengths > 1]] = np.nan
    assert own_threshold(short.with_cells(gaps), stopped) == 0.3
    gaps[short.offsets[1:][stopped] - 1] = np.nan
    assert own_threshold(short.with_cells(gaps), stopped) is None


def test_scores_of_cut_runs_refuse_it_too(world):
    X, y, noisy, _ = world
    cut, stopped = stopped_by(X, X.cells < 0.3)
    F, codes = cut(X), np.where(stopped, -1, y)
    audit = termination_audit(F, codes)
    assert (audit.mechanism[stopped] == "informative").all()
    calls = [
        lambda F: ipcw_tps_score(codes, F),
        lambda F: doubly_robust_tps_score(codes, F),
        lambda F: censored_tps_interval(codes, F, n_resamples=10),
        lambda F: censored_tps_score(codes, F),
        lambda F: audit.score(F, informative="administrative"),
        lambda F: practice_shift(
            {"judge": F}, codes, scored=np.full(400, True), calibrator=None, n_resamples=10
        ),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=REFUSED):
            call(F)
        call(cut(noisy))


def test_stops_by_a_forecast_are_informative():
    assert {mechanism_of(reason) for reason in FORECAST_STOPS} == {"informative"}


def test_a_threshold_has_few_digits_down_to_the_fifteenth(world):
    X, _, _, _ = world
    cut, stopped = stopped_by(X, X.cells < 0.3)
    short = cut(X)
    highest = short.cells[short.offsets[1:][stopped] - 1].max()
    goes_on = np.ones(len(short.cells), dtype=bool)
    goes_on[short.offsets[1:] - 1] = False
    lowest = short.cells[goes_on].min()
    assert own_threshold(short.with_cells(1e4 * short.cells), stopped) == 3000
    for scale in (1e-20, 1e-30):  # of such small numbers it is the value itself
        found = own_threshold(short.with_cells(scale * short.cells), stopped)
        assert scale * highest < found == scale * lowest


def test_sets_of_stopped_runs_alone_and_of_observed_ones(world):
    X, y, _, _ = world
    cut, stopped = stopped_by(X, X.cells < 0.3)
    short, n = cut(X)[stopped], stopped.sum()
    for score in (censored_tps_score, censored_tps_samples):
        with pytest.raises(ValueError, match=f"the forecast stopped {n} of these {n} runs itself"):
            score(np.full(n, -1), short)
        # whose outcome is known nevertheless may be scored
        score(y[stopped], short)
    assert tps_score(y[stopped], short) == censored_tps_score(y[stopped], short)


@pytest.mark.parametrize(
    ("n_stopped", "n_others", "last", "threshold"),
    [
        (5, 50, 0.1, 0.2),
        (4, 50, 0.1, None),
        (5, 49, 0.1, None),
        (5, 50, 0.9, None),
        (5, 50, 0.85, 0.9),
    ],
)
def test_five_stops_and_fifty_other_steps_are_enough(n_stopped, n_others, last, threshold):
    on = [0.9] * (n_others - n_stopped + 1)
    X = TrajectoryArray.from_list([[0.9, last]] * n_stopped + [on])
    assert own_threshold(X, np.arange(len(X)) < n_stopped) == threshold


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [
        (0.1, 0.9, 0.2),
        (0.1, 0.2, 0.2),
        (0.25, 0.3, 0.3),
        (0.2, 0.25, 0.21),
        (-0.5, 0.5, 0.0),
        (-7.5, -7.25, -7.4),
        (100, 20_000, 1000),
        (1234, 5000, 2000),
        (2340, 2360, 2350),
        (3.5e-15, 4.2e-15, 4e-15),
        (3.5e-16, 4.2e-16, 4.2e-16),
    ],
)
def test_the_number_of_fewest_digits(low, high, number):
    assert _round_number(low, high) == pytest.approx(number, rel=1e-12)
