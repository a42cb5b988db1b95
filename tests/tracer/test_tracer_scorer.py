"""TRACER's scorer: its formulas, its tail and bounds, tuning, and life inside scikit-learn."""

import itertools
import math
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold
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
from trajscore.tracer import ChannelRisk, early_warning

# random signals often lack one
pytestmark = pytest.mark.filterwarnings("ignore:.* runs have no surprisal:UserWarning")

AGGREGATIONS = ("max", "additive", "multiplicative", "separate")
NAN = np.nan


def of_two(cells, lengths):
    """Signals of two components."""
    channels = ["surprisal", "repetition", "is_agent"][: len(cells[0])]
    ids = [f"r{k}" for k in range(len(lengths))]
    return TrajectoryArray(cells, lengths, channels=channels, missing="allow", ids=ids)


def by_hand(steps, alpha, beta, gamma, k, w, aggregation, actors="both"):
    """The formulas, one step at a time, None for what is absent."""
    parts = [
        [None if math.isnan(x) or actors not in ("both", ("user", "agent")[int(step[4])]) else x
         for x in step[:4]] for step in steps.tolist()
    ]  # fmt: skip
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


@settings(max_examples=60)
@given(
    st.sampled_from(AGGREGATIONS), st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 3.0])] * 3),
    st.sampled_from([0.05, 0.1, 0.29, 0.34, 1.0]),
    st.sampled_from([0.0, 0.1, 1.0]), st.sampled_from(["both", "agent", "user"]),
    st.integers(0, 5),
)  # fmt: skip
def test_the_formulas(signals_of, aggregation, weights, k, w, actors, seed):
    S = signals_of(np.random.default_rng(seed), absent=0.2 if seed else 0.0)
    S = S[[bool((~np.isnan(run[:, 0])).any()) for run in S]]
    scorer = TracerScorer(*weights, k=k, w=w, aggregation=aggregation, actors=actors).fit(S)
    expected = [by_hand(run, *weights, k, w, aggregation, actors) for run in S]
    np.testing.assert_allclose(scorer.score_samples(S), expected, rtol=0, atol=1e-12)
    trace = scorer.transform(S)
    assert np.array_equal(trace.cells[trace.offsets[1:] - 1].ravel(), scorer.score_samples(S))


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


def test_explain(signals):
    scorer = TracerScorer(alpha=2, beta=3, gamma=5, k=0.3).fit(signals)
    out = scorer.explain(signals)
    for run, known in zip(out, signals, strict=True):
        size = max(1, math.floor(0.3 * len(run)))
        assert run[:, 5].sum() == size
        assert run[run[:, 5] > 0, 4].min() >= run[run[:, 5] == 0, 4].max(initial=0)
        assert np.array_equal(run[:, :4], [1, 2, 3, 5] * np.nan_to_num(known[:, :4]))


def test_explain_where_parts_are_averaged_apart():
    S = of_two([[1.0, 2.0], [3.0, 0.5], [2.0, NAN], [2.0, 0.0]], [3, 1])
    out = TracerScorer(alpha=4, k=0.7, w=0.25, aggregation="separate").fit(S).explain(S)
    # a quarter of the penalty, three quarters of the surprisal
    assert out["risk"].cells.tolist() == [0.75 + 2, 2.25 + 0.5, 1.5, 1.5]
    # of equal risks the earlier comes first
    assert out["critical"].cells.tolist() == [1, 1, 0, 1]
    assert out["repetition"].cells.tolist() == [8, 2, 0, 0]


fractions, mixes = st.floats(0.01, 1.0), st.floats(0.0, 1.0)
numbers = st.floats(0, 5, allow_nan=False).map(lambda x: round(x, 6))


@st.composite
def pairs(draw):
    n = draw(st.integers(1, 25))
    one = st.lists(numbers, min_size=n, max_size=n).map(np.array)
    return draw(one), draw(one)


def rho(k, w, *runs):
    X = TrajectoryArray(np.concatenate(runs), [len(run) for run in runs])
    return TracerScorer(k=k, w=w).fit(X).score_samples(X)


@settings(max_examples=25)
@given(pairs(), fractions, mixes)
def test_the_tail_is_coherent_stable_and_between_mean_and_maximum(two, k, w):
    r, s = two
    of_r, of_s, upper, shifted, scaled, total = rho(
        k, w, r, s, np.maximum(r, s), r + 1.5, 2.5 * r, r + s
    )
    assert upper >= max(of_r, of_s) - 1e-12  # monotone
    assert shifted == pytest.approx(of_r + 1.5, abs=1e-9)
    assert scaled == pytest.approx(2.5 * of_r, abs=1e-9)
    assert total <= of_r + of_s + 1e-9  # subadditive
    assert abs(of_r - of_s) <= np.abs(r - s).max() + 1e-9  # 1-Lipschitz
    assert r.mean() - 1e-9 <= of_r <= r.max() + 1e-9
    assert rho(1.0, 0.0, r) == pytest.approx(r.mean(), abs=1e-9)
    assert rho(k, 1.0, r) == r.max()


