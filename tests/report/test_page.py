"""The page, as text: what it says, what it escapes, and that small data never break it."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from trajscore import DensityRatioEProcess, TrajectoryArray, evaluate, io
from trajscore.calibration import EnsembleCrossFitCalibrator
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions, MonitoringOptions
from trajscore.report._acting import accepting
from trajscore.report._first_screen import collapsed
from trajscore.report._glossary import GLOSSARY, explain
from trajscore.report._reliability import Bins
from trajscore.report.page.numbers import numbers
from trajscore.report.page.runs import runs
from trajscore.report.page.screen import _stretches, run_line, said_against_happened, screen
from trajscore.report.page.view import View, _tokens
from trajscore.report.page.why import Profile, _margin_by_step, why

QUICK = IntervalOptions(20, method="influence")
VOID = {"meta", "br", "input", "wbr"}
WORDS = {  # heads of columns that hold no number
    "predictor", "form", "metric", "stop reason", "reason", "level", "step", "steps", "kind",
    "group",
}  # fmt: skip


class Balance(HTMLParser):
    """Collects tags that are closed in another order than they were opened."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def check(page):
    parsed = Balance()
    parsed.feed(page)
    assert parsed.wrong == []
    assert parsed.open == []
    assert len(parsed.ids) == len(set(parsed.ids))
    for link in re.findall(r'href="#([^"]*)"', page):
        assert link in parsed.ids
    assert not re.search(r' (?:d|x|x1|x2|y1|y2|cx|cy|width)="[^"]*(nan|inf)', page)
    assert not re.search(r'width="-', page)
    assert [one for one in parsed.ids if one in ("answer", "numbers")] == ["answer", "numbers"]
    body = re.sub("<script.*?</script>|<[^>]*>", " ", page[page.index("<body") :], flags=re.DOTALL)
    assert re.findall(r".{20}\b(?:nan|inf)\b.{20}", body) == []
    assert "://" not in page
    # every other head of a column tells what its numbers are
    assert set(re.findall(r'<th scope="col">([^<]*)</th>', page)) <= WORDS
    return page


