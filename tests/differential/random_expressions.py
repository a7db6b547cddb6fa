"""Random expressions over the columns of a small table, of types that fit together, from a seed."""

import random
from collections.abc import Iterator

_COLUMNS = {"int": "n", "text": "t", "float": "f", "date": "d", "bool": "b"}
_CONSTANTS = {
    "int": ("0", "1", "2", "7", "(-3)", "100"),
    "text": ("''", "'a'", "'abc'", "'Hello World'", "'a,b,c'", "'日本'"),
    "float": ("0.5::float8", "1.25::float8", "(-2.75)::float8", "10::float8"),
    "date": ("date '2024-02-29'", "date '1999-12-31'"),
    "bool": ("true", "false", "NULL::boolean"),
}
# Templates by the type of their value; what stands in braces is the type of an operand.
_FORMS = {
    "int": (
        "({int} + {int})", "({int} - {int})", "({int} * 2)", "({int} / 3)", "({int} % 4)", "abs({int})",
        "length({text})", "strpos({text}, {text})", "coalesce({int}, 0)", "nullif({int}, {int})",
        "greatest({int}, {int})", "least({int}, {int})", "CASE WHEN {bool} THEN {int} ELSE {int} END",
        "ascii({text})", "({date} - {date})", "sign({int})::int", "({int} & 7)", "({int} | 8)",
        "extract(day from {date})::int", "extract(isodow from {date})::int", "octet_length({text})",
    ),
    "text": (
        "upper({text})", "lower({text})", "({text} || {text})", "concat({text}, {int}, {text})", "left({text}, 2)",
        "right({text}, -1)", "substring({text}, 2, 3)", "substr({text}, -1, 4)", "replace({text}, 'a', 'xy')",
        "lpad({text}, 5, '*')", "rpad({text}, 3)", "trim({text})", "reverse({text})", "repeat({text}, 2)",
        "split_part({text}, ',', 2)", "initcap({text})", "coalesce({text}, 'none')", "nullif({text}, 'a')",
        "concat_ws('-', {text}, {text})", "md5({text})", "translate({text}, 'abc', 'xy')", "({int})::text",
        "to_char({date}, 'YYYY-MM-DD Dy')", "regexp_replace({text}, '[aeiou]', '_', 'g')", "({bool})::text",
        "overlay({text} placing 'ZZ' from 2 for 1)", "CASE WHEN {bool} THEN {text} END", "btrim({text}, 'ad')",
    ),
    "float": (
        "({float} + {float})", "({float} * 1.5)", "abs({float})", "floor({float})", "ceil({float})",
        "coalesce({float}, 0)", "sqrt(abs({float}))", "({float} - {int})", "trunc({float})", "({int} / 4.0)::float8",
    ),
    "date": (
        "({date} + ({int})::int)", "({date} - 7)", "coalesce({date}, date '2000-01-01')", "greatest({date}, {date})",
        "({date} + interval '1 month')::date", "date_trunc('month', {date})::date", "make_date(2024, 3, 15)",
    ),
    "bool": (
        "({int} > {int})", "({int} = {int})", "({text} < {text})", "({text} LIKE 'a%')", "({text} ILIKE '%B%')",
        "({bool} AND {bool})", "({bool} OR {bool})", "(NOT {bool})", "({int} IN (1, 2, 3))", "({text} IS NULL)",
        "({int} BETWEEN 1 AND 4)", "({date} <= {date})", "({text} ~ '[a-c]')", "({bool} IS NOT TRUE)",
        "({int} IS DISTINCT FROM {int})", "starts_with({text}, 'a')", "({float} < {float})",
    ),
}  # fmt: skip
_DEPTH_MAX = 3


def random_expressions(seed: int, count: int) -> Iterator[str]:
    source = random.Random(seed)
    for _ in range(count):
        yield _make(source, source.choice(tuple(_FORMS)), _DEPTH_MAX)


def _make(source: random.Random, kind: str, depth: int) -> str:
    if depth == 0 or source.random() < 0.15:
        return _COLUMNS[kind] if source.random() < 0.6 else source.choice(_CONSTANTS[kind])
    form = source.choice(_FORMS[kind])
    parts = form.split("{")
    made = [parts[0]]
    for part in parts[1:]:
        operand, _, rest = part.partition("}")
        made += [_make(source, operand, depth - 1), rest]
    return "".join(made)
