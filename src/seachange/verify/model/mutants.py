"""Mutants: the protocol with one safeguard removed, to show that it is needed.

A mutant edits the planner's lifecycles where the safeguard is an entry of theirs, and otherwise names a switch of the
models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from seachange.model.change import elements
from seachange.model.change.elements import Element
from seachange.model.change.targets import Status
from seachange.planner.elements.rule import COLUMN_PARTS, INDEXES, Kinds
from seachange.planner.lifecycles.lifecycle import Lifecycle, LifecycleStep
from seachange.verify.model.switches import Switch, Switches


class Effect(StrEnum):
    LEAVE_OUT = "the status is left out"
    UNFENCE = "the step to it waits for no transaction"
    REVERTIBLE = "the step to it may come before work that can fail"


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of the lifecycles of these kinds."""

    kinds: Kinds
    status: Status
    effect: Effect


@dataclass(frozen=True, slots=True)
class Mutant:
    """`without` is the removed safeguard, and `shows` the scenario in which its absence does harm."""

    name: str
    without: str
    shows: str
    edits: tuple[Edit, ...] = ()
    switch: Switch | None = None


_KEYS: Kinds = (elements.ForeignKeyElement, elements.ForeignKeyParent)
_ENFORCED: Kinds = (elements.UniqueIndex, elements.CheckConstraint, elements.ColumnNotNull)
_COLUMN: Kinds = (elements.ColumnElement, elements.ColumnNotNull, *COLUMN_PARTS)
_STORED: Kinds = (elements.ColumnElement, elements.SecondaryIndex, elements.UniqueIndex)

_INDEX, _UNIQUE = "create an index", "create a unique index"
_COLUMN_ADDED = "add a column, change its default, drop it"

_EDITED = (
    Mutant(
        "skip-write-only",
        "an index is maintained by everybody before it is built",
        _INDEX,
        (Edit(INDEXES, Status.WRITE_ONLY, Effect.LEAVE_OUT),),
    ),
    Mutant(
        "skip-enforced",
        "a constraint is checked by everybody before the rows are looked at",
        _UNIQUE,
        (Edit(_ENFORCED, Status.ENFORCED, Effect.LEAVE_OUT),),
    ),
    Mutant(
        "skip-key-share",
        "children leave the keys of their parents before anybody relies on them",
        "add a foreign key",
        (Edit(_KEYS, Status.WRITE_ONLY, Effect.LEAVE_OUT),),
    ),
    Mutant(
        "early-backfill",
        "an index is built from the rows as of a raise",
        _INDEX,
        (Edit(INDEXES, Status.BACKFILLED, Effect.UNFENCE),),
    ),
    Mutant(
        "gc-before-fence",
        "data is deleted when no writer can add to it any more",
        _INDEX,
        (Edit((elements.IndexData,), Status.ABSENT, Effect.UNFENCE),),
    ),
    Mutant(
        "early-drop",
        "a drop is published when nothing is left that can fail",
        "drop a column beside a change that can fail",
        (Edit(_COLUMN, Status.ABSENT, Effect.REVERTIBLE),),
    ),
)
_SWITCHED: tuple[tuple[Switch, str, str], ...] = (
    (Switch.UNDECLARED_KEYS, "writers of a unique index leave their keys before they check", _UNIQUE),
    (Switch.NO_DRAIN_NO_REBASE, "a commit below min_version is waited for, or derived again", _INDEX),
    (Switch.NO_FENCE, "a commit of a stale epoch or below min_version is not accepted as it is", _INDEX),
    (Switch.DISTANCE_FENCE, "the fence is min_version, not the distance from the newest version", _INDEX),
    (Switch.BLIND_INGEST, "a tombstone hides what the generation below it holds", _INDEX),
    (
        Switch.COMPACT_WITHOUT_BASE,
        "an index without a generation is not compacted",
        "create an index, two rows, compaction",
    ),
    (Switch.GC_BY_FOLD, "a superseded generation goes when no reader is below the swap", "create an index, compaction"),
    (Switch.CACHED_SCHEMA, "a transaction plans with the schema of its snapshot", _COLUMN_ADDED),
    (Switch.LATE_REGISTER, "a transaction is registered before it reads the head", "drop an index"),
    (Switch.NULL_FILL, "a rewrite fills a missing column with its frozen value", _COLUMN_ADDED),
    (Switch.ZOMBIE_COORDINATOR, "a worker that lost its job is refused", "create an index, workers are stopped"),
    (Switch.REBASE_FORGETS_KEYS, "a commit that is derived again keeps the keys of its first plan", "truncate a table"),
    (
        Switch.NO_PUBLICATION_FENCE,
        "a publication fences writers who rely on what it replaces",
        "change the primary key that children refer to",
    ),
    (
        Switch.TRUSTED_START,
        "what a change finds half way is drained and fenced before it is relied on",
        "add a CHECK, validate it later",
    ),
    (
        Switch.KEYLESS_ENTRIES,
        "a row without a value of its new primary key is not in the new index, and looked for in the old one",
        "convert the primary key",
    ),
    (Switch.NO_LOWER_BOUND, "deltas at or below the base of a generation are not read", _INDEX),
)

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for mutant in (
        *_EDITED,
        *(Mutant(switch.value, without, shows, switch=switch) for switch, without, shows in _SWITCHED),
    )
}
# Pairs of safeguards of which either is enough in the scenario: it fails only without both.
PAIRS: dict[tuple[str, ...], str] = {(Switch.CACHED_SCHEMA.value, Switch.NO_LOWER_BOUND.value): _INDEX}
SPARE = frozenset({Switch.NO_LOWER_BOUND.value})

