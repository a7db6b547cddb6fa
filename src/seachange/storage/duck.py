"""The node's DuckDB: one in-memory database, one cursor per session, locked down.

**Invariant:** DuckDB holds no data of its own, and runs only text generated from a checked tree.
"""

from __future__ import annotations

import threading
from enum import StrEnum
from pathlib import Path

import duckdb

from seachange import errors
from seachange.storage.duck_instances import INSTANCES, InstanceDesign
from seachange.storage.duck_numerics import complaint

_CONFIG: tuple[tuple[str, str | bool], ...] = (
    ("autoinstall_known_extensions", False),
    ("autoload_known_extensions", False),
    ("allow_community_extensions", False),
    ("python_enable_replacements", False),
    ("preserve_insertion_order", False),
    ("default_null_order", "NULLS_LAST_ON_ASC_FIRST_ON_DESC"),
)

# Settings of the built-in Parquet and ICU extensions, which exist only once the database is open. The progress bar
# would appear in the output of the command line; it can only be disabled per connection.
NO_PROGRESS_BAR = "SET enable_progress_bar = false"

_SETTINGS: tuple[str, ...] = (
    "SET GLOBAL parquet_metadata_cache = true",
    "SET GLOBAL TimeZone = 'UTC'",
    # 7 / 2 is 3 in PostgreSQL; a macro uses the setting of the connection that creates it.
    "SET integer_division = true",
)

# The sum of integers is a bigint, as in PostgreSQL: fewer than 2^32 of them cannot overflow it.
SUM_MACRO = "sum_as_declared"
# An interval of months, days and microseconds, and these of an interval.
SPAN_MACRO = "span_of"
SPAN_PARTS = ("span_months", "span_days", "span_microseconds")
# Casts.
AS_INTEGER = "as_integer"
AS_DOUBLE = "as_double"
# A time of day as the interval since midnight.
AS_SPAN = "as_span"
# A time or interval to so many microseconds; half of them are rounded away from zero.
IN_UNITS = "in_units"
# A numeric with at most nine decimal digits: two of them can be multiplied.
_FACTOR = "as_factor"
FACTOR_PHRASE = "a factor has more than 9 digits behind its point"
# The first of several arguments.
FIRST_MACRO = "first_of"


class DividedBy(StrEnum):
    """How DuckDB divides: natively, or as doubles if one operand is a real."""

    DUCKDB = "divided"
    DOUBLES = "divided_as_doubles"


class MultipliedBy(StrEnum):
    """How DuckDB multiplies: `WIDE` in 128 bits, `FACTORS` if neither operand has too many decimal digits."""

    DUCKDB = "multiplied"
    DOUBLES = "multiplied_as_doubles"
    WIDE = "multiplied_wide"
    FACTORS = "multiplied_as_factors"
    SQUARE = "squared"


_MACROS: tuple[str, ...] = (
    f"CREATE MACRO {SPAN_PARTS[0]}(x) AS date_part('year', x) * 12 + date_part('month', x)",
    f"CREATE MACRO {SPAN_PARTS[1]}(x) AS date_part('day', x)",
    f"""CREATE MACRO {SPAN_PARTS[2]}(x) AS
        date_part('hour', x) * 3600000000 + date_part('minute', x) * 60000000 + date_part('microsecond', x)""",
    f"""CREATE MACRO {SPAN_MACRO}(m, d, u) AS
        to_months(CAST(m AS INTEGER)) + to_days(CAST(d AS INTEGER)) + to_microseconds(CAST(u AS BIGINT))""",
    f"""CREATE MACRO {SUM_MACRO}
        (x SMALLINT) AS CAST(sum_no_overflow(x) AS BIGINT),
        (x INTEGER) AS CAST(sum_no_overflow(x) AS BIGINT),
        (x INTERVAL) AS {SPAN_MACRO}(sum({SPAN_PARTS[0]}(x)), sum({SPAN_PARTS[1]}(x)), sum({SPAN_PARTS[2]}(x))),
        (x) AS sum(x)""",
    f"CREATE MACRO {FIRST_MACRO}(x, y, z) AS x, (x, y, z, u) AS x",
    f"CREATE MACRO {DividedBy.DUCKDB}(x, y) AS x / y",
    f"CREATE MACRO {DividedBy.DOUBLES}(x, y) AS CAST(x AS DOUBLE) / CAST(y AS DOUBLE)",
    f"CREATE MACRO {MultipliedBy.DUCKDB}(x, y) AS x * y",
    f"CREATE MACRO {MultipliedBy.DOUBLES}(x, y) AS CAST(x AS DOUBLE) * CAST(y AS DOUBLE)",
    f"CREATE MACRO {MultipliedBy.WIDE}(x, y) AS CAST(1 AS DECIMAL(38, 0)) * x * y",
    f"CREATE MACRO {AS_INTEGER}(x) AS CAST(x AS INTEGER)",
    f"CREATE MACRO {AS_DOUBLE}(x) AS CAST(x AS DOUBLE)",
    f"""CREATE MACRO {IN_UNITS}(x, unit) AS x - to_microseconds(epoch_us(x) % unit) + to_microseconds(
        CASE WHEN abs(epoch_us(x) % unit) * 2 >= unit THEN CAST(sign(epoch_us(x)) AS BIGINT) * unit ELSE 0 END)""",
    f"CREATE MACRO {AS_SPAN}(x) AS to_microseconds(date_diff('microsecond', TIME '00:00:00', x))",
    f"""CREATE MACRO {_FACTOR}(x) AS CASE WHEN CAST(x AS DECIMAL(38, 9)) = x OR x IS NULL
        THEN CAST(x AS DECIMAL(38, 9)) ELSE {complaint(FACTOR_PHRASE, "DECIMAL(38, 9)")} END""",
    f"CREATE MACRO {MultipliedBy.SQUARE}(x) AS CAST(1 AS DECIMAL(38, 0)) * x * x",
    f"CREATE MACRO {MultipliedBy.FACTORS}(x, y) AS {_FACTOR}(x) * {_FACTOR}(y)",
    # information_schema._pg_expandarray: each item of a vector with its number.
    "CREATE MACRO expand_vector(v) AS unnest([{'x': v[i], 'n': i} for i in generate_series(1, len(v))])",
)


class Duck:
    """DuckDB stores none of our data: it reads the Arrow tables and Parquet files that a statement passes to it."""

    def __init__(self, spill_folder: Path, memory_limit_bytes: int = 0, spill_limit_bytes: int = 0) -> None:
        """A limit of 0 is DuckDB's default."""
        limits = (("memory_limit", memory_limit_bytes), ("max_temp_directory_size", spill_limit_bytes))
        limited = tuple((name, f"{limit}B") for name, limit in limits if limit)
        self._design = InstanceDesign(_CONFIG + limited, _SETTINGS + _MACROS)
        self._connection: duckdb.DuckDBPyConnection | None = INSTANCES.take(self._design, spill_folder)
        self._lock = threading.Lock()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        with self._lock:
            if self._connection is None:
                raise errors.NodeClosed()
            cursor = self._connection.cursor()
        cursor.execute(NO_PROGRESS_BAR)
        return cursor

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            INSTANCES.give_back(self._design, connection)
