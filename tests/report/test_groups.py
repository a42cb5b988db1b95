"""Groups of runs: whether they differ, and what a report says of each."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from trajscore import TrajectoryArray, evaluate
from trajscore.core.errors import ArgumentError
from trajscore.core.parallel import Work
from trajscore.core.score_families import LogScore
from trajscore.core.weights import as_step_weights
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions
from trajscore.report._cards import AVOID, TOO_FEW, USE, card_table, have_too_few_runs
from trajscore.report._data import (
    AS_GIVEN,
    BASE_RATE,
    CONSTANT,
    RECALIBRATED,
    Options,
    columns_of,
)
from trajscore.report._groups import (
    _as_all,
    _distances,
    _share_saved,
    _shrunken,
    _shuffles,
    differ,
    group_table,
    shown_groups,
    shrink,
)
from trajscore.report._rows import Row
from trajscore.report._runs import Coverage, check_predictors, choose_runs

QUICK = IntervalOptions(50, method="influence")
OPTIONS = Options(("log",), as_step_weights(), "weighted")


def made(n, seed):
    """True forecasts of moderate sharpness."""
    runs = make_trajectories(n, lengths=(3, 8), information=0.35, random_state=seed)
    return runs.q, runs.target


def p_of(p, y, labels, clusters=None, options=OPTIONS):
    """Return the p-value of forecasts of one step being worth another share in some group."""
    judged = choose_runs(check_predictors(p[:, None], y, clusters, None), None, "failure")
    row = Row("forecast", RECALIBRATED, judged.traces["forecast"], judged.runs, True)
    labels = np.asarray(labels)[judged.runs.source_rows].astype(str).astype(object)
    return differ([row], judged.runs, labels, options, QUICK)[0]


def forecasts(seed, n=180):
    """Forecasts of skewed worth, without overconfidence."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.8, n).clip(0.01, 0.99)
    return p, (rng.random(n) < p).astype(int), rng


def test_groups_drawn_at_random_are_rarely_called_different():
    # of 60 at a rate of 5% ten come once in 1000
    found = 0
    for seed in range(60):
        p, y, rng = forecasts(seed)
        found += p_of(p, y, rng.integers(0, 6, len(y))) < 0.05
    assert found < 10


class ShiftedLog:
    """The log score and 3, which a perfect forecast has."""

    def success(self, p):
        return LogScore().success(p) + 3

    def failure(self, p):
        return LogScore().failure(p) + 3


def test_what_a_perfect_forecast_scores_does_not_matter():
    p, y, rng = forecasts(1)
    labels = rng.integers(0, 3, len(y))
    options = replace(OPTIONS, scores=(ShiftedLog(),))
    assert p_of(p, y, labels, options=options) == pytest.approx(p_of(p, y, labels), rel=1e-9)


@pytest.mark.parametrize("n_labels", ["one group a cluster", "several"])
def test_runs_of_a_cluster_are_no_evidence_of_their_own(n_labels):
    found = {True: 0, False: 0}
    for seed in range(40):
        p, y, rng = forecasts(seed, 48)
        cluster = np.repeat(np.arange(48), 5)  # five copies of each run
        group = rng.integers(0, 3, 48)[cluster]
        if n_labels == "several":  # and one of each that lies in a group of its own
            group = np.where(np.arange(240) % 5 == 0, 3, group)
        for clustered in found:
            p_value = p_of(p[cluster], y[cluster], group, cluster if clustered else None)
            found[clustered] += p_value < 0.05
    assert found[True] < 8
    if n_labels != "several":
        assert found[False] > 15


