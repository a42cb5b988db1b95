"""How runs ended: codes, grades, and what words of outcomes mean."""

import numpy as np
import pandas as pd
import pytest

from refused import must_refuse
from trajscore import TrajectoryArray, check_outcomes


def test_codes():
    missing = [None, np.nan, pd.NA, pd.NaT, np.float32("nan")]
    for given, codes in (
        ([True, False], [1, 0]),
        ([1.0, np.nan, 0.0], [1, -1, 0]),
        ([-1, 0, 1], [-1, 0, 1]),
        (pd.Series([1, pd.NA, 0], dtype="Int64"), [1, -1, 0]),
        (np.array([[1], [0]]), [1, 0]),
        (np.ma.array([True, None], mask=[False, True], dtype=object), [1, -1]),
        (np.ma.array([0.0, 1.0]), [0, 1]),
        ([], []),
        (pd.Series([], dtype=float), []),
        *(([1, one, 0], [1, -1, 0]) for one in missing),
        *((pd.Series([1, one, 0], dtype=object), [1, -1, 0]) for one in missing),
    ):
        out = check_outcomes(given, len(codes))
        assert (out.tolist(), out.dtype) == (codes, np.int64), given
    assert check_outcomes([0.25, 1, -1]).tolist() == [0.25, 1, -1]


def test_bad_outcomes_name_the_run():
    rows = [
        ([0, 1, 2], {}, "run 2: outcome 2.*meta-estimator"),
        ([0, 3], {}, r"run 1: outcome 3 .*\[0, 1\]"), ([0, -0.5], {}, "run 1: outcome -0.5 "),
        ([0, -2], {}, "run 1: outcome -2 "), ([0, 10**400], {}, "run 1: outcome 1000"),
        (["yes", "no"], {}, r"run 0: outcome 'yes' .*\(y\)\.map"),
        ([1, "no"], {}, "run 1: outcome 'no'"), ([[0, 1]], {}, r"one-dimensional.*\(1, 2\)"),
        ([[1], [0, 1]], {}, "outcomes"), (np.array([1], dtype="m8[s]"), {}, "run 0: outcome"),
        ([1, {}], {}, "run 1: outcome"), (None, {}, "y is None"),
        ([0, 1], {"runs": 3}, "2 outcomes for 3 runs"),
        ([1, -1, 0.75, 0.25, 0], {"allow_soft": False}, r"run 2: outcome 0\.75"),
        ([0, -1], {"allow_censored": False}, "run 1: .*1 of 2.*censored_tps_score"),
    ]  # fmt: skip
    must_refuse(lambda given, kwargs: check_outcomes(given, **kwargs), rows)
    X = TrajectoryArray.from_list([[0.5], [0.4]], ids=["a", "b"])
    for outcome in ("no", 0.5, -1, 5):
        with pytest.raises(ValueError, match="run 'b': "):
            check_outcomes([1, outcome], X, allow_soft=False, allow_censored=False)
    with pytest.raises(ValueError, match="run 2: outcome 'no'"):
        check_outcomes([1, 0, "no"], X)


def test_a_series_of_the_same_runs_in_another_order_is_refused():
    for ids in (list("bca"), [7, 3, 5]):
        X = TrajectoryArray.from_list([[0.9], [0.2], [0.4]], ids=ids)
        y = pd.Series([1, 0, 1], index=pd.Index(ids, name="run"))
        unnamed = y.rename_axis(None)
        for right in (y, unnamed, y.reset_index(drop=True), y.set_axis([8, 9, 0])):
            assert check_outcomes(right, X).tolist() == [1, 0, 1]
        with pytest.raises(ValueError, match=rf"row 0: y .*{ids[2]}.*{ids[0]}.*y\.loc\[X\.ids\]"):
            check_outcomes(y.sort_index() if ids[0] == "b" else y.iloc[[2, 1, 0]], X)
    # numbers without a name may be rows of another table
    assert check_outcomes(unnamed.iloc[::-1], X).tolist() == [1, 0, 1]
    assert check_outcomes(pd.Series([1, 0, 1], index=list("bca")).iloc[[0, 0, 1]], X).sum() == 2
    bare = TrajectoryArray.from_list([[0.9], [0.2], [0.4]])
    assert check_outcomes(y.set_axis([1, 2, 0]).rename_axis("run"), bare).tolist() == [1, 0, 1]


