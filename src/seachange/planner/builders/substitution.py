"""Ids of elements of the past in terms of now: what was rewritten since has others.

**Invariant:** ids of indexes and constraints are not used twice. One that comes back and has no counterpart of its name
has a fresh id, and is built and validated again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from seachange.model.change import elements
from seachange.model.change.elements import Element, descriptor_of
from seachange.model.ids import ColumnId, ConstraintId, IndexId, TableId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.expression import Expression
from seachange.planner.builders.expression import rebind

Place = tuple[TableId, ColumnId]
Parts = Mapping[Element, Any]
_COLUMN_LISTS = ("column_ids", "key", "include", "descending", "nulls_swapped")
_EXPRESSIONS = ("expression", "where", "up", "conversion")


@dataclass(slots=True)
class Substitution:
    """By id of then, the id of now. `whole` are tables that come back as they were, with the ids that they had."""

    columns: dict[Place, ColumnId] = field(default_factory=dict)
    indexes: dict[IndexId, IndexId] = field(default_factory=dict)
    constraints: dict[tuple[TableId, ConstraintId], ConstraintId] = field(default_factory=dict)
    whole: Collection[TableId] = ()

    def of(self, element: Element) -> Element:
        if getattr(element, "table_id", descriptor_of(element)) in self.whole:
            return element
        match element:
            case elements.Comment(descriptor_id=id_, part=(kind, part_id)):
                return replace(element, part=(kind, self._part(TableId(id_), kind, part_id)))
            case elements.ViewQuery(column_uses=uses):
                return replace(element, column_uses=tuple((t, self._column(t, c)) for t, c in uses))
            case elements.CheckConstraint(table_id=table_id):
                moved = self._expression(table_id, Expression(element.expression, element.column_ids))
                rule_id = self.constraints.get((table_id, element.constraint_id), element.constraint_id)
                return replace(element, constraint_id=rule_id, expression=moved.text, column_ids=moved.columns)
            case _:
                return replace(element, **self._changes(element)) if hasattr(element, "table_id") else element

    def _changes(self, element: Any) -> dict[str, Any]:
        table_id, changes = element.table_id, dict[str, Any]()
        for each in fields(element):
            value = getattr(element, each.name)
            match each.name:
                case "column_id":
                    changes[each.name] = self._column(table_id, value)
                case "index_id" | "parent_index_id":
                    changes[each.name] = self.indexes.get(value, value)
                case "constraint_id":
                    changes[each.name] = self.constraints.get((table_id, value), value)
                case name if name in _COLUMN_LISTS:
                    changes[name] = tuple(self._column(table_id, column) for column in value)
                case name if name in _EXPRESSIONS and isinstance(value, Expression):
                    changes[name] = self._expression(table_id, value)
                case _:
                    pass
        return changes

    def _column(self, table_id: TableId, column_id: ColumnId) -> ColumnId:
        return self.columns.get((table_id, column_id), column_id)

    def _expression(self, table_id: TableId, expression: Expression) -> Expression:
        for column_id in expression.columns:
            expression = rebind(expression, column_id, self._column(table_id, column_id))
        return expression

    def _part(self, table_id: TableId, kind: ObjectKind, part_id: int) -> int:
        match kind:
            case ObjectKind.COLUMN:
                return self._column(table_id, ColumnId(part_id))
            case ObjectKind.INDEX:
                return self.indexes.get(IndexId(part_id), part_id)
            case ObjectKind.CONSTRAINT:
                return self.constraints.get((table_id, ConstraintId(part_id)), part_id)
            case _:
                return part_id

    def find_counterparts(self, then: Parts, now: Parts) -> None:
        """Indexes and constraints of the same name and definition are the same, under another id."""
        named = _named(now)
        for (table_id, name), (old_name, old) in _named(then).items():
            found = named.get((table_id, name))
            if found is None or descriptor_of(old) in self.whole:
                continue
            new_name, new = found
            if then[old] is not now[new]:
                # One is not valid.
                continue
            if isinstance(old_name, elements.IndexName) and isinstance(new_name, elements.IndexName):
                if _is_same(self.of(old), new, "index_id"):
                    self.indexes[old_name.index_id] = new_name.index_id
            elif isinstance(old_name, elements.ConstraintName) and _is_same(
                # The index that a foreign key looks its parents up in may have been rewritten.
                self.of(old),
                new,
                "constraint_id",
                "parent_index_id",
            ):
                self.constraints[table_id, old_name.constraint_id] = new.constraint_id  # type: ignore[union-attr]


def _is_same(one: Element, other: Element, *but: str) -> bool:
    if type(one) is not type(other):
        return False
    known = {name: getattr(other, name) for name in but if hasattr(other, name)}
    return replace(one, **known) == other


def _named(
    parts: Parts,
) -> dict[tuple[TableId, str], tuple[elements.IndexName | elements.ConstraintName, Element]]:
    indexes = {(e.table_id, e.index_id): e for e in parts if isinstance(e, elements.AnyIndex)}
    rules = {
        (e.table_id, e.constraint_id): e
        for e in parts
        if isinstance(e, elements.CheckConstraint | elements.ForeignKeyElement)
    }
    found: dict[tuple[TableId, str], tuple[elements.IndexName | elements.ConstraintName, Element]] = {}
    for element in parts:
        match element:
            case elements.IndexName(table_id=table_id, index_id=id_, name=name) if (table_id, id_) in indexes:
                found[table_id, name] = (element, indexes[table_id, id_])
            case elements.ConstraintName(table_id=table_id, constraint_id=rule, name=name) if (table_id, rule) in rules:
                found[table_id, name] = (element, rules[table_id, rule])
            case _:
                pass
    return found
