"""Errors that name an argument in Python, and its option on a command line."""

import pytest

from trajscore.core.errors import ArgumentError

OPTIONS = {"id": "--id", "map": "--map", "a": "--a", "b": "--b"}


@pytest.mark.parametrize(
    ("error", "in_python", "on_a_command_line"),
    [
        (ArgumentError("no argument"), "no argument", "no argument"),
        (ArgumentError("{argument} is missing", "id"), "id is missing", "--id is missing"),
        (ArgumentError("{argument} is missing", "step"), "step is missing", "step is missing"),
        (ArgumentError("pass {argument}", "id", 0), "pass id=0", "pass --id 0"),
        (ArgumentError("pass {argument}", "id", "a b"), "pass id='a b'", "pass --id 'a b'"),
        (ArgumentError("pass {argument}", "step", "t"), "pass step='t'", "pass step='t'"),
        (ArgumentError("pass {argument:id}"), "pass id=", "pass --id"),
        (ArgumentError("pass {argument:step}"), "pass step=", "pass step="),
        (ArgumentError("pass {argument:id=a b}"), "pass id='a b'", "pass --id 'a b'"),
        (ArgumentError("pass {argument:step=t}"), "pass step='t'", "pass step='t'"),
        (ArgumentError("pass {argument:id=}", "map", 1), "pass id=''", "pass --id ''"),
        (
            ArgumentError("{argument}, {argument:id=x} or {argument}", "map", "1=0"),
            "map='1=0', id='x' or map='1=0'",
            "--map 1=0, --id x or --map 1=0",
        ),
    ],
)
def test_names_of_arguments(error, in_python, on_a_command_line):
    assert isinstance(error, ValueError)
    assert str(error) == error.in_options({}) == in_python
    assert error.in_options(OPTIONS) == on_a_command_line


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ArgumentError("pass {argument}", "id", 0), ["--id", "0"]),
        (ArgumentError("pass {argument} {argument:a=1}", "id", "x"), ["--id", "x"]),
        (ArgumentError("{argument} is missing", "id"), []),
        (ArgumentError("pass {argument}", "step", 0), []),
        (ArgumentError("pass {argument} or {argument:a=1}", "step", 0), ["--a", "1"]),
        (ArgumentError("{argument:a=1} {argument:b=2}"), ["--a", "1", "--b", "2"]),
        (ArgumentError("{argument:a=1}{argument:b=x y}"), ["--a", "1", "--b", "x y"]),
        (ArgumentError("{argument:a=1}, {argument:b=2}"), ["--a", "1"]),
        (ArgumentError("{argument:a} {argument:step=t} {argument:b=2}"), ["--b", "2"]),
        (ArgumentError("{argument:a=1} {argument:step=t} {argument:b=2}"), ["--a", "1"]),
        (ArgumentError("none"), []),
    ],
)
def test_what_a_command_line_proposes(error, words):
    assert error.proposal(OPTIONS) == words
