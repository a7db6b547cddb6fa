"""Rows of a snapshot in a shape that a block has given to their table since. Above READ COMMITTED, a change that
rewrites rows keeps the snapshot.

The new primary index, which child transactions build and other sessions maintain, has committed rows as of a later
commit. So the block writes one more, as of its snapshot and for itself alone, by the same kernels; it is read in place
of the other one, under the rows of the block, and goes with the transaction.

**Invariant:** a row that the block reads in the new shape is the row of its snapshot, with the values that the change
computes for it; one that the block has written before is not in the copy. Where a row of the snapshot has no such value
or key, the statement fails before anything is published. Values that are drawn are those that the row of the same key
has got in the new primary index, so the copy is made after that.

**Invariant:** what others have changed between the snapshot and the new primary index conflicts with what the block
writes to these rows, or relies on, though no commit of theirs names a key of the new index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seachange import errors
from seachange.engine.buffer.block_changes import PastRows
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.bulk.local_pipeline import local_pipeline
from seachange.model.change.work import Built
from seachange.model.ids import ColumnId, IndexId, Seq
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.segments import Generation, GenerationMember, IndexContents
from seachange.pipeline.kernels.overlay import OwnWrites, keys_written
from seachange.pipeline.kernels.rebuild import ResolveDefault, draw_nothing, draws_values, keep_default
from seachange.pipeline.kernels.runs import BuiltIndex
from seachange.pipeline.kernels.source import NOT_ATTACHED, IndexSource, LaterValues, open_image
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.storage.arrow import column_name
from seachange.storage.image import IndexImage
from seachange.storage.keys import Hashes, entry_hashes, unique_hashes
from seachange.storage.plan import Overlay, plan_scan

_NO_HASHES: Hashes = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class RowsToCopy:
    """The rows of a table as of the snapshot, in the shape before the change; `table` is the version after it, of which
    some columns have `drawn` values."""

    table: Table
    source: IndexSource
    drawn: frozenset[ColumnId]


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """The rows of a table as of the snapshot, in files that have the columns of the new version."""

    table: Table
    built: Built


def rows_to_copy(
    txn: TransactionState, versions: Sequence[Descriptor | None], own: Mapping[IndexId, OwnWrites]
) -> RowsToCopy | None:
    """None if the change leaves the rows where they are."""
    before, after = versions[0], versions[-1]
    if not isinstance(before, Table) or not isinstance(after, Table) or before.primary.id == after.primary.id:
        return None
    table, at = _rewritten(versions, after), txn.snapshot.seq
    drawn = frozenset(c.id for c in table.columns if c.id not in before.column_by_id and draws_values(c))
    if drawn and before.primary.key != after.primary.key:
        raise errors.FeatureNotSupported(
            feature=f"a change that draws values for the rows of {before.name} and gives them another key, in a "
            f"{txn.isolation.value} transaction that has taken its snapshot,",
            instead="Draw the values by a statement of its own, or use READ COMMITTED.",
        )
    parts = txn.block.image(table, table.primary, at).parts(at)
    written = own.get(table.primary.id)
    hidden = keys_written(table, written) if written is not None else None
    return RowsToCopy(after, IndexSource(table, table.primary, NOT_ATTACHED, parts, hidden), drawn)


def copy_rows(txn: TransactionState, rows: RowsToCopy, resolve_default: ResolveDefault = keep_default) -> CopiedRows:
    pipeline = local_pipeline(txn.parts, txn.epoch, txn.client.interrupts)
    target = BuiltIndex(rows.table, rows.table.primary)
    built = pipeline.copy(rows.source, target, txn.snapshot.seq, resolve_default)
    txn.block.copied += [member.segment.id for member in built.members]
    copied = CopiedRows(rows.table, built)
    _check_keys(txn, copied)
    return copied


def copy_drawn(txn: TransactionState, rows: RowsToCopy, now: Table, since: Seq) -> CopiedRows:
    """With the values that rows of the same key have by now, in the version that is planned with. A row that has gone
    since gets values that no other session will see."""
    parts = txn.epoch.image(now, now.primary, since).parts(since)
    drawn = LaterValues(IndexSource(now, now.primary, NOT_ATTACHED, parts), rows.drawn)
    source, key, warehouse = rows.source, now.primary.key, txn.parts.warehouse
    then = source.scan([source.table.column_by_id[c] for c in key], source.parts, warehouse, "then")
    still = drawn.scan(key, warehouse, "still")
    same = " AND ".join(f"a.{column_name(c)} = b.{column_name(c)}" for c in key)
    sql = f"SELECT 1 FROM ({then.sql}) a ANTI JOIN ({still.sql}) b ON {same} LIMIT 1"  # noqa: S608 - named by id
    query = DuckQuery(sql, {**then.parameters, **still.parameters}, {**then.relations, **still.relations})
    pipeline = local_pipeline(txn.parts, txn.epoch, txn.client.interrupts)
    # A sequence is not moved on for nothing.
    resolve_default = pipeline.resolve_default if _ask(txn, query) else draw_nothing
    return copy_rows(txn, replace(rows, source=replace(source, drawn=drawn)), resolve_default)


def _rewritten(versions: Sequence[Descriptor | None], after: Table) -> Table:
    """The version with both primary indexes, and the way in which values are computed."""
    for table in reversed(versions):
        if isinstance(table, Table) and any(index.id == after.primary.id for index in table.coming):
            return table
    raise errors.Bug(detail=f"the rows of {after.name} are rewritten in no version")


def _check_keys(txn: TransactionState, copied: CopiedRows) -> None:
    """A row that others have given a key since."""
    table = copied.table
    image = _open(txn, table, copied.built)
    columns = [replace(table.column_by_id[c], name=column_name(c)) for c in table.primary.key]
    scan = plan_scan(
        table, table.primary, columns, image.parts(txn.snapshot.seq), Overlay(), txn.parts.warehouse, "copy"
    )
    for column in columns:
        sql = f"SELECT 1 FROM ({scan.sql}) WHERE {column.name} IS NULL LIMIT 1"  # noqa: S608 - named by id
        if _ask(txn, DuckQuery(sql, scan.parameters, scan.relations)):
            raise errors.NotNullViolation(column=table.column_by_id[column.id].name, relation=table.name)


def show_copy(txn: TransactionState, copied: CopiedRows, table: Table, since: Seq) -> None:
    """From now on the block reads the copy; `table` is the version that it plans with."""
    image = _open(txn, table, copied.built)
    txn.block.show_past(table.primary.id, PastRows(image, since, _NO_HASHES))


def note_changed(txn: TransactionState, table: Table) -> None:
    """Finds what others have changed since the snapshot. What the block has written before it conflicts by the keys
    that they know."""
    index_id = table.primary.id
    past = txn.block.state.past[index_id]
    plan = txn.parts.write_plan(table).primary
    found = _changed_keys(txn, table, past)
    encoded = [plan.codec.encode(key) for key, _ in found]
    moved = [code for code, (_, is_moved) in zip(encoded, found, strict=True) if is_moved]
    hashes = np.concatenate([entry_hashes(index_id, encoded), unique_hashes(index_id, moved)])
    txn.block.show_past(index_id, replace(past, changed=hashes))


def _changed_keys(txn: TransactionState, table: Table, past: PastRows) -> list[tuple[tuple[object, ...], bool]]:
    """The keys, each with whether a row has come or gone."""
    index, warehouse = table.primary, txn.parts.warehouse
    own = txn.buffer.indexes.get(index.id)
    overlay = own.overlay() if own is not None else Overlay()
    hides = Overlay(hidden_keys=overlay.hidden_keys, hiding=overlay.hiding)
    columns = [replace(c, name=column_name(c.id)) for c in table.columns if not c.virtual]
    images = ((past.image, txn.snapshot.seq, "old"), (txn.epoch.image(table, index, past.since), past.since, "new"))
    then, now = (
        plan_scan(table, index, columns, image.parts(at), hides, warehouse, name) for image, at, name in images
    )
    key = [column_name(c) for c in index.key]
    same = " AND ".join(f"a.{name} = b.{name}" for name in key)
    is_moved = f"a.{key[0]} IS NULL OR b.{key[0]} IS NULL"
    is_other = " OR ".join([is_moved, *(f"a.{c.name} IS DISTINCT FROM b.{c.name}" for c in columns)])
    names = ", ".join(f"coalesce(a.{name}, b.{name})" for name in key)
    sql = (
        f"SELECT {names}, {is_moved} FROM ({then.sql}) a FULL JOIN ({now.sql}) b ON {same} "  # noqa: S608 - named by id
        f"WHERE {is_other}"
    )
    query = DuckQuery(sql, {**then.parameters, **now.parameters}, {**then.relations, **now.relations})
    return [(row[:-1], bool(row[-1])) for row in _ask(txn, query)]


def _open(txn: TransactionState, table: Table, built: Built) -> IndexImage:
    """The files have the columns of the version, whatever the number of its layout has become."""
    at = txn.snapshot.seq
    members = tuple(GenerationMember(replace(m.segment, layout_id=table.layout.id)) for m in built.members)
    generation = Generation(NOT_ATTACHED, table.primary.id, at, at, members)
    contents = IndexContents(table.primary.id, at, generation, ())
    return open_image(table, table.primary, txn.parts.warehouse, contents)


def _ask(txn: TransactionState, query: DuckQuery) -> Sequence[tuple[Any, ...]]:
    with closing(DuckSession(txn.parts.duck.cursor(), {})) as session, txn.client.interrupts.reaching(session):
        return session.rows(query).rows