def test_runs_that_a_row_does_not_cover_are_no_evidence_of_it():
    p, y, rng = forecasts(0, 60)
    labels = rng.integers(0, 3, (20, 60))

    def distances(rows, places, shuffled):
        runs = Coverage(y[rows], y[rows].astype(float), None, rows, rows)
        row = Row("a", RECALIBRATED, TrajectoryArray(p[rows], np.ones(len(rows), int)), runs, True)
        return _distances(row, places, shuffled, 3, OPTIONS)

    some = np.arange(40)
    found = distances(some, np.arange(60), labels)
    absent = np.where(np.arange(60) < 40, np.arange(60), -1)
    np.testing.assert_allclose(found, distances(some, absent, labels[:, :40]))
    assert abs(found - distances(np.arange(60), np.arange(60), labels)).min() > 1e-3


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_the_saved_share_of_a_large_group(share):
    """Forecasts without loss save all of the base rate's loss; its own base rate saves none."""
    n = 1e6
    won, lost = share * n, (1 - share) * n
    own = won * np.log(share) + lost * np.log(1 - share)
    totals = np.array([[0.0, own, own / 2], [won] * 3, [lost] * 3, [n] * 3, [n] * 3])
    saved, slope = _share_saved(totals, totals[:, 0], OPTIONS)
    np.testing.assert_allclose(saved, [1, 0, 0.5], atol=1e-4)
    np.testing.assert_allclose(slope[0], -1 / own, rtol=1e-4)


def test_an_inverted_group_is_found():
    p, y, _ = forecasts(0, 240)
    group = np.arange(240) % 6
    assert p_of(np.where(group == 0, 1 - p, p), y, group) < 0.01
    assert p_of(p, y, group) > 0.05


def test_what_only_knows_the_group_does_not_work_within_it():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 100)
    p = np.where(group, 0.8, 0.3)
    y = (rng.random(200) < p).astype(int)
    report = evaluate(p[:, None], y, by=group, calibrator=None, intervals=QUICK)
    assert report.cards["card"].iloc[0] == USE
    assert (report.by["p_value"] < 0.05).all()
    assert (report.by["card"] != USE).all()


def test_groups_that_do_not_differ_have_the_card_of_all_runs():
    X, y = made(400, 1)
    group = np.random.default_rng(0).integers(0, 6, 400)
    report = evaluate(X, y, by={"half": group}, intervals=QUICK)
    cards, groups, all_runs = report.by["card"], report.by, report.cards.iloc[0]
    assert (groups["p_value"] >= 0.05).all()
    assert (cards[~have_too_few_runs(groups)] == all_runs["card"]).all()
    row = groups.iloc[0]
    share = row["matters"] / all_runs["matters"]
    assert row["as_given_low"] == pytest.approx(all_runs["as_given_low"] * share)
    p = f"(p = {groups['p_value'].iloc[0]:.2g})"
    said = f"the 6 groups are not shown to differ in how well forecast works {p}: read the result"
    for text in (str(report), report.to_html(), report.to_markdown(), report.verdicts()[0]):
        assert f"By half, {said}" in " ".join(text.replace("\\", "").split())
    assert " in 2 of 6" not in str(report)


def test_the_cards_of_groups_that_differ_are_their_own():
    X, y = made(600, 0)
    group = np.arange(600) % 3
    turned = np.repeat(group == 0, X.lengths)
    X = X.with_cells(np.where(turned, 1 - X.cells, X.cells))
    report = evaluate(X, y, by=group, intervals=QUICK)
    groups = report.by.droplevel(["by", "predictor"])
    assert groups.loc["0", "card"] == AVOID
    assert (groups.loc[["1", "2"], "card"] != AVOID).all()
    assert (groups["p_value"] < 0.01).all()
    said = "By group, how well forecast works differs between groups (p = 0.00"
    assert said in " ".join(str(report).split())
    assert said in report.verdicts()[0]
    assert groups.loc["0", "recalibrated"] > groups.loc["0", "own"]  # shrunken
    assert groups.loc["1", "recalibrated"] < groups.loc["1", "own"]


