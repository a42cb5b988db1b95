"""What the words of an outcome mean."""

import math
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from trajscore.core.array import TrajectoryArray
from trajscore.core.errors import ArgumentError
from trajscore.core.meanings import (
    Meanings,
    as_mapped,
    bare_name,
    check_map,
    check_polarity,
    counts_tests,
    map_outcomes,
    note_on_words,
    outcome_candidates,
    outcome_hint,
    propose,
    refuse_counts,
    refuse_counts_in,
    refuse_words,
    sounds_bad,
)


@pytest.mark.parametrize(
    ("outcome_map", "meanings"),
    [
        (None, {}),
        ("", None),
        ({}, {}),
        ("pass=1,fail=0", {"pass": 1, "fail": 0}),
        (" Pass =0.5,a=b=-1", {"pass": 0.5, "a=b": -1}),
        ({"OK ": True, 2.0: 0, 3: np.float32(1)}, {"ok": 1, "2": 0, "3": 1}),
        ({0.5: 1}, {"0.5": 1}),
    ],
)
def test_maps(outcome_map, meanings):
    if meanings is None:
        with pytest.raises(ArgumentError, match="outcome_map: '' is not a pair such as pass=1"):
            check_map(outcome_map)
    else:
        found = check_map(outcome_map)
        assert found == meanings
        assert all(type(value) is float for value in found.values())


@pytest.mark.parametrize(
    ("outcome_map", "words"),
    [
        (3, "outcome_map must be a dict of words, got 3"),
        ("pass", "outcome_map: 'pass' is not a pair such as pass=1"),
        ("=1", "outcome_map: '=1' is not a pair such as pass=1"),
        ("pass=yes", "outcome_map: 'pass' means 'yes'; give 1 for success, 0 for failure, -1 for"),
        *(
            ({"pass": value}, f"outcome_map: 'pass' means {value!r}; give 1 for success")
            for value in (1.01, -0.01, -2, None, float("nan"))
        ),
    ],
)
def test_maps_that_are_refused(outcome_map, words):
    with pytest.raises(ArgumentError, match=re.escape(words)):
        check_map(outcome_map)


def test_mapped_values():
    meanings = {"pass": 1.0, "2": 0.0}
    found = [as_mapped(value, meanings) for value in (" PASS", 2.0, 2, "other", 2.5)]
    assert found == [1, 0, 0, "other", 2.5]
    assert as_mapped(" PASS", {}) == " PASS"


def test_columns():
    numbers = pd.Series([0, 1])
    assert map_outcomes(numbers, {}) is numbers
    assert map_outcomes(numbers, {"0": 1.0, "1": 0.0}).tolist() == [1, 0]
    words = pd.Series(["pass", None, "fail", "Pass "], index=[5, 6, 7, 9])
    found = map_outcomes(words, {"pass": 1.0, "fail": 0.0})
    assert found.tolist() == [1, None, 0, 1]
    assert found.index.tolist() == [5, 6, 7, 9]
    with pytest.raises(ValueError, match="column 'y' holds a list or an object; give one outcome"):
        map_outcomes(pd.Series([[1], [2]], name="y"), {})


def test_words_of_a_column_that_are_not_mapped():
    column = pd.Series(["pass", "meh", "meh", "fail", "meh", None])
    with pytest.raises(ArgumentError) as error:
        map_outcomes(column, {"pass": 1.0, "other": 0.0})
    words = (
        "the outcome is a word in 4 of 6 runs; say what each word means (1 success, 0 failure, -1 "
        "not observed) with outcome_map="
    )
    assert str(error.value).startswith(words)
    assert error.value.value == {"pass": "1", "meh": "?", "fail": 0}


def test_a_refusal_names_twelve_words_the_most_common_first():
    words = Counter({f"w{k:02d}": 1 for k in range(12)}) + Counter({"yes": 5})
    with pytest.raises(ArgumentError) as error:
        refuse_words(words, 20, {"w": 0.5}, "row 3: ")
    assert str(error.value).startswith("row 3: the outcome is a word in 17 of 20 runs; ")
    assert str(error.value).endswith(" and 1 other words")
    assert [*error.value.value] == ["w", "yes", *(f"w{k:02d}" for k in range(11))]
    assert error.value.value["w"] == "0.5"
    del words["w11"]
    with pytest.raises(ArgumentError) as error:
        refuse_words(words, 20, {})
    assert "other words" not in str(error.value)
    assert len(error.value.value) == 12


