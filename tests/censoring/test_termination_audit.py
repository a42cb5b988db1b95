import numpy as np
import pandas as pd
import pytest

from refused import not_refused
from trajscore import TrajectoryArray
from trajscore.censoring import termination_audit
from trajscore.metrics import censored_tps_score

# Table 6: complete, max_steps, parse_error, tool_error, env_terminated
TABLE_6 = {
    "StrategyQA": (2229, 59, 2, 0, 0),
    "Tau2-Bench": (201, 1, 0, 70, 6),
    "HotpotQA": (1529, 458, 13, 0, 0),
    "WebShop": (163, 145, 192, 0, 0),
}
REASONS = ("done", "max_steps", "parse_error", "tool_error", "env_terminated")


def test_table_6():
    for name, (complete, budget, *informative) in TABLE_6.items():
        reasons = np.repeat(REASONS, TABLE_6[name])
        y = np.where(reasons == "done", 1, -1)
        (row,) = termination_audit(None, y, reasons).table.to_dict("records")
        assert row["n_runs"] == complete + budget + sum(informative)
        assert (row["complete"], row["administrative"]) == (complete, budget)
        assert row["informative"] == sum(informative)
        assert row["unknown"] == 0
    assert row["n_scored"] == 308
    assert round(100 * row["censoring_rate"], 2) == 47.08


def test_reasons_by_hand():
    reasons = ["done", "done", "max_steps", "parse_error", "max_steps", "max_steps", "timeout"]
    y = [1, 0, -1, -1, 1, -1, 0.5]
    lengths = np.array([1, 3, 4, 2, 4, 7, 5])
    X = TrajectoryArray(np.full(26, 0.5), lengths, meta={"stop_reason": reasons})
    table = termination_audit(X, y).reasons
    assert table.index.tolist() == ["max_steps", "done", "parse_error", "timeout"]  # most first
    assert table["mechanism"].tolist() == ["administrative", "complete", "informative", "complete"]
    assert table["n_runs"].tolist() == [3, 2, 1, 1]
    assert table["n_observed"].tolist() == [1, 2, 0, 1]
    assert table["n_successes"].tolist() == [1, 1, 0, 0]
    assert table["mean_steps"].tolist() == [5, 2, 2, 5]
    without = termination_audit(X.meta, y).reasons
    assert without["mean_steps"].isna().all()
    assert without.drop(columns="mean_steps").equals(table.drop(columns="mean_steps"))


def test_a_reason_of_several_mechanisms_has_the_most_frequent():
    kinds = ["administrative", "informative", "administrative"]
    meta = pd.DataFrame({"stop_reason": ["stop"] * 3, "stop_kind": kinds})
    assert termination_audit(meta, [-1] * 3).reasons["mechanism"].tolist() == ["administrative"]


def test_what_the_reader_took_a_reason_to_mean_decides():
    meta = pd.DataFrame(
        {
            "stop_reason": ["user_stop", "timeout", "max_steps", "timeout", "user_stop"],
            "stop_kind": ["complete", "administrative", "informative", None, "complete"],
        }
    )
    y = [1, -1, -1, -1, -1]
    with pytest.warns(UserWarning, match="2 runs .*'timeout', 'user_stop'"):
        audit = termination_audit(meta, y)
    kinds = ["complete", "administrative", "informative", "unknown", "unknown"]
    assert audit.mechanism.tolist() == kinds
    rule = {"timeout": "informative", "user_stop": "informative"}
    by_rule = ["complete", "informative", "administrative", "informative", "informative"]
    assert termination_audit(meta, y, rule=rule).mechanism.tolist() == by_rule
    given = termination_audit(meta, y, stop_reason=["max_steps"] * 5)
    assert given.mechanism.tolist() == ["complete"] + ["administrative"] * 4
    only_kinds = termination_audit(meta[["stop_kind"]].iloc[:3], y[:3])
    assert only_kinds.mechanism.tolist() == kinds[:3]


