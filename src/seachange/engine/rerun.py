"""Running a statement again when it met a row that was changed since its snapshot.

**Invariant:** only at READ COMMITTED, and only while nothing of the statement is in the buffer: a statement that fails
leaves none of its writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from seachange import errors
from seachange.engine.transaction import Transaction

# Rows that were met are locked, so that a statement comes further each time, unless other nodes change them.
RERUNS_MAX = 100

T = TypeVar("T")


def run_current(transaction: Transaction, run: Callable[[], T]) -> T:
    """Gives the statement the newest version of the rows that it writes or locks."""
    for _ in range(RERUNS_MAX):
        try:
            return run()
        except errors.RowChanged as changed:
            if not transaction.renew_snapshot(changed.seq):
                raise
    return run()
