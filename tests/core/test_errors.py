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
