"""Gates that are looked at again: what is taken, what is refused, and how often they are wrong."""

import json

import numpy as np
import pytest

from known_agent import runs_of
from trajscore import TrajectoryArray
from trajscore.gates import Gate, RunSet, check, check_sequential
from trajscore.gates._gate import DataRules, Rules
from trajscore.gates._sequential import _bound, _decided, _Task
from trajscore.inference import SequentialComparison


def runs(solved, tasks=None, ids=None, **options):
    """Runs of one step; a task each, unless tasks are named."""
    tasks = [f"task {k}" for k in range(len(solved))] if tasks is None else list(tasks)
    X = np.full((len(solved), 1), 0.5)
    if ids is not None:
        X = TrajectoryArray(X[:, 0], np.ones(len(solved), dtype=int), ids=ids)
    return RunSet(X, solved, tasks=tasks or None, **options)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "gate.json"


def agent(seed, n, rate=0.9):
    return (np.random.default_rng(seed).random(n) < rate).astype(int)


def test_it_goes_on_until_it_decides_and_the_decision_stays(state):
    solved = np.r_[agent(1, 200, 0.95), np.zeros(100, dtype=int)]
    gate, found = Gate(versus=0.8), []
    for n in (10, 40, 200, 300):
        result = check_sequential(runs(solved[:n]), rules=gate, state=state)
        found.append((result.look, result.n_taken, result.verdict, result.exit_code))
    assert found == [
        (1, 10, "undecided", 3), (2, 40, "undecided", 3), (3, 200, "pass", 0), (4, 300, "pass", 0),
    ]  # fmt: skip
    assert result.decided_at == [3]
    assert result.gates[0].value < 0.7  # the later failures change the mean, not the decision
    assert "decided at look 3" in str(result)


def test_worse_than_the_baseline_fails(state):
    base, worse = runs_of(1, n_tasks=200), runs_of(2, 0.2, n_tasks=200)
    result = check_sequential(worse, base, state=state)
    assert (result.verdict, result.exit_code) == ("fail", 1)
    assert result.gates[0].change == pytest.approx(check(worse, base).gates[0].change)
    assert result.gates[0].low < result.gates[0].change < result.gates[0].high < 0
    wide = check_sequential(worse, base, Gate(margin=0.4), state=state.with_name("wide.json"))
    assert wide.verdict == "pass"
    share = check_sequential(worse, base, Gate(margin="70%"), state=state.with_name("share.json"))
    assert share.verdict == "pass"


def test_the_numbers_are_those_of_bets_on_task_means(state):
    rng = np.random.default_rng(3)
    tasks = np.repeat([f"t{k}" for k in range(40)], 3)
    new, base = ((rng.random(120) < p).astype(int) for p in (0.7, 0.6))
    gate = Gate(margin=0.1)
    result = check_sequential(runs(new, tasks), runs(base, tasks), gate, state=state)
    taken = [one["name"] for one in json.loads(state.read_text())["taken"]]
    of = [{t: y[tasks == t].mean() for t in taken} for y in (new, base)]
    a, b = (np.array([one[t] for t in taken]) for one in of)
    watch = SequentialComparison((-0.9, 1.1), 0.1).update(a + 0.1, b)
    assert result.gates[0].low == pytest.approx(watch.interval[0] - 0.1)
    assert result.gates[0].high == pytest.approx(watch.interval[1] - 0.1)
    # several gates share the level
    both = check_sequential(
        runs(new, tasks), runs(base, tasks), Rules((gate, Gate(versus=0.2))),
        state=state.with_name("two.json"),
    )  # fmt: skip
    assert both.gates[0].low < result.gates[0].low
    assert both.gates[0].high > result.gates[0].high


@pytest.mark.parametrize("cuts", [(30, 60, 90), (2, 3, 5, 90), (90,)])
def test_looks_do_not_change_the_evidence(state, cuts):
    solved, base = agent(5, 90), runs(agent(6, 90))
    for n in cuts:
        result = check_sequential(runs(solved[:n]), base, state=state)
    taken = [one["name"] for one in json.loads(state.read_text())["taken"]]
    assert sorted(taken) == sorted(f"task {k}" for k in range(90))
    change = solved.mean() - base.labels.mean()
    assert result.gates[0].change == pytest.approx(change)


