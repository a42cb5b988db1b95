"""Five confidences of every step, from what a log holds: one is stated, in a field or in words."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.special import entr, softmax

from trajscore.core.array import TrajectoryArray
from trajscore.core.values import (
    FloatArray,
    as_count,
    check_choice,
    is_number,
    outside_unit,
    undefined_is_nan,
)
from trajscore.io import Step
from trajscore.io.logprobs import NOT_RECORDED
from trajscore.tracer.turns import (
    RunTransformer,
    Turns,
    chosen,
    means_of_turns,
    refuse_positive,
    take_tokens,
    take_turns,
)

# never a part of a longer number, as 1.2 of 1.2.3 would be
_PLAIN = r"(?:\d+(?:[.,]\d+)?|[.,]\d+)(?:[eE][-+]?\d+)?(?!\d|[.,]\d|[eE][-+]?\d)"
_NUMBER = rf"([-+]?{_PLAIN}(?:\.?\s*%|\s*/\s*{_PLAIN}|(?!\s*/\s*\d)))"
# possessive, so that no text of an agent takes long
_RANGE = r"(?:\(\s*0\s*(?:-|to|\u2013|\.\.)\s*(?P<_top>\d+)\s*+(?:%\s*+)?\)|\([^()\n]*\))"
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+")
FORMS = {
    "tag": rf"<\s*confidence\s*>\s*{_NUMBER}\s*<\s*/\s*confidence\s*>",
    "json": rf"""["']confidence["']\s*:\s*["']?{_NUMBER}""",
    "line": rf"\bconfidence\b(?:\s++(?:level|score|is))*+(?:[\s*_]*+{_RANGE})?"
    rf"[\s*_]*+(?:[:=][\s*_]*+)?{_NUMBER}",
}
_BARE_ONE = math.inf  # stands for a bare 1 until all steps of a call are read
# the patterns are slow, and are tried only on a text that has one of these
_WORDS = ("onfidence", "CONFIDENCE")
SCALES = {"auto": 0.0, "fraction": 1.0, "percent": 100.0}
"""What certainty is on each scale; 0 where each number has to say."""
MOST_OF_OTHER_SCALES = 10
"""Above 1 and up to this, a bare number may be per cent, or of 5 or of 10."""


class StatedConfidence:
    """Read the confidence stated in a turn: in its field, else the last one in its text.

    `form` and `scale` are `verbal` and `scale` of `StepConfidence`; `reads_one` says whether a bare
    1 is certainty. None: it is unless another bare number of the first steps read is above 1.
    """

    def __init__(
        self,
        form: str | Callable[[Step], float | None] = "auto",
        scale: str | float = "auto",
        reads_one: bool | None = None,
    ) -> None:
        if is_number(scale) and scale > 0:  # type: ignore[operator]
            self._top = float(scale)
        else:
            check_choice(scale, "scale", tuple(SCALES))
            self._top = SCALES[str(scale)]
        self._clips = scale in ("fraction", "percent")
        self.reads_one = reads_one
        self._is_above_one = False  # whether a bare number is
        self._form = form
        if not callable(form):
            self._pattern = _pattern(form)
        self._needs_word = form in ("auto", *FORMS)

    def __call__(self, steps: Iterable[Step]) -> FloatArray:
        """Return one confidence a step; NaN where none is stated, or its scale is not known."""
        stated = np.fromiter(map(self._of, steps), dtype=float)
        if self.reads_one is None:
            self.reads_one = not self._is_above_one
        return np.where(stated == _BARE_ONE, 1.0 if self.reads_one else math.nan, stated)

    def _of(self, step: Step) -> float:
        if callable(self._form):
            value: Any = self._form(step)
            return math.nan if value is None else self._scaled(float(value))
        if step.confidence is not None:
            return self._scaled(float(step.confidence))
        if self._needs_word and not any(word in step.text for word in _WORDS):
            return math.nan
        matches = list(self._pattern.finditer(step.text))
        if not matches:
            return math.nan
        last = matches[-1]
        return self._read(last.group(last.lastindex or 0), last.groupdict().get("_top"))

    def _read(self, words: str, top: str | None) -> float:
        part, _, whole = words.strip().rstrip("%").partition("/")
        try:
            number = _as_float(part)
            if "%" in words:
                return self._within(number / 100)
            if whole or top:
                largest = _as_float(whole or str(top))
                return self._within(number / largest) if largest > 0 else math.nan
        except ValueError:
            return math.nan
        return self._scaled(number)

    def _within(self, share: float) -> float:
        if not self._clips and outside_unit(share):
            return math.nan
        return min(max(share, 0.0), 1.0)

    def _scaled(self, number: float) -> float:
        if self._top:
            return self._within(number / self._top)
        if not outside_unit(number):
            number = min(max(number, 0.0), 1.0)
            return _BARE_ONE if number == 1 else number
        if number > 1 and not outside_unit(number / 100):
            self._is_above_one = True
            if number > MOST_OF_OTHER_SCALES:
                return min(number / 100, 1.0)
        return math.nan


def _as_float(words: str) -> float:
    bare = words.strip().rstrip(".")
    if _THOUSANDS.fullmatch(bare):
        return float(bare.replace(",", ""))
    return float(bare.replace(",", "."))


def _pattern(form: str) -> re.Pattern[str]:
    if form == "auto":
        return re.compile("|".join(FORMS.values()), re.IGNORECASE)
    if form in FORMS:
        return re.compile(FORMS[form], re.IGNORECASE)
    allowed = f"verbal must be 'auto', {', '.join(map(repr, FORMS))}, a regular expression"
    return compile_with_group(form, allowed, "number")


def compile_with_group(pattern: Any, allowed: str, kind: str) -> re.Pattern[str]:
    """Compile a user's regular expression, whose first group is what is looked for."""
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(f"{allowed} or a function, got {pattern!r}: {error}") from error
    if not compiled.groups:
        raise ValueError(
            f"the regular expression {pattern!r} needs a group, in parentheses, for the {kind}"
        )
    return compiled


