"""What an agent has done so far, from runs of steps, and what its tools do."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import FloatArray
from trajscore.core.within_runs import running_max, running_sum, step_numbers
from trajscore.io import Run, Step, ToolCall
from trajscore.tracer._similarity import Calls, repeated_calls
from trajscore.tracer.turns import (
    RunTransformer,
    Turns,
    as_names,
    call_text,
    chosen,
    means_of_turns,
    take_tokens,
    take_turns,
)

# Channels that count, and those that are sizes, each with the fact that counts turns for its mean.
COUNTS = (
    "agent_turns", "user_turns", "writes", "reads", "user_calls", "repeats", "errors", "transfers",
    "refusals",
)  # fmt: skip
SIZES = {
    "agent_text": "agent_turns",
    "user_text": "user_turns",
    "arguments": "agent_turns",
    "tokens": "turns_with_tokens",
}
SIGNALS = (*COUNTS, *SIZES)
_NOTHING = dict.fromkeys((*SIGNALS, "turns_with_tokens"), 0.0)
_TROUBLE_OF_A_TURN = 1e-3  # of two runs with as many repeats and errors, the longer has more
_BY_DEFAULT = tuple(name for name in SIGNALS if name != "tokens")

_REFUSAL = re.compile(
    r"\b(?:can(?:no|')t|can not|unable to|not (?:able|allowed|permitted|possible|eligible)"
    r"|(?:won't|will not) be able|against (?:our |the )?polic(?:y|ies)|unfortunately)\b",
    re.IGNORECASE,
)
_USAGES = ("usage", "metrics")
_GENERATED = ("completion_tokens", "output_tokens")


class ActionSignals(RunTransformer):
    """Turn runs into plain facts of what was done so far, one row for each turn of agent or user.

    Signals, each a channel:

    agent_turns, user_turns
        Turns of each side.
    writes
        The agent's calls of tools that change something, see `writes`.
    reads
        Its other calls, without transfers.
    user_calls
        Calls that the user makes.
    repeats
        Turns of the agent with a call that it made before, with the same arguments.
    errors
        The agent's calls that failed: as the log marks them, or else by the first words of the
        result (``Error: ...``).
    transfers
        The agent's calls that hand over to a human, see `transfers`.
    refusals
        Turns in which the agent says, in English, that something cannot be done.
    agent_text, user_text
        Size of what each side says in a turn of its own: log(1 + characters).
    arguments
        Size of the arguments of the agent's calls in a turn of its own: log(1 + characters).
    tokens
        Size of what the agent generated in a turn of its own: log(1 + tokens). Only where the log
        says, so it must be asked for: missing before the first turn of which it is known.

    Parameters
    ----------
    signals : sequence of str, optional
        The signals to return. Default: all but "tokens", and none of these is ever missing.
    so_far : bool, default=True
        Whether a row sums up the run so far, turns as their number and sizes as that of the mean
        turn; or describes its turn alone, for forecasters that sum up themselves.
    writes : collection of str, optional
        Names of the tools that change something. Default: found in `fit`, by their names
        (``update_booking``, ``sendEmail``), or where these say nothing, by effects: a call that was
        made before has another result after them.
    transfers : collection of str, optional
        Names of the tools that hand over to a human; one that is in `writes`, too, counts there.
        Default: found by their names (``transfer_to_human_agents``, ``escalate``).

    Attributes
    ----------
    writes_, transfers_ : frozenset of str
        The tools of the runs in `fit` that are counted so. Tools that were not seen there are told
        by their names.

    See Also
    --------
    TracerSignals : Repetition, gaps and surprisal.
    trajscore.PrefixForecaster : Learns from the signals when runs fail.

    Notes
    -----
    A row knows of its turn and of those before: the results of a turn's calls belong to the turn.
    `fit` looks at no outcome. That a long run fails more often is known to any forecaster that
    counts steps: judge these signals against the length of the run (:doc:`/user_guide/tracer`).

    Examples
    --------
    >>> from trajscore import ActionSignals, io
    >>> call = io.ToolCall("cancel_booking", {"id": 7}, result="Error: not found")
    >>> run = io.Run("a", [io.Step("user", "Please cancel my booking."),
    ...                    io.Step("agent", tool_calls=[call]),
    ...                    io.Step("agent", "I cannot find it.")])
    >>> ActionSignals(signals=["writes", "errors", "refusals"]).fit_transform([run]).to_frame()
      run  step  writes  errors  refusals
    0   a     1     0.0     0.0       0.0
    1   a     2     1.0     1.0       0.0
    2   a     3     1.0     1.0       1.0
    """

    writes_: frozenset[str]
    transfers_: frozenset[str]

    def __init__(
        self,
        signals: Sequence[str] | None = None,
        so_far: bool = True,
        writes: Iterable[str] | None = None,
        transfers: Iterable[str] | None = None,
    ) -> None:
        self.signals = signals
        self.so_far = so_far
        self.writes = writes
        self.transfers = transfers

    @property
    def _output_channels(self) -> Sequence[str]:
        if self.signals is None:
            return _BY_DEFAULT
        return chosen(self.signals, SIGNALS, "signals", "signal")

    def _channels_of(self, X: Any, *, reset: bool) -> TrajectoryArray:
        signals = self._output_channels
        turns = take_turns(X, ("agent", "user"), type(self).__name__)
        if reset:
            self._learn_tools(turns)
        cells, _ = self._next_rows(turns, {}, 0.0)
        return turns.container(cells, signals)

    def _next_rows(
        self, turns: Turns, calls: Calls, sums_before: FloatArray | float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the signals of turns, after the `calls` of others, and the sums of all facts."""
        kind = cache(self._kind)
        rows = [list((_NOTHING | _facts(step, kind)).values()) for step in turns.steps]
        table = np.array(rows, dtype=float).reshape(-1, len(_NOTHING))
        facts = dict(zip(_NOTHING, table.T, strict=True))
        facts["repeats"][:] = repeated_calls(turns, np.inf, calls)
        runs = TrajectoryArray(np.zeros(len(table)), turns.lengths, missing="allow")
        sums = running_sum(runs, np.nan_to_num(table)) + sums_before
        if self.so_far:
            facts = _so_far(dict(zip(facts, sums.T, strict=True)))
        facts |= {name: np.log1p(facts[name]) for name in SIZES}
        return np.stack([facts[name] for name in self._output_channels], axis=1), sums[-1]

    def _learn_tools(self, turns: Turns) -> None:
        writes = as_names(self.writes, "writes")
        transfers = as_names(self.transfers, "transfers")
        names = {call.name for step in turns.steps for call in step.tool_calls}
        if writes is None:
            changing = tools_with_effects(turns.runs) | {name for name in names if is_write(name)}
            writes = frozenset(changing - (transfers or frozenset()))
        if transfers is None:
            transfers = frozenset(name for name in names - writes if is_transfer(name))
        self.writes_ = writes
        self.transfers_ = transfers

    def _kind(self, name: str) -> str:
        """Tell as which signal a call counts: as in `fit`, or by a name that was not seen there."""
        if name in self.writes_:
            return "writes"
        if name in self.transfers_ or (self.transfers is None and is_transfer(name)):
            return "transfers"
        if self.writes is None and is_write(name):
            return "writes"
        return "reads"


