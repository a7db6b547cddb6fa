"""Running a statement again: when it met a row that was changed since its snapshot, or a table that it cannot be shown
there.

**Invariant:** only at READ COMMITTED, and only while nothing of the statement is in the buffer: a statement that fails
leaves none of its writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from seachange import errors
from seachange.engine.transaction.transaction import Transaction
from seachange.sql.port.result import RowSink

# Rows that were met are locked, so that a statement comes further each time, unless other nodes change them.
RERUNS_MAX = 100
_OUT_OF_RANGE = "22003"

T = TypeVar("T")


def run_current(transaction: Transaction, run: Callable[[], T], sink: RowSink | None = None) -> T:
    """Gives the statement the newest version of the rows that it writes or locks. A client that has got rows through
    `sink` gets none again."""
    for _ in range(RERUNS_MAX):
        try:
            return run()
        except errors.StatementHeld as held:
            transaction.go_back(held.seq)
        except errors.RowChanged as changed:
            if not transaction.renew_snapshot(changed.seq):
                raise
        except errors.DataError as problem:
            is_begun = sink is not None and sink.is_begun
            if problem.sqlstate != _OUT_OF_RANGE or is_begun or not transaction.shapes.widen():
                raise
    return run()


def run_held(transaction: Transaction, run: Callable[[], T]) -> T:
    """The same for work that is not run again for a row that was changed."""
    while True:
        try:
            return run()
        except errors.StatementHeld as held:
            transaction.go_back(held.seq)
