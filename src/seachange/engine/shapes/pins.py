"""What a session is pinned to (`seachange.layout`): the tables of a moment, or of a shape.

**Invariant:** a pin by a shape lasts as long as the shape, one by a moment as long as the history is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from seachange import errors
from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.engine.buffer.moments import read_moment
from seachange.engine.replica.schema_history import SchemaVersion, schema_of
from seachange.engine.shapes.pinned_port import pinned
from seachange.engine.transaction.transaction import Transaction
from seachange.model.codecs.descriptor_json import decode_table
from seachange.model.ids import LayoutId, TableId
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Shape
from seachange.model.schema.pinned import costly_columns, pin_read_only, pin_table
from seachange.sql.parsing.mentions import Mentions
from seachange.sql.port.port import TransactionPort
from seachange.sql.settings.session_settings import SessionSettings
from seachange.sql.settings.setting_checks import LAYOUT_NUMBER, is_shape_name


class Pin:
    """The schema of then, with the tables that were made of it."""

    def __init__(self, source: str | Shape, then: SchemaVersion) -> None:
        self.source = source
        self._then = then
        self._shown: dict[tuple[TableId, frozenset[str]], tuple[Table, Table]] = {}

    def show(self, now: Table, statement: Mentions) -> Table:
        """A value that the type of then lacks is an error of statements that need the column."""
        then = self._then.by_id.get(now.id)
        if then is None:
            return now
        unneeded = frozenset(name for name in costly_columns(now, then) if not statement.includes(name))
        held = self._shown.get((now.id, unneeded))
        if held is None or held[0] is not now:
            # Plans are kept as long as their tables are the same.
            held = self._shown[now.id, unneeded] = (now, pin_table(now, then, unneeded))
        return held[1]

    def find(self, database: str, schema: str, name: str) -> TableId | None:
        """The table that had this name then."""
        found = self._then.within(database).by_name.get((schema, name))
        return found.id if found is not None else None


@dataclass(frozen=True, slots=True)
class PinOfStatement:
    pin: Pin
    statement: CurrentStatement

    def show(self, now: Table) -> Table:
        return self.pin.show(now, self.statement.mentions)

    def find(self, database: str, schema: str, name: str) -> TableId | None:
        return self.pin.find(database, schema, name)


class Pins:
    """What a session is pinned to; the last is kept."""

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._pin: Pin | None = None

    def over(self, transaction: Transaction, port: TransactionPort) -> TransactionPort:
        """What queries and changes of rows see of the transaction, which they would see as `port`."""
        text = self._settings.typed.layout
        if not text:
            return port
        number = LAYOUT_NUMBER.fullmatch(text)
        if number is not None:
            pin = LayoutPin.of(port, number["schema"], number["table"], LayoutId(int(number["layout"])))
            return pinned(port, pin, transaction.state.parts.duck)
        source = _find_shape(text, port) if is_shape_name(text) else text
        if self._pin is None or (self._pin.source is not source and self._pin.source != source):
            self._pin = Pin(source, _schema(source, transaction))
        return pinned(port, PinOfStatement(self._pin, transaction.state.statement), transaction.state.parts.duck)


@dataclass(frozen=True, slots=True)
class LayoutPin:
    """One table as the rows of a layout have been written, under the names that its columns have, or had last."""

    table_id: TableId
    then: Table
    text: str

    @classmethod
    def of(cls, port: TransactionPort, schema: str | None, name: str, layout_id: LayoutId) -> LayoutPin:
        now = port.names.table(schema, name)
        layout = now.layout_by_id.get(layout_id)
        if layout is None:
            raise errors.UndefinedObject(kind=f"layout of table {now.name}", name=str(layout_id))
        retired = {each.column.id: each.column for each in now.retired}
        visible = {column.id: column for column in now.visible_columns}
        known = [(visible.get(id_) or retired.get(id_), type_) for id_, type_ in layout.columns]
        columns = tuple(replace(column, type=type_) for column, type_ in known if column is not None)
        return cls(now.id, replace(now, columns=columns), f"layout {layout_id} of table {now.name}")

    def show(self, now: Table) -> Table:
        return pin_read_only(now, self.then, self.text) if now.id == self.table_id else now

    def find(self, database: str, schema: str, name: str) -> TableId | None:
        """Its name is that of now."""
        return None


def _find_shape(name: str, port: TransactionPort) -> Shape:
    found = next((o for o in port.schema.objects() if isinstance(o, Shape) and o.name == name), None)
    if found is None:
        raise errors.UndefinedObject(kind="shape", name=name)
    return found


def _schema(source: str | Shape, transaction: Transaction) -> SchemaVersion:
    if isinstance(source, Shape):
        return schema_of(source.seq, map(decode_table, source.tables))
    try:
        return transaction.state.epoch.schema(read_moment(source, transaction.state.epoch))
    except errors.SnapshotTooOld as lost:
        raise errors.LayoutTooOld(value=source) from lost
