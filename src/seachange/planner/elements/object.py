"""Any object: its name, owner, privileges and comments."""

from __future__ import annotations

from collections.abc import Mapping

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status
from seachange.model.ids import DescriptorId
from seachange.model.schema.access import DEFAULT_ROLE, Access, PartComment, RolePrivileges
from seachange.model.states import State
from seachange.planner.elements.rule import OBJECT_PARTS, OBJECTS, Adding, Dropping, Rule, RuleOrder
from seachange.planner.elements.spec import ElementSpec, Parts, Topic
from seachange.planner.lifecycles.seachange import SIMPLE


def decompose_access(id_: DescriptorId, access: Access) -> Parts:
    parts: Parts = {elements.Owner(id_, access.owner): State.PUBLIC}
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


OBJECT = Topic(
    specs=(
        ElementSpec(elements.Comment, SIMPLE, "comment"),
        ElementSpec(elements.Privileges, SIMPLE, "privileges"),
        ElementSpec(elements.Owner, SIMPLE, "owner"),
        ElementSpec(elements.NamespaceElement, SIMPLE, "name", known_outside=True),
    ),
    rules=(
        Rule(
            name="an object exists before its attributes",
            reason="an attribute is a part of a descriptor",
            first=Adding(OBJECTS, Status.PUBLIC),
            order=RuleOrder.BEFORE,
            then=Adding(OBJECT_PARTS, Status.PUBLIC),
            join=("descriptor_id",),
        ),
        Rule(
            name="an object goes with its name",
            reason="a name that leads nowhere is an error to every lookup",
            first=Dropping((elements.NamespaceElement,)),
            order=RuleOrder.WITH,
            then=Dropping(OBJECTS),
            join=("descriptor_id",),
        ),
        Rule(
            name="a name is free before it is taken",
            reason="in every version a name leads to one object",
            first=Dropping((elements.NamespaceElement,)),
            order=RuleOrder.BEFORE,
            then=Adding((elements.NamespaceElement,), Status.PUBLIC),
            join=("database", "schema", "name"),
        ),
    ),
)
