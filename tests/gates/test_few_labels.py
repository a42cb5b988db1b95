"""Gates where few runs are labelled, or none."""

import json

import numpy as np
import pytest

from scripts import load_script
from trajscore.cli.main import main
from trajscore.datasets import make_trajectories
from trajscore.gates import Gate, RunSet, check, compare
from trajscore.inference import LabelDesign

simulation = load_script("judged_gates")


def sets(seed=0, n=400, n_labels=100):
    """Return runs that are all labelled, few labelled, and judged only."""
    runs = make_trajectories(n, sharpness=1.5, noise=0.5, base_rate=0.7, random_state=seed)
    rng = np.random.default_rng(seed)
    judge = np.where(rng.random(n) < 0.15, 1 - runs.target, runs.target)
    design = LabelDesign(n_labels, random_state=seed).fit(runs.data, judge=judge)
    few = np.full(n, -1)
    few[design.query()] = runs.target[design.query()]
    X = {"forecast": runs.data}
    return (
        RunSet(X, runs.target),
        RunSet(X, few, judge=judge, label_probability=design.probabilities_),
        RunSet(X, np.full(n, -1), judge=judge),
    )


def test_few_labels_say_what_all_outcomes_do():
    every, few, _ = sets()
    for gate in (
        Gate(versus=0.5),
        Gate("TPS log margin", predictor="forecast", versus=0),
        Gate("AUROC", predictor="forecast", versus=0.5),
    ):
        ours, theirs = (check(runs, rules=gate).gates[0] for runs in (few, every))
        assert ours.low < theirs.change < ours.high
        assert ours.high - ours.low > theirs.high - theirs.low


def test_success_is_that_of_the_labels():
    every, few, judged = sets()
    assert abs(few.success_rate - every.success_rate) < 0.1
    assert repr(few).startswith("<RunSet: 400 runs (100 labelled), success 0.")
    assert repr(judged).startswith("<RunSet: 400 runs (outcomes by a judge), success 0.")
    assert (few.n_unobserved, few.n_left_out) == (0, 0)


def test_a_comparison_of_few_labels_has_all_but_what_needs_every_outcome():
    base, new = sets(0)[1], sets(1)[1]
    table = compare(base, new).table
    assert {"success", "length", "TPS log margin"} <= set(table.index.get_level_values("metric"))
    assert "S-ECE" not in table.index.get_level_values("metric")
    row = table.loc[("success", "", "")]
    assert row["change_low"] < row["change"] < row["change_high"]


def test_a_set_that_is_written_is_read_again(tmp_path, capsys):
    _, few, judged = sets()
    for runs in (few, judged):
        text = check(runs, rules=Gate(versus=0.1)).to_json()
        again = RunSet._of_json(json.loads(text)["runs"])
        assert repr(again) == repr(runs)
        assert again.is_judged == runs.is_judged
        assert check(again, runs).gates[0].change == 0


def test_gates_on_verdicts_say_that_they_are():
    base, new = sets(0)[2], sets(1)[2]
    text = str(check(new, base))
    assert "Outcomes are a judge's verdicts, so these gates compare verdicts." in text
    assert "calling one failure in ten a success would lift success by about 0.0" in text
    assert "verdicts" not in str(check(sets(1)[0], sets(0)[0]))


def test_undecided_gates_ask_for_labels():
    text = str(check(sets(1)[1], sets(0)[1], Gate(margin=0.02)))
    assert "% of them labelled, would settle it" in text
    assert "label more runs or allow a wider margin" in text


@pytest.mark.parametrize(
    ("gate", "why"),
    [
        (Gate("pass^2", versus=0.1), "pass^2 needs an outcome of every run"),
        (Gate("S-ECE", predictor="forecast", versus=0.1), "there is no S-ECE"),
    ],
)
def test_what_few_labels_cannot_say_is_unusable(gate, why):
    runs = sets()[1]
    tasks = np.arange(400) // 4
    own = runs._labelling
    few = RunSet(
        runs.traces, runs.y, tasks=tasks, judge=own.judge, label_probability=own.probability
    )
    (result,) = check(few, rules=gate).gates
    assert result.verdict == "unusable"
    assert why in result.why


def test_a_lenient_judge_hides_a_drop_from_verdicts_and_not_from_labels():
    rng = np.random.default_rng(3)
    passed = {"verdicts": 0, "labels": 0}
    for _ in range(12):
        old = simulation.draw(0.6, simulation.RIGHT, False, rng)
        new = simulation.draw(0.5, (0.95, 0.45), False, rng)
        few = [simulation.run_set(*own, None, rng) for own in (old, new)]
        judged = [RunSet(None, np.full(400, -1), judge=own[1]) for own in (old, new)]
        passed["labels"] += check(few[1], few[0]).passed
        passed["verdicts"] += check(judged[1], judged[0]).passed
    assert passed["verdicts"] >= 10
    assert passed["labels"] <= 1


def test_gates_by_labels_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for seed, name in ((0, "base"), (1, "new")):
        runs = make_trajectories(400, base_rate=0.7, random_state=seed)
        rng = np.random.default_rng(seed)
        judge = np.where(rng.random(400) < 0.15, 1 - runs.target, runs.target)
        frame = runs.data.to_frame()
        frame.assign(grade=np.repeat(judge, runs.data.lengths)).to_csv(f"{name}.csv", index=False)
        words = ["label", f"{name}.csv", "--judge", "grade", "--out", f"{name}.labels.csv"]
        assert main(words) == 0
        table = np.genfromtxt(f"{name}.labels.csv", delimiter=",", skip_header=1)
        table[:, 1] = runs.target[table[:, 0].astype(int)]
        header = "run,outcome,label_probability"
        np.savetxt(f"{name}.labels.csv", table, "%g", ",", header=header, comments="")
    grade = ["--judge", "grade"]
    assert (
        main(["check", "base.csv", *grade, "--labels", "base.labels.csv", "--json", "b.json"]) == 0
    )
    code = main(["check", "new.csv", "--baseline", "b.json", *grade, "--labels", "new.labels.csv"])
    assert code in (0, 3)
    out = " ".join(capsys.readouterr().out.split())
    assert "base: 400 runs (100 labelled); new: 400 runs (100 labelled)" in out
    assert main(["check", "new.csv", "--baseline", "base.csv", *grade]) in (0, 1, 3)
    assert "Outcomes are a judge's verdicts" in " ".join(capsys.readouterr().out.split())
