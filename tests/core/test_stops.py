"""Why runs ended, and forecasts that stopped the very runs on which they are judged."""

import numpy as np
import pandas as pd
import pytest

from refused import not_refused
from trajscore import TrajectoryArray, evaluate
from trajscore.censoring import (
    censored_tps_interval,
    doubly_robust_tps_score,
    ipcw_tps_score,
    practice_shift,
    termination_audit,
)
from trajscore.datasets import make_trajectories
from trajscore.metrics import censored_tps_score, tps_score

MEANINGS = {
    "administrative": (
        *("max_steps", "Max Steps", "max-steps", "MaxSteps", " max_steps ", "budget", "cost_limit"),
        *("limits_exceeded", "max_turns", "message_limit", "time_limit", "token_limit"),
    ),
    "informative": (
        *("parse_error", "tool_error", "env_terminated", "context_window_exceeded", "exception"),
        *("refusal", "invalid_action", "crash", "monitor", "early-stop", "guard", "flagged"),
    ),
    "excluded": ("infrastructure_error", "user_error", "agent setup timeout error"),
    # what came to its own end has an outcome; without one nobody knows
    "unknown": ("done", "submit", "EndTurn", "rate limit", "", None),
}


def audited(reasons, y=-1, kinds=None, rule=None):
    meta = pd.DataFrame({"stop_reason": reasons})
    if kinds is not None:
        meta["stop_kind"] = kinds
    return termination_audit(meta, np.broadcast_to(y, len(meta)), rule=rule).mechanism.tolist()


@pytest.mark.filterwarnings("ignore:not scored")
def test_usual_reasons_mean_one_thing_however_they_are_written():
    for meaning, reasons in MEANINGS.items():
        found = dict(zip(reasons, audited(list(reasons)), strict=True))
        assert set(found.values()) == {meaning}, found
        seen = "excluded" if meaning == "excluded" else "complete"
        assert set(audited(list(reasons), y=1)) == {seen}
        failed = meaning if meaning in ("administrative", "excluded") else "complete"
        assert set(audited(list(reasons), y=0)) == {failed}


def test_a_function_is_asked_in_place_of_the_table():
    asked = []
    rule = lambda name: asked.append(name) or "excluded"  # noqa: E731
    assert audited(["Max Steps", "max-steps"], [-1, 1], rule=rule) == ["excluded"] * 2
    assert set(asked) == {"max_steps"}
    kinds = ["informative", "informative", None, None]
    assert audited(["max_steps"] * 4, [0, -1, -1, -1], kinds) == [
        "complete", "informative", "administrative", "administrative",
    ]  # fmt: skip


def test_bad_reasons_and_rules():
    rows = [
        ({"kinds": [None, "finished"]}, "row 1: stop_kind 'finished'.*complete"),
        ({"rule": {"b": "bad"}}, "'b'.*rule .*'bad'.*complete"),
        ({"rule": lambda name: None}, "'a'.*rule .*None"),
        ({"rule": 3}, "rule .*3"),
    ]
    assert not not_refused(lambda **how: audited(["a", "b"], **how), rows)
    assert not not_refused(
        termination_audit, [(None, [1, 0], [{}, "done"], {}, "stop_reason .*text")]
    )


@pytest.fixture(scope="module")
def world():
    """Whole runs, and another forecast of them with noise."""
    runs = make_trajectories(400, lengths=(3, 9), information=0.8, random_state=0)
    X, rng = runs.data, np.random.default_rng(1)
    odds = np.log(X.cells) - np.log1p(-X.cells)
    noisy = 1 / (1 + np.exp(-odds - 0.7 * rng.normal(size=len(odds))))
    return X, runs.final_outcome, X.with_cells(noisy)


def stopped_by(X, flag, reason="monitor"):
    """Stop runs at the first step that is flagged; return what makes containers, and who was."""
    flags = np.split(flag, X.offsets[1:-1])
    first = np.array([int(np.argmax(one)) + 1 if one.any() else len(one) for one in flags])
    stopped = first < X.lengths  # at its end a run can no longer be stopped
    meta = {"stop_reason": np.where(stopped, reason, "done")}

    def cut(trace):
        short = trace.truncate(first)
        return TrajectoryArray(short.cells, short.lengths, ids=X.ids, meta=meta)

    return cut, stopped


