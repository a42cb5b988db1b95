"""What each predictor is worth against the base rate and the length of runs, in one sentence."""

from __future__ import annotations

import pandas as pd

from trajscore.report._data import CALIBRATED, MARGIN, OVER_LENGTH, RAW, ReportData

FORMS = {RAW: "as given", CALIBRATED: "calibrated"}

# A difference of two scores that is smaller than this share of them is rounding.
_ROUNDING = 1e-12


def verdicts(data: ReportData) -> list[str]:
    """Return one sentence for each predictor, in the order of the table."""
    margins = data.intervals.xs(data.score_name, level="metric")
    ranks = data.intervals.xs("AUROC", level="metric")
    is_log = data.options.scores[0] == "log"
    sentences = []
    for name in data.predictors:
        parts = []
        for form, words in FORMS.items():
            if (name, form) in margins.index:
                parts.append(f"{words} {_over_base_rate(margins.loc[(name, form)], is_log)}")
            elif form == RAW:
                parts.append("as given it is not a probability")
        parts.append(_over_length(ranks.loc[(name, RAW)]))
        sentences.append(f"{name}: " + "; ".join(parts) + "." + _without_unobserved(data, name))
    return sentences


def is_told_apart(low: float, high: float) -> int:
    """Tell on which side of zero an interval lies: 1 above, -1 below, 0 on both."""
    return int(low > 0) - int(high < 0)


def _over_base_rate(row: pd.Series, is_log: bool) -> str:
    margin, low, high = (row[name] for name in MARGIN)
    if max(abs(margin), abs(low), abs(high)) <= _ROUNDING * abs(row["value"]):
        return "the same as the base rate"
    digits, unit = (_digits(is_log), " nats" if is_log else "")
    size, span = f"{abs(margin):{digits}}{unit}", f"[{low:+{digits}}, {high:+{digits}}]"
    return {
        1: f"{size} better than the base rate {span}",
        -1: f"{size} worse than the base rate {span}",
        0: f"not told apart from the base rate {span}",
    }[is_told_apart(low, high)]


def _without_unobserved(data: ReportData, name: str) -> str:
    """Say what dropping the runs without an outcome would make of the margins."""
    if "observed_only" not in data.sensitivity:
        return ""
    digits = _digits(data.options.scores[0] == "log")
    parts = []
    for form, words in FORMS.items():
        if (name, form) in data.sensitivity.index:
            margin, other = data.sensitivity.loc[(name, form), ["margin", "observed_only"]]
            flips = ", the other sign" if margin * other < 0 else ""
            parts.append(f"{other:+{digits}} {words} (by {other - margin:+{digits}}{flips})")
    runs = f"{data.facts.n_censored} unobserved run{'s' * (data.facts.n_censored > 1)}"
    return f" Without the {runs} these margins would be {', '.join(parts)}."


def _digits(is_log: bool) -> str:
    return ".3f" if is_log else ".3g"


def _over_length(row: pd.Series) -> str:
    margin, low, high = (row[name] for name in OVER_LENGTH)
    words = {
        1: "it ranks runs better than their length does",
        -1: "it ranks runs worse than their length does",
        0: "it is not shown to rank runs better than their length does",
    }[is_told_apart(low, high)]
    return f"{words} (AUROC {margin:+.3f} [{low:+.3f}, {high:+.3f}])"
