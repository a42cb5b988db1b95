"""What an evaluation found, for a terminal, a notebook or a browser."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pandas as pd
from sklearn.base import clone

from trajscore.calibration.forecaster import fit_arguments
from trajscore.core.parallel import Progress
from trajscore.core.storage import replacing
from trajscore.core.values import as_path, unknown_name
from trajscore.evaluation.evaluation import Evaluation
from trajscore.evaluation.runs import by_reason
from trajscore.io import Run
from trajscore.report._disclosures import disclosures, excluded_table
from trajscore.report._first_screen import first_screen
from trajscore.report.recipe import NO_CODE
from trajscore.report.render.as_json import to_json
from trajscore.report.render.as_text import to_markdown, to_text
from trajscore.report.verdicts import verdicts
from trajscore.report.wording import answer

if TYPE_CHECKING:
    from trajscore.plotting import ScoreDisplay


class Report(Evaluation):
    """Result of `trajscore.evaluate`: its numbers, and what to do with them.

    Attributes
    ----------
    table : DataFrame indexed by (predictor, form)
        One row a predictor and form ("as_given", "recalibrated"; "constant" for the base rate).
        What describes a row, such as n_runs. Of the forecasts of every step: Trajectory Proper
        Scores; S-ECE, their calibration error, in all and at early, middle and late steps (1 to 3,
        4 to 10, from 11 on); MCB, the miscalibration of the leading score. Of one number a run:
        AUROC, AUPRC, AURC, T-ECE, T-Brier, ECUAS_0, ECUAS_1, ECUAS_128. Then, with their intervals,
        the scores' margins over the base rate, and what scores and AUROC are above counting steps:
        over_alive, and over_alive_end where it is known which step is the last. NaN where a raw
        signal is not a probability. The references are "base rate", the best constant; "alive
        rate", what counting steps is worth; and "alive rate, end known".
    intervals : DataFrame indexed by (predictor, form, metric)
        Value, margin over the base rate, what it is above counting steps (of scores and AUROC) and
        (of recalibrated rows) above the predictor as given, each with its interval.
    calibration_gain : DataFrame indexed by (predictor, metric)
        Each metric as given and recalibrated, and the gain with its paired interval: above 0 where
        recalibration makes the metric better, whichever way it points.
    interval_methods : DataFrame indexed as `intervals`
        How the interval of each value and difference was made: "influence", "bootstrap" or, for
        calibration errors, "bounds".
    excluded : DataFrame
        Runs that do not count, or in success rates alone: predictor ("all"), reason, n_runs.
    cards : DataFrame indexed by predictor
        What to do: "use as it is", "recalibrate", "combine" or "no gain shown" (of all signals
        together), "do not use", "recalibrate first" (a signal without a score yet) or "too few
        runs", with about how many more are needed (n_needed).
        at_its_word: whether what it says is what happens: "yes", "no" or "not known yet". Then the
        margins of the leading score over the base rate, as given and recalibrated, the gain between
        them, and overconfidence, how much more success it states on average than happens, with the
        intervals that decided both. They hold for all predictors at once, so that at most 5% of
        reports have a card that is wrong, and as many are wrong on a predictor's word. only_value:
        that of a predictor that does not vary, else NaN. signal_high: the most that an increasing
        map of many runs may gain. best_alone: of all signals together, the best single one, over
        which the gain is; else "". tied: whether these runs do not distinguish a predictor from the
        best, or it is behind by less than matters.
    pairs : DataFrame or None
        What the leading score of each predictor, in the form its card speaks for, is above that of
        each other one, with intervals that hold for all pairs at once; None where none is a
        probability.
    signals : DataFrame indexed by signal; None of one signal, or of more than 20,000 runs
        What each signal of "all together" is worth over the base rate: now, recalibrated by its
        value; with_history, by its history and the number of the step, too; loss, what all lose
        without it, with intervals that hold for all signals at once. order: the fewest signals, at
        most five, with which all is reached but for half of what matters, in the order in which
        they are added, and reached, the margin with them; 0 and NaN of others.
    purchase : object or None
        With prices: the signals that cost something, the cost of a run's forecasts, and the share
        of failing runs that are found with and without them.
    first_errors : object or None
        With labels of the first wrong step: the table of `trajscore.localization.compare_locators`
        for each predictor and "all together", and with the best locator the likeliest step of each
        run and the window that holds the first wrong one with a chance of 90%.
    by : DataFrame indexed by (by, group, predictor), or None
        The same as `cards` within groups of runs, each against its own base rate. p_value: whether
        some group differs from all runs in the share of the base rate's loss that the predictor
        saves. From 0.05 on, groups have the card of all runs, and its numbers as such shares.
        Below, cards are decided by margins that are shrunken towards what the groups have in
        common. own: the group's margin as it is, in the form that the card of all runs speaks for.
    monitoring : DataFrame indexed by (predictor, alpha), or None
        How often good and bad runs would be flagged early, and what that saves, if asked for.
    sensitivity : DataFrame indexed by (predictor, form)
        The leading score's margin over the base rate, and what it would be on the runs with an
        observed outcome alone, with calibration and base rate fitted to these (observed_only).
    observed_cards : DataFrame indexed by predictor, or None
        The same as `cards` of the runs with an observed outcome alone; None where all are.
    other_choices : dict of str to (int, DataFrame or None)
        How many runs could be counted otherwise, and the cards then (None where too few runs are
        left): without the runs that have no outcome ("observed"), with the runs that the harness
        lost as recorded ("lost"), without those whose stop reason is not known ("unknown").
    by_step : DataFrame indexed by (predictor, form, step)
        Of the runs that are at least that long, which counting steps cannot rank, at steps 1, 2, 3,
        4, 6, 8, 10, 15, 20, ... that 10 runs of each outcome reach: how many, how many of them
        succeed, AUROC of the forecasts of that step with its interval, their mean leading score,
        and its margin over the success rate of just these runs.
    equal_length : DataFrame indexed by (predictor, form)
        AUROC of one number a run, as in `table`, over pairs of runs of equal length (beyond 10
        steps, lengths that differ by a tenth at most), and what it is above ranking these
        pairs by the difference in length that is left. n_runs have such a partner; NaN with fewer
        than 10 of an outcome.
    disclosures : dict of str to str
        Score, weights, calibration, censoring assumption and the like.
    notes : list of str
        What a reader should know of single predictors.
    traces : dict keyed by (predictor, form)
        The traces that were scored.
    runs
        Their runs, the same for all of them, in the order of their ids: outcomes ``y`` (-1: not
        observed), the same as ``labels`` in [0, 1], behind every number, ``groups``, codes of
        clusters (None without), and ``source_rows``, the row of each run in the input.
    ends : DataFrame
        Outcome ``y`` and, where it is known, ``stop_reason`` of each run that counts.
    left_out, unscored : dict of str to int
        How many runs do not count, or in success rates alone, by reason.
    rows, recommended, groups, otherwise, exclusions, options, facts, remarks, source
        What tables are made from, which runs were left out, what was computed, and the notes,
        before they are put into words; what was judged, when, and by which command.

    Examples
    --------
    >>> from trajscore import evaluate
    >>> from trajscore.datasets import make_trajectories
    >>> X, y = make_trajectories(100, sharpness=3, random_state=0, return_X_y=True)
    >>> report = evaluate(X, y)
    >>> print(report.verdicts()[0])
    forecast: recalibrate; at its word: ...
    """

    @property
    def disclosures(self) -> dict[str, str]:
        """What an evaluation must say."""
        return disclosures(self)

    @property
    def left_out(self) -> dict[str, int]:
        """How many runs do not count, by reason."""
        return by_reason(self.exclusions, of_scores=False)

    @property
    def unscored(self) -> dict[str, int]:
        """How many runs count in success rates alone, by reason."""
        return by_reason(self.exclusions, of_scores=True)

    @property
    def excluded(self) -> pd.DataFrame:
        """How many runs do not count, or in success rates alone, by reason."""
        return excluded_table(self)

    @property
    def notes(self) -> list[str]:
        """What a reader should know of single predictors."""
        return [note.text for note in answer(self).notes]

    def verdicts(self) -> list[str]:
        """Say in a few sentences what each predictor is worth over base rate and counting steps.

        Returns
        -------
        list of str
            A text for each predictor, in the order of the table.
        """
        return verdicts(self)

    def code(self) -> str:
        """Return Python that fits the best predictor's forecaster, saves it, and forecasts a run.

        Returns
        -------
        str
            A script. Of data that were given in Python, it starts from ``report``, this one.
        """
        return first_screen(self).code or NO_CODE

    def forecaster(self, predictor: str) -> Any:
        """Fit what recalibrated a predictor to all runs of the report, for new ones.

        Parameters
        ----------
        predictor : str
            A predictor with a recalibrated row, or "all together".

        Returns
        -------
        estimator
            The calibrator or other forecaster of the report, with its step weights. It is fitted on
            the predictor's values as given (all signals side by side, if it is "all together"), on
            the outcomes that every number is of (what unobserved runs count as among them), and on
            the groups. Of batches, on their sample.

        Raises
        ------
        ValueError
            If the report has no recalibrated row of this predictor.

        Examples
        --------
        >>> from trajscore import evaluate
        >>> from trajscore.datasets import load_chess
        >>> report = evaluate(*load_chess(return_X_y=True), censored="drop")
        >>> forecaster = report.forecaster("material")
        >>> forecaster.transform([[0.5, 0.6]]).round(2)  # a running game after two moves
        array([[0.49, 0.53]])
        """
        rows = self.rows.recalibrated
        if predictor not in rows:
            raise ValueError(unknown_name("recalibrated predictor", predictor, [*rows]))
        fitted = clone(rows[predictor].calibrator)
        parts = [name for name in fitted.get_params() if name.rpartition("__")[2] == "censored"]
        fitted.set_params(**dict.fromkeys(parts, self.facts.censored))
        groups = fit_arguments(fitted, {"groups": self.runs.groups})
        return fitted.fit(self.inputs_of(predictor), self.runs.labels, **groups)

    def __str__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        try:
            from trajscore.report.page.build import embedded

            return embedded(self)
        except ImportError:  # Jinja2
            pass
        return self.table.to_html(float_format=lambda value: f"{value:.4g}", na_rep="")

    def plot(self, metric: str | None = None, *, ax: Any = None) -> ScoreDisplay:
        """Draw a metric of every predictor, as given and recalibrated, with intervals.

        Parameters
        ----------
        metric : str, optional
            A metric of `intervals`; default: the leading score.
        ax : matplotlib Axes, optional
            Where to draw; default: a new figure.

        Returns
        -------
        trajscore.plotting.ScoreDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If there is no such metric.
        ImportError
            If matplotlib is not installed (extra ``plots``).
        """
        from trajscore.plotting import ScoreDisplay  # which is imported where it is used

        name = metric or self.score_name
        if name not in self.options.metrics:
            raise ValueError(unknown_name("metric", name, self.options.metrics))
        return ScoreDisplay.from_intervals(self.intervals, name, ax=ax)

    def to_text(self, *, verbose: bool = False) -> str:
        """Write for a terminal, as wide as it is, from 72 to 100 columns.

        Parameters
        ----------
        verbose : bool, default=False
            Whether to write all tables and disclosures; default: one screen, as ``print`` does.

        Returns
        -------
        str
            The text.
        """
        return to_text(self, verbose=verbose)

    def to_frame(self) -> pd.DataFrame:
        """Return every number in one long table, to filter and join.

        Returns
        -------
        DataFrame
            One row a predictor, form and metric: n_runs, the columns of `intervals`, and how the
            interval of the value was made.
        """
        long = self.intervals.join(self.interval_methods["value"].rename("method")).reset_index()
        counts = self.table["n_runs"].reset_index()
        return counts.merge(long, on=["predictor", "form"])

    @overload
    def to_html(
        self, path: None = ..., *, log: Iterable[Run] = ..., progress: Progress | None = ...
    ) -> str: ...
    @overload
    def to_html(
        self, path: str | Path, *, log: Iterable[Run] = ..., progress: Progress | None = ...
    ) -> Path: ...
    def to_html(
        self,
        path: str | Path | None = None,
        *,
        log: Iterable[Run] = (),
        progress: Progress | None = None,
    ) -> str | Path:
        """Write one self-contained page to decide from.

        Parameters
        ----------
        path : str or Path, optional
            The file to write; default: the page is returned.
        log : iterable of trajscore.io.Run, optional
            The runs that were judged, for their transcripts and what their steps cost.
        progress : callable, optional
            Wraps the list of sections, as ``tqdm`` does.

        Returns
        -------
        Path or str
            The file, or the page.

        Raises
        ------
        ImportError
            If Jinja2 is not installed (extra ``report``).
        """
        from trajscore.report.page.build import to_html  # which needs Jinja2

        return _written(to_html(self, log, progress), path)

    @overload
    def to_json(self, path: None = ...) -> str: ...
    @overload
    def to_json(self, path: str | Path) -> Path: ...
    def to_json(self, path: str | Path | None = None) -> str | Path:
        """Write numbers and sentences as JSON, for programs.

        Parameters
        ----------
        path : str or Path, optional
            The file to write; default: the text is returned.

        Returns
        -------
        Path or str
            The file, or the text. Its ``version`` changes where a key is taken away or comes to
            mean something else; the user guide says what the keys are.
        """
        return _written(to_json(self), path)

    @overload
    def to_markdown(self, path: None = ...) -> str: ...
    @overload
    def to_markdown(self, path: str | Path) -> Path: ...
    def to_markdown(self, path: str | Path | None = None) -> str | Path:
        """Write the verdict as Markdown, for a comment on a change, say.

        Parameters
        ----------
        path : str or Path, optional
            The file to write; default: the text is returned.

        Returns
        -------
        Path or str
            The file, or the text.
        """
        return _written(to_markdown(self), path)


def _written(text: str, path: str | Path | None) -> str | Path:
    """Put a text into a file, if one is named."""
    if path is None:
        return text
    target = as_path(path)
    with replacing(target) as file:
        file.write(text.encode())
    return target
