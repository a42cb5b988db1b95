"""What section 5.2 of the paper asks every evaluation to say, and what other choices would change.

References
----------
Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 5.2.
"""

from collections.abc import Mapping

import pandas as pd

from trajscore.core.outcomes import CENSORED
from trajscore.evaluation.evaluation import Evaluation, Facts
from trajscore.evaluation.options import BOOTSTRAP, INFLUENCE
from trajscore.evaluation.recommendation import Action, OtherChoice
from trajscore.evaluation.runs import ExclusionKind, number_of_runs
from trajscore.report.glossary import COUNTED_AS, RUN_SCORE
from trajscore.report.verdicts import listed, quoted, way_gone


def exclusion_texts(data: Evaluation, of_scores: bool) -> dict[str, int]:
    """Return the number of runs left out of every number, or of scores alone, by reason."""
    return {
        str(exclusion): n
        for exclusion, n in data.exclusions.items()
        if exclusion.is_of_scores == of_scores
    }


def excluded_table(data: Evaluation) -> pd.DataFrame:
    """Return how many runs do not count, or in success rates alone, by reason."""
    exclusions = sorted(data.exclusions.items(), key=lambda item: item[0].is_of_scores)
    rows = [("all", str(exclusion), n) for exclusion, n in exclusions]
    return pd.DataFrame(rows, columns=["predictor", "reason", "n_runs"])


def left_out(data: Evaluation, most: int = 1000) -> str:
    """Say how many runs were left out of every number or of scores, and for which reasons."""
    if not data.exclusions:
        return "Left out: no run"
    parts = []
    if reasons := exclusion_texts(data, of_scores=False):
        parts.append(f"Left out of every number: {_reasons(reasons, most)}")
    if reasons := exclusion_texts(data, of_scores=True):
        parts.append(f"Counted in success rates alone: {_reasons(reasons, most)}")
    text = ". ".join(parts)
    is_missing = ExclusionKind.MISSING_VALUES in (exclusion.kind for exclusion in data.exclusions)
    if is_missing and data.options.settings.missing != "ffill":
        ffill = "--missing ffill" if data.source.command else "EvaluationOptions(missing='ffill')"
        text += f"; {ffill} repeats the value before"
    return text


def _reasons(n_by_reason: Mapping[str, int], most: int) -> str:
    """Write numbers of runs with their reasons, the most frequent first."""
    ranked = sorted(n_by_reason.items(), key=lambda item: -item[1])
    parts = [f"{number_of_runs(n)} ({reason})" for reason, n in ranked]
    if len(parts) > most:
        n_others = sum(n for _, n in ranked[most:])
        parts[most:] = [f"{number_of_runs(n_others)} for other reasons"]
    return "; ".join(parts)


# -------------------------------------------------------------------- how it was made


def disclosures(data: Evaluation) -> dict[str, str]:
    """Return what was chosen, of which runs, and what was assumed, by what it concerns."""
    facts = data.facts
    options = data.options
    weights = options.weights
    source = data.source
    version = f"trajscore {source.version}"
    clipping = next((family for family in options.scores if family.clip is not None), None)
    clip = "" if clipping is None else f"{clipping.clip:g}".replace("e-0", "e-")
    phi = options.settings.phi
    emphases = [f"{each.name} {each.emphasis}" for each in options.scores if each.emphasis]
    schedule = "1/sqrt(t)" if weights.schedule == "early" else f"as {weights.schedule_name} says"
    divided = "the weight of all forecasts"
    if weights.is_own:  # the convention of the paper
        divided = "the weight of its run (not proper where the length of a run tells its outcome)"
    settings = {
        "runs": f"{runs_that_count(facts)}, {facts.n_outcomes:,} with an observed outcome, "
                f"of which {facts.success_rate:.3f} succeeded",
        "base rate": f"{facts.rate:.3f} over forecasts, {facts.rate_of_runs:.3f} over runs",
        "score": "; ".join([f"{', '.join(options.score_names)} (higher is better)", *emphases]),
        "clip": clip and f"[{clip}, 1 - {clip}]",
        "weights": f"{weights.name}: {schedule} at step t, divided by {divided}",
        "steps beyond the horizon": f"{facts.n_unscored:,} not scored" * bool(facts.n_unscored),
        "horizon beyond the end": number_of_runs(facts.n_beyond)
                                  * bool(weights.is_own and facts.n_beyond),
        "aggregation": f"{phi}: {RUN_SCORE[phi]}; failures positive",
        "calibration": _calibration(facts.calibrators),
        "censoring": _censoring(facts),
        "intervals": _intervals(data),
        "equal length": "the same number of steps; beyond 10, within a tenth of it",
    }  # fmt: skip
    if (monitoring := facts.monitoring) is not None:
        cost = f"; cost: {monitoring.cost_name}" * (monitoring.cost is not None)
        settings["monitoring"] = (
            f"{monitoring.rule!r}, fitted on {monitoring.known_share:.0%} of the complete runs, "
            f"judged on the others; {monitoring.n_splits} random splits{cost}"
        )
    settings["judged"] = ", ".join(filter(None, [source.created, version, source.command]))
    return {name: value for name, value in settings.items() if value}


