"""A spill file for rows that are kept for later and may exceed memory.

**Invariant:** the file has no name, so that it disappears with its last reader, or with the process.
"""

from __future__ import annotations

import pickle
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, overload
from weakref import finalize

from seachange import errors
from seachange.runtime.filesystem import named_errors
from seachange.runtime.permissions import create_folder

Row = tuple[Any, ...]
_WHAT = "the rows of a cursor"


class Spool:
    """Written first, then read. For one session: not thread-safe."""

    def __init__(self, folder: Path, bytes_max: int = 0) -> None:
        """`bytes_max` 0 means no limit."""
        self.count = 0
        self._folder = folder
        self._bytes_max = bytes_max
        self._file: IO[bytes] | None = None
        self._bytes = 0
        # The number of the first row of each part, and its offset.
        self._firsts: list[int] = []
        self._offsets: list[int] = []
        # The part that was read last: sequential readers need it again.
        self._last: tuple[int, Sequence[Row]] = (-1, ())

    def add(self, rows: Sequence[Row]) -> None:
        data = pickle.dumps(rows, pickle.HIGHEST_PROTOCOL)
        if 0 < self._bytes_max < self._bytes + len(data):
            raise errors.OutOfTemporarySpace(detail=f"{_WHAT} take more than {self._bytes_max >> 20} MB")
        with named_errors("write", _WHAT):
            if self._file is None:
                create_folder(self._folder)
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed with the last who reads it
                finalize(self, self._file.close)
            self._file.write(data)
        self._firsts.append(self.count)
        self._offsets.append(self._bytes)
        self._bytes += len(data)
        self.count += len(rows)

    def rows(self) -> SpooledRows:
        return SpooledRows(self, 0, self.count)

    def part(self, row: int) -> tuple[int, Sequence[Row]]:
        """The part that has a row, and the number of its first row."""
        place = bisect_right(self._firsts, row) - 1
        if self._last[0] != place:
            assert self._file is not None
            with named_errors("read", _WHAT):
                self._file.seek(self._offsets[place])
                # Written by this process, to a file that no other can write to.
                self._last = place, pickle.load(self._file)
        return self._firsts[place], self._last[1]


@dataclass(frozen=True, slots=True)
class SpooledRows(Sequence[Row]):
    """A slice of the rows, read on demand."""

    spool: Spool
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[Row]:
        at = self.start
        while at < self.stop:
            first, rows = self.spool.part(at)
            found = rows[at - first : self.stop - first]
            yield from found
            at += len(found)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            forth = SpooledRows(self.spool, self.start + start, self.start + max(start, stop))
            return forth if step == 1 else list(self)[place]
        number = range(self.start, self.stop)[place]
        first, rows = self.spool.part(number)
        return rows[number - first]
