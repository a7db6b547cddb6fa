"""The rows of pg_catalog: for each relation the columns that are set; the others have the zero of their type."""

from __future__ import annotations

from typing import Any, Final

from seachange.model.object_kind import ObjectKind
from seachange.model.schema.constraint import Action, Check, ForeignKey
from seachange.model.schema.descriptor import Column, Index, Table
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.model.schema.objects import View, view_of
from seachange.model.schema.pinned import PinnedTable
from seachange.model.schema.temporary import is_temporary
from seachange.model.states import State
from seachange.sql.pgcatalog import builtin, deparse
from seachange.sql.pgcatalog.facts import (
    Facts,
    PgAttribute,
    Relation,
    Rows,
    constraint_oid,
    object_oid,
    part_oid,
    shown_constraints,
    shown_indexes,
    type_modifier,
)
from seachange.sql.pgcatalog.shared import acl
from seachange.sql.pgcatalog.view_text import view_definition
from seachange.values.types import ENUM_WIDTH, SqlType

# The kind of object whose privileges a relation has, unless it is a table.
# The statistics target of a column that has none of its own.
_DEFAULT_TARGET: Final = -1
_GRANTED_AS: Final[dict[str, ObjectKind]] = {"S": ObjectKind.SEQUENCE}

_ACTIONS: Final[dict[Action, str]] = {
    Action.NO_ACTION: "a",
    Action.RESTRICT: "r",
    Action.CASCADE: "c",
    Action.SET_NULL: "n",
    Action.SET_DEFAULT: "d",
}
_KINDS: Final[dict[type, str]] = {Table: "r", PinnedTable: "r", View: "v", SequenceObject: "S"}


def pg_namespace(facts: Facts) -> Rows:
    for n in facts.namespaces:
        rights = acl(n.access, ObjectKind.SCHEMA)
        yield {"oid": n.oid, "nspname": n.name, "nspowner": facts.owner_oid(n.access), "nspacl": rights}


def _class_row(facts: Facts, relation: Relation, kind: str) -> dict[str, Any]:
    return {
        "oid": object_oid(relation.id),
        "relnamespace": facts.namespace_oids.get(relation.schema, 0),
        "relname": relation.name,
        "relowner": facts.owner_oid(relation.access),
        "relpersistence": "t" if is_temporary(relation.schema) else "p",
        "relkind": kind,
        "relispopulated": True,
        "relreplident": "n",
        "reltuples": -1.0,
        "relacl": acl(relation.access, _GRANTED_AS.get(kind, ObjectKind.TABLE)),
    }


def _kind(relation: Relation) -> str:
    is_materialized = isinstance(relation, Table) and relation.materialized is not None
    return "m" if is_materialized else _KINDS[type(relation)]


def pg_class(facts: Facts) -> Rows:
    for relation in facts.relations:
        kind = _kind(relation)
        row = _class_row(facts, relation, kind)
        row["relnatts"] = len(facts.attributes(relation))
        row["reltype"] = 0 if kind == "S" else object_oid(relation.id)
        if isinstance(relation, Table):
            row["relam"] = builtin.HEAP_OID
            row["relreplident"] = "d"
            row["relhasindex"] = any(True for _ in shown_indexes(relation))
            row["relchecks"] = sum(isinstance(c, Check) for c in shown_constraints(relation))
            row["relhastriggers"] = bool(relation.foreign_keys) or relation.id in facts.parents
            row["reloptions"] = [f"{name}={value}" for name, value in relation.parameters] or None
        row["relhasrules"] = kind in ("v", "m")
        if isinstance(relation, Table) and relation.materialized is not None:
            row["relispopulated"] = relation.materialized.populated
        yield row
    for table, index in facts.indexes:
        yield {
            **_class_row(facts, table, "i"),
            "oid": object_oid(index.id),
            "relname": index.name,
            "relam": builtin.BTREE_OID,
            "relnatts": len(index.key) + len(index.include),
            "relpages": 1,
            "reltuples": 0.0,
            "relacl": None,
        }


def _attribute_row(facts: Facts, relation_oid: int, number: int, name: str, type_: SqlType) -> dict[str, Any]:
    oid = type_.oid
    known = builtin.TYPE_BY_OID.get(oid)
    return {
        "attrelid": relation_oid,
        "attname": name,
        "atttypid": oid,
        "attlen": known.length if known is not None else ENUM_WIDTH,
        "attnum": number,
        "attcacheoff": -1,
        "atttypmod": type_modifier(type_),
        "attndims": 1 if known is not None and known.category == "A" else 0,
        "attbyval": known.by_value if known is not None else True,
        "attalign": known.align if known is not None else "i",
        "attstorage": known.storage if known is not None else "p",
        "attislocal": True,
        "attstattarget": _DEFAULT_TARGET,
        "attcollation": known.collation if known is not None else 0,
    }


def _identity(attribute: PgAttribute) -> str:
    identity = attribute.column.identity if attribute.column is not None else None
    return "" if identity is None else "a" if identity.always else "d"


