"""Catalog relations in a query: which names mean one, and their rows as Arrow tables.

They are built when a query names them, and cached until the schema changes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import pyarrow as pa

from seachange.model.jobs import ShownBuild
from seachange.model.locking import ShownLock
from seachange.model.scan import Scan
from seachange.model.schema.objects import Descriptor
from seachange.model.schema.temporary import is_temporary
from seachange.model.sessions import SessionActivity, ShownSession
from seachange.sql.pgcatalog import comments, information, procedures, relations, shared, types
from seachange.sql.pgcatalog.builtin import INFORMATION_SCHEMA, PG_CATALOG
from seachange.sql.pgcatalog.facts import Facts, object_oid
from seachange.sql.port.port import TransactionPort
from seachange.values.types import FIRST_USER_OID

Name = tuple[str, str]

# By PostgreSQL's name of a column's type: its Arrow type, and the value of a column that a row does not set.
_KEPT: Final[dict[str, tuple[pa.DataType, Any]]] = {
    "bool": (pa.bool_(), False),
    "int2": (pa.int16(), 0),
    "int4": (pa.int32(), 0),
    "int8": (pa.int64(), None),
    "cardinal_number": (pa.int32(), None),
    "oid": (pa.uint32(), 0),
    "xid": (pa.int64(), 0),
    "float4": (pa.float32(), 0.0),
    "float8": (pa.float64(), None),
    "bytea": (pa.binary(), None),
    "timestamptz": (pa.timestamp("us", "UTC"), None),
    "time_stamp": (pa.timestamp("us", "UTC"), None),
    "int2vector": (pa.list_(pa.int16()), []),
    "oidvector": (pa.list_(pa.uint32()), []),
    "int2[]": (pa.list_(pa.int16()), None),
    "oid[]": (pa.list_(pa.uint32()), None),
    "char": (pa.string(), ""),
}
# Other types: names, texts, and lists of them.
_TEXT: Final = (pa.string(), None)
_TEXTS: Final = (pa.list_(pa.string()), None)
# The modules with a function for each relation of pg_catalog.
_MODULES: Final = (comments, procedures, relations, shared, types)
_KEPT_MAX: Final = 8
SETTINGS: Final[Name] = (PG_CATALOG, "pg_settings")
LOCKS: Final[Name] = (PG_CATALOG, "pg_locks")
ACTIVITY: Final[Name] = (PG_CATALOG, "pg_stat_activity")
BUILDS: Final[Name] = (PG_CATALOG, "pg_stat_progress_create_index")
# What stands in place of the statement of a session that the role may not see.
HIDDEN: Final = "<insufficient privilege>"
STATEMENTS: Final[Name] = (PG_CATALOG, "pg_prepared_statements")


@lru_cache(maxsize=1)
def columns() -> dict[Name, dict[str, str]]:
    """The columns of each relation, by schema and name, with PostgreSQL's names of their types."""
    found: dict[Name, dict[str, str]] = {}
    text = files("seachange.sql.pgcatalog").joinpath("columns.txt").read_text()
    for line in text.splitlines():
        name, *listed = line.split()
        schema, _, relation = name.partition(".")
        found[schema, relation] = dict(column.split(":") for column in listed)
    return found


def find_relation(schema: str | None, name: str) -> Name | None:
    """An unqualified name is searched in pg_catalog first."""
    if schema is None:
        schema = PG_CATALOG if name.startswith("pg_") else ""
    if schema not in (PG_CATALOG, INFORMATION_SCHEMA):
        return None
    return (schema, name) if (schema, name) in columns() else None


@lru_cache(maxsize=1)
def builtin_rows() -> dict[Name, list[dict[str, Any]]]:
    """Rows that are the same in every database: a line for each, after the name and the columns of their relation."""
    found: dict[Name, list[dict[str, Any]]] = {}
    text = files("seachange.sql.pgcatalog").joinpath("builtin_rows.txt").read_text()
    for line in text.splitlines():
        if not line.startswith(" "):
            relation, *named = line.split()
            rows = found[PG_CATALOG, relation] = []
            typed = columns()[PG_CATALOG, relation]
        else:
            rows.append({c: _read_value(typed[c], value) for c, value in zip(named, line.split(), strict=True)})
    return found


