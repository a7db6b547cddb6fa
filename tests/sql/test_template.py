"""Queries compiled for DuckDB: which tables they read, and what they must not reach."""

import pytest

from seachange.errors import Error
from seachange.sql.compile.template import compile_template
from seachange.sql.parsing.parse import TreeStatement, parse_script


def compiled(text):
    (statement,) = parse_script(text)
    assert isinstance(statement, TreeStatement)
    return compile_template(statement.tree.copy())


def read(*names):
    return tuple((None, name) for name in names)


def filled(text):
    template = compiled(text)
    return template.fill([f"<{t.name}>" for t in template.tables])


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("select 1", ()),
        ("select * from t", read("t")),
        ("select * from T as x join \"U\" on x.a = \"U\".a", read("t", "U")),
        ("select * from a, b, (select * from c) d", read("a", "b", "c")),
        ("select (select max(x) from u), exists (select 1 from v) from t", read("u", "v", "t")),
        ("with x as (select * from t) select * from x", read("t")),
        ("with t as (select * from t) select * from t", read("t")),
        ("with x as (select 1), y as (select * from x) select * from y", ()),
        ("with x as (select * from y), y as (select 1) select * from x", read("y")),
        ("with recursive r as (select 1 n union all select n + 1 from r) select * from r", ()),
        ("select * from (with x as (select 1) select * from x) q, x", read("x")),
        ("select * from t union select * from u", read("t", "u")),
        ("table t", read("t")),
        ("select * from public.t", (("public", "t"),)),
        ("select * from 'file.csv'", read("file.csv")),
        ("select * from t where a in (select b from 'f.parquet')", read("t", "f.parquet")),
        ("select * from generate_series(1, 3), unnest(array[1, 2]) u", ()),
    ],
)  # fmt: skip
def test_template_lists_the_tables_of_a_query(text, tables):
    assert tuple((table.schema, table.name) for table in compiled(text).tables) == tables


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("select A from t", 'SELECT "a" FROM (<t>) AS "t"'),
        ("select public.t.a from public.t", 'SELECT "t"."a" FROM (<t>) AS "t"'),
        ("select * from t as x(a)", 'SELECT * FROM (<t>) AS "x"("a")'),
        ("select $2,$1", "SELECT $arg2, $arg1"),
        ("select pg_catalog.lower('A')", "SELECT LOWER('A')"),
        ("select x::numeric(38,17) from t", 'SELECT CAST("x" AS DECIMAL(38, 17)) FROM (<t>) AS "t"'),
        ("select x::varchar(3) from t", 'SELECT LEFT(SEACHANGE_TEXT("x"), 3) FROM (<t>) AS "t"'),
        (r"select '\xAB'::bytea", "SELECT UNHEX('AB')"),
        ("select a from t order by a desc", 'SELECT "a" FROM (<t>) AS "t" ORDER BY "a" DESC'),
    ],
)
def test_template_is_filled_with_scans(text, sql):
    assert filled(text) == sql


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("select a, b as c, lower(d), 1 + 1, count(*) from t", ("a", "c", "lower", "?column?", "count")),
        ("select t.a, x::text, 1::text, case when a then 1 end from t", ("a", "x", "text", "case")),
        ("select *, sum(x) over () from t", (None, "sum")),
        ("select a ~ 'x', (select max(b) from u) from t", ("?column?", "max")),
        ("values (1, 2)", ("column1", "column2")),
        ("select a from t union select b from u", ("a",)),
    ],
)
def test_template_has_the_output_names_of_postgresql(text, names):
    assert compiled(text).names == names


REFUSALS = [
    ("select * from read_csv('/etc/passwd')", "42501"),
    ("select * from read_parquet('x')", "42501"),
    ("select * from read_text('/etc/passwd')", "42501"),
    ("select * from read_blob('x') b", "42501"),
    ("select * from read_json_auto('x')", "42501"),
    ("select * from glob('*')", "42501"),
    ("select * from sniff_csv('x')", "42501"),
    ("select * from parquet_metadata('x')", "42501"),
    ("select * from pragma_version()", "42501"),
    ("select * from duckdb_settings()", "42501"),
    ("select * from query('select 1')", "42501"),
    ("select * from query_table('t')", "42501"),
    ("select * from json_execute_serialized_sql('{}')", "42501"),
    ("select * from range(3)", "42501"),
    ("select getenv('HOME')", "42501"),
    ("select getvariable('x')", "42501"),
    ("select lower(getenv('HOME'))", "42501"),
    ("select * from (select getenv('HOME')) x", "42501"),
    ("with x as (select * from read_csv('f')) select 1", "42501"),
    ("select (select count(*) from read_csv('f'))", "42501"),
    ("select * from t where exists (select * from read_csv('f'))", "42501"),
    ("select * from t, lateral read_csv('f') x", "42501"),
    ("select * from t order by getenv('HOME')", "42501"),
    ("select * from unnest(getenv('HOME'))", "42501"),
    ("select 'x'.getenv()", "42501"),
    ("select other.lower('x')", "42501"),
    ("values (getenv('HOME'))", "42501"),
    ("select 1 union select getenv('HOME')", "42501"),
    ("select sum(x) filter (where getenv('HOME') = 'x') from t", "42501"),
    ("select row_number() over (order by getenv('HOME')) from t", "42501"),
    ("select no_such_function(1)", "42883"),
    ("select * from t for update", "0A000"),
    ("select * from t tablesample system (1) repeatable (2)", "0A000"),
    ("select * from rows from (read_csv('f'), unnest(array[1])) x", "42501"),
    ("select * from rows from (unnest(array[1]), unnest(getenv('HOME'))) x", "42501"),
    ("select concat(variadic getenv('HOME'))", "42501"),
    ("select @ getenv('HOME')", "42501"),
    ("select percentile_cont(length(getenv('HOME'))) within group (order by a) from t", "42501"),
    ("select rank(getenv('HOME')) within group (order by a) from t", "0A000"),
    ("select * from t order by a fetch first length(getenv('HOME')) rows with ties", "42501"),
    ("select jsonb_path_query(getenv('HOME'), '$')", "42501"),
    ("select * from t pivot (sum(a) for b in (1))", "42601"),
    ("with x as (insert into t values (1) returning *) select * from x", "0A000"),
    ("select :x", "42601"),
    ("select ?", "42601"),
]


@pytest.mark.parametrize(("text", "code"), REFUSALS)
def test_template_of_an_unsupported_query_is_rejected_with_its_code(text, code):
    with pytest.raises(Error) as caught:
        compiled(text)
    assert caught.value.sqlstate == code
