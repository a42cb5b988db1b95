"""Gates: what they say, of what, and that they are wrong as seldom as they promise."""

import json

import numpy as np
import pytest
from scipy.stats import t

from known_agent import runs_of
from known_scores import margin_over_best_constant
from refused import must_refuse
from trajscore import TrajectoryArray, metrics
from trajscore.gates import Gate, RunSet, check, compare

BASE, SAME, WORSE = runs_of(1), runs_of(3), runs_of(2, 0.2)


@pytest.fixture
def rules(tmp_path):
    """Write a file of gates."""

    def write(text):
        file = tmp_path / "gates.toml"
        file.write_bytes(text.encode("latin-1"))
        return file

    return write


def gate_of(new, base, *parameters, **options):
    return check(new, base, Gate(*parameters, **options)).gates[0]


def verdict(new, *parameters, **options):
    return gate_of(new, BASE, *parameters, **options).verdict


def costs_of(cost, **options):
    return RunSet(None, np.ones(len(cost)), spent={"cost": cost}, **options)


def test_a_drop_fails_and_no_change_does_not():
    for new, base, gate, expected, code in [
        (WORSE, BASE, None, "fail", 1),
        (SAME, BASE, None, "undecided", 3),
        (BASE, WORSE, None, "pass", 0),
        (SAME, BASE, Gate(margin=0.2), "pass", 0),
        (SAME, BASE, Gate("speed"), "unusable", 2),
    ]:
        result = check(new, base, gate)
        assert (result.verdict, result.exit_code) == (expected, code)
        assert result.passed == (expected == "pass")
        assert expected.upper() in str(result)


def test_a_comparison_and_a_check_have_one_interval_for_one_number():
    for new in (SAME, WORSE):
        found = compare(BASE, new).table
        for metric in ("success", "length", "cost", "AUROC"):
            one = gate_of(new, BASE, metric)
            row = found.xs(metric, level="metric").iloc[0]
            assert (one.low, one.high) == (row["change_low"], row["change_high"])
            assert one.change == pytest.approx(one.value - one.reference)
            if one.verdict == "undecided":
                assert one.runs_needed == row["runs_needed"]
            else:
                assert np.isnan(one.runs_needed)


def test_a_gate_fails_beyond_its_bound_and_passes_at_it():
    for metric, sign in (("success", 1), ("cost", -1)):
        one = gate_of(WORSE, BASE, metric)
        low, high = sorted(sign * end for end in (one.low, one.high))
        assert low < high < 0
        margins = {"fail": np.nextafter(-high, 0), "undecided": -high, "pass": -low}
        for expected, margin in margins.items():
            assert verdict(WORSE, metric, margin=float(margin)) == expected
        # what rounding may have taken from a bound decides nothing
        assert verdict(WORSE, metric, margin=-low - 1e-13) == "pass"
        assert verdict(WORSE, metric, margin=-low - 1e-11) == "undecided"


def test_runs_needed_grow_as_the_margin_nears_what_was_seen():
    for metric, sign in (("success", 1), ("cost", -1)):
        one = gate_of(SAME, BASE, metric)
        reach = (one.high - one.low) / 2
        needed = [
            gate_of(SAME, BASE, metric, margin=-sign * one.change + far * reach).runs_needed
            for far in (-0.6, -0.3, 0.3, 0.6)
        ]
        assert needed[0] < needed[1]
        assert needed[2] > needed[3] > 200
    # where no task differs, those whose bound is the margin: .95 ** 58 > .05 > .95 ** 59
    one = gate_of(BASE, BASE, margin=0.05)
    assert (one.verdict, one.change, one.runs_needed) == ("undecided", 0, 5 * 59)
    for n_tasks, expected in ((58, "undecided"), (59, "pass")):
        same = runs_of(1, n_tasks=n_tasks)
        assert check(same, same, Gate(margin=0.05)).verdict == expected
    for margin in (0, 1e-9):
        assert gate_of(BASE, BASE, margin=margin).runs_needed == np.inf


def test_less_is_better_of_costs_and_errors():
    assert verdict(WORSE, "cost") == "fail"
    assert verdict(WORSE, "cost", margin="50%") == verdict(WORSE, "cost", margin=1) == "pass"
    assert verdict(WORSE, "S-ECE", versus=0.0) != "pass"
    assert verdict(WORSE, "S-ECE", versus=0.9) == verdict(WORSE, "AUROC", versus=0.5) == "pass"