class Smoothness(RunTransformer):
    """Turn runs into one signal that falls with each sign of trouble so far; nothing is learned.

    It is minus the sum of the agent's turns that repeat a call, its calls that failed, the largest
    mean surprisal of a turn, where the log has log-probabilities, and a thousandth of the turns.
    """

    _output_channels = ("smoothness",)

    def _channels_of(self, X: Any, *, reset: bool) -> TrajectoryArray:
        turns = take_turns(X, ("agent", "user"), type(self).__name__)
        tokens, reads_zero = take_tokens(turns, None if reset else self.reads_zero_)
        if reset:
            self.reads_zero_ = reads_zero
        surprisal = -np.nan_to_num(means_of_turns(tokens.cells, tokens))
        errors = np.array([sum(map(has_failed, step.tool_calls)) for step in turns.steps])
        events = errors * turns.is_agent + repeated_calls(turns, np.inf, {}).astype(float)
        runs = turns.container(events, self._output_channels)
        trouble = running_sum(runs, events) + running_max(runs, surprisal)
        return runs.with_cells(-trouble - _TROUBLE_OF_A_TURN * step_numbers(runs))


def _facts(step: Step, kind: Callable[[str], str]) -> dict[str, float]:
    """Return the counts and sizes that a turn has by itself, before logarithms."""
    calls = step.tool_calls
    if step.actor != "agent":
        return {"user_turns": 1, "user_calls": len(calls), "user_text": len(step.text)}
    tokens = n_tokens(step)
    return {
        "agent_turns": 1,
        **Counter(kind(call.name) for call in calls),
        "errors": sum(map(has_failed, calls)),
        "refusals": _REFUSAL.search(step.text.replace("\u2019", "'")) is not None,
        "agent_text": len(step.text),
        "arguments": sum(
            len(call_text(call)) - len(call.name) - 1 for call in calls if call.arguments
        ),
        "tokens": tokens,
        "turns_with_tokens": np.isfinite(tokens),
    }


