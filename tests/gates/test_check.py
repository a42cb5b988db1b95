"""Gates: what they say, of what, and that they are wrong as seldom as they promise."""

import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from known_agent import runs_of
from trajscore import TrajectoryArray, metrics
from trajscore.gates import Gate, RunSet, check, compare
from trajscore.gates._change import Estimate, difference, match, paired_estimates
from trajscore.gates._check import _decided, _Question
from trajscore.gates._gate import DataRules, Rules, read_gates
from trajscore.gates._measures import Key, Measures

BASE, SAME, WORSE = runs_of(1), runs_of(3), runs_of(2, 0.2)


def verdicts(*gates, new=WORSE, base=BASE, **rules):
    return [one.verdict for one in check(new, base, Rules(gates, **rules)).gates]


def test_a_drop_fails_and_no_change_does_not():
    assert check(WORSE, BASE).verdict == "fail"
    assert check(SAME, BASE).verdict == "undecided"
    assert check(BASE, WORSE).verdict == "pass"
    assert check(SAME, BASE, Gate(margin=0.2)).verdict == "pass"
    codes = [check(new, BASE, gate).exit_code for new, gate in (
        (SAME, Gate(margin=0.2)), (WORSE, None), (SAME, Gate("speed")), (SAME, None),
    )]  # fmt: skip
    assert codes == [0, 1, 2, 3]


def test_a_comparison_and_a_check_have_one_interval_for_one_number():
    for new in (SAME, WORSE):
        found = compare(BASE, new).table
        for metric in ("success", "length", "cost"):
            one, row = check(new, BASE, Gate(metric)).gates[0], found.loc[(metric, "", "")]
            assert (one.low, one.high) == (row["change_low"], row["change_high"])
            if one.verdict == "undecided":
                assert one.runs_needed == row["runs_needed"]
        one, row = (
            check(new, BASE, Gate("AUROC")).gates[0],
            found.loc[("AUROC", "judge", "as_given")],
        )
        assert (one.low, one.high) == (row["change_low"], row["change_high"])
    assert "each of its ends with 95%, as in" in str(compare(BASE, SAME))


def test_an_undecided_check_says_what_to_do_with_runs_in_one_digit():
    result = check(SAME, BASE, Gate(margin=0.05))
    assert result.verdict == "undecided"
    n = int(
        re.search(r"about ([\d,]+) more runs in each set would settle it", str(result))[1].replace(
            ",", ""
        )
    )
    more = result.gates[0].runs_needed - 200
    assert more <= n < 2 * more
    assert set(str(n)[1:]) <= {"0"}
    assert "To settle this, collect more runs or allow a wider margin" in str(result)


def test_an_undecided_gate_that_counts_as_passed_is_called_so():
    result = check(SAME, BASE, Rules((Gate(), Gate(margin=0.3)), undecided="pass"))
    assert "PASS: 1 pass, 1 undecided, counted as pass; each end" in str(result)


def test_a_gate_holds_bounds_against_its_margin():
    one = check(WORSE, BASE).gates[0]
    assert one.change == pytest.approx(one.value - one.reference)
    assert one.low < one.change < one.high < 0
    beyond = -one.high
    assert verdicts(Gate(margin=beyond - 1e-6)) == ["fail"]
    assert verdicts(Gate(margin=beyond + 1e-6)) == ["undecided"]
    assert verdicts(Gate(margin=-one.low + 1e-6)) == ["pass"]


def test_a_gate_fails_beyond_its_bound_and_passes_at_it():
    for metric, sign in (("success", 1), ("cost", -1)):
        matched = match(BASE, WORSE)
        base, new = paired_estimates(
            Measures(BASE)[Key(metric)], Measures(WORSE)[Key(metric)], matched
        )
        ends = difference(new, base, matched).bounds(0.95)
        low, high = sorted(sign * end for end in ends)
        assert low < high < 0
        margins = {"fail": np.nextafter(-high, 0), "undecided": -high, "pass": -low}
        for verdict, margin in margins.items():
            assert verdicts(Gate(metric, margin=float(margin))) == [verdict]
        # what rounding may have taken from a bound decides nothing
        assert verdicts(Gate(metric, margin=-low - 1e-13)) == ["pass"]
        assert verdicts(Gate(metric, margin=-low - 1e-11)) == ["undecided"]


