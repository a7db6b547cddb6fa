"""Audits: reading what the checker needs, in one transaction at REPEATABLE READ."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from soak.checker.outcomes import Remains
from soak.checker.rules import PREDICATES, Audit, Probe
from soak.connections import Connection
from soak.schema import keys_of

ITEMS = ("id", "round", "code", "qty", "slot", "kind", "note")
PROBES = 8
# All rows, by each column that may have an index.
WHOLE: tuple[tuple[str, Any], ...] = (
    ("code >= %s", ""),
    ("lower(code) >= %s", ""),
    ("qty >= %s", 0),
    ("slot >= %s", 0),
    ("kind >= %s", 0),
)
POINTS = sorted(PREDICATES.keys() - dict(WHOLE).keys())
BALANCE_MIN = -1_000_000_000
BEGIN = "begin isolation level repeatable read, read only"
CONSTRAINTS = (
    "select conname, pg_get_constraintdef(c.oid) from pg_constraint c join pg_class t on t.oid = c.conrelid "
    "where t.relname = 'items' and c.convalidated"
)
UNIQUE_INDEXES = (
    "select i.relname, pg_get_indexdef(i.oid) from pg_index x join pg_class i on i.oid = x.indexrelid "
    "join pg_class t on t.oid = x.indrelid where t.relname = 'items' and x.indisunique and x.indisvalid"
)
NOT_NULL = "select column_name from information_schema.columns where table_name = 'items' and is_nullable = 'NO'"


def take_audit(connection: Connection, chance: random.Random) -> Audit:
    connection.execute(BEGIN)
    audit = _read(connection, chance)
    connection.execute("commit")
    return audit


def _read(connection: Connection, chance: random.Random) -> Audit:
    rows, _ = connection.execute(f"select {', '.join(ITEMS)} from items")
    items = [dict(zip(ITEMS, row, strict=True)) for row in rows]
    return Audit(
        items=items,
        kinds=frozenset(id_ for (id_,) in connection.execute("select id from kinds")[0]),
        accounts={id_: int(n) for id_, n in connection.execute("select id, balance from accounts")[0]},
        opening=dict(connection.execute("select id, balance from opening")[0]),
        transfers=connection.execute("select payer, payee, amount from transfers")[0],
        constraints=dict([*connection.execute(CONSTRAINTS)[0], *connection.execute(UNIQUE_INDEXES)[0]]),
        not_null=frozenset(name for (name,) in connection.execute(NOT_NULL)[0]),
        probes=list(_probe(connection, items, chance)),
        count=connection.execute("select count(*) from items")[0][0][0],
        accounts_by_balance=[
            (id_, int(balance))
            for id_, balance in connection.execute("select id, balance from accounts where balance > %s", BALANCE_MIN)[
                0
            ]
        ],
    )


def _probe(connection: Connection, items: list[dict[str, Any]], chance: random.Random) -> Iterator[Probe]:
    for predicate, low in WHOLE:
        yield _ask(connection, predicate, (low,))
    if not items:
        return
    # Mostly recent rows: older ones were probed already.
    recent = items[-200:]
    for _ in range(PROBES):
        row = chance.choice(recent)
        predicate = chance.choice(POINTS)
        values = _values(predicate, row)
        if None not in values:
            yield _ask(connection, predicate, values)


def _ask(connection: Connection, predicate: str, values: tuple[Any, ...]) -> Probe:
    ids, _ = connection.execute(f"select id from items where {predicate}", *values)
    return Probe(predicate, values, tuple(id_ for (id_,) in ids))


def _values(predicate: str, row: dict[str, Any]) -> tuple[Any, ...]:
    if predicate.startswith("lower"):
        return (row["code"].lower(),)
    if predicate.startswith("code"):
        return (row["code"],)
    if predicate.startswith("qty >="):
        return (row["qty"], row["qty"] + 10)
    if predicate.startswith("kind"):
        return (row["kind"], row["qty"])
    return (row[predicate.split(maxsplit=1)[0]],)


# The end of a round.


def read_lists(connection: Connection, number: int) -> list[list[tuple[int, str | None]]]:
    """All lists of a round in one snapshot, three times: each by its key, in a range of keys, and by a full scan."""
    keys = keys_of(number)
    connection.execute(BEGIN)
    by_key = [(key, connection.execute("select v from lists where id = %s", key)[0]) for key in keys]
    ranges: list[dict[int, str]] = [
        dict(connection.execute(f"select id, v from lists where {id_} >= %s and {id_} < %s", keys.start, keys.stop)[0])
        for id_ in ("id", "id + 0")
    ]
    connection.execute("commit")
    looked_up = [(key, rows[0][0] if rows else None) for key, rows in by_key]
    return [looked_up, *([(key, found.get(key)) for key in keys] for found in ranges)]


def read_remains(connection: Connection, number: int) -> Remains:
    connection.execute(BEGIN)
    transfers, _ = connection.execute("select id, payer, payee, amount from transfers where round = %s", number)
    items, _ = connection.execute("select id, code, qty from items where round = %s", number)
    connection.execute("commit")
    return Remains(transfers, items)


PRUNE = (
    "update opening set balance = balance - coalesce((select sum(amount) from transfers "
    "where payer = opening.id and round <= {round}), 0) + coalesce((select sum(amount) from transfers "
    "where payee = opening.id and round <= {round}), 0)",
    "delete from transfers where round <= {round}",
    "delete from items where round <= {round}",
    "delete from lists where id < {keys}",
)


def prune(connection: Connection, number: int) -> None:
    """Removes what was checked, so that tables do not grow with the length of a run."""
    connection.execute("begin")
    for statement in PRUNE:
        connection.execute(statement.format(round=number, keys=keys_of(number).stop))
    connection.execute("commit")
