"""Catalog relations in a query: those of the schema, which are kept, and those about sessions, which are not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final

from seachange.model.jobs import ShownBuild
from seachange.model.locking import ShownLock
from seachange.model.scan import Scan
from seachange.model.schema.objects import Descriptor
from seachange.model.schema.temporary import is_temporary
from seachange.model.sessions import SessionActivity, ShownSession
from seachange.sql.pgcatalog.builtin import PG_CATALOG
from seachange.sql.pgcatalog.facts import Facts, object_oid
from seachange.sql.pgcatalog.kept import CATALOGS, KeptCatalog
from seachange.sql.pgcatalog.rows import Name, arrow_table, columns
from seachange.sql.port.port import TransactionPort
from seachange.values.types import FIRST_USER_OID

SETTINGS: Final[Name] = (PG_CATALOG, "pg_settings")
LOCKS: Final[Name] = (PG_CATALOG, "pg_locks")
ACTIVITY: Final[Name] = (PG_CATALOG, "pg_stat_activity")
BUILDS: Final[Name] = (PG_CATALOG, "pg_stat_progress_create_index")
# What stands in place of the statement of a session that the role may not see.
HIDDEN: Final = "<insufficient privilege>"
STATEMENTS: Final[Name] = (PG_CATALOG, "pg_prepared_statements")


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
    return Scan(f"SELECT * FROM {relation}", {}, {relation: arrow_table(name, rows)}, "system catalog")  # noqa: S608


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
