"""What section 5.2 of the paper asks every evaluation to say.

References
----------
Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Section 5.2.
"""

from collections.abc import Mapping

import pandas as pd

from trajscore.evaluation.evaluation import Evaluation, Facts
from trajscore.evaluation.options import BOOTSTRAP, INFLUENCE
from trajscore.evaluation.runs import by_reason, number_of_runs
from trajscore.report.glossary import RUN_SCORE, counted_as, listed


def excluded_table(data: Evaluation) -> pd.DataFrame:
    """Return how many runs do not count, or in success rates alone, by reason."""
    n_by_reason = by_reason(data.exclusions, False) | by_reason(data.exclusions, True)
    rows = [("all", reason, n) for reason, n in n_by_reason.items()]
    return pd.DataFrame(rows, columns=["predictor", "reason", "n_runs"])


def left_out(data: Evaluation, most: int = 1000) -> str:
    """Say how many runs were left out of every number or of scores, and for which reasons."""
    if not data.exclusions:
        return "Left out: no run"
    parts = []
    if reasons := by_reason(data.exclusions, of_scores=False):
        parts.append(f"Left out of every number: {_reasons(reasons, most)}")
    if reasons := by_reason(data.exclusions, of_scores=True):
        parts.append(f"Counted in success rates alone: {_reasons(reasons, most)}")
    text = ". ".join(parts)
    incomplete = {name for exclusion in data.exclusions for name in exclusion.predictors}
    if incomplete and data.options.settings.missing != "ffill":
        ffill = "--missing ffill" if data.source.command else "EvaluationOptions(missing='ffill')"
        text += f"; {ffill} repeats the value before"
    others = [each.predictor for each in data.singles if each.predictor not in incomplete]
    if incomplete and others:
        text += f". Leave out {listed(sorted(incomplete))} to score {listed(others)} on them, too"
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
        "base rate": f"{facts.base_rate:.3f} over forecasts, "
                     f"{facts.base_rate_of_runs:.3f} over runs",
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
        f"runs without an observed outcome count {counted_as(facts.censored)}, in calibration, "
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
