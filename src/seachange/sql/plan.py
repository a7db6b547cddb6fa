"""Compiled statements: what is kept of a text between executions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from seachange.model.descriptor import Table
from seachange.sql.duck import DuckSession
from seachange.sql.port import TransactionPort
from seachange.sql.result import Result
from seachange.sql.target import Target


class Plan(Protocol):
    """Holds as long as `is_current`; then the statement is compiled again."""

    def is_current(self, port: TransactionPort) -> bool: ...

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result: ...


def is_same_table(port: TransactionPort, target: Target, table: Table) -> bool:
    """Uncommitted versions of two transactions may have the same number: compare the whole, mostly by identity."""
    found = target.resolve(port)
    return found is table or found == table
