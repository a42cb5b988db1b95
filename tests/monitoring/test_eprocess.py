import functools
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from refused import must_refuse
from trajscore import DensityRatioEProcess, PlattCrossFitCalibrator, PrefixForecaster, tps_scorer
from trajscore import TrajectoryArray as Runs
from trajscore.datasets import make_trajectories
from trajscore.monitoring import Conformal, LearnThenTestStop, Pac, token_savings

ALPHAS = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]

# power and false alarms of the published package on HotpotQA, at each alpha
VILLE = ".2246/.0043 .3130/.0080 .3934/.0252 .4831/.0608 .5828/.1229 .7020/.1787 .7679/.2518"
PAC = ".3043/.0074 .4680/.0436 .5514/.0909 .7077/.1959 .7836/.2887 .7886/.3268 .8683/.4926"
PUBLISHED_THRESHOLDS = "19.173 5.890 3.853 2.385 1.783 1.599 1.233"
RUNNING = {"features": "running", "pooled": True}


@functools.cache
def made(n=120, longest=5):
    return make_trajectories(n, lengths=(1, longest), random_state=0, return_X_y=True)


@pytest.fixture
def runs():
    return made()


@pytest.fixture(scope="module")
def split(hotpotqa):
    """HotpotQA with the published split: rows to calibrate on and to test on, ids in file order."""
    X, y = hotpotqa
    chosen = np.random.default_rng(42).choice(X.ids, int(0.8 * len(X)), replace=False)
    is_calibration = np.isin(X.ids, chosen)
    return X, y, np.flatnonzero(is_calibration), np.flatnonzero(~is_calibration)


def shown(report):
    pairs = zip(report["power"], report["false_alarm_rate"], strict=True)
    return " ".join(f"{p:.4f}/{f:.4f}".replace("0.", ".") for p, f in pairs)


def test_published_ville(split):
    X, y, calibration, test = split
    process = DensityRatioEProcess(PrefixForecaster(), threshold="ville", alpha=ALPHAS)
    process.fit(X[calibration], y[calibration])
    assert shown(process.report(X[test], y[test])) == VILLE


def test_published_pac_with_an_explicit_split(split):
    X, y, calibration, test = split
    n = len(calibration)
    ratio_ids = np.random.default_rng(42).choice(X.ids[calibration], int(0.5 * n), replace=False)
    held_out = ~np.isin(X.ids[calibration], ratio_ids)
    process = DensityRatioEProcess(PrefixForecaster(), threshold=Pac(delta=0.05), alpha=ALPHAS)
    process.fit(X[calibration], y[calibration], calibration=held_out)
    assert " ".join(f"{c:.3f}" for c in process.thresholds_) == PUBLISHED_THRESHOLDS
    assert shown(process.report(X[test], y[test])) == PAC


def test_m_is_the_odds_of_failure_against_the_base_odds(runs):
    X, y = made(300, 6)
    process = DensityRatioEProcess(threshold="ville").fit(X, y)
    F = PrefixForecaster(**RUNNING, end="step").fit(X, y).transform(X).cells
    rate = y.mean()
    assert process.base_rate_ == pytest.approx(rate)
    M = np.exp(process.transform(X).cells)
    np.testing.assert_allclose(M, (1 - F) / F * rate / (1 - rate), rtol=1e-12)
    given = DensityRatioEProcess("passthrough", threshold="ville")
    given.fit([[0.2], [0.9], [0.8], [0.9]], [0, 1, 1, 1])
    certain = given.transform([[0.0], [1.0]])  # forecasts are clipped
    far = np.log(1e6 - 1) + np.log([3, 3])
    np.testing.assert_allclose(certain[:, 0], [far[0], 2 * np.log(3) - far[0]], rtol=1e-9)


@functools.cache
def late():
    """Runs whose ends are spread out."""
    rng = np.random.default_rng(3)
    lengths = np.minimum(rng.geometric(0.3, 80), 7)
    y = (rng.random(80) < 0.6).astype(int)
    scores = rng.normal(np.repeat(0.5 + 0.1 * y, lengths), 0.2)
    return Runs(scores, lengths, ended=True), y


