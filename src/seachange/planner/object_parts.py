"""Descriptors taken apart into elements and put together again.

**Invariant:** `compose(descriptor, decompose(descriptor))` is the descriptor, one version later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from seachange import errors
from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.object_kind import ObjectKind
from seachange.model.schema import objects
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor
from seachange.model.states import State
from seachange.planner.elements.object import compose_access, decompose_access
from seachange.planner.elements.registry import FORMS, SPECS
from seachange.planner.elements.spec import ObjectForm, Parts, common_fields, only

_LABELS = frozenset({elements.NamespaceElement, elements.Owner, elements.Privileges, elements.Comment})


def namespace_of(descriptor: Descriptor) -> elements.NamespaceElement:
    """The entry under which an object is found. A database is in no database, a schema in no schema."""
    database, schema = getattr(descriptor, "database", ""), getattr(descriptor, "schema", "")
    is_materialized = isinstance(descriptor, Table) and descriptor.materialized is not None
    kind = ObjectKind.MATERIALIZED_VIEW if is_materialized else _form_of(descriptor).object_kind
    return elements.NamespaceElement(descriptor.id, kind, database, schema, descriptor.name)


def _form_of(descriptor: Descriptor) -> ObjectForm:
    if isinstance(descriptor, objects.UNPLANNED):
        raise errors.Bug(detail=f"{descriptor.name} cannot be part of a plan")
    form = FORMS[type(descriptor)].form
    assert form is not None
    return form


def decompose(descriptor: Descriptor) -> Mapping[Element, State]:
    return _decompose(_SameDescriptor(descriptor))


@dataclass(frozen=True, slots=True, eq=False)
class _SameDescriptor:
    """A descriptor as the key of a cache: the same object. To compare two costs as much as to take one apart."""

    descriptor: Descriptor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameDescriptor) and self.descriptor is other.descriptor

    def __hash__(self) -> int:
        return id(self.descriptor)


# A statement takes a version apart more than once: to plan, and to make the next one of it.
@lru_cache(maxsize=16)
def _decompose(same: _SameDescriptor) -> Mapping[Element, State]:
    descriptor = same.descriptor
    form = _form_of(descriptor)
    whole: Any = FORMS[type(descriptor)].kind
    parts: Parts = {whole(descriptor.id): State.PUBLIC, namespace_of(descriptor): State.PUBLIC}
    return parts | decompose_access(descriptor.id, descriptor.access) | form.take(descriptor)


def compose(before: Descriptor | None, parts: Mapping[Element, State]) -> Descriptor | None:
    """The next version of an object; None if it is gone."""
    for element in parts:
        form = SPECS[type(element)].form
        if form is not None:
            return form.descriptor(**_labels(form, before, parts), **form.put(before, parts))
    return None


def _labels(form: ObjectForm, before: Descriptor | None, parts: Mapping[Element, State]) -> dict[str, Any]:
    """What every descriptor has, as far as this kind does."""
    labels = {element: state for element, state in parts.items() if type(element) in _LABELS}
    entry = only(elements.NamespaceElement, labels)
    return {
        **common_fields(entry, form.descriptor),
        "id": entry.descriptor_id,
        "version": before.version + 1 if before is not None else 1,
        "access": compose_access(labels),
    }