def test_an_undecided_gate_alone_says_how_many_runs_would_settle_it():
    for metric in ("success", "cost"):
        gates = check(WORSE, BASE, Gate(metric)).gates[0], check(SAME, BASE, Gate(metric)).gates[0]
        for one in gates:
            assert np.isnan(one.runs_needed) == (one.verdict != "undecided")
    # the closer to what was seen, the more runs are needed, whichever is better
    for metric, sign in (("success", 1), ("cost", -1)):
        one = check(SAME, BASE, Gate(metric)).gates[0]
        reach = (one.high - one.low) / 2
        needed = [
            check(SAME, BASE, Gate(metric, margin=-sign * one.change + far * reach)).gates[0]
            for far in (-0.6, -0.3, 0.3, 0.6)
        ]
        assert {one.verdict for one in needed} == {"undecided"}
        runs = [one.runs_needed for one in needed]
        assert runs[0] < runs[1]
        assert runs[2] > runs[3] > 200


def test_less_is_better_of_costs_and_errors():
    assert verdicts(Gate("cost"), Gate("cost", margin="50%"), Gate("cost", margin=1)) == [
        "fail", "pass", "pass",
    ]  # fmt: skip
    assert verdicts(Gate("S-ECE", versus=0.0), Gate("S-ECE", versus=0.9)) != ["pass", "pass"]
    assert verdicts(Gate("S-ECE", versus=0.9), Gate("AUROC", versus=0.5)) == ["pass"] * 2


def test_a_share_is_of_the_baseline_itself_and_not_of_what_was_seen():
    y, tasks = [1, 0, 1, 0], list("abcd")
    base, new = (RunSet(None, y, tasks=tasks, spent={"cost": [c] * 4}) for c in (2.0, 2.2))
    for margin, verdict in (("10.1%", "pass"), ("9.9%", "fail")):
        assert check(new, base, Gate("cost", margin=margin)).verdict == verdict
    # a score below 0 is worse by a tenth if it is 1.1 times as far from 0
    one = check(WORSE, BASE, Gate("TPS log")).gates[0]
    share = 100 * (one.value / one.reference - 1)
    needed = [
        check(WORSE, BASE, Gate("TPS log", margin=f"{margin}%")).gates[0].runs_needed
        for margin in (share, share + 5, share + 8)
    ]
    assert needed[0] > needed[1] > needed[2]


def test_forecasts_are_held_against_the_base_rate_and_numbers():
    found = check(WORSE, rules=Gate("TPS log margin", "judge", versus=0)).gates[0]
    margin = compare(WORSE, WORSE).table.loc[("TPS log margin", "judge", "as_given"), "new"]
    assert found.change == pytest.approx(margin)
    X, y = WORSE.judged.traces["judge"], WORSE.judged.runs.labels
    weight = 1 / np.sqrt(np.concatenate([np.arange(1, n + 1) for n in X.lengths]))
    rate = np.average(np.repeat(y, X.lengths), weights=weight)  # the best constant
    constant = X.with_cells(np.full(len(X.cells), rate))
    assert margin == pytest.approx(metrics.tps_score(y, X) - metrics.tps_score(y, constant))
    more = runs_of(2, 0.2, n_tasks=80)
    assert verdicts(Gate("TPS log margin", "judge", versus=0), new=more) == ["pass"]
    assert verdicts(Gate("TPS log", versus=-0.01), Gate("success", versus=0.1)) == ["fail", "pass"]
    assert verdicts(Gate("TPS log margin", versus=0.5)) == ["fail"]


def test_undecided_counts_as_what_it_is_told():
    for undecided in ("pass", "fail", "undecided"):
        assert check(SAME, BASE, Rules((Gate(),), undecided=undecided)).verdict == undecided
    found = check(SAME, BASE, Rules((Gate(), Gate("length")), undecided="pass"))
    assert [one.verdict for one in found.gates] == ["undecided"] * 2
    assert "about" in str(found)
    assert "counts as pass" in str(found)


def test_runs_needed_where_no_task_differs_are_those_whose_bound_is_the_margin():
    one = check(BASE, BASE, Gate(margin=0.05)).gates[0]
    assert (one.verdict, one.change) == ("undecided", 0)
    assert one.runs_needed == 5 * 59  # .95 ** 58 > .05 > .95 ** 59
    for n_tasks, verdict in ((58, "undecided"), (59, "pass")):
        same = runs_of(1, n_tasks=n_tasks)
        assert check(same, same, Gate(margin=0.05)).verdict == verdict
    assert check(BASE, BASE).gates[0].runs_needed == np.inf
    assert check(BASE, BASE, Gate(margin=1e-9)).gates[0].runs_needed == np.inf


