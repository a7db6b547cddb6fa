"""The text of writers' statements. Values are literals, or quoted texts, which PostgreSQL accepts for any type.

**Invariant:** a text contains nothing but quoted names, quoted texts and literals that `values` made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seachange.model.schema.descriptor import Table
from seachange.model.schema.enums import quote_text
from seachange.replay.values import Made
from seachange.storage.plan import quote


def relation(schema: str, name: str) -> str:
    return f"{quote(schema)}.{quote(name)}"


def insert(table: Table, row: Mapping[str, Made], returned: Sequence[str]) -> str:
    target = f"INSERT INTO {relation(table.schema, table.name)}"
    values = f"({_names(row)}) VALUES ({', '.join(made.literal for made in row.values())})" if row else "DEFAULT VALUES"
    return f"{target} {values}" + (f" RETURNING {_texts(returned)}" if returned else "")


def update(table: Table, row: Mapping[str, Made], key: Mapping[str, str]) -> str:
    assigned = ", ".join(f"{quote(name)} = {made.literal}" for name, made in row.items())
    return f"UPDATE {relation(table.schema, table.name)} SET {assigned} WHERE {_condition(key)}"


def add_one(table: Table, column: str, key: Mapping[str, str]) -> str:
    counted = f"{quote(column)} = coalesce({quote(column)}, 0) + 1"
    return f"UPDATE {relation(table.schema, table.name)} SET {counted} WHERE {_condition(key)}"


def first(table: Table, columns: Sequence[str], count: int) -> str:
    """The rows with the lowest keys."""
    order = ", ".join(quote(name) for name in columns)
    return f"SELECT {_texts(columns)} FROM {relation(table.schema, table.name)} ORDER BY {order} LIMIT {count}"


def delete(table: Table, key: Mapping[str, str]) -> str:
    return f"DELETE FROM {relation(table.schema, table.name)} WHERE {_condition(key)}"


def find(table: Table, columns: Sequence[str], key: Mapping[str, str]) -> str:
    return f"SELECT {_texts(columns)} FROM {relation(table.schema, table.name)} WHERE {_condition(key)}"


def count(schema: str, name: str) -> str:
    return f"SELECT count(*) FROM {relation(schema, name)}"


def _names(columns: Mapping[str, Made]) -> str:
    return ", ".join(quote(name) for name in columns)


def _texts(columns: Sequence[str]) -> str:
    return ", ".join(f"{quote(name)}::text" for name in columns)


def _condition(key: Mapping[str, str]) -> str:
    return " AND ".join(f"{quote(name)} = {quote_text(value)}" for name, value in key.items())
