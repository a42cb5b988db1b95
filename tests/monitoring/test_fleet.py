import io

import joblib
import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone

from trajscore import PrefixForecaster, TrajectoryArray
from trajscore.core.collapse import aggregate
from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor, _fleet
from trajscore.monitoring._fleet import FleetChange
from trajscore.monitoring._fleet_bets import GRID, bets_on_ranks, cells_of
from trajscore.monitoring._fleet_cause import ADVICE

N = 1000


@pytest.fixture(scope="module")
def runs():
    return make_trajectories(5000, lengths=(2, 12), random_state=1)


@pytest.fixture(scope="module")
def traces(runs):
    return runs.q, runs.target


@pytest.fixture
def fleet(traces):
    X, y = traces
    return FleetMonitor().fit(X[:N], y[:N])


def bolder(X):
    return X.with_cells(expit(logit(np.clip(X.cells, 1e-6, 1 - 1e-6)) + 1.5))


def after_change(fleet, X, y):
    fleet.update(X, y)
    assert fleet.changes_, "no alarm"
    return fleet.changes_[0]


# ------------------------------------------------------------------- what it says


def test_nothing_changed(fleet, traces):
    X, y = traces
    status = fleet.update(X[N:], y[N:])
    assert not status.alarm
    assert (status.since, status.cause, status.n_runs) == (0, "", len(y) - N)
    assert fleet.changes_ == []
    table = fleet.e_values_
    nearest = table.iloc[np.argmax(table["log_e_value"] - table["log_threshold"])]
    assert tuple(status[4:]) == (nearest["log_e_value"], nearest["log_threshold"])


def test_forecasts_that_moved(fleet, traces):
    X, y = traces
    fleet.update(X[N : 2 * N], y[N : 2 * N])
    change = after_change(fleet, bolder(X[2 * N :]), y[2 * N :])
    assert change.quantity == "forecast"
    assert change.cause == "forecasts"
    assert "recalibrate" in change.advice
    assert 0.8 * N < change.since < change.alarm < 1.1 * N
    assert change.log_e_value >= np.log(1 / 0.025 / 0.05)


def test_forecasts_that_rank_no_more(fleet, traces):
    X, y = traces
    y = y.copy()
    y[N:] = np.random.default_rng(2).permutation(y[N:])
    change = after_change(fleet, X[N:], y[N:])
    assert (change.quantity, change.cause) == ("slope", "ranking")
    assert change.since < 200


def test_success_that_the_forecasts_do_not_notice(fleet, traces, rng):
    X, y = traces
    y = np.where(rng.random(len(y)) < 0.35, 0, y)
    change = after_change(fleet, X[N:], y[N:])
    assert change.quantity in ("level", "success")
    assert change.cause == "success at the same forecast"


def test_fewer_successes_of_the_same_kind(fleet, traces, rng):
    X, y = traces
    rows = np.arange(N, len(y))
    rows = rows[(y[rows] == 0) | (rng.random(len(rows)) < 0.4)]
    assert after_change(fleet, X[rows], y[rows]).cause == "success"


def test_other_tasks(fleet, traces):
    X, y = traces
    mean = np.array([run.mean() for run in X])
    harder = np.flatnonzero(mean < np.median(mean))
    change = after_change(fleet, X[harder[harder >= N]], y[harder[harder >= N]])
    assert change.cause == "forecasts and success"
    assert "leave the predictor" in change.advice


def test_longer_runs(fleet, traces):
    X, y = traces
    rows = N + np.flatnonzero(X.lengths[N:] >= 7)
    change = after_change(fleet, X[rows], y[rows])
    assert (change.quantity, change.cause) == ("length", "lengths")


def test_two_changes_have_an_alarm_each(traces):
    X, y = traces
    fleet = FleetMonitor(n_after=200).fit(X[:N], y[:N])
    first = fleet.update(bolder(X[N : 2 * N]), y[N : 2 * N])
    assert first.alarm
    assert spent(fleet) == pytest.approx(0.05 / 4)
    assert (fleet.e_values_["log_e_value"] < fleet.e_values_["log_threshold"]).all()
    second = fleet.update(X[2 * N : 3 * N], y[2 * N : 3 * N])
    assert second.alarm
    assert [change.cause for change in fleet.changes_] == ["forecasts", "forecasts"]
    assert fleet.changes_[1].since > 800
    assert spent(fleet) == pytest.approx(0.05 / 8)


