"""Generates rows that meet the rules of a table, those of now and of its later versions.

Deterministic for a seed: rows of other tables that a foreign key can refer to are requested through a port.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from seachange.model.schema.descriptor import Column, Table
from seachange.replay.row_rules import CheckRule, ColumnForm, Parent, RowRules
from seachange.replay.seeded_random import SeededRandom
from seachange.replay.values import NULL, Made, make, number, quoted, word
from seachange.sql.duck.check_closure import Evaluate, Undecided, compile_check_expression
from seachange.values.types import Kind, SqlType

# The values of a key of another table that a row may refer to; None if there is none.
FindParent = Callable[[Parent], tuple[Made, ...] | None]
# Returns whether no row has these values of a unique key, by column, and reserves them.
Claim = Callable[[Mapping[str, str]], bool]

_ATTEMPTS_MAX = 40
_LITERALS = re.compile(r"'((?:[^']|'')*)'|(?<![\w\"])(-?[0-9]+(?:\.[0-9]+)?)")
_STRINGS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.NAME})
_INTEGERS = frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT})
_NEAR = (-1, 0, 1)
# The longest text that is generated to meet a CHECK of its length.
_LENGTH_MAX = 100
_DEFAULTED_PERCENT = 30
_NULL_PERCENT = 10


class NoParent(Exception):
    """A row must refer to a row of another table, and there is none."""

    def __init__(self, parent: Parent) -> None:
        super().__init__(parent.table)
        self.parent = parent


class Taken(Exception):
    """Another row refers to the same rows, and only one may."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Generates rows of one version of a table. `now` are its rules, `later` those of its next versions."""

    table: Table
    now: RowRules
    later: RowRules
    random_source: SeededRandom
    find_parent: FindParent
    claim: Claim

    def insert(self) -> dict[str, Made]:
        """The columns of a new row that get explicit values; others take their defaults."""
        given = [c for c in self.table.visible_columns if self._is_given(c)]
        row = self._make(given)
        for key in sorted(self._referring_keys(), key=sorted):
            known = key <= row.keys() and all(row[name] is not NULL for name in key)
            if known and not self.claim({name: row[name].literal for name in key}):
                raise Taken
        return row

    def update(self, kept: Collection[str]) -> dict[str, Made]:
        """New values for some columns; those in `kept` are not changed."""
        kept = frozenset(kept).union(*self._referring_keys())
        free = [c for c in self.table.visible_columns if _is_settable(c) and c.name not in kept]
        if not free:
            return {}
        chosen = {self.random_source.pick(free).name for _ in range(1 + self.random_source.below(2))}
        # Columns that share a CHECK or a foreign key are changed together.
        for _ in free:
            tied = [group for group in self._ties() if chosen & group]
            chosen = chosen.union(*tied)
        if not chosen <= {c.name for c in free}:
            return {}
        return self._make([c for c in free if c.name in chosen])

    def _is_given(self, column: Column) -> bool:
        if not _is_settable(column) or column.default_sequences:
            return False
        return column.default is None or not self.random_source.chance(_DEFAULTED_PERCENT)

    def _referring_keys(self) -> list[frozenset[str]]:
        """Unique keys whose values are those of other rows, so that no new ones can be generated."""
        referring = {name for parent in self.now.parents | self.later.parents for name in parent.columns}
        return [key for key in self.now.keys | self.later.keys if key <= referring]

    def _ties(self) -> list[set[str]]:
        rules = self.now.rules | self.later.rules
        parents = self.now.parents | self.later.parents
        return [{name for _, name in rule.names} for rule in rules] + [set(parent.columns) for parent in parents]

    def _make(self, columns: list[Column]) -> dict[str, Made]:
        row = {column.name: self._value(column) for column in columns}
        self._refer(row)
        self._obey(row, {column.name: column for column in columns})
        return row

    def _value(self, column: Column) -> Made:
        required = column.name in self.now.required | self.later.required
        distinct = column.name in self.now.distinct | self.later.distinct
        if not required and not distinct and self.random_source.chance(_NULL_PERCENT):
            return NULL
        form = self._form(column)
        made = make(form.type, form.labels, self.random_source, distinct)
        # A text that will be converted to another type already has that type's format.
        becomes = form.type != column.type and not isinstance(made.value, str) and made is not NULL
        return quoted(made.literal.strip("'")) if becomes and column.type.kind in _STRINGS else made

    def _form(self, column: Column) -> ColumnForm:
        """The type whose values fit the column now and later: texts may become anything, small numbers fit
        everywhere."""
        now = next(form for form in self.now.forms if form.column == column.name)
        if column.type.enum or column.type.kind not in _STRINGS:
            return now
        later = sorted((form for form in self.later.forms if form.column == column.name), key=repr)
        others = [form for form in later if form.type.enum or form.type.kind not in _STRINGS]
        if others:
            return others[0]
        lengths = [form.type.length for form in (now, *later) if form.type.length]
        return ColumnForm(column.name, SqlType(Kind.VARCHAR, length=min(lengths)), ()) if lengths else now

    def _refer(self, row: dict[str, Made]) -> None:
        """Sets the columns of foreign keys to the values of existing rows."""
        referring: set[str] = set()
        for parent in (*sorted(self.now.parents, key=repr), *sorted(self.later.parents, key=repr)):
            if not set(parent.columns) <= row.keys() or referring & set(parent.columns):
                continue
            referring |= set(parent.columns)
            found = self.find_parent(parent)
            if found is not None:
                row.update(zip(parent.columns, found, strict=True))
                continue
            optional = [c for c in parent.columns if c not in self.now.required | self.later.required]
            if not optional:
                raise NoParent(parent)
            row[optional[0]] = NULL

    def _obey(self, row: dict[str, Made], columns: Mapping[str, Column]) -> None:
        """Draws values of columns with CHECKs again until all hold; those of later versions as far as possible."""
        rules = (*sorted(self.now.rules, key=repr), *sorted(self.later.rules - self.now.rules, key=repr))
        for _ in range(_ATTEMPTS_MAX):
            broken = [rule for rule in rules if self._is_broken(rule, row)]
            if not broken:
                return
            for name in [name for _, name in broken[0].names if name in columns]:
                candidates = _candidates(broken[0].expression, columns[name], self.random_source)
                row[name] = self.random_source.pick(candidates) if candidates else self._value(columns[name])

    def _is_broken(self, rule: CheckRule, row: Mapping[str, Made]) -> bool:
        if not all(name in row for _, name in rule.names):
            return False
        types = tuple((short, self.table.column_by_name[name].type) for short, name in rule.names)
        evaluate = _compiled(rule.expression, types)
        if evaluate is None:
            return False
        try:
            return evaluate(tuple(row[name].value for _, name in rule.names)) is False
        except Undecided:
            return False