def test_usual_words():
    proposed = propose([" Passed", "fail", "timeout", "meh"])
    assert proposed == {" Passed": 1, "fail": 0, "timeout": -1, "meh": "?"}
    assert str(proposed) == " Passed=1,fail=0,timeout=-1,meh=?"
    assert str(Meanings()) == ""


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    "name",
    [
        "hallucination", "Toxicity", "error", "errors", "has_error", "failed", "failureRate",
       "risk",
        "bias_score", "harmful", "refusal", "refused", "PII", "jailbreak", "unsafe", "violations",
        "data_leakage", "loss", "cost_usd", "metadata.failed", "isIncorrect",
    ],
)  # fmt: skip
def test_names_of_which_high_values_are_bad(name):
    assert sounds_bad(name)
    assert outcome_hint(name) == f"not {name}"


@pytest.mark.parametrize(
    "name",
    [
        "error_free", "no_errors", "non_toxic", "notHarmful", "safety", "harmless", "harmlessness",
        "success", "unbiased", "errorless", "harmony", "costume_free", "correct", "y", "reward",
    ],
)  # fmt: skip
def test_other_names(name):
    assert not sounds_bad(name)
    assert outcome_hint(name) == name


@pytest.mark.parametrize(
    ("name", "outcome_map", "words"),
    [
        ("failed", None, r"pass outcome='not failed'; if .* with outcome_map='1=1,0=0'"),
        ("failed", "none=-1", "sounds like failure"),
        ("failed", "error=0", "sounds like failure"),  # says nothing of the numbers
        ("not failed", "yes=0,no=1", "leave the map out, or pass outcome='failed'"),
        ("failed", "yes=0,no=1", None),
        ("failed", "1=1,0=0", None),
        ("not failed", "none=-1", None),
        ("not failed", None, None),
        ("solved", None, None),
        (None, None, None),
    ],
)
def test_whether_high_is_good_must_be_clear(name, outcome_map, words):
    if words is None:
        check_polarity(name, check_map(outcome_map))
    else:
        with pytest.raises(ArgumentError, match=words):
            check_polarity(name, check_map(outcome_map))


def test_a_turned_outcome():
    assert bare_name("not failed") == "failed"
    assert bare_name("not failed", ["not failed"]) == "not failed"
    frame = pd.DataFrame({"run": [0, 1, 2, 3], "p": 0.5, "failed": [1, 0.25, -1, None]})
    frame["words"] = ["yes", "no", "unknown", None]

    def outcomes(outcome, outcome_map=None, table=frame):
        return TrajectoryArray.from_frame(
            table, id="run", step=None, value="p", outcome=outcome, outcome_map=outcome_map
        )[1].tolist()

    assert outcomes("not failed") == [0, 0.75, -1, -1]
    assert outcomes("not words", "unknown=-1") == [0, 1, -1, -1]
    named = frame.rename(columns={"failed": "not failed"})
    assert outcomes("not failed", table=named) == [1, 0.25, -1, -1]
    with pytest.raises(ArgumentError, match="with outcome='words' outcome_map={'unknown': -1}"):
        outcomes("not words")
    with pytest.raises(ArgumentError, match="outcome='not failed'"):
        outcomes("failed")


# ------------------------------------------------------------------ words that need no map


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("True", 1), (" yes", 1), ("false", 0), ("NO", 0), ("85%", 0.85), ("1", 1), ("-1", -1),
        ("nan", "nan"), ("pass", "pass"), ("", ""), ("1e400", math.inf), (True, True), (None, None),
    ],
)  # fmt: skip
def test_texts_that_need_no_map(text, outcome):
    assert as_mapped(text, {}) == outcome


def test_words_that_were_read_are_said():
    assert note_on_words(["True", "no", 1, "pass"], {}) == "outcome: read 'no' as 0, 'true' as 1"
    assert note_on_words(["True", "no"], {"true": 0}) == "outcome: read 'no' as 0"
    assert note_on_words(["pass", True], {}) == ""
    assert as_mapped("Yes", {"yes": 0}) == 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0, 3), (4, 0), (1, 1)], "are 0 and 3 in .* --outcome failed --map 0=1,1=0,3=0;"),
        ([(1, 0), (0, 0)], "are 0 and 0 in a run, so they seem to count tests. Name another field"),
        ([(1, 0), (3, None)], ""),
        ([(1, 0), (0, 1), (None, 2), (-1, 0)], ""),
        ([(True, 2), (False, 0)], ""),
        ([(1, None), (0, None)], ""),
    ],
)  # fmt: skip
def test_counts_of_tests_are_no_outcome(rows, words):
    frame = pd.DataFrame(rows, columns=["passed", "failed"])
    if not words:
        refuse_counts_in(frame, "passed", {})
        return
    with pytest.raises(ArgumentError) as error:
        refuse_counts_in(frame, "passed", {})
    options = {"outcome": "--outcome", "outcome_map": "--map", "outcomes": "--outcomes"}
    assert re.search(words, error.value.in_options(options))
    refuse_counts_in(frame, "passed", {"0": 0, "1": 1, "3": 1, "4": 1})