def _compression(attribute: PgAttribute) -> str:
    """The first letter of the method, as PostgreSQL has it of its own."""
    method = attribute.column.compression if attribute.column is not None else None
    return method[0] if method else ""


def _statistics_target(attribute: PgAttribute) -> int:
    target = attribute.column.statistics_target if attribute.column is not None else None
    return _DEFAULT_TARGET if target is None else target


def _is_generated(attribute: PgAttribute) -> bool:
    return attribute.column is not None and attribute.column.generated is not None


def _has_default(attribute: PgAttribute) -> bool:
    return _is_generated(attribute) or (attribute.column is not None and attribute.column.default is not None)


def pg_attribute(facts: Facts) -> Rows:
    for relation in facts.relations:
        for attribute in facts.attributes(relation):
            yield {
                **_attribute_row(facts, object_oid(relation.id), attribute.number, attribute.name, attribute.type),
                "attcompression": _compression(attribute),
                "attstattarget": _statistics_target(attribute),
                "attnotnull": attribute.not_null,
                "atthasdef": _has_default(attribute),
                "attidentity": _identity(attribute),
                "attgenerated": "s" if _is_generated(attribute) else "",
            }
    for table, index in facts.indexes:
        for number, id_ in enumerate((*index.key, *index.include), 1):
            column = table.column_by_id[id_]
            name = _index_column_name(column)
            yield _attribute_row(facts, object_oid(index.id), number, name, column.type)


def _index_column_name(column: Column) -> str:
    """PostgreSQL names an expression after its outermost function."""
    return column.name.split("(")[0] if column.virtual and "(" in column.name else column.name


def pg_attrdef(facts: Facts) -> Rows:
    for table in facts.tables:
        for attribute in facts.attributes(table):
            column = attribute.column
            assert column is not None
            text = deparse.generated_text(table, column) or deparse.default_text(facts, column)
            if text is not None:
                owner = {"oid": part_oid(table.id, column.id), "adrelid": object_oid(table.id)}
                yield {**owner, "adnum": attribute.number, "adbin": text}


def pg_index(facts: Facts) -> Rows:
    for table, index in facts.indexes:
        keys = [table.column_by_id[c] for c in index.key]
        every = (*index.key, *index.include)
        expressions = [c.generated for c in keys if c.virtual and c.generated is not None]
        texts = [deparse.in_parentheses(deparse.expression_text(table, each)) for each in expressions]
        yield {
            "indexrelid": object_oid(index.id),
            "indrelid": object_oid(table.id),
            "indnatts": len(every),
            "indnkeyatts": len(index.key),
            "indisunique": index.unique,
            "indnullsnotdistinct": not index.nulls_distinct,
            "indisprimary": index.id == table.primary.id,
            "indimmediate": True,
            "indisvalid": True,
            "indisready": True,
            "indislive": True,
            "indkey": [facts.number(table, c) for c in every],
            "indcollation": [_collation(facts, c.type) for c in keys],
            "indclass": [_opclass(c.type) for c in keys],
            "indoption": [_INDEX_OPTIONS[index.order_of(c)] for c in index.key],
            "indexprs": ", ".join(texts) if texts else None,
            "indpred": deparse.in_parentheses(deparse.expression_text(table, index.where))
            if index.where is not None
            else None,
        }


# Bits of a key's order: 1 is DESC, 2 is NULLS FIRST.
_INDEX_OPTIONS = {"": 0, " DESC NULLS LAST": 1, " NULLS FIRST": 2, " DESC": 3}


def _collation(facts: Facts, type_: SqlType) -> int:
    known = builtin.TYPE_BY_OID.get(type_.oid)
    return known.collation if known is not None else 0


def _opclass(type_: SqlType) -> int:
    if type_.enum:
        return builtin.ENUM_OPCLASS
    known = builtin.TYPE_BY_OID.get(type_.oid)
    return known.opclass if known is not None else 0


def pg_constraint(facts: Facts) -> Rows:
    for table in facts.tables:
        for constraint in shown_constraints(table):
            yield {
                "oid": constraint_oid(table, constraint),
                "conname": constraint.name,
                "connamespace": facts.namespace_oids.get(table.schema, 0),
                "convalidated": constraint.state is State.PUBLIC,
                "conrelid": object_oid(table.id),
                "conislocal": True,
                "connoinherit": not isinstance(constraint, Check),
                "confupdtype": " ",
                "confdeltype": " ",
                "confmatchtype": " ",
                **_constraint_row(facts, table, constraint),
            }


def _constraint_row(facts: Facts, table: Table, constraint: Index | Check | ForeignKey) -> dict[str, Any]:
    match constraint:
        case Index():
            return {
                "contype": "p" if constraint.id == table.primary.id else "u",
                "conindid": object_oid(constraint.id),
                "conkey": [facts.number(table, c) for c in constraint.key],
            }
        case Check():
            columns = sorted({facts.number(table, c) for c in constraint.columns})
            return {"contype": "c", "conkey": columns, "conbin": deparse.check_text(table, constraint)}
        case ForeignKey():
            parent = facts.by_id[constraint.parent]
            assert isinstance(parent, Table)
            parent_key = parent.index_by_id[constraint.parent_index].key
            return {
                "contype": "f",
                "condeferrable": constraint.deferrable,
                "condeferred": constraint.initially_deferred,
                "conindid": object_oid(constraint.parent_index),
                "confrelid": object_oid(parent.id),
                "confupdtype": _ACTIONS[constraint.on_update],
                "confdeltype": _ACTIONS[constraint.on_delete],
                "confmatchtype": "f" if constraint.match_full else "s",
                "conkey": [facts.number(table, c) for c in constraint.columns],
                "confkey": [facts.number(parent, c) for c in parent_key],
            }


