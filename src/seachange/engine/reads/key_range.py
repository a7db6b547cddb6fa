"""The choice of an index for a set of conditions, and of the ranges of its keys to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seachange.engine.encode.write_plan import EntryPlan
from seachange.model.condition import Above, Among, Below, Condition, IsNull, MeetsCondition, StartsWith
from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Table
from seachange.sql.query.implied import implies
from seachange.storage.keys import AFTER, FIRST_VALUE, NULL, EntryRanges, KeyCodec, text_prefix

# More combinations of the values of IN lists than this are not looked up one by one.
_RANGES_MAX = 256

KeyRange = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class KeyPath:
    """`ranges` of the encoded keys of an index, each [low, high); `columns` are the names of the key columns that they
    are built from, the first `exact` of which equal constants, or are NULL (`has_nulls`)."""

    plan: EntryPlan
    ranges: tuple[KeyRange, ...]
    columns: tuple[str, ...]
    exact: int
    has_nulls: bool = False

    def __str__(self) -> str:
        return f"{self.plan.index.name} by {', '.join(self.columns)}"

    @property
    def is_whole(self) -> bool:
        """Whether all columns of the index's own key equal constants."""
        return self.exact >= len(self.plan.index.key) and not self.has_nulls

    @property
    def rank(self) -> tuple[bool, int, int, bool]:
        """An estimate, higher for fewer rows: a whole unique key first, then the number of columns that equal
        constants."""
        return self.plan.index.unique and self.is_whole, self.exact, len(self.columns), self.plan.is_primary


def choose_path(table: Table, entries: Sequence[EntryPlan], conditions: Sequence[Condition]) -> KeyPath | None:
    among = {c.column: c.values for c in conditions if isinstance(c, Among)}
    among |= {c.column: (None,) for c in conditions if isinstance(c, IsNull)}
    bounds: dict[ColumnId, list[Condition]] = {}
    for condition in conditions:
        if isinstance(condition, Above | Below | StartsWith):
            bounds.setdefault(condition.column, []).append(condition)
    usable = [p for p in entries if p.behaviour.reads and implies(conditions, p.predicate, table)]
    paths = [_path(table, p, among, bounds) for p in usable]
    return max((path for path in paths if path.columns), key=lambda path: path.rank, default=None)


def key_ranges(table: Table, plan: EntryPlan, conditions: Sequence[Condition]) -> EntryRanges | None:
    """The keys that entries of an index have which meet the conditions; None: any."""
    path = choose_path(table, [plan], conditions)
    return EntryRanges(path.ranges) if path is not None else None


def _path(
    table: Table,
    plan: EntryPlan,
    among: Mapping[ColumnId, Sequence[Any]],
    bounds: Mapping[ColumnId, Sequence[Condition]],
) -> KeyPath:
    key = table.entry_key(plan.index)
    prefixes, exact = [b""], 0
    while exact < len(key) and key[exact] in among:
        values = sorted({plan.codec.encode_at(exact, value) for value in among[key[exact]]})
        if len(prefixes) * len(values) > _RANGES_MAX:
            break
        prefixes = [prefix + value for prefix in prefixes for value in values]
        exact += 1
    following = bounds.get(key[exact], ()) if exact < len(key) else ()
    low, high = _bounds(plan.codec, exact, following) if following else (b"", AFTER)
    names = tuple(table.column_by_id[c].name for c in key[: exact + bool(following)])
    has_nulls = any(None in among[c] for c in key[:exact])
    return KeyPath(plan, tuple((prefix + low, prefix + high) for prefix in prefixes), names, exact, has_nulls)


def _bounds(codec: KeyCodec, position: int, conditions: Sequence[Condition]) -> KeyRange:
    """The narrowest range of one column's encoded values with any suffix; NULL meets no condition."""
    low, high = FIRST_VALUE, NULL
    for condition in conditions:
        match condition:
            case Above(_, value, inclusive):
                encoded = codec.encode_at(position, value)
                low = max(low, encoded if inclusive else encoded + AFTER)
            case Below(_, value, inclusive):
                encoded = codec.encode_at(position, value)
                high = min(high, encoded + AFTER if inclusive else encoded)
            case StartsWith(_, value):
                low, high = max(low, text_prefix(value)), min(high, text_prefix(value) + AFTER)
            case Among() | IsNull() | MeetsCondition():
                pass
    return low, high
