"""Work that is shared out among threads."""

import pytest

from trajscore.core.parallel import Work


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_results_come_in_the_order_of_the_jobs(n_jobs):
    assert list(Work(n_jobs).share(abs, range(-5, 0))) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(("jobs", "shown"), [([], []), ([1], []), ([1, 2], [[1, 2]])])
def test_one_job_alone_is_not_shown(jobs, shown):
    seen = []

    def progress(items):
        seen.append(list(items))
        return items

    assert list(Work(progress=progress).track(jobs)) == jobs
    assert seen == shown


def test_what_is_refused():
    with pytest.raises(ValueError, match="progress must be a function such as tqdm, got 3"):
        Work(progress=3)
    with pytest.raises(ValueError, match="n_jobs must be None or a whole number"):
        Work(n_jobs=0)
