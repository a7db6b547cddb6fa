"""The rows of information_schema; columns that are not set are NULL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import PRIVILEGES, Access
from seachange.model.schema.constraint import Check, ForeignKey
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import EnumType, View
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.sql.pgcatalog.builtin import TYPE_BY_OID
from seachange.sql.pgcatalog.deparse import check_text, default_text, generated_text
from seachange.sql.pgcatalog.facts import Facts, PgAttribute, Rows, shown_constraints
from seachange.sql.pgcatalog.view_text import view_definition
from seachange.sql.port.system_columns import SYSTEM_SCHEMA, SYSTEM_VIEWS
from seachange.values.types import Kind, SqlType

# Bits of binary numbers, and digits of a second.
_BITS: Final[dict[Kind, int]] = {
    Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.REAL: 24, Kind.DOUBLE: 53,
}  # fmt: skip
_WHOLE: Final = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_SECONDS: Final[dict[Kind, int]] = {
    Kind.DATE: 0, Kind.TIME: 6, Kind.TIMESTAMP: 6, Kind.TIMESTAMPTZ: 6, Kind.INTERVAL: 6,
}  # fmt: skip
# The length of unlimited text.
_OCTETS_MAX: Final = 1073741824
_OCTETS_A_CHARACTER: Final = 4


def _yes(flag: bool) -> str:
    return "YES" if flag else "NO"


def _place(facts: Facts, relation: Table | View, prefix: str = "table") -> dict[str, Any]:
    return {f"{prefix}_catalog": facts.database, f"{prefix}_schema": relation.schema, f"{prefix}_name": relation.name}


def _readable(facts: Facts) -> Iterator[Table | View]:
    yield from (table for table in facts.plain_tables if facts.actor.holds_any(table.access))
    yield from (view for view in facts.views if facts.actor.holds_any(view.access))


def schemata(facts: Facts) -> Rows:
    for n in facts.namespaces:
        yield {"catalog_name": facts.database, "schema_name": n.name, "schema_owner": n.access.owner}


def tables(facts: Facts) -> Rows:
    for relation in _readable(facts):
        is_table = isinstance(relation, Table)
        yield {
            **_place(facts, relation),
            "table_type": "BASE TABLE" if is_table else "VIEW",
            "is_insertable_into": _yes(is_table),
            "is_typed": "NO",
        }


def system_tables(facts: Facts) -> Rows:
    for name in SYSTEM_VIEWS:
        yield {**_system_place(facts, name), "table_type": "VIEW", "is_insertable_into": "NO", "is_typed": "NO"}


def _system_place(facts: Facts, name: str) -> dict[str, Any]:
    return {"table_catalog": facts.database, "table_schema": SYSTEM_SCHEMA, "table_name": name}


def views(facts: Facts) -> Rows:
    for view in facts.views:
        if not facts.actor.holds_any(view.access):
            continue
        yield {
            **_place(facts, view),
            "view_definition": view_definition(facts, view) if facts.actor.owns(view.access) else None,
            "check_option": "NONE",
            "is_updatable": "NO",
            "is_insertable_into": "NO",
            "is_trigger_updatable": "NO",
            "is_trigger_deletable": "NO",
            "is_trigger_insertable_into": "NO",
        }


def columns(facts: Facts) -> Rows:
    for relation in _readable(facts):
        for attribute in facts.attributes(relation):
            yield {**_place(facts, relation), **_column(facts, relation, attribute)}


def system_columns(facts: Facts) -> Rows:
    for name, known in SYSTEM_VIEWS.items():
        for number, (column, type_) in enumerate(known.items(), 1):
            yield {**_system_place(facts, name), **_column(facts, None, PgAttribute(number, column, type_))}


def _column(facts: Facts, relation: Table | View | None, attribute: PgAttribute) -> dict[str, Any]:
    return {
        "column_name": attribute.name,
        "ordinal_position": attribute.number,
        "is_nullable": _yes(not attribute.not_null),
        **_type_columns(facts, attribute.type),
        "dtd_identifier": str(attribute.number),
        "is_self_referencing": "NO",
        **_column_origin(facts, relation, attribute),
    }


def _column_origin(facts: Facts, relation: Table | View | None, attribute: PgAttribute) -> dict[str, Any]:
    column = attribute.column
    plain = {
        "is_identity": "NO",
        "identity_cycle": "NO",
        "is_generated": "NEVER",
        "is_updatable": _yes(column is not None),
    }
    if column is None or not isinstance(relation, Table):
        return plain
    if column.generated is not None:
        return {**plain, "is_generated": "ALWAYS", "generation_expression": generated_text(relation, column)}
    if column.identity is None:
        return {**plain, "column_default": default_text(facts, column)}
    sequence = facts.by_id.get(column.identity.sequence_id)
    assert isinstance(sequence, SequenceObject)
    return {
        **plain,
        "is_identity": "YES",
        "identity_generation": "ALWAYS" if column.identity.always else "BY DEFAULT",
        "identity_start": str(sequence.start),
        "identity_increment": str(sequence.increment),
        "identity_maximum": str(sequence.maximum),
        "identity_minimum": str(sequence.minimum),
        "identity_cycle": _yes(sequence.cycle),
    }


def _type_columns(facts: Facts, type_: SqlType) -> dict[str, Any]:
    found: dict[str, Any] = {"udt_catalog": facts.database}
    enum = facts.by_id.get(type_.enum) if type_.enum else None
    if isinstance(enum, EnumType) and type_.element is not None:
        return {**found, "data_type": "ARRAY", "udt_schema": enum.schema, "udt_name": f"_{enum.name}"}
    if isinstance(enum, EnumType):
        return {**found, "data_type": "USER-DEFINED", "udt_schema": enum.schema, "udt_name": enum.name}
    known = TYPE_BY_OID[type_.oid]
    found |= {"udt_schema": "pg_catalog", "udt_name": known.name}
    found["data_type"] = "ARRAY" if known.category == "A" else known.formatted
    if known.category == "A":
        return found
    if known.category == "S" and type_.kind is not Kind.NAME:
        found["character_maximum_length"] = type_.length or None
        found["character_octet_length"] = type_.length * _OCTETS_A_CHARACTER if type_.length else _OCTETS_MAX
    if type_.kind in _BITS:
        found |= {"numeric_precision": _BITS[type_.kind], "numeric_precision_radix": 2}
        found["numeric_scale"] = 0 if type_.kind in _WHOLE else None
    if type_.kind is Kind.NUMERIC:
        found["numeric_precision_radix"] = 10
        if type_.precision:
            found |= {"numeric_precision": type_.precision, "numeric_scale": type_.scale}
    if type_.kind in _SECONDS:
        declared = type_.moment_digits
        found["datetime_precision"] = _SECONDS[type_.kind] if declared is None else declared
    return found


def sequences(facts: Facts) -> Rows:
    owned = {c.identity.sequence_id for t in facts.plain_tables for c in t.columns if c.identity is not None}
    for s in facts.sequences:
        if s.id in owned:
            continue
        yield {
            "sequence_catalog": facts.database,
            "sequence_schema": s.schema,
            "sequence_name": s.name,
            "data_type": str(s.type),
            "numeric_precision": _BITS[s.type.kind],
            "numeric_precision_radix": 2,
            "numeric_scale": 0,
            "start_value": str(s.start),
            "minimum_value": str(s.minimum),
            "maximum_value": str(s.maximum),
            "increment": str(s.increment),
            "cycle_option": _yes(s.cycle),
        }


def _constraint(facts: Facts, table: Table, name: str) -> dict[str, Any]:
    return {"constraint_catalog": facts.database, "constraint_schema": table.schema, "constraint_name": name}


def _each_constraint(facts: Facts) -> Iterator[tuple[Table, Index | Check | ForeignKey]]:
    return ((table, constraint) for table in facts.plain_tables for constraint in shown_constraints(table))


def _not_null_names(facts: Facts, table: Table) -> Iterator[tuple[str, str]]:
    """NOT NULL is listed as a check, with a generated name."""
    schema_oid = facts.namespace_oids.get(table.schema, 0)
    for attribute in facts.attributes(table):
        if attribute.not_null:
            yield f"{schema_oid}_{table.id + 16384}_{attribute.number}_not_null", f"{attribute.name} IS NOT NULL"


def table_constraints(facts: Facts) -> Rows:
    for table, constraint in _each_constraint(facts):
        deferrable = isinstance(constraint, ForeignKey) and constraint.deferrable
        deferred = isinstance(constraint, ForeignKey) and constraint.initially_deferred
        unique = isinstance(constraint, Index) and constraint.id != table.primary.id
        yield {
            **_constraint(facts, table, constraint.name),
            **_place(facts, table),
            "constraint_type": _constraint_type(table, constraint),
            "is_deferrable": _yes(deferrable),
            "initially_deferred": _yes(deferred),
            "enforced": "YES",
            "nulls_distinct": _yes(constraint.nulls_distinct) if unique and isinstance(constraint, Index) else None,
        }
    for table in facts.plain_tables:
        for name, _ in _not_null_names(facts, table):
            yield {
                **_constraint(facts, table, name),
                **_place(facts, table),
                "constraint_type": "CHECK",
                "is_deferrable": "NO",
                "initially_deferred": "NO",
                "enforced": "YES",
            }


def _constraint_type(table: Table, constraint: Index | Check | ForeignKey) -> str:
    match constraint:
        case Index():
            return "PRIMARY KEY" if constraint.id == table.primary.id else "UNIQUE"
        case Check():
            return "CHECK"
        case ForeignKey():
            return "FOREIGN KEY"


def key_column_usage(facts: Facts) -> Rows:
    for table, constraint in _each_constraint(facts):
        if isinstance(constraint, Check):
            continue
        refers = isinstance(constraint, ForeignKey)
        columns_ = constraint.columns if isinstance(constraint, ForeignKey) else constraint.key
        for number, column in enumerate(columns_, 1):
            yield {
                **_constraint(facts, table, constraint.name),
                **_place(facts, table),
                "column_name": table.column_by_id[column].name,
                "ordinal_position": number,
                "position_in_unique_constraint": number if refers else None,
            }


def constraint_column_usage(facts: Facts) -> Rows:
    for table, constraint in _each_constraint(facts):
        owner, used = table, constraint.columns if isinstance(constraint, Check) else ()
        if isinstance(constraint, Index):
            used = constraint.key
        elif isinstance(constraint, ForeignKey):
            parent = facts.by_id[constraint.parent]
            assert isinstance(parent, Table)
            owner, used = parent, parent.index_by_id[constraint.parent_index].key
        for column in dict.fromkeys(used):
            name = {"column_name": owner.column_by_id[column].name}
            yield {**_place(facts, owner), **name, **_constraint(facts, table, constraint.name)}


def constraint_table_usage(facts: Facts) -> Rows:
    for table, constraint in _each_constraint(facts):
        if isinstance(constraint, Check):
            continue
        parent = facts.by_id[constraint.parent] if isinstance(constraint, ForeignKey) else table
        assert isinstance(parent, Table)
        yield {**_place(facts, parent), **_constraint(facts, table, constraint.name)}


def referential_constraints(facts: Facts) -> Rows:
    for table, key in _each_constraint(facts):
        if not isinstance(key, ForeignKey):
            continue
        parent = facts.by_id[key.parent]
        assert isinstance(parent, Table)
        index = parent.index_by_id[key.parent_index]
        is_constraint = index.constraint or index.id == parent.primary.id
        yield {
            **_constraint(facts, table, key.name),
            "unique_constraint_catalog": facts.database if is_constraint else None,
            "unique_constraint_schema": parent.schema if is_constraint else None,
            "unique_constraint_name": index.name if is_constraint else None,
            "match_option": "FULL" if key.match_full else "NONE",
            "update_rule": key.on_update.value,
            "delete_rule": key.on_delete.value,
        }


def check_constraints(facts: Facts) -> Rows:
    for table, check in _each_constraint(facts):
        if isinstance(check, Check):
            text = check_text(table, check)
            yield {**_constraint(facts, table, check.name), "check_clause": text}
    for table in facts.plain_tables:
        for name, clause in _not_null_names(facts, table):
            yield {**_constraint(facts, table, name), "check_clause": clause}


def _grants(access: Access, kind: ObjectKind) -> Iterator[tuple[str, str, bool]]:
    """Role, privilege and grant option; the owner has all."""
    for privilege in PRIVILEGES[kind]:
        yield access.owner, privilege, True
    for granted in access.privileges:
        if granted.role != access.owner:
            for privilege in granted.privileges:
                yield granted.role, privilege, privilege in granted.grantable


def table_privileges(facts: Facts) -> Rows:
    for relation in _readable(facts):
        for role, privilege, grantable in _grants(relation.access, ObjectKind.TABLE):
            yield {
                "grantor": relation.access.owner,
                "grantee": "PUBLIC" if role == "public" else role,
                **_place(facts, relation),
                "privilege_type": privilege,
                "is_grantable": _yes(grantable),
                "with_hierarchy": _yes(privilege == "SELECT"),
            }


_COLUMN_PRIVILEGES: Final = frozenset({"SELECT", "INSERT", "UPDATE", "REFERENCES"})


def column_privileges(facts: Facts) -> Rows:
    for relation in _readable(facts):
        grants = [g for g in _grants(relation.access, ObjectKind.TABLE) if g[1] in _COLUMN_PRIVILEGES]
        for attribute in facts.attributes(relation):
            for role, privilege, grantable in grants:
                yield {
                    "grantor": relation.access.owner,
                    "grantee": "PUBLIC" if role == "public" else role,
                    **_place(facts, relation),
                    "column_name": attribute.name,
                    "privilege_type": privilege,
                    "is_grantable": _yes(grantable),
                }


role_table_grants = table_privileges
role_column_grants = column_privileges


def view_table_usage(facts: Facts) -> Rows:
    for view in facts.views:
        for id_ in view.relation_ids:
            used = facts.by_id.get(id_)
            if isinstance(used, Table | View):
                yield {**_place(facts, view, "view"), **_place(facts, used)}


def view_column_usage(facts: Facts) -> Rows:
    for view in facts.views:
        for id_, column in view.column_uses:
            used = facts.by_id.get(id_)
            if isinstance(used, Table) and column in used.column_by_id:
                name = {"column_name": used.column_by_id[column].name}
                yield {**_place(facts, view, "view"), **_place(facts, used), **name}


def enabled_roles(facts: Facts) -> Rows:
    for role in facts.roles:
        yield {"role_name": role}


def information_schema_catalog_name(facts: Facts) -> Rows:
    yield {"catalog_name": facts.database}


def character_sets(facts: Facts) -> Rows:
    names = {"character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8"}
    yield {**names, "default_collate_catalog": facts.database, "default_collate_schema": "pg_catalog"}