ActionFinder = Callable[[Step], tuple[int, int] | None]


STREAMS = (
    "verbal",
    "token_probability",
    "entropy_confidence",
    "action_token_probability",
    "action_entropy_confidence",
)
# possessive throughout, so that no text of an agent takes long
_LABEL = r"[ \t*]*+(?:{}action(?:[ _]input)?|final[ _]answer)[ \t*]*+:"
_NO_LABEL = rf"(?!{_LABEL.format('thought|observation|confidence|')})"
_ACTION = re.compile(
    r"<action>([^<]*+(?:<(?!/?action>)[^<]*+)*+)</action>"
    rf"|^{_LABEL.format('')}[ \t*]*+((?:[^\S\n]*+(?:\n{_NO_LABEL}[^\S\n]*+)*+\S)*+)",
    re.IGNORECASE | re.MULTILINE,
)


class StepConfidence(RunTransformer):
    r"""Turn runs into confidences in [0, 1], one row for each turn of the agent.

    Streams, each a channel:

    verbal
        The confidence that the agent states: in the step's field, else in its words.
    token_probability
        Mean probability of the tokens of the turn.
    entropy_confidence
        :math:`1 - \bar H / \ln 5`, with the mean over tokens of the entropy in nats of the 5
        likeliest candidates.
    action_token_probability, action_entropy_confidence
        The same two over the tokens of the action that the turn commits to.

    What a log does not hold is missing (NaN), and so is a stated confidence that cannot be read.
    `trajscore.evaluate` leaves a run with a missing value out of that predictor's rows, and
    counts it.

    Parameters
    ----------
    channels : sequence of str, optional
        The streams to return. Default: all five.
    verbal : {"auto", "tag", "json", "line"}, regular expression or callable, default="auto"
        How confidence is stated in text: ``<confidence>0.85</confidence>``,
        ``"confidence": 0.85``, ``Confidence: 85%``, or any of these; the last one in the text
        counts. The first group of a regular expression is the number. A function gets the
        `trajscore.io.Step` and returns a number or None.
    scale : {"auto", "fraction", "percent"} or float, default="auto"
        What a bare number means. "auto": in [0, 1] a fraction, in (10, 100] per cent, otherwise
        missing: 3 may be 3% or 3 of 5. So is a bare 1 where other turns of the runs have bare
        numbers above 1. A number is the one that means certainty, such as 5.
        "fraction" and "percent" clip to [0, 1]. ``85%``, ``8/10`` and ``Confidence (0-10): 8`` say
        themselves; beyond their range they are missing or clipped, too. A comma before the
        decimals counts as a point.
    action : regular expression or callable, optional
        Where the action stands in the joined tokens: the first group, in the last match. A
        function gets the `trajscore.io.Step` and returns (start, stop) in characters of the
        joined tokens, or None. Default: ``<action>...</action>``, or what follows ``Action:``,
        ``Action Input:`` or ``Final Answer:``; all tokens of a turn that only calls tools.
    top : int, default=5
        Number of candidates of the entropies, which are divided by the logarithm of it. A token
        with fewer recorded candidates is ignored.

    Attributes
    ----------
    n_missing_ : dict of str to int
        For each stream, the number of turns without it, in `fit`.
    reads_one_ : bool
        Whether a bare 1 is certainty: not where another bare number in `fit` was above 1.
    reads_zero_ : bool
        Whether a log-probability of 0 is certainty: not where all in `fit` were 0, which servers
        write where they record none. Turns of nothing but zeros are missing then.

    See Also
    --------
    TracerSignals : Signals for logs without any confidence.
    trajscore.evaluate : Judges the streams.

    Notes
    -----
    The candidates' probabilities are brought to sum one before the entropy is taken: what lies
    beyond them is not known. Log-probabilities of -inf count as -100.

    References
    ----------
    Raghu et al. (2026), Proper Scoring Rules for Agentic Uncertainty Quantification, Appendix F.

    Examples
    --------
    >>> from trajscore import StepConfidence, io
    >>> run = io.Run("a", [io.Step("agent", "Confidence: 85%", logprobs=(-0.1, -0.7))])
    >>> X = StepConfidence().fit_transform([run])
    >>> X["verbal"].to_list(), X["token_probability"].cells.round(2)
    ([array([0.85])], array([0.7]))
    >>> bool(np.isnan(X["entropy_confidence"].cells[0]))
    True
    """

    _learns = False  # but for what a bare 1 or 0 means, which other runs show as well

    def __init__(
        self,
        channels: Sequence[str] | None = None,
        verbal: str | Callable[[Step], float | None] = "auto",
        scale: str | float = "auto",
        action: str | ActionFinder | None = None,
        top: int = 5,
    ) -> None:
        self.channels = channels
        self.verbal = verbal
        self.scale = scale
        self.action = action
        self.top = top

    def _channels_of(self, X: Any, *, reset: bool) -> TrajectoryArray:
        channels = self._output_channels
        stated = StatedConfidence(self.verbal, self.scale, None if reset else self.reads_one_)
        find_action = _action_finder(self.action)
        as_count(self.top, "top", least=2)
        turns = take_turns(X, ("agent",), type(self).__name__)
        tokens, reads_zero = take_tokens(turns, None if reset else self.reads_zero_)
        streams = {"verbal": stated(turns.steps)} | self._of_tokens(turns, tokens, find_action)
        if reset:
            self.reads_zero_ = reads_zero
            self.reads_one_ = bool(stated.reads_one)
            self.n_missing_ = {name: int(np.isnan(streams[name]).sum()) for name in channels}
        cells = np.stack([streams[name] for name in channels], axis=1)
        return turns.container(cells, channels)

    @property
    def _output_channels(self) -> Sequence[str]:
        return chosen(self.channels, STREAMS, "channels", "stream")

    def _of_tokens(
        self, turns: Turns, tokens: TrajectoryArray, find_action: ActionFinder
    ) -> dict[str, FloatArray]:
        in_action = np.zeros(len(tokens.cells), dtype=bool)
        for turn in np.flatnonzero(tokens.lengths).tolist():
            start = tokens.offsets[turn]
            first, last = token_span(turns.steps[turn], find_action)
            in_action[start + first : start + last] = True
        of_tokens = {
            "token_probability": np.exp(tokens.cells),
            "entropy_confidence": 1 - entropies(turns, tokens, self.top) / np.log(self.top),
        }
        of_action = {
            f"action_{name}": np.where(in_action, values, np.nan)
            for name, values in of_tokens.items()
        }
        return {
            name: means_of_turns(values, tokens).clip(0.0, 1.0)
            for name, values in (of_tokens | of_action).items()
        }


