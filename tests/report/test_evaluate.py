import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from trajscore import (
    DensityRatioEProcess,
    PlattCrossFitCalibrator,
    TraceAggregator,
    TrajectoryArray,
    evaluate,
    metrics,
    tps_scorer,
)
from trajscore.calibration import EnsembleCrossFitCalibrator, PrefixForecaster, cross_fit_traces
from trajscore.calibration.calibrators import CALIBRATORS
from trajscore.core.collapse import aggregate
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions, MonitoringOptions
from trajscore.report._data import ReportData
from trajscore.report.page.build import to_html
from trajscore.report.render.text import to_text


def test_every_column_is_the_metric_of_its_name(chess, report):
    X, y = chess
    failed = np.maximum(y, 0)
    raw, table = X["material"], report.table.loc[("material", "as_given")]
    assert table["n_runs"] == 360
    assert table["n_censored"] == 67
    for name, value in metrics.trajectory_diagnostics(failed, raw).items():
        assert table[name] == pytest.approx(value, abs=1e-12)
    for name, score in {"TPS log": "log", "TPS beta(4,2)": ("beta", 4, 2)}.items():
        assert table[name] == pytest.approx(metrics.censored_tps_score(y, raw, score=score))
    calibrated = EnsembleCrossFitCalibrator().fit_transform(raw, y)
    assert report.table.loc[("material", "recalibrated"), "TPS log"] == pytest.approx(
        metrics.censored_tps_score(y, calibrated)
    )


def test_margins_are_against_the_base_rate(report):
    table = report.table
    base = table.loc[("base rate", "constant"), "TPS log"]
    np.testing.assert_allclose(table["TPS log margin"], table["TPS log"] - base, atol=1e-12)
    row = report.intervals.loc[("engine", "recalibrated", "TPS log")]
    assert row["margin_low"] < row["margin"] < row["margin_high"]
    assert row["low"] < row["value"] < row["high"]
    constant = report.intervals.loc[("base rate", "constant", "TPS log")]
    assert constant["margin_low"] == constant["margin_high"] == 0


def test_rows_and_threads_do_not_matter(chess):
    X, y = chess
    order = np.random.default_rng(0).permutation(len(y))
    one = evaluate(X, y, intervals=IntervalOptions(100))
    other = evaluate(X[order], y[order], intervals=IntervalOptions(100), n_jobs=2)
    assert one.table.equals(other.table)
    assert one.intervals.equals(other.intervals)


def test_progress_wraps_what_takes_long(chess):
    X, y = chess
    seen = []

    def progress(jobs):
        seen.append(list(jobs))
        return seen[-1]

    plain = evaluate(X, y, intervals=IntervalOptions(20))
    report = evaluate(X, y, intervals=IntervalOptions(20), progress=progress)
    assert report.table.equals(plain.table)
    assert {3, 6} <= {len(jobs) for jobs in seen}  # three predictors, with three references
    seen.clear()
    assert pickle.loads(pickle.dumps(report)).to_html(progress=progress)
    assert [len(jobs) for jobs in seen] == [3]
    with pytest.raises(ValueError, match="progress must be a function"):
        evaluate(X, y, progress=True)


def test_inputs_in_other_forms(chess):
    X, y = chess
    one = evaluate(X["material"], y, intervals=IntervalOptions(20))
    other = evaluate({"material": X["material"].padded()}, y, intervals=IntervalOptions(20))
    assert one.predictors == other.predictors == ["material"]
    # ids differ, and with them the halves of the calibration; raw lines do not
    assert one.table.loc[("material", "as_given"), "TPS log"] == pytest.approx(
        other.table.loc[("material", "as_given"), "TPS log"]
    )


