"""CREATE and ALTER of schemas and databases."""

from __future__ import annotations

from seachange import errors
from seachange.model import statements
from seachange.model.object_kind import ObjectKind
from seachange.sql.ddl.object import SESSION_ROLES, read_object_name, read_role, take_change
from seachange.sql.text.setting_words import read_settings
from seachange.sql.text.tokens import Reader

# The accepted values of these options are what every database has.
_ENCODINGS = frozenset({"utf8", "utf-8", "unicode", "default"})
_TEMPLATES = frozenset({"template0", "template1", "default"})
_SCHEMA_ELEMENTS = ("create", "grant")


def read_create_schema(reader: Reader) -> statements.CreateSchema:
    if_not_exists = reader.take("if", "not", "exists")
    name = None if reader.at("authorization") else reader.name()
    owner = None
    # The role that creates it owns it.
    if reader.take("authorization") and not (name is not None and reader.take_any(*SESSION_ROLES)):
        owner = read_role(reader)
    if any(reader.at(word) for word in _SCHEMA_ELEMENTS):
        raise errors.FeatureNotSupported(
            feature="CREATE SCHEMA with statements in it", instead="Send them separately, after CREATE SCHEMA."
        )
    named = name if name is not None else owner
    assert named is not None
    return statements.CreateSchema(named, if_not_exists, owner)


def read_create_database(reader: Reader) -> statements.CreateDatabase:
    name = reader.name()
    reader.take("with")
    owner: str | None = None
    while not reader.at_end:
        option = reader.take_any("owner", "encoding", "template")
        if option is None:
            raise _refuse_option(reader)
        reader.take_symbol("=")
        if option == "owner":
            owner = read_role(reader)
            continue
        value = reader.next().text
        if value.lower() not in (_ENCODINGS if option == "encoding" else _TEMPLATES):
            raise errors.FeatureNotSupported(
                feature=f"{option.upper()} {value} of a database", instead="Omit it: the encoding is always UTF-8."
            )
    return statements.CreateDatabase(name, owner)


def _refuse_option(reader: Reader) -> errors.Error:
    option = reader.plain()
    if option in _DATABASE_OPTIONS:
        return errors.FeatureNotSupported(feature=f"{option.upper()} of a database", instead="Leave it out.")
    return reader.problem()


_DATABASE_OPTIONS_WORDS = """
    strategy locale lc_collate lc_ctype icu_locale icu_rules builtin_locale locale_provider collation_version
    tablespace allow_connections connection is_template oid
"""
_DATABASE_OPTIONS = frozenset(_DATABASE_OPTIONS_WORDS.split())


def read_alter_schema(reader: Reader) -> statements.RenameObject | statements.MoveObject | statements.ChangeOwner:
    return _read_change(reader, ObjectKind.SCHEMA)


def read_alter_database(
    reader: Reader,
) -> statements.RenameObject | statements.MoveObject | statements.ChangeOwner | statements.ChangeSettings:
    name = reader.peek(1)
    if name is not None and name.text in ("set", "reset"):
        return read_settings(reader, None, reader.name())
    return _read_change(reader, ObjectKind.DATABASE)


def _read_change(
    reader: Reader, kind: ObjectKind
) -> statements.RenameObject | statements.MoveObject | statements.ChangeOwner:
    change = take_change(reader, kind, read_object_name(reader, kind))
    if change is not None:
        return change
    if any(reader.at(word) for word in ("set", "reset", "with", "refresh", *_DATABASE_OPTIONS)):
        raise errors.FeatureNotSupported(feature=f"this form of ALTER {kind.upper()}", instead="RENAME TO works.")
    raise reader.problem()