def test_tasks_of_one_look_come_in_an_order_that_outcomes_cannot_steer(state):
    solved = agent(7, 60, 0.5)
    names = [f"task {k}" for k in range(60)]
    first = np.argsort(solved, kind="stable")  # the failures first
    check_sequential(runs(solved, names), rules=Gate(versus=0.5), state=state)
    other = state.with_name("other.json")
    turned = runs(solved[first], [names[k] for k in first])
    check_sequential(turned, rules=Gate(versus=0.5), state=other)
    taken = [[one["name"] for one in json.loads(f.read_text())["taken"]] for f in (state, other)]
    assert taken[0] == taken[1] != names
    assert taken[0] != sorted(names)  # names may follow outcomes
    later = runs(np.r_[solved, 1, 0], [*names, "a", "b"])
    check_sequential(later, rules=Gate(versus=0.5), state=state)
    after = [one["name"] for one in json.loads(state.read_text())["taken"]]
    assert after[:60] == taken[0]
    assert set(after[60:]) == {"a", "b"}


def test_what_does_not_count_is_counted(state):
    base = runs([1, 0, 1], ["a", "b", "c"])
    new = runs([1, 0, 1], ["a", "b", "x"], ids=["1", "2", "3"])
    result = check_sequential(new, base, state=state)
    assert (result.n_taken, result.n_unpaired, result.n_late) == (3, 1, 0)
    more = runs([1, 0, 1, 0, 0], ["a", "b", "x", "a", "b"], ids=["1", "2", "3", "4", "5"])
    again = check_sequential(more, base, state=state)
    assert (again.n_taken, again.n_taken_now, again.n_late, again.look) == (3, 0, 2, 1)
    assert again.gates[0].value == result.gates[0].value
    assert "not counted: 2 runs of tasks taken at an earlier look" in str(again)
    assert "not counted: 1 task not in the baseline" in str(again)
    none = check_sequential(runs([1, 1], ["y", "z"]), base, state=state.with_name("none.json"))
    assert none.verdict == "undecided"
    assert "no task of the baseline is there yet" in str(none)
    assert "UNDECIDED: no new task is in the baseline; looking again compares runs" in str(none)


def test_runs_without_tasks_are_taken_by_id(state):
    ids = [f"r{k}" for k in range(50)]
    base, new = (runs(agent(s, 50), tasks=[], ids=ids) for s in (1, 2))
    result = check_sequential(new, base, state=state)
    assert (result.taken_by, result.n_taken) == ("run", 50)
    with pytest.raises(ValueError, match="cannot be paired with the baseline: give both a column"):
        check_sequential(runs([1, 0], tasks=[]), base, state=state.with_name("b.json"))


BEFORE = (["a", "b", "c"], ["1", "2", "3"], [1, 0, 1])


@pytest.mark.parametrize(
    ("tasks", "ids", "solved", "message"),
    [
        (["a", "b"], ["1", "2"], [1, 0], "run '3' of task 'c' was taken at look 1 and is missing"),
        (["a", "b", "d"], ["1", "2", "3"], [1, 0, 1], "run '3' of task 'c' was taken at look 1"),
        (["a", "b", "c"], ["1", "2", "4"], [1, 0, 1], "run '3' of task 'c' was taken at look 1"),
        (BEFORE[0], BEFORE[1], [1, 1, 1], "run '2' of task 'b' had outcome 0 at look 1 and has 1"),
    ],
)
def test_the_past_must_not_change(state, tasks, ids, solved, message):
    gate = Gate(versus=0.5)
    check_sequential(runs(BEFORE[2], BEFORE[0], BEFORE[1]), rules=gate, state=state)
    before = state.read_bytes()
    with pytest.raises(ValueError, match=message):
        check_sequential(runs(solved, tasks, ids), rules=gate, state=state)
    assert state.read_bytes() == before


def test_the_baseline_must_not_change(state):
    new = runs([1, 0, 1])
    check_sequential(new, runs([1, 1, 1]), state=state)
    with pytest.raises(ValueError, match="the baseline of task 'task 2' is not what it was"):
        check_sequential(new, runs([1, 1, 0]), state=state)


