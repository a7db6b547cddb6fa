"""DDL statements by their first keywords, and the errors for unsupported ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.statements import (
    CreateTableAs,
    CreateTemporary,
    DdlStatement,
    Grant,
    GrantRoles,
    RoleStatement,
    ShapeStatement,
)
from seachange.sql.ddl import role, table
from seachange.sql.ddl.alter_table import read_alter_table
from seachange.sql.ddl.comment import read_comment
from seachange.sql.ddl.enum_type import read_alter_type, read_create_type
from seachange.sql.ddl.index import read_alter_index, read_create_index, read_create_unique_index, read_drop_index
from seachange.sql.ddl.object import read_drop_objects, read_revert_change
from seachange.sql.ddl.privilege import read_grant, read_revoke
from seachange.sql.ddl.schema import read_alter_database, read_alter_schema, read_create_database, read_create_schema
from seachange.sql.ddl.sequence import read_alter_sequence, read_create_sequence
from seachange.sql.ddl.shape import read_create_shape, read_drop_shape
from seachange.sql.ddl.view import (
    read_alter_view,
    read_create_materialized,
    read_create_view,
    read_refresh,
    read_replace_view,
    read_temporary_replacement,
    read_temporary_view,
)
from seachange.sql.text.tokens import Reader


def _read_grant(reader: Reader) -> Grant | GrantRoles:
    return role.read_grant_roles(reader) if role.grants_membership(reader) else read_grant(reader)


def _read_revoke(reader: Reader) -> Grant | GrantRoles:
    return role.read_revoke_roles(reader) if role.grants_membership(reader) else read_revoke(reader)


_TEMPORARY = tuple((*scope, word) for scope in ((), ("local",), ("global",)) for word in ("temp", "temporary"))

_Definition = DdlStatement | CreateTableAs | CreateTemporary | RoleStatement | ShapeStatement
DDL_READERS: tuple[tuple[tuple[str, ...], Callable[[Reader], _Definition]], ...] = (
    (("create", "table"), table.read_create_table),
    # UNLOGGED is ignored: every table is durable.
    (("create", "unlogged", "table"), table.read_create_table),
    *((("create", *words, "table"), table.read_create_temporary) for words in _TEMPORARY),
    *((("create", *words, "view"), read_temporary_view) for words in _TEMPORARY),
    *((("create", "or", "replace", *words, "view"), read_temporary_replacement) for words in _TEMPORARY),
    (("drop", "table"), table.read_drop_table),
    (("alter", "table"), read_alter_table),
    (("truncate",), table.read_truncate),
    (("undrop", "table"), table.read_undrop_table),
    (("revert", "change"), read_revert_change),
    (("create", "index"), read_create_index),
    (("create", "unique", "index"), read_create_unique_index),
    (("alter", "index"), read_alter_index),
    (("drop", "index"), read_drop_index),
    (("create", "sequence"), read_create_sequence),
    (("alter", "sequence"), read_alter_sequence),
    (("drop", "sequence"), partial(read_drop_objects, kind=ObjectKind.SEQUENCE)),
    (("create", "type"), read_create_type),
    (("alter", "type"), read_alter_type),
    (("drop", "type"), partial(read_drop_objects, kind=ObjectKind.TYPE)),
    (("create", "view"), read_create_view),
    (("create", "or", "replace", "view"), read_replace_view),
    (("create", "materialized", "view"), read_create_materialized),
    (("refresh", "materialized", "view"), read_refresh),
    (("alter", "materialized", "view"), partial(read_alter_view, kind=ObjectKind.MATERIALIZED_VIEW)),
    (("drop", "materialized", "view"), partial(read_drop_objects, kind=ObjectKind.MATERIALIZED_VIEW)),
    (("alter", "view"), read_alter_view),
    (("drop", "view"), partial(read_drop_objects, kind=ObjectKind.VIEW)),
    (("create", "schema"), read_create_schema),
    (("alter", "schema"), read_alter_schema),
    (("drop", "schema"), partial(read_drop_objects, kind=ObjectKind.SCHEMA)),
    (("create", "database"), read_create_database),
    (("alter", "database"), read_alter_database),
    (("drop", "database"), partial(read_drop_objects, kind=ObjectKind.DATABASE)),
    (("create", "shape"), read_create_shape),
    (("drop", "shape"), read_drop_shape),
    (("comment",), read_comment),
    (("grant",), _read_grant),
    (("revoke",), _read_revoke),
    *(
        ((verb, word), read)
        for word in ("role", "user", "group")
        for verb, read in (
            ("create", partial(role.read_create_role, login=word == "user")),
            ("alter", role.read_alter_role),
            ("drop", role.read_drop_role),
        )
    ),
    (("alter", "default", "privileges"), role.read_default_privileges),
    (("reassign",), role.read_reassign),
    (("drop", "owned"), role.read_drop_owned),
)

_VERBS = ("create", "alter", "drop")
_MODIFIERS = ("or", "replace", "on", "constraint", "event", "global", "local")
_FUNCTIONS = "User-defined functions are not supported: compute in queries, or use a generated column."
_TRIGGERS = "Triggers are not supported: use constraints, defaults or generated columns."
# PostgreSQL's keywords after CREATE, ALTER and DROP that are not supported, with hints.
_REFUSED: dict[str, str] = {
    **dict.fromkeys(("function", "procedure", "routine", "aggregate", "language", "transform"), _FUNCTIONS),
    **dict.fromkeys(("trigger", "rule"), _TRIGGERS),
    **dict.fromkeys(("operator", "cast", "conversion", "collation", "text"), "Only the built-in ones are supported."),
    **dict.fromkeys(("foreign", "server", "publication", "subscription"), "Load the data with INSERT or COPY."),
    **dict.fromkeys(("temp", "temporary", "unlogged"), "Only temporary tables and views are supported."),
    "extension": "Omit the statement.",
    "domain": "Use the type itself, with a CHECK on each column.",
    "policy": "Use views, and privileges on them.",
    "recursive": "Write WITH RECURSIVE in the query of the view.",
    "tablespace": "All data is stored in the database's folder.",
    "access": "Access methods cannot be chosen.",
    "statistics": "Statistics are maintained automatically.",
    "user": "User mappings are not supported.",
    **dict.fromkeys(("large", "system"), "Omit the statement."),
}


def refuse_ddl(reader: Reader) -> None:
    """Raises an error for DDL that PostgreSQL supports and Seachange does not; returns for anything else."""
    verb = reader.take_any(*_VERBS)
    if verb is None:
        return
    while reader.take_any(*_MODIFIERS):
        pass
    word = reader.plain()
    if word not in _REFUSED:
        raise reader.problem()
    raise errors.FeatureNotSupported(feature=f"{verb.upper()} {word.upper()}", instead=_REFUSED[word])
