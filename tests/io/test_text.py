"""The text of messages, whatever their content."""

import pytest

from trajscore.io.text import is_known, only_text, text_of, whole_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""), ("a", "a"), ([], ""), (["a", "", "b"], "a\nb"), ({"text": "a", "x": 1}, "a"),
        ([{"text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"x": "é"}, 3], '{"x": "é"}\n3'), ({"text": 3}, '{"text": 3}'), (3, "3"), (True, "true"),
        ([{"text": None, "type": 3}], '{"text": null, "type": 3}'),
    ],
)  # fmt: skip
def test_text_of_any_content(content, text):
    assert text_of(content) == text


@pytest.mark.parametrize(
    ("content", "is_text"),
    [
        ("a", True), (None, True), (["a", 3], True), ([{"type": "text", "text": "a"}], True),
        ([{"text": "a"}, {"type": "image", "url": "u"}], False), ({"type": "image"}, True),
    ],
)  # fmt: skip
def test_nothing_but_text(content, is_text):
    assert only_text(content) == is_text


def test_halves_of_surrogate_pairs():
    assert whole_text("a\ud83d") == "a?"
    assert whole_text("é🧳") == "é🧳"
    assert text_of(["\udc00"]) == "?"


def test_a_refusal_is_text():
    parts = [{"type": "text", "text": "So."}, {"type": "refusal", "refusal": "No."}]
    assert text_of(parts) == "So.\nNo."


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        ("a", True), (None, True), (3, False), ({"text": "a"}, True), ({"text": 3}, False),
        ({"type": "image"}, False), ([], True), (["a"], True), (["a", 3], False), ([3, "a"], False),
        ([{"text": "a"}], True), ([{"type": "image"}], True), ([{"text": 3}], False),
        ([{"text": 3, "type": "x"}], True), ([{"x": "a"}], False), ([{"x": "a"}, "b"], False),
        ([None], False),
    ],
)  # fmt: skip
def test_content_of_a_known_form(content, is_one):
    assert is_known(content) is is_one


@pytest.mark.parametrize(
    ("parts", "is_text"),
    [
        ([{"type": "text"}, {"text": "a"}, {}], True), ([{"text": "a", "x": 1}], False),
        ([{"x": 1}, {"text": "a"}], False), ([["x"]], True), ([], True),
    ],
)  # fmt: skip
def test_parts_that_hold_nothing_but_text(parts, is_text):
    assert only_text(parts) is is_text
