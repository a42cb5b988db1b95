"""Facts of what an agent did: what is counted, from which turns, and who can use it."""

import numpy as np
import pytest

from trajscore import ActionSignals, io
from trajscore.io import Run, Step, ToolCall


def call(name, result="ok", error=None, **arguments):
    return ToolCall(name, arguments, result=result, error=error)


@pytest.fixture
def run():
    """Seven turns in which each signal is set off at least once."""
    return Run("a", [
        Step("user", "Hi, cancel it"),
        Step("agent", "", [call("get_booking", id=7), call("get_user", id=1)]),
        Step("agent", "Wait", [call("cancel_booking", "Error: too late", id=7)]),
        Step("user", "", [call("press_button"), call("look")]),
        Step("agent", "", [call("get_booking", id=7)]),
        Step("environment", "a bell rings"),
        Step("agent", "I\u2019m sorry, I can\u2019t do that", [call("transfer_to_human_agents")]),
        Step("user", "Bye"),
    ], outcome=0)  # fmt: skip


def of(run, **parameters):
    X = ActionSignals(**parameters).fit_transform([run])
    return {name: X[name].to_list()[0].tolist() for name in X.channels}


def test_what_is_counted(run):
    expected = {
        "agent_turns": [0, 1, 2, 2, 3, 4, 4],
        "user_turns": [1, 1, 1, 2, 2, 2, 3],
        "writes": [0, 0, 1, 1, 1, 1, 1],
        "reads": [0, 2, 2, 2, 3, 3, 3],
        "user_calls": [0, 0, 0, 2, 2, 2, 2],
        "repeats": [0, 0, 0, 0, 1, 1, 1],
        "errors": [0, 0, 1, 1, 1, 1, 1],
        "transfers": [0, 0, 0, 0, 0, 1, 1],
        "refusals": [0, 0, 0, 0, 0, 1, 1],
    }
    assert of(run, signals=list(expected)) == expected
    each = of(run, signals=list(expected), so_far=False)
    for name, counts in expected.items():
        assert each[name] == np.diff(counts, prepend=0).tolist(), name


def test_what_is_measured(run):
    size = len('{"id": 7}') + len('{"id": 1}'), len('{"id": 7}')
    expected = {
        "agent_text": [0, 0, 4 / 2, 4 / 2, 4 / 3, 30 / 4, 30 / 4],
        "user_text": [13, 13, 13, 13 / 2, 13 / 2, 13 / 2, 16 / 3],
        "arguments": [0, 18, 27 / 2, 27 / 2, 36 / 3, 36 / 4, 36 / 4],
    }
    assert size == (18, 9)
    for name, means in of(run, signals=list(expected)).items():
        assert means == pytest.approx(np.log1p(expected[name])), name
    each = of(run, signals=["agent_text", "user_text"], so_far=False)
    assert each["agent_text"] == pytest.approx(np.log1p([0, 0, 4, 0, 0, 26, 0]))
    assert each["user_text"] == pytest.approx(np.log1p([13, 0, 0, 0, 0, 0, 3]))


def test_tokens_where_they_are_known():
    greeting = Step("agent", "Hello")
    steps = [
        Step("user", "Hi", extra={"usage": {"completion_tokens": 99}}),
        Step("agent", "a b", extra={"usage": {"completion_tokens": 4, "prompt_tokens": 50}}),
        Step("agent", "a", extra={"metrics": {"completion_tokens": 2}}),
        Step("agent", "a b c", tokens=("a", " b", " c")),
        Step("agent", "unknown"),
        Step("agent", "a b c d", logprobs=(-0.1,) * 7),
    ]
    run = Run("a", [greeting, *steps])
    found = of(run, signals=["tokens"])["tokens"]
    means = [np.nan, np.nan, 4, 3, 3, 3, 4]
    assert found == pytest.approx(np.log1p(means), nan_ok=True)
    each = of(run, signals=["tokens"], so_far=False)["tokens"]
    assert each == pytest.approx(np.log1p([np.nan, 0, 4, 2, 3, np.nan, 7]), nan_ok=True)
    assert "tokens" not in ActionSignals().fit_transform([run]).channels


def test_a_step_knows_nothing_of_later_ones(run, talk):
    for so_far in (True, False):
        signals = ActionSignals([*ActionSignals().get_feature_names_out(), "tokens"], so_far)
        whole = signals.fit([run, *talk]).transform([run, *talk])
        for t in (1, 2, 3, 5):
            cut = [Run(one.id, one.steps[:t]) for one in (run, *talk)]
            prefix = whole.prefix(t) if t < 5 else whole[:1].prefix(t)
            found = signals.transform(cut if t < 5 else cut[:1])
            assert np.array_equal(found.cells, prefix.cells[: len(found.cells)], equal_nan=True)
            assert not found.ended.any()


def test_chosen_signals_come_in_the_order_asked_for(run):
    chosen = ["errors", "writes"]
    signals = ActionSignals(signals=chosen)
    assert signals.get_feature_names_out().tolist() == chosen
    X, everything = signals.fit_transform([run]), ActionSignals().fit_transform([run])
    assert X.channels == tuple(chosen)
    assert np.array_equal(X.cells, everything[chosen].cells)
    assert not np.isnan(everything.cells).any()
    assert X.ended.all()
    for wrong, said in (("writes", "must be a list of names"), ([], "must be a list of names"),
                        (["write"], "did you mean 'writes'")):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            ActionSignals(signals=wrong).fit([run])


def acts(*calls):
    return Run("a", [Step("agent", tool_calls=[one]) for one in calls])


