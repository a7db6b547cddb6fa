"""Files with rows, written by executors, into a table: appended, instead of its rows, or merged by a key.

**Invariant:** the rows of the files come into the table by one commit, or not at all; files that a task left behind
without reporting them are not among those that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from seachange import errors
from seachange.engine.bulk.bulk_insert import BulkInsert
from seachange.engine.dataframes.file_insert import FileInsert, RowFile
from seachange.engine.encode.write_plan import WritePlan
from seachange.engine.jobs.spark_pipeline import pipeline_settings
from seachange.engine.session.session import Session
from seachange.engine.transaction.transaction import Transaction
from seachange.model.schema.descriptor import Column, Table
from seachange.model.states import State
from seachange.pipeline.spark_backend import load_spark
from seachange.sql.copy.frame_load import FrameColumn, match_column, plan_frame
from seachange.sql.write.row_statements import (
    STAGE,
    create_stage,
    drop_stage,
    find_repeated,
    merge_stage,
    truncate_table,
)

T = TypeVar("T")
# Work that a conflict has undone is done again so many times.
_ATTEMPTS_MAX = 10
# Never Spark: the process that commits is part of a Spark application already.
_IN_PROCESS = 1 << 62


class WriteMode(StrEnum):
    APPEND = "append"
    OVERWRITE = "overwrite"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class RowFiles:
    """`is_spooled`: Spark itself has written them."""

    files: tuple[RowFile, ...]
    columns: tuple[FrameColumn, ...]
    is_spooled: bool = False
    is_case_sensitive: bool = False


def insert_files(session: Session, transaction: Transaction, table: Table, rows: RowFiles) -> int:
    """Into a table of the transaction, in this process."""
    query = plan_frame(table, rows.columns, rows.is_case_sensitive, rows.is_spooled)
    if not rows.files:
        return 0
    found = pipeline_settings(transaction.state.parts, session.settings.for_jobs())
    settings = replace(found, local_rows=_IN_PROCESS)

    def write(load: BulkInsert, plan: WritePlan) -> int:
        return FileInsert(transaction, plan, query, load_spark, settings).write(rows.files, load)

    return transaction.writes.insert_bulk(table, write, checked=True)


def in_block(session: Session, work: Callable[[], T]) -> T:
    """In one transaction, which is run again if a conflict undoes it."""
    for attempt in range(_ATTEMPTS_MAX):
        session.begin()
        try:
            found = work()
            session.commit()
            return found
        except BaseException as problem:
            session.rollback()
            is_lost = isinstance(problem, errors.SerializationFailure | errors.DeadlockDetected)
            if not is_lost or attempt == _ATTEMPTS_MAX - 1:
                raise
    raise errors.Bug(detail="a loop of attempts ended without a result")


def append_rows(session: Session, find: Callable[[Transaction], Table], rows: RowFiles) -> int:
    """In a block, like the others."""

    def insert(transaction: Transaction) -> int:
        table = find(transaction)
        transaction.state.rights.check_access(table, "INSERT")
        return insert_files(session, transaction, table, rows)

    return session.in_transaction(insert)


def overwrite_rows(session: Session, find: Callable[[Transaction], Table], rows: RowFiles) -> int:
    """In a block: TRUNCATE, which also checks what refers to the rows."""
    table = session.in_transaction(find)
    session.execute(truncate_table(table))
    return append_rows(session, find, rows)


def merge_rows(session: Session, find: Callable[[Transaction], Table], rows: RowFiles, keys: Sequence[str]) -> int:
    """In a block. The rows go through a table that it creates and drops."""
    table = session.in_transaction(find)
    given = tuple(match_column(table, column.name, rows.is_case_sensitive) for column in rows.columns)
    chosen = check_keys(table, given, keys, rows.is_case_sensitive)
    session.execute(create_stage(table, given))

    def fill(transaction: Transaction) -> int:
        return insert_files(session, transaction, transaction.port.names.table(None, STAGE), rows)

    count = session.in_transaction(fill)
    repeated = session.execute(find_repeated(chosen)).rows
    if repeated:
        # Not by a statement, so the transaction goes on if it is the program's.
        session.execute(drop_stage())
        shown = ", ".join(f"{key.name}={value}" for key, value in zip(chosen, repeated[0], strict=True))
        raise errors.CardinalityViolation(detail=f"several rows to merge have the key {shown}")
    session.execute(merge_stage(table, given, chosen))
    session.execute(drop_stage())
    return count


def check_keys(
    table: Table, given: Sequence[Column], keys: Sequence[str], is_case_sensitive: bool = False
) -> tuple[Column, ...]:
    """The key of a merge is one of the table, so that no two writers insert the same row; its columns are given."""
    chosen = tuple(match_column(table, name, is_case_sensitive) for name in keys)
    missing = next((key for key in chosen if key not in given), None)
    if missing is not None:
        raise errors.InvalidColumnReference(detail=f'the rows have no column "{missing.name}", which is a merge key')
    named = {key.id for key in chosen}
    unique = [i.key for i in table.indexes if i.unique and i.where is None and i.state is State.PUBLIC]
    if not any(set(key) == named for key in (table.primary.key, *unique)):
        listed = ", ".join(key.name for key in chosen)
        raise errors.InvalidColumnReference(
            detail=f'table "{table.name}" has no primary key or unique index of the merge keys ({listed})'
        )
    return chosen
