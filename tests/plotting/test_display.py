"""The colours of curves can be seen, and told apart, by everyone."""

import functools
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from trajscore.datasets import make_trajectories
from trajscore.plotting import ReliabilityDisplay, TracerStripDisplay
from trajscore.tracer import TracerScorer

# What people without one kind of cone see (Machado, Oliveira and Fernandes 2009, severity 1).
EYES = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


@functools.cache
def drawn():
    """Colours of seven curves on shared axes, and of the reference beside them."""
    X, y = make_trajectories(60, random_state=0, return_X_y=True)
    _, ax = plt.subplots()
    curves = [ReliabilityDisplay.from_predictions(y, X, ax=ax).line_[0] for _ in range(7)]
    reference = next(line for line in ax.lines if line.get_label() == "perfectly calibrated")
    return [(to_hex(line.get_color()), line.get_linestyle()) for line in (*curves, reference)]


def linear(color):
    c = np.array(to_rgb(color))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(linear(color) @ [0.2126, 0.7152, 0.0722] for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(color, eye):
    rgb = np.clip(np.array(EYES[eye]) @ linear(color), 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = (np.array(to_xyz) @ rgb) / [0.9505, 1, 1.089]
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def test_colours_stand_out_and_come_again_with_another_dash():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)  # that of WCAG
    colors = [color for color, _ in drawn()]
    assert min(contrast(color, page) for color in colors for page in ("#ffffff", "#121212")) >= 3
    assert len(set(colors[:6])) == 6
    assert drawn()[6] == (colors[0], "-.")


@pytest.mark.parametrize("eye", EYES)
def test_colours_are_told_apart(eye):
    # 2.3 is just noticeable; side by side in a legend a few times that is needed
    for one, other in combinations({color for color, _ in drawn()}, 2):
        assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > 15, (one, other)


@pytest.mark.parametrize("eye", EYES)
def test_more_risk_is_darker(eye, signals):
    scorer = TracerScorer().fit(signals)
    shades = TracerStripDisplay.from_estimator(scorer, signals).line_.get_cmap()
    lightness = [lab(shades(share)[:3], eye)[0] for share in np.linspace(0, 1, 5)]
    assert (np.diff(lightness) < -5).all()
