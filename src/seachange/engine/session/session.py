"""A session: the statements of one client, one after the other, in autocommit or in a transaction block.

The session is built of parts with names: the guard around each statement, the loop that takes a statement in autocommit
to its commit, the transaction block, and how transactions of the session begin.

**Invariant:** after every statement the session is idle, in an open transaction block or in a failed one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, TextIO, TypeVar

from seachange import errors
from seachange.changer.job import Job
from seachange.engine.context.statement_calls import NamedStatements, StatementCall, prepare_one
from seachange.engine.context.statement_context import AUTOCOMMIT, SessionFacts
from seachange.engine.imports.table_import import import_table
from seachange.engine.node.node import Node
from seachange.engine.replica.node_parts import TEMPORARY
from seachange.engine.replica.open_sessions import EMBEDDED, ClientLink
from seachange.engine.replica.temporary_relations import drop_text, temporary_relations
from seachange.engine.session.admission import Admission
from seachange.engine.session.block_jobs import BlockJobs
from seachange.engine.session.cursors import CursorRows, OpenCursors
from seachange.engine.session.feed_statements import change_feed
from seachange.engine.session.implicit_transaction import ImplicitBlock, Way, find_way, settings_kept
from seachange.engine.session.job_session import SessionJobs
from seachange.engine.session.lock_table import lock_tables
from seachange.engine.session.look_ups import LookUps
from seachange.engine.session.outside_blocks import check_inside_block
from seachange.engine.session.session_control import is_control, leaves_results, run_control
from seachange.engine.session.session_monitor import SessionMonitor
from seachange.engine.session.session_state import BlockState, TransactionStatus
from seachange.engine.session.session_transactions import SessionTransactions
from seachange.engine.session.statement_guard import Guard
from seachange.engine.session.statement_loop import StatementLoop, StatementRunner, run_current
from seachange.engine.session.statement_watch import StatementWatch
from seachange.engine.session.transaction_block import TransactionBlock
from seachange.engine.session.vacuum import await_table_locks, maintain, tables_of
from seachange.engine.shapes.pins import Pins
from seachange.engine.transaction.transaction import Transaction
from seachange.model.isolation import Isolation
from seachange.model.jobs import JobId
from seachange.model.relation import RelationName
from seachange.model.schema.descriptor import Table
from seachange.model.schema.temporary import OWN_SCHEMA
from seachange.model.statements import (
    CopyStream,
    ExecutePrepared,
    ExportTable,
    FeedStatement,
    FetchCursor,
    ImportTable,
    LockTables,
    NeedlessStatement,
    Vacuum,
)
from seachange.sql.change.privilege_checks import check_needs
from seachange.sql.copy.copy import CopyIn, copy_out
from seachange.sql.copy.copy_text import CopyFormat, stream_format
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.parsing.parse import Parsed, TreeStatement
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result, ResultColumn, RowSink
from seachange.sql.query.databases import check_database
from seachange.sql.run.describe import Description, describe, plain_columns
from seachange.sql.run.execute import Prepared, prepare_pattern
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.settings import READ_ONLY
from seachange.storage.spill_file import Spool
from seachange.values.types import SqlType

T = TypeVar("T")


class Session:
    def __init__(
        self,
        node: Node,
        user: str = "seachange",
        database: str = "seachange",
        link: ClientLink = EMBEDDED,
    ) -> None:
        self.node = node
        self.user = user
        self.database = database
        self.settings = SessionSettings(node.parts.settings)
        node.retention.listen(self.settings)
        self.notices: list[str] = []
        self.prepared = NamedStatements()
        self.cursors = OpenCursors()
        # The owner of the session's locks, and what interrupts its statements.
        self.client = node.new_client(self.notices)
        self._duck = DuckSession(node.duck.cursor(), {"session_database": database})
        self._state = BlockState()
        self._admission = Admission(node, user, database, self.client, self.settings, self._state)
        facts = SessionFacts(
            user, database, self.client.actor, self.settings, self._admission.check_setting, self.prepared
        )
        self._guard = Guard(node, self.client, self._duck, self.settings)
        self._jobs = SessionJobs(node, facts, self.client, self.notices, link.report)
        self._transactions = SessionTransactions(
            node,
            facts,
            self.client,
            self._admission,
            self._state,
            self._guard,
            self._duck,
            self.notices,
            BlockJobs(self._jobs),
        )
        self._runner = StatementRunner(self._transactions, Pins(self.settings), self._duck, self._jobs, self.notices)
        self._look_ups = LookUps(node, self._transactions, self._guard, self.settings)
        self._loop = StatementLoop(self._runner, self._guard, self._transactions, self.settings, self._look_ups)
        self._block = TransactionBlock(
            self._state, self._transactions, self._runner, self.settings, self.client, self.cursors, self.notices
        )
        self._watch = StatementWatch(node.parts, self.client.actor, user, database, self.settings)
        now_us = node.parts.clock.wall_us()
        self.monitor = SessionMonitor(
            self.client.actor, user, database, now_us, link, self._guard, self._state, self.settings, self._jobs.report
        )
        node.parts.sessions.open(self.client.actor, self.monitor)

    def close(self) -> None:
        self.rollback()
        # A session that was ended runs its own last statements.
        self._guard.ending = None
        # The mode of the client must not refuse the session's own writes.
        self.settings.set(READ_ONLY, "off")
        self.drop_temporary()
        self.unlock_advisory()
        self._admission.end()
        self.node.retention.leave(self.settings)
        self._duck.close()
        self.node.parts.sessions.close(self.client.actor)

    def drop_temporary(self) -> None:
        """Drops the temporary relations of the session; if that fails, other nodes do it once this node has ended."""
        with suppress(errors.Error):
            for found in temporary_relations(self.node.epoch.schemas.newest):
                if found.schema == self.client.temporary.schema:
                    self.execute(drop_text(OWN_SCHEMA, found))

    def check_login(self) -> None:
        """Whether the role exists and may log in, and whether the database exists."""
        self._admission.check_login()
        if self._admission.is_limited:
            # The first transaction takes a connection of the role and the database.
            self.in_transaction(lambda transaction: None, repeatable=True)

    def check_setting(self, name: str, value: str | None) -> None:
        self._admission.check_setting(name, value)

    def interrupt(self) -> None:
        """Cancels the running statement, and those that came with it and have not begun; may be called from another
        thread."""
        self.monitor.interrupt()

    def _check_open(self) -> None:
        if self._guard.ending is not None:
            self._block.rollback()
            raise self._guard.ending

    def check_cancelled(self) -> None:
        """Between two statements that came together: a transaction block fails with the one that is not begun."""
        if self.monitor.is_interrupted:
            self.mark_failed()
            raise errors.QueryCanceled(reason="user request")

    def unlock_advisory(self) -> None:
        """Releases the advisory locks of the session."""
        self.client.advisory.unlock_all(self.client.actor)

    @property
    def stopping_us(self) -> int:
        """For how long the running statement has been asked to end, and has not."""
        return self._guard.stopping_us

    # Statements.

    def execute(self, text: str, values: Sequence[Any] = ()) -> Result:
        """Runs every statement of the text and returns the result of the last."""
        results = self.execute_all(text, values)
        return results[-1] if results else Result("")

    def prepare(self, text: str) -> tuple[Prepared, ...]:
        """The statements of a text; while a long one is parsed, it can be cancelled and has a time limit."""
        return self._guard.prepare(text)

    def prepare_text(self, text: str) -> tuple[Prepared, ...]:
        """The same for a text without parameters, which may share its plan with texts that have other constants."""
        shared = prepare_pattern(text)
        return (shared,) if shared is not None else self.prepare(text)

    def execute_all(self, text: str, values: Sequence[Any] = ()) -> list[Result]:
        """Runs every statement of the text. Without BEGIN, the text is one transaction."""
        self.monitor.is_interrupted = False
        try:
            prepared = self.prepare(text) if values else self.prepare_text(text)
        except errors.Error:
            self.mark_failed()
            raise
        if len(prepared) == 1:
            self.check_cancelled()
            return [self.execute_prepared(prepared[0], values)]
        way = find_way(prepared, self)
        results: list[Result] = []
        if way is Way.BLOCK:
            return self._execute_in_implicit_block(prepared, values)
        if way is Way.EACH:
            with settings_kept(self):
                for statement in prepared:
                    self.check_cancelled()
                    results.append(self.execute_prepared(statement, values))
        else:
            self.execute_whole(prepared, results, values)
        return results

    def _execute_in_implicit_block(self, prepared: Sequence[Prepared], values: Sequence[Any]) -> list[Result]:
        block = ImplicitBlock(self)
        results = []
        try:
            for number, statement in enumerate(prepared, 1):
                with block.statement(statement.parsed, is_last=number == len(prepared)):
                    self.check_cancelled()
                    results.append(self.execute_prepared(statement, values, following=prepared[number:]))
            block.end(commit=True)
        except BaseException:
            block.end(commit=False)
            raise
        return results

    def execute_whole(self, prepared: Sequence[Prepared], results: list[Result], values: Sequence[Any] = ()) -> None:
        """Statements that are one transaction. `results` are those of the last attempt."""

        def work(transaction: Transaction) -> None:
            results.clear()
            for number, statement in enumerate(prepared, 1):
                self.check_cancelled()
                if results:
                    transaction.start_statement()
                with self._guard.statement(statement.command, statement.text):
                    self._check_open()
                    check_inside_block(statement.parsed)
                    call = StatementCall(statement, values, following=self._joinable(prepared[number:]))
                    began_us = self.node.parts.clock.steady_us()
                    with statement.origin:
                        results.append(self._runner.run(call, transaction))
                    self._watch.note(statement, began_us, results[-1])

        self._loop.commit(work)

    def execute_prepared(
        self,
        prepared: Prepared,
        values: Sequence[Any],
        sink: RowSink | None = None,
        following: Sequence[Prepared] = (),
    ) -> Result:
        """Rows of a query go to `sink` while it runs, if they are many: then the result has none. `following` are the
        statements after it in the same message."""
        call = StatementCall(prepared, values, sink, self._joinable(following))
        began_us = self.node.parts.clock.steady_us()
        result: Result | None = None
        try:
            if self._state.status is TransactionStatus.IDLE:
                with prepared.origin:
                    result = self._look_ups.answer(call)
            if result is None:
                with prepared.origin, self._guard.statement(prepared.command, prepared.text):
                    self._check_open()
                    self._check_status(prepared)
                    if is_control(prepared.parsed):
                        result = self._control(call)
                        # The session is in its new state: a time limit that has passed meanwhile comes too late.
                        self._guard.note_committed()
                    elif self._state.status is TransactionStatus.IDLE:
                        result = self._loop.run(call)
                    else:
                        result = self._block.run(call)
        except errors.Error:
            self._watch.note(prepared, began_us, None)
            raise
        self._watch.note(prepared, began_us, result)
        return result

    def _check_status(self, prepared: Prepared) -> None:
        if self._state.status is TransactionStatus.OPEN:
            self._check_inside_block(prepared)
        if self._state.status is TransactionStatus.FAILED and not is_control(prepared.parsed):
            raise errors.InFailedTransaction()

    def _joinable(self, following: Sequence[Prepared]) -> Sequence[Prepared]:
        """A time limit is that of one statement."""
        return () if following and self.settings.typed.statement_timeout_ms else following

    def _check_inside_block(self, prepared: Prepared) -> None:
        try:
            check_inside_block(prepared.parsed)
        except errors.InsideBlock:
            self.mark_failed()
            raise

    def execute_kept(self, prepared: Prepared, values: Sequence[Any]) -> Result:
        """For a client that fetches the rows later: many rows are kept in a file."""
        kept = CursorRows(Spool(self.node.parts.data / TEMPORARY, self.settings.typed.temp_space_bytes_max))
        return kept.fill(self.execute_prepared(prepared, values, kept))

    def _control(self, call: StatementCall) -> Result:
        if not leaves_results(call.prepared.parsed):
            self._block.forget()
        try:
            return run_control(self, call.prepared.parsed, call.values)
        except errors.Error:
            self.mark_failed()
            raise

    def begin_queued(self, job: Job) -> Collection[JobId]:
        """Begins the statement of a queued job; returns the jobs that it still has to wait for."""
        return self._loop.begin_queued(job)

    def copy_out(self, query: str, file: TextIO, format_: CopyFormat) -> int:
        """Writes the rows of a query to a file as they come."""
        statement = prepare_one(query, ("SELECT",)).parsed
        if not isinstance(statement, TreeStatement):
            raise errors.Bug(detail="a query that is not a tree")

        def write(transaction: Transaction) -> int:
            self._transactions.enter(transaction)
            port = self.port(transaction)
            return run_current(transaction, lambda: copy_out(statement, port, self._duck, (), file, format_))

        return self.in_transaction(write)

    def copy_in(self, copy: CopyStream, open_file: Callable[[int], TextIO | BinaryIO]) -> int:
        """COPY ... FROM a file that is opened when the number of its columns is known."""
        relation = copy.relation
        if relation is None:
            raise errors.Bug(detail="COPY into a query")
        format_ = stream_format(copy)

        def run(transaction: Transaction) -> int:
            if self._transactions.is_read_only or transaction.state.snapshot.is_past:
                raise errors.ReadOnlyTransaction(command="COPY FROM")
            self._transactions.enter(transaction)
            check_database(relation.database, transaction.port)
            port = self.port(transaction)
            copying = CopyIn(port, port.names.table(relation.schema, relation.name), copy.columns, format_)
            return copying.run(open_file(copying.width))

        return self.in_transaction(run)

    def describe(self, prepared: Prepared, types: Sequence[SqlType | None], rows: bool = True) -> Description:
        """The types of a statement's parameters, with those that are known, and of its columns if `rows`."""
        parsed = prepared.parsed
        if isinstance(parsed, TreeStatement):
            with prepared.origin:
                return self.in_transaction(
                    lambda transaction: self._describe(prepared, transaction, types, rows), True, looks_only=True
                )
        # Begins no transaction: the statement may set the mode of the next one, or end one that has failed.
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
        self._transactions.enter(transaction, prepared.mentions)
        port = self._runner.port_for(prepared, transaction)
        self._duck.serve(port)
        try:
            return describe(prepared, port, self._duck, types, rows)
        finally:
            self._duck.serve(None)

    # Work in a transaction.

    def port(self, transaction: Transaction) -> TransactionPort:
        """The transaction as queries, and changes of rows, see it."""
        return self._runner.port(transaction)

    def in_transaction(self, work: Callable[[Transaction], T], repeatable: bool = False, looks_only: bool = False) -> T:
        """Runs in the open transaction; an error makes it a failed one. Outside, in autocommit, and again after a
        conflict if the work is `repeatable`. `looks_only`: it reads descriptors at most."""
        self._check_open()
        if self._state.status is TransactionStatus.FAILED:
            raise errors.InFailedTransaction()
        with self._guard.statement():
            if self._state.status is not TransactionStatus.IDLE:
                if not looks_only:
                    # The work cannot be run again with the statements before it.
                    self._block.forget()
                return self._block.work(work)
            result, _ = self._loop.commit(work, AUTOCOMMIT) if repeatable else self._loop.commit(work, retries_max=0)
            return result

    def check_needs(self, statement: NeedlessStatement) -> None:
        if statement.kind is not None or statement.read or statement.for_superusers:
            self.in_transaction(lambda transaction: check_needs(statement, transaction.port))

    def vacuum(self, statement: Vacuum) -> None:
        with self._guard.statement():
            tables, _ = self._loop.commit(partial(tables_of, statement), may_write=False, retries_max=0)
            for table in tables:
                self._loop.commit(partial(await_table_locks, table), may_write=False)
                maintain(self.node, table, statement.full, self.settings.for_jobs(), self._jobs.statement())

    def import_table(self, statement: ImportTable) -> None:
        def load(transaction: Transaction) -> int:
            return import_table(transaction, self._duck, statement, self.settings.for_jobs(), self.notices)

        self.in_transaction(load, repeatable=True)

    def export_table(self, statement: ExportTable) -> None:
        """As of the newest commit, which the transaction need not see."""

        def find(transaction: Transaction) -> Table:
            found = transaction.port.names.table(statement.table.schema, statement.table.name)
            transaction.state.rights.check_access(found, "SELECT")
            return found

        exported = self.node.exports.export(self.in_transaction(find, looks_only=True).id)
        self.notices.append(f"snapshot {exported.snapshot} of {statement.table} is in {exported.address}")

    def change_feed(self, statement: FeedStatement) -> Result:
        return self.in_transaction(partial(change_feed, statement, notices=self.notices), looks_only=True)

    def set_constraints(self, names: Sequence[RelationName] | None, deferred: bool) -> None:
        self.in_transaction(lambda transaction: transaction.set_constraints(names, deferred))

    def lock_tables(self, statement: LockTables) -> None:
        def lock(transaction: Transaction) -> None:
            self._transactions.enter(transaction)
            lock_tables(transaction, statement)

        self.in_transaction(lock)

    # The transaction block.

    @property
    def status(self) -> TransactionStatus:
        return self._state.status

    @property
    def read_only(self) -> bool:
        return self._state.read_only

    @property
    def has_begun(self) -> bool:
        return self._state.transaction is not None

    @property
    def open_transaction(self) -> Transaction | None:
        """That of the block, if a statement has begun it."""
        return self._state.transaction

    def begin(self, isolation: Isolation | None = None, read_only: bool | None = None) -> None:
        self._block.begin(isolation, read_only)

    def set_read_only(self, read_only: bool) -> None:
        self._block.set_read_only(read_only)

    def commit(self) -> bool:
        """False if there was a failed transaction, which has been rolled back."""
        self._check_open()
        return self._block.commit()

    def rollback(self) -> None:
        self._block.rollback()

    def mark_failed(self) -> None:
        """A statement has failed before it was run, by its text or its parameters: the transaction fails with it."""
        self._block.mark_failed()

    def savepoint(self, name: str) -> None:
        self._block.savepoint(name)

    def release(self, name: str) -> None:
        self._block.release(name)

    def rollback_to(self, name: str) -> None:
        self._block.rollback_to(name)
