"""Scales, ticks and places of labels in the pictures of the page."""

import math

import numpy as np
import pytest

from trajscore.report.page.charts import Axis, Label, Plot, axis_of, half_size, path, round_step


def test_values_become_percent_of_the_frame_and_stay_inside():
    axis = Axis(-1, 3)
    assert axis([-2, -1, 0, 3, 4]).tolist() == [0, 0, 25, 100, 100]


def test_ticks_are_round():
    assert Axis().ticks == [(0, "0%"), (25, "25%"), (50, "50%"), (75, "75%"), (100, "100%")]
    assert [text for _, text in Axis(-0.013, 0.052, 4, "").ticks] == ["0", "+0.02", "+0.04"]
    assert [text for _, text in Axis(-0.06, 0.06, 4, "").ticks] == ["-0.05", "0", "+0.05"]
    assert [text for _, text in Axis(0, 0.1, 4, "").ticks][1] == "+0.025"
    assert [text for _, text in Axis(1, 60, 4, ".0f").ticks] == ["20", "40", "60"]
    assert [text for _, text in Axis(0, 60, 4, ".0f").ticks] == ["0", "20", "40", "60"]
    assert Axis(-0.5, 1.5, 4, "").ticks[0] == (0, "-0.5")


@pytest.mark.parametrize(
    ("least", "step"),
    [
        (1, 1),
        (0.6000000000000001 / 3, 0.2),
        (1.1, 2),
        (2, 2),
        (2.1, 2.5),
        (0.03, 0.05),
        (0.06, 0.1),
        (51, 100),
    ],
)
def test_steps_are_the_next_round_number(least, step):
    assert round_step(least) == pytest.approx(step)


def test_an_axis_of_signed_numbers_holds_them_and_zero_with_room():
    for values, low, high in (
        ([3.0, np.nan], -0.18, 3.18), ([-1.0, 1.0, np.inf], -1.12, 1.12), ([-2.0], -2.12, 0.12),
        ([], -0.05, 0.05), ([0.0], -0.05, 0.05),
    ):  # fmt: skip
        axis = axis_of(values)
        assert (axis.low, axis.high) == pytest.approx((low, high))


def test_paths_join_points():
    assert path([0, 50], [10.126, 20]) == "M0.00 10.13L50.00 20.00"
    assert path([], []) == ""
    assert path(np.arange(240), np.zeros(240)).count("L") == 239
    long = path(np.arange(10_000), np.zeros(10_000))
    assert long.count("L") == 239
    assert long.startswith("M0.00 0.00L")
    assert long.endswith("L9999.00 0.00")


def test_what_is_drawn_is_in_percent_from_the_top():
    plot = Plot(Axis(0, 10), Axis(0, 2), "")
    plot.line([0, 10], [0, 2], "a")
    plot.band([0, 10], [0, 0.5], [1, 2], "b")
    plot.points([5], [0.5], "c")
    plot.spans([2.5], [0.5], [1.5], "d")
    assert plot.paths == [
        ("M0.00 100.00L100.00 0.00", "line a"),
        ("M0.00 100.00L100.00 75.00L100.00 0.00L0.00 50.00Z", "band b"),
    ]
    assert plot.dots == [(50, 75, "c")]
    assert plot.whiskers == [(25, 75, 25, "d")]


def box(plot, label):
    """Return the left, top, right and bottom of a label, in pixels."""
    wide, high = half_size(label.text)
    x = label.x * plot.width / 100 + label.dx
    y = label.y * plot.height / 100 + label.dy
    return x - wide, y - high, x + wide, y + high


def covers(around, across, down, room=0.0):
    left, top, right, bottom = around
    inside = (left - room < across) & (across < right + room)
    return (inside & (top - room < down) & (down < bottom + room)).any()