def test_a_monitor_that_stops_below_a_threshold_is_refused(world):
    X, y, noisy = world
    for reason in ("monitor", "Stopped by monitor", "early-stopped", "Guard"):
        cut, stopped = stopped_by(X, X.cells < 0.3, reason)
        words = rf"'judge' stopped {stopped.sum()} of these 400 runs.*at most 0\.2\d+,"
        for outcome in (-1, 0):  # not seen, or taken for a failure
            codes = np.where(stopped, outcome, y)
            with pytest.raises(ValueError, match=words):
                evaluate({"other": cut(noisy), "judge": cut(X)}, codes)
    with pytest.raises(ValueError, match=words):
        evaluate(
            {"judge": X.truncate(cut(X).lengths)}, codes, stop_reason=cut(X).meta["stop_reason"]
        )
    # why: it is right wherever that is written down
    sure = X.with_cells(np.where(X.cells < 0.3, 0.001, X.cells))
    with pytest.raises(ValueError, match="'sure' stopped"):
        evaluate({"sure": cut(sure)}, codes)


def test_other_stops_are_not_refused(world):
    X, y, noisy = world
    rng, n = np.random.default_rng(2), len(X.cells)
    step = np.concatenate([np.arange(1, k + 1) for k in X.lengths])
    flags = {
        "a budget": step == 5,
        "a budget of each run": step == np.repeat(rng.integers(2, 9, len(X)), X.lengths),
        "a coin": rng.random(n) < 0.1,
        "another forecast": noisy.cells < 0.3,
        "often, below a threshold": (X.cells < 0.3) & (rng.random(n) < 0.8),
    }
    for name, flag in flags.items():
        cut, stopped = stopped_by(X, flag)
        assert stopped.sum() > 30, name
        assert np.isfinite(censored_tps_score(np.where(stopped, -1, y), cut(X))), name
    # a budget is one, whatever the forecast says of it
    cut, stopped = stopped_by(X, step == 4, "max_steps")
    left = cut(X.with_cells(1 - step / 10))
    assert np.isfinite(censored_tps_score(np.where(stopped, -1, y), left))


def test_scores_of_cut_runs_refuse_it_too(world):
    X, y, noisy = world
    cut, stopped = stopped_by(X, X.cells < 0.3)
    F, codes = cut(X), np.where(stopped, -1, y)
    audit = termination_audit(F, codes)
    assert (audit.mechanism[stopped] == "informative").all()
    scored = np.full(400, True)
    calls = [
        lambda F: ipcw_tps_score(codes, F),
        lambda F: doubly_robust_tps_score(codes, F),
        lambda F: censored_tps_interval(codes, F, n_resamples=10),
        lambda F: censored_tps_score(codes, F),
        lambda F: audit.score(F, informative="administrative"),
        lambda F: practice_shift(
            {"judge": F}, codes, scored=scored, calibrator=None, n_resamples=10
        ),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"stopped {stopped.sum()} of these 400 runs itself"):
            call(F)
        call(cut(noisy))
    # whose outcome is known nevertheless may be scored
    assert tps_score(y, F) == censored_tps_score(y, F)


def refused(X, stopped):
    """The value up to which a trace stopped these runs; None where it is not said to have."""
    meta = pd.DataFrame({"stop_reason": np.where(stopped, "monitor", "done")})
    X = TrajectoryArray(X.cells, X.lengths, meta=meta)
    try:
        censored_tps_score(np.where(stopped, -1, 1), X)
    except ValueError as error:
        text = str(error)
        return float(text.split("at most ")[1].split(",")[0]) if "at most" in text else text
    return None


@pytest.mark.parametrize(
    ("n_stopped", "n_others", "last", "highest"),
    [(5, 50, 0.1, 0.1), (4, 50, 0.1, None), (5, 49, 0.1, None), (5, 50, 0.9, None),
     (5, 50, 0.8999, 0.8999)],
)  # fmt: skip
def test_five_stops_and_fifty_other_steps_are_enough(n_stopped, n_others, last, highest):
    on = [0.9] * (n_others - n_stopped + 1)
    X = TrajectoryArray.from_list([[0.9, last]] * n_stopped + [on])
    assert refused(X, np.arange(len(X)) < n_stopped) == highest
