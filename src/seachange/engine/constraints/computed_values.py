"""Computed columns of batches of rows: conversions of columns that will replace others, and generated columns.

**Invariant:** a row whose conversion fails is not refused, but recorded (`engine/constraints/uncommitted.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import pyarrow as pa

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.constraints.uncommitted import record
from seachange.engine.encode.derive import Derivation, Failures
from seachange.engine.encode.write_plan import WritePlan
from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column, Table
from seachange.storage.arrow import arrow_type
from seachange.storage.duck import Duck
from seachange.storage.keys import conversion_hash


def record_failures(txn: TransactionState, table: Table, failed: Failures) -> None:
    for column_id, problem in failed.items():
        record(txn, conversion_hash(table.id, column_id), problem)


class Filler:
    """Computes values; calls `record` with the conversion errors of new rows."""

    def __init__(self, derivation: Derivation, duck: Duck, record: Callable[[Failures], None]) -> None:
        self._table = derivation.table
        self._derivation = derivation
        self._duck = duck
        self._record = record

    @property
    def _filled(self) -> list[Column]:
        return [
            c
            for c in self._table.columns
            if c.conversion is not None or c.completed is not None or (c.generated and not c.virtual)
        ]

    def columns_from(self, changed: Collection[Column]) -> list[Column]:
        """The columns whose values depend on the changed ones."""
        ids = {column.id for column in changed}
        found: list[Column] = []
        # A generated column may depend on a converted one.
        for column in sorted(self._filled, key=lambda c: c.conversion is None):
            expression = column.conversion or column.completed or column.generated
            if expression is not None and not ids.isdisjoint(expression.columns):
                ids.add(column.id)
                found.append(column)
        return found

    def values(
        self, arrays: Mapping[str, pa.Array], name: Callable[[ColumnId], str], recorded: bool = False
    ) -> dict[str, pa.Array]:
        """The computed columns of rows that are given as arrays, by name. `recorded`: the rows are new."""
        inputs = {
            c
            for e in self._filled
            for x in (e.conversion, e.completed, e.generated)
            if x is not None
            for c in x.columns
        }
        count = len(next(iter(arrays.values())))
        nothing = [None] * count
        given = [
            arrays[name(c.id)].to_pylist() if c.id in inputs and name(c.id) in arrays else nothing
            for c in self._table.columns
        ]
        failed: Failures = {}
        rows = self._derivation.derive(list(zip(*given, strict=True)), self._duck, failed)
        if recorded:
            self._record(failed)
        places = {c.id: place for place, c in enumerate(self._table.columns)}
        return {name(c.id): pa.array([r[places[c.id]] for r in rows], arrow_type(c.type)) for c in self._filled}


def filler_of(txn: TransactionState, plan: WritePlan) -> Filler | None:
    """None if no column is computed."""
    return filler_for(plan, txn.parts.duck, partial(record_failures, txn, plan.table))


def filler_for(plan: WritePlan, duck: Duck, record: Callable[[Failures], None]) -> Filler | None:
    derivation = plan.derivation
    return Filler(derivation, duck, record) if derivation is not None and derivation.fills else None
