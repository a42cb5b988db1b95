"""Sentences about single predictors: what each is worth, against what, and what to know of it."""

import math
from collections import Counter
from collections.abc import Callable
from enum import StrEnum

import numpy as np

from trajscore.core.policy import MIN_EFFECTIVE_CLUSTERS, MIN_LABELLED_ERRORS, MIN_RUNS_PER_OUTCOME
from trajscore.core.score_families import digits_of
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.options import (
    AS_GIVEN,
    FORMS,
    OVER_ALIVE,
    OVER_ALIVE_END,
    REFERENCES,
    Note,
)
from trajscore.evaluation.recommendation import Action, Interval, Recommendation
from trajscore.report.glossary import (
    NOTES,
    Instruction,
    digits_that_show,
    fixed,
    happened,
    interval,
    listed,
    quoted,
    succeeded,
    with_interval,
)


class Side(StrEnum):
    """On which side of counting steps a number is shown to lie."""

    ABOVE = "better than"
    BELOW = "worse than"
    EITHER = "not shown to differ from"


def verdicts(data: Evaluation) -> list[str]:
    """Return a sentence for each predictor, in the order of the table."""
    sentences = []
    for name in data.predictors:
        best = data.recommendations[name]
        reason = card_reason(best, data)
        if not best.varies:
            reason = f"it {reason}"
        word = f"at its word: {best.at_its_word}" * bool(best.at_its_word)
        parts = [f"{name}: {best.action}", word, reason, *against_counting(data, name)]
        groups = [f" By {kind}, {of_groups(data, kind, name)}" for kind in data.groups_by_kind]
        sentences.append("; ".join(filter(None, parts)) + "." + "".join(groups))
    return sentences


# -------------------------------------------------------------------- cards


def without_variation(value: float) -> str:
    """Say of a predictor that it has one value."""
    style = ".2f" if math.isclose(value, round(value, 2)) else ".4g"
    return f"does not vary: it is {value:{style}} at every step"


def card_reason(best: Recommendation, data: Evaluation) -> str:
    """Say by what it was decided what to do with a predictor, with the intervals."""
    if not best.varies:
        return without_variation(best.only_value)
    is_probability = best.as_given.is_known
    how = "out of fold" if best.best_alone else FORMS[best.form]
    matters = amount(best.matters, data)
    if best.action == Action.AVOID and is_probability and best.form != AS_GIVEN:
        how = "recalibrated or not"
    elif not (is_probability or best.best_alone):
        how += " (as given it is not a probability)"
    if best.is_useful or best.action == Action.NO_GAIN:
        worth = f"{how}, {_size(best.margin, data)} better than the base rate"
        if not best.gain.is_known or best.gain.estimate == best.margin.estimate:
            return worth
        gain = _size(best.gain, data)
        if best.best_alone:
            return f"{worth}, {gain} better than {best.best_alone} alone"
        return f"{worth}; recalibration gains {gain}, where less than {matters} does not matter"
    if best.action == Action.AVOID:
        return (
            f"{how}, better than the base rate by no more than {amount(best.most, data)}; less "
            f"than {matters} does not matter"
        )
    if best.has_too_few_runs:
        return _too_few_runs(best, data)
    if not best.margin.is_known:
        return "not a probability, so that it has no score until it is recalibrated"
    low, high = (fixed(end, data.digits, "+") for end in best.margin[1:])
    return (
        f"{how}, anywhere from {low} to {high} over the base rate; about {best.n_needed:,} more "
        f"runs would settle this"
    )


def _too_few_runs(best: Recommendation, data: Evaluation) -> str:
    """Say that one outcome is too rare to draw a conclusion."""
    outcome = happened(succeeded(data), "were")
    enough = MIN_RUNS_PER_OUTCOME
    if best.success_rate > 0.5:
        outcome = "failed"
    return (
        f"only {best.n_rarer:.0f} of {best.n_runs:,} runs {outcome}; at least {enough} successes "
        f"and {enough} failures are needed to draw a conclusion"
    )


def _size(of: Interval, data: Evaluation) -> str:
    ends = interval(of.low, of.high, digits_that_show(of.estimate, data.digits))
    return f"{amount(of.estimate, data)} {ends}"


def amount(value: float, data: Evaluation) -> str:
    """Write a difference of the leading score, with as many digits as tell it from zero."""
    return f"{fixed(value, digits_that_show(value, data.digits))}{data.options.unit}"


