"""Blocks of COPY: a block gives what its records give, or is not taken."""

import io
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seachange
from seachange import errors
from seachange.sql.copy import copy_blocks
from seachange.sql.copy.copy_blocks import Resumed, read_columns
from seachange.sql.copy.copy_text import copy_format, read_records
from seachange.storage.arrow import arrow_type
from seachange.values.coercion import coercer
from seachange.values.types import Kind, SqlType

TYPES = [
    SqlType(Kind.SMALLINT),
    SqlType(Kind.BIGINT),
    SqlType(Kind.DOUBLE),
    SqlType(Kind.REAL),
    SqlType(Kind.NUMERIC, precision=8, scale=2),
    SqlType(Kind.NUMERIC),
    SqlType(Kind.TEXT),
    SqlType(Kind.VARCHAR, length=3),
    SqlType(Kind.CHAR, length=3),
    SqlType(Kind.BOOLEAN),
    SqlType(Kind.DATE),
    SqlType(Kind.TIMESTAMP),
    SqlType(Kind.TIMESTAMP, scale=6),
    SqlType(Kind.TIMESTAMP, scale=3),
    SqlType(Kind.TIMESTAMPTZ),
    SqlType(Kind.UUID),
    SqlType(Kind.JSONB),
    SqlType(Kind.BYTEA),
]
FORMATS = {
    "text": copy_format("text", False, None, None),
    "csv": copy_format("csv", False, None, None),
    "other": copy_format("csv", False, ";", "-"),
    "no null": copy_format("text", False, "|", ""),
}
NUMERALS = [
    "",
    " 1",
    "1 ",
    "+1",
    "-0",
    "007",
    "0x1F",
    "1_000",
    "32768",
    "99999999999999999999",
    "1e3",
    "1e999",
    "1e-400",
]
NUMERALS += ["1e999", "1e-400", ".5", "5.", "NaN", "inf", "-Infinity", "nan", "nan(1)", "1.005", "123456.789"]
MOMENTS = ["2026-02-28", "2026-02-30", "0000-01-01", "0001-01-01", "2026-2-3", "epoch", "infinity", "2026-01-01 05"]
MOMENTS += [
    "2026-01-01 05:06:07",
    "2026-01-01T05:06",
    "2026-01-01 05:06:07.1234567",
    "2026-01-01 05:06:07.123456",
    "2026-01-01 24:00:00",
    "10000-01-01",
]
MOMENTS += ["2026-01-01 05:06:07+02", "2026-01-01 24:00:00", "10000-01-01", "0000-01-01 00:00:00"]
WORDS = ["t", "f", "true", "yes", "T", "o", "NULL", "null", "#N/A", "äöü", "😀😀😀😀", "abc ", "abcd", "{}", '{"a":1}']
WORDS += ["\ufeff", "\ufeffa", "c0ffee00-0000-0000-0000-000000000000"]
SIGNS = ["\\N", "\\", "-", "a,b", 'a"b', "a;b", "a|b", "\\.", "x\\ny", "\r", "\0", "\\\\x00"]
ODD = [*NUMERALS, *MOMENTS, *WORDS, *SIGNS]
NUMBERS = st.one_of(st.integers(-40_000, 40_000).map(str), st.decimals(-1e6, 1e6, places=2).map(str))
FIELDS = st.one_of(st.sampled_from(ODD), NUMBERS, st.text("ab 1", max_size=4))


def by_records(text: str, name: str, types: list[SqlType]) -> list[pa.Array]:
    rows = []
    for _, fields in read_records(io.StringIO(text, newline=""), FORMATS[name]):
        rows.append([coercer(type_)(field) for field, type_ in zip(fields, types, strict=True)])
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    return [pa.array(column, arrow_type(type_)) for column, type_ in zip(columns, types, strict=True)]


def check(text: str, name: str, types: list[SqlType]) -> bool:
    """Whether the block was taken."""
    taken = read_columns(text, FORMATS[name], types)
    if taken is not None:
        # An error here would be one of taking what is wrong.
        for mine, other in zip(taken, by_records(text, name, types), strict=True):
            assert mine.type == other.type
            # As they are shown: what is not a number is not equal to itself, and 0 is to -0.
            assert repr(mine.to_pylist()) == repr(other.to_pylist())
    return taken is not None


@given(st.data(), st.sampled_from(sorted(FORMATS)))
def test_a_block_gives_what_its_records_give(data: st.DataObject, name: str):
    types = data.draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    width = st.just(len(types)) if data.draw(st.integers(0, 9)) else st.integers(1, 4)
    rows = data.draw(st.lists(width.flatmap(lambda n: st.lists(FIELDS, min_size=n, max_size=n)), max_size=4))
    text = "".join(FORMATS[name].delimiter.join(row) + "\n" for row in rows)
    check(text, name, types)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_each_field_is_read_as_it_is_alone(type_: SqlType):
    for (name, format_), field in product(FORMATS.items(), ODD):
        check(f"1{format_.delimiter}{field}\n", name, [SqlType(Kind.INTEGER), type_])
        check(f"{field}{format_.delimiter}1\n", name, [type_, SqlType(Kind.INTEGER)])


@pytest.mark.parametrize(
    ("text", "name", "is_taken"),
    [
        ("1\ta\n2\t\\N\n", "text", True),
        ("1\ta\\N\n", "text", False),
        ("1\t\\N\n2\ta\\Nb\n", "text", False),
        ("1\ta\\tb\n", "text", False),
        ("1,a\n2,\n", "csv", True),
        ('1,"a"\n', "csv", False),
        ("1,a\r\n", "csv", False),
        ("1\n", "csv", False),
        ("x,a\n", "csv", False),
        ("1;-\n2;x\n", "other", True),
    ],
)
def test_what_is_plain_is_taken(text: str, name: str, is_taken: bool):
    assert check(text, name, [SqlType(Kind.INTEGER), SqlType(Kind.TEXT)]) is is_taken


def test_a_file_goes_on_where_its_block_ended():
    resumed = Resumed("a\nb", io.StringIO("c\nd"))
    assert [resumed.readline(10) for _ in range(4)] == ["a\n", "bc\n", "d", ""]
    assert Resumed("abc", io.StringIO("def\n")).readline(5) == "abcde"


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("bad", [None, "x,y\n", '7,"q\nr",z\n'])
def test_the_sizes_of_blocks_do_not_show(tmp_path, monkeypatch, size: int, header: bool, bad: str | None):
    """Nor do defaults of columns that the file has not."""
    monkeypatch.setattr(copy_blocks, "BLOCK_CHARS", size)
    monkeypatch.setattr("seachange.sql.copy.copy.BLOCK_CHARS", size)
    lines = [f"{number},name {number}\n" for number in range(40)]
    text = ("id,name\n" if header else "") + "".join([*lines[:20], bad or "", *lines[20:]])
    with seachange.connect(str(tmp_path)) as db:
        cursor = db.cursor()
        cursor.execute("create table t (id int, name text, kind text default 'd')")
        if bad is None:
            assert db.copy_from("t", io.StringIO(text), columns=["id", "name"], format="csv", header=header) == 40
            cursor.execute("select count(*), sum(id), min(name), count(distinct kind) from t")
            assert cursor.fetchall() == [(40, 780, "name 0", 1)]
        else:
            with pytest.raises(errors.Error, match=f"line {21 + header}") as failure:
                db.copy_from("t", io.StringIO(text), columns=["id", "name"], format="csv", header=header)
            assert failure.value.sqlstate in ("22P02", "22P04")
