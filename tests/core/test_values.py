"""Numbers, counts and names that a caller gives, and the sentences that refuse them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.core import values
from trajscore.core.values import (
    as_amount,
    as_array,
    as_count,
    as_flag,
    as_float,
    as_fraction,
    as_horizon,
    as_lengths,
    as_numbers,
    as_path,
    as_random_state,
    as_real,
    check_choice,
    check_jobs,
    is_count,
    is_iterable,
    is_number,
    run_label,
    several,
    unknown_name,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("identifier", "label"),
    [
        ("r7", "'r7'"),
        (np.int64(7), "7"),
        (np.str_("a\nb"), r"'a\nb'"),
        ("x" * 198, f"'{'x' * 198}'"),
        ("x" * 199, f"'{'x' * 199}..."),
    ],
)
def test_labels_of_runs(identifier, label):
    assert run_label(identifier) == label


@pytest.mark.parametrize(
    ("name", "have", "words"),
    [
        ("solvd", ["step", "solved"], "no column named 'solvd'; did you mean 'solved'?"),
        ("abcxx", ["q", "abcyy"], "no column named 'abcxx'; did you mean 'abcyy'?"),
        ("abxx", ["abyy", "q"], "no column named 'abxx'; there are: abyy, q"),
        ("Conf", ["step", "con_fidence"], "no column named 'Conf'; did you mean 'con_fidence'?"),
        ("run_id", ["step", "id"], "no column named 'run_id'; did you mean 'id'?"),
        ("id", ["confidence"], "no column named 'id'; there are: confidence"),
        ("p", ["step"], "no column named 'p'; there are: step"),
        ("started", ["step"], "no column named 'started'; there are: step"),
        ("", ["step"], "no column named ''; there are: step"),
        ("x", [], "no column named 'x'; there are: none"),
        (
            "x",
            range(10, 40),
            f"no column named 'x'; there are: {', '.join(map(str, range(10, 30)))}",
        ),
    ],
)
def test_unknown_names(name, have, words):
    assert unknown_name("column", name, have) == words


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (("a",), "'a'"),
        (("a", "b"), "'a' or 'b'"),
        (("a", "b", "c"), "'a', 'b' or 'c'"),
    ],
)
def test_choices(choices, words):
    check_choice("a", "phi", choices)
    for value in ("z", None, 1):
        with pytest.raises(ValueError, match=f"^phi must be {words}, got {value!r}$"):
            check_choice(value, "phi", choices)


def test_several():
    assert several(("a", "b"), str, "scores") == ["a", "b"]
    for items, words in (
        ("ab", "scores must be a list, got 'ab'"),
        (3, "scores must be a list, got 3"),
        ([], "scores is empty; name at least one"),
        (["a", "b", "b"], "scores names b more than once; name each once"),
    ):
        with pytest.raises(ValueError, match=f"^{words}$"):
            several(items, str, "scores")


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1, 4096, -4096, np.int32(2)])
def test_jobs(n_jobs):
    check_jobs(n_jobs)


@pytest.mark.parametrize("n_jobs", [0, 4097, -4097, 1.0, True, "2"])
def test_jobs_that_are_refused(n_jobs):
    words = f"n_jobs must be None or a whole number, such as 2 or -1, got {n_jobs!r}"
    with pytest.raises(ValueError, match=re.escape(words)):
        check_jobs(n_jobs)


def test_flags():
    assert [as_flag(value, "x") for value in (True, np.True_, 1, 1.0)] == [True] * 4
    assert [as_flag(value, "x") for value in (False, np.False_, 0, 0.0)] == [False] * 4
    for value in (2, -1, 0.5, "yes", None, NAN):
        with pytest.raises(ValueError, match=f"x must be True or False, got {value!r}"):
            as_flag(value, "x")


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        (1, True),
        (-2.5, True),
        (np.int8(1), True),
        (np.float32(1), True),
        (2**1000 - 1, True),
        (2**1000, False),
        (1 - 2**1000, True),
        (-(2**1000), False),
        (np.timedelta64(1, "s"), False),
        ("1", False),
        (None, False),
        (np.array([1.0]), False),
    ],
)
def test_is_number(value, is_one):
    assert is_number(value) is is_one


@pytest.mark.parametrize(
    ("value", "least", "is_one"),
    [
        (1, 1, True),
        (0, 1, False),
        (0, 0, True),
        (2**63 - 1, 1, True),
        (2**63, 1, False),
        (np.uint8(3), 3, True),
        (True, 0, False),
        (2.0, 1, False),
        ("2", 1, False),
        (np.timedelta64(2, "s"), 1, False),
    ],
)
def test_counts(value, least, is_one):
    assert is_count(value, least) is is_one
    if is_one:
        assert as_count(value, "n", least) == int(value)
        assert type(as_count(value, "n", least)) is int
    else:
        words = f"n must be a whole number of at least {least}, got {value!r}"
        with pytest.raises(ValueError, match=re.escape(words)):
            as_count(value, "n", least)


def test_the_least_count_is_one():
    assert (is_count(1), is_count(0)) == (True, False)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        as_count(0, "n")
    assert as_count(1, "n") == 1


def test_fractions():
    assert as_fraction(np.float32(0.5), "alpha") == 0.5
    for value in (0, 1, -0.1, 1.1, NAN, "0.5", None):
        words = f"alpha must lie strictly between 0 and 1, got {value!r}"
        with pytest.raises(ValueError, match=re.escape(words)):
            as_fraction(value, "alpha")


def test_amounts():
    assert [as_amount(value, "wait") for value in (0, np.int64(3), 1e300)] == [0, 3, 1e300]
    for value in (-0.1, np.inf, NAN, "0.5", None):
        words = f"wait must be a finite number >= 0, got {value!r}"
        with pytest.raises(ValueError, match=re.escape(words)):
            as_amount(value, "wait")


def test_what_can_be_gone_through():
    found = [is_iterable(value) for value in ([], "a", np.zeros(1), np.zeros(0))]
    assert found == [True] * 4
    assert not is_iterable(np.array(3.0))
    assert not is_iterable(3)


def test_random_states():
    assert as_random_state(3).randint(1000) == np.random.RandomState(3).randint(1000)
    assert as_random_state(2**32 - 1) is not None
    for seed in (-1, 2**32, "a", 1.5):
        words = "random_state must be None, a whole number from 0 to 4294967295 or a RandomState"
        with pytest.raises(ValueError, match=words):
            as_random_state(seed)


def test_paths():
    assert as_path("a/b") == Path("a/b")
    assert as_path(Path("c")) == Path("c")
    for value, words in (
        (3, "out must be the name of a file, got 3"),
        ("a\0b", r"out 'a\x00b' is not a file name"),
        ("\ud800", r"out '\ud800' is not a file name"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            as_path(value, "out")


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("complex128", "Complex data not supported; take real parts or absolute values first"),
        ("M8[s]", "dates (datetime64[s]) are not numbers; convert them to numbers first"),
        ("m8[s]", "durations (timedelta64[s]) are not numbers; convert them to numbers first"),
    ],
)
def test_kinds_that_are_not_real_numbers(dtype, words):
    array = np.zeros(2, dtype=dtype)
    with pytest.raises(ValueError, match=re.escape(words)):
        as_real(array)
    with pytest.raises(ValueError, match=re.escape(f"y must be numbers: {words}")):
        as_numbers(pd.Series(array), "y")
    values.refuse_kind(np.dtype(float))


def test_real_numbers():
    array = np.array([1.0, 2.0])
    assert as_real(array) is array
    assert as_real([True, 2]).dtype == np.float64
    masked = np.ma.MaskedArray([1.0, 2.0], [False, True])
    np.testing.assert_array_equal(as_real(masked), [1, NAN])
    assert as_real(["1.5"]).tolist() == [1.5]
    with pytest.raises(ValueError, match="'high'"):
        as_real(["high"])


def test_missing_numbers_of_pandas():
    series = pd.Series([1, None], dtype="Int64")
    np.testing.assert_array_equal(as_numbers(series, "y"), [1, NAN])
    np.testing.assert_array_equal(as_numbers(pd.DataFrame({"a": series}), "y"), [[1], [NAN]])
    for value in (["a"], [[1], [1, 2]], [10**400], pd.Series(["a"])):
        with pytest.raises(ValueError, match="^y must be numbers: "):
            as_numbers(value, "y")


def test_arrays():
    assert as_array([1, 2], "y").tolist() == [1, 2]
    with pytest.raises(ValueError, match="^y must be an array: "):
        as_array([[1], [1, 2]], "y")


def test_cells_that_the_caller_can_write_to_are_copied():
    given = np.array([1.0, 2.0])
    assert not np.shares_memory(as_float(given), given)
    assert not np.shares_memory(as_float(given[:1]), given)
    given.flags.writeable = False
    assert as_float(given) is given
    assert as_float(np.ones((2, 2)).T).flags.c_contiguous
    for value, words in (
        (1.0, "Expected 1D or 2D array, got 0D array instead"),
        (np.ones((1, 1, 1)), "Expected 1D or 2D array, got 3D array instead"),
        (["a"], "values must be real numbers: "),
        ([10**400], "values must be real numbers: "),
    ):
        with pytest.raises(ValueError, match=words):
            as_float(value)
    with pytest.raises(ValueError, match="Expected 3D array, got 1D array instead"):
        as_float([1.0], (3,))


def test_lengths():
    found = as_lengths(np.array([2, 1], dtype=np.uint8), 3)
    assert (found.tolist(), found.dtype) == ([2, 1], np.int64)
    assert as_lengths([]).tolist() == []
    for lengths, n_cells, words in (
        ([1, 0, -1], None, "row 1 has no steps; leave runs without a step out"),
        ([-1, 2], None, "row 0 has no steps; leave runs without a step out"),
        ([2, 1], 4, "the lengths add up to 3, but there are 4 cells"),
        ([1.0], None, "lengths must be whole numbers, one for each run"),
        ([[1]], None, "lengths must be whole numbers, one for each run"),
        ([True], None, "lengths must be whole numbers, one for each run"),
        ([[1], [1, 2]], None, "lengths must be an array: "),
    ):
        with pytest.raises(ValueError, match=words):
            as_lengths(lengths, n_cells)


def test_horizons():
    lengths = np.array([2, 3])
    assert as_horizon(None, lengths) is not lengths
    assert as_horizon(None, lengths).tolist() == [2, 3]
    found = as_horizon(np.array([2, 2**53], dtype=np.uint64), lengths)
    assert (found.tolist(), found.dtype) == ([2, 2**53], np.int64)
    for horizon, words in (
        ([2], "horizon must be 2 whole numbers, one for each run"),
        ([2.0, 3.0], "horizon must be 2 whole numbers, one for each run"),
        (
            [2, 2],
            "row 1: horizon 2 is shorter than the run's 3 steps; give at least 3",
        ),
        ([1, 2], "row 0: horizon 1 is shorter than the run's 2 steps; give at least 2"),
        ([2, 2**53 + 1], "row 1: horizon 9007199254740993 is too large; give the number of"),
    ):
        with pytest.raises(ValueError, match=words):
            as_horizon(horizon, lengths)


def test_names_are_near_whatever_their_cases_and_punctuation():
    known = ["success", "S-ECE", "s_ece_early"]
    assert unknown_name("metric", "s_ece", known).endswith("'s_ece'; did you mean 'S-ECE'?")
    assert unknown_name("metric", "sucess", known).endswith("did you mean 'success'?")


def test_runs_of_steps_are_not_one_number_a_run():
    X = TrajectoryArray([0.1, 0.2, 0.3], [1, 2])
    with pytest.raises(
        ValueError, match="judge must be one number for each run, .* by .*aggregate"
    ):
        as_numbers(X, "judge")


def test_rows_of_several_lengths_are_for_from_list():
    for rows, hint in {((0.5, 0.6), (0.7,)): True, (("a",), ("b",)): False}.items():
        with pytest.raises(ValueError, match="values must be real numbers") as caught:
            as_float(list(map(list, rows)))
        assert ("from_list" in str(caught.value)) is hint
