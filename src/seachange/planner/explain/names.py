"""What the elements of a plan are called: elements know ids, users know names.

A name is marked where its bearer comes (`c4+`), goes (`c2-`) or is there for the duration of the change (`p~`), so that
an old and a new bearer of one name can be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.change.targets import Goal, Target
from seachange.model.ids import ColumnId, ConstraintId, DescriptorId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import DEFAULT_SCHEMA
from seachange.planner.elements.registry import SPECS
from seachange.planner.elements.spec import ElementNaming
from seachange.planner.known_schema import KnownSchema
from seachange.planner.object_parts import decompose, namespace_of
from seachange.planner.plan import ChangePlan

_PLAIN = re.compile("[a-z_][a-z0-9_$]*")

# Where a name stands: the kind of its bearer, then the ids.
Place = tuple[Any, ...]

_MARKS: dict[Goal, str] = {
    Goal.PUBLIC: "+",
    Goal.HIDDEN: "+",
    Goal.ENFORCED: "+",
    Goal.ABSENT: "-",
    Goal.TRANSIENT: "~",
}


class Names:
    def __init__(self, plan: ChangePlan, catalog: KnownSchema) -> None:
        self._names: dict[Place, str] = {}
        self._marks: dict[Place, str] = {}
        # Of two elements in one place, which is thereby changed rather than come or gone.
        self._own: dict[Element, str] = {}
        self._objects: dict[DescriptorId, ObjectKind] = {}
        targets = plan.graph.targets
        touched = {descriptor_of(target.element) for target in targets}
        for descriptor in (*catalog.descriptors.values(), *catalog.dropped):
            # Of objects that do not change only the name is shown.
            parts: Iterable[Element] = decompose(descriptor) if descriptor.id in touched else [namespace_of(descriptor)]
            if isinstance(descriptor, Table) and descriptor.id in touched:
                # Expressions of now may still name columns that have gone.
                gone = {("column_id", descriptor.id, r.column.id): quote(r.column.name) for r in descriptor.retired}
                self._names |= gone
            for element in parts:
                self._read(element)
        for target in targets:
            if target.adds:
                self._read(target.element)
        for target in targets:
            self._mark(target)
        self._many = len({id_ for id_ in touched if self._objects.get(id_) is ObjectKind.TABLE}) > 1

    def _read(self, element: Element) -> None:
        match element:
            case elements.NamespaceElement():
                parts = [element.schema] if element.schema not in ("", DEFAULT_SCHEMA) else []
                shown = ".".join(quote(part) for part in (*parts, element.name))
                self._names[("descriptor_id", element.descriptor_id)] = shown
                self._objects[element.descriptor_id] = element.kind
            case elements.ColumnName() | elements.IndexName() | elements.ConstraintName():
                self._names[_place(element)] = quote(element.name)
            case elements.EnumLabel():
                self._names[_place(element)] = quote(element.label)
            case _:
                pass

    def _mark(self, target: Target) -> None:
        if self.is_host(target.element):
            place, mark = _place(target.element), _MARKS[target.goal]
            self._marks[place] = mark if self._marks.get(place, mark) == mark else ""
            self._own[target.element] = mark

    def _named(self, place: Place) -> str:
        return self._names.get(place, _unnamed(place)) + self._marks.get(place, "")

    def descriptor(self, id_: DescriptorId) -> str:
        """As `table foo`."""
        kind = self._objects.get(id_, ObjectKind.TABLE)
        return f"{kind.value} {self.object(id_)}"

    def object(self, id_: DescriptorId) -> str:
        return self._named(("descriptor_id", id_))

    def column(self, table_id: TableId, column_id: ColumnId) -> str:
        return self._named(("column_id", table_id, column_id))

    def index(self, table_id: TableId, index_id: IndexId) -> str:
        return self._named(("index_id", table_id, index_id))

    def constraint(self, table_id: TableId, constraint_id: ConstraintId) -> str:
        return self._named(("constraint_id", table_id, constraint_id))

    def label(self, element: Element) -> str:
        """As `column c4+`; with the table's name where the plan is about several."""
        table_id = getattr(element, "table_id", None)
        own = isinstance(element, elements.TableElement)
        where = f" of {self.object(table_id)}" if self._many and table_id is not None and not own else ""
        return self._label(element) + where

    def _label(self, element: Element) -> str:
        kind = type(element)
        match element:
            case elements.NamespaceElement():
                return f"name of {element.kind.value} {self.object(element.descriptor_id)}"
            case elements.Owner():
                return f"owner {quote(element.role)} of {self.descriptor(element.descriptor_id)}"
            case elements.Privileges():
                return f"privileges of {quote(element.role)} on {self.descriptor(element.descriptor_id)}"
            case elements.Comment():
                return f"comment on {self._commented(element)}"
            case elements.EnumValue():
                return f"value {self._named(_place(element))} of type {self.object(element.type_id)}"
            case elements.EnumLabel():
                return f"label {quote(element.label)} of type {self.object(element.type_id)}"
            case elements.ColumnName() | elements.IndexName() | elements.ConstraintName():
                place = _place(element)
                other = "" if self._names.get(place) == quote(element.name) else f" {quote(element.name)}"
                return f"name{other} of {SPECS[kind].noun} {self._named(place)}"
            case elements.ColumnType():
                type_ = element.type if element.type_id is None else self.object(element.type_id)
                return f"type {type_} of column {self._named(_place(element))}"
            case _:
                place = _place(element)
                mark = self._own.get(element, self._marks.get(place, ""))
                return f"{SPECS[kind].noun} {self._names.get(place, _unnamed(place))}{mark}"

    def _commented(self, comment: elements.Comment) -> str:
        if comment.part is None:
            return self.descriptor(comment.descriptor_id)
        kind, id_ = comment.part
        field = {ObjectKind.COLUMN: "column_id", ObjectKind.INDEX: "index_id"}.get(kind, "constraint_id")
        return f"{kind.value} {self._named((field, comment.descriptor_id, id_))}"

    def is_host(self, element: Element) -> bool:
        """Whether it bears a name of its own, rather than being a part of what does."""
        return SPECS[type(element)].naming is ElementNaming.OWN

    def host(self, element: Element) -> Place:
        """What the element is a part of, or is."""
        return _place(element)


def quote(name: str) -> str:
    """As it would have to be written; a character that would break the line as its number.

    >>> print(quote("a_1"), quote("A b"), quote('x"y'), quote("two\\nlines"))
    a_1 "A b" "x""y" "two\\u000alines"
    """
    if _PLAIN.fullmatch(name):
        return name
    return '"' + one_line(name).replace('"', '""') + '"'


def one_line(text: str) -> str:
    """Characters that would break the line as their numbers."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _unnamed(place: Place) -> str:
    return f"#{place[-1]}"


def _place(element: Element) -> Place:
    for field in ("column_id", "index_id", "constraint_id", "value_id"):
        id_ = getattr(element, field, None)
        if id_ is not None and not isinstance(element, elements.SequenceOwnerElement):
            owner = element.table_id if hasattr(element, "table_id") else descriptor_of(element)
            return (field, owner, id_)
    return ("descriptor_id", descriptor_of(element))
