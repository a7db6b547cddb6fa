"""Constraints as they stand in CREATE TABLE and ALTER TABLE: CHECK, UNIQUE, PRIMARY KEY, REFERENCES, FOREIGN KEY."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from seachange import errors
from seachange.model.constraint import Action
from seachange.model.statements import ForeignKeyDefinition, KeyDefinition, RuleDefinition
from seachange.sql.ddl.check import read_check
from seachange.sql.ddl.names import read_relation
from seachange.sql.tokens import Reader

_ACTIONS: tuple[tuple[tuple[str, ...], Action], ...] = (
    (("no", "action"), Action.NO_ACTION),
    (("restrict",), Action.RESTRICT),
    (("cascade",), Action.CASCADE),
    (("set", "null"), Action.SET_NULL),
    (("set", "default"), Action.SET_DEFAULT),
)
# With which words a constraint of a table, as opposed to one of a column, begins.
TABLE_CONSTRAINTS = ("constraint", "primary", "unique", "check", "foreign", "exclude", "like")


@dataclass(slots=True)
class Constraints:
    """What a statement declares besides columns, in its order."""

    primary: list[KeyDefinition] = field(default_factory=list)
    unique: list[KeyDefinition] = field(default_factory=list)
    rules: list[RuleDefinition] = field(default_factory=list)


def read_table_constraint(reader: Reader, found: Constraints) -> None:
    name = reader.name() if reader.take("constraint") else None
    if reader.take("primary", "key"):
        found.primary.append(KeyDefinition(reader.names(), name))
    elif reader.take("unique"):
        distinct = read_nulls_distinct(reader)
        found.unique.append(KeyDefinition(reader.names(), name, distinct))
    elif reader.take("check"):
        found.rules.append(read_check(reader, name))
    elif reader.take("foreign", "key"):
        columns = reader.names()
        reader.expect("references")
        found.rules.append(_read_references(reader, columns, name))
    elif reader.at("like") or reader.at("exclude"):
        raise errors.FeatureNotSupported(feature="LIKE or EXCLUDE in CREATE TABLE", instead="")
    else:
        raise reader.problem()


def read_column_constraint(reader: Reader, column: str, name: str | None, found: Constraints) -> bool:
    """False if what follows is no constraint of a column."""
    if reader.take("primary", "key"):
        found.primary.append(KeyDefinition((column,), name))
    elif reader.take("unique"):
        found.unique.append(KeyDefinition((column,), name, read_nulls_distinct(reader)))
    elif reader.take("check"):
        found.rules.append(read_check(reader, name))
    elif reader.take("references"):
        found.rules.append(_read_references(reader, (column,), name))
    else:
        return False
    return True


def read_nulls_distinct(reader: Reader) -> bool:
    """NULLS [NOT] DISTINCT of a unique key: whether rows with a NULL in it differ from all others, as by default."""
    distinct = not reader.take("nulls", "not", "distinct")
    reader.take("nulls", "distinct")
    return distinct


def _read_references(reader: Reader, columns: tuple[str, ...], name: str | None) -> ForeignKeyDefinition:
    parent = read_relation(reader)
    parent_columns = reader.names() if reader.at_symbol("(") else ()
    key = ForeignKeyDefinition(columns, parent, parent_columns, name)
    while (changed := _read_option(reader, key)) is not None:
        key = changed
    return key


def _read_option(reader: Reader, key: ForeignKeyDefinition) -> ForeignKeyDefinition | None:
    if reader.take("match"):
        if not reader.take("simple"):
            raise errors.FeatureNotSupported(feature="MATCH FULL or PARTIAL", instead="MATCH SIMPLE works.")
        return key
    for words, read in _OPTIONS:
        if reader.take(*words):
            return read(reader, key)
    return None


def _read_action(reader: Reader) -> Action:
    for words, action in _ACTIONS:
        if reader.take(*words):
            if reader.take_symbol("("):
                raise errors.FeatureNotSupported(feature=f"a list of columns after {action}", instead="")
            return action
    raise reader.problem()


def _on_delete(reader: Reader, key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    return replace(key, on_delete=_read_action(reader))


def _on_update(reader: Reader, key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    return replace(key, on_update=_read_action(reader))


def _not_deferrable(reader: Reader, key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    return replace(key, deferrable=False)


def _deferrable(reader: Reader, key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    return replace(key, deferrable=True)


def _deferred(reader: Reader, key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    return replace(key, deferrable=True, initially_deferred=True)


def _immediate(reader: Reader, key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    return replace(key, initially_deferred=False)


_OPTIONS: tuple[tuple[tuple[str, ...], Callable[[Reader, ForeignKeyDefinition], ForeignKeyDefinition]], ...] = (
    (("on", "delete"), _on_delete),
    (("on", "update"), _on_update),
    (("not", "deferrable"), _not_deferrable),
    (("deferrable",), _deferrable),
    (("initially", "deferred"), _deferred),
    (("initially", "immediate"), _immediate),
)
