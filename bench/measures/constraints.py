"""The cost of constraints: INSERT ... SELECT into a table with a unique and a foreign key, over one without."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from bench.bounds import bounds_of
from bench.harness import Context, Measure, Reading, interleave
from bench.subject import Database, connect

# The bound speaks of a million rows at full scale, of which every tenth refers to the same parent.
ROWS_SHARE = 10
CHILDREN = 10


@dataclass(frozen=True, slots=True)
class Tables:
    database: Database
    rows: int

    def create(self) -> None:
        parents = self.rows // CHILDREN
        cursor = self.database.cursor()
        cursor.execute("create table parents (id bigint primary key)")
        cursor.execute(f"insert into parents select i from generate_series(1, {parents}) g(i)")
        cursor.execute("create table source (id bigint primary key, code bigint, parent bigint, note text)")
        # Codes come in no order; each is there once.
        cursor.execute(
            f"insert into source select i, i * 7919 % 1000003 * {self.rows} + i, i % {parents} + 1, 'note ' || i "
            f"from generate_series(1::bigint, {self.rows}) g(i)"
        )

    def fill(self, name: str, code: str, parent: str) -> float:
        """Seconds to fill a new table from the source."""
        cursor = self.database.cursor()
        cursor.execute(
            f"create table {name} (id bigint primary key, code bigint {code}, parent bigint {parent}, note text)"
        )
        started = time.perf_counter()
        cursor.execute(f"insert into {name} select * from source")
        seconds = time.perf_counter() - started
        cursor.execute(f"select count(*) from {name}")
        assert cursor.fetchall() == [(self.rows,)], "rows were lost"
        cursor.execute(f"drop table {name}")
        return seconds


def insert_select(context: Context) -> Iterable[Reading]:
    database = connect(str(context.folder("constraints")), None)
    try:
        tables = Tables(database, context.scale.rows // ROWS_SHARE)
        tables.create()
        ours, theirs = interleave(
            context.scale.rounds,
            lambda number: tables.fill(f"bound{number}", "unique", "references parents"),
            lambda number: tables.fill(f"free{number}", "", ""),
        )
    finally:
        database.close()
    yield Reading("constraints.insert_select", "s", ours, theirs, "peer: the same without unique and foreign key")


MEASURES = (Measure("constraints.insert_select", insert_select, bounds_of("constraints.insert_select")),)