def test_a_share_is_of_the_baseline_itself_and_not_of_what_was_seen():
    cost = np.random.default_rng(0).lognormal(0, 0.5, 200)
    base, new = (costs_of(cost * times, tasks=np.arange(200)) for times in (1, 1.2))
    assert gate_of(new, base, "cost", margin="25%").verdict == "pass"
    assert gate_of(new, base, "cost", margin="15%").verdict == "fail"
    # a score below 0 is worse by a tenth if it is 1.1 times as far from 0
    one = gate_of(WORSE, BASE, "TPS log")
    share = 100 * (one.value / one.reference - 1)
    needed = [
        gate_of(WORSE, BASE, "TPS log", margin=f"{margin}%").runs_needed
        for margin in (share, share + 5, share + 8)
    ]
    assert needed[0] > needed[1] > needed[2]
    # a tenth less success than a baseline without failures has the bounds of a rate
    perfect = RunSet(None, np.ones(60), tasks=np.arange(60))
    for margin, expected in (("5%", "pass"), ("4%", "undecided")):  # 1 - .05 ** (1 / 60) is 4.9%
        assert gate_of(perfect, perfect, margin=margin).verdict == expected


def test_forecasts_are_held_against_the_base_rate_and_numbers():
    found = gate_of(WORSE, None, "TPS log margin", "judge", versus=0)
    X, y = WORSE.traces["judge"], WORSE.labels.astype(int)
    assert found.change == pytest.approx(margin_over_best_constant(y, X))
    how = {"score": ("beta", 2, 4)}  # which reports show only where they are asked to
    found = gate_of(WORSE, None, "TPS beta(2,4) margin", "judge", versus=0)
    assert found.change == pytest.approx(margin_over_best_constant(y, X, **how))
    parts = metrics.tps_decomposition(y, X, **how)
    found = gate_of(WORSE, WORSE, "MCB beta(2,4)", margin=1e-3)
    assert (found.value, found.verdict) == (pytest.approx(parts.miscalibration), "pass")
    for parameters, versus, expected in [
        (("TPS log",), -0.01, "fail"), (("success",), 0.1, "pass"),
        (("TPS log margin",), 0.5, "fail"), (("TPS log", "judge", "recalibrated"), -5, "pass"),
    ]:  # fmt: skip
        assert verdict(WORSE, *parameters, versus=versus) == expected


def test_bounds_hold_for_all_gates_at_once(rules):
    # two gates that fail together are as one; those that are apart share the error
    y, tasks = np.arange(200) % 2, np.arange(200)
    X = TrajectoryArray(np.full(500, 0.5), 2 + (y == 0))
    cost, still = np.random.default_rng(0).normal(size=200), np.ones(200)
    runs = RunSet(X, y, tasks=tasks, spent={"cost": cost, "tokens": still})
    text = '[[gate]]\nversus = 0.45\n[[gate]]\nmetric = "{}"\nversus = {}\n'

    def level_of(metric, versus):
        """The level of the first gate's lower bound, by that of t."""
        one = check(runs, None, rules(text.format(metric, versus))).gates[0]
        return t.cdf((one.change - one.low) / (0.5 / np.sqrt(199)), 199)

    assert level_of("success", 0.4) == pytest.approx(0.95, abs=0.004)
    assert level_of("length", 2.55) == pytest.approx(0.95, abs=0.004)
    assert level_of("cost", 0) == pytest.approx(0.95**0.5, abs=0.004)
    # what does not vary takes its half of the error
    assert level_of("tokens", 2) == pytest.approx(0.975, abs=0.003)
    # where one is high when the other is low, either exceeds with the sum of the chances
    turned = RunSet(None, y, tasks=tasks, spent={"cost": y.astype(float)})
    one = check(turned, None, rules(text.format("cost", 0.6))).gates[0]
    alone = gate_of(turned, None, versus=0.45)
    assert one.low < alone.low
    # gates of a baseline with other tasks go with gates of numbers
    mixed = check(turned, BASE, rules(text.format("cost", 0.6) + "[[gate]]\n")).gates
    assert [gate.verdict for gate in mixed] == ["undecided", "pass", "undecided"]
    everywhere = RunSet(None, np.ones(40), tasks=np.arange(40))
    one, _ = check(everywhere, None, rules(text.format("success", 0.5))).gates
    assert one.low + 0.45 == pytest.approx(0.025 ** (1 / 40))


