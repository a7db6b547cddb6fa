"""Identifiers as distinct types, so that one kind cannot pass for another. Ids are never reused."""

from __future__ import annotations

from typing import NewType

DescriptorId = NewType("DescriptorId", int)
TableId = DescriptorId
ColumnId = NewType("ColumnId", int)
IndexId = NewType("IndexId", int)
LayoutId = NewType("LayoutId", int)
# Within a table.
ConstraintId = NewType("ConstraintId", int)
SegmentId = NewType("SegmentId", int)
GenerationId = NewType("GenerationId", int)

# A node's incarnation: chosen by the catalog at registration, larger than every earlier one.
Epoch = NewType("Epoch", int)
# A position of the commit log. Sequence order is visibility order; 0 is before the first commit.
Seq = NewType("Seq", int)
# Sixteen bytes that a client chooses for a commit, to look up its outcome.
CommitId = NewType("CommitId", bytes)
# A signed 64-bit hash of an index entry or of a unique key, in the conflict sets of commits.
KeyHash = NewType("KeyHash", int)