def test_runs_left_out_are_counted_by_reason(chess):
    X, y = chess
    cells = X.cells.copy()
    hole = int(np.flatnonzero(y >= 0)[0])
    cells[X.offsets[hole], 1] = np.nan
    holes = TrajectoryArray(
        cells, X.lengths, channels=X.channels, ids=X.ids, meta=X.meta, missing="allow"
    )
    reasons = np.where(y == -1, "max_steps", "game_over").astype(object)
    reasons[np.flatnonzero(y == -1)[:5]] = "parse_error"
    report = evaluate(holes, y, stop_reason=reasons, intervals=IntervalOptions(20))
    assert set(report.table["n_runs"]) == {354}
    assert [tuple(row) for row in report.excluded.to_numpy()] == [
        ("all", "no outcome; stopped by parse_error, not by a budget", 5),
        ("all", "a value of shallow is missing", 1),
    ]
    report = evaluate(
        holes, y, stop_reason=reasons, missing="own_runs", intervals=IntervalOptions(20)
    )
    assert report.table.loc[("engine", "as_given"), "n_runs"] == 355
    assert report.table.loc[("shallow", "as_given"), "n_runs"] == 354
    rows = [tuple(row) for row in report.excluded.to_numpy()]
    assert rows == [
        ("all", "no outcome; stopped by parse_error, not by a budget", 5),
        ("shallow", "a value of shallow is missing", 1),
    ]
    for verbose in (True, False):
        text = " ".join(report.to_text(verbose=verbose).split())
        assert "Left out: 5 runs (no outcome; stopped by parse_error, not by a budget)" in text
        assert "1 run (of shallow: a value of shallow is missing)" in text
    # the margin of a predictor with holes is taken on its own runs
    rows = np.setdiff1d(np.flatnonzero(reasons != "parse_error"), [hole])
    weight = np.array([(1 / np.sqrt(np.arange(1, n + 1))).sum() for n in X.lengths[rows]])
    rate = weight @ np.maximum(y, 0)[rows] / weight.sum()  # over forecasts
    base = X["shallow"].with_cells(np.full(len(X.cells), rate))[rows]
    expected = report.table.loc[("shallow", "as_given"), "TPS log"] - metrics.censored_tps_score(
        y[rows], base
    )
    assert report.table.loc[("shallow", "as_given"), "TPS log margin"] == pytest.approx(expected)


def test_signals_that_are_no_probabilities():
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    signal = X.with_cells(10 * X.cells - 3)
    report = evaluate({"logit": signal}, y, intervals=IntervalOptions(20))
    raw = report.table.loc[("logit", "as_given")]
    assert np.isnan(raw["TPS log"])
    assert raw["AUROC"] == pytest.approx(metrics.trajectory_diagnostics(y, X)["AUROC"])
    assert report.table.loc[("logit", "recalibrated"), "TPS log margin"] > 0
    assert "as given it is not a probability" in report.verdicts()[0]


def test_a_flat_calibration_is_noted():
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    report = evaluate({"upside down": X.with_cells(1 - X.cells)}, y, intervals=IntervalOptions(20))
    assert any("no increasing map of the signal helps" in note for note in report.notes)


def test_q_z_and_groups():
    runs = make_trajectories(200, budget=6, random_state=0)
    q = [run[-1] for run in runs.q]
    exact = evaluate(runs.q, runs.target, q_z=q, intervals=IntervalOptions(50))
    value = exact.table.loc[("forecast", "as_given"), "TPS log"]
    assert value == pytest.approx(metrics.censored_tps_score(runs.target, runs.q, q_z=q))
    assert "counts q_z as a success" in exact.disclosures["censoring"]
    tasks = np.arange(200) // 5
    clustered = evaluate(runs.q, runs.target, groups=tasks, intervals=IntervalOptions(50))
    assert "cluster" in clustered.disclosures["intervals"]


def test_disclosures_of_section_52(report):
    assert set(report.disclosures) >= {"score", "weights", "calibration", "censoring"}
    assert "67 of 360 runs not observed" in report.disclosures["censoring"]


def test_text_fits_a_terminal(report):
    assert max(len(line) for line in report.to_text(verbose=True).splitlines()) <= 100
    assert "base rate" in report._repr_html_()