_INDEXES_BESIDE = "two indexes side by side"
# Of two changes of one table.
BESIDE_MUTANTS: dict[str, Mutant] = {
    switch.value: Mutant(switch.value, without, shows, switch=switch)
    for switch, without, shows in (
        (
            Switch.NO_EXCLUSION,
            "changes that are not independent wait for each other",
            "TRUNCATE during CREATE INDEX",
        ),
        (
            Switch.PLANNED_FROM_OTHER,
            "nothing is planned from what another job adds",
            "a unique index and NOT NULL beside a CHECK that says so",
        ),
        (Switch.FORGOTTEN_PUBLICATION, "a publication keeps what the other job has published", _INDEXES_BESIDE),
        (Switch.SHARED_SNAPSHOT, "a job reads the rows as of its own raise", _INDEXES_BESIDE),
    )
}

_RESTORED = "bring a column back"
_RETURNS: tuple[tuple[Switch, str, str], ...] = (
    (Switch.REBASE_FORGETS_VALUES, "a rebased commit keeps the value of a column that comes back", _RESTORED),
    (Switch.RESTORE_BESIDE_REWRITE, "no rewrite is under way while a column gets its values back", _RESTORED),
    (Switch.FORGOTTEN_LAYOUTS, "a table comes back with the layouts of its rows", "bring a table back: a column"),
    (Switch.COLLECTED_TABLE, "the entries of a dropped table are kept while it can come back", "bring a table back"),
)
# Of what REVERT CHANGE and UNDROP bring back.
RETURN_MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for mutant in (
        Mutant(
            "early-restoration",
            "rows get values back when every writer keeps them",
            _RESTORED,
            (Edit((elements.RestoredColumn,), Status.BACKFILLED, Effect.UNFENCE),),
        ),
        *(Mutant(switch.value, without, shows, switch=switch) for switch, without, shows in _RETURNS),
    )
}

