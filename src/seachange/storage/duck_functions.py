"""Functions that DuckDB lacks, registered on the connections that run a text which calls one.

**Invariant:** a function is pure: every node computes the same result.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling

from seachange import errors
from seachange.storage.arrow import interval_text
from seachange.storage.duck_numerics import COMPLAINT, is_vector_function, macro_definition, make_vector_function
from seachange.values import bytes_ops, digits, interval, json_build, json_ops, json_path, names_text, network
from seachange.values.array_text import parse_array, show_record
from seachange.values.date_patterns import capitalise, read_moment, write_interval, write_moment
from seachange.values.duck_text import SHOWN_TYPES, show_list, show_scalar
from seachange.values.format_text import format_text
from seachange.values.interval import read_canonical
from seachange.values.json_order import order_key
from seachange.values.json_text import normalize_json, parse_json
from seachange.values.number_patterns import read_number, write_number
from seachange.values.types import NUMERIC_DEFAULT

# The prefix of their names, which no other name in generated text has.
PREFIX: Final = "seachange_"

_LOCK = threading.Lock()
_TEXT, _TEXTS, _NUMBER, _TRUTH = "VARCHAR", "VARCHAR[]", "BIGINT", "BOOLEAN"
COMPLAIN: Final = PREFIX + "complain"
# The error of array_sample for a sample size that is out of range.
SAMPLE_PHRASE: Final = "sample size must be between 0 and the number of items"
_MEMBERS = "STRUCT(key VARCHAR, value VARCHAR)[]"


def show_interval(canonical: str) -> str:
    return str(read_canonical(canonical))


def check_json(text: str) -> str:
    parse_json(text)
    return text


def _matches(text: str, pattern: str) -> bool:
    """Uses RE2, as in statements: linear in the length of the text."""
    try:
        return bool(pc.match_substring_regex(pa.scalar(text), pattern).as_py())
    except pa.ArrowInvalid:
        raise errors.InvalidRegularExpression(detail=pattern) from None


def _path_functions() -> Iterator[tuple[str, Callable[..., Any], tuple[str, ...], str]]:
    """SQL/JSON path functions; the silent variants return NULL, or nothing, where the others fail."""
    for name, run, result in (
        ("path_exists", json_path.exists, _TRUTH),
        ("path_match", json_path.match, _TRUTH),
        ("path_items", json_path.query, _TEXTS),
    ):
        plain = partial(run, like=_matches)
        yield name, plain, (_TEXT, _TEXT, _TEXT), result
        yield f"{name}_silent", _silent(plain, [] if result == _TEXTS else None), (_TEXT, _TEXT, _TEXT), result


def _silent(run: Callable[..., Any], instead: Any) -> Callable[..., Any]:
    def run_silently(document: str, path: str, variables: str) -> Any:
        try:
            return run(document, path, variables)
        except errors.DataError:
            return instead

    return run_silently


_OF_TWO_NETWORKS: Final[tuple[tuple[str, Callable[..., Any], str], ...]] = (
    ("within", network.is_within, _TRUTH),
    ("within_equal", network.is_within_or_equal, _TRUTH),
    ("overlaps", network.overlaps, _TRUTH),
    ("same_family", network.have_same_family, _TRUTH),
    ("merge", network.merge, "BLOB"),
    ("both", network.both, "BLOB"),
    ("either", network.either, "BLOB"),
    ("distance", network.distance, _NUMBER),
)

# Name, function, argument types and result type. A NULL argument gives NULL.
_FUNCTIONS: Final[tuple[tuple[str, Callable[..., Any], tuple[str, ...], str], ...]] = (
    ("array", parse_array, (_TEXT,), _TEXTS),
    ("show_scalar", show_scalar, (_TEXT, _TEXT), _TEXT),
    ("record", show_record, (_TEXTS,), _TEXT),
    ("show_list", show_list, (_TEXTS, _TEXT), _TEXT),
    ("interval_text", show_interval, (_TEXT,), _TEXT),
    ("jsonb", normalize_json, (_TEXT,), _TEXT),
    ("json", check_json, (_TEXT,), _TEXT),
    ("json_value", json_ops.comparable, (_TEXT,), _TEXT),
    ("json_field", json_ops.get_field, (_TEXT, _TEXT), _TEXT),
    ("json_element", json_ops.get_element, (_TEXT, _NUMBER), _TEXT),
    ("json_path", json_ops.get_path, (_TEXT, _TEXTS), _TEXT),
    ("json_text", json_ops.as_text, (_TEXT,), _TEXT),
    ("json_contains", json_ops.contains, (_TEXT, _TEXT), _TRUTH),
    ("json_has", json_ops.has_key, (_TEXT, _TEXT), _TRUTH),
    ("json_has_any", json_ops.has_any_key, (_TEXT, _TEXTS), _TRUTH),
    ("json_has_all", json_ops.has_all_keys, (_TEXT, _TEXTS), _TRUTH),
    ("json_concat", json_ops.concatenate, (_TEXT, _TEXT), _TEXT),
    ("json_without", json_ops.without_key, (_TEXT, _TEXT), _TEXT),
    ("json_without_all", json_ops.without_keys, (_TEXT, _TEXTS), _TEXT),
    ("json_without_element", json_ops.without_element, (_TEXT, _NUMBER), _TEXT),
    ("format", format_text, (_TEXT, _TEXTS), _TEXT),
    ("json_set", json_ops.set_path, (_TEXT, _TEXTS, _TEXT), _TEXT),
    ("json_replace", json_ops.replace_path, (_TEXT, _TEXTS, _TEXT), _TEXT),
    ("json_strip_nulls", json_ops.strip_nulls, (_TEXT,), _TEXT),
    ("json_pretty", json_ops.pretty, (_TEXT,), _TEXT),
    ("justify_days", interval.justify_days, (_TEXT,), _TEXT),
    ("justify_hours", interval.justify_hours, (_TEXT,), _TEXT),
    ("justify_interval", interval.justify_interval, (_TEXT,), _TEXT),
    ("get_byte", bytes_ops.get_byte, ("BLOB", _NUMBER), "INTEGER"),
    ("count_bits", bytes_ops.count_bits, ("BLOB",), _NUMBER),
    ("bytes_substring", bytes_ops.substring, ("BLOB", _NUMBER, _NUMBER), "BLOB"),
    ("bytes_position", bytes_ops.position, ("BLOB", "BLOB"), _NUMBER),
    ("bytes_trim", bytes_ops.trim, ("BLOB", "BLOB"), "BLOB"),
    ("bytes_trim_start", bytes_ops.trim_start, ("BLOB", "BLOB"), "BLOB"),
    ("bytes_trim_end", bytes_ops.trim_end, ("BLOB", "BLOB"), "BLOB"),
    ("digest", bytes_ops.digest, ("BLOB", _NUMBER), "BLOB"),
    ("scale", digits.count_decimals, (_TEXT,), "INTEGER"),
    ("min_scale", digits.count_needed_decimals, (_TEXT,), "INTEGER"),
    ("initcap", capitalise, (_TEXT,), _TEXT),
    ("write_moment", write_moment, ("TIMESTAMP", _TEXT), _TEXT),
    ("write_number", write_number, (_TEXT, _TEXT), _TEXT),
    ("read_number", read_number, (_TEXT, _TEXT), "DECIMAL({},{})".format(*NUMERIC_DEFAULT)),
    ("write_interval", write_interval, (_TEXT, _TEXT), _TEXT),
    ("read_moment", read_moment, (_TEXT, _TEXT), "TIMESTAMP"),
    ("json_typeof", json_ops.type_name, (_TEXT,), _TEXT),
    ("json_length", json_ops.array_length, (_TEXT,), _NUMBER),
    ("json_without_path", json_ops.without_path, (_TEXT, _TEXTS), _TEXT),
    ("is_json", json_ops.is_json, (_TEXT, _TEXT, _NUMBER), _TRUTH),
    *_path_functions(),
    ("size_bytes", digits.read_size, (_TEXT,), _NUMBER),
    ("hashtext", bytes_ops.hash_text, (_TEXT,), "INTEGER"),
    ("divided_interval", interval.divide, (_TEXT, "DOUBLE"), _TEXT),
    ("shifted_left", bytes_ops.shift_left, (_NUMBER, _NUMBER, _NUMBER), _NUMBER),
    ("shifted_right", bytes_ops.shift_right, (_NUMBER, _NUMBER, _NUMBER), _NUMBER),
    ("json_order", order_key, (_TEXT,), "BLOB"),
    ("get_bit", bytes_ops.get_bit, ("BLOB", _NUMBER), "INTEGER"),
    ("set_bit", bytes_ops.set_bit, ("BLOB", _NUMBER, _NUMBER), "BLOB"),
    ("set_byte", bytes_ops.set_byte, ("BLOB", _NUMBER, _NUMBER), "BLOB"),
    ("escaped_bytes", bytes_ops.escape, ("BLOB",), _TEXT),
    ("unistr", names_text.resolve_escapes, (_TEXT,), _TEXT),
    ("parse_ident", names_text.parse_name, (_TEXT,), _TEXTS),
    ("bare", names_text.drop_parentheses, (_TEXT,), _TEXT),
    ("normalize", names_text.normalize, (_TEXT, _TEXT), _TEXT),
    ("erf", math.erf, ("DOUBLE",), "DOUBLE"),
    ("erfc", math.erfc, ("DOUBLE",), "DOUBLE"),
    ("json_insert", json_ops.insert_before, (_TEXT, _TEXTS, _TEXT), _TEXT),
    ("json_insert_after", json_ops.insert_after, (_TEXT, _TEXTS, _TEXT), _TEXT),
    ("written_jsonb", json_build.to_jsonb, (_TEXT, _TEXT), _TEXT),
    ("written_json", json_build.to_json, (_TEXT, _TEXT), _TEXT),
    ("written_array", json_build.write_array, (_TEXT, _TEXT), _TEXT),
    ("json_object", json_build.write_object, (_TEXTS, _TEXTS), _TEXT),
    ("jsonb_object", json_build.build_object, (_TEXTS, _TEXTS), _TEXT),
    ("json_gathered", json_build.gather_plain_object, (_TEXTS, _TEXT), _TEXT),
    ("jsonb_gathered", json_build.gather_object, (_TEXTS, _TEXT), _TEXT),
    ("json_of_words", json_build.pair_texts, (_TEXTS,), _TEXT),
    ("json_of_lists", json_build.pair_lists, (_TEXTS, _TEXTS), _TEXT),
    ("json_elements", json_build.elements, (_TEXT,), _TEXTS),
    ("json_element_texts", json_build.element_texts, (_TEXT,), _TEXTS),
    ("json_keys", json_build.keys, (_TEXT,), _TEXTS),
    ("json_members", json_build.members, (_TEXT,), _MEMBERS),
    ("json_member_texts", json_build.member_texts, (_TEXT,), _MEMBERS),
    ("read_inet", network.read_address, (_TEXT,), "BLOB"),
    ("read_cidr", network.read_network, (_TEXT,), "BLOB"),
    ("network_text", network.show_address, ("BLOB",), _TEXT),
    ("network_full_text", network.full_text, ("BLOB",), _TEXT),
    ("network_abbreviated", network.abbreviate, ("BLOB",), _TEXT),
    ("network_host", network.host, ("BLOB",), _TEXT),
    ("network_family", network.family, ("BLOB",), "INTEGER"),
    ("network_mask_length", network.mask_length, ("BLOB",), "INTEGER"),
    ("network_network", network.network, ("BLOB",), "BLOB"),
    ("network_broadcast", network.broadcast, ("BLOB",), "BLOB"),
    ("network_net_mask", network.net_mask, ("BLOB",), "BLOB"),
    ("network_host_mask", network.host_mask, ("BLOB",), "BLOB"),
    ("network_inverted", network.invert, ("BLOB",), "BLOB"),
    ("network_set_length", network.set_mask_length, ("BLOB", _NUMBER), "BLOB"),
    ("network_set_network_length", network.set_network_length, ("BLOB", _NUMBER), "BLOB"),
    ("network_shifted", network.shift, ("BLOB", _NUMBER), "BLOB"),
    *((f"network_{name}", run, ("BLOB", "BLOB"), result) for name, run, result in _OF_TWO_NETWORKS),
)


# Trigonometric functions in degrees; rounded, since results that are short in PostgreSQL are exact there.
_IN_DEGREES: Final[dict[str, str]] = {
    **{f"{name}d": f"(x) AS round({name}(radians(x)), 15)" for name in ("sin", "cos", "tan", "cot")},
    **{f"{name}d": f"(x) AS round(degrees({name}(x)), 13)" for name in ("asin", "acos", "atan")},
    "atan2d": "(y, x) AS round(degrees(atan2(y, x)), 13)",
}


def _match_each(operator: str, quantifier: str) -> str:
    join, none = ("OR", "false") if quantifier == "any" else ("AND", "true")
    matches = f"list_transform(patterns, lambda p: x {operator} p ESCAPE '\\')"
    return f"(x, patterns) AS list_reduce({matches}, lambda a, b: a {join} b, {none})"


# Documents are inserted as they are: DuckDB would lose digits of their numbers.
_LISTED_DOCUMENTS: Final = (
    "'[' || array_to_string(list_transform(TRY_CAST(x AS VARCHAR[]), lambda item: coalesce(item, 'null')), ', ') || ']'"
)


def _written(name: str) -> str:
    """The JSON text of any value."""
    return (
        "(x) AS CASE WHEN typeof(x) = 'JSON' THEN TRY_CAST(x AS VARCHAR)"
        f" WHEN typeof(x) = 'JSON[]' THEN {_LISTED_DOCUMENTS}"
        f" ELSE {PREFIX}written_{name}(CAST(to_json(x) AS VARCHAR), typeof(x)) END"
    )


def _read_macros() -> dict[str, str]:
    text = re.sub(r"(?m)^--.*\n", "", files("seachange.storage").joinpath("macros.sql").read_text())
    macros = (re.match(r"\s*(\w+)(.*)", each, re.DOTALL) for each in text.split(";\n"))
    return {macro[1]: macro[2] for macro in macros if macro is not None}


def _network_macros() -> Iterator[tuple[str, str]]:
    """Addresses from texts, bytes and other addresses, and lists of them."""
    for name, made in (
        ("inet", "TRY_CAST(x AS BIT)"),
        ("cidr", f"CAST({PREFIX}network_network(TRY_CAST(x AS BIT)::BLOB) AS BIT)"),
    ):
        read = f"CAST({PREFIX}read_{name}(TRY_CAST({{}} AS VARCHAR)) AS BIT)"
        yield name, f"(x) AS CASE WHEN typeof(x) = 'VARCHAR' THEN {read.format('x')} ELSE {made} END"
        each = f"lambda item: {read.format('item')}"
        yield (
            f"{name}_list",
            (
                f"(x) AS CASE WHEN typeof(x) = 'VARCHAR'"
                f" THEN list_transform({PREFIX}array(TRY_CAST(x AS VARCHAR)), {each})"
                f" WHEN typeof(x) = 'VARCHAR[]' THEN list_transform(TRY_CAST(x AS VARCHAR[]), {each})"
                " ELSE TRY_CAST(x AS BIT[]) END"
            ),
        )


# Functions that depend on the types of their arguments, or combine DuckDB's own, with their definitions.
_MACROS: Final[dict[str, str]] = {
    **_read_macros(),
    PREFIX + "to_char_of_moment": f"(x, f) AS {PREFIX}write_moment(CAST(x AS TIMESTAMP), f)",
    PREFIX + "to_char_of_interval": f"(x, f) AS {PREFIX}write_interval({interval_text('x')}, f)",
    PREFIX + "to_char_of_number": f"(x, f) AS {PREFIX}write_number(CAST(x AS VARCHAR), f)",
    PREFIX + "to_char": f"(x TIMESTAMP, f) AS {PREFIX}write_moment(x, f),"
    f"(x DATE, f) AS {PREFIX}write_moment(CAST(x AS TIMESTAMP), f),"
    f"(x TIMESTAMP WITH TIME ZONE, f) AS {PREFIX}write_moment(CAST(x AS TIMESTAMP), f),"
    f"(x INTERVAL, f) AS {PREFIX}write_interval({interval_text('x')}, f),"
    f"(x, f) AS {PREFIX}write_number(CAST(x AS VARCHAR), f)",
    # typeof is a constant for DuckDB, so that only one branch is left. A value without a cast to the type is NULL
    # there.
    PREFIX + "text": f"(x) AS CASE WHEN typeof(x) IN ({', '.join(repr(t) for t in SHOWN_TYPES)})"
    f" THEN {PREFIX}show_scalar(CAST(x AS VARCHAR), typeof(x))"
    f" WHEN typeof(x) LIKE '%[]' AND typeof(x) NOT LIKE '%[][]'"
    f" THEN {PREFIX}show_list(TRY_CAST(x AS VARCHAR[]), typeof(x)) ELSE CAST(x AS VARCHAR) END",
    **{PREFIX + name: definition for name, definition in _network_macros()},
    **{
        f"{PREFIX}{operator.lower()}_{quantifier}": _match_each(operator, quantifier)
        for operator in ("LIKE", "ILIKE")
        for quantifier in ("any", "all")
    },
    **{f"{PREFIX}to_{name}": _written(name) for name in ("json", "jsonb", "array")},
    **{PREFIX + name: definition for name, definition in _IN_DEGREES.items()},
    PREFIX + "sampled": "(l, n) AS CASE WHEN n BETWEEN 0 AND len(l)"
    f" THEN list_slice({PREFIX}shuffled(l), 1, n) ELSE error('{SAMPLE_PHRASE}') END",
    # See `complaint`; of few digits, so that the type of the surrounding expression does not change.
    COMPLAIN: f"(words) AS CAST('{COMPLAINT}' || words AS TINYINT)",
}
_BY_NAME: Final = {PREFIX + name: (run, given, result) for name, run, given, result in _FUNCTIONS}


_CALLED: Final = re.compile(rf"\b({PREFIX}\w+)\(", re.IGNORECASE)


def know_functions(connection: duckdb.DuckDBPyConnection, sql: str, known: set[str] | None = None) -> bool:
    """Registers the functions that the text calls; returns whether there are any. `known` caches the names that the
    connection has."""
    called = {name.lower() for name in _CALLED.findall(sql)}
    for name in sorted(called - known if known else called):
        _learn(connection, name)
    if known is not None:
        known |= called
    return bool(called)


def _learn(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    if name in _BY_NAME:
        _make_known(connection, name, *_BY_NAME[name])
    elif is_vector_function(name):
        # Concurrent creation would be a conflict in DuckDB's catalog.
        with _LOCK, suppress(duckdb.NotImplementedException, duckdb.CatalogException):
            make_vector_function(connection, name)
    elif (definition := _MACROS.get(name) or macro_definition(name)) is not None:
        for used in _CALLED.findall(definition):
            _learn(connection, used)
        _define(connection, name, definition)


def _define(connection: duckdb.DuckDBPyConnection, name: str, definition: str) -> None:
    # If two sessions defined it concurrently, one would fail before it could see the other's definition.
    with _LOCK, suppress(duckdb.CatalogException, duckdb.TransactionException):
        connection.execute(f"CREATE MACRO IF NOT EXISTS {name} {definition}").fetchall()


def _make_known(
    connection: duckdb.DuckDBPyConnection, name: str, run: Callable[..., Any], given: tuple[str, ...], result: str
) -> None:
    # Concurrent creation would be a conflict in DuckDB's catalog.
    with _LOCK, suppress(duckdb.NotImplementedException, duckdb.CatalogException):
        # Fails if it is registered already.
        connection.create_function(
            name,
            _strict(run, len(given)),
            list(given),
            result,
            null_handling=FunctionNullHandling.SPECIAL,
        )


# Cached for ever: DuckDB releases a function when the connection closes that registered it, but still calls it.
@cache
def _strict(run: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    match arguments:
        case 1:
            return lambda a: None if a is None else run(a)
        case 2:
            return lambda a, b: None if a is None or b is None else run(a, b)
        case _:
            return lambda a, b, c: None if a is None or b is None or c is None else run(a, b, c)
