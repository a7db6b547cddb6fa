"""The values and types of a statement's parameters where long lists were taken out of its text: a list is one parameter
of the plan, and none of the client's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp

from seachange import errors
from seachange.sql.query.query import count_parameters
from seachange.sql.text.list_places import rows_of_lists
from seachange.sql.text.long_lists import LongList
from seachange.values.coercion import coercer
from seachange.values.types import Kind, SqlType, array_of

_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.NAME})
# Drivers declare each integer as the narrowest type that holds it.
_WIDTHS: Final[Sequence[SqlType | None]] = tuple(map(SqlType, (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)))
_INTEGERS: Final = frozenset(_WIDTHS)

Types = Sequence[SqlType | None]


@dataclass(frozen=True, slots=True)
class FilledLists:
    """The lists of one statement; `of_rows` are the numbers of those that are columns of the rows of an INSERT, `own`
    that of the client's parameters, `count` that of the plan's."""

    lists: tuple[LongList, ...]
    of_rows: frozenset[int]
    own: int
    count: int

    def declare(self, given: Types) -> Types | None:
        """The types of the plan's parameters, as far as the client's are declared; None if those of one list have no
        common one."""
        found: list[SqlType | None] = [*given[: self.own], *[None] * (self.count - min(self.own, len(given)))]
        for each in self.lists:
            type_ = each.shape.type
            if each.numbers:
                declared = {given[number - 1] for number in each.numbers if number <= len(given)} - {None}
                type_ = max(declared, key=_WIDTHS.index, default=None) if declared <= _INTEGERS else _only(declared)
                if type_ is None and declared:
                    return None
            is_list = type_ is not None and each.shape.number not in self.of_rows
            found[each.shape.number - 1] = array_of(type_) if is_list and type_ is not None else type_
        return found

    def describe(self, given: Types, types: Types) -> tuple[SqlType | None, ...]:
        """The types of the client's parameters: `types` are those of the plan's."""
        found: list[SqlType | None] = [*types[: self.own], *[None] * (self.own - len(types))]
        for each in self.lists:
            type_ = types[each.shape.number - 1]
            if type_ is not None and each.shape.number not in self.of_rows:
                type_ = type_.element
            for number in each.numbers:
                found[number - 1] = type_
        return tuple([known or type_ for known, type_ in zip(_padded(given, self.own), found, strict=True)])

    def fill(self, values: Sequence[Any], types: Types) -> list[Any]:
        """The values of the plan's parameters. Strings become values of the types that their places require."""
        if len(values) != self.own:
            raise errors.WrongParameterCount(expected=self.own, given=len(values))
        found = [*values, *[None] * (self.count - self.own)]
        for each in self.lists:
            place = each.shape.number - 1
            type_ = types[place] if place < len(types) else None
            element = type_.element if type_ is not None and each.shape.number not in self.of_rows else None
            found[place] = _typed(each.read(values), element) if each.shape.kind is str else each.read(values)
        return found


def _only(types: set[SqlType | None]) -> SqlType | None:
    return next(iter(types)) if len(types) == 1 else None


def _padded(types: Types, count: int) -> list[SqlType | None]:
    return [*types[:count], *[None] * (count - len(types))]


def _typed(texts: list[Any], element: SqlType | None) -> list[Any]:
    if element is None or element.enum or element.kind in _TEXTS:
        return texts
    coerce = coercer(element)
    return [None if text is None else coerce(text) for text in texts]


def fill_lists(tree: exp.Expr, taken: Sequence[LongList]) -> FilledLists:
    """The lists of one statement of the text."""
    used = {int(node.this.name) for node in tree.find_all(exp.Parameter) if node.this.name.isdigit()}
    lists = tuple(each for each in taken if each.shape.number in used)
    numbers = {each.shape.number for each in lists}
    row = rows_of_lists(tree) if isinstance(tree, exp.Insert) else None
    of_rows = {int(item.this.name) for item in row.expressions if isinstance(item, exp.Parameter)} if row else set()
    own = max((*(used - numbers), *(max(each.numbers) for each in lists if each.numbers)), default=0)
    return FilledLists(lists, frozenset(of_rows & numbers), own, count_parameters(tree))
