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
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Final, get_args, get_type_hints

_CLASS = "="
_ENUM = "~"
_SET = "{}"
_MAP = "->"
_ELEMENTS = "elements"
_PLAIN = (str, int, float)

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
        self._forms = {class_: _form_of(class_) for class_ in self._classes.values()}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._classes)

    def encode(self, value: object) -> str:
        return json.dumps(self._to_json(value), separators=(",", ":"))

    def decode(self, text: str) -> Any:
        return self._from_json(json.loads(text))

    def _to_json(self, value: object) -> Any:
        if value is None or (isinstance(value, _PLAIN) and not isinstance(value, Enum)):
            return value
        if isinstance(value, tuple):
            return [self._to_json(item) for item in value]
        form = self._forms.get(type(value))
        if form is not None:
            return self._object_to_json(value, form)
        if isinstance(value, frozenset):
            return {_SET: sorted((self._to_json(item) for item in value), key=json.dumps)}
        if isinstance(value, dict):
            return {_MAP: [[self._to_json(k), self._to_json(v)] for k, v in value.items()]}
        raise TypeError(f"{type(value).__name__} has no form as JSON, or is not among the classes of this codec")

    def _object_to_json(self, value: Any, form: _Form) -> dict[str, Any]:
        if isinstance(value, Enum):
            return {_ENUM: form.name, "value": value.value}
        written = {_CLASS: form.name}
        for name, empty in form.fields:
            part = getattr(value, name)
            if part or type(part) is not type(empty) or part != empty:
                written[name] = self._to_json(part)
        return written

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


@dataclass(frozen=True, slots=True)
class _Form:
    """Of a class: its stored name, and of a dataclass the fields, each with the value for which it is left out."""

    name: str
    fields: tuple[tuple[str, object], ...] = ()


def _form_of(class_: type) -> _Form:
    parts = fields(class_) if is_dataclass(class_) else ()
    return _Form(stored_name(class_), tuple((field.name, _left_out(field)) for field in parts))


def _left_out(field: Field[Any]) -> object:
    """The default, if it is empty; any other one may be another one in the next release."""
    is_empty = not field.default and not isinstance(field.default, Enum)
    return field.default if is_empty else MISSING


def stored_name(class_: type) -> str:
    """The name in texts that are stored already: it stays when a class or its module is renamed."""
    path = class_.__module__.split(".")
    # Elements were first stored when all of them were in one module.
    module = _ELEMENTS if _ELEMENTS in path else path[-1]
    name = f"{module}.{class_.__qualname__}"
    return STORED_NAMES.get(name, name)
