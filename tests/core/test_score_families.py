import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import beta as beta_function
from scipy.special import betainc

from trajscore import TrajectoryArray, evaluate, metrics
from trajscore.core import score_families
from trajscore.core.score_families import (
    ScoreFamily,
    count_clipped,
    digits_of,
    family_name,
    get_family,
    is_tuple_family,
    read_family,
    usage,
)
from trajscore.metrics import BetaScore, BrierScore, LogScore

GRID = np.linspace(0.001, 0.999, 999)
SCORES = ["log", "brier", ("beta", 1, 1), ("beta", 2, 4), ("beta", 0.5, 1.7), ("beta", 3, 2)]


@pytest.mark.parametrize("score", SCORES, ids=str)
@given(q=st.sampled_from(list(GRID)))
def test_the_truth_is_the_only_maximum(score, q):
    family = get_family(score)
    expected = q * family.success(GRID) + (1 - q) * family.failure(GRID)
    assert GRID[np.argmax(expected)] == q
    others = np.abs(GRID - q) > 0.05
    assert (expected[others] < expected.max()).all()


@pytest.mark.parametrize("a", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("b", [1, 2, 4, 7])
def test_polynomial_form_is_the_incomplete_beta(a, b):
    p = np.linspace(0, 1, 501)
    family = BetaScore(a, b)
    success = -beta_function(a, b + 1) * (1 - betainc(a, b + 1, p))
    failure = -beta_function(a + 1, b) * betainc(a + 1, b, p)
    np.testing.assert_allclose(family.success(p), success, atol=1e-15, rtol=0)
    np.testing.assert_allclose(family.failure(p), failure, atol=1e-15, rtol=0)


def test_half_the_brier_score():
    brier, beta = get_family("brier"), get_family(("beta", 1, 1))
    np.testing.assert_allclose(beta.success(GRID), brier.success(GRID) / 2, atol=1e-15)
    np.testing.assert_allclose(beta.failure(GRID), brier.failure(GRID) / 2, atol=1e-15)


def test_log_score_is_the_limit():
    # up to a constant of p: compare differences
    log, beta = get_family("log"), get_family(("beta", 1e-7, 1e-7))
    for branch in ("success", "failure"):
        exact, limit = getattr(log, branch)(GRID), getattr(beta, branch)(GRID)
        np.testing.assert_allclose(limit - limit[500], exact - exact[500], atol=1e-4)


def test_log_score_clips():
    log = get_family("log")
    assert log.success(np.array([0.0]))[0] == np.log(1e-6)
    assert log.failure(np.array([1.0]))[0] == np.log(1e-6)
    assert log.success(np.array([1.0]))[0] == log.failure(np.array([0.0]))[0] == np.log(1 - 1e-6)
    both = log.observed(np.array([0.0, 1.0, 0.3]), np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(both, np.log([1e-6, 1e-6, 0.7]))


def spherical(base=object):
    class Spherical(base):
        keyword = "pseudo_spherical"

        def success(self, p):
            return p / np.hypot(p, 1 - p)

        def failure(self, p):
            return (1 - p) / np.hypot(p, 1 - p)

    return Spherical


def test_own_family_and_names():
    assert family_name(spherical()()) == "Spherical"
    assert family_name(("beta", 2, 4)) == "beta(2,4)"


@pytest.mark.parametrize(
    ("metric", "digits"),
    [("TPS log", 3), ("TPS log(0.01) margin", 3), ("TPS beta(2,4)", 5), ("S-ECE", 3), ("logs", 3)],
)
def test_digits_of_a_metric(metric, digits):
    assert digits_of(metric) == digits


def test_a_registered_family_is_everywhere(monkeypatch, ragged):
    X, y = ragged
    registered = spherical(ScoreFamily)
    monkeypatch.setattr(score_families, "FAMILIES", (*score_families.FAMILIES, registered))
    assert usage() == "'log', 'log(clip)', 'brier', 'beta(a,b)' or 'pseudo_spherical'"
    value = metrics.tps_score(y, X, score="pseudo_spherical")
    assert value == metrics.tps_score(y, X, score=spherical()())
    report = evaluate(X, y, scores=["pseudo_spherical", "log"], calibrator=None)
    assert report.table["TPS pseudo_spherical"].iloc[0] == pytest.approx(value)
    parsed = read_family("pseudo_spherical")
    assert (parsed.name, digits_of("TPS pseudo_spherical"), parsed.clip) == (
        "pseudo_spherical",
        3,
        None,
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("log", "log"),
        (" Log( 0.01 )", "log(clip=0.01)"),
        ("log(clip=1e-3)", "log(clip=0.001)"),
        ("beta(4,2)", "beta(4,2)"),
        ("BETA(.5, 1.5)", "beta(0.5,1.5)"),
    ],
)
def test_families_are_read_from_words(text, name):
    assert get_family(text).name == read_family(text).name == name
    assert get_family(get_family(text).name) == get_family(text)


@pytest.mark.parametrize("score", ["logarithm", "beta(2)", "log(x)", ("beta", 2), 3, int])
def test_unknown_family(score):
    with pytest.raises(ValueError, match="unknown score"):
        get_family(score)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (-1, 2), (np.nan, 1)])
def test_parameters_out_of_domain(a, b):
    with pytest.raises(ValueError, match="a > 0 and b > 0"):
        BetaScore(a, b)


