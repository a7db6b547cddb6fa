"""What the data source of Spark asks of a database, without Spark: rows of units, of changes, and of files."""

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seachange
from seachange import errors
from seachange.engine.api import Connection
from seachange.engine.dataframes.file_insert import RowFile
from seachange.engine.datasource.change_rows import ChangeRows, survey
from seachange.engine.datasource.row_files import RowFiles, in_block, merge_rows
from seachange.engine.datasource.table_units import snapshot_table
from seachange.engine.datasource.write_shape import WriteShape, plan_write
from seachange.engine.datasource.written_batches import known_columns, prepare_records, record_batch
from seachange.engine.session.session import Session
from seachange.model.ids import Seq
from seachange.sql.copy.frame_load import FrameColumn
from tests.support.databases import MakePlace, catalog_kind, place, place_for
from tests.support.nodes import Place

__all__ = ["MakePlace", "catalog_kind", "place", "place_for"]

pytestmark = pytest.mark.either_catalog

# A value of each type; what a row has without one is NULL.
VALUES = {
    "bl": ("boolean", "true"),
    "i": ("int", "-3"),
    "n": ("numeric(8,2)", "1.50"),
    "nn": ("numeric", "0.1"),
    "r": ("real", "'-Infinity'"),
    "d": ("double precision", "1e300"),
    "w": ("text", "E'a\"''\\n'"),
    "c": ("char(5)", "'ab'"),
    "b": ("bytea", "'\\x00ff'"),
    "day": ("date", "'1582-10-01'"),
    "tm": ("time", "'08:30:00.5'"),
    "ts": ("timestamp", "'1850-01-01 00:00:00.000001'"),
    "z": ("timestamptz", "'2024-02-29 12:00:00+02'"),
    "k": ("interval", "'1 year 2 days -03:04:05.5'"),
    "u": ("uuid", "'00000000-0000-0000-0000-00000000000a'"),
    "j": ("jsonb", '\'{"a": [1, null, "x"]}\''),
    "o": ("oid", "4294967295"),
    "net": ("inet", "'10.0.0.1/8'"),
    "e": ("mood", "'sad'"),
    "l": ("int[]", "'{1,NULL,3}'"),
    "x": ("text[]", "'{a,NULL}'"),
    "es": ("mood[]", "'{sad,glad}'"),
    'a/b~"c': ("int", "5"),
}


@pytest.fixture
def db(place: Place) -> Iterator[Connection]:
    with seachange.connect(data=place.data, catalog=place.catalog, autocommit=True) as opened:
        yield opened


def head(db: Connection) -> Seq:
    return db.session.node.in_epoch(lambda epoch: epoch.catch_up())


def unit_rows(db: Connection, table: str, folder: Path) -> list[dict[str, Any]]:
    warehouse = db.session.node.parts.warehouse
    units = snapshot_table(db.session, table).units
    return [row for unit in units for batch in unit.batches(warehouse, folder) for row in batch.to_pylist()]


def change_rows(
    db: Connection, table: str, since: Seq, shape: str = "", until: Seq | None = None
) -> list[dict[str, Any]]:
    db.session.execute("select set_config('seachange.layout', $1, false)", (shape,))
    found = snapshot_table(db.session, table)
    rows, end = ChangeRows(db.session, found.table.id, found.columns), head(db) if until is None else until
    read = db.session.node.in_epoch(lambda epoch: list(rows.read(epoch, since, end)))
    return [row for each in read for row in each.to_pylist()]


def test_changes_have_the_values_that_units_show(db: Connection, tmp_path: Path) -> None:
    db.execute("create type mood as enum ('blue', 'glad')")
    named = {name.replace('"', '""'): pair for name, pair in VALUES.items()}
    columns = ", ".join(f'"{name}" {type_}' for name, (type_, _) in named.items())
    db.execute(f"create table t (id int primary key, {columns})")
    db.execute("alter type mood rename value 'blue' to 'sad'")
    since = head(db)
    values = ", ".join(value for _, value in named.values())
    db.execute(f"insert into t values (1, {values})")
    db.execute("insert into t (id) values (2)")
    inline = unit_rows(db, "t", tmp_path)
    db.compact("t")
    assert unit_rows(db, "t", tmp_path) == inline
    changes = change_rows(db, "t", since)
    assert [{name: row[name] for name in ("id", *VALUES)} for row in changes] == inline
    assert [(row["_change"], row["_ordinal"]) for row in changes] == [("insert", 1), ("insert", 1)]
    assert all(value is not None for value in inline[0].values())
    assert inline[0]["k"] == "12 months 2 days -11045500000 microseconds"
    assert inline[0]["es"] == ["sad", "glad"]