def added_to_log_m(lengths, knows_end, log_offset, end_worth):
    """What is added after each of 7 steps and beyond, and at the end, by a loop over runs."""
    if end_worth is None:
        return [-log_offset] * 8, 0.0
    lost = [L for L in lengths.tolist() if L]
    at = [[L for L in lost if (t < L if knows_end else t <= L)] for t in range(1, 9)]
    left = [sum((L - t) / L for L in here) for t, here in enumerate(at, start=1)]
    n = [len(here) for here in at]
    overall = (sum(left) + 0.5) / (sum(n) + 1)
    shares = [(a + 10 * overall) / (b + 10) for a, b in zip(left, n, strict=True)]
    return [np.log(share + end_worth) - log_offset for share in shares], np.log(end_worth or 1e-300)


@pytest.mark.parametrize("end", ["step", "after", None])
@pytest.mark.parametrize(
    ("log_offset", "end_worth"), [(0.0, None), (0.3, None), (0.0, 0.3), (0.2, 1.0), (0.0, 0)]
)
def test_what_is_compared_with_the_threshold_by_a_loop(end, log_offset, end_worth):
    X, y = late()
    threshold = Conformal(end_worth=end_worth)
    process = DensityRatioEProcess(
        PrefixForecaster(**RUNNING, end=end), threshold, alpha=0.2, log_offset=log_offset
    ).fit(X, y, calibration=np.flatnonzero(y == 1)[:25])
    going, at_end = added_to_log_m(X.lengths[y == 0], end == "step", log_offset, end_worth)
    for ended in (False, True):
        new = X.with_ended(ended)
        log_m, open_log_m = process.transform(new), process.transform(X.with_ended(False))
        largest = []
        for row, L in enumerate(X.lengths):
            before_end = open_log_m if end == "after" else log_m
            values = [before_end[row][t] + going[t] for t in range(L)]
            if ended:
                finished = log_m[row][L - 1] + at_end
                values[-1] = finished if end == "step" else max(values[-1], finished)
            largest.append(max(values))
        margins = np.log(process.thresholds_.iloc[0]) - process.decision_function(new)
        np.testing.assert_allclose(np.maximum(margins, -99), np.maximum(largest, -99), atol=1e-8)
    with pytest.warns(UserWarning, match="longer"):  # after the last step known, as at that step
        process.decision_function(Runs([0.5] * 9, [9], ended=False))


def test_flags_of_successes_are_the_same_test_turned_round():
    X, y = made(600, 8)
    process = DensityRatioEProcess("passthrough", alpha=[0.1, 0.3], flags="success").fit(X, y)
    assert "at most 0.1 of the failures, on average" in repr(process)
    mirror = X.with_cells(1 - X.cells)
    turned = DensityRatioEProcess("passthrough", alpha=[0.1, 0.3]).fit(mirror, 1 - y)
    assert (process.stopping_steps(X) == turned.stopping_steps(mirror)).all()
    assert (process.predict(X) == 1 - turned.predict(mirror)).all()
    assert ((process.decision_function(X) > 0) == process.predict(X)).all()
    assert process.score(X, y) == turned.score(mirror, 1 - y)
    report, other = process.report(X, y, cost=X), turned.report(mirror, 1 - y, cost=X)
    other = other.rename(columns={"n_success": "n_failure", "n_failure": "n_success"})
    pd.testing.assert_frame_equal(report, other[report.columns])
    with pytest.raises(ValueError, match="process.report"):
        token_savings(process, X, y)


