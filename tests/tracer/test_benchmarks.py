"""What the benchmarks of risks and actions compute, against slow ways to compute it."""

import math
import sys

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold

from scripts import load_script
from trajscore import TracerScorer, TracerSignals, TrajectoryArray
from trajscore.io import Run, Step, ToolCall
from trajscore.metrics import aurc, tps_samples
from trajscore.tracer import MeanSurprisal, RunLength, early_warning

# random signals often lack one
pytestmark = pytest.mark.filterwarnings("ignore:.* runs have no surprisal:UserWarning")


@pytest.fixture(scope="module")
def bench():
    return load_script("tracer")


@pytest.fixture(scope="module")
def actions():
    return load_script("actions")


@pytest.fixture(scope="module")
def ablation():
    return load_script("tracer_ablation")


@pytest.fixture
def world(signals_of, rng):
    S = signals_of(rng, n_runs=60, absent=0.2)
    y = rng.integers(0, 2, 60)
    y[:3] = -1
    order = np.argsort(S.ids)
    return S[order], y[order]


def log_of(bench, y, task=None):
    return bench.Log([], y, np.arange(len(y)) if task is None else task)


def test_prefix_auroc_pools_the_steps(bench, world):
    S, y = world
    risk = TracerScorer().fit(S).transform(S)
    label = np.repeat(y, S.lengths)
    known = (label >= 0) & ~np.isnan(risk.cells.ravel())
    expected = roc_auc_score(1 - label[known], risk.cells.ravel()[known])
    found = bench.measures(y, risk)["prefix_auroc"](np.ones(60))
    assert found == pytest.approx(expected)


def reference_auarc(y, risk):
    """The published code, for risks without ties."""
    order = np.argsort(-risk)
    right, n = y[order], len(y)
    coverage = np.arange(20, 0, -1) / 20
    kept = [max(1, math.ceil(round(c * n, 9))) for c in coverage]
    accuracy = np.array([right[n - k :].mean() for k in kept])
    return -((accuracy[1:] + accuracy[:-1]) / 2 * np.diff(coverage)).sum()


@pytest.mark.parametrize("n", [2, 19, 20, 57, 200])
def test_auarc_on_the_published_grid(bench, rng, n):
    y, risk = rng.integers(0, 2, n), rng.random(n)
    assert bench.auarc_on_grid(y, risk) == pytest.approx(reference_auarc(y, risk), abs=1e-12)
    assert bench.auarc_on_grid(np.ones(n, dtype=int), risk) == pytest.approx(0.95)


def test_auarc_on_the_grid_averages_over_ties(bench, rng):
    y, risk = rng.integers(0, 2, 12), np.repeat([0.1, 0.5, 0.9], 4)
    jittered = [bench.auarc_on_grid(y, risk + 1e-6 * rng.permutation(12)) for _ in range(3000)]
    assert bench.auarc_on_grid(y, risk) == pytest.approx(np.mean(jittered), abs=0.005)
    order = rng.permutation(12)
    assert bench.auarc_on_grid(y[order], risk[order]) == pytest.approx(bench.auarc_on_grid(y, risk))
    fine = bench.auarc_on_grid(y, np.arange(12), n_points=5000) * 5000 / 4999
    assert fine == pytest.approx(1 - aurc(y, -np.arange(12)), abs=2e-3)


