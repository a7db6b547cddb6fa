"""The footer of a segment file, and the sizes of its parts.

The footer names the segment, so that a swapped file is recognised, and has the first entry key of every row group, so
that a lookup goes straight to one row group whatever the key's types are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from seachange.model.ids import IndexId, LayoutId, SegmentId
from seachange.model.segments import Segment
from seachange.runtime.filesystem import StoredFile

# Small enough that a point lookup decodes little, large enough that scans lose little: a sum over one narrow column
# takes 1.2 times as long with 30 k rows as with 120 k, 1.1 times with 40 k.
ROW_GROUP_ROWS = 40_960
# A lookup in a secondary index decodes the key columns of a whole row group, usually text, and scans of one are rare: a
# lookup takes a quarter of the time, a scan 1.2 times as long.
SECONDARY_ROW_GROUP_ROWS = 8_192
# A lookup decodes one page of each column that is not part of the key. Scans are not affected.
PAGE_ROWS = 4_096
SEGMENT_ROWS_MAX = 12 * ROW_GROUP_ROWS
# A segment is held in memory while it is written; wide rows make shorter segments.
SEGMENT_BYTES_MAX = 128 << 20

FOOTER_KEY = b"seachange.segment"


def segment_name(segment_id: SegmentId) -> str:
    return f"{segment_id:016x}.parquet"


def stored_segment(segment: Segment) -> StoredFile:
    return StoredFile(segment_name(segment.id), segment.size_bytes, segment.checksum)


@dataclass(frozen=True, slots=True)
class SegmentFooter:
    """`firsts` are the encoded first keys of the row groups."""

    segment_id: SegmentId
    index_id: IndexId
    layout_id: LayoutId
    firsts: tuple[bytes, ...]

    def encode(self) -> dict[bytes, bytes]:
        body = [self.segment_id, self.index_id, self.layout_id, [first.hex() for first in self.firsts]]
        return {FOOTER_KEY: json.dumps(body, separators=(",", ":")).encode()}


def decode_footer(metadata: Mapping[bytes, bytes] | None) -> SegmentFooter | None:
    """None if the file has no segment footer."""
    text = (metadata or {}).get(FOOTER_KEY)
    if text is None:
        return None
    segment_id, index_id, layout_id, firsts = json.loads(text)
    return SegmentFooter(segment_id, index_id, layout_id, tuple(bytes.fromhex(first) for first in firsts))
