"""The one text of a jsonb, and its operators, against what PostgreSQL answers."""

import pytest

from seachange.errors import Error
from seachange.values import json_ops
from seachange.values.json_text import normalize_json


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('{"b":1,"a":2}', '{"a": 2, "b": 1}'),
        ('{"aa":1,"b":2}', '{"b": 2, "aa": 1}'),
        ('{"a":1,"a":2}', '{"a": 2}'),
        ("[1, 2.50,1e3, 1E-2,-0, -0.0]", "[1, 2.50, 1000, 0.01, 0, 0.0]"),
        ("12345678901234567890123456789.10", "12345678901234567890123456789.10"),
        (r'"é\u00e9\n\"\\\u0001"', r'"éé\n\"\\\u0001"'),
        (" null ", "null"),
        ("{}", "{}"),
        ('{"":[]}', '{"": []}'),
    ],
)
def test_the_text_of_a_jsonb(given, shown):
    assert normalize_json(given) == shown
    assert normalize_json(shown) == shown


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("", "22P02"),
        ("{", "22P02"),
        ("NaN", "22P02"),
        ("[1,]", "22P02"),
        ("'a'", "22P02"),
        ('"\n"', "22P02"),
        (r'"\u0000"', "22P05"),
        ("[" * 100_000, "54001"),
        ("1e999999", "22003"),
    ],
)
def test_what_is_none(given, code):
    with pytest.raises(Error) as caught:
        normalize_json(given)
    assert caught.value.sqlstate == code


@pytest.mark.parametrize(
    ("whole", "part", "contained"),
    [
        ('{"a": {"b": 1}, "c": 2}', '{"a": {}}', True),
        ('{"a": {"b": 1}}', '{"b": 1}', False),
        ("[1, 2, [3]]", "[2, 1, 1]", True),
        ("[1, [3]]", "3", False),
        ("[1, 3]", "3", True),
        ("1", "[1]", False),
        ("[true]", "1", False),
        ("1.0", "1", True),
        ("[[1, 2]]", "[[1]]", True),
    ],
)
def test_containment_follows_postgresql(whole, part, contained):
    assert json_ops.contains(whole, part) is contained


def test_operators_return_documents_as_texts():
    assert json_ops.get_field('{"a": [1.50]}', "a") == "[1.50]"
    assert json_ops.get_field("[1]", "0") is None
    assert json_ops.get_element("[1, 2]", -1) == "2"
    assert json_ops.get_path('{"a": [1, {"b": 2}]}', ["a", "-1", "b"]) == "2"
    assert json_ops.as_text('"x"') == "x"
    assert json_ops.as_text("null") is None
    assert json_ops.concatenate("[1]", '{"a": 1}') == '[1, {"a": 1}]'
    assert json_ops.without_path('{"a": [1, 2]}', ["a", "0"]) == '{"a": [2]}'
    assert json_ops.without_key('["a", "b"]', "a") == '["b"]'
    with pytest.raises(Error):
        json_ops.without_element('{"a": 1}', 0)
