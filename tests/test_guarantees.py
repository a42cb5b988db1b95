"""Guarantees in full: `pytest -m slow`; the tests of each room hold them by few draws."""

from inspect import signature

import numpy as np
import pytest

from any_input import public_classes
from trajscore import DensityRatioEProcess, monitoring
from trajscore.datasets import make_trajectories
from trajscore.inference import SequentialComparison
from trajscore.monitoring import FleetMonitor, Pac, StoppingRule

ALPHA, DELTA = 0.1, 0.1

pytestmark = pytest.mark.slow


def most(level, n):
    """Return a share of n draws that one at the level exceeds once in some thousand times."""
    return level + 3.3 * np.sqrt(level * (1 - level) / n)


@pytest.fixture(scope="module")
def population():
    """Return runs, outcomes, and 6,000 successes that no rule is fitted on."""
    X, y = make_trajectories(20_000, lengths=(3, 10), random_state=5, return_X_y=True)
    return X[:12_000], y[:12_000], X[12_000:][y[12_000:] == 1]


def false_alarms(rule, population, n_draws, size=240):
    X, y, successes = population
    rng = np.random.default_rng(7)
    rates = []
    for seed in range(n_draws):
        rows = rng.choice(len(y), size, replace=False)
        if "random_state" in rule.get_params():  # a rule that holds out no runs draws nothing
            rule.set_params(random_state=seed)
        rule.fit(X[rows], y[rows])
        rates.append(1 - rule.predict(successes).mean())
    return np.array(rates)


@pytest.mark.parametrize("threshold", ["conformal", "pac_marginal"])
def test_successes_are_flagged_at_most_at_alpha_on_average(threshold, population, n_simulations):
    rule = DensityRatioEProcess(threshold=threshold, alpha=ALPHA)
    rates = false_alarms(rule, population, n_simulations)
    assert rates.mean() <= ALPHA + 3.3 * rates.std() / np.sqrt(len(rates))


@pytest.mark.filterwarnings("ignore")  # of too few runs, and of such as are longer than these
@pytest.mark.parametrize("step", [1e-9, 1 / 3], ids=["continuous", "ties"])
@pytest.mark.parametrize("size", [6, 12, 60])
@pytest.mark.parametrize("of", [None, 0], ids=["without outcomes", "solved"])
def test_guards_of_the_first_day_keep_their_promise(of, size, step, population, n_simulations):
    (X, y, _), rng, rates = population, np.random.default_rng(20261129), []
    X = X.with_cells(np.round(X.cells / step) * step)
    rule = DensityRatioEProcess(alpha=ALPHA, flags="failure" if of is None else "success")
    if of is not None and size < 60:
        size *= 4  # for too few outcomes a forecaster cannot be learned
        rule.set_params(forecaster="passthrough")
    for _ in range(n_simulations):
        old, new = np.split(rng.choice(len(X), size + 300, replace=False), [size])
        rule.fit(X[old], None if of is None else y[old])
        rates.append((rule.stopping_steps(X[new[(y[new] == of) | (of is None)]]) > 0).mean())
    assert np.mean(rates) <= ALPHA + 2 * np.std(rates) / np.sqrt(len(rates))
    assert any(rates) == (size >= 9) or step > 0.1


RULES = [kind for kind in public_classes(monitoring) if issubclass(kind, StoppingRule)]
BOUNDED = [
    DensityRatioEProcess(threshold=Pac(delta=DELTA), alpha=ALPHA),
    *(kind(alpha=ALPHA, delta=DELTA) for kind in RULES if "delta" in signature(kind).parameters),
]


@pytest.mark.parametrize("rule", BOUNDED, ids=lambda rule: type(rule).__name__)
def test_rates_exceed_alpha_in_at_most_delta_of_all_fits(rule, population, n_simulations):
    rates = false_alarms(rule, population, n_simulations)
    assert (rates > ALPHA).mean() <= most(DELTA, len(rates))


def test_quiet_fleets_have_an_alarm_at_most_at_alpha(n_simulations):
    n_alarms, n = 0, n_simulations // 2
    for seed in range(n):
        X, y = make_trajectories(1200, lengths=(2, 6), random_state=seed, return_X_y=True)
        fleet = FleetMonitor(alpha=ALPHA, random_state=seed).fit(X[:300], y[:300])
        fleet.update(X[300:], y[300:])
        n_alarms += bool(fleet.changes_)
    assert n_alarms / n <= most(ALPHA, n)


def test_equal_predictors_are_told_apart_at_most_at_alpha_at_any_look(n_simulations):
    rng, n_wrong, n = np.random.default_rng(3), 0, 5 * n_simulations
    for _ in range(n):
        pairs = rng.integers(0, 2, (300, 2)).astype(float)
        comparison = SequentialComparison(bound=1.0, alpha=ALPHA)
        n_wrong += bool(comparison.update(pairs[:, 0], pairs[:, 1]).decided_after)
    assert n_wrong / n <= most(ALPHA, n)
