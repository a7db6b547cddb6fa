"""The relations of pg_catalog about shared objects: databases, roles, and their comments and settings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from typing import Final

from seachange import errors
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import DEFAULT_ROLE, EVERYBODYS, PRIVILEGES, PUBLIC_ROLE, Access
from seachange.model.schema.objects import Database, DefaultPrivileges, Role
from seachange.sql.pgcatalog.facts import Facts, Rows, object_oid, part_oid
from seachange.sql.settings.stored_settings import database_place

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_HIDDEN_PASSWORD = "********"
_LETTERS: Final[dict[str, str]] = {
    "INSERT": "a", "SELECT": "r", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t",
    "USAGE": "U", "CREATE": "C", "TEMPORARY": "T", "CONNECT": "c",
}  # fmt: skip


def pg_database(facts: Facts) -> Rows:
    for oid, name, access in facts.databases:
        yield {
            "oid": oid,
            "datname": name,
            "datdba": facts.owner_oid(access),
            "encoding": 6,
            "datlocprovider": "c",
            "datallowconn": True,
            "datconnlimit": -1,
            "dattablespace": 1663,
            "datcollate": "C",
            "datctype": "C",
            "datacl": acl(access, ObjectKind.DATABASE),
        }


def pg_roles(facts: Facts) -> Rows:
    kept = facts.role_objects
    for name, oid in facts.roles.items():
        role = kept.get(name)
        is_first = name == DEFAULT_ROLE
        is_super = is_first or (role is not None and role.superuser)
        yield {
            "oid": oid,
            "rolname": name,
            "rolsuper": is_super,
            "rolinherit": role is None or role.inherit,
            "rolcreaterole": is_first or (role is not None and role.create_role),
            "rolcreatedb": is_first or (role is not None and role.create_database),
            "rolcanlogin": is_first or (role is not None and role.login),
            "rolreplication": is_first,
            "rolbypassrls": is_super,
            "rolconnlimit": role.connection_limit if role is not None else -1,
            "rolvaliduntil": _moment(role.valid_until_us) if role is not None else None,
            "rolpassword": _HIDDEN_PASSWORD,
            "rolconfig": _settings_of(role, 0) if role is not None else None,
        }


pg_authid = pg_roles


def _moment(timestamp_us: int | None) -> dt.datetime | None:
    return None if timestamp_us is None else _EPOCH + dt.timedelta(microseconds=timestamp_us)


def _settings_of(role: Role, place: int) -> list[str] | None:
    return _configured((each.name, each.value) for each in role.settings if each.database == place) or None


def _configured(settings: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name}={value}" for name, value in settings]


def pg_user(facts: Facts) -> Rows:
    for row in pg_roles(facts):
        if row["rolcanlogin"]:
            yield {
                "usename": row["rolname"],
                "usesysid": row["oid"],
                "usecreatedb": row["rolcreatedb"],
                "usesuper": row["rolsuper"],
                "userepl": row["rolreplication"],
                "usebypassrls": row["rolbypassrls"],
                "passwd": _HIDDEN_PASSWORD,
                "valuntil": row["rolvaliduntil"],
                "useconfig": row["rolconfig"],
            }


pg_shadow = pg_user


def pg_group(facts: Facts) -> Rows:
    for row in pg_roles(facts):
        if not row["rolcanlogin"]:
            members = [facts.roles[m.name] for m in facts.role_objects.values() if row["rolname"] in m.member_of]
            yield {"groname": row["rolname"], "grosysid": row["oid"], "grolist": members}


def pg_auth_members(facts: Facts) -> Rows:
    for member in facts.role_objects.values():
        for granted in member.member_of:
            yield {
                "oid": object_oid(member.id),
                "roleid": facts.roles[granted],
                "member": facts.roles[member.name],
                "grantor": facts.roles[DEFAULT_ROLE],
                "admin_option": granted in member.admin_of,
                "inherit_option": member.inherit,
                "set_option": True,
            }


def pg_db_role_setting(facts: Facts) -> Rows:
    for found in facts.objects:
        if isinstance(found, Database) and found.settings:
            yield {"setdatabase": object_oid(found.id), "setrole": 0, "setconfig": _configured(found.settings)}
        if isinstance(found, Role):
            for place in dict.fromkeys(each.database for each in found.settings):
                database = object_oid(DescriptorId(place)) if place else 0
                setting = {"setdatabase": database, "setrole": facts.roles[found.name]}
                yield {**setting, "setconfig": _settings_of(found, place)}


# The letters of kinds of objects in pg_default_acl.
_KINDS: Final = {ObjectKind.TABLE: "r", ObjectKind.SEQUENCE: "S", ObjectKind.TYPE: "T", ObjectKind.SCHEMA: "n"}


def pg_default_acl(facts: Facts) -> Rows:
    """The default privileges of objects in all schemas are listed with those that PostgreSQL has itself."""
    here = {0, database_place(facts.database, facts.objects)}
    for role in facts.role_objects.values():
        granted: dict[tuple[ObjectKind, str], list[DefaultPrivileges]] = {}
        for default in role.defaults:
            if default.database not in here:
                continue
            if default.kind in _KINDS and (not default.schema or default.schema in facts.namespace_oids):
                granted.setdefault((default.kind, default.schema), []).append(default)
        for number, ((kind, schema), defaults) in enumerate(granted.items()):
            own = [] if schema else default_acl({"S": "s"}.get(_KINDS[kind], _KINDS[kind]), role.name)
            grantees = [("" if each.role == PUBLIC_ROLE else each.role, each.privileges) for each in defaults]
            yield {
                "oid": part_oid(role.id, number),
                "defaclrole": facts.roles[role.name],
                "defaclnamespace": facts.namespace_oids[schema] if schema else 0,
                "defaclobjtype": _KINDS[kind],
                "defaclacl": own + [_item(grantee, privileges, (), role.name) for grantee, privileges in grantees],
            }


def acl(access: Access, kind: ObjectKind) -> list[str] | None:
    """Privileges in PostgreSQL's aclitem format: role=letters/grantor, with a star after one with grant option. None if
    nothing was granted or revoked: the kind's defaults apply. The owner has everything."""
    granted = {held.role: held for held in access.privileges if held.role != access.owner}
    public = granted.get(PUBLIC_ROLE)
    if (public.privileges if public is not None else ()) == EVERYBODYS.get(kind, ()) and set(granted) <= {PUBLIC_ROLE}:
        return None
    items = [_item(access.owner, PRIVILEGES[kind], (), access.owner)]
    for role, held in granted.items():
        item = _item("" if role == PUBLIC_ROLE else role, held.privileges, held.grantable, access.owner)
        # PUBLIC comes first where it has privileges by default.
        items.insert(0 if role == PUBLIC_ROLE and kind in EVERYBODYS else len(items), item)
    return items