def counted(signal, *calls):
    X = ActionSignals([signal], so_far=False).fit_transform([acts(*calls)])
    return X.cells.ravel().tolist()


WRITES = (
    "update_booking", "sendEmail", "HTTPPost", "POST_item", "make-payment", "file_write", "Edit",
    "the_book", "book_flight",
)  # fmt: skip
OTHERS = (
    "get_updates", "getUpdate", "list_orders", "can_send_mms", "findUser", "Read", "view", "find",
    "bash", "order", "issue_23", "tool", "transfer_money", "supervise", "sets",
)  # fmt: skip
TRANSFERS = (
    "transfer_to_human_agents", "escalate", "HandOffToHuman", "call_supervisor", "to_HUMAN",
    "liveagent", "escalate_and_close", "book_live_agent",
)  # fmt: skip


def test_names_of_tools_tell_what_they_do():
    for name, changes in [*((one, 1) for one in WRITES), *((one, 0) for one in OTHERS)]:
        assert counted("writes", call(name)) == [changes], name
        assert counted("reads", call(name)) == [1 - changes], name
        assert counted("transfers", call(name)) == [0], name
    for name in TRANSFERS:
        assert counted("transfers", call(name)) == [1], name
        assert counted("writes", call(name)) == [0], name


def test_results_that_tell_of_an_error():
    told = [
        "Error: no seat", "error", "ValueError: x", "Traceback (most recent call last)",
        '{"error": "no seat"}', "[Failed to connect]", "Exception in tool", "['ValueError']",
    ]  # fmt: skip
    fine = [
        "No error", '{"error": null, "seat": 1}', '{"errors": []}', "failure_rate 3", "", None,
        "Errors", '{"error": ""}', '{"error": 0}', "{'failed': False}",
    ]  # fmt: skip
    for text in told:
        assert counted("errors", call("a", text), call("a", text, error=False)) == [1, 0], text
    for text in fine:
        assert counted("errors", call("a", text), call("a", text, error=True)) == [0, 1], text


def test_tools_found_by_their_effects():
    for calls, expected in [
        ("look=1 order=x look=2", {"order"}),
        ("look=1 order=x look=1", set()),
        ("look=1 look=2", set()),  # it changes by itself
        ("look=1 order=x look=2 look=3", set()),
        ("look=1 find=x look=2", set()),  # what only looks changes nothing
        ("look=1 order=x frob=y look=2", set()),  # either may have changed it
        ("look=1 order=x delete=y look=2", {"delete"}),  # its name says so already
        ("look=1 order=x look=Error look=2", {"order"}),
        ("look=Error order=x look=2", set()),
        ("look=1 order=x look=None look=2", {"order"}),
        ("look=1 order=x order=y look=2", {"order"}),
        ("stock=1 find=x stock=2", set()),
        ("poll=1 frob=x poll=2", set()),  # the call itself may have changed what it returns
        ("order=x look=1 look=1 order=y look=2", {"order"}),
    ]:
        pairs = [one.split("=") for one in calls.split()]
        run = acts(*(call(name, None if said == "None" else said) for name, said in pairs))
        assert ActionSignals().fit([run]).writes_ == expected, calls
    other = acts(call("get", "1", id=1), call("frob"), call("get", "2", id=2))
    shell = acts(call("sh", "1", do="ls"), call("sh", do="touch a"), call("sh", "2", do="ls"))
    clock = acts(call("look", "1"), call("look", "2"))
    changed = acts(call("look", "1"), call("order"), call("look", "2"))
    halves = [acts(call("look", "1"), call("order")), acts(call("look", "2"))]
    for runs, expected in [([other], set()), ([shell], {"sh"}), ([changed, clock], set()),
                           (halves, set())]:  # fmt: skip
        assert ActionSignals().fit(runs).writes_ == expected


def test_tools_given_or_found(run):
    signals = ActionSignals().fit([run])
    assert signals.writes_ == {"cancel_booking"}
    assert signals.transfers_ == {"transfer_to_human_agents"}
    unseen = signals.transform([acts(call("delete_all"), call("escalate"))])
    assert (unseen["writes"].cells[-1], unseen["transfers"].cells[-1]) == (1, 1)
    given = ActionSignals(writes=["get_user"], transfers=["cancel_booking"]).fit([run])
    last = given.transform([run]).to_frame().iloc[-1]
    assert (last["writes"], last["transfers"], last["reads"]) == (1, 1, 3)
    desk = ActionSignals(transfers=["send_to_desk"]).fit_transform([acts(call("send_to_desk"))])
    assert (desk["writes"].cells[-1], desk["transfers"].cells[-1]) == (0, 1)
    with pytest.raises(ValueError, match=r"got the text 'get_user'; pass \['get_user'\]"):
        ActionSignals(writes="get_user").fit([run])


def test_public_logs(public_file):
    runs = io.read_runs(public_file("tau_bench", "gpt-4o-airline.json"))
    signals = ActionSignals()
    X = signals.fit_transform(runs)
    assert signals.writes_ == {
        "book_reservation", "cancel_reservation", "send_certificate",
        "update_reservation_baggages", "update_reservation_flights",
        "update_reservation_passengers",
    }  # fmt: skip
    total = X.cells[X.offsets[1:] - 1].sum(axis=0)
    found = dict(zip(X.channels, total, strict=True))
    assert [found[name] for name in ("writes", "transfers", "errors")] == [250, 48, 73]
    assert found["writes"] + found["reads"] + found["transfers"] == 1164
    assert (found["agent_turns"], found["user_turns"]) == (2454, 1490)
    assert X.ended.sum() == 195
