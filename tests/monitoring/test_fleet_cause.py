import numpy as np
import pytest

from trajscore.monitoring import _fleet_cause
from trajscore.monitoring._fleet_cause import (
    Run,
    _auroc,
    _moved,
    _reranked,
    _standardized,
    cause_of,
)


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


@pytest.fixture
def cause(monkeypatch):
    """The cause where the changes are as given: of lengths, forecasts, success, and within."""

    def of(lengths, forecasts, success, within, recalibrated, reranked, n=(20, 20, 20, 20)):
        compared = []
        changes = iter([lengths, forecasts, success, *within])

        def moved(before, after):
            compared.append((before.tolist(), after.tolist()))
            return next(changes)

        monkeypatch.setattr(_fleet_cause, "_moved", moved)
        monkeypatch.setattr(_fleet_cause, "_recalibrated", lambda *_: recalibrated)
        monkeypatch.setattr(_fleet_cause, "_reranked", lambda *_: reranked)
        old = runs([0.1] * n[0] + [0.2] * n[1], [0] * n[0] + [1] * n[1], [2] * n[0] + [3] * n[1])
        new = runs([0.3] * n[2] + [0.4] * n[3], [0] * n[2] + [1] * n[3], [4] * n[2] + [5] * n[3])
        named = cause_of(old, new, 0)
        if compared:
            assert compared[3:] == [
                ([0.1] * n[0], [0.3] * n[2]),
                ([0.2] * n[1], [0.4] * n[3]),
                ([2.0] * n[0], [4.0] * n[2]),
                ([3.0] * n[1], [5.0] * n[3]),
            ]
        return named

    return of


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        # misfits 5; 7; 19; 36; 30.5: the first must be ahead by 2
        ((1, 30, 30, (5, 4, 3, 2), 10, 41), "forecasts and success"),
        ((1, 30, 30, (5, 4, 3, 1.9), 10, 41), "unclear"),
        ((30, 30, 30, (5, 4, 3, 2), 10, 41), "forecasts and success"),
        ((30.1, 30, 30, (5, 4, 3, 2), 10, 41), "lengths"),
        ((30, 30, 30, (50, 4, 3, 2), 20, 41), "forecasts and success"),
        ((30, 30, 30, (50, 4, 3, 2), 20.1, 41), "unclear"),
        # success: ahead by 5 of success at the same forecast, and by 2 of others
        ((1, 4, 30, (0.25, 0.25, 0.25, 1.25), 6, 41), "success"),
        ((1, 3.9, 30, (0.25, 0.25, 0.25, 1.25), 6, 41), "unclear"),
        ((1, 4, 30, (0.25, 0.25, 0.25, 1.25), 5.9, 41), "unclear"),
        ((30, 4, 30, (0.25, 0.25, 0.25, 1.25), 6, 41), "success"),
        # success at the same forecast: 1 ahead of success
        ((1, 2, 30, (3, 3, 3, 3), 16, 41), "success at the same forecast"),
        ((1, 2, 30, (3, 3, 3, 2.9), 16, 41), "unclear"),
        ((1, 2, 30, (3, 3, 3, 3), 13.9, 41), "unclear"),
        # forecasts: success, ranking and lengths are as before
        ((1, 20, 2, (9, 9, 9, 9), 9, 2), "forecasts"),
        ((2, 20, 2, (9, 9, 9, 9), 9, 2), "unclear"),
        ((1, 20, 3, (9, 9, 9, 9), 9, 2), "unclear"),
        ((1, 20, 2, (9, 9, 9, 9), 9, 3), "unclear"),
        ((1, 5.5, 2, (9, 9, 9, 9), 19, 2), "unclear"),
        ((1, 6, 2, (9, 9, 9, 9), 19, 2), "forecasts"),
        # ranking: forecasts, success and lengths are as before; 1 ahead of the same forecast
        ((1, 2, 5, (9, 9, 9, 9), 12, 9), "ranking"),
        ((1, 2, 5.1, (9, 9, 9, 9), 12.2, 9), "unclear"),
        ((1, 2, 5, (9, 9, 9, 9), 11.9, 9), "unclear"),
        ((1, 2, 5, (9, 9, 9, 9), 12, 5.9), "unclear"),
    ],
)
def test_a_cause_must_be_ahead_of_all_others(cause, changes, named):
    assert cause(*changes) == named


@pytest.mark.parametrize("rare", range(4))
def test_each_outcome_must_be_known_of_20_runs_before_and_after(cause, rare):
    n = [20] * 4
    n[rare] = 19
    changes = (1, 30, 30, (5, 4, 3, 2), 10, 41)
    assert cause(*changes, n=n) == "unclear"
    n[rare] = 21
    assert cause(*changes, n=n) == "forecasts and success"


@pytest.mark.parametrize(
    ("forecasts", "outcomes", "auroc"),
    [
        ([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], 1),
        ([0.1, 0.2, 0.2, 0.3, 0.05], [0, 1, 0, 1, 1], 3.5 / 6),
    ],
)
def test_auroc_and_delongs_variance(forecasts, outcomes, auroc):
    f, y = np.array(forecasts), np.array(outcomes)
    wins = (f[y == 1][:, None] > f[y == 0]) + 0.5 * (f[y == 1][:, None] == f[y == 0])
    value, variance = _auroc(f, y)
    # a failure counts how many successes lie below it: the same variance as of those above
    wanted = wins.mean(axis=0).var(ddof=1) / sum(y == 0) + wins.mean(axis=1).var(ddof=1) / sum(y)
    assert (value, variance) == (pytest.approx(auroc), pytest.approx(wanted))
    g, z = np.array([0.4, 0.1, 0.3, 0.2]), np.array([1, 1, 0, 0])
    second, more = _auroc(g, z)
    assert _reranked(f, y, g, z) == pytest.approx((second - value) ** 2 / (variance + more))


def test_ranking_that_never_varies_has_not_moved():
    f, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 0, 1, 1])
    assert _reranked(f, y, f[::-1], y) == 0


def test_values_that_are_all_alike_are_standardized_to_0():
    assert _standardized(np.array([3.0, 3.0])).tolist() == [0, 0]
    assert _standardized(np.array([1.0, 3.0, 5.0, 3.0])) == pytest.approx(
        np.array([-1, 0, 1, 0]) * np.sqrt(2)
    )
