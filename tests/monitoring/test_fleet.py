import functools
import io

import joblib
import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import clone

from known_scores import collapsed
from refused import must_refuse
from trajscore import PrefixForecaster, TrajectoryArray
from trajscore.datasets import make_trajectories
from trajscore.monitoring import FleetMonitor

N = 1000
FACTORS = np.array([-1.0, 0.0, 1.0])  # a process bets on lower values, on none, on higher ones


@functools.cache
def traces():
    runs = make_trajectories(5000, lengths=(2, 12), random_state=1)
    return runs.q, runs.target


@pytest.fixture
def fleet():
    X, y = traces()
    return FleetMonitor().fit(X[:N], y[:N])


def bolder(X, strength=1.0):
    return X.with_cells(expit(logit(np.clip(X.cells, 1e-6, 1 - 1e-6)) + 1.5 * strength))


def after_change(fleet, X, y):
    fleet.update(X, y)
    assert fleet.changes_, "no alarm"
    return fleet.changes_[0]


def spent(fleet):
    """The chance of a false alarm that the thresholds allow."""
    return np.exp(-fleet.e_values_["log_threshold"]).sum()


class Slow:
    """The evidence of a fleet monitor by loops over runs and processes, with the same draws."""

    def __init__(self, forecasts, lengths, y):
        self.random = np.random.default_rng(np.random.RandomState(0).randint(2**31))
        n, self.n_predictors = forecasts.shape
        is_apart = np.zeros(n, dtype=bool)
        is_apart[self.random.permutation(n)[: n // 3]] = True
        runs = list(zip(forecasts, lengths, y, strict=True))
        apart = [run for run, there in zip(runs, is_apart, strict=True) if there]
        counted = [run for run, there in zip(runs, is_apart, strict=True) if not there]
        self.n_bins = min(5, max(len(apart) // 20, 2))
        shares = np.arange(1, self.n_bins) / self.n_bins
        self.edges = [np.quantile(f, shares) for f in np.array([run[0] for run in apart]).T]
        bins = [(p, k) for p in range(self.n_predictors) for k in range(self.n_bins)]
        self.outcomes = {place: [] for place in ["all", *bins]}
        for run in apart:
            self.remember_outcome(run)
        more = 5 * (sum(self.outcomes["all"]) + 0.5) / (len(self.outcomes["all"]) + 1)
        self.splits = {p: (sum(y) + more) / (len(y) + 5) for p, y in self.outcomes.items()}
        self.outcomes = {place: [] for place in self.outcomes}
        self.inputs = [[] for _ in range(1 + self.n_predictors)]
        for run in counted:
            for values, cell in zip(self.inputs, self.cells(run), strict=True):
                values.append(cell)
            self.remember_outcome(run)
        n_processes = 2 + 4 * self.n_predictors
        self.shares = np.tile([0.25, 0.5, 0.25], (n_processes, 1))
        self.log_e = np.zeros(n_processes)
        self.lowest, self.since = np.zeros(n_processes), np.ones(n_processes)

    def places(self, run):
        """Where an outcome counts: among all, and for each predictor in its bin."""
        forecasts = enumerate(run[0])
        return ["all", *((p, sum(edge <= f for edge in self.edges[p])) for p, f in forecasts)]

    @staticmethod
    def cells(run):
        """Values on grids that do not depend on runs."""
        forecasts, length, _ = run
        on_grid = [length if length <= 32 else 32 * (np.log2(length / 32) + 1)]
        with np.errstate(divide="ignore"):
            on_grid += [(np.clip(logit(f), -8, 8) / 8 + 1) / 2 * 511 for f in forecasts]
        return [min(int(value), 511) for value in on_grid]

    def remember_outcome(self, run):
        if run[2] >= 0:
            for place in self.places(run):
                self.outcomes[place].append(run[2])

    def take(self, number, run):
        draws = self.random.random(1 + self.n_predictors)
        for k, (cell, draw) in enumerate(zip(self.cells(run), draws, strict=True)):
            values = self.inputs[k]
            values.append(cell)
            rank = sum(v <= cell for v in values) - draw * sum(v == cell for v in values)
            self.bet(k, 1 + 1.5 * FACTORS * (rank / len(values) - 0.5), number)
            if k:  # and on how far it is from the middle
                far = 2 * abs(rank / len(values) - 0.5)
                self.bet(k + self.n_predictors, 1 + 1.5 * FACTORS * (far - 0.5), number)
        if run[2] < 0:
            return
        places = self.places(run)
        places += places[1:]  # levels, then slopes
        draws = self.random.random(len(places))
        for k, (place, draw) in enumerate(zip(places, draws, strict=True)):
            known = self.outcomes[place]
            low, high = sum(known) / (len(known) + 1), (sum(known) + 1) / (len(known) + 1)
            u = draw * high if run[2] else low + draw * (1 - low)
            stretch = 1.0
            if k > self.n_predictors:
                stretch = np.sqrt(3) * ((2 * place[1] + 1) / self.n_bins - 1)
            split = self.splits[place]
            moved = expit(logit(split) + 0.45 * stretch * FACTORS)
            bets = moved / split if u < split else (1 - moved) / (1 - split)
            self.bet(1 + 2 * self.n_predictors + k, bets, number)
        self.remember_outcome(run)

    def bet(self, k, bets, number):
        capital = (0.998 * self.shares[k] + 0.002 * np.array([0.25, 0.5, 0.25])) * bets
        self.log_e[k] += np.log(capital.sum())
        self.shares[k] = capital / capital.sum()
        self.lowest[k] = min(self.log_e[k], self.lowest[k])
        if self.log_e[k] <= self.lowest[k] + 1e-9:  # in the middle bin, slopes bet nothing
            self.since[k] = number + 1


@pytest.mark.parametrize(("n_reference", "n_predictors"), [(80, 1), (200, 2), (400, 1)])
def test_evidence_is_what_a_loop_gives(n_reference, n_predictors):
    rng, (X, y) = np.random.default_rng(n_reference), traces()
    n = n_reference + 250
    lengths = np.where(rng.random(n) < 0.1, 40 + rng.integers(200, size=n), X.lengths[:n])
    lengths[:3] = [32, 33, 10**4]
    last = np.column_stack([collapsed(X[:n], "last"), rng.random(n) ** 2])[:, :n_predictors]
    last[0], last[1] = 0, 1
    cells = np.full((lengths.sum(), n_predictors), 0.3)
    cells[np.cumsum(lengths) - 1] = last
    channels = ["judge", "noisy"] if n_predictors == 2 else None
    traced = TrajectoryArray(cells if channels else cells[:, 0], lengths, channels=channels)
    outcomes = np.where(rng.random(n) < 0.1, -1, y[:n])
    first, then = slice(n_reference), slice(n_reference, n)
    fleet = FleetMonitor(phi="last", alpha=1e-9).fit(traced[first], outcomes[first])
    slow = Slow(last[first], lengths[first], outcomes[first])
    table = fleet.e_values_
    assert (table[["e_value", "log_e_value", "since"]] == [1, 0, 1]).all(axis=None)
    n_inputs = 1 + 2 * n_predictors
    share = 0.1 / (1 + n_predictors)
    shares = [share] * n_inputs + [(1 - share * n_inputs) / n_inputs] * n_inputs
    np.testing.assert_allclose(table["log_threshold"], -np.log(1e-9 * np.array(shares) / 2))
    fleet.update(traced[then], outcomes[then])
    for number, row in enumerate(range(n_reference, n), start=1):
        slow.take(number, (last[row], lengths[row], outcomes[row]))
    np.testing.assert_allclose(fleet.e_values_["log_e_value"], slow.log_e, atol=1e-9)
    np.testing.assert_allclose(fleet.e_values_["e_value"], np.exp(slow.log_e))
    assert fleet.e_values_["since"].tolist() == slow.since.tolist()
    assert fleet.n_runs_ == 250


def test_an_alarm_is_of_the_quantity_that_reaches_its_threshold():
    X, y = traces()
    fleet = FleetMonitor().fit(X[:200], y[:200])
    before = fleet.e_values_
    for row in range(200, 400):
        status = fleet.update(bolder(X[row : row + 1]), y[row : row + 1])
        if status.alarm:
            break
        before = fleet.e_values_
        nearest = before.iloc[np.argmax(before["log_e_value"] - before["log_threshold"])]
        assert nearest["log_e_value"] < nearest["log_threshold"]
    (change,) = fleet.changes_
    assert (change.alarm, change.quantity, change.predictor) == (row - 199, "forecast", "")
    assert change.log_e_value >= before.loc[("forecast", ""), "log_threshold"]
    assert change.since == before.loc[("forecast", ""), "since"]
    assert (fleet.e_values_["log_e_value"] == 0).all()
    np.testing.assert_allclose(  # what is left is for the alarms to come
        fleet.e_values_["log_threshold"], before["log_threshold"] + np.log(2)
    )


def test_evidence_begins_anew_after_an_alarm_and_keeps_its_share_of_alpha():
    """A quarter of alpha is left for the second alarm, if what follows stays as it is."""
    X, y = make_trajectories(20_000, lengths=(2, 6), random_state=2, return_X_y=True)
    alarms = []
    for k in range(40):
        rows = np.random.default_rng(k).choice(len(y), 400)
        stream, outcomes = TrajectoryArray(X[rows].cells, X[rows].lengths), y[rows]
        fleet = FleetMonitor(alpha=0.8, n_after=100).fit(stream[:100], outcomes[:100])
        stream, n_runs = bolder(stream, 2), 100
        while not fleet.changes_:
            fleet.update(stream[[n_runs]], outcomes[[n_runs]])
            n_runs += 1
        assert (fleet.e_values_["e_value"] == 1).all()  # until the runs that follow are known
        fleet.update(stream[n_runs : n_runs + 100], outcomes[n_runs : n_runs + 100])
        assert (fleet.e_values_["e_value"] == 1).all()
        alarms.append(fleet.update(stream[n_runs + 100 :], outcomes[n_runs + 100 :]).alarm)
    assert np.mean(alarms) < 0.2 + 3 * np.sqrt(0.2 * 0.8 / 40)


def test_runs_without_a_forecast_are_watched_after_an_alarm_too(fleet):
    n = 700
    unstarted = TrajectoryArray([], [0] * n, ids=np.arange(n) + 10**6, missing="allow")
    assert fleet.update(unstarted, np.zeros(n)).cause == "runs without a forecast"
    assert fleet.n_without_forecast_ == n
    X, y = traces()
    assert fleet.update(X[N : 2 * N], y[N : 2 * N]).alarm


def test_all_processes_share_alpha(fleet):
    X, _ = traces()
    assert spent(fleet) == pytest.approx(0.05 / 2)
    inputs = FleetMonitor(alpha=0.1, n_after=100).fit(X[:N])
    assert spent(inputs) == pytest.approx(0.1 / 2)
    assert inputs.e_values_.index.tolist() == [("length", ""), ("forecast", ""), ("spread", "")]
    change = after_change(inputs, bolder(X[N : 2 * N]), None)
    assert (change.cause, "compare" in change.advice) == ("unclear", True)


@pytest.mark.parametrize(
    ("kind", "quantities", "cause", "advice"),
    [
        ("bolder", ["forecast"], "forecasts", "recalibrate"),
        ("certain", ["forecast"], "forecasts", "recalibrate"),
        ("sharper", ["spread"], "forecasts", "recalibrate"),
        ("unranked", ["slope"], "ranking", "another predictor"),
        ("unnoticed", ["level", "success"], "success at the same forecast", "recalibrate"),
        ("fewer", ["success", "level"], "success", "look at the agent"),
        ("harder", ["forecast", "success"], "forecasts and success", "leave the predictor"),
        ("longer", ["length"], "lengths", "leave the predictor"),
    ],
)
def test_each_cause_is_named(fleet, rng, kind, quantities, cause, advice):
    X, y = traces()
    strength = {"fewer": 0.6, "unnoticed": 0.6}.get(kind, 1.0)
    change = after_change(fleet, *changed(kind, strength, X, y, rng, n=2500))
    assert change.quantity in quantities
    assert change.cause == cause
    assert advice in change.advice
    assert change.since < 200
    assert change.before == (y[:N].sum(), N)
    assert change.after[1] == 500


def test_where_a_change_began_and_the_next(rng):
    X, y = traces()
    fleet = FleetMonitor(n_after=200).fit(X[:N], y[:N])
    fleet.update(X[N : 2 * N], y[N : 2 * N])
    assert fleet.update(bolder(X[2 * N : 3 * N]), y[2 * N : 3 * N]).alarm
    assert 0.8 * N < fleet.changes_[0].since < fleet.changes_[0].alarm < 1.1 * N
    assert spent(fleet) == pytest.approx(0.05 / 4)
    assert fleet.update(X[3 * N : 4 * N], y[3 * N : 4 * N]).alarm
    assert [change.cause for change in fleet.changes_] == ["forecasts", "forecasts"]
    assert fleet.changes_[1].since > 1800
    assert spent(fleet) == pytest.approx(0.05 / 8)


@pytest.mark.parametrize(("known", "n_runs"), [(50, 50), (49, 200), (0, 200)])
def test_a_cause_is_named_after_enough_outcomes_or_four_times_as_many_runs(known, n_runs):
    X, y = traces()
    fleet = FleetMonitor(n_after=50).fit(X[:200], y[:200])
    row = 200
    while not fleet.changes_:
        fleet.update(bolder(X[row : row + 1]), y[row : row + 1])
        row += 1
    outcomes = np.where(np.arange(n_runs) < known, np.arange(n_runs) % 2, -1)
    new = bolder(X[row : row + n_runs])
    assert fleet.changes_[0].before == fleet.changes_[0].after == (0, 0)
    assert fleet.update(new[:-1], outcomes[:-1]).cause == ""
    assert fleet.update(new[-1:], outcomes[-1:]).cause != ""
    assert fleet.changes_[0].after == (known // 2, known)
    assert fleet.changes_[0].before == (y[:200].sum(), 200)


def changed(kind, strength, X, y, rng, n=320):
    """Traces and outcomes of n runs after a change of some strength."""
    rows = rng.permutation(np.arange(1000, 5000))
    means = collapsed(X[rows], "mean")
    keep = np.ones(len(rows))
    if kind == "harder":
        keep = np.where(means < np.median(means), 1, 1 - strength)
    elif kind == "longer":
        keep = np.where(X.lengths[rows] >= 7, 1, 1 - strength)
    elif kind == "fewer":
        keep = np.where(y[rows] == 0, 1, 1 - strength)
    rows = rows[rng.random(len(rows)) < keep][:n]
    new, outcomes = X[rows], y[rows].copy()
    if kind in ("bolder", "certain"):
        new = bolder(new, strength)
    if kind == "sharper":
        new = new.with_cells(expit(4 * logit(np.clip(new.cells, 1e-6, 1 - 1e-6))))
    if kind == "certain":
        new = new.with_cells(np.where(new.cells > 0.9, 1.0, new.cells))
    elif kind == "unnoticed":
        outcomes[rng.random(len(rows)) < 0.6 * strength] = 0
    elif kind == "unranked":
        which = rng.random(len(rows)) < strength
        outcomes[which] = rng.permutation(outcomes[which])
    return new, outcomes


def test_few_outcomes_name_no_cause():
    """20 runs of each outcome are needed before and after."""
    X, y = traces()
    causes = {}
    for n_failures in (19, 20, 21):
        fleet = FleetMonitor(alpha=0.999, n_after=400).fit(X[:300], y[:300])
        rows = np.r_[np.flatnonzero(y[300:] == 0)[:n_failures], np.flatnonzero(y[300:] == 1)[:500]]
        new, outcomes = bolder(X[300:][rows]), y[300:][rows]
        fleet.update(new, outcomes)
        change = fleet.changes_[0]
        n_seen = (outcomes[change.since - 1 : change.alarm + 400] == 0).sum()
        causes[n_seen] = change.cause
    is_unclear = {n: cause == "unclear" for n, cause in causes.items()}
    assert is_unclear == {19: True, 20: False, 21: False}


def test_the_same_in_any_batches_and_from_a_file():
    X, y = traces()
    whole, one_by_one = (FleetMonitor(n_after=100).fit(X[:N], y[:N]) for _ in range(2))
    X = bolder(X)
    whole.update(X[N : N + 400], y[N : N + 400])
    for row in range(N, N + 400):
        one_by_one.update(X[row : row + 1], y[row : row + 1])
        if row == N + 50:
            file = io.BytesIO()
            joblib.dump(one_by_one, file)
            file.seek(0)
            one_by_one = joblib.load(file)
    assert whole.changes_ == one_by_one.changes_ != []
    assert whole.e_values_.equals(one_by_one.e_values_)
    X, y = traces()
    n_taken = N + whole.changes_[0].alarm + 100  # a new reference, and no run since
    again = FleetMonitor(n_after=100).fit(X[:N], y[:N])
    again.update(bolder(X[N:n_taken]), y[N:n_taken])
    assert again.changes_ == whole.changes_
    assert (again.e_values_["since"] == again.n_runs_ + 1).all()


def test_outcomes_that_come_at_once_or_after_the_run():
    X, y = traces()
    at_once, later = (FleetMonitor().fit(X[:N], y[:N]) for _ in range(2))
    for row in range(N, N + 50):
        at_once.update(X[row : row + 1], y[row : row + 1])
        later.update(X[row : row + 1])
        later.add_outcomes([X.ids[row]], [y[row]])
    assert later.n_runs_ == 50
    assert later.e_values_.equals(at_once.e_values_)


def test_outcomes_of_runs_before_an_alarm_are_late_even_if_another_outcome_gave_it(fleet):
    X, _ = traces()
    fleet.update(X[N : N + 200])
    n_outcomes = 1
    while not fleet.add_outcomes([X.ids[N + n_outcomes - 1]], [0]).alarm:
        n_outcomes += 1
    assert fleet.changes_[0].alarm == 200
    fleet.add_outcomes(X.ids[N + n_outcomes : N + 200], np.zeros(200 - n_outcomes))
    assert fleet.n_late_outcomes_ == 200 - n_outcomes


def test_outcomes_of_a_change_that_come_late():
    X, y = traces()
    fleet = FleetMonitor(n_after=200).fit(X[:N], y[:N])
    Z = bolder(X[N : N + 500])
    assert fleet.update(Z).cause == ""
    assert fleet.add_outcomes(Z.ids[10:], y[N + 10 : N + 500]).cause == "forecasts"
    assert fleet.n_late_outcomes_ == fleet.changes_[0].alarm - 10
    fleet.add_outcomes(Z.ids[:10], y[N : N + 10])
    assert fleet.n_late_outcomes_ == fleet.changes_[0].alarm
    assert fleet.e_values_["log_e_value"].max() < 3


def test_runs_that_do_not_wait(fleet):
    X, _ = traces()
    fleet.update(X[N : N + 2], [1, -1])
    with pytest.raises(KeyError, match=f"run {X.ids[N]} is not waiting"):
        fleet.add_outcomes([X.ids[N]], [1])
    rows = [
        ([X.ids[N + 1]], [-1], "not known yet"),
        ([X.ids[N + 1]], [1, 0], "each of 1 run"),
        (X.ids[[N + 1, N + 1]], [1, 1], "name each once"),
    ]
    must_refuse(fleet.add_outcomes, rows)
    # the last 4096 are waited for
    many = TrajectoryArray(np.full(4096, 0.5), np.ones(4096, int), ids=np.arange(4096) + 10**6)
    fleet.update(many)
    with pytest.raises(KeyError, match=f"run {X.ids[N + 1]} is not waiting"):
        fleet.add_outcomes([X.ids[N + 1]], [1])
    fleet.add_outcomes([10**6], [1])


def test_one_trial_of_each_task():
    X, y = traces()
    tasks = np.arange(len(y)) // 4
    fleet = FleetMonitor(alpha=1e-9).fit(X[:N], y[:N], tasks[:N])
    assert fleet.n_left_out_ == 3 * N // 4
    first = slice(0, N, 4)
    alone = FleetMonitor(alpha=1e-9).fit(X[first], y[first])
    for _ in range(2):
        fleet.update(X[N : N + 40], y[N : N + 40], tasks[N : N + 40])
    assert fleet.n_left_out_ == 3 * N // 4 + 30 + 40
    assert fleet.n_runs_ == 80
    alone.update(X[N : N + 40 : 4], y[N : N + 40 : 4])
    assert fleet.e_values_["log_e_value"].equals(alone.e_values_["log_e_value"])
    with pytest.raises(ValueError, match="groups: .*to fit and to update"):
        fleet.update(X[:1], y[:1])
    with pytest.raises(ValueError, match="groups"):
        alone.update(X[:1], y[:1], tasks[:1])


def test_several_predictors(rng):
    X, y = traces()
    cells = np.column_stack([X.cells, 0.5 * X.cells + 0.3 * rng.random(len(X.cells))])
    both = TrajectoryArray(cells, X.lengths, channels=["judge", "noisy"])
    fleet = FleetMonitor(n_after=100).fit(both[:N], y[:N])
    inputs = [(kind, name) for kind in ("forecast", "spread") for name in both.channels]
    outcomes = [(kind, name) for kind in ("level", "slope") for name in both.channels]
    assert [*fleet.e_values_.index] == [("length", ""), *inputs, ("success", ""), *outcomes]
    cells[:, 1] **= 3
    fleet.update(both.with_cells(cells)[N : 2 * N], y[N : 2 * N])
    assert fleet.changes_[0][2:4] == ("forecast", "noisy")
    assert fleet.changes_[0].cause == "forecasts"


def test_a_forecaster_reads_scores():
    X, y = traces()
    odds = X.with_cells(10 * X.cells - 5)
    fleet = FleetMonitor(PrefixForecaster(features="running", pooled=True)).fit(odds[:N], y[:N])
    assert not fleet.update(odds[N : 2 * N], y[N : 2 * N]).alarm
    last = odds[2 * N : 3 * N]
    change = after_change(fleet, last.with_cells(last.cells + 4), y[2 * N : 3 * N])
    assert change.quantity == "forecast"
    assert change.before[1] == N - N // 3  # the others have forecasts of other fits
    with pytest.raises(ValueError, match="y is missing: a forecaster"):
        FleetMonitor(PrefixForecaster()).fit(odds[:N])


def test_bad_input():
    X, y = traces()
    fleet = FleetMonitor(alpha=0.1, n_after=60)
    assert clone(fleet).get_params() == fleet.get_params()
    for name, value in [("alpha", 0), ("phi", "median"), ("n_after", 49)]:
        with pytest.raises(ValueError, match=f"{name} must"):
            FleetMonitor(**{name: value}).fit(X, y)
    rows = [
        (X[:49], y[:49], "49 runs of different tasks and needs 50"),
        (X, y, np.arange(len(y)) % 30, "30 runs of different tasks and needs 50"),
        (X, np.ones(len(y)), "the reference has no failure"),
        (X, 0 * y, "the reference has no success"),
        (X.with_cells(X.cells + 1), y, "lies outside"),
    ]
    must_refuse(fleet.fit, rows)
    unobserved = FleetMonitor().fit(X, np.full(len(y), -1))
    assert unobserved.e_values_.equals(FleetMonitor().fit(X).e_values_)


def test_runs_that_are_sent_again_count_once(rng):
    X, y = traces()
    fleet = FleetMonitor().fit(X[:N], y[:N])
    fleet.update(X[N : N + 40], y[N : N + 40])
    evidence = fleet.e_values_
    with pytest.warns(UserWarning, match="40 runs .*id of its own"):
        fleet.update(X[N : N + 40], y[N : N + 40])
    assert (fleet.n_repeated_, fleet.n_runs_) == (40, 80)
    assert fleet.e_values_.equals(evidence)
    fleet.update(bolder(X[N : N + 40]))  # another run may have the id of an earlier one
    bare = FleetMonitor().fit(rng.random((60, 2)))
    forecasts = rng.random((30, 2))  # without ids, only all runs of an update are known again
    for batch in (forecasts, forecasts[:1], forecasts[:1], forecasts[::-1]):
        bare.update(batch)
    with pytest.warns(UserWarning, match="30 runs"):
        bare.update(forecasts)
    assert (fleet.n_repeated_, bare.n_repeated_) == (40, 30)