def way_gone(best: Recommendation) -> str:
    """Write how far a predictor leads to a perfect forecast: "14% (10 to 18)"."""
    value, low, high = (fixed(100 * best.share(each), 0) for each in best.margin)
    return f"{value}% ({low} to {high})"


# -------------------------------------------------------------------- counting steps


def against_counting(data: Evaluation, name: str) -> list[str]:
    """Hold the form that is acted on, and the ranking as given, against counting steps."""
    best = data.recommendations[name]
    if not best.varies:
        return []
    how = "it" if best.best_alone else f"{FORMS[best.form]}, it"
    metrics = [(best.form, data.score_name, how), (data.first_form(name), "AUROC", "its ranking")]
    return [
        _counting(data, metric, subject, way, over)
        for form, metric, subject in metrics
        for way, over in _over_counting(data, (name, form, metric)).items()
    ]


def not_above_counting(data: Evaluation, name: str) -> str:
    """Say that a useful predictor is not shown to be better than counting steps; "" if it is."""
    best = data.recommendations[name]
    if best.is_useful:
        for way, over in _over_counting(data, (*best.key, data.score_name)).items():
            if not over.low > 0:
                return _counting(data, data.score_name, "it", way, over)
    return ""


def may_count_steps(data: Evaluation, name: str) -> bool:
    """Whether a useful predictor may only count steps, whose last one nobody knows yet."""
    if not not_above_counting(data, name):
        return False
    place = *data.recommendations[name].key, data.score_name
    return not data.intervals.loc[place, OVER_ALIVE[1]] > 0


def _over_counting(data: Evaluation, place: tuple[str, str, str]) -> dict[str, Interval]:
    """Return what a number is above each way of counting steps that its predictor may know."""
    if place not in data.intervals.index:
        return {}
    row = data.intervals.loc[place]
    live = {"counting steps": Interval(*row[OVER_ALIVE])}
    way = "counting steps where it is known which step is the last"
    with_end = {way: Interval(*row[OVER_ALIVE_END])}
    if data.facts.knows_end is not None:
        return with_end if data.facts.knows_end else live
    sides = {_side(over) for over in (live | with_end).values()}
    return live if len(sides) == 1 else live | with_end


def _counting(data: Evaluation, metric: str, subject: str, way: str, over: Interval) -> str:
    """Say on which side of counting steps a number lies: "it is better than counting steps"."""
    side = _side(over)
    digits = digits_of(metric)
    if side is not Side.EITHER:
        digits = digits_that_show(over.estimate, digits)
    number = with_interval(over, digits, "+")
    number = f"AUROC {number}" if metric == "AUROC" else f"{number}{data.options.unit}"
    return f"{subject} is {side} {way} ({number})"


def _side(over: Interval) -> Side:
    if over.low > 0:
        return Side.ABOVE
    return Side.BELOW if over.high < 0 else Side.EITHER


# -------------------------------------------------------------------- groups and stopping


def of_groups(data: Evaluation, kind: str, name: str = "") -> str:
    """Say whether groups differ for a predictor, or the best, and how many have which card."""
    name = name or data.best.predictor
    groups = [each for each in data.groups_by_kind[kind] if each.best.predictor == name]
    if len(groups) == 1:
        return "there is one group, so nothing to compare."
    differs = "is not shown to differ"
    advice = "go by all runs"
    if groups[0].differs:
        n_by_action = Counter(each.best.action for each in groups)
        differs = "differs"
        advice = ", ".join(f"{each} in {n_by_action[each]}" for each in Action if n_by_action[each])
    return (
        f"how well {name} works {differs} between the {len(groups)} groups "
        f"(p = {groups[0].p_value:.2g}): {advice}."
    )


