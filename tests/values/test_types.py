"""The table of types: complete, without two of one number, and as docs/sql.md has it."""

from pathlib import Path

import pytest

from seachange.values.types import KIND_BY_ALIAS, NAMES, Kind, SqlType, array_of, from_duckdb

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"
HEAD = "| type | also written | DuckDB | Parquet | Spark | OID | of arrays | key |"


def table_of_types() -> str:
    lines = [HEAD, "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for kind, names in NAMES.items():
        if kind is Kind.ARRAY:
            continue
        others = ", ".join(alias for alias in names.aliases if alias != kind.value)
        shown = [names.duckdb.format(precision="p", scale="s"), names.parquet.format(precision="p", scale="s")]
        spark = names.spark.format(precision="p", scale="s")
        cells = [kind.value, others, *shown, spark, str(names.oid), str(names.array_oid), "yes" if names.key else "no"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_document_has_the_table():
    assert table_of_types() in DOCUMENT.read_text()


def test_every_kind_has_numbers_of_its_own():
    assert set(NAMES) == set(Kind)
    numbers = [number for names in NAMES.values() for number in (names.oid, names.array_oid)]
    assert len(numbers) == len(set(numbers))
    assert len(KIND_BY_ALIAS) == sum(len(names.aliases) for names in NAMES.values())


@pytest.mark.parametrize(
    "type_",
    [
        *(
            SqlType(kind)
            for kind in Kind
            if kind not in (Kind.ARRAY, Kind.VARCHAR, Kind.CHAR, Kind.NAME, Kind.JSON, Kind.CIDR)
        ),
        SqlType(Kind.NUMERIC, 9, 2),
        array_of(SqlType(Kind.NUMERIC, 9, 2)),
        array_of(SqlType(Kind.UUID)),
    ],
)
def test_what_duckdb_calls_it(type_):
    assert from_duckdb(type_.duckdb) == type_
