"""Rows in the catalog have a checksum: what is damaged is an error (XX001), never data."""

import sqlite3
from pathlib import Path

import psycopg
import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.anomalies import AnomalyKind
from seachange.verify.consistency import check
from tests.engine.database import open_quiet
from tests.engine.ports import open_hooked
from tests.engine.release_0_1_0 import unpack

# One byte of what is stored, by column.
DAMAGE = {
    "payload": (
        "cast(substr(payload, 1, {n}) || x'ff' || substr(payload, {n} + 2) as blob)",
        "set_byte(payload, {n}, 255)",
    ),
    "rows": ("rows + 1", "rows + 1"),
    "layout_id": ("layout_id + 256", "layout_id + 256"),
    "checksum": ("checksum + 1", "checksum + 1"),
}


class Place:
    """A database whose catalog a test may change behind the engine's back."""

    def __init__(self, data: Path, url: str | None) -> None:
        self.data = data
        self.url = url

    def open(self) -> Node:
        node = open_node(self.data, self.url)
        node.maintenance.paused = True
        return node

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """With SQLite's names of tables and columns."""
        if self.url is None:
            with sqlite3.connect(self.data / "catalog.sqlite") as db:
                found = db.execute(sql).fetchall()
            db.close()
            return found
        with psycopg.connect(self.url, options="-c search_path=seachange") as pg:
            cursor = pg.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def damage(self, column: str, value: str) -> None:
        """The newest batch, which is the row (2, 'to be damaged')."""
        key = "position" if self.url is None else "seq"
        self.run(f"update batch set {column} = {value} where {key} = (select max({key}) from batch)")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    url = request.getfixturevalue("postgres_catalog_url") if request.param == "postgres" else None
    place = Place(tmp_path / "data", url)
    node = place.open()
    session = Session(node)
    session.execute("create table whole (id int primary key)")
    session.execute("create table t (id int primary key, v text)")
    session.execute("insert into whole values (7)")
    session.execute("insert into t values (1, 'before')")
    session.execute("insert into t values (2, 'to be damaged')")
    session.close()
    node.close()
    return place


@pytest.mark.parametrize("column", DAMAGE)
def test_a_damaged_batch_is_an_error_and_never_data(place: Place, column: str):
    ((payload,),) = place.run(
        "select payload from batch order by "
        + ("position" if place.url is None else "seq")
        + " desc limit 1"
    )  # fmt: skip
    at = bytes(payload).index(b"to be damaged")  # type: ignore[call-overload]
    place.damage(column, DAMAGE[column][place.url is not None].format(n=at))
    node = place.open()
    try:
        session, before = Session(node), node.parts.catalog.head() - 1
        for statement in (
            "select * from t",
            "select v from t where id = 2",
            "update t set v = 'x'",
            "create index on t (v)",
        ):
            with pytest.raises(errors.InlineRowsDamaged, match=r"public\.t") as caught:
                session.execute(statement)
            assert caught.value.sqlstate == "XX001"
            assert "backup" in (caught.value.hint or "")
        assert session.execute("select * from whole").rows == [(7,)]
        session.execute(f"set seachange.as_of = '{before}'")
        assert session.execute("select * from t").rows == [(1, "before")]
        session.close()
        table = next(t for t in node.epoch.schemas.newest.by_id.values() if t.name == "t")
        with pytest.raises(errors.InlineRowsDamaged):
            node.compact(table)
        kinds = {anomaly.kind for anomaly in check(node)}
        assert AnomalyKind.ROWS_DAMAGED in kinds
        assert check(node, ["whole"]) == []
    finally:
        node.close()


def test_a_node_that_follows_a_damaged_commit_goes_on_with_other_tables(tmp_path: Path):
    writer = open_quiet(tmp_path, "writer")
    with_rows = Session(writer)
    with_rows.execute("create table whole (id int primary key)")
    with_rows.execute("create table t (id int primary key, v text)")
    follower, _ = open_hooked(tmp_path)
    session = Session(follower)
    try:
        assert session.execute("select count(*) from t").rows == [(0,)]
        with_rows.execute("insert into t values (1, 'x')")
        with_rows.execute("insert into whole values (1)")
        # Before the follower reads the log once more.
        with sqlite3.connect(tmp_path / "catalog.sqlite") as db:
            db.execute("update batch set rows = rows + 1 where position = (select min(position) from batch)")
        db.close()
        assert session.execute("select * from whole").rows == [(1,)]
        with pytest.raises(errors.InlineRowsDamaged):
            session.execute("select * from t")
        with_rows.execute("insert into whole values (2)")
        assert session.execute("select count(*) from whole").rows == [(2,)]
    finally:
        session.close()
        with_rows.close()
        follower.close()
        writer.close()


def test_rows_of_release_0_1_0_get_checksums_by_compaction(tmp_path: Path):
    place = Place(unpack("sqlite", tmp_path / "old"), None)
    unsealed = "select count(*) from batch where checksum is null"
    node = place.open()
    try:
        assert place.run(unsealed) != [(0,)]
        session = Session(node)
        before = session.execute("select * from orders order by id").rows
        session.execute("insert into orders values (900, 1, 1, 'EUR')")
        tables = [t for t in node.epoch.schemas.newest.by_id.values() if t.name in ("orders", "customers")]
        for table in tables:
            node.compact(table)
        assert session.execute("select * from orders where id < 900 order by id").rows == before
        session.close()
        node.collect_garbage(0)
        assert place.run(unsealed) == [(0,)]
        assert check(node) == []
    finally:
        node.close()


@pytest.mark.parametrize("checksum", ["checksum", "null"], ids=["sealed", "unsealed"])
def test_a_descriptor_that_cannot_be_read_is_damage(place: Place, checksum: str):
    place.run(f"update descriptor_version set body = '{{' || body, checksum = {checksum}")
    with pytest.raises(errors.DescriptorDamaged) as caught:
        Session(place.open()).execute("select 1")
    assert caught.value.sqlstate == "XX001"


def test_a_descriptor_whose_text_has_changed_is_damage(place: Place):
    place.run("update descriptor_version set body = replace(body, 'whole', 'wholy')")
    with pytest.raises(errors.DescriptorDamaged, match="checksum"):
        Session(place.open()).execute("select * from wholy")
