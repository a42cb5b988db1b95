import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.censoring import termination_audit
from trajscore.core.stops import classify_stops, is_scored
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
    meta = pd.concat(
        pd.DataFrame({"benchmark": name, "stop_reason": np.repeat(REASONS, counts)})
        for name, counts in TABLE_6.items()
    )
    y = np.where(meta["stop_reason"] == "done", 1, -1)
    table = termination_audit(meta, y, by="benchmark").table
    for name, (complete, budget, *informative) in TABLE_6.items():
        row = table.loc[name]
        assert row["n_runs"] == complete + budget + sum(informative)
        assert (row["complete"], row["administrative"]) == (complete, budget)
        assert row["informative"] == sum(informative)
        assert row["unknown"] == 0
    assert table.loc["WebShop", "n_scored"] == 308
    assert round(100 * table.loc["WebShop", "censoring_rate"], 2) == 47.08


def test_score_leaves_informative_stops_out_or_takes_them_in(rng):
    reasons = rng.choice(["done", "Max Steps", "parse error"], 60)
    y = np.where(reasons == "done", rng.integers(0, 2, 60), -1)
    X = TrajectoryArray(rng.random(180), np.full(60, 3), meta={"stop_reason": reasons})
    audit = termination_audit(X, y)
    used = reasons != "parse error"
    assert audit.score(X) == censored_tps_score(y[used], X[used])
    assert audit.score(X, informative="administrative") == censored_tps_score(y, X)
    q = rng.random(60)
    assert audit.score(X, q_z=q) == censored_tps_score(y[used], X[used], q_z=q[used])
    assert audit.reasons.loc["parse_error", "mechanism"] == "informative"
    assert audit.reasons["n_runs"].sum() == 60
    assert audit.reasons["mean_steps"].eq(3).all()


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
    assert audit.mechanism.tolist() == [
        "complete",
        "administrative",
        "informative",
        "unknown",
        "unknown",
    ]
    rule = {"timeout": "informative", "user_stop": "informative"}
    by_rule = ["complete", "informative", "administrative", "informative", "informative"]
    assert termination_audit(meta, y, rule=rule).mechanism.tolist() == by_rule
    given = termination_audit(meta, y, stop_reason=["max_steps"] * 5)
    assert given.mechanism.tolist() == ["complete"] + ["administrative"] * 4
    kinds = [None, "administrative", "complete", None, "informative"]
    scored = is_scored(classify_stops(y, meta["stop_reason"], kinds=kinds))
    assert scored.tolist() == [True, True, False, False, False]
    only_kinds = termination_audit(meta[["stop_kind"]].iloc[:3], y[:3])
    assert only_kinds.mechanism.tolist() == ["complete", "administrative", "informative"]
    with pytest.raises(ValueError, match="row 2: stop_kind 'x' is not one of complete"):
        termination_audit(meta.assign(stop_kind=[None, None, "x", None, None]), y)


def test_unknown_reasons_are_named_and_not_scored():
    reasons = ["done", "rate limit", "rate limit", "done", None]
    with pytest.warns(
        UserWarning, match=r"^not scored: 4 .*none was recorded, 'done', 'rate_limit'"
    ):
        audit = termination_audit(None, [1, -1, -1, -1, -1], reasons)
    assert audit.table.loc[0, "unknown"] == 4
    assert audit.scored("administrative").tolist() == [True, False, False, False, False]
    rule = {"Rate-Limit": "administrative", "done": "informative", "": "informative"}
    audit = termination_audit(None, [1, -1, -1, -1, -1], reasons, rule)
    assert audit.scored().tolist() == [True, True, True, False, False]


def test_rule_may_be_a_function():
    rule = lambda name: "administrative" if name.startswith("max") else "informative"  # noqa: E731
    assert classify_stops([-1, -1, 0], ["max_foo", "x", "x"], rule=rule).tolist() == [
        "administrative",
        "informative",
        "complete",
    ]


