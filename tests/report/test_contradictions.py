"""Which metrics recalibration moves against the leading score, of gains made by hand."""

from types import SimpleNamespace

import pandas as pd
import pytest

from trajscore.report._contradictions import contradictions
from trajscore.report._data import GAIN

BETTER, WORSE, OPEN = (0.1, 0.05, 0.2), (-0.1, -0.2, -0.05), (0.1, -0.1, 0.2)
CROSS_FIT = "PlattCrossFitCalibrator()"
ORDER = "an increasing map keeps the order of values, but two cross-fitting maps are mixed and "
MEAN = ", and a mean of mapped steps ranks runs otherwise than the mean of the steps"


def data_of_gains(gains, phi="weighted", calibrators=None):
    keys = pd.MultiIndex.from_tuples(gains, names=["predictor", "metric"])
    return SimpleNamespace(
        calibration_gain=pd.DataFrame(list(gains.values()), index=keys, columns=GAIN),
        score_name="TPS log",
        options=SimpleNamespace(phi=phi),
        facts=SimpleNamespace(calibrators=calibrators),
    )


def gains_of(metrics, name="a", score=BETTER):
    return {(name, "TPS log"): score} | {(name, metric): three for metric, three in metrics.items()}


@pytest.mark.parametrize(
    ("score", "metrics", "named"),
    [
        (BETTER, {"S-ECE": WORSE}, "TPS log better, but makes S-ECE (a) worse: S-ECE weighs gaps"),
        (WORSE, {"S-ECE": BETTER}, "TPS log worse, but makes S-ECE (a) better: S-ECE weighs gaps"),
        (BETTER, {"S-ECE early": WORSE, "S-ECE late": WORSE, "S-ECE middle": BETTER},
         "TPS log better, but makes S-ECE early and S-ECE late (a) worse: one map serves early"),
        (BETTER, {"S-ECE": BETTER, "AUROC": OPEN}, None),
        (WORSE, {"S-ECE": WORSE}, None),
        (OPEN, {"S-ECE": WORSE, "AUROC": BETTER}, None),  # the score itself does not move
        (BETTER, {"MCB log": WORSE}, None),  # of which it is no surprise
    ],
)  # fmt: skip
def test_metrics_that_move_against_the_score(score, metrics, named):
    said = contradictions(data_of_gains(gains_of(metrics, score=score)))
    assert len(said) == (named is not None)
    assert all(one.startswith(f"Recalibration makes {named}") for one in said)


def test_predictors_with_one_reason_share_a_sentence():
    gains = gains_of({"S-ECE": WORSE}) | gains_of({"S-ECE": WORSE, "AUROC": WORSE}, "b")
    gains |= gains_of({"S-ECE": BETTER}, "c", WORSE)
    gains |= {("d", "S-ECE"): WORSE}  # without a score
    first, ranks, other = contradictions(data_of_gains(gains))
    why = "S-ECE weighs gaps by their size, the score by what they cost"
    assert first == (
        f"Recalibration makes TPS log better, but makes S-ECE (a); S-ECE (b) worse: {why}"
    )
    assert ranks == (
        "Recalibration makes TPS log better, but makes AUROC (b) worse: the calibrator is not one "
        "increasing map, so it can rank runs differently"
    )
    assert other == f"Recalibration makes TPS log worse, but makes S-ECE (c) better: {why}"


@pytest.mark.parametrize(
    ("phi", "priced"),
    [
        ("mean", "the mean of a run's recalibrated forecasts lies too near the base rate"),
        ("weighted", "the mean of a run's recalibrated forecasts lies too near the base rate"),
        ("last", "the last forecast of a run is not what was recalibrated, which is all of them"),
        ("min", "the min forecast of a run is not what was recalibrated, which is all of them"),
    ],
)
@pytest.mark.parametrize("calibrators", [{"a": CROSS_FIT}, {"b": CROSS_FIT}, {}, None])
def test_reasons_of_metrics_of_runs(phi, priced, calibrators):
    metrics = {"T-Brier": WORSE, "AUROC": WORSE}
    costs, ranks = contradictions(data_of_gains(gains_of(metrics), phi, calibrators))
    assert costs.endswith(f"makes T-Brier (a) worse: these judge one number a run, and {priced}")
    why = "the calibrator is not one increasing map, so it can rank runs differently"
    if calibrators == {"a": CROSS_FIT}:
        why = f"{ORDER}clipped values tie{MEAN * (phi in ('mean', 'weighted'))}"
    assert ranks.endswith(f"makes AUROC (a) worse: {why}")