def _read_value(type_: str, text: str) -> Any:
    kept, _ = _KEPT.get(type_, _TEXT)
    if text == "-":
        return None
    return int(text) if pa.types.is_integer(kept) else text == "t" if pa.types.is_boolean(kept) else text


def _rows(facts: Facts, name: Name) -> Iterable[dict[str, Any]]:
    """Made by the function of the relation's name."""
    modules = _MODULES if name[0] == PG_CATALOG else (information,)
    made = next((vars(module)[name[1]](facts) for module in modules if name[1] in vars(module)), None)
    return builtin_rows().get(name, ()) if made is None else made


def make_table(facts: Facts, name: Name) -> pa.Table:
    return _table(name, list(_rows(facts, name)))


def scan_settings(settings: Sequence[tuple[str, str, str]], number: int) -> Scan:
    """Settings belong to the session, so they are not cached."""
    rows = [
        {
            "name": name,
            "setting": value,
            "short_desc": text,
            "context": "user",
            "vartype": "string",
            "source": "session",
        }
        for name, value, text in settings
    ]
    return _scan_own(SETTINGS, rows, number)


def scan_statements(statements: Sequence[tuple[str, str, Sequence[str], bool]], number: int) -> Scan:
    """Prepared statements belong to the session, so they are not cached."""
    rows = [
        {"name": name, "statement": text, "parameter_types": list(types), "from_sql": from_sql}
        for name, text, types, from_sql in statements
    ]
    return _scan_own(STATEMENTS, rows, number)


def scan_locks(locks: Sequence[ShownLock], facts: Facts, number: int) -> Scan:
    """`virtualtransaction` of a session of another node begins with that node's number."""
    oids = {name: oid for oid, name, _ in facts.databases}
    rows = [
        {
            **dict.fromkeys(columns()[LOCKS]),
            "locktype": "relation",
            "database": oids.get(facts.database),
            "relation": lock.table_id + FIRST_USER_OID,
            "virtualtransaction": f"{lock.epoch}/{lock.actor}",
            "pid": lock.actor,
            "mode": lock.mode.shown_name,
            "granted": lock.granted,
            "fastpath": lock.fastpath,
        }
        for lock in locks
    ]
    return _scan_own(LOCKS, rows, number)


def scan_builds(builds: Sequence[ShownBuild], facts: Facts, number: int) -> Scan:
    """As of CREATE INDEX CONCURRENTLY: other sessions go on writing. Rows are the tuples."""
    databases = {name: oid for oid, name, _ in facts.databases}
    rows = [
        {
            **dict.fromkeys(columns()[BUILDS]),
            "pid": build.session,
            "datid": databases.get(build.database),
            "datname": build.database,
            "relid": object_oid(build.table_id),
            "index_relid": object_oid(build.index_id),
            "command": "CREATE INDEX CONCURRENTLY",
            "phase": build.phase,
            "tuples_total": build.rows_total,
            "tuples_done": build.rows_done,
        }
        for build in builds
    ]
    return _scan_own(BUILDS, rows, number)


def scan_activity(sessions: Sequence[ShownSession], facts: Facts, number: int) -> Scan:
    databases = {name: oid for oid, name, _ in facts.databases}
    roles = {name: oid for oid, name in facts.role_names.items()}
    rows = [_activity(shown, databases, roles) for shown in sessions]
    return _scan_own(ACTIVITY, rows, number)


