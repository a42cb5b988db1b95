import numpy as np
import pandas as pd
import pytest

from trajscore.core.stops import (
    MECHANISMS,
    STOP_REASONS,
    classify_stops,
    is_scored,
    mechanism_of,
    recorded_stops,
)


def test_each_reason_of_the_table_means_one_thing():
    reasons = [reason for some in STOP_REASONS.values() for reason in some]
    assert len(reasons) == len(set(reasons))
    for mechanism, some in STOP_REASONS.items():
        assert {mechanism_of(reason) for reason in some} == {mechanism}


def test_other_reasons_are_unknown():
    assert mechanism_of("rate limit") == mechanism_of(None) == mechanism_of("") == "unknown"


def test_an_outcome_comes_before_kinds_and_kinds_before_the_rule_before_the_table():
    y = [0, -1, -1, -1]
    reasons = ["max_steps"] * 4
    kinds = ["informative", "informative", None, None]
    rule = {"Max-Steps": "excluded"}
    given = classify_stops(y, reasons, kinds=kinds, rule=rule)
    assert given.tolist() == ["complete", "informative", "excluded", "excluded"]
    assert classify_stops(y, reasons, kinds=kinds).tolist()[2:] == ["administrative"] * 2


def test_an_own_end_without_an_outcome_is_unknown():
    assert classify_stops([-1, -1], ["done", "x"], kinds=[None, "complete"]).tolist() == [
        "unknown",
        "unknown",
    ]


def test_a_function_is_asked_in_place_of_the_table():
    asked = []

    def rule(reason):
        asked.append(reason)
        return "excluded"

    assert classify_stops([-1, 1], ["Max Steps", "max-steps"], rule=rule).tolist() == [
        "excluded",
        "complete",
    ]
    assert asked == ["max_steps"]


def test_only_what_is_complete_or_cut_by_a_budget_is_scored():
    assert is_scored(np.array(MECHANISMS)).tolist() == [True, True, False, False, False]


def test_given_reasons_and_rules_come_before_what_the_log_says():
    meta = pd.DataFrame({"stop_reason": ["a"], "stop_kind": ["informative"]})
    assert [part[0] for part in recorded_stops(meta)] == ["a", "informative"]
    assert recorded_stops(meta, ["b"])[1] is None
    assert recorded_stops(meta, rule={"a": "administrative"})[1] is None
    assert recorded_stops(meta[["stop_kind"]])[0].tolist() == ["informative"]
    assert recorded_stops(pd.DataFrame(index=[0])) == (None, None)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"reasons": ["a"]}, "stop_reason must have one reason a run: 2, got 1"),
        ({"kinds": ["complete"]}, "1 kinds of stops for 2 runs"),
        ({"kinds": [None, "finished"]}, "row 1: stop_kind 'finished' is not one of complete"),
        ({"rule": {"b": "bad"}}, "stop reason 'b': the rule says 'bad'; say one of complete"),
        ({"rule": lambda name: None}, "stop reason 'a': the rule says None"),
    ],
)
def test_what_is_not_understood(kwargs, message):
    with pytest.raises(ValueError, match=message):
        classify_stops([-1, -1], **{"reasons": ["a", "b"], **kwargs})


def test_what_is_no_reason_or_rule():
    with pytest.raises(ValueError, match="stop reasons must be text, one for each run"):
        recorded_stops(pd.DataFrame(index=range(2)), [["done"], "done"])
    with pytest.raises(ValueError, match="stop_reason must have one reason a run: 2, got 1"):
        recorded_stops(pd.DataFrame(index=range(2)), ["done"])
    with pytest.raises(ValueError, match="rule must be a dict of reasons, or a function"):
        mechanism_of("done", 3)