def test_a_gate_that_holds_fails_as_often_as_it_may():
    # small; benchmarks/gates.py in full
    failed = [check(runs_of(2 * k), runs_of(2 * k + 1)).verdict == "fail" for k in range(100)]
    assert 0 < np.mean(failed) < 0.12


@pytest.mark.parametrize("metric", ["cost", "length"])
@pytest.mark.parametrize("sets", ["one set", "paired", "not paired"])
def test_equal_costs_decide_nothing_unless_their_most_is_known(metric, sets):
    n = 200
    X, tasks = TrajectoryArray(np.full(2 * n, 0.5), np.full(n, 2)), np.arange(n)
    base, new = (
        RunSet(X, np.ones(n), tasks=tasks + n * (k if sets == "not paired" else 0),
               spent={"cost": np.full(n, 2.0)})
        for k in (0, 1)
    )  # fmt: skip
    baseline, versus = (None, 2.2) if sets == "one set" else (base, "baseline")
    margin = 0.0 if sets == "one set" else 0.2
    one = check(new, baseline, Gate(metric, versus=versus, margin=margin))
    assert one.verdict == "undecided"
    assert np.isnan(one.gates[0].runs_needed)
    assert "set most" in str(one)
    # up to 1 - .05 ** (1 / 200), or 1.5%, of runs take the most: 2 + .015 * 10 < 2.2
    for most, expected in ((12.0, "pass"), (40.0, "undecided")):
        gate = Gate(metric, versus=versus, margin=margin, most=most)
        assert check(new, baseline, gate).verdict == expected
    assert gate_of(new, baseline, metric, versus=versus, most=1.5).verdict == "unusable"


def test_equal_costs_and_few_runs_that_are_ranked_without_error_decide_nothing():
    varied, equal = costs_of(1 + np.arange(80) % 5), costs_of(np.full(90, 1.0))
    for new, base in ((varied, equal), (equal, varied)):
        assert gate_of(new, base, "cost", margin="900%").verdict == "undecided"
    few = RunSet([[0.9], [0.8], [0.2], [0.1]], [1, 1, 0, 0])
    assert gate_of(few, None, "AUROC", versus=0.9).verdict == "undecided"


@pytest.mark.parametrize("size", [1e200, 1e308])
def test_costs_too_large_for_an_interval_are_unusable(size):
    big = costs_of(size * (1 + np.arange(40) % 3 / 4))
    small = costs_of(1 + np.arange(30) % 3)
    for new, base, versus in ((big, None, 5.0), (big, small, "baseline"), (small, big, "baseline")):
        (one,) = check(new, base, Gate("cost", versus=versus)).gates
        assert (one.verdict, np.isnan(one.low)) == ("unusable", True)
        assert "divide" in one.why
    assert "divide" in str(compare(small, big))


LAWS = {
    "lognormal 0.5": lambda rng, n: rng.lognormal(-0.125, 0.5, n),
    "lognormal 1": lambda rng, n: rng.lognormal(-0.5, 1, n),
    "Pareto 2.5": lambda rng, n: 0.6 * (1 + rng.pareto(2.5, n)),
    "two values": lambda rng, n: np.where(rng.random(n) < 0.1, 20.0, 1.0) / 2.9,
}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_costs_at_the_edge_pass_as_seldom_as_promised(law, n_simulations):
    rng, draw = np.random.default_rng(0), LAWS[law]  # benchmarks/gates.py costs in full
    passed = np.zeros((n_simulations, 4), dtype=bool)
    for row in passed:
        base, new, many = (costs_of(draw(rng, n)) for n in (8, 8, 100))
        task = draw(rng, 8)
        pair = [costs_of(task * c.spent["cost"], tasks=np.arange(8)) for c in (base, new)]
        verdicts = [gate_of(new, None, "cost", versus=1.0).verdict]
        verdicts += [gate_of(new, one, "cost").verdict for one in (base, many)]
        row[:] = [one == "pass" for one in (*verdicts, gate_of(*pair[::-1], "cost").verdict)]
    assert (passed.mean(axis=0) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / n_simulations)).all()


def test_row_order_is_no_matter(rng, rules):
    order = rng.permutation(200)
    X, spent = WORSE.traces["judge"][order], {"cost": WORSE.spent["cost"][order]}
    other = RunSet(X, WORSE.labels[order], tasks=WORSE.tasks[order], spent=spent)
    file = rules("".join(
        f'[[gate]]\nmetric = "{metric}"\n' for metric in ("success", "cost", "S-ECE", "AUROC")
    ))  # fmt: skip
    assert check(other, BASE, file).gates == check(WORSE, BASE, file).gates


