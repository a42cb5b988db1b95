"""Reading a large JSON file piece by piece, with the standard library.

ijson is twice as fast, but refuses NaN and -Infinity, which Python writes for log-probabilities,
and whole numbers beyond 64 bits, takes a key that stands twice, and needs a second pass for what is
beside a list. json-stream is several times slower and accepts text such as ``[1 2]``.
"""

import json
import re
from collections.abc import Collection, Iterator
from json.decoder import JSONDecodeError
from typing import Any, NoReturn, TextIO

from trajscore.core.storage import parse_integer, unique_keys

Item = tuple[str | None, int | None, Any]
"""A field's name, a number in a list, and a value."""

_CHUNK = 1 << 18
# The longest thing that may be cut off without being a string: a surrogate pair, -Infinity.
_LONGEST_LITERAL = 16
_NO_SPACE = re.compile(r"[^ \t\n\r]")
# the escape of one half without the other, or after a backslash, which may be its own escape
_HALF = re.compile(
    r"\\u[dD](?:(?<=\\\\u.)|[89abAB]..(?!\\u[dD][c-fC-F])"
    r"|[c-fC-F]..(?<!\\u[dD][89abAB]..\\u[dD]...))"
)

_DECODER = json.JSONDecoder(parse_int=parse_integer, object_pairs_hook=unique_keys)


def read_value(text: str) -> Any:
    """Read one JSON text as the scanner reads its values."""
    return _whole(_DECODER.decode(text), text)


def _whole(value: Any, text: str, *span: int) -> Any:
    """Put "?" for half of a surrogate pair, which JSON allows and no encoding of text does."""
    if _HALF.search(text, *span):
        return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return value


class JsonScanner:
    """Reads the top level of a JSON text and holds one item of it at a time."""

    def __init__(self, file: TextIO, name: str, head: str = "") -> None:
        self._file = file
        self._name = name
        self._buffer = head  # what has been read of the file
        self._position = 0
        self._before = 0  # characters that have left the buffer
        self._ended = False
        self._length = 0  # of the last value: the next may be as long
        self._index: int | None = None  # of the run that is being read

    def items(self, streamed: Collection[str]) -> Iterator[Item]:
        """Yield ``(None, k, item)`` of a list; of an object, ``(key, None, value)``.

        Of a field that is `streamed`, its items, ``(key, k, item)``, unless it is empty.
        """
        start = self._peek()
        if start == "[":
            yield from ((None, k, item) for k, item in self._list())
        elif start == "{":
            yield from self._object(streamed)
        elif start == "":
            raise ValueError(f"{self._name} is empty; leave the file out, or get it again")
        else:
            remedy = "for a table, write df.to_json(FILE, orient='records')"
            if "task_name=" in self._buffer:  # what CrewAI logs
                remedy = "save what kickoff() returns, with model_dump_json()"
            raise ValueError(f"{self._name} holds no JSON list or object; {remedy}")
        if self._peek():
            self._fail("something follows the end of the JSON text")

    def texts(self) -> Iterator[Item]:
        """Yield each of several texts that follow one another, as a console prints them."""
        while self._peek():
            self._index = 0 if self._index is None else self._index + 1
            yield None, self._index, self._value()

    def _object(self, streamed: Collection[str]) -> Iterator[Item]:
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
            index = None
            if key in streamed and self._peek() == "[":
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
                self._fail(f"',' or '{bracket}' is expected")
            self._position += mark == ","
        self._position += 1

    def _peek(self) -> str:
        """Return the next character that is not a space, "" at the end."""
        while True:
            mark = _NO_SPACE.search(self._buffer, self._position)
            if mark:
                self._position = mark.start()
                return mark[0]
            self._position = len(self._buffer)
            if not self._fill(_CHUNK):
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
        if self._peek() and len(self._buffer) < self._position + self._length:
            self._fill(_CHUNK)  # a value that is cut is decoded again
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._position)
                # a number at the end of the buffer may go on in the next piece: 1 to 1.5 or 1e+9
                is_number = isinstance(value, (int, float))
                if not is_number or self._ended or not self._is_near_end(end):
                    value = _whole(value, self._buffer, self._position, end)
                    self._length = end - self._position
                    self._position = end
                    return value
            except JSONDecodeError as error:
                is_open = error.msg.startswith("Unterminated string")
                if self._ended or not (is_open or self._is_near_end(error.pos)):
                    self._fail(error.msg, len(self._buffer) if is_open else error.pos)
            except RecursionError:
                self._fail("it is nested too deeply")
            except ValueError as error:  # of a key that stands twice
                self._fail(str(error))
            # as much again each time, so that a long item is decoded a few times only
            self._fill(max(_CHUNK, len(self._buffer) - self._position))

    def _is_near_end(self, position: int) -> bool:
        return position >= len(self._buffer) - _LONGEST_LITERAL

    def _fail(self, message: str, position: int | None = None) -> NoReturn:
        at = self._position if position is None else position
        where = ""
        if self._index is not None:
            where = f" in the run with index {self._index}"
        if self._ended and at >= len(self._buffer.rstrip()):
            raise ValueError(
                f"{self._name} is cut off{where}; get the file again, or read the whole runs "
                f"before the cut with iter_runs"
            )
        raise ValueError(
            f"{self._name} is not valid JSON{where}, character {self._before + at}: {message}; "
            f"repair the file, or get it again"
        )