def test_the_cause_waits_for_runs(fleet, traces):
    X, y = traces
    status = fleet.update(bolder(X[N : N + 300]), y[N : N + 300])
    assert status.alarm
    assert status.cause == ""
    assert "Wait" in fleet.changes_[0].advice
    status = fleet.update(bolder(X[N + 300 : 2 * N]), y[N + 300 : 2 * N])
    assert not status.alarm
    assert status.cause == "forecasts"


def test_a_cause_without_outcomes_is_not_clear(traces):
    X, y = traces
    fleet = FleetMonitor(n_after=100).fit(X[:N], y[:N])
    fleet.update(bolder(X[N : N + 300]))
    assert fleet.changes_[0].cause == ""
    fleet.update(bolder(X[N + 300 : 2 * N]))
    assert fleet.changes_[0].cause == "unclear"
    assert set(ADVICE) > {"unclear"}
    assert "compare" in fleet.changes_[0].advice


# ------------------------------------------------------------------- the promise


def spent(fleet):
    """The chance of a false alarm that the thresholds allow."""
    return np.exp(-fleet.e_values_["log_threshold"]).sum()


def test_all_processes_share_alpha(fleet, traces):
    assert spent(fleet) == pytest.approx(0.05 / 2)
    X, _ = traces
    assert spent(FleetMonitor(alpha=0.1).fit(X[:N])) == pytest.approx(0.1 / 2)


def test_bets_are_fair(fleet):
    u = (np.arange(1000) + 0.5) / 1000
    assert bets_on_ranks(u).mean(axis=0) == pytest.approx(1)
    splits = fleet._splits[[0, 1, 1]][:, :, None]  # success, level, slope
    above, below = fleet._bets
    np.testing.assert_allclose((1 - splits) * above + splits * below, 1)
    assert (below[1, :, 2] > 1).all()
    assert below[2, 0, 2] < 1 < below[2, -1, 2]


@pytest.mark.slow
def test_quiet_streams_seldom_have_an_alarm():
    runs = make_trajectories(20_000, lengths=(2, 6), random_state=2)
    X, y = runs.q, runs.target
    alarms = []
    for k in range(50):
        rng = np.random.default_rng(k)
        rows = rng.choice(len(y), 900)
        stream = TrajectoryArray(X[rows].cells, X[rows].lengths)
        fleet = FleetMonitor(alpha=0.3).fit(stream[:100], y[rows[:100]])
        alarms.append(fleet.update(stream[100:], y[rows[100:]]).alarm)
    assert np.mean(alarms) < 0.15 + 3 * np.sqrt(0.15 * 0.85 / 50)


def joblib_copy(fleet):
    file = io.BytesIO()
    joblib.dump(fleet, file)
    file.seek(0)
    return joblib.load(file)


def test_each_rank_has_the_same_chance():
    runs = make_trajectories(200, lengths=(1, 5), random_state=0)
    fleet = FleetMonitor().fit(runs.q, runs.target)
    counts = fleet._counts
    assert counts.shape == (2, GRID)
    # a third of the runs splits the bets, and is in no rank
    np.testing.assert_array_equal(counts.sum(axis=1), [134, 134])
    assert fleet._known.shape == (2, 3)
    assert fleet._known[0].tolist() == [134, 0, 0]
    assert fleet._known[1].sum() == 134
    assert fleet._successes[0, 0] == fleet._successes[1].sum()
    assert (fleet._splits > 0).all()
    assert (fleet._splits < 1).all()