def test_page_is_self_contained(report, tmp_path):
    page = report.to_html(tmp_path / "report.html").read_text()
    assert "://" not in page
    assert "engine: recalibrate; as given" in page
    assert "lies too near the base rate" in page


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.5], [0.6]], [1, 1], "all 2 observed runs are successes"),
        ([[0.5], [0.6]], [0, -1], "the only observed run is a failure"),
        ([[0.5], [0.6]], [-1, -1], "none of the 2 runs has an observed outcome"),
        ([[0.5]], [1], "at least 2 runs, got 1"),
        ({}, [], "no predictor"),
        ({"alive rate": [[0.5], [0.4]]}, [0, 1], "'alive rate' is the name of a reference"),
        (
            {"a": [[0.5], [0.4]], "b": [[0.5, 0.5], [0.4, 0.4]]},
            [0, 1],
            "have 1 and 2 steps in row 0",
        ),
        ({"a": [[0.5, np.nan, 0.5], [0.4, 0.4, 0.4]]}, [0, 1], "'a': run 0 .*step 2"),
        ([[0.5], [0.6]], [1, 0, 1], "3 outcomes for 2 runs"),
        ([[0.5], [0.6]], None, "there are no outcomes: y is None"),
        ([[0.5], [0.6]], [1, 10**400], "run 1: outcome inf lies outside"),
        ([[0.5], [0.6]], [0.5, 0.5], "all 2 observed outcomes are 0.5; an evaluation needs both"),
    ],
)
def test_bad_input(X, y, message):
    with pytest.raises(ValueError, match=message):
        evaluate(X, y, intervals=IntervalOptions(10))


def test_unknown_calibrator():
    with pytest.raises(ValueError, match="calibrator must be"):
        evaluate([[0.5], [0.6]], [1, 0], calibrator="spline")
    report = evaluate([[0.5], [0.6]], [1, 0], calibrator=None, intervals=IntervalOptions(10))
    assert report.disclosures["calibration"] == "none"


def test_too_few_runs_to_calibrate_is_said():
    report = evaluate([[0.5], [0.6]], [1, 0], intervals=IntervalOptions(10))
    assert any("not recalibrated" in note for note in report.notes)


def test_ecuas_columns_are_those_of_the_collapsed_traces(ragged):
    X, y = ragged
    report = evaluate(X, y, intervals=IntervalOptions(20))
    traces = report.traces["forecast", "recalibrated"]
    confidence = aggregate(traces, "weighted")
    success = report.outcomes["forecast", "recalibrated"]
    for n in (0, 1, 128):
        expected = metrics.ecuas_from_confidence(success, confidence, n=n)
        assert report.table.loc[("forecast", "recalibrated"), f"ECUAS_{n}"] == pytest.approx(
            expected
        )
    assert report.table["ECUAS_1"].notna().all()  # references are probabilities, too


def test_monitoring_is_judged_out_of_fold(ragged):
    X, y = ragged
    rule = DensityRatioEProcess(threshold="conformal", alpha=[0.2, 0.4])
    few = MonitoringOptions(rule, n_splits=6)
    report = evaluate(X, y, intervals=IntervalOptions(20), monitoring=few)
    table = report.monitoring
    assert table.index.names == ["predictor", "alpha"]
    assert set(table.index.get_level_values("predictor")) == {"forecast", "alive rate"}
    assert (table["n_known"] == 160).all()
    assert (table["n_success"] + table["n_failure"] == 40).all()
    rates = table.loc["forecast", "false_alarm_rate"]
    assert (rates <= [0.35, 0.55]).all()
    assert (table["power"].between(table["power_low"], table["power_high"])).all()
    assert "DensityRatioEProcess" in report.disclosures["monitoring"]
    assert len(report.stopping()) == 4
    groups = np.arange(80) // 2
    grouped = evaluate(
        X[:80],
        y[:80],
        intervals=IntervalOptions(20),
        groups=groups,
        monitoring=MonitoringOptions(n_splits=3),
    )
    assert len(grouped.monitoring) == 6
    assert evaluate(X, y, intervals=IntervalOptions(20)).monitoring is None


def test_graded_outcomes(ragged):
    X, y = ragged
    graded = y.astype(float)
    graded[:30] = 0.25
    report = evaluate(X, graded, intervals=IntervalOptions(20))
    ids = np.argsort(X.ids, kind="stable")
    c = aggregate(X[ids], "weighted")
    costs = [metrics.ecuas_from_confidence(np.full(len(c), v), c) for v in (0, 1)]
    right = [metrics.ecuas_from_confidence([1], [one]) for one in c]
    wrong = [metrics.ecuas_from_confidence([0], [one]) for one in c]
    expected = np.mean(graded[ids] * right + (1 - graded[ids]) * wrong)
    assert report.table.loc[("forecast", "as_given"), "ECUAS_1"] == pytest.approx(expected)
    assert min(costs) < expected < max(costs)


