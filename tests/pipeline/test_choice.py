"""The choice of segments that a compaction rewrites."""

import numpy as np
import pytest

from seachange.model.ids import IndexId, LayoutId, SegmentId, Seq
from seachange.model.segments import Segment, SegmentKind
from seachange.pipeline.compaction.deltas import plan_compaction
from seachange.pipeline.compaction.migration import MigrationOptions, MigrationPolicy
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.segment_footer import SEGMENT_ROWS_MAX

OLDER, NEWEST = LayoutId(1), LayoutId(2)
NOTHING = np.array([], dtype=np.int64)


def whole_file(number: int, layout: LayoutId) -> FileSlice:
    """A full segment with keys of its own: only its layout can be a reason to rewrite it."""
    key = number.to_bytes(2)
    segment = Segment(
        SegmentId(number), IndexId(1), layout, SegmentKind.DATA, Seq(0), True, SEGMENT_ROWS_MAX, 1, b"", key, key
    )
    return FileSlice(segment, NOTHING)


def rewritten(older: int, newer: int, *, full: bool = False) -> int:
    """How many of them a compaction rewrites, for a table with this many segments of each layout."""
    layouts = [OLDER] * older + [NEWEST] * newer
    files = tuple(whole_file(number, layout) for number, layout in enumerate(layouts))
    plan = plan_compaction(SnapshotParts(files, ()), full, NEWEST)
    assert sorted(file.segment.id for file in (*plan.kept, *plan.rewritten)) == list(range(len(files)))
    assert all(file.segment.layout_id == OLDER for file in plan.rewritten)
    return len(plan.rewritten)


@pytest.mark.parametrize(("older", "newer", "chosen"), [(1, 9, 1), (2, 18, 2), (1, 8, 0), (5, 5, 0), (0, 10, 0)])
def test_small_remainder_of_an_older_layout_is_migrated(older: int, newer: int, chosen: int) -> None:
    assert rewritten(older, newer) == chosen


def test_migration_is_limited_per_compaction() -> None:
    assert rewritten(8, 80) == 8
    assert rewritten(9, 90) == 0


@pytest.mark.parametrize(
    ("policy", "is_met", "chosen"),
    [
        (MigrationPolicy.OFF, True, 0),
        (MigrationPolicy.ON_UPDATE, True, 0),
        (MigrationPolicy.ON_READ, False, 0),
        (MigrationPolicy.ON_READ, True, 8),
        (MigrationPolicy.BACKGROUND, False, 8),
    ],
)
def test_policy_chooses_as_many_as_one_compaction_takes(policy: MigrationPolicy, is_met: bool, chosen: int) -> None:
    files = tuple(whole_file(number, OLDER) for number in range(20))
    plan = plan_compaction(SnapshotParts(files, ()), False, NEWEST, MigrationOptions(policy), is_met)
    assert len(plan.rewritten) == chosen


def test_full_migrates_all() -> None:
    assert rewritten(9, 1, full=True) == 9
