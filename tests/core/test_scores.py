"""Score families, their sums over steps and runs, and traces collapsed to one number."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from judged import evaluate
from known_scores import FAMILIES, Score, as_text, beta_score, brier_score, collapsed, log_score
from refused import must_refuse
from trajscore import TrajectoryArray, make_tps_scorer
from trajscore.metrics import tps_samples, tps_score

GRID = np.linspace(0.001, 0.999, 999)


def score_of(score):
    """S(p, 1) and S(p, 0) as they are given to runs of one step."""

    def given_to(outcome):
        return lambda p: tps_samples(np.full(len(p), outcome), np.c_[p], score=score)

    return Score(given_to(1), given_to(0))


def test_beta_scores_are_integrals_over_thresholds():
    p = np.array([0.0, 0.1, 0.5, 0.85, 1.0])
    for a, b in [(1, 1), (2, 4), (4, 2), (7, 8), (8, 7), (9, 9), (1.5, 2), (2, 2.5)]:
        family = score_of(("beta", a, b))
        success = [-quad(lambda c: c ** (a - 1) * (1 - c) ** b, x, 1)[0] for x in p]  # noqa: B023
        failure = [-quad(lambda c: c**a * (1 - c) ** (b - 1), 0, x)[0] for x in p]  # noqa: B023
        assert_allclose(family.success(p), success, atol=1e-12)
        assert_allclose(family.failure(p), failure, atol=1e-12)
    for branch in ("success", "failure"):
        half, brier, limit, log = (
            getattr(score_of(name), branch)(GRID)
            for name in (("beta", 1, 1), "brier", ("beta", 1e-7, 1e-7), "log")
        )
        assert_allclose(2 * half, brier, atol=1e-15)
        # the log score is the limit, up to a constant of p
        assert_allclose(limit - limit[500], log - log[500], atol=1e-4)


def test_what_beta_punishes_most():
    # Raghu et al. (2026), Appendix J.2: a > b optimism about runs that fail, b > a pessimism
    X, y = TrajectoryArray.from_list([[0.0, 0.7], [0.4], [0.6]]), [1, 0, 1]
    for (a, b), (success, failure, words) in {
        (4, 2): (-1 / 60, -1 / 30, "overconfidence"),
        (2, 4): (-1 / 30, -1 / 60, "pessimism"),
        (2, 2): (-1 / 12, -1 / 12, "one half"),
    }.items():
        family = score_of(("beta", a, b))
        assert family.success(np.array([0.0]))[0] == pytest.approx(success)
        assert family.failure(np.array([1.0]))[0] == pytest.approx(failure)
        report = evaluate(X, y, families=("beta", a, b), calibrator=None, intervals="influence")
        assert report.options.score_names == [f"TPS beta({a},{b})"]
        assert words in report.disclosures["score"]


@pytest.mark.parametrize("clip", [1e-9, 1e-6, 1e-3, 0.01])
def test_the_log_score_clips(clip):
    log, p = score_of(("log", clip)), np.array([0.0, clip / 2, clip, 0.3, 1 - clip / 2, 1.0])
    held = np.clip(p, clip, 1 - clip)
    assert_allclose(log.success(p), np.log(held), rtol=1e-12)
    other = np.clip(1 - p, clip, 1 - clip)
    assert_allclose(log.failure(p), np.log(other), rtol=1e-12)
    graded = tps_samples(np.full(6, 0.25), np.c_[p], score=("log", clip))
    assert_allclose(graded, (np.log(held) + 3 * np.log(other)) / 4, rtol=1e-12)
    X = TrajectoryArray.from_list([p, p])
    expected = (np.log(held) + np.log(1 - held)).mean() / 2
    score = ("log", clip)
    assert tps_score([1, 0], X, score=score, weights="uniform") == pytest.approx(expected, rel=1e-6)


def test_families_have_names():
    X, y, p = [[0.0], [0.7], [0.4]], [1, 1, 0], np.array([0.0, 0.7, 0.4])
    for said, known, name in (
        ("log", log_score(), "log"),
        (" Log( 0.01 )", log_score(0.01), "log(clip=0.01)"),
        ("log(clip=1e-3)", log_score(1e-3), "log(clip=0.001)"),
        (("log", 0.01), log_score(0.01), "log(clip=0.01)"),
        ("brier", brier_score(), "brier"),
        ("BETA(.5, 1.5)", beta_score(0.5, 1.5), "beta(0.5,1.5)"),
        (["beta", 4, np.float64(2)], beta_score(4, 2), "beta(4,2)"),
    ):
        found = tps_samples(y, X, score=said)
        assert_allclose(found, np.r_[known.success(p)[:2], known.failure(p)[2:]], err_msg=said)
        assert tps_samples(y, X, score=name).tolist() == found.tolist()
        report = evaluate(X, y, families=[said], calibrator=None, intervals="influence")
        assert f"TPS {name}" in report.table
    unknown = ("logarithm", "beta(2)", "log(x)", "", "?", ("beta", 2), ("beta", "a", 2), 3, int)
    no_beta = ((0, 0), (-1, 2), (2, np.nan), (1, np.inf), (0, 1), (1, 0))
    rows = [
        *((score, "score .*log.*brier.*beta") for score in unknown),
        *((("beta", *ends), r"a > 0 and b > 0") for ends in no_beta),
        *((("log", clip), "clip") for clip in (0, 0.5, -1, 2, np.nan)),
    ]
    must_refuse(lambda score: tps_score(y, X, score=score), rows)
    with pytest.raises(ValueError) as unknown:
        tps_score(y, X, score="no family")
    known = {as_text(family).partition("(")[0] for family in FAMILIES}
    assert (
        set(re.findall(r"'([a-z_]+)[('](?!, \d)", str(unknown.value).partition("use")[2])) == known
    )
    with pytest.raises(ValueError, match="score 3"):
        evaluate(X, y, families=3)
    with pytest.raises(ValueError, match=r"scoring=make_tps_scorer\(\)"):
        make_tps_scorer(score=type("Fits", (), {"fit": None})())(None, X, y)


class Spherical:
    """An own family, of which only the shape of what it returns is checked."""

    def success(self, p):
        return p / np.hypot(p, 1 - p)

    def failure(self, p):
        return (1 - p) / np.hypot(p, 1 - p)


def test_own_families(ragged):
    X, y = ragged
    expected = np.where(np.repeat(y, X.lengths), X.cells, 1 - X.cells) / np.hypot(
        X.cells, 1 - X.cells
    )
    assert tps_score(y, X, score=Spherical(), weights="uniform") == pytest.approx(expected.mean())
    families = [Spherical(), "log"]
    report = evaluate(X, y, families=families, calibrator=None, intervals="influence")
    assert {"TPS Spherical", "TPS log"} <= set(report.table.columns)
    constant = type("Constant", (), {"success": lambda self, p: 1, "failure": lambda self, p: 0})()
    assert tps_score(y, X, score=constant, normalize=False, weights="uniform", horizon="own") == (
        pytest.approx(y.mean())
    )


def test_many_runs_are_scored_in_chunks_as_few_are(rng):
    lengths = np.r_[rng.integers(1, 9, 30_000), 150_000, rng.integers(1, 9, 10)]
    X = TrajectoryArray(rng.random(lengths.sum()), lengths)
    y = rng.integers(0, 2, len(X))
    samples = tps_samples(y, X, score="brier", weights="uniform", horizon="own")
    squares = (X.cells - np.repeat(y, lengths)) ** 2
    assert_allclose(samples, -np.add.reduceat(squares, X.offsets[:-1]) / lengths)


def test_no_runs_give_no_numbers():
    for phi in ("last", "mean", "min", "weighted"):
        assert collapsed(TrajectoryArray([], []), phi).tolist() == []


TRACES = TrajectoryArray([0.9, 0.6, 0.3, 0.4, 0.1, 0.7], [3, 1, 2], ids=["a", "b", "c"])


def test_aggregators():
    # rounding carries no mean outside the values
    constant = TrajectoryArray([0.1] * 3 + [0.7] * 6 + [0.1, 0.1, np.nextafter(0.1, 0)], [3, 6, 3])
    means = collapsed(constant, "mean")
    assert means[:2].tolist() == [0.1, 0.7]
    assert means[2] <= 0.1
    place = pytest.raises(ValueError, match=r"'b' \(row 1\).*weights")
    with pytest.warns(UserWarning, match="zero"), place:
        collapsed(TRACES, "weighted", weights=lambda t: t == 2.0)
    with pytest.raises(ValueError, match="phi .*'last'.*'max'"):
        collapsed(TRACES, "max")
