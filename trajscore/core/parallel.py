"""Work that is shared out among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from joblib import Parallel, delayed

from trajscore.core.values import check_jobs

One = TypeVar("One")
Made = TypeVar("Made")


def in_threads(
    function: Callable[[One], Made], items: Iterable[One], n_jobs: int | None
) -> Iterator[Made]:
    """Call a function with each item, and yield what it returns in their order.

    >>> list(in_threads(abs, [-2, 1], n_jobs=2))
    [2, 1]
    """
    check_jobs(n_jobs)
    threads = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    return iter(threads(delayed(function)(one) for one in items))