def _censoring(facts: Facts) -> str:
    """Say what runs without an outcome count as."""
    if not facts.n_censored and facts.censored != "drop":
        return "none"
    return (
        f"runs without an observed outcome count {COUNTED_AS[facts.censored]}, in calibration, "
        f"base rate and every metric; stops are taken to be administrative (budgets that do not "
        f"depend on the outcome)"
    )


def runs_that_count(facts: Facts) -> str:
    """Say how many runs count, and how many of them are scored where these are fewer."""
    scored = f", {facts.n_runs:,} with forecasts" if facts.n_runs < facts.n_counted else ""
    return f"{number_of_runs(facts.n_counted)}{scored}"


def _calibration(calibrators: dict[str, str] | None) -> str:
    """Name every calibrator that made a row, and its predictors where there are several."""
    predictors: dict[str, list[str]] = {}
    for name, calibrator in (calibrators or {}).items():
        predictors.setdefault(calibrator, []).append(name)
    if not predictors:
        return "none"
    if len(predictors) == 1:
        return f"{next(iter(predictors))}, out of fold"
    names = [f"{calibrator} for {', '.join(of)}" for calibrator, of in predictors.items()]
    return f"{'; '.join(names)}; all out of fold"


def _intervals(data: Evaluation) -> str:
    """Say at which level intervals are, how most were made, and those of which others."""
    settings = data.options.settings
    methods = data.interval_methods
    ways = {
        INFLUENCE: "influence (t quantiles)",
        BOOTSTRAP: f"bootstrap (BCa, {settings.n_resamples} replicates)",
    }
    usual = BOOTSTRAP if settings.intervals == BOOTSTRAP else INFLUENCE
    (other,) = ways.keys() - {usual}
    metrics = methods.index[(methods == other).any(axis=1)].unique("metric")
    parts = [f"{100 * settings.confidence_level:.3g}%", f"by {ways[usual]}"]
    if len(metrics):
        parts.append(f"by {ways[other]} for some of {', '.join(metrics)}")
    parts.append(f"paired by {'cluster of runs' if data.runs.groups is not None else 'run'}")
    parts.append(f"margins of {data.score_name} hold for all {len(data.cards)} predictors at once")
    return "; ".join(parts)


# -------------------------------------------------------------------- other choices of runs


