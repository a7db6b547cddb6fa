"""How a READ COMMITTED transaction sees its tables, and which of them cannot be shown at the head.

**Invariant:** a table keeps the shape in which the transaction first used it. A statement reads at the head, unless it
needs something that the head no longer has: then all its tables are read as of the sequence of a limit.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from seachange import errors
from seachange.engine.buffer.current_statement import CurrentStatement
from seachange.model.ids import DescriptorId, Seq
from seachange.model.schema.descriptor import Table
from seachange.model.schema.shape import is_narrowed, lost_parts, show_in_shape, without_lost
from seachange.sql.parsing.mentions import Mentions


@dataclass(frozen=True, slots=True)
class Limit:
    """The last sequence at which a table can be shown to statements that name one of `columns`, or to all (None).
    `mark` is the position of the buffer when its rows were found not to conform to a later version."""

    seq: Seq
    columns: frozenset[str] | None = None
    mark: int | None = None

    def concerns(self, statement: Mentions) -> bool:
        return self.columns is None or any(statement.includes(name) for name in self.columns)


class Shapes:
    def __init__(self, statement: CurrentStatement) -> None:
        self._statement = statement
        self.limits: dict[DescriptorId, Limit] = {}
        # Whether some table has got a newer version since it was first used.
        self.has_moved = False
        # Whether integers are shown in the wider type of the newest version.
        self._is_wide = False
        self._first: dict[DescriptorId, Table] = {}
        # Those whose first use is in the statement under way.
        self._fresh: set[DescriptorId] = set()
        self._users: dict[DescriptorId, set[Mentions]] = {}
        self._shown: dict[DescriptorId, tuple[Table, Table]] = {}

    def name(self, table: Table, snapshot: Seq) -> None:
        """Records that the statement names a table; raises StatementHeld if the table cannot be shown at its
        snapshot."""
        self.check(table.id, snapshot)
        self._note_use(table)
        self._users.setdefault(table.id, set()).add(self._statement.mentions)

    def _note_use(self, table: Table) -> None:
        if table.id not in self._first:
            self._first[table.id] = table
            self._fresh.add(table.id)

    def note_moved(self) -> None:
        self.has_moved = True

    def begin_statement(self) -> None:
        self._fresh.clear()

    def forget_attempt(self) -> Collection[DescriptorId]:
        """The statement is run again as of another snapshot: what it has used first there, it has not used yet."""
        forgotten = tuple(self._fresh)
        for id_ in forgotten:
            self.forget(id_)
        return forgotten

    def forget(self, id_: DescriptorId) -> None:
        """What used the table first was undone."""
        self._first.pop(id_, None)
        self._shown.pop(id_, None)
        self._fresh.discard(id_)

    def check(self, id_: DescriptorId, snapshot: Seq) -> None:
        limit = self.limits.get(id_)
        if limit is not None and snapshot > limit.seq and limit.concerns(self._statement.mentions):
            raise errors.StatementHeld(seq=limit.seq)

    def use(self, table: Table, snapshot: Seq) -> None:
        """The same for a table that the statement reaches through a foreign key or a view."""
        limit = self.limits.get(table.id)
        if limit is not None and snapshot > limit.seq and limit.columns is None:
            raise errors.StatementHeld(seq=limit.seq)
        self._note_use(table)

    def show(self, now: Table) -> Table:
        first = self._first.get(now.id)
        if first is None:
            return now
        held = self._shown.get(now.id)
        if held is None or held[0] is not now:
            # Compiled plans are cached by the identity of their tables.
            held = self._shown[now.id] = (now, show_in_shape(now, first, self._is_wide))
        return held[1]

    def find(self, database: str, schema: str, name: str) -> DescriptorId | None:
        """The table that had this name when the transaction first used it."""
        place = (database, schema, name)
        return next((i for i, t in self._first.items() if (t.database, t.schema, t.name) == place), None)

    def lost(self, now: Table) -> frozenset[str]:
        first = self._first.get(now.id)
        return frozenset() if first is None else lost_parts(now, first)

    def used_of(self, id_: DescriptorId, columns: frozenset[str]) -> frozenset[str]:
        """The columns that some statement has named."""
        return frozenset(name for name in columns if any(user.includes(name) for user in self._users.get(id_, ())))

    def forget_lost(self, now: Table) -> None:
        """Called when the transaction writes to a version without columns that it has never used: it drops them from
        its shape."""
        if self.lost(now):
            self._first[now.id] = without_lost(self._first[now.id], now)
            self._shown.pop(now.id, None)
        self.limits.pop(now.id, None)

    def widen(self) -> bool:
        """Called when a value did not fit: from here on integers are shown in their newest types. Returns whether that
        changes anything."""
        shown = [now for now, _ in self._shown.values() if is_narrowed(now, self._first[now.id])]
        if self._is_wide or not shown:
            return False
        self._is_wide = True
        self._shown.clear()
        return True