@pytest.mark.parametrize(
    "rules",
    [
        Gate(margin=0.1), Gate(versus=0.5), Gate(versus="baseline", margin="1%"),
        Rules((Gate(),), level=0.1), Rules((Gate(), Gate(versus=0.5))),
    ],
)  # fmt: skip
def test_the_rule_must_not_change(state, rules):
    new, base = runs([1, 0, 1]), runs([1, 1, 1])
    check_sequential(new, base, state=state)
    with pytest.raises(ValueError, match="begun with another rule: success no worse than the base"):
        check_sequential(new, base, rules, state=state)
    dropped = RunSet(np.full((3, 1), 0.5), [1, 0, 1], tasks=new.tasks, censored="drop")
    with pytest.raises(ValueError, match="--censored failure; by task. Now it is: .* drop"):
        check_sequential(dropped, base, state=state)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "3", '{"format": "trajscore check", "version": 1}',
        '{"format": "trajscore sequential check", "version": 2}',
        '{"format": "trajscore sequential check", "version": 1, "rule": {}, "taken": []}',
    ],
)  # fmt: skip
def test_another_file_is_refused_and_left_as_it_is(state, text):
    state.write_text(text)
    with pytest.raises(ValueError, match=r"gate.json is not a state file of a sequential check"):
        check_sequential(runs([1, 0]), rules=Gate(versus=0.5), state=state)
    assert state.read_text() == text


def test_damage_is_refused(state):
    check_sequential(runs([1, 0]), rules=Gate(versus=0.5), state=state)
    whole = json.loads(state.read_text())
    for name, value in (
        ("runs", {}), ("runs", [1]), ("runs", {"1": "x"}), ("look", 0), ("name", 3),
        ("baseline", 1),
    ):  # fmt: skip
        damaged = {**whole, "taken": [{**whole["taken"][0], name: value}]}
        state.write_text(json.dumps(damaged))
        with pytest.raises(ValueError, match="is not a state file|is missing now"):
            check_sequential(runs([1, 0]), rules=Gate(versus=0.5), state=state)


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (Gate("length"), "metric is 'length'; a sequential check takes 'success' alone"),
        (Gate("pass^2"), "takes 'success' alone"),
        (Gate(use="value"), "always allows for chance. Leave use out"),
        (Gate(versus="base_rate"), "needs a baseline, or a number such as versus = 0.9"),
        (Gate(versus=0.0), "decides nothing: success lies in"),
        (Gate(versus=0.05, margin=0.1), "decides nothing: success lies in"),
    ],
)
def test_gates_that_it_does_not_take(state, gate, message):
    with pytest.raises(ValueError, match=message):
        check_sequential(runs([1, 0]), runs([1, 0]), gate, state=state)
    with pytest.raises(ValueError, match="give a baseline"):
        check_sequential(runs([1, 0]), state=state)
    assert not state.exists()


def test_unusable_data_are_not_taken(state):
    rules = Rules((Gate(versus=0.5),), data=DataRules(least_runs=3))
    result = check_sequential(runs([1, 0]), rules=rules, state=state)
    assert (result.verdict, result.exit_code, result.n_taken) == ("unusable", 2, 0)
    assert "UNUSABLE: the runs are not what the rules ask for; nothing was taken" in str(result)
    assert not state.exists()
    assert check_sequential(runs([1, 0, 1]), rules=rules, state=state).n_taken == 3


def test_undecided_counts_as_what_is_said_and_all_is_written(state):
    result = check_sequential(
        runs([1, 0]), rules=Rules((Gate(versus=0.5),), undecided="pass"), state=state
    )
    assert (result.gates[0].verdict, result.verdict) == ("undecided", "pass")
    assert "counts as pass" in str(result)
    said = "PASS: not decided yet, counted as pass; look again when more runs have arrived"
    assert said in str(result)
    assert "look 1: 2 new tasks, 2 so far, of 2 runs of 2 tasks\n" in str(result)
    assert json.loads(result.to_json())["verdict"] == "pass"
    assert "undecided" in result.to_markdown()
    assert 'tests="1"' in result.to_junit()