def pg_sequence(facts: Facts) -> Rows:
    for s in facts.sequences:
        yield {
            "seqrelid": object_oid(s.id),
            "seqtypid": s.type.oid,
            "seqstart": s.start,
            "seqincrement": s.increment,
            "seqmax": s.maximum,
            "seqmin": s.minimum,
            "seqcache": s.cache,
            "seqcycle": s.cycle,
        }


def pg_depend(facts: Facts) -> Rows:
    class_oid = builtin.CATALOG_OIDS["pg_class"]
    for s in facts.sequences:
        table = facts.by_id.get(s.owner[0]) if s.owner is not None else None
        if s.owner is None or not isinstance(table, Table):
            continue
        column = table.column_by_id.get(s.owner[1])
        is_identity = column is not None and column.identity is not None
        yield {
            "classid": class_oid,
            "objid": object_oid(s.id),
            "refclassid": class_oid,
            "refobjid": object_oid(table.id),
            "refobjsubid": facts.number(table, s.owner[1]),
            "deptype": "i" if is_identity else "a",
        }
    for table in facts.tables:
        yield from _default_dependencies(facts, table)
    for view in (*facts.views, *facts.materialized):
        rule = {"classid": builtin.CATALOG_OIDS["pg_rewrite"], "objid": object_oid(view.id), "deptype": "n"}
        for relation, column_id in view.column_uses:
            used = facts.by_id.get(relation)
            number = facts.number(used, column_id) if isinstance(used, Table) else 0
            yield {**rule, "refclassid": class_oid, "refobjid": object_oid(relation), "refobjsubid": number}
        for id_ in set(view.relation_ids) - {relation for relation, _ in view.column_uses}:
            yield {**rule, "refclassid": class_oid, "refobjid": object_oid(id_)}


def _default_dependencies(facts: Facts, table: Table) -> Rows:
    """A default depends on the sequences that it draws from: pg_dump then writes it behind both."""
    for column in table.visible_columns:
        default = {"classid": builtin.CATALOG_OIDS["pg_attrdef"], "objid": part_oid(table.id, column.id)}
        referred = [
            (table.id, facts.number(table, column.id), "a"),
            *((id_, 0, "n") for id_ in column.default_sequences),
        ]
        for id_, number, type_ in referred if column.default_sequences and column.identity is None else ():
            refers = {"refclassid": builtin.CATALOG_OIDS["pg_class"], "refobjid": object_oid(id_)}
            yield {**default, **refers, "refobjsubid": number, "deptype": type_}


def pg_rewrite(facts: Facts) -> Rows:
    for view in (*facts.views, *facts.materialized):
        owner = {"oid": object_oid(view.id), "ev_class": object_oid(view.id)}
        yield {**owner, "rulename": "_RETURN", "ev_type": "1", "ev_enabled": "O", "is_instead": True}


# Views of the catalog.


def pg_matviews(facts: Facts) -> Rows:
    for table in facts.tables:
        view = view_of(table)
        if view is not None and table.materialized is not None:
            yield {
                "schemaname": view.schema,
                "matviewname": view.name,
                "matviewowner": view.access.owner,
                "hasindexes": any(True for _ in shown_indexes(table)),
                "ispopulated": table.materialized.populated,
                "definition": view_definition(facts, view),
            }


def pg_tables(facts: Facts) -> Rows:
    for table in facts.plain_tables:
        yield {
            "schemaname": table.schema,
            "tablename": table.name,
            "tableowner": table.access.owner,
            "hasindexes": any(True for _ in shown_indexes(table)),
            "hastriggers": bool(table.foreign_keys),
        }


def pg_views(facts: Facts) -> Rows:
    for view in facts.views:
        owner = {"schemaname": view.schema, "viewname": view.name, "viewowner": view.access.owner}
        yield {**owner, "definition": view_definition(facts, view)}


def pg_indexes(facts: Facts) -> Rows:
    for table, index in facts.indexes:
        names = {"schemaname": table.schema, "tablename": table.name, "indexname": index.name}
        yield {**names, "indexdef": deparse.index_definition(facts, table, index)}


def pg_sequences(facts: Facts) -> Rows:
    for s in facts.sequences:
        yield {
            "schemaname": s.schema,
            "sequencename": s.name,
            "sequenceowner": s.access.owner,
            "data_type": str(s.type),
            "start_value": s.start,
            "min_value": s.minimum,
            "max_value": s.maximum,
            "increment_by": s.increment,
            "cycle": s.cycle,
            "cache_size": s.cache,
        }
