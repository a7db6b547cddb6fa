"""Rows of a pinned table as rows of the current one, and the reverse.

A column that is the same in both is taken over, and checked where its type was widened. One that has gone since is
computed by DOWN, one that has come since by UP, by way of all columns in between.

**Invariant:** a change of a row computes by UP only what depends on values that the change changes. What a program
writes back as it has read it leaves the row as it was.
**Invariant:** a value without a counterpart is an error when it is read, of the statement that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from seachange import errors
from seachange.engine.encode.derive import Derivation, compile_derivation
from seachange.model.condition import Condition, MeetsCondition
from seachange.model.ids import ColumnId
from seachange.model.schema.counterpart import down_of
from seachange.model.schema.descriptor import Column, Table
from seachange.model.schema.expression import Expression
from seachange.model.schema.pinned import PinnedTable, table_now
from seachange.model.states import State
from seachange.storage.arrow import column_name
from seachange.storage.duck import Duck
from seachange.storage.duck_numerics import complaint
from seachange.storage.entries import as_assigned
from seachange.storage.layout_groups import SameTable
from seachange.storage.plan import quote
from seachange.values.coercion import coercer

Row = tuple[Any, ...]

_COLUMN: Final = re.compile(r'"c([0-9]+)"')


@dataclass(frozen=True, slots=True)
class Step:
    """A column that is computed from others."""

    column: Column
    expression: Expression


@dataclass(frozen=True, slots=True)
class Up:
    """A column that is computed when a row is written, and the columns of the shape that it depends on."""

    step: Step
    inputs: frozenset[ColumnId]


class Translation:
    def __init__(self, table: Table) -> None:
        self.table = table
        self.now = table_now(table)
        unread = table.unread if isinstance(table, PinnedTable) else frozenset()
        self._places = {column.id: place for place, column in enumerate(table.columns)}
        self._now_places = {column.id: place for place, column in enumerate(self.now.columns)}
        self.retired = tuple(column for column in table.columns if column.id not in self._now_places)
        self._read = [column for column in self.retired if column.id not in unread]
        self.is_aligned = [c.id for c in table.columns] == [c.id for c in self.now.columns]
        self._downs = _Resolver(self._down_of, self._now_places.keys())
        # Without a value, except for what is not read.
        self.lost = frozenset(c.id for c in self._read if self._downs.steps([c.id]) is None)
        # The columns of now that the values of the shape say something about, in the order in which they are computed.
        self._ups = self._find_ups()
        self._derivations: dict[tuple[Up, ...], tuple[Derivation, list[int]]] = {}

    # What is read.

    def is_retired(self, column_id: ColumnId) -> bool:
        return column_id not in self._now_places

    def splits(self, conditions: Sequence[Condition]) -> list[Condition]:
        """The conditions that rows of now meet; the others are about columns that have gone."""
        return [condition for condition in conditions if not any(map(self.is_retired, _columns_of(condition)))]

    def inputs(self, wanted: Iterable[ColumnId]) -> list[Column]:
        """The columns of now that these depend on."""
        found: dict[ColumnId, Column] = {}
        for column_id in wanted:
            steps = self._downs.steps([column_id]) or ()
            needed = [column_id, *(c for step in steps for c in step.expression.columns)]
            found |= {c: self.now.column_by_id[c] for c in needed if c in self._now_places}
        return list(found.values())

    def select(self, sql: str, wanted: Sequence[Column]) -> str:
        """A query for columns of the shape over one of `inputs`, by their labels in the current table."""
        read = [column.id for column in wanted if column in self._read and column.id not in self.lost]
        names = ", ".join(
            f"{quote(self.now.label(c))} AS {column_name(c.id)}" for c in self.inputs(c.id for c in wanted)
        )
        # A relation without columns has rows, too.
        source = f"SELECT {names or '1'} FROM ({sql})"  # noqa: S608 - quoted
        for step in self._downs.steps(read) or ():
            value = as_assigned(step.expression, step.column.type)
            source = f"SELECT *, {value} AS {column_name(step.column.id)} FROM ({source})"  # noqa: S608 - named by id
        shown = ", ".join(f"{self._value(column)} AS {quote(self.table.label(column))}" for column in wanted)
        return f"SELECT {shown or '1'} FROM ({source})"  # noqa: S608 - quoted

    def _value(self, column: Column) -> str:
        name, type_ = column_name(column.id), column.type.duckdb
        own = self.now.column_by_id.get(column.id)
        if own is None:
            if column.id in self.lost:
                return f"CAST({complaint(self._complaint(column).replace(chr(39), chr(39) * 2), 'TINYINT')} AS {type_})"
            if column not in self._read:
                return f"CAST(NULL AS {type_})"
            own = self.now.retired_by_id[column.id].column
        return name if own.type.duckdb == type_ else f"CAST({name} AS {type_})"

    def _complaint(self, column: Column) -> str:
        return (
            f'column "{column.name}" of table "{self.table.name}" has been dropped without DOWN USING: it has no value'
        )

    def shows(self, rows: Sequence[Row], duck: Duck) -> list[Row]:
        """Rows of now in the shape."""
        if not self.retired:
            self.check_fit(self.table.columns, self.now.columns, rows)
            return list(rows) if self.is_aligned else [self._arranged(row, {}) for row in rows]
        if self.lost and rows:
            column = next(column for column in self._read if column.id in self.lost)
            raise errors.NoCounterpart(detail=self._complaint(column))
        values = self._down_values([column.id for column in self._read], rows, duck)
        shown = [
            self._arranged(row, {c: each[number] for c, each in values.items()}) for number, row in enumerate(rows)
        ]
        own = [self.now.column_by_id.get(c.id) or self.now.retired_by_id[c.id].column for c in self.table.columns]
        self.check_fit(self.table.columns, own, shown)
        return shown

    def _arranged(self, row: Row, values: Mapping[ColumnId, Any]) -> Row:
        places = self._now_places
        return tuple([row[places[c.id]] if c.id in places else values.get(c.id) for c in self.table.columns])

    def _down_values(self, wanted: Sequence[ColumnId], rows: Sequence[Row], duck: Duck) -> dict[ColumnId, list[Any]]:
        steps = self._downs.steps(wanted) or ()
        if not steps or not rows:
            return {}
        derivation = _derivation(self.now, self.now.columns, steps)
        derived = derivation.derive([(*row, *(None for _ in steps)) for row in rows], duck)
        first = len(self.now.columns)
        return {step.column.id: [row[first + n] for row in derived] for n, step in enumerate(steps)}

    def _down_of(self, column_id: ColumnId) -> Step | None:
        found = self.now.retired_by_id.get(column_id)
        if found is None:
            return None
        expression = down_of(found, self.now)
        return Step(found.column, expression) if expression is not None else None

    @staticmethod
    def check_fit(then: Sequence[Column], own: Sequence[Column], rows: Sequence[Row]) -> None:
        """22003 where a value of now is none of then."""
        for place, (column, current) in enumerate(zip(then, own, strict=True)):
            if column.type.duckdb != current.type.duckdb:
                check = coercer(column.type)
                for row in rows:
                    check(row[place])

    # What is written.

    def _find_ups(self) -> tuple[Up, ...]:
        shown = {column.id for column in self.table.visible_columns}
        resolver = _Resolver(self._up_of, shown | {c.id for c in self.now.columns if not self._is_computed(c, shown)})
        wanted = [c.id for c in self.now.columns if self._is_computed(c, shown) and resolver.steps([c.id]) is not None]
        found: list[Up] = []
        depends: dict[ColumnId, frozenset[ColumnId]] = {}
        for step in resolver.steps(wanted) or ():
            parts = [depends.get(c, frozenset({c} & shown)) for c in step.expression.columns]
            depends[step.column.id] = frozenset().union(*parts)
            found.append(Up(step, depends[step.column.id]))
        return tuple(found)

    def _is_computed(self, column: Column, shown: set[ColumnId]) -> bool:
        is_own = column.hidden or column.generated is not None or column.state is not State.PUBLIC
        return column.id not in shown and not is_own and column.from_earlier is not None

    def _up_of(self, column_id: ColumnId) -> Step | None:
        column = self.now.column_by_id.get(column_id)
        if column is None and column_id in self.now.retired_by_id:
            column = self.now.retired_by_id[column_id].column
        if column is None or column.from_earlier is None:
            return None
        return Step(column, column.from_earlier)

    @property
    def computed(self) -> list[Column]:
        """The columns of now that UP computes."""
        return [up.step.column for up in self._ups if up.step.column.id in self._now_places]

    def computed_from(self, assigned: Iterable[ColumnId]) -> list[Column]:
        """The columns of now whose values change with these of the shape."""
        ids = frozenset(assigned)
        return [up.step.column for up in self._ups if up.inputs & ids and up.step.column.id in self._now_places]

    def taken_over(self, rows: Sequence[Row]) -> list[Row]:
        """Rows of the shape as they are read, or as they were, in the current table."""
        if self.is_aligned:
            return list(rows)
        order = [self._places[column.id] for column in self.now.columns]
        return [tuple([row[place] for place in order]) for row in rows]

    def inserted(self, rows: Sequence[Row], duck: Duck) -> list[Row]:
        """New rows of the shape in the current table."""
        return self._with_ups(rows, self.taken_over(rows), self._ups, duck)

    def changed(self, old: Sequence[Row], new: Sequence[Row], duck: Duck) -> list[Row]:
        """The same rows after a change; what was not read of them has not been changed."""
        found = self.taken_over(new)
        places = {id_: self._places[id_] for up in self._ups for id_ in up.inputs}
        groups: dict[frozenset[ColumnId], list[int]] = {}
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            differing = frozenset(id_ for id_, place in places.items() if before[place] != after[place])
            if differing:
                groups.setdefault(differing, []).append(number)
        for differing, numbers in groups.items():
            ups = self._affected_by(differing)
            whole = self._completed([old[n] for n in numbers], [new[n] for n in numbers], ups, duck)
            computed = self._with_ups(whole, [found[n] for n in numbers], ups, duck)
            for number, row in zip(numbers, computed, strict=True):
                found[number] = row
        return found

    def _affected_by(self, differing: frozenset[ColumnId]) -> tuple[Up, ...]:
        """With columns in between, which are in no row; those of now have their values."""
        found: list[Up] = []
        needed: set[ColumnId] = set()
        for up in reversed(self._ups):
            column_id = up.step.column.id
            if up.inputs & differing or (column_id in needed and column_id not in self._now_places):
                found.append(up)
                needed.update(up.step.expression.columns)
        return tuple(reversed(found))

    def _completed(self, old: Sequence[Row], new: Sequence[Row], ups: Sequence[Up], duck: Duck) -> list[Row]:
        """With the values that UP needs and the statement did not."""
        needed = {id_ for up in ups for id_ in up.inputs}
        missing = [c.id for c in self.retired if c.id in needed and c not in self._read]
        missing = [c for c in missing if self._downs.steps([c]) is not None]
        if not missing:
            return list(new)
        values = self._down_values(missing, self.taken_over(old), duck)
        whole = []
        for number, row in enumerate(new):
            held = list(row)
            for column_id in missing:
                held[self._places[column_id]] = values[column_id][number]
            whole.append(tuple(held))
        return whole

    def _with_ups(self, rows: Sequence[Row], current: Sequence[Row], ups: tuple[Up, ...], duck: Duck) -> list[Row]:
        """The current rows with what is computed from those of the shape."""
        if not ups or not rows:
            return list(current)
        derivation, order = self._up_derivation(ups)
        room = (None,) * len(ups)
        derived = derivation.derive([(*[row[place] for place in order], *room) for row in rows], duck)
        found = []
        for row, values in zip(current, derived, strict=True):
            held = list(row)
            for number, up in enumerate(ups):
                place = self._now_places.get(up.step.column.id)
                if place is not None:
                    held[place] = values[len(order) + number]
            found.append(tuple(held))
        return found

    def _up_derivation(self, ups: tuple[Up, ...]) -> tuple[Derivation, list[int]]:
        """With the places of the values of the shape that it begins with."""
        known = self._derivations.get(ups)
        if known is None:
            computed = {up.step.column.id for up in ups}
            given = [column for column in self.table.columns if column.id not in computed]
            derivation = _derivation(self.now, given, [up.step for up in ups])
            known = self._derivations[ups] = derivation, [self._places[column.id] for column in given]
        return known


class _Resolver:
    """The order in which columns are computed from those that are known."""

    def __init__(self, step_of: Callable[[ColumnId], Step | None], known: Iterable[ColumnId]) -> None:
        self._step_of = step_of
        self._known = frozenset(known)

    def steps(self, wanted: Iterable[ColumnId]) -> tuple[Step, ...] | None:
        """None if one of them cannot be computed."""
        found: dict[ColumnId, Step] = {}
        return tuple(found.values()) if all(self._visit(column_id, found) for column_id in wanted) else None

    def _visit(self, column_id: ColumnId, found: dict[ColumnId, Step]) -> bool:
        if column_id in self._known or column_id in found:
            return True
        step = self._step_of(column_id)
        # What it is computed from came, or went, at another time: there are no circles.
        if step is None or not all(self._visit(each, found) for each in step.expression.columns):
            return False
        found[column_id] = step
        return True


def _derivation(now: Table, given: Sequence[Column], steps: Sequence[Step]) -> Derivation:
    """Computes values behind those that are given."""
    plain = [replace(column, generated=None, conversion=None, virtual=False) for column in given]
    computed = [
        replace(s.column, generated=s.expression, conversion=None, virtual=False, state=State.PUBLIC) for s in steps
    ]
    columns = (*plain, *computed)
    table = replace(now, columns=columns, secondary=(), next_primary=None, later_primaries=())
    found = compile_derivation(table)
    assert found is not None
    return found


def _columns_of(condition: Condition) -> list[ColumnId]:
    if isinstance(condition, MeetsCondition):
        return [ColumnId(int(number)) for number in _COLUMN.findall(condition.text)]
    return [condition.column]


@lru_cache(maxsize=256)
def _translate(same: SameTable) -> Translation:
    return Translation(same.table)


def translate(table: Table) -> Translation:
    return _translate(SameTable(table))
