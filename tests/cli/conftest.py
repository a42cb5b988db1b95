"""What the tests of all commands need: a command that is run, and one that refuses."""

import shlex

import pytest

from trajscore.cli.main import main


@pytest.fixture
def run(capsys):
    """Run a command; return its code, its answer, and what it says beside it."""

    def run_words(words, *more):
        code = main([*shlex.split(words), *map(str, more)])
        return code, *capsys.readouterr()

    return run_words


@pytest.fixture
def refuses(run):
    """Run commands that cannot be; hold the last line of each against what it is to name."""

    def check(cases, before="", after=""):
        for words, *named in cases:
            code, _, err = run(f"{before} {words} {after}")
            assert code == 2, words
            error = err.splitlines()[-1]
            assert error.startswith("trajscore: "), words
            assert [name for name in named if name not in error] == [], (words, error)

    return check