def test_what_is_unusable_says_why():
    for gate, said in (
        (Gate("succes"), "did you mean 'success'"),
        (Gate("speed"), "no metric named 'speed'"),
        (Gate("tokens"), "; add a column 'tokens'"),
        (Gate("TPS log", "verbal"), "no predictor named 'verbal'; there are: judge"),
        (Gate("TPS lgo"), "no metric named 'TPS lgo'"),
        (Gate("cost", "judge"), "cost is of no predictor"),
        (Gate("S-ECE margin", versus=0), "there is no S-ECE margin of judge, as given"),
        (Gate("S-ECE", margin="5%"), "takes no share as margin"),
    ):
        result = check(SAME, BASE, gate)
        assert result.verdict == "unusable"
        assert said in result.gates[0].why
    assert "the gate needs a baseline" in check(SAME, rules=Gate()).gates[0].why
    with pytest.raises(ValueError, match="there is nothing to check"):
        check(SAME)
    alike = runs_of(1, outcomes=np.ones_like)
    why = check(alike, BASE, Gate("AUROC")).gates[0].why
    assert "all 200 runs have the same outcome" in why
    assert check(alike, BASE, Gate()).verdict == "pass"


def test_a_run_that_crashed_is_a_failure_of_the_agent_and_no_forecast_to_judge():
    crashed = np.arange(200) % 2 == 0
    stops, hidden = np.where(crashed, "crash", "done"), lambda y: np.where(crashed, -1, y)
    known = runs_of(1, outcomes=lambda y: np.where(crashed, 0, y))
    cut = runs_of(1, stop_reason=stops, outcomes=hidden)
    for metric in ("success", "pass^2", "length", "cost"):
        gates = [check(new, BASE, Gate(metric)).gates[0] for new in (cut, known)]
        assert (gates[0].value, gates[0].low) == (gates[1].value, gates[1].low)
    assert check(cut, BASE).verdict == "fail"
    dropped = runs_of(1, stop_reason=stops, outcomes=hidden, censored="drop")
    assert (dropped.n_runs, dropped.n_left_out, dropped.n_unobserved) == (100, 100, 100)
    assert check(dropped, dropped, Gate("success", margin=0.2)).verdict == "pass"
    alone = RunSet(
        {name: one[~crashed] for name, one in BASE.traces.items()}, BASE.y[~crashed],
        tasks=BASE.tasks[~crashed],
    )  # fmt: skip
    for metric in ("TPS log", "AUROC", "S-ECE"):
        values = [check(new, None, Gate(metric, versus=0.0)).gates[0].value for new in (cut, alone)]
        assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_a_fault_of_the_test_bench_is_no_run_of_the_agent():
    faulty = np.arange(200) % 4 == 0
    stops, hidden = (
        np.where(faulty, "infrastructure_error", "done"),
        lambda y: np.where(faulty, -1, y),
    )
    cut = runs_of(1, stop_reason=stops, outcomes=hidden)
    assert (cut.n_runs, cut.n_left_out, cut.n_unobserved) == (150, 50, 0)
    assert cut.labels.mean() == BASE.labels[~faulty].mean()
    assert "150 runs of 40 tasks (50 ended by an infrastructure error, left out)" in cut.counted
    again = RunSet._of_json(cut.to_json())
    assert (again.counted, again.labels.tolist()) == (cut.counted, cut.labels.tolist())


