"""Comments on objects of a database and on shared objects."""

from __future__ import annotations

from collections.abc import Iterator

from seachange.model.ids import DescriptorId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import Database, Role
from seachange.sql.pgcatalog.builtin import CATALOG_OIDS
from seachange.sql.pgcatalog.facts import Facts, Relation, Rows, object_oid, part_oid, shown_constraints


def pg_description(facts: Facts) -> Rows:
    for classoid, oid, part, text in comments(facts):
        yield {"objoid": oid, "classoid": CATALOG_OIDS[classoid], "objsubid": part, "description": text}


def comments(facts: Facts) -> Iterator[tuple[str, int, int, str]]:
    """The catalog of the object, its OID, the column or 0, and the text."""
    for relation in facts.relations:
        for comment in relation.access.comments:
            yield from _relation_comment(facts, relation, comment.part, comment.text)
    for enum in facts.enums:
        yield from (("pg_type", object_oid(enum.id), 0, c.text) for c in enum.access.comments if c.part is None)
    for namespace in facts.namespaces:
        yield from (("pg_namespace", namespace.oid, 0, c.text) for c in namespace.access.comments if c.part is None)


def _relation_comment(
    facts: Facts, relation: Relation, part: tuple[ObjectKind, int] | None, text: str
) -> Iterator[tuple[str, int, int, str]]:
    oid = object_oid(relation.id)
    match part:
        case None:
            yield ("pg_class", oid, 0, text)
        case (ObjectKind.COLUMN, column) if isinstance(relation, Table):
            number = facts.number(relation, column)  # type: ignore[arg-type]
            if number:
                yield ("pg_class", oid, number, text)
        case (ObjectKind.COLUMN, column):
            yield ("pg_class", oid, column, text)
        case (ObjectKind.INDEX, index):
            yield ("pg_class", object_oid(DescriptorId(index)), 0, text)
            # A key and its index are one object here, with one comment.
            if isinstance(relation, Table) and any(constraint.id == index for constraint in _keys(relation)):
                yield ("pg_constraint", object_oid(DescriptorId(index)), 0, text)
        case (ObjectKind.CONSTRAINT, constraint):
            yield ("pg_constraint", part_oid(relation.id, constraint), 0, text)
        case _:
            return


def _keys(table: Table) -> Iterator[Index]:
    return (constraint for constraint in shown_constraints(table) if isinstance(constraint, Index))


def pg_shdescription(facts: Facts) -> Rows:
    for catalog, oid, text in shared_comments(facts):
        yield {"objoid": oid, "classoid": CATALOG_OIDS[catalog], "description": text}


def shared_comments(facts: Facts) -> Iterator[tuple[str, int, str]]:
    """The catalog of the object, its OID, and the text."""
    for found in facts.objects:
        if isinstance(found, Database):
            yield from (("pg_database", object_oid(found.id), c.text) for c in found.access.comments)
        elif isinstance(found, Role):
            yield from (("pg_authid", facts.roles[found.name], c.text) for c in found.access.comments)
