"""The rows of the system views.

**Invariant:** `leases` lists no version below its `min_version`: a transaction planned with such a version is rebased
when it commits.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from seachange import errors
from seachange.changer.job import Job, read_job
from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.feed.feed_lag import measure_lag
from seachange.engine.locks.lock_details import mode_name, name_party
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.mark_holders import Lease, leases_of, node_leases, read_statements
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.engine.replica.shown_builds import find_builds
from seachange.engine.transaction.change_rows import change_rows
from seachange.engine.transaction.hidden_work import measure_hidden_work
from seachange.engine.transaction.shown_sessions import Sessions, find_waits
from seachange.engine.transaction.table_changers import Changers, find_changers
from seachange.iceberg.obstacles import find_obstacle
from seachange.iceberg.options import read_options
from seachange.model.codecs.descriptor_json import decode_table
from seachange.model.ids import DescriptorId, Seq
from seachange.model.jobs import FINISHED, JobId, JobRecord, JobStatus, ShownBuild
from seachange.model.locking import ShownLock
from seachange.model.log import NodeRecord
from seachange.model.pace import Pace
from seachange.model.schema.actor import Actor
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import Shape
from seachange.model.segments import Segment, SegmentKind
from seachange.model.sessions import SessionRequest, ShownSession
from seachange.sql.change.shapes import pinned_roles
from seachange.sql.compile.system_relations import without_private
from seachange.sql.pgcatalog.scan import HIDDEN
from seachange.sql.settings.stored_settings import find_database

Row = tuple[Any, ...]
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class _Source(NamedTuple):
    """Jobs, nodes and events are those of all databases, tables and what belongs to them those of `database`."""

    parts: NodeParts
    epoch: EpochState
    database: str
    actor: Actor

    @property
    def tables(self) -> dict[DescriptorId, Table]:
        return self.seen(self.epoch.schemas.newest)

    def seen(self, schema: SchemaVersion) -> dict[DescriptorId, Table]:
        """Those that the role may do anything with."""
        tables = schema.within(self.database).by_id
        if self.actor.superuser:
            return tables
        return {id_: table for id_, table in tables.items() if self.actor.holds_any(table.access)}


@dataclass(frozen=True, slots=True)
class SystemViews:
    """`ViewPort`."""

    state: TransactionState

    def system_rows(self, view: str) -> list[Row]:
        state, actor = self.state, self.state.rights.actor
        rows = list(_VIEWS[view](_Source(state.parts, state.epoch, state.statement.session.database, actor)))
        return rows if actor.superuser else without_private(view, rows)

    def shown_locks(self) -> list[ShownLock]:
        return self.state.epoch.tables.shown(table.id for table in self.state.schema.tables())

    def shown_sessions(self) -> list[ShownSession]:
        return list(self._sessions.shown())

    def shown_builds(self) -> list[ShownBuild]:
        state = self.state
        source = _Source(state.parts, state.epoch, state.statement.session.database, state.rights.actor)
        return list(find_builds(state.parts, source.tables.get))

    def blockers(self, session: int) -> tuple[int, ...]:
        return self._sessions.blockers(session)

    def ask_session(self, session: int, request: SessionRequest) -> bool:
        return self._sessions.ask(session, request)

    @property
    def _sessions(self) -> Sessions:
        return Sessions(self.state.parts, self.state.epoch, self.state.rights.actor)


def _moment(timestamp_us: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=timestamp_us)


def _jobs(source: _Source) -> Iterator[Row]:
    catalog = source.parts.catalog
    names = {node.epoch: node.name for node in catalog.nodes()}
    records = catalog.jobs()
    unfinished = {record.id for record in records if record.status not in FINISHED}
    for record in records:
        try:
            job = read_job(record)
        except errors.UnreadableJob as problem:
            yield _unreadable(record, problem, names.get(record.epoch))
            continue
        failure = job.failure
        yield (
            record.id,
            job.statement,
            record.status.value,
            job.phase.value,
            job.stage,
            job.fraction_done,
            job.rows_read,
            max(job.rows_total, job.rows_read),
            job.rate(record.updated_us) if record.status is JobStatus.RUNNING else None,
            _eta(record, job),
            _waiting(job, unfinished) or None,
            failure.message if failure is not None else None,
            failure.sqlstate if failure is not None else None,
            failure.hint if failure is not None else None,
            job.can_be_canceled,
            record.request.value or None,
            names.get(record.epoch),
            job.owner.session if job.owner is not None else None,
            _moment(record.created_us),
            _moment(record.updated_us),
            *_open_work(source, record, job),
        )


def _open_work(source: _Source, record: JobRecord, job: Job) -> Row:
    """Of a job that has not ended: its age, what it has written, and what it costs other sessions."""
    if record.status in FINISHED:
        return (None,) * 4
    age_ms = max(source.parts.clock.wall_us() - record.created_us, 0) // 1_000
    work = measure_hidden_work(job, source.epoch, source.parts.warehouse)
    return (age_ms, work.written_bytes, work.indexes, work.entries)


def _waiting(job: Job, unfinished: Set[JobId]) -> str:
    queued = job.queued if job.status is JobStatus.PENDING else None
    if queued is not None and unfinished.isdisjoint(queued.behind):
        return "transactions that hold what it changes, or a node that begins it"
    return job.waiting


def _unreadable(record: JobRecord, problem: errors.UnreadableJob, node: str | None) -> Row:
    """What is known of a job without its body; one such record does not hide the others."""
    unknown = (None,) * 7
    reason = (str(problem), problem.sqlstate, problem.hint)
    request = record.request.value or None
    times = (_moment(record.created_us), _moment(record.updated_us))
    return (record.id, "", record.status.value, "", *unknown, *reason, False, request, node, None, *times, *(None,) * 4)


def _eta(record: JobRecord, job: Job) -> dt.datetime | None:
    """As if the rest went on like what was done."""
    rate = job.rate(record.updated_us)
    if record.status is not JobStatus.RUNNING or not rate or job.rows_read >= job.rows_total:
        return None
    return _moment(record.updated_us + int((job.rows_total - job.rows_read) / rate * 1_000_000))


def _job_stages(source: _Source) -> Iterator[Row]:
    for record in source.parts.catalog.jobs():
        try:
            stages = read_job(record).stages
        except errors.UnreadableJob:
            continue
        for number, stage in enumerate(stages, 1):
            took_ms = stage.took_us // 1_000
            yield (record.id, number, stage.phase.value, stage.what, _moment(stage.began_us), took_ms, stage.rows)


def _leases(source: _Source) -> Iterator[Row]:
    """Who may still commit with which version: open transactions, and for each node its mark. A version that the
    catalog no longer accepts is held by no transaction; one that planned with it is rebased when it commits."""
    parts, epoch = source.parts, source.epoch
    newest = source.tables
    lowest = parts.catalog.min_versions()
    nodes = [node for node in parts.catalog.nodes() if node.live]
    leases = {node.epoch: _open_leases(node, epoch) for node in nodes}
    changers = find_changers(epoch, leases, newest.keys())
    for node in nodes:
        for lease in (*leases[node.epoch], Lease("", node.write_mark, 0), *_late(node, leases[node.epoch], changers)):
            held = _schema_at(epoch, lease.snapshot) if lease.snapshot else {}
            since = _moment(lease.since_us) if lease.since_us else None
            for id_, table in newest.items():
                changer = changers.get((node.epoch, lease.session, id_))
                version = held[id_].version if id_ in held else None
                is_held = bool(lease.snapshot) and not (version is not None and version < lowest.get(id_, 0))
                if is_held or changer is not None:
                    place = (table.schema, table.name, version if is_held else None, table.version)
                    change = (False, None, None) if changer is None else (True, changer.job_id, changer.statement)
                    who = (node.name, node.epoch, lease.session or None, lease.snapshot or None, since)
                    yield (*who, *place, *change)


def _late(node: NodeRecord, known: Collection[Lease], changers: Changers) -> list[Lease]:
    """Sessions that have begun to change a table since their node has published its leases."""
    sessions = {session for epoch, session, _ in changers if epoch == node.epoch}
    return [Lease(session, Seq(0), 0) for session in sorted(sessions - {"", *(lease.session for lease in known)})]


def _open_leases(node: NodeRecord, epoch: EpochState) -> tuple[Lease, ...]:
    """Those of this node as they are now, those of others as they are published."""
    if node.epoch == epoch.epoch:
        return node_leases(epoch.registry.marks()).leases
    return leases_of(node)


def _waits(source: _Source) -> Iterator[Row]:
    """Sessions that wait: those of this node, and those of other nodes as far as they are published."""
    parts, epoch = source.parts, source.epoch
    names = {node.epoch: node.name for node in parts.catalog.nodes()}
    waits, edges = find_waits(parts, epoch)
    for party, (mode, key) in sorted(waits.items()):
        others = ", ".join(name_party(other, party.epoch) for other in sorted(edges.get(party, ())))
        place = (names.get(party.epoch), party.epoch, f"session {party.actor}")
        yield (*place, mode_name(mode), epoch.describe_key(key), others or None)


def _sessions(source: _Source) -> Iterator[Row]:
    for shown in Sessions(source.parts, source.epoch, source.actor).shown():
        record = shown.record
        who = (shown.node, shown.epoch, f"session {record.number}", record.number, record.role, record.database)
        if not shown.is_seen:
            yield (*who, *(None,) * 10, HIDDEN)
            continue
        client = (record.application, record.address or None, record.port if record.address else None)
        began = (record.began_us, record.transaction_us, record.statement_us, record.changed_us)
        moments = (_moment(moment) if moment else None for moment in began)
        blockers = ", ".join(map(str, shown.blocked_by)) or None
        yield (*who, *client, *moments, record.state.value, shown.waits_for, blockers, record.statement)


def _statements(source: _Source) -> Iterator[Row]:
    """Roles see the statements of roles that they are members of."""
    parts = source.parts
    for node in parts.catalog.nodes():
        is_own = node.epoch == source.epoch.epoch
        for one in parts.statements.read() if is_own else read_statements(node) if node.live else ():
            if source.actor.superuser or one.role in source.actor.roles:
                times = (one.total_us / 1_000, one.total_us / 1_000 / max(one.calls, 1), one.longest_us / 1_000)
                counts = (one.calls, one.failures, *times, one.rows)
                yield (node.name, node.epoch, one.role, one.database, one.statement, *counts)


def _schema_at(epoch: EpochState, seq: Seq) -> dict[Any, Table]:
    try:
        return dict(epoch.schema(seq).by_id)
    except errors.SnapshotTooOld:
        return {}


def _nodes(source: _Source) -> Iterator[Row]:
    for node in source.parts.catalog.nodes():
        marks = (node.low_water, node.write_mark)
        yield (
            node.epoch,
            node.name,
            node.live,
            *marks,
            node.expiry_ms,
            node.format,
            node.release,
            *_pace_ms(node.pace),
        )


def _pace_ms(pace: Pace) -> tuple[float | None, float | None]:
    return pace.latency_us / 1_000 or None, pace.usual_us / 1_000 or None


def _descriptors(source: _Source) -> Iterator[Row]:
    """One row for each table, and one for each part of it that has a state."""
    lowest = source.parts.catalog.min_versions()
    for id_, table in source.tables.items():
        place = (id_, table.schema, table.name, table.version, lowest.get(id_, 0))
        yield (*place, "table", table.name, "PUBLIC")
        named: tuple[tuple[str, tuple[Any, ...]], ...] = (
            ("column", table.columns),
            ("index", (*table.indexes, *table.coming)),
            ("check", table.checks),
            ("foreign key", table.foreign_keys),
        )
        for kind, elements in named:
            for element in elements:
                yield (*place, kind, element.name, element.state.value)


def _stored(source: _Source) -> Iterator[tuple[Table, Index, Segment, bool]]:
    """Every segment of every index as of now, and whether it is part of a base."""
    parts, epoch = source.parts, source.epoch
    at = epoch.applied
    for table in source.seen(epoch.schema(at)).values():
        for index in (*table.indexes, *table.coming):
            contents = parts.catalog.index_contents(epoch.epoch, index.id, at)
            members = contents.generation.members if contents.generation is not None else ()
            yield from ((table, index, member.segment, True) for member in members)
            yield from ((table, index, s, False) for delta in contents.deltas for s in delta.segments)


def _segments(source: _Source) -> Iterator[Row]:
    for table, index, segment, is_base in _stored(source):
        place = (table.schema, table.name, index.name)
        kind = segment.kind.name.lower()
        size = (segment.rows, segment.size_bytes)
        yield (*place, segment.id, kind, segment.layout_id, is_base, segment.seq, *size)


def _layouts(source: _Source) -> Iterator[Row]:
    stored: dict[tuple[int, int], list[int]] = {}
    for table, index, segment, _ in _stored(source):
        if index.id == table.primary.id:
            stored.setdefault((table.id, segment.layout_id), []).append(segment.rows)
    for table in source.tables.values():
        names = {column.id: column.name for column in table.columns}
        for layout in table.layouts:
            columns = ", ".join(f"{names.get(id_, f'(dropped {id_})')} {type_}" for id_, type_ in layout.columns)
            rows = stored.get((table.id, layout.id), [])
            is_current = layout.id == table.layout.id
            yield (table.schema, table.name, layout.id, is_current, columns, len(rows), sum(rows))


def _shapes(source: _Source) -> Iterator[Row]:
    newest = source.epoch.schemas.newest
    contents = newest.within(source.database)
    sessions = [shown.record for shown in Sessions(source.parts, source.epoch, source.actor).shown() if shown.is_seen]
    database = find_database(source.database, contents.objects.values())
    for shape in (o for o in contents.objects.values() if isinstance(o, Shape)):
        tables = [decode_table(text) for text in shape.tables]
        pairs = [(then, contents.by_id[then.id]) for then in tables if then.id in contents.by_id]
        held = [
            f"{then.name}.{column.name}"
            for then, now in pairs
            for column in then.visible_columns
            if column.id in now.retired_by_id
        ]
        yield (
            shape.name,
            shape.seq,
            len(tables),
            ", ".join(pinned_roles(newest.roles.values(), database, shape.name)),
            ", ".join(str(r.number) for r in sessions if (r.database, r.layout) == (source.database, shape.name)),
            ", ".join(held),
        )


def _cache(source: _Source) -> Iterator[Row]:
    facts = source.parts.files.facts()
    if facts is not None:
        yield astuple(facts)


def _changes(source: _Source) -> Iterator[Row]:
    return change_rows(source.parts, source.epoch, source.database, source.actor)


def _events(source: _Source) -> Iterator[Row]:
    for event in source.parts.catalog.events():
        yield (_moment(event.timestamp_us), event.job_id or None, event.seq, event.text)


def _iceberg_tables(source: _Source) -> Iterator[Row]:
    records = source.parts.catalog.exports()
    objects = source.epoch.schemas.newest.objects
    segments: dict[DescriptorId, list[Segment]] = {}
    for table, index, segment, _ in _stored(source):
        if index.id == table.primary.id and segment.kind is SegmentKind.DATA:
            segments.setdefault(table.id, []).append(segment)
    for id_, table in source.tables.items():
        options = read_options(table)
        files = segments.get(id_, ())
        reason = find_obstacle(table, objects, files, options.format_version, source.parts.warehouse)
        own = [record for record in records if record.table_id == id_]
        newest = max(own, key=lambda record: record.snapshot, default=None)
        last = (None, None, None, 0, None)
        if newest is not None:
            times = (_moment(newest.created_us), _moment(newest.expires_us))
            last = (newest.snapshot, *times, len(own), newest.metadata)  # type: ignore[assignment]
        yield (table.schema, table.name, options.is_enabled, options.format_version, reason, *last)


def _feeds(source: _Source) -> Iterator[Row]:
    catalog, actor = source.parts.catalog, source.actor
    for feed in catalog.feeds():
        if feed.database == source.database and (actor.superuser or feed.owner in actor.roles):
            known = source.epoch.schemas.newest.by_id
            names = ", ".join(known[id_].full_name if id_ in known else f"(dropped {id_})" for id_ in feed.tables)
            lag = measure_lag(catalog, source.epoch, feed)
            seconds = max(source.parts.clock.wall_us() - lag.since_us, 0) / 1_000_000 if lag.since_us else 0.0
            place = (feed.name, feed.owner, names, feed.position)
            yield (*place, lag.rows, seconds, lag.bytes, _moment(feed.created_us), feed.ended or None)


_VIEWS: dict[str, Callable[[_Source], Iterator[Row]]] = {
    "jobs": _jobs,
    "job_stages": _job_stages,
    "changes": _changes,
    "leases": _leases,
    "waits": _waits,
    "sessions": _sessions,
    "statements": _statements,
    "nodes": _nodes,
    "descriptors": _descriptors,
    "layouts": _layouts,
    "shapes": _shapes,
    "segments": _segments,
    "cache": _cache,
    "iceberg_tables": _iceberg_tables,
    "feeds": _feeds,
    "events": _events,
}