def test_data_must_be_what_is_asked_for():
    other = runs_of(3, n_tasks=39)
    for rules, said in (
        (DataRules(least_runs=196), "the new set has 195 runs, and least_runs = 196"),
        (DataRules(most_left_out=0), ""),
    ):
        result = check(other, BASE, Rules(data=rules))
        assert result.problems == [said] * bool(said) or said in result.problems[0]
        assert (result.verdict == "unusable") == bool(said)
    left_out = runs_of(3, n_unread=40)
    result = check(left_out, BASE, Rules(data=DataRules(most_left_out=0.1)))
    assert result.problems == ["runs left out: 40 of 240, and most_left_out = 0.1"]
    unlabelled = runs_of(3, outcomes=lambda y: np.where(np.arange(200) < 50, -1, y))
    result = check(unlabelled, BASE, Rules(data=DataRules(most_unobserved=0.2)))
    assert result.problems == ["runs without an outcome: 50 of 200, and most_unobserved = 0.2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[gate]]\nmargin = 5", "so margin = 5 decides nothing; 5 of a hundred is 0.05"),
        (
            "[[gate]]\nmetric = 'AUROC'\nversus = 60",
            "so versus = 60 decides nothing; 60 of a hundred",
        ),
        ("[[gate]]\nmetrik = 'success'", "gate 1: no key named 'metrik'; did you mean 'metric'?"),
        ("[[gate]]\n[data]\nleast = 3", "[data]: no key named 'least'"),
        ("[[gates]]\n", "has no gates; write"),
        ("levle = 3\n[[gate]]", "no key named 'levle'; did you mean 'level'?"),
        ("[[gate]]\nversus = 'base'", "gate 1: versus must be 'baseline' or a number"),
        ("[[gate]]\nmargin = true", "margin must be a number"),
        ("[[gate]]\nmargin = nan", "margin must be a number"),
        (f"[[gate]]\nmargin = 1{'0' * 400}", "margin must be a number"),
        ("[[gate]]\nmargin = 'x%'", "margin must be a number"),
        ("[[gate]]\nversus = 0.5\nmargin = '5%'", "is a share of the baseline"),
        ("[[gate]]\nmetric = 3", "metric must be text"),
        ("[[gate]]\nform = 'row'", "form must be"),
        ("[[gate]]\n[[gate]]\nform = 'row'", "gate 2: form must be"),
        ("level = 0.9\n[[gate]]", "level must lie in (0, 0.5)"),
        ("level = 'a'\n[[gate]]", "level must lie in (0, 0.5)"),
        ("gate = 3", "has no gates; write"),
        ("gate = [3]", "gate 1: it must be a table"),
        ("data = 3\n[[gate]]", "[data]: it must be a table"),
        ("[[gate]]\n[data]\nmost_left_out = 2", "most_left_out must lie in [0, 1]"),
        ("[[gate]", "is not a TOML file"),
        ("\xff", "is not a TOML file"),
    ],
)
def test_gates_are_read_strictly(tmp_path, text, said):
    file = tmp_path / "gates.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError) as caught:
        read_gates(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)


def test_all_keys_are_read(tmp_path):
    file = tmp_path / "gates.toml"
    file.write_text(
        'level = 0.1\nundecided = "pass"\n[data]\nleast_runs = 20\nmost_left_out = 0.1\n'
        'most_unobserved = 0.2\n[[gate]]\nmetric = "TPS log"\npredictor = "judge"\n'
        'form = "recalibrated"\nversus = -0.5\nmargin = 0.1\n'
    )
    gate = Gate("TPS log", "judge", "recalibrated", -0.5, 0.1)
    assert read_gates(file) == Rules((gate,), 0.1, "pass", DataRules(20, 0.1, 0.2))


def test_json_is_the_next_baseline_to_the_last_digit(tmp_path):
    reasons = np.where(np.arange(200) % 40 == 7, "max_steps", "done").astype(object)
    cut = runs_of(
        4,
        stop_reason=reasons,
        n_unread=2,
        outcomes=lambda y: np.where(reasons == "max_steps", -1, y),
    )
    result = check(cut, BASE)
    written = json.loads(result.to_json())
    assert (written["version"], written["verdict"], written["exit_code"]) == (1, "undecided", 3)
    assert written["gates"][0]["change"] == result.gates[0].change
    file = tmp_path / "baseline.json"
    file.write_text(result.to_json())
    again = RunSet.read(file)
    assert again.notes == ""
    assert (again.n_runs, again.n_left_out, again.censored) == (cut.n_runs, 2, "failure")
    gates = Rules((Gate(), Gate("pass^2"), Gate("cost"), Gate("TPS log", form="recalibrated")))
    assert repr(check(WORSE, again, gates).gates) == repr(check(WORSE, cut, gates).gates)
    for change_, wrong in (
        (lambda one: one | {"version": 2}, "is of version 2"),
        (lambda one: one | {"runs": 3}, "is damaged"),
        (lambda one: one | {"runs": one["runs"] | {"lengths": [1]}}, "is damaged"),
        (lambda one: {"format": one["format"]}, "is damaged"),
    ):
        file.write_text(json.dumps(change_(written)))
        with pytest.raises(ValueError, match=wrong):
            RunSet.read(file)
    file.write_text(result.to_json()[:300])
    with pytest.raises(ValueError, match="is damaged"):
        RunSet.read(file)


