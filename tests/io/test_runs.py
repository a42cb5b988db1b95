"""What is said of runs that are left out."""

import pytest

from trajscore.io.runs import LeftOut, count_left_out


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
