"""What a specification of an element is: everything that the planner knows of one kind.

A topic (columns, indexes) is a module with the specifications of its kinds and the rules about them. All tables of the
planner by kind of element are derived from the topics, in `registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from seachange.model.change.elements import Element
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.objects import Descriptor
from seachange.model.states import State
from seachange.planner.elements.rule import Rule
from seachange.planner.lifecycles.lifecycle import Lifecycle

E = TypeVar("E")

Parts = dict[Element, State]


class ElementNaming(StrEnum):
    """How an explanation names an element."""

    # As `column c4`.
    OWN = "it has a name"
    # As `default of column c4`.
    PART = "it is named after what it is a part of"
    # As `name of column c4`.
    NAME = "it is the name of another element"


@dataclass(frozen=True, slots=True)
class Host:
    """An element that shows and hides others together with itself: its kinds, and the fields that both agree in."""

    kinds: tuple[type[Element], ...]
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ElementReference:
    """`field` holds ids of other objects: those that elements of kind `to` have in field `by`."""

    field: str
    to: type[Element]
    by: str


@dataclass(frozen=True, slots=True)
class InColumn:
    """The place of a column's part in the descriptor. `take(table_id, column)` gives the part that a column has, if it
    has one; `put(part, state)` the fields of the column that hold it."""

    take: Callable[..., Parts]
    put: Callable[..., dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """The descriptor that an element is the whole of. `take(descriptor)` gives its parts, apart from its name and
    labels; `put(before, parts)` the fields that they are in its next version, of which `before` is the last one."""

    object_kind: ObjectKind
    descriptor: type[Descriptor]
    take: Callable[[Any], Parts]
    put: Callable[[Any, Mapping[Element, State]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ElementSpec:
    """One kind of element. `noun` is what explanations call it. An element with a `host` is hidden as long as the host
    is, so it can be added, and reverted, together with it. `known_outside`: others than its own descriptor know of it
    (the schema its name, the garbage collector its data), so that DROP TABLE drops it by itself, as it drops what
    `refers` to other objects. `setting` is the field of a column that holds the value of the element, its last field;
    statements, LIKE and replays treat all settings alike. `since` is the first release of rules that knows the kind."""

    kind: type[Element]
    lifecycle: Lifecycle
    noun: str
    naming: ElementNaming = ElementNaming.PART
    host: Host | None = None
    refers: ElementReference | None = None
    known_outside: bool = False
    in_column: InColumn | None = None
    form: ObjectForm | None = None
    setting: str | None = None
    since: int = 1


@dataclass(frozen=True, slots=True)
class Topic:
    """`specs` are in the order in which elements are dropped: parts before what they are parts of."""

    specs: tuple[ElementSpec, ...]
    rules: tuple[Rule, ...]


def only(kind: type[E], parts: Mapping[Element, State]) -> E:
    (found,) = [element for element in parts if isinstance(element, kind)]
    return found


def first(kind: type[E], parts: Mapping[Element, State]) -> E | None:
    return next((element for element in parts if isinstance(element, kind)), None)


def copy_fields(source: Any, kind: type[E], /, **others: Any) -> E:
    """What `source` has under the same names, and the others."""
    return kind(**(common_fields(source, kind) | others))


def common_fields(source: Any, kind: type) -> dict[str, Any]:
    return {name: getattr(source, name) for name in _common_names(source.__class__, kind)}


@cache
def _common_names(source: type, kind: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(source)) & frozenset(field.name for field in fields(kind))
