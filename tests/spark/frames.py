"""Rows of DataFrames and of queries in one form, so that they can be compared."""

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any
from uuid import UUID

from pyspark.sql import DataFrame

from seachange.engine.api import Connection
from seachange.values.interval import Interval
from seachange.values.network import read_address, read_network, show_address, show_network

Row = tuple[Any, ...]


def plain(value: Any) -> Any:
    """What Spark has no type for, as text; NaN equal to itself."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, IPv4Network | IPv6Network):
        return show_network(read_network(str(value)))
    if isinstance(value, IPv4Address | IPv6Address):
        return show_address(read_address(str(value)))
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, Interval):
        return f"{value.months} months {value.days} days {value.microseconds} microseconds"
    if isinstance(value, dt.time):
        return value.isoformat().rstrip("0").rstrip(".") if value.microsecond else value.isoformat()
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return value


def counted(rows: Iterable[Iterable[Any]]) -> Counter[Row]:
    return Counter(tuple(map(plain, row)) for row in rows)


def frame_rows(frame: DataFrame) -> Counter[Row]:
    found = frame.toArrow()
    return counted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def table_rows(db: Connection, table: str) -> Counter[Row]:
    return counted(db.execute(f"select * from {table}").fetchall())
