"""One value far outside all others decides neither the map of the others nor their forecasts."""

import numpy as np
import pytest

from followed import followed
from trajscore import PlattCrossFitCalibrator, PrefixForecaster, TrajectoryArray
from trajscore.calibration import EnsembleCrossFitCalibrator, IsotonicCrossFitCalibrator

RNG = np.random.default_rng(0)
Y = RNG.permutation(np.repeat([0, 1], 30))
CELLS = np.clip(np.repeat(40 + 20 * Y, 3) + 15 * RNG.standard_normal(180), 1, 99).round()
CASES = {
    "platt": PlattCrossFitCalibrator(link="identity"),
    "auto": EnsembleCrossFitCalibrator(link="identity"),
    "isotonic": IsotonicCrossFitCalibrator(),
    "last": PrefixForecaster(features="last"),
    "running": PrefixForecaster(features="running", pooled=True),
}


def runs_with(**cells):
    values = CELLS.copy()
    for cell, value in cells.items():
        values[int(cell[1:])] = value
    return TrajectoryArray(values, np.full(60, 3))


@pytest.mark.parametrize("value", [1e4, 9.2e124, 1e300, -1e9])
@pytest.mark.parametrize("name", CASES)
def test_an_outlier_counts_as_the_nearest_of_the_others(name, value):
    nearest = CELLS.max() if value > 0 else CELLS.min()
    odd, usual = runs_with(c22=value), runs_with(c22=nearest)
    model = CASES[name]
    np.testing.assert_array_equal(
        model.fit(odd, Y).transform(odd).cells, model.fit(usual, Y).transform(usual).cells
    )
    forecasts = model.transform(usual).cells
    np.testing.assert_array_equal(model.transform(odd).cells, forecasts)  # one of a new run
    np.testing.assert_allclose(followed(model, odd), forecasts, rtol=1e-12)


def test_what_is_not_far_out_or_not_rare_stays():
    def fitted(**cells):
        return CASES["platt"].fit(runs_with(**cells), Y).full_map_

    reach = float(np.abs(CELLS - np.median(CELLS)).max())
    assert fitted(c22=np.median(CELLS) + 9 * reach).scale > 1.5 * fitted().scale
    rare, mode = ({f"c{k}": 1e6 for k in range(n)} for n in (9, 10))  # 1 in 20 of 180
    assert fitted(**rare).scale < 30
    assert fitted(**mode).scale > 1e5
    flag = TrajectoryArray(np.where(np.arange(180) % 40 == 0, 1e6, 0.0), np.full(60, 3))
    assert CASES["platt"].fit(flag, Y).full_map_.scale > 1e5  # the others do not vary