def test_changes_are_shown_in_one_shape_over_ddl(db: Connection) -> None:
    db.execute("create table t (id int primary key, w text, n int)")
    db.execute("create shape first")
    since = head(db)
    db.execute("insert into t values (1, 'a', 1)")
    db.execute("alter table t rename column w to word")
    db.execute("alter table t alter column n type text using n::text")
    db.execute("alter table t add column more int default 3")
    db.execute("insert into t values (2, 'b', '2', 4)")
    db.execute("alter table t drop column word")
    db.execute("insert into t values (3, '3', 5)")
    then, now = change_rows(db, "t", since, "first"), change_rows(db, "t", since)
    assert [(r["id"], r["w"], r["n"]) for r in then] == [(1, "a", 1), (2, "b", 2), (3, None, 3)]
    assert [(r["id"], r["n"], r["more"]) for r in now] == [(1, "1", 3), (2, "2", 4), (3, "3", 5)]
    db.execute("insert into t values (4, 'none', 5)")
    with pytest.raises(errors.DataError):
        change_rows(db, "t", since, "first")


def test_a_survey_ends_between_commits_and_before_a_schema_change(db: Connection) -> None:
    db.execute("create table other (id int)")
    db.execute("create table t (id int primary key)")
    table_id, since = snapshot_table(db.session, "t").table.id, head(db)
    ends = []
    for number in range(3):
        db.execute("insert into t select i from generate_series(%s, %s) g(i)", (number * 10, number * 10 + 9))
        ends.append(head(db))
        db.execute("insert into other values (1)")
    db.execute("create index on t (id)")

    def look(since: Seq, rows_max: int | None = None, commits_max: int | None = None) -> tuple[Seq | None, Seq | None]:
        node, until = db.session.node, head(db)
        found = node.in_epoch(lambda epoch: survey(epoch, table_id, since, until, rows_max, commits_max))
        return found.end, found.changed

    assert look(since) == (ends[2], None)
    assert look(since, rows_max=20) == (ends[1], None)
    assert look(since, rows_max=5) == look(since, commits_max=1) == (ends[0], None)
    assert look(ends[2]) == (None, None)
    db.execute("alter table t add column n int")
    changed = head(db)
    db.execute("insert into t values (100, 1)")
    assert look(ends[0]) == (ends[2], changed)
    assert look(changed) == (head(db), None)


COLUMNS = (FrameColumn("id", "bigint", "BIGINT"), FrameColumn("w", "string", "VARCHAR"))


def row_file(folder: Path, ids: list[int], text: str) -> RowFile:
    path = folder / f"{text}.parquet"
    pq.write_table(pa.table({"id": ids, "w": [text] * len(ids)}), path)
    return RowFile(str(path), len(ids), path.stat().st_size)


def write(session: Session, shape: WriteShape, file: RowFile, batch: int) -> int | None:
    def work() -> int | None:
        if not record_batch(session, "writer", shape, batch):
            return None
        table = session.in_transaction(shape.find)
        rows = RowFiles((file,), shape.columns_of(table))
        return merge_rows(session, shape.find, rows, shape.keys_of(table))

    return in_block(session, work)


