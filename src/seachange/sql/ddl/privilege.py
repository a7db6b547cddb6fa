"""GRANT and REVOKE of privileges on objects."""

from __future__ import annotations

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.access import PRIVILEGES
from seachange.model.statements import Grant
from seachange.sql.ddl.object import read_object_name, read_role, take_cascade
from seachange.sql.text.names import read_list
from seachange.sql.text.tokens import Reader

ALL = ("ALL",)
_KNOWN = frozenset(privilege for known in PRIVILEGES.values() for privilege in known)
_SPELLINGS: dict[str, str] = {"TEMP": "TEMPORARY"}
# PostgreSQL's privileges on objects that do not exist here.
_OTHER_PRIVILEGES = frozenset({"EXECUTE", "SET", "ALTER", "MAINTAIN"})
_OTHER_KINDS = frozenset(
    ["domain", "foreign", "function", "language", "large", "parameter", "procedure", "routine", "tablespace"]
)
_AFTER_NAME = (",", ".", "to", "from")
_AFTER_GRANTEE = (",", "with", "granted", "cascade", "restrict")
_PLURALS: dict[str, ObjectKind] = {"tables": ObjectKind.TABLE, "sequences": ObjectKind.SEQUENCE}


def read_grant(reader: Reader) -> Grant:
    privileges, kind, names, all_in_schema = _read_objects(reader)
    reader.expect("to")
    roles = read_list(reader, _read_grantee)
    grant_option = reader.take("with", "grant", "option")
    _refuse_grantor(reader)
    return Grant(privileges, kind, names, roles, grant_option, all_in_schema=all_in_schema)


def read_revoke(reader: Reader) -> Grant:
    grant_option = reader.take("grant", "option", "for")
    privileges, kind, names, all_in_schema = _read_objects(reader)
    reader.expect("from")
    roles = read_list(reader, _read_grantee)
    _refuse_grantor(reader)
    cascade = take_cascade(reader)
    return Grant(
        privileges, kind, names, roles, grant_option, revoke=True, cascade=cascade, all_in_schema=all_in_schema
    )


def _read_objects(reader: Reader) -> tuple[tuple[str, ...], ObjectKind, tuple[RelationName, ...], bool]:
    privileges = read_privileges(reader)
    if not reader.take("on"):
        raise reader.problem()
    _check_words(privileges)
    kind, names, all_in_schema = _read_names(reader)
    check_privileges(privileges, kind)
    return tuple(dict.fromkeys(privileges)), kind, names, all_in_schema


def read_privileges(reader: Reader) -> tuple[str, ...]:
    if reader.take("all"):
        reader.take("privileges")
        return ALL
    return read_list(reader, _read_privilege)


def check_privileges(privileges: tuple[str, ...], kind: ObjectKind) -> None:
    _check_words(privileges)
    for privilege in privileges:
        if privileges != ALL and privilege not in PRIVILEGES[kind]:
            raise errors.InvalidGrant(privilege=privilege, kind=kind)


def _read_privilege(reader: Reader) -> str:
    word = reader.name().upper()
    if reader.at_symbol("("):
        raise errors.FeatureNotSupported(
            feature="a privilege on columns", instead="Grant it on the table, or on a view with these columns."
        )
    return _SPELLINGS.get(word, word)


def _check_words(privileges: tuple[str, ...]) -> None:
    for privilege in privileges:
        if privilege in _OTHER_PRIVILEGES:
            raise errors.FeatureNotSupported(feature=f"privilege {privilege}", instead="Leave it out.")
        if privileges != ALL and privilege not in _KNOWN:
            raise errors.SyntaxProblem(detail=f'unrecognized privilege type "{privilege.lower()}"')


def _read_names(reader: Reader) -> tuple[ObjectKind, tuple[RelationName, ...], bool]:
    if reader.take("all"):
        return (*_read_all(reader), True)
    other = reader.plain()
    # The keyword of a kind may be a table's name, unless a name follows it.
    is_kind = reader.peek(1) is not None and reader.plain(1) not in _AFTER_NAME
    if is_kind and other in _OTHER_KINDS:
        raise errors.FeatureNotSupported(
            feature=f"a privilege on a {other}", instead="Such objects do not exist here; omit the statement."
        )
    word = reader.take_any(*PRIVILEGES) if is_kind else None
    kind = ObjectKind(word) if word is not None else ObjectKind.TABLE
    names = [read_object_name(reader, kind)]
    while reader.take_symbol(","):
        names.append(read_object_name(reader, kind))
    return kind, tuple(names), False


def _read_all(reader: Reader) -> tuple[ObjectKind, tuple[RelationName, ...]]:
    plural = reader.take_any(*_PLURALS)
    if plural is None:
        if reader.take_any("functions", "procedures", "routines"):
            raise errors.FeatureNotSupported(
                feature="a privilege on functions", instead="There are no user-defined functions; omit the statement."
            )
        raise reader.problem()
    reader.expect("in", "schema")
    return _PLURALS[plural], read_list(reader, _read_schema)


def _read_schema(reader: Reader) -> RelationName:
    return read_object_name(reader, ObjectKind.SCHEMA)


def _read_grantee(reader: Reader) -> str:
    if reader.peek(1) is not None and reader.plain(1) not in _AFTER_GRANTEE:
        reader.take("group")
    return read_role(reader)


def _refuse_grantor(reader: Reader) -> None:
    if reader.at("granted", "by"):
        raise errors.FeatureNotSupported(feature="GRANTED BY", instead="Leave it out.")