def test_a_data_frame_keeps_its_index_as_ids(ragged):
    X, y = ragged
    frame = pd.DataFrame(X.padded(), index=X.ids)
    order = np.random.default_rng(0).permutation(len(y))
    one = evaluate(frame, y, intervals=IntervalOptions(20))
    other = evaluate(frame.iloc[order], y[order], intervals=IntervalOptions(20))
    pd.testing.assert_frame_equal(one.table, other.table)
    named = evaluate(X, y, intervals=IntervalOptions(20))
    np.testing.assert_allclose(one.table.to_numpy(), named.table.to_numpy())
    fitted = PlattCrossFitCalibrator().fit_transform(frame, y)
    shuffled = PlattCrossFitCalibrator().fit_transform(frame.iloc[order], y[order])
    np.testing.assert_array_equal(fitted[order], shuffled)


def test_predictors_of_other_lengths_are_named(ragged):
    X, y = ragged
    row = int(np.argmax(X.lengths > 3))
    with pytest.raises(ValueError, match=rf"have {X.lengths[row]} and 3 steps in row {row}"):
        evaluate({"a": X, "b": X.prefix(3)}, y)


def test_stop_kinds_of_the_log_decide_who_is_left_out(chess):
    X, y = chess[0]["material"], chess[1]
    reasons = np.where(y == -1, "timeout", "game_over")
    for kind, left_out in (("administrative", 0), ("informative", int((y == -1).sum()))):
        meta = {"stop_reason": reasons, "stop_kind": np.where(y == -1, kind, "complete")}
        noted = TrajectoryArray(X.cells, X.lengths, channels=X.channels, ids=X.ids, meta=meta)
        report = evaluate(noted, y, intervals=IntervalOptions(10))
        assert report.excluded["n_runs"].sum() == left_out
        given = evaluate(
            noted, y, stop_reason=np.full(len(y), "max_steps"), intervals=IntervalOptions(10)
        )
        assert given.excluded.empty


def test_predictors_of_other_runs_are_refused():
    X, y = make_trajectories(40, lengths=(4, 4), random_state=0, return_X_y=True)
    with pytest.raises(ValueError, match="row 0 is run 0 in predictor 'a', but run 39 in predict"):
        evaluate({"a": X, "b": X[::-1]}, y)
    assert (
        len(evaluate({"a": X, "b": X.padded()}, y, intervals=IntervalOptions(10)).predictors) == 2
    )


@pytest.mark.parametrize("size", [30, 50])
def test_one_q_z_and_one_group_for_each_run(size):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    with pytest.raises(ValueError, match="groups must be 40 labels, one for each run"):
        evaluate(X, y, groups=np.arange(size))
    with pytest.raises(ValueError, match="q_z must be one number or 40"):
        evaluate(X, y, q_z=np.full(size, 0.5))


def test_a_bad_q_z_is_named_by_its_row():
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    X = X.with_cells(X.cells)[::-1]
    y = np.where(np.arange(40) == 3, -1, y[::-1])
    q = np.where(np.arange(40) == 3, 1.5, 0.5)
    with pytest.raises(ValueError, match="row 3: its outcome was not observed and q_z is 1.5"):
        evaluate(X, y, q_z=q)


@pytest.mark.parametrize("name", CALIBRATORS)
def test_calibrators_are_known_by_name(name):
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    report = evaluate(X, y, calibrator=name, intervals=IntervalOptions(10))
    as_object = evaluate(X, y, calibrator=CALIBRATORS[name](), intervals=IntervalOptions(10))
    assert CALIBRATORS[name].__name__ in report.disclosures["calibration"]
    pd.testing.assert_frame_equal(report.table, as_object.table)
    if name == "beta":
        with pytest.raises(ValueError, match=r"BetaCrossFit.* takes forecasts in \[0, 1\] alone"):
            evaluate(X.with_cells(10 * X.cells - 3), y, calibrator=name)