@pytest.mark.parametrize("clip", [1e-9, 1e-3, 0.01])
def test_the_clip_is_a_parameter(clip):
    log, p = LogScore(clip), np.array([0.0, clip / 2, clip, 0.3, 1 - clip, 1 - clip / 2, 1.0])
    held = np.clip(p, clip, 1 - clip)
    np.testing.assert_allclose(log.success(p), np.log(held), rtol=1e-12)
    np.testing.assert_allclose(log.failure(p), np.log(1 - held), rtol=1e-6)
    for failed, branch in ((0.0, log.success(p)), (1.0, log.failure(p))):
        np.testing.assert_allclose(log.observed(p, np.full(7, failed)), branch, rtol=1e-12)
    assert log.clipped(p).tolist() == [True, True, False, False, False, True, True]
    assert get_family(("log", clip)) == log


def test_names_show_a_clip_that_is_not_the_default():
    assert family_name(LogScore(1e-6)) == family_name(("log", 1e-6)) == family_name("log") == "log"
    assert family_name(LogScore(clip=0.01)) == "log(clip=0.01)"
    assert repr(LogScore(0.01)) == "LogScore(clip=0.01)"


@pytest.mark.parametrize("clip", [0, 0.5, -1, 2, np.nan])
def test_a_clip_out_of_range(clip):
    with pytest.raises(ValueError, match="clip must lie strictly between 0 and 1/2"):
        LogScore(clip)


def test_every_score_takes_its_clip(ragged):
    X, y = ragged
    saturated = X.with_cells(np.where(X.cells > 0.5, 1.0, X.cells))
    held = X.with_cells(np.clip(saturated.cells, 0.01, 0.99))
    score = LogScore(clip=0.01)
    for function in (
        metrics.tps_score,
        metrics.censored_tps_score,
        lambda y, F, **how: metrics.step_profile(y, F, **how)["score"],
        lambda y, F, **how: metrics.tps_decomposition(y, F, **how).score,
        lambda y, F, **how: metrics.tps_decomposition(y, F, **how, by="step")["score"],
        lambda y, F, **how: metrics.regret(held, F, **how),
    ):
        clipped = function(y, saturated, score=score)
        np.testing.assert_allclose(clipped, function(y, held, score="log"), rtol=1e-12, atol=1e-12)
        assert not np.allclose(clipped, function(y, saturated, score="log"))
    sure = metrics.tps_decomposition(np.ones(len(y)), saturated, score=score)
    assert sure.uncertainty == pytest.approx(-np.log(0.99))


def test_clipped_cells_are_counted():
    X = TrajectoryArray.from_list([[0.0, 0.5, 1e-7], [1 - 1e-3, 1e-6]])
    assert count_clipped(X, "log") == 2
    assert count_clipped(X, LogScore(0.01)) == 4
    assert count_clipped(X, "brier") == 0


def test_one_family_is_told_from_several():
    assert is_tuple_family(("log", 0.1))
    assert is_tuple_family(["beta", 2, 4.0])
    for several in (("log", "brier"), ("beta", "log", "brier"), ("log", ("beta", 2, 4)), (), "log"):
        assert not is_tuple_family(several)


def test_what_beta_punishes_most():
    # a > b: optimism about runs that fail; b > a: pessimism about runs that succeed
    for (a, b), (success, failure) in {
        (4, 2): (-1 / 60, -1 / 30),
        (2, 4): (-1 / 30, -1 / 60),
    }.items():
        family = BetaScore(a, b)
        assert family.success(np.array([0.0]))[0] == pytest.approx(success)
        assert family.failure(np.array([1.0]))[0] == pytest.approx(failure)
    too_high, too_low = metrics.regret([[0.5], [0.5]], [[0.9], [0.1]], score=("beta", 4, 2))
    assert (too_high, too_low) == (
        pytest.approx(0.00760, abs=1e-5),
        pytest.approx(0.00103, abs=1e-5),
    )
    mirrored = metrics.regret([[0.5], [0.5]], [[0.9], [0.1]], score=("beta", 2, 4))
    np.testing.assert_allclose(mirrored, [too_low, too_high])


@pytest.mark.parametrize(
    ("family", "emphasis"),
    [
        (BetaScore(2, 2), "weighs thresholds around one half, misses of either kind alike"),
        (
            BetaScore(4, 2),
            "weighs high thresholds: it punishes overconfidence in runs that fail",
        ),
        (
            BetaScore(2, 4),
            "weighs low thresholds: it punishes pessimism about runs that succeed",
        ),
        (BrierScore(), ""),
    ],
)
def test_what_a_family_weighs(family, emphasis):
    assert family.emphasis == emphasis


def test_parameters_up_to_eight_need_no_special_function(monkeypatch):
    p = np.array([0.0, 0.25, 0.5, 1.0])
    families = [BetaScore(7, 8), BetaScore(8, 7), BetaScore(1, 1)]
    # the integral of c^(m-1) (1-c)^(n-1), up to 1 - p with (b + 1, a), up to p with (a + 1, b)
    success = [-betainc(f.b + 1, f.a, 1 - p) * beta_function(f.b + 1, f.a) for f in families]
    failure = [-betainc(f.a + 1, f.b, p) * beta_function(f.a + 1, f.b) for f in families]
    monkeypatch.setattr(score_families, "betainc", lambda *_: np.full(4, np.nan))
    np.testing.assert_allclose(families[2].success(p), success[2], rtol=1e-10)
    np.testing.assert_allclose(families[2].failure(p), failure[2], rtol=1e-10)
    np.testing.assert_allclose(families[1].success(p), success[1], rtol=1e-10)
    np.testing.assert_allclose(families[0].failure(p), failure[0], rtol=1e-10)
    for of_nine in (families[0].success(p), families[1].failure(p)):
        assert np.isnan(of_nine).all()
    assert np.isnan(BetaScore(2.5, 2).failure(p)).all()
    assert np.isnan(BetaScore(2, 2.5).failure(p)).all()