def test_the_size_of_a_tail_is_that_of_the_number_as_written():
    # 0.29 * 100 is 28.999999999999996
    for n, k, size in [(1, 0.1, 1), (9, 0.1, 1), (10, 0.1, 1), (100, 0.1, 10), (100, 0.29, 29)]:
        risk = np.arange(n, dtype=float)
        assert rho(k, 0, risk) == pytest.approx(risk[n - size :].mean()), (n, k)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 15), min_size=1, max_size=8), fractions, mixes)
def test_running_tail_is_the_tail_of_each_prefix(lengths, k, w):
    rng = np.random.default_rng(sum(lengths))
    X = TrajectoryArray(rng.integers(0, 4, sum(lengths)) / 3, lengths)  # with ties
    trace = TracerScorer(k=k, w=w).fit(X).transform(X)
    expected = rho(k, w, *(run.ravel()[: t + 1] for run in X for t in range(len(run))))
    np.testing.assert_allclose(trace.cells.ravel(), expected, rtol=0, atol=1e-12)


def test_a_long_run_needs_no_square_of_memory(rng):
    X = TrajectoryArray(rng.random(3000), [3000])
    scorer = TracerScorer(k=0.1).fit(X)
    tracemalloc.start()
    trace = scorer.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # squares of steps took 160 MB
    assert trace.cells[-1] == scorer.score_samples(X)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_there_is_no_risk_until_a_component_is_recorded(aggregation):
    S = of_two([[NAN, NAN], [NAN, NAN], [0.0, NAN], [NAN, 0.4], [NAN, NAN]], [5])
    scorer = TracerScorer(aggregation=aggregation).fit(S)
    trace = scorer.transform(S).cells.ravel()
    assert np.isnan(trace).tolist() == [True, True, False, False, False]
    assert trace[2] == 0
    for t in range(1, 6):
        cut = S.prefix(t)
        assert np.array_equal(scorer.transform(cut).cells.ravel(), trace[:t], equal_nan=True)
        assert np.array_equal(scorer.score_samples(cut), trace[[t - 1]], equal_nan=True)


def test_absent_surprisal_is_left_out_but_of_multiples_of_it():
    S = of_two([[NAN, 0.4], [0.2, 0.1]], [2])
    scorer = TracerScorer(aggregation="multiplicative").fit(S)
    assert np.isnan(scorer.transform(S).cells.ravel()).tolist() == [True, False]
    for aggregation in ("max", "additive"):
        for signals in (S.prefix(1), S.prefix(1)[["repetition"]]):
            assert TracerScorer(aggregation=aggregation).fit(signals).score_samples(signals) == 0.4


@pytest.mark.parametrize("aggregation", ["max", "additive", "separate"])
def test_a_run_of_which_nothing_is_recorded_has_no_risk(aggregation):
    S = of_two([[NAN, NAN, 1], [NAN, NAN, 0], [NAN, 0.0, 1], [0.4, 0.2, 1]], [2, 1, 1])
    scorer = TracerScorer(aggregation=aggregation).fit(S)
    assert np.isnan(scorer.score_samples(S)).tolist() == [True, False, False]
    assert np.isnan(scorer.transform(S).cells.ravel()).tolist() == [True, True, False, False]
    assert np.isnan(scorer.attribution(S).to_numpy()).all(axis=1).tolist() == [True, False, False]
    warning = early_warning([1, 1, 0], scorer.transform(S))
    assert (len(warning.failure_times), len(warning.success_times)) == (1, 1)
    tuned = TracerScorer(aggregation=aggregation, tune="pairwise_logistic")
    assert tuned.fit(S, [1, 1, 0]).loss_ == tuned.fit(S[1:], [1, 0]).loss_
    for rows, y in [([0], [1]), ([1, 2], [-1, -1])]:
        with pytest.raises(ValueError, match="tune .*outcome"):
            tuned.fit(S[rows], y)


def test_some_runs_without_surprisal_are_said_under_max():
    S = of_two([[NAN, 0.4], [0.2, 0.1], [NAN, 0.2]], [1, 1, 1])
    with pytest.warns(UserWarning, match="2 of 3 runs have no surprisal") as said:
        TracerScorer().fit(S).score_samples(S)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TracerScorer(aggregation="additive").fit(S)
        for rows in ([0, 2], [1]):
            TracerScorer().fit(S[rows])
        TracerScorer().fit(S[["repetition"]])


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
    return S.with_cells(cells, channels=S.channels), y


