"""Values of the model as JSON text, for what is kept across processes: the targets of a change, and its ops.

A dataclass becomes an object that names its class, an enum its value, a tuple a list, so that a value that is added to
the model needs no code here. There are no lists in the model: a list that is read back is a tuple.

**Invariant:** what a program does not know it does not read: a class or field that it has never heard of is refused. A
field that says nothing (its default, if that is empty) is left out, so that an older program reads all that does not
make use of a newer field, and a newer one what was written before there was one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from typing import Any, Final, get_args, get_type_hints

_CLASS = "="
_ENUM = "~"
_SET = "{}"
_MAP = "->"
_ELEMENTS = "elements"

# Classes that have been renamed or moved since their names were first stored.
STORED_NAMES: Final = {
    "elements.ColumnElement": "elements.Column",
    "elements.DatabaseElement": "elements.Database",
    "elements.EnumTypeElement": "elements.EnumType",
    "elements.ForeignKeyElement": "elements.ForeignKey",
    "elements.NamespaceElement": "elements.Namespace",
    "elements.SchemaElement": "elements.Schema",
    "elements.SequenceElement": "elements.Sequence",
    "elements.SequenceOwnerElement": "elements.SequenceOwner",
    "elements.TableElement": "elements.Table",
    "elements.ViewElement": "elements.View",
    "job.JobFailure": "job.Failure",
    "object_kind.ObjectKind": "object_statements.ObjectKind",
    "vacuum.VacuumWork": "upkeep.Upkeep",
}


class Codec:
    """Knows the classes that may occur, which follow from those given by the types of their fields; a text that names
    another is refused."""

    def __init__(self, *given: type) -> None:
        self._classes = {stored_name(class_): class_ for class_ in _classes_within(given)}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._classes)

    def encode(self, value: object) -> str:
        return json.dumps(self._to_json(value), separators=(",", ":"))

    def decode(self, text: str) -> Any:
        return self._from_json(json.loads(text))

    def _to_json(self, value: object) -> Any:
        if isinstance(value, Enum):
            return {_ENUM: self._known(type(value)), "value": value.value}
        if is_dataclass(value):
            parts = [(field, getattr(value, field.name)) for field in fields(value)]
            written = {field.name: self._to_json(part) for field, part in parts if not _is_empty(field, part)}
            return {_CLASS: self._known(type(value)), **written}
        if isinstance(value, tuple):
            return [self._to_json(item) for item in value]
        if isinstance(value, frozenset):
            return {_SET: sorted((self._to_json(item) for item in value), key=json.dumps)}
        if isinstance(value, dict):
            return {_MAP: [[self._to_json(k), self._to_json(v)] for k, v in value.items()]}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise TypeError(f"{type(value).__name__} has no form as JSON")

    def _known(self, class_: type) -> str:
        name = stored_name(class_)
        if self._classes.get(name) is not class_:
            raise TypeError(f"{name} is not among the classes of this codec")
        return name

    def _from_json(self, body: Any) -> Any:
        if isinstance(body, list):
            return tuple(self._from_json(item) for item in body)
        if not isinstance(body, dict):
            return body
        if _SET in body:
            return frozenset(self._from_json(item) for item in body[_SET])
        if _MAP in body:
            return {self._from_json(key): self._from_json(value) for key, value in body[_MAP]}
        if _ENUM in body:
            return self._classes[body[_ENUM]](body["value"])
        held = {name: self._from_json(value) for name, value in body.items() if name != _CLASS}
        return self._classes[body[_CLASS]](**held)


def _classes_within(types: Iterable[Any]) -> set[type]:
    found: set[type] = set()
    waiting = list(types)
    while waiting:
        type_ = waiting.pop()
        waiting += get_args(type_)
        if isinstance(type_, type) and type_ not in found and (is_dataclass(type_) or issubclass(type_, Enum)):
            found.add(type_)
            waiting += get_type_hints(type_).values() if is_dataclass(type_) else ()
    return found


def _is_empty(field: Field[Any], value: object) -> bool:
    """Any other default may be another one in the next release."""
    return not isinstance(value, Enum) and not value and value == field.default and type(value) is type(field.default)


def stored_name(class_: type) -> str:
    """The name in texts that are stored already: it stays when a class or its module is renamed."""
    path = class_.__module__.split(".")
    # Elements were first stored when all of them were in one module.
    module = _ELEMENTS if _ELEMENTS in path else path[-1]
    name = f"{module}.{class_.__qualname__}"
    return STORED_NAMES.get(name, name)
