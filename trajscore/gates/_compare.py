"""Two sets of runs side by side: what changed, and how many runs would settle what is open."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from trajscore.core.errors import CannotMeasureError, visible
from trajscore.core.policy import POWER
from trajscore.core.ties import ROUNDING
from trajscore.core.values import as_fraction, number_of, run_label
from trajscore.evaluation.options import AS_GIVEN, FORMS
from trajscore.gates._change import difference, estimates, runs_to_settle
from trajscore.gates._metrics import (
    MARGIN,
    SUCCESS,
    Key,
    at_equal_success,
    is_lower_better,
    measures_of,
    most_trials,
    within_range,
)
from trajscore.gates._run_set import LENGTH, Matching, RunSet, check_run_set, match
from trajscore.inference.comparison import up_to_one_digit

_MOST_TRIALS = 8


@dataclass(frozen=True)
class Comparison:
    """Two sets of runs, number by number.

    Attributes
    ----------
    table : DataFrame indexed by (metric, predictor, form)
        The base, the new set and the change, each with an interval, on the same tasks where the
        sets are paired; and where the interval of the change holds 0, the number of runs in each
        set, in total, that would show a change of its size with a chance of 0.8 (inf: more than a
        million).
    matched : Matching
        How the sets are paired.
    confounded : set of (metric, predictor, form)
        Changes of forecasts that may come from the success rate alone.
    notes : list of str
        What could not be compared, and why.
    confidence_level : float
        Level of each interval by itself.
    base, new : RunSet
        The sets.
    """

    table: pd.DataFrame
    matched: Matching
    confounded: set[Key]
    notes: list[str]
    confidence_level: float
    base: RunSet = field(repr=False)
    new: RunSet = field(repr=False)

    def changes(self) -> list[str]:
        """Say in plain words what changed, what did not show, and what it would take."""
        shown = []
        undecided = ["No change shown:"]
        for key, row in zip(self.keys, self.table.itertuples(), strict=True):
            if abs(row.change) <= ROUNDING * max(abs(row.base), abs(row.new)):
                continue
            if row.change_low <= 0 <= row.change_high:
                needed = UNKNOWN_RUNS
                if n_more := more_runs(row.runs_needed, self.new):
                    needed = f"{n_more} in each set would settle it"
                undecided.append(f"  {key} {row.change:+.3g}: {needed}")
                continue
            verb = "rose" if row.change > 0 else "fell"
            text = (
                f"{key} {verb} from {row.base:.4g} to {row.new:.4g} "
                f"({interval(row.change_low, row.change_high)})"
            )
            if key in self.confounded:
                text += ": may come from the success rate alone"
            elif key.metric != LENGTH:
                is_worse = (row.change > 0) == is_lower_better(key.metric, self.new)
                text += ": worse" if is_worse else ": better"
            shown.append(f"{text}.")
        if self.confounded:
            shown.append(CONFOUNDED)
        if len(undecided) > 1:
            shown += undecided
        return shown

    @property
    def keys(self) -> list[Key]:
        """What each row of the table is of."""
        return [Key(*index) for index in self.table.index]

    def __str__(self) -> str:
        table = self.table.mask(self.table.abs() <= ROUNDING, 0.0)
        cells = pd.DataFrame(index=[visible(str(key)) for key in self.keys])
        for name, sign in (("base", ""), ("new", ""), ("change", "+")):
            cells[name] = [
                f"{value:.4g} {interval(low, high, sign)}"
                for value, low, high in table[[name, f"{name}_low", f"{name}_high"]].to_numpy()
            ]
        level = self.confidence_level
        lines = [
            pairing(self.base, self.new, self.matched),
            "",
            cells.to_string(),
            "",
            *self.changes(),
            *self.notes,
            (
                f"Each interval holds with a chance of {100 * level:.4g}%, each of its ends with "
                f"{50 * (1 + level):.4g}%, as in trajscore check; among many rows, some seem to "
                f"change by chance. With the stated number of more runs, a change of this size is "
                f"shown with a chance of {POWER:.0%}."
            ),
        ]
        return visible("\n".join(lines))


def compare(base: RunSet, new: RunSet, *, confidence_level: float = 0.9) -> Comparison:
    """Hold a set of runs against an earlier one.

    Success, pass^k, length and whatever else the runs took; of each predictor that both sets have,
    what its forecasts are worth above the base rate, how far they are off, and how well they rank.

    Parameters
    ----------
    base, new : RunSet
        The sets.
    confidence_level : float, default=0.9
        Level of each interval by itself. With 0.9 each end holds with a chance of 95%, and the
        interval is that of `check` for the metric alone.

    Returns
    -------
    Comparison
        A table, and sentences about it.

    Raises
    ------
    ValueError
        If the level does not lie in (0, 1).

    Notes
    -----
    Where both sets have tasks in common, only these are compared, and every task counts the same in
    both: the interval is that of the mean of the tasks' differences, with t quantiles. Else it is
    that of two independent sets (Welch 1947), each with its tasks as clusters. Intervals of success
    and pass^k are no narrower than their losses and gains alone allow, as near 0 and 1 t is not
    enough. Those of costs and lengths allow for skewness, and for tasks that no run showed, which
    may cost five times the mean, or in paired sets twice the mean more; equal costs bound nothing.
    Calibration errors have bounds of their own, as in `trajscore.evaluate`.

    What forecasts are worth, and how far they are off, depends on the success rate. So a change of
    them is called worse or better only if it also shows with the outcomes of the new set weighted
    to the success rate of the base: of the forecasts as they are, as an unchanged judge may state
    the same, and of forecasts shifted in log-odds by as much as success (Saerens et al. 2002).

    References
    ----------
    Clopper and Pearson (1934), The Use of Confidence or Fiducial Limits Illustrated in the Case of
    the Binomial; Bahadur and Savage (1956), The Nonexistence of Certain Statistical Procedures in
    Nonparametric Problems, for means of costs; Miller (2024), Adding Error Bars to Evals,
    arXiv:2411.00640, for paired and clustered errors; Yao et al. (2024), tau-bench,
    arXiv:2406.12045, for pass^k; Saerens, Latinne and Decaestecker (2002), Adjusting the Outputs of
    a Classifier to New a Priori Probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.gates import RunSet, compare
    >>> X, y = make_trajectories(200, random_state=0, return_X_y=True)
    >>> tasks = np.arange(100) % 20
    >>> base, new = (RunSet(X[k : k + 100], y[k : k + 100], tasks=tasks) for k in (0, 100))
    >>> found = compare(base, new)
    >>> found.table.loc["success", ["base", "new", "change"]].round(2).to_dict("records")
    [{'base': 0.52, 'new': 0.46, 'change': -0.06}]
    """
    as_fraction(confidence_level, "confidence_level")
    check_run_set("base", base)
    check_run_set("new", new)
    matched = match(base, new)
    level = (1 + confidence_level) / 2
    rows = {}
    missing: dict[str, list[str]] = {}
    confounded = set()
    notes = []
    for runs, other, name in ((base, new, "the base"), (new, base, "the new set")):
        if alone := [repr(p) for p in runs.predictors if p not in other.predictors]:
            notes.append(
                f"{number_of(len(alone), 'predictor')} only in {name}, not compared: "
                f"{', '.join(alone)}."
            )
    for key in _keys(base, new):
        try:
            of_base, of_new = estimates(measures_of((base, new), key), matched)
        except CannotMeasureError as error:
            missing.setdefault(str(error), []).append(str(key))
            continue
        change = difference(of_new, of_base, matched)
        row = {}
        for name, number in (("base", of_base), ("new", of_new), ("change", change)):
            row[name] = number.value
            row[f"{name}_low"], row[f"{name}_high"] = within_range(
                key.metric, *number.bounds(level), least=-1.0 if name == "change" else 0.0
            )
        row["runs_needed"] = np.nan
        if row["change_low"] <= 0 <= row["change_high"]:
            row["runs_needed"] = runs_to_settle(change, change.value, new.n_runs, level)
        elif key.predictor:
            for pair in at_equal_success(base, new, key):
                of_base, of_new = estimates(pair, matched)
                bounds = difference(of_new, of_base, matched).bounds(level)
                if min(np.sign(change.value) * np.array(bounds)) <= 0:
                    confounded.add(key)
        rows[key] = row
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.index = pd.MultiIndex.from_tuples(rows, names=Key._fields)
    notes += [f"Not compared: {'; '.join(names)}. Why: {why}." for why, names in missing.items()]
    return Comparison(table, matched, confounded, notes, confidence_level, base, new)


def _keys(base: RunSet, new: RunSet) -> Iterator[Key]:
    yield Key(SUCCESS)
    most = min(most_trials(base), most_trials(new), _MOST_TRIALS)
    yield from (Key(f"pass^{k}") for k in range(2, most + 1))
    if max(base.lengths.max(), new.lengths.max()) > 1:
        yield Key(LENGTH)
    yield from (Key(name) for name in base.spent if name in new.spent)
    for name in base.predictors:
        if name in new.predictors:
            for form in FORMS:
                yield Key(f"TPS log{MARGIN}", name, form)
                yield Key("S-ECE", name, form)
            yield Key("AUROC", name, AS_GIVEN)  # which recalibration hardly changes


# ------------------------------------------------------------------ words


WITHOUT_TASKS = (
    "the tasks of runs are not known, so that each run counts by itself; if runs share tasks, name "
    "their column (--group)"
)


CONFOUNDED = (
    "As the success rate changes, an unchanged predictor is worth more or less, and is off by more "
    "or less. Changes that do not show at equal success rates are neither worse nor better."
)
UNKNOWN_RUNS = "it is not known how many more runs would settle it"


def pairing(base: RunSet, new: RunSet, matched: Matching) -> str:
    """Say what is compared with what; first, if the sets cannot be paired."""
    sets = f"base: {base.counted}; new: {new.counted}."
    if matched.by:
        doubt = ""
        if matched.n_common < min(matched.n_new, matched.n_gone):
            doubt = f" Few are in both: check that the same name means the same {matched.by}."
        return (
            f"{sets} Paired by {matched.by}: {matched.n_common} in both, {matched.n_new} only in "
            f"the new set, {matched.n_gone} only in the base.{doubt}"
        )
    if base.tasks is None or new.tasks is None:
        return f"Not paired: {WITHOUT_TASKS}. {sets}"
    return (
        f"Not paired: the sets have fewer than two tasks in common (the base has "
        f"{run_label(base.tasks[0])}, the new set {run_label(new.tasks[0])}); if another column "
        f"names the tasks, give it (--group). {sets}"
    )


def interval(low: float, high: float, sign: str = "+") -> str:
    """Write an interval."""
    return f"[{low:{sign}.3g}, {high:{sign}.3g}]"


def more_runs(n_in_total: float, new: RunSet) -> str:
    """Say how many runs a set needs beyond those that there are; empty if that is not known."""
    if np.isnan(n_in_total):
        return ""
    if np.isinf(n_in_total):
        return "more than a million runs"
    n = up_to_one_digit(max(n_in_total - new.n_runs, 1))
    return f"about {number_of(n, 'more run')}"
