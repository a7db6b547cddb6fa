"""Opening a catalog and a folder or object store, only if they are of the same database.

Both contain the id of the database. A new id is proposed in the folder, bound in the catalog, and confirmed in the
folder (`runtime/identity.py`). A folder of a release without ids is adopted in the same way, if the catalog has no id
either and names the files that are there.

**Invariant:** no node works before the ids of the folder and of the catalog have been compared and found equal.

**Invariant:** no catalog is created for a folder that has an id or segments.
"""

from __future__ import annotations

from seachange import errors
from seachange.catalog.open import catalog_name, open_catalog
from seachange.catalog.port import Catalog
from seachange.model.segments import AttachedFile
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.runtime.entropy import SYSTEM_ENTROPY
from seachange.runtime.faults import reach
from seachange.runtime.identity import IdentityPlace
from seachange.runtime.location import DataLocation
from seachange.runtime.opening import open_identity
from seachange.runtime.permissions import create_data_folder
from seachange.storage.segment_footer import segment_name

# Marks a folder as a backup, which can be restored but not opened.
MANIFEST = "manifest.json"


def open_database(url: str | None, location: DataLocation, creates: bool = True) -> tuple[Catalog, str]:
    """Opens the catalog of the database at a location; returns it with the id of both. Raises CatalogMissing if there
    is none and `creates` is False."""
    data = location.local
    if location.store is not None and url is None and not location.is_chosen:
        raise errors.StoreNeedsCatalog(url=location.store)
    if (data / MANIFEST).exists():
        raise errors.DataFolderProblem(
            path=data, detail="it is a backup; create a database from it with seachange restore"
        )
    place = open_identity(location.segments)
    is_new = place.read() is None and not place.segment_files()
    if is_new and creates and url is None:
        create_data_folder(data)
    catalog = open_catalog(url, data, SYSTEM_CLOCK, SYSTEM_ENTROPY, creates=is_new and creates)
    try:
        return catalog, Pairing(catalog, catalog_name(url, data), place, str(location)).run()
    except BaseException:
        catalog.close()
        raise


class Pairing:
    """Verifies that a catalog and a folder belong together; `data` is the name of the folder in messages."""

    def __init__(self, catalog: Catalog, name: str, place: IdentityPlace, data: str) -> None:
        self._catalog = catalog
        self._name = name
        self._place = place
        self._data = data

    def run(self) -> str:
        """Returns the id of both."""
        # In this order: the catalog is bound before the id of the folder is confirmed, so a folder with an id has a
        # bound catalog even if other processes create the same database now.
        stored = self._place.read()
        bound = self._catalog.identity()
        if bound is None:
            if stored is not None:
                raise self._wrong(f"the folder has the id {stored}, the catalog has none")
            bound = self._bind()
        if stored is None:
            stored = self._place.confirm(bound)
        if stored is None:
            raise self._wrong(f"the catalog has the id {bound}, the folder has none")
        if stored != bound:
            raise self._wrong(f"the catalog has the id {bound}, the folder has {stored}")
        return bound

    def _bind(self) -> str:
        try:
            self._check_files()
        except errors.WrongDatabase:
            # Another process may have bound the catalog meanwhile; the strange files are its first rows.
            bound = self._catalog.identity()
            if bound is None:
                raise
            return bound
        proposed = self._place.propose(SYSTEM_ENTROPY)
        bound = self._catalog.bind(proposed)
        reach("identity.bound")
        if bound != proposed:
            self._place.withdraw(proposed)
        return bound

    def _check_files(self) -> None:
        """Checks that the files of a folder without an id are those of a catalog without one."""
        known = self._catalog.known_files()
        there = self._place.segment_files()
        if not known.attached:
            unneeded = known.in_use | known.garbage
            strange = [name for name in there if int(name.partition(".")[0], 16) not in unneeded]
            if strange:
                raise self._wrong(f"the folder has files that the catalog does not know, for example {strange[0]}")
            return
        whole = [file for file in known.attached if self._size(file) == file.size_bytes]
        # Half of them is enough: a database with damaged files must still be opened.
        if 2 * len(whole) < len(known.attached) or not self._has_checksum(whole[-1]):
            detail = (
                f"of {len(known.attached)} files that the catalog names, {len(whole)} are present with the same size"
            )
            raise self._wrong(detail)

    def _size(self, file: AttachedFile) -> int | None:
        return self._place.size(segment_name(file.id))

    def _has_checksum(self, file: AttachedFile) -> bool:
        return self._place.checksum(segment_name(file.id)) == file.checksum

    def _wrong(self, detail: str) -> errors.WrongDatabase:
        return errors.WrongDatabase(catalog=self._name, path=self._data, detail=detail)