def test_lengths_and_forecasts_have_cells():
    lengths = np.array([1, 32, 33, 64, 10**9])
    forecasts = np.array([[0.0], [0.5], [0.500001], [0.9], [1.0]])
    cells = cells_of(lengths, forecasts)
    assert cells[:, 0].tolist() == [1, 32, 33, 64, GRID - 1]
    assert cells[[0, 1, 4], 1].tolist() == [0, (GRID - 1) // 2, GRID - 1]
    assert (np.diff(cells, axis=0) >= 0).all()


# ------------------------------------------------------------------- how runs arrive


def test_the_same_in_any_batches(traces):
    X, y = traces
    X = bolder(X)
    whole, one_by_one = (FleetMonitor(n_after=100).fit(traces[0][:N], y[:N]) for _ in range(2))
    whole.update(X[N : N + 400], y[N : N + 400])
    for row in range(N, N + 400):
        one_by_one.update(X[row : row + 1], y[row : row + 1])
    assert whole.changes_ == one_by_one.changes_ != []
    assert whole.e_values_.equals(one_by_one.e_values_)


def test_saved_and_gone_on_with(fleet, traces):
    X, y = traces
    fleet.update(X[N : N + 100], y[N : N + 100])
    again = joblib_copy(fleet)
    for one in (fleet, again):
        one.update(X[N + 100 : N + 200], y[N + 100 : N + 200])
    assert again.e_values_.equals(fleet.e_values_)


def test_outcomes_that_come_at_once_or_after_the_run(traces):
    X, y = traces
    at_once, later = (FleetMonitor().fit(X[:N], y[:N]) for _ in range(2))
    for row in range(N, N + 50):
        at_once.update(X[row : row + 1], y[row : row + 1])
        later.update(X[row : row + 1])
        status = later.add_outcomes([X.ids[row]], [y[row]])
    assert status.n_runs == 50
    assert later.e_values_.equals(at_once.e_values_)


def test_outcomes_of_a_change_that_come_late(traces):
    X, y = traces
    fleet = FleetMonitor(n_after=200).fit(X[:N], y[:N])
    Z = bolder(X[N : N + 500])
    assert fleet.update(Z).cause == ""
    status = fleet.add_outcomes(Z.ids[10:], y[N + 10 : N + 500])
    assert status.cause == "forecasts"
    assert fleet.n_late_outcomes_ == fleet.changes_[0].alarm - 10
    fleet.add_outcomes(Z.ids[:10], y[N : N + 10])
    assert fleet.n_late_outcomes_ == fleet.changes_[0].alarm
    assert fleet.e_values_["log_e_value"].max() < 3


def test_memory_does_not_grow(traces, monkeypatch):
    monkeypatch.setattr(_fleet, "REMEMBERED", 60)
    X, y = traces
    fleet = FleetMonitor().fit(X[:N], y[:N])
    fleet.update(X[N : N + 200], np.where(np.arange(200) % 2, -1, y[N : N + 200]))
    assert len(fleet._recent) == len(fleet._waiting) == 60
    with pytest.raises(KeyError, match="is not waiting for an outcome"):
        fleet.add_outcomes([X.ids[N + 1]], [1])


def test_runs_that_do_not_wait(fleet, traces):
    X, _ = traces
    fleet.update(X[N : N + 2], [1, -1])
    with pytest.raises(KeyError, match=f"run {X.ids[N]} is not waiting for an outcome"):
        fleet.add_outcomes([X.ids[N]], [1])
    with pytest.raises(ValueError, match="leave out runs whose outcome is not known yet"):
        fleet.add_outcomes([X.ids[N + 1]], [-1])
    with pytest.raises(ValueError, match="for each of 1 run"):
        fleet.add_outcomes([X.ids[N + 1]], [1, 0])


def test_without_outcomes_inputs_are_watched(traces):
    X, _ = traces
    fleet = FleetMonitor(n_after=100).fit(X[:N])
    assert fleet.e_values_.index.get_level_values("quantity").tolist() == ["length", "forecast"]
    fleet.update(bolder(X[N : 2 * N]))
    assert fleet.changes_[0].cause == "unclear"


def test_one_trial_of_each_task(traces):
    X, y = traces
    tasks = np.arange(len(y)) // 4
    fleet = FleetMonitor().fit(X[:N], y[:N], tasks[:N])
    assert fleet.n_left_out_ == 3 * N // 4
    assert fleet._counts[0].sum() == np.ceil(N / 4 * 2 / 3)
    fleet.update(X[N : N + 40], y[N : N + 40], tasks[N : N + 40])
    fleet.update(X[N : N + 40], y[N : N + 40], tasks[N : N + 40])
    assert fleet.n_left_out_ == 3 * N // 4 + 30 + 40
    assert fleet.n_runs_ == 80
    with pytest.raises(ValueError, match="groups: give the task of each run to fit and to update"):
        fleet.update(X[:1], y[:1])
    with pytest.raises(ValueError, match="groups: give the task"):
        FleetMonitor().fit(X, y).update(X[:1], y[:1], tasks[:1])


# ------------------------------------------------------------------- predictors


def test_several_predictors(traces, rng):
    X, y = traces
    cells = np.column_stack([X.cells, 0.5 * X.cells + 0.3 * rng.random(len(X.cells))])
    both = TrajectoryArray(cells, X.lengths, channels=["judge", "noisy"])
    fleet = FleetMonitor(n_after=100).fit(both[:N], y[:N])
    assert fleet.e_values_.index.tolist() == [
        ("length", ""),
        ("forecast", "judge"),
        ("forecast", "noisy"),
        ("success", ""),
        ("level", "judge"),
        ("level", "noisy"),
        ("slope", "judge"),
        ("slope", "noisy"),
    ]
    cells[:, 1] **= 3
    moved = both.with_cells(cells)
    fleet.update(moved[N : 2 * N], y[N : 2 * N])
    assert fleet.changes_[0][2:4] == ("forecast", "noisy")
    assert fleet.changes_[0].cause == "forecasts"


def test_a_forecaster_reads_scores(traces):
    X, y = traces
    odds = X.with_cells(10 * X.cells - 5)
    fleet = FleetMonitor(PrefixForecaster(features="running", pooled=True)).fit(odds[:N], y[:N])
    assert not fleet.update(odds[N : 2 * N], y[N : 2 * N]).alarm
    change = after_change(fleet, odds[2 * N :].with_cells(odds[2 * N :].cells + 4), y[2 * N :])
    assert change.quantity == "forecast"
    with pytest.raises(ValueError, match="y is missing: a forecaster learns from outcomes"):
        FleetMonitor(PrefixForecaster()).fit(odds[:N])


def test_forecasts_are_compared_with_those_of_one_fit(traces):
    X, y = traces
    fleet = FleetMonitor(PrefixForecaster(), phi="last").fit(X[:N], y[:N])
    of_one_fit = set(aggregate(fleet.forecaster_.transform(X[:N]), "last"))
    compared = [run.forecast[0] for run in fleet._reference]
    assert len(compared) == N - N // 3
    assert of_one_fit.issuperset(compared)


def test_certain_forecasts(traces):
    X, y = traces
    sure = X.with_cells(np.round(X.cells))
    fleet = FleetMonitor(phi="last").fit(sure[:N], y[:N])
    status = fleet.update(sure[N : 2 * N], y[N : 2 * N])
    assert not status.alarm
    assert np.isfinite(status.log_e_value)


# ------------------------------------------------------------------- what is refused


def test_parameters():
    fleet = FleetMonitor(alpha=0.1, n_after=60)
    assert clone(fleet).get_params() == fleet.get_params()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "alpha"),
        ({"phi": "median"}, "phi must be"),
        ({"n_after": 10}, "n_after must be a whole number of at least 50"),
    ],
)
def test_parameters_that_are_refused(traces, parameters, message):
    with pytest.raises(ValueError, match=message):
        FleetMonitor(**parameters).fit(*traces)