def test_a_predictor_that_varies_in_no_set_asks_for_no_runs():
    y = np.arange(60) % 2
    flat = RunSet(np.full((60, 1), 1.0), y)
    varied = RunSet((0.2 + 0.6 * np.roll(y, 30) + 0.1 * np.resize([0, 1, 1], 60))[:, None], y)
    gate = Gate("TPS log margin", form="recalibrated")
    absolute = Gate("TPS log margin", form="recalibrated", versus=0.0)
    for result in (check(flat, flat, gate).gates[0], check(flat, None, absolute).gates[0]):
        assert result.verdict == "unusable"
        assert "does not vary: it is 1.00 at every step" in result.why
    assert "does not vary: it is 1.00 at every step" in str(compare(flat, flat))
    for new, base in ((flat, varied), (varied, flat)):  # of which there is something to say
        assert check(new, base, gate).verdict != "unusable"
        assert "does not vary" not in str(compare(base, new))


def test_what_is_unusable_says_why():
    alike = runs_of(1, outcomes=np.ones_like)
    for new, gate, said in [
        (RunSet({"a": [[0.5]] * 4, "b": [[0.5]] * 4}, [0, 1, 0, 1]), Gate("AUROC"), "a, b"),
        (SAME, Gate("TPS log", "verbal"), "'verbal'; there are: judge"),
        (SAME, Gate("MCB beta(2) margin"), "'MCB beta(2) margin'"),
        (SAME, Gate("S-ECE margin", versus=0), "S-ECE margin"),
        (SAME, Gate("success", most=1), "leave most out"), (alike, Gate("AUROC"), "same outcome"),
        (SAME, Gate("succes"), "did you mean 'success'"), (SAME, Gate("tokens"), "column 'tokens'"),
        (SAME, Gate("speed"), "no metric named 'speed'"),
        (SAME, Gate("S-ECE", margin="5%"), "share"), (SAME, Gate("cost", "judge"), "predictor"),
    ]:  # fmt: skip
        result = check(new, BASE, gate)
        assert result.verdict == "unusable"
        assert said in result.gates[0].why, gate
    assert "needs a baseline; give one (--baseline)" in gate_of(SAME, None).why
    assert check(SAME).verdict == "unusable"
    few = RunSet([[0.5]] * 3 + [[0.6]], [0, 1, 1, 1])
    assert (
        "not recalibrated; all runs of a fold are successes"
        in gate_of(few, None, "AUROC", None, "recalibrated", 0.5).why
    )
    assert check(alike, BASE).verdict == "pass"
    rows = [
        (SAME, BASE, 5, "rules must be"),
        (SAME, "baseline.json", "baseline must be a RunSet, got str"),
        ([SAME], "new must be a RunSet, got list"),
    ]
    must_refuse(check, rows)


def test_a_fault_of_the_code_is_not_hidden(monkeypatch):
    def fail(*_):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr("trajscore.core.statistics.MeanOfRuns.influence", fail)
    for judge in (check, compare):
        with pytest.raises(ValueError, match="operands"):
            judge(SAME, BASE)


