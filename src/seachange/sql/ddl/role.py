"""CREATE, ALTER and DROP ROLE, membership, default privileges, REASSIGN and DROP OWNED."""

from __future__ import annotations

from typing import Any

from seachange import errors
from seachange.model import statements
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import PUBLIC_ROLE
from seachange.sql.ddl.object import read_role, take_cascade
from seachange.sql.ddl.privilege import check_privileges, read_privileges
from seachange.sql.text.names import read_list
from seachange.sql.text.setting_words import read_settings
from seachange.sql.text.tokens import Reader

# Keywords of role attributes.
_FLAGS: dict[str, tuple[str, bool]] = {
    word: (name, wanted)
    for name, yes in (
        ("login", "login"),
        ("superuser", "superuser"),
        ("create_database", "createdb"),
        ("create_role", "createrole"),
        ("inherit", "inherit"),
    )
    for word, wanted in ((yes, True), (f"no{yes}", False))
}
# Attributes that have no effect here.
_IGNORED = frozenset({"replication", "noreplication", "bypassrls", "nobypassrls", "encrypted"})
_DEFAULT_KINDS: dict[str, ObjectKind] = {
    "tables": ObjectKind.TABLE,
    "sequences": ObjectKind.SEQUENCE,
    "types": ObjectKind.TYPE,
    "schemas": ObjectKind.SCHEMA,
}


def read_create_role(reader: Reader, login: bool = False) -> statements.CreateRole:
    name = _read_new_name(reader)
    reader.take("with")
    return statements.CreateRole(name, _read_options(reader, {"login": True} if login else {}))


def _read_new_name(reader: Reader) -> str:
    name = read_role(reader)
    if name in (PUBLIC_ROLE, "none") or name.startswith("pg_"):
        raise errors.ReservedName(name=name, detail="it is reserved")
    return name


def read_alter_role(reader: Reader) -> statements.AlterRole | statements.RenameRole | statements.ChangeSettings:
    if reader.at("all"):
        raise errors.FeatureNotSupported(feature="settings of all roles", instead="Set them in seachange.toml.")
    name = read_role(reader)
    if reader.take("rename", "to"):
        return statements.RenameRole(name, _read_new_name(reader))
    database = reader.name() if reader.take("in", "database") else None
    if database is not None or reader.at("set") or reader.at("reset"):
        return read_settings(reader, name, database)
    reader.take("with")
    return statements.AlterRole(name, _read_options(reader, {}))


def _read_options(reader: Reader, found: dict[str, Any]) -> statements.RoleOptions:
    while not reader.at_end:
        word = reader.plain()
        if word in _FLAGS:
            reader.next()
            name, wanted = _FLAGS[word]
            found[name] = wanted
        elif word in _IGNORED:
            reader.next()
        elif reader.take("password"):
            if reader.take("null"):
                found["no_password"] = True
            else:
                found["password"] = reader.string()
        elif reader.take("in", "role") or reader.take("in", "group"):
            found["member_of"] = read_list(reader, read_role)
        elif reader.take("role") or reader.take("user"):
            found["members"] = read_list(reader, read_role)
        elif reader.take("connection", "limit"):
            sign = -1 if reader.take_symbol("-") else 1
            found["connection_limit"] = max(-1, sign * reader.integer())
        elif reader.take("valid", "until"):
            found["valid_until"] = reader.string()
        elif reader.at("admin"):
            raise errors.FeatureNotSupported(feature=f"{word.upper()} of a role", instead="Leave it out.")
        else:
            raise reader.problem()
    return statements.RoleOptions(**found)


def read_drop_role(reader: Reader) -> statements.DropRoles:
    if_exists = reader.take("if", "exists")
    return statements.DropRoles(read_list(reader, read_role), if_exists)


def grants_membership(reader: Reader) -> bool:
    """Whether role names follow, rather than privileges on objects."""
    ahead = 0
    while (word := reader.peek(ahead)) is not None:
        if word.text in ("on", "to", "from"):
            return word.text != "on"
        ahead += 1
    return False


def read_grant_roles(reader: Reader) -> statements.GrantRoles:
    roles = read_list(reader, read_role)
    reader.expect("to")
    members = read_list(reader, read_role)
    admin = reader.take("with", "admin", "option")
    return statements.GrantRoles(roles, members, admin)


def read_revoke_roles(reader: Reader) -> statements.GrantRoles:
    admin = reader.take("admin", "option", "for")
    roles = read_list(reader, read_role)
    reader.expect("from")
    members = read_list(reader, read_role)
    take_cascade(reader)
    return statements.GrantRoles(roles, members, admin, revoke=True)


def read_default_privileges(reader: Reader) -> statements.ChangeDefaultPrivileges:
    creators: tuple[str, ...] = ()
    if reader.take("for", "role") or reader.take("for", "user"):
        creators = read_list(reader, read_role)
    schemas: tuple[str, ...] = ()
    if reader.take("in", "schema"):
        schemas = read_list(reader, Reader.name)
    verb = reader.take_any("grant", "revoke")
    if verb is None:
        raise reader.problem()
    privileges = read_privileges(reader)
    reader.expect("on")
    plural = reader.take_any(*_DEFAULT_KINDS)
    if plural is None:
        raise errors.FeatureNotSupported(
            feature=f"default privileges on {reader.plain()}",
            instead="Such objects do not exist here; omit the statement.",
        )
    kind = _DEFAULT_KINDS[plural]
    check_privileges(privileges, kind)
    reader.expect("to" if verb == "grant" else "from")
    roles = read_list(reader, read_role)
    take_cascade(reader)
    return statements.ChangeDefaultPrivileges(creators, schemas, privileges, kind, roles, verb == "revoke")


def read_reassign(reader: Reader) -> statements.ReassignOwned:
    reader.expect("owned", "by")
    owners = read_list(reader, read_role)
    reader.expect("to")
    return statements.ReassignOwned(owners, read_role(reader))


def read_drop_owned(reader: Reader) -> statements.DropOwned:
    reader.expect("by")
    return statements.DropOwned(read_list(reader, read_role), take_cascade(reader))
