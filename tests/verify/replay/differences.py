"""Where model and engine differ on purpose. Whatever is not said here is the same in both."""

from dataclasses import dataclass

from seachange.model.change import elements
from seachange.verify.model.explore import Refusal

# What descriptors do not show: data is deleted when the collector finds that no transaction can read it, a parent's end
# of a foreign key follows from the child's, and the owner of a dropped table does not matter.
UNTOLD = (elements.IndexData, elements.ForeignKeyParent, elements.Owner)

# By which errors the engine refuses what the model refuses. Where several reasons hold at once, the engine may name
# another one first: what was written since a snapshot may be a key that is taken, or a parent that is gone.
SQLSTATES: dict[Refusal, frozenset[str]] = {
    Refusal.CONFLICT: frozenset({"40001", "23505", "23503"}),
    Refusal.MOVED: frozenset({"40001", "23505"}),
    Refusal.GONE: frozenset({"40001", "42P01", "42703"}),
    Refusal.BROKEN: frozenset({"23514", "23502", "22P02", "40001"}),
    Refusal.TAKEN: frozenset({"23505", "40001"}),
    Refusal.REFERENCE: frozenset({"23503", "40001"}),
}
# A commit under an epoch that has ended.
STALE = frozenset({"40001", "57P01", "72000"})


@dataclass(frozen=True, slots=True)
class Difference:
    name: str
    why: str


TABLE_GONE = Difference(
    "refused: the table is gone",
    "the model lets writers of a dropped table commit invisible rows until a raise; the engine refuses them (40001) "
    "from the drop on",
)
NO_RAISE = Difference(
    "no raise before a collection",
    "the model raises min_version before it collects; the engine's collector waits until no one is below instead, so "
    "older writers keep to their version",
)
NOT_BEGUN = Difference(
    "stopped before its first commit",
    "a statement that is stopped before it has published anything has no job yet; sent again, it is another statement",
)
NOTHING_TO_FOLD = Difference(
    "nothing to fold",
    "the model rewrites rows that are as they would be written; the engine leaves such segments alone",
)
INDEX_GONE = Difference(
    "folded in vain",
    "the model forgets an index at once that is not read any more; the engine still swaps in what a compaction has "
    "made of it, and collects that with the index",
)
DIFFERENCES = (TABLE_GONE, NO_RAISE, NOT_BEGUN, NOTHING_TO_FOLD, INDEX_GONE)
