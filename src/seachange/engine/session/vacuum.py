"""VACUUM: a job for each table, which the session runs to its end as it does those of schema changes."""

from __future__ import annotations

from seachange import errors
from seachange.changer.job import job_change, vacuum_job
from seachange.changer.ports import Lost
from seachange.engine.jobs.job_commits import NodeChanges
from seachange.engine.node.node import Node
from seachange.engine.replica.epoch import EpochState
from seachange.engine.session.job_session import JobStatement
from seachange.engine.transaction.transaction import Transaction
from seachange.model.change.vacuum import VacuumWork
from seachange.model.jobs import JobId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.temporary import is_temporary
from seachange.model.statements import Vacuum
from seachange.sql.change.object_access import describe
from seachange.storage.plan import quote


def tables_of(statement: Vacuum, transaction: Transaction) -> tuple[Table, ...]:
    """Those that are named, which the role must own, or all that it does."""
    actor = transaction.state.rights.actor
    if not statement.tables:
        owned = (t for t in transaction.schema.tables() if actor.owns(transaction.state.rights.access_of(t)))
        return tuple(t for t in owned if not is_temporary(t.schema))
    named = tuple(transaction.schema.table(name.schema, name.name) for name in statement.tables)
    for table in named:
        if not actor.owns(transaction.state.rights.access_of(table)):
            raise errors.InsufficientPrivilege(detail=f"must be owner of {describe(table)}")
    return named


def await_table_locks(table: Table, transaction: Transaction) -> None:
    """Waits for other sessions that have locked the table by LOCK TABLE. One that locks it afterwards does not wait for
    the job, which changes no rows."""
    with transaction.state.epoch.noticing_end():
        transaction.locks.await_table_locks(table)


def maintain(
    node: Node, table: Table, full: bool, settings: tuple[tuple[str, str], ...], statement: JobStatement
) -> None:
    """Runs the job of a table, held by this node until it has ended."""
    job_id = node.parts.catalog.new_job_id()
    node.jobs.hold(job_id)
    try:
        _create(node, job_id, table, full, settings)
    except BaseException:
        node.jobs.let_go(job_id)
        raise
    statement.run(job_id)


def _create(node: Node, job_id: JobId, table: Table, full: bool, settings: tuple[tuple[str, str], ...]) -> None:
    text = f"VACUUM {'FULL ' if full else ''}{quote(table.schema)}.{quote(table.name)}"
    upkeep = VacuumWork(table.id, tuple(index.id for index in table.indexes), full)
    job = vacuum_job(job_id, text, upkeep, settings)

    def record(epoch: EpochState) -> None:
        try:
            NodeChanges(node.parts, epoch).record(job_change(job, "begins"))
        except Lost as lost:
            # No other node knows of the job yet: only this node's epoch can have ended.
            raise errors.StaleNode(node=node.name) from lost

    node.in_epoch(record)