# By the letters that PostgreSQL's acldefault has for kinds of objects: those of the owner, and those of PUBLIC.
_DEFAULTS: Final = {
    "r": ("arwdDxt", ""),
    "c": ("", ""),
    "s": ("rwU", ""),
    "d": ("CTc", "Tc"),
    "n": ("UC", ""),
    "T": ("U", "U"),
    "f": ("X", "X"),
    "l": ("U", "U"),
    "L": ("rw", ""),
    "t": ("C", ""),
    "F": ("U", ""),
    "S": ("U", ""),
    "p": ("sA", ""),
}


def default_acl(kind: str, owner: str) -> list[str]:
    """
    >>> default_acl("d", "ann")
    ['=Tc/ann', 'ann=CTc/ann']
    """
    if kind not in _DEFAULTS:
        raise errors.InvalidParameterValue(detail=f"unrecognized object type abbreviation: {kind}")
    own, everybodys = _DEFAULTS[kind]
    return [f"{role}={letters}/{owner}" for role, letters in (("", everybodys), (owner, own)) if letters]


def _item(role: str, privileges: Collection[str], grantable: Collection[str], grantor: str) -> str:
    letters = [
        letter + ("*" if privilege in grantable else "")
        for privilege, letter in _LETTERS.items()
        if privilege in privileges
    ]
    return f"{role}={''.join(letters)}/{grantor}"
