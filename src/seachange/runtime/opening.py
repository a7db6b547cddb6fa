"""The choice of the file system of a data folder."""

from __future__ import annotations

import os
from pathlib import Path

from seachange.runtime.filesystem import FileSystem, LocalFileSystem
from seachange.runtime.powercut import PowerCutFileSystem


def open_files(folder: Path) -> FileSystem:
    """A local folder; under test, `SEACHANGE_POWER_CUT=JOURNAL[:SKIPPED_STEP]` selects one that can lose power."""
    power_cut = os.environ.get("SEACHANGE_POWER_CUT")
    if power_cut is None:
        return LocalFileSystem(folder)
    journal, _, skip = power_cut.partition(":")
    return PowerCutFileSystem(folder, Path(journal), frozenset(skip.split(",")) if skip else frozenset())
