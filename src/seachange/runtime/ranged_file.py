"""A large object of which only the parts that are read are transferred, as a file for Arrow.

The reader names the parts (the row groups) when it has read the footer: a read inside a part transfers the whole part
with one request. A part is kept as long as there is room, for the reads that follow.
"""

from __future__ import annotations

import io
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence

# Has the footer of a segment with many columns. Asked for with the first request.
_TAIL_BYTES = 256 << 10

Part = tuple[int, int]


class RangeCache:
    """The parts of objects that were read last, up to `bytes_max`. Thread-safe."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._parts: OrderedDict[tuple[str, Part], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, part: Part) -> bytes | None:
        with self._lock:
            found = self._parts.get((name, part))
            if found is not None:
                self._parts.move_to_end((name, part))
            return found

    def put(self, name: str, part: Part, content: bytes) -> None:
        with self._lock:
            if (name, part) not in self._parts:
                self._parts[name, part] = content
                self._bytes += len(content)
            # The newest part stays: its reader needs it now.
            while self._bytes > self._bytes_max and len(self._parts) > 1:
                self._bytes -= len(self._parts.popitem(last=False)[1])

    def forget(self, name: str) -> None:
        with self._lock:
            for key in [key for key in self._parts if key[0] == name]:
                self._bytes -= len(self._parts.pop(key))


class RangedFile:
    """Read by one thread at a time, as Arrow's PythonFile does. `fetch` gets the bytes from `start` to `end`;
    `give_up` is called when they are damaged, so that the file is fetched and verified as a whole next time."""

    closed = False

    def __init__(
        self,
        name: str,
        size: int,
        cache: RangeCache,
        fetch: Callable[[int, int], bytes],
        give_up: Callable[[], None],
    ) -> None:
        self._name = name
        self._size = size
        self._fetch = fetch
        self.give_up = give_up
        self._cache = cache
        self._position = 0
        self._parts: tuple[Part, ...] = ()
        self._tail = (max(size - _TAIL_BYTES, 0), size)

    def transfer(self, part: Part) -> bytes:
        """For a reader that keeps the content itself."""
        return self._fetch(*part)

    def set_parts(self, parts: Sequence[Part]) -> None:
        """Parts in ascending order, which do not overlap."""
        self._parts = tuple(parts)

    def read(self, count: int = -1) -> bytes:
        end = self._size if count < 0 else min(self._position + count, self._size)
        if end <= self._position:
            return b""
        start, self._position = self._position, end
        part = self._part(start, end)
        content = self._cache.get(self._name, part)
        if content is None:
            content = self._fetch(*part)
            self._cache.put(self._name, part, content)
        return content[start - part[0] : end - part[0]]

    def _part(self, start: int, end: int) -> Part:
        if start >= self._tail[0]:
            return self._tail
        at = bisect_right(self._parts, (start, self._size)) - 1
        if at >= 0 and end <= self._parts[at][1]:
            return self._parts[at]
        return start, end

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = origin + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass
