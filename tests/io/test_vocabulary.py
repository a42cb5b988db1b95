"""The keys of many libraries, and JSON text within JSON."""

import json

import pytest

from trajscore.io._vocabulary import (
    as_fields,
    as_list,
    first,
    is_own_score,
    literal,
    parsed,
    span_kind,
    token_counts,
    unnested,
)


def test_the_first_field_with_a_value_counts():
    fields = {"a": None, "b": "", "c": 0, "d": "x"}
    assert first(fields, ("a", "b", "c", "d")) == 0
    assert first(fields, ("a", "b", "d"), blank=True) == ""
    assert first(fields, ("d", "c")) == "x"
    assert first(fields, ("a", "b", "other")) is None


def test_only_an_object_has_fields():
    assert as_fields({"a": 1}) == {"a": 1}
    assert [as_fields(value) for value in (None, "a", [1], 0)] == [{}] * 4
    assert as_list([1]) == [1]
    assert [as_list(value) for value in (None, "a", {"a": 1}, (1,))] == [[]] * 4


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"input_tokens": 5, "output_tokens": 2}, (5, 2)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}, (5, 2)),
        ({"input": 5, "output": 0}, (5, 0)),
        ({"prompt_tokens": 5}, (5, None)),
        ([5, 2], (None, None)),
        (None, (None, None)),
    ],
)
def test_tokens_by_side(usage, counts):
    assert token_counts(usage) == dict(zip(("input", "output"), counts, strict=True))


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("LLM", "model"), ("chat", "model"), ("ai.streamText.doStream", "model"),
        ("TOOL", "tool"), ("ai.toolCall", "tool"), ("execute_tool", "tool"),
        ("CHAIN", "other"), (None, "other"), ("", "other"),
    ],
)  # fmt: skip
def test_what_a_span_stands_for(word, kind):
    assert span_kind(word) == kind


@pytest.mark.parametrize("value", [{"a": [1]}, [1, 2], "text"])
def test_json_text_is_read(value):
    assert parsed("  " + json.dumps(value)) == value
    assert parsed(value) == value


@pytest.mark.parametrize("text", ["[sic]", "{", '"', "17", "true", "null", "", "[" * 100_000, None])
def test_what_is_not_an_object_a_list_or_a_text_in_json_stays_as_it_is(text):
    assert parsed(text) is text
    assert unnested(text) is text


def test_json_text_within_json_text_is_read_six_times():
    value = text = {"a": "[1]"}
    for _ in range(6):
        text = json.dumps(text)
        assert unnested(text) == value
    assert unnested(json.dumps(text)) == json.dumps(value)
    assert unnested(text, depth=1) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": null}', {"a": None}),
        ("{'a': None}", {"a": None}),
        ("[1, (2, 'x')]", [1, (2, "x")]),
        ("3", 3),
        ("a b", None),
        ("f(1)", None),
        ("", None),
        ("[" * 100_000, None),
    ],
)
def test_text_that_json_or_python_writes(text, value):
    assert literal(text) == value


@pytest.mark.parametrize(
    ("name", "is_own"),
    [("trajscore", True), ("trajscore.flag", True), ("my trajscore", False), (None, False)],
)
def test_scores_of_this_package(name, is_own):
    assert is_own_score(name) is is_own
