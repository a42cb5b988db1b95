"""What is said of runs that are left out."""

import warnings

import pytest

from trajscore import io
from trajscore.core.notebook import N_SHOWN, as_html
from trajscore.io._findings import Findings
from trajscore.io._selection import Selection
from trajscore.io.runs import LeftOut, RunStream, count_left_out, row_of


def malformed(index):
    return LeftOut("log.json", index, None, "it has no steps")


def excluded(index, reason="crash"):
    return LeftOut("log.json", index, f"r{index}", reason, "excluded")


UNREAD = "could not be read and are left out"


@pytest.mark.parametrize(
    ("left_out", "counts", "more"),
    [
        ([malformed(0)], "1 of 11 runs could not be read and is left out", ""),
        ([excluded(0)], "1 of 11 runs is excluded (crash 1)", ""),
        ([malformed(k) for k in range(3)], f"3 of 13 runs {UNREAD}", ""),
        ([malformed(k) for k in range(4)], f"4 of 14 runs {UNREAD}", "; and 1 more"),
        (
            [excluded(0), excluded(1, "api"), excluded(2), malformed(3), malformed(4)],
            f"2 of 15 runs {UNREAD}, 3 of 15 runs are excluded (api 1, crash 2)",
            "; and 2 more",
        ),
    ],
)
def test_runs_that_are_left_out_are_counted_and_some_are_named(left_out, counts, more):
    said = count_left_out(left_out, 10)
    head, _, rest = said.partition(": ")
    assert head == counts
    assert rest.endswith(more)
    shown = sorted(left_out, key=lambda run: run.kind == "excluded")[:3]
    assert rest.removesuffix(more) == "; ".join(map(str, shown))


def test_a_list_of_runs_shows_how_they_ended():
    runs = io.Runs(
        [io.Run("a", outcome=1), io.Run("b", outcome=0.5), io.Run("c"), io.Run("d", outcome=0)]
    )
    assert repr(runs) == "<Runs: 4 runs, 1 success, 1 failure, 1 graded, 1 not observed>"
    runs.left_out = [excluded(0), malformed(1), malformed(2)]
    assert repr(runs).endswith("1 not observed; 2 malformed, 1 excluded>")
    page = runs._repr_html_()
    assert "Runs: 4 runs, 1 success" in page
    assert "<table" in page


@pytest.mark.parametrize("runs", [3, None, io.Run("a")])
def test_what_is_not_runs_is_refused(runs):
    with pytest.raises(ValueError, match="^runs must be an iterable of Run objects, got "):
        io.Runs(runs)
    if not isinstance(runs, io.Run):
        for reader in (io.outcomes, io.meta):
            with pytest.raises(
                ValueError, match="^runs must be Run objects, as io.read_runs returns"
            ):
                reader(runs)


def test_a_single_run_is_a_table_of_one_row():
    turns = [
        io.Step("user", "Hi"),
        io.Step("agent", "Yes", [io.ToolCall("f"), io.ToolCall("g")], logprobs=(-1.0,)),
        io.Step("agent", "No", confidence=0.5, top_logprobs=((("a", -1.0),),)),
        io.Step("environment", "x", [io.ToolCall("h")], logprobs=(-1.0,), confidence=0.5),
    ]
    run = io.Run("a", turns, 0.5, "done", "complete", 7, 2, {"cost": 0.25, "task": "other"})
    (row,) = io.meta(run).to_dict("records")
    assert row == {
        "run": "a", "task": "7", "trial": 2, "outcome": 0.5, "stop_reason": "done",
        "stop_kind": "complete", "n_steps": 4, "n_agent": 2, "n_user": 1, "n_tool_calls": 3,
        "n_logprobs": 1, "n_top_logprobs": 1, "n_confidence": 1, "cost": 0.25,
    }  # fmt: skip
    assert io.outcomes(run).tolist() == [0.5]


def test_a_stream_counts_what_it_has_read():
    stream = RunStream(
        iter([malformed(0), io.Run("a"), excluded(1), io.Run("b"), malformed(2)]),
        {},
        Findings(Selection()),
        warns=False,
    )
    assert [(run.id, stream.n_read, len(stream.left_out)) for run in stream] == [
        ("a", 1, 1), ("b", 2, 2),
    ]  # fmt: skip
    assert (stream.n_read, [one.index for one in stream.left_out]) == (2, [0, 1, 2])
    assert list(stream) == []


def test_a_notebook_shows_what_is_printed_and_the_first_runs():
    runs = io.Runs([io.Run(f"r{k}", outcome=1) for k in range(N_SHOWN + 1)])
    page = runs._repr_html_()
    shown = f"Runs: {N_SHOWN + 1} runs, {N_SHOWN + 1} successes, 0 failures, 0 not observed"
    assert repr(runs) == f"<{shown}>"
    assert page == as_html(shown, io.meta(list(runs)[:N_SHOWN]))


def test_a_list_of_no_runs():
    runs = io.Runs()
    assert repr(runs) == "<Runs: 0 runs, 0 successes, 0 failures, 0 not observed>"
    assert (runs.left_out, runs.info, runs.notes) == ([], {}, [])
    assert list(io.meta(runs).columns) == list(row_of(io.Run("")))
    assert io.outcomes(runs).tolist() == []


def test_a_stream_warns_once_in_the_end():
    for warns in (True, False):
        left = iter([io.Run("a"), malformed(0)])
        stream = RunStream(left, {}, Findings(Selection()), warns=warns)
        assert next(stream).id == "a"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert list(stream) == list(stream) == []
        text = (
            "1 of 2 runs could not be read and is left out: log.json, run (index 0): it has no "
            "steps (all are in .left_out)"
        )
        assert [str(one.message) for one in caught] == [text] * warns
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(RunStream(iter([io.Run("a")]), {}, Findings(Selection()), warns=True))


@pytest.mark.parametrize("outcome", [2, -0.5, "pass", 1.5])
def test_values_that_are_not_outcomes(outcome):
    run = io.Run("a", outcome=outcome)
    with pytest.raises(ValueError) as error:
        io.outcomes([io.Run("b", outcome=1), run])
    assert str(error.value) == (
        f"run 'a': the outcome is {outcome!r}; use 1 for success, 0 for failure, -1 if it was not "
        "observed, or a grade between 0 and 1"
    )
