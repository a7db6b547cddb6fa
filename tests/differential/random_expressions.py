"""Random expressions over the columns of a small table, of types that fit together, from a seed."""

import random
import re
from collections.abc import Iterator

_COLUMNS = {
    "int": "n",
    "text": "t",
    "float": "f",
    "date": "d",
    "bool": "b",
    "num": "m",
    "time": "(d + time '10:30:15.5')",
    "span": "(n * interval '1 day 2 hours')",
    "json": "jsonb_build_object('n', n, 't', t, 'l', ARRAY[n, 2])",
    "list": "ARRAY[n, 2, 7]",
}
CONSTANTS = {
    "int": ("0", "1", "2", "7", "(-3)", "100"),
    "text": ("''", "'a'", "'abc'", "'Hello World'", "'a,b,c'", "'日本'"),
    "float": ("0.5::float8", "1.25::float8", "(-2.75)::float8", "10::float8"),
    "date": ("date '2024-02-29'", "date '1999-12-31'"),
    "bool": ("true", "false", "NULL::boolean"),
    "num": ("0.00", "1.50", "(-2.75)", "100.125", "NULL::numeric(8,2)"),
    "time": ("timestamp '2024-02-29 23:59:59.999'", "timestamp '1999-12-31 00:00'", "NULL::timestamp"),
    "span": ("interval '1 mon 2 days'", "interval '-3:04:05'", "interval '36 hours'"),
    "json": ('\'{"a": [1, {"b": null}], "t": "x"}\'::jsonb', "'[1, \"a\", true]'::jsonb", "'null'::jsonb"),
    "list": ("ARRAY[1, 2, 3]", "'{5,NULL,7}'::int[]", "ARRAY[]::int[]"),
}
# Templates by the type of their value; what stands in braces is the type of an operand.
FORMS = {
    "int": (
        "({int} + {int})", "({int} - {int})", "({int} * 2)", "({int} / 3)", "({int} % 4)", "abs({int})",
        "length({text})", "strpos({text}, {text})", "coalesce({int}, 0)", "nullif({int}, {int})",
        "greatest({int}, {int})", "least({int}, {int})", "CASE WHEN {bool} THEN {int} ELSE {int} END",
        "ascii({text})", "({date} - {date})", "sign({int})::int", "({int} & 7)", "({int} | 8)",
        "extract(day from {date})::int", "extract(isodow from {date})::int", "octet_length({text})",
        "cardinality({list})", "array_position({list}, {int})", "({list})[2]", "regexp_count({text}, '[a-c]')",
        "width_bucket({num}, 0, 10, 5)", "extract(hour from {time})::int", "extract(day from {span})::int",
        "jsonb_array_length({json} -> 'l')", "({json} ->> 'n')::int", "floor({num})::int", "div({int}, 3)::int",
        "num_nulls({int}, {text}, {bool})", "extract(month from {span})::int", "array_length({list}, 1)",
    ),
    "text": (
        "upper({text})", "lower({text})", "({text} || {text})", "concat({text}, {int}, {text})", "left({text}, 2)",
        "right({text}, -1)", "substring({text}, 2, 3)", "substr({text}, -1, 4)", "replace({text}, 'a', 'xy')",
        "lpad({text}, 5, '*')", "rpad({text}, 3)", "trim({text})", "reverse({text})", "repeat({text}, 2)",
        "split_part({text}, ',', 2)", "initcap({text})", "coalesce({text}, 'none')", "nullif({text}, 'a')",
        "concat_ws('-', {text}, {text})", "md5({text})", "translate({text}, 'abc', 'xy')", "({int})::text",
        "to_char({date}, 'YYYY-MM-DD Dy')", "regexp_replace({text}, '[aeiou]', '_', 'g')", "({bool})::text",
        "jsonb_typeof({json})", "({json} ->> 't')", "({json} #>> '{{a,0}}')", "array_to_string({list}, ',', '*')",
        "to_char({num}, 'FM9990.00')", "to_char({time}, 'HH24:MI:SS.MS')", "to_char({int}, '9G999MI')",
        "format('%s-%s', {text}, {int})", "quote_literal({text})", "({date})::text", "({time})::text", "({span})::text",
        "regexp_replace({text}, '(.)b', '\\1-')", "substring({text} from '[b-z]+')", "({json})::text", "({list})::text",
        "string_to_array({text}, ',')::text", "to_char({span}, 'DD HH24:MI')", "split_part({text}, 'b', -1)",
        "overlay({text} placing 'ZZ' from 2 for 1)", "CASE WHEN {bool} THEN {text} END", "btrim({text}, 'ad')",
    ),
    "float": (
        "({float} + {float})", "({float} * 1.5)", "abs({float})", "floor({float})", "ceil({float})",
        "coalesce({float}, 0)", "sqrt(abs({float}))", "({float} - {int})", "trunc({float})", "({int} / 4.0)::float8",
    ),
    "num": (
        "({num} + {num})", "({num} - {int})", "({num} * 2)", "abs({num})", "round({num}, 1)", "trunc({num}, 1)",
        "coalesce({num}, 0)", "greatest({num}, {num})", "sign({num})", "ceil({num})", "mod({num}, 3)", "(-{num})",
        "CASE WHEN {bool} THEN {num} ELSE 0 END", "({int})::numeric(10,2)", "nullif({num}, 0)",
    ),
    "time": (
        "({time} + {span})", "({time} - interval '1 month')", "date_trunc('hour', {time})",
        "date_trunc('week', {time})", "coalesce({time}, timestamp '2000-01-01')", "greatest({time}, {time})",
        "({date})::timestamp", "date_bin('15 minutes', {time}, timestamp '2001-01-01')", "({date} + time '01:02:03')",
    ),
    "span": (
        "({span} + {span})", "({span} * 2)", "(-{span})", "({time} - {time})", "justify_hours({span})",
        "coalesce({span}, interval '0')", "make_interval(days => 3)", "age({time}, {time})", "justify_interval({span})",
    ),
    "json": (
        "to_jsonb(({text})::text)", "to_jsonb({int})", "to_jsonb({list})", "jsonb_build_array({int}, {text}, {bool})",
        "({json} -> 'a')", "({json} || {json})", "jsonb_set(jsonb_build_object('z', {int}), '{{z}}', '1')",
        "({json} - 'a')", "jsonb_build_object('k', {num}, 'd', {date})", "jsonb_strip_nulls({json})",
        "to_jsonb({time})", "to_jsonb({bool})", "({json} -> 0)", "to_jsonb({float})",
    ),
    "list": (
        "({list} || {int})", "array_append({list}, {int})", "array_remove({list}, {int})", "({list})[1:2]",
        "array_cat({list}, {list})", "array_prepend({int}, {list})", "array_replace({list}, 2, {int})",
        "trim_array({list}, 0)",
    ),
    "date": (
        "({date} + ({int})::int)", "({date} - 7)", "coalesce({date}, date '2000-01-01')", "greatest({date}, {date})",
        "({date} + interval '1 month')::date", "date_trunc('month', {date})::date", "make_date(2024, 3, 15)",
    ),
    "bool": (
        "({int} > {int})", "({int} = {int})", "({text} < {text})", "({text} LIKE 'a%')", "({text} ILIKE '%B%')",
        "({bool} AND {bool})", "({bool} OR {bool})", "(NOT {bool})", "({int} IN (1, 2, 3))", "({text} IS NULL)",
        "({int} BETWEEN 1 AND 4)", "({date} <= {date})", "({text} ~ '[a-c]')", "({bool} IS NOT TRUE)",
        "({num} >= {num})", "({time} > {time})", "({span} < {span})", "({json} ? 'a')", "({json} @> '[1]')",
        "({int} = ANY ({list}))", "({list} @> ARRAY[2])", "({list} = {list})", "({num} = {int})", "({json} = {json})",
        "({date} < {time})", "(({date}, {date}) OVERLAPS ({date}, {date}))", "({text} SIMILAR TO '(a|b)%')",
        "({list} IS NULL)", "({date}, {int}) < ({date}, {int})", "({float} = {num})", "({list} && ARRAY[1, 9])",
        "({int} IS DISTINCT FROM {int})", "starts_with({text}, 'a')", "({float} < {float})",
    ),
}  # fmt: skip
_DEPTH_MAX = 3
# Of a brace that is meant there are two.
OPERAND = re.compile(r"(?<!\{)\{(\w+)\}")


def random_expressions(seed: int, count: int) -> Iterator[str]:
    source = random.Random(seed)
    for _ in range(count):
        yield _make(source, source.choice(tuple(FORMS)), _DEPTH_MAX)


def _make(source: random.Random, kind: str, depth: int) -> str:
    if depth == 0 or source.random() < 0.15:
        return _COLUMNS[kind] if source.random() < 0.6 else source.choice(CONSTANTS[kind])
    form = source.choice(FORMS[kind])
    return OPERAND.sub(lambda operand: _make(source, operand[1], depth - 1), form).replace("{{", "{").replace("}}", "}")