@pytest.mark.parametrize(("n_failed", "is_proposed"), [(12, True), (13, False)])
def test_a_map_of_twelve_counts_is_proposed(n_failed, is_proposed):
    frame = pd.DataFrame({"passed": 3, "failed": np.arange(1, n_failed + 1)})
    with pytest.raises(ArgumentError) as error:
        refuse_counts_in(frame, "passed", {})
    counts = ",".join(f"{n}=0" for n in range(1, n_failed + 1))
    assert (f"--map 0=1,{counts};" in error.value.in_options({"outcome_map": "--map"})) == (
        is_proposed
    )


@pytest.mark.parametrize(("n_words", "is_proposed"), [(2, True), (12, True), (13, False)])
def test_an_outcome_of_twelve_words_is_proposed(n_words, is_proposed):
    words = ["pass", "fail", *(f"word {k}" for k in range(11))][:n_words]
    (*found,) = outcome_candidates({"verdict": words})
    asked = ",".join(f"{word}=?" for word in words[2:])
    meanings = "pass=1,fail=0" + (f",{asked}" if asked else "")
    proposed = f"{{argument:outcome=verdict}} {{argument:outcome_map={meanings}}}"
    assert found == ([proposed] if is_proposed else [])


def test_an_outcome_on_another_scale_is_asked_for():
    frame = pd.DataFrame({"reward": [0, 100, 100]})
    with pytest.raises(ArgumentError, match=r"'reward' is 100 in a run, .*\{'0': '\?', '100': "):
        refuse_counts_in(frame, "reward", {})
    refuse_counts_in(frame, "reward", {"100": 1})


@pytest.mark.parametrize(
    ("value", "other", "is_count"),
    [(1, math.nan, False), (1, None, False), (1, "2", False), (1, True, False), (0.5, 2, False),
     (math.nan, 1, False), (math.inf, 1, False), (10**100, None, True), (1, 10**100, True),
     ("3", None, False), (None, 1, False), (-1, 2, False)],
)  # fmt: skip
def test_numbers_that_count_tests(value, other, is_count):
    assert counts_tests(value, other) is is_count


def test_a_reward_between_0_and_1_may_be_the_outcome_and_another_number_may_not():
    assert outcome_candidates({"reward": [0, 0.5, 1]}) == ["{argument:outcome=reward}"]
    assert outcome_candidates({"sure": [0, 0.5, 1], "reward": [0, 2]}) == []


@pytest.mark.parametrize("name", ["cost", "total_cost", "loss", "entropy", "price", "truncated"])
def test_what_is_no_outcome_is_not_proposed(name):
    assert outcome_candidates({name: [0, 1]}) == []
    assert outcome_candidates({name: ["pass", "fail"]}) == []


@pytest.mark.parametrize(
    ("pairs", "asked"),
    [
        ([(3, 0), (1, 0)], "0=1,1=0"),
        ([(3, 2), (0, None)], "0=1,1=0,2=0"),
        ([(3, 0), (0, 0)], None),
        ([(3, 1), (0, 1)], "0=1,1=0"),
    ],
)
def test_a_map_is_proposed_where_no_run_has_none_of_both(pairs, asked):
    with pytest.raises(ArgumentError) as error:
        refuse_counts(pairs, "passed", "failed", "row 2: ")
    text = error.value.in_options({"outcome_map": "--map", "outcome": "--outcome"})
    hint = "Name another field"
    if asked:
        hint = f"If a run succeeds where 'failed' is 0, pass --outcome failed --map {asked}; "
    first = f"row 2: 'passed' and 'failed' are 3 and {pairs[0][1]} in a run, so they seem to count"
    assert re.search(f"{re.escape(first)} tests. {hint}", text), text
