import numpy as np
import pytest

from trajscore.monitoring._fleet_cause import Run, _moved, cause_of


def runs(forecasts, outcomes, lengths=None):
    lengths = np.full(len(forecasts), 4.0) if lengths is None else lengths
    return [
        Run(k, k, float(length), np.array([f]), np.zeros(2, dtype=int), int(y))
        for k, (f, y, length) in enumerate(zip(forecasts, outcomes, lengths, strict=True))
    ]


def made(n, seed, informative=True, rate=0.5):
    rng = np.random.default_rng(seed)
    f = np.linspace(0.05, 0.95, n)
    chance = np.clip(f + rate - 0.5, 0.01, 0.99) if informative else np.full(n, rate)
    # outcomes at equal distances of their expectation: as many as expected, without noise
    order = rng.permutation(n)
    return f, (np.diff(np.floor(np.cumsum(chance[order])), prepend=0) > 0)[np.argsort(order)]


@pytest.mark.parametrize(
    ("rate", "cause"),
    [
        (0.5, "ranking"),
        (0.44, "ranking"),  # beyond 3, where a lead of 2 would not be enough
        (0.42, "unclear"),
        (0.3, "success at the same forecast"),
    ],
)
def test_a_loss_of_ranking_may_come_with_chance_in_success(rate, cause):
    before, after = made(1000, 0), made(400, 1, informative=False, rate=rate)
    moved = _moved(before[1].astype(float), after[1].astype(float))
    assert {0.5: moved < 1, 0.44: 3 < moved < 5, 0.42: 5 < moved < 9, 0.3: moved > 20}[rate]
    assert cause_of(runs(*before), runs(*after), 0) == cause


def test_few_outcomes_name_no_cause():
    f, y = made(1000, 0)
    rare = np.arange(300) < 19
    assert cause_of(runs(f, y), runs(f[:300], rare), 0) == "unclear"
    assert cause_of(runs(f[:300], ~rare), runs(f, y), 0) == "unclear"


def test_longer_runs_are_named():
    f, y = made(1000, 0)
    rng = np.random.default_rng(2)
    before, after = rng.integers(2, 8, 1000), rng.integers(4, 10, 1000)
    assert cause_of(runs(f, y, before), runs(f, y, after), 0) == "lengths"


def test_bolder_forecasts_are_named():
    f, y = made(1000, 0)
    assert cause_of(runs(f, y), runs(f**0.3, y), 0) == "forecasts"


def test_ranks_of_all_values_alike_have_not_moved():
    assert _moved(np.ones(5), np.ones(3)) == 0
    # two against two: ranks 1, 2 and 3, 4, of variance 5 / 4
    assert _moved(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == pytest.approx(4 / (4 / 3 * 5 / 4))