def _is_settable(column: Column) -> bool:
    return column.generated is None and column.identity is None


@lru_cache(maxsize=1024)
def _compiled(expression: str, types: tuple[tuple[str, SqlType], ...]) -> Evaluate | None:
    return compile_check_expression(
        expression, {short: (position, type_) for position, (short, type_) in enumerate(types)}
    )


def _candidates(expression: str, column: Column, random_source: SeededRandom) -> list[Made]:
    """Values that a CHECK is likely to accept: its own constants, and their neighbours."""
    found: list[Made] = []
    for text, digits in _LITERALS.findall(expression):
        if column.type.kind in _STRINGS and text:
            found.append(quoted(text.replace("''", "'").replace("%", word(random_source, 12, True)).replace("_", "x")))
            found.append(quoted(text.replace("''", "'")))
        elif column.type.kind in _STRINGS and digits.isdecimal():
            length = min(int(digits), column.type.length or _LENGTH_MAX)
            found += [
                quoted(word(random_source, max(length + near, 0), True).ljust(length + near, "x")) for near in _NEAR
            ]
        elif column.type.kind in _INTEGERS and digits:
            found += [number(int(Decimal(digits)) + near) for near in _NEAR]
        elif column.type.kind is Kind.NUMERIC and digits:
            found += [number(Decimal(digits) + near) for near in _NEAR]
        elif column.type.kind is Kind.DOUBLE and digits:
            found += [_double(float(digits) + near) for near in _NEAR]
    return found


def _double(value: float) -> Made:
    return Made(value, repr(value))
