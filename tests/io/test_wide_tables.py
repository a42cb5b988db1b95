"""Tables with one row a run: its steps are columns, or lists in a column."""

import pandas as pd

P = {"p_1": [0.1, 0.4], "p_2": [0.2, None], "p_3": [0.3, None]}


def runs_of(**columns):
    return pd.DataFrame({"run": ["a", "b"], "solved": [1, 0]} | columns)


def lists_of(**columns):
    """Return rows of JSON lines, of which one column or several hold lists."""
    return runs_of(**columns).to_dict("records")


def test_columns_become_steps_up_to_the_last_value_of_each_run(tables):
    table = runs_of(**P, s1_q=[1, 2], s2_q=[3, 4])
    runs = tables.read(table, "--wide", "p_", "--wide", "s*_q")
    assert (runs.ids, runs.lengths, runs.outcomes) == (["a", "b"], [3, 2], [1, 0])
    assert runs.predictors == {"p": [0.1, 0.2, 0.3, 0.4, None], "q": [1, 3, None, 2, 4]}
    assert "p_1 to p_3 and s1_q to s2_q" in runs.said
    gaps = tables.read(runs_of(p_1=[None, 0.1], p_2=[0.2, 0.3]), "--wide", "p_")
    assert (gaps.lengths, gaps.predictors["p"]) == ([2, 2], [None, 0.2, 0.1, 0.3])


def test_runs_without_a_value_are_left_out_and_counted(tables):
    table = pd.DataFrame({"run": list("abcd"), "solved": [1, 0, 1, 0]})
    table = table.assign(p_1=[None, None, 0.5, 0.2], p_2=[None, None, 0.5, None])
    runs = tables.read(table, "--wide", "p_")
    assert (runs.ids, runs.lengths) == (["c", "d"], [2, 1])
    assert "2 runs without a value in columns p_1 to p_2" in runs.said


def test_names_of_the_predictors_in_columns(tables):
    for column, prefix, name in [
        ("Sure_{}", "Sure_*", "Sure"), ("step {}: sure", "step *: sure", "sure"),
        ("turn_{}", "turn_", "confidence"), ("s{}", "s*", "s"), ("s{}", "s", "s"),
        ("turned_{}", "turned_", "turned"), ("p_00{}", "p_", "p"), ("{}", "", "confidence"),
        ("solved_{}", "solved_", "confidence"),  # a name that is taken
    ]:  # fmt: skip
        table = runs_of(**{column.format(k): [0.1 * k, 0.2 * k] for k in (1, 2)})
        found = tables.read(table, "--wide", prefix)
        assert (list(found.predictors), found.lengths) == ([name], [2, 2]), (column, prefix)
    twice = runs_of(a1_p=[1, 2], a2_p=[3, 4], b1_p=[5, 6], b2_p=[7, 8])
    runs = tables.read(twice, "--wide", "a*_p", "--wide", "b*_p")
    assert list(runs.predictors) == ["p", "confidence"]


def test_predictors_that_are_named_are_the_only_ones(tables):
    table = runs_of(**P).assign(x=0.5)
    for options in ("--score x", "--risk p", "--scale p=1", "--confidence x"):
        name = options.split()[1].removesuffix("=1")
        runs = tables.read(table.fillna(0.5), "--wide", "p_", *options.split())
        assert list(runs.predictors) == [name], options


def test_columns_that_cannot_be_steps(tables):
    for columns, named in [
        ({"q_1": [1, 2]}, "'p_'"),
        ({"p_1": [1, 2], "p_3": [0, 0]}, "p_1 and p_3, but none with the number 2"),
        ({"run": ["a", "a"], "p_1": [1, 2]}, "run ids occur twice"),
    ]:
        said = tables.refuse(runs_of(**columns), "--wide", "p_")
        assert named in said
        assert "--wide" in said
    assert "--wide" in tables.refuse(runs_of(**P))


def test_lists_of_different_lengths(tables):
    rows = lists_of(p=[[0.5], [0.1]], score=[[1], [2, 3]], q=[[1], [2, 3]], r=[[1], [2]])
    said = tables.refuse(rows, name="t.jsonl")
    assert "'score', 'p' hold lists of different lengths" in said
    assert "--score" in said
    runs = tables.read(rows, "--score", "q", name="t.jsonl")
    assert runs.lengths == [1, 2]
    assert "lists of other lengths not used: p, r" in runs.said
    text = runs_of(p=["[0.5, nan]", "[0.25]"])  # as pandas writes them
    assert tables.read(text).predictors == {"p": [0.5, None, 0.25]}


def test_columns_that_hold_no_lists_of_steps(tables):
    for column in [
        ["x", "[1]"], [["a"], ["b"]], [[True], [False]], [[], []], [[0.1, "x"], [0.2]],
        ["[0.1; 0.2]", "[0.3]"], ["0.1, 0.2]", "[0.3]"], [[0.5], 3], [{"a": 1}, [0.5]],
        [[{"p": 1}, 2], [3]], ["2026 03 01", "1.5"], [[None], [None]],
    ]:  # fmt: skip
        runs = tables.read(lists_of(x=column, p=[0.1, 0.2]), name="t.jsonl")
        assert (runs.lengths, runs.predictors) == ([1, 1], {"p": [0.1, 0.2]}), column
    for part in ("observation", "tool_calls", "logprobs"):
        rows = lists_of(**{part: [[0.5, 0.25], [0.5]]}, p=[[0.1, 0.2], [0.3]])
        assert tables.read(rows, name="t.jsonl").predictors == {"p": [0.1, 0.2, 0.3]}
    several = lists_of(solved=[[1, 0], [1, 1]], p=[0.1, 0.2])  # of several samples
    assert "df.explode" in tables.refuse(several, "--step", "rows", name="t.jsonl")


def test_a_table_with_a_row_a_step_stays_as_it_is(tables):
    rows = [{"run": "a", "step": k, "p": [0.1], "q": 0.5, "solved": 1} for k in (1, 2)]
    rows += [{"run": "b", "step": 1, "p": [0.1], "q": 0.5, "solved": 0}]
    assert tables.read(rows, "--score", "q", name="t.jsonl").lengths == [2, 1]


def test_runs_without_ids_are_numbered(tables):
    assert tables.read(runs_of(**P).drop(columns="run"), "--wide", "p_").ids == [0, 1]
    rows = [{"solved": k, "p": [0.5]} for k in (0, 1)]
    assert tables.read(rows, name="t.jsonl").ids == [0, 1]
    ids = {"task": ["t", "t"], "trial": [1, 2], **P}
    table = runs_of(**ids).drop(columns="run")
    runs = tables.read(table, "--id", "task", "--id", "trial", "--wide", "p_")
    assert runs.ids == ["t-1", "t-2"]
