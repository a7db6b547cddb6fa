"""Comparison key by key: point lookups through the image, against the rows of the reference reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from seachange.storage.image import IndexImage
from seachange.verify.anomalies import Anomaly, AnomalyKind
from seachange.verify.port import Snapshot
from seachange.verify.reference import Reference
from seachange.verify.sets import ANOMALIES_MAX
from seachange.verify.subject import CheckedIndex

Row = tuple[Any, ...]


class KeywiseComparison:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def compare_look_ups(self, subject: CheckedIndex, reference: Reference) -> list[Anomaly]:
        """An index against itself: each key of the reference must be found, or not found, by a lookup."""
        found: list[Anomaly] = []
        for row in reference.live.values():
            key = row[: len(subject.key)]
            self._expect(found, subject, key, row, AnomalyKind.LOOKUP_DIFFERS)
        for key in reference.gone.values():
            if self._get(subject, key) is not None and len(found) < ANOMALIES_MAX:
                found.append(subject.anomaly(AnomalyKind.LOOKUP_DIFFERS, key, "a row that was deleted"))
        return found

    def compare_rows_with_entries(self, primary: CheckedIndex, rows: Reference, subject: CheckedIndex) -> list[Anomaly]:
        """From rows to entries: each row's entry is found under its key, and it is the only one under its unique
        key."""
        if not subject.complete:
            return []
        found: list[Anomaly] = []
        for entry in self._entries(primary, rows, subject):
            self._expect(found, subject, entry[: len(subject.key)], entry, AnomalyKind.MISSING_ENTRY)
            self._expect_alone(found, subject, entry)
        return found

    def compare_entries_with_rows(
        self, subject: CheckedIndex, entries: Reference, primary: CheckedIndex
    ) -> list[Anomaly]:
        """From entries to rows: each entry's row is found under its primary key, with the entry's values."""
        if not subject.complete or not set(primary.key) <= set(subject.columns):
            # With a primary key under construction, entries lead to rows by that key; sets of them are compared all the
            # same.
            return []
        positions = [subject.columns.index(column) for column in primary.key]
        entries_held = list(entries.live.values())
        rows = [self._get(primary, tuple([entry[position] for position in positions])) for entry in entries_held]
        # All at once: an expression may be evaluated by a query, which costs as much for one row as for thousands.
        derived = iter(self._derive(primary, [row for row in rows if row is not None], subject))
        found: list[Anomaly] = []
        for entry, row in zip(entries_held, rows, strict=True):
            expected = None if row is None else next(derived)
            same = expected is not None and all(map(_same, entry, expected))
            if not same and len(found) < ANOMALIES_MAX:
                found.append(
                    subject.anomaly(AnomalyKind.ORPHAN_ENTRY, entry[: len(subject.key)], "looked up key by key")
                )
        return found

    def _entries(self, primary: CheckedIndex, rows: Reference, subject: CheckedIndex) -> Iterator[Row]:
        """The entries that the rows require in an index."""
        return (entry for entry in self._derive(primary, list(rows.live.values()), subject) if entry is not None)

    def _derive(self, primary: CheckedIndex, rows: Sequence[Row], subject: CheckedIndex) -> list[Row | None]:
        """The entry of each row, in the form in which single rows are written; None if it has none."""
        table, index = primary.table, subject.index
        entries = self._snapshot.entries(table, index, primary.whole_rows(rows))
        known = {column_id: place for place, (column_id, _) in enumerate(table.stored_columns(index, table.layout))}
        order = [known[column.id] for column in subject.columns]
        return [None if entry is None else tuple([entry[place] for place in order]) for entry in entries]

    def _expect(self, found: list[Anomaly], subject: CheckedIndex, key: Row, row: Row, kind: AnomalyKind) -> None:
        actual = self._get(subject, key)
        if actual is None:
            detail = "nothing" if kind is AnomalyKind.LOOKUP_DIFFERS else "looked up key by key"
        elif not all(map(_same, actual, row)):
            detail = f"{actual} instead of {row}"
        else:
            return
        if len(found) < ANOMALIES_MAX:
            found.append(subject.anomaly(kind, key, detail))

    def _expect_alone(self, found: list[Anomaly], subject: CheckedIndex, entry: Row) -> None:
        width = len(subject.unique)
        if not width or (None in entry[:width] and subject.index.nulls_distinct):
            return
        holders = self._image(subject).find_unique(entry[:width], self._snapshot.snapshot)
        if len(holders) != 1 and len(found) < ANOMALIES_MAX:
            detail = f"{len(holders)} entries under its unique key"
            found.append(subject.anomaly(AnomalyKind.LOOKUP_DIFFERS, entry[: len(subject.key)], detail))

    def _image(self, subject: CheckedIndex) -> IndexImage:
        return self._snapshot.epoch.image(subject.table, subject.index, self._snapshot.snapshot)

    def _get(self, subject: CheckedIndex, key: Row) -> Row | None:
        found = self._image(subject).get(key, self._snapshot.snapshot)
        return None if found is None else subject.as_version(found.layout_id, found.row)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)
