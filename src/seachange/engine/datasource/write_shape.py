"""What a write by Spark was planned for: a table and its columns by their ids, so that DDL meanwhile does not stop it.

**Invariant:** a column that was renamed or widened since is still written; values for one that was dropped are left
out; where another one has taken its name, as after a conversion, that is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from seachange import errors
from seachange.engine.datasource.row_files import check_keys
from seachange.engine.session.session import Session
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId, TableId
from seachange.model.schema.descriptor import Column, Table
from seachange.sql.copy.frame_load import FrameColumn, match_column, plan_frame
from seachange.sql.parsing.call_statement import parse_relation

NOT_KNOWN: Mapping[str, ColumnId] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WriteShape:
    """`columns` are those of the rows, with the ids of the table's."""

    table_id: TableId
    name: str
    columns: tuple[tuple[FrameColumn, ColumnId], ...]
    keys: tuple[ColumnId, ...] = ()

    def find(self, transaction: Transaction) -> Table:
        found = transaction.schema.table_by_id(self.table_id)
        if found is None:
            raise errors.UndefinedTable(name=self.name)
        return found

    def columns_of(self, table: Table) -> tuple[FrameColumn, ...]:
        """The columns of the rows under the names of now, without those whose columns have gone."""
        known = [(given, self._column(table, id_, given.name)) for given, id_ in self.columns]
        return tuple(
            replace(given, name=column.name, source=given.source or given.name)
            for given, column in known
            if column is not None
        )

    def keys_of(self, table: Table) -> tuple[str, ...]:
        names = {id_: given.name for given, id_ in self.columns}
        found = []
        for id_ in self.keys:
            column = self._column(table, id_, names.get(id_, ""))
            if column is None:
                raise errors.UndefinedColumn(name=names.get(id_, str(id_)), relation=table.name)
            found.append(column.name)
        return tuple(found)

    @staticmethod
    def _column(table: Table, id_: ColumnId, name: str) -> Column | None:
        found = table.column_by_id.get(id_)
        if found is not None and found in table.visible_columns:
            return found
        return next((column for column in table.visible_columns if column.name == name), None)


def plan_write(
    session: Session,
    name: str,
    given: Sequence[FrameColumn],
    keys: Sequence[str],
    known: Mapping[str, ColumnId] = NOT_KNOWN,
) -> WriteShape:
    """Checks what does not depend on rows: the table, the columns and their types, the key. `known` are the columns
    that the names meant when the writer last wrote."""
    relation = parse_relation(name)

    def plan(transaction: Transaction) -> WriteShape:
        table = transaction.schema.table(relation.schema, relation.name)
        transaction.state.rights.check_access(table, "INSERT")
        pairs = tuple((each, column.id) for each, column in _match(table, given, known))
        meant = {each.name: id_ for each, id_ in pairs}
        chosen = tuple(meant.get(key) or match_column(table, key, is_case_sensitive=False).id for key in keys)
        shape = WriteShape(table.id, table.full_name, pairs, chosen)
        columns = shape.columns_of(table)
        plan_frame(table, columns, is_case_sensitive=False, is_spooled=False)
        if keys:
            check_keys(table, [table.column_by_name[each.name] for each in columns], shape.keys_of(table))
        return shape

    return session.in_transaction(plan)


def _match(
    table: Table, given: Sequence[FrameColumn], known: Mapping[str, ColumnId]
) -> Iterator[tuple[FrameColumn, Column]]:
    """A column that was renamed since is found by its id, unless its new name is given too. One that was dropped since
    is left out."""
    visible = {column.id: column for column in table.visible_columns}
    names = {each.name for each in given}
    for each in given:
        column = visible.get(known[each.name]) if each.name in known else None
        if column is not None and (column.name == each.name or column.name not in names):
            yield each, column
        elif each.name not in known or each.name in table.column_by_name:
            yield each, match_column(table, each.name, is_case_sensitive=False)
