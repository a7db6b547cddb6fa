"""The tasks of a backfill: kernels with their inputs, as values that can be sent to another machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seachange.model.segments import Segment
from seachange.pipeline.merge import KeyRange, merge_range, sample_keys, tally_segments
from seachange.pipeline.runs import Run, Tally, Target, build_runs
from seachange.pipeline.source import Source, Unit
from seachange.pipeline.workshop import Workshop
from seachange.storage.segment_footer import SEGMENT_ROWS_MAX


def segments_for(rows: int) -> int:
    return -(-rows // SEGMENT_ROWS_MAX)


@dataclass(frozen=True, slots=True)
class BuildRuns:
    """`source` has no parts but the unit's."""

    source: Source
    unit: Unit
    targets: tuple[Target, ...]

    @property
    def title(self) -> str:
        names = ", ".join(target.index.name for target in self.targets)
        return f"read {self.unit.rows} rows of {self.source.table.name} for {names}"

    @property
    def segments(self) -> int:
        return segments_for(self.unit.rows) * len(self.targets)

    def run(self, workshop: Workshop) -> list[Run]:
        return build_runs(self.source, self.unit, self.targets, workshop)


@dataclass(frozen=True, slots=True)
class SampleKeys:
    target: Target
    group: tuple[Segment, ...]
    step: int

    @property
    def title(self) -> str:
        return f"look at the keys of {self.target.index.name}"

    @property
    def segments(self) -> int:
        return 0

    def run(self, workshop: Workshop) -> list[tuple[Any, ...]]:
        return sample_keys(self.target, self.group, self.step, workshop)


@dataclass(frozen=True, slots=True)
class MergeRange:
    target: Target
    part: KeyRange

    @property
    def title(self) -> str:
        return f"merge about {self.part.rows} entries of {self.target.index.name}"

    @property
    def segments(self) -> int:
        # What a range has is known about.
        return segments_for(self.part.rows) + 1

    def run(self, workshop: Workshop) -> list[Segment]:
        # Whoever wrote the runs has read them back, and what comes of them is compared with the rows in the end.
        workshop.warehouse.remember(self.part.segments)
        return merge_range(self.target, self.part, workshop)


@dataclass(frozen=True, slots=True)
class TallySegments:
    target: Target
    written: tuple[Segment, ...]

    @property
    def title(self) -> str:
        return f"count {sum(s.rows for s in self.written)} entries of {self.target.index.name}"

    @property
    def segments(self) -> int:
        return 0

    def run(self, workshop: Workshop) -> Tally:
        return tally_segments(self.target, self.written, workshop)
