"""Utility statements: maintenance, LOCK TABLE, extensions, and aliases for queries of the schema `seachange`.

ANALYZE, REINDEX, CHECKPOINT and UNLISTEN are accepted, so that scripts run unchanged, and do nothing: statistics are
stored with the files, compaction removes deleted entries, every commit is durable, and there is no LISTEN / NOTIFY.
"""

from __future__ import annotations

from sqlglot import exp

from seachange import errors
from seachange.model.locking import TableLock
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.statements import AcceptExtension, LockTables, NeedlessStatement, Vacuum
from seachange.sql.ddl.object import take_cascade
from seachange.sql.text.names import read_list, read_relation, read_relations
from seachange.sql.text.tokens import Reader

_REINDEXED: dict[str, ObjectKind] = {
    "index": ObjectKind.INDEX,
    "table": ObjectKind.TABLE,
    "schema": ObjectKind.SCHEMA,
    "database": ObjectKind.DATABASE,
    "system": ObjectKind.DATABASE,
}
# The longest names first, since three modes begin with SHARE.
_MODES = sorted(TableLock, key=lambda mode: -len(mode.sql_name.split()))
# Statistics are stored with the files and old versions need no freezing, so only FULL has an effect.
_EFFECTIVE = "full"
_OPTIONS = (_EFFECTIVE, "freeze", "verbose", "analyze")
_ON = ("true", "on")
_OFF = ("false", "off")
_VERBS = ("pause", "resume", "cancel", "publish")
# The functions that applications use of these are built in: gen_random_uuid, uuid_generate_v4.
BUILT_IN = frozenset({"plpgsql", "pgcrypto", "uuid-ossp"})


def read_analyze(reader: Reader) -> NeedlessStatement:
    _skip_options(reader)
    reader.take("verbose")
    return NeedlessStatement("ANALYZE", read=() if reader.at_end else read_list(reader, _read_table))


def read_reindex(reader: Reader) -> NeedlessStatement:
    concurrently = "concurrently" in _skip_options(reader).lower()
    word = reader.take_any(*_REINDEXED)
    if word is None:
        raise reader.problem()
    concurrently = reader.take("concurrently") or concurrently
    name = None if reader.at_end else read_relation(reader)
    several = f"REINDEX {word.upper()}" if word not in ("index", "table") else None
    outside_blocks = "REINDEX CONCURRENTLY" if concurrently else several
    return NeedlessStatement("REINDEX", _REINDEXED[word], name, outside_blocks=outside_blocks)


def read_checkpoint(reader: Reader) -> NeedlessStatement:
    return NeedlessStatement("CHECKPOINT", for_superusers=True)


def read_unlisten(reader: Reader) -> NeedlessStatement:
    if not reader.take_symbol("*"):
        reader.name()
    return NeedlessStatement("UNLISTEN")


def _skip_options(reader: Reader) -> str:
    return reader.parenthesized() if reader.at_symbol("(") else ""


def _read_table(reader: Reader) -> RelationName:
    name = read_relation(reader)
    if reader.at_symbol("("):
        reader.names()
    return name


def read_lock(reader: Reader) -> LockTables:
    reader.take("table")
    relations = read_list(reader, _read_locked)
    mode = TableLock.ACCESS_EXCLUSIVE
    if reader.take("in"):
        mode = _read_mode(reader)
    return LockTables(relations, mode, reader.take("nowait"))


def _read_locked(reader: Reader) -> RelationName:
    """ONLY and * concern table inheritance, which does not exist here."""
    reader.take("only")
    name = read_relation(reader)
    reader.take_symbol("*")
    return name


def _read_mode(reader: Reader) -> TableLock:
    for mode in _MODES:
        if reader.take(*mode.sql_name.lower().split(), "mode"):
            return mode
    raise reader.problem()


def read_vacuum(reader: Reader) -> Vacuum:
    if reader.take_symbol("("):
        options = read_list(reader, _read_option)
        reader.expect_symbol(")")
    else:
        # The old syntax, with the options in this order.
        options = tuple((name, True) for name in _OPTIONS if reader.take(name))
    tables = () if reader.at_end else read_relations(reader)
    return Vacuum(tables, (_EFFECTIVE, True) in options)


def _read_option(reader: Reader) -> tuple[str, bool]:
    name = reader.take_any(*_OPTIONS)
    if name is None:
        raise errors.FeatureNotSupported(
            feature=f"option {reader.name().upper()} of VACUUM",
            instead="FULL is supported; VERBOSE and ANALYZE are accepted and ignored.",
        )
    is_off = reader.take_any(*_OFF) is not None
    if not is_off:
        reader.take_any(*_ON)
    return name, not is_off


def read_alias(reader: Reader) -> str | None:
    """The query that the alias stands for; None if it is another statement."""
    if reader.take("show", "jobs"):
        return _query("jobs", order="id")
    if reader.take("show", "job"):
        return _query("jobs", ("id", exp.Literal.number(reader.integer())))
    if reader.take("show", "leases"):
        return _query("leases", order="node")
    if reader.take("show", "layouts", "from"):
        table = read_relation(reader)
        schema = ("table_schema", exp.Literal.string(table.schema or "public"))
        return _query("layouts", schema, ("table_name", exp.Literal.string(table.name)), order="layout_id")
    if reader.take("show", "shapes"):
        return _query("shapes", order="name")
    for verb in _VERBS:
        if reader.take(verb, "job"):
            call = exp.Anonymous(this=f"{verb}_job", expressions=[exp.Literal.number(reader.integer())])
            return exp.select(exp.Dot(this=exp.to_identifier("seachange"), expression=call)).sql("postgres")
    return None


def _query(view: str, *conditions: tuple[str, exp.Expr], order: str | None = None) -> str:
    query = exp.select("*").from_(exp.to_table(f"seachange.{view}"))
    for column, value in conditions:
        query = query.where(exp.column(column).eq(value))
    return (query.order_by(order) if order is not None else query).sql("postgres")


# CREATE EXTENSION: accepted for extensions whose functions are built in, rejected for others.
def read_create_extension(reader: Reader) -> AcceptExtension:
    reader.take("if", "not", "exists")
    name = _read_name(reader)
    reader.take("with")
    while (option := reader.take_any("schema", "version", "cascade")) is not None:
        if option != "cascade":
            reader.next()
    return AcceptExtension("CREATE EXTENSION", name)


def read_drop_extension(reader: Reader) -> AcceptExtension:
    reader.take("if", "exists")
    names = read_list(reader, _read_name)
    take_cascade(reader)
    return AcceptExtension("DROP EXTENSION", names[0])


def read_comment_extension(reader: Reader) -> AcceptExtension:
    name = _read_name(reader)
    reader.expect("is")
    if not reader.take("null"):
        reader.string()
    return AcceptExtension("COMMENT", name)


def _read_name(reader: Reader) -> str:
    name = reader.name()
    if name not in BUILT_IN:
        raise errors.FeatureNotSupported(
            feature=f"extension {name}",
            instead=f"The functions of {', '.join(sorted(BUILT_IN))} are built in; omit other extensions.",
        )
    return name
