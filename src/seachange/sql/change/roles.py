"""Roles: creation, membership, settings, and REASSIGN and DROP OWNED.

**Invariant:** a role is dropped only when it owns no object and has no privileges on one.
**Invariant:** a commit that names a role holds a key-share lock on the role's name (`role_hash`), which DROP ROLE
writes: the owner of an object exists, and so does the grantee of every privilege.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from seachange import errors
from seachange.model import statements
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.access import DEFAULT_ROLE, PRIVILEGES, PartComment
from seachange.model.schema.actor import find_roles, memberships, role_exists
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import (
    DEFAULT_DATABASE,
    DEFAULT_PLACE,
    UNPLANNED,
    Database,
    DefaultPrivileges,
    Descriptor,
    Role,
    Schema,
    Shape,
)
from seachange.model.schema.rights import AdminOf, MemberOf, RoleAttribute
from seachange.model.schema.scram import SALT_BYTES, is_verifier, make_verifier
from seachange.sql.change.command_tags import role_tag
from seachange.sql.change.object_access import check_roles, describe, kind_of
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result
from seachange.sql.settings.stored_settings import (
    change_database_settings,
    changed_role_settings,
    database_place,
    find_database,
)
from seachange.values.coercion import coerce
from seachange.values.types import Kind, SqlType

Run = Callable[[statements.DdlStatement], object]
_FLAGS = ("login", "superuser", "create_database", "create_role", "inherit", "connection_limit")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def run_role(statement: statements.RoleStatement, port: TransactionPort, run: Run, notices: list[str]) -> Result:
    """`run` carries out what the planner plans."""
    match statement:
        case statements.CreateRole():
            _create(statement, port)
        case statements.AlterRole():
            _alter(statement, port)
        case statements.RenameRole():
            _rename(statement, port)
        case statements.DropRoles():
            _drop(statement, port, notices)
        case statements.GrantRoles():
            _change_members(statement, port)
        case statements.ChangeDefaultPrivileges():
            _change_defaults(statement, port)
        case statements.CommentOnRole():
            _comment(statement, port)
        case statements.ChangeSettings():
            _change_settings(statement, port, run)
        case statements.ReassignOwned(owners, new_owner):
            _check_member((*owners, new_owner), port)
            for found in _owned(owners, port):
                run(statements.ChangeOwner(kind_of(found), _name(found), new_owner))
        case statements.DropOwned():
            _drop_owned(statement, port, run)
    return Result(role_tag(statement))


def _role(name: str, port: TransactionPort) -> Role:
    """The bootstrap superuser gets a descriptor when one of its attributes is first set."""
    found = find_roles(port.schema.objects()).get(name)
    if found is None and name == DEFAULT_ROLE:
        found = Role(_new_id(port), 1, name, True, True, True, True)
        port.definitions.publish(None, found)
    if found is None:
        raise errors.UndefinedObject(kind="role", name=name)
    return found


def _new_id(port: TransactionPort) -> DescriptorId:
    return DescriptorId(port.definitions.allocate_ids(1)[0])


def _publish(before: Role, port: TransactionPort, **changes: Any) -> None:
    after = replace(before, version=before.version + 1, **changes)
    if replace(after, version=before.version) != before:
        port.definitions.publish(before, after)


def _check_may_change(port: TransactionPort, superuser: bool = False) -> None:
    needed = "SUPERUSER" if superuser else "CREATEROLE"
    right = RoleAttribute("superuser" if superuser else "create_role")
    port.rights.require(right, f"permission denied: only roles with {needed} may do that")


def _create(statement: statements.CreateRole, port: TransactionPort) -> None:
    options = statement.options
    _check_may_change(port, bool(options.superuser))
    if role_exists(statement.name, find_roles(port.schema.objects())):
        raise errors.DuplicateObject(kind="role", name=statement.name)
    check_roles((*options.member_of, *options.members), port)
    given = _given(options)
    role = Role(_new_id(port), 1, statement.name, **given, password=_verifier(options, None, port))
    port.definitions.publish(None, role)
    _change_members(statements.GrantRoles(options.member_of, (statement.name,)), port)
    _change_members(statements.GrantRoles((statement.name,), options.members), port)


def _given(options: statements.RoleOptions) -> dict[str, Any]:
    found = {flag: getattr(options, flag) for flag in _FLAGS if getattr(options, flag) is not None}
    if options.valid_until is not None:
        found["valid_until_us"] = _moment(options.valid_until)
    return found


def _moment(text: str) -> int | None:
    if text.strip().lower() == "infinity":
        return None
    moment = coerce(SqlType(Kind.TIMESTAMPTZ), text)
    assert isinstance(moment, dt.datetime)
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


def _verifier(options: statements.RoleOptions, before: str | None, port: TransactionPort) -> str | None:
    if options.no_password or options.password == "":
        return None
    if options.password is None:
        return before
    return (
        options.password
        if is_verifier(options.password)
        else make_verifier(options.password, port.definitions.salt(SALT_BYTES))
    )


def _alter(statement: statements.AlterRole, port: TransactionPort) -> None:
    options, role = statement.options, _role(statement.name, port)
    given = _given(options)
    # Every role may change its own password.
    if given or options.members or statement.name != port.rights.actor.user:
        _check_may_change(port, role.superuser or options.superuser is not None)
    if statement.name == DEFAULT_ROLE and given.get("superuser") is False:
        raise errors.FeatureNotSupported(feature=f"role {DEFAULT_ROLE} that is no superuser", instead="Use another.")
    if (options.no_password or options.password is not None) and port.definitions.has_fixed_password(role.name):
        raise errors.FixedPassword(role=role.name)
    _publish(role, port, **given, password=_verifier(options, role.password, port))


def _rename(statement: statements.RenameRole, port: TransactionPort) -> None:
    _check_may_change(port)
    role = _role(statement.name, port)
    if role_exists(statement.new_name, find_roles(port.schema.objects())):
        raise errors.DuplicateObject(kind="role", name=statement.new_name)
    uses = _uses(role.name, port)
    if uses or role.name in (DEFAULT_ROLE, port.rights.actor.user):
        raise errors.FeatureNotSupported(
            feature=f"renaming role {role.name}, on which {uses[0] if uses else 'the session'} depends,",
            instead="Create another role, REASSIGN OWNED to it, and drop this one.",
        )
    _publish(role, port, name=statement.new_name)


def _drop(statement: statements.DropRoles, port: TransactionPort, notices: list[str]) -> None:
    _check_may_change(port)
    for name in statement.names:
        roles = find_roles(port.schema.objects())
        if not role_exists(name, roles):
            if not statement.if_exists:
                raise errors.UndefinedObject(kind="role", name=name)
            notices.append(f'role "{name}" does not exist, skipping')
            continue
        if name in (DEFAULT_ROLE, port.rights.actor.user):
            raise errors.ObjectInUse(detail=f"role {name} cannot be dropped")
        _check_may_change(port, roles[name].superuser)
        uses = _uses(name, port)
        if uses:
            raise errors.RoleNeeded(name=name, dependents="\n".join(uses))
        for other in roles.values():
            if name in other.member_of:
                _publish(other, port, **_without(other, name))
        port.definitions.publish(roles[name], None)


def _without(role: Role, other: str) -> dict[str, tuple[str, ...]]:
    return {
        "member_of": tuple(name for name in role.member_of if name != other),
        "admin_of": tuple(name for name in role.admin_of if name != other),
    }


def _uses(name: str, port: TransactionPort) -> list[str]:
    """The objects that the role owns or has privileges on."""
    found = []
    every = (*port.schema.every_table(), *port.schema.every_object())
    places = {0, DEFAULT_PLACE, *(each.id for each in every if isinstance(each, Database))}
    for each in every:
        if isinstance(each, Role):
            given = any(d.role == name and d.database in places for d in each.defaults)
            if each.name != name and given:
                found.append(f"default privileges of role {each.name}")
        elif each.access.owner == name:
            found.append(f"owner of {describe(each)}")
        elif any(held.role == name for held in each.access.privileges):
            found.append(f"privileges for {describe(each)}")
    return found


def _change_members(statement: statements.GrantRoles, port: TransactionPort) -> None:
    check_roles((*statement.roles, *statement.members), port)
    for granted in statement.roles:
        port.rights.require(AdminOf(granted), f'permission denied to grant role "{granted}"')
        for member in statement.members:
            _change_member(granted, member, statement, port)


def _change_member(granted: str, member: str, statement: statements.GrantRoles, port: TransactionPort) -> None:
    role = _role(member, port)
    if statement.revoke:
        changes = _without(role, granted)
        _publish(role, port, **({"admin_of": changes["admin_of"]} if statement.admin else changes))
        return
    if member in memberships(granted, find_roles(port.schema.objects())):
        raise errors.InvalidGrantOption(detail=f'role "{granted}" is a member of role "{member}"')
    admin = (*role.admin_of, *([granted] if statement.admin else []))
    joined = tuple(dict.fromkeys((*role.member_of, granted)))
    _publish(role, port, member_of=joined, admin_of=tuple(dict.fromkeys(admin)))


def _change_defaults(statement: statements.ChangeDefaultPrivileges, port: TransactionPort) -> None:
    check_roles((*statement.creators, *statement.roles), port)
    names = PRIVILEGES[statement.kind] if statement.privileges == ("ALL",) else statement.privileges
    creators = statement.creators or (port.rights.actor.user,)
    _check_member(creators, port)
    database = database_place(port.statement.session.database, port.schema.objects())
    for creator in creators:
        role = _role(creator, port)
        # Those of old releases, which are for all databases, can be revoked in each.
        held = {(d.kind, d.schema, d.role, d.database): set(d.privileges) for d in role.defaults}
        for schema in statement.schemas or ("",):
            for grantee in statement.roles:
                place = (statement.kind, schema, grantee)
                if not statement.revoke:
                    held.setdefault((*place, database), set()).update(names)
                    continue
                for at in (0, database):
                    held.get((*place, at), set()).difference_update(names)
        defaults = tuple(
            DefaultPrivileges(kind, schema, grantee, tuple(p for p in PRIVILEGES[kind] if p in kept), at)
            for (kind, schema, grantee, at), kept in held.items()
            if kept
        )
        _publish(role, port, defaults=defaults)


def _comment(statement: statements.CommentOnRole, port: TransactionPort) -> None:
    role = _role(statement.name, port)
    if role.name != port.rights.actor.user:
        _check_may_change(port, role.superuser)
    comments = (PartComment(statement.text),) if statement.text else ()
    _publish(role, port, access=replace(role.access, comments=comments))


def _change_settings(statement: statements.ChangeSettings, port: TransactionPort, run: Run) -> None:
    database = _database(statement.database, port, run) if statement.database is not None else None
    if statement.role is None:
        assert database is not None
        change_database_settings(statement, database, port)
        return
    role = _role(statement.role, port)
    if role.name != port.rights.actor.user:
        _check_may_change(port, role.superuser)
    _publish(role, port, settings=changed_role_settings(statement, role, database, port))


def _database(name: str, port: TransactionPort, run: Run) -> Database:
    """The default database gets a descriptor when one of its attributes is first set."""
    found = find_database(name, port.schema.objects())
    if found is None and name == DEFAULT_DATABASE:
        run(statements.ChangeOwner(ObjectKind.DATABASE, RelationName(None, name), DEFAULT_ROLE))
        found = find_database(name, port.schema.objects())
    if found is None:
        raise errors.InvalidDatabaseName(name=name)
    return found


# Owned objects.


def _check_member(names: Iterable[str], port: TransactionPort) -> None:
    check_roles(names, port)
    for name in names:
        port.rights.require(MemberOf(name), f'permission denied: not a member of role "{name}"')


def _owned(owners: Iterable[str], port: TransactionPort) -> list[Descriptor]:
    every = (*port.names.tables(), *port.schema.objects())
    return [found for found in every if not isinstance(found, UNPLANNED) and found.access.owner in owners]


def _name(found: Descriptor) -> RelationName:
    schema = None if isinstance(found, Schema | Database | Role | Shape) else found.schema
    return RelationName(schema, found.name)


def _drop_owned(statement: statements.DropOwned, port: TransactionPort, run: Run) -> None:
    _check_member(statement.owners, port)
    if DEFAULT_ROLE in statement.owners:
        raise errors.FeatureNotSupported(
            feature=f"DROP OWNED BY {DEFAULT_ROLE}", instead="Drop the objects one by one."
        )
    for found in _owned(statement.owners, port):
        # It may have been dropped together with another object.
        is_table = isinstance(found, Table) and found.materialized is None
        if is_table and port.schema.table_by_id(found.id) is not None:
            run(statements.DropTable((_name(found),), cascade=statement.cascade))
        elif isinstance(found, Table) and not is_table and port.schema.table_by_id(found.id) is not None:
            run(statements.DropObjects(ObjectKind.MATERIALIZED_VIEW, (_name(found),), cascade=statement.cascade))
        elif not isinstance(found, Table | Database) and port.schema.object_by_id(found.id) is not None:
            run(statements.DropObjects(kind_of(found), (_name(found),), cascade=statement.cascade))
    for found in (*port.names.tables(), *port.schema.objects()):
        privileges = () if isinstance(found, UNPLANNED) else found.access.privileges
        held = [p for p in privileges if p.role in statement.owners]
        kind = kind_of(found) if held else ObjectKind.TABLE
        granted = ObjectKind.TABLE if kind in VIEWS else kind
        for each in held:
            run(statements.Grant(each.privileges, granted, (_name(found),), (each.role,), revoke=True))
    here = {0, database_place(port.statement.session.database, port.schema.objects())}
    for role in find_roles(port.schema.objects()).values():
        kept = tuple(
            d for d in role.defaults if d.database not in here or not {d.role, role.name} & {*statement.owners}
        )
        _publish(role, port, defaults=kept)
