"""Tables of bad input: each row must be refused by an exception that names what to look for."""

import re

import pytest

from trajscore import io


def not_refused(function, rows, error=ValueError):
    """Return the rows (*arguments, options, words) without an error that has the words in it."""
    wrong = []
    for *arguments, options, words in rows:
        try:
            got = function(*arguments, **options)
        except error as refusal:
            got = str(refusal)
            if re.search(words, got):
                continue
        wrong.append((arguments, options, words, got))
    return wrong


def must_refuse(function, rows, error=ValueError):
    """Hold that each row (*arguments, words) is refused by an error that has the words in it."""
    assert not not_refused(function, [(*row, {}, words) for *row, words in rows], error)


def refused(path, **options):
    """Return in which words a log is not read."""
    with pytest.raises(ValueError) as caught:
        io.read_runs(path, **options)
    return str(caught.value)
