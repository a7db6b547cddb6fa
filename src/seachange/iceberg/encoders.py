"""The packages that encode Avro and bitmaps, and the one that reads tables of others: optional, loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from seachange import errors

_REMEDY = "pip install 'seachange[iceberg]'."
_READER = "pip install 'seachange[import]'."


@cache
def load_reader() -> Any:
    """The module that needs pyiceberg."""
    if find_spec("pyiceberg") is None:
        raise errors.FeatureNotSupported(
            feature="reading Iceberg tables without the package pyiceberg", instead=_READER
        )
    return import_module("seachange.iceberg.foreign_tables")


@cache
def load_encoder(name: str) -> Any:
    if find_spec(name) is None:
        raise errors.FeatureNotSupported(feature=f"Iceberg without the package {name}", instead=_REMEDY)
    return import_module(name)
