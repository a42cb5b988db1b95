"""A rule whose threshold was tested on held-out runs."""

import numpy as np
import pytest

from trajscore.monitoring import LearnThenTestStop

SCORES = np.linspace(0.2, 0.9, 40)[:, None]


def rule(n, **options):
    options = {"lost_accuracy": None, "delta": 0.1} | options
    return LearnThenTestStop("passthrough", **options).fit(SCORES[:n], np.ones(n, dtype=int))


@pytest.mark.parametrize(
    ("n", "allowed"),  # 0.9^21 > 0.1 > 0.9^22, and with one flagged run of 38
    [(22, 0), (37, 0), (38, 1)],
)
def test_the_threshold_flags_as_many_successes_as_are_allowed(n, allowed):
    fitted = rule(n, alpha=0.1)
    assert (fitted.predict(SCORES[:n]) == 0).sum() == allowed
    report = fitted.report(SCORES[:n], np.ones(n, dtype=int))
    assert report["false_alarm_rate"].tolist() == [allowed / n]
    lower = fitted.report(np.r_[SCORES[:n], [[0.1]]], np.r_[np.ones(n, dtype=int), 0])
    assert lower["power"].tolist() == [1]  # what lies below all successes is flagged


def test_too_few_successes_flag_nothing():
    with pytest.warns(
        UserWarning, match=r"\(21, of which 21 succeeded\) .* at least 22 successes are held out,"
    ):
        fitted = rule(21, alpha=0.1)
    report = fitted.report([[0.0], [0.5]], [0, 1])
    assert report["power"].tolist() == report["false_alarm_rate"].tolist() == [0]
