"""COMMENT ON."""

from __future__ import annotations

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.statements import CommentOn, CommentOnRole
from seachange.sql.ddl.object import read_object_name, read_role
from seachange.sql.text.names import read_column_path, read_relation
from seachange.sql.text.tokens import Reader

# Other objects that can have a comment in PostgreSQL.
_OTHERS_WORDS = """
    access aggregate cast collation conversion domain event extension foreign function language large
    operator policy procedure procedural publication routine rule server statistics subscription tablespace text
    transform trigger
"""
_OTHERS = frozenset(_OTHERS_WORDS.split())


def read_comment(reader: Reader) -> CommentOn | CommentOnRole:
    reader.expect("on")
    if reader.take("role"):
        role = read_role(reader)
        return CommentOnRole(role, _read_text(reader))
    kind = _read_kind(reader)
    part: str | None = None
    match kind:
        case ObjectKind.COLUMN:
            name, part = read_column_path(reader)
        case ObjectKind.CONSTRAINT:
            part = reader.name()
            reader.expect("on")
            name = read_relation(reader)
        case _:
            name = read_object_name(reader, kind)
    return CommentOn(kind, name, part, _read_text(reader))


def _read_text(reader: Reader) -> str | None:
    reader.expect("is")
    return None if reader.take("null") else reader.string()


def _read_kind(reader: Reader) -> ObjectKind:
    if reader.take("materialized", "view"):
        return ObjectKind.MATERIALIZED_VIEW
    word = reader.take_any(*ObjectKind)
    if word is not None:
        return ObjectKind(word)
    other = reader.plain()
    if other in _OTHERS:
        raise errors.FeatureNotSupported(
            feature=f"COMMENT ON {other.upper()}", instead="Such objects do not exist here; omit the statement."
        )
    raise reader.problem()
