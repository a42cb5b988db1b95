"""The page, as text: what it says, what it escapes, and that small data never break it."""

import re
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from trajscore import TrajectoryArray, evaluate, io, metrics
from trajscore.calibration import EnsembleCrossFitCalibrator
from trajscore.datasets import make_trajectories
from trajscore.report import IntervalOptions, MonitoringOptions
from trajscore.report._glossary import GLOSSARY, explain
from trajscore.report.page.acting import acting
from trajscore.report.page.calibration import calibration
from trajscore.report.page.charts import Axis, axis_of, sparkline
from trajscore.report.page.health import health
from trajscore.report.page.losses import losses
from trajscore.report.page.numbers import numbers
from trajscore.report.page.timing import timing
from trajscore.report.page.view import View, _tokens

QUICK = IntervalOptions(20, method="influence")
SECTIONS = [
    "answer", "comparison", "losses", "calibration", "timing", "acting", "stopping", "runs",
    "health", "numbers", "method",
]  # fmt: skip
VOID = {"meta", "br", "input", "wbr"}
WORDS = {  # heads of columns that hold no number
    "predictor", "form", "run", "outcome", "forecast", "ended by", "stop reason", "reason",
    "metric", "read as", "what to do", "model", "group",
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
    assert not re.search(r' d="[^"]*(nan|inf)', page)
    assert [one for one in parsed.ids if one in SECTIONS] == SECTIONS
    body = re.sub("<[^>]*>", " ", page[page.index("<body") : page.index("<script>")])
    assert re.findall(r".{20}\b(?:nan|inf)\b.{20}", body) == []
    assert "://" not in page
    # every other head of a column tells what its numbers are
    assert set(re.findall(r'<th scope="col">([^<]*)</th>', page)) <= WORDS
    return page


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
    # tools/fuzz_pages.py makes 300
    X, y = random_table(seed)
    by = np.arange(len(y)) % 3 if seed else None
    monitoring = MonitoringOptions(n_splits=2) if seed == 0 else False
    check(evaluate(X, y, by=by, monitoring=monitoring, intervals=QUICK).to_html())


def test_the_page_answers(report):
    page = check(report.to_html())
    assert page.count("<article") == len(report.predictors)
    assert "recalibrated. About as good, each used as its card says: shallow and engine" in page
    head = page[page.index("<thead", page.index('id="all-numbers"')) :]
    head = head[: head.index("</thead>")]
    assert head.count('title="') == len(report.options.metrics) + 4
    said = " ".join(unescape(re.sub("<[^>]*>", " ", head)).split())
    assert "AUROC over counting \u2191 AUROC over counting, end known \u2191" in said
    assert len(page) < 3e6


def test_what_is_not_shown_to_be_useful_is_not_acted_on():
    rng = np.random.default_rng(0)
    y = (np.arange(40) > 5).astype(float)
    page = check(evaluate(rng.random((40, 3)), y, intervals=QUICK).to_html())
    assert "No predictor is shown to beat the base rate by enough. As it looks so far" in page
    assert "Accept runs whose" not in page
    assert ">Read first <" in page


def test_many_missing_outcomes_are_said_at_the_top():
    runs = make_trajectories(100, random_state=0)
    said = "50 of 100 runs (50%) have no outcome and count as failures,"
    for share, is_said in ((0.5, True), (0.05, False)):
        y = np.where(np.arange(100) < 100 * share, -1, runs.target)
        page = check(evaluate(runs.q, y, intervals=QUICK).to_html())
        assert (said in page) == is_said
        assert ("Leave these runs out, " in page) == is_said


def test_the_page_says_what_its_error_rate_covers(report):
    page = " ".join(report.to_html().split())
    assert (
        "At most 5 of 100 reports have a wrong card: one that recommends a forecast which" in page
    )
    assert "or says “do not use” of a signal that is worth 2% of the base rate" in page


def test_numbers_of_runs_are_written_alike():
    X, y = make_trajectories(1200, lengths=(1, 3), random_state=0, return_X_y=True)
    y = np.where(np.arange(1200) < 1100, y, -1)
    report = evaluate(X, y, intervals=QUICK)
    for text in (report.to_html(), report.to_markdown(), report.to_text(verbose=True)):
        plain = re.sub("<style.*</style>|<[^>]*>", "", text, flags=re.DOTALL)
        assert "1,200 runs" in plain
        assert re.findall(r"(?<![\d.,=/-])1[12]00\b", plain) == []


def test_where_no_threshold_pays_none_is_named():
    runs = make_trajectories(300, information=0.35, random_state=0)
    sure = runs.q.with_cells(0.9 + 0.1 * runs.q.cells)
    page = check(evaluate(sure, np.ones(300) * (np.arange(300) > 20), intervals=QUICK).to_html())
    assert "accept every run, at 0.14 reviews a run; no threshold is cheaper." in page
    assert "Accept runs whose" not in page


def test_the_runs_to_read_first_say_where_a_forecast_is_furthest_off(report):
    page = report.to_html()
    said = re.search(r"the forecast that is furthest off is (\S+), at step (\d+)", page)
    run = re.search(r"Run (\S+): material, recalibrated was most wrong", page)[1]
    trace = report.traces["material", "recalibrated"]
    row = [str(name) for name in trace.ids].index(run)
    cells = trace.cells[trace.offsets[row] : trace.offsets[row + 1]]
    off = np.abs(cells - report.labels["material", "recalibrated"][row])
    assert said[1] == f"{cells[off.argmax()]:.2f}"
    assert int(said[2]) == off.argmax() + 1
    # it is the run with an outcome whose own forecasts score worst, on average over its steps
    observed = np.flatnonzero(report.outcomes["material", "recalibrated"] >= 0)
    labels = report.labels["material", "recalibrated"]
    scores = [metrics.tps_score([labels[k]], trace[[k]]) for k in observed]
    assert row == observed[np.argmin(scores)]
    assert f">{min(scores):.3f}</td>" in page


def test_runs_without_an_outcome_do_not_crowd_out_those_that_contradict_their_forecast():
    X, y = make_trajectories(200, random_state=0, return_X_y=True)
    y[::2] = -1
    page = evaluate(X, y, intervals=QUICK).to_html()
    table = page[page.index('class="sortable runs"') :].split("</table>")[0]
    outcomes = re.findall(r"<td>(not observed|success|failure)</td>", table)
    assert outcomes == sorted(outcomes, key=lambda one: one == "not observed")
    assert outcomes[:20].count("not observed") == 0
    assert "those without an observed outcome last" in page


def test_new_runs_get_the_forecasts_of_the_page_as_it_says(chess, report):
    call = unescape(re.search(r"<code>(Ensemble.*?)</code>", report.to_html())[1])
    X, y = chess
    names = {"EnsembleCrossFitCalibrator": EnsembleCrossFitCalibrator, "X": X, "y": y, "new": X[:3]}
    assert len(eval(call, names)) == 3


def test_every_number_is_explained(report):
    for name in report.table:
        assert len(explain(name)) > 20
    assert all(line.endswith(".") for line in GLOSSARY.values())


def test_all_that_is_given_is_escaped():
    X, y = make_trajectories(30, random_state=0, return_X_y=True)
    evil = "<img src=x onerror=alert(1)>\"'"
    named = TrajectoryArray(
        X.cells,
        X.lengths,
        ids=[f"{evil}{k}" for k in range(30)],
        meta={"stop_reason": [evil] * 29 + [None]},
    )
    page = evaluate({evil: named}, y, by={evil: [evil] * 30}, intervals=QUICK).to_html()
    assert "<img" not in page
    assert "<td>nan</td>" not in page
    assert "&lt;img src=x" in page


def test_transcripts_have_what_was_said_beside_the_risk():
    rng = np.random.default_rng(0)
    runs = []
    for k in range(40):
        steps = []
        for t in range(int(rng.integers(1, 5))):
            steps += [
                io.Step("user", f"<b>question {t}</b>"),
                io.Step("agent", "x" * 5000 if t == 0 else "answer", cost=0.5, confidence=0.4),
            ]
        runs.append(io.Run(f"r{k}", steps, outcome=k % 2))
    lengths = [len(run) // 2 for run in runs]
    X = TrajectoryArray(rng.random(sum(lengths)), lengths, ids=[run.id for run in runs])
    report = evaluate(X, io.outcomes(runs), intervals=QUICK)
    page = check(report.to_html(log=runs))
    assert page.count('<details class="transcript">') == 20
    assert "&lt;b&gt;question 0&lt;/b&gt;" in page
    assert "(3,800 characters more)" in page
    assert page.count("risk 0.") >= 20
    assert "money saved</th>" in page
    assert "tokens saved</th>" not in page
    without = report.to_html()
    assert 'class="transcript"' not in without
    assert "money saved</th>" not in without


def test_templates_go_with_the_package():
    folder = files("trajscore.report.page") / "templates"
    names = {one.name for one in folder.iterdir()}
    assert {f"{section}.html.j2" for section in SECTIONS} < names
    assert {"page.css", "page.js", "charts.html.j2"} < names


def test_ticks_are_round():
    assert [text for _, text in Axis(0, 1, 0, 100).ticks] == ["0.0", "0.5", "1.0"]
    assert [text for _, text in Axis(-0.013, 0.052, 0, 100).ticks] == ["0.00", "0.02", "0.04"]
    assert [text for _, text in Axis(1, 60, 0, 100).ticks] == ["20", "40", "60"]
    axis = axis_of([3.0, np.nan], 10, 20)
    assert axis.low < 3 < axis.high
    assert axis_of([], 0, 1).low < 0
    assert sparkline(np.array([0.5])).count("L") == 1
    assert sparkline(np.linspace(0, 1, 10_000)).count("L") < 300


def test_only_rows_that_beat_the_base_rate_are_best(chess):
    X, y = chess
    wrong = X["engine"].with_cells(1 - X["engine"].cells)
    report = evaluate({"engine": X["engine"], "inverted": wrong}, y, intervals=IntervalOptions(20))
    section = numbers(View(report))
    heads = [" ".join(head["parts"]).replace("_ ", "_") for head in section.parts["heads"]]
    best = {(row["name"], row["form"], head) for row in section.parts["rows"]
            for head, cell in zip(heads, row["cells"], strict=True) if cell["best"]}  # fmt: skip
    assert ("engine", "recalibrated", "TPS log") in best
    form_of_label = {"as given": "as_given", "recalibrated": "recalibrated"}
    margins = {"as given": "as_given", "recalibrated": "recalibrated"}
    for name, form, metric in best:
        if (name, form_of_label[form], metric) not in report.intervals.index:
            continue
        row = report.intervals.loc[(name, form_of_label[form], metric)]
        by_metric = row["margin_low"] > 0 or row["margin_high"] < 0
        assert report.cards.loc[name, f"{margins[form]}_low"] > 0 or by_metric
    assert not any(name == "inverted" and form == "as given" for name, form, _ in best)
    noise = X["engine"].with_cells(np.random.default_rng(0).random(len(X.cells)))
    of_noise = numbers(View(evaluate(noise, y, intervals=IntervalOptions(20))))
    assert not any(cell["best"] for row in of_noise.parts["rows"] for cell in row["cells"])


def test_length_is_judged_on_observed_runs(chess):
    X, y = chess
    said = health(View(evaluate(X["engine"], y, intervals=IntervalOptions(2)))).answer
    assert f"of the {(y != -1).sum()} runs with an outcome" in said
    seen = y != -1
    other = health(View(evaluate(X["engine"][seen], y[seen], intervals=IntervalOptions(2)))).answer
    area = re.search(r"AUROC (0\.\d+)", said).group(1)
    assert f"AUROC {area}" in other
    assert area == "0.562"


def test_the_page_says_at_which_steps_a_forecast_beats_the_base_rate():
    y = np.arange(60) % 2
    right = np.where(y == 1, 0.8, 0.2) + np.random.default_rng(0).uniform(-0.1, 0.1, 60)
    cells = np.column_stack([np.full(60, 0.5), (right + 0.5) / 2, right])
    answer = timing(View(evaluate(cells, y, calibrator=None, intervals=QUICK))).answer
    assert "first shown to be better than the base rate at step 2, and by most at step 3" in answer


@pytest.mark.parametrize(("longest", "labels"), [(6, "1 2 3 4 5 6"), (7, "1 3 5 7")])
def test_many_lengths_have_every_second_label(longest, labels):
    lengths = np.repeat(np.arange(1, longest + 1), 10)
    X = TrajectoryArray(np.full(lengths.sum(), 0.5), lengths)
    report = evaluate(X, np.arange(len(X)) % 2, calibrator=None, intervals=QUICK)
    assert [name for _, name in health(View(report)).parts["length"].names] == labels.split()


def test_bars_of_losses_end_at_four_times_what_is_known():
    runs = make_trajectories(200, random_state=0)
    wrong = runs.q.with_cells(1 - runs.q.cells)
    report = evaluate({"right": runs.q, "wrong": wrong}, runs.target, intervals=QUICK)
    rows = losses(View(report)).parts["rows"]
    most = max(row["knows"] for row in rows)
    assert {row["cut"] for row in rows} == {True, False}
    for row in rows:
        assert row["knows_share"] == pytest.approx(25 * row["knows"] / most)
        length = 100 if row["cut"] else 25 * row["lost"] / most
        assert row["lost_share"] == pytest.approx(length)


def test_stopping_counts_the_successes_and_the_failures_that_it_stops():
    X, y = make_trajectories(200, random_state=0, return_X_y=True)
    report = evaluate(X, y, calibrator=None, intervals=QUICK)
    (table,) = acting(View(report)).parts["tables"]
    trace, labels = report.traces["forecast", "as_given"], report.labels["forecast", "as_given"]
    lowest = np.array([run.min() for run in trace])
    assert len(table["stop"]) > 5
    for row in table["stop"]:
        assert row["good"] == pytest.approx((lowest < row["t"])[labels == 1].mean())
        assert row["bad"] == pytest.approx((lowest < row["t"])[labels == 0].mean())


def test_curves_of_calibration_have_ten_points_at_most():
    X, y = make_trajectories(400, lengths=3, random_state=0, return_X_y=True)
    report = evaluate(X, y, calibrator=None, intervals=QUICK)
    (group,) = calibration(View(report)).parts["groups"]
    layers = {style: path for path, style in group["panels"][0].layers}
    assert layers["dots as_given"].count("M") == 10


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