def test_what_is_written_for_machines():
    rules = Rules(
        (Gate(), Gate("success", margin=0.5), Gate("pass^2", versus=0.2), Gate("a|b\x00")),
        data=DataRules(least_runs=900),
    )
    result = check(WORSE, BASE, rules)
    assert [one.verdict for one in result.gates] == ["fail", "pass", "undecided", "unusable"]
    suite = ET.fromstring(result.to_junit())
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "2", "skipped": "1"}
    assert [len(case) for case in suite] == [1, 0, 1, 1, 1]
    assert "UNUSABLE" in str(result)


def test_row_order_is_no_matter(rng):
    order = rng.permutation(200)
    X = WORSE.judged.traces["judge"][order]
    other = RunSet(
        X, WORSE.labels[order], tasks=WORSE.tasks[order], spent={"cost": WORSE.spent["cost"][order]}
    )
    gates = Rules((Gate(), Gate("cost"), Gate("S-ECE"), Gate("AUROC", form="recalibrated")))
    assert check(other, BASE, gates).gates == check(WORSE, BASE, gates).gates


def test_words_of_a_comparison():
    said = "\n".join(compare(BASE, WORSE).changes())
    assert "success fell from" in said
    assert ": worse." in said
    assert "No change shown:\n  " in said
    assert "more runs in each set would settle it" in said
    text = str(compare(BASE, WORSE))
    assert "Paired by task: 40 in both" in text
    # no sample size is known of a calibration error: that is said, and not left out
    assert "it is not known how many more runs would settle it" in str(
        check(SAME, BASE, Gate("S-ECE"))
    )
    stops = np.where(np.arange(200) < 3, "crash", "done")
    cut = runs_of(3, stop_reason=stops, outcomes=lambda y: np.where(stops == "crash", -1, y))
    said = "counted as failures; forecasts of 3 not judged (no outcome; stopped by crash, "
    assert said in str(check(cut, BASE))
    nobody = runs_of(2, tasks=False, n_tasks=7)
    assert "Not paired" in str(compare(BASE, nobody))
    alike = compare(BASE, runs_of(1, outcomes=np.ones_like))
    assert any("have the same outcome" in one for one in alike.notes)
    with pytest.raises(ValueError, match="confidence_level must lie strictly"):
        compare(BASE, WORSE, confidence_level=1)


def test_a_gate_that_holds_fails_as_often_as_it_may():
    # small; benchmarks/gates.py in full
    n = 200
    failed = [check(runs_of(2 * k), runs_of(2 * k + 1)).verdict == "fail" for k in range(n)]
    assert 0.01 < np.mean(failed) < 0.1


def test_bad_sets_are_refused():
    X = BASE.judged.traces["judge"]
    with pytest.raises(ValueError, match="spent\\['cost'\\] has shape"):
        RunSet(X, BASE.labels, spent={"cost": [1]})
    with pytest.raises(ValueError, match="row 3: spent\\['cost'\\] is infinite"):
        RunSet(X, BASE.labels, spent={"cost": np.where(np.arange(200) == 3, np.inf, 1)})
    with pytest.raises(ValueError, match="tasks must be 200 labels"):
        RunSet(X, BASE.labels, tasks=["a"])


def test_pass_k_of_a_public_log_is_as_published(public_file):
    runs = RunSet.read(public_file("tau_bench", "gpt-4o-airline.json"))
    table = compare(runs, runs).table["base"].droplevel(["predictor", "form"])
    found = [round(table[name], 3) for name in ("success", "pass^2", "pass^3", "pass^4")]
    assert found == [0.42, 0.273, 0.22, 0.2]


def test_what_rounding_changes_is_no_change():
    cost = BASE.spent["cost"] * (1 + 1e-14)
    again = RunSet(BASE.traces, BASE.y, tasks=BASE.tasks, spent={"cost": cost})
    found = compare(BASE, again)
    assert found.table.loc[("cost", "", ""), "change_low"] > 0
    assert found.changes() == []


