"""What is said of a predictor in the drawer that explains it, by hand."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.core.weighted_steps import PARTS
from trajscore.core.weights import as_step_weights
from trajscore.report._data import Options
from trajscore.report.page.why import (
    Profile,
    _bars,
    _clear,
    _errors,
    _margin_by_step,
    _profile,
    _timing,
    _title,
)

KEY = "judge", "as_given"


def view_of(**data):
    options = Options(("log",), as_step_weights(), "weighted")
    stated = {"options": options, "score_name": "TPS log", **data}
    forms = {"judge": ["as_given", "recalibrated"], "map": ["recalibrated"]}
    return SimpleNamespace(data=SimpleNamespace(**stated), digits=3, forms=forms.get)


def profile_of(margin, error, n=101, first=1):
    margin = np.array(margin)
    step = np.arange(first, first + len(margin), dtype=float)
    return Profile(step, margin, np.full(len(margin), error), np.full(len(margin), float(n)))


def test_parts_of_a_run_are_named_by_their_steps():
    assert [_title(part) for part in PARTS] == ["Steps 1 to 3", "Steps 4 to 10", "Steps from 11 on"]


def test_intervals_of_several_steps_are_wider():
    profile = profile_of([0.1, 0.2], 0.5)
    # quantiles of Student's t with 100 degrees of freedom, of 0.975 and 0.9875
    assert profile.half() == pytest.approx(0.5 * np.array([1.98397, 1.98397]), abs=1e-5)
    assert profile.half(2) == pytest.approx(0.5 * np.array([2.27565, 2.27565]), abs=1e-5)


def test_steps_that_are_better_at_one_error_rate():
    # half widths are 0.0198 for one step and 0.0228 for each of two
    assert _clear(profile_of([0.0199], 0.01)).tolist() == [1]
    assert _clear(profile_of([0.0199, 0.0229], 0.01, first=4)).tolist() == [5]
    assert _clear(profile_of([-0.5, 0.01], 0.01)).tolist() == []


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (profile_of([], 1.0), "No step is reached by 10 runs: too few to say."),
        (
            profile_of([0.1, -0.3], 1.0),
            "At no single step is it shown to be better than the base rate.",
        ),
        (
            profile_of([0.0, 0.1, 0.4, 0.2], 0.01, n=1234),
            (
                "First shown to be better than the base rate at step 2; best at step 3 (+0.400, "
                "1,234 runs reach it). Later steps are reached by fewer runs."
            ),
        ),
    ],
)
def test_when_in_the_run(profile, said):
    assert _timing(view_of(), "judge", profile) == said


def test_the_best_step_is_one_that_is_shown_to_be_better():
    margin, error = np.array([0.1, 0.9]), np.array([0.01, 1.0])
    profile = Profile(np.array([1.0, 2.0]), margin, error, np.array([50.0, 10.0]))
    assert "at step 1; best at step 1 (+0.100, 50 runs" in _timing(view_of(), "judge", profile)


def test_the_margin_at_each_step_is_over_the_base_rate():
    # step 1 is reached by 20 runs, step 2 by 10, step 3 by 9
    lengths = np.array([3] * 9 + [2] + [1] * 10)
    labels = (np.arange(20) % 2).astype(float)
    X = TrajectoryArray(np.where(np.repeat(labels, lengths) == 1, 0.8, 0.4), lengths)
    data = view_of(traces={KEY: X}, labels={KEY: labels}, facts=SimpleNamespace(rate=0.5))
    profile = _profile(data, KEY)
    assert profile.step.tolist() == [1, 2]
    assert profile.n.tolist() == [20, 10]
    won, failed = np.log(0.8 / 0.5), np.log(0.6 / 0.5)
    assert profile.margin == pytest.approx([(won + failed) / 2] * 2)
    spread = (won - failed) / 2  # of two values, half of the runs at each
    assert profile.error == pytest.approx([spread / np.sqrt(19), spread / np.sqrt(9)])


def test_steps_beyond_the_sixtieth_are_not_shown():
    X = TrajectoryArray(np.full(10 * 61, 0.5), np.full(10, 61))
    data = view_of(
        traces={KEY: X}, labels={KEY: np.arange(10) % 2.0}, facts=SimpleNamespace(rate=0.5)
    )
    assert _profile(data, KEY).step.tolist() == list(range(1, 61))


def table_of(**rows):
    index = pd.MultiIndex.from_tuples([("judge", form) for form in rows])
    return pd.DataFrame(list(rows.values()), index=index, columns=["MCB log", "TPS log margin"])


def test_bars_are_cut_where_the_loss_dwarfs_what_is_known():
    bars = _bars(view_of(table=table_of(as_given=(0.5, -0.4), recalibrated=(0.02, 0.06))), "judge")
    raw, recalibrated = bars["rows"]
    # from -0.2, twice the largest that is known, to 0.1; 6% of that are room at either end
    low, width = -0.2 - 0.018, 0.3 + 0.036
    assert bars["zero"] == pytest.approx(100 * -low / width)
    assert (raw["to"], raw["end"]) == pytest.approx((100 * (0.1 - low) / width, 0))
    places = [100 * (x - low) / width for x in (0.08, 0.06)]
    assert (recalibrated["to"], recalibrated["end"]) == pytest.approx(places)
    assert (raw["is_cut"], recalibrated["is_cut"]) == (True, False)
    assert (raw["knows_text"], raw["margin_text"]) == ("knows 0.100", "-0.400")
    assert (raw["called"], recalibrated["called"]) == ("as given", "recalibrated")


def test_bars_of_margins_within_the_axis_are_whole():
    bars = _bars(view_of(table=table_of(as_given=(0.15, -0.05), recalibrated=(0.0, 0.1))), "judge")
    assert [row["is_cut"] for row in bars["rows"]] == [False, False]
    # from -0.05 to 0.1 with room
    assert bars["zero"] == pytest.approx(100 * (0.05 + 0.009) / 0.168)
    nothing = _bars(view_of(table=table_of(as_given=(0.0, 0.0), recalibrated=(0.0, 0.0))), "judge")
    assert [row["knows_text"] for row in nothing["rows"]] == ["knows 0.000"] * 2


def test_errors_of_a_part_are_points_and_missing_ones_are_not_said():
    index = pd.MultiIndex.from_tuples([("judge", "as_given"), ("judge", "recalibrated")])
    errors = partial(_errors, name="judge", part="late")
    table = pd.DataFrame({"S-ECE late": [0.126, np.nan]}, index=index)
    assert errors(view_of(table=table)) == [("as_given", "as given off by 13 points")]
    table = pd.DataFrame({"S-ECE late": [0.0, 0.5]}, index=index)
    assert errors(view_of(table=table)) == [
        ("as_given", "as given off by 0 points"),
        ("recalibrated", "recalibrated off by 50 points"),
    ]


def drawn(margin, error, monkeypatch, first=3):
    monkeypatch.setattr("trajscore.report.page.why.acted_on", lambda data, name: KEY)
    view = view_of()
    view.called = "{} as given".format
    profile = profile_of(margin, 1.0, first=first)._replace(error=np.array(error))
    return _margin_by_step(view, "judge", profile)


def test_margins_by_step_are_drawn_with_intervals_that_are_cut(monkeypatch):
    plot = drawn([0.1, 0.2, 0.4], [1.0, 0.01, 0.01], monkeypatch)
    assert plot.about == "judge as given: margin over the base rate by step"
    assert (plot.x.low, plot.x.high, plot.x.n_ticks) == (3, 5, 4)
    assert plot.x.ticks[0] == (0, "3")
    # cut at twice the range of margins and nothing, 0.8, below the lowest and above the highest
    half = 0.0198397
    low, high = np.array([-0.7, 0.2 - half, 0.4 - half]), np.array([1.2, 0.2 + half, 0.4 + half])
    assert (plot.y.low, plot.y.high) == pytest.approx((-0.7 - 0.114, 1.2 + 0.114))
    across = np.array([0, 50, 100])

    def up(values):
        return 100 - 100 * (np.asarray(values) + 0.814) / (1.9 + 0.228)

    def path_of(x, y):
        return "M" + "L".join(f"{a:.2f} {b:.2f}" for a, b in zip(x, y, strict=True))

    around = path_of(np.append(across, across[::-1]), np.append(up(low), up(high)[::-1]))
    assert plot.paths == [
        (path_of([0, 100], up([0, 0])), "line zero"),
        (f"{around}Z", "band as_given"),
        (path_of(across, up([0.1, 0.2, 0.4])), "line as_given"),
    ]
    assert plot.dots == [(50, pytest.approx(up(0.2)), "as_given")]
    (label,) = plot.labels
    assert (label.text, label.x, label.style) == ("first shown better: step 4", 50, "as_given")
    assert label.y == pytest.approx(up(0.2))


def test_margins_that_are_never_clear_have_no_dot(monkeypatch):
    plot = drawn([-0.1, -0.2], [0.01, 0.01], monkeypatch)
    assert (plot.dots, plot.labels) == ([], [])
    assert plot.y.high == pytest.approx(0.06 * 0.2198397)
    assert drawn([0.3], [0.01], monkeypatch) is None
