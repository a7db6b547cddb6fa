"""EXPLAIN of DML: where the rows come from, and which constraints are checked."""

from __future__ import annotations

from collections.abc import Iterator

from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Table
from seachange.model.states import REFUSING
from seachange.sql.compile.target import is_required
from seachange.sql.port.port import TransactionPort
from seachange.sql.query.plan import ChangeSource


def rows_in_words(source: ChangeSource) -> str:
    if source.given:
        how = "with values computed by DuckDB" if source.template is not None else "without DuckDB"
        return f"{source.given} row{'s' if source.given > 1 else ''} of VALUES, {how}"
    return "rows of a query" if source.template is not None else "one row by primary key, without DuckDB"


def constraint_lines(source: ChangeSource, port: TransactionPort) -> Iterator[str]:
    """In the order in which they are checked."""
    table = source.table
    is_insert, is_delete = source.verb == "Insert", source.verb == "Delete"
    changed = {c.id for c in table.columns if is_insert or c in (source.assigned or ())}
    required = [c.name for c in table.columns if is_required(c) and c.id in changed]
    if required:
        yield f"Checks NOT NULL: {', '.join(required)}"
    if not is_delete:
        yield from (f"Checks {check.name}: CHECK" for check in table.checks if check.state in REFUSING)
    for index in table.indexes:
        hidden = any(table.column_by_id[c].hidden for c in index.key)
        if index.unique and index.state in REFUSING and not hidden and not changed.isdisjoint(index.key):
            conflict = ", decides ON CONFLICT" if index.name in source.conflicts else ""
            yield f"Checks {index.name}: unique ({_names(table, index.key)}){conflict}"
    for key in table.foreign_keys:
        if key.state in REFUSING and not changed.isdisjoint(key.columns):
            when = ", at COMMIT" if key.initially_deferred else ""
            yield f"Checks {key.name}: foreign key ({_names(table, key.columns)}){when}"
    for child, key in port.references_to(table):
        referred = table.index_by_id[key.parent_index].key
        if key.state in REFUSING and (is_delete or (not is_insert and not changed.isdisjoint(referred))):
            event, action = ("DELETE", key.on_delete) if is_delete else ("UPDATE", key.on_update)
            yield f"Looks at {child.name} for {key.name}: ON {event} {action.value}"


def _names(table: Table, columns: tuple[ColumnId, ...]) -> str:
    return ", ".join(table.column_by_id[c].name for c in columns)
