import numpy as np
import pandas as pd
import pytest

from trajscore import TrajectoryArray
from trajscore.core.weights import WEIGHT_SCHEDULES
from trajscore.metrics import tps_score, tps_sensitivity


def test_every_cell_is_the_score_and_the_base_rate_is_a_predictor(ragged, rng):
    X, y = ragged
    rival = X.with_cells(rng.random(len(X.cells)))
    weight = rng.integers(0, 3, len(y))
    given = {"judge": X, "rival": rival}
    table = tps_sensitivity(y, given, sample_weight=weight)
    assert list(table.index.unique("score")) == ["log", "brier", "beta(4,2)"]
    rate = np.average(y, weights=weight)
    given["base rate"] = X.with_cells(np.full(len(X.cells), rate))
    for name, F in given.items():
        for score in ("log", "brier", ("beta", 4, 2)):
            for weights in WEIGHT_SCHEDULES:
                options = {"score": score, "weights": weights, "sample_weight": weight}
                label = score if isinstance(score, str) else "beta(4,2)"
                row = table.loc[(name, label, weights)]
                np.testing.assert_allclose(row["score"], tps_score(y, F, **options))
                base = tps_score(y, given["base rate"], **options)
                np.testing.assert_allclose(row["margin"], row["score"] - base, atol=1e-15)


def test_a_schedule_can_turn_the_ranks_over():
    early, late = [0.9, 0.55], [0.55, 0.9]
    X = TrajectoryArray(
        np.column_stack([early + early, late + late, late + late]),
        [2, 2],
        channels=["early", "late", "twin"],
    )
    table = tps_sensitivity([1, 1], X, scores=["brier"])
    ranks = table["rank"].unstack("weights")
    assert ranks.loc["base rate"].eq(1).all().all()
    assert ranks.loc["early", "linear_front"].item() == 2
    assert ranks.loc["late", "linear_front"].item() == 3
    assert ranks.loc["late"].equals(ranks.loc["twin"])
    assert ranks.loc["late", "linear_back"].item() == 2
    assert ranks.loc["early", "linear_back"].item() == 4
    flips = table["rank_flip"].unstack("weights")
    assert not flips["linear_front"].any()
    assert flips.loc["early", "linear_back"].all()
    # equal weights: all three tie, whatever rounding does to their sums
    assert ranks["uniform"].tolist() == [2, 2, 2, 1]
    assert not table["sign_flip"].any()


def test_the_sign_of_a_margin_can_flip():
    # better than the base rate of one half early, worse late
    X = TrajectoryArray([0.9, 0.3, 0.1, 0.7], [2, 2])
    table = tps_sensitivity([1, 0], X, scores=["brier"])
    assert table.loc[("forecast", "brier", "linear_front"), "margin"] > 0
    assert table.loc[("forecast", "brier", "linear_back"), "sign_flip"]
    assert not table.loc["base rate", "sign_flip"].any()
    # the base rate up to rounding is no better and no worse, under any schedule
    same = tps_sensitivity([1, 0, 0], np.full((3, 7), np.nextafter(1 / 3, 1)))
    assert (same["rank"] == 1).all()
    assert not same["sign_flip"].any()


def test_own_families_and_schedules_and_the_order_of_rows(ragged, rng):
    X, y = ragged
    options = {"scores": [("beta", 3, 1)], "weights": [np.ones, "uniform"]}
    table = tps_sensitivity(y, X, **options)
    np.testing.assert_allclose(*table["score"].unstack("weights").to_numpy().T)
    order = rng.permutation(len(y))
    first, again = (tps_sensitivity(*both) for both in ((y, X), (y[order], X[order])))
    pd.testing.assert_frame_equal(first, again)


@pytest.mark.parametrize(
    ("y", "traces", "match"),
    [
        ([1, -1], [[0.5], [0.5]], "row 1: the outcome is not observed"),
        ([1, 0], {"base rate": [[0.5], [0.5]]}, "rename the predictor"),
        ([1, 0], {"a": [[0.5], [1.5]]}, "predictor 'a': .* lies outside"),
        ([1, 0], {"a": [[0.5], [0.5]], "b": [[0.5], [0.5, 0.5]]}, "have 1 and 2 steps in row 1"),
        ([], TrajectoryArray([], []), "no runs"),
    ],
)
def test_bad_input(y, traces, match):
    with pytest.raises(ValueError, match=match):
        tps_sensitivity(y, traces)
