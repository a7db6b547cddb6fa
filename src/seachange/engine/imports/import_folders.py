"""What may be imported: files below the folders, and tables below the URLs, of `seachange.import_folders`.

**Invariant:** no file is opened before its real path, with symbolic links resolved, was found to be below one of them.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from urllib.parse import unquote

from seachange import errors
from seachange.runtime.location import is_url

_FILE = "file://"
_WILD = "*?["


@dataclass(frozen=True, slots=True)
class ImportFolders:
    places: tuple[str, ...]

    def check(self, place: str) -> None:
        """42501 unless it is below one of them."""
        if not any(_is_below(place, folder) for folder in self.places):
            raise errors.InsufficientPrivilege(
                detail=f'permission denied to read "{place}": it is not below one of seachange.import_folders'
            )

    def find(self, pattern: str) -> list[str]:
        """The files of a path, in which the wild cards of a shell may occur, in order. A file whose name has them is
        itself."""
        pattern = local_path(pattern)
        if not os.path.isabs(pattern):
            raise errors.InvalidParameterValue(detail=f'"{pattern}" is not an absolute path')
        real = os.path.realpath(pattern)
        if any(_is_below(real, folder) for folder in self.places) and os.path.isfile(real):
            return [real]
        # Whether a file exists elsewhere is not shown either.
        first = min((pattern.find(sign) for sign in _WILD if sign in pattern), default=len(pattern))
        self.check(pattern if first == len(pattern) else os.path.dirname(pattern[:first]) + "/.")
        if ".." in pattern[first:].split("/"):
            raise errors.InvalidParameterValue(detail=f'"{pattern}" has .. after a wild card')
        found = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
        for path in found:
            self.check(path)
        if not found:
            raise errors.InputOutputError(action="read", file=pattern, detail="no such file")
        # A link that is replaced from now on changes nothing.
        return [os.path.realpath(path) for path in found]


def read_folders(setting: str) -> ImportFolders:
    return ImportFolders(tuple(each.strip() for each in setting.split(",") if each.strip()))


def local_path(place: str) -> str:
    """Without the scheme of a local file."""
    return place.removeprefix(_FILE) if place.startswith(_FILE) else place


def _is_below(place: str, folder: str) -> bool:
    place, folder = local_path(place), local_path(folder)
    if is_url(place) or is_url(folder):
        # Clients decode an address, some of them twice, before they resolve its dots.
        parts = unquote(unquote(place)).replace("\\", "/").split("/")
        return not {".", ".."} & {*parts} and place.startswith(folder.rstrip("/") + "/")
    # A relative place, such as `file:/etc`, may be another one for the program that opens it.
    return os.path.isabs(place) and os.path.commonpath(
        [os.path.realpath(place), os.path.realpath(folder)]
    ) == os.path.realpath(folder)
