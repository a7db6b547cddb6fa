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
    # A rewrite of rows that was begun without a column goes on while the column gets its values back.
    RESTORE_BESIDE_REWRITE = "restore-beside-rewrite"
    # A commit that is rebased onto a version with a column that comes back has no value of it.
    REBASE_FORGETS_VALUES = "rebase-forgets-values"
    # A table comes back without the layouts in which its rows are stored; or its indexes without their entries.
    FORGOTTEN_LAYOUTS = "forgotten-layouts"
    COLLECTED_TABLE = "collected-table"

    # The next are about two changes of one table side by side.
    # Changes do not wait for each other, whatever the table of exclusions says.
    NO_EXCLUSION = "no-exclusion"
    # The second change is planned as if the first had succeeded.
    PLANNED_FROM_OTHER = "planned-from-other"
    # A publication is made of the version that the change was planned from, without what the other has published.
    FORGOTTEN_PUBLICATION = "forgotten-publication"
    # Both jobs read the rows as of the first raise.
    SHARED_SNAPSHOT = "shared-snapshot"

    # The rest is about transaction blocks that add a constraint.
    # The backfill of a block holds the rows of its buffer.
    BUFFER_IN_GENERATION = "buffer-in-generation"
    # The validation reads the rows at the snapshot of the block.
    VALIDATE_AT_START = "validate-at-snapshot"
    # The block continues while its DDL statement is at work.
    BACKGROUND = "background-statement"
    # The block's own rows are checked at its snapshot when it commits; or not at all.
    OWN_KEYS_AT_START = "own-keys-at-snapshot"
    OWN_KEYS_UNCHECKED = "own-keys-unchecked"
    # The COMMIT of the block ignores recorded violations.
    IGNORED_RECORD = "ignored-record"
    # A COMMIT that has looked again at recorded violations ignores what is recorded after that.
    RECORD_AFTER_LOOK = "record-after-look-ignored"
    # A violator does not look whether the constraint was committed; or looks before it has the sequencer lock.
    BLIND_RECORD = "blind-record"
    EARLY_LOOK = "record-outside-lock"
    # Of two writers of a key of an uncommitted index, the second records nothing; or is refused.
    SILENT_KEYS = "silent-keys"
    HARD_KEYS = "hard-keys"
    # The same of a child and its parent: the second writer records nothing. A block does not compare its own rows.
    SILENT_REFERENCES = "silent-references"
    OWN_REFERENCES_UNCHECKED = "own-references-unchecked"
    # A rebased commit is not checked by the newest version.
    UNCHECKED_REBASE = "unchecked-rebase"
    # The block's own rows have no entries in its new index; or remove those of the rows at its first snapshot.
    OWN_ENTRIES_MISSING = "own-rows-not-rebased"
    OLD_IMAGE = "old-image-at-snapshot"
    # The block reads its new index at a snapshot below the index's base.
    INDEX_AT_START = "index-at-snapshot"
    # The COMMIT of the block carries the version that its transaction began with.
    SELF_FENCE = "fence-itself"
    # A drain waits for the transaction that drains.
    NO_EXEMPTION = "no-exemption"
    # The states of a dead owner stay; those of a statement that was rolled back to a savepoint stay.
    LEFTOVERS = "leftovers"
    SAVEPOINT_LEFTOVERS = "leftovers-of-savepoint"
    # A COMMIT that arrives after another node has reverted the change is accepted.
    LATE_COMMIT = "late-commit"


Switches = frozenset[Switch]
