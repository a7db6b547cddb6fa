"""Calls of every operator and function in the binder's tables. Arguments are columns of a table that has each type, or
constants, chosen from a seed."""

import random
from collections.abc import Iterator, Sequence

from seachange.sql.bind.postgres import Signature, functions, operators

# The columns of the table, by the type that they have, with values of its rows.
VALUES: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false"),
    "int2": ("7", "-2", "0"),
    "int4": ("42", "-7", "0", "1", "3"),
    "int8": ("9000000000", "-5", "2"),
    "numeric": ("12.50", "-0.75", "3", "0.10"),
    "float4": ("1.5", "-0.25", "2"),
    "float8": ("0.5", "-3.75", "2", "1"),
    "text": ("abc", "Hello World", "", "a,b,c", "%b%", "日本"),
    "varchar": ("xyz", "ab", ""),
    "bpchar": ("ab ", "xyz"),
    "name": ("some_name", "abc"),
    "bytea": ("\\x00ff10", "\\x", "\\x616263"),
    "date": ("2024-02-29", "1999-12-31"),
    "time": ("10:30:15.5", "00:00"),
    "timestamp": ("2024-02-29 23:59:59.999", "1999-12-31 00:00"),
    "timestamptz": ("2024-02-29 12:00:00+00", "1999-12-31 23:00:00-02"),
    "interval": ("1 mon 2 days 03:04:05", "-3 hours", "36 hours"),
    "uuid": ("00000000-0000-0000-0000-000000000001", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "json": ('{"a": [1, {"b": null}], "t":  "x"}', '[1, "a"]'),
    "jsonb": ('{"a": [1, {"b": null}], "t": "x"}', '[1, "a", true]', "2", '"a"'),
    "jsonpath": ("$.a", "$[*]", "$.t"),
    "inet": ("10.0.0.1", "192.168.1.0/24", "::1"),
    "cidr": ("10.0.0.0/8", "192.168.1.0/24"),
    "oid": ("23", "25"),
    "_int4": ("{1,2,3}", "{5,NULL,7}", "{}"),
    "_text": ("{a,b}", "{}", "{x,NULL}", "{abc,t}"),
    "_numeric": ("{1.5,2}",),
    "_float8": ("{0.5,2}",),
    "_bool": ("{t,f}",),
    "_date": ("{2024-02-29}",),
}
# No column has it; a constant does.
_CONSTANTS = frozenset({"jsonpath", "name", "oid"})
COLUMNS = tuple(name for name in VALUES if name not in _CONSTANTS)
# What a type stands for that is chosen by the others of a call.
_CHOICES: dict[str, tuple[str, ...]] = {
    "anyelement": ("int4", "text", "numeric", "date"),
    "anynonarray": ("int4", "text"),
    "any": ("text", "int4"),
}
_ROWS = 4
# They answer differently each time, change something, show the server or session, or are for the server's own use.
_OTHER_PREFIXES = (
    "pg_", "has_", "current_", "txid_", "lo_", "inet_client", "inet_server", "binary_", "set_config", "setval",
    "nextval", "currval", "lastval", "query_to", "table_to", "schema_to", "database_to", "cursor_to", "ts_",
    "to_ts", "random", "gen_random", "clock", "statement_", "transaction_", "timeofday", "now", "version",
    "getdatabase", "acl", "makeacl", "row_security", "array_shuffle", "array_sample", "brin", "gin", "gist",
    "hash", "bt", "spg", "amvalidate", "in_range", "unique_key", "suppress", "to_reg", "col_description",
    "obj_description", "shobj_description", "format_type", "oid", "mxid_age", "age", "set_", "get_",
    "session_user", "inherits", "regclass", "xml", "parse_ident", "timeofday",
)  # fmt: skip
_OTHER_SUFFIXES = (
    "_send", "_recv", "in", "out", "_accum", "_final", "_finalfn", "_transfn", "_combine", "_serialize",
    "_deserialize", "_inv", "_support", "_larger", "_smaller", "_cmp", "_eq", "_ne", "_lt", "_le", "_gt", "_ge",
    "_hash", "_sortsupport", "eq", "ne", "lt", "le", "gt", "ge", "cmp", "_pl", "_mi", "_mul", "_div", "pl",
    "mi", "mul", "div", "_add", "_sub", "_subscript_handler", "_typmod", "larger", "smaller", "um", "up",
    "like", "regexeq", "regexne", "mod", "abs_",
)  # fmt: skip
_KEPT = frozenset(
    {"min", "join", "chr", "floor", "sin", "asin", "div", "mod", "trim_array", "range_intersect_agg", "sum"}
)


def create_table() -> str:
    names = ", ".join(f"c_{name} {_written(name)}" for name in COLUMNS)
    rows = []
    for number in range(_ROWS):
        values = [
            "NULL" if number == _ROWS - 1 else f"'{VALUES[name][number % len(VALUES[name])]}'" for name in COLUMNS
        ]
        rows.append(f"({number}, {', '.join(values)})")
    return f"CREATE TABLE calls (id int PRIMARY KEY, {names}); INSERT INTO calls VALUES {', '.join(rows)}"


def _written(name: str) -> str:
    return "char(5)" if name == "bpchar" else f"{name[1:]}[]" if name.startswith("_") else name


def all_calls(source: random.Random) -> Iterator[str]:
    """A query for each operator and function whose arguments have types of the table."""
    for name, signatures in sorted(operators().items()):
        for each in signatures:
            arguments = _arguments(source, each)
            if arguments is not None:
                text = f"{name} {arguments[0]}" if len(arguments) == 1 else f"{arguments[0]} {name} {arguments[1]}"
                yield f"SELECT id, {text} AS x FROM calls"
    for name, signatures in sorted(functions().items()):
        for each in signatures:
            arguments = _arguments(source, each) if _is_called(name) else None
            if arguments is not None:
                yield _query(name, each, arguments)


def _is_called(name: str) -> bool:
    is_other = name.startswith(_OTHER_PREFIXES) or name.endswith(_OTHER_SUFFIXES)
    return (not is_other or name in _KEPT) and not name.startswith(
        ("int2", "int4", "int8", "float", "numeric_", "text")
    )


def _query(name: str, signature: Signature, arguments: Sequence[str]) -> str:
    called = f"{name}({', '.join(arguments)})"
    if signature.kind == "a":
        return f"SELECT {called} AS x FROM calls"
    if signature.kind == "w":
        return f"SELECT id, {called} OVER (ORDER BY id) AS x FROM calls"
    if signature.returns_set:
        return f"SELECT id, x.* FROM calls CROSS JOIN LATERAL {called} AS x"
    return f"SELECT id, {called} AS x FROM calls"


def _arguments(source: random.Random, signature: Signature) -> list[str] | None:
    chosen = {kind: source.choice(names) for kind, names in _CHOICES.items()}
    element = chosen["anyelement"]
    compatible = source.choice(("int4", "text"))
    chosen |= {
        "anyarray": "_numeric" if element == "numeric" else f"_{element}",
        "anycompatible": compatible,
        "anycompatiblenonarray": compatible,
        "anycompatiblearray": f"_{compatible}",
    }
    found = []
    for type_ in signature.arguments:
        name = chosen.get(type_, type_)
        if name not in VALUES:
            return None
        found.append(_argument(source, name))
    return found


def _argument(source: random.Random, name: str) -> str:
    if name not in _CONSTANTS and source.random() < 0.7:
        return f"c_{name}"
    return f"'{source.choice(VALUES[name])}'::{_written(name)}"
