"""Catalog functions in statements: DuckDB functions that call the engine.

As for sequences, a call carries the number of its session. Omitted arguments are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol

import duckdb
import pyarrow as pa
from sqlglot import exp

from seachange import errors
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import EnumType, View, view_of
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.sessions import SessionRequest
from seachange.sql.pgcatalog import deparse, regs
from seachange.sql.pgcatalog.builtin import PG_CATALOG, TYPE_BY_OID
from seachange.sql.pgcatalog.comments import comments, shared_comments
from seachange.sql.pgcatalog.facts import object_oid, quote_name, type_name
from seachange.sql.pgcatalog.inquiries import INQUIRIES
from seachange.sql.pgcatalog.procedures import function_arguments, function_result
from seachange.sql.pgcatalog.shared import default_acl
from seachange.sql.pgcatalog.view_text import view_definition
from seachange.sql.port.session_functions import SessionFunction, make_known, taking
from seachange.values.format_text import quote_literal
from seachange.values.types import FIRST_USER_OID, from_duckdb

# The parameter that carries the session's number to these functions.
SESSION: Final = "catalog_session"


@dataclass(frozen=True, slots=True)
class CatalogCall:
    """At least `least` arguments must be given. A NULL among them makes the result NULL."""

    arguments: tuple[str, ...]
    result: str
    run: Callable[..., Any]
    least: int


def _indexdef(context: regs.Context, oid: int, column: int | None, pretty: bool | None) -> str | None:
    found = context.facts.index_by_oid.get(oid)
    if found is None:
        return None
    table, index = found
    if column:
        return deparse.index_key_text(context.facts, table, index, column, bool(pretty))
    return deparse.index_definition(context.facts, table, index, bool(pretty))


def _constraintdef(context: regs.Context, oid: int, pretty: bool | None) -> str | None:
    found = context.facts.constraint_by_oid.get(oid)
    return None if found is None else deparse.constraint_definition(context.facts, *found, pretty=bool(pretty))


def _viewdef(context: regs.Context, view: str, pretty: bool | None) -> str | None:
    oid = regs.find_class(context, view)
    relation = context.facts.relation_by_oid.get(oid) if oid is not None else None
    if oid is None:
        raise errors.UndefinedTable(name=view)
    found = view_of(relation) if isinstance(relation, Table) else relation
    return view_definition(context.facts, found) if isinstance(found, View) else None


def _typeof(context: regs.Context, name: str) -> str:
    if name.endswith("[]"):
        return _typeof(context, name.removesuffix("[]")) + "[]"
    known = from_duckdb(_LITERALS.get(name, name))
    return _UNTYPED.get(name, name.lower()) if known is None else known.kind


# DuckDB's names of types of constants.
_LITERALS: Final = {"INTEGER_LITERAL": "INTEGER", "STRING_LITERAL": "VARCHAR"}
_UNTYPED: Final = {"NULL": "unknown", '"NULL"': "unknown"}


def _obj_description(context: regs.Context, oid: int, catalog: str | None) -> str | None:
    for owner, number, part, text in comments(context.facts):
        if number == oid and part == 0 and catalog in (None, owner):
            return text
    return None


def _shobj_description(context: regs.Context, oid: int, catalog: str) -> str | None:
    found = shared_comments(context.facts)
    return next((text for place, number, text in found if (place, number) == (catalog, oid)), None)


def _col_description(context: regs.Context, oid: int, number: int) -> str | None:
    for owner, found, part, text in comments(context.facts):
        if (owner, found, part) == ("pg_class", oid, number):
            return text
    return None


def _serial_sequence(context: regs.Context, table: str, column: str) -> str | None:
    relation = context.facts.relation_by_oid.get(regs.REGCLASS.read(context, table))
    found = relation.column_by_name.get(column) if isinstance(relation, Table) else None
    if found is None or relation is None:
        raise errors.UndefinedColumn(name=column, relation=table)
    for sequence in context.facts.sequences:
        if sequence.owner == (relation.id, found.id):
            return f"{quote_name(sequence.schema)}.{quote_name(sequence.name)}"
    return None


def _sequence_last_value(context: regs.Context, oid: int) -> int | None:
    for sequence in context.facts.sequences:
        if object_oid(sequence.id) == oid:
            state = context.port.sequences.sequence_state(sequence)
            return state.last if state.called else None
    return None


def _table_is_visible(context: regs.Context, oid: int) -> bool | None:
    relation = context.facts.relation_by_oid.get(oid)
    if relation is not None:
        return context.facts.is_visible(relation)
    owner = context.facts.index_by_oid.get(oid)
    return owner[0].schema in context.facts.path if owner is not None else None


def _type_is_visible(context: regs.Context, oid: int) -> bool | None:
    created = context.facts.by_id.get(oid - FIRST_USER_OID)
    if isinstance(created, EnumType | Table | View):
        return created.schema in context.facts.path
    return True if oid in TYPE_BY_OID else None


def _userbyid(context: regs.Context, oid: int) -> str:
    return context.facts.role_names.get(oid, f"unknown (OID={oid})")


def _default_acl(context: regs.Context, kind: str, owner: int) -> list[str]:
    return default_acl(kind, _userbyid(context, owner))


def _current_schemas(context: regs.Context, implicit: bool) -> list[str]:
    return [name for name in context.facts.path if implicit or name != PG_CATALOG]


# The session.


def _current_setting(context: regs.Context, name: str, missing_ok: bool | None) -> str | None:
    try:
        return context.port.statement.session.setting(name.lower())
    except errors.UndefinedObject:
        if missing_ok:
            return None
        raise


def _set_config(context: regs.Context, name: str, value: str | None, local: bool | None) -> str:
    return context.port.statement.session.set_setting(name.lower(), value, bool(local))


def _backend_pid(context: regs.Context) -> int:
    return context.port.statement.session.number


def _my_temp_schema(context: regs.Context) -> int:
    """0 as long as the session has no temporary relation."""
    return context.facts.namespace_oids.get(OWN_SCHEMA, 0)


def _blocking_pids(context: regs.Context, pid: int) -> list[int]:
    return list(context.port.views.blockers(pid))


def _cancel(context: regs.Context, pid: int) -> bool:
    return context.port.views.ask_session(pid, SessionRequest.CANCEL)


def _terminate(context: regs.Context, pid: int, timeout_ms: int | None) -> bool:
    return context.port.views.ask_session(pid, SessionRequest.END)


def _sleep(context: regs.Context, seconds: float) -> str:
    context.port.statement.pause(max(seconds, 0.0))
    return ""


def _size(context: regs.Context, relation: str) -> int:
    oid = regs.REGCLASS.read(context, relation)
    found = context.facts.relation_by_oid.get(oid)
    return context.port.reads.size(found).bytes if isinstance(found, Table) else 0


def _database_size(context: regs.Context, name: str) -> int:
    return sum(context.port.reads.size(table).bytes for table in context.facts.tables)


def _size_pretty(context: regs.Context, size: int) -> str:
    """
    >>> _size_pretty(None, 8192), _size_pretty(None, 16 << 10), _size_pretty(None, 30 << 20)
    ('8192 bytes', '16 kB', '30 MB')
    """
    units = ("bytes", "kB", "MB", "GB", "TB")
    number, unit = float(size), 0
    while abs(number) >= 10240 and unit + 1 < len(units):
        number, unit = number / 1024, unit + 1
    return f"{int(number + 0.5) if number >= 0 else int(number - 0.5)} {units[unit]}"


def _quote_nullable(context: regs.Context, text: str | None) -> str:
    return "NULL" if text is None else quote_literal(text)


def _encoding(context: regs.Context, number: int) -> str:
    return "UTF8" if number == 6 else ""


def _encoding_number(context: regs.Context, name: str) -> int:
    return 6 if name.upper().replace("-", "") == "UTF8" else -1


def _call(arguments: str, result: str, run: Callable[..., Any], least: int | None = None) -> CatalogCall:
    types = tuple(arguments.split())
    return CatalogCall(types, result, run, len(types) if least is None else least)


def _of_facts(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context, *arguments: run(context.facts, *arguments)


def _of_arguments(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _, *arguments: run(*arguments)


def _always(arguments: str, result: str, value: Any, least: int | None = None) -> CatalogCall:
    return _call(arguments, result, lambda *_: value, least)


# Kinds of objects that are all built in, and so always visible.
_VISIBLE: Final = """
    collation conversion function opclass operator opfamily statistics_obj ts_config ts_dict ts_parser ts_template
