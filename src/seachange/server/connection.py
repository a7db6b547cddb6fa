"""One client's connection after its log-in: messages become calls of its session, and results become messages.

Runs on a thread while there are messages, and knows no socket.

**Invariant:** every Query and every Sync is answered by exactly one ReadyForQuery; after an error in the extended
protocol everything up to the next Sync is skipped.
**Invariant:** statements between two Syncs are one transaction, as in PostgreSQL, unless there is just one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from seachange import errors
from seachange.engine.context.statement_calls import NamedStatement
from seachange.engine.session.cursors import OpenCursor
from seachange.engine.session.implicit_transaction import ImplicitBlock, Way, find_way, settings_kept
from seachange.engine.session.session import Session
from seachange.engine.session.session_control import is_way_out
from seachange.engine.session.session_state import TransactionStatus
from seachange.model.statements import CopyStream, FetchCursor
from seachange.runtime.nonblocking import WouldWait
from seachange.server import messages as m
from seachange.server.client_log import NO_LOG, ClientLog
from seachange.server.copying import Copying
from seachange.server.delivery import Delivery, describe_rows, encode_rows
from seachange.server.inbox import Inbox
from seachange.server.messages import error_report, notice_report
from seachange.server.outbox import Outbox
from seachange.server.portals import Portal, Portals, Statement, Statements
from seachange.server.values import TYPE_BY_OID, decode
from seachange.sql.parsing.parse import TreeStatement
from seachange.sql.port.result import Result, ResultColumn
from seachange.sql.run.describe import gives_rows
from seachange.sql.run.execute import Prepared
from seachange.values.timezone import InZone
from seachange.values.types import TEXT, SqlType

# Bind, perhaps Describe, Execute and Sync: one statement in autocommit mode.
_ONE_EXECUTION = frozenset({b"BES", b"BDES"})
_FRAMES_MAX = max(map(len, _ONE_EXECUTION))
# After a statement that had to wait, so many statements go to a thread before one is tried on the loop again.
_PATIENT_COUNT = 32
_STATUS = {TransactionStatus.IDLE: b"I", TransactionStatus.OPEN: b"T", TransactionStatus.FAILED: b"E"}
# Simple queries, the end of a round of the extended protocol, and calls of functions.
_ANSWERED_BY_READY = frozenset({b"Q", b"S", b"F"})
# The settings that are reported to clients when they change, under the names of the protocol.
REPORTED = {
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "integer_datetimes": "integer_datetimes",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
}


class ClientConnection:
    def __init__(
        self, session: Session, inbox: Inbox, outbox: Outbox, statements_max: int, log: ClientLog = NO_LOG
    ) -> None:
        self.session = session
        self._log = log
        self._inbox = inbox
        self._out = outbox
        self._statements = Statements(session.prepared, statements_max)
        self._portals = Portals(statements_max)
        self._copying = Copying(session, inbox, outbox)
        # The settings that were reported to the client, and how often settings had changed by then.
        self._reported: dict[str, str] = {}
        self._reported_at = -1
        self._skips = False
        # Around the statements of a text, or up to the next Sync.
        self._block = ImplicitBlock(session)
        self._is_running = False
        # How many statements go to a thread before one is tried on the loop again.
        self._patience = 0
        self._handlers: dict[bytes, Callable[[bytes], None]] = {
            b"Q": self._query,
            b"P": self._parse,
            b"B": self._bind,
            b"D": self._describe,
            b"E": self._execute,
            b"C": self._close,
            b"H": self._flush,
            b"S": self._sync,
            b"F": self._call,
            # The rest of a COPY that has failed.
            b"d": self._ignore,
            b"c": self._ignore,
            b"f": self._ignore,
        }

    def begin(self, settings: Mapping[str, str], key: bytes) -> None:
        """`settings` are those of the start-up packet; `key` is the secret of cancel requests."""
        for name, value in settings.items():
            self.session.check_setting(name, value)
            self.session.settings.begin_with(name, value)
        self._report_settings()
        self._out.send(key)
        self._ready()

    def cancel(self) -> None:
        """From another thread: ends the statement that runs now, and those that are left of its text or round."""
        if self._is_running:
            self.session.interrupt()

    def answers_at_once(self, frames: Sequence[m.MessageFrame]) -> bool:
        """Whether these frames, all that are waiting, execute one lookup by key: that takes no longer than handing
        the frames to a thread."""
        if len(frames) > _FRAMES_MAX or b"".join([frame.kind for frame in frames]) not in _ONE_EXECUTION:
            return False
        if self.session.status is not TransactionStatus.IDLE or self._skips or self._inbox.count != len(frames):
            return False
        if not self._statements.is_brief(m.peek_bound(frames[0].body)):
            return False
        self._patience = max(self._patience - 1, 0)
        return not self._patience

    def work(self) -> bool:
        """Handles the messages that were received; False when the client has terminated. On the loop, WouldWait leaves
        the rest to a thread."""
        self.session.monitor.is_interrupted = False
        while (frame := self._inbox.take()) is not None:
            if frame.kind == b"X":
                return False
            if self._skips and frame.kind != b"S":
                continue
            try:
                handler = self._handlers.get(frame.kind)
                if handler is None:
                    raise errors.ProtocolViolation(detail=f"a message of kind {frame.kind!r}")
                handler(frame.body)
            except errors.Error as error:
                self._fail(frame, error)
            except RecursionError:
                self._fail(frame, errors.StatementTooComplex())
            except MemoryError:
                self._fail(frame, errors.OutOfMemory(detail="the process cannot allocate more"))
            except WouldWait:
                self._patience = _PATIENT_COUNT
                self._inbox.give_back(frame)
                raise
            except Exception as problem:  # noqa: BLE001 - the outer edge: other clients go on
                bug = errors.Bug(detail=f"{type(problem).__name__}: {problem}")
                bug.__cause__ = problem
                self._fail(frame, bug)
        return True

    @property
    def stopping_us(self) -> int:
        """For how long the running statement has been asked to end, and has not; 0 if it was not asked."""
        return self.session.stopping_us

    def _fail(self, frame: m.MessageFrame, error: errors.Error) -> None:
        if self._out.is_gone:
            return
        self._block.end(commit=False)
        self.session.mark_failed()
        self._log.note_error(error, self._text_of(frame))
        self._send_notices()
        self._out.send(error_report(error))
        if frame.kind in _ANSWERED_BY_READY:
            self._ready()
        else:
            self._skips = True
            self._out.flush()

    def _text_of(self, frame: m.MessageFrame) -> str | None:
        match frame.kind:
            case b"Q":
                return m.read_text(frame.body)
            case b"P":
                return m.read_parse(frame.body).text
            case _:
                return self.session.monitor.guard.text

    # Simple queries.

    def _query(self, body: bytes) -> None:
        text = m.read_text(body)
        # Also between two of its statements.
        self._is_running = True
        self._end_implicit()
        self._portals.remove("")
        self._statements.remove("")
        prepared = self.session.prepare_text(text)
        way = find_way(prepared, self.session)
        if not prepared:
            self._out.send(m.EMPTY_QUERY)
        elif way is Way.WHOLE:
            self._run_whole(prepared)
        elif way is Way.BLOCK:
            for number, statement in enumerate(prepared, 1):
                self._run_simple(statement, self._block, number == len(prepared), prepared[number:])
        else:
            with settings_kept(self.session):
                for statement in prepared:
                    self._run_simple(statement)
        self._ready()

    def _run_whole(self, prepared: Sequence[Prepared]) -> None:
        results: list[Result] = []
        try:
            with self._running():
                self.session.execute_whole(prepared, results)
        except errors.Error:
            # Those before the one that failed, which may be the commit.
            for result in results[: len(prepared) - 1]:
                self._send_result(result)
            raise
        for result in results:
            self._send_result(result)

    def _run_simple(
        self,
        prepared: Prepared,
        block: ImplicitBlock | None = None,
        is_last: bool = False,
        following: Sequence[Prepared] = (),
    ) -> None:
        """The last of several statements has succeeded when all of them are committed."""
        if isinstance(prepared.parsed, FetchCursor):
            self._open_portal(prepared.parsed.name)
        delivery = self._deliver(describes=True)
        within = nullcontext() if block is None else block.statement(prepared.parsed, is_last)
        with self._running(), within:
            if isinstance(prepared.parsed, CopyStream):
                result = self._copying.run(prepared.parsed)
            else:
                result = self.session.execute_prepared(prepared, (), delivery, following)
        if is_last:
            self._end_implicit()
        self._send_result(result, delivery)

    def _send_result(self, result: Result, delivery: Delivery | None = None) -> None:
        """`delivery` has taken its rows if they are many."""
        self._send_notices()
        if result.columns is not None and (delivery is None or not delivery.is_begun):
            self._out.send(describe_rows(result.columns, ()))
            for row in encode_rows(result.columns, (), result.rows):
                self._out.send(row)
        self._out.send(m.command_complete(result.tag))

    def _deliver(
        self,
        formats: Sequence[int] = (),
        describes: bool = False,
        check: Callable[[tuple[ResultColumn, ...]], None] | None = None,
    ) -> Delivery:
        return Delivery(self._out, self.session.client.interrupts.reaching, formats, describes, check)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Around everything that a client can cancel."""
        self._inbox.mend()
        self._out.mend()
        was_running, self._is_running = self._is_running, True
        was_in_transaction = self.session.status is not TransactionStatus.IDLE
        try:
            self.session.check_cancelled()
            yield
        finally:
            self._is_running = was_running
            if was_in_transaction and self.session.status is TransactionStatus.IDLE:
                # They end with their transaction, even if the client begins another before its next Sync.
                self._portals.clear()

    # The extended protocol.

    def _parse(self, body: bytes) -> None:
        parse = m.read_parse(body)
        if not parse.name:
            # It is replaced, also by one that fails.
            self._statements.remove("")
        with self._running():
            prepared = self.session.prepare(parse.text)
        if len(prepared) > 1:
            raise errors.SyntaxProblem(detail="a prepared statement is one command")
        self._check_accepted(prepared[0] if prepared else None)
        types = [TYPE_BY_OID.get(oid) for oid in parse.oids]
        named = NamedStatement(prepared[0].with_types(types), ()) if prepared else None
        self._statements.add(parse.name, Statement(named, parse.oids))
        self._out.send(m.PARSE_COMPLETE)

    def _bind(self, body: bytes) -> None:
        bind = m.read_bind(body)
        statement = self._statements.get(bind.statement)
        self._check_accepted(statement.prepared)
        types = self._types(statement, len(bind.values))
        with InZone(self.session.settings.typed.timezone):
            values = [decode(*each) for each in zip(types, bind.formats, bind.values, strict=True)]
        self._find_portal(bind.portal)
        self._portals.add(bind.portal, Portal(statement, values, bind.result_formats))
        self._out.send(m.BIND_COMPLETE)

    def _types(self, statement: Statement, count: int) -> Sequence[SqlType | None]:
        """Those that the client gave, or else those that follow from the text."""
        given = [TYPE_BY_OID.get(oid) for oid in statement.oids[:count]]
        given += [None] * (count - len(given))
        if None in given and statement.types is None and statement.prepared is not None:
            with self._running():
                statement.types = self.session.describe(statement.prepared, given, rows=False).types
        found = statement.types or ()
        return [type_ or (found[i] if i < len(found) else None) for i, type_ in enumerate(given)]

    def _describe(self, body: bytes) -> None:
        named = m.read_named(body)
        if named.kind == "S":
            statement = self._statements.get(named.name)
            columns = self._describe_statement(statement)
            types = statement.types or ()
            oids = [oid or _oid(types, i) for i, oid in enumerate(statement.oids)]
            oids += [_oid(types, i) for i in range(len(oids), len(types))]
            self._out.send(m.parameter_description(oids))
            self._out.send(m.NO_DATA if columns is None else describe_rows(columns, ()))
            return
        portal = self._portal(named.name)
        prepared = portal.statement.prepared
        if portal.result is None and (
            prepared is None or isinstance(prepared.parsed, CopyStream) or not gives_rows(prepared)
        ):
            self._out.send(m.NO_DATA)
            return
        if portal.result is None and self._is_run_next(named.name):
            # The statement is run anyway: its result has the columns.
            execute, follower = self._inbox.ahead(2)
            delivery = None
            if not m.read_execute(execute.body).rows_max:
                delivery = self._deliver(portal.formats, True, portal.statement.check_columns)
            self._run_portal(named.name, portal, follower.kind, delivery)
            if delivery is not None and delivery.is_begun:
                return
        columns = portal.result.columns if portal.result is not None else self._describe_statement(portal.statement)
        self._out.send(m.NO_DATA if columns is None else portal.statement.form_of(columns, portal.formats).description)

    def _is_run_next(self, portal: str) -> bool:
        ahead = self._inbox.ahead(2)
        return len(ahead) == 2 and ahead[0].kind == b"E" and m.read_execute(ahead[0].body).portal == portal

    def _describe_statement(self, statement: Statement) -> tuple[ResultColumn, ...] | None:
        prepared = statement.prepared
        if not statement.is_described and prepared is not None:
            given = [TYPE_BY_OID.get(oid) for oid in statement.oids]
            with self._running():
                found = self.session.describe(prepared, given)
            # The columns of FETCH and EXECUTE may be others each time.
            is_fixed = isinstance(prepared.parsed, TreeStatement)
            statement.types, statement.columns, statement.is_described = found.types, found.columns, is_fixed
        return statement.columns

    def _execute(self, body: bytes) -> None:
        execute = m.read_execute(body)
        portal = self._portal(execute.portal)
        prepared = portal.statement.prepared
        if portal.result is None and prepared is None:
            self._out.send(m.EMPTY_QUERY)
            return
        self._check_accepted(prepared)
        if portal.result is None:
            follower = next((frame.kind for frame in self._inbox.ahead(1)), b"")
            check = portal.statement.check_columns
            delivery = None if execute.rows_max else self._deliver(portal.formats, check=check)
            self._run_portal(execute.portal, portal, follower, delivery)
        self._send_portal(portal, execute.rows_max)

    def _check_accepted(self, prepared: Prepared | None) -> None:
        """A failed transaction accepts only the statements that end it, and an empty one."""
        if self.session.status is TransactionStatus.FAILED and prepared is not None and not is_way_out(prepared.parsed):
            raise errors.InFailedTransaction()

    def _find_portal(self, name: str) -> Portal | None:
        portal = self._portals.find(name)
        if portal is not None and portal.is_shared and self.session.cursors.find(name) is not portal.cursor:
            # Closed as a cursor, by CLOSE or with its savepoint.
            self._portals.remove(name)
            return None
        return portal

    def _portal(self, name: str) -> Portal:
        """A cursor of the session is a portal, too."""
        portal = self._find_portal(name)
        if portal is None:
            cursor = self.session.cursors.find(name)
            if cursor is None:
                raise errors.UndefinedPortal(name=name)
            portal = Portal(Statement(None), cursor=cursor)
        return portal

    def _open_portal(self, name: str) -> None:
        """A cursor that a statement names may be a portal that was bound, and not yet run."""
        portal = self._find_portal(name)
        if portal is not None and portal.result is None and self.session.cursors.find(name) is None:
            self._run_portal(name, portal)

    def _run_portal(self, name: str, portal: Portal, follower: bytes = b"", delivery: Delivery | None = None) -> None:
        """`follower` is the message behind the Execute. Rows that `delivery` takes are not kept."""
        prepared = portal.statement.prepared
        assert prepared is not None
        within: AbstractContextManager[None] = nullcontext()
        if self._block.is_open or follower != b"S":
            within = self._block.statement(prepared.parsed)
        with self._running(), within:
            if isinstance(prepared.parsed, CopyStream):
                result = self._copying.run(prepared.parsed)
            elif delivery is None:
                result = self.session.execute_kept(prepared, portal.values)
            else:
                result = self.session.execute_prepared(prepared, portal.values, delivery)
        portal.cursor = OpenCursor(result)
        portal.statement.check_columns(portal.cursor.result.columns)
        if name and self.session.status is not TransactionStatus.IDLE and portal.cursor.result.columns is not None:
            self.session.cursors.open(name, portal.cursor)
            portal.is_shared = True

    def _send_portal(self, portal: Portal, rows_max: int) -> None:
        cursor = portal.cursor
        assert cursor is not None
        result = cursor.result
        self._send_notices()
        if result.columns is None:
            self._out.send(m.command_complete(result.tag))
            return
        first = cursor.position
        rows = cursor.take(rows_max)
        if rows:
            for row in portal.statement.form_of(result.columns, portal.formats).encode(rows):
                self._out.send(row)
        if rows_max and cursor.has_more:
            self._out.send(m.PORTAL_SUSPENDED)
            return
        is_part = first > 0 and result.tag.startswith("SELECT ")
        self._out.send(m.command_complete(f"SELECT {len(rows)}" if is_part else result.tag))

    def _close(self, body: bytes) -> None:
        named = m.read_named(body)
        if named.kind == "S":
            self._statements.remove(named.name)
        else:
            self._portals.remove(named.name)
            if named.name and self.session.cursors.find(named.name) is not None:
                self.session.cursors.close(named.name)
        self._out.send(m.CLOSE_COMPLETE)

    def _flush(self, body: bytes) -> None:
        self._out.flush()

    def _call(self, body: bytes) -> None:
        raise errors.FeatureNotSupported(feature="a call of a function by its number", instead="Use SELECT.")

    def _ignore(self, body: bytes) -> None:
        pass

    def _sync(self, body: bytes) -> None:
        self._skips = False
        self._end_implicit()
        self._ready()

    # The end of a round.

    def _end_implicit(self) -> None:
        if self._block.is_open:
            with self._running():
                self._block.end(commit=True)

    def _ready(self) -> None:
        self._is_running = self.session.monitor.is_interrupted = False
        if self.session.status is TransactionStatus.IDLE:
            self._portals.clear()
        self._send_notices()
        self._report_settings()
        self._out.send(m.ready(_STATUS[self.session.status]))
        self._out.flush()

    def _send_notices(self) -> None:
        for notice in self.session.notices:
            self._out.send(notice_report(notice))
        self.session.notices.clear()

    def _report_settings(self) -> None:
        settings = self.session.settings
        if settings.changes == self._reported_at:
            return
        self._reported_at = settings.changes
        for name, shown in REPORTED.items():
            value = settings.get(name)
            if self._reported.get(name) != value:
                self._reported[name] = value
                self._out.send(m.parameter_status(shown, value))


def _oid(types: Sequence[SqlType | None], position: int) -> int:
    found = types[position] if position < len(types) else None
    return (found or TEXT).oid
