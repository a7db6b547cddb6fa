"""What the catalogs tell is asked of the transaction that a statement runs in."""

from __future__ import annotations

from seachange.sql.pgcatalog.facts import Facts
from seachange.sql.pgcatalog.scan import CATALOGS, KeptCatalog
from seachange.sql.port import TransactionPort


def catalog_of(port: TransactionPort) -> KeptCatalog:
    """The schema as of the statement, with the transaction's own changes."""
    session = port.session
    return CATALOGS.get(Facts(port.tables(), port.objects(), session.database, session.user, port.search_path))


class PortContext:
    """One statement's."""

    def __init__(self, port: TransactionPort) -> None:
        self.port = port
        self._kept: KeptCatalog | None = None

    @property
    def facts(self) -> Facts:
        if self._kept is None:
            self._kept = catalog_of(self.port)
        return self._kept.facts