"""

CALLS: Final[dict[str, CatalogCall]] = {
    **{f"{name}in": _call("VARCHAR", "UINTEGER", type_.read) for name, type_ in regs.REGISTERED.items()},
    **{f"{name}out": _call("VARCHAR", "VARCHAR", type_.print) for name, type_ in regs.REGISTERED.items()},
    **{f"to_{name}": _call("VARCHAR", "UINTEGER", type_.find) for name, type_ in regs.REGISTERED.items()},
    **{f"to_{name}_name": _call("VARCHAR", "VARCHAR", type_.print_if_found) for name, type_ in regs.REGISTERED.items()},
    "pg_get_indexdef": _call("BIGINT INTEGER BOOLEAN", "VARCHAR", _indexdef, 1),
    "pg_get_constraintdef": _call("BIGINT BOOLEAN", "VARCHAR", _constraintdef, 1),
    "pg_get_viewdef": _call("VARCHAR BOOLEAN", "VARCHAR", _viewdef, 1),
    "format_type": _call("BIGINT INTEGER", "VARCHAR", _of_facts(type_name), 1),
    "pg_typeof": _call("VARCHAR", "VARCHAR", _typeof),
    "obj_description": _call("BIGINT VARCHAR", "VARCHAR", _obj_description, 1),
    "col_description": _call("BIGINT INTEGER", "VARCHAR", _col_description),
    "shobj_description": _call("BIGINT VARCHAR", "VARCHAR", _shobj_description),
    "pg_get_serial_sequence": _call("VARCHAR VARCHAR", "VARCHAR", _serial_sequence),
    "pg_sequence_last_value": _call("BIGINT", "BIGINT", _sequence_last_value),
    "pg_get_userbyid": _call("BIGINT", "VARCHAR", _userbyid),
    "pg_table_is_visible": _call("BIGINT", "BOOLEAN", _table_is_visible),
    "pg_type_is_visible": _call("BIGINT", "BOOLEAN", _type_is_visible),
    **{f"pg_{kind}_is_visible": _always("BIGINT", "BOOLEAN", True) for kind in _VISIBLE.split()},
    "acldefault": _call("VARCHAR BIGINT", "VARCHAR[]", _default_acl),
    "current_schemas": _call("BOOLEAN", "VARCHAR[]", _current_schemas),
    "current_setting": _call("VARCHAR BOOLEAN", "VARCHAR", _current_setting, 1),
    "set_config": _call("VARCHAR VARCHAR BOOLEAN", "VARCHAR", _set_config, 1),
    "pg_backend_pid": _call("", "INTEGER", _backend_pid),
    "pg_my_temp_schema": _call("", "BIGINT", _my_temp_schema),
    "pg_blocking_pids": _call("INTEGER", "INTEGER[]", _blocking_pids),
    "pg_cancel_backend": _call("INTEGER", "BOOLEAN", _cancel),
    "pg_terminate_backend": _call("INTEGER BIGINT", "BOOLEAN", _terminate, 1),
    "pg_sleep": _call("DOUBLE", "VARCHAR", _sleep),
    "pg_is_in_recovery": _always("", "BOOLEAN", False),
    "pg_encoding_to_char": _call("INTEGER", "VARCHAR", _encoding),
    "pg_char_to_encoding": _call("VARCHAR", "INTEGER", _encoding_number),
    "getdatabaseencoding": _always("", "VARCHAR", "UTF8"),
    "pg_client_encoding": _always("", "VARCHAR", "UTF8"),
    "inet_server_addr": _always("", "VARCHAR", None),
    "inet_server_port": _always("", "INTEGER", None),
    "inet_client_addr": _always("", "VARCHAR", None),
    "inet_client_port": _always("", "INTEGER", None),
    "pg_relation_size": _call("VARCHAR VARCHAR", "BIGINT", lambda c, r, f: _size(c, r), 1),
    "pg_table_size": _call("VARCHAR", "BIGINT", _size),
    "pg_total_relation_size": _call("VARCHAR", "BIGINT", _size),
    "pg_indexes_size": _always("VARCHAR", "BIGINT", 0),
    "pg_database_size": _call("VARCHAR", "BIGINT", _database_size),
    "pg_size_pretty": _call("BIGINT", "VARCHAR", _size_pretty),
    # Temporary schemas of other sessions are not listed.
    "pg_is_other_temp_schema": _always("BIGINT", "BOOLEAN", False),
    "pg_tablespace_location": _always("BIGINT", "VARCHAR", ""),
    "pg_relation_is_publishable": _always("VARCHAR", "BOOLEAN", False),
    "pg_relation_filenode": _always("VARCHAR", "BIGINT", None),
    "pg_get_triggerdef": _always("BIGINT BOOLEAN", "VARCHAR", None, 1),
    "pg_get_ruledef": _always("BIGINT BOOLEAN", "VARCHAR", None, 1),
    "pg_get_partkeydef": _always("BIGINT", "VARCHAR", None),
    "pg_get_functiondef": _always("BIGINT", "VARCHAR", None),
    "pg_get_function_result": _call("BIGINT", "VARCHAR", _of_facts(function_result)),
    "pg_get_function_arguments": _call("BIGINT", "VARCHAR", _of_facts(function_arguments)),
    "pg_get_function_identity_arguments": _call("BIGINT", "VARCHAR", _of_facts(function_arguments)),
    "pg_get_statisticsobjdef_columns": _always("BIGINT", "VARCHAR", None),
    "pg_partition_ancestors": _always("VARCHAR", "UINTEGER", None),
    "quote_ident": _call("VARCHAR", "VARCHAR", _of_arguments(quote_name)),
    "quote_literal": _call("VARCHAR", "VARCHAR", _of_arguments(quote_literal)),
    "quote_nullable": _call("VARCHAR", "VARCHAR", _quote_nullable, 0),
    **{name: _call(" ".join(["VARCHAR"] * most), "BOOLEAN", run, most - 1) for name, (run, most) in INQUIRIES.items()},
}


_ARGUMENT_TYPES: Final[dict[str, exp.DType]] = {
    "VARCHAR": exp.DType.TEXT,
    "BIGINT": exp.DType.BIGINT,
    "INTEGER": exp.DType.INT,
    "BOOLEAN": exp.DType.BOOLEAN,
    "DOUBLE": exp.DType.DOUBLE,
}


def name_catalog_calls(tree: exp.Expr) -> set[str]:
    """Replaces PostgreSQL's functions by ours; returns the parameters that they need."""
    found = [node for node in tree.find_all(exp.Anonymous) if node.name.lower() in CALLS]
    for node in reversed(found):
        name = node.name.lower()
        call = CALLS[name]
        given = [argument.copy() for argument in node.expressions]
        if not call.least <= len(given) <= len(call.arguments):
            raise errors.UndefinedFunction(detail=f"function {name} with {len(given)} arguments does not exist")
        if name == "pg_typeof":
            given = [exp.Anonymous(this="typeof", expressions=given)]
        given += [exp.null() for _ in range(len(call.arguments) - len(given))]
        typed = [exp.cast(g, _ARGUMENT_TYPES[t]) for g, t in zip(given, call.arguments, strict=True)]
        arguments = [exp.Parameter(this=exp.Var(this=SESSION)), *typed]
        node.replace(exp.Anonymous(this=own_name(name), expressions=arguments))
    return {SESSION} if found else set()