def test_risk_table(bench, world):
    S, y = world
    risk = TracerScorer().fit(S).transform(S)
    length = RunLength().fit(S).transform(S)
    log = log_of(bench, y, np.arange(60) // 3)
    table = bench.risk_table({"tracer": risk, "run length": length}, log, n_resamples=200)
    final = risk.cells[risk.offsets[1:] - 1].ravel()
    known = (y >= 0) & ~np.isnan(final)
    assert table.loc["tracer", "auroc"] == pytest.approx(roc_auc_score(1 - y[known], final[known]))
    assert table.loc["tracer", "auarc"] == pytest.approx(1 - aurc(y[known], -final[known]))
    assert table["n_runs"].tolist() == [known.sum(), 57]
    assert table.loc["run length", "difference"] == 0
    assert (table["auroc_low"] <= table["auroc"]).all()
    assert (table["auroc_high"] >= table["auroc"]).all()


def test_missing_risks_are_left_out_and_counted(bench, ablation, world):
    S, y = world
    has = np.logical_or.reduceat(~np.isnan(S["surprisal"].cells.ravel()), S.offsets[:-1])
    risks = {name: scorer.fit_transform(S) for name, scorer in bench.BASELINES.items()}
    table = bench.risk_table(risks, log_of(bench, y), n_resamples=20)
    assert table.loc["mean surprisal", "n_runs"] == (has & (y >= 0)).sum() < 57
    nothing = S.with_cells(np.where(np.arange(7) == 0, np.nan, S.cells), channels=S.channels)
    assert not len(bench.judged_runs(y, bench.BASELINES["SAUP"].fit_transform(nothing)))
    table = ablation.aggregation_ablation(nothing, y)
    assert np.isnan(table.loc["multiplicative", "auroc"])
    assert np.isfinite(table.loc["max", "auroc"])


def test_ablation_tables(ablation, world):
    S, y = world
    table = ablation.actor_ablation(S, y)
    assert table.columns.tolist() == ["both", "agent", "user"]
    agent = TracerScorer(actors="agent").fit(S).score_samples(S)
    known = (y >= 0) & ~np.isnan(agent)
    assert table.loc["TRACER", "agent"] == pytest.approx(roc_auc_score(1 - y[known], agent[known]))
    table = ablation.aggregation_ablation(S, y)
    assert table.index.tolist() == ["max", "additive", "multiplicative", "separate"]


def test_cross_fitted_risks_come_from_others(bench, world):
    S, y = world
    groups = np.arange(60) // 3
    risk = bench.cross_fit_risks(TracerScorer(), S, y, groups, cv=4)
    label = np.where(y == -1, 0, y)
    for train, test in StratifiedGroupKFold(4).split(S, label, groups):
        fitted_on = train[y[train] >= 0]
        known = TracerScorer().fit(S).score_samples(S[fitted_on])
        expected = TracerScorer().fit(S).score_samples(S[test])
        found = risk[test]
        final = found.cells[found.offsets[1:] - 1].ravel()
        scaled = (expected - np.nanmean(known)) / np.nanstd(known)
        assert np.allclose(final, scaled, equal_nan=True)
    search = GridSearchCV(
        TracerScorer(), {"k": [0.1, 1.0]}, scoring="roc_auc", cv=StratifiedGroupKFold(2)
    )
    there = ~np.isnan(TracerScorer().fit(S).score_samples(S))
    S, y, groups = S[there], y[there], groups[there]
    assert np.isfinite(bench.cross_fit_risks(search, S, y, groups, cv=3).cells).all()


def test_the_order_of_rows_changes_nothing(bench, world):
    S, y = world
    groups = np.arange(60) // 3
    order = np.random.default_rng(1).permutation(60)
    risk = bench.cross_fit_risks(MeanSurprisal(), S, y, groups, cv=3)
    again = bench.cross_fit_risks(MeanSurprisal(), S[order], y[order], groups[order], cv=3)
    again = again[np.argsort(order)]
    assert again.ids.tolist() == S.ids.tolist()
    assert np.array_equal(again.cells, risk.cells, equal_nan=True)


def test_both_scripts_run(bench, ablation, public_file, monkeypatch, capsys):
    log = str(public_file("tau2", "toolorchestra_airline_gpt-5_1trial.json"))
    monkeypatch.setattr(bench, "GRID", {"k": [0.1, 1.0]})
    monkeypatch.setattr(sys, "argv", ["tracer.py", log, "--resamples", "20"])
    bench.main()
    said = capsys.readouterr().out
    assert "28 successes, 22 failures, 0 not observed" in said
    assert "TRACER, char                        0.677" in said
    monkeypatch.setattr(sys, "argv", ["tracer_ablation.py", log])
    ablation.main()
    said = capsys.readouterr().out
    assert "TRACER      0.677  0.701  0.409" in said
    assert "separate        0.701         0.651  0.709" in said


def test_what_is_compared_with_what(actions, rng):
    # three logs in two folds; the forecast knows log and fold alone
    log, fold = np.repeat([0, 1, 2], 40), np.arange(120) % 2
    trace = TrajectoryArray(np.repeat(0.1 + log / 5 + fold / 10, 12), [12] * 120)
    known = trace._replace(meta=trace.meta.assign(cross_fit_fold=fold))
    y = (rng.random(120) < 0.2 + 0.6 * fold).astype(int)
    found = actions.statistics([known], y, log, True)
    once = np.ones(120)
    assert found["AUROC"](once) > 0.7  # pairs of one log
    assert found["step 10"](once) == found["equal length"](once) == 0.5  # and of one fold
    assert "step 15" not in found
    assert found["that of length"](once) == 0.5
    expected = tps_samples(y, trace.prefix(4).steps(4)[:, 3:]).mean()
    assert found["TPS at 4"](once) == pytest.approx(expected)


def test_risk_at_a_step(actions):
    trace = TrajectoryArray.from_list([[0.1, 0.2, 0.3], [0.4], [0.5, 0.6]])
    assert actions.at_step(trace, None).tolist() == [0.3, 0.4, 0.6]
    assert np.array_equal(actions.at_step(trace, 2), [0.2, np.nan, 0.6], equal_nan=True)


def test_actions_against_length(actions, public_file, monkeypatch, capsys):
    log = str(public_file("tau2", "toolorchestra_airline_gpt-5_1trial.json"))
    learned = actions.learned
    monkeypatch.setattr(actions, "learned", lambda logs: dict(list(learned(logs).items())[:2]))
    options = ["--seeds", "1", "--shuffles", "1", "--resamples", "20"]
    monkeypatch.setattr(sys, "argv", ["actions.py", log, *options])
    actions.main()
    said = capsys.readouterr().out
    assert "50 runs with an outcome (28 successes) of 50 tasks" in said
    assert "AUROC - length" in said
    assert "AUROC with shuffled outcomes" in said


def test_definitions(public_file, monkeypatch, capsys):
    script = load_script("tracer_definitions")
    log = str(public_file("tau2", "toolorchestra_airline_gpt-5_1trial.json"))
    small = dict.fromkeys(("alpha", "beta", "gamma", "w"), (0.0, 1.0)) | {"k": (0.1,)}
    monkeypatch.setattr(script, "GRID", small)
    monkeypatch.setattr(sys, "argv", ["tracer_definitions.py", log, "--shuffles", "3"])
    script.main()
    said = capsys.readouterr().out
    assert "AUROC                        0.677  0.657         0.677" in said
    assert "settings on the runs themselves: 0.7" in said


def test_auroc_of_many_settings(rng):
    y, risk = rng.integers(0, 2, 30), rng.integers(0, 9, (4, 30)).astype(float)
    expected = [roc_auc_score(1 - y, row) for row in risk]
    assert load_script("tracer_definitions").auroc(y, risk) == pytest.approx(expected)


def test_intervals_within_strata_hold_and_noise_has_half():
    script = load_script("equal_length")
    for size in ((44, 1, 0.5), (100, 20, 0.4)):
        holds, _, used = script.coverage(size, 0.8, 200)
        assert holds > 0.91
        assert used > 150
    over_all, within = np.mean([script.knows_nothing(seed) for seed in range(8)], axis=0)
    assert over_all < 0.46
    assert within == pytest.approx(0.5, abs=0.05)


def agent(text="", *calls):
    return Step("agent", text, tool_calls=list(calls))


def user(text="", *calls, observation=None):
    return Step("user", text, tool_calls=list(calls), observation=observation)


@pytest.fixture(scope="module")
def theirs():
    return load_script("reproduction.agent_tracer")


def signals_of_theirs(theirs, *steps, **parameters):
    words = CountVectorizer(token_pattern=r"\w+")
    return theirs.AgentTracerSignals(words, **parameters).fit_transform([Run("a", list(steps))])


def test_agent_tracer_compares_texts_that_are_not_empty(theirs):
    steps = (
        agent("lost bag"), user("yes"), agent("", ToolCall("find")), user("no"), agent("lost bag"),
    )  # fmt: skip
    S = signals_of_theirs(theirs, *steps, window=1)
    assert S["repetition"].cells[-1] == 1  # the turn between says nothing
    assert TracerSignals(window=1).fit_transform([Run("a", list(steps))])["repetition"][0][-1] == 0


def test_agent_tracer_counts_turns_with_calls(theirs):
    far = [user("hm"), agent("wait")] * 4  # eight turns without a call
    find = ToolCall("find")
    steps = agent("", find), *far, agent("", ToolCall("other")), agent("", find)
    assert TracerSignals().fit_transform([Run("a", list(steps))])["repetition"][0][-1] == 0
    assert signals_of_theirs(theirs, *steps)["repetition"].cells[-1] == 1
    assert signals_of_theirs(theirs, *steps, tool_window=1)["repetition"].cells[-1] == 0


def test_agent_tracer_gives_a_gap_to_each_turn_of_the_user(theirs):
    steps = [
        user("flight seven"), agent("which flight"), user("flight seven"), user("flight eight"),
        user("", ToolCall("find"), observation="bag found"), agent("which bag"),
        agent("", ToolCall("find", {"k": 2})), user("bag seven"),
    ]  # fmt: skip
    gaps = signals_of_theirs(theirs, *steps)["user_gap"].cells.ravel()
    nan = np.nan
    assert np.isnan(gaps).tolist() == np.isnan([nan, nan, 0, 0, 0, nan, nan, 0]).tolist()
    assert gaps[2:4] == pytest.approx(0.5)
    one, two = Run("a", [agent("which bag")]), Run("b", [user("which bag")])
    S = theirs.AgentTracerSignals().fit_transform([one, two])
    assert np.isnan(S["user_gap"].cells).all()  # not the turn of another run


def test_detection_as_agent_tracer_counts(theirs):
    risk = TrajectoryArray.from_list([[0.1, 0.9, 0.95], [0.2, 0.9], [0.1] * 5 + [0.95], [0.3, 0.8]])
    y = [0, 0, 0, 1]
    ours, found = early_warning(y, risk, threshold=0.9), theirs.detection(y, risk, 0.9)
    assert ours.failure_times.tolist() == [0.5, 1.0, 1.0]
    assert (ours.mean_time, ours.median_time) == (2.5 / 3, 1.0)
    # at the threshold is not above it; and a failure never above it counts as flagged at the end
    assert found.failure_times.tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(found.success_times).all()
    low = theirs.detection(y, risk, 0.5)
    assert low.failure_times.tolist() == [0.5, 1.0, 1.0]
    assert low.detected_within(0.5) == 0  # "before 50%"
    assert early_warning(y, risk, threshold=0.5).detected_within(0.5) == pytest.approx(1 / 3)
