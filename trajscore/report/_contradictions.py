"""Which metrics recalibration moves against the leading score, and why they can."""

from __future__ import annotations

from collections.abc import Sequence

from trajscore.report._data import GAIN, PRICED_METRICS, RANK_METRICS, STEP_ERRORS, ReportData
from trajscore.report._verdict import listed, side_of_zero


def contradictions(data: ReportData) -> list[str]:
    """Say which metrics, by their own intervals, recalibration moves against the leading score."""
    by_reason: dict[tuple[int, str], list[str]] = {}
    gains = data.calibration_gain
    scored = gains.index.get_level_values("metric") == data.score_name
    for name in gains.index[scored].get_level_values("predictor"):
        sides = {
            metric: side_of_zero(low, high)
            for metric, low, high in gains.loc[name, GAIN[1:]].itertuples()
        }
        helps = sides[data.score_name]
        for metrics, why in _reasons(data, name):
            against = [metric for metric in metrics if helps and sides.get(metric) == -helps]
            if against:
                by_reason.setdefault((helps, why), []).append(f"{listed(against)} ({name})")
    return [
        f"Recalibration makes {data.score_name} {'better' if helps > 0 else 'worse'}, but makes "
        f"{'; '.join(metrics)} {'worse' if helps > 0 else 'better'}: {why}"
        for (helps, why), metrics in by_reason.items()
    ]


def _reasons(data: ReportData, name: str) -> list[tuple[Sequence[str], str]]:
    """Return why metrics can move against the score, of each kind of metrics."""
    phi = data.options.phi
    is_mean = phi in ("mean", "weighted")
    collapsed = f"the {phi} forecast of a run is not what was recalibrated, which is all of them"
    if is_mean:
        collapsed = "the mean of a run's recalibrated forecasts lies too near the base rate"
    ranks = "the calibrator is not one increasing map, so it can rank runs differently"
    if "CrossFit" in (data.facts.calibrators or {}).get(name, ""):
        mean = ", and a mean of mapped steps ranks runs otherwise than the mean of the steps"
        ranks = (
            f"an increasing map keeps the order of values, but two cross-fitting maps are mixed "
            f"and clipped values tie{mean * is_mean}"
        )
    whole, *parts = STEP_ERRORS
    return [
        ([whole], "S-ECE weighs gaps by their size, the score by what they cost"),
        (parts, "one map serves early and late steps alike"),
        (PRICED_METRICS, f"these judge one number a run, and {collapsed}"),
        (RANK_METRICS, ranks),
    ]