def own_name(name: str) -> str:
    return f"seachange_{name}"


class Answerer(Protocol):
    """Finds the session of a call, and records its error."""

    def __call__(self, number: int) -> tuple[regs.Context, Callable[[errors.Error], None]]: ...

    def __hash__(self) -> int: ...


def serve_catalog(cursor: duckdb.DuckDBPyConnection, answer: Answerer) -> None:
    """Registers the functions with a DuckDB, unless they already are."""
    make_known(
        cursor,
        (
            SessionFunction(own_name(name), _vectorised(call, answer), call.arguments, call.result)
            for name, call in CALLS.items()
        ),
    )


_RESULTS: Final[dict[str, pa.DataType]] = {
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "INTEGER[]": pa.list_(pa.int32()),
    "BIGINT": pa.int64(),
    "UINTEGER": pa.uint32(),
}


@cache
def _vectorised(call: CatalogCall, answer: Answerer) -> Callable[..., pa.Array]:
    def run(session: pa.Array, *given: pa.Array) -> pa.Array:
        context, fail = answer(session[0].as_py())
        known: dict[tuple[Any, ...], Any] = {}
        rows = zip(*(argument.to_pylist() for argument in given), strict=True) if given else iter([()] * len(session))
        values: list[Any] = []
        try:
            for row in rows:
                if row not in known:
                    known[row] = _run_one(call, context, row)
                values.append(known[row])
        except errors.Error as error:
            fail(error)
            raise
        return pa.array(values, _RESULTS[call.result])

    return taking(len(call.arguments), run)


def _run_one(call: CatalogCall, context: regs.Context, row: Sequence[Any]) -> Any:
    return None if None in row[: call.least] else call.run(context, *row)