def test_what_is_of_other_runs_is_refused_by_its_name():
    X = TrajectoryArray.from_list([[0.1], [0.2], [0.4]], ids=list("bca"))
    other = pd.Series([1, 2, 3], index=list("abc"))
    for name, given in (("tasks", other), ("stop_reason", other.astype(str)), ("cost", other)):
        kwargs = {"spent": {name: given}} if name == "cost" else {name: given}
        with pytest.raises(ValueError, match=f"row 0: {name} is of run 'a', X of run 'b'"):
            RunSet(X, [1, 0, 1], **kwargs)
    with pytest.raises(ValueError, match=r"spent must be a dict of numbers by name, got \[1, 2\]"):
        RunSet(X, [1, 0, 1], spent=[1, 2])


def test_bounds_are_said_to_be_for_one_look():
    said = "These bounds are for one look at the runs."
    for result, times in ((check(WORSE, BASE), 1), (check(SAME, BASE, Gate("speed")), 0)):
        assert str(result).count(said) == times


def test_outcomes_alone_are_enough_for_a_gate():
    frames = [pd.DataFrame({"task": one.tasks, "solved": one.labels}) for one in (BASE, WORSE)]
    base, new = (RunSet(None, frame["solved"], tasks=frame["task"]) for frame in frames)
    assert base.predictors == []
    assert check(new, base).gates == check(WORSE, BASE).gates
    assert list(compare(base, new).table.index.get_level_values("metric")) == [
        "success", "pass^2", "pass^3", "pass^4", "pass^5",
    ]  # fmt: skip
    again = RunSet._of_json(json.loads(check(new, base).to_json())["runs"])
    assert check(again, base).gates == check(new, base).gates
    with pytest.raises(ValueError, match="there are no outcomes"):
        RunSet(None, None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"margin": 1}, "success lies in [0, 1], so margin = 1 decides nothing"),
        ({"margin": -1}, "margin = -1 decides nothing"),
        ({"margin": 1.5}, "decides nothing; 1.5 of a hundred is 0.015"),
        ({"versus": 1.01}, "versus = 1.01 decides nothing; 1.01 of a hundred is 0.0101"),
        ({"versus": -0.01}, "versus = -0.01 decides nothing"),
        ({"margin": 1, "metric": "AUROC"}, "AUROC lies in [0, 1], so margin = 1"),
        ({"versus": 60, "metric": "pass^2"}, "decides nothing; 60 of a hundred is 0.6"),
        ({"margin": "%"}, "margin must be a number"),
        ({"versus": True}, "versus must be 'baseline' or a number"),
        ({"versus": 1e301, "metric": "cost"}, "versus must be"),
        ({"margin": "5", "metric": "cost"}, "margin must be a number"),
        ({"predictor": 3}, "predictor must be text"),
    ],
)
def test_gates_end_where_nothing_is_left_to_decide(options, said):
    with pytest.raises(ValueError) as caught:
        Gate(**options)
    assert said in str(caught.value)
    assert ("hundred" in said) == ("hundred" in str(caught.value))


def test_gates_reach_up_to_their_ends():
    for options in ({"margin": 0.999}, {"margin": -0.999}, {"versus": 0}, {"versus": 1}):
        Gate(**options)
    assert Gate("cost", margin=5, versus=-3.0).margin == 5  # of no fraction
    assert (Gate(margin="12.5%").share, Gate(margin=0.1).share) == (0.125, None)
    assert str(Gate(margin="0%")) == str(Gate(margin=0)) == "success no worse than the baseline"
    assert str(Gate(margin="5%")).endswith("by more than 5%")
    assert str(Gate(versus=0.25, margin=-0.5)) == "success better than 0.25 by 0.5"
    assert str(Gate("AUROC", "judge", "recalibrated", 0)) == (
        "AUROC of judge, recalibrated no worse than 0"
    )
    assert str(Gate("AUROC", "judge")) == "AUROC of judge no worse than the baseline"
    for level in (0, 0.5):
        with pytest.raises(ValueError, match="level must lie in"):
            Rules(level=level)
    assert Rules(level=0.499).level == 0.499
    for name, wrong in (("least_runs", 0), ("most_left_out", -0.01), ("most_unobserved", 1.01)):
        with pytest.raises(ValueError, match=name):
            DataRules(**{name: wrong})
    DataRules(least_runs=1, most_left_out=1, most_unobserved=0)
    assert DataRules() == DataRules(1, 1.0, 1.0)


