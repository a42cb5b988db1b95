"""The evidence of a fleet monitor over runs, and the changes that it noticed."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_labels, check_trajectories
from trajscore.core.outcomes import check_outcomes
from trajscore.core.values import as_count
from trajscore.monitoring import FleetMonitor
from trajscore.plotting._display import REFERENCE, DisplayMixin, ink, next_style, plain

_ROWS = 3  # of names of changes, which would overlap in one


@dataclass(eq=False, repr=False)
class FleetDisplay(DisplayMixin):
    """Evidence of each quantity over runs, as far as its alarm, and the changes by name.

    Parameters
    ----------
    evidence : DataFrame indexed by run
        A column for each quantity and predictor: the log e-value as a share of the log threshold of
        an alarm; NaN between an alarm and the next reference.
    changes : list of FleetChange
        Changes that were noticed.

    Examples
    --------
    >>> from trajscore.datasets import make_trajectories
    >>> from trajscore.monitoring import FleetMonitor
    >>> from trajscore.plotting import FleetDisplay
    >>> runs = make_trajectories(3000, random_state=0)
    >>> fleet = FleetMonitor().fit(runs.q[:1000], runs.target[:1000])
    >>> later = runs.q[1000:].with_cells(runs.q[1000:].cells ** 0.3)
    >>> display = FleetDisplay.from_estimator(fleet, later, runs.target[1000:])
    >>> display.changes[0].cause, fleet.n_runs_
    ('forecasts', 0)
    """

    evidence: pd.DataFrame
    changes: list[Any]

    @classmethod
    def from_estimator(
        cls,
        fleet: FleetMonitor,
        X: Any,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        n_points: int = 400,
        **kwargs: Any,
    ) -> Self:
        """Let a copy of a monitor follow runs.

        Parameters
        ----------
        fleet : FleetMonitor
            Fitted; it stays as it is.
        X : TrajectoryArray or array-like of shape (n_runs, T_max)
            Runs after those that it has seen.
        y : array-like of shape (n_runs,), optional
            Outcomes; -1 not observed.
        groups : array-like of shape (n_runs,), optional
            Tasks.
        n_points : int, default=400
            Runs at which the evidence is noted, at equal distances.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        FleetDisplay
            The display, drawn.
        """
        as_count(n_points, "n_points")
        traces: TrajectoryArray = check_trajectories(X, allow_missing=True, allow_empty=True)
        outcomes = None if y is None else check_outcomes(y, traces)
        tasks = None if groups is None else check_labels(groups, len(traces))
        copy, rows = deepcopy(fleet), {}
        n_chunks = max(n_points, 2 * len(traces) // fleet.n_after)
        bounds = np.unique(np.linspace(0, len(traces), n_chunks + 1).astype(int)).tolist()
        for start, stop in pairwise(bounds):
            thresholds = copy.e_values_["log_threshold"]
            labels = (v if v is None else v[start:stop] for v in (outcomes, tasks))
            alarm = copy.update(traces[start:stop], *labels).alarm
            share = copy.e_values_["log_e_value"] / thresholds
            run = copy.n_runs_
            if copy.changes_ and not copy.changes_[-1].cause:
                share = share * np.nan  # no evidence is gathered
            if alarm:
                run, _, quantity, predictor, log_e, *_ = copy.changes_[-1]
                share[(quantity, predictor)] = log_e / thresholds[(quantity, predictor)]
            rows[run] = share
        evidence = pd.DataFrame(rows).T.rename_axis("run")
        return cls(evidence, list(copy.changes_)).plot(**kwargs)

    def _draw(self, ax: Any, name: str | None, **style: Any) -> list[Any]:
        lines = []
        for column in self.evidence:
            quantity, predictor = column
            label = plain(f"{quantity} of {predictor}" if predictor else quantity)
            own = {"linewidth": 1.4, "label": label, **next_style(ax), **style}
            lines += ax.plot(self.evidence.index, self.evidence[column], **own)
        ax.axhline(1, **REFERENCE)
        for k, change in enumerate(self.changes):
            ax.axvspan(change.since, change.alarm, color=ink(), alpha=0.12, linewidth=0)
            words = change.cause or "cause not known yet"
            text = plain(f"{words}\nsince run {change.since:,}, alarm at {change.alarm:,}")
            ax.annotate(
                text, (change.alarm, 1), xytext=(4, 6 + 26 * (k % _ROWS)),
                textcoords="offset points", fontsize="small", color=ink(), va="bottom",
            )  # fmt: skip
        low, high = self.evidence.min().min(), self.evidence.max().max()
        ax.set(xlabel="run", ylabel="log e-value, as a share of the alarm's")
        room = min(len(self.changes), _ROWS) * 0.3
        ax.set_ylim(min(low, 0) - 0.1, max(high, 1) + room + 0.1)
        return lines
