"""Work that is shared out among threads."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass
from functools import cache
from threading import RLock
from typing import Any, TypeVar

from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

from trajscore.core.values import check_jobs

Job = TypeVar("Job")
Result = TypeVar("Result")
Progress = Callable[[Any], Any]
"""Wraps jobs to show how far they are, as ``tqdm`` does."""


_controller = cache(ThreadpoolController)  # which takes a hundred times as long as a limit


class _OneBlasThread(ContextDecorator):
    """Keeps BLAS to one thread while any thread is inside; as a decorator, too.

    Over matrices as small as ours its threads wait for one another, and for those of joblib. Enter
    it before work is shared out: within each job, it saved nothing. joblib limits processes itself.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._n_inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()


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
        with one_blas_thread:
            yield from threads(delayed(function)(job) for job in self.track(jobs))
