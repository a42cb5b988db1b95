"""Why a run ended, and what that means for its outcome: one table, one rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from trajscore.core.outcomes import CENSORED

Mechanism = Literal["complete", "administrative", "informative", "excluded", "unknown"]

COMPLETE: Mechanism = "complete"
"""The run came to its own end, so that its outcome should be known."""
ADMINISTRATIVE: Mechanism = "administrative"
"""A budget fixed in advance cut the run off, which says nothing of the outcome."""
INFORMATIVE: Mechanism = "informative"
"""The run brought its stop about itself, which may say how it would have ended."""
EXCLUDED: Mechanism = "excluded"
"""An infrastructure error ended the run, which is not a run of the agent."""
UNKNOWN: Mechanism = "unknown"
"""Nobody said what the reason means."""

MECHANISMS = (COMPLETE, ADMINISTRATIVE, INFORMATIVE, EXCLUDED, UNKNOWN)
"""How a run can have ended, see `classify_stops`."""

Rule = Mapping[str, str] | Callable[[str], str]

FORECAST_STOPS = (
    "early_stop", "early_stopped", "early_stopping", "flagged", "guard", "guardrail",
    "low_confidence", "monitor", "monitor_stop", "stopped_by_forecast", "stopped_by_monitor",
)  # fmt: skip
"""Reasons of runs that a forecast stopped: it cannot be judged on these, see `own_stops`."""

# fmt: off
STOP_REASONS: dict[str, tuple[str, ...]] = {
    COMPLETE: (
        "agent_stop", "complete", "completed", "done", "end_turn", "finish", "finished",
        "solved", "stop", "submit", "submitted", "success", "user_stop",
    ),
    ADMINISTRATIVE: (
        "budget", "cost", "cost_limit", "exit_cost", "exit_total_execution_time", "limits_exceeded",
        "max_budget_usd", "max_iterations", "max_messages", "max_rounds", "max_steps",
        "max_steps_error", "max_tokens", "max_turns", "message", "message_limit", "step_budget",
        "step_limit", "time", "time_limit", "token", "token_limit", "turn", "turn_limit", "working",
    ),
    INFORMATIVE: (
        "agent_error", "agent_safety_refusal_error", "context", "context_length",
        "context_length_exceeded_error", "context_window_exceeded",
        "context_window_exceeded_error", "crash", "custom", "env_terminated", "error", "exception",
        "exit_command_timeout", "exit_context", "exit_error", "exit_format", "format_error",
        "invalid_action", "non_zero_agent_exit_code_error", "operator",
        "output_length_exceeded_error", "output_token_exceeded_error", "parse_error",
        "parse_failure", "parser_error", "parser_failure", "refusal", "too_many_errors",
        "tool_error", "tool_failure", *FORECAST_STOPS,
    ),
    EXCLUDED: (
        "add_tests_dir_error", "agent_authentication_error", "agent_setup_timeout_error",
        "api_connection_error", "api_internal_server_error", "api_overloaded_error",
        "api_rate_limit_error", "download_verifier_dir_error", "environment_start_timeout_error",
        "healthcheck_error", "infrastructure_error", "model_not_found_error",
        "network_connection_error", "reward_file_empty_error", "reward_file_not_found_error",
        "sandbox_build_failed_error", "unexpected_error", "user_error",
        "verifier_output_parse_error", "verifier_timeout_error",
    ),
}
# fmt: on
"""What the usual stop reasons mean; every other reason is unknown."""

_BETWEEN_WORDS = re.compile(r"[\s\-]+|(?<=[a-z0-9])(?=[A-Z])")
_MECHANISM_OF_REASON = {
    reason: mechanism for mechanism, reasons in STOP_REASONS.items() for reason in reasons
}


def mechanism_of(reason: Any, rule: Rule | None = None) -> Mechanism:
    """Return what a stop reason means: the rule's answer, else that of the table `STOP_REASONS`.

    >>> mechanism_of("Max Steps"), mechanism_of("timeout", {"timeout": "administrative"})
    ('administrative', 'administrative')
    """
    return _as_function(rule)("" if reason is None else _normalize(reason))


def classify_stops(
    y: ArrayLike, reasons: ArrayLike, *, kinds: ArrayLike | None = None, rule: Rule | None = None
) -> NDArray[Any]:
    """Tell by which mechanism each run ended (Raghu et al. 2026, Appendix G).

    A run whose outcome was observed is complete, whatever its stop reason. For the others the
    first of these answers: what the reader of the log noted (`kinds`), the `rule`, the table
    `STOP_REASONS`. What remains is unknown: any other reason, none at all, or a run that came to
    its own end without an outcome.

    >>> reasons = ["done", "max_steps", "parse_error", "rate limit"]
    >>> classify_stops([1, -1, -1, -1], reasons).tolist()
    ['complete', 'administrative', 'informative', 'unknown']
    >>> classify_stops([1, -1, -1, -1], reasons, rule={"rate limit": "administrative"}).tolist()
    ['complete', 'administrative', 'informative', 'administrative']
    """
    outcomes = np.asarray(y)
    codes, names = pd.factorize(normalize_reasons(reasons, len(outcomes)))
    rule_of = _as_function(rule)
    mechanisms = np.array([rule_of(name) for name in names], dtype=object)
    out = mechanisms[codes]
    if kinds is not None:
        noted = _check_kinds(kinds, len(outcomes))
        out = np.where(pd.isna(noted), out, noted)
    out[out == COMPLETE] = UNKNOWN  # a run that came to its end, but nobody noted how
    out[outcomes != CENSORED] = COMPLETE
    return out


def is_scored(mechanism: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which runs a score may count: those that are complete, or that a budget cut off."""
    return (mechanism == COMPLETE) | (mechanism == ADMINISTRATIVE)


