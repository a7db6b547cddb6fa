"""Opens the catalog that a URL names, creating or upgrading it on the way."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.catalog.postgres import PostgresCatalog
from seachange.catalog.sqlite import SqliteCatalog
from seachange.runtime.clock import Clock
from seachange.runtime.entropy import Entropy

DEFAULT_FILE = "catalog.sqlite"


def open_catalog(url: str | None, data_folder: Path, clock: Clock, entropy: Entropy) -> Catalog:
    """`url`: sqlite:///PATH (relative to the working folder, absolute with a fourth slash) or
    postgresql://...; None is a SQLite file in the data folder."""
    if url is None:
        return SqliteCatalog(data_folder / DEFAULT_FILE, clock)
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return SqliteCatalog(Path(unquote(parts.path[1:])), clock)
    if parts.scheme in ("postgresql", "postgres"):
        return PostgresCatalog(url, clock)
    raise errors.InvalidCatalog(catalog=url, detail="its form is not known")
