"""The parts of a transaction that not every statement needs.

**Invariant:** they keep nothing of their own: each is made when it is asked for, and again the next time.
"""

from __future__ import annotations

from typing import Final

from seachange.engine.buffer.sequence_values import SequenceValues
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.bulk.build_estimates import BuildEstimates
from seachange.engine.bulk.lost_rows import LostRows
from seachange.engine.constraints.foreign_key import ForeignKeys
from seachange.engine.constraints.row_changes import RowChanges
from seachange.engine.reads.row_reads import RowReads
from seachange.engine.reads.table_uses import TableUses
from seachange.engine.transaction.definitions import Definitions
from seachange.engine.transaction.feed_reads import FeedReads
from seachange.engine.transaction.own_rows import OwnTables
from seachange.engine.transaction.rebase import Rebase
from seachange.engine.transaction.row_writes import RowWrites
from seachange.engine.transaction.staged_change import StagedChanges
from seachange.engine.transaction.system_views import SystemViews
from seachange.engine.transaction.transaction_jobs import TransactionJobs
from seachange.engine.transaction.transaction_locks import TransactionLocks
from seachange.engine.transaction.undo import Undo


class TransactionParts:
    """`PartsPort`."""

    def __init__(
        self, state: TransactionState, uses: TableUses, reads: RowReads, foreign_keys: ForeignKeys, undo: Undo
    ) -> None:
        self._state: Final = state
        self._uses: Final = uses
        self._reads: Final = reads
        self._foreign_keys: Final = foreign_keys
        self._undo: Final = undo

    @property
    def locks(self) -> TransactionLocks:
        return TransactionLocks(self._state, self._uses)

    @property
    def sequences(self) -> SequenceValues:
        return self._state.sequences

    @property
    def definitions(self) -> Definitions:
        return Definitions(self._state, self._uses, self.locks)

    @property
    def rebase(self) -> Rebase:
        return Rebase(self._state, self._reads, self._foreign_keys, self._undo)

    @property
    def own_rows(self) -> OwnTables:
        return OwnTables(self._state, self._reads, self._foreign_keys)

    @property
    def blocks(self) -> StagedChanges:
        return StagedChanges(self._state, self.definitions, self.rebase)

    @property
    def jobs(self) -> TransactionJobs:
        return TransactionJobs(self._state)

    @property
    def lost_rows(self) -> LostRows:
        writes = RowWrites(
            self._state, self._reads, RowChanges(self._state, self._uses), self._foreign_keys, self._undo
        )
        return LostRows(self._state, self._reads, writes.insert_arrow)

    @property
    def estimates(self) -> BuildEstimates:
        return BuildEstimates(self._state, self._reads)

    @property
    def views(self) -> SystemViews:
        return SystemViews(self._state)

    @property
    def feeds(self) -> FeedReads:
        return FeedReads(self._state, self._reads)
