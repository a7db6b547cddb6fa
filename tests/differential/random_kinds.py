"""The types of columns that random statements have, and forms of expressions and aggregates of each kind of value."""

from tests.differential.random_expressions import CONSTANTS, FORMS

# The types of columns, with the kind of expression that their values are, and how one is made of such a column.
TYPES = {
    "integer": ("int", "{}"),
    "bigint": ("int", "({})::int"),
    "smallint": ("int", "({})::int"),
    "text": ("text", "{}"),
    "varchar(12)": ("text", "{}"),
    "char(4)": ("text", "({})::text"),
    "double precision": ("float", "{}"),
    "numeric(10,2)": ("num", "{}"),
    "date": ("date", "{}"),
    "timestamp": ("time", "{}"),
    "timestamptz": ("moment", "{}"),
    "interval": ("span", "{}"),
    "boolean": ("bool", "{}"),
    "jsonb": ("json", "{}"),
    "integer[]": ("list", "{}"),
    "uuid": ("uuid", "{}"),
    "bytea": ("bytes", "{}"),
    "mood": ("mood", "{}"),
    "real": ("float", "({})::float8"),
    "time": ("clock", "{}"),
    "inet": ("inet", "{}"),
    "text[]": ("texts", "{}"),
    "json": ("json", "({})::jsonb"),
}
# Constants for columns, by kind; most of them differ.
VALUES = {
    **CONSTANTS,
    "int": ("0", "1", "2", "3", "7", "-3", "100", "32767"),
    "moment": ("'2024-02-29 12:00+00'", "'1999-12-31 23:59:59.5+00'", "'2024-07-01 00:00+02'"),
    "uuid": ("'00000000-0000-0000-0000-000000000001'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"),
    "bytes": ("'\\x00ff'", "''", "'abc'"),
    "mood": ("'sad'", "'ok'", "'happy'"),
    "clock": ("'10:30'", "'23:59:59.5'", "'00:00'"),
    "inet": ("'10.0.0.1'", "'192.168.1.0/24'", "'::1'", "'10.0.0.0/8'"),
    "texts": ("'{a,b}'", "'{}'", "'{x,NULL}'", "'{\"a b\",abc}'"),
}
TYPED = {
    "int": "integer", "text": "text", "float": "double precision", "num": "numeric", "date": "date",
    "time": "timestamp", "moment": "timestamptz", "span": "interval", "bool": "boolean", "json": "jsonb",
    "list": "integer[]", "uuid": "uuid", "bytes": "bytea", "mood": "mood",
    "clock": "time", "inet": "inet", "texts": "text[]",
}  # fmt: skip
MORE_FORMS = {
    **FORMS,
    "moment": ("({moment} + interval '1 day')", "greatest({moment}, {moment})", "coalesce({moment}, {moment})"),
    "uuid": ("coalesce({uuid}, {uuid})", "nullif({uuid}, {uuid})"),
    "bytes": ("({bytes} || {bytes})", "coalesce({bytes}, {bytes})", "decode(encode({bytes}, 'hex'), 'hex')"),
    "mood": ("coalesce({mood}, {mood})", "greatest({mood}, {mood})", "CASE WHEN {bool} THEN {mood} END"),
    "clock": (
        "coalesce({clock}, {clock})",
        "least({clock}, {clock})",
        "({time})::time",
        "({clock} + interval '1 hour')",
    ),
    "inet": ("coalesce({inet}, {inet})", "network({inet})::inet", "broadcast({inet})", "set_masklen({inet}, 8)"),
    "texts": (
        "({texts} || {text})",
        "array_append({texts}, {text})",
        "string_to_array({text}, 'a')",
        "({texts})[1:2]",
        "array_remove({texts}, 'a')",
        "ARRAY[{text}, {text}]",
        "({texts} || {texts})",
        "coalesce({texts}, {texts})",
    ),
}
MORE_FORMS["bool"] = (
    *FORMS["bool"], "({moment} > {moment})", "({uuid} = {uuid})", "({mood} < {mood})", "({bytes} = {bytes})",
    "({mood} IN ('sad', 'ok'))", "({uuid} IS NOT NULL)", "EXISTS (SELECT 1 WHERE {bool})", "({clock} < {clock})",
    "({inet} << '10.0.0.0/8')", "({inet} < {inet})", "({text} = ANY ({texts}))", "({texts} && ARRAY['a'])",
    "({clock} BETWEEN {clock} AND {clock})", "(({int}, {text}) = ({int}, {text}))", "({int} > ALL (ARRAY[1, {int}]))",
    "({mood} = ANY (ARRAY['sad', 'ok']::mood[]))", "({texts} = {texts})", "({float} IN (1, 2.5, {float}))",
    "({text} <> ALL (ARRAY['a', {text}]))", "({date} IN ({date}, {date}))", "({bool} IS DISTINCT FROM {bool})",
)  # fmt: skip
MORE_FORMS["text"] = (
    *FORMS["text"],
    "({mood})::text",
    "({uuid})::text",
    "encode({bytes}, 'hex')",
    "({moment})::text",
    "({inet})::text",
    "host({inet})",
    "({clock})::text",
    "({texts})[1]",
    "({texts})::text",
    "({num})::text",
    "({float})::text",
    "array_to_string({texts}, '-')",
    "to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24')",
    "(({int})::bigint)::text",
    "CASE {int} WHEN 1 THEN {text} WHEN 2 THEN 'two' ELSE {text} END",
    "(SELECT max(x) FROM unnest({texts}) x)",
)
AGGREGATES = {
    "int": ("count(*)::int", "count({text})::int", "max({int})", "min({int})", "count(DISTINCT {int})::int"),
    "text": ("max({text})", "min({text})", "string_agg({text}, ',' ORDER BY {text})"),
    "num": ("sum({num})", "max({num})", "sum({int})::numeric", "round(avg({num}), 3)"),
    "float": ("max({float})", "min({float})"),
    "bool": ("bool_and({bool})", "bool_or({bool})", "every({bool})"),
    "date": ("max({date})", "min({date})"),
    "list": ("array_agg(id ORDER BY id)",),
    "json": ("jsonb_agg(id ORDER BY id)",),
    "mood": ("max({mood})",),
    "moment": ("min({moment})",),
    "span": ("sum({span})", "max({span})"),
}
WINDOWS = (
    "row_number() OVER w", "rank() OVER w", "dense_rank() OVER w", "count(*) OVER w", "sum({int}) OVER w",
    "lag({int}) OVER w", "lead({text}, 1, 'none') OVER w", "first_value({int}) OVER w", "ntile(3) OVER w",
    "max({num}) OVER w", "count(*) FILTER (WHERE {bool}) OVER w",
)  # fmt: skip
MORE_FORMS["int"] = (
    *FORMS["int"], "masklen({inet})", "family({inet})", "cardinality({texts})", "extract(minute from {clock})::int",
    "({text} = 'a')::int", "round({num})::int", "(SELECT count(*)::int FROM unnest({list}) x WHERE x > 1)",
    "(SELECT max(x) FROM (VALUES ({int}), ({int})) v (x))",
)  # fmt: skip
MORE_FORMS["time"] = (*FORMS["time"], "({moment} AT TIME ZONE 'UTC')")
CATALOG_QUERIES = (
    "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute "
    "WHERE attrelid = '{0}'::regclass AND attnum > 0 AND NOT attisdropped",
    "SELECT indexname FROM pg_indexes WHERE tablename = '{0}'",
    "SELECT conname, contype, convalidated FROM pg_constraint WHERE conrelid = '{0}'::regclass AND contype <> 'n'",
    "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = '{0}'",
    "SELECT count(*) FROM {0}",
    "TABLE {0}",
)
