"""Opens the catalog that a URL names; creates or upgrades it if necessary."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.catalog.sqlite import SqliteCatalog
from seachange.catalog.sqlite.copy import restore_copy
from seachange.runtime.clock import Clock
from seachange.runtime.entropy import Entropy

if TYPE_CHECKING:
    from seachange.catalog.postgres import PostgresCatalog

DEFAULT_FILE = "catalog.sqlite"
_SQLITE, _POSTGRES = "sqlite", "postgresql"


def open_catalog(url: str | None, data_folder: Path, clock: Clock, entropy: Entropy, creates: bool = True) -> Catalog:
    """`url`: sqlite:///PATH (relative to the working folder, absolute with a fourth slash) or postgresql://...; None is
    a SQLite file in the data folder. Raises CatalogMissing if there is none and `creates` is False."""
    if catalog_kind(url) == _SQLITE:
        return SqliteCatalog(_sqlite_path(url, data_folder), clock, creates=creates)
    assert url is not None
    return _open_postgres(url, clock, creates)


def _open_postgres(url: str, clock: Clock, creates: bool = True) -> PostgresCatalog:
    """Imported only here: its driver is a seventh of all that a program with a SQLite catalog would import."""
    kind = import_module("seachange.catalog.postgres").PostgresCatalog
    catalog: PostgresCatalog = kind(url, clock, creates=creates)
    return catalog


def catalog_name(url: str | None, data_folder: Path) -> str:
    """The name of a catalog in messages: without a password.

    >>> catalog_name("postgresql://me:secret@one:5432,two:5433/shop?password=secret", Path("data"))
    'postgresql://one:5432,two:5433/shop'
    >>> catalog_name(None, Path("data"))
    'data/catalog.sqlite'
    """
    if catalog_kind(url) == _SQLITE:
        return str(_sqlite_path(url, data_folder))
    parts = urlsplit(url or "")
    return f"{_POSTGRES}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def catalog_kind(url: str | None) -> str:
    if url is None:
        return _SQLITE
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return _SQLITE
    if parts.scheme in ("postgresql", "postgres"):
        return _POSTGRES
    raise errors.InvalidCatalog(catalog=url, detail="unknown URL scheme")


def _sqlite_path(url: str | None, data_folder: Path) -> Path:
    return data_folder / DEFAULT_FILE if url is None else Path(unquote(urlsplit(url).path[1:]))


def restore_catalog(url: str | None, data_folder: Path, copy: Path, clock: Clock, identity: str) -> None:
    """Creates a catalog from a copy (`Catalog.copy_to`), where there is none yet, with the id of the new database."""
    if catalog_kind(url) == _SQLITE:
        path = _sqlite_path(url, data_folder)
        # SQLite would apply the log of an earlier catalog to the new one.
        for used in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")):
            if used.exists():
                raise errors.InvalidCatalog(
                    catalog=str(used), detail="it exists; a backup can only be restored to a new one"
                )
        restore_copy(copy, path, identity)
        return
    assert url is not None
    catalog = _open_postgres(url, clock)
    try:
        catalog.fill_from(copy, identity)
    finally:
        catalog.close()
