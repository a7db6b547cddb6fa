"""The commits of jobs, under one epoch of the node.

**Invariant:** a publication is built from the newest descriptors and compared with them; if another one commits in
between, it is built again. The job's record is compared too, and a record that is not the expected one ends the runner.

**Invariant:** a publication that makes a computed column public writes the column's key (`conversion_hash`), and is
checked against all commits since the rows were last known to have values for it. A commit of a row without a value
shares the key (`engine/constraints/computed_values.py`), so at most one of the two commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from seachange import errors
from seachange.catalog.dead_nodes import end_dead_nodes
from seachange.changer.ports import Holder, Lost, Overtaken, Unconverted
from seachange.engine.buffer.pending_schema import descriptor_change
from seachange.engine.context.change_log import log_published
from seachange.engine.jobs.drain_holders import HeldNode, find_excused
from seachange.engine.replica.committer import Submission
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.mark_holders import node_leases, read_leases
from seachange.engine.replica.node_parts import NodeParts
from seachange.engine.transaction.change_history import encode_job_history
from seachange.model.change import elements
from seachange.model.change.elements import descriptor_of
from seachange.model.change.ops import SetState
from seachange.model.change.vacuum import Rewritten
from seachange.model.change.work import Built
from seachange.model.change_history import ChangeRecord
from seachange.model.ids import CommitId, DescriptorId, IndexId, KeyHash, Seq, TableId
from seachange.model.jobs import NO_JOB, JobChange, JobId, JobRecord
from seachange.model.locking import NO_SCOPE, LockOwner, QueueMode
from seachange.model.log import (
    CommitRequest,
    Committed,
    Conflict,
    GenerationChange,
    NodeRecord,
    Revalidate,
    StaleEpoch,
    Superseded,
    VersionRaise,
)
from seachange.model.schema.objects import UNPLANNED, Descriptor
from seachange.model.states import State
from seachange.planner.known_schema import change_descriptor
from seachange.storage.keys import conversion_hash, job_hash

# How often a commit is tried while others keep changing the descriptor.
ATTEMPTS_MAX = 100
_EXPIRY_LOOK_US = 500_000

# A descriptor, and its next version.
_Versions = tuple[Descriptor | None, Descriptor | None]


@dataclass(frozen=True, slots=True)
class Drainer:
    """The job that drains, and the session that runs it; without one, `actor` is 0."""

    job_id: JobId = NO_JOB
    actor: int = 0


NO_DRAINER = Drainer()


class NodeChanges:
    def __init__(self, parts: NodeParts, epoch: EpochState, drainer: Drainer = NO_DRAINER) -> None:
        self._parts = parts
        self._epoch = epoch
        self._drainer = drainer
        self._looked_us = 0

    def is_ours(self, record: JobRecord) -> bool:
        return record.epoch == self._epoch.epoch

    def read(self, job_id: JobId) -> JobRecord | None:
        return self._parts.catalog.job(job_id)

    def head(self) -> Seq:
        with self._epoch.noticing_end():
            return self._epoch.catch_up()

    def begin(self, versions: Sequence[tuple[Descriptor | None, Descriptor]], job: JobChange) -> Seq:
        """Creates the job of a transaction block, and publishes the first versions of the tables that it changes.
        Raises `RowChanged` if one of them is no longer what it was planned from."""

        def build(request: CommitRequest) -> CommitRequest:
            schema = self._epoch.schemas.newest
            for before, after in versions:
                now = schema.find(after.id)
                if before is not None and (now is None or now.version != before.version):
                    raise errors.RowChanged(seq=request.validated)
            return replace(request, descriptors=tuple(descriptor_change(a.id, b, a) for b, a in versions))

        return self._commit(build, job)

    def publish(
        self,
        mutations: Sequence[SetState],
        fenced: Iterable[TableId],
        job: JobChange,
        converted_at: Seq | None = None,
        history: ChangeRecord | None = None,
    ) -> Seq:
        shut = set(fenced)
        converted = _conversions(mutations, converted_at is not None)
        # A transaction that read the old primary index is refused, and finds out that it is gone.
        replaced = tuple(
            m.element.index_id
            for m in mutations
            if isinstance(m.element, elements.PrimaryIndex) and m.state is State.ABSENT
        )

        def build(request: CommitRequest) -> CommitRequest:
            versions = self._next_versions(mutations)
            changes = tuple(descriptor_change(id_, *pair) for id_, pair in versions.items())
            raises = tuple(VersionRaise(c.id, c.version) for c in changes if c.body is not None and c.id in shut)
            if converted:
                self._check_converted(converted, converted_at)
            change = (
                encode_job_history(history, versions, self._epoch.schemas.newest.find) if history is not None else ""
            )
            return replace(
                request, descriptors=changes, raises=raises, writes=converted, touched=replaced, change=change
            )

        return self._commit(build, job)

    def _check_converted(self, keys: Sequence[KeyHash], since: Seq | None) -> None:
        """Checks commits up to the head at which the request is validated; the sequencer checks later ones by the same
        keys."""
        try:
            if since is None or self._parts.catalog.first_reliance(self._epoch.epoch, keys, since) is not None:
                raise Unconverted
        except errors.SnapshotTooOld as problem:
            raise Unconverted from problem

    def _next_versions(self, mutations: Sequence[SetState]) -> dict[DescriptorId, _Versions]:
        by_descriptor: dict[DescriptorId, list[SetState]] = {}
        for mutation in mutations:
            by_descriptor.setdefault(descriptor_of(mutation.element), []).append(mutation)
        schema = self._epoch.schemas.newest
        newest: dict[DescriptorId, Descriptor] = {**schema.by_id, **schema.objects}
        kept = self._dropped(by_descriptor.keys() - newest.keys())
        versions = {
            id_: (newest.get(id_, kept.get(id_)), change_descriptor(newest.get(id_), changed, kept.get(id_)))
            for id_, changed in by_descriptor.items()
        }
        # If both are None, the object was dropped in the meantime.
        return {id_: pair for id_, pair in versions.items() if pair != (None, None)}

    def _dropped(self, ids: Collection[DescriptorId]) -> dict[DescriptorId, Descriptor]:
        """The last versions of objects that come back under their ids."""
        if not ids:
            return {}
        found = [each for each in self._parts.catalog.dropped() if each.id in ids]
        return {
            each.id: replace(each.body, version=each.version) for each in found if not isinstance(each.body, UNPLANNED)
        }

    def published(self, descriptors: Iterable[DescriptorId]) -> Seq:
        return self._epoch.schemas.unchanged_since(descriptors)

    def raise_versions(self, descriptors: Iterable[DescriptorId], job: JobChange) -> Seq:
        ids = tuple(descriptors)

        def build(request: CommitRequest) -> CommitRequest:
            newest = self._epoch.schemas.newest.by_id
            # A dropped table has no writers to fence.
            raises = tuple(VersionRaise(id_, newest[id_].version) for id_ in ids if id_ in newest)
            return replace(request, raises=raises)

        return self._commit(build, job)

    def attach(self, built: Sequence[Built], at: Seq, job: JobChange) -> Seq:
        changes = tuple(GenerationChange(one.index_id, None, at, one.members) for one in built)
        return self._commit(lambda request: replace(request, generations=changes), job)

    def compacting(self, index_id: IndexId) -> AbstractContextManager[bool]:
        return self._parts.compaction_locks.holding(self._epoch.epoch, index_id)

    def swap(self, made: Rewritten, at: Seq, job: JobChange) -> Seq:
        change = GenerationChange(made.index_id, made.before, at, made.members)
        return self._commit(lambda request: replace(request, generations=(change,)), job)

    def record(self, job: JobChange) -> Seq:
        return self._commit(lambda request: request, job)

    def _commit(self, build: Callable[[CommitRequest], CommitRequest], job: JobChange) -> Seq:
        for _ in range(ATTEMPTS_MAX):
            head = self.head()
            self._check_ours(job)
            blank = CommitRequest(
                CommitId(self._parts.entropy.token(16)),
                validated=head,
                oldest=head,
                jobs=(job,),
                actor=self._drainer.actor,
            )
            request = build(blank)
            outcome = self._epoch.committer.submit(Submission(request))
            match outcome:
                case Committed(seq=seq):
                    log_published(self._parts.log, request.change, seq)
                    return seq
                case StaleEpoch(epoch=epoch):
                    self._epoch.ended = True
                    raise Lost(f"epoch {epoch} has ended")
                case Superseded(what=what) if what.startswith("descriptor"):
                    # Another version was published in between: build on it.
                    continue
                case Superseded(what=what) if what.startswith("generation"):
                    raise Overtaken(f"job {job.id} cannot continue: {outcome}")
                case Revalidate():
                    # The request has read nothing that could have changed.
                    continue
                case Conflict():
                    # The only keys that a job's commit writes are those of conversions.
                    raise Unconverted
                case _:
                    raise Lost(f"job {job.id} cannot continue: {outcome}")
        raise errors.SerializationFailure(detail=f"job {job.id} was overtaken by other changes {ATTEMPTS_MAX} times")

    def _check_ours(self, job: JobChange) -> None:
        """The descriptors at the head are those that this runner left, unless the job's record has changed since: then
        it would build on changes that another runner has rolled back."""
        record = self._parts.catalog.job(job.id)
        # A queued job is created by its first record.
        if (record.revision if record is not None else 0) != job.expected:
            raise Lost(f"job {job.id} was taken over by another node")

    def holders(self, below: Seq, raised: Iterable[DescriptorId] | None = None) -> tuple[Holder, ...]:
        """Current marks for this node, published marks for the others."""
        self._expire()
        found = [held for node in self._parts.catalog.nodes() if (held := self._held(node, below)) is not None]
        if raised is not None and found:
            newest = self._epoch.schemas.newest.by_id
            versions = {id_: newest[id_].version for id_ in raised if id_ in newest}
            excused = find_excused(self._parts.catalog, self._epoch, self._drainer.actor)
            found = [each for held in found if (each := held.without(versions, excused)) is not None]
        return tuple(Holder(held.epoch, held.node, tuple(map(str, held.leases))) for held in found)

    def _held(self, node: NodeRecord, below: Seq) -> HeldNode | None:
        is_own = node.epoch == self._epoch.epoch
        marks = self._epoch.registry.marks() if is_own else None
        mark = node.write_mark if marks is None else marks.write
        if mark >= below or not (is_own or node.live):
            return None
        known = read_leases(node) if marks is None else node_leases(marks)
        leases = tuple(lease for lease in known.leases if lease.snapshot < below)
        if is_own and self._drainer.actor:
            # A block that drains does not wait for itself.
            leases = tuple(lease for lease in leases if lease.actor != self._drainer.actor)
            if not leases and known.head >= below:
                return None
        return HeldNode(node.epoch, node.name, leases, known.head < below)

    @contextmanager
    def waiting_for_writers(self) -> Iterator[None]:
        if not self._drainer.actor:
            yield
            return
        owner = LockOwner(self._drainer.actor, NO_SCOPE)
        with self._epoch.shared.queued(owner, job_hash(self._drainer.job_id), QueueMode.DRAIN):
            yield

    def _expire(self) -> None:
        """The mark of a killed process stays until its epoch is ended."""
        now_us = self._parts.clock.steady_us()
        if now_us - self._looked_us >= _EXPIRY_LOOK_US:
            self._looked_us = now_us
            end_dead_nodes(self._parts.catalog)
            self.head()


def _conversions(mutations: Sequence[SetState], rebuilt: bool) -> tuple[KeyHash, ...]:
    """The keys that the publication of computed columns writes; commits of rows without a value rely on them. Columns
    other than converted ones are computed only where rows are rewritten."""
    kinds = (elements.ColumnElement, elements.ConvertedColumn) if rebuilt else (elements.ConvertedColumn,)
    return tuple(
        conversion_hash(m.element.table_id, m.element.column_id)
        for m in mutations
        if isinstance(m.element, kinds) and m.state is State.PUBLIC
    )