def _so_far(sums: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the sums over the run so far, of sizes the mean over the turns that have one."""
    for name, n_turns in SIZES.items():
        sums[name] = sums[name] / np.maximum(sums[n_turns], 1)
    sums["tokens"][sums["turns_with_tokens"] == 0] = np.nan
    return sums


def n_tokens(step: Step) -> float:
    """Return how many tokens the model generated in a turn; NaN where the log does not say."""
    for name in _USAGES:
        usage = step.extra.get(name)
        if isinstance(usage, Mapping):
            for key in _GENERATED:
                if isinstance(usage.get(key), (int, float)):
                    return float(usage[key])
    for listed in (step.tokens, step.logprobs):
        if listed is not None:
            return len(listed)
    return np.nan


# The first of these words in a tool's name says what it does. Words that are as often the name of
# a thing (order, issue, record) are left to the effects, or to who knows the tools.
_CHANGES_WORDS = """
    activate add append apply approve archive assign block book buy cancel change clear close
    commit connect copy create deactivate delete deploy disable disconnect drop edit enable exchange
    grant insert install kill make merge modify move overwrite patch pay post publish purchase push
    put reboot refuel refund register reject rename replace reseat reserve reset restart resume
    return revoke save schedule send set start stop submit suspend toggle uninstall unlock update
    upload write
"""
_LOOKS_WORDS = """
    analyze ask browse calculate can cat check compare compute convert count describe diff display
    download estimate fetch find get glob grep has head inspect is list load locate look lookup
    parse plan preview print query read recall retrieve scan search select show status summarize
    tail test think validate verify view
"""
_CHANGES = frozenset(_CHANGES_WORDS.split())
_LOOKS = frozenset(_LOOKS_WORDS.split())
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TO_HUMAN = re.compile("human|escalat|supervisor|representative|live_?agent", re.IGNORECASE)
# a first word such as Error or ValueError, but not "error": null
_FAILED = re.compile(
    r"""[\s"'<(\[{*]*\w*(?:error|exception|traceback|failed|failure)\b"""
    r"""(?!["']?\s*[:=]\s*(?:null|none|false|0\b|""|''))""",
    re.IGNORECASE,
)


def is_write(name: str) -> bool | None:
    """Tell by its name whether a tool changes something; None where the name says nothing."""
    if is_transfer(name):
        return False
    for word in _WORD.findall(name):
        if word.lower() in _CHANGES | _LOOKS:
            return word.lower() in _CHANGES
    return None


def is_transfer(name: str) -> bool:
    """Tell by its name whether a tool hands over to a human."""
    return _TO_HUMAN.search(name) is not None


def has_failed(call: ToolCall) -> bool:
    """Tell whether a call failed: as the log says, else by the first words of its result."""
    if call.error is not None:
        return call.error
    return call.result is not None and _FAILED.match(call.result) is not None


def tools_with_effects(runs: Sequence[Run]) -> set[str]:
    """Return tools whose names say nothing, and after which a repeated call had another result.

    The same call has been made before, and no other tool that may change something came between.
    Calls whose results change by themselves do not count (a clock, a search engine).
    """
    seen = [witness for run in runs for witness in _changed_results(run)]
    restless = {witness.name for witness, between in seen if not between}
    changing = set()
    for witness, between in seen:
        if witness.name not in restless:
            # the call itself may have changed what it returns
            names = {call.name for call in (witness, *between) if is_write(call.name) is not False}
            if len(names) == 1:
                changing |= names
    return {name for name in changing if is_write(name) is None}


def _changed_results(run: Run) -> Iterator[tuple[ToolCall, list[ToolCall]]]:
    """Yield each call whose result is another than before, and calls that may have changed it."""
    calls = [call for step in run.steps for call in step.tool_calls]
    last: dict[str, int] = {}
    for place, call in enumerate(calls):
        if call.result is None or has_failed(call):
            continue
        text = call_text(call)
        before = last.get(text)
        if before is not None and calls[before].result != call.result:
            between = calls[before + 1 : place]
            yield call, [call for call in between if is_write(call.name) is not False]
        last[text] = place
