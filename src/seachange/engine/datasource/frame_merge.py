"""Merging a DataFrame into a table by a key: the rows are spooled once, then merged in the transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from seachange.engine.dataframes.dataframe_write import spooled_frame
from seachange.engine.datasource.row_files import RowFiles, in_block, merge_rows
from seachange.engine.session.session import Session
from seachange.engine.session.session_state import TransactionStatus
from seachange.engine.transaction.transaction import Transaction
from seachange.model.schema.descriptor import Table

# PySpark is optional, so its types cannot be imported.
DataFrame = Any


def merge_dataframe(
    session: Session, find: Callable[[Transaction], Table], frame: DataFrame, keys: Sequence[str]
) -> int:
    """In the open transaction, or in one of its own, which is repeated after a conflict."""
    with spooled_frame(session.node.parts, session.node.epoch.epoch, session.client.interrupts, frame) as spooled:
        rows = RowFiles(spooled.files, spooled.columns, is_spooled=True, is_case_sensitive=spooled.is_case_sensitive)
        merge = partial(merge_rows, session, find, rows, keys)
        return in_block(session, merge) if session.status is TransactionStatus.IDLE else merge()
