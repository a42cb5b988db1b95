"""What tools do, as far as a log tells: change something, hand over to a human, fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trajscore.io import Run, ToolCall
from trajscore.tracer._turns import call_text

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
_CHANGES, _LOOKS = frozenset(_CHANGES_WORDS.split()), frozenset(_LOOKS_WORDS.split())
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
            changing |= names if len(names) == 1 else set()
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
