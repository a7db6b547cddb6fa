"""A session: statements of one client, one after the other, in transactions of its own or given by BEGIN.

What stands around each (`guard.py`), how one stands for itself (`alone.py`) and when it is its turn (`turns.py`) are
values of their own; the session has the block, and knows in whose name and as of when it begins.

**Invariant:** whatever happens to a statement, the session ends up idle, in an open transaction, or in a failed one
that only COMMIT, ROLLBACK and ROLLBACK TO leave; no transaction outlives it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, TextIO, TypeVar

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.context.session_facts import SessionFacts
from seachange.engine.context.statement_calls import NamedStatements, StatementCall, prepare_one
from seachange.engine.context.transaction_mode import ALONE
from seachange.engine.node.node import Node
from seachange.engine.replica.node_parts import TEMPORARY
from seachange.engine.session.admission import Admission
from seachange.engine.session.autocommit import Autocommit
from seachange.engine.session.block_resume import BlockStatements
from seachange.engine.session.cursors import CursorRows, OpenCursors
from seachange.engine.session.ddl_queue import DdlQueue
from seachange.engine.session.enum_labels import labelled
from seachange.engine.session.implicit_transaction import Way, find_way, run_in_block, settings_kept
from seachange.engine.session.lock_table import lock_tables
from seachange.engine.session.pinned_port import Pins
from seachange.engine.session.rerun import run_current, run_held
from seachange.engine.session.savepoints import Point, Savepoints
from seachange.engine.session.session_control import is_control, leaves_results, run_control
from seachange.engine.session.session_state import TransactionStatus
from seachange.engine.session.shaped_port import shaped
from seachange.engine.session.statement_guard import Guard
from seachange.engine.session.vacuum import maintain, tables_of
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import Seq
from seachange.model.isolation import Isolation
from seachange.model.jobs import JobId
from seachange.model.relation import RelationName
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.search_path import parse_path
from seachange.model.statements.session_statements import (
    CopyStream,
    ExecutePrepared,
    FetchCursor,
    LockTables,
    NeedlessStatement,
    Vacuum,
)
from seachange.sql.change.privilege_checks import check_needs
from seachange.sql.change.running_changes import Busy
from seachange.sql.copy.copy import CopyIn, copy_out
from seachange.sql.copy.copy_text import CopyFormat, stream_format
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.parsing.mentions import EVERYTHING
from seachange.sql.parsing.parse import Parsed, TreeStatement
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, ResultColumn, RowSink, show_in_zone
from seachange.sql.query.databases import check_database
from seachange.sql.run.describe import Description, describe, plain_columns
from seachange.sql.run.execute import Prepared, prepare, run_statement
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import parse_as_of
from seachange.sql.settings.settings import READ_ONLY
from seachange.storage.plan import quote
from seachange.storage.spill_file import Spool
from seachange.values.timezone import session_zone
from seachange.values.types import SqlType

_MICROSECOND = dt.timedelta(microseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

T = TypeVar("T")


class Session:
    def __init__(self, node: Node, user: str = "seachange", database: str = "seachange") -> None:
        self.node = node
        self.user = user
        self.database = database
        self.settings = SessionSettings(node.parts.settings)
        node.retention.listen(self.settings)
        self.notices: list[str] = []
        self.status = TransactionStatus.IDLE
        self._duck = DuckSession(node.duck.cursor(), {"session_database": database})
        # Begun by the first statement that needs it, so that modes can be set after BEGIN.
        self._transaction: Transaction | None = None
        # Who this session is to others' locks, and how it hears that a statement is to end.
        self.client = node.new_client(self.notices)
        self._admission = Admission(node, user, database, self.client, self.settings)
        self.prepared = NamedStatements()
        self._facts = SessionFacts(user, database, self.client.actor, self.settings, self.check_setting, self.prepared)
        self._guard = Guard(node, self.client, self._duck, self.settings)
        self._pins = Pins(node, self.settings)
        self._own = Autocommit(node.jobs, self.client.advisory, self.settings, self.notices, self._begin, self._settle)
        self._turns = DdlQueue(node, self._facts, self.client, self.notices, self._guard, self._own, self._run)
        # Whether the client has asked to end what it sent last.
        self.is_interrupted = False
        self._savepoints = Savepoints()
        self._block = BlockStatements(self._run, self.settings)
        self.cursors = OpenCursors()
        self.read_only = False

    def close(self) -> None:
        self.rollback()
        # Whatever the client has said of what it writes itself.
        self.settings.set(READ_ONLY, "off")
        self.drop_temporary()
        self.unlock_advisory()
        self._admission.end()
        self.node.retention.leave(self.settings)
        self._duck.close()

    def drop_temporary(self) -> None:
        """Drops the temporary tables of the session; if that cannot be, others do once its node is gone."""
        with suppress(errors.Error):
            for name in self.client.temporary.names(self.node.epoch.schemas.newest.by_id.values()):
                self.execute(f"drop table if exists {OWN_SCHEMA}.{quote(name)} cascade")

    def check_login(self) -> None:
        """Whether there are such a role, which may have a session, and such a database."""
        self._admission.check_login()
        if self._admission.is_limited:
            # The first transaction finds out.
            self.in_transaction(lambda transaction: None, repeatable=True)

    def check_setting(self, name: str, value: str | None) -> None:
        self._admission.check_setting(name, value, self._transaction)

    def interrupt(self) -> None:
        """Cancels the running statement, and those that came with it and have not begun; may be called from another
        thread."""
        # First: when the running one has ended without having heard, the next looks at it.
        self.is_interrupted = True
        self._guard.interrupt()

    def check_cancelled(self) -> None:
        """Between two statements that came together."""
        if self.is_interrupted:
            raise errors.QueryCanceled(reason="user request")

    def unlock_advisory(self) -> None:
        """Gives up the advisory locks of the session."""
        self.client.advisory.unlock_all(self.client.actor)

    # Statements.

    def execute(self, text: str, values: Sequence[Any] = ()) -> Result:
        """Runs every statement of the text and gives the result of the last."""
        results = self.execute_all(text, values)
        return results[-1] if results else Result("")

    def prepare(self, text: str) -> tuple[Prepared, ...]:
        """The statements of a text; while a long one is parsed, it can be cancelled and has a time limit."""
        return self._guard.prepare(text)

    @property
    def stopping_us(self) -> int:
        """For how long the running statement has been asked to end, and has not."""
        return self._guard.stopping_us

    def execute_all(self, text: str, values: Sequence[Any] = ()) -> list[Result]:
        """Runs every statement of the text. Without BEGIN, the text is one transaction."""
        self.is_interrupted = False
        try:
            prepared = self.prepare(text)
        except errors.Error:
            self.spoil()
            raise
        way = find_way(prepared, self)

        def run(each: Prepared) -> Result:
            self.check_cancelled()
            return self._execute_one(StatementCall(each, values))

        if way is Way.BLOCK:
            return run_in_block(self, prepared, run)
        if way is Way.EACH:
            with settings_kept(self):
                return [run(each) for each in prepared]
        results: list[Result] = []
        self.execute_whole(prepared, results, values)
        return results

    def execute_whole(self, prepared: Sequence[Prepared], results: list[Result], values: Sequence[Any] = ()) -> None:
        """Statements that are one transaction. `results` are those that the last attempt came to."""

        def work(transaction: Transaction) -> None:
            results.clear()
            for statement in prepared:
                self.check_cancelled()
                if results:
                    transaction.start_statement()
                run = partial(self._run, StatementCall(statement, values), transaction)
                results.append(self._guard.run(run, statement.command))

        self._own.until_done(work)

    def copy_out(self, query: str, file: TextIO, format_: CopyFormat) -> int:
        """Writes the rows of a query to a file as they come."""
        statement = prepare_one(query, ("SELECT",)).parsed
        if not isinstance(statement, TreeStatement):
            raise errors.Bug(detail="a query that is not a tree")

        def write(transaction: Transaction) -> int:
            self._tell(transaction)
            port = self.port(transaction)
            return run_current(transaction, lambda: copy_out(statement, port, self._duck, (), file, format_))

        return self.in_transaction(write)

    def copy_in(self, copy: CopyStream, open_file: Callable[[int], TextIO | BinaryIO]) -> int:
        """COPY ... FROM a file that is opened when it is known how many columns it is to have."""
        relation = copy.relation
        if relation is None:
            raise errors.Bug(detail="COPY into a query")
        format_ = stream_format(copy)

        def run(transaction: Transaction) -> int:
            if self._is_read_only or transaction.read_only:
                raise errors.ReadOnlyTransaction(command="COPY FROM")
            self._tell(transaction)
            check_database(relation.database, transaction)
            port = self.port(transaction)
            copying = CopyIn(port, port.table(relation.schema, relation.name), copy.columns, format_)
            return copying.run(open_file(copying.width))

        return self.in_transaction(run)

    def describe(self, prepared: Prepared, types: Sequence[SqlType | None], rows: bool = True) -> Description:
        """The types of a statement's parameters, with those that are known, and of its columns if `rows`."""
        parsed = prepared.parsed
        if isinstance(parsed, TreeStatement):
            return self.in_transaction(
                lambda transaction: self._describe(prepared, transaction, types, rows), True, looks_only=True
            )
        # Begins no transaction: the statement may say of which kind that is to be, or end one that has failed.
        return Description((), self._control_columns(parsed))

    def _control_columns(self, statement: Parsed) -> tuple[ResultColumn, ...] | None:
        match statement:
            case ExecutePrepared(name):
                named = self.prepared.find(name)
                return self.describe(named.prepared, named.types).columns if named is not None else None
            case FetchCursor(name, move=False):
                cursor = self.cursors.find(name)
                return cursor.result.columns if cursor is not None else None
            case _:
                return plain_columns(statement)

    def _describe(
        self, prepared: Prepared, transaction: Transaction, types: Sequence[SqlType | None], rows: bool
    ) -> Description:
        self._tell(transaction)
        transaction.shapes.statement = prepared.mentions
        port = self._port_for(prepared, transaction)
        self._duck.serve(port)
        try:
            return describe(prepared, port, self._duck, types, rows)
        finally:
            self._duck.serve(None)

    def execute_prepared(self, prepared: Prepared, values: Sequence[Any], sink: RowSink | None = None) -> Result:
        """Rows of a query go to `sink` while it runs, if they are many: then the result has none."""
        return self._execute_one(StatementCall(prepared, values, sink))

    def execute_kept(self, prepared: Prepared, values: Sequence[Any]) -> Result:
        """For who fetches the rows later: many of them are kept in a file."""
        bytes_max = self.settings.typed.temp_space_bytes_max
        kept = CursorRows(Spool(self.node.parts.data / TEMPORARY, bytes_max))
        return kept.fill(self.execute_prepared(prepared, values, kept))

    def _execute_one(self, call: StatementCall) -> Result:
        return self._guard.run(lambda: self._dispatch(call), call.prepared.command)

    def _dispatch(self, call: StatementCall) -> Result:
        if is_control(call.prepared.parsed):
            result = self._control(call)
            # The session is as it says: a time limit that has passed meanwhile comes too late.
            self._guard.is_settled = True
            return result
        if self.status is TransactionStatus.FAILED:
            raise errors.InFailedTransaction()
        if self.status is TransactionStatus.IDLE:
            return self._turns.run(call)
        return self._in_block(partial(self._block.run, call))

    def begin_queued(self, job: Job) -> Collection[JobId]:
        """Begins the statement of a job, which was queued; gives those that it still has to wait for."""
        return self._turns.begin_queued(job)

    def check_needs(self, statement: NeedlessStatement) -> None:
        if statement.kind is not None or statement.read or statement.for_superusers:
            self.in_transaction(partial(check_needs, statement))

    def vacuum(self, statement: Vacuum) -> None:
        if self.status is not TransactionStatus.IDLE:
            raise errors.ActiveTransaction(detail="VACUUM cannot run inside a transaction block")

        def work() -> None:
            tables = self._own.once(partial(tables_of, statement), may_write=False)
            maintain(self.node, tables, statement.full, self.settings.for_jobs(), self._turns.job_statement().run)

        self._guard.run(work)

    def _run(self, call: StatementCall, transaction: Transaction) -> Result:
        prepared = call.prepared
        if prepared.writes and (self._is_read_only or transaction.read_only):
            raise errors.ReadOnlyTransaction(command=prepared.command)
        self._tell(transaction)

        def run() -> Result:
            transaction.shapes.statement = prepared.mentions
            port = self._port_for(prepared, transaction)
            return run_statement(prepared, port, self._duck, call.values, self.notices, call.sink)

        while True:
            try:
                result = run_current(transaction, run, call.sink)
                return show_in_zone(result, session_zone())
            except Busy as busy:
                if transaction.stands_alone:
                    raise
                self._turns.wait_in_block(transaction, busy)

    def port(self, transaction: Transaction) -> TransactionPort:
        """The transaction as queries, and changes of rows, see it."""
        return self._pins.over(transaction, shaped(transaction))

    def _port_for(self, prepared: Prepared, transaction: Transaction) -> TransactionPort:
        # What defines tables is about tables as they are.
        return labelled(transaction) if prepared.is_definition else self.port(transaction)

    def _tell(self, transaction: Transaction) -> None:
        transaction.search_path = self._path()
        transaction.rights.identity = self._admission.identity
        transaction.session = self._facts
        transaction.write_locks.timeout_ms = self.settings.typed.lock_timeout_ms
        self._duck.ask(transaction.known)

    def _path(self) -> tuple[str, ...]:
        path = parse_path(self.settings.typed.search_path, self.user)
        own = self.client.temporary.schema
        # Looked into first, whether the path names it or not.
        return path if own is None else (own, *(name for name in path if name != OWN_SCHEMA))

    def in_transaction(self, work: Callable[[Transaction], T], repeatable: bool = False, looks_only: bool = False) -> T:
        """Runs in the open transaction; an error makes it a failed one. Outside, in one of its own, and again after a
        conflict if the work is `repeatable`. `looks_only`: it looks at descriptors at most."""
        if self.status is TransactionStatus.FAILED:
            raise errors.InFailedTransaction()
        if self.status is TransactionStatus.IDLE and repeatable:
            return self._guard.run(lambda: self._own.until_done(partial(_alone, work))[0])
        if self.status is TransactionStatus.IDLE:
            return self._guard.run(lambda: self._own.once(work))
        if not looks_only:
            # Nothing that could be run again.
            self._block.forget()
        return self._guard.run(lambda: self._in_block(work))

    def _in_block(self, work: Callable[[Transaction], T]) -> T:
        try:
            if self._transaction is None:
                self._transaction = self._begin()
            else:
                self._transaction.start_statement()
                self._transaction.rights.identity = self._admission.identity
            self._transaction.shapes.statement = EVERYTHING
            return run_held(self._transaction, partial(work, self._transaction))
        except BaseException:
            self._fail()
            raise

    def _settle(self, transaction: Transaction) -> None:
        self._guard.run(lambda: self._commit(transaction))

    def _commit(self, transaction: Transaction) -> None:
        try:
            self._end_temporary(transaction)
        except BaseException:
            transaction.rollback()
            raise
        can_resume = self._block.can_resume(transaction) and not self.client.temporary.on_commit
        transaction.write_locks.resumes = can_resume
        if transaction.commit(partial(self._resume, transaction) if can_resume else None) is not None:
            self._guard.is_settled = True

    def _resume(self, transaction: Transaction) -> bool:
        told = len(self.notices)
        try:
            return self._block.resume(transaction)
        finally:
            del self.notices[told:]

    def _end_temporary(self, transaction: Transaction) -> None:
        if self.client.temporary.on_commit:
            for statement in self.client.temporary.statements(transaction):
                (prepared,) = prepare(statement)
                run_statement(prepared, labelled(transaction), self._duck, (), self.notices)

    def _begin(self, may_write: bool = True) -> Transaction:
        as_of = parse_as_of(self.settings.typed.as_of)
        if isinstance(as_of, dt.datetime):
            as_of = self.node.sequence_at((as_of - _EPOCH) // _MICROSECOND)
        seq = None if as_of is None else Seq(as_of)
        # Nothing has been done yet: if the epoch ends now, the transaction begins in the next one.
        return self.node.in_epoch(lambda epoch: self._begin_at(seq, may_write))

    def _begin_at(self, seq: Seq | None, may_write: bool) -> Transaction:
        transaction = self.node.begin(self._isolation(), seq, self.client, may_write and not self._is_read_only)
        transaction.search_path = self._path()
        transaction.rights.identity = self._admission.identity
        transaction.session = self._facts
        # A session waits, and runs a statement again.
        transaction.write_locks.waits = True
        try:
            self.client.advisory.check_epoch(transaction.epoch)
            self._admission.begin(transaction.write_locks)
        except errors.Error:
            transaction.rollback()
            raise
        return transaction

    def _isolation(self) -> Isolation:
        typed = self.settings.typed
        return typed.default_isolation if self.status is TransactionStatus.IDLE else typed.isolation

    @property
    def _is_read_only(self) -> bool:
        """Outside of a block, as the next one would be."""
        return self.settings.typed.is_read_only if self.status is TransactionStatus.IDLE else self.read_only

    # Transactions.

    def begin(self, isolation: Isolation | None = None, read_only: bool | None = None) -> None:
        if self.status is not TransactionStatus.IDLE:
            self.notices.append("there is already a transaction in progress")
            return
        level = isolation or self.settings.typed.default_isolation
        self.settings.begin()
        self.settings.set("transaction_isolation", level.value, local=True)
        self.read_only = self._is_read_only if read_only is None else read_only
        self.status = TransactionStatus.OPEN

    def commit(self) -> bool:
        """False if there was a failed transaction, which has been rolled back."""
        if self.status is TransactionStatus.IDLE:
            return True
        committed = False
        try:
            if self.status is TransactionStatus.OPEN and self._transaction is not None:
                transaction = self._transaction
                transaction.write_locks.timeout_ms = self.settings.typed.lock_timeout_ms
                self._settle(transaction)
            elif self._transaction is not None:
                self._transaction.rollback()
            committed = self.status is TransactionStatus.OPEN
        finally:
            self._end(committed)
        return committed

    def rollback(self) -> None:
        if self._transaction is not None:
            self._transaction.rollback()
        if self.status is not TransactionStatus.IDLE:
            self._end(committed=False)

    def _end(self, committed: bool) -> None:
        self._transaction = None
        self._block.clear()
        self._savepoints.clear()
        self.cursors.end(committed)
        self.read_only = False
        self.status = TransactionStatus.IDLE
        self.settings.end(committed)

    def spoil(self) -> None:
        """A statement has failed before it was run, by its text or its parameters: the transaction fails with it."""
        if self.status is TransactionStatus.OPEN:
            self._fail()

    def _fail(self) -> None:
        # With a savepoint there is a way back: what was done before it is still wanted.
        if self._transaction is not None and not self._savepoints:
            self._transaction.rollback()
            self._transaction = None
        self.status = TransactionStatus.FAILED

    @property
    def has_begun(self) -> bool:
        return self._transaction is not None

    def set_constraints(self, names: Sequence[RelationName] | None, deferred: bool) -> None:
        self.in_transaction(lambda transaction: transaction.set_constraints(names, deferred))

    def lock_tables(self, statement: LockTables) -> None:
        def lock(transaction: Transaction) -> None:
            self._tell(transaction)
            lock_tables(transaction, statement)

        self.in_transaction(lock)

    def savepoint(self, name: str) -> None:
        if self._transaction is None:
            self._transaction = self._begin()
        self._savepoints.push(
            Point(name, self._transaction.savepoint(), self.settings.mark(), self.read_only, self.cursors.mark())
        )

    def release(self, name: str) -> None:
        self._savepoints.release(name)

    def rollback_to(self, name: str) -> None:
        point = self._savepoints.back_to(name)
        if self._transaction is None:
            raise errors.Bug(detail="a savepoint without a transaction")
        self._transaction.back_to(point.mark)
        self.settings.restore(point.settings)
        self.cursors.restore(point.cursors)
        self.read_only = point.read_only
        self.status = TransactionStatus.OPEN

    def _control(self, call: StatementCall) -> Result:
        if not leaves_results(call.prepared.parsed):
            self._block.forget()
        try:
            return run_control(self, call.prepared.parsed, call.values)
        except errors.Error:
            if self.status is TransactionStatus.OPEN:
                self._fail()
            raise


def _alone(work: Callable[[Transaction], T], transaction: Transaction) -> T:
    """In a transaction that is nothing else."""
    transaction.standing = ALONE
    return work(transaction)