def entropies(turns: Turns, tokens: TrajectoryArray, top: int) -> FloatArray:
    """Return the entropy in nats of each token's `top` likeliest candidates; NaN if fewer."""
    table = {}
    for turn, n_tokens in enumerate(tokens.lengths.tolist()):
        listed = (n_tokens and turns.steps[turn].top_logprobs) or ()
        if listed and len(listed) != n_tokens:
            raise ValueError(
                f"{turns.place(turn)}: {len(listed)} lists of top_logprobs for {n_tokens} "
                f"logprobs; give one list for each token, () where none was recorded"
            )
        for token, candidates in enumerate(listed, tokens.offsets[turn]):
            logprobs = [
                logprob for _, logprob in candidates if logprob > NOT_RECORDED or logprob == -np.inf
            ]
            if len(logprobs) >= top:
                table[token] = sorted(logprobs, reverse=True)[:top]
    places = list(table)
    logs = np.array(list(table.values()), dtype=float).reshape(-1, top)
    out = np.full(len(tokens.cells), np.nan)
    out[places] = logs[:, 0]  # for the check alone
    refuse_positive(out, "a top_logprob of", turns, tokens.offsets)
    with undefined_is_nan():  # candidates of no chance only
        out[places] = entr(softmax(logs, axis=1)).sum(axis=1)
    return out


def token_span(step: Step, find_action: ActionFinder) -> tuple[int, int]:
    """Return the first token of the action and the one after its last; (0, 0) if none."""
    if step.tokens is None:
        return 0, 0
    span = find_action(step)
    if span is None or span[1] <= span[0]:
        return 0, 0
    ends = np.cumsum([len(token) for token in step.tokens])
    first = int(np.searchsorted(ends, span[0], side="right"))
    last = int(np.searchsorted(ends, span[1], side="left")) + 1
    return first, min(last, len(step.tokens))


def _action_finder(action: Any) -> ActionFinder:
    if callable(action):
        return action
    if action is None:
        return _usual_action
    pattern = compile_with_group(action, "action must be a regular expression", "action")
    return lambda step: _last_match(pattern, step)


def _usual_action(step: Step) -> tuple[int, int] | None:
    if step.tool_calls and not step.text.strip():
        return 0, sum(len(token) for token in step.tokens or ())
    return _last_match(_ACTION, step)


def _last_match(pattern: re.Pattern[str], step: Step) -> tuple[int, int] | None:
    last = None
    for match in pattern.finditer("".join(step.tokens or ())):
        if match.lastindex:
            last = match.span(match.lastindex)
    return last
