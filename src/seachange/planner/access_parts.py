"""Owner, privileges and comments taken apart and put together again."""

from __future__ import annotations

from collections.abc import Mapping

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.ids import DescriptorId
from seachange.model.schema.access import DEFAULT_ROLE, Access, PartComment, RolePrivileges
from seachange.model.states import State


def decompose_access(id_: DescriptorId, access: Access) -> dict[Element, State]:
    parts: dict[Element, State] = {elements.Owner(id_, access.owner): State.PUBLIC}
    for held in access.privileges:
        parts[elements.Privileges(id_, held.role, held.privileges, held.grantable)] = State.PUBLIC
    for comment in access.comments:
        parts[elements.Comment(id_, comment.text, comment.part)] = State.PUBLIC
    return parts


def compose_access(parts: Mapping[Element, State]) -> Access:
    owner = DEFAULT_ROLE
    privileges: list[RolePrivileges] = []
    comments: list[PartComment] = []
    for element in parts:
        match element:
            case elements.Owner():
                owner = element.role
            case elements.Privileges():
                privileges.append(RolePrivileges(element.role, element.privileges, element.grantable))
            case elements.Comment():
                comments.append(PartComment(element.text, element.part))
            case _:
                pass
    return Access(owner, tuple(privileges), tuple(comments))
