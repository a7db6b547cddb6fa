"""Reservation of ids for new files, in a folder that has the newest files of the catalog.

A copy of a data folder has the id of its database too. Nodes that used both with one catalog would attach files that
the other folder lacks.

**Invariant:** a file is written only to a folder that has the newest attached files. So the files attached since a
folder was copied are in one of the two folders, apart from those of commits that were in progress at the same time.
"""

from __future__ import annotations

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.ids import Epoch, SegmentId
from seachange.runtime.faults import reach
from seachange.runtime.filesystem import FileSystem
from seachange.storage.segment_footer import segment_name

# More than one, because transactions of two nodes may attach files at the same time.
NEWEST_FILES = 8


def reserve_files(catalog: Catalog, epoch: Epoch, files: FileSystem, count: int) -> list[SegmentId]:
    missing = _missing(catalog, files)
    # A file may have been deleted as garbage since the catalog was read: then the catalog no longer has it either.
    if missing and (missing := missing & _missing(catalog, files)):
        name = segment_name(min(missing))
        raise errors.FolderIncomplete(path=files.address, file=name)
    ids = [SegmentId(i) for i in catalog.reserve_segments(epoch, count)]
    reach("segment.reserved")
    return ids


def _missing(catalog: Catalog, files: FileSystem) -> set[SegmentId]:
    return {id_ for id_ in catalog.newest_files(NEWEST_FILES) if not files.has(segment_name(id_))}