def outcomes(column, outcome="y", outcome_map=None):
    name = outcome if outcome in ("y", "not y") else outcome.removeprefix("not ")
    frame = pd.DataFrame({"run": range(len(column)), "p": 0.5, name.removeprefix("not "): column})
    how = {"outcome": outcome, "outcome_map": outcome_map}
    return TrajectoryArray.from_frame(frame, id="run", step=None, value="p", **how)[1].tolist()


def test_words_mean_what_one_says():
    words = ["Pass ", None, "fail", "partly", "a=b"]
    for meanings in (
        "pass=1,fail=0,partly=0.5,a=b=-1",
        {"pass": 1, "FAIL": False, " partly": np.float32(0.5), "a=b": -1},
    ):
        assert outcomes(words, outcome_map=meanings) == [1, -1, 0, 0.5, -1]
    assert outcomes([5, 1.0, 0.5], outcome_map={5: 1, 1: 0}) == [1, 0, 0.5]
    assert outcomes([0, 1], outcome_map={"0": 1.0, "1": 0.0}) == [1, 0]
    # these need no map, unless one says otherwise
    assert outcomes(["True", " yes", "false", "NO", "85%", "1"]) == [1, 1, 0, 0, 0.85, 1]
    assert outcomes(["Yes", "no"], outcome_map={"yes": 0}) == [0, 0]


def test_words_that_nobody_mapped_are_asked_for():
    with pytest.raises(ValueError, match="4 of 6 runs.*outcome_map=") as caught:
        outcomes(["pass", "meh", "meh", "fail", "meh", None], outcome_map={"pass": 1, "other": 0})
    assert "{'pass': '1', 'meh': '?', 'fail': 0}" in str(caught.value)
    for n_words in (12, 13):
        with pytest.raises(ValueError, match="outcome_map=") as caught:
            outcomes([f"w{k:02d}" for k in range(n_words)] + ["w09"])
        text = str(caught.value)
        assert text.index("'w09'") < text.index("'w00'")  # the most common first
        assert ("1 other word" in text, "'w12'" in text) == (n_words > 12, False)


def test_maps_that_are_refused():
    rows = [
        (3, "outcome_map .* 3"), ("", "outcome_map"), ("=1", "outcome_map: .1."),
        ("pass", "outcome_map: 'pass'.*pass=1"), ("pass=yes", "outcome_map: 'pass' .*'yes'"),
        *(({"pass": v}, "outcome_map: 'pass'") for v in (1.01, -0.01, -2, None, float("nan"))),
    ]  # fmt: skip
    must_refuse(lambda outcome_map: outcomes(["pass", "fail"], outcome_map=outcome_map), rows)


def test_a_column_in_which_1_is_failure_must_be_turned_or_said():
    for name in (
        "hallucination", "Toxicity", "has_error", "failed", "failureRate", "risk", "bias_score",
        "PII", "unsafe", "data_leakage", "cost_usd", "metadata.failed", "isIncorrect", "exit_code",
    ):  # fmt: skip
        assert outcomes([1, 0.25, -1, None], f"not {name}") == [0, 0.75, -1, -1], name
        with pytest.raises(ValueError, match=f"outcome='not {name}'.*outcome_map='1=1,0=0'"):
            outcomes([1, 0], name)
    for name in (
        "error_free", "no_errors", "non_toxic", "notHarmful", "safety", "harmless", "harmlessness",
        "success", "unbiased", "harmony", "correct", "reward", "entropy_confidence", "decoded",
    ):  # fmt: skip
        assert outcomes([1, 0.25, -1, None], name) == [1, 0.25, -1, -1], name
    assert outcomes([1, 0], "failed", "1=1,0=0") == [1, 0]
    assert outcomes(["yes", "no"], "failed", "yes=0,no=1") == [0, 1]
    assert outcomes(["yes", "no", "unknown", None], "not failed", "unknown=-1") == [0, 1, -1, -1]
    rows = [
        ("failed", "error=0", "outcome="),  # says nothing of the numbers
        ("not failed", "yes=0,no=1", "outcome='failed'"),
    ]
    must_refuse(lambda outcome, outcome_map: outcomes(["yes", "no"], outcome, outcome_map), rows)
    with pytest.raises(ValueError, match="outcome='failed' outcome_map={'unknown': '[?]'}"):
        outcomes(["yes", "no", "unknown"], "not failed")
    frame = pd.DataFrame({"run": [0, 1], "p": 0.5, "not failed": [1, 0]})
    columns = {"id": "run", "step": None, "value": "p", "outcome": "not failed"}
    assert TrajectoryArray.from_frame(frame, **columns)[1].tolist() == [1, 0]
