"""The binder: types of expressions, parameters and result columns of one statement, without a database."""

import pytest

from seachange import errors
from seachange.sql.bind.query import Binding, bind_tree
from seachange.sql.bind.scope import BoundColumn, Columns
from seachange.sql.bind.types import BoundType, bound, named
from seachange.sql.text.tokens import split_script
from seachange.sql.text.tree import fold_names, parse_tree
from seachange.values.types import Kind, SqlType

MOOD = bound(SqlType(Kind.TEXT, enum=7))
COLOR = bound(SqlType(Kind.TEXT, enum=8))
TABLES = {
    "t": {
        "id": named("int8"),
        "s": named("int2"),
        "name": bound(SqlType(Kind.VARCHAR, length=9)),
        "tags": named("_text"),
    },
    "u": {"id": named("int8"), "doc": named("jsonb"), "at": named("timestamptz"), "mood": MOOD, "color": COLOR},
}


class Catalog:
    """Two tables and an enum type."""

    def columns(self, schema: str | None, name: str) -> Columns:
        return [BoundColumn(column, type_) for column, type_ in TABLES[name].items()] if name in TABLES else None

    def user_type(self, schema: str | None, name: str) -> BoundType | None:
        return {"mood": MOOD, "color": COLOR}.get(name)

    def enum_name(self, number: int) -> str:
        return {7: "mood", 8: "color"}[number]


def bind(text: str, declared: tuple[BoundType | None, ...] = ()) -> Binding:
    (raw,) = split_script(text)
    return bind_tree(fold_names(parse_tree(raw)), Catalog(), declared)


def types(found: Binding) -> list[str | None]:
    assert found.columns is not None
    return [column.type.name if column.type is not None else None for column in found.columns]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select s + 1, s + s, s * 2.5, -s, s / id from t", ["int4", "int2", "numeric", "int2", "int8"]),
        ("select tags || 'x', tags[1], array_length(tags, 1), tags || tags from t", ["_text", "text", "int4", "_text"]),
        ("select doc -> 'a', doc ->> 'a', doc #> '{a}', doc || '{}', doc @> '{}' from u",
         ["jsonb", "text", "jsonb", "jsonb", "bool"]),
        ("select at - at, at - interval '1 day', at + '1 day', at at time zone 'utc', at::date - 1 from u",
         ["interval", "timestamptz", "timestamptz", "timestamp", "date"]),
        ("select mood, 'x'::mood, array_agg(mood), max(mood), coalesce(mood, 'a') from u group by mood",
         ["enum:7", "enum:7", "_enum:7", "enum:7", "enum:7"]),
        ("select x.n from (select count(*) as n from t) x", ["int8"]),
        ("select column1, column2 from (values (1, 'a'), (2.5, null)) v", ["numeric", "text"]),
        ("select * from t join u using (id)",
         ["int8", "int2", "varchar", "_text", "jsonb", "timestamptz", "enum:7", "enum:8"]),
        ("select u.* , t.name from t natural join u", ["int8", "jsonb", "timestamptz", "enum:7", "enum:8", "varchar"]),
        ("with w as (select id from t) select id, (select max(id) from w where w.id < u.id) from u", ["int8", "int8"]),
        ("select null, 'a', case when true then null else 'b' end", ["text", "text", "text"]),
        ("select nosuch.x, id from nosuch", [None, None]),
        ("select sum(id), sum(s), avg(s), count(*), string_agg(name, ',') from t",
         ["numeric", "int8", "numeric", "int8", "text"]),
    ],
)  # fmt: skip
def test_types_of_result_columns(text: str, expected: list[str | None]) -> None:
    assert types(bind(text)) == expected


def test_modifiers_are_kept_by_columns_and_dropped_by_functions() -> None:
    columns = bind("select name, lower(name), coalesce(name, name), name::varchar(3) from t").columns
    assert columns is not None
    shown = [str(column.type.declared) for column in columns if column.type is not None]
    assert shown == ["character varying(9)", "text", "character varying(9)", "character varying(3)"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select id from t where id = $1 and name like $2", {1: "int8", 2: "text"}),
        ("select $1::date, $2 + 1, $3 || 'x'", {1: "date", 2: "int4", 3: "text"}),
        ("select i from generate_series(1, 5) i where i = $1", {1: "int4"}),
        ("select doc #>> $1, doc -> $2, doc @> $3 from u", {1: "_text", 2: "text", 3: "jsonb"}),
        ("select at - $1 from u where at > $2 limit $3", {1: "timestamptz", 2: "timestamptz", 3: "int8"}),
        ("select id from t where id = any($1) or s in ($2, $3) or s between $4 and 7",
         {1: "_int8", 2: "int2", 3: "int2", 4: "int2"}),
        ("select coalesce($1, id), case when $2 then $3 else 1.5 end from t", {1: "int8", 2: "bool", 3: "numeric"}),
        ("select x.id from (select id from u where mood = $1) x where x.id = $2", {1: "enum:7", 2: "int8"}),
    ],
)  # fmt: skip
def test_types_of_parameters(text: str, expected: dict[int, str]) -> None:
    assert {number: type_.name for number, type_ in bind(text).parameters.items()} == expected


def test_declared_parameter_has_its_type() -> None:
    found = bind("select $1, now() - $1, $2", (named("interval"), named("int2")))
    assert types(found) == ["interval", "timestamptz", "int2"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("select 1 from u where mood = color", "42883"),
        ("select 1 from u where mood = 5", "42883"),
        ("select 1 from t join (select 'a' as id) x using (id)", "42883"),
        ("select id from t union select name from t", "42804"),
        ("select 1 from t where id", "42804"),
        ("select 1 from t where 'nonsense'", "22P02"),
        ("select case when id = 1 then id else mood end from u", "42804"),
        ("select tags || id from t", "42883"),
    ],
)
def test_types_that_do_not_fit_are_refused(text: str, code: str) -> None:
    with pytest.raises(errors.Error) as caught:
        bind(text)
    assert caught.value.sqlstate == code