def of_choice(data: Evaluation, choice: str) -> str:
    """Say how many runs could be counted otherwise, and what the answer would be then."""
    other = data.other_choice(choice)
    n = other.n_runs
    n_all = data.facts.n_counted
    alone = other.n_runs == 1
    counted = "counted as recorded"
    otherwise = "Without them"
    if choice == "observed":
        n_all = data.facts.n_runs
        status = "has no outcome" if alone else "have no outcome"
        counted = f"counted {COUNTED_AS[data.facts.censored]}"
    elif choice == "lost":
        status = "was lost by the harness" if alone else "were lost by the harness"
        counted = "left out"
        otherwise = "Counted as recorded,"
        n_all += n
    else:
        status = "ended for reasons that are not known"
    runs = f"{n:,} of {number_of_runs(n_all)} {status}"
    if choice == "observed" and not other.stays:
        return f"{runs}, and the answer depends on what they count as."
    return f"{runs}; {counted}. {otherwise} {_what_stays(data, other)}."


def of_unobserved(data: Evaluation) -> str:
    """Say how many runs have no outcome, and whether the answer depends on them."""
    return of_choice(data, "observed") if data.facts.n_censored else "Every run has an outcome."


def of_budget(data: Evaluation) -> str:
    """Say what the runs count as that a budget stopped, and what the answer is without them."""
    if not are_stopped_by_budget(data):
        return ""
    meta = data.ends[data.ends["y"] == CENSORED]
    names = listed(meta["stop_reason"].dropna().unique()) if "stop_reason" in meta else ""
    budget = "its budget" if data.facts.n_censored == 1 else "their budget"
    runs = f"{number_hidden(data)} hit {budget}{f' ({names})' * (names not in ('', 'budget'))}"
    alone = "counts" if data.facts.n_censored == 1 else "count"
    other = data.other_choice("observed")
    then = f"the answer is: {other_answer(other)}"
    if other.stays:
        then = f"both answers stay{_other_share(data, other)}"
    counted = COUNTED_AS[data.facts.censored]
    return f"{runs} and {alone} {counted}; without them ({how_to_drop(data)}) {then}."


def _what_stays(data: Evaluation, other: OtherChoice) -> str:
    """Say whether the answer stays under another choice of runs, or what it would be."""
    if not other.stays:
        return f"the answer would be: {other_answer(other)}"
    best = data.best
    if best.is_open:
        return "it is still not known"
    if other.best is None or best.predictor == other.best.predictor or not best.is_useful:
        return f"the choice stays{_other_share(data, other)}"
    return "a predictor that is tied with it leads"


def _other_share(data: Evaluation, other: OtherChoice) -> str:
    """Say how far what is of use goes under another choice of runs."""
    best = other.best
    if best is None or not data.best.is_useful:
        return ""
    return f", at {100 * best.share(best.margin.estimate):.0f}%"


def other_answer(other: OtherChoice) -> str:
    """Say what the answer would be under another choice of runs."""
    best = other.best
    if best is None:
        return "none, as too few runs are left"
    if best.action == Action.AVOID:
        return "use none of these"
    word = f"at its word: {best.at_its_word}"
    if best.is_open:
        return f"not known yet ({word})"
    how = " as it is" if best.action == Action.USE else ", recalibrated"
    worth = f"{way_gone(best)} of the way to a perfect forecast"
    if best.best_alone:
        return f"use {quoted(best.predictor)} ({worth})"
    return f"use {quoted(best.predictor)}{how} ({worth}; {word})"


def are_stopped_by_budget(data: Evaluation) -> bool:
    """Whether it is known of all runs without an outcome that a budget stopped them.

    Where stop reasons are known, `select_runs` leaves out the others.
    """
    return data.facts.n_censored > 0 and data.runs.stops is not None


def how_to_drop(data: Evaluation) -> str:
    """Write what leaves runs without an outcome out."""
    return "--censored drop" if data.source.command else "censored='drop'"


def is_settled(data: Evaluation) -> bool:
    """Whether the answer stays without the runs that have no outcome, or a budget stopped them."""
    return are_stopped_by_budget(data) or data.other_choice("observed").stays


def number_hidden(data: Evaluation) -> str:
    """Write how many runs have no outcome: "12 runs"."""
    return number_of_runs(data.facts.n_censored)


def stands_for(data: Evaluation) -> str:
    """Say what runs without an outcome are taken to have done."""
    return "failed" if data.facts.censored == "failure" else "have the q_z of a success"