_CHECK_BLOCK = "add a CHECK in a block"
_UNIQUE_BLOCK = "create a unique index in a block"
_MOVING_BLOCK = "create a unique index in a block, READ COMMITTED"
_TWO_WRITERS = "create a unique index in a block, two other writers"
_REFERRING_BLOCK = "add a foreign key in a block"
_REFERRING_WRITERS = "add a foreign key in a block, two other writers"
_OWN_PARENT = "add a foreign key to a table of the same block"
_SAVED_BLOCK = "add a CHECK in a block with a savepoint"
_BLOCKS: tuple[tuple[Switch, str, str], ...] = (
    (Switch.BUFFER_IN_GENERATION, "a generation holds committed rows only", _UNIQUE_BLOCK),
    (Switch.VALIDATE_AT_START, "rows are validated as of the raise, not at the block's snapshot", _UNIQUE_BLOCK),
    (Switch.BACKGROUND, "a block continues when its DDL statement is done", _SAVED_BLOCK),
    (Switch.OWN_KEYS_AT_START, "the block's own rows are checked at the head when it commits", _UNIQUE_BLOCK),
    (Switch.OWN_KEYS_UNCHECKED, "the block's own rows are checked when it commits", _UNIQUE_BLOCK),
    (Switch.IGNORED_RECORD, "a block whose constraint was violated does not commit", _CHECK_BLOCK),
    (Switch.RECORD_AFTER_LOOK, "violations recorded after a COMMIT has looked again fail it, too", _OWN_PARENT),
    (Switch.BLIND_RECORD, "a violator commits only while the constraint is not committed", _CHECK_BLOCK),
    (Switch.EARLY_LOOK, "a violation is recorded under the sequencer lock", _CHECK_BLOCK),
    (Switch.SILENT_KEYS, "the second writer of a key of an uncommitted index records it", _TWO_WRITERS),
    (Switch.HARD_KEYS, "writers of a key of an uncommitted index do not refuse each other", _TWO_WRITERS),
    (Switch.SILENT_REFERENCES, "of a child and its parent's delete the second is recorded", _REFERRING_WRITERS),
    (Switch.OWN_REFERENCES_UNCHECKED, "a block's own references are compared when it commits", _REFERRING_BLOCK),
    (Switch.UNCHECKED_REBASE, "a rebased commit is checked by the newest version", _UNIQUE_BLOCK),
    (Switch.OWN_ENTRIES_MISSING, "the block's own rows have entries in its new index", _UNIQUE_BLOCK),
    (Switch.OLD_IMAGE, "own rows replace the entries of the rows that they were computed from", _MOVING_BLOCK),
    (Switch.INDEX_AT_START, "a block does not read its new index at an older snapshot", _UNIQUE_BLOCK),
    (Switch.SELF_FENCE, "the COMMIT of a block carries the version that it publishes", _UNIQUE_BLOCK),
    (Switch.NO_EXEMPTION, "a block is exempt from its own drains", _UNIQUE_BLOCK),
    (Switch.LEFTOVERS, "the states of a dead owner are reverted", _UNIQUE_BLOCK),
    (Switch.SAVEPOINT_LEFTOVERS, "what a ROLLBACK TO SAVEPOINT undoes is reverted", _SAVED_BLOCK),
    (Switch.LATE_COMMIT, "a COMMIT after the change was reverted is refused", _UNIQUE_BLOCK),
)
# Of transaction blocks that add a constraint.
BLOCK_MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for mutant in (
        Mutant(
            "skip-validating",
            "a constraint of a block is checked by every writer before the rows are looked at",
            _UNIQUE_BLOCK,
            (Edit(_ENFORCED, Status.VALIDATING, Effect.LEAVE_OUT),),
        ),
        Mutant(
            "early-validation",
            "rows are validated when every writer records violations",
            _CHECK_BLOCK,
            (Edit(_ENFORCED, Status.PROVEN, Effect.UNFENCE),),
        ),
        Mutant(
            "skip-key-share-in-block",
            "children leave the keys of their parents before a block's foreign key is checked",
            _REFERRING_WRITERS,
            (Edit(_KEYS, Status.WRITE_ONLY, Effect.LEAVE_OUT),),
        ),
        *(Mutant(switch.value, without, shows, switch=switch) for switch, without, shows in _BLOCKS),
    )
}

CLASSIC_MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for mutant in (
        Mutant(
            "skip-delete-only",
            "entries are removed by everybody before anybody writes one",
            _INDEX,
            (Edit(_STORED, Status.DELETE_ONLY, Effect.LEAVE_OUT),),
        ),
        Mutant(
            "skip-write-only",
            "an element is maintained by everybody before it is filled",
            _INDEX,
            (Edit(_STORED, Status.WRITE_ONLY, Effect.LEAVE_OUT),),
        ),
        Mutant(
            "skip-enforced",
            "a constraint is checked by everybody before the rows are looked at",
            _UNIQUE,
            (Edit(_ENFORCED, Status.ENFORCED, Effect.LEAVE_OUT),),
        ),
        Mutant(
            Switch.NO_DRAIN_NO_REBASE.value,
            "there are never more than two versions at a time",
            _INDEX,
            switch=Switch.NO_DRAIN_NO_REBASE,
        ),
    )
}


def switches_of(mutants: Iterable[Mutant]) -> Switches:
    return frozenset(mutant.switch for mutant in mutants if mutant.switch is not None)


def edit_lifecycles(
    lifecycles: Mapping[type[Element], Lifecycle], mutants: Iterable[Mutant]
) -> dict[type[Element], Lifecycle]:
    edited = dict(lifecycles)
    for mutant in mutants:
        for edit in mutant.edits:
            for kind in edit.kinds:
                edited[kind] = _edited(edited[kind], edit)
    return edited


def _edited(lifecycle: Lifecycle, edit: Edit) -> Lifecycle:
    return Lifecycle(add=_steps(lifecycle.add, edit), drop=_steps(lifecycle.drop, edit))


def _steps(steps: tuple[LifecycleStep, ...], edit: Edit) -> tuple[LifecycleStep, ...]:
    match edit.effect:
        case Effect.LEAVE_OUT:
            return tuple(step for step in steps if step.to is not edit.status)
        case Effect.UNFENCE:
            return tuple(replace(step, fenced=False) if step.to is edit.status else step for step in steps)
        case Effect.REVERTIBLE:
            return tuple(replace(step, revertible=True) if step.to is edit.status else step for step in steps)


def shown_by(mutants: tuple[Mutant, ...]) -> str | None:
    """The scenario that is explored first without these safeguards."""
    names = tuple(mutant.name for mutant in mutants)
    return PAIRS.get(names) or next((mutant.shows for mutant in mutants), None)
