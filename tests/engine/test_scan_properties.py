"""Every form of a scan, by position, from memory, of some columns or none, shows what the naive reading shows."""

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.engine.node.node import Node
from seachange.engine.transaction.transaction import Transaction
from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column
from seachange.values.types import BIGINT, TEXT, Kind, SqlType
from tests.engine.database import add_column, arrow, create, open_quiet
from tests.support.examples import examples

COLUMNS = (
    Column(ColumnId(1), "id", BIGINT, nullable=False),
    Column(ColumnId(2), "v", TEXT),
    Column(ColumnId(3), "n", SqlType(Kind.INTEGER)),
    Column(ColumnId(4), "d", SqlType(Kind.DOUBLE)),
    Column(ColumnId(5), "b", SqlType(Kind.BOOLEAN)),
    Column(ColumnId(6), "m", SqlType(Kind.NUMERIC, 18, 2)),
    Column(ColumnId(7), "u", SqlType(Kind.UUID)),
    Column(ColumnId(8), "z", SqlType(Kind.TIMESTAMPTZ)),
)
NAMES = [column.name for column in COLUMNS]
START = datetime(2024, 1, 1, tzinfo=UTC)
IDS = st.integers(0, 30)
Row = tuple[Any, ...]


def values(seed: int) -> Row:
    if seed % 7 == 0:
        return (None,) * 7
    moment = START + timedelta(hours=seed)
    return f"v{seed % 3}", seed, seed / 4, seed % 2 == 0, Decimal(seed) / 100, UUID(int=seed), moment


def rows_of(
    node: Node, txn: Transaction, columns: frozenset[str] | None, sought: frozenset[str] | None
) -> Counter[Row]:
    """Zoned timestamps as microseconds, since DuckDB needs a package for them."""
    table = txn.schema.table(None, "t")
    planned = txn.reads.scan(table, columns=columns, sought=sought)
    shown = [c for c in table.columns if columns is None or c.name in columns]
    wanted = ", ".join(f"epoch_us({c.name})" if c.type.kind is Kind.TIMESTAMPTZ else c.name for c in shown) or "1"
    with node.duck.cursor() as cursor:
        for name, relation in planned.relations.items():
            cursor.register(name, relation)
        found = cursor.execute(f"SELECT {wanted} FROM ({planned.sql}) AS t", dict(planned.parameters)).fetchall()
    return Counter(found)


@dataclass
class History:
    """What a node did, and what each transaction has to see."""

    node: Node
    now: dict[int, Row] = field(default_factory=dict)
    width: int = 7
    seed: int = 0
    open: list[tuple[Transaction, dict[int, Row], int]] = field(default_factory=list)

    def row(self) -> Row:
        self.seed += 1
        return values(self.seed) + (self.seed,) * (self.width - 7)

    def step(self, kind: str, ids: set[int]) -> None:
        if kind == "open":
            self.open.append((self.node.begin(), dict(self.now), self.width))
        elif kind == "compact":
            txn = self.node.begin()
            table = txn.schema.table(None, "t")
            txn.rollback()
            self.node.compact(table, full=len(ids) > 2)
        elif kind == "widen":
            txn = self.node.begin()
            table = txn.schema.table(None, "t")
            txn.definitions.publish(table, add_column(table, f"x{self.width}", frozen="7"))
            txn.commit()
            self.width += 1
            self.now = {id_: (*row, 7) for id_, row in self.now.items()}
        else:
            txn = self.node.begin()
            self.change(txn, kind, ids)
            txn.commit()

    def change(self, txn: Transaction, kind: str, ids: set[int]) -> None:
        table = txn.schema.table(None, "t")
        there = sorted(ids & self.now.keys())
        missing = sorted(ids - self.now.keys())
        old = [(id_, *self.now[id_]) for id_ in there]
        if kind == "delete":
            txn.writes.delete(table, old)
            for id_ in there:
                del self.now[id_]
        elif kind == "update":
            new: list[Row] = [(id_, *self.row()) for id_ in there]
            txn.writes.update(table, old, new)
            self.now |= {row[0]: row[1:] for row in new}
        elif missing:
            new = [(id_, *self.row()) for id_ in missing]
            if kind == "bulk":
                txn.writes.insert_arrow(table, arrow(table, new))
            else:
                txn.writes.insert(table, new)
            self.now |= {row[0]: row[1:] for row in new}

    def check(self, txn: Transaction, expected: dict[int, Row], width: int, columns: set[str]) -> None:
        names = NAMES + [f"x{i}" for i in range(7, width)]
        full = [dict(zip(names, (id_, *row), strict=True)) for id_, row in expected.items()]
        for asked in (None, frozenset(columns), frozenset()):
            shown = [n for n in names if asked is None or n in asked]
            naive = Counter(tuple(_plain(row[n]) for n in shown) or (1,) for row in full)
            for sought in (None, frozenset({"n"}), frozenset({"id"})):
                assert rows_of(self.node, txn, asked, sought) == naive, (asked, sought)


def _plain(value: object) -> object:
    return (
        (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        if isinstance(value, datetime)
        else value
    )


STEPS = st.tuples(
    st.sampled_from(["bulk", "insert", "update", "update", "delete", "open", "compact", "widen"]),
    st.sets(IDS, min_size=1, max_size=12),
)


@settings(max_examples=examples(15), deadline=None)
@given(
    steps=st.lists(STEPS, min_size=1, max_size=10),
    own=st.lists(STEPS.filter(lambda step: step[0] not in {"open", "compact", "widen"}), max_size=2),
    columns=st.sets(st.sampled_from(NAMES), min_size=1, max_size=4),
)
def test_scans_agree(steps, own, columns):
    with tempfile.TemporaryDirectory() as folder:
        node = open_quiet(Path(folder))
        try:
            create(node, columns=COLUMNS)
            history = History(node)
            history.step("bulk", set(range(0, 30, 2)))
            for kind, ids in steps:
                history.step(kind, ids)
                txn = node.begin()
                history.check(txn, history.now, history.width, columns)
                txn.rollback()
            for txn, expected, width in history.open:
                history.check(txn, expected, width, columns)
                txn.rollback()
            txn = node.begin()
            for kind, ids in own:
                history.change(txn, kind, ids)
                history.check(txn, history.now, history.width, columns)
            txn.rollback()
        finally:
            node.close()
