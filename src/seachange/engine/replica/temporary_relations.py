"""The temporary tables and views of sessions, and the statements that drop them."""

from __future__ import annotations

from seachange.engine.replica.schema_history import SchemaVersion
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import View
from seachange.model.schema.temporary import is_temporary
from seachange.storage.plan import quote


def temporary_relations(schema: SchemaVersion) -> list[Table | View]:
    """Views first: the tables of others may wait for them."""
    views = [found for found in schema.objects.values() if isinstance(found, View) and is_temporary(found.schema)]
    return [*views, *(table for table in schema.by_id.values() if is_temporary(table.schema))]


def drop_text(schema: str, relation: Table | View) -> str:
    """With what depends on it; it may have gone with another."""
    kind = "view" if isinstance(relation, View) else "table"
    return f"drop {kind} if exists {quote(schema)}.{quote(relation.name)} cascade"
