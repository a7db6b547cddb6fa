"""Stray files: the files of a database's folder, against everything that its catalog knows.

**Invariant:** a file of a live writer is never reported. Its id is in the catalog before the file exists, and is
removed only after the file was deleted: so the folder is listed first, then the catalog is read, and a file that the
catalog does not know is checked once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seachange.catalog.port import Catalog
from seachange.model.ids import SegmentId
from seachange.runtime.filesystem import TEMPORARY_PREFIX, FileSystem
from seachange.verify.anomalies import Anomaly, AnomalyKind

_NAME = re.compile(r"([0-9a-f]{16,})\.(parquet|arrow)")
_NAMES_MAX = 5


def check_folder(catalog: Catalog, files: FileSystem) -> tuple[list[Anomaly], list[str]]:
    """Files that nothing refers to: those that will never be deleted are anomalies, those that garbage collection is
    going to delete are remarks."""
    names = files.names()
    known = catalog.known_files()
    needed = {file.id for file in known.attached} | known.in_use
    garbage = [name for name in names if _id_of(name) in known.garbage]
    strays = [name for name in names if _id_of(name) not in needed and name not in garbage]
    found = [
        Anomaly(AnomalyKind.FILE_UNREFERENCED, "", "", detail=name) for name in strays if files.size(name) is not None
    ]
    return found, list(_remarks(garbage))


def _remarks(garbage: list[str]) -> Iterator[str]:
    if garbage:
        more = ", ..." if len(garbage) > _NAMES_MAX else ""
        yield (
            f"{len(garbage)} files that nothing refers to are left for garbage collection: "
            f"{', '.join(garbage[:_NAMES_MAX])}{more}"
        )


def _id_of(name: str) -> SegmentId | None:
    """None if it is no name that the engine gives."""
    parsed = _NAME.fullmatch(name.removeprefix(TEMPORARY_PREFIX))
    return SegmentId(int(parsed[1], 16)) if parsed else None
