"""The id of a database with its segments, in their folder or object store: `database.id`, one line of hexadecimal
digits.

A new id is proposed first (`database.id.<id>`), then bound in the catalog, then confirmed: the proposal becomes
`database.id`. A process may die between any two steps: a proposal that is not in the catalog is ignored, and one that
is in the catalog is confirmed by the next process that opens the database.

**Invariant:** `database.id` never changes: it is published without replacing another one.

**Invariant:** an id is proposed in one place and bound in one catalog, those that its process was given. So segments
and a catalog with the same id belong together, unless a user copied one of them.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from seachange import errors
from seachange.runtime.checksum import checksum_of
from seachange.runtime.entropy import Entropy
from seachange.runtime.faults import reach
from seachange.runtime.filesystem import IDENTITY_NAME, TEMPORARY_PREFIX, named_errors, sync
from seachange.runtime.permissions import create_data_folder, create_file, create_folder
from seachange.runtime.renaming import rename_new

_ID_BYTES = 16
# The prefix of the names of empty files that say which database is being copied to a place.
COPY_NAME = f"{IDENTITY_NAME}.copy-"
_FORM = re.compile(r"[0-9a-f]{32}\n")
# The names of catalog files: see storage.segment_footer and storage.shuffle_file.
_SEGMENT = re.compile(r"[0-9a-f]{16,}\.(parquet|arrow)")


class IdentityPlace(Protocol):
    """Where the id is: next to the segments."""

    @property
    def address(self) -> str:
        """The folder or the URL of the segments."""

    def read(self) -> str | None:
        """None if there is none."""

    def segment_files(self) -> list[str]:
        """The names of the segment files; none if the place does not exist."""

    def propose(self, entropy: Entropy) -> str:
        """A new id, written durably to a place that is created if necessary."""

    def confirm(self, bound: str) -> str | None:
        """Returns the id of this place, which becomes the one of the catalog if that was proposed here; None if it was
        not."""

    def withdraw(self, proposed: str) -> None: ...

    def note_copy(self, identity: str) -> None:
        """Notes durably that the database with this id is being copied here; forgotten when an id is confirmed."""

    def withdraw_copy(self, identity: str) -> None: ...

    def copied_databases(self) -> list[str]:
        """The ids of the databases that are being copied here."""

    def size(self, name: str) -> int | None:
        """The size of a segment file; None if it is missing."""

    def checksum(self, name: str) -> bytes:
        """The checksum of a segment file that exists."""


def parse_identity(text: str, address: str) -> str:
    if not _FORM.fullmatch(text):
        raise errors.DataFolderProblem(path=address, detail=f"{IDENTITY_NAME} is not a valid id")
    return text.strip()


def new_identity(entropy: Entropy) -> str:
    return entropy.token(_ID_BYTES).hex()


def is_segment_file(name: str) -> bool:
    return _SEGMENT.fullmatch(name) is not None


class FolderIdentity:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def address(self) -> str:
        return str(self._folder)

    def read(self) -> str | None:
        path = self._folder / IDENTITY_NAME
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise errors.InputOutputError(action="read", file=path, detail=problem.strerror or problem) from problem
        return parse_identity(text, self.address)

    def segment_files(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if is_segment_file(name))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def propose(self, entropy: Entropy) -> str:
        folder, proposed = self._folder, new_identity(entropy)
        path = folder / f"{IDENTITY_NAME}.{proposed}"
        with named_errors("write", str(path)):
            create_data_folder(folder.parent)
            create_folder(folder)
            temporary = folder / f"{TEMPORARY_PREFIX}{path.name}"
            create_file(temporary)
            temporary.write_text(f"{proposed}\n", encoding="ascii")
            sync(temporary)
            rename_new(str(temporary), str(path))
            sync(folder)
            # The folder itself may be new.
            sync(folder.parent)
        reach("identity.proposed")
        return proposed

    def confirm(self, bound: str) -> str | None:
        proposal, final = self._folder / f"{IDENTITY_NAME}.{bound}", self._folder / IDENTITY_NAME
        # Proposals are removed after an id exists, so a process that finds no proposal reads the id afterwards.
        with named_errors("write", str(final)), suppress(FileNotFoundError, NotADirectoryError, FileExistsError):
            rename_new(str(proposal), str(final))
            sync(self._folder)
            reach("identity.settled")
        found = self.read()
        if found is not None:
            for path in self._folder.glob(f"{IDENTITY_NAME}.*"):
                with suppress(OSError):
                    path.unlink()
        return found

    def withdraw(self, proposed: str) -> None:
        with suppress(OSError):
            (self._folder / f"{IDENTITY_NAME}.{proposed}").unlink(missing_ok=True)

    def note_copy(self, identity: str) -> None:
        path = self._folder / f"{COPY_NAME}{identity}"
        with named_errors("write", str(path)):
            create_data_folder(self._folder.parent)
            create_folder(self._folder)
            path.touch()
            sync(self._folder)
            sync(self._folder.parent)

    def withdraw_copy(self, identity: str) -> None:
        with suppress(OSError):
            (self._folder / f"{COPY_NAME}{identity}").unlink(missing_ok=True)

    def copied_databases(self) -> list[str]:
        return [path.name.removeprefix(COPY_NAME) for path in self._folder.glob(f"{COPY_NAME}*")]

    def size(self, name: str) -> int | None:
        try:
            return (self._folder / name).stat().st_size
        except OSError:
            return None

    def checksum(self, name: str) -> bytes:
        with pa.OSFile(str(self._folder / name), "rb") as source:
            return checksum_of(source)


def check_identity(place: IdentityPlace, expected: str | None) -> None:
    """For a process that has the segments but not the catalog: a Spark task on another machine."""
    found = place.read()
    if found != expected:
        detail = f"it has {_called(found)}, the node that sent the task has {_called(expected)}"
        raise errors.DataFolderProblem(path=place.address, detail=detail)


def _called(identity: str | None) -> str:
    return "no database" if identity is None else f"the database {identity}"