@pytest.mark.slow
def test_equal_agents_seldom_fail_however_often_one_looks(tmp_path):
    failed = np.array([0, 0])
    n_sets = 60
    for seed in range(n_sets):
        solved, base = (np.random.default_rng(seed).random((2, 40)) < 0.5).astype(int)
        once = []
        for n in range(8, 41, 8):
            new = runs(solved[:n])
            if not once or once[-1] == "undecided":
                once.append(check(new, runs(base)).verdict)
            again = check_sequential(new, runs(base), state=tmp_path / f"{seed}.json")
        failed += [once[-1] == "fail", again.verdict == "fail"]
    assert failed[1] / n_sets <= 0.05 < failed[0] / n_sets


# ------------------------------------------------------------------ one gate, by hand


def tasks_of(values, baseline=()):
    return [_Task(f"t{k}", k + 1, {"r": value}, list(baseline)) for k, value in enumerate(values)]


@pytest.mark.parametrize(("value", "verdict"), [(1.0, "pass"), (0.0, "fail")])
def test_a_gate_is_decided_at_the_look_of_the_task_that_decides(value, verdict):
    gate, rules = Gate(versus=0.5), Rules((Gate(versus=0.5),), level=0.05)
    values = np.full(40, value)
    watch = SequentialComparison((-0.5, 0.5), 0.1).update(values, np.full(40, 0.5))
    result, look = _decided(gate, tasks_of(values), rules, "task")
    assert (result.verdict, look) == (verdict, watch.decided_after)
    assert 1 < look < 40
    assert _decided(gate, tasks_of(values[: look - 1]), rules, "task")[1] is None
    assert _decided(gate, tasks_of(values[:look]), rules, "task")[1] == look
    assert (result.value, result.reference, result.change) == (value, 0.5, value - 0.5)
    low, high = watch.interval
    assert (result.low, result.high) == pytest.approx((low, high))
    several = Rules((gate, gate), level=0.05)
    assert _decided(gate, tasks_of(values), several, "task")[1] > look


def test_only_tasks_of_the_baseline_count_against_it():
    rules = Rules((Gate(),), level=0.05)
    taken = [*tasks_of([1.0, 0.0], [0.0, 1.0]), *tasks_of([1.0] * 3)]
    result, look = _decided(Gate(margin=0.1), taken, rules, "task")
    assert (result.value, result.reference, look) == (0.5, 0.5, None)
    none, look = _decided(Gate(), taken[2:], rules, "task")
    assert (none.verdict, none.why) == ("undecided", "no task of the baseline is there yet")
    counted, _ = _decided(Gate(undecided="pass"), taken[2:], rules, "run")
    assert counted.counts_as == "pass"


@pytest.mark.parametrize(
    ("gate", "bound"),
    [
        (Gate(margin=0.1), (-0.9, 1.1)),
        (Gate(margin="20%"), (-0.8, 1.0)),
        (Gate(versus=0.25, margin=0.1), (-0.15, 0.85)),
    ],
)
def test_bounds_of_differences_from_what_is_allowed(gate, bound):
    assert _bound(gate) == pytest.approx(bound)


def test_runs_are_paired_by_id_where_only_some_have_tasks(state):
    ids = [f"r{k}" for k in range(50)]
    base = runs(agent(1, 50), tasks=[], ids=ids)
    new = runs(agent(2, 50), tasks=[f"t{k % 5}" for k in range(50)], ids=ids)
    result = check_sequential(new, base, state=state)
    assert (result.taken_by, result.n_taken) == ("run", 50)
    again = check_sequential(
        runs(agent(2, 50), tasks=[], ids=ids), base, state=state.with_name("b.json")
    )
    assert (result.verdict, result.n_taken) == (again.verdict, again.n_taken)


def test_runs_without_ids_are_numbered_from_one_within_their_task(state):
    gate = Gate(versus=0.5)
    check_sequential(runs([1, 0, 1], ["a", "a", "b"]), rules=gate, state=state)
    with pytest.raises(ValueError, match="run '2' of task 'a' had outcome 0 at look 1 and has 1"):
        check_sequential(runs([1, 1, 1], ["a", "a", "b"]), rules=gate, state=state)
