"""A transaction as the consistency checker reads it (`verify/port.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seachange.engine.transaction.transaction import Transaction
from seachange.model.schema.descriptor import Index, Table

Row = tuple[Any, ...]


class CheckedSnapshot:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.parts = transaction.state.parts
        self.epoch = transaction.state.epoch
        self.snapshot = transaction.state.snapshot.seq

    def every_table(self) -> tuple[Table, ...]:
        return self._transaction.schema.every_table()

    def broken_checks(self, table: Table, rows: Sequence[Row]) -> list[tuple[str, Row]]:
        checks, interrupts = self.parts.write_plan(table).checks, self._transaction.state.client.interrupts
        return [(check.name, row) for check, row in checks.broken(rows, self.parts.duck, interrupts)] if checks else []

    def fill(self, table: Table, rows: Sequence[Row]) -> Sequence[Row]:
        return self._transaction.writes.fill(table, rows)

    def entries(self, table: Table, index: Index, rows: Sequence[Row]) -> list[Row | None]:
        """As stored."""
        plan = self.parts.write_plan(table).entry(index.id)
        return [
            plan.stored(row) if plan.has_entry(row) else None for row in self._transaction.writes.derive(table, rows)
        ]

    def rollback(self) -> None:
        self._transaction.rollback()