def loss_of(y, risk, tau):
    return np.mean([
        np.log1p(np.exp(-(risk[i] - risk[j]) / tau))
        for i in np.flatnonzero(y == 0) for j in np.flatnonzero(y == 1)
    ])  # fmt: skip


def search_by_hand(S, y, w, tau, aggregation):
    """From coarse to fine to the mix, one setting at a time; of equal ones the first."""
    parts = [np.nan_to_num(S.padded()[..., k]) for k in range(4)]

    def score(alpha, beta, gamma, k, w):
        size = np.maximum(1, np.floor(k * S.lengths + 1e-9)).astype(int)

        def top(values):
            return np.cumsum(-np.sort(-values, axis=1), axis=1)[range(len(S)), size - 1] / size

        U, A, G, V = parts
        if aggregation == "max":
            risk = np.max([U, alpha * A, beta * G, gamma * V], axis=0)
        elif aggregation == "additive":
            risk = U + alpha * A + beta * G + gamma * V
        else:
            return (1 - w) * top(U) + w * top(alpha * A + beta * G + gamma * V)
        return (1 - w) * top(risk) + w * risk.max(axis=1)

    def best(*grid):
        settings = list(itertools.product(*grid))
        risks = np.array([score(*one) for one in settings])
        margin = (risks[:, y == 0, None] - risks[:, None, y == 1]) / tau
        losses = np.log1p(np.exp(-margin)).mean(axis=(1, 2)).round(12)
        return settings[losses.argmin()], losses.min()

    weights, tails = [0, 0.25, 0.5, 1, 2, 4], [0.05, 0.1, 0.2, 0.3, 0.5, 1]
    setting, _ = best(weights, weights, weights, tails, [w])
    fine = [sorted({round(x * f, 6) for f in (0.6, 0.8, 1, 1.25, 1.6)}) for x in setting[:3]]
    tails = sorted({min(1, round(setting[3] * f, 6)) for f in (0.6, 0.8, 1, 1.25, 1.6)})
    setting, _ = best(*fine, tails, [w])
    return best(*([x] for x in setting[:4]), sorted({*np.arange(11) / 10, w}))


@pytest.mark.parametrize("aggregation", ["max", "additive", "separate"])
def test_the_search_is_from_coarse_to_fine_to_the_mix(signals_of, aggregation):
    S = signals_of(np.random.default_rng(3), n_runs=12, absent=0.1)
    S, y = S[np.argsort(S.ids)], np.array([0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1])
    tuned = TracerScorer(aggregation=aggregation, tune="pairwise_logistic", w=0.25, tau=0.5)
    tuned.fit(S, y)
    expected, loss = search_by_hand(S, y, 0.25, 0.5, aggregation)
    found = tuned.alpha_, tuned.beta_, tuned.gamma_, tuned.k_, tuned.w_
    assert found == pytest.approx(expected)
    assert tuned.loss_ == pytest.approx(loss)
    assert tuned.loss_ == pytest.approx(loss_of(y, tuned.score_samples(S), 0.5))
    assert tuned.alpha == 1.0  # the parameters given stay as they are


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