@pytest.mark.parametrize("flags", ["failure", "success"])
def test_without_outcomes_the_most_extreme_runs_are_flagged(flags):
    X, sign = made(600, 8)[0], 1 if flags == "failure" else -1
    X = X.with_cells(np.round(100 * X.cells) - 50)  # of any scale, with ties
    process = DensityRatioEProcess(alpha=[0.1, 0.3], flags=flags).fit(X[:299])
    worst = [min(sign * run) for run in X]
    for alpha in (0.1, 0.3):
        limit = np.sort(worst[:299])[int(alpha * 300) - 1]
        flagged = process.stopping_steps(X, alpha) > 0
        assert (flagged == (worst < limit)).all()
        assert process.thresholds_[alpha] == sign * limit
        assert process.promise(alpha)[:2] == (alpha, "runs")
        monitor = process.monitor(alpha)
        for row, run in enumerate(X[:50]):
            assert [monitor.update(score, row) for score in run][-1].flagged == flagged[row]
    assert process.fit(X, groups=X.ids // 10).n_calibration_successes_ == 60
    with pytest.warns(UserWarning, match=r"too few held-out runs \(5\).*at least 9 runs"):
        assert not process.fit(X[:5]).stopping_steps(X, 0.1).any()
    with pytest.raises(ValueError, match="needs outcomes"):
        process.set_params(threshold="ville").fit(X)
    with pytest.raises(ValueError, match="2 channels"):
        DensityRatioEProcess().fit(Runs(np.stack([X.cells, X.cells], axis=1), X.lengths))


GRID = {"features": ["prefix", "last"]}
OPTIONS = [
    {"threshold": "pac", "alpha": 0.2},
    {"threshold": Conformal("randomized")},
    {"threshold": "randomized_ville"},
    {"hold_out": "runs"},
    {"forecaster": GridSearchCV(PrefixForecaster(), GRID, scoring=tps_scorer, cv=2)},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options))
def test_rows_in_any_order(options, rng):
    X, y = made(400, 6)
    order = rng.permutation(400)
    one = DensityRatioEProcess(**options).fit(X, y)
    other = DensityRatioEProcess(**options).fit(X[order], y[order])
    np.testing.assert_array_equal(one.transform(X).cells, other.transform(X).cells)
    assert (one.stopping_steps(X)[order] == other.stopping_steps(X[order])).all()


