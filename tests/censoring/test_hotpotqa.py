"""Artificially censored public runs; benchmarks/censoring.py has the same in full."""

import numpy as np
import pytest
from scipy.stats import binom, norm, t

from scripts import load_script
from trajscore.censoring import administrative_stop_test, tps_bounds


@pytest.fixture(scope="module")
def population(hotpotqa):
    return load_script("censoring").Population(*hotpotqa, "brier")


def test_known_share_covers_and_the_simple_score_does_not(population):
    table = population.table(120, n_resamples=60, refit=False)
    assert 0.9 <= table.loc["exact", "coverage"] <= 1.0
    assert 0.9 <= table.loc["complete", "coverage"] <= 1.0
    assert table.loc["simple", "coverage"] < 0.6
    assert abs(table.loc["exact", "bias"]) < 3 * table.loc["exact", "bias_std_error"]
    assert table.loc["simple", "bias"] < -0.005


def test_estimated_shares_come_close_and_their_intervals_cover(population):
    repeats, n_resamples = 40, 8
    table = population.table(repeats, n_resamples=n_resamples)
    # a standard error from 8 replicates makes an interval of 95% one of 91%; of 40 such intervals
    # fewer than 30 hold the truth once in 1,500 times, but 9 in 10 times if they are half as wide
    nominal = 1 - 2 * t.sf(norm.ppf(0.975), n_resamples - 1)
    fewest = binom.ppf(0.002, repeats, nominal)
    assert fewest == 30
    for name in ("plug-in", "hybrid"):
        assert abs(table.loc[name, "bias"]) < 0.003
        assert table.loc[name, "coverage"] * repeats >= fewest
    assert table.loc["simple", "bias"] < -0.005
    assert table.loc["simple", "coverage"] * repeats < fewest


def test_bounds_hold_the_complete_score_and_stops_pass_the_test(population):
    X, y = population.X, population.y
    cut = population.long & (np.random.default_rng(0).random(len(y)) < 0.5)
    prefix = X.truncate(np.where(cut, 3, X.lengths)).with_horizon(X.lengths)
    bounds = tps_bounds(np.where(cut, -1, y), prefix, score="brier")
    assert bounds.low < population.target < bounds.high
    fair = administrative_stop_test(prefix, np.where(cut, -1, y))
    assert fair.pvalue > 0.01
    # cut where the judge is doubtful: the test finds out
    doubt = population.long & (population.short.cells[population.short.offsets[1:] - 1] < 0.5)
    biased = X.truncate(np.where(doubt, 3, X.lengths))
    assert administrative_stop_test(biased, np.where(doubt, -1, y)).pvalue < 1e-10