def test_searches_choose_by_auroc_and_by_proper_scores(separable):
    S, y = separable
    grid = {"alpha": [0, 1], "beta": [0, 2], "gamma": [0, 1]}
    search = GridSearchCV(
        TracerScorer(k=0.05, w=1.0), grid, scoring="roc_auc", cv=GroupKFold(3)
    ).fit(S, y, groups=np.arange(len(y)) // 2)
    assert search.best_params_["beta"] == 2
    assert search.best_score_ > 0.9
    calibrator = PlattCrossFitCalibrator(link="identity", increasing=False)
    model = make_pipeline(TracerScorer(), calibrator, TraceAggregator())
    grid = {"tracerscorer__beta": [0, 3], "tracerscorer__k": [0.05, 1.0]}
    scoring = {"tps": make_tps_scorer("log"), "auroc": "roc_auc"}
    search = GridSearchCV(model, grid, scoring=scoring, refit="tps", cv=3).fit(S, y)
    assert search.best_params_["tracerscorer__beta"] == 3
    assert np.isfinite(search.cv_results_["mean_test_auroc"]).all()


def test_names_and_output(signals):
    scorer = TracerScorer(alpha=2).fit(signals)
    scores = scorer.score_samples(signals)
    np.testing.assert_array_equal(scorer.decision_function(signals), -scores)
    assert list(scorer.get_feature_names_out()) == list(scorer.transform(signals).channels)


def test_bad_parameters_are_named(signals):
    for name, values in {
        "alpha": (-1, np.inf, NAN, "a", None), "beta": (-0.1,), "gamma": ("1",),
        "k": (0, 1.2, "a", [0.1, 0.2]), "w": (-1, 2, None), "tau": (0, "x"),
        "aggregation": ("mean",), "actors": ("all",), "tune": ("auroc",),
    }.items():  # fmt: skip
        for value in values:
            with pytest.raises(ValueError, match=f"{name} must be"):
                TracerScorer(**{name: value}).fit(signals)
            fitted = TracerScorer().fit(signals).set_params(**{name: value})
            with pytest.raises(ValueError, match=f"{name} must be"):
                fitted.score_samples(signals)
    for y, problem in [(None, "needs y"), ([1, 1], "one class"), ([1, 0.5], "run 1.* 0.5")]:
        with pytest.raises(ValueError, match=problem):
            TracerScorer(tune="pairwise_logistic").fit([[0.1], [0.2]], y)


def test_bad_signals_are_named(signals):
    silent = of_two([[NAN, 0.4]], [1])
    negative = TrajectoryArray([[0.1], [-0.2]], [2], channels=["surprisal"], ids=["a"])
    run = io.Run("a", [io.Step("agent", "hi")])
    for scorer, X, problem in [
        (TracerScorer(), [run], r"TracerSignals\(\)"),
        (ChannelRisk(), (run, run), "got runs"),
        (TracerScorer(), signals[["tool_calls"]], "channels surprisal.*tool_calls"),
        (TracerScorer(actors="agent"), signals[["surprisal"]], "'is_agent'"),
        (TracerScorer(), negative, r"run 'a' \(row 0\), step 2, channel 'surprisal'.*-0\.2"),
        (TracerScorer(aggregation="multiplicative"), silent, r"run 'r0' \(row 0\).*surprisal"),
        (TracerScorer(aggregation="multiplicative"), silent[["repetition"]], "'surprisal'"),
    ]:
        with pytest.raises(ValueError, match=problem):
            scorer.fit(X)


def test_public_log(public_file):
    runs = io.read_runs(public_file("tau2", "toolorchestra_airline_gpt-5_1trial.json"))
    y = io.outcomes(runs)
    risk = TracerScorer().fit_transform(TracerSignals().fit_transform(runs))
    final = risk.cells[risk.offsets[1:] - 1].ravel()
    assert (len(y), y.sum()) == (50, 28)
    assert roc_auc_score(1 - y, final) == pytest.approx(0.677, abs=5e-4)


@pytest.mark.parametrize(("k", "w"), [(0.1, 0.0), (0.2, 0.3), (0.5, 0.1)])
def test_breakdown_is_bounded_by_the_tail(rng, k, w):
    """Eq. 24: hazards of at most c r_t, few of them large, bound the chance of a breakdown."""
    n_runs, n_steps, c = 20_000, 20, 0.3
    size = int(k * n_steps)
    risk = 0.002 * rng.random((n_runs, n_steps))
    critical = (
        rng.random((n_runs, n_steps)).argsort(axis=1) < rng.integers(0, size + 1, n_runs)[:, None]
    )
    risk[critical] = rng.random(critical.sum())
    hazard = np.minimum(1, c * risk) * rng.random((n_runs, n_steps))  # at most c r_t
    breakdown = (rng.random((n_runs, n_steps)) < hazard).any(axis=1)
    ordered = -np.sort(-risk, axis=1)
    eta = ordered[:, size:].sum(axis=1).max(initial=0)
    tail_mean = TracerScorer(k=k, w=0).fit(risk).score_samples(risk).mean()
    assert breakdown.mean() > 0.01
    assert breakdown.mean() <= c * (size * tail_mean + eta)
    tracer = TracerScorer(k=k, w=w).fit(risk).score_samples(risk).mean()
    assert breakdown.mean() <= c * size / (1 - w) * tracer + c * eta


def test_surprisal_is_uncertainty_plus_mismatch(rng):
    """Theorem A.1 by Monte Carlo: E[U] = mean entropy of Q + mean KL(Q || P)."""
    n_tokens, n_words, n_runs = 6, 5, 3000
    Q = rng.dirichlet(np.ones(n_words), n_tokens)
    P = rng.dirichlet(np.ones(n_words), n_tokens)
    entropy = -(Q * np.log(Q)).sum(axis=1).mean()
    mismatch = (Q * np.log(Q / P)).sum(axis=1).mean()
    drawn = (rng.random((n_runs, n_tokens, 1)) > Q.cumsum(axis=1)).sum(axis=2)
    logprobs = np.log(P[np.arange(n_tokens), drawn])
    runs = [
        io.Run(f"r{k}", [io.Step("agent", "x", logprobs=tuple(row))])
        for k, row in enumerate(logprobs.tolist())
    ]
    # all tokens count: the theorem is for a fixed set of them
    U = TracerSignals(least_surprisal=0).fit_transform(runs)["surprisal"].cells.ravel()
    error = U.std() / np.sqrt(n_runs)
    assert abs(U.mean() - (entropy + mismatch)) < 4 * error
    assert mismatch > 10 * error
