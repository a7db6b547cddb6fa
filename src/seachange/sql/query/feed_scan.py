"""The rows of a call of `seachange.feed`: its arguments as values, and the privileges that it needs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from seachange import errors
from seachange.model.scan import Scan
from seachange.model.schema.descriptor import Table
from seachange.sql.compile.feed_calls import FEED, FeedCall, Value
from seachange.sql.duck.operands import Given
from seachange.sql.parsing.call_statement import parse_relation
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.system_columns import SYSTEM_SCHEMA
from seachange.sql.settings.setting_checks import parse_as_of
from seachange.values.array_text import parse_array


def scan_feed(call: FeedCall, port: TransactionPort, values: Sequence[Any], number: int) -> Scan:
    """`number` distinguishes the references of a statement."""
    tables = [_find(name, port) for name in _names(call, values)]
    since, until = (_position(name, _value(v, values)) for name, v in (("since", call.since), ("until", call.until)))
    rows = port.feeds.read([table.id for table in dict.fromkeys(tables)], since, until)
    relation = f"feed_{number}"
    return Scan(f"SELECT * FROM {relation}", {}, {relation: rows}, "change feed")  # noqa: S608


def _value(operand: Value, values: Sequence[Any]) -> Any:
    return operand.value if isinstance(operand, Given) else values[operand.number - 1]


def _names(call: FeedCall, values: Sequence[Any]) -> list[str]:
    if isinstance(call.tables, tuple):
        found = [_value(each, values) for each in call.tables]
    else:
        given = _value(call.tables, values)
        found = parse_array(given) if isinstance(given, str) else list(given or ())
    if not found or not all(isinstance(name, str) for name in found):
        raise errors.InvalidParameterValue(detail=f"{SYSTEM_SCHEMA}.{FEED} needs the names of tables")
    return found


def _find(text: str, port: TransactionPort) -> Table:
    name = parse_relation(text)
    found = port.names.relation(name.schema, name.name)
    if not isinstance(found, Table):
        raise errors.WrongObjectType(name=found.name, kind="table")
    port.rights.check_access(found, "SELECT")
    return found


def _position(name: str, value: Any) -> int | dt.datetime | None:
    """A sequence number, a moment, or None."""
    match value:
        case None | dt.datetime():
            return value
        case bool():
            pass
        case int() if value >= 0:
            return value
        case str():
            try:
                return parse_as_of(value)
            except ValueError:
                pass
        case _:
            pass
    raise errors.InvalidParameterValue(
        detail=f"{name} of {SYSTEM_SCHEMA}.{FEED} is neither a sequence number nor a moment: {value}"
    )
