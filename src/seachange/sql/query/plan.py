"""Compiled statements: what is kept of a text between executions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from seachange.model.schema.descriptor import Column, Table
from seachange.sql.compile.target import DmlTarget
from seachange.sql.compile.template import Template
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.port.port import TransactionPort
from seachange.sql.port.result import Result


@dataclass(frozen=True, slots=True)
class ChangeSource:
    """What a compiled INSERT, UPDATE or DELETE works on: the rows that are `given` in its text, or those that a query
    finds (`template`), unless they are found by their primary key. `assigned` None: every column (INSERT), or none at
    all (DELETE)."""

    verb: str
    table: Table
    template: Template | None
    given: int = 0
    assigned: Sequence[Column] | None = None
    conflicts: Sequence[str] = ()


class StatementPlan(Protocol):
    """Holds as long as `is_current`; then the statement is compiled again."""

    def is_current(self, port: TransactionPort) -> bool: ...

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result: ...


class CompilePlan(Protocol):
    """Makes a plan of a tree, for plans that are made of others."""

    def __call__(self, tree: exp.Expr, port: TransactionPort) -> StatementPlan: ...


def is_same_table(port: TransactionPort, target: DmlTarget, table: Table) -> bool:
    """Uncommitted versions of two transactions may have the same number: compare the whole, mostly by identity."""
    found = target.resolve(port)
    return found is table or found == table
