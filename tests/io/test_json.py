"""JSON read piece by piece: every size of piece gives the same values and the same errors."""

import io
import math

import pytest

from trajscore.io import read_runs
from trajscore.io._json import CutError, JsonScanner, count_messages, read_value

SIZES = [1, 2, 3, 7, 1 << 18]


def items(text, size, streamed=()):
    return list(JsonScanner(io.StringIO(text), "log.json", size).items(streamed))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("text", "streamed", "expected"),
    [
        (" [1, 2.5e+3 ,\n-1.5, 12345678901234567890]", (),
         [(None, 0, 1), (None, 1, 2500.0), (None, 2, -1.5), (None, 3, 12345678901234567890)]),
        ("[]", (), []),
        ("{ }", (), []),
        ('{"a" : [1, 2], "b":null}', (), [("a", None, [1, 2]), ("b", None, None)]),
        ('{"a": [1, true], "b": [], "c": 3}', ("a", "b", "c"),
         [("a", 0, 1), ("a", 1, True), ("b", None, []), ("c", None, 3)]),
        ('["\\ud83d\\ude00", "\\ud83dx", {"\\uDE00": ["\\ud83d"]}]', (),
         [(None, 0, "\U0001f600"), (None, 1, "?x"), (None, 2, {"?": ["?"]})]),
        ("[[-Infinity], true, false]", (),
         [(None, 0, [-math.inf]), (None, 1, True), (None, 2, False)]),
    ],
)  # fmt: skip
def test_items(text, streamed, expected, size):
    assert items(text, size, streamed) == expected


@pytest.mark.parametrize("size", SIZES)
def test_texts(size):
    scanner = JsonScanner(io.StringIO(' {"a": 1}\n[2] 3 '), "log.json", size)
    assert list(scanner.texts()) == [(0, {"a": 1}), (1, [2]), (2, 3)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" ", "log.json is empty; there is nothing to read"),
        ('"a"', "log.json does not hold a JSON list or object"),
        ("[1] 2", "log.json is not valid JSON, character 4: something follows the end"),
        ("[1 2]", "in the run with index 1, character 3: ',' or ']' is expected"),
        ('{"a" 1}', "log.json is not valid JSON, character 5: ':' is expected"),
        ("{1: 2}", "log.json is not valid JSON, character 1: a field name is expected"),
        ('{"a": 1 "b": 2}', "character 8: ',' or '}' is expected"),
        ("[1, tru3, 0, 0, 0, 0, 0, 0, 0, 0]", "index 1, character 4: Expecting value"),
        ('["\\q and more than sixteen characters', "index 0, character 2: Invalid"),
        ('["\\u00"]', "index 0, character 3: Invalid"),
        ("[1x", "index 1, character 2: ',' or ']' is expected"),
        ("[1, true.", "index 2, character 8: ',' or ']' is expected"),
        ('{"a": 1, "a": 2}', "character 12: the key 'a' stands twice in one object"),
        ('[{"a": 1, "a": 2}]', "index 0, character 1: the key 'a' stands twice"),
    ],
)
def test_not_valid(text, message, size):
    with pytest.raises(ValueError, match="log.json") as caught:
        items(text, size)
    assert not isinstance(caught.value, CutError)
    assert message in str(caught.value)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("text", "where", "n_messages"),
    [
        ("[1, 2", " in the run with index 2", None),
        ("[1, ", " in the run with index 1", None),
        ("[1, 2.", " in the run with index 2", None),
        ("[1, 2e-", " in the run with index 2", None),
        ('{"a": 2E', "", None),
        ("[1, tru", " in the run with index 1", None),
        ('["ab', " in the run with index 0", None),
        ('["a\\u00', " in the run with index 0", None),
        ("[[1.", " in the run with index 0", None),
        ('[{"messages": [{}, {}, {"a', " in the run with index 0, message 2", None),
        ('[1, {"messages": [{}, ', " in the run with index 1, message 1", None),
        ('{"messages": [{}, {"a": 1}, {"', "", 2),
        ('{"id": 1, "steps": [', "", 0),
        ('{"id": 1, "messages": [{}, {"a": 1}, {', "", 2),
        ('{"id": 1, "steps": [1, ', "", 1),
        ('{"messages": {"a": [1, 2', "", None),
        ('{"id": [1, 2', "", None),
        ('{"id"', "", None),
    ],
)
def test_cut_off(text, where, n_messages, size):
    with pytest.raises(CutError) as caught:
        items(text, size)
    assert str(caught.value).startswith(f"log.json is cut off{where}; get the file again")
    assert caught.value.n_messages == n_messages


def test_one_value():
    digits = "9" * 300
    assert read_value(digits) == int(digits)
    assert isinstance(read_value(digits), int)
    assert isinstance(read_value(f"{digits}9"), float)
    assert read_value('{"a": "\\uDC00", "b": "\\\\ud"}') == {"a": "?", "b": "\\ud"}


@pytest.mark.parametrize(
    ("text", "start", "n_messages"),
    [
        ('{"messages": [1, 2, 3', 0, 2), ('{"messages":[1,2,3', 0, 2),
        ('{"traj" : [1]', 0, 0), ('{"steps":[', 0, 0),
        ('{"other": [1, 2', 0, None), ('{"messages": [1, 2, 3', 3, None),
        ('{"trajectory": [{}, {"a": 1} , {', 0, 2),
    ],
)  # fmt: skip
def test_whole_messages(text, start, n_messages):
    assert count_messages(text, start) == n_messages


def test_a_table_is_not_a_log(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("run,step,verbal\n1,1,0.5\n")
    with pytest.raises(ValueError, match="it is a table, and a log of runs is needed"):
        read_runs(path)


class Reads(io.StringIO):
    """A text that counts how often it is read."""

    n_reads = 0

    def read(self, size=-1):
        self.n_reads += 1
        return super().read(size)


@pytest.mark.parametrize("item", ["1", '"a"', "[2]"])
def test_an_item_comes_before_the_rest_is_read(item):
    text = Reads("[" + ", ".join([item] * 100) + "]")
    scanner = JsonScanner(text, "log.json", 24).items(())
    next(scanner)
    assert text.n_reads == 1
    assert len(list(scanner)) == 99


def test_a_long_item_is_read_in_ever_larger_pieces():
    text = Reads(f'["{"a" * 5000}"]')
    assert list(JsonScanner(text, "log.json", 10).items(())) == [(None, 0, "a" * 5000)]
    assert text.n_reads < 20