def test_unknown_reasons_are_named_and_not_scored():
    reasons = ["done", "rate limit", "rate limit", "done", None]
    y = [1, -1, -1, -1, -1]
    with pytest.warns(UserWarning, match="4 runs .*none was recorded, 'done', 'rate_limit'"):
        audit = termination_audit(None, y, reasons)
    assert audit.table.loc[0, "unknown"] == 4
    assert audit.scored("administrative").tolist() == [True, False, False, False, False]
    rule = {"Rate-Limit": "administrative", "done": "informative", "": "informative"}
    audit = termination_audit(None, y, reasons, rule)
    assert audit.scored().tolist() == [True, True, True, False, False]
    with pytest.warns(UserWarning, match="2 runs .* without a stop reason"):
        termination_audit(None, [1, -1, -1], ["done", None, ""])


def test_faults_of_the_test_bench_are_shown_and_never_scored():
    reasons = ["done", "infrastructure_error", "user error", "max_steps", "user_error"]
    audit = termination_audit(None, [1, -1, -1, -1, 0], reasons)
    mechanism = ["complete", "excluded", "excluded", "administrative", "excluded"]
    assert audit.mechanism.tolist() == mechanism
    found = audit.table.loc[0]
    assert found[["complete", "administrative", "excluded"]].tolist() == [1, 1, 3]
    assert found[["n_runs", "n_scored", "censoring_rate"]].tolist() == [5, 2, 1 / 2]
    for informative in ("exclude", "administrative"):
        assert audit.scored(informative).tolist() == [True, False, False, True, False]
    # without a scored run there is no rate
    table = termination_audit(None, [-1], ["parse_error"]).table
    assert np.isnan(table.loc[0, "censoring_rate"])


def test_traces_are_paired_with_the_audited_runs_by_identifier(rng):
    meta, y = (
        {"stop_reason": ["done", "max_steps", "done", "parse_error"]},
        np.array([1, -1, 0, -1]),
    )
    X = TrajectoryArray(rng.random(8), np.full(4, 2), ids=list("abcd"), meta=meta)
    audit = termination_audit(X, y)
    q = np.array([0.1, 0.7, 0.2, np.nan])  # in the order of the audit
    score = audit.score(X, q_z=q)
    assert score == censored_tps_score(y[:3], X[:3], q_z=q[:3])
    loose = audit.score(X, informative="administrative")
    assert loose == censored_tps_score(y, X)
    # no identifiers: by position; forecasts of other runs are ignored
    more = TrajectoryArray(np.r_[X.cells, 0.5], np.r_[X.lengths, 1], ids=[*X.ids.tolist(), "e"])
    for traces in (X[[2, 3, 1, 0]], X.padded(), more):
        assert audit.score(traces, q_z=q) == score
    # a table of meta names its runs in a column
    named = termination_audit(X.meta.assign(run=X.ids), y)
    assert named.score(X[::-1], q_z=q) == score
    nameless = termination_audit(X.meta, y)
    assert nameless.score(X, q_z=q) == score != nameless.score(X[::-1])
    other = TrajectoryArray(X.cells, X.lengths, ids=["a", "b", "x", "d"])
    rows = [
        (other, {}, "missing run 'c' of the audit"),
        (X[:3], {}, "3 traces for the 4 runs"),
        (X, {"q_z": q[:3]}, "q_z must be one number or 4"),
        (X, {"informative": "all"}, "informative .* got 'all'"),
    ]
    assert not not_refused(audit.score, rows)
    assert not not_refused(nameless.score, [(X[:3], {}, "3 traces for 4 runs")])
    nothing = termination_audit(None, [-1], ["parse_error"])
    assert not not_refused(nothing.score, [([[0.5]], {}, "none of the 1 runs")])


def test_bad_input():
    meta = pd.DataFrame({"stop_kind": ["complete", "x"]})
    rows = [
        (pd.DataFrame(index=[0]), [1], {}, "stop_reason="),
        (meta, [1, -1], {}, "row 1: stop_kind 'x'"),
        (meta, [1], ["a"], {}, "1 outcomes for 2 runs"),
        (None, [1, 0], ["done"], {}, "stop_reason .* 2, got 1"),
        (None, [-1], ["x"], lambda name: "censored", {}, "'x': the rule says"),
    ]
    assert not not_refused(termination_audit, rows)
