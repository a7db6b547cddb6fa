"""CREATE and DROP SHAPE."""

from __future__ import annotations

from seachange import errors
from seachange.model.statements import CreateShape, DropShape
from seachange.sql.settings.setting_checks import is_shape_name, parse_as_of
from seachange.sql.text.tokens import Reader, TokenKind


def read_create_shape(reader: Reader) -> CreateShape:
    if_not_exists = reader.take("if", "not", "exists")
    name = reader.name()
    if not is_shape_name(name):
        raise errors.InvalidParameterValue(detail=f'"{name}" is not a name of a shape: it would mean a moment')
    as_of = _read_moment(reader) if reader.take("as", "of") else None
    reader.expect_end()
    return CreateShape(name, as_of, if_not_exists)


def _read_moment(reader: Reader) -> str:
    word = reader.peek()
    text = str(reader.integer()) if word is not None and word.kind is TokenKind.NUMBER else reader.string()
    try:
        if parse_as_of(text) is not None:
            return text
    except ValueError:
        pass
    raise errors.InvalidParameterValue(detail=f'"{text}" is neither a sequence number nor a time')


def read_drop_shape(reader: Reader) -> DropShape:
    if_exists = reader.take("if", "exists")
    name = reader.name()
    reader.expect_end()
    return DropShape(name, if_exists)
