"""Spool folders: rows on their way into a table, shared by all machines that write them.

**Invariant:** a folder's name begins with the epoch of its owner, and the folder is removed with its owner's work. What
a dead owner, or a Spark task that did not stop in time, has left behind is removed by the next writer.
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
# The folders that this process uses.
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
    """Removes folders that are used neither here nor by other live nodes. The nodes are read after the folders: a node
    that registers in between has a folder that is not in the list."""
    found = list((data / _FOLDER).glob("*-*"))
    living = others() if found else ()
    for folder in found:
        epoch = folder.name.partition("-")[0]
        if epoch.isdigit() and int(epoch) not in living and folder not in _used:
            shutil.rmtree(folder, ignore_errors=True)
