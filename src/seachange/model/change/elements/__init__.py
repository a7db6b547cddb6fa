"""Elements: the smallest facts that a schema is made of, and the unit of every change. One module for each topic.

An element never changes; what looks like a change (a rename, a new default) is one element that goes and another that
comes. It names what it belongs to and what it uses by id, under field names that are the same in every class, so that
rules can join on them. Fields that only a plan knows take no part in comparisons: an element read back from a
descriptor equals the one that was planned.

What the planner knows of each kind (lifecycle, rules, place in the descriptor) is in the module of the same name in
`planner/elements`.
"""

from __future__ import annotations

from seachange.model.change.elements.column import *
from seachange.model.change.elements.constraint import *
from seachange.model.change.elements.enum_type import *
from seachange.model.change.elements.index import *
from seachange.model.change.elements.object import *
from seachange.model.change.elements.schema import *
from seachange.model.change.elements.sequence import *
from seachange.model.change.elements.table import *
from seachange.model.change.elements.view import *
from seachange.model.ids import DescriptorId

Element = (
    ObjectTopic
    | SchemaTopic
    | TableTopic
    | SequenceTopic
    | EnumTypeTopic
    | ViewTopic
    | ColumnTopic
    | IndexTopic
    | ConstraintTopic
)

AnyObject = DatabaseElement | SchemaElement | TableElement | SequenceElement | EnumTypeElement | ViewElement
ObjectPart = ObjectTopic | SequencePart | EnumValue | ViewQuery | ViewRows


def descriptor_of(element: Element) -> DescriptorId:
    """The descriptor that the element is a part of, whose version rises with its states."""
    match element:
        case NamespaceElement() | Owner() | Privileges() | Comment() | DatabaseElement() | SchemaElement():
            return element.descriptor_id
        case SequenceElement() | SequenceSettings() | SequenceOwnerElement() | SequenceStart():
            return element.sequence_id
        case EnumTypeElement() | EnumValue() | EnumLabel():
            return element.type_id
        case ViewElement() | ViewQuery() | ViewRows():
            return element.view_id
        case ForeignKeyParent():
            return element.parent_id
        case _:
            return element.table_id


def element_name(kind: type) -> str:
    """The name of an element in explanations.

    >>> element_name(TableElement), element_name(ColumnDefault)
    ('Table', 'ColumnDefault')
    """
    return kind.__name__.removesuffix("Element")
