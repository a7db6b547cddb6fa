"""The packages that encode Avro and bitmaps: optional, loaded on first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from seachange import errors

_REMEDY = "pip install 'seachange[iceberg]'."


@cache
def load_encoder(name: str) -> Any:
    if find_spec(name) is None:
        raise errors.FeatureNotSupported(feature=f"Iceberg without the package {name}", instead=_REMEDY)
    return import_module(name)
