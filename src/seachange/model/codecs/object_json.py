"""Descriptors of every kind as JSON text. Those of tables have a form of their own, which reads older ones too."""

from __future__ import annotations

from functools import lru_cache

from seachange.model.codecs.codec import Codec
from seachange.model.codecs.descriptor_json import decode_table, encode_table
from seachange.model.object_kind import ObjectKind
from seachange.model.schema.access import Access, PartComment, RolePrivileges
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import (
    Database,
    DefaultPrivileges,
    Descriptor,
    EnumType,
    Role,
    RoleSetting,
    Schema,
    Sequence,
    Value,
    View,
)
from seachange.values.types import Kind, SqlType

STORED_OBJECT_CLASSES: tuple[type, ...] = (
    Database,
    Schema,
    Sequence,
    EnumType,
    Value,
    View,
    SqlType,
    Kind,
    Access,
    PartComment,
    RolePrivileges,
    ObjectKind,
    Role,
    DefaultPrivileges,
    RoleSetting,
)
_OBJECTS = Codec(*STORED_OBJECT_CLASSES)
# How the text of an object begins.
_OBJECT = '{"="'


def encode_descriptor(descriptor: Descriptor) -> str:
    return encode_table(descriptor) if isinstance(descriptor, Table) else _OBJECTS.encode(descriptor)


# A node meets the same text more than once: when it publishes it, when it follows the log, and in its history.
@lru_cache(maxsize=64)
def decode_descriptor(text: str) -> Descriptor:
    if not text.startswith(_OBJECT):
        return decode_table(text)
    found: Descriptor = _OBJECTS.decode(text)
    return found