def test_outcomes_that_a_harness_filled_in_can_be_seen():
    audit = termination_audit(None, [1, 0, 0], ["agent_stop", "max_steps", "max_steps"])
    assert audit.reasons.loc["max_steps", ["n_observed", "n_successes"]].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: termination_audit(pd.DataFrame(index=[0]), [1]), "pass stop_reason="),
        (
            lambda: termination_audit(None, [1, 0], ["done"]),
            "stop_reason must have one reason a run: 2, got 1",
        ),
        (lambda: termination_audit(None, [-1], ["x"], {"x": "censored"}), "'x': the rule says"),
        (lambda: termination_audit(pd.DataFrame(index=[0]), [1, 1], ["a", "a"]), "2 outcomes for"),
        (lambda: termination_audit(None, [1], ["done"], by="task"), "not a column"),
        (lambda: termination_audit(None, [1], ["done"], by=["a", "b"]), "2 labels for 1 runs"),
        (lambda: termination_audit(None, [1], ["done"]).scored("all"), "informative must be"),
        (
            lambda: termination_audit(None, [1], ["done"]).score([[0.5], [0.5]]),
            "2 traces for the 1 runs of",
        ),
        (
            lambda: termination_audit(None, [-1], ["parse_error"]).score([[0.5]]),
            "nothing that can be scored",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_a_missing_stop_reason_is_called_that():
    with pytest.warns(
        UserWarning, match="not scored: 2 runs without an outcome and without a stop reason"
    ):
        termination_audit(None, [1, -1, -1], ["done", None, ""])


def test_faults_of_the_test_bench_are_shown_and_never_scored():
    reasons = ["done", "infrastructure_error", "user error", "max_steps", "user_error"]
    y = [1, -1, -1, -1, 0]
    audit = termination_audit(None, y, reasons)
    assert audit.mechanism.tolist() == [
        "complete",
        "excluded",
        "excluded",
        "administrative",
        "complete",
    ]
    assert audit.table.loc[0].to_dict() == {
        "n_runs": 5,
        "complete": 2,
        "administrative": 1,
        "informative": 0,
        "excluded": 2,
        "unknown": 0,
        "n_scored": 3,
        "censoring_rate": 1 / 3,
    }
    for informative in ("exclude", "administrative"):
        assert audit.scored(informative).tolist() == [True, False, False, True, True]
    assert audit.reasons.loc["infrastructure_error", "mechanism"] == "excluded"
    assert audit.reasons.loc["user_error", ["n_runs", "n_observed"]].tolist() == [2, 1]


def audited(rng, ids):
    reasons = np.array(["done", "max_steps", "done", "parse_error"])
    y = np.array([1, -1, 0, -1])
    X = TrajectoryArray(rng.random(8), np.full(4, 2), ids=ids, meta={"stop_reason": reasons})
    return X, y


def test_traces_are_paired_with_the_audited_runs_by_identifier(rng):
    X, y = audited(rng, ["a", "b", "c", "d"])
    audit = termination_audit(X, y)
    q = np.array([0.1, 0.7, 0.2, np.nan])  # in the order of the audit
    score = audit.score(X, q_z=q)
    assert score == censored_tps_score(y[:3], X[:3], q_z=q[:3])
    order = np.array([2, 3, 1, 0])
    assert audit.score(X[order], q_z=q) == score
    assert audit.score(X.padded(), q_z=q) == score  # no identifiers: by position
    more = TrajectoryArray(
        np.r_[X.cells, 0.5], np.r_[X.lengths, 1], ids=[*X.ids.tolist(), "e"]
    )  # forecasts of other runs are ignored
    assert audit.score(more, q_z=q) == score
    with pytest.raises(ValueError, match="the traces are missing run 'c' of the audit"):
        audit.score(TrajectoryArray(X.cells, X.lengths, ids=["a", "b", "x", "d"]))
    with pytest.raises(ValueError, match="q_z must be one number or 4"):
        audit.score(X, q_z=q[:3])


def test_a_meta_table_names_its_runs_in_a_column(rng):
    X, y = audited(rng, ["a", "b", "c", "d"])
    table = X.meta.assign(run=X.ids)
    audit = termination_audit(table, y)
    assert audit.score(X[::-1]) == termination_audit(X, y).score(X)
    nameless = termination_audit(X.meta, y)
    assert nameless.ids is None
    assert nameless.score(X) == audit.score(X)
    assert nameless.score(X[::-1]) != audit.score(X)  # by position


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


@pytest.mark.parametrize("as_column", [True, False])
def test_one_row_for_each_label(as_column):
    meta = pd.DataFrame(
        {"stop_reason": ["done", "max_steps", "parse_error", "done"], "task": list("baab")}
    )
    by = "task" if as_column else list("baab")
    table = termination_audit(meta, [1, -1, -1, 0], by=by).table
    assert (table.index.name, table.index.tolist()) == ("task" if as_column else "data", ["a", "b"])
    assert table["n_runs"].tolist() == [2, 2]
    assert table[["complete", "administrative", "informative"]].to_numpy().tolist() == [
        [0, 1, 1], [2, 0, 0],
    ]  # fmt: skip
    assert table["n_scored"].tolist() == [1, 2]
    assert table["censoring_rate"].tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"by must be one label a run, got shape \(4, 1\)"):
        termination_audit(meta, [1, -1, -1, 0], by=[[one] for one in "baab"])


def test_without_a_scored_run_there_is_no_rate():
    table = termination_audit(None, [-1], ["parse_error"]).table
    assert table.index.name is None
    assert np.isnan(table.loc[0, "censoring_rate"])
