"""A schema change by hand: versions of a table in intermediate states, raises, and generations from a real scan."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from seachange.engine.buffer.segment_staging import write_rows
from seachange.engine.encode.write_plan import compile_write_plan
from seachange.engine.node.node import Node
from seachange.engine.replica.committer import Submission
from seachange.engine.transaction.checked_snapshot import CheckedSnapshot
from seachange.model.ids import CommitId, IndexId, Seq
from seachange.model.log import CommitRequest, Committed, GenerationChange, Outcome, VersionRaise
from seachange.model.schema.descriptor import Index, Table
from seachange.model.segments import GenerationMember, SegmentKind
from seachange.model.states import State


def publish(node: Node, before: Table, **changes: Any) -> Table:
    """The next version of a table."""
    after = replace(before, version=before.version + 1, **changes)
    txn = node.begin()
    txn.definitions.publish(before, after)
    txn.commit()
    return after


def with_index(node: Node, table: Table, index: Index) -> Table:
    """A version in which an index comes, or changes its state."""
    others = tuple(i for i in table.secondary if i.id != index.id)
    return publish(node, table, secondary=(*others, index))


def new_index(node: Node, name: str, key: Iterable[Any], unique: bool, state: State = State.WRITE_ONLY) -> Index:
    (id_,) = node.parts.catalog.allocate_ids(1)
    return Index(IndexId(id_), name, tuple(key), unique, state=state)


def submit(node: Node, **request: Any) -> Outcome:
    epoch = node.epoch
    head = epoch.catch_up()
    request = {"validated": head, "oldest": head} | request
    outcome = epoch.committer.submit(Submission(CommitRequest(CommitId(node.parts.entropy.token(16)), **request)))
    epoch.catch_up()
    return outcome


def fence(node: Node, *tables: Table) -> Seq:
    outcome = submit(node, raises=tuple(VersionRaise(t.id, t.version) for t in tables))
    assert isinstance(outcome, Committed), outcome
    return outcome.seq


def attach(node: Node, table: Table, index: Index, at: Seq) -> None:
    """Gives an index its generation: the entries of all rows as of `at`."""
    past = node.begin(as_of=at)
    scan = past.reads.scan(table, hidden=True)
    with node.duck.cursor() as cursor:
        for name, relation in scan.relations.items():
            cursor.register(name, relation)
        rows = cursor.execute(scan.sql, dict(scan.parameters)).fetchall()
    plan = compile_write_plan(table).entry(index.id)
    entries = [entry for entry in CheckedSnapshot(past).entries(table, index, rows) if entry is not None]
    entries.sort(key=lambda entry: plan.codec.encode(entry[: plan.key_width]))
    segments = write_rows(past.state, plan, entries, SegmentKind.DATA, fresh=True)
    past.rollback()
    members = tuple(GenerationMember(segment) for segment in segments)
    outcome = submit(node, generations=(GenerationChange(index.id, None, at, members),))
    assert isinstance(outcome, Committed), outcome