def test_a_run_that_crashed_is_a_failure_of_the_agent_and_no_forecast_to_judge():
    crashed = np.arange(200) % 2 == 0
    stops, hidden = np.where(crashed, "crash", "done"), lambda y: np.where(crashed, -1, y)
    known = runs_of(1, outcomes=lambda y: np.where(crashed, 0, y))
    cut = runs_of(1, stop_reason=stops, outcomes=hidden)
    for metric in ("success", "pass^2", "length", "cost"):
        one, other = (gate_of(new, BASE, metric) for new in (cut, known))
        assert (one.value, one.low) == (other.value, other.low)
    assert check(cut, BASE).verdict == "fail"
    dropped = runs_of(1, stop_reason=stops, outcomes=hidden, censored="drop")
    assert (dropped.n_runs, dropped.n_left_out, dropped.n_unobserved) == (100, 100, 100)
    alone = RunSet(BASE.traces["judge"][~crashed], BASE.y[~crashed], tasks=BASE.tasks[~crashed])
    for metric in ("TPS log", "AUROC", "S-ECE"):
        values = [gate_of(new, None, metric, versus=0.0).value for new in (cut, alone)]
        assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_bad_gates_are_named():
    rows = [
        ({"margin": "100%"}, "never below 0, so margin '100%' decides nothing"),
        ({"metric": "cost", "most": "much"}, "most must be a number"), ({"margin": True}, "margin"),
        ({"margin": "10%", "versus": 0.5}, "share of the baseline"), ({"versus": True}, "versus"),
        ({"versus": 60, "metric": "pass^2"}, "versus = 60 .* 0.6"), ({"form": "raw"}, "form"),
        ({"margin": "inf%", "metric": "cost"}, "margin.* 'inf%'"),
        ({"versus": -0.01}, r"versus = -0.01 decides nothing$"),
        ({"margin": -1}, r"margin = -1 decides nothing$"), ({"margin": "much"}, "margin.* 'much'"),
        ({"margin": 1}, r"margin = 1 decides nothing$"), ({"margin": 1.5}, "margin = 1.5 .* 0.015"),
        ({"metric": "cost", "margin": 1e300}, "margin"), ({"margin": "nan%"}, "margin.* 'nan%'"),
        ({"predictor": 3}, "predictor must be text"), ({"margin": 1, "metric": "AUROC"}, "AUROC"),
        ({"versus": "last"}, "versus.* 'last'"), ({"metric": 3}, "metric must be text"),
        ({"margin": "10"}, "margin.* '10'"),
    ]  # fmt: skip
    must_refuse(lambda options: Gate(**options), rows)
    for options, share in [
        ({"margin": 0.99}, None), ({"margin": -0.99}, None), ({"versus": 0}, None),
        ({"versus": 1}, None), ({"margin": "150%", "metric": "AURC"}, 1.5),
        ({"margin": "12.5%"}, 0.125),
        ({"metric": "cost", "margin": 5, "versus": 9e299}, None), ({"margin": "-5%"}, -0.05),
    ]:  # fmt: skip
        assert Gate(**options).share == share


