"""Reading a large JSON file piece by piece, with the standard library.

json-stream is several times slower, accepts text such as ``[1 2]``, refuses half of a surrogate
pair, and does not say in which run and message a file is cut off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from json.decoder import JSONDecodeError
from typing import Any, NoReturn, TextIO

from trajscore.core.plain import unique_keys
from trajscore.io.text import whole_text

_CHUNK = 1 << 18
# The longest thing that may be cut off without being a string: a surrogate pair, -Infinity.
_LONGEST_LITERAL = 16
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_HALF_NUMBER = re.compile(r",?|\.|[eE][+-]?")
_SPACE = re.compile(r"[ \t\n\r]*")
_LISTS = ("messages", "traj", "steps", "trajectory")
_MESSAGES = re.compile(rf'"(?:{"|".join(_LISTS)})"\s*:\s*\[')
_MAX_DIGITS = 300  # a float of more digits is infinite
_ESCAPES = ("\\ud", "\\uD")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer, object_pairs_hook=unique_keys)
_decode = _DECODER.raw_decode


def read_value(text: str) -> Any:
    """Read one JSON text as the scanner reads its values."""
    return _whole(_DECODER.decode(text), text)


def _whole(value: Any, text: str, *span: int) -> Any:
    """Put "?" for half of a surrogate pair, which JSON allows and no encoding of text does."""
    may_have_halves = any(text.count(escape, *span) for escape in _ESCAPES)
    return _without_halves(value) if may_have_halves else value


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, list):
        return list(map(_without_halves, value))
    if isinstance(value, dict):
        return {whole_text(key): _without_halves(inner) for key, inner in value.items()}
    return value


class CutError(ValueError):
    """A file that is cut off, with the number of whole messages before if it is one run."""

    n_messages: int | None = None


class JsonScanner:
    """Reads the top level of a JSON text and holds one item of it at a time."""

    def __init__(self, file: TextIO, name: str, chunk: int = _CHUNK) -> None:
        self._file = file
        self._name = name
        self._chunk = chunk
        self._buffer = ""
        self._position = 0
        self._before = 0  # characters that have left the buffer
        self._ended = False
        self._index: int | None = None  # of the run that is being read
        self._key: str | None = None  # of the field that is being read

    def items(self, streamed: Collection[str]) -> Iterator[tuple[str | None, int | None, Any]]:
        """Yield ``(None, k, item)`` of a list; of an object, ``(key, None, value)``.

        Of a field that is `streamed`, its items, ``(key, k, item)``, unless it is empty.
        """
        start = self._peek()
        if start == "[":
            yield from ((None, k, item) for k, item in self._list())
        elif start == "{":
            yield from self._object(streamed)
        elif start == "":
            raise ValueError(f"{self._name} is empty; there is nothing to read")
        else:
            is_table = str(self._name).endswith((".csv", ".csv.gz", ".tsv"))
            hint = "; it is a table, and a log of runs is needed" if is_table else ""
            raise ValueError(f"{self._name} does not hold a JSON list or object{hint}")
        self._index = None
        if self._peek():
            self._fail("something follows the end of the JSON text")

    def texts(self) -> Iterator[tuple[int, Any]]:
        """Yield each of several texts that follow one another, as a console prints them."""
        while self._peek():
            self._index = 0 if self._index is None else self._index + 1
            yield self._index, self._value()

    def _object(self, streamed: Collection[str]) -> Iterator[tuple[str | None, int | None, Any]]:
        keys = set()
        for _ in self._members("}"):
            if self._peek() != '"':
                self._fail("a field name is expected")
            key = self._value()
            if key in keys:
                self._fail(f"the key {key!r} stands twice in one object; keep one of them")
            keys.add(key)
            if self._peek() != ":":
                self._fail("':' is expected")
            self._position += 1
            self._key = key
            if key in streamed and self._peek() == "[":
                index = None
                for index, item in self._list():
                    yield key, index, item
                if index is None:
                    yield key, None, []
            else:
                yield key, None, self._value()

    def _list(self) -> Iterator[tuple[int, Any]]:
        for index, _ in enumerate(self._members("]")):
            self._index = index
            yield index, self._value()
            self._index = index + 1
        self._index = None

    def _members(self, bracket: str) -> Iterator[None]:
        """Stop before each member of a list or an object, and go past its closing bracket."""
        self._position += 1
        mark = self._peek()
        while mark != bracket:
            yield
            mark = self._peek()
            if mark not in (bracket, ","):
                half = self._ended and self._is_half_number()
                self._fail(f"',' or '{bracket}' is expected", cut=half)
            self._position += mark == ","
        self._position += 1

    def _peek(self) -> str:
        """Return the next character that is not a space, "" at the end."""
        while True:
            self._position = _skip_space(self._buffer, self._position)
            if self._position < len(self._buffer):
                return self._buffer[self._position]
            if not self._fill(self._chunk):
                return ""

    def _fill(self, size: int) -> bool:
        """Read on, and drop what has been used."""
        if self._ended:
            return False
        try:
            text = self._file.read(size)
        except EOFError:  # a compressed file that was cut
            text = ""
        self._ended = not text
        self._before += self._position
        self._buffer = self._buffer[self._position :] + text
        self._position = 0
        return bool(text)

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = _decode(self._buffer, self._position)
                # a number at the end of the buffer may go on in the next piece: 1 to 1.5 or 1e+9
                is_number = isinstance(value, (int, float))
                if not is_number or self._ended or end < len(self._buffer) - _LONGEST_LITERAL:
                    value = _whole(value, self._buffer, self._position, end)
                    self._position = end
                    return value
            except JSONDecodeError as error:
                if self._ended or not self._may_go_on(error):
                    self._fail(error.msg, error.pos, cut=self._ended and self._is_cut(error))
            except RecursionError:
                self._fail("it is nested too deeply")
            except ValueError as error:  # of a key that stands twice
                self._fail(str(error))
            # as much again each time, so that a long item is decoded a few times only
            self._fill(max(self._chunk, len(self._buffer) - self._position))

    def _may_go_on(self, error: JSONDecodeError) -> bool:
        unfinished = error.msg.startswith("Unterminated string")
        return unfinished or error.pos >= len(self._buffer) - _LONGEST_LITERAL

    def _is_cut(self, error: JSONDecodeError) -> bool:
        """Tell a text that ends too early from one that is wrong near its end."""
        if error.msg.startswith("Unterminated string"):
            return True
        rest = self._buffer[error.pos :].strip()
        if error.msg.startswith("Invalid \\"):  # within an escape sequence
            return '"' not in rest
        return bool(_HALF_NUMBER.fullmatch(rest)) or any(
            word.startswith(rest) for word in _LITERALS
        )

    def _is_half_number(self) -> bool:
        """Tell what follows a number that was cut off: "." of 1.5, "e-" of 1e-5."""
        before = self._buffer[max(self._position - 1, 0) : self._position]
        return before.isdigit() and bool(_HALF_NUMBER.fullmatch(self._buffer, self._position))

    def _fail(self, message: str, position: int | None = None, *, cut: bool = False) -> NoReturn:
        at = self._position if position is None else position
        where = "" if self._index is None else f" in the run with index {self._index}"
        if not cut and not (self._ended and at >= len(self._buffer)):
            raise ValueError(
                f"{self._name} is not valid JSON{where}, character {self._before + at}: {message}; "
                f"repair the file"
            )
        count = None if self._index is None else count_messages(self._buffer, self._position)
        last = "" if count is None else f", message {count}"
        error = CutError(
            f"{self._name} is cut off{where}{last}; get the file again, or read the whole runs "
            f"before the cut with iter_runs"
        )
        if self._key in _LISTS and self._buffer.startswith("[", self._position):
            error.n_messages = _count(self._buffer, self._position + 1)
        raise error


def count_messages(text: str, start: int) -> int | None:
    """Count the whole messages of a run whose text is cut off."""
    begin = _MESSAGES.search(text, start)
    return None if begin is None else _count(text, begin.end())


def _count(text: str, position: int) -> int:
    """Count the whole values of a list that is cut off, from after its bracket."""
    count = 0
    while True:
        try:
            _, position = _decode(text, _skip_space(text, position))
        except (JSONDecodeError, RecursionError):
            return count
        position = _skip_space(text, position)
        if text[position : position + 1] != ",":
            return count
        count, position = count + 1, position + 1


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position
