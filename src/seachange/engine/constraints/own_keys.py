"""The unique keys of rows that a transaction has written to an index which its own COMMIT makes unique.

Other sessions neither wait for such a key nor look for it. So a commit of theirs that has written one since it was
looked up is no conflict as such: the index is looked at again, as of the head.

**Invariant:** when `check_free` returns, no committed row but those that the transaction has changed or deleted has the
key; whatever is committed later is found by the hash of the key, under the sequencer lock.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from seachange import errors
from seachange.engine.buffer.row_writer import duplicate_key
from seachange.engine.buffer.staged import is_hidden
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.encode.write_plan import EntryPlan
from seachange.model.ids import Seq
from seachange.model.log import RecordedViolation
from seachange.model.schema.descriptor import Table
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.storage.arrow import column_name
from seachange.storage.image import SnapshotParts
from seachange.storage.keys import Key
from seachange.storage.plan import Overlay, plan_scan


def check_free(txn: TransactionState, plan: EntryPlan, key: Key | None) -> None:
    """`key`: one that another commit has written, too; None if it is one of those in the files of a bulk write."""
    table, at = txn.schema.table_by_id(plan.table_id), txn.epoch.catch_up()
    if table is None:
        return
    taken = _first_taken(txn, table, plan, at) if key is None else key if _is_taken(txn, table, plan, key, at) else None
    if taken is not None:
        raise violated_concurrently(plan.index.name, duplicate_key(table, plan, taken))


def violated_concurrently(
    constraint: str, problem: errors.Error, recorded: RecordedViolation | None = None
) -> errors.SerializationFailure:
    """The failure of a transaction that adds a constraint, whose own rows and those of others violate it together.
    `recorded` is the first of the violations among which the problem was found: it may be another one."""
    detail = f'constraint "{constraint}" is violated by a row of a concurrent transaction: {problem}'
    if recorded is not None:
        text = "" if recorded.violation.text == str(problem) else f"; first recorded: {recorded.violation.text}"
        detail += f"{text} ({recorded.violation.session}, commit {recorded.seq})"
    return errors.SerializationFailure(detail=detail)


def _is_taken(txn: TransactionState, table: Table, plan: EntryPlan, key: Key, at: Seq) -> bool:
    buffer = txn.buffer.of(plan)
    found = (entry.row for entry in txn.epoch.image(table, plan.index, at).find_unique(key, at))
    return any(
        plan.codec.encode(row[: plan.key_width]) not in buffer.entries
        and not is_hidden(txn.parts.warehouse, buffer, row)
        for row in found
    )


def _first_taken(txn: TransactionState, table: Table, plan: EntryPlan, at: Seq) -> Key | None:
    """One join for all keys in files."""
    own = txn.buffer.of(plan).overlay()
    # Columns are named by id: a column that will replace another has the same name, and entries may contain both.
    columns = [replace(table.column_by_id[c], name=column_name(c)) for c, _ in plan.columns[: plan.unique_width]]
    warehouse, nothing = txn.parts.warehouse, Overlay()
    mine = plan_scan(table, plan.index, columns, SnapshotParts(own.files, ()), nothing, warehouse, "own")
    others = Overlay(hidden_keys=own.hidden_keys, hiding=own.hiding)
    parts = txn.epoch.image(table, plan.index, at).parts(at)
    rest = plan_scan(table, plan.index, columns, parts, others, warehouse, "existing")
    equals = "=" if plan.index.nulls_distinct else "IS NOT DISTINCT FROM"
    same = " AND ".join(f"m.{c.name} {equals} e.{c.name}" for c in columns)
    sql = f"SELECT m.* FROM ({mine.sql}) m SEMI JOIN ({rest.sql}) e ON {same} LIMIT 1"  # noqa: S608 - named by id
    query = DuckQuery(sql, {**mine.parameters, **rest.parameters}, {**mine.relations, **rest.relations})
    with closing(DuckSession(txn.parts.duck.cursor(), {})) as session, txn.client.interrupts.reaching(session):
        hits = session.rows(query).rows
    return hits[0] if hits else None
