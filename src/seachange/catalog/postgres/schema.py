"""Creating and upgrading a PostgreSQL catalog."""

from __future__ import annotations

from importlib.resources import files

from seachange import errors
from seachange.catalog.port import FORMAT
from seachange.catalog.postgres.connections import SERVER_VERSION_MIN, Connection, describe
from seachange.runtime.faults import reach

# The sequencer lock; functions.sql takes the same one.
_LOCK = "SELECT pg_advisory_xact_lock(5873429021876)"
# Reads the table itself: to_regclass may answer with the state before the lock was granted.
_HAS_TABLES = "SELECT count(*) > 0 FROM pg_catalog.pg_namespace WHERE nspname = 'seachange'"
_FORMAT = "SELECT format FROM seachange.sequencer"
_SET_FORMAT = "UPDATE seachange.sequencer SET format = %s"
# A program that knows only the older format must not continue to write it.
_END_OLDER_NODES = "UPDATE seachange.node SET live = false WHERE format < %s"

# Migration n upgrades the tables from format n - 1 to format n; the last one is followed by the functions, of which
# there is only the newest version.
MIGRATIONS = tuple(f"tables_{number}.sql" for number in range(1, FORMAT + 1))
FUNCTIONS = "functions.sql"


def format_of(db: Connection) -> int:
    """The catalog's format, 0 before the first migration."""
    row = db.execute(_HAS_TABLES).fetchone()
    if row is None or not row[0]:
        return 0
    row = db.execute(_FORMAT).fetchone()
    return int(row[0]) if row else 0


def check_format(found: int, catalog: str) -> None:
    if found > FORMAT:
        raise errors.CatalogFormatTooNew(catalog=catalog, found=found, known=FORMAT)


def migrate(db: Connection, url: str, creates: bool = True) -> None:
    """Upgrades the catalog to this program's format, one transaction per migration."""
    if db.info.server_version < SERVER_VERSION_MIN:
        raise errors.InvalidCatalog(
            catalog=describe(url), detail=f"PostgreSQL {db.info.server_version // 10_000} is too old"
        )
    # Opening an up-to-date catalog waits for no lock.
    while _checked_format(db, url) != FORMAT:
        with db.transaction():
            db.execute(_LOCK)
            found = _checked_format(db, url)
            if found == FORMAT:
                return
            if found == 0 and not creates:
                raise errors.CatalogMissing(catalog=describe(url))
            reach("migration.started")
            run_script(db, MIGRATIONS[found])
            if found + 1 == FORMAT:
                run_script(db, FUNCTIONS)
            db.execute(_SET_FORMAT, (found + 1,))
            db.execute(_END_OLDER_NODES, (found + 1,))
            reach("migration.applied")
        reach("migration.committed")


def run_script(db: Connection, name: str) -> None:
    db.execute(files(__package__).joinpath(name).read_bytes())


def _checked_format(db: Connection, url: str) -> int:
    found = format_of(db)
    check_format(found, describe(url))
    return found