def plain(page):
    """What the page says, without its marks."""
    body = re.sub("<(script|style).*?</\\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub("<[^>]*>", "", body)).split())


def random_table(seed):
    """A few runs of any lengths, some without an outcome, with rough or constant values."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 61))
    lengths = rng.integers(1, rng.integers(2, 30), n)
    cells = rng.random((lengths.sum(), 3))
    cells[:, 0] = cells[:, 0].round(int(rng.integers(0, 3)))
    if rng.random() < 0.3:
        cells[:, 1] = 0.5
    if rng.random() < 0.3:
        cells[:, 2] = 10 * cells[:, 2] - 5
    y = (rng.random(n) < rng.uniform(0.1, 0.9)).astype(int)
    y[:2] = 0, 1
    y[2:] = np.where(rng.random(n - 2) < rng.choice([0, 0.3]), -1, y[2:])
    return TrajectoryArray(cells, lengths, channels=["a", "b", "c"]), y


# at 1023 the observed runs are too few to calibrate, at 1026 a group has no failure
@pytest.mark.parametrize("seed", [0, 1, 2, 1023, 1026])
def test_small_random_tables_make_a_page(seed):
    X, y = random_table(seed)
    by = np.arange(len(y)) % 3 if seed else None
    monitoring = MonitoringOptions(n_splits=2) if seed == 0 else False
    check(evaluate(X, y, by=by, monitoring=monitoring, intervals=QUICK).to_html())


def test_numbers_of_runs_are_written_alike():
    X, y = make_trajectories(1200, lengths=(1, 3), random_state=0, return_X_y=True)
    y = np.where(np.arange(1200) < 1100, y, -1)
    report = evaluate(X, y, intervals=QUICK)
    for text in (report.to_html(), report.to_markdown(), report.to_text(verbose=True)):
        plain = re.sub("<(style|script).*?</\\1>|<[^>]*>", "", text, flags=re.DOTALL)
        assert "1,200 runs" in plain
        assert re.findall(r"(?<![\d.,=/-])1[12]00\b", plain) == []


def test_new_runs_get_the_forecasts_of_the_page_as_it_says(chess, report):
    call = unescape(re.search(r"<code>(Ensemble.*?)</code>", report.to_html())[1])
    X, y = chess
    names = {"EnsembleCrossFitCalibrator": EnsembleCrossFitCalibrator, "X": X, "y": y, "new": X[:3]}
    assert len(eval(call, names)) == 3


def test_every_number_is_explained(report):
    for name in report.table:
        assert len(explain(name)) > 20
    assert all(line.endswith(".") for line in GLOSSARY.values())


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 3, "output_tokens": 4}, 7),
        ({"prompt_tokens": 3, "completion_tokens": None}, 3),
        ({"prompt_tokens": "many", "completion_tokens": 4}, 4),
        ("much", 2),
    ],
)
def test_tokens_of_a_turn_are_those_billed_if_the_log_says_them(usage, tokens):
    assert _tokens(io.Step("agent", "Hi", tokens=["H", "i"], extra={"usage": usage})) == tokens


def test_the_page_answers(report):
    page = check(report.to_html())
    said = plain(page)
    assert "Use material, recalibrated: its 68% means 40%." in said
    assert (
        "What would change it: Cost. material is statistically tied with shallow and engine" in said
    )
    assert "Statistically tied: take the cheapest of these 3." in said
    assert page.count('class="row') == len(report.predictors)
    head = page[page.index("<thead", page.index('id="all-numbers"')) :]
    head = head[: head.index("</thead>")]
    assert head.count("data-about=") == len(report.options.metrics) + 4
    assert "AUROC over counting \u2191" in plain(head)
    assert len(page) < 1e6


def test_small_data_have_a_small_page(chess):
    X, y = chess
    report = evaluate(X[:8], y[:8], intervals=QUICK)
    page, more = check(report.to_html()), report.cards["n_needed"].min()
    assert "Too few runs to say anything: read these 8 runs" in page
    assert page.count('<details class="run"') == 8
    for part in ('data-tile="', 'id="why"', 'class="data"', 'class="row'):
        assert part not in page
    assert screen(View(report))["share"] == pytest.approx(100 * 8 / (8 + more))


def curves_in(page):
    block = '<script type="application/json" class="data">(.*?)</script>'
    return json.loads(re.search(block, page)[1])


def test_curves_are_those_of_the_report(report):
    data = curves_in(report.to_html())
    key = "material", "recalibrated"
    curve = accepting(collapsed(report, key), report.labels[key])
    assert data["shown"] == "material"
    assert set(data["stop"]) == set(report.predictors)
    for name, values in (("t", curve.threshold), ("a", curve.accepted), ("f", curve.failing)):
        assert data["accept"][name] == pytest.approx(values, rel=1e-9)


def test_the_line_of_a_run_is_its_forecasts(report):
    view = View(report)
    name, form = view.shown
    trace = report.traces[name, form]
    line = run_line(view, (name, form), 5, 3)
    cells = trace.cells[trace.offsets[5] : trace.offsets[6]]
    assert line["steps"] == len(cells)
    (flag,) = line["plot"].dots
    assert flag[0] == pytest.approx(100 * 2 / (len(cells) - 1))
    assert flag[1] == pytest.approx(100 * (1 - cells[2]))
    assert f"step 3: said {cells[2]:.0%}" in [label.text for label in line["plot"].labels]


def test_the_line_of_a_run_of_one_step_is_level():
    X, y = make_trajectories(60, lengths=1, random_state=0, return_X_y=True)
    view = View(evaluate({"p": X}, y, calibrator=None, intervals=QUICK))
    plot, height = run_line(view, ("p", "as_given"), 5, 1)["plot"], 100 * (1 - X.cells[5])
    assert plot.paths == [(f"M0.00 {height:.2f}L100.00 {height:.2f}", "line as_given")]


def test_runs_without_an_outcome_come_last():
    X, y = make_trajectories(100, random_state=0, return_X_y=True)
    y[::2] = -1
    page = evaluate(X, y, intervals=QUICK).to_html()
    outcomes = re.findall(r'data-outcome="([^"]*)"', page)
    assert len(outcomes) == 60
    assert outcomes == sorted(outcomes, key=lambda one: one == "not observed")
    assert outcomes[:50].count("not observed") == 0


def test_all_that_is_given_is_escaped():
    X, y = make_trajectories(30, random_state=0, return_X_y=True)
    evil = "<img src=x onerror=alert(1)>\"'</script>"
    named = TrajectoryArray(
        X.cells, X.lengths, ids=[f"{evil}{k}" for k in range(30)],
        meta={"stop_reason": [evil] * 29 + [None]},
    )  # fmt: skip
    report = evaluate({evil: named}, y, by={evil: [evil] * 30}, intervals=QUICK)
    for page in (report.to_html(), report._repr_html_()):
        assert "<img" not in page
        assert page.count("</script>") == page.count("<script")
        assert "<td>nan</td>" not in page
        assert "&lt;img src=x" in page


def test_transcripts_have_the_step_and_the_forecast_beside_each_turn():
    rng = np.random.default_rng(0)
    runs = []
    for k in range(40):
        steps = []
        for t in range(int(rng.integers(1, 5))):
            steps += [
                io.Step("user", f"<b>question {t}</b>"),
                io.Step("agent", "x" * 5000 if t == 0 else "**answer**", cost=0.5, confidence=0.4),
            ]
        runs.append(io.Run(f"r{k}", steps, outcome=k % 2, task=f"t{k}"))
    lengths = [len(run) // 2 for run in runs]
    X = TrajectoryArray(rng.random(sum(lengths)), lengths, ids=[run.id for run in runs])
    report = evaluate(X, io.outcomes(runs), intervals=QUICK)
    page = check(report.to_html(log=runs))
    assert page.count('<ol class="turns">') == 40
    assert "&lt;b&gt;question 0&lt;/b&gt;" in page
    assert "<b>answer</b>" in page
    assert "(3,800 characters more)" in page
    assert page.count('<span class="at">step 1<br>') == 40
    assert page.count("Task t") == 40
    assert set(curves_in(page)["stop"]["forecast"]["s"]) == {"steps", "money"}
    without = report.to_html()
    assert 'class="turns"' not in without
    assert set(curves_in(without)["stop"]["forecast"]["s"]) == {"steps"}


def test_costs_of_a_step_are_those_up_to_the_next_one():
    def turn(actor, cost, n_tokens=1):
        return io.Step(actor, "Hi", cost=cost, tokens=["Hi"] * n_tokens)

    talk = [
        turn("user", None), turn("agent", 1.0, 3), turn("environment", 0.5, 2),
        turn("user", None), turn("agent", 2.0),
    ]  # fmt: skip
    log = [io.Run(f"r{k}", talk, outcome=k % 2) for k in range(20)]
    for n_steps, money, tokens in ((2, [1.5, 2], [6, 1]), (4, [0, 1.5, 0, 2], [0, 5, 0, 1])):
        cells = np.random.default_rng(0).random(20 * n_steps)
        X = TrajectoryArray(cells, [n_steps] * 20, ids=[run.id for run in log])
        view = View(evaluate(X, io.outcomes(log), calibrator=None, intervals=QUICK), log)
        costs = view.costs(("forecast", "as_given"))
        assert costs["money"].tolist() == money * 20
        assert costs["tokens"].tolist() == tokens * 20


def test_templates_go_with_the_package():
    folder = files("trajscore.report.page") / "templates"
    names = {one.name for one in folder.iterdir()}
    assert {f"{one}.html.j2" for one in ("page", "screen", "why", "runs", "numbers")} < names
    assert {"page.css", "page.js", "charts.html.j2"} < names


def test_only_rows_that_beat_the_base_rate_are_best(chess):
    X, y = chess
    wrong = X["engine"].with_cells(1 - X["engine"].cells)
    report = evaluate({"engine": X["engine"], "inverted": wrong}, y, intervals=IntervalOptions(20))
    main = numbers(View(report)).parts["main"]
    best = {(*key, column.rstrip(" \u2191\u2193")) for key, column in main.best}
    assert ("engine", "recalibrated", "TPS log") in best
    forms = {"as given": "as_given", "recalibrated": "recalibrated"}
    for name, form, metric in best:
        if (name, forms[form], metric) in report.intervals.index:
            row = report.intervals.loc[(name, forms[form], metric)]
            by_metric = row["margin_low"] > 0 or row["margin_high"] < 0
            assert report.cards.loc[name, f"{forms[form]}_low"] > 0 or by_metric
    assert not any(name == "inverted" and form == "as given" for name, form, _ in best)
    noise = X["engine"].with_cells(np.random.default_rng(0).random(len(X.cells)))
    of_noise = numbers(View(evaluate(noise, y, intervals=IntervalOptions(20)))).parts["main"]
    assert not of_noise.best


def test_why_says_at_which_steps_a_forecast_beats_the_base_rate():
    y = np.arange(60) % 2
    right = np.where(y == 1, 0.8, 0.2) + np.random.default_rng(0).uniform(-0.1, 0.1, 60)
    cells = np.column_stack([np.full(60, 0.5), (right + 0.5) / 2, right])
    drawer = why(View(evaluate(cells, y, calibrator=None, intervals=QUICK)))
    (part,) = drawer.parts["predictors"]
    assert "First shown to be better than the base rate at step 2; best at step 3" in part["timing"]
    assert "60 runs reach it" in part["timing"]


def test_bars_show_what_is_known_and_the_margin_that_is_left(report):
    drawer = why(View(report))
    for part in drawer.parts["predictors"]:
        for bar in part["bars"]["rows"]:
            key = part["name"], bar["form"]
            lost = report.table.loc[key, "MCB log"]
            margin = report.table.loc[key, "TPS log margin"]
            assert bar["margin_text"] == f"{margin:+.3f}"
            assert bar["knows_text"] == f"knows {margin + lost:.3f}"
            assert bar["end"] <= bar["to"]
            assert bar["is_cut"] == (bar["end"] == 0)


def test_useless_predictors_are_folded():
    runs = make_trajectories(600, random_state=0)
    rng = np.random.default_rng(0)
    noise = {f"noise {k}": runs.q.with_cells(rng.random(len(runs.q.cells))) for k in range(7)}
    report = evaluate({"right": runs.q} | noise, runs.target, intervals=QUICK)
    n = int((report.cards["card"] == "do not use").sum())
    assert n > 5
    (fold, *_) = screen(View(report))["folds"]
    assert fold["title"] == f"{n} not to use:"
    assert fold["names"].endswith(f" and {n - 5} more")
    assert set(fold["rows"]) == set(report.cards.index[report.cards["card"] == "do not use"])


def test_many_predictors_are_folded_after_nine():
    runs = make_trajectories(300, random_state=0)
    many = {f"p{k}": runs.q.with_cells(runs.q.cells ** (1 + k / 50)) for k in range(12)}
    parts = screen(View(evaluate(many, runs.target, intervals=QUICK)))
    assert len(parts["tied"]) + len(parts["single"]) == 9
    assert parts["folds"][0]["title"].startswith("3 more that ")
    assert parts["n_tied"] >= len(parts["tied"])


def points_of(line):
    """The points of a path."""
    return np.array([[float(x) for x in point.split()] for point in line[1:].split("L")])


def test_curves_of_the_tiles_are_cost_by_share_and_saved_by_lost(report):
    view = View(report)
    parts, of = screen(view), view.screen
    cost, share = of.accept.cost(2), np.append(of.accept.accepted, 0.0)
    curve = points_of(parts["costs"]["path"])
    assert curve[:, 0] == pytest.approx(100 * share[::-1], abs=0.01)
    assert curve[:, 1].max() == pytest.approx(88, abs=0.01)  # the cheapest lies lowest
    assert curve[:, 1].min() == pytest.approx(8, abs=0.01)
    assert np.corrcoef(curve[:, 1], cost[::-1])[0, 1] == pytest.approx(-1)
    k = of.accept.cheapest(2)
    assert (parts["costs"]["x"], parts["costs"]["y"]) == pytest.approx(
        (100 * share[k], curve[::-1][k, 1]), abs=0.01
    )
    stops = of.stops["material"]
    curve = points_of(parts["saves"]["path"])
    assert curve[0].tolist() == [0, 100]
    assert curve[1:, 0] == pytest.approx(100 * stops.good, abs=0.01)
    saved = stops.saved["steps"]
    assert curve[1:, 1] == pytest.approx(100 - 92 * saved / saved.max(), abs=0.01)
    k = stops.highest(0.05)
    assert (parts["saves"]["x"], parts["saves"]["y"]) == pytest.approx(
        tuple(curve[k + 1]), abs=0.01
    )
    assert parts["saves"]["text"] == f"{100 * saved[k]:.0f}%"
    assert (parts["saves"]["others"], parts["saves"]["held_out"]) == ({}, [])
    assert parts["script"]["top"] == parts["saves"]["top"] == saved.max()


def test_money_and_a_rule_on_other_runs_stand_beside_the_steps_saved():
    runs = make_trajectories(400, random_state=0)
    rule = DensityRatioEProcess(alpha=[0.1, 0.3])
    options = MonitoringOptions(rule, n_splits=2)
    report = evaluate(runs.q, runs.target, intervals=QUICK, monitoring=options)
    view = View(report)
    own = view.screen.stops[view.screen.shown]
    own.saved["money"] = 1.5 * own.saved["steps"]
    saves, table = screen(view)["saves"], report.monitoring.loc[view.screen.shown]
    top = max(1.5 * own.saved["steps"].max(), table["steps_saved_overall"].max())
    assert saves["top"] == top
    curve = points_of(saves["others"]["money"])
    expected = 100 - 92 * own.saved["money"] / top
    assert curve[1:, 1] == pytest.approx(expected, abs=0.01)
    rates = 100 * table["false_alarm_rate"], 100 - 92 * table["steps_saved_overall"] / top
    np.testing.assert_allclose(saves["held_out"], np.transpose(rates))
    page = report.to_html()
    assert page.count('class="dot held"') == 2
    assert "Circles: steps saved by a rule on other runs, a level each." in page


def test_where_each_threshold_stops_too_many_good_runs_nothing_is_saved(report, monkeypatch):
    monkeypatch.setattr("trajscore.report.page.screen.LOST", -1)
    saves = screen(View(report))["saves"]
    assert (saves["x"], saves["y"], saves["text"]) == (0, 100, "")


def test_strips_are_margins_on_one_axis(report):
    parts = screen(View(report))
    cards = report.cards
    for name, row in parts["rows"].items():
        three = [cards.loc[name, f"recalibrated{end}"] for end in ("", "_low", "_high")]
        assert row["places"] == pytest.approx(parts["axis"](three))
        assert row["places"][1] < row["places"][0] < row["places"][2]
    matters = cards["matters"].iloc[0]
    left, width = parts["band"]
    assert left + width / 2 == pytest.approx(parts["zero"])
    assert width == pytest.approx(2 * (parts["axis"](matters) - parts["zero"]))


def test_said_against_happened_draws_each_bin_with_its_interval(report):
    plot = said_against_happened(View(report), "material", notes=True)
    forms = [style for _, _, style in plot.dots]
    assert (forms.count("as_given"), forms.count("recalibrated")) == (8, 10)  # values of chess tie
    assert len(plot.whiskers) == 18
    for (x, y, _), (other, low, high, _) in zip(plot.dots, plot.whiskers, strict=False):
        assert x == other
        assert high <= y <= low  # of the page, where down is up
    texts = [label.text for label in plot.labels]
    assert "said 68%, 40% succeeded" in texts
    assert {"as given", "recalibrated", "said = happened"} < set(texts)


def test_wide_intervals_of_a_step_do_not_flatten_the_margins(report):
    step, margin = np.arange(1.0, 5.0), np.array([0.0, 0.1, 0.2, 0.1])
    profile = Profile(step, margin, np.array([0.01, 0.01, 0.01, 5.0]), np.full(4, 50.0))
    plot = _margin_by_step(View(report), "material", profile)
    room = 0.06 * 1.0  # of -0.4 to 0.6: twice the range of the margins beyond either end
    assert (plot.y.low, plot.y.high) == pytest.approx((-0.4 - room, 0.6 + room))
    assert any(label.text == "first shown better: step 2" for label in plot.labels)
    two = Profile(*(column[:2] for column in profile))
    assert len(points_of(_margin_by_step(View(report), "material", two).paths[-1][0])) == 2
    short = Profile(*(column[:1] for column in profile))
    assert _margin_by_step(View(report), "material", short) is None


def test_dots_above_each_other_are_not_joined():
    forecast = np.array([0.0, 0.01, 0.2, 0.5, 0.51, 0.52, 0.9])
    bins = Bins(forecast, *[np.zeros(7)] * 5)
    assert _stretches(bins) == [(1, 4), (5, 7)]
    apart = Bins(np.array([0.0, 0.035]), *[np.zeros(2)] * 5)
    assert _stretches(apart) == [(0, 2)]


def test_without_a_probability_no_run_has_a_loss():
    X, y = make_trajectories(40, random_state=0, return_X_y=True)
    odds = X.with_cells(10 * X.cells - 5)
    drawer = runs(View(evaluate(odds, y, calibrator=None, intervals=QUICK)))
    assert (drawer.id, drawer.title, drawer.parts) == ("runs", "Runs", {})
    assert drawer.about == "no predictor is a probability, so no run has a loss"


def test_the_sixty_worst_runs_are_listed_and_twenty_of_them_shown():
    X, y = make_trajectories(61, lengths=(1, 3), random_state=0, return_X_y=True)
    many = runs(View(evaluate(X, y, calibrator=None, intervals=QUICK)))
    few = runs(View(evaluate(X[:60], y[:60], calibrator=None, intervals=QUICK)))
    assert (len(many.parts["rows"]), many.parts["first"]) == (60, 20)
    assert many.about == "the 60 that forecast as given got most wrong; a row opens in place"
    assert few.about == (
        "all 60, those that forecast as given got most wrong first; a row opens in place"
    )
    rows = many.parts["rows"]
    assert [row["place"] for row in rows] == list(range(60))
    losses = [row["loss"] for row in rows]
    assert losses == sorted(losses, reverse=True)
    assert [row["text"] for row in rows] == [f"{loss:.2f}" for loss in losses]
    assert {row["change"] for row in rows if row["steps"] == 1} <= {0.0}
    assert many.parts["outcomes"] == list(dict.fromkeys(row["outcome"] for row in rows))
