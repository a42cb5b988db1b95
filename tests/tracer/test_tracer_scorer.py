"""TRACER's scorer: the published formulas, prefixes, attribution, and life inside scikit-learn."""

import math
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from trajscore import (
    PlattCrossFitCalibrator,
    TraceAggregator,
    TracerScorer,
    TracerSignals,
    TrajectoryArray,
    io,
    make_tps_scorer,
)
from trajscore.tracer import SAUP, MeanSurprisal, RunLength, early_warning
from trajscore.tracer._tuning import TUNED, grid_scores, pairwise_logistic_loss, tuned

# random signals often lack one
pytestmark = pytest.mark.filterwarnings("ignore:.* runs have no surprisal:UserWarning")

AGGREGATIONS = ("max", "additive", "multiplicative", "separate")


def by_hand(steps, alpha, beta, gamma, k, w, aggregation):
    """The formulas, one step at a time, None for what is absent."""
    parts = [[None if math.isnan(x) else x for x in step[:4]] for step in steps.tolist()]
    penalty = [
        alpha * (a or 0.0) + beta * (oa or 0.0) + gamma * (ou or 0.0) for _, a, oa, ou in parts
    ]

    def top(values):
        size = max(1, math.floor(k * len(values) + 1e-9))
        return sum(sorted(values, reverse=True)[:size]) / size

    if aggregation == "separate":
        return (1 - w) * top([u or 0.0 for u, *_ in parts]) + w * top(penalty)
    risk = []
    for (u, a, oa, ou), p in zip(parts, penalty, strict=True):
        if aggregation == "max":
            weights = ((u, 1), (a, alpha), (oa, beta), (ou, gamma))
            risk.append(max((c * x for x, c in weights if x is not None), default=0.0))
        elif aggregation == "additive":
            risk.append((u or 0.0) + p)
        else:
            risk.append((u or 0.0) * (1 + p))
    return (1 - w) * top(risk) + w * max(risk)


settings_of = st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 3.0])] * 3)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@given(settings_of, st.sampled_from([0.05, 0.1, 0.34, 1.0]), st.sampled_from([0.0, 0.1, 1.0]),
       st.integers(0, 5))  # fmt: skip
def test_the_formulas(signals_of, aggregation, weights, k, w, seed):
    S = signals_of(np.random.default_rng(seed), absent=0.2 if seed else 0.0)
    has = [bool((~np.isnan(run[:, 0])).any()) for run in S]
    S = S[has]
    scorer = TracerScorer(*weights, k=k, w=w, aggregation=aggregation).fit(S)
    expected = [by_hand(run, *weights, k, w, aggregation) for run in S]
    assert np.allclose(scorer.score_samples(S), expected, rtol=0, atol=1e-12)
    trace = scorer.transform(S)
    assert np.array_equal(trace.cells[trace.offsets[1:] - 1].ravel(), scorer.score_samples(S))


def test_saup_is_the_root_mean_square(signals):
    scores = SAUP(alpha=0.5, beta=2, gamma=1).fit(signals).score_samples(signals)
    for run, score in zip(signals, scores, strict=True):
        u, a, oa, ou = np.nan_to_num(run[:, :4]).T
        there = ~np.isnan(run[:, 0])
        if not there.any():
            assert math.isnan(score)
            continue
        squares = ((1 + 0.5 * a + 2 * oa + ou) * u)[there] ** 2
        assert score == pytest.approx(math.sqrt(squares.mean()), abs=1e-12)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("actors", ["both", "agent", "user"])
def test_the_grid_is_many_scorers(signals_of, rng, aggregation, actors):
    S = signals_of(rng, absent=0.0)
    grid = {"alpha": [0, 1.5], "beta": [0.5, 2], "gamma": [1], "k": [0.1, 0.5, 1], "w": [0, 0.3]}
    arrays = {name: np.array(values, dtype=float) for name, values in grid.items()}
    scores = grid_scores(S, **arrays, aggregation=aggregation, actors=actors)
    assert scores.shape == (2, 2, 1, 3, 2, len(S))
    for place in np.ndindex(scores.shape[:-1]):
        values = {name: grid[name][i] for name, i in zip(grid, place, strict=True)}
        scorer = TracerScorer(**values, aggregation=aggregation, actors=actors).fit(S)
        assert np.allclose(scores[place], scorer.score_samples(S), rtol=0, atol=1e-12)


