"""Measures of risk, against slow ways to compute them."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit

from trajscore import TracerScorer, TrajectoryArray, io
from trajscore.metrics import auarc
from trajscore.tracer import (
    MeanSurprisal,
    RunLength,
    SelfReportedConfidence,
    SemanticEntropy,
    ToolCallCount,
    actor_ablation,
    aggregation_ablation,
    auarc_on_grid,
    compare_scorers,
    cross_fit_risks,
    early_warning,
    prefix_auroc,
    risk_table,
    semantic_entropy,
    usual_scorers,
)

# random signals often lack one
pytestmark = pytest.mark.filterwarnings("ignore:.* runs have no surprisal:UserWarning")


@pytest.fixture
def world(signals_of, rng):
    S = signals_of(rng, n_runs=60, absent=0.2)
    y = rng.integers(0, 2, 60)
    y[:3] = -1
    return S, y


def test_prefix_auroc_pools_the_steps(world):
    S, y = world
    risk = TracerScorer().fit(S).transform(S)
    label = np.repeat(y, S.lengths)
    known = label >= 0
    expected = roc_auc_score(1 - label[known], risk.cells.ravel()[known])
    assert prefix_auroc(y, risk) == pytest.approx(expected)


def reference_auarc(y, risk):
    """The published code, for risks without ties."""
    order = np.argsort(-risk)
    right, n = y[order], len(y)
    coverage = np.arange(20, 0, -1) / 20
    kept = [max(1, math.ceil(round(c * n, 9))) for c in coverage]
    accuracy = np.array([right[n - k :].mean() for k in kept])
    return -((accuracy[1:] + accuracy[:-1]) / 2 * np.diff(coverage)).sum()


@pytest.mark.parametrize("n", [2, 19, 20, 57, 200])
def test_auarc_on_the_published_grid(rng, n):
    y, risk = rng.integers(0, 2, n), rng.random(n)
    assert auarc_on_grid(y, risk) == pytest.approx(reference_auarc(y, risk), abs=1e-12)
    assert auarc_on_grid(np.ones(n, dtype=int), risk) == pytest.approx(0.95)


def test_auarc_on_the_grid_averages_over_ties(rng):
    y, risk = rng.integers(0, 2, 12), np.repeat([0.1, 0.5, 0.9], 4)
    jittered = [auarc_on_grid(y, risk + 1e-6 * rng.permutation(12)) for _ in range(3000)]
    assert auarc_on_grid(y, risk) == pytest.approx(np.mean(jittered), abs=0.005)
    order = rng.permutation(12)
    assert auarc_on_grid(y[order], risk[order]) == pytest.approx(auarc_on_grid(y, risk))
    fine = auarc_on_grid(y, np.arange(12), n_points=5000) * 5000 / 4999
    assert fine == pytest.approx(auarc(y, -np.arange(12)), abs=2e-3)


def test_early_warning_by_hand():
    risk = TrajectoryArray.from_list(
        [[0.1, 0.9, 0.9, 0.9, 0.9], [0.2, 0.2, 0.7], [0.1, 0.2], [0.3, 0.3, 0.8], [0.9]]
    )
    warning = early_warning([0, 0, 0, 1, -1], risk)
    # flagging at 0.9 catches one failure of three and no success; so does no other do better
    assert warning.threshold == 0.9
    assert np.array_equal(warning.failure_times, [0.25, np.nan, np.nan], equal_nan=True)
    assert warning.detected_within(0.25) == pytest.approx(1 / 3)
    assert warning.detected_within(0.2) == 0
    assert warning.median_time == 0.25
    assert warning.false_alarms_within() == 0
    low = early_warning([0, 0, 0, 1, -1], risk, threshold=0.2)
    assert low.failure_times.tolist() == [0.25, 0.0, 1.0]
    assert low.success_times.tolist() == [0.0]
    _, detected, alarms = low.curve([0, 0.5, 1])
    assert detected == pytest.approx([1 / 3, 2 / 3, 1])
    assert alarms.tolist() == [1, 1, 1]
    never = early_warning([0, 1], [[0.1], [0.2]], threshold=5)
    assert math.isnan(never.median_time)
    with pytest.raises(ValueError, match="needs failures and successes"):
        early_warning([0, 0], [[0.1], [0.2]])
    for threshold in (math.nan, "high"):
        with pytest.raises(ValueError, match="threshold must be a number or None"):
            early_warning([0, 1], [[0.1], [0.2]], threshold=threshold)


def test_risk_table(world):
    S, y = world
    known = y >= 0
    risk = TracerScorer().fit(S).transform(S)
    length = RunLength().fit(S).transform(S)
    final = risk.cells[risk.offsets[1:] - 1].ravel()
    groups = np.arange(60) // 3
    table = risk_table(
        {"tracer": risk, "length": length, "number": final}, y, groups=groups,
        reference="length", n_resamples=200,
    )  # fmt: skip
    assert table.loc["tracer", "auroc"] == pytest.approx(roc_auc_score(1 - y[known], final[known]))
    assert table.loc["tracer", "auarc"] == pytest.approx(auarc(y[known], -final[known]))
    assert table.loc["tracer", "n_runs"] == 57
    assert table.loc["length", "difference"] == 0
    assert (table["auroc_low"] <= table["auroc"]).all()
    assert (table["auroc_high"] >= table["auroc"]).all()
    assert table.loc["number", "auroc"] == table.loc["tracer", "auroc"]
    assert np.isnan(table.loc["number", ["prefix_auroc", "median_time"]].astype(float)).all()
    order = np.random.default_rng(0).permutation(60)
    again = risk_table({"tracer": risk[order]}, y[order], n_resamples=20)
    assert again.loc["tracer", "prefix_auroc"] == pytest.approx(table.loc["tracer", "prefix_auroc"])


def test_missing_risks_are_left_out_and_counted(world):
    S, y = world
    has = np.logical_or.reduceat(~np.isnan(S["surprisal"].cells.ravel()), S.offsets[:-1])
    table = compare_scorers(S, y, n_resamples=20)
    row = table.loc["mean surprisal"]
    assert row["n_missing"] == (~has & (y >= 0)).sum()
    assert row["n_runs"] + row["n_missing"] == 57
    assert list(table.index) == list(usual_scorers())
    nothing = S.with_cells(np.where(np.arange(7) == 0, np.nan, S.cells), channels=S.channels)
    table = compare_scorers(nothing, y, n_resamples=20)
    assert table.loc["SAUP", "n_runs"] == 0
    assert np.isnan(table.loc["SAUP", "auroc"])
    ablation = aggregation_ablation(nothing, y)
    assert np.isnan(ablation.loc["multiplicative", "auroc"])
    assert np.isfinite(ablation.loc["max", "auroc"])


def test_ablation_tables(world):
    S, y = world
    table = actor_ablation(S, y, {"tracer": TracerScorer(), "length": RunLength()})
    assert table.columns.tolist() == ["both", "agent", "user"]
    known = y >= 0
    agent = TracerScorer(actors="agent").fit(S).score_samples(S)
    assert table.loc["tracer", "agent"] == pytest.approx(roc_auc_score(1 - y[known], agent[known]))
    tuned = aggregation_ablation(
        S[3:], y[3:], TracerScorer(tune="pairwise_logistic"), cv=3, groups=np.arange(57) // 2
    )
    assert tuned.index.tolist() == ["max", "additive", "multiplicative", "separate"]


def test_cross_fitted_risks_come_from_others(world):
    S, y = world
    groups = np.arange(60) // 3
    cv = GroupKFold(4)
    risk = cross_fit_risks(TracerScorer(), S, y, groups=groups, cv=cv)
    for train, test in cv.split(S, y, groups):
        fitted_on = train[y[train] >= 0]
        known = TracerScorer().fit(S).score_samples(S[fitted_on])
        expected = TracerScorer().fit(S).score_samples(S[test])
        found = risk[test]
        final = found.cells[found.offsets[1:] - 1].ravel()
        assert np.allclose(final, (expected - known.mean()) / known.std())
    search = GridSearchCV(TracerScorer(), {"k": [0.1, 1.0]}, scoring="roc_auc", cv=GroupKFold(2))
    assert np.isfinite(cross_fit_risks(search, S, y, groups=groups, cv=3).cells).all()
    assert np.isfinite(cross_fit_risks(TracerScorer(), S, y, cv=3).cells).all()


def test_baselines(signals):
    for scorer in (MeanSurprisal(), SelfReportedConfidence()):
        trace = scorer.fit(signals).transform(signals)
        reads = signals[scorer._reads].to_list()
        for run, values in zip(trace, reads, strict=True):
            for t in range(len(run)):
                so_far = values[: t + 1][~np.isnan(values[: t + 1])]
                expected = so_far.mean() if len(so_far) else np.nan
                if isinstance(scorer, SelfReportedConfidence):
                    expected = 1 - expected
                assert np.allclose(run[t], expected, equal_nan=True)
    agent = signals["is_agent"].to_list()
    calls = signals["tool_calls"].to_list()
    assert np.array_equal(RunLength().fit(signals).score_samples(signals), signals.lengths)
    found = RunLength(actors="agent").fit(signals).score_samples(signals)
    assert np.array_equal(found, [run.sum() for run in agent])
    found = ToolCallCount(actors="user").fit(signals).score_samples(signals)
    assert np.array_equal(found, [((1 - a) * c).sum() for a, c in zip(agent, calls, strict=True)])
    with pytest.raises(ValueError, match="SelfReportedConfidence needs the channel 'verbal'"):
        SelfReportedConfidence(channel="verbal").fit(signals)


def test_semantic_entropy():
    assert semantic_entropy(["a", "A ", "a"]) == 0
    assert semantic_entropy(list("abcd")) == pytest.approx(math.log(4))
    p = np.array([0.5, 0.25, 0.25])
    found = semantic_entropy(["a", "b", "a"], log_probs=np.log(p))
    assert found == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))

    def first_letter(a, b):
        return a[0] == b[0]

    assert semantic_entropy(["ab", "ac", "b"], equivalence=first_letter) < math.log(2)
    with pytest.raises(ValueError, match="at least one sampled answer"):
        semantic_entropy([])
    with pytest.raises(ValueError, match="one logarithm of a probability"):
        semantic_entropy(["a"], log_probs=[0.5])
    with pytest.raises(ValueError, match="log_probs are all -inf"):
        semantic_entropy(["a", "b"], log_probs=[-math.inf, -math.inf])
    assert semantic_entropy(["a", "b"], log_probs=[-math.inf, -1]) == 0
    with pytest.raises(ValueError, match="log_probs must be numbers"):
        semantic_entropy(["a"], log_probs=["x"])
    with pytest.raises(ValueError, match="answer 1 is int, not text"):
        semantic_entropy(["a", 3])
    with pytest.raises(ValueError, match="answer 0 is NoneType, not text"):
        semantic_entropy([None])
    with pytest.raises(ValueError, match="a list of texts, not one text"):
        semantic_entropy("yes")


def test_semantic_entropy_of_runs():
    def step(*answers):
        return io.Step("agent", "x", extra={"samples": list(answers)})

    runs = [
        io.Run("a", [io.Step("user", "hi"), step("p", "q"), step("p", "p")]),
        io.Run("b", [io.Step("agent", "x")]),
        io.Run("c", [step({"text": "p", "logprob": -0.1}, {"text": "q", "logprob": -0.1})]),
    ]
    scorer = SemanticEntropy().fit(runs)
    assert scorer.n_runs_without_ == 1
    trace = scorer.transform(runs).to_list()
    expected = [math.nan, math.log(2), math.log(2) / 2]
    assert np.allclose(trace[0].ravel(), expected, equal_nan=True)
    assert np.allclose(scorer.score_samples(runs), [expected[2], math.nan, math.log(2)],
                       equal_nan=True)  # fmt: skip
    for samples, said in (("yes", "a list of texts"), ([{"text": None}], "answer 0 is None")):
        bad = io.Run("d", [io.Step("user", "x"), io.Step("agent", "y", extra={"samples": samples})])
        with pytest.raises(ValueError, match=rf"run 'd' \(row 0\), step 2, samples: .*{said}"):
            scorer.transform([bad])
    table = risk_table({"semantic": scorer.transform(runs)}, [1, 0, 0], n_resamples=10)
    assert table.loc["semantic", ["n_runs", "n_missing"]].tolist() == [2, 1]


def test_bad_tables(world):
    S, y = world
    risk = RunLength().fit(S).transform(S)
    with pytest.raises(ValueError, match="must be of the same runs"):
        risk_table({"a": risk, "b": risk[:5]}, y)
    with pytest.raises(ValueError, match="reference must be one of"):
        risk_table({"a": risk}, y, reference="b")
    with pytest.raises(ValueError, match="one number for each of the 2 runs"):
        auarc_on_grid([1, 0], [0.1, np.nan])


def test_the_order_of_rows_changes_nothing(world):
    S, y = world
    order = np.random.default_rng(1).permutation(60)
    back = np.argsort(order)
    for groups in (None, np.arange(60) // 3):
        moved = None if groups is None else groups[order]
        risk = cross_fit_risks(MeanSurprisal(), S, y, groups=groups, cv=3)
        again = cross_fit_risks(MeanSurprisal(), S[order], y[order], groups=moved, cv=3)[back]
        assert again.ids.tolist() == S.ids.tolist()
        assert np.array_equal(again.cells, risk.cells, equal_nan=True)
        risks = {"a": RunLength().fit(S).transform(S), "b": np.arange(60.0)}
        table = risk_table(risks, y, groups=groups, n_resamples=30)
        shuffled = {"a": risks["a"][order], "b": risks["b"][order]}
        pd.testing.assert_frame_equal(
            table, risk_table(shuffled, y[order], groups=moved, n_resamples=30)
        )


def test_folds_given_by_rows_are_taken_at_their_word(world):
    S, y = world
    fold = np.arange(60) % 2
    rows = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in (0, 1)]
    listed = cross_fit_risks(RunLength(), S, y, cv=rows)
    assert np.array_equal(
        listed.cells, cross_fit_risks(RunLength(), S, y, cv=PredefinedSplit(fold)).cells
    )
    known = S.lengths[rows[0][0]][y[rows[0][0]] >= 0]
    final = listed.cells[listed.offsets[1:] - 1].ravel()
    expected = (S.lengths - known.mean()) / known.std()
    assert np.allclose(final[rows[0][1]], expected[rows[0][1]])


def test_risk_table_takes_series_and_wants_a_risk():
    risk = pd.Series([0.1, 0.9, 0.2, 0.8], index=[7, 8, 9, 10])
    table = risk_table({"a": risk}, [1, 0, 1, 0], n_resamples=20)
    assert table.loc["a", "auroc"] == 1
    with pytest.raises(ValueError, match="no risk is given; pass a dict"):
        risk_table({}, [1, 0])


def test_risk_table_wants_one_group_for_each_run():
    with pytest.raises(ValueError, match="groups must be 4 labels"):
        risk_table({"a": [0.1, 0.2, 0.3, 0.4]}, [0, 1, 0, 1], groups=[1, 2])