def test_a_batch_is_written_once_and_finds_columns_that_were_renamed(db: Connection, tmp_path: Path) -> None:
    db.execute("create table t (id int primary key, w text, gone int default 7)")
    db.execute("insert into t values (1, 'old')")
    prepare_records(db.session)
    prepare_records(db.session)
    plan = partial(plan_write, db.session, "t", COLUMNS, ["id"])
    shape = plan(known_columns(db.session, "writer"))
    assert write(db.session, shape, row_file(tmp_path, [1, 2], "first"), 0) == 2
    assert write(db.session, shape, row_file(tmp_path, [3], "again"), 0) is None
    db.execute("alter table t rename column w to word")
    db.execute("alter table t rename column id to number")
    db.execute("alter table t drop column gone")
    # One that was planned before, and one that is planned now.
    assert write(db.session, shape, row_file(tmp_path, [2], "second"), 1) == 1
    shape = plan(known_columns(db.session, "writer"))
    assert write(db.session, shape, row_file(tmp_path, [4], "third"), 2) == 1
    assert db.execute("select * from t order by 1").fetchall() == [(1, "first"), (2, "second"), (4, "third")]
    db.execute("alter table t drop column word")
    # The values of a column that has gone are left out, also when it has been gone for some time.
    for number, name in ((3, "fourth"), (4, "fifth")):
        shape = plan(known_columns(db.session, "writer"))
        assert write(db.session, shape, row_file(tmp_path, [number + 2], name), number) == 1
    with pytest.raises(errors.UndefinedColumn):
        plan()


def test_a_merge_that_is_refused_leaves_no_trace(db: Connection, tmp_path: Path) -> None:
    db.execute("create table t (id int primary key, w text, check (w <> 'bad'))")
    db.execute("create table keyless (id int, w text)")
    prepare_records(db.session)
    shape = plan_write(db.session, "t", COLUMNS, ["id"])
    for file, problem in (
        (row_file(tmp_path, [1, 1], "twice"), errors.CardinalityViolation),
        (row_file(tmp_path, [1], "bad"), errors.CheckViolation),
    ):
        with pytest.raises(problem):
            write(db.session, shape, file, 0)
    assert db.execute("select * from t").fetchall() == []
    assert write(db.session, shape, row_file(tmp_path, [1], "good"), 0) == 1
    for table, keys in (("t", ["w"]), ("keyless", ["id"])):
        with pytest.raises(errors.InvalidColumnReference):
            plan_write(db.session, table, COLUMNS, keys)


def rows_at(db: Connection, at: Seq) -> dict[int, int | None]:
    db.execute("select set_config('seachange.as_of', %s, false)", (str(at),))
    found: dict[int, int | None] = dict(db.execute("select id, n from t").fetchall())
    db.execute("select set_config('seachange.as_of', '', false)")
    return found


def random_step(db: Connection, rng: random.Random, number: int) -> None:
    first = rng.randint(1, 300)
    match rng.randint(0, 8):
        case 0:
            db.execute(f"insert into t (id, n) values ({first}, {number}) on conflict (id) do update set n = {number}")
        case 1:
            series = f"generate_series({first}, {first + 400}) g(i)"
            db.execute(f"insert into t (id, n) select i, {number} from {series} on conflict (id) do nothing")
        case 2:
            db.execute(f"update t set n = n + 1 where id between {first} and {first + 30}")
        case 3:
            db.execute(f"delete from t where id between {first} and {first + 100}")
        case 4:
            db.compact("t")
        case 5:
            db.execute(f"alter table t add column c{number} text default 'x'")
        case 6:
            db.execute("vacuum full t")
        case 7:
            db.execute(f"create index on t (n, id) where n > {number}")
        case _:
            db._node.collect_garbage(0)


@pytest.mark.parametrize("seed", [pytest.param(1), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))])
def test_changes_from_any_commit_lead_to_the_table_at_any_later_one(db: Connection, seed: int) -> None:
    rng = random.Random(seed)
    db.execute("create table t (id int primary key, n int)")
    # It keeps the history while garbage is collected.
    db.execute("create feed reader for table t")
    known = {head(db): rows_at(db, head(db))}
    for number in range(40):
        random_step(db, rng, number)
        known[head(db)] = rows_at(db, head(db))
    places = sorted(known)
    for _ in range(6):
        since, until = sorted(rng.sample(places, 2))
        copy = dict(known[since])
        for row in change_rows(db, "t", since, until=until):
            if row["_change"] in ("delete", "update_before"):
                assert copy.pop(row["id"]) == row["n"]
            else:
                assert row["id"] not in copy
                copy[row["id"]] = row["n"]
        assert copy == known[until], (since, until)
