"""A writer: transactions generated from the schema that each of them sees.

A transaction is a block at READ COMMITTED, as in most applications. It reads the list of tables, increments counters in
rows that all writers share, and then inserts, updates, deletes and reads, while migrations are running: it is planned
with one version of a table and committed at this or a later one.

**Invariant:** a writer deletes, refers to and freely changes only rows that it has inserted itself, and deletes none
that it has let others refer to, unless they are deleted or set to NULL with it. Shared rows, the first of a table, have
no owner; all writers lock them before their own, in one order. So writers wait for each other without deadlocks: every
failure is caused by a migration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from seachange.engine.session.session import Session
from seachange.engine.transaction.transaction import Transaction
from seachange.errors import Error, InvalidTextRepresentation
from seachange.model.ids import ColumnId, TableId
from seachange.model.isolation import Isolation
from seachange.model.schema.constraint import Action
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.enums import quote_text
from seachange.model.schema.objects import EnumType, View
from seachange.model.schema.temporary import is_temporary
from seachange.model.states import REFUSING
from seachange.replay import statements
from seachange.replay.row_rules import Foresight, Parent, RowRules, SchemaShape, demand_of, label
from seachange.replay.rows import Maker, NoParent, Taken
from seachange.replay.seeded_random import SeededRandom
from seachange.replay.tally import WriterTally
from seachange.replay.values import Made
from seachange.runtime.clock import Clock
from seachange.values.types import Kind

Key = tuple[str, ...]

_COUNTED = frozenset({Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC})

_STATEMENTS_MAX = 3
# Rows beyond this number are no longer used.
_OWNED_MAX = 200
# How many levels of parents are created for a row that needs one.
_PARENTS_MAX = 4
# The number of shared rows of a table, and the percentage of transactions that increment a counter in one of them.
_SHARED_MAX = 3
_COUNTING_PERCENT = 40
# The maximum number of attempts to plan a transaction while a table changes shape.
_PLANS_MAX = 3
_DEFINITION_CLASS = "42"


@dataclass(slots=True)
class OwnRows:
    """The primary keys of rows that a writer has inserted, as texts; they are dropped when the primary key changes.
    `referred` are those that it has let other rows refer to, `shared` those that all writers share."""

    columns: tuple[Column, ...]
    keys: list[Key] = field(default_factory=list)
    referred: set[Key] = field(default_factory=set)
    shared: set[Key] = field(default_factory=set)


# Values of a unique key that a row of a table has, by column.
Claimed = tuple[TableId, frozenset[tuple[ColumnId, str]]]


class ReplayWriter:
    def __init__(self, session: Session, foresight: Foresight, clock: Clock, *seed: object) -> None:
        self._session = session
        self._foresight = foresight
        self._clock = clock
        self._random_source = SeededRandom(*seed)
        self._own: dict[TableId, OwnRows] = {}
        # It refers only to rows of its own, so no other writer has the same.
        self._claimed: set[Claimed] = set()
        # Tables that are about to be dropped, which an application must stop using first.
        self.left: Collection[str] = ()
        self.tally = WriterTally()

    def run_transaction(self) -> None:
        started = self._clock.steady_us()
        for number in range(_PLANS_MAX):
            attempt = _Attempt(self._session, self._foresight, self._random_source, self._own, self._claimed, self.left)
            try:
                self._session.begin(Isolation.READ_COMMITTED)
                attempt.run()
                self._session.commit()
            except Error as error:
                self._session.rollback()
                if number + 1 < _PLANS_MAX and self._is_outdated(attempt, error):
                    continue
                self.tally.fail(error.sqlstate, str(error), attempt.statement)
                return
            attempt.remember()
            if attempt.actions:
                self.tally.succeed(self._clock.steady_us() - started, attempt.actions)
            return

    def _is_outdated(self, attempt: _Attempt, error: Error) -> bool:
        """Whether a statement named something that a migration has removed or renamed since the writer read the
        schema."""
        is_label = isinstance(error, InvalidTextRepresentation)
        if not is_label and not error.sqlstate.startswith(_DEFINITION_CLASS):
            return False
        shape = self._session.in_transaction(shape_of)
        # The name of an enum value, which the statement gives as a text.
        return shape.labels != attempt.shape.labels if is_label else shape != attempt.shape


def shape_of(transaction: Transaction) -> SchemaShape:
    """The tables that are not temporary, and the labels of enum types."""
    enums = [d for d in transaction.schema.objects() if isinstance(d, EnumType)]
    labels = tuple((enum.id, tuple(v.label for v in sorted(enum.values, key=lambda v: v.rank))) for enum in enums)
    return SchemaShape(tuple(table for table in transaction.schema.tables() if not is_temporary(table.schema)), labels)


class _Attempt:
    """One transaction. Its effects on the rows of the writer are recorded once it is committed."""

    def __init__(
        self,
        session: Session,
        foresight: Foresight,
        random_source: SeededRandom,
        own: dict[TableId, OwnRows],
        claimed: set[Claimed],
        left: Collection[str],
    ) -> None:
        self._session = session
        self._foresight = foresight
        self._random_source = random_source
        self._own = own
        self._claimed = claimed
        self._left = left
        self._inserted: list[tuple[Table, Key]] = []
        self._deleted: list[tuple[Table, Key]] = []
        self._referred: list[tuple[Table, Key]] = []
        self._shared: list[tuple[Table, Key]] = []
        self.shape = SchemaShape(())
        self.actions: list[str] = []
        self.statement = "BEGIN"

    def run(self) -> None:
        tables = self._look()
        if tables and self._random_source.chance(_COUNTING_PERCENT):
            self._count(tables)
        for _ in range(1 + self._random_source.below(_STATEMENTS_MAX) if tables else 0):
            self._act(self._random_source.pick(tables))
        self.statement = "COMMIT"

    def _look(self) -> list[Table]:
        """The tables at the beginning of the transaction."""
        self.shape, self._views = self._session.in_transaction(
            lambda transaction: (
                shape_of(transaction),
                [d for d in transaction.schema.objects() if isinstance(d, View)],
            ),
            looks_only=True,
        )
        return [table for table in self.shape.tables if label(table) not in self._left]

    def remember(self) -> None:
        for table, key in self._inserted:
            own = self._rows(table)
            own.keys.append(key)
            if len(own.keys) > _OWNED_MAX:
                own.keys.pop(0)
        for table, key in self._deleted:
            if key in self._rows(table).keys:
                self._rows(table).keys.remove(key)
        for table, key in self._referred:
            self._rows(table).referred.add(key)
        for table, key in self._shared:
            self._rows(table).shared.add(key)

    def _count(self, tables: Sequence[Table]) -> None:
        """Increments counters of a table and of tables that its rows refer to, in the order of the tables' names."""
        counted = {label(t): t for t in tables if self._counters(t)}
        if not counted:
            return
        first = counted[self._random_source.pick(sorted(counted))]
        parents = {p.table for p in demand_of(first, self.shape).parents}
        for name in sorted({label(first), *(parents & counted.keys())}):
            self.count(counted[name])

    def _act(self, table: Table) -> None:
        roll = self._random_source.below(100)
        action = next(act for bound, act in _ACTIONS if roll < bound)
        action(self, table)

    def _execute(self, text: str) -> list[tuple[str | None, ...]]:
        self.statement = text
        return [tuple(row) for row in self._session.execute(text).rows]

    # The actions on a table.

    def insert(self, table: Table, depth: int = 0) -> bool:
        try:
            row = self._maker(table).insert()
        except Taken:
            return False
        except NoParent as missing:
            parent = next((t for t in self.shape.tables if label(t) == missing.parent.table), None)
            usable = parent is not None and parent.id != table.id and label(parent) not in self._left
            if parent is None or not usable or depth == _PARENTS_MAX or not self.insert(parent, depth + 1):
                return False
            return self.insert(table, depth + 1)
        key = _key_columns(table)
        found = self._execute(statements.insert(table, row, [c.name for c in key]))
        inserted = [tuple(str(value) for value in values) for values in found] if key else []
        self._inserted += [(table, values) for values in inserted]
        if inserted and self._counters(table):
            first = self._first_rows(table)
            self._shared += [(table, values) for values in inserted if values in first]
        self.actions.append("insert")
        return True

    def update(self, table: Table) -> None:
        key = self._pick_own(table, self._everybodys(table))
        if key is None:
            self.insert(table)
            return
        kept = {*key, *self._referred_columns(table)}
        try:
            row = self._maker(table).update(kept)
        except NoParent:
            # The reference is not changed.
            return
        if row:
            self._execute(statements.update(table, row, key))
            self.actions.append("update")

    def delete(self, table: Table) -> None:
        key = self._pick_own(table, {*self._held(table), *self._everybodys(table)})
        if key is None or self._is_awaited(table):
            self.insert(table)
            return
        self._execute(statements.delete(table, key))
        self._deleted.append((table, tuple(key.values())))
        self.actions.append("delete")

    def count(self, table: Table) -> None:
        keys = self._first_rows(table)
        if keys:
            names = [column.name for column in _key_columns(table)]
            key = dict(zip(names, self._random_source.pick(keys), strict=True))
            self._execute(statements.add_one(table, self._random_source.pick(self._counters(table)), key))
            self.actions.append("count")

    def _first_rows(self, table: Table) -> list[Key]:
        """The rows that all writers share."""
        names = [column.name for column in _key_columns(table)]
        found = self._execute(statements.first(table, names, _SHARED_MAX))
        return [tuple(str(value) for value in row) for row in found]

    def _counters(self, table: Table) -> list[str]:
        """Columns that stay numbers, and that no key, CHECK or expression uses, now or later."""
        demand = demand_of(table, self.shape).and_also(self._foresight.get(label(table), RowRules()))
        if not _key_columns(table) or any(column.generated is not None for column in table.columns):
            return []
        bound = {*demand.distinct, *self._referred_columns(table)}
        bound.update(name for rule in demand.rules for _, name in rule.names)
        bound.update(name for parent in demand.parents for name in parent.columns)
        bound.update(form.column for form in demand.forms if form.type.kind not in _COUNTED)
        return [c.name for c in table.visible_columns if c.identity is None and c.name not in bound]

    def read(self, table: Table) -> None:
        relations = [(table.schema, table.name), *((view.schema, view.name) for view in self._views)]
        self._execute(statements.count(*self._random_source.pick(relations)))
        self.actions.append("read")

    # Rows of its own.

    def _maker(self, table: Table) -> Maker:
        later = self._foresight.get(label(table), RowRules())
        claim = partial(self._claim, table)
        return Maker(table, demand_of(table, self.shape), later, self._random_source, self._find_parent, claim)

    def _claim(self, table: Table, values: Mapping[str, str]) -> bool:
        claimed = table.id, frozenset((table.column_by_name[name].id, text) for name, text in values.items())
        is_new = claimed not in self._claimed
        self._claimed.add(claimed)
        return is_new

    def _rows(self, table: Table) -> OwnRows:
        columns = _key_columns(table)
        own = self._own.get(table.id)
        if own is None or [(c.id, c.type) for c in own.columns] != [(c.id, c.type) for c in columns]:
            own = self._own[table.id] = OwnRows(columns)
        return own

    def _keys(self, table: Table) -> list[Key]:
        """The existing ones, as far as this transaction knows."""
        gone = {key for other, key in self._deleted if other.id == table.id}
        mine = [key for other, key in self._inserted if other.id == table.id]
        return [key for key in (*self._rows(table).keys, *mine) if key not in gone]

    def _held(self, table: Table) -> Collection[Key]:
        """The rows that cannot be deleted because other rows refer to them."""
        holding = any(
            key.parent == table.id and key.on_delete in (Action.NO_ACTION, Action.RESTRICT)
            for child in self.shape.tables
            for key in child.foreign_keys
        )
        mine = {key for other, key in self._referred if other.id == table.id}
        return self._rows(table).referred | mine if holding else ()

    def _everybodys(self, table: Table) -> set[Key]:
        """The rows among its own that all writers share."""
        return self._rows(table).shared.union(key for other, key in self._shared if other.id == table.id)

    def _pick_own(self, table: Table, but: Collection[Key] = ()) -> Mapping[str, str] | None:
        keys = [key for key in self._keys(table) if key not in but]
        if not keys or not _key_columns(table):
            return None
        names = [column.name for column in _key_columns(table)]
        return dict(zip(names, self._random_source.pick(keys), strict=True))

    def _find_parent(self, parent: Parent) -> tuple[Made, ...] | None:
        table = next((t for t in self.shape.tables if label(t) == parent.table), None)
        known = table is not None and all(name in table.column_by_name for name in parent.keys)
        if table is None or not known:
            return None
        key = self._pick_own(table)
        if key is None:
            return None
        found = self._execute(statements.find(table, parent.keys, key))
        if not found:
            # It was deleted with another row, or by TRUNCATE.
            self._deleted.append((table, tuple(key.values())))
            return None
        self._referred.append((table, tuple(key.values())))
        return tuple(Made(None, quote_text(str(value))) for value in found[0]) if None not in found[0] else None

    def _references(self, table: Table) -> tuple[set[Parent], set[Parent]]:
        """The foreign keys that refer to a table: enforced ones, and ones that are being added or will be, between
        existing columns."""
        now: set[Parent] = set()
        later: set[Parent] = set()
        for child in self.shape.tables:
            enforced = tuple(key for key in child.foreign_keys if key.state in REFUSING)
            found = demand_of(replace(child, foreign_keys=enforced), self.shape).parents
            now |= {p for p in found if p.table == label(table)}
            foreseen = self._foresight.get(label(child), RowRules()).parents
            coming = foreseen | demand_of(child, self.shape).parents
            later |= {p for p in coming if p.table == label(table) and child.column_by_name.keys() >= set(p.columns)}
        return now, later - now

    def _referred_columns(self, table: Table) -> set[str]:
        now, later = self._references(table)
        return {name for parent in now | later for name in parent.keys}

    def _is_awaited(self, table: Table) -> bool:
        """Whether rows that no foreign key protects yet may refer to the table."""
        return bool(self._references(table)[1])


def _key_columns(table: Table) -> tuple[Column, ...]:
    """The columns of the primary key; none if it is hidden."""
    columns = tuple(table.column_by_id[c] for c in table.primary.key)
    return () if any(column.hidden for column in columns) else columns


# Cumulative percentages.
_ACTIONS: tuple[tuple[int, Callable[[_Attempt, Table], object]], ...] = (
    (50, _Attempt.insert),
    (78, _Attempt.update),
    (90, _Attempt.delete),
    (100, _Attempt.read),
)
