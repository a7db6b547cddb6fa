"""Switches: safeguards that a model can be run without. Each is a line of code somewhere, not an entry of a table."""

from __future__ import annotations

from enum import StrEnum


class Switch(StrEnum):
    # Writers that do not check a unique key do not declare their keys either.
    UNDECLARED_KEYS = "undeclared-keys"
    # Commits below min_version are rejected at once: there is no drain, and they are not rebased.
    NO_DRAIN_NO_REBASE = "no-drain-no-refit"
    # Neither epoch nor min_version is checked.
    NO_FENCE = "no-fence"
    # A commit may be one version behind, whatever min_version says.
    DISTANCE_FENCE = "distance-fence"
    # Tombstones do not hide what a generation holds.
    BLIND_INGEST = "blind-ingest"
    # Deltas at or below the base of a generation are read with it.
    NO_LOWER_BOUND = "no-lower-bound"
    # An index whose backfill is under way is compacted.
    COMPACT_WITHOUT_BASE = "compact-without-base"
    # A superseded generation goes when no transaction reads below the sequence that it was compacted up to.
    GC_BY_FOLD = "gc-by-fold"
    # A node plans with any version that it has seen, not with that of the snapshot.
    CACHED_SCHEMA = "cached-schema"
    # A transaction reads the head first and is registered afterwards.
    LATE_REGISTER = "late-register"
    # A rewrite fills columns that a row lacks with NULL.
    NULL_FILL = "null-fill"
    # A worker that lost its job goes on with it.
    ZOMBIE_COORDINATOR = "zombie-coordinator"
    # A rebased commit drops the keys by which its first plan would have conflicted.
    REBASE_FORGETS_KEYS = "refit-forgets-keys"
    # A publication that assumes something that older writers do not know does not fence them.
    NO_PUBLICATION_FENCE = "no-publication-fence"
    # A change assumes that every writer knows the intermediate states that it finds.
    TRUSTED_START = "trusted-start"
    # A row without a value of its new primary key has an entry in the new index, and is looked up there.
    KEYLESS_ENTRIES = "keyless-entries"


Switches = frozenset[Switch]
