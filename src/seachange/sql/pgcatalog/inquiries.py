"""Privilege inquiry functions: has_table_privilege and similar ones.

The role is that of the statement unless it is named. Of several privileges, separated by commas, any is enough; WITH
GRANT OPTION asks for the grant option.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from seachange import errors
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import PRIVILEGES, PUBLIC_ROLE, Access
from seachange.model.schema.actor import Actor, actor_of, memberships
from seachange.model.schema.objects import Sequence as SequenceObject
from seachange.sql.pgcatalog import regs
from seachange.sql.pgcatalog.builtin import CATALOG_OID, INFORMATION_OID

_GRANT_OPTION: Final = " WITH GRANT OPTION"
_SPELLINGS: Final = {"TEMP": "TEMPORARY"}
# Privileges of columns, which are those of their table.
_OF_COLUMNS: Final = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
_OF_ROLES: Final = ("MEMBER", "USAGE", "SET")
# Relations of the catalogs have no descriptors: every role may read them.
_READABLE: Final = frozenset({"SELECT", "USAGE"})


def _table(context: regs.Context, *arguments: str | None) -> bool | None:
    who, (name, wanted) = _split(context, arguments, 2)
    access = _relation(context, name)
    return _holds(who, access, _privileges(wanted, PRIVILEGES[ObjectKind.TABLE]))


def _sequence(context: regs.Context, *arguments: str | None) -> bool | None:
    who, (name, wanted) = _split(context, arguments, 2)
    found = context.facts.relation_by_oid.get(regs.REGCLASS.read(context, name))
    if found is not None and not isinstance(found, SequenceObject):
        raise errors.WrongObjectType(name=name, kind="sequence")
    access = found.access if found is not None else None
    return _holds(who, access, _privileges(wanted, PRIVILEGES[ObjectKind.SEQUENCE]))


def _column(context: regs.Context, *arguments: str | None) -> bool | None:
    who, (name, column, wanted) = _split(context, arguments, 3)
    relation = context.facts.relation_by_oid.get(regs.REGCLASS.read(context, name))
    if relation is not None and not column.lstrip("-").isdigit():
        attributes = {attribute.name for attribute in context.facts.attributes(relation)}
        if regs.name_parts(column)[0] not in attributes and column not in attributes:
            raise errors.UndefinedColumn(name=column, relation=relation.name)
    return _holds(who, relation.access if relation is not None else None, _privileges(wanted, _OF_COLUMNS))


def _any_column(context: regs.Context, *arguments: str | None) -> bool | None:
    who, (name, wanted) = _split(context, arguments, 2)
    return _holds(who, _relation(context, name), _privileges(wanted, _OF_COLUMNS))


def _schema(context: regs.Context, *arguments: str | None) -> bool | None:
    who, (name, wanted) = _split(context, arguments, 2)
    oid = regs.find_namespace(context, name)
    found = next((n for n in context.facts.namespaces if n.oid == oid), None)
    if found is None:
        if name.isdigit():
            return None
        raise errors.InvalidSchemaName(name=name)
    asked = _privileges(wanted, PRIVILEGES[ObjectKind.SCHEMA])
    if found.oid in (CATALOG_OID, INFORMATION_OID):
        return _holds(who, None, asked)
    return _holds(who, found.access, asked)


def _database(context: regs.Context, *arguments: str | None) -> bool | None:
    who, (name, wanted) = _split(context, arguments, 2)
    for oid, known, access in context.facts.databases:
        if name in (str(oid), known):
            return _holds(who, access, _privileges(wanted, PRIVILEGES[ObjectKind.DATABASE]))
    if name.isdigit():
        return None
    raise errors.InvalidDatabaseName(name=name)


def _type(context: regs.Context, *arguments: str | None) -> bool | None:
    """Every role may use every type."""
    _, (name, wanted) = _split(context, arguments, 2)
    _privileges(wanted, PRIVILEGES[ObjectKind.TYPE])
    if regs.find_type(context, name) is None:
        raise errors.UndefinedObject(kind="type", name=name)
    return True


def _function(context: regs.Context, *arguments: str | None) -> bool | None:
    """There are no user-defined functions, and every role may call the built-in ones."""
    _, (_, wanted) = _split(context, arguments, 2)
    _privileges(wanted, ("EXECUTE",))
    return True


def _role(context: regs.Context, *arguments: str | None) -> bool | None:
    who, (name, wanted) = _split(context, arguments, 2)
    role = _role_name(context, name)
    roles = context.facts.role_objects
    for privilege, admin in _privileges(wanted, _OF_ROLES, " WITH ADMIN OPTION"):
        own = roles.get(who.user)
        if who.superuser:
            return True
        if admin and own is not None and role in own.admin_of:
            return True
        # Membership is enough to become the role (MEMBER); USAGE also requires that its privileges are inherited.
        held = who.roles if privilege == "USAGE" else memberships(who.user, roles)
        if not admin and role in held:
            return True
    return False


# The number of arguments, including the role.
INQUIRIES: Final[dict[str, tuple[Callable[..., bool | None], int]]] = {
    "has_table_privilege": (_table, 3),
    "has_any_column_privilege": (_any_column, 3),
    "has_column_privilege": (_column, 4),
    "has_schema_privilege": (_schema, 3),
    "has_database_privilege": (_database, 3),
    "has_sequence_privilege": (_sequence, 3),
    "has_type_privilege": (_type, 3),
    "has_function_privilege": (_function, 3),
    "pg_has_role": (_role, 3),
}


def _split(context: regs.Context, arguments: tuple[str | None, ...], count: int) -> tuple[Actor, list[str]]:
    """The role that is asked about, and the other arguments."""
    given = [argument for argument in arguments if argument is not None]
    if len(given) == count:
        return context.port.rights.actor, given
    return actor_of(_role_name(context, given[0]), context.facts.role_objects), given[1:]


def _role_name(context: regs.Context, text: str) -> str:
    if text == PUBLIC_ROLE:
        return text
    if text in context.facts.roles:
        return text
    oid = regs.find_role(context, text)
    name = context.facts.role_names.get(oid) if oid is not None else None
    if name is None:
        raise errors.UndefinedObject(kind="role", name=text)
    return name


def _relation(context: regs.Context, name: str) -> Access | None:
    """None for a relation of the catalogs."""
    oid = regs.REGCLASS.read(context, name)
    found = context.facts.relation_by_oid.get(oid)
    if found is None and oid in context.facts.index_by_oid:
        raise errors.WrongObjectType(name=name, kind="table")
    return found.access if found is not None else None


def _privileges(text: str, known: Collection[str], option: str = _GRANT_OPTION) -> list[tuple[str, bool]]:
    """Each privilege with whether the grant option is asked for."""
    return list(_read_privileges(text, known, option))


def _read_privileges(text: str, known: Collection[str], option: str) -> Iterator[tuple[str, bool]]:
    for part in text.split(","):
        name = " ".join(part.upper().split())
        plain = name.removesuffix(option)
        plain = _SPELLINGS.get(plain, plain)
        if plain not in known:
            raise errors.InvalidParameterValue(detail=f'unrecognized privilege type: "{part.strip()}"')
        yield plain, name.endswith(option)


def _holds(who: Actor, access: Access | None, asked: list[tuple[str, bool]]) -> bool:
    if access is None:
        return who.superuser or any(name in _READABLE and not passed_on for name, passed_on in asked)
    return any(who.may_grant(access, name) if passed_on else who.holds(access, name) for name, passed_on in asked)
