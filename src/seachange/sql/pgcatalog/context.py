"""Catalog context: the schema that the catalogs of a statement describe, read from its transaction."""

from __future__ import annotations

from seachange.model.schema.objects import Descriptor
from seachange.model.schema.temporary import is_temporary
from seachange.sql.pgcatalog.facts import Facts
from seachange.sql.pgcatalog.scan import CATALOGS, KeptCatalog
from seachange.sql.port.port import TransactionPort


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
