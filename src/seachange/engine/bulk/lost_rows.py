"""Rows that a TRUNCATE has taken away, written again by the transaction that reverts it.

**Invariant:** a row that has been written since under the same primary key stays as it is. All constraints of now are
checked, as for any rows that are inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.reads.row_reads import RowReads
from seachange.model.ids import Seq
from seachange.model.schema.descriptor import Column, Table
from seachange.pipeline.kernels.source import Sources
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.stream import BATCH_ROWS, ArrowStream, default_text, stored_text
from seachange.storage.arrow import arrow_type, column_name
from seachange.storage.plan import quote


@dataclass(frozen=True, slots=True)
class LostRows:
    """`insert` writes rows as an INSERT does."""

    state: TransactionState
    reads: RowReads
    insert: Callable[[Table, pa.RecordBatchReader], int]

    def write_again(self, table: Table, as_of: Seq) -> int:
        """The rows of the table as of a sequence; gives their number."""
        state, interrupts = self.state, self.state.client.interrupts
        sources = Sources(state.parts.catalog, state.epoch.epoch, state.parts.warehouse, as_of)
        ticket = state.epoch.registry.enter_below(as_of)
        try:
            then = sources.tables()[table.id]
            source = sources.load(then, then.primary)
            key = [] if table.column_by_id[table.primary.key[0]].is_row_id else list(table.primary.key)
            known = [c for c in table.visible_columns if c.id in then.column_by_id]
            read = [then.column_by_id[c] for c in dict.fromkeys((*(c.id for c in known), *key))]
            past = source.scan(read, source.parts, state.parts.warehouse, "lost")
            now = self.reads.scan(table, hidden=True)
            sql = f"SELECT o.* FROM ({past.sql}) o"  # noqa: S608 - named by id
            if key:
                same = " AND ".join(f"o.{column_name(c)} = r.{quote(table.label(table.column_by_id[c]))}" for c in key)
                sql = f"{sql} ANTI JOIN ({now.sql}) r ON {same}"
            query = DuckQuery(
                f"SELECT {', '.join(_shown(table.visible_columns, then))} FROM ({sql})",  # noqa: S608 - named by id
                {**past.parameters, **now.parameters},
                {**past.relations, **now.relations},
            )
            schema = pa.schema([pa.field(column_name(c.id), arrow_type(c.type)) for c in table.visible_columns])
            with (
                closing(DuckSession(state.parts.duck.cursor(), {})) as session,
                interrupts.reaching(session),
                session.batches(query, BATCH_ROWS) as reader,
            ):
                stream = ArrowStream(reader, schema, [c.type for c in table.visible_columns])
                return stream.pass_to(lambda rows: self.insert(table, rows))
        finally:
            state.epoch.registry.leave(ticket)


def _shown(columns: Sequence[Column], then: Table) -> list[str]:
    """A column that came since has its default."""
    return [stored_text(c, column_name(c.id)) if c.id in then.column_by_id else default_text(c) for c in columns]
