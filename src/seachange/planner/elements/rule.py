"""What a rule is: a sentence about two elements, with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import get_args

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status

Kinds = tuple[type[Element], ...]

# The kinds that rules speak of, from the unions of each topic.
COLUMNS: Kinds = get_args(elements.AnyColumn)
COLUMN_PARTS: Kinds = get_args(elements.ColumnPart)
INDEXES: Kinds = get_args(elements.AnyIndex)
INDEX_PARTS: Kinds = get_args(elements.IndexPart)
CONSTRAINTS: Kinds = get_args(elements.Constraint)
OBJECTS: Kinds = get_args(elements.AnyObject)
OBJECT_PARTS: Kinds = get_args(elements.ObjectPart)


class RuleOrder(StrEnum):
    # In the same stage, or in an earlier one.
    BEFORE = "before"
    # In the same stage; within it, first comes first.
    WITH = "in the same stage as"
    # In an earlier stage: everybody has seen the first before the second happens.
    EARLIER = "in an earlier stage than"


class Moment(StrEnum):
    """A status told by its place in a lifecycle."""

    FIRST = "its first status"
    LAST = "its last status"


@dataclass(frozen=True, slots=True)
class Adding:
    """An element of one of these kinds, on its way to be public, as it arrives at the status."""

    kinds: Kinds
    status: Status | Moment


@dataclass(frozen=True, slots=True)
class Dropping:
    """An element of one of these kinds as it goes."""

    kinds: Kinds


At = Adding | Dropping


@dataclass(frozen=True, slots=True)
class Rule:
    """`first` happens before, or with, `then`, for each pair of elements that agree in all fields of `join`. A pair of
    names stands for a field of the one and a field of the other; a field that holds several values agrees if one
    does."""

    name: str
    reason: str
    first: At
    order: RuleOrder
    then: At
    join: tuple[str | tuple[str, str], ...]
