"""The colours of pictures and pages can be seen, and told apart, by everyone."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from trajscore.plotting._display import COLORS, GREY, SERIES, SHADES

WHITE, DARK = "#ffffff", "#121212"
# What people without one kind of cone see (Machado, Oliveira and Fernandes 2009, severity 1).
EYES = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(color):
    c = np.array(to_rgb(color))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def luminance(color):
    return linear(color) @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = (np.array(to_xyz) @ rgb) / [0.9505, 1, 1.089]
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def seen(color, eye):
    return lab(np.clip(np.array(EYES[eye]) @ linear(color), 0, 1))


def test_contrast_is_the_one_of_wcag():
    assert contrast("#000000", WHITE) == pytest.approx(21)
    assert contrast("#777777", WHITE) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("page", [WHITE, DARK])
def test_colours_stand_out(page):
    assert min(contrast(color, page) for color in {*SERIES, *COLORS.values()}) >= 3


@pytest.mark.parametrize("eye", EYES)
def test_colours_are_told_apart(eye):
    # 2.3 is just noticeable; side by side in a legend a few times that is needed
    for one, other in combinations({*SERIES, GREY}, 2):
        assert np.linalg.norm(seen(one, eye) - seen(other, eye)) > 15, (one, other)


@pytest.mark.parametrize("eye", EYES)
def test_more_is_darker(eye):
    assert (np.diff([seen(color, eye)[0] for color in SHADES]) < -10).all()
