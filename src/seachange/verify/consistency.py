"""The consistency checker: compares the files and the catalog, at one snapshot, with the schema.

Every secondary index is compared with the rows of its table by two independent methods: as sets, by the read plan that
statements use; and key by key, by lookups, over rows that a reference reader derives from the segments alone. The
reference also proves the read plan itself. Constraints of every kind are verified by the same two methods. Both work in
bounded memory. The first covers everything; the second reads whole indexes up to `KEYWISE_ROWS_MAX` stored rows, above
that a sample, and reports its share; a full check reads everything, one range of keys after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from seachange import errors
from seachange.model.schema.constraint import ForeignKey
from seachange.model.schema.descriptor import Index, Table
from seachange.model.schema.objects import DEFAULT_DATABASE, DEFAULT_SCHEMA
from seachange.model.segments import IndexContents
from seachange.model.states import READABLE
from seachange.verify.anomalies import Anomaly, AnomalyKind, Coverage
from seachange.verify.files import FATAL, check_files, check_folder
from seachange.verify.keywise import KeywiseComparison, choose_ranges, split_ranges, stored_rows
from seachange.verify.port import CheckedDatabase, Snapshot
from seachange.verify.reference import Reference, ReferenceReader
from seachange.verify.rule_keys import RuleKeys, RuleSets
from seachange.verify.sets import ANOMALIES_MAX, SetComparison
from seachange.verify.subject import CheckedIndex

# A row takes a third of a millisecond for each index. All rows are compared as sets; this verifies the access paths,
# which are the same for thousands of rows as for millions.
KEYWISE_ROWS_MAX = 2_000

# The number of stored rows of an index that a full check holds in memory.
RANGE_ROWS_MAX = 50_000


@dataclass(slots=True)
class Report:
    """`remarks` are notes about things that are not wrong."""

    anomalies: list[Anomaly] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _counts: Counter[tuple[AnomalyKind, str, str]] = field(default_factory=Counter)

    def add(self, found: Iterable[Anomaly]) -> None:
        """Repeated anomalies of one kind on one index are reported once."""
        for anomaly in found:
            key = anomaly.kind, anomaly.table, anomaly.index
            self._counts[key] += 1
            if self._counts[key] <= 2 * ANOMALIES_MAX:
                self.anomalies.append(anomaly)


def check(database: CheckedDatabase, tables: Sequence[str] = ()) -> list[Anomaly]:
    """The anomalies of these tables (`name`, `schema.name` or `database.schema.name`; none given: of all)."""
    return inspect(database, tables).anomalies


def inspect(
    database: CheckedDatabase, tables: Sequence[str] = (), rows_max: int = KEYWISE_ROWS_MAX, full: bool = False
) -> Report:
    """The anomalies, and how much was compared key by key: all rows in a full check, at most `rows_max` at a time, else
    a sample of about that many. Without tables the folder is compared with the catalog too."""
    snapshot = database.begin_check()
    try:
        report = Report()
        for table in _chosen(snapshot, tables):
            TableCheck(snapshot, table, rows_max, full, report).run()
        if not tables:
            strays, remarks = check_folder(snapshot.parts.catalog, snapshot.parts.warehouse.files)
            report.add(strays)
            report.remarks += remarks
        return report
    finally:
        snapshot.rollback()


def _chosen(snapshot: Snapshot, names: Sequence[str]) -> tuple[Table, ...]:
    if not names:
        return snapshot.every_table()
    return tuple(_find(snapshot, name) for name in names)


def _find(snapshot: Snapshot, name: str) -> Table:
    given = name.split(".")
    place = (*(DEFAULT_DATABASE, DEFAULT_SCHEMA)[: max(0, 3 - len(given))], *given)
    for table in snapshot.every_table():
        if (table.database, table.schema, table.name) == place:
            return table
    raise errors.UndefinedTable(name=name)


class TableCheck:
    """One table at one snapshot. Anomalies are added to the report."""

    def __init__(self, snapshot: Snapshot, table: Table, rows_max: int, full: bool, report: Report) -> None:
        self._snapshot = snapshot
        self._rows_max = rows_max
        self._full = full
        self._report = report
        self._primary = CheckedIndex(table, table.primary)
        self._secondary = [CheckedIndex(table, i, self._is_complete(i)) for i in table.maintained[1:]]
        self._files = snapshot.parts.warehouse.files

    def run(self) -> None:
        contents = {subject.index.id: self._contents(subject) for subject in self._subjects}
        readable = True
        for subject in self._subjects:
            problems = check_files(subject, contents[subject.index.id], self._files)
            self._report.add(problems)
            readable = readable and not any(problem.kind in FATAL for problem in problems)
        # A table with a damaged file has no rows to compare: the damage is reported.
        if not readable:
            return
        self._note_unsealed(contents.values())
        with self._reporting(self._primary), self._connection() as sets:
            self._compare_sets(sets)
        for subject in self._subjects:
            with self._reporting(subject), self._connection() as sets:
                self._compare_keys(sets, subject, contents[subject.index.id])

    def _note_unsealed(self, contents: Iterable[IndexContents]) -> None:
        batches = [batch for each in contents for delta in each.deltas for batch in delta.batches]
        unsealed = sum(batch.checksum is None for batch in batches)
        if unsealed:
            name = self._primary.table_name
            self._report.remarks.append(
                f'Table "{name}": {unsealed} of {len(batches)} batches of rows in the catalog have no checksum, '
                "as release 0.1.0 wrote them; VACUUM brings them into files, which have one."
            )

    def _is_complete(self, index: Index) -> bool:
        """An index under construction cannot be compared before it has its generation."""
        return index.state in READABLE or self._read(index).generation is not None

    @property
    def _subjects(self) -> list[CheckedIndex]:
        return [self._primary, *self._secondary]

    @property
    def _references(self) -> list[tuple[ForeignKey, CheckedIndex]]:
        """The foreign keys that hold for every row, each with the rows that it references."""
        tables = {table.id: table for table in self._snapshot.every_table()}
        keys = [key for key in self._primary.table.foreign_keys if key.state in READABLE]
        return [(key, CheckedIndex(tables[key.parent], tables[key.parent].primary)) for key in keys]

    def _contents(self, subject: CheckedIndex) -> IndexContents:
        return self._read(subject.index)

    def _read(self, index: Index) -> IndexContents:
        catalog, epoch = self._snapshot.parts.catalog, self._snapshot.epoch.epoch
        return catalog.index_contents(epoch, index.id, self._snapshot.snapshot)

    def _compare_sets(self, sets: SetComparison) -> None:
        """All rows, by the read plan alone."""
        add = self._report.add
        add(sets.nulls(self._primary))
        rules = RuleSets(sets)
        add(rules.broken_checks(self._primary))
        add(rules.wrong_values(self._primary))
        for key, parent in self._references:
            add(rules.orphans(self._primary, key, parent))
        for subject in self._subjects:
            add(sets.duplicates(self._primary, subject))
        for subject in self._secondary:
            add(sets.compare_with_rows(self._primary, subject))

    def _compare_keys(self, sets: SetComparison, subject: CheckedIndex, contents: IndexContents) -> None:
        """The entries of an index by the key rule, against scans and lookups: for a sample, or for all ranges of
        keys."""
        if self._full:
            parts = split_ranges(contents, self._files, self._rows_max)
        else:
            parts = [choose_ranges(subject, contents, self._files, self._rows_max)]
        read = live = 0
        for ranges in parts:
            reference = ReferenceReader(subject, self._files, ranges).read(contents)
            read, live = read + reference.rows_read, live + len(reference.live)
            self._report.add(reference.anomalies)
            self._report.add(sets.compare_with_reference(subject, reference, whole=ranges is None))
            self._compare_range(subject, reference)
        if self._full and (shown := sets.count(subject)) != live:
            kind = AnomalyKind.SCAN_INVENTS if shown > live else AnomalyKind.SCAN_MISSES
            self._report.add([subject.anomaly(kind, detail=f"{shown} entries instead of {live}")])
        coverage = Coverage(subject.table_name, subject.index.name, read, stored_rows(contents))
        self._report.coverage.append(coverage)

    def _compare_range(self, subject: CheckedIndex, reference: Reference) -> None:
        keys, add = KeywiseComparison(self._snapshot), self._report.add
        add(keys.compare_look_ups(subject, reference))
        if not subject.is_primary:
            add(keys.compare_entries_with_rows(subject, reference, self._primary))
            return
        rules = RuleKeys(self._snapshot, subject, reference)
        add(rules.nulls())
        add(rules.broken_checks())
        add(rules.wrong_values())
        for key, parent in self._references:
            add(rules.orphans(key, parent))
        for other in self._secondary:
            add(keys.compare_rows_with_entries(subject, reference, other))

    @contextmanager
    def _connection(self) -> Iterator[SetComparison]:
        parts = self._snapshot.parts
        with parts.sorts.connect(parts.data / "tmp") as connection:
            yield SetComparison(connection, self._snapshot)

    @contextmanager
    def _reporting(self, subject: CheckedIndex) -> Iterator[None]:
        """Damage that the node itself detects is reported, and does not end the check."""
        try:
            yield
        except (errors.SegmentDamaged, errors.InlineRowsDamaged) as problem:
            self._report.add([subject.anomaly(AnomalyKind.UNREADABLE, detail=problem)])
