"""What the leading margin over the base rate would be under other choices."""

from __future__ import annotations

import pandas as pd

from trajscore.metrics._tps import run_scores
from trajscore.report._data import Options
from trajscore.report._rows import CalibratorMaker, Row, base_rate, make_rows
from trajscore.report._runs import Judged


def sensitivity_table(
    rows: list[Row], judged: Judged, options: Options, maker: CalibratorMaker | None
) -> pd.DataFrame:
    """Return the margin of each row that is a probability, and without unobserved runs.

    For the latter, everything is fitted anew on the observed runs alone.
    """
    columns = {"margin": _margins(rows, options)}
    if not judged.runs.observed.all():
        columns["observed_only"] = _margins(make_rows(judged.observed(), maker, []), options)
    index = pd.MultiIndex.from_tuples([row.key for row in rows], names=["predictor", "form"])
    return pd.DataFrame(columns, index=index).dropna(subset="margin")


def _margins(rows: list[Row], options: Options) -> dict[tuple[str, str], float]:
    score, weights = options.scores[0], options.weights
    margins = {}
    for row in rows:
        if row.is_probability:
            constant, labels = base_rate(row.traces, row.runs), row.runs.labels
            gained = run_scores(labels, row.traces, score, weights)
            gained -= run_scores(labels, constant.traces, score, weights)
            margins[row.key] = float(gained.mean())
    return margins
