"""The id of a database in its segments folder: `database.id`, one line of hexadecimal digits.

A new id is proposed first (`database.id.<id>`), then bound in the catalog, then confirmed: the proposal becomes
`database.id`. A process may die between any two steps: a proposal that is not in the catalog is ignored, and one that
is in the catalog is confirmed by the next process that opens the database.

**Invariant:** `database.id` never changes: it is published without replacing another one.

**Invariant:** an id is proposed in one folder and bound in one catalog, those that its process was given. So a folder
and a catalog with the same id belong together, unless a user copied one of them.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from seachange import errors
from seachange.runtime.entropy import Entropy
from seachange.runtime.faults import reach
from seachange.runtime.filesystem import IDENTITY_NAME, TEMPORARY_PREFIX, named_errors, sync
from seachange.runtime.permissions import create_data_folder, create_file, create_folder
from seachange.runtime.renaming import rename_new

_ID_BYTES = 16
_FORM = re.compile(r"[0-9a-f]{32}\n")
# The names of catalog files: see storage.segment_footer and storage.shuffle_file.
_SEGMENT = re.compile(r"[0-9a-f]{16,}\.(parquet|arrow)")


def read_identity(folder: Path) -> str | None:
    """None if the folder has none, or is missing."""
    path = folder / IDENTITY_NAME
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise errors.InputOutputError(action="read", file=path, detail=problem.strerror or problem) from problem
    if not _FORM.fullmatch(text):
        raise errors.DataFolderProblem(path=folder, detail=f"{IDENTITY_NAME} is not a valid id")
    return text.strip()


def segment_files(folder: Path) -> list[str]:
    """The names of the segment files; none if the folder is missing."""
    try:
        return sorted(name for name in os.listdir(folder) if _SEGMENT.fullmatch(name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def propose_identity(folder: Path, entropy: Entropy) -> str:
    """A new id, written durably to a folder that is created if necessary."""
    proposed = entropy.token(_ID_BYTES).hex()
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


def confirm_identity(folder: Path, bound: str) -> str | None:
    """Returns the id of the folder, which becomes the one of the catalog if that was proposed here; None if it was
    not."""
    proposal, final = folder / f"{IDENTITY_NAME}.{bound}", folder / IDENTITY_NAME
    # Proposals are removed after an id exists, so a process that finds no proposal reads the id afterwards.
    with named_errors("write", str(final)), suppress(FileNotFoundError, NotADirectoryError, FileExistsError):
        rename_new(str(proposal), str(final))
        sync(folder)
        reach("identity.settled")
    found = read_identity(folder)
    if found is not None:
        _remove_proposals(folder)
    return found


def withdraw_identity(folder: Path, proposed: str) -> None:
    with suppress(OSError):
        (folder / f"{IDENTITY_NAME}.{proposed}").unlink(missing_ok=True)


def check_identity(folder: Path, expected: str | None) -> None:
    """For a process that has the folder but not the catalog: a Spark task on another machine."""
    found = read_identity(folder)
    if found != expected:
        detail = f"it has {_called(found)}, the node that sent the task has {_called(expected)}"
        raise errors.DataFolderProblem(path=folder, detail=detail)


def _called(identity: str | None) -> str:
    return "no database" if identity is None else f"the database {identity}"


def _remove_proposals(folder: Path) -> None:
    for path in folder.glob(f"{IDENTITY_NAME}.*"):
        with suppress(OSError):
            path.unlink()
