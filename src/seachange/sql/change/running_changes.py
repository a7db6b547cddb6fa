"""Conflicts with running changes: which ones a statement waits for, or cancels; and with open writers.

**Invariant:** a statement that takes all rows of a table away has first waited for the transactions that have written
or locked some, on every node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from seachange.changer.job import Job, read_job
from seachange.model.change.elements import descriptor_of
from seachange.model.ids import DescriptorId, TableId
from seachange.model.jobs import JobId
from seachange.model.schema.descriptor import Table
from seachange.model.statements import CreateIndex, DdlStatement
from seachange.planner.exclusion import ChangeKind, Exclusion, ExclusionDecision, are_disjoint, classify, decide
from seachange.planner.plan import Change
from seachange.sql.port.port import TransactionPort
from seachange.sql.query.databases import relations_named

_TAKES_ROWS = frozenset({ChangeKind.TRUNCATE, ChangeKind.DROP})


class Busy(Exception):
    """Other changes are running that this one must wait for, or cancels."""

    def __init__(self, jobs: Mapping[JobId, Exclusion], descriptors: Collection[DescriptorId]) -> None:
        super().__init__(", ".join(map(str, jobs)))
        self.jobs = jobs
        # The descriptors that the statement affects, as far as they are known.
        self.descriptors = tuple(sorted(descriptors))


def check_change(change: Change, port: TransactionPort) -> None:
    """Raises `Busy` if a job is changing one of the descriptors that the change affects.

    A job that has ended since the snapshot is not found, and its descriptors look as if it were still running: the
    statement is then retried.
    """
    found: dict[JobId, Exclusion] = {}
    touched = {descriptor_of(target.element) for target in change.targets}
    kinds = {id_: classify(change, id_) for id_ in touched}
    for record in () if port.jobs.can_change(touched) else port.jobs.unfinished_jobs():
        for id_ in touched.intersection(record.descriptors):
            job = read_job(record)
            if not _is_before(job, port.jobs.queue_place):
                continue
            # The kind of a queued change is not known until it is planned.
            running = classify(job.change, id_) if job.queued is None else ChangeKind.WORK
            new = kinds[id_]
            if running is None or new is None:
                continue
            # A transaction block is waited for: what it has changed may be rolled back with it.
            independent = job.owner is None and port.statement.is_autocommit and are_disjoint(job.change, change)
            exclusion = decide(running, new, job.can_be_canceled and job.owner is None, independent)
            if exclusion.answer is not ExclusionDecision.PROCEED:
                found[record.id] = exclusion
    if found:
        raise Busy(found, touched)
    # A label is put on whatever version there is at the commit.
    port.definitions.check_newest({id_ for id_ in touched if kinds[id_] is not ChangeKind.LABEL})
    emptied = [id_ for id_ in sorted(touched) if kinds[id_] in _TAKES_ROWS]
    waited = [port.locks.exclude_writers(table) for table in _tables(emptied, port)]
    if any(waited):
        # Another change may have come first while this one waited.
        check_change(change, port)


def _tables(ids: Iterable[DescriptorId], port: TransactionPort) -> Iterator[Table]:
    """Those that lose their rows by the change: a transaction that has written some could not be rebased."""
    for id_ in ids:
        table = port.schema.table_by_id(TableId(id_))
        if table is not None:
            yield table


def _is_before(job: Job, place: JobId | None) -> bool:
    """Whether the job precedes a statement that is itself queued at `place`."""
    return place is None or (job.id != place and (job.queued is None or job.id < place))


def check_named(statement: DdlStatement, port: TransactionPort, taken: str | None = None) -> None:
    """The same for a statement that cannot be planned now, or has nothing to do: if a table that it names is being
    changed, or one with an index of a name that is `taken`, that may be otherwise later."""
    names = {name.name for name in relations_named(statement)} | {taken}
    if isinstance(statement, CreateIndex):
        names.add(statement.name)
    named = {table.id for table in port.names.tables() if not names.isdisjoint(_names_of(table))}
    found = [
        record.id
        for record in port.jobs.unfinished_jobs()
        if named.intersection(record.descriptors) and _is_before(read_job(record), port.jobs.queue_place)
    ]
    if found:
        raise Busy(dict.fromkeys(found, decide(ChangeKind.WORK, ChangeKind.METADATA)), named)
    port.definitions.check_newest(named)


def check_relied(ids: Collection[DescriptorId], port: TransactionPort) -> None:
    """The same for a change that refers to descriptors without changing them: a job that was planned before may remove
    what it refers to."""
    if not ids:
        return
    found = [
        record.id
        for record in port.jobs.unfinished_jobs()
        if not set(ids).isdisjoint(record.descriptors) and _is_before(read_job(record), port.jobs.queue_place)
    ]
    if found:
        raise Busy(dict.fromkeys(found, decide(ChangeKind.WORK, ChangeKind.METADATA)), set(ids))


def _names_of(table: Table) -> set[str]:
    return {table.name, *(index.name for index in table.indexes)}