@given(st.integers(0, 50), st.integers(0, 3), st.floats(0, 2))
def test_monotone_in_every_component(signals_of, seed, component, more):
    rng = np.random.default_rng(seed)
    S = signals_of(rng, n_runs=5, absent=0.0)
    cells = S.cells.copy()
    cells[rng.random(len(cells)) < 0.5, component] += more
    for aggregation in AGGREGATIONS:
        scorer = TracerScorer(aggregation=aggregation).fit(S)
        worse = scorer.score_samples(S.with_cells(cells, channels=S.channels))
        assert (worse >= scorer.score_samples(S) - 1e-12).all()


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_attribution_bounds_the_whole(signals_of, rng, aggregation):
    S = signals_of(rng, absent=0.0)
    scorer = TracerScorer(k=0.4, w=0.3, aggregation=aggregation).fit(S)
    parts = scorer.attribution(S)
    assert np.array_equal(parts["total"], scorer.score_samples(S))
    assert (parts["total"] <= parts["agent"] + parts["user"] + 1e-12).all()
    for actors in ("agent", "user"):
        alone = clone(scorer).set_params(actors=actors).fit(S)
        assert np.array_equal(alone.score_samples(S), parts[actors])
    assert parts.index.tolist() == S.ids.tolist()


def test_no_look_ahead_and_no_company_counts(signals):
    scorer = TracerScorer(k=0.4).fit(signals)
    trace = scorer.transform(signals)
    cut = signals.prefix(3)
    assert np.array_equal(scorer.transform(cut).cells, trace.prefix(3).cells, equal_nan=True)
    order = np.random.default_rng(1).permutation(len(signals))
    assert np.array_equal(
        scorer.score_samples(signals[order]), scorer.score_samples(signals)[order], equal_nan=True
    )
    assert np.array_equal(scorer.transform(signals[[4]]).cells.ravel(), trace[4].ravel())


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_there_is_no_risk_until_a_component_is_recorded(aggregation):
    nan = np.nan
    S = TrajectoryArray(
        [[nan, nan], [nan, nan], [0.0, nan], [nan, 0.4], [nan, nan]], [5],
        channels=["surprisal", "repetition"], missing="allow",
    )  # fmt: skip
    scorer = TracerScorer(aggregation=aggregation).fit(S)
    trace = scorer.transform(S).cells.ravel()
    assert np.isnan(trace).tolist() == [True, True, False, False, False]
    assert trace[2] == 0
    for t in range(1, 6):
        assert np.array_equal(
            scorer.transform(S.prefix(t)).cells.ravel(), trace[:t], equal_nan=True
        )
        assert np.array_equal(scorer.score_samples(S.prefix(t)), trace[[t - 1]], equal_nan=True)


def test_a_multiple_of_surprisal_needs_one():
    S = TrajectoryArray([[np.nan, 0.4], [0.2, 0.1]], [2], channels=["surprisal", "repetition"],
                        missing="allow")  # fmt: skip
    scorer = TracerScorer(aggregation="multiplicative").fit(S)
    assert np.isnan(scorer.transform(S).cells.ravel()).tolist() == [True, False]
    assert np.isnan(scorer.score_samples(S.prefix(1))).all()


def test_absent_surprisal_is_left_out():
    without = TrajectoryArray([[np.nan, 0.4]], [1], channels=["surprisal", "repetition"],
                              missing="allow")  # fmt: skip
    only = without[["repetition"]]
    for aggregation in ("max", "additive"):
        for signals in (without, only):
            assert TracerScorer(aggregation=aggregation).fit(signals).score_samples(signals) == 0.4


