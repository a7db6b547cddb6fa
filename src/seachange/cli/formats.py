"""Results as text: an aligned table, CSV or JSON."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TextIO

from seachange.sql.port.result import Result, ResultColumn, Row
from seachange.values.output_format import show_text
from seachange.values.types import Kind, SqlType

# The types that a table aligns to the right: numbers, by PostgreSQL's OIDs.
_NUMBERS = frozenset({20, 21, 23, 700, 701, 1700})

# Statements whose command tag is printed after the rows that they return.
_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE"})


def print_table(result: Result, out: TextIO) -> None:
    if result.columns is None:
        print(result.tag, file=out)
        return
    cells = [_cells(row, result.columns) for row in result.rows]
    widths = [max([len(column.name), *(len(row[i]) for row in cells)]) for i, column in enumerate(result.columns)]
    header = [column.name.center(width) for column, width in zip(result.columns, widths, strict=True)]
    print(" " + " | ".join(header).rstrip(), file=out)
    print("-" + "-+-".join("-" * width for width in widths) + "-", file=out)
    for row in cells:
        print(" " + " | ".join(_aligned(row, widths, result.columns)).rstrip(), file=out)
    print(f"({len(cells)} row{'' if len(cells) == 1 else 's'})\n", file=out)
    if result.tag.split(" ")[0] in _CHANGES:
        print(result.tag, file=out)


def _aligned(row: list[str], widths: list[int], columns: tuple[ResultColumn, ...]) -> list[str]:
    return [
        cell.rjust(width) if column.oid in _NUMBERS else cell.ljust(width)
        for cell, width, column in zip(row, widths, columns, strict=True)
    ]


def print_expanded(result: Result, out: TextIO) -> None:
    """One line for each column of a row."""
    columns = result.columns or ()
    width = max((len(column.name) for column in columns), default=0)
    for number, row in enumerate(result.rows, 1):
        print(f"-[ RECORD {number} ]".ljust(width + 12, "-"), file=out)
        for column, cell in zip(columns, _cells(row, columns), strict=True):
            print(f"{column.name.ljust(width)} | {cell}", file=out)
    print(f"({len(result.rows)} row{'' if len(result.rows) == 1 else 's'})\n", file=out)


def print_csv(result: Result, out: TextIO) -> None:
    if result.columns is None:
        return
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in result.columns])
    writer.writerows([_cells(row, result.columns) for row in result.rows])


def print_json(result: Result, out: TextIO) -> None:
    """One array of objects per result, on one line."""
    if result.columns is None:
        return
    names = [json.dumps(column.name, ensure_ascii=False) for column in result.columns]
    rows = ("{" + ", ".join(f"{n}: {_json(v)}" for n, v in zip(names, row, strict=True)) + "}" for row in result.rows)
    print("[" + ", ".join(rows) + "]", file=out)


FORMATS: dict[str, Callable[[Result, TextIO], None]] = {
    "table": print_table,
    "csv": print_csv,
    "json": print_json,
}


def _cells(row: Row, columns: tuple[ResultColumn, ...]) -> list[str]:
    """As PostgreSQL prints them; NULL is empty."""
    return [_cell(value, column.type) for value, column in zip(row, columns, strict=True)]


def _cell(value: Any, type_: SqlType | None) -> str:
    # A sum of integers is an integer with more digits than others.
    if type_ is None or (isinstance(value, int) and type_.kind is Kind.NUMERIC):
        return _text(value)
    return show_text(type_, value) or ""


def _text(value: Any) -> str:
    """For a value of unknown type."""
    match value:
        case None:
            return ""
        case bool():
            return "t" if value else "f"
        case bytes():
            return "\\x" + value.hex()
        case dt.datetime():
            return _moment(value)
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)


def _moment(value: dt.datetime) -> str:
    text = value.isoformat(sep=" ")
    return text.removesuffix(":00") if value.tzinfo is not None else text


def _json(value: Any) -> str:
    match value:
        case Decimal() if value.is_finite():
            # JSON numbers have any number of digits.
            return f"{value:f}"
        case float() if not math.isfinite(value):
            return json.dumps(str(value))
        case None | bool() | int() | float() | str():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return "[" + ", ".join(_json(item) for item in value) + "]"
        case _:
            return json.dumps(_text(value), ensure_ascii=False)
