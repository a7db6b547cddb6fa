"""Random values of every type through DataFrames, out of a table and into another: unchanged, or refused."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import seachange
from seachange.engine.api import Connection
from seachange.errors import Error
from tests.spark.frames import frame_rows, table_rows
from tests.sql.test_types_properties import NAMES, SAMPLES, TYPES, arrow_of, columns

ROWS = st.lists(st.tuples(*(st.none() | SAMPLES[t] for t in TYPES)), min_size=20, max_size=20)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with seachange.connect(tmp_path_factory.mktemp("frames") / "db", autocommit=True) as connection:
        for table in ("t", "copied"):
            connection.execute(f"create table {table} (id bigint primary key, {columns()})")
        yield connection


# Spark writes what is in these as its settings say.
REFUSED = ("date[]", "timestamp without time zone[]", "timestamp with time zone[]", "timestamp(3) without time zone[]")


def test_values_go_through_dataframes(db: Connection, spark: SparkSession) -> None:
    refused = [name for name, type_ in zip(NAMES, TYPES, strict=True) if str(type_) in REFUSED]
    kept = [name for name in NAMES if name not in refused]
    assert len(refused) == len(REFUSED)
    for name in refused:
        with pytest.raises(Error) as caught:
            db.insert_dataframe("copied", db.spark_table("t", spark).select("id", name))
        assert caught.value.sqlstate == "42804"

    @settings(max_examples=2, suppress_health_check=list(HealthCheck), phases=[Phase.generate], deadline=None)
    @given(ROWS)
    def check(rows: list[tuple[Any, ...]]) -> None:
        db.execute("truncate t")
        db.execute("truncate copied")
        db.load_arrow("t", arrow_of(list(enumerate(rows))))
        frame = db.spark_table("t", spark)
        assert frame_rows(frame) == table_rows(db, "t")
        assert db.insert_dataframe("copied", frame.select("id", *kept)) == len(rows)
        for name in kept:
            given = db.execute(f"select id, {name}::text from t order by id").fetchall()
            found = db.execute(f"select id, {name}::text from copied order by id").fetchall()
            assert found == given, TYPES[NAMES.index(name)]

    check()
