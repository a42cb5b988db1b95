"""Intervals of scores and calibration errors, by the doors that `evaluate` opens to them."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, norm, poisson, rankdata, t

from judged import drawn, evaluate
from trajscore.inference import bootstrap

OFTEN, RARE = ("p", "as_given", "TPS brier"), ("q", "as_given", "TPS brier")


def report_of(forecasts, y, groups=None, calibrator=None, **options):
    traces = {name: np.reshape(p, (-1, 1)) for name, p in forecasts.items()}
    draws = drawn(**options)
    return evaluate(
        traces, y, groups=groups, calibrator=calibrator, families="brier", intervals=draws
    )


def unseen(loss, unit, alpha):
    """How far losses that were not seen reach; a run that has suffered its own has one below 0."""
    order = np.argsort(-np.abs(loss).round(12), kind="stable")
    loss, unit, best = loss[order].round(12), unit[order], 0.0
    for size in np.unique(np.abs(loss))[::-1]:
        up_to, block = np.abs(loss) >= size, np.abs(loss) == size
        if (loss[up_to] >= 0).all():
            n = len(np.unique(unit[up_to]))
            best = max(best, (1 - alpha ** (1 / n)) * loss[up_to].sum())
        n, bad = len(np.unique(unit[block])), len(np.unique(unit[block & (loss < 0)]))
        if bad <= 3:
            above = 1.0 if bad == n else beta.ppf(1 - alpha, bad + 1, n - bad)
            best = max(best, (above - bad / n) * block.sum() * size)
    return best


def slowly(samples, other, groups, level, *, is_rare=False, n_resamples=1000, method="auto"):
    """Mean and ends of an interval, and whether it was made by bootstrap."""
    n, mean = len(samples), samples.mean()
    unit = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes, U = np.bincount(unit), np.bincount(unit, samples - mean)
    G, equal = len(sizes), n**2 / (sizes**2).sum()
    quantile = t.ppf((1 + level) / 2, equal - 1)
    half = quantile * np.sqrt((G - 1) / G * (U**2 / (1 - sizes / n) ** 2).sum()) / n
    low, high = mean - half, mean + half
    enough = (U**2).sum() ** 2 / (U**4).sum() >= min(30, 0.25 * G**2 / equal)
    by_bootstrap = method == "bootstrap" or (method == "auto" and (is_rare or not enough))
    if by_bootstrap:
        counts = bootstrap(lambda c: c, n, groups=groups, n_resamples=n_resamples, random_state=0)
        means = counts @ samples / counts.sum(axis=1)
        a = (U**3).sum() / (6 * (U**2).sum() ** 1.5)
        ties = np.abs(means - mean) < 1e-12
        z0 = norm.ppf(((means < mean) & ~ties).mean() + ties.mean() / 2)
        z = z0 + np.array([-1, 1]) * np.sqrt(G / (G - 1)) * quantile
        tails = norm.cdf(np.array([-1, 1]) * np.sqrt(G / (G - 1)) * quantile)
        if np.isfinite(z0):
            tails = norm.cdf(z0 + z / (1 - a * z))
        ends = np.quantile(means, tails)
        low, high = min(low, ends[0]), max(high, ends[1])  # never shorter
    change, reach = (other - samples) / n, [0.0, 0.0]
    most = brentq(lambda m: poisson.cdf(3, m) - (1 - level), 3, 50)  # of which three were seen
    if (most - 3) * np.bincount(unit, np.abs(change)).max() >= half:
        reach = [unseen(-change, unit, 1 - level), unseen(change, unit, 1 - level)]
    return mean, min(low, mean - reach[0]), max(high, mean + reach[1]), by_bootstrap


def agents(seed, n=120, n_unlucky=2):
    """Forecasts of which the first are as good as they say, and the others nearly always right."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.2, 0.5, 0.7, 0.8], n)
    y = (rng.random(n) < p).astype(int)
    q = np.where(y == 1, rng.choice([0.9, 0.95], n), 0.05)
    unlucky = rng.choice(n, n_unlucky, replace=False)
    q[unlucky] = 1 - q[unlucky]
    return p, q, y, rng.integers(40, size=n)


@pytest.mark.parametrize("clustered", [False, True])
def test_scores_have_the_interval_of_the_page(clustered):
    made = set()
    for seed, n_unlucky, method in [(1, 2, "auto"), (2, 5, "auto"), (0, 0, "bootstrap")]:
        p, q, y, groups = agents(seed, n_unlucky=n_unlucky)
        groups, options = groups if clustered else None, {"n_resamples": 200, "method": method}
        report = report_of({"p": p, "q": q}, y, groups, confidence_level=0.9, **options)
        for name, c in [(OFTEN, p), (RARE, q)]:
            *row, drawn = slowly(-((y - c) ** 2), -((1 - y - c) ** 2), groups, 0.9, **options)
            found = report.intervals.loc[name, ["value", "low", "high"]].astype(float)
            np.testing.assert_allclose(found, row, rtol=1e-9, err_msg=f"{seed} {name}")
            made.add((drawn, report.interval_methods.loc[name, "value"]))
    assert (True, "bootstrap") in made
    assert all(drawn == (how == "bootstrap") for drawn, how in made)