@pytest.mark.parametrize("aggregation", ["max", "additive", "separate"])
def test_a_run_of_which_nothing_is_recorded_has_no_risk(aggregation):
    nan = np.nan
    S = TrajectoryArray(
        [[nan, nan, 1], [nan, nan, 0], [nan, 0.0, 1], [0.4, 0.2, 1]], [2, 1, 1],
        channels=["surprisal", "repetition", "is_agent"], missing="allow",
    )  # fmt: skip
    scorer = TracerScorer(aggregation=aggregation).fit(S)
    risk = scorer.score_samples(S)
    assert np.isnan(risk).tolist() == [True, False, False]
    assert np.isnan(scorer.transform(S).cells.ravel()).tolist() == [True, True, False, False]
    usual = {name: np.array([getattr(scorer, name)]) for name in TUNED}
    grid = grid_scores(S, **usual, aggregation=aggregation, actors="both")
    assert np.array_equal(grid.ravel(), risk, equal_nan=True)
    assert np.isnan(scorer.attribution(S).to_numpy()).all(axis=1).tolist() == [True, False, False]
    warning = early_warning([1, 1, 0], scorer.transform(S))
    assert (len(warning.failure_times), len(warning.success_times)) == (1, 1)
    assert warning.detected_within(1) == 1
    assert warning.false_alarms_within(1) == 0
    tuned = TracerScorer(aggregation=aggregation, tune="pairwise_logistic")
    assert tuned.fit(S, [1, 1, 0]).loss_ == tuned.fit(S[1:], [1, 0]).loss_
    with pytest.raises(ValueError, match="tune needs runs that have an outcome and a recorded"):
        tuned.fit(S[[0]], [1])


def test_some_runs_without_surprisal_are_said_under_max():
    S = TrajectoryArray([[np.nan, 0.4], [0.2, 0.1]], [1, 1], missing="allow",
                        channels=["surprisal", "repetition"])  # fmt: skip
    with pytest.warns(UserWarning, match="1 of 2 runs have no surprisal") as said:
        TracerScorer().fit(S).score_samples(S)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TracerScorer(aggregation="additive").fit(S)
        TracerScorer().fit(S[[0]])


def test_explain(signals):
    scorer = TracerScorer(alpha=2, beta=3, gamma=5, k=0.3).fit(signals)
    out = scorer.explain(signals)
    for run, known in zip(out, signals, strict=True):
        size = max(1, math.floor(0.3 * len(run)))
        assert run[:, 5].sum() == size
        assert run[run[:, 5] > 0, 4].min() >= run[run[:, 5] == 0, 4].max(initial=0)
        assert np.array_equal(run[:, :4], [1, 2, 3, 5] * np.nan_to_num(known[:, :4]))


def test_explain_where_parts_are_averaged_apart():
    S = TrajectoryArray([[1.0, 2.0], [3.0, 0.5], [2.0, np.nan], [2.0, 0.0]], [3, 1],
                        channels=["surprisal", "repetition"], missing="allow")  # fmt: skip
    out = TracerScorer(alpha=4, k=0.7, w=0.25, aggregation="separate").fit(S).explain(S)
    assert out.channels == (
        "surprisal", "repetition", "agent_gap", "user_gap", "risk", "critical",
    )  # fmt: skip
    # a quarter of the penalty, three quarters of the surprisal
    assert out["risk"].cells.tolist() == [0.75 + 2, 2.25 + 0.5, 1.5, 1.5]
    # of equal risks the earlier comes first
    assert out["critical"].cells.tolist() == [1, 1, 0, 1]
    assert out["repetition"].cells.tolist() == [8, 2, 0, 0]


# ------------------------------------------------------------------ tuning


@pytest.fixture
def separable(signals_of, rng):
    """Failures differ from successes in the agent's gap of one step only."""
    S = signals_of(rng, n_runs=60, absent=0.0)
    y = np.arange(60) % 2
    cells = S.cells.copy()
    cells[:, 0] = np.nan
    worst = S.offsets[:-1]
    cells[worst, 2] = np.where(y == 0, 3.0, 0.5)
    cells[np.setdiff1d(np.arange(len(cells)), worst), 2] = 0.4
    return TrajectoryArray(cells, S.lengths, channels=S.channels, ids=S.ids, missing="allow"), y


def test_tuning_finds_the_signal(separable):
    S, y = separable
    plain = TracerScorer().fit(S)
    tuned = TracerScorer(tune="pairwise_logistic", tau=0.2).fit(S, y)
    assert tuned.beta_ > 4 * max(tuned.alpha_, tuned.gamma_)
    assert roc_auc_score(y, tuned.decision_function(S)) > 0.99
    assert tuned.loss_ <= pairwise_logistic_loss(y, plain.score_samples(S), 0.2)
    assert tuned.loss_ == pytest.approx(
        pairwise_logistic_loss(y, tuned.score_samples(S), 0.2), abs=1e-12
    )
    assert tuned.alpha == 1.0  # the parameters given stay as they are


