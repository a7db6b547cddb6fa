"""Constraints in CREATE TABLE and ALTER TABLE: CHECK, UNIQUE, PRIMARY KEY, REFERENCES, FOREIGN KEY."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from seachange import errors
from seachange.model.schema.constraint import Action
from seachange.model.statements import CheckDefinition, ForeignKeyDefinition, KeyDefinition, RuleDefinition
from seachange.sql.ddl.expression import CHECK, compile_expression
from seachange.sql.text.names import read_relation
from seachange.sql.text.tokens import Reader, TokenKind, Word

_ACTIONS: tuple[tuple[tuple[str, ...], Action], ...] = (
    (("no", "action"), Action.NO_ACTION),
    (("restrict",), Action.RESTRICT),
    (("cascade",), Action.CASCADE),
    (("set", "null"), Action.SET_NULL),
    (("set", "default"), Action.SET_DEFAULT),
)
_USING_INDEX: tuple[tuple[str, ...], ...] = (("unique", "using", "index"), ("primary", "key", "using", "index"))
# Constraint options of PostgreSQL that are not supported, with hints.
_REFUSED_OPTIONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("deferrable",), "Only foreign keys can be deferred."),
    (("initially", "deferred"), "Only foreign keys can be deferred."),
    (("include",), "Use CREATE UNIQUE INDEX ... INCLUDE."),
    (("with",), "Leave it out."),
    (("using",), "Omit it, or use USING INDEX in ALTER TABLE ... ADD."),
    (("not", "enforced"), "Omit it, or omit the constraint."),
    (("enforced",), "Omit it: constraints are always enforced."),
)
# The keywords with which a table constraint begins, as opposed to a column constraint.
TABLE_CONSTRAINTS = ("constraint", "primary", "unique", "check", "foreign", "exclude", "like")


@dataclass(slots=True)
class Constraints:
    """The constraints of a statement, in order."""

    primary: list[KeyDefinition] = field(default_factory=list)
    unique: list[KeyDefinition] = field(default_factory=list)
    rules: list[RuleDefinition] = field(default_factory=list)


def read_table_constraint(reader: Reader, found: Constraints) -> None:
    name = reader.name() if reader.take("constraint") else None
    if reader.take("primary", "key"):
        found.primary.append(_read_key(reader, KeyDefinition((), name, primary=True)))
    elif reader.take("unique"):
        found.unique.append(_read_key(reader, KeyDefinition((), name)))
    elif reader.take("check"):
        found.rules.append(read_check(reader, name))
        _refuse_options(reader)
    elif reader.take("foreign", "key"):
        columns = reader.names()
        reader.expect("references")
        found.rules.append(_read_references(reader, columns, name))
        _refuse_options(reader)
    else:
        raise _refuse_constraint(reader)


def read_added_constraint(reader: Reader) -> RuleDefinition | KeyDefinition:
    """A constraint of ALTER TABLE ADD, which may be NOT VALID or use an existing index."""
    found = Constraints()
    key = _take_index(reader)
    if key is not None:
        return key
    read_table_constraint(reader, found)
    declared: list[RuleDefinition | KeyDefinition] = [*found.primary, *found.unique, *found.rules]
    (constraint,) = declared
    if not reader.take("not", "valid"):
        return constraint
    if isinstance(constraint, KeyDefinition):
        raise errors.FeatureNotSupported(feature="a key that is NOT VALID", instead="Omit NOT VALID.")
    return replace(constraint, not_valid=True)


def _take_index(reader: Reader) -> KeyDefinition | None:
    """[CONSTRAINT name] {UNIQUE | PRIMARY KEY} USING INDEX index; reads nothing if it is something else."""
    named = 2 if reader.at("constraint") else 0
    for words in _USING_INDEX:
        if all(reader.peek(named + i) == Word(TokenKind.WORD, word) for i, word in enumerate(words)):
            name = reader.name() if reader.take("constraint") else None
            reader.expect(*words)
            key = KeyDefinition((), name, primary=words[0] == "primary", using_index=reader.name())
            return _read_key_options(reader, key)
    return None


def read_column_constraint(reader: Reader, column: str, name: str | None, found: Constraints) -> bool:
    """False if no column constraint follows."""
    if reader.take("primary", "key"):
        key = KeyDefinition((column,), name, primary=True)
        found.primary.append(_read_key_options(reader, key))
    elif reader.take("unique"):
        key = KeyDefinition((column,), name, read_nulls_distinct(reader))
        found.unique.append(_read_key_options(reader, key))
    elif reader.take("check"):
        found.rules.append(read_check(reader, name))
    elif reader.take("references"):
        found.rules.append(_read_references(reader, (column,), name))
    else:
        return False
    return True


def _read_key(reader: Reader, key: KeyDefinition) -> KeyDefinition:
    distinct = key.primary or read_nulls_distinct(reader)
    return _read_key_options(reader, replace(key, columns=reader.names(), nulls_distinct=distinct))


def _read_key_options(reader: Reader, key: KeyDefinition) -> KeyDefinition:
    """Options of a key: only the defaults are accepted."""
    while reader.take("not", "deferrable") or reader.take("initially", "immediate"):
        pass
    _refuse_options(reader)
    return key


def _refuse_options(reader: Reader) -> None:
    for words, instead in _REFUSED_OPTIONS:
        if reader.at(*words):
            raise errors.FeatureNotSupported(feature=f"{' '.join(words).upper()} in a constraint", instead=instead)


def _refuse_constraint(reader: Reader) -> errors.Error:
    if reader.at("like"):
        return errors.FeatureNotSupported(feature="LIKE in CREATE TABLE", instead="List the columns.")
    if reader.at("exclude"):
        return errors.FeatureNotSupported(feature="an EXCLUDE constraint", instead="UNIQUE works.")
    if reader.at("not", "null"):
        return errors.FeatureNotSupported(
            feature="NOT NULL as a constraint of a table",
            instead="Write it after the column, or use ALTER COLUMN ... SET NOT NULL.",
        )
    return reader.problem()


def read_nulls_distinct(reader: Reader) -> bool:
    """NULLS [NOT] DISTINCT of a unique key: whether NULLs are distinct, which is the default."""
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
        return _read_match(reader, key)
    for words, read in _OPTIONS:
        if reader.take(*words):
            return read(reader, key)
    return None


def _read_match(reader: Reader, key: ForeignKeyDefinition) -> ForeignKeyDefinition:
    """For a single column, FULL means the same as SIMPLE."""
    if reader.take("simple") or (len(key.columns) == 1 and reader.take("full")):
        return key
    if reader.take("full"):
        return replace(key, match_full=True)
    if reader.take("partial"):
        raise errors.FeatureNotSupported(feature="MATCH PARTIAL", instead="MATCH SIMPLE and MATCH FULL are supported.")
    raise reader.problem()


def _read_action(reader: Reader) -> Action:
    for words, action in _ACTIONS:
        if reader.take(*words):
            if reader.take_symbol("("):
                raise errors.FeatureNotSupported(feature=f"a list of columns after {action}", instead="Leave it out.")
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


def read_check(reader: Reader, name: str | None) -> CheckDefinition:
    definition = compile_check(reader.parenthesized(), name)
    if reader.take("no", "inherit"):
        raise errors.FeatureNotSupported(feature="NO INHERIT", instead="Omit it: there is no table inheritance.")
    return definition


def compile_check(text: str, name: str | None = None) -> CheckDefinition:
    expression = compile_expression(text, CHECK)
    return CheckDefinition(expression.pieces, expression.columns, name, written=expression.written)
