"""Reasons for which a model rejects a write. The engine rejects the same writes; tests/verify/replay lists the
errors."""

from __future__ import annotations

from enum import StrEnum


class Refusal(StrEnum):
    CONFLICT = "a row or a key that it writes, or relies on, was written since its snapshot"
    MOVED = "it is derived again, and does not find its row as it was"
    GONE = "the table or the column that it writes to is gone"
    BROKEN = "the row breaks a rule"
    TAKEN = "another row has the key"
    REFERENCE = "a child would have no parent"
