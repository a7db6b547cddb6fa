"""Base classes of tasks that read files and write none."""

from __future__ import annotations

from dataclasses import dataclass

from seachange.pipeline.kernels.source import IndexSource


class WritesNothing:
    __slots__ = ()

    @property
    def segments(self) -> int:
        return 0

    @property
    def write_bytes(self) -> int:
        return 0

    @property
    def steps(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class ReadsSource(WritesNothing):
    """Reads at least the rows of `source`."""

    source: IndexSource

    @property
    def read_bytes(self) -> int:
        return self.source.size_bytes