def test_the_cards_of_two_groups_that_differ_are_shrunken_towards_each_other():
    X, y = made(600, 0)
    group = np.arange(600) % 2
    turned = np.repeat(group == 0, X.lengths)
    X = X.with_cells(np.where(turned, 1 - X.cells, X.cells))
    groups = evaluate(X, y, by=group, intervals=QUICK).by.droplevel(["by", "predictor"])
    alone = evaluate(X[group == 1], y[group == 1], intervals=QUICK).cards.iloc[0]
    assert (groups["p_value"] < 0.01).all()
    assert groups.loc["0", "as_given"] < groups.loc["1", "as_given"] < alone["as_given"]
    below = groups["as_given"] - groups["as_given_low"]
    assert below.to_numpy() == pytest.approx(groups["as_given_high"] - groups["as_given"])
    assert 1 < below["1"] / (alone["as_given"] - alone["as_given_low"]) < 1.3


def test_several_kinds_of_groups_share_the_error_rate():
    X, y = made(200, 0)
    group = np.arange(200) % 4
    one = evaluate(X, y, by={"a": group}, intervals=QUICK).by["p_value"].iloc[0]
    two = evaluate(X, y, by={"a": group, "b": group}, intervals=QUICK).by["p_value"]
    assert two.to_numpy() == pytest.approx(min(1, 2 * one))


def test_shrinking():
    value, variance = np.array([0.0, 0.1, 0.2, 0.3]), np.full(4, 1.0)
    centre, factor = shrink(value, variance)  # as alike as noise: the mean, and its error
    assert centre == pytest.approx([0.15] * 4)
    assert (factor > 0.5).all()
    assert (factor < 1).all()
    centre, factor = shrink(10 * value, variance / 1e4)
    assert centre == pytest.approx(10 * value, abs=0.01)
    assert factor == pytest.approx(1, abs=0.01)
    centre, _ = shrink(value, np.array([1e-6, 1e-6, 1e-6, 1.0]))  # the least known one moves most
    assert centre[3] < 0.2
    # estimates of normal worth are nearer to it, and intervals hold it
    rng = np.random.default_rng(0)
    off, shrunken, held = 0.0, 0.0, []
    for _ in range(200):
        truth = rng.normal(0, 0.5, 8)
        seen = truth + rng.normal(0, 1, 8)
        centre, factor = shrink(seen, np.ones(8))
        off, shrunken = off + ((seen - truth) ** 2).sum(), shrunken + ((centre - truth) ** 2).sum()
        held.append(np.abs(centre - truth) <= 1.96 * factor)
    assert shrunken < 0.6 * off
    assert np.mean(held) > 0.93


def test_groups_share_the_error_rate():
    X, y = made(300, 0)
    model = np.where(np.arange(300) < 200, "a", "b").astype(object)
    model[:5] = None
    report = evaluate(X, y, by=model, calibrator=None, intervals=QUICK)
    table = report.by
    assert table.index.names == ["by", "group", "predictor"]
    sizes = table["n_runs"].droplevel(["by", "predictor"]).to_dict()
    assert sizes == {"(none)": 5, "a": 195, "b": 100}
    assert table.loc[("group", "(none)", "forecast"), "card"] == TOO_FEW
    own = y[model == "b"].mean()
    assert table.loc[("group", "b", "forecast"), "success_rate"] == pytest.approx(own)
    alone = evaluate(X[model == "b"], y[model == "b"], calibrator=None, intervals=QUICK)
    assert table.loc[("group", "b", "forecast"), "own"] == pytest.approx(
        alone.cards.loc["forecast", "as_given"]
    )


def test_many_small_groups_are_said_once():
    X, y = made(200, 0)
    report = evaluate(X, y, by={"task": np.arange(200) // 4}, intervals=QUICK)
    said = "all have fewer than 10 runs of an outcome, which say nothing: group by what has fewer"
    assert said in " ".join(str(report).split())
    assert "one map for all" not in str(report)
    page = report.to_html()
    assert said in page
    assert page.count("too few runs") < 10
    assert "50 smaller groups" in page
    assert "smaller groups" not in evaluate(X, y, by=y, intervals=QUICK).to_html()


def test_forty_groups_are_shown():
    names = [f"g{k:02d}" for k in range(45)]
    index = pd.MultiIndex.from_product([names, ["p"]], names=["group", "predictor"])
    groups = pd.DataFrame({"n_runs": np.arange(100, 145), "success_rate": 0.5}, index=index)
    shown, n_more = shown_groups(groups)
    assert shown.index.get_level_values("group").tolist() == names[:4:-1]
    assert n_more == 5


def test_a_group_that_needs_a_map_of_its_own_is_named():
    X, y = made(600, 0)
    rng = np.random.default_rng(0)
    easy = np.arange(600) >= 400  # nearly all succeed, whatever is said of them
    y = np.where(easy, rng.random(600) < 0.9, y)
    noise = np.repeat(easy, X.lengths)
    X = X.with_cells(np.where(noise, rng.random(len(noise)), X.cells))
    report = evaluate(X, y, by={"bench": np.where(easy, "easy", "hard")}, intervals=QUICK)
    said = (
        "recalibrated by one map for all runs, it is worse than the base rate in easy: report these"
    )
    assert said in " ".join(str(report).split())
    assert said in report.to_html()
    assert "one map" not in str(evaluate(X, y, by=np.arange(600) % 2, intervals=QUICK))


def test_groups_are_columns_or_labels():
    X, y = made(60, 0)
    named = type(X)(X.cells, X.lengths, ids=X.ids, meta={"model": np.arange(60) % 2})
    for by in ("model", {"model": "model"}, {"model": np.arange(60) % 2}):
        table = evaluate(named, y, by=by, intervals=QUICK).by
        assert list(table.index.get_level_values("group")) == ["0", "1"]
        assert set(table.index.get_level_values("by")) == {"model"}
    with pytest.raises(ArgumentError, match="by: no column named 'modl'; did you mean 'model'"):
        evaluate(named, y, by="modl", intervals=QUICK)
    with pytest.raises(
        ArgumentError, match=r"Keep the column .* meta=\['kind'\]\), or give the lab"
    ):
        evaluate(X, y, by="kind", intervals=QUICK)
    for labels, shape in [([1, 2, 3], "(3,)"), (np.arange(60)[:, None], "(60, 1)")]:
        said = re.escape(f"by: the labels of 'group' have shape {shape}, for 60 runs; give one")
        with pytest.raises(ValueError, match=said):
            evaluate(named, y, by=labels, intervals=QUICK)


def test_the_answer_names_groups_in_which_it_does_not_hold():
    X, y = made(600, 0)
    inverted = np.arange(600) < 90
    cells = np.where(np.repeat(inverted, X.lengths), 1 - X.cells, X.cells)
    kind = np.where(inverted, "odd", np.where(np.arange(600) % 2, "one", "two"))
    report = evaluate(X.with_cells(cells), y, by={"kind": kind}, intervals=QUICK)
    assert report.by.loc[("kind", "odd", "forecast"), "card"] == "do not use"
    assert "Use forecast as it is, but not in kind odd: " in " ".join(str(report).split())
    assert "but not in" not in str(evaluate(X, y, by={"kind": kind}, intervals=QUICK))


def test_groups_are_in_every_form_of_the_report():
    X, y = made(300, 0)
    kind = np.where(np.arange(300) % 3, "usual", "rare")
    report = evaluate({"iJudge": X}, y, by={"kind of task": kind}, intervals=QUICK)
    row = report.by.loc[("kind of task", "rare", "iJudge")]
    cell = f"{row['as_given']:+.3f} [{row['as_given_low']:+.3f}, {row['as_given_high']:+.3f}]"
    text = report.to_text(verbose=True)
    assert "By kind of task, how well iJudge works differs" in " ".join(text.split())
    line = next(one for one in text.splitlines() if one.startswith("rare, iJudge "))
    assert re.split(" {2,}", line)[1:5] == ["100", f"{row['success_rate']:.0%}", row["card"], cell]
    markdown = report.to_markdown()
    assert "## By kind of task" in markdown
    assert (
        f"| rare | iJudge | 100 | {row['success_rate']:.0%} | {row['card']} | {cell} |" in markdown
    )
    for page in (text, markdown, report.to_html()):  # a name stays as it is
        assert "IJudge" not in page


def test_many_groups_are_cut_in_tables_and_counted():
    X, y = made(200, 0)
    report = evaluate(X, y, by={"task": np.arange(200) // 4}, intervals=QUICK)
    assert "50 smaller groups are not shown." in " ".join(report.to_text(verbose=True).split())
    assert "50 smaller groups are not shown." in report.to_markdown()


def by_definition(value, variance):
    """Paule and Mandel's variance by bisection; Morris's intervals in the terms of his paper."""
    n = len(value)

    def excess(between):
        weight = 1 / (variance + between)
        mean = (weight * value).sum() / weight.sum()
        return (weight * (value - mean) ** 2).sum() - (n - 1)

    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    weight = 1 / (variance + low)
    mean, kept = (weight * value).sum() / weight.sum(), low / (low + variance)
    centre = kept * value + (1 - kept) * mean
    unknown = (1 - kept) ** 2 * (1 / weight.sum() + 2 / max(n - 3, 1) * (value - mean) ** 2)
    return centre, np.minimum(np.sqrt((kept * variance + unknown) / variance), 1)


@pytest.mark.parametrize(
    ("value", "variance"),
    [
        ([0.0, 1.0, 2.0, 9.0], [1.0, 1.0, 1.0, 1.0]),
        ([0.0, 3.0], [1.0, 2.0]),
        ([0.0, 3.0, -4.0], [1.0, 2.0, 0.5]),
        ([5.0, 3.0, -4.0, 0.2, 0.4, 1.0], [1.0, 2.0, 0.5, 0.1, 4.0, 9.0]),
        ([0.1, 0.2, 0.15, 0.12, 0.3], [1.0, 2.0, 0.5, 0.1, 4.0]),  # no variance between groups
    ],
)
def test_shrinking_by_definition(value, variance):
    value, variance = np.array(value), np.array(variance)
    centre, factor = by_definition(value, variance)
    found = shrink(value, variance)
    np.testing.assert_allclose(found[0], centre, rtol=1e-6)
    np.testing.assert_allclose(found[1], factor, rtol=1e-6)


def test_estimates_without_an_error_stay_where_they_are():
    centre, factor = shrink(np.array([1.0, 2.0, 4.0]), np.zeros(3))
    np.testing.assert_allclose(centre, [1, 2, 4], rtol=1e-6)
    assert (factor <= 1).all()
    alike, _ = shrink(np.full(3, 2.0), np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(alike, 2)


def groups_by_hand(*rows, t=2.0):
    """Cards of groups of 100 runs each, of which half succeed, from the ends of three estimates."""
    columns = {"n_runs": 100, "success_rate": 0.5, "n_needed": 0, "signal_high": np.nan, "t": t}
    table = pd.DataFrame([{**columns, "card": TOO_FEW, "matters": 0.02, **row} for row in rows])
    for name in ("as_given", "recalibrated", "gain"):
        for column in columns_of(name):
            if column not in table:
                table[column] = np.nan
    return table.assign(confidence_level=0.95)


def test_groups_that_are_alike_have_shares_of_the_numbers_of_all():
    groups = groups_by_hand({}, {"matters": 0.01, "n_needed": 7}, {"n_runs": 12, "n_needed": 7})
    of_all = {"as_given": 0.3, "as_given_low": 0.1, "signal_high": 0.8, "card": USE}
    card = groups_by_hand(of_all).iloc[0].copy()
    card["confidence_level"] = 0.99
    out = _as_all(groups, card)
    assert out["card"].tolist() == [USE, USE, TOO_FEW]  # the last has too few runs of an outcome
    assert out["as_given"].tolist()[:2] == pytest.approx([0.3, 0.15])
    assert out["as_given_low"].tolist()[:2] == pytest.approx([0.1, 0.05])
    assert out["signal_high"].tolist()[:2] == pytest.approx([0.8, 0.4])
    assert np.isnan(out["as_given"].iloc[2])
    assert out["n_needed"].tolist() == [0, 0, 7]
    assert out["confidence_level"].tolist() == [0.99, 0.99, 0.95]
    card["matters"] = 0.0  # where the base rate loses nothing
    assert _as_all(groups, card)["as_given"].iloc[0] == pytest.approx(0.3 * 0.02)


def test_groups_that_differ_are_decided_by_shrunken_shares():
    def ends(value, below, above):
        three = (value, value - below, value + above)
        return dict(zip(columns_of("as_given"), three, strict=True))

    groups = groups_by_hand(
        ends(0.1, 0.02, 0.04),
        ends(0.0, 0.04, 0.04),
        ends(0.12, 0.02, 0.02) | {"matters": 0.04},
        ends(0.3, np.nan, np.nan) | {"signal_high": 0.1},  # without an interval
        ends(-0.5, 0.1, 0.1) | {"n_runs": 12},  # too few to be decided
    )
    out = _shrunken(groups, groups.iloc[0])
    value = np.array([0.1 / 0.02, 0.0, 0.12 / 0.04])
    half = np.array([0.06 / 0.02, 0.08 / 0.02, 0.04 / 0.04]) / 2 / 2.0
    centre, factor = by_definition(value, half**2)
    matters = np.array([0.02, 0.02, 0.04])
    np.testing.assert_allclose(out["as_given"][:3], centre * matters, rtol=1e-6)
    below = np.array([0.02, 0.04, 0.02]) * factor
    above = np.array([0.04, 0.04, 0.02]) * factor
    np.testing.assert_allclose(out["as_given_low"][:3], centre * matters - below, rtol=1e-6)
    np.testing.assert_allclose(out["as_given_high"][:3], centre * matters + above, rtol=1e-6)
    assert out["as_given"].tolist()[3:] == [0.3, -0.5]
    assert out["card"].tolist() == [USE, TOO_FEW, USE, TOO_FEW, TOO_FEW]
    # as many runs again, where the group alone would have been decided
    assert out["n_needed"].tolist() == [0, 100, 0, 100, 0]


def test_one_group_with_an_interval_is_not_shrunken():
    groups = groups_by_hand(
        dict(zip(columns_of("gain"), (0.1, 0.0, 0.2), strict=True)), {"gain": 0.3}
    )
    assert _shrunken(groups, groups.iloc[0])["gain"].tolist() == [0.1, 0.3]


def test_labels_are_shuffled_within_blocks():
    code, block = np.array([0, 1, 2, 3, 4, 5]), np.array([0, 1, 0, 1, 0, 1])
    shuffled = _shuffles(code, block, 0)
    assert shuffled.shape == (1000, 6)
    assert shuffled[0].tolist() == code.tolist()
    for k in (0, 1):
        own = shuffled[1:][:, block == k]
        assert np.array_equal(np.sort(own, axis=1), np.tile(code[block == k], (999, 1)))
        assert len(np.unique(own, axis=0)) == 6
    assert np.array_equal(shuffled, _shuffles(code, block, 0))


@pytest.mark.parametrize(("most", "n_shuffles"), [(6 * 500, 500), (600, 199), (6 * 5000, 999)])
def test_very_many_runs_are_shuffled_less_often(monkeypatch, most, n_shuffles):
    monkeypatch.setattr("trajscore.report._groups._MOST_LABELS", most)
    assert len(_shuffles(np.arange(6), np.zeros(6, dtype=int), 0)) == 1 + n_shuffles


def test_a_group_without_a_run_of_a_predictor_needs_more_runs():
    X, y = made(120, 0)
    group = np.arange(120) % 3
    gone = np.repeat(group == 2, X.lengths)
    cells = np.where(gone, np.nan, X.cells)
    X = {"whole": X, "part": TrajectoryArray(cells, X.lengths, ids=X.ids, missing="allow")}
    report = evaluate(X, y, by=group, missing="own_runs", calibrator=None, intervals=QUICK)
    row = report.by.loc[("group", "2", "part")]
    assert (row["n_runs"], row["card"], row["matters"]) == (0, TOO_FEW, 0)
    assert row["n_needed"] > 0
    assert np.isnan(row["as_given"])
    assert report.by.loc[("group", "2", "whole"), "n_runs"] == 40
    assert report.by.loc[("group", "1", "part"), "n_runs"] == 40


def distances_by_definition(y, p, lengths, places, labelled, n_groups):
    """Sum of squared differences of saved shares, over their variances, group by group."""
    log, end = LogScore(), np.cumsum(lengths)
    step = np.concatenate([np.arange(1, n + 1) for n in lengths])
    score = np.where(np.repeat(y, lengths) == 1, np.log(p), np.log1p(-p)) / np.sqrt(step)
    own = np.array([score[b - n : b].sum() for n, b in zip(lengths, end, strict=True)])
    w = np.array([(1 / np.sqrt(np.arange(1, n + 1))).sum() for n in lengths])
    items = [np.flatnonzero(places == k) for k in range(max(places) + 1)]
    used = np.concatenate(items)
    good = (w * y)[used].sum()
    bad = w[used].sum() - good
    prior = 5 * good / len(items), 5 * bad / len(items)

    def of_group(members):
        rows = np.concatenate([items[k] for k in members])
        won, lost = (w * y)[rows].sum(), (w * (1 - y))[rows].sum()
        rate = np.array([won / (won + lost)])
        gain, loss = float(log.success(rate)[0]), float(log.failure(rate)[0])
        above = own - w * np.where(y == 1, gain, loss)
        margin = above[rows].sum() / w[rows].sum()
        rate = (won + prior[0]) / (won + lost + sum(prior))
        entropy = -rate * np.log(rate) - (1 - rate) * np.log1p(-rate)
        scale = entropy * w[rows].sum()
        of_items = [(above[items[k]] - margin * w[items[k]]).sum() for k in members]
        return above[rows].sum() / scale, len(members) * (np.array(of_items) ** 2).sum() / scale**2

    whole, _ = of_group(np.arange(len(items)))
    out = []
    for labels in labelled:
        groups = [np.flatnonzero(labels == g) for g in range(n_groups) if (labels == g).any()]
        n = np.array([len(members) for members in groups])
        share, spread = np.transpose([of_group(members) for members in groups])
        common = (n * spread).sum() / n.sum()
        variance = (n * spread + 4 * common) / (n + 4) / n
        out.append(((share - whole) ** 2 / variance).sum())
    return out


@pytest.mark.parametrize("kind", ["runs", "clusters", "some"])
def test_distances_by_definition(kind):
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 4, 24)
    y = (np.arange(24) % 3 > 0).astype(int)
    p = rng.uniform(0.05, 0.95, lengths.sum())
    places = {
        "runs": np.arange(24),
        "clusters": np.arange(24) // 2,
        "some": np.append(np.arange(20), [-1] * 4),
    }[kind]
    labelled = rng.integers(0, 3, (6, places.max() + 1))
    labelled[-1] = np.arange(len(labelled[0])) % 2  # no run of the third group
    runs = Coverage(y, y.astype(float), None, np.arange(24))
    row = Row("a", RECALIBRATED, TrajectoryArray(p, lengths), runs, True)
    found = _distances(row, places, labelled, 3, OPTIONS)
    expected = distances_by_definition(y, p, lengths, places, labelled, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(("sizes", "is_tested"), [((5, 5), True), ((5, 4), False), ((9, 1), False)])
def test_groups_of_five_units_are_tested(sizes, is_tested):
    group = np.repeat([0, 1], sizes)
    y = np.arange(len(group)) % 2
    p = np.where(y == (group == 0), 0.9, 0.1) + np.linspace(-0.05, 0.05, len(group))
    assert (p_of(p, y, group) < 0.05) == is_tested
    assert (p_of(p, y, group) == 1) != is_tested
    doubled = np.repeat(np.arange(len(group)), 2)  # two runs a cluster, which do not count twice
    assert (p_of(p[doubled], y[doubled], group[doubled], doubled) < 0.05) == is_tested


def test_without_rows_no_test_is_made():
    runs = Coverage(np.arange(20) % 2, np.arange(20) % 2.0, None, np.arange(20))
    assert differ([], runs, np.arange(20) % 2, OPTIONS, QUICK).tolist() == []


@pytest.mark.parametrize(("n_few", "n_more"), [(5, 0), (6, 6)])
def test_five_groups_of_too_few_runs_are_shown(n_few, n_more):
    names = [*(f"few{k}" for k in range(n_few)), "some", "many"]
    index = pd.MultiIndex.from_product([names, ["p", "q"]], names=["group", "predictor"])
    sizes = np.repeat([*range(10, 10 + n_few), 40, 50], 2)
    sizes[-1] = 3  # the other predictor has few of these runs
    shown, left_out = shown_groups(
        pd.DataFrame({"n_runs": sizes, "success_rate": 0.5}, index=index)
    )
    found = list(dict.fromkeys(shown.index.get_level_values("group")))
    assert found == ["many", "some", *(f"few{k}" for k in range(n_few)[::-1] if not n_more)]
    assert left_out == n_more


@pytest.mark.parametrize("clusters", [None, np.arange(120) // 2])
def test_cards_of_groups_that_differ_share_the_level_and_are_shrunken(clusters):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 120)
    y = (rng.random(120) < p).astype(int)
    group = np.where(np.arange(120) < 60, "a", "b")
    forecast = np.where(group == "a", 1 - p, p)
    judged = choose_runs(check_predictors(forecast[:, None], y, clusters, None), None, "failure")
    order = judged.runs.source_rows
    trace = judged.traces["forecast"]
    rows = [
        Row("forecast", AS_GIVEN, trace, judged.runs, True),
        Row(BASE_RATE, CONSTANT, trace, judged.runs, True),
    ]
    cards, level = card_table(rows, OPTIONS, QUICK, Work()), 1 - 0.05 / 2
    labels = {"kind": group[order]}
    found = group_table(rows, labels, cards, OPTIONS, QUICK, Work())
    tables = []
    for name in "ab":
        keep = np.flatnonzero(group[order] == name)
        own = Row("forecast", AS_GIVEN, trace[keep], judged.runs.take(keep), True)
        table = card_table([own], OPTIONS, replace(QUICK, confidence_level=level), Work())
        n_units = 60 if clusters is None else 30
        tables.append(table.assign(t=student.ppf((1 + level) / 2, n_units - 1)))
    expected = _shrunken(pd.concat(tables, ignore_index=True), cards.iloc[0])
    assert (found["p_value"] < 0.05).all()
    assert found.index.tolist() == [("kind", "a", "forecast"), ("kind", "b", "forecast")]
    for column in ("as_given", "as_given_low", "as_given_high", "matters", "confidence_level"):
        np.testing.assert_allclose(found[column], expected[column], rtol=1e-9)
    assert found["card"].tolist() == expected["card"].tolist()
    np.testing.assert_allclose(found["own"], [table["as_given"].iloc[0] for table in tables])
    np.testing.assert_allclose(found["confidence_level"], level)
    assert "t" not in found
