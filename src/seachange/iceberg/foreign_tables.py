"""Iceberg tables of other programs, opened by pyiceberg. Loaded on first use: the package is optional.

**Invariant:** the metadata of a table, which its writers make, chooses neither a class of pyiceberg nor a store: only
the configuration of this machine and the answers of an allowed catalog do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ResolveError, RESTError, ValidationError
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import StaticTable, Table
from pyiceberg.utils.config import Config

# What pyiceberg raises for a table that it cannot read. Errors of requests are OSErrors, those of pydantic ValueErrors.
PROBLEMS: Final = (
    *(OSError, ValueError, LookupError, TypeError, NotImplementedError, pa.ArrowException),
    *(NoSuchTableError, NoSuchNamespaceError, ResolveError, RESTError, ValidationError),
)
# The name under which pyiceberg's configuration has credentials for catalogs and stores.
CATALOG: Final = "seachange"
_REST = re.compile(r"(https?://[^?#]+?)/v1/(?:([^?#]+)/)?namespaces/([^/?#]+)/tables/([^/?#]+)")
_METADATA = ".metadata.json"
# What the answer for a table may add to the options of its catalog: pyiceberg passes on properties that writers of the
# table have set, too.
_CREDENTIALS: Final = frozenset(
    {
        *("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.region", "client.region"),
        *("gcs.oauth2.token", "gcs.oauth2.token-expires-at", "adls.sas-token"),
    }
)


class CheckedFileIO(PyArrowFileIO):
    """Opens files whose place was checked."""

    def __init__(self, properties: dict[str, str], check_place: Callable[[str], None]) -> None:
        super().__init__(properties)
        self._check_place = check_place

    def new_input(self, location: str) -> PyArrowFile:
        # What follows a question mark or a number sign is not part of the path that is opened.
        scheme, _, path = self.parse_location(location, self.properties)
        self._check_place(path if scheme == "file" else location)
        return super().new_input(location)


class _AllowedCatalog(RestCatalog):
    """Opens the files of its tables by `CheckedFileIO`, with options that only it and this machine have set."""

    def __init__(self, properties: Mapping[str, str], check_place: Callable[[str], None]) -> None:
        self._check_place = check_place
        super().__init__(CATALOG, **properties)

    def _load_file_io(
        self, properties: Mapping[str, Any] = MappingProxyType({}), location: str | None = None
    ) -> FileIO:
        vended = {name: value for name, value in properties.items() if name in _CREDENTIALS}
        return CheckedFileIO({**self.properties, **vended}, self._check_place)


def open_table(source: str, check_place: Callable[[str], None]) -> Table:
    """From the address of a table in a REST catalog, of a metadata file, or the path of a table's folder."""
    if source.startswith(("http://", "https://")):
        return _load(source, check_place)
    location = source if source.endswith(_METADATA) else _newest_metadata(source, check_place)
    files = CheckedFileIO({}, check_place)
    metadata = FromInputFile.table_metadata(files.new_input(location))
    return StaticTable((CATALOG, location), metadata, location, files, NoopCatalog(CATALOG))


def _load(source: str, check_place: Callable[[str], None]) -> Table:
    check_place(source)
    match = _REST.fullmatch(source)
    if match is None:
        raise ValueError("the address of a table is http://HOST/.../v1/PREFIX/namespaces/NAMESPACE/tables/TABLE")
    uri, prefix, namespace, name = match.groups()
    options = {"type": "rest", "uri": uri, **({} if prefix is None else {"warehouse": unquote(prefix)})}
    configured = {name: str(value) for name, value in (Config().get_catalog_config(CATALOG) or {}).items()}
    catalog = _AllowedCatalog({**configured, **options}, check_place)
    table: Table = catalog.load_table((*unquote(namespace).split("\x1f"), unquote(name)))
    return table


def _newest_metadata(folder: str, check_place: Callable[[str], None]) -> str:
    """Of a folder of this machine: that of the hint, or the one with the highest number."""
    check_place(folder)
    place = Path(folder.removeprefix("file://"))
    place = place / "metadata" if (place / "metadata").is_dir() else place
    hint = place / "version-hint.text"
    if hint.exists():
        check_place(str(hint))
        version = hint.read_text(encoding="utf-8").strip()
        return str(place / (f"v{version}{_METADATA}" if version.isdecimal() else version))
    found = sorted(place.glob(f"*{_METADATA}"), key=lambda path: (_number(path.name), path.stat().st_mtime))
    if not found:
        raise ValueError("there is no metadata file in the folder")
    return str(found[-1])


def _number(name: str) -> int:
    digits = re.match(r"v?(\d+)", name)
    return int(digits[1]) if digits else -1
