from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pytest

from seachange.model.codec import Codec


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
