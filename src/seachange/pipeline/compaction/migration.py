"""When rows of older layouts are rewritten in the newest one: the storage parameters `seachange.migrate` and
`seachange.migrate_threshold` of a table.

**Invariant:** a migration is a compaction: it changes where rows are, never what they are, and one that loses against
another only wastes its work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from seachange.model.schema.descriptor import Table
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.segment_footer import SEGMENT_ROWS_MAX

# The maximum number of existing rows that one compaction rewrites, so that its time is bounded.
REWRITE_ROWS_MAX: Final = 8 * SEGMENT_ROWS_MAX
_PERCENT: Final = 100


class MigrationPolicy(StrEnum):
    """OFF: by VACUUM FULL only. ON_UPDATE: what updates have left of older layouts. ON_READ: the same, and all of them
    once a scan has met one. BACKGROUND: all of them."""

    OFF = "off"
    ON_UPDATE = "on_update"
    ON_READ = "on_read"
    BACKGROUND = "background"


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """Rows of older layouts are left over when they are at most `share_max` of all rows: most of the others have been
    updated by then, which migrates them for free."""

    policy: MigrationPolicy = MigrationPolicy.ON_UPDATE
    share_max: float = 0.1


DEFAULT_MIGRATION: Final = MigrationOptions()


def read_migration(table: Table) -> MigrationOptions:
    if not table.parameters:
        return DEFAULT_MIGRATION
    parameters = dict(table.parameters)
    policy = MigrationPolicy(parameters.get("seachange.migrate", DEFAULT_MIGRATION.policy.value))
    percent = parameters.get("seachange.migrate_threshold")
    share = DEFAULT_MIGRATION.share_max if percent is None else int(percent) / _PERCENT
    return MigrationOptions(policy, share)


def live_rows(file: FileSlice) -> int:
    return file.segment.rows - len(file.superseded)


def choose_older(
    older: Sequence[FileSlice], files: Iterable[FileSlice], options: MigrationOptions, is_met: bool
) -> list[FileSlice]:
    """Those of the files of older layouts that are rewritten now. `is_met`: a scan has met some of them."""
    if options.policy is MigrationPolicy.OFF:
        return []
    rows = sum(map(live_rows, older))
    if rows <= min(options.share_max * sum(map(live_rows, files)), REWRITE_ROWS_MAX):
        return list(older)
    if options.policy is MigrationPolicy.BACKGROUND or (options.policy is MigrationPolicy.ON_READ and is_met):
        return _first(older)
    return []


def migrates_now(table: Table, parts: SnapshotParts, is_met: bool) -> bool:
    """Whether there are files of older layouts that are to be rewritten."""
    older = [f for f in parts.files if f.segment.layout_id != table.layout.id and live_rows(f)]
    return bool(choose_older(older, parts.files, read_migration(table), is_met))


def notes_reads(table: Table) -> bool:
    """Whether scans say that they have met older layouts."""
    return bool(table.parameters) and read_migration(table).policy is MigrationPolicy.ON_READ


def _first(older: Sequence[FileSlice]) -> list[FileSlice]:
    """As many as one compaction rewrites; at least one."""
    chosen: list[FileSlice] = []
    rows = 0
    for file in sorted(older, key=lambda file: file.segment.key_min):
        if chosen and rows + live_rows(file) > REWRITE_ROWS_MAX:
            break
        chosen.append(file)
        rows += live_rows(file)
    return chosen