@pytest.mark.parametrize("seed", range(20))
def test_labels_hide_nothing_where_there_is_room(seed):
    rng = np.random.default_rng(seed)
    plot = Plot(Axis(), Axis(), "", 180)
    x, y = np.sort(rng.random(4)), rng.random(4)
    ends = np.array([0.0, 1.0]), rng.random(2)
    whisker = 0.1 + 0.8 * rng.random(), np.array([0.2, 0.6])
    plot.points(x, y, "as_given")
    plot.line(*ends, "reference")
    plot.spans(np.array([whisker[0]]), whisker[1][:1], whisker[1][1:], "as_given")
    for k in range(3):
        plot.note(x[k], y[k], f"label {k}", "muted")
    share = np.linspace(0, 1, 500)
    boxes = [box(plot, label) for label in plot.labels]
    for k, around in enumerate(boxes):
        left, top, right, bottom = around
        assert left >= 0 <= top
        assert right <= plot.width + 8
        assert bottom <= plot.height
        assert not covers(around, x * plot.width, (1 - y) * plot.height, 6.9)
        line = ends[1][0] + share * (ends[1][1] - ends[1][0])
        assert not covers(around, share * plot.width, (1 - line) * plot.height)
        upright = whisker[1][0] + share * (whisker[1][1] - whisker[1][0])
        at = np.full(500, whisker[0]) * plot.width
        assert not covers(around, at, (1 - upright) * plot.height)
        for other in boxes[:k]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_a_label_far_from_its_point_has_a_line_to_it():
    wide, high = half_size("abcd")
    assert (wide, high) == pytest.approx((4 * 6.9 / 2 + 3, 10))
    beside = Label(50, 50, wide + 24, 0, "abcd", "muted")
    assert beside.leader == pytest.approx((0, 17))
    assert Label(50, 50, 0, -high - 24, "abcd", "muted").leader == pytest.approx((-90, 17))
    assert Label(50, 50, wide + 13, 0, "abcd", "muted").leader is None
    assert Label(50, 50, 0, 0, "abcd", "muted").leader is None
    angle, length = Label(50, 50, -60, 60, "abcd", "muted").leader
    assert angle == pytest.approx(135)
    assert length == pytest.approx(math.hypot(60 - high, 60 - high) - 7)  # up to the text's edge


def first_place(plot, x, y, text):
    """The first place around some points, from near to far, that is inside and hides least."""
    wide, high = half_size(text)
    best = None
    for radius in (15, 24, 36, 50, 70):
        for a, b in zip(x, y, strict=True):
            for k in range(16):
                angle = 2 * np.pi * (k + 0.5) / 16
                dx, dy = np.cos(angle) * (radius + wide), np.sin(angle) * (radius + high)
                left, top = a * plot.width + dx, (1 - b) * plot.height + dy
                out = left < wide or left + wide > plot.width + 8
                out = out or top < high or top + high > plot.height
                hides = sum(
                    one[0] < left + wide and one[2] > left - wide
                    and one[1] < top + high and one[3] > top - high
                    for one in plot._taken or [(0, 0, 0, 0)]
                )  # fmt: skip
                if best is None or hides + 1000 * out < best[0]:
                    best = hides + 1000 * out, (100 * a, 100 - 100 * b, dx, dy)
    return best[1]


@pytest.mark.parametrize("seed", range(6))
def test_labels_take_the_first_place_that_hides_least(seed):
    rng = np.random.default_rng(seed)
    plot = Plot(Axis(), Axis(), "", 120, 170)
    for k in range(12):  # until there is little room
        x, y = rng.random((2, 1 + k % 2)).round(2)
        text = "label" * (1 + k % 3)
        expected = first_place(plot, x, y, text)
        plot.note(x, y, text, "muted")
        assert plot.labels[-1][:4] == pytest.approx(expected)
        left, top, right, bottom = plot._taken[-1]
        assert (left, top, right, bottom) == pytest.approx(box(plot, plot.labels[-1]))
        plot.points(x, y, "dot")


def test_places_that_are_taken():
    plot = Plot(Axis(), Axis(), "", 180)
    plot.points([0.5], [0.25], "dot")
    assert plot._taken == [(143, 128, 157, 142)]
    plot = Plot(Axis(), Axis(), "", 180)
    plot.line([0, 1], [0, 1], "a")
    middle = np.transpose([np.linspace(0, 300, 43), np.linspace(180, 0, 43)])  # 350 / 8
    around = np.hstack([middle - 1.5, middle + 1.5])
    np.testing.assert_allclose(plot._taken, around, atol=1e-9)
    plot = Plot(Axis(), Axis(), "", 180)
    plot.spans([0.5], [0.25], [0.75], "a")  # upright, 90 pixels
    assert len(plot._taken) == 11
    assert plot._taken[0] == pytest.approx((148.5, 133.5, 151.5, 136.5))
    assert plot._taken[-1] == pytest.approx((148.5, 43.5, 151.5, 46.5))
    plot = Plot(Axis(), Axis(), "", 180)
    plot.line([0, 0.04, 0.04], [0, 0, 0], "a")  # of 12 and of no pixels
    assert [one[0] for one in plot._taken] == pytest.approx([-1.5, 10.5, 10.5, 10.5])
