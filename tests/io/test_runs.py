"""What is said of runs that are left out."""

import pytest

from trajscore import io
from trajscore.io._findings import Findings
from trajscore.io._selection import Selection
from trajscore.io.runs import LeftOut, RunStream, count_left_out


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
