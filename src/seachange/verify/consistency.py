"""The consistency checker: is what the files and the catalog hold, at one snapshot, consistent with the schema?

Every secondary index is compared with the rows of its table by two independent methods: as sets, by the read plan that
statements use; and key by key, by look-ups, over rows that a reference reader derives from the segments alone. The
reference also proves the read plan itself. Constraints of every kind are verified by the same two methods.
The first method covers everything in bounded memory; the second reads whole indexes up to `rows_max` stored rows, and
above that samples, and says which share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from seachange import errors
from seachange.model.constraint import ForeignKey
from seachange.model.descriptor import Index, Table
from seachange.model.ids import IndexId
from seachange.model.isolation import Isolation
from seachange.model.objects import DEFAULT_DATABASE, DEFAULT_SCHEMA
from seachange.model.segments import IndexContents
from seachange.model.states import READABLE
from seachange.verify.anomalies import Anomaly, Coverage, Kind
from seachange.verify.files import FATAL, check_files
from seachange.verify.keywise import KeywiseComparison
from seachange.verify.port import Database, Snapshot
from seachange.verify.reference import Reference, ReferenceReader
from seachange.verify.rule_keys import RuleKeys
from seachange.verify.rule_sets import RuleSets
from seachange.verify.sampling import choose_ranges, stored_rows
from seachange.verify.sets import SetComparison
from seachange.verify.subject import Subject

# A row takes a third of a millisecond for each index. What all rows are is compared as sets; this is about the ways to
# them, which are the same for thousands of rows as for millions.
KEYWISE_ROWS_MAX = 2_000

# Of each index what the reference reader found, and whether that is the whole index.
References = dict[IndexId, tuple[Reference, bool]]


@dataclass(slots=True)
class Report:
    anomalies: list[Anomaly] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)


def check(database: Database, tables: Sequence[str] = ()) -> list[Anomaly]:
    """The anomalies of these tables (`name`, `schema.name` or `database.schema.name`; none given: of all)."""
    return inspect(database, tables).anomalies


def inspect(database: Database, tables: Sequence[str] = (), rows_max: int = KEYWISE_ROWS_MAX) -> Report:
    """The anomalies, and how much was compared key by key."""
    snapshot = database.begin(Isolation.REPEATABLE_READ)
    try:
        report = Report()
        for table in _chosen(snapshot, tables):
            TableCheck(snapshot, table, rows_max, report).run()
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
    """One table at one snapshot. Findings are added to the report."""

    def __init__(self, snapshot: Snapshot, table: Table, rows_max: int, report: Report) -> None:
        self._snapshot = snapshot
        self._rows_max = rows_max
        self._report = report
        self._primary = Subject(table, table.primary)
        self._secondary = [Subject(table, i, self._is_complete(i)) for i in table.maintained[1:]]
        self._files = snapshot.parts.warehouse.files

    def run(self) -> None:
        contents = {subject.index.id: self._contents(subject) for subject in self._subjects}
        readable = True
        for subject in self._subjects:
            problems = check_files(subject, contents[subject.index.id], self._files)
            self._report.anomalies += problems
            readable = readable and not any(problem.kind in FATAL for problem in problems)
        # A table with a damaged file has no rows to compare: the damage is the finding.
        if not readable:
            return
        with self._reporting(self._primary):
            references = {s.index.id: self._reference(s, contents[s.index.id]) for s in self._subjects}
            with self._reporting(self._primary), self._connection() as sets:
                self._compare_sets(sets, references)
            self._compare_keys(references)

    def _is_complete(self, index: Index) -> bool:
        """An index that is being built has nothing to be compared with before it has its generation."""
        return index.state in READABLE or self._read(index).generation is not None

    @property
    def _subjects(self) -> list[Subject]:
        return [self._primary, *self._secondary]

    @property
    def _references(self) -> list[tuple[ForeignKey, Subject]]:
        """The foreign keys that hold for every row, each with the rows that it refers to."""
        tables = {table.id: table for table in self._snapshot.every_table()}
        keys = [key for key in self._primary.table.foreign_keys if key.state in READABLE]
        return [(key, Subject(tables[key.parent], tables[key.parent].primary)) for key in keys]

    def _contents(self, subject: Subject) -> IndexContents:
        return self._read(subject.index)

    def _read(self, index: Index) -> IndexContents:
        catalog, epoch = self._snapshot.parts.catalog, self._snapshot.epoch.epoch
        return catalog.index_contents(epoch, index.id, self._snapshot.snapshot)

    def _reference(self, subject: Subject, contents: IndexContents) -> tuple[Reference, bool]:
        """What the key rule says, and whether it says so of the whole index."""
        ranges = choose_ranges(subject, contents, self._files, self._rows_max)
        reference = ReferenceReader(subject, self._files, ranges).read(contents)
        self._report.anomalies += reference.anomalies
        coverage = Coverage(subject.table_name, subject.index.name, reference.rows_read, stored_rows(contents))
        self._report.coverage.append(coverage)
        return reference, ranges is None

    def _compare_sets(self, sets: SetComparison, references: References) -> None:
        found = self._report.anomalies
        found += sets.nulls(self._primary)
        rules = RuleSets(sets)
        found += rules.broken_checks(self._primary)
        found += rules.wrong_values(self._primary)
        for key, parent in self._references:
            found += rules.orphans(self._primary, key, parent)
        for subject in self._subjects:
            found += sets.duplicates(self._primary, subject)
            found += sets.compare_with_reference(subject, *references[subject.index.id])
        for subject in self._secondary:
            found += sets.compare_with_rows(self._primary, subject)

    def _compare_keys(self, references: References) -> None:
        keys = KeywiseComparison(self._snapshot)
        rows, _ = references[self._primary.index.id]
        found = self._report.anomalies
        rules = RuleKeys(self._snapshot, self._primary, rows)
        found += rules.nulls()
        found += rules.broken_checks()
        found += rules.wrong_values()
        for key, parent in self._references:
            found += rules.orphans(key, parent)
        for subject in self._subjects:
            found += keys.compare_look_ups(subject, references[subject.index.id][0])
        for subject in self._secondary:
            found += keys.compare_rows_with_entries(self._primary, rows, subject)
            found += keys.compare_entries_with_rows(subject, references[subject.index.id][0], self._primary)

    @contextmanager
    def _connection(self) -> Iterator[SetComparison]:
        parts = self._snapshot.parts
        with parts.sorts.connect(parts.data / "tmp") as connection:
            yield SetComparison(connection, self._snapshot)

    @contextmanager
    def _reporting(self, subject: Subject) -> Iterator[None]:
        """What the node itself finds damaged is a finding, not the end of the check."""
        try:
            yield
        except (errors.SegmentDamaged, errors.InlineRowsDamaged) as problem:
            self._report.anomalies.append(subject.anomaly(Kind.UNREADABLE, detail=problem))