def test_every_calibrator_is_disclosed():
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    signal = X.with_cells(10 * X.cells - 3)
    said = evaluate({"p": X, "logit": signal}, y, intervals=IntervalOptions(10)).disclosures[
        "calibration"
    ]
    assert "EnsembleCrossFitCalibrator() for p;" in said
    assert "EnsembleCrossFitCalibrator(link='identity') for logit;" in said
    assert "the mean, in log-odds, of Platt's, a beta and an isotonic map" in said
    published = evaluate(X, y, calibrator="platt", intervals=IntervalOptions(10))
    assert published.disclosures["calibration"] == "PlattCrossFitCalibrator(), out of fold"


def test_a_stray_value_among_probabilities_is_pointed_at():
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    cells = X.cells.copy()
    cells[X.offsets[5] + 1] = 1.7
    report = evaluate({"judge": X.with_cells(cells)}, y, intervals=IntervalOptions(10))
    note = "judge: run 5, step 2: 1.7 lies outside [0, 1]; correct it if this is a"
    assert note in report.notes[0]
    assert note in " ".join(report.to_text(verbose=True).split())
    cells[X.offsets[7]] = -0.2
    report = evaluate({"judge": X.with_cells(cells)}, y, intervals=IntervalOptions(10))
    assert "(the first of 2 such values)" in report.notes[0]
    risk = np.where(X.cells < 0.3, -0.0001, 0.0)  # minus a risk, mostly 0
    report = evaluate({"risk": X.with_cells(risk)}, y, intervals=IntervalOptions(10))
    assert not any("correct it" in note for note in report.notes)
    assert not evaluate(
        {"logit": X.with_cells(10 * X.cells - 3)}, y, intervals=IntervalOptions(10)
    ).notes


def test_a_signal_that_does_not_vary_is_noted():
    X, y = make_trajectories(80, random_state=0, return_X_y=True)
    report = evaluate(
        {"same": X.with_cells(np.full(len(X.cells), 0.5))}, y, intervals=IntervalOptions(10)
    )
    assert "in both cross-fitting folds no increasing map of the signal helps" in report.notes[0]


@pytest.mark.parametrize("score", ["brier", ("beta", 2, 4)])
def test_one_score_alone(score):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    report = evaluate(X, y, scores=score, intervals=IntervalOptions(10))
    assert report.table.equals(evaluate(X, y, scores=[score], intervals=IntervalOptions(10)).table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scores": []}, "scores is empty; name at least one"),
        ({"scores": "logg"}, "unknown score 'logg'"),
        ({"scores": ["log", "log"]}, "scores names log more than once"),
        ({"intervals": IntervalOptions(1.5)}, "n_resamples must be a whole number"),
        ({"scores": 3}, "unknown score 3"),
        ({"intervals": 3}, "intervals must be .* got 3"),
        (
            {"calibrator": "spline"},
            "'platt', 'beta', 'isotonic', a forecaster or None, got 'spline'",
        ),
        ({"stop_reason": 3}, "stop_reason must have one reason a run: 40, got 1"),
    ],
)
def test_bad_options(options, message):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    with pytest.raises(ValueError, match=message):
        evaluate(X, y, **options)


def test_runs_without_a_stop_reason_are_called_so():
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    y, reasons = y.copy(), np.full(40, "done", dtype=object)
    y[:4], reasons[:4] = -1, [None, np.nan, "", "parse error"]
    excluded = evaluate(X, y, stop_reason=reasons, intervals=IntervalOptions(10)).excluded
    assert excluded[["reason", "n_runs"]].to_numpy().tolist() == [
        ["no outcome; stopped by parse error, not by a budget", 1],
        ["no outcome and no stop reason", 3],
    ]


def test_what_was_left_out_is_said_when_too_little_is_left():
    X = make_trajectories(40, random_state=0).data
    with pytest.raises(
        ValueError, match=r"got 0; left out: 40 runs \(no outcome; stopped by parse_error"
    ):
        evaluate(X, np.full(40, -1), stop_reason=["parse_error"] * 40)