@pytest.mark.parametrize("seed", range(5))
def test_finer_grids_never_lose_what_the_coarse_one_has(signals_of, seed):
    rng = np.random.default_rng(seed)
    S, y = signals_of(rng, n_runs=40, absent=0.0), np.arange(40) % 2
    options = {"aggregation": "additive", "actors": "both"}
    weights = np.array([0, 0.25, 0.5, 1, 2, 4])
    coarse = {"alpha": weights, "beta": weights, "gamma": weights, "w": np.array([0.5])}
    scores = grid_scores(S, **coarse, k=np.array([0.1, 0.3, 1]), **options)
    _, loss = tuned(S, y, 0.5, 1.0, **options)
    assert loss <= pairwise_logistic_loss(y, scores, 1.0).min() + 1e-9


def test_tuning_ignores_unobserved_runs_and_the_order_of_rows(separable, rng):
    S, y = separable
    extra = np.where(np.arange(len(y)) < 6, -1, y)
    one = TracerScorer(tune="pairwise_logistic").fit(S, extra)
    assert one.n_unobserved_ == 6
    order = rng.permutation(len(y))
    other = TracerScorer(tune="pairwise_logistic").fit(S[order], extra[order])
    kept = TracerScorer(tune="pairwise_logistic").fit(S[6:], y[6:])
    for name in ("alpha_", "beta_", "gamma_", "k_", "w_", "loss_"):
        assert getattr(one, name) == getattr(other, name) == getattr(kept, name)


def test_loss_by_hand():
    y, risk = np.array([0, 0, 1]), np.array([2.0, 1.0, 1.5])
    expected = (math.log1p(math.exp(-0.5 / 2)) + math.log1p(math.exp(0.5 / 2))) / 2
    assert pairwise_logistic_loss(y, risk, 2) == pytest.approx(expected, abs=1e-15)
    assert pairwise_logistic_loss(np.array([0, 1]), np.array([1.0, 0.0]), 1) == pytest.approx(
        0.3133, abs=5e-5
    )
    with pytest.raises(ValueError, match="tune needs failures and successes"):
        TracerScorer(tune="pairwise_logistic").fit([[0.1], [0.2]], [1, 1])
    with pytest.raises(
        ValueError, match=r"run 1: outcome 0\.5 must be 0 or 1; leave out graded runs"
    ):
        TracerScorer(tune="pairwise_logistic").fit([[0.1], [0.2]], [1, 0.5])


# ------------------------------------------------------------------ inside scikit-learn


