"""SELECT of one row by its primary key in autocommit, without a transaction object: names and rights are resolved by
the statement's first run, and hold while the schema, the session's context and the epoch are the same objects.

**Invariant:** a row is answered as of a head of the log that was read after the statement arrived, with the names and
rights of that head. The registry holds the low-water mark below it meanwhile.
**Invariant:** a table that another session may be locking (`contended`) is left to a transaction. It is checked after
the head was read: a lock that is granted later comes after the statement.
"""

from __future__ import annotations

from seachange import errors
from seachange.engine.context.statement_calls import StatementCall
from seachange.engine.context.statement_context import StatementContext
from seachange.engine.node.node import Node
from seachange.engine.replica.epoch import EpochState
from seachange.engine.replica.schema_history import SchemaVersion
from seachange.engine.session.session_transactions import SessionTransactions
from seachange.engine.session.statement_guard import Guard
from seachange.engine.transaction.transaction import Transaction
from seachange.model.isolation import Isolation
from seachange.sql.port.result import Result, Row, show_in_zone
from seachange.sql.query.fast_select import KeySelect
from seachange.sql.run.execute import Prepared
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.write.dml import Select
from seachange.values.timezone import InZone, session_zone

# Of statements of one session.
_KNOWN_MAX = 256


class LookUps:
    def __init__(self, node: Node, transactions: SessionTransactions, guard: Guard, settings: SessionSettings) -> None:
        self._node = node
        self._transactions = transactions
        self._guard = guard
        self._settings = settings
        self._epoch: EpochState | None = None
        self._schema: SchemaVersion | None = None
        self._context: StatementContext | None = None
        # The plan with which a statement has run under these three.
        self._known: dict[Prepared, tuple[Select, KeySelect]] = {}

    def answer(self, call: StatementCall) -> Result | None:
        """None if it takes a transaction."""
        prepared = _shared(call.prepared)
        known = self._known.get(prepared)
        if known is None or prepared.plan is None or prepared.plan[0] is not known[0]:
            return None
        is_same = self._node.epoch is self._epoch and self._transactions.context is self._context
        if not is_same or not self._node.is_live or self._guard.is_running or self._guard.ending is not None:
            return None
        clock = self._node.parts.clock
        begun_us = clock.steady_us()
        with InZone(self._settings.typed.timezone):
            values = call.prepared.constants if call.prepared.pattern is not None else call.values
            key = known[1].read_key(values) if known[0].takes(values) else None
            answer = self._read(known[1], key) if key is not None else None
        if answer is not None:
            self._guard.note(call.prepared.text)
            self._node.parts.meters.note(prepared.command, clock.steady_us() - begun_us)
        return answer

    def _read(self, select: KeySelect, key: Row) -> Result | None:
        epoch = self._epoch
        assert epoch is not None
        ticket = epoch.registry.enter()
        try:
            return self._look_up(epoch, select, key)
        except (errors.StaleNode, errors.SegmentDamaged):
            # The transaction finds out what has become of the epoch or the file.
            return None
        finally:
            epoch.registry.leave(ticket)

    def _look_up(self, epoch: EpochState, select: KeySelect, key: Row) -> Result | None:
        head = epoch.catch_up()
        if epoch.schemas.newest is not self._schema or epoch.tables.contended:
            return None
        table = select.table
        found = epoch.image(table, table.primary, head).get(key, head)
        if found is None:
            return select.answer(None)
        project = self._node.parts.read_projection(table, found.layout_id)
        result = select.answer(found.row if project is None else project(found.row))
        return show_in_zone(result, session_zone()) if select.shows_moments else result

    def learn(self, call: StatementCall, transaction: Transaction) -> None:
        """After its run in a transaction of its own."""
        prepared, state = _shared(call.prepared), transaction.state
        plan = prepared.plan[0] if prepared.plan is not None else None
        select = plan.key_select if isinstance(plan, Select) else None
        if not isinstance(plan, Select) or select is None or not self._is_plain(transaction):
            return
        schema, context = state.epoch.schemas.newest, self._transactions.context
        if state.epoch.schema(state.snapshot.seq) is not schema or context is not state.statement.context:
            return
        is_same = state.epoch is self._epoch and schema is self._schema and context is self._context
        if not is_same or len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._epoch, self._schema, self._context = state.epoch, schema, context
        self._known[prepared] = plan, select

    def _is_plain(self, transaction: Transaction) -> bool:
        """Whether the rows were those of the head, as they are stored, and need not be on record."""
        typed, state = self._settings.typed, transaction.state
        is_moved = typed.as_of or typed.layout or state.shapes.has_moved or state.schema.has_enums
        return not is_moved and state.isolation is not Isolation.SERIALIZABLE


def _shared(prepared: Prepared) -> Prepared:
    """The statement whose plan it uses."""
    return (prepared.pattern.prepared or prepared) if prepared.pattern is not None else prepared
