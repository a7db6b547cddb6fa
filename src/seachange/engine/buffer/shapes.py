"""How the tables of a READ COMMITTED transaction look to its statements, and which of them cannot be shown at the head.

**Invariant:** a table keeps the shape in which the transaction first used it. A statement reads at the head, unless it
needs something that the head does not have any more: then all its tables are read as of the sequence of a limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from seachange import errors
from seachange.model.ids import DescriptorId, Seq
from seachange.model.schema.descriptor import Table
from seachange.model.schema.shape import is_narrowed, lost_parts, show_in_shape, without_lost
from seachange.sql.parsing.mentions import EVERYTHING, Mentions


@dataclass(frozen=True, slots=True)
class Limit:
    """The last sequence at which a table can be shown: to statements that name one of `columns`, or to all (None).
    `mark` is what the buffer was when its rows were found not to fit a later version."""

    seq: Seq
    columns: frozenset[str] | None = None
    mark: int | None = None

    def concerns(self, statement: Mentions) -> bool:
        return self.columns is None or any(statement.includes(name) for name in self.columns)


class Shapes:
    def __init__(self) -> None:
        # What the statement under way names.
        self.statement = EVERYTHING
        self.limits: dict[DescriptorId, Limit] = {}
        # Whether some table has had another version since it was first used.
        self.has_moved = False
        # Whether integers are shown as wide as they are by now.
        self._is_wide = False
        self._first: dict[DescriptorId, Table] = {}
        self._users: dict[DescriptorId, set[Mentions]] = {}
        self._shown: dict[DescriptorId, tuple[Table, Table]] = {}

    def name(self, table: Table, snapshot: Seq) -> None:
        """The statement names a table; raises StatementHeld where it cannot be shown as of its snapshot."""
        self.check(table.id, snapshot)
        self._first.setdefault(table.id, table)
        self._users.setdefault(table.id, set()).add(self.statement)

    def check(self, id_: DescriptorId, snapshot: Seq) -> None:
        limit = self.limits.get(id_)
        if limit is not None and snapshot > limit.seq and limit.concerns(self.statement):
            raise errors.StatementHeld(seq=limit.seq)

    def use(self, table: Table, snapshot: Seq) -> None:
        """The same for a table that it may not name, but has to do with by a foreign key or a view."""
        limit = self.limits.get(table.id)
        if limit is not None and snapshot > limit.seq and limit.columns is None:
            raise errors.StatementHeld(seq=limit.seq)
        self._first.setdefault(table.id, table)

    def show(self, now: Table) -> Table:
        first = self._first.get(now.id)
        if first is None:
            return now
        held = self._shown.get(now.id)
        if held is None or held[0] is not now:
            # Plans are kept as long as their tables are the same.
            held = self._shown[now.id] = (now, show_in_shape(now, first, self._is_wide))
        return held[1]

    def find(self, database: str, schema: str, name: str) -> DescriptorId | None:
        """The table that had this name when it was first used."""
        place = (database, schema, name)
        return next((i for i, t in self._first.items() if (t.database, t.schema, t.name) == place), None)

    def lost(self, now: Table) -> frozenset[str]:
        first = self._first.get(now.id)
        return frozenset() if first is None else lost_parts(now, first)

    def used_of(self, id_: DescriptorId, columns: frozenset[str]) -> frozenset[str]:
        """Those that some statement has named."""
        return frozenset(name for name in columns if any(user.includes(name) for user in self._users.get(id_, ())))

    def forget_lost(self, now: Table) -> None:
        """The transaction writes to a version that lacks columns which it never used: it has never known them."""
        if self.lost(now):
            self._first[now.id] = without_lost(self._first[now.id], now)
            self._shown.pop(now.id, None)
        self.limits.pop(now.id, None)

    def widen(self) -> bool:
        """A value did not fit: integers are shown in the types of now from here on. Whether that is a difference."""
        shown = [now for now, _ in self._shown.values() if is_narrowed(now, self._first[now.id])]
        if self._is_wide or not shown:
            return False
        self._is_wide = True
        self._shown.clear()
        return True