@pytest.mark.parametrize("clustered", [False, True])
def test_margins_at_a_step_have_that_of_enough_replicates(clustered):
    for seed, n_unlucky, level in [(1, 2, 0.9), (2, 5, 0.98)]:
        p, q, y, groups = agents(seed, n_unlucky=n_unlucky)
        groups = groups if clustered else None
        report = report_of({"p": p, "q": q}, y, groups, confidence_level=level, method="influence")
        for name, c in [("p", p), ("q", q)]:
            r = y.mean()
            samples, other = ((z - r) ** 2 - (z - c) ** 2 for z in (y, 1 - y))
            n_resamples = 1000 if level == 0.9 else 2000  # 40 in the tails
            *row, _ = slowly(samples, other, groups, level, n_resamples=n_resamples)
            row_of = report.by_step.loc[(name, "as_given", 1)]
            np.testing.assert_allclose(row_of[["margin", "margin_low", "margin_high"]], row)


def test_a_rare_outcome_has_all_its_intervals_by_bootstrap():
    rng = np.random.default_rng(0)
    for n_failures, n, is_rare in [
        (2, 30, True), (9, 100, True), (10, 100, False), (59, 700, True), (60, 700, False),
    ]:  # fmt: skip
        y = (np.arange(n) >= n_failures).astype(int)
        report = report_of({"p": rng.uniform(0.2, 0.8, n)}, y, n_resamples=50)
        how = report.interval_methods.loc[OFTEN, "value"]
        assert (how == "bootstrap") == is_rare, n_failures
        ranks = report.intervals.loc[("p", "as_given", "AUROC")]  # undefined in some replicates
        assert ranks["low"] < ranks["value"] < ranks["high"], n_failures


def test_means_of_very_many_are_drawn_like_those_of_few():
    # of 9,000 runs the margin is 0 but for 24
    y, p = np.arange(9000) % 2, np.full(9000, 0.5)
    p[:24] = 0.9
    report = report_of({"p": p}, y, method="influence")
    row = report.by_step.loc[("p", "as_given", 1)]
    samples, other = (0.25 - (z - p) ** 2 for z in (y, 1 - y))
    mean, low, high, drawn = slowly(samples, other, None, 0.95)
    assert drawn
    assert row["margin"] == pytest.approx(mean)
    width = high - low
    assert [row["margin_low"], row["margin_high"]] == pytest.approx([low, high], abs=0.07 * width)


def test_a_calibration_error_far_from_zero_is_bounded_as_a_mean():
    y = np.arange(400) % 2
    reach = t.ppf([0.95, 0.975], 399) * np.sqrt(0.25 / 399)
    report = report_of({"p": np.full(400, 0.7)}, y, method="influence", confidence_level=0.9)
    row = report.intervals.loc[("p", "as_given", "T-ECE"), ["value", "low", "high"]]
    # the lower one allows for an estimate that is too large by the error itself
    assert row.tolist() == pytest.approx([0.2, 0.2 - reach[1], 0.2 + reach[0]], abs=0.001)
    wrong = report_of({"p": 1.0 - np.r_[y[:50], 0.5, 0.5]}, np.r_[y[:50], 0, 1])
    assert wrong.intervals.loc[("p", "as_given", "T-ECE"), "high"] == 1


def test_bounds_of_calibration_errors_by_simulation():
    # three bins, of one run or trials of one task each; errors that are normal, of the same t
    rng = np.random.default_rng(0)
    p = rng.choice([0.15, 0.45, 0.85], 300)
    y, groups = (rng.random(300) < np.clip(p + 0.1, 0, 0.85)).astype(int), np.arange(300) // 2
    for unit in (None, groups):
        report = report_of({"p": p}, y, unit, calibrator="platt", method="influence")
        again = report.traces[("p", "recalibrated")].cells.ravel()
        bins = [np.floor((rankdata(c) - 0.5) * 10 / 300 - 1e-9) for c in (p, again)]
        gaps = [(y - c)[:, None] * (b[:, None] == np.unique(b))
                for c, b in zip((p, again), bins, strict=True)]  # fmt: skip
        n_bins, both = gaps[0].shape[1], np.hstack(gaps)
        mean = both.mean(axis=0)
        parts = both - mean
        if unit is not None:
            parts = parts.reshape(150, 2, -1).sum(axis=1)
        G = len(parts)
        covariance = parts.T @ parts * G / (G - 1) / 300**2
        errors = rng.multivariate_normal(np.zeros(len(mean)), covariance, 100_000)
        errors *= t.ppf(0.975, G - 1) / norm.ppf(0.975)
        below, above = errors * np.where(mean < -1e-9, -1, 1), np.abs(errors)
        own, other = np.abs(mean[:n_bins]).sum(), np.abs(mean[n_bins:]).sum()
        row = report.intervals.loc[("p", "as_given", "T-ECE")]
        low = own - np.quantile(above[:, :n_bins].sum(axis=1), 0.975)
        high = own - np.quantile(below[:, :n_bins].sum(axis=1), 0.025)
        found = row[["value", "low", "high"]].tolist()
        assert found == pytest.approx([own, max(low, 0), high], abs=0.003)
        row = report.intervals.loc[("p", "recalibrated", "T-ECE")]
        mine, theirs = slice(n_bins, None), slice(0, n_bins)
        up = (above[:, mine].sum(axis=1) - below[:, theirs].sum(axis=1), 0.975)
        down = (above[:, theirs].sum(axis=1) - below[:, mine].sum(axis=1), 0.975)
        expected = other - own, other - own - np.quantile(*up), other - own + np.quantile(*down)
        found = row[["over_as_given", "over_as_given_low", "over_as_given_high"]].tolist()
        assert found == pytest.approx(expected, abs=0.004)