def test_data_may_be_just_what_is_asked_for():
    new = runs_of(3, n_unread=50)
    at_most = DataRules(least_runs=200, most_left_out=0.2)  # 50 of 250
    assert check(new, BASE, Rules(data=at_most)).problems == []
    assert check(new, BASE, Rules(data=DataRules(most_left_out=0.199))).problems != []
    assert check(new, BASE, Rules(data=DataRules(least_runs=201))).problems != []


def test_gates_that_are_bad_together_share_more_than_gates_that_are_not():
    # a failure takes a step more: the two gates fail together, and as one
    y, tasks = np.arange(200) % 2, np.arange(200)
    runs = RunSet(TrajectoryArray(np.full(500, 0.5), 2 + (y == 0)), y, tasks=tasks)
    gates = Gate(versus=0.45), Gate("length", versus=2.55)
    both, alone = (check(runs, None, Rules(gates[:n])).gates for n in (2, 1))
    assert both[0].low == pytest.approx(alone[0].low, abs=0.002)
    reach = both[0].change - both[0].low
    assert both[1].high - both[1].change == pytest.approx(reach, abs=0.003)


@pytest.mark.parametrize("name", ["sucess", "auroc", "tokens"])
def test_a_metric_that_is_not_known_is_named(name):
    (result,) = check(SAME, BASE, Gate(name)).gates
    assert f"no metric named {name!r}" in result.why


def test_rules_are_gates_or_what_was_read_of_them():
    with pytest.raises(ValueError, match="rules must be a Gate, or the path of a file of gates"):
        check(SAME, BASE, 5)
    with pytest.raises(ValueError, match="there is nothing to check: give a baseline, or gates"):
        check(SAME)


def an_estimate(value, error=0.03125):
    return Estimate(value, np.full(16, error / 4), 15.0, 16)


@pytest.mark.parametrize(
    ("gate", "sign", "margin", "offset", "value", "above", "verdict", "ends"),
    [
        (Gate(), 1.0, 0.0, 0.0, 0.75, 0.25, "pass", (0.25, 0.25)),
        (Gate(margin=0.125), 1.0, 0.125, 0.0, 0.75, -0.0625, "pass", (0.25, 0.25)),
        (Gate(), 1.0, 0.0, 0.0, 0.25, -0.25, "fail", (-0.25, -0.25)),
        (Gate("length"), -1.0, 0.0, 0.0, 0.25, -0.25, "pass", (-0.25, -0.25)),
        (Gate("length"), -1.0, 0.0, 0.0, 0.75, 0.25, "fail", (0.25, 0.25)),
        (Gate(), 1.0, 0.0, 0.0, 0.5, 0.0, "undecided", (0, 0)),
        (Gate(versus=0.5), 1.0, 0.0, 0.5, 0.75, 0.75, "pass", (0.25, 0.25)),
        (Gate(versus=0.5), 1.0, 0.0, 0.5, 0.25, 0.25, "fail", (-0.25, -0.25)),
        # the span of what is allowed is not left: from -1 to 1, or what is above 0.5
        (Gate(), 1.0, 0.0, 0.0, 1.49, 0.25, "pass", (0.99, 0.99)),
        (Gate(), 1.0, 0.0, 0.0, -0.49, 0.25, "pass", (-0.99, -0.99)),
        (Gate(versus=0.5), 1.0, 0.0, 0.5, 0.99, 0.75, "pass", (0.49, 0.49)),
        (Gate(versus=0.5), 1.0, 0.0, 0.5, 0.01, 0.75, "pass", (-0.49, -0.49)),
    ],
)
def test_a_verdict_and_the_ends_of_the_change(
    gate, sign, margin, offset, value, above, verdict, ends
):
    question = _Question(gate, value, 0.5, an_estimate(above), sign, margin, offset)
    one = _decided(question, 0.9, 16)
    reach = 0.03125 * t.ppf(0.9, 15)
    least, most = (-1, 1) if gate.versus == "baseline" else (-0.5, 0.5)
    low, high = ends[0] - reach, ends[1] + reach
    if gate.metric == "success":
        low, high = max(low, least), min(high, most)
    assert (one.verdict, one.value, one.reference) == (verdict, value, 0.5)
    assert (one.change, one.low, one.high) == pytest.approx((value - 0.5, low, high))
    assert np.isnan(one.runs_needed) == (verdict != "undecided")
