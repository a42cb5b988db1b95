"""Work that is shared out among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from joblib import Parallel, delayed

from trajscore.core.values import check_jobs

Job = TypeVar("Job")
Result = TypeVar("Result")
Progress = Callable[[Any], Any]
"""Wraps jobs to show how far they are, as ``tqdm`` does."""


@dataclass(frozen=True)
class Work:
    """How what takes long is done: by how many threads, and what wraps it to show how far it is."""

    n_jobs: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_jobs(self.n_jobs)
        if self.progress is not None and not callable(self.progress):
            raise ValueError(f"progress must be a function such as tqdm, got {self.progress!r}")

    def track(self, jobs: Sequence[Job]) -> Iterable[Job]:
        """Go through jobs, and show it."""
        if self.progress is None or len(jobs) < 2:
            return jobs
        return self.progress(jobs)

    def share(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Call a function with each job, and yield what it returns in their order.

        >>> list(Work(n_jobs=2).share(abs, [-2, 1]))
        [2, 1]
        """
        threads = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        return iter(threads(delayed(function)(job) for job in self.track(jobs)))
