from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from enum import StrEnum
from typing import Any

import pytest

from seachange.model.codecs.codec import Codec


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    label: str | None = None
    colour: Colour = Colour.RED
    rest: tuple[object, ...] = ()


CODEC = Codec(Colour, Point)


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        "text",
        1.5,
        Point(1),
        Point(2, "a", Colour.RED, (Point(3), (1, "b"), frozenset({2, 1}))),
        {1: Point(1), 2: frozenset({"x"})},
        (),
    ],
)
def test_a_value_comes_back(value):
    assert CODEC.decode(CODEC.encode(value)) == value


def test_a_class_that_is_not_known_is_refused():
    @dataclass(frozen=True)
    class Other:
        x: int

    with pytest.raises(TypeError, match="Other"):
        CODEC.encode(Other(1))
    with pytest.raises(TypeError, match="complex"):
        CODEC.encode(1j)


def point(*fields: tuple[str, type, Any]) -> Any:
    return make_dataclass("Point", [("x", int), *((name, type_, field(default=v)) for name, type_, v in fields)])


OLDER = point(("label", str, None))
NEWER = point(("label", str, None), ("depth", int, 0))


def test_a_field_of_a_newer_release_is_met_only_where_it_is_used():
    newer, older = Codec(NEWER), Codec(OLDER)
    assert older.decode(newer.encode((NEWER(1), NEWER(2, "a")))) == (OLDER(1), OLDER(2, "a"))
    assert newer.decode(older.encode(OLDER(2, "a"))) == NEWER(2, "a", 0)
    # What it may mean the older one cannot know.
    with pytest.raises(TypeError, match="depth"):
        older.decode(newer.encode(NEWER(1, None, 7)))


def test_a_default_that_says_something_is_written():
    """In the next release it may be another."""
    assert "colour" in CODEC.encode(Point(1))
    assert CODEC.encode(Point(0)) == CODEC.encode(Point(0, None)) != CODEC.encode(Point(0, ""))
