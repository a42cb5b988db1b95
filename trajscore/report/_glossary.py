"""What each number of a report means, in a line: tooltips of the page, help of the terminal."""

from __future__ import annotations

from trajscore.report._data import RUN_METRICS, Options

GLOSSARY = {
    "n_runs": "Runs that this row is judged on.",
    "n_censored": "Of these, runs whose outcome was not observed.",
    "TPS": "Trajectory Proper Score: the score of the forecast of every step, weighted by "
    "step; higher is better, and highest for the true chance of success.",
    "margin": "What the score is above that of the base rate on the same runs; above 0 is better.",
    "S-ECE": "Calibration error of the forecasts of steps: how far they are from the share of "
    "successes, on average; 0 is best. Early: steps 1 to 3; middle: 4 to 10; late: from 11 on.",
    "MCB": "Miscalibration: what the best monotone recalibration would gain; 0 is best.",
    **{name.partition("_")[0]: metric.meaning for name, metric in RUN_METRICS.items()},
    "over_length": "What the AUROC is above ranking these pairs by the small difference in length "
    "that is left; above 0 is better.",
    "over_alive": "What it is above counting steps, the end of a run not known; above 0 is better.",
    "over_alive_end": "What it is above counting steps that knows which step is the last.",
    "nats": "Unit of the log score: 0.1 nats is a factor of 1.1 in the chance given to what "
    "happened.",
    "base rate": "The best constant: the success rate over forecasts, with their weights; for one "
    "number a run, over runs.",
    "alive rate": "What counting steps is worth: the success rate of the runs still going, "
    "learnt from other runs. Runs are ranked by it within folds; where that is worse than chance, "
    "its rank metrics are those of chance.",
    "as given": "The values as they are in the data.",
    "recalibrated": "Recalibrated on other runs than those that are judged.",
    "interval": "From how much runs differ, at the level that is disclosed; of cards, for all "
    "cards at once.",
    "alpha": "Share of good runs that may be flagged.",
    "false alarms": "Share of good runs that were flagged.",
    "power": "Share of failing runs that were flagged.",
    "before the end": "Share of failing runs that were flagged before their last step.",
    "stops at step": "Step at which flagged runs are flagged, on average.",
    "steps saved": "Share of a failing run's steps that come after the flag, on average.",
    "cost saved": "Share of a failing run's cost that comes after the flag, on average.",
    "tokens saved": "Share of a failing run's tokens that come after the flag, on average.",
    "good, bad runs": "Runs that succeed and that fail, among those that the rule is judged on.",
    "values": "The values as they are in the data, over all steps.",
    "distinct values": "How many different values there are; few of them make ties.",
    "exactly 0 or 1": "Share of values that are certain: where one is wrong, the log score "
    "loses most.",
    "runs ended": "Runs that ended for this reason.",
    "with an outcome": "Of these, runs whose outcome was observed.",
    "success": "Share of successes among the runs with an outcome.",
    "left out": "Runs that are in no number of this page.",
    "metric as given": "The metric of the values as they are in the data.",
    "metric recalibrated": "The metric of the same runs, recalibrated.",
    "gain": "How much better recalibration makes the metric; above 0 is better.",
    "matters": "Differences below 2% of the base rate's own loss are taken not to matter.",
}


def explain(name: str) -> str:
    """Return the line for a column: its own, or that of its family.

    >>> explain("S-ECE late") == explain("S-ECE")
    True
    """
    if name in GLOSSARY:
        return GLOSSARY[name]
    if " over_" in name:
        return GLOSSARY[name.rpartition(" ")[2].removesuffix("_low").removesuffix("_high")]
    if " margin" in name:
        return GLOSSARY["margin"]
    return GLOSSARY[next(family for family in GLOSSARY if name.startswith(family))]


def arrow(name: str, options: Options) -> str:
    """Say which way a metric is better: up, down, or neither."""
    if name.startswith("n_"):
        return ""
    return "\u2193" if name in options.lower_is_better else "\u2191"
