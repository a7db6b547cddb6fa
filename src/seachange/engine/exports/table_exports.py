"""Exports of tables for other engines, on demand and at intervals.

**Invariant:** one node at a time exports a table, by a claim in the catalog, and one thread of it. A node whose epoch
has ended cannot record an export, so what it has written is named by nothing.

**Invariant:** an export is recorded while its transaction holds back garbage collection; from then on its record does,
until it expires. Its files are deleted only after that, and the record after the files.

**Invariant:** files are deleted only if nothing referred to them at a time when the node certainly held the claim: they
are listed, then the catalog confirms the epoch, then they are deleted. A node that was stopped in between deletes no
file of an export that another has made since.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from uuid import NAMESPACE_OID, uuid5

from seachange import errors
from seachange.catalog.dead_nodes import end_dead_nodes
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.node_epoch import NodeEpoch
from seachange.iceberg.export import (
    Exported,
    Occasion,
    TableSource,
    export_table,
    read_export,
    referenced_names,
    replaced_names,
    snapshot_names,
)
from seachange.iceberg.folder import TableFolder
from seachange.iceberg.options import read_options
from seachange.iceberg.table_schema import Unmapped
from seachange.model.exports import ExportRecord
from seachange.model.ids import Seq, TableId
from seachange.model.schema.descriptor import Table
from seachange.model.segments import Segment
from seachange.runtime.faults import reach
from seachange.runtime.location import SEGMENTS, is_url
from seachange.runtime.opening import open_files
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_duration_ms

# The folder of exported tables, beside that of the segments.
FOLDER = "iceberg"
# How long files outlive the snapshots that metadata lists, so that a reader which has just read it can finish.
GRACE_US = 60_000_000
_CLAIM_US_MAX = 30_000_000
_EXPIRY_LOOK_US = 500_000
_CLAIM_PAUSE_SECONDS = 0.05
# Of a record whose files are being deleted.
_NO_METADATA = ""


@dataclass(frozen=True, slots=True)
class _Last:
    """An export at a sequence; none of its snapshots expires before `until_us`."""

    seq: Seq
    until_us: int
    exported: Exported


class TableExports:
    def __init__(self, epoch: NodeEpoch) -> None:
        self._parts = epoch.parts
        self._epoch = epoch
        self._locks: dict[TableId, threading.Lock] = {}
        # The exports that this node made last.
        self._last: dict[TableId, _Last] = {}
        self._folders: dict[TableId, TableFolder] = {}
        # When tables are to be exported again.
        self._due_us: dict[TableId, int] = {}
        # For each table, the names of the files of each snapshot.
        self._names: dict[TableId, dict[str, frozenset[str]]] = {}

    @property
    def retention_us(self) -> int:
        return self._duration_us("seachange.iceberg_retention")

    def _lock(self, table_id: TableId) -> threading.Lock:
        return self._locks.setdefault(table_id, threading.Lock())

    def _duration_us(self, setting: str) -> int:
        return 1_000 * parse_duration_ms(SessionSettings(self._parts.settings).get(setting))

    def export(self, table_id: TableId) -> Exported:
        """The table as of now. Raises NotMappable, and UndefinedTable if it was dropped."""
        with self._lock(table_id):
            return self._epoch.run(partial(self._export_claimed, table_id))

    def export_due(self, epoch: EpochState) -> None:
        """Exports the tables that are exported at intervals, unless another node has done so. One that cannot be mapped
        is listed with its reason in `seachange.iceberg_tables`."""
        enabled = [table for table in epoch.schemas.newest.by_id.values() if read_options(table).is_enabled]
        interval_us, now_us = self._duration_us("seachange.iceberg_interval"), self._parts.clock.wall_us()
        due = [table for table in enabled if now_us >= self._due_us.get(table.id, 0)] if interval_us else []
        made = {record.table_id: record.created_us for record in self._parts.catalog.exports()} if due else {}
        for table in due:
            self._due_us[table.id] = now_us + interval_us
            if now_us - made.get(table.id, 0) >= interval_us:
                self._export_or_note(table)

    def _export_or_note(self, table: Table) -> None:
        try:
            self.export(table.id)
        except (errors.NotMappable, errors.UndefinedTable):
            # The view shows why, or there is nothing to show any more.
            return
        except errors.Error as problem:
            with suppress(errors.Error):
                self._parts.catalog.log_event(f'table "{table.full_name}" was not exported: {problem}')

    def folder(self, table_id: TableId) -> TableFolder:
        if table_id not in self._folders:
            parts = self._parts
            base = parts.files.address.removesuffix(f"/{SEGMENTS}") if is_url(parts.files.address) else parts.data
            # What is written is not read again, and another node may delete it: nothing stays in the cache.
            unkept = replace(parts.cache, bytes_max=0)
            self._folders[table_id] = TableFolder(open_files(f"{base}/{FOLDER}/{table_id}", unkept))
        return self._folders[table_id]

    def close(self) -> None:
        for folder in self._folders.values():
            folder.files.close()

    def forget_expired(self) -> None:
        """Deletes the files of tables that were dropped, or are no longer exported, when all of their snapshots have
        expired. Those of other tables go with the next export."""
        now_us = self._parts.clock.wall_us()
        found: defaultdict[TableId, list[ExportRecord]] = defaultdict(list)
        for record in self._parts.catalog.exports():
            found[record.table_id].append(record)
        for table_id, records in found.items():
            if all(record.expires_us <= now_us for record in records):
                with self._lock(table_id):
                    self._epoch.run(partial(self._forget_table, table_id))

    def _forget_table(self, table_id: TableId, epoch: EpochState) -> None:
        with self._claimed(epoch, table_id):
            # Another node may have exported it in the meantime.
            records, now_us = self._records(table_id), self._parts.clock.wall_us()
            if records and all(record.expires_us <= now_us for record in records):
                folder, garbage = self.folder(table_id), self.folder(table_id).others(frozenset())
                # From here on an export that another node makes does not continue from these files.
                newest = max(records, key=lambda record: record.snapshot)
                ended = replace(newest, held=epoch.catch_up(), metadata=_NO_METADATA)
                self._parts.catalog.record_export(epoch.epoch, ended)
                reach("export.forgotten")
                folder.files.delete(garbage)
                self._last.pop(table_id, None)
                self._names.pop(table_id, None)
                self._parts.catalog.forget_exports(epoch.epoch, table_id, [record.snapshot for record in records])

    def _records(self, table_id: TableId) -> list[ExportRecord]:
        return [record for record in self._parts.catalog.exports() if record.table_id == table_id]

    @contextmanager
    def _claimed(self, epoch: EpochState, table_id: TableId) -> Iterator[None]:
        catalog, resource = self._parts.catalog, f"iceberg:{table_id}"
        begun_us = self._parts.clock.steady_us()
        looked_us = begun_us - _EXPIRY_LOOK_US
        while not catalog.claim(epoch.epoch, resource):
            now_us = self._parts.clock.steady_us()
            if now_us - begun_us > _CLAIM_US_MAX:
                raise errors.ExportInProgress()
            if now_us - looked_us >= _EXPIRY_LOOK_US:
                # The claim of a killed process stays until its epoch is ended.
                looked_us = now_us
                end_dead_nodes(catalog)
            else:
                threading.Event().wait(_CLAIM_PAUSE_SECONDS)
        try:
            yield
        finally:
            catalog.release(epoch.epoch, resource)

    def _export_claimed(self, table_id: TableId, epoch: EpochState) -> Exported:
        known = self._last.get(table_id)
        if known is not None and epoch.catch_up() == known.seq and self._parts.clock.wall_us() < known.until_us:
            return known.exported
        with self._claimed(epoch, table_id):
            ticket = epoch.registry.enter()
            try:
                seq = epoch.catch_up()
                epoch.registry.move(ticket, seq)
                return self._export_at(table_id, epoch, seq)
            finally:
                epoch.registry.leave(ticket)

    def _export_at(self, table_id: TableId, epoch: EpochState, seq: Seq) -> Exported:
        folder, now_us = self.folder(table_id), self._parts.clock.wall_us()
        records = self._records(table_id)
        newest = max(records, key=lambda record: record.snapshot, default=None)
        last = self._read_last(folder, table_id, newest)
        live = frozenset(record.snapshot for record in records if record.expires_us - GRACE_US > now_us)
        token = self._parts.entropy.token(8).hex()
        occasion = Occasion(now_us // 1_000, live, (now_us - GRACE_US) // 1_000, token)
        source = self._source(table_id, epoch, seq)
        try:
            exported = export_table(source, last, folder, occasion)
        except Unmapped as problem:
            raise errors.NotMappable(table=source.table.full_name, reason=str(problem)) from problem
        reach("export.written")
        if exported is not last or newest is None or newest.expires_us - now_us < self.retention_us // 2:
            if last is not None:
                records = self._keep_listed(epoch, last, exported, records, now_us)
            self._record(epoch, table_id, seq, exported, records, now_us)
        if last is not None and exported is not last:
            folder.files.delete(replaced_names(folder, last, exported))
        ends_us = [record.expires_us for record in records if record.snapshot in exported.snapshots]
        until_us = min([now_us + self.retention_us // 2, *(end_us - GRACE_US for end_us in ends_us)])
        self._last[table_id] = _Last(seq, until_us, exported)
        return exported

    def _keep_listed(
        self, epoch: EpochState, last: Exported, exported: Exported, records: list[ExportRecord], now_us: int
    ) -> list[ExportRecord]:
        """The snapshots that are listed no more are held for the readers of the metadata that listed them last: their
        own may be gone."""
        found = []
        for record in records:
            is_left = record.snapshot in last.snapshots - exported.snapshots and record.expires_us > now_us
            found.append(replace(record, metadata=last.address) if is_left else record)
            if is_left:
                self._parts.catalog.record_export(epoch.epoch, found[-1])
        return found

    def _record(
        self,
        epoch: EpochState,
        table_id: TableId,
        seq: Seq,
        exported: Exported,
        records: list[ExportRecord],
        now_us: int,
    ) -> None:
        expires_us = now_us + self.retention_us + GRACE_US
        made = ExportRecord(table_id, exported.snapshot, seq, exported.address, now_us, expires_us)
        others = [record for record in records if record.snapshot not in exported.snapshots]
        gone = [record.snapshot for record in others if record.expires_us <= now_us]
        garbage: list[str] = []
        if gone or table_id not in self._names:
            folder, known = self.folder(table_id), self._names.setdefault(table_id, {})
            kept = referenced_names(folder, exported, known)
            held = [r for r in others if r.expires_us > now_us]
            garbage = folder.others(kept.union(*(snapshot_names(folder, r.metadata, r.snapshot) for r in held)))
        self._parts.catalog.record_export(epoch.epoch, made)
        reach("export.recorded")
        if garbage:
            self.folder(table_id).files.delete(garbage)
        if gone:
            self._parts.catalog.forget_exports(epoch.epoch, table_id, gone)

    def _read_last(self, folder: TableFolder, table_id: TableId, newest: ExportRecord | None) -> Exported | None:
        if newest is None:
            return None
        known = self._last.get(table_id)
        if known is not None and known.exported.address == newest.metadata:
            return known.exported
        return read_export(folder, newest.metadata)

    def _source(self, table_id: TableId, epoch: EpochState, seq: Seq) -> TableSource:
        schema = epoch.schema(seq)
        table = schema.by_id.get(table_id)
        if table is None:
            raise errors.UndefinedTable(name=str(table_id))
        parts = epoch.image(table, table.primary, seq).parts(seq)
        uuid = str(uuid5(NAMESPACE_OID, f"{self._parts.identity}/{table_id}"))
        version = read_options(table).format_version
        return TableSource(table, schema.objects, parts, seq, uuid, version, self._address, self._parts.warehouse)

    def _address(self, segment: Segment) -> str:
        return f"{self._parts.files.address}/{self._parts.warehouse.name(segment.id)}"