def test_references_that_are_refused(traces):
    X, y = traces
    with pytest.raises(
        ValueError, match="the reference has 49 runs of different tasks and needs 50"
    ):
        FleetMonitor().fit(X[:49], y[:49])
    with pytest.raises(
        ValueError, match="the reference has 30 runs of different tasks and needs 50"
    ):
        FleetMonitor().fit(X, y, np.arange(len(y)) % 30)
    with pytest.raises(ValueError, match="the reference has no failure; give runs of both"):
        FleetMonitor().fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match=r"not in \[0, 1\]|between 0 and 1|probabilit"):
        FleetMonitor().fit(X.with_cells(X.cells + 1), y)


def test_a_change_without_a_cause_has_advice():
    assert "Wait for more runs" in FleetChange(9, 3, "length", "", 6.0).advice


@pytest.mark.parametrize(("n_known", "n_runs"), [(50, 50), (49, 200), (0, 200)])
def test_a_cause_is_named_after_enough_outcomes_or_four_times_as_many_runs(traces, n_known, n_runs):
    X, y = traces
    fleet = FleetMonitor(n_after=50).fit(X[:200], y[:200])
    first = X[200]
    fleet.changes_ = [FleetChange(0, 1, "length", "", 9.0)]
    fleet._after = []
    outcomes = np.where(np.arange(n_runs) < n_known, np.arange(n_runs) % 2, -1)
    runs = TrajectoryArray(np.tile(first, n_runs), np.full(n_runs, len(first)))
    assert fleet.update(runs[:-1], outcomes[:-1]).cause == ""
    assert fleet.update(runs[-1:], outcomes[-1:]).cause in ADVICE
    assert fleet.changes_[0].after == (n_known // 2, n_known)


# ------------------------------------------------------------------- how bets are made


@pytest.fixture
def small(traces):
    X, y = traces
    return FleetMonitor().fit(X[:200], y[:200])


def test_a_reference_leaves_no_evidence(small):
    table = small.e_values_
    assert table["e_value"].tolist() == [1] * 5
    assert table["log_e_value"].tolist() == [0] * 5
    assert table["since"].tolist() == [1] * 5
    shares = np.array([0.05, 0.05, 0.3, 0.3, 0.3])
    assert table["log_threshold"].to_numpy() == pytest.approx(-np.log(0.05 * shares / 2))
    small._log_e[:] = [-1, 0, 2, 699, 701]
    assert small.e_values_["e_value"].tolist() == np.exp([-1, 0, 2, 699, 700]).tolist()
    assert small.e_values_["log_e_value"].tolist() == [-1, 0, 2, 699, 701]


def test_bins_are_of_forecasts_apart_and_counts_of_the_others(traces):
    X, y = traces
    fleet = FleetMonitor(phi="last").fit(X[:200], y[:200])
    last = aggregate(X[:200], "last")
    assert len(fleet._reference) == 200  # those that are counted, then those apart
    is_counted = np.isin(last, [run.forecast[0] for run in fleet._reference[:134]])
    assert is_counted.sum() == 134
    edges = np.quantile(last[~is_counted], [1 / 3, 2 / 3])
    assert fleet._edges == pytest.approx(edges[None])

    def of_bins(rows, numbers):
        return np.bincount(np.digitize(last[:200][rows], edges), numbers[rows], minlength=3)

    ones = np.ones(200)
    assert fleet._known.tolist() == [[134, 0, 0], of_bins(is_counted, ones).tolist()]
    n_successes = y[:200][is_counted].sum()
    assert fleet._successes.tolist() == [
        [n_successes, 0, 0], of_bins(is_counted, y[:200]).tolist()
    ]  # fmt: skip
    rate = (y[:200][~is_counted].sum() + 0.5) / 67
    known = np.array([[66, 0, 0], of_bins(~is_counted, ones)])
    succeeded = np.array([[y[:200][~is_counted].sum(), 0, 0], of_bins(~is_counted, y[:200])])
    assert fleet._splits == pytest.approx((succeeded + 5 * rate) / (known + 5))


@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("drawn", [0.0, 0.25, 0.9])
def test_a_bet_on_an_outcome_is_by_its_rank_among_all_and_in_its_bin(
    small, monkeypatch, outcome, drawn
):
    class Draws:
        def random(self, n):
            return np.full(n, drawn)

    small._random = Draws()
    small._known[:] = [[10, 0, 0], [2, 5, 3]]
    small._successes[:] = [[6, 0, 0], [1, 4, 1]]
    run = small._reference[0]
    run.forecast, run.outcome = small._edges[:, 0].copy(), outcome  # an edge is in the upper bin
    # a success lies below the share of successes and itself, a failure above that of successes
    ranks = [drawn * 7 / 11, drawn * 5 / 6]
    if not outcome:
        ranks = [6 / 11 + drawn * 5 / 11, 4 / 6 + drawn * 2 / 6]
    made = []
    monkeypatch.setattr(small, "_bet", lambda which, bets, number: made.append((which, bets)))
    for is_below in (0, 1):
        small._splits[0, 0] = ranks[0] + (1e-9 if is_below else 0)
        small._splits[1, 1] = ranks[1] + (1e-9 if is_below else 0)
        small._bet_on_outcome(run)
        which, bets = made[-1]
        assert which == slice(2, None)
        wanted = small._bets[is_below, [0, 1, 2], [0, 1, 1]]
        assert bets.tolist() == wanted.tolist()
        assert small._known[[0, 1], [0, 1]].tolist() == [11, 6]
        assert small._successes[[0, 1], [0, 1]].tolist() == [6 + outcome, 4 + outcome]
        small._known[:] = [[10, 0, 0], [2, 5, 3]]
        small._successes[:] = [[6, 0, 0], [1, 4, 1]]


def test_a_bet_on_an_input_is_by_its_rank_among_all_so_far(small, monkeypatch):
    class Draws:
        def random(self, n):
            return np.array([0.25, 0.5])

    small._random = Draws()
    small._counts[:] = 0
    small._counts[0, [3, 4, 5]] = 2, 3, 4
    small._counts[1, [7, 9]] = 1, 8
    run = small._reference[0]
    run.cells = np.array([4, 8])
    made = []
    monkeypatch.setattr(small, "_bet", lambda *bets: made.append(bets))
    small._bet_on_inputs(run)
    ((which, bets, number),) = made
    assert (which, number) == (slice(0, 2), run.number)
    # four ties of ten, from 2 to 6; one of ten, from 1 to 2
    assert bets == pytest.approx(bets_on_ranks(np.array([0.5, 0.15])))
    assert small._counts[0, [3, 4, 5]].tolist() == [2, 4, 4]
    assert small._counts[1, 7:10].tolist() == [1, 1, 8]


def test_capital_goes_back_to_its_first_shares(small):
    small._shares[2] = [1, 0, 0]
    small._bet(slice(2, 3), np.array([[0.5, 1.0, 2.0]]), 7)
    capital = np.array([0.998 + 0.002 / 4, 0.001, 0.0005]) * [0.5, 1, 2]
    assert small._log_e[2] == small._lowest[2] == pytest.approx(np.log(capital.sum()))
    assert small._shares[2] == pytest.approx(capital / capital.sum())
    assert small._lowest_at.tolist() == [0, 0, 7, 0, 0]
    small._bet(slice(2, 3), np.ones((1, 3)), 8)
    assert small._lowest_at[2] == 8  # of ties, the last
    small._bet(slice(2, 3), np.full((1, 3), 2.0), 9)
    assert (small._lowest_at[2], small._lowest[2]) == (8, pytest.approx(np.log(capital.sum())))
    assert small._log_e[2] == pytest.approx(np.log(2 * capital.sum()))


@pytest.mark.parametrize("k", range(5))
def test_an_alarm_is_of_the_quantity_that_reaches_its_threshold(small, k):
    limits = small._log_thresholds
    small._log_e[:] = limits - 0.5
    small._log_e[k] = np.nextafter(limits[k], 0)
    small._lowest_at[:] = np.arange(5) * 10
    small._look(99)
    assert small.changes_ == []
    status = small._status(alarm=False)
    assert status == (0, False, 0, "", small._log_e[k], limits[k])
    small._log_e[k] = limits[k]
    small._look(100)
    names = [("length", ""), ("forecast", ""), ("success", ""), ("level", ""), ("slope", "")]
    assert small.changes_ == [FleetChange(100, 10 * k + 1, *names[k], limits[k])]
    assert small._after == []
    assert small._log_e.tolist() == [0] * 5
    assert small._log_thresholds == pytest.approx(limits + np.log(2))
    assert small._status(alarm=True)[:4] == (0, True, 10 * k + 1, "")
