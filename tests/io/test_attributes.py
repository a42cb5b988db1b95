"""Attributes of a span, by the names that libraries give them."""

import pytest

from trajscore.io._attributes import attributes_of, plain, read_attribute


def test_names_of_nested_attributes_end_after_nine_levels():
    nested = 1
    for _ in range(20):
        nested = {"a": nested}
    names = attributes_of({"attributes": nested})
    assert sorted(names, key=len) == [".".join("a" * k) for k in range(1, 10)]


@pytest.mark.parametrize(
    ("record", "attributes"),
    [
        ({"attributes": [{"key": "a", "value": {"intValue": "3"}}, "x"]}, {"a": 3}),
        ({"attributes": {"a": {"b": 1}}}, {"a": {"b": 1}, "a.b": 1}),
        ({"attributes.a": 1, "attributes.b.c": 2, "name": "n"}, {"a": 1, "b.c": 2}),
        ({"llm.model": "m"}, {"llm.model": "m"}),
        ({"body": "x", "llm.model": "m"}, {}),
        ({"attributes": "x", "a": 1}, {"attributes": "x", "a": 1}),
    ],
)
def test_attributes_in_every_form(record, attributes):
    assert attributes_of(record) == attributes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": "a"}, "a"),
        ({"boolValue": False}, False),
        ({"doubleValue": 0.5}, 0.5),
        ({"bytesValue": "b"}, "b"),
        ({"intValue": "-3"}, -3),
        ({"intValue": 3}, 3),
        ({"intValue": "x"}, "x"),
        ({"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "a"}]}}, [1, "a"]),
        ({"arrayValue": {}}, []),
        ({"arrayValue": {"values": "x"}}, []),
        ({"arrayValue": 3}, {"arrayValue": 3}),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"intValue": "1"}}]}}, {"a": 1}),
        ({"stringValue": "a", "more": 1}, {"stringValue": "a", "more": 1}),
        ({"other": "a"}, {"other": "a"}),
        ("a", "a"),
    ],
)
def test_values_without_their_types(value, expected):
    assert plain(value) == expected


@pytest.mark.parametrize(
    ("attributes", "value"),
    [
        ({"a": "x", "b": "y"}, "x"),
        ({"a": "", "b": "y"}, "y"),
        ({"a": None, "b": 0}, 0),
        (
            {"b.0.message.role": "user", "b.1.message.role": "tool"},
            [{"role": "user"}, {"role": "tool"}],
        ),
        ({"b.10": "z", "b.9": "y"}, ["y", "z"]),
        ({"b.c": "x"}, None),
        ({"ab.0": "x"}, None),
        ({"a": {"0.x": 1, "0.y": 2}}, [{"x": 1, "y": 2}]),
        ({"a": {"message.contents.0.message_content.text": "t"}}, {"content": [{"text": "t"}]}),
        ({"a": {"x": 1, "x.y": 2}}, {"x": 1}),
        ({"a": {"x.y": 2, "x": 1}}, {"x": {"y": 2}}),
        ({"a": [{"evaluation.name": "n"}]}, [{"name": "n"}]),
        ({"a": [{"evaluation.name": "n", "x": 1}]}, [{"evaluation": {"name": "n"}, "x": 1}]),
        ({"a": {"0": 1, "x": 2}}, {"0": 1, "x": 2}),
        ({"b.0.x": 1, "b.note": 2}, {"0": {"x": 1}, "note": 2}),
        ({"a": {}}, {}),
        ({}, None),
    ],
)
def test_the_first_attribute_also_if_it_is_spread(attributes, value):
    assert read_attribute(attributes, ("a", "b")) == value


def test_messages_in_json_text_with_dotted_names():
    messages = '[{"message.role": "user", "message.content": "Hi"}]'
    assert read_attribute({"input": messages}, ("input",)) == [{"role": "user", "content": "Hi"}]
    assert read_attribute({"input": '["message"]'}, ("input",)) == '["message"]'


def test_messages_in_text_begin_within_forty_characters():
    for n_spaces, is_read in ((0, True), (29, True), (30, False)):
        text = "[" + " " * n_spaces + '{"message.role": "user"}]'
        value = read_attribute({"input": text}, ("input",))
        assert value == ([{"role": "user"}] if is_read else text)
    assert read_attribute({"input": '"message.role"'}, ("input",)) == "message.role"
