"""Tables of bad input: each row must be refused by an exception that names what to look for."""

import re


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