def of_stopping(data: Evaluation) -> Instruction:
    """Say what a rule does on other runs, by the predictor with which it does most; or its flag."""
    table = data.monitoring
    if table is None:
        ask = "--monitor" if data.source.command else "monitoring=True"
        return Instruction("Chosen on these runs. Another rule, judged on others: ", ask, ".")
    none = Instruction(
        "These runs are too few, or too alike, to fit a rule on some and judge it on others."
    )
    if table.empty:
        return none
    flags = table.drop(list(REFERENCES), level=0, errors="ignore").dropna(subset="power_before_end")
    if flags.empty:
        return none
    levels = flags.index.get_level_values("alpha").unique().sort_values()
    at_level = flags.xs(levels[len(levels) // 2], level="alpha", drop_level=False)
    key = at_level["power_before_end"].idxmax()
    power, saved = flags.loc[key, ["power_before_end", "steps_saved"]]
    effect = (
        f"{power:.0%} of the failing runs are flagged before their last step, which saves "
        f"{saved:.0%} of their steps."
    )
    if not power:
        effect = "no failing run is flagged before its last step, so the rule saves nothing."
    return Instruction(
        f"By a rule that is fitted on some runs and judged on others: on {key[0]}, with "
        f"at most {100 * key[1]:.3g}% of the good runs flagged, {effect}"
    )


def of_first_errors(data: Evaluation) -> str:
    """Say whether signals find the first wrong step, and how much reading that saves."""
    labelled = data.first_errors
    if labelled is None:
        return ""
    wrong = labelled.labels[labelled.labels > 0]
    runs = f"{len(wrong):,} of {(labelled.labels >= 0).sum():,} labelled runs have a wrong step"
    if len(wrong) < MIN_LABELLED_ERRORS:
        runs += f"; label about {MIN_LABELLED_ERRORS} such runs before you trust this"
    if not labelled.windows:
        return (
            f"No signal is shown to find it better than the number of the step alone, which costs "
            f"nothing: read from the start ({runs})."
        )
    row = labelled.table.loc[labelled.best]
    ends = interval(row["low"], row["high"], 2)
    return (
        f"By {quoted(labelled.best)}, the first wrong step is found {row['difference']:.2f} nats "
        f"{ends} better than by the number of the step alone. A person reads "
        f"{row['steps_read']:.1f} steps up to it, the likeliest first; from the start "
        f"{wrong.mean():.1f} ({runs})."
    )


def of_window(data: Evaluation, row: int) -> str:
    """Say which steps of a run to read first, where signals find the wrong one."""
    labelled = data.first_errors
    if labelled is None or row not in labelled.windows:
        return ""
    step, first, last = labelled.windows[row]
    which = f"steps {first} to {last} first, of these step {step}"
    if first == last:
        which = f"step {step} first"
    text = f"Read {which}: in 90 of 100 runs with a wrong step, it is in such a window."
    label = labelled.labels[row]
    return f"{text} Its label is step {label}." if label > 0 else text


def without_threshold(data: Evaluation) -> str:
    """Say at which levels a stopping rule can flag no run, and what it needs; "" if at none."""
    if data.monitoring is None or data.monitoring.empty:
        return ""
    too_few = data.monitoring["too_few"].groupby(level="alpha").max()
    levels = too_few.index[too_few > 0.5].tolist()
    if not levels:
        return ""
    held_out = "successes"
    more = "runs"
    if data.runs.groups is not None:
        held_out = "tasks with a success"
        more = "tasks"
    alphas = " and ".join(f"{level:g}" for level in levels)
    from trajscore.monitoring import Conformal  # imported if asked for

    needs = Conformal().needs(levels[0])
    return (
        f"Stopping early flags no run at alpha = {alphas}: too few {held_out} are held out to set "
        f"a threshold (alpha = {levels[0]:g} needs {needs}). Collect more {more}."
    )


# -------------------------------------------------------------------- notes


def note_text(note: Note) -> str:
    """Write a note for people."""
    text = note.text
    if note.kind in NOTES:
        text = NOTES[note.kind].format(enough=MIN_EFFECTIVE_CLUSTERS, **note.facts)
    elif note.kind:
        text = _NOTES[note.kind](**note.facts)
    return f"{note.subject}: {text}"


def _outside(place: str, value: float, n: int, low: float = np.nan, high: float = np.nan) -> str:
    where = "outside [0, 1]"
    mistake = "a probability"
    if not math.isnan(low):
        where = f"far outside the others, {low:g} to {high:g}"
        mistake = "an error"
    first = f" (the first of {n} such values)" if n > 1 else ""
    return f"{place}: {value:g} lies {where}{first}; correct it if this is {mistake}."


def leakage_check(data: Evaluation) -> str:
    """Say what to check before using what is ahead; "" where the outcome did not leak into it."""
    signals = data.signals_of(data.best.predictor)
    notes = [note for note in data.remarks if note.kind == "leakage"]
    leaky = [quoted(note.subject) for note in notes if note.subject in signals]
    if not leaky:
        return ""
    return f"Make sure that no value of {listed(leaky)} was made from the outcome."


def _constant_maps(maps: list[str]) -> str:
    halves = "one of the two halves" if len(maps) == 1 else "both halves"
    return (
        f"in {halves} of the runs on which recalibration is learnt, higher values do not go with "
        f"more success; the runs that are recalibrated from there get the success rate."
    )


_NOTES: dict[str, Callable[..., str]] = {
    "outside": _outside,
    "constant maps": _constant_maps,
}
