"""The rows of the report: a predictor in a form, raw or calibrated, and the two references."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from trajscore.calibration import PlattCrossFitCalibrator
from trajscore.calibration._cross_fit import CrossFitCalibrator, cross_fit_sample
from trajscore.calibration._maker import CalibratorMaker
from trajscore.core.array import TrajectoryArray
from trajscore.core.checks import check_values
from trajscore.core.parallel import Work
from trajscore.core.sample import Sample
from trajscore.core.within_runs import step_numbers
from trajscore.report._data import BASE_RATE, CALIBRATED, CONSTANT, LENGTH, RAW, Note
from trajscore.report._missing import whole_runs
from trajscore.report._runs import Coverage, Judged


@dataclass(frozen=True)
class Row:
    """A predictor in one form, on the runs that it covers."""

    predictor: str
    form: str  # raw, calibrated or constant
    traces: TrajectoryArray
    runs: Coverage  # the same object for the rows of one predictor, and for all that cover all
    is_probability: bool
    calibrator: str = ""  # what made a calibrated row

    @property
    def key(self) -> tuple[str, str]:
        """Its place in the tables."""
        return self.predictor, self.form


def make_rows(
    judged: Judged, maker: CalibratorMaker | None, work: Work, notes: list[Note]
) -> list[Row]:
    """Return the rows of all predictors, each on its whole runs, and of the references."""
    calibrators: list[tuple[Row, Any]] = []
    for name, given in judged.traces.items():
        whole = np.flatnonzero(whole_runs(given))
        covered = given if len(whole) == len(given) else given[whole]
        is_probability = bool(covered.cells.min() >= 0 and covered.cells.max() <= 1)
        raw = Row(name, RAW, covered, judged.runs.take(whole), is_probability)
        calibrators.append((raw, maker and maker(is_probability)))
    trace = next(iter(judged.traces.values()))
    # minus the number of steps taken so far: known at each step, and long runs rank as risky
    elapsed = trace.with_cells(-step_numbers(trace).astype(np.float64))
    length = Row(LENGTH, RAW, elapsed, judged.runs, is_probability=False)
    calibrators.append((length, maker and _calibrator_of_length(maker)))
    rows = []
    jobs = work.share(lambda job: recalibrated(*job), calibrators)
    for (raw, _), (made, said) in zip(calibrators, jobs, strict=True):
        rows.append([raw, *made])
        notes += said
    constant = base_rate(trace, judged.runs)
    return [*chain(*rows[:-1]), constant, *rows[-1]]


def base_rate(trace: TrajectoryArray, runs: Coverage) -> Row:
    """Return the constant forecast of the success rate of the very runs that it is scored on."""
    rate = trace.with_cells(np.full(len(trace.cells), runs.labels.mean()))
    return Row(BASE_RATE, CONSTANT, rate, runs, is_probability=True)


# -------------------------------------------------------------------- calibration


def _calibrator_of_length(maker: CalibratorMaker) -> PlattCrossFitCalibrator:
    """Platt with the weights of the others; length may point either way."""
    made = PlattCrossFitCalibrator(link="identity", increasing="auto")
    other = maker(False)
    return made.set_params(weights=other.weights) if isinstance(other, CrossFitCalibrator) else made


def recalibrated(raw: Row, calibrator: Any) -> tuple[list[Row], list[Note]]:
    """Return the row of out-of-fold traces; where there can be none, a note says why."""
    if calibrator is None:
        return [], []
    runs = raw.runs
    # by the labels that everything is scored with, whatever a calibrator makes of -1
    sample = Sample({"": raw.traces}, runs.labels, np.ones(len(runs)), runs.groups)
    try:
        traces = cross_fit_sample(calibrator, sample)
        check_values(traces, probabilities=True)
    except ValueError as error:
        return [], [Note(raw.predictor, "not calibrated", {"why": str(error)})]
    maps = getattr(calibrator, "maps_", {})
    constant = [name for name, one in maps.items() if getattr(one, "fallback", False)]
    said = [Note(raw.predictor, "constant maps", {"maps": constant})] if constant else []
    return [Row(raw.predictor, CALIBRATED, traces, runs, True, repr(calibrator))], said


def calibrators_of(rows: list[Row]) -> dict[str, str]:
    """Return what calibrated each predictor."""
    return {row.predictor: row.calibrator for row in rows if row.form == CALIBRATED}
