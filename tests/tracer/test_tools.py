"""What tools do, by their names, results and repeated calls."""

import pytest

from trajscore.io import Run, Step, ToolCall
from trajscore.tracer._tools import has_failed, is_transfer, is_write, tools_with_effects


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("update_order", True), ("getUpdate", False), ("book_flight", True), ("order", None),
        ("HTTPPost", True), ("POST_item", True), ("find", False), ("the_book", True), ("", None),
        ("transfer_to_human_agents", False), ("book_live_agent", False), ("sets", None),
    ],
)  # fmt: skip
def test_write(name, expected):
    assert is_write(name) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("to_HUMAN", True), ("escalate", True), ("liveagent", True), ("supervise", False)],
)
def test_transfer(name, expected):
    assert is_transfer(name) is expected


@pytest.mark.parametrize(
    ("result", "error", "expected"),
    [
        (None, None, False), ("Error: no", None, True), ("no Error", None, False),
        ('{"error": null}', None, False), ("['ValueError']", None, True),
        ("Error: x", False, False),
        ("fine", True, True), (None, True, True), ("errors", None, False),
    ],
)  # fmt: skip
def test_failed(result, error, expected):
    assert has_failed(ToolCall("t", {}, result=result, error=error)) is expected


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("look=1 order=x look=2", {"order"}),
        ("look=1 order=x look=1", set()),
        ("look=1 look=2", set()),  # it changes by itself
        ("look=1 find=x look=2", set()),  # what only looks changes nothing
        ("look=1 order=x delete=y look=2", set()),  # either may have changed it
        ("look=1 delete=y look=2", set()),  # its name says so already
        ("look=1 order=x look=Error look=2", {"order"}),
        ("look=1 order=x look=None look=2", {"order"}),
        ("look=1 order=x look=2 look=3", set()),
        ("look=1 order=x order=y look=2", {"order"}),
        ("stock=1 find=x stock=2", set()),
        ("order=x look=1 look=1 order=y look=2", {"order"}),
    ],
)
def test_effects(calls, expected):
    pairs = [call.split("=") for call in calls.split()]
    steps = [
        Step("agent", "", tool_calls=[ToolCall(n, {}, result=None if r == "None" else r)])
        for n, r in pairs
    ]
    assert tools_with_effects([Run("a", steps)]) == expected
    assert tools_with_effects([Run("a", steps[:1]), Run("b", steps[1:2])]) == set()
