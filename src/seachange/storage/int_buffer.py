"""A growing array of 64-bit integers whose prefix can be read while it grows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class IntBuffer:
    """Appends in amortised constant time. A view taken before an append stays valid: growing copies to a new buffer."""

    __slots__ = ("_buffer", "_length")

    def __init__(self) -> None:
        self._buffer: NDArray[np.int64] = np.empty(16, dtype=np.int64)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, value: int) -> None:
        if self._length == len(self._buffer):
            self._grow(self._length + 1)
        self._buffer[self._length] = value
        self._length += 1

    def extend(self, values: NDArray[np.int64]) -> None:
        needed = self._length + len(values)
        if needed > len(self._buffer):
            self._grow(needed)
        self._buffer[self._length : needed] = values
        self._length = needed

    def __getitem__(self, position: int) -> int:
        return int(self._buffer[position])

    def __setitem__(self, position: int, value: int) -> None:
        self._buffer[position] = value

    def view(self) -> NDArray[np.int64]:
        return self._buffer[: self._length]

    def _grow(self, needed: int) -> None:
        larger = np.empty(max(needed, 2 * len(self._buffer)), dtype=np.int64)
        larger[: self._length] = self._buffer[: self._length]
        self._buffer = larger
