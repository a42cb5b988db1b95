import numpy as np
import pytest

from trajscore import TrajectoryArray
from trajscore.metrics import tps_score, tps_sensitivity

RAMPS = {  # w_t up to a factor
    "early": lambda t: t**-0.5,
    "uniform": np.ones_like,
    "linear_front": lambda t: 8 - t,  # over a horizon of 7
    "exponential_front": lambda t: 2.0**-t,
    "linear_back": lambda t: t,
}


def weight_of_runs(X, weights, horizon):
    """Weight of each run in the base rate over forecasts; in the paper each counts alike."""
    if horizon == "own":
        return np.ones(len(X))
    scored = X.lengths if horizon is None else np.minimum(X.lengths, horizon)
    return np.array([RAMPS[weights](np.arange(1.0, T + 1)).sum() for T in scored])


@pytest.mark.filterwarnings("ignore:horizon=7 leaves:UserWarning")
@pytest.mark.parametrize("horizon", [None, 7, "own"])
def test_every_cell_is_the_score_and_the_base_rate_is_a_predictor(ragged, rng, horizon):
    X, y = ragged
    weight = rng.integers(0, 3, len(y))
    predictors = {"judge": X, "rival": X.with_cells(rng.random(len(X.cells)))}
    table = tps_sensitivity(y, predictors, sample_weight=weight, horizon=horizon)
    assert list(table.index.unique("score")) == ["log", "brier", "beta(4,2)"]
    # linear_front falls to zero over a horizon, and needs one
    schedules = [w for w in RAMPS if horizon or w != "linear_front"]
    assert sorted(table.index.unique("weights")) == sorted(schedules)
    for weights in schedules:
        how = {"weights": weights, "horizon": horizon, "sample_weight": weight}
        rate = np.average(y, weights=weight * weight_of_runs(X, weights, horizon))
        flat = X.with_cells(np.full(len(X.cells), rate))
        for name, F in (predictors | {"base rate": flat}).items():
            for label, score in (("log", "log"), ("beta(4,2)", ("beta", 4, 2))):
                row = table.loc[(name, label, weights)]
                np.testing.assert_allclose(row["score"], tps_score(y, F, score=score, **how))
                base = tps_score(y, flat, score=score, **how)
                np.testing.assert_allclose(row["margin"], row["score"] - base, atol=1e-15)
        # no other constant does better
        for other in (rate - 0.01, rate + 0.01):
            constant = X.with_cells(np.full(len(X.cells), other))
            assert tps_score(y, constant, **how) < table.loc[("base rate", "log", weights), "score"]


def test_a_schedule_can_turn_the_ranks_over():
    first, last = [0.9, 0.55], [0.55, 0.9]
    cells = np.column_stack([first + first, last + last, last + last])
    X = TrajectoryArray(cells, [2, 2], channels=["first", "last", "twin"])
    table = tps_sensitivity([1, 1], X, scores=["brier"])
    ranks = table["rank"].unstack("weights")
    assert ranks.loc["base rate"].eq(1).all().all()
    assert ranks.loc["first", "early"].item() == 2
    assert ranks.loc["last", "early"].item() == 3
    assert ranks.loc["last"].equals(ranks.loc["twin"])
    assert ranks.loc["last", "linear_back"].item() == 2
    assert ranks.loc["first", "linear_back"].item() == 4
    flips = table["rank_flip"].unstack("weights")
    assert not flips["early"].any()
    assert flips.loc["first", "linear_back"].all()
    # equal weights: all three tie, whatever rounding does to their sums
    assert ranks["uniform"].tolist() == [2, 2, 2, 1]
    assert not table["sign_flip"].any()


@pytest.mark.parametrize("horizon", [None, 2, "own"])
def test_the_sign_of_a_margin_can_flip(horizon):
    # better than the base rate of one half early, worse late
    X = TrajectoryArray([0.9, 0.3, 0.1, 0.7], [2, 2])
    table = tps_sensitivity([1, 0], X, scores=["brier"], horizon=horizon)
    assert table.loc[("forecast", "brier", "early"), "margin"] > 0
    assert table.loc[("forecast", "brier", "linear_back"), "sign_flip"]
    assert not table.loc["base rate", "sign_flip"].any()
    # the base rate up to rounding is no better and no worse, under any schedule
    near = np.full((3, 7), np.nextafter(1 / 3, 1))
    same = tps_sensitivity([1, 0, 0], near, horizon=None if horizon is None else "own")
    assert (same["rank"] == 1).all()
    assert not same["sign_flip"].any()
