"""Opens the catalog that a URL names, creating or upgrading it on the way."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.catalog.sqlite import SqliteCatalog
from seachange.catalog.sqlite.copy import FILE_NAME
from seachange.runtime.clock import Clock
from seachange.runtime.entropy import Entropy
from seachange.runtime.filesystem import named_errors

if TYPE_CHECKING:
    from seachange.catalog.postgres import PostgresCatalog

DEFAULT_FILE = "catalog.sqlite"
_SQLITE, _POSTGRES = "sqlite", "postgresql"


def open_catalog(url: str | None, data_folder: Path, clock: Clock, entropy: Entropy) -> Catalog:
    """`url`: sqlite:///PATH (relative to the working folder, absolute with a fourth slash) or
    postgresql://...; None is a SQLite file in the data folder."""
    if catalog_kind(url) == _SQLITE:
        return SqliteCatalog(_sqlite_path(url, data_folder), clock)
    assert url is not None
    return _open_postgres(url, clock)


def _open_postgres(url: str, clock: Clock) -> PostgresCatalog:
    """Loaded only here: its driver is a seventh of all that a program with a SQLite catalog would import."""
    catalog: PostgresCatalog = import_module("seachange.catalog.postgres").PostgresCatalog(url, clock)
    return catalog


def catalog_kind(url: str | None) -> str:
    if url is None:
        return _SQLITE
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return _SQLITE
    if parts.scheme in ("postgresql", "postgres"):
        return _POSTGRES
    raise errors.InvalidCatalog(catalog=url, detail="its form is not known")


def _sqlite_path(url: str | None, data_folder: Path) -> Path:
    return data_folder / DEFAULT_FILE if url is None else Path(unquote(urlsplit(url).path[1:]))


def restore_catalog(url: str | None, data_folder: Path, copy: Path, clock: Clock) -> None:
    """Makes a catalog of a copy (`Catalog.copy_to`), where none is yet."""
    if catalog_kind(url) == _SQLITE:
        path = _sqlite_path(url, data_folder)
        if path.exists():
            raise errors.InvalidCatalog(catalog=str(path), detail="it exists; a back-up is restored to a new one")
        with named_errors("write", str(path)):
            shutil.copyfile(copy / FILE_NAME, path)
        return
    assert url is not None
    catalog = _open_postgres(url, clock)
    try:
        catalog.fill_from(copy)
    finally:
        catalog.close()
