"""COPY: both formats, what a bad row says, and files of any size."""

import io
import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seachange
from seachange.sql.copy.copy_text import copy_format, format_record, read_records

FORMATS = [copy_format("csv", False, None, None), copy_format("text", False, None, None)]
FORMATS += [copy_format("csv", False, ";", "NULL"), copy_format("text", False, "|", "")]
FIELDS = st.lists(st.none() | st.text(alphabet=st.sampled_from('ab,;|"\\\tNULL.\n\r x'), max_size=6), min_size=2)


@pytest.mark.parametrize("format_", FORMATS, ids=str)
@given(records=st.lists(FIELDS, max_size=5))
def test_what_is_written_is_read_again(format_, records):
    if not format_.csv and format_.null == "":
        records = [[field or None for field in record] for record in records]
    text = "".join(format_record(record, format_) for record in records)
    found = [fields for _, fields in read_records(io.StringIO(text, newline=""), format_)]
    assert found == records


@pytest.fixture
def db(tmp_path):
    with seachange.connect(tmp_path / "data", autocommit=True) as connection:
        connection.execute("create table t (id int primary key, s text default 'd', n numeric(6,2), b boolean)")
        yield connection


def rows(db):
    return db.execute("select * from t order by id").fetchall()


def test_csv_is_read_and_written_with_quotes_and_nulls(db):
    text = 'id,s,n,b\n1,"a ""b"", c",1.5,t\r\n2,,,\n3,"","2",false\n4,"two\nlines",,\n'
    assert db.copy_from("t", io.StringIO(text, newline=""), header=True) == 4
    assert [row[1] for row in rows(db)] == ['a "b", c', None, "", "two\nlines"]
    assert [row[3] for row in rows(db)] == [True, None, False, None]
    out = io.StringIO()
    assert db.copy_to("select * from t order by id", out, header=True) == 4
    assert out.getvalue() == 'id,s,n,b\n1,"a ""b"", c",1.50,t\n2,,,\n3,"",2.00,f\n4,"two\nlines",,\n'


def test_text_format_is_read_and_written_with_escapes(db):
    assert db.copy_from("t", io.StringIO("1\ta\\tb\\\\\\x41\\101\t\\N\tf\n2\t\t3\t\\N\n\\.\nrest"), format="text") == 2
    assert [row[1] for row in rows(db)] == ["a\tb\\AA", ""]
    out = io.StringIO()
    db.copy_to("select id, s, n from t order by id", out, format="text")
    assert out.getvalue() == "1\ta\\tb\\\\AA\t\\N\n2\t\t3.00\n"


def test_escapes_of_bytes_and_of_ends_of_lines(db):
    text = "1\t\\303\\251 \\xE2\\x82\\xac \\é\n2\ttwo\\\nlines\\\\\n3\tend\\"
    assert db.copy_from("t", io.StringIO(text), format="text", columns=["id", "s"]) == 3
    assert [row[1] for row in rows(db)] == ["é € é", "two\nlines\\", "end\\"]
    with pytest.raises(seachange.Error) as caught:
        db.copy_from("t", io.StringIO("4\tx\n5\t\\303\n"), format="text", columns=["id", "s"])
    assert (caught.value.sqlstate, "line 2" in str(caught.value)) == ("22021", True)


def test_a_quote_that_does_not_end_takes_no_longer_than_its_lines():
    """It took the square of them: longer than a test may."""
    with pytest.raises(seachange.Error, match="unterminated"):
        list(read_records(io.StringIO('"' + "\n" * 600_000, newline=""), FORMATS[0]))


