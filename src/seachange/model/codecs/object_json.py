"""Descriptors of every kind as JSON text. Those of tables have a form of their own, which reads older ones too."""

from __future__ import annotations

from functools import lru_cache
from typing import get_args

from seachange.model.codecs.codec import Codec
from seachange.model.codecs.descriptor_json import decode_table, encode_table
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import Descriptor

OBJECT_CODEC = Codec(*(kind for kind in get_args(Descriptor) if kind is not Table))
# How the text of an object begins.
_OBJECT = '{"="'


def encode_descriptor(descriptor: Descriptor) -> str:
    return encode_table(descriptor) if isinstance(descriptor, Table) else OBJECT_CODEC.encode(descriptor)


# A node meets the same text more than once: when it publishes it, when it follows the log, and in its history.
@lru_cache(maxsize=64)
def decode_descriptor(text: str) -> Descriptor:
    if not text.startswith(_OBJECT):
        return decode_table(text)
    found: Descriptor = OBJECT_CODEC.decode(text)
    return found
