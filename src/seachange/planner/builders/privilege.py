"""GRANT and REVOKE.

Who granted what is not recorded: every privilege counts as granted by the object's owner. So nothing hangs on a grant
option that is taken away, and CASCADE and RESTRICT mean the same.
"""

from __future__ import annotations

from seachange import errors
from seachange.model.change import elements
from seachange.model.ids import DescriptorId
from seachange.model.object_kind import VIEWS, ObjectKind
from seachange.model.relation import RelationName
from seachange.model.schema.access import PRIVILEGES, PUBLIC_ROLE
from seachange.model.statements import Grant
from seachange.planner.builders.draft import Draft
from seachange.planner.builders.lookup import Kinds, existing, missing
from seachange.planner.object_names import FoundObject

_ALL = "ALL"
# GRANT ... ON TABLE speaks of all that can be selected from.
_ACCEPTED: dict[ObjectKind, Kinds] = {ObjectKind.TABLE: VIEWS | {ObjectKind.SEQUENCE}}
_IN_SCHEMA: dict[ObjectKind, Kinds] = {
    ObjectKind.TABLE: VIEWS | {ObjectKind.TABLE},
    ObjectKind.SEQUENCE: frozenset({ObjectKind.SEQUENCE}),
}


def change_privileges(draft: Draft, statement: Grant) -> None:
    if statement.grant_option and not statement.revoke and PUBLIC_ROLE in statement.roles:
        raise errors.InvalidGrantOption(detail="grant options can only be granted to roles, not to PUBLIC")
    for found in _objects(draft, statement):
        names = _privileges(statement, found)
        for role in statement.roles:
            _change(draft, found.id, role, names, statement)


def _objects(draft: Draft, statement: Grant) -> list[FoundObject]:
    if statement.all_in_schema:
        kinds = _IN_SCHEMA[statement.kind]
        return [f for name in statement.names for f in _in_schema(draft, name) if f.kind in kinds]
    accepts = _ACCEPTED.get(statement.kind, frozenset())
    return [existing(draft, statement.kind, name, accepts) for name in statement.names]


def _in_schema(draft: Draft, name: RelationName) -> list[FoundObject]:
    if not draft.has_schema(name.name):
        raise missing(ObjectKind.SCHEMA, name.name)
    found = draft.directory.objects_in(name.name)
    for each in found:
        draft.load(each.id)
    return found


def _privileges(statement: Grant, found: FoundObject) -> tuple[str, ...]:
    """A sequence that is granted on as if it were a table has the privileges of both that it knows."""
    known = PRIVILEGES[ObjectKind.TABLE if found.kind in VIEWS else found.kind]
    if statement.privileges == (_ALL,):
        return known
    for privilege in statement.privileges:
        if privilege not in known:
            raise errors.InvalidGrant(privilege=privilege, kind=found.kind)
    return statement.privileges


def _change(draft: Draft, id_: DescriptorId, role: str, names: tuple[str, ...], statement: Grant) -> None:
    old = next((p for p in draft.select(elements.Privileges, descriptor_id=id_) if p.role == role), None)
    held = set(old.privileges) if old is not None else set()
    grantable = set(old.grantable) if old is not None else set()
    if not statement.revoke:
        held.update(names)
        grantable.update(names if statement.grant_option else ())
    else:
        grantable.difference_update(names)
        held.difference_update(names if not statement.grant_option else ())
    if held:
        draft.replace(old, elements.Privileges(id_, role, _ordered(held), _ordered(grantable)))
    elif old is not None:
        draft.drop(old)


def _ordered(names: set[str]) -> tuple[str, ...]:
    """As a descriptor lists them, so that the same set is the same value."""
    order = dict.fromkeys(name for known in PRIVILEGES.values() for name in known)
    return tuple(name for name in order if name in names)