def _activity(shown: ShownSession, databases: Mapping[str, int], roles: Mapping[str, int]) -> dict[str, Any]:
    record = shown.record
    row = {
        **dict.fromkeys(columns()[ACTIVITY]),
        "datid": databases.get(record.database),
        "datname": record.database,
        "pid": record.number,
        "usesysid": roles.get(record.role),
        "usename": record.role,
        "application_name": record.application,
    }
    if not shown.is_seen:
        return row | {"query": HIDDEN}
    waits = shown.wait_mode is not None
    is_idle = record.state is not SessionActivity.ACTIVE
    return row | {
        "client_addr": record.address or None,
        "client_port": record.port if record.address else None,
        "backend_start": _moment(record.began_us),
        "xact_start": _moment(record.transaction_us),
        "query_start": _moment(record.statement_us),
        "state_change": _moment(record.changed_us),
        "wait_event_type": "Lock" if waits else "Client" if is_idle else None,
        "wait_event": shown.wait_mode if waits else "ClientRead" if is_idle else None,
        "state": record.state.value,
        "query": record.statement,
        "backend_type": "client backend",
    }


def _moment(us: int) -> dt.datetime | None:
    return dt.datetime.fromtimestamp(us / 1_000_000, dt.UTC) if us else None


def _scan_own(name: Name, rows: list[dict[str, Any]], number: int) -> Scan:
    relation = f"catalog_{name[1]}_{number}"
    return Scan(f"SELECT * FROM {relation}", {}, {relation: _table(name, rows)}, "system catalog")  # noqa: S608


def _table(name: Name, rows: list[dict[str, Any]]) -> pa.Table:
    arrays = {}
    for column, type_ in columns()[name].items():
        kept, zero = _KEPT.get(type_, _TEXTS if type_.endswith("[]") else _TEXT)
        arrays[column] = pa.array([row.get(column, zero) for row in rows], kept)
    return pa.table(arrays)


@dataclass(slots=True)
class KeptCatalog:
    """The catalog relations of one state of the schema."""

    facts: Facts
    tables: dict[Name, pa.Table] = field(default_factory=dict)

    def table(self, name: Name) -> pa.Table:
        found = self.tables.get(name)
        if found is None:
            found = self.tables[name] = make_table(self.facts, name)
        return found

    def scan(self, name: Name, number: int) -> Scan:
        relation = f"catalog_{name[1]}_{number}"
        return Scan(f"SELECT * FROM {relation}", {}, {relation: self.table(name)}, "system catalog")  # noqa: S608


class KeptCatalogs:
    """A cache of the newest few, valid while every descriptor is the same."""

    def __init__(self) -> None:
        self._kept: tuple[KeptCatalog, ...] = ()

    def get(self, facts: Facts) -> KeptCatalog:
        for kept in self._kept:
            if _is_same(kept.facts, facts):
                return kept
        made = KeptCatalog(facts)
        # Replaced as a whole: sessions of several threads read it.
        self._kept = (made, *self._kept[: _KEPT_MAX - 1])
        return made


def _is_same(one: Facts, other: Facts) -> bool:
    if _session_of(one) != _session_of(other):
        return False
    if len(one.tables) != len(other.tables) or len(one.objects) != len(other.objects):
        return False
    pairs = (*zip(one.tables, other.tables, strict=True), *zip(one.objects, other.objects, strict=True))
    return all(a is b for a, b in pairs)


def _session_of(facts: Facts) -> tuple[object, ...]:
    return facts.database, facts.user, facts.search_path, facts.actor


CATALOGS: Final = KeptCatalogs()


def catalog_of(port: TransactionPort) -> KeptCatalog:
    """The schema as of the statement, with the transaction's own changes."""
    session = port.statement.session
    tables = tuple(table for table in port.names.tables() if _is_seen(table, port))
    objects = tuple(found for found in port.schema.objects() if _is_seen(found, port))
    return CATALOGS.get(
        Facts(tables, objects, session.database, session.user, port.statement.search_path, port.rights.actor)
    )


def _is_seen(found: Descriptor, port: TransactionPort) -> bool:
    """Temporary tables and their parts are visible only to their session."""
    schema = getattr(found, "schema", "")
    return not is_temporary(schema) or schema == port.statement.temporary_schema


class PortContext:
    """The context of one statement."""

    def __init__(self, port: TransactionPort) -> None:
        self.port = port
        self._kept: KeptCatalog | None = None

    @property
    def facts(self) -> Facts:
        if self._kept is None:
            self._kept = catalog_of(self.port)
        return self._kept.facts
