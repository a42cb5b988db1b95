"""How far a mean may lie beyond what was seen."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, poisson

from trajscore.inference.mean_intervals import intervals_of_means
from trajscore.inference.units import any_units
from trajscore.inference.unseen_losses import unseen_reach


def reach(change, groups=None, alpha=0.05, **options):
    change = np.asarray(change, dtype=float)
    return unseen_reach(change, any_units(groups, len(change)), alpha, **options)


def excess(bad, n, alpha=0.05):
    return beta.ppf(1 - alpha, bad + 1, n - bad) - bad / n


def test_no_loss_seen_is_the_rule_of_three():
    below, above = reach([-0.5] * 100)
    assert below == pytest.approx((1 - 0.05**0.01) * 50)  # about 3 losses of 0.5
    assert above == 0
    assert reach([0.5] * 100) == (0, pytest.approx(below))


def test_losses_are_taken_largest_first_until_one_was_suffered():
    # 2 of 9, then 40 of 1, then the run that suffered its loss of 0.5, then 100 that did not
    change = [-9.0] * 2 + [-1.0] * 40 + [0.5] + [-0.1] * 100
    best = max((1 - 0.05 ** (1 / 2)) * 18, (1 - 0.05 ** (1 / 42)) * 58, excess(0, 100) * 10)
    below, above = reach(change)
    assert below == pytest.approx(best)
    assert above == pytest.approx(0.95 * 0.5)  # the run of that block, which could have ended well
    assert reach(change[::-1]) == (pytest.approx(below), pytest.approx(above))


def test_many_different_losses_are_bounded_together():
    losses = np.linspace(1, 0.5, 51)
    together = max((1 - 0.05 ** (1 / n)) * losses[:n].sum() for n in range(1, 52))
    assert together > 2 * losses[0]  # far more than any alone
    assert reach(-losses)[0] == pytest.approx(together)
    # a run that has suffered its own ends them; its block alone still counts
    suffered = np.where(np.arange(51) == 20, losses, -losses)
    before = max((1 - 0.05 ** (1 / n)) * losses[:n].sum() for n in range(1, 21))
    assert reach(suffered)[0] == pytest.approx(before)
    # of tasks with three runs each
    tasks = np.arange(51) // 3
    bounds = [(1 - 0.05 ** (1 / (n // 3 + (n % 3 > 0)))) * losses[:n].sum() for n in range(1, 52)]
    assert reach(-losses, tasks)[0] == pytest.approx(max(bounds))


@pytest.mark.parametrize("n_bad", [1, 2, 3])
def test_few_losses_in_a_block_of_equal_ones(n_bad):
    change = [2.0] * n_bad + [-2.0] * (60 - n_bad)
    assert reach(change)[0] == pytest.approx(excess(n_bad, 60) * 120)


def test_many_losses_leave_it_to_the_variance():
    assert reach([2.0] * 4 + [-2.0] * 56)[0] == 0


def test_tasks_count_and_not_their_runs():
    change, tasks = np.full(60, -1.0), np.arange(60) // 6
    assert reach(change, tasks)[0] == pytest.approx((1 - 0.05 ** (1 / 10)) * 60)
    change[0] = 1.0  # one run of one task
    assert reach(change, tasks)[0] == pytest.approx(excess(1, 10) * 60)


def test_what_lies_within_the_interval_anyway_is_not_sorted():
    change = np.full(100, -1e-3)
    assert reach(change, half_width=1.0) == (0, 0)
    assert reach(change, half_width=1e-3) == reach(change)


def test_means_cover_rare_losses():
    # 98.5% of the runs lose nothing, the others 5; a variance of few losses covers too little
    rng, missed, truth = np.random.default_rng(3), np.zeros(2), -0.015 * 5
    for _ in range(400):
        bad = rng.random(100) < 0.015
        values = np.where(bad, -5.0, 0.0)
        change = np.where(bad, 5.0, -5.0) / 100
        made = intervals_of_means(values[:, None], [change], any_units(None, 100), 0.95)
        missed += made[1][0] > truth, made[2][0] < truth
    assert missed[0] == 0  # the losses are in the lower end
    assert missed.sum() <= 0.07 * 400


def test_losses_within_the_half_width_are_not_sorted():
    # 7.75 is the bound at level .95 of a mean of which three were seen
    largest = poisson_bound(3) - 3
    assert 4.75 < largest < 4.76
    assert reach(np.full(10, 0.01), half_width=0.0475)[1] > 0
    assert reach(np.full(10, 0.01), half_width=0.0476) == (0.0, 0.0)
    # the changes of a group add up
    groups = np.array([0, 0, 1, 1, 2, 2])
    assert reach(np.full(6, 0.01), groups, half_width=0.0950)[1] > 0
    assert reach(np.full(6, 0.01), groups, half_width=0.0952) == (0.0, 0.0)


def poisson_bound(seen, alpha=0.05):
    return brentq(lambda mean: poisson.cdf(seen, mean) - alpha, seen, 50)
