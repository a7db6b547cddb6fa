"""ALTER TABLE ... ALTER COLUMN."""

from __future__ import annotations

from collections.abc import Callable

from seachange import errors
from seachange.model import statements
from seachange.sql.ddl.column import SETTINGS, read_always, read_default
from seachange.sql.ddl.expression import DOWN, GENERATED, TRANSFORM, UP, compile_expression
from seachange.sql.ddl.sequence import OptionReader, read_identity
from seachange.sql.ddl.storage_parameters import take_column_storage
from seachange.sql.text.names import read_collation, read_column_type
from seachange.sql.text.tokens import Reader


def read_alter_column(reader: Reader) -> statements.AlterAction:
    name = reader.name()
    for words, read in _FORMS:
        if reader.take(*words):
            return read(reader, name)
    for word, (setting, read_value) in SETTINGS.items():
        if reader.take("set", word):
            return statements.SetColumnSetting(name, setting, read_value(reader))
    if take_column_storage(reader):
        return statements.KeepAsItIs(name)
    if reader.at("set") or reader.at("restart"):
        return _set_identity(reader, name)
    raise reader.problem()


def _unsupported(reader: Reader) -> errors.Error:
    return errors.FeatureNotSupported(
        feature="this form of ALTER COLUMN",
        instead="TYPE, DEFAULT, NOT NULL, EXPRESSION, GENERATED and IDENTITY can be changed.",
    )


def _type(reader: Reader, name: str) -> statements.AlterAction:
    type_ = read_column_type(reader)
    if reader.take("collate"):
        read_collation(reader)
    if not reader.take("using"):
        return statements.AlterColumnType(name, type_, down=take_down(reader))
    if not _is_followed_by_down(reader):
        return statements.AlterColumnType(name, type_, compile_expression(reader.phrase().source, TRANSFORM, type_))
    using = compile_expression(reader.parenthesized(), UP, type_)
    return statements.AlterColumnType(name, type_, using, take_down(reader))


def _is_followed_by_down(reader: Reader) -> bool:
    """Whether an expression in parentheses is all that USING has; elsewhere `down` may be the name of a column."""
    if not reader.at_symbol("("):
        return False
    ahead, depth = 0, 0
    while (word := reader.plain(ahead)) or reader.peek(ahead) is not None:
        depth += {"(": 1, ")": -1}.get(word, 0)
        ahead += 1
        if not depth:
            break
    return (reader.plain(ahead), reader.plain(ahead + 1)) == ("down", "using")


def take_down(reader: Reader) -> statements.ExpressionDefinition | None:
    """DOWN USING (...), of the column that is dropped or converted."""
    return compile_expression(reader.parenthesized(), DOWN) if reader.take("down", "using") else None


def _set_default(reader: Reader, name: str) -> statements.AlterAction:
    return statements.SetDefault(name, read_default(reader))


def _drop_default(reader: Reader, name: str) -> statements.AlterAction:
    return statements.SetDefault(name, None)


def _set_not_null(reader: Reader, name: str) -> statements.AlterAction:
    return statements.SetNotNull(name)


def _drop_not_null(reader: Reader, name: str) -> statements.AlterAction:
    return statements.DropNotNull(name)


def _set_expression(reader: Reader, name: str) -> statements.AlterAction:
    return statements.SetExpression(name, compile_expression(reader.parenthesized(), GENERATED))


def _drop_expression(reader: Reader, name: str) -> statements.AlterAction:
    return statements.DropExpression(name, reader.take("if", "exists"))


def _add_identity(reader: Reader, name: str) -> statements.AlterAction:
    always = read_always(reader)
    reader.expect("as", "identity")
    return statements.AddIdentity(name, read_identity(reader, always))


def _drop_identity(reader: Reader, name: str) -> statements.AlterAction:
    return statements.DropIdentity(name, reader.take("if", "exists"))


def _set_identity(reader: Reader, name: str) -> statements.AlterAction:
    """SET GENERATED, SET of sequence options and RESTART, any number of them in any order."""
    options = OptionReader(reader, restarts=True)
    always: bool | None = None
    while True:
        if reader.take("set", "generated"):
            if always is not None:
                raise errors.SyntaxProblem(detail="conflicting or redundant options of a sequence: generated")
            always = read_always(reader)
        elif reader.at("set") or reader.at("restart"):
            if not _take_option(reader, options):
                raise _unsupported(reader)
        else:
            return statements.SetIdentity(name, always, options.options)


def _take_option(reader: Reader, options: OptionReader) -> bool:
    reader.take("set")
    return options.take()


_FORMS: tuple[tuple[tuple[str, ...], Callable[[Reader, str], statements.AlterAction]], ...] = (
    (("set", "data", "type"), _type),
    (("type",), _type),
    (("set", "default"), _set_default),
    (("drop", "default"), _drop_default),
    (("set", "not", "null"), _set_not_null),
    (("drop", "not", "null"), _drop_not_null),
    (("set", "expression", "as"), _set_expression),
    (("drop", "expression"), _drop_expression),
    (("add", "generated"), _add_identity),
    (("drop", "identity"), _drop_identity),
)