def test_text_fits_the_terminal_and_tells_long_names_apart(monkeypatch):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    first, second = "judge, prompt of the first day", "judge, prompt of the second day"
    report = evaluate({first: X, second: X}, y, intervals=IntervalOptions(20))
    for columns, width in ((60, 72), (80, 80), (200, 100)):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = report.to_text(verbose=True)
        assert max(map(len, text.splitlines())) <= width
        assert "judge, ... first day, as given" in text
        assert "judge, ...second day, as given" in text


def test_one_run_is_one_run(chess):
    X, y = chess
    reasons = np.where(np.arange(len(y)) == int(np.argmax(y == -1)), "parse_error", "max_steps")
    report = evaluate(X["engine"], y, stop_reason=reasons, intervals=IntervalOptions(20))
    assert "Left out: 1 run (no outcome" in report.to_text(verbose=True)


def test_any_forecaster_calibrates_out_of_fold():
    X, y = make_trajectories(150, random_state=0, return_X_y=True)
    groups = np.arange(150) // 3
    model = PrefixForecaster(features="last", pooled=True)
    report = evaluate(X, y, calibrator=model, groups=groups, intervals=IntervalOptions(2))
    order = np.argsort(X.ids, kind="stable")
    expected = cross_fit_traces(model, X[order], y[order], groups=groups[order])
    found = report.traces["forecast", "recalibrated"]
    np.testing.assert_array_equal(found.cells, expected.cells)
    with pytest.raises(ValueError, match="calibrator must have a transform that returns"):
        evaluate(X, y, calibrator=LogisticRegression())
    report = evaluate(X, y, calibrator=FunctionTransformer(lambda X: X.with_cells(2 * X.cells)))
    assert any("not recalibrated; run" in note for note in report.notes)


def test_what_renders_a_report_takes_numbers_alone(tmp_path):
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    report = evaluate(X, y, calibrator=None, intervals=IntervalOptions(10))
    data = ReportData(**vars(report))
    assert to_text(data) == str(report)
    assert to_html(data) == report.to_html(tmp_path / "report.html").read_text()


TREES = PrefixForecaster(
    HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=2), features="summary", pooled=True
)


@pytest.mark.parametrize(
    "calibrator",
    [
        TREES,
        make_pipeline(TREES, TraceAggregator()),
        GridSearchCV(TREES, {"features": ["last", "summary"]}, scoring=tps_scorer, cv=2),
    ],
    ids=["trees", "pipeline", "search"],
)
def test_noise_stays_noise(calibrator):
    areas = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, y = TrajectoryArray(rng.random(1600), [8] * 200), rng.integers(0, 2, 200)
        report = evaluate(
            {"noise": X}, y, calibrator=calibrator, scores="log", intervals=IntervalOptions(50)
        )
        row = report.table.loc[("noise", "recalibrated")]
        areas.append(row["AUROC"])
        assert row["TPS log margin_low"] < 0
    assert np.mean(areas) == pytest.approx(0.5, abs=0.08)
    assert "noise: do not use; as given" in report.verdicts()[0]


def test_what_is_not_fitted_anew_is_refused_by_name():
    X, y = make_trajectories(60, random_state=0, return_X_y=True)
    fitted = FrozenEstimator(PlattCrossFitCalibrator().fit(X, y))
    for calibrator in (fitted, make_pipeline(fitted)):
        with pytest.raises(ValueError, match="FrozenEstimator.*is not fitted anew for each fold"):
            evaluate(X, y, calibrator=calibrator, intervals=IntervalOptions(2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"calibrator": 3}, "calibrator must be an estimator, got 3"),
        ({"groups": "task"}, "groups must be a label for each run, got the text 'task'"),
        ({"intervals": 20}, "or IntervalOptions, got 20"),
        (
            {"intervals": IntervalOptions(confidence_level=95)},
            "confidence_level must lie .* got 95",
        ),
    ],
    ids=str,
)
def test_values_of_another_kind_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        evaluate([[0.2], [0.4], [0.6], [0.8]], [0, 1, 0, 1], **options)


@pytest.mark.parametrize("X", ["runs.csv", [0.1, 0.2]], ids=str)
def test_what_is_not_runs_is_refused_with_the_way_to_make_them(X):
    with pytest.raises(ValueError, match=r"TrajectoryArray\.from_frame"):
        evaluate(X, [0, 1])
