"""Estimates of what indexes will take, by a sample of the rows that the transaction sees.

**Invariant:** a statement does not fail because nothing can be estimated, unless it is interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seachange import errors
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.bulk.local_pipeline import local_pipeline
from seachange.engine.reads.row_reads import RowReads
from seachange.model.change.ops import BackfillIndexes
from seachange.model.ids import IndexId
from seachange.model.schema.descriptor import Table
from seachange.model.states import State
from seachange.pipeline.kernels.source import NOT_ATTACHED, IndexSource
from seachange.pipeline.local_kernels import built_indexes

_INTERRUPTED = "57"


@dataclass(frozen=True, slots=True)
class BuildEstimates:
    """`EstimatePort`."""

    state: TransactionState
    reads: RowReads

    def entry_bytes(self, table: Table, op: BackfillIndexes) -> Mapping[IndexId, int]:
        now = self.state.epoch.schemas.newest.by_id.get(table.id)
        # In a block, layouts may have been published since that its version of the table does not know.
        if now is None or not now.layout_by_id.keys() <= table.layout_by_id.keys():
            return {}
        # Rows are read from the index that has them now, even if another is to be built from one that is built before.
        source = IndexSource(_as_planned(table, now), now.primary, NOT_ATTACHED, self.reads.all_parts(now))
        pipeline = local_pipeline(self.state.parts, self.state.epoch, self.state.client.interrupts)
        try:
            with self.state.snapshot.reading():
                return pipeline.estimate(source, built_indexes(table, op))
        except errors.Error as problem:
            if problem.sqlstate.startswith(_INTERRUPTED):
                raise
            return {}


def _as_planned(table: Table, now: Table) -> Table:
    """Columns that a change before this one is to bring have no values yet, though they are planned as if."""
    known = now.column_by_id
    return replace(
        table, columns=tuple(c if c.id in known else replace(c, state=State.WRITE_ONLY) for c in table.columns)
    )