def test_files_of_gates_are_read_strictly(rules, tmp_path):
    for text, said in [
        ("[[gate]]\nmetrik = 'success'", "gate 1: .*'metrik'.*'metric'"), ("[[gate]", "TOML"),
        ("[[gate]]\n[[gate]]\nmargin = 2", "gate 2: .*margin"), ("level = 0.5\n[[gate]]", "level"),
        (f"[[gate]]\nmargin = 1{'0' * 400}", "margin"), ("levle = 3\n[[gate]]", "'levle'.*'level'"),
        ("undecided = 'skip'\n[[gate]]", "undecided"), ("least_runs = 0\n[[gate]]", "least_runs"),
        ("gate = [3]", "gate 1: .*table"), ("", "no gates"), ("\xff", "TOML"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=rf"gates\.toml:? .*{said}"):
            check(SAME, BASE, rules(text))
    with pytest.raises(ValueError, match=r"none\.toml does not exist"):
        check(SAME, BASE, tmp_path / "none.toml")


def test_all_keys_of_a_file_count(rules):
    file = rules(
        'level = 0.005\nundecided = "pass"\nleast_runs = 20\n[[gate]]\n'
        'metric = "TPS log"\npredictor = "judge"\nform = "recalibrated"\nversus = -0.5\n'
        "margin = 0.1\n"
    )
    result = check(SAME, rules=str(file))
    (gate,) = [one.gate for one in result.gates]
    assert gate == Gate("TPS log", "judge", "recalibrated", -0.5, 0.1)
    at_05 = gate_of(SAME, None, "TPS log", "judge", "recalibrated", versus=-0.5, margin=0.1)
    assert result.gates[0].low < at_05.low
    assert "99.5%" in str(result)
    for undecided in ("pass", "fail", "undecided"):
        result = check(SAME, BASE, rules(f'undecided = "{undecided}"\n[[gate]]\n'))
        assert result.gates[0].verdict == "undecided"
        assert result.verdict == undecided
        assert ("collect more runs" in str(result)) == (undecided == "undecided")
    with pytest.raises(ValueError, match="new has 200 runs, and least_runs = 201"):
        check(SAME, BASE, rules("least_runs = 201\n[[gate]]"))


def rate(n_succeeded, cost=1.0):
    """500 runs of no task, of which the first few succeed."""
    spent = {"cost": cost * (1 + np.arange(500) % 5)}
    return RunSet(None, np.arange(500) < n_succeeded, spent=spent)


@pytest.mark.parametrize(
    ("new", "gate", "sentence"),
    [
        (rate(336), Gate(margin=0.05), ("is not shown to have changed: 67.8% before, 67.2% now; a "
        "drop of more than 5 points is ruled out only with about 1,000 more runs of each version")),
        (rate(320), Gate(margin="4%"), ("is not shown to have changed: 67.8% before, 64.0% now; a "
          "drop of more than 4% of the baseline is shown only with about 30,000 more runs of each "
          "version")),
        (rate(239), Gate(margin=0.05), ("fell beyond chance: 67.8% before, 47.8% now; a drop of "
          "more than 5 points is shown")),
        (rate(330), Gate(margin=-0.01), ("is not shown to have changed: 67.8% before, 66.0% now; a "
          "rise of at least 1 point is ruled out only with about 4,000 more runs of each version")),
        (rate(339), Gate(), ("is not shown to have changed: 67.8% before, 67.8% now; a drop is "
          "ruled out only with more than a million runs of each version")),
        (rate(336), Gate(versus=0.6, margin=0.01), ("is shown to be at least 59.0%: it is 67.2% in "
          "these runs")),
        (rate(336), Gate(versus=0.7), ("may be above or below 70.0%: it is 67.2% in these runs; "
          "about 2,000 more runs would settle it")),
        (rate(336, 1.2), Gate("cost", margin="10%"), ("rose beyond chance: 3 before, 3.6 now; a "
          "rise of more than 10% of the baseline is shown")),
        (rate(9, 0.5), Gate("cost", versus=2), "is shown to be at most 2: it is 1.5 in these runs"),
        (rate(336), Gate("pass^2"), ("cannot be checked: pass^2 needs the task of each run; name "
          "the column of tasks (--group), or give RunSet its tasks")),
    ],
)  # fmt: skip
def test_a_check_ends_with_a_plain_sentence(new, gate, sentence):
    last = str(check(new, rate(339), gate)).splitlines()[-1]
    assert last == f"{gate.metric.capitalize()} {sentence}"


def test_gates_and_checks_in_words(rules):
    assert "not known how many more runs" in str(check(SAME, BASE, Gate("S-ECE")))
    assert "one look" in str(check(SAME, BASE))
    assert "one look" not in str(check(SAME, BASE, Gate("speed")))
    assert "200 runs of 40 tasks" in str(check(SAME, rules=Gate(versus=0.5)))
    # a sentence for each gate that did not pass
    several = rules("[[gate]]\n[[gate]]\nmargin = 0.5\n[[gate]]\nmargin = -0.5")
    lines = str(check(SAME, BASE, several)).splitlines()
    assert [line.split()[-1] for line in lines[-2:]] == ["version", "out"]
    for options, said in [
        ({"metric": "AUROC", "predictor": "judge", "form": "recalibrated"}, "AUROC of judge, rec"),
        ({"margin": -0.5, "versus": 0.25}, "success better than 0.25 by 0.5"),
        ({"margin": "-10%"}, "success better than the baseline by 10%"),
        ({}, "success no worse than the baseline"), ({"margin": 0.05}, "by more than 0.05"),
        ({"margin": "10%"}, "by more than 10%"),
    ]:  # fmt: skip
        assert said in str(Gate(**options))
        assert str(Gate(**options)).count("by ") == said.count("by ")


def test_what_is_written_for_machines(rules):
    file = rules(
        '[[gate]]\n[[gate]]\nmargin = 0.5\n[[gate]]\nmetric = "pass^2"\nversus = 0.2\n'
        '[[gate]]\nmetric = "a|b\\u0000"\n'
    )
    result = check(WORSE, BASE, file)
    came = ["fail", "pass", "undecided", "unusable"]
    assert [one.verdict for one in result.gates] == came
    written = json.loads(result.to_json())
    assert (written["verdict"], written["exit_code"], written["level"]) == ("unusable", 2, 0.05)
    assert [one["verdict"] for one in written["gates"]] == came
    assert written["gates"][0]["change"] == result.gates[0].change
    assert written["gates"][3]["value"] is None
    assert (written["paired_by"], written["n_paired"]) == ("task", 40)
    alone = json.loads(check(SAME, rules=Gate(versus=0.5)).to_json())
    assert (alone["paired_by"], alone["n_paired"]) == (None, None)