def test_some_columns_and_options(db):
    assert db.copy_from("public.t", io.StringIO("x;1\n-;2\n"), delimiter=";", null="-", columns=["s", "id"]) == 2
    assert [row[:2] for row in rows(db)] == [(1, "x"), (2, None)]
    assert db.copy_from("t", io.StringIO("3\n"), columns=["id"]) == 1
    assert rows(db)[2][1] == "d"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("1,a,1,t\n2,b,x,t\n", "22P02", 'line 2, column "n"'),
        ("1,a,1\n", "22P04", 'line 1: missing data for column "b"'),
        ("1,a,1,t,5\n", "22P04", "line 1: extra data"),
        ('1,"a\n\n,1,t\n', "22P04", "line 1: unterminated"),
        ('1,"a\n",1,t\n2,b,99999,t\n', "22003", 'line 3, column "n"'),
        ("1,a,1,t\n1,b,1,t\n", "23505", "t_pkey"),
        (",a,1,t\n", "23502", "id"),
    ],
)
@pytest.mark.parametrize("before", [0, 15_000])
def test_a_bad_row_is_named_and_nothing_is_left(db, text, code, says, before):
    good = "".join(f"{i},x,1,t\n" for i in range(10, 10 + before))
    with pytest.raises(seachange.Error) as failure:
        db.copy_from("t", io.StringIO(good + text, newline=""))
    assert failure.value.sqlstate == code
    if "line" in says and before:
        number, rest = says.split("line ")[1][0], says.split("line ")[1][1:]
        says = f"line {int(number) + before}{rest}"
    assert says in str(failure.value)
    assert rows(db) == []


def test_copy_reads_and_writes_files(db, tmp_path):
    source, result = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(b"1,\xff,1,t\n")
    with pytest.raises(seachange.Error) as failure:
        db.copy_from("t", source)
    assert failure.value.sqlstate == "22021"
    source.write_text("1,ä,1,t\n", encoding="utf-8")
    assert db.copy_from("t", str(source)) == 1
    with pytest.raises(seachange.Error) as failure:
        db.copy_to("select 1 / (id - 1) from t", result)
    assert failure.value.sqlstate == "22012"
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["in.csv"]
    assert db.copy_to("values (1, 'ä')", result) == 1
    assert result.read_text(encoding="utf-8") == "1,ä\n"
    with pytest.raises(seachange.Error) as failure:
        db.copy_from("t", tmp_path / "nowhere.csv")
    assert failure.value.sqlstate == "58030"


@pytest.mark.parametrize("options", [{"delimiter": "ab"}, {"delimiter": "\n"}, {"null": "a,b"}, {"format": "binary"}])
def test_options_are_checked(db, options):
    with pytest.raises(seachange.Error) as failure:
        db.copy_from("t", io.StringIO(""), **options)
    assert failure.value.sqlstate == "22023"


@pytest.mark.parametrize("query", ["delete from t", "select * from read_csv('x')", "select 1; select 2"])
def test_only_a_query_is_copied(db, query):
    with pytest.raises(seachange.Error):
        db.copy_to(query, io.StringIO())


def test_memory_is_bounded_and_the_way_back_is_the_same(db, tmp_path):
    source, result = tmp_path / "in.csv", tmp_path / "out.csv"
    with source.open("w") as file:
        file.writelines(f"{i},{'x' * 400},1.00,t\n" for i in range(60_000))
    tracemalloc.start()
    assert db.copy_from("t", source) == 60_000
    assert db.copy_to("select * from t order by id", result) == 60_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < source.stat().st_size
    assert result.read_bytes() == source.read_bytes()


def test_in_a_transaction(db):
    db.execute("begin")
    db.copy_from("t", io.StringIO("1,a,1,t\n"))
    db.execute("rollback")
    assert rows(db) == []


@pytest.mark.parametrize("count", [3, 11_000])
def test_drawn_and_generated_columns(db, count):
    columns = "id int primary key, u uuid default gen_random_uuid(), d int generated always as (id * 2) stored"
    db.execute(f"create table g ({columns})")
    db.copy_from("g", io.StringIO("".join(f"{i}\n" for i in range(count))), columns=["id"])
    found = db.execute("select count(*), count(distinct u), sum(d - 2 * id) from g").fetchone()
    assert found == (count, count, 0)
    db.load_arrow("g", pa.table({"id": list(range(-count, 0))}))
    found = db.execute("select count(*), count(distinct u), sum(d - 2 * id) from g").fetchone()
    assert found == (2 * count, 2 * count, 0)
    with pytest.raises(seachange.Error) as caught:
        db.copy_from("g", io.StringIO("1,2\n"), columns=["id", "d"])
    assert caught.value.sqlstate == "42P10"
    with pytest.raises(seachange.Error) as caught:
        db.load_arrow("g", pa.table({"id": [count], "d": [1]}))
    assert caught.value.sqlstate == "428C9"