def recorded_stops(
    meta: pd.DataFrame, stop_reason: ArrayLike | None = None, rule: Rule | None = None
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """Return the stop reasons of runs, and what the reader of their log took them to mean.

    The columns "stop_reason" and "stop_kind" of `meta`, None where there is none; given reasons
    count instead of both, and a given rule instead of the kinds.
    """
    if stop_reason is not None:
        reasons = np.asarray(stop_reason, dtype=object)
        if reasons.shape != (len(meta),):
            raise ValueError(
                f"stop_reason must have one reason a run: {len(meta)}, got {reasons.size}"
            )
        if not all(isinstance(reason, Hashable) for reason in reasons):
            raise ValueError("stop reasons must be text, one for each run")
        return reasons, None
    kinds = meta["stop_kind"].to_numpy(dtype=object) if "stop_kind" in meta else None
    if "stop_reason" not in meta:
        return kinds, kinds if rule is None else None
    return meta["stop_reason"].to_numpy(dtype=object), kinds if rule is None else None


def normalize_reasons(reasons: ArrayLike, n_runs: int | None = None) -> NDArray[Any]:
    """Return stop reasons in lower case, with "_" between words, "" where missing."""
    codes, names = pd.factorize(np.asarray(reasons, dtype=object))
    if n_runs is not None and len(codes) != n_runs:
        raise ValueError(f"stop_reason must have one reason a run: {n_runs}, got {len(codes)}")
    return np.array([*map(_normalize, names), ""], dtype=object)[codes]


def _normalize(reason: Any) -> str:
    return _BETWEEN_WORDS.sub("_", str(reason).strip()).lower()


def _check_kinds(kinds: ArrayLike, n_runs: int) -> NDArray[Any]:
    column = pd.Series(np.asarray(kinds, dtype=object), dtype=object)
    if len(column) != n_runs:
        raise ValueError(f"there are {len(column)} kinds of stops for {n_runs} runs")
    bad = (~column.isin(MECHANISMS) & column.notna()).to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"row {row}: stop_kind {column[row]!r} is not one of {', '.join(MECHANISMS)}; "
            f"correct it, or say why runs ended with stop_reason="
        )
    return column.to_numpy(dtype=object)


def _as_function(rule: Rule | None) -> Callable[[str], Mechanism]:
    """Return the rule as a function of a normalised reason that answers one of MECHANISMS."""
    if callable(rule):
        return lambda name: _checked(rule(name), name)
    if rule is not None and not isinstance(rule, Mapping):
        raise ValueError(f"rule must be a dict of reasons, or a function of one, got {rule!r}")
    mapping = {} if rule is None else dict(rule)
    own = {_normalize(name): mechanism for name, mechanism in mapping.items()}
    return lambda name: _checked(own.get(name, _MECHANISM_OF_REASON.get(name, UNKNOWN)), name)


def _checked(mechanism: str, name: str) -> Mechanism:
    if mechanism in MECHANISMS:
        return MECHANISMS[MECHANISMS.index(mechanism)]
    raise ValueError(
        f"stop reason {name!r}: the rule says {mechanism!r}; say one of {', '.join(MECHANISMS)}"
    )