def test_every_failure_is_learned_from_and_a_share_of_the_successes_held_out():
    X, y = made(400, 6)
    successes = int(y.sum())
    process = DensityRatioEProcess(alpha=[0.2, 0.1]).fit(X, y)
    n = process.n_calibration_successes_
    assert n == (successes // 2 + 1) // 10 * 10 - 1  # alpha (n + 1) is whole
    assert process.base_rate_ == pytest.approx((successes - n) / (400 - n))
    pac = DensityRatioEProcess(threshold="pac", alpha=0.1)
    assert pac.fit(X, y).n_calibration_successes_ == successes // 2
    pac.set_params(calibration_fraction=0.25)
    assert pac.fit(X, y).n_calibration_successes_ == successes // 4
    few = np.r_[np.flatnonzero(y == 1)[:15], np.flatnonzero(y == 0)[:30]]
    small = DensityRatioEProcess(alpha=0.1).fit(X[few], y[few])
    assert small.n_calibration_successes_ == 9  # more than half, but fewer would flag nothing
    least = DensityRatioEProcess(alpha=0.1).fit(X[few[4:]], y[few[4:]])
    assert least.n_calibration_successes_ == 9  # of 11: two are left to learn from
    with pytest.warns(UserWarning, match="at least 9 "):
        none = DensityRatioEProcess(alpha=0.1).fit(X[few[5:]], y[few[5:]])
    assert none.n_calibration_successes_ == 5
    two = np.r_[np.flatnonzero(y == 1)[:15], np.flatnonzero(y == 0)[:2]]  # just enough to split
    DensityRatioEProcess("passthrough", alpha=0.3).fit(X[two], y[two])
    with pytest.raises(ValueError, match="1 failure.*at least 2"):
        DensityRatioEProcess("passthrough", alpha=0.3).fit(X[two[:-1]], y[two[:-1]])
    ltt = LearnThenTestStop(alpha=0.3, lost_accuracy=None, calibration_fraction=0.75).fit(X, y)
    assert abs(ltt.n_calibration_ - 300) <= 1
    # of all runs, a share within each outcome
    shares = DensityRatioEProcess(alpha=0.1, hold_out="runs", calibration_fraction=0.25).fit(X, y)
    assert shares.base_rate_ == pytest.approx(y.mean(), abs=0.005)
    assert abs(shares.n_calibration_successes_ - successes / 4) <= 1


def test_one_success_of_each_held_out_group_counts():
    X, y = made(400, 6)
    groups = np.arange(400) // 8
    process = DensityRatioEProcess("passthrough", alpha=0.1).fit(X, y, groups=groups)
    assert process.n_calibration_successes_ == 19  # of 50 groups, all with successes
    left_out = 400 - 19 * 8  # all runs of a group are held out
    assert (process.base_rate_ * left_out) % 1 == pytest.approx(0, abs=1e-9)
    same = DensityRatioEProcess("passthrough", alpha=0.1).fit(X, y, groups=groups.astype(str))
    pd.testing.assert_series_equal(same.thresholds_, process.thresholds_)
    one_each = np.arange(400)
    alone = DensityRatioEProcess(alpha=0.1).fit(X, y, groups=one_each)
    without = DensityRatioEProcess(alpha=0.1).fit(X, y)
    pd.testing.assert_series_equal(alone.thresholds_, without.thresholds_)


def test_ten_thousand_steps_do_not_overflow(rng):
    cells = [np.full(10_000, 1e-9), np.full(9_000, 1.0), *rng.random((40, 1))]
    X = Runs.from_list(cells)
    y = np.r_[0, 1, rng.integers(0, 2, 40)]
    process = DensityRatioEProcess("passthrough", threshold="ville").fit(X, y)
    assert np.isfinite(process.transform(X).cells).all()
    assert process.predict(X)[:2].tolist() == [0, 1]


def test_other_forecasters_and_plain_arrays():
    X, y = made(400, 6)
    process = DensityRatioEProcess(PlattCrossFitCalibrator(), alpha=0.2).fit(X, y)
    assert process.transform(X).shape == X.shape
    plain = DensityRatioEProcess(alpha=0.2).fit(X.padded(), y)
    same = DensityRatioEProcess(alpha=0.2).fit(X, y)
    # nothing says that the runs of a plain array have ended
    np.testing.assert_array_equal(plain.predict(X.padded()), same.predict(X.with_ended(False)))
    assert plain.score(X.padded(), y) == same.score(X, y)
    assert plain.transform(X.padded()).shape == X.shape


def test_no_runs_at_all(runs):
    X, y = runs
    for options in ({}, {"threshold": "randomized_ville"}):
        process = DensityRatioEProcess(alpha=0.2, **options).fit(X, y)
        assert len(process.transform(X[:0])) == 0
        for method in (process.predict, process.decision_function, process.stopping_steps):
            assert method(X[:0]).shape == (0,)
    for rows, outcomes in ((X[:0], []), (X, -np.ones(120))):
        with pytest.raises(ValueError, match=f"none of the {len(rows)} runs"):
            process.report(rows, outcomes)
        with pytest.raises(ValueError, match="observed outcome"):
            DensityRatioEProcess().fit(rows, outcomes)


def test_a_process_that_can_flag_nothing_says_what_is_missing():
    X, y = make_trajectories(300, lengths=3, random_state=0, return_X_y=True)
    constant = X.with_cells(np.full(len(X.cells), 0.5))
    for threshold in ("conformal", Conformal(end_worth=0.3)):
        with pytest.warns(UserWarning, match="forecasts of all 300 runs are the same"):
            process = DensityRatioEProcess("passthrough", threshold, alpha=0.1).fit(constant, y)
        assert process.predict(constant).all()
    few = np.r_[np.flatnonzero(y == 1)[:40], np.flatnonzero(y == 0)[:4]]
    with pytest.warns(UserWarning, match="a step needs 5 runs of each outcome"):
        DensityRatioEProcess(PrefixForecaster(), alpha=0.1).fit(X[few], y[few])


def test_longer_runs_than_any_seen(runs):
    process = DensityRatioEProcess(threshold="ville").fit(*runs)
    longer = Runs.from_list([[0.5] * 9, [0.4] * 7, [0.2], [0.3] * 5])
    for method in (process.transform, lambda X: process.score(X, [0, 0, 1, 0])):
        with pytest.warns(UserWarning, match="2 runs longer .* 5 steps; .*extrap") as caught:
            method(longer)
        assert len(caught) == 1
    assert DensityRatioEProcess("passthrough", "ville").fit(*runs).predict(longer).all()


def test_a_score_on_another_scale_is_named():
    """The expected range is three times as wide as that of the fit."""
    y = np.arange(40) % 2
    for low, high, bottom, top in [
        (0.2, 0.8, -0.4, 1.4), (0, 0, -1, 1), (5, 5, 0, 10), (-3, -3, -6, 0), (0.5, 0.5, -0.5, 1.5)
    ]:  # fmt: skip
        scores = np.column_stack([np.where(y, low, high), np.linspace(2, 4, 40)])
        X = Runs(scores, np.ones(40, int), channels=["p", "q"], ended=True)
        process = DensityRatioEProcess(threshold="ville").fit(X, y)
        inside = np.array([[bottom + 1e-9, 0], [top - 1e-9, 6]])
        process.predict(Runs(inside, [1, 1], channels=["p", "q"]))  # without a warning
        for outside, said in [
            ([bottom - 1e-6, 3], f"of 'p' .* from {min(low, high):g} to {max(low, high):g}"),
            ([top + 1e-6, 3], "of 'p'"),
            ([low, 6.5], "score 6.5 of 'q' .* from 2 to 4"),
        ]:
            runs = Runs(np.array([[low, 3], outside]), [1, 1], channels=["p", "q"])
            with pytest.warns(UserWarning, match="out of range") as caught:
                process.predict(runs)
            assert re.search(said, str(caught[0].message)), (low, outside)
    scores[1], y[1] = 12, -1  # a run of the fit whose outcome was not observed
    process.fit(X := Runs(scores, np.ones(40, int), channels=["p", "q"]), y).predict(X)


def test_bad_parameters(runs):
    rows = [
        ({"threshold": "pax"}, {}, "threshold must be"),
        ({"hold_out": "failures"}, {}, "hold_out must be"),
        ({"forecaster": "passthru"}, {}, 'forecaster must .*"passthrough"'),
        ({"forecaster": LogisticRegression()}, {}, r"PrefixForecaster\(Logi"),
        *(({"alpha": alpha}, {}, "alpha must lie") for alpha in (1.0, 0, [], [[0.1]], np.nan)),
        ({"alpha": "a"}, {}, "alpha must be .*'a'"),
        ({"alpha": [0.1, 0.2, 0.1]}, {}, "alpha names a level more than once"),
        ({"calibration_fraction": 1}, {}, "calibration_fraction must be"),
        ({"log_offset": -1}, {}, "log_offset must be .*-1"),
        ({"threshold": Pac}, {}, "threshold must be"),
        ({"forecaster": PrefixForecaster(), "threshold": "randomized_ville"}, {}, "end="),
        ({"threshold": "ville"}, {"calibration": [1, 2]}, "threshold='ville'.*calibration"),
        ({}, {"calibration": [1, 500]}, "calibration must be rows of .* from 0 to 119"),
        ({"flags": "wins"}, {}, "flags must be"),
    ]
    must_refuse(lambda how, given: DensityRatioEProcess(**how).fit(*runs, **given), rows)


def test_bad_runs(runs):
    X, y = runs
    failures = np.flatnonzero(y == 0)
    rows = [
        (y, {"calibration": failures[:3]}, "none of the 3 held-out runs succeeded"),
        (y, {"calibration": np.array([], dtype=int)}, "none of the 0 held-out runs succeeded"),
        (y, {"calibration": failures}, "same outcome"),
        (np.ones(120), {}, "0 failures"),
        (np.r_[0.5, y[1:]], {}, "run 0: outcome 0.5"),
    ]
    must_refuse(lambda outcomes, given: DensityRatioEProcess().fit(X, outcomes, **given), rows)
    with pytest.raises(ValueError, match="step 2.*missing"):
        DensityRatioEProcess().fit(Runs.from_list([[0.5, np.nan]], missing="allow"), [1])
    for unfitted in (lambda process: process.thresholds_, DensityRatioEProcess.monitor):
        with pytest.raises(NotFittedError):
            unfitted(DensityRatioEProcess())
    process = DensityRatioEProcess(threshold="ville").fit(X, y)
    for method in (process.report, process.score):
        with pytest.raises(ValueError, match=r"run 3: outcome 0\.5"):
            method(X, np.r_[y[:3], 0.5, y[4:]])
    with pytest.raises(ValueError, match="1 channel, got 2"):
        process.predict(Runs.stack([X, X]))
    with pytest.raises(ValueError, match="outside"):
        DensityRatioEProcess("passthrough").fit(X.with_cells(X.cells + 1), y).transform(X)
    process.fit(X, y)
    with (
        pytest.warns(UserWarning, match="out of range"),
        pytest.raises(ValueError, match=r"run 'a' .*step 2: the score -2e\+150"),
    ):
        process.transform(Runs(np.array([0.5, -2e150]), [2], ids=["a"]))
