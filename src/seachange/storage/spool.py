"""Folders that rows are put down in on their way into a table, seen by all machines that write them.

**Invariant:** a folder's name begins with the epoch of its owner. It goes with its owner's work. What an owner who died
has left behind, or a task of Spark's that did not hear in time that it was to end, is removed by whoever comes next.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from seachange.model.ids import Epoch
from seachange.runtime.filesystem import named_errors
from seachange.runtime.permissions import create_folder

_FOLDER = "spool"
# Those that this process uses.
_used: set[Path] = set()


@contextmanager
def spool_folder(data: Path, epoch: Epoch, token: bytes) -> Iterator[Path]:
    """A name for a folder that does not exist yet."""
    parent = data / _FOLDER
    with named_errors("create", str(parent)):
        create_folder(parent)
    folder = parent / f"{epoch}-{token.hex()}"
    _used.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _used.discard(folder)


def sweep_spool(data: Path, others: Callable[[], Collection[Epoch]]) -> None:
    """Removes what is used neither here nor by others that are alive. Those are asked for after the folders: who comes
    in between has a folder that is not seen."""
    found = list((data / _FOLDER).glob("*-*"))
    living = others() if found else ()
    for folder in found:
        epoch = folder.name.partition("-")[0]
        if epoch.isdigit() and int(epoch) not in living and folder not in _used:
            shutil.rmtree(folder, ignore_errors=True)
