"""What section 5.2 of the paper asks every evaluation to say, and what else a reader should know.

References
----------
Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 5.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from trajscore.core.ties import SUM_ROUNDING
from trajscore.inference.influence import FEW_CLUSTERS
from trajscore.inference.mean_intervals import ENOUGH, FEWEST_OF_DIFFERENCES
from trajscore.report._data import (
    BASE_RATE,
    BOOTSTRAP,
    CONSTANT,
    FORMS,
    INFLUENCE,
    Facts,
    Note,
    ReportData,
)
from trajscore.report._left_out import number_of_runs

_SAME_RATE = 5e-4


# -------------------------------------------------------------------- of single predictors


NOTES: dict[str, Callable[..., str]] = {
    "outside": lambda place, value, n: (
        f"{place}: {value:g} lies outside [0, 1]{f' (the first of {n} such values)' * (n > 1)}; "
        f"correct it if this is a probability."
    ),
    "filled": lambda share: f"{share:.1%} of its values were missing; the value before was used.",
    "leakage": lambda how: (
        f"{how}. If it is the outcome, or was made from it, ignore all results of this predictor."
    ),
    "risk": lambda auroc: (
        f"its AUROC is {auroc:.3f}: high values go with failure. If it is a risk, give 1 minus it, "
        f"or minus it (on the command line, --risk)."
    ),
    "few clusters": lambda n, effective: (
        f"there are {n} clusters of runs"
        + f", equivalent to {effective:.1f} equally large ones" * (effective <= n - 0.5)
        + f". Intervals from fewer than {FEW_CLUSTERS} may be too narrow: add runs of more tasks."
    ),
    "heavy run": lambda run, steps, share: (
        f"run {run} ({steps:,} steps) has {share:.0%} of the weight of all forecasts and moves "
        f"every score. A horizon, such as horizon=30, limits the weight of a run."
    ),
    "small groups": lambda kind, n, n_groups: (
        f"{n} of {n_groups} groups by {kind} {'has' if n == 1 else 'have'} fewer than 20 runs. A "
        f"score divides by the weight of the group's steps, so an average over such groups may "
        f"prefer the wrong predictor."
    ),
    "too few runs": lambda: "left out; it has too few complete runs of both outcomes.",
    "not calibrated": lambda why: f"not recalibrated; {why}",
    "constant maps": lambda maps: (
        f"in {'one of the two' if len(maps) == 1 else 'both'} cross-fitting folds no "
        f"increasing map of the signal helps: it points the wrong way, or does not vary. The runs "
        f"of that fold get the base rate."
    ),
    "not monitored": lambda why: f"not monitored; {why}",
    "sampled": lambda n, n_runs: (
        f"values and margins are of {n_runs:,} runs, read in batches; widths of intervals, cards, "
        f"pictures and the other tables are of {n:,} of them, drawn by a hash of their names."
    ),
}
"""Sentence of each kind of note, from its facts."""


def sentence(note: Note) -> str:
    """Write a note for people."""
    return f"{note.predictor}: {NOTES[note.kind](**note.facts)}"


def without_variation(value: float) -> str:
    """Say of a predictor that it has one value."""
    digits = f"{value:.2f}" if math.isclose(value, round(value, 2)) else f"{value:.4g}"
    return f"does not vary: it is {digits} at every step"


# -------------------------------------------------------------------- of the evaluation


def identification(data: ReportData) -> str:
    """Say what was judged, when, by which version and command."""
    source = data.source
    known = [source.name, source.created, f"trajscore {source.version}", source.command]
    return ", ".join(part for part in known if part)


def disclosures(data: ReportData) -> dict[str, str]:
    """Say what was computed, of which runs, and under which assumptions."""
    options, facts = data.options, data.facts
    texts = {
        "runs": (
            f"{population(facts)}; {facts.success_rate:.3f} of the {facts.n_observed:,} with an "
            f"observed outcome succeeded"
        ),
        "score": "; ".join(
            [
                f"Trajectory Proper Scores ({', '.join(options.score_names)}), higher is better",
                *_clipping(data),
                *(
                    f"{family.name} {family.emphasis}"
                    for family in options.families
                    if family.emphasis
                ),
            ]
        ),
        "weights": _weights(data),
        "aggregation": (
            f"{options.phi} value of each trace, for AUROC, AUPRC, AURC, T-ECE, T-Brier (failures "
            f"are the positive class) and ECUAS (the answer is accepted or rejected; u = 1 - that "
            f"value, many possible answers, lower is better)"
        ),
        "calibration": _calibration(facts.calibrators),
        "censoring": _censoring(facts),
        "intervals": _intervals(data),
        "equal length": (
            "AUROC at a step is of the forecasts of that step, of the runs that are at least that "
            "long; AUROC among runs of equal length is over pairs of one failure and one success "
            "whose lengths are equal or, beyond 10 steps, differ by a tenth at most; it is held "
            "against ranking each pair by the difference in length that is left; forecasts made "
            "out of fold are compared within folds"
        ),
    }
    if facts.monitoring is not None:
        texts["monitoring"] = (
            f"{facts.monitoring.rule!r}, fitted on {facts.monitoring.known_share:.0%} of the "
            f"complete runs and judged on the others; means over {facts.monitoring.n_splits} "
            f"random splits with 95% intervals over splits; power: share of failing runs that are "
            f"flagged; before the end: before their last step; steps saved: share of its own steps "
            f"that come after the flag, as a mean over failing runs"
        )
        if facts.monitoring.cost is not None:
            name = facts.monitoring.cost_name
            texts["monitoring"] += f"; {name} saved: the same share of its own {name}"
    return texts


def _clipping(data: ReportData) -> list[str]:
    """Say what the clip of a score does; nothing where no score clips."""
    clipping = [family for family in data.options.families if family.clip is not None]
    if not clipping:
        return []
    first = clipping[0]
    clip = f"{first.clip:g}".replace("e-0", "e-")
    sentences = [
        f"{first.keyword} scores in {first.unit}, forecasts clipped to [{clip}, 1 - {clip}]"
    ]
    for (name, form), row in data.sensitivity[data.sensitivity["clipped"] > 0].iterrows():
        margin = (
            f" (its margin would be {row['clip_1e-2']:+.3f} with a clip of 1e-2)"
            if data.options.is_clipped and "clip_1e-2" in row
            else ""
        )
        sentences.append(
            f"{row['clipped']:.1%} of the forecasts of {name} {FORMS[form]} are clipped{margin}"
        )
    return sentences


def _weights(data: ReportData) -> str:
    weights = data.options.weights
    if not weights.is_own:
        return _step_weights(data)
    text = (
        f"{weights.schedule_name}, adding up to one over each run's own horizon (the convention of "
        f"the paper, which rewards leaning towards how short runs end)"
    )
    if data.facts.n_beyond:
        text += (
            f"; {number_of_runs(data.facts.n_beyond)} with an observed outcome have a horizon "
            f"beyond their end, so that their forecasts weigh less than those of others: the "
            f"horizon of a run that came to its end is its length"
        )
    error = data.table.loc[(BASE_RATE, CONSTANT), "S-ECE"]
    if error > SUM_ROUNDING:
        text += (
            f"; runs that were cut off before their horizon weigh less than the others, so that "
            f"the base rate, the mean over runs, has an S-ECE of {error:.3f}"
        )
    return text


def _step_weights(data: ReportData) -> str:
    """Say what a forecast counts, and where the rates over forecasts and over runs differ."""
    weights, facts = data.options.weights, data.facts
    counts = "1/sqrt(t)" if weights.schedule == "early" else f"its {weights.schedule_name} weight"
    text = (
        f"{weights.name}: the forecast at step t counts {counts}, whatever the length of its run, "
        f"and a score is divided by the weight of all forecasts"
    )
    if facts.n_unscored:
        text += f"; {facts.n_unscored:,} steps beyond the horizon are not scored"
    of_runs = float(data.labels[BASE_RATE, CONSTANT].mean())
    if abs(facts.rate - of_runs) > _SAME_RATE:
        text += (
            f"; the best constant is the success rate over forecasts, {facts.rate:.3f}, where the "
            f"rate over runs is {of_runs:.3f}"
        )
    return text


def population(facts: Facts) -> str:
    """Say which runs every number is of, and what unobserved ones stand for."""
    runs = number_of_runs(facts.n_runs)
    if facts.censored == "drop":
        return f"{runs} with an observed outcome; those without one are left out"
    if not facts.n_censored:
        return f"{runs}, all with an observed outcome"
    stand_for = "their q_z of a success" if facts.censored == "q_z" else "failures"
    return f"{runs}; the {facts.n_censored:,} without an observed outcome count as {stand_for}"


def left_out(data: ReportData, most: int = 1000) -> str:
    """Say how many runs were left out, and for which reasons."""
    if data.excluded.empty:
        return "Left out: no run"
    rows = data.excluded.sort_values("n_runs", ascending=False, kind="stable")
    reasons = [
        f"{number_of_runs(n)} ({'' if predictor == 'all' else f'of {predictor}: '}{reason})"
        for predictor, reason, n in rows.itertuples(index=False)
    ]
    if len(reasons) > most:
        reasons[most:] = [number_of_runs(int(rows["n_runs"][most:].sum())) + " for other reasons"]
    return f"Left out: {'; '.join(reasons)}"


def _intervals(data: ReportData) -> str:
    """Say how intervals were made, and of which metrics by bootstrap where influences do not do."""
    facts, draws = data.facts, data.facts.intervals
    resampled = f"bootstrap (BCa, {draws.n_resamples} replicates)"
    methods = data.interval_methods
    drawn = methods.index[(methods == BOOTSTRAP).any(axis=1)]
    how = resampled
    if draws.intervals != "bootstrap":
        how = "from the influence of each run on a metric, with t quantiles"
    if draws.intervals == "auto" and len(drawn):
        names = dict.fromkeys(drawn.get_level_values("metric"))
        how += (
            f"; by {resampled} where fewer than {ENOUGH} "
            f"{'clusters' if facts.is_clustered else 'runs'} (or a quarter of all, if that is "
            f"less) carry the variance, or few have a rare outcome, which is so for some of "
            f"{', '.join(names)}"
        )
    summed = methods.index[(methods == INFLUENCE).any(axis=1)]
    if draws.intervals == BOOTSTRAP and len(summed):  # those of runs read in batches
        names = dict.fromkeys(summed.get_level_values("metric"))
        how += f"; those of {', '.join(names)} from the influence of each run, with t quantiles"
    unit = "cluster of runs" if facts.is_clustered else "run"
    leading = data.intervals.xs(data.score_name, level="metric")
    if (leading["margin"].notna() & leading["margin_low"].isna()).any():
        how += (
            f"; differences with fewer than {FEWEST_OF_DIFFERENCES} runs of an outcome have none, "
            f"as it would hold too seldom"
        )
    return (
        f"{draws.confidence_level:.0%}, {how}; {level_of_margins(data)}; paired by {unit}; wide "
        f"enough for losses that no run has shown yet; those of calibration "
        f"errors are bounds that hold near 0 too, those of {data.options.miscalibration} upper "
        f"bounds; recalibration is taken as it is"
    )


def level_of_margins(data: ReportData) -> str:
    """Say at which level the intervals of leading margins are."""
    n, level = len(data.cards), data.facts.intervals.confidence_level
    at_once = f" for all {n} predictors at once" if n > 1 else ""
    return f"intervals of {data.score_name} margins hold at {100 * level:.3g}%{at_once}"


def _calibration(calibrators: dict[str, str] | None) -> str:
    """Name every calibrator that made a row, and its predictors where there are several."""
    if calibrators is None:
        return "none"
    by_calibrator: dict[str, list[str]] = {}
    for predictor, calibrator in calibrators.items():
        by_calibrator.setdefault(calibrator, []).append(predictor)
    if not by_calibrator:
        return "none could be fitted"
    if len(by_calibrator) == 1:
        text = f"{next(iter(by_calibrator))}, out of fold"
    else:
        each = (
            f"{calibrator} for {', '.join(names)}" for calibrator, names in by_calibrator.items()
        )
        text = "; ".join(each) + "; all out of fold"
    if any("EnsembleCrossFitCalibrator(" in calibrator for calibrator in by_calibrator):
        text += (
            "; the ensemble is the mean, in log-odds, of Platt's, a beta and an isotonic map (of "
            "signals that are not probabilities: without the beta map); the more runs, the more "
            "the isotonic map counts"
        )
    return text


def _censoring(facts: Facts) -> str:
    if facts.censored == "drop":
        return (
            "runs without an observed outcome are left out of every number, which is right only "
            "where what stopped them has nothing to do with how they would have ended"
        )
    if not facts.n_censored:
        return "none: every outcome was observed"
    how = (
        "each counts q_z as a success and 1 - q_z as a failure (the exact censored score if q_z is "
        "right)"
        if facts.censored == "q_z"
        else "counted as failures (the simple censored score, q_z = 0; it elicits the chance of an "
        "observed success)"
    )
    return (
        f"{facts.n_censored:,} of {facts.n_runs:,} runs not observed, {how}, in calibration, base "
        f"rate and every metric; stops are taken to be administrative (budgets that do not depend "
        f"on the outcome)"
    )