def test_roc_auc_reads_right(separable):
    S, y = separable
    search = GridSearchCV(
        TracerScorer(k=0.05, w=1.0),
        {"alpha": [0, 1], "beta": [0, 2], "gamma": [0, 1]},
        scoring="roc_auc",
        cv=GroupKFold(3),
    ).fit(S, y, groups=np.arange(len(y)) // 2)
    assert search.best_params_["beta"] == 2
    assert search.best_score_ > 0.9
    assert search.score_samples(S).shape == (len(S),)


def test_proper_scores_choose_too(separable):
    S, y = separable
    model = make_pipeline(
        TracerScorer(), PlattCrossFitCalibrator(link="identity", increasing=False),
        TraceAggregator(),
    )  # fmt: skip
    grid = {"tracerscorer__beta": [0, 3], "tracerscorer__k": [0.05, 1.0]}
    search = GridSearchCV(
        model, grid, scoring={"tps": make_tps_scorer("log"), "auroc": "roc_auc"}, refit="tps", cv=3
    ).fit(S, y)
    assert search.best_params_["tracerscorer__beta"] == 3
    assert np.isfinite(search.cv_results_["mean_test_auroc"]).all()


def test_weights_reach_the_calibrator_behind_a_tuned_scorer(separable):
    S, y = separable
    weight = np.linspace(0.5, 1.5, len(y))
    tuned = TracerScorer(tune="pairwise_logistic", tau=0.2)
    with config_context(enable_metadata_routing=True):
        calibrator = PlattCrossFitCalibrator(link="identity", increasing=False)
        model = make_pipeline(tuned, calibrator.set_fit_request(sample_weight=True))
        search = GridSearchCV(
            model, {"tracerscorer__tau": [0.2, 1.0]}, cv=3,
            scoring=make_tps_scorer("log").set_score_request(sample_weight=True),
        ).fit(S, y, sample_weight=weight)  # fmt: skip
    risk = clone(tuned).set_params(tau=search.best_params_["tracerscorer__tau"]).fit(S, y)
    expected = clone(calibrator).fit(risk.transform(S), y, sample_weight=weight)
    found = search.best_estimator_.transform(S)
    assert np.array_equal(found.cells, expected.transform(risk.transform(S)).cells)


def test_from_runs_to_scores_in_one_pipeline(talk):
    y = io.outcomes(talk)
    model = make_pipeline(TracerSignals(), TracerScorer())
    scores = cross_validate(model, talk, y, scoring="roc_auc", cv=3)
    assert np.isfinite(scores["test_score"]).all()
    assert model.fit(talk, y).score_samples(talk).shape == (12,)


def test_clone_pickle_and_channels(signals):
    scorer = TracerScorer(alpha=2, tune=None).fit(signals)
    again = pickle.loads(pickle.dumps(scorer))
    assert np.array_equal(
        again.score_samples(signals), scorer.score_samples(signals), equal_nan=True
    )
    assert clone(scorer).get_params() == scorer.get_params()
    with pytest.raises(ValueError, match="gives runs of different lengths, not a table"):
        scorer.set_output(transform="pandas")
    assert scorer.get_feature_names_out().tolist() == ["risk"]
    assert scorer.transform(signals).channels == ("risk",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -1}, "alpha must be a number of at least 0, got -1"),
        ({"k": 0}, r"k must be a fraction in \(0, 1\]"),
        ({"w": 2}, r"w must be a weight in \[0, 1\], got 2"),
        ({"aggregation": "mean"}, "aggregation must be"),
        ({"actors": "all"}, "actors must be"),
        ({"tune": "auroc"}, "tune must be"),
        ({"tau": 0}, "tau must be a positive temperature"),
        ({"tau": "x"}, "tau must be a positive temperature, got 'x'"),
        ({"alpha": "a"}, "alpha must be a number of at least 0, got 'a'"),
        ({"alpha": "x"}, "alpha must be a number of at least 0, got 'x'"),
        ({"k": "a"}, r"k must be a fraction in \(0, 1\], got 'a'"),
        ({"k": [0.1, 0.2]}, r"k must be a fraction in \(0, 1\], got \[0.1, 0.2\]"),
        ({"w": None}, r"w must be a weight in \[0, 1\], got None"),
        ({"tune": "pairwise_logistic"}, "needs y in fit"),
    ],
)
def test_bad_parameters(signals, change, message):
    with pytest.raises(ValueError, match=message):
        TracerScorer(**change).fit(signals)


def test_bad_signals(signals):
    with pytest.raises(ValueError, match=r"TracerSignals\(\)\.fit_transform\(runs\)"):
        TracerScorer().fit([io.Run("a", [io.Step("agent", "hi")])])
    with pytest.raises(ValueError, match="needs at least one of the channels surprisal"):
        TracerScorer().fit(signals[["tool_calls"]])
    with pytest.raises(ValueError, match="needs the channel 'is_agent'"):
        TracerScorer(actors="agent").fit(signals[["surprisal"]])
    negative = TrajectoryArray([[0.1], [-0.2]], [2], channels=["surprisal"], ids=["a"])
    with pytest.raises(ValueError, match=r"run 'a' \(row 0\), step 2, channel 'surprisal'.*-0\.2"):
        TracerScorer().fit(negative)
    silent = TrajectoryArray([[np.nan, 0.4]], [1], channels=["surprisal", "repetition"],
                             missing="allow", ids=["b"])  # fmt: skip
    with pytest.raises(ValueError, match=r"run 'b' \(row 0\): .*no token log-probabilities"):
        TracerScorer(aggregation="multiplicative").fit(silent)


@pytest.mark.parametrize("scorer", [TracerScorer(), SAUP(), MeanSurprisal(), RunLength()], ids=repr)
def test_other_channels_than_in_fit_are_refused(scorer):
    S = TrajectoryArray(np.eye(3) / 2, [3], channels=["surprisal", "repetition", "is_agent"])
    scorer = scorer.fit(S)
    assert scorer.n_channels_in_ == 3
    assert scorer.channels_in_ == S.channels
    name = type(scorer).__name__
    for method in (scorer.transform, scorer.score_samples, scorer.decision_function):
        with pytest.raises(ValueError, match=f"{name} was fitted on 3 channels, got 2"):
            method(S[["surprisal", "is_agent"]])
        with pytest.raises(ValueError, match=f"{name} was fitted on the channels surprisal, rep"):
            method(S[["repetition", "surprisal", "is_agent"]])
