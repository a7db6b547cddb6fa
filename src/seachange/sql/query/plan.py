"""Compiled statements: the plan that is cached with a statement's text."""

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
    """The source of a compiled INSERT, UPDATE or DELETE: the rows that are `given` in its text, or those that a query
    finds (`template`), unless they are found by primary key. `assigned` None: every column (INSERT), or none (DELETE).
    """

    verb: str
    table: Table
    template: Template | None
    given: int = 0
    assigned: Sequence[Column] | None = None
    conflicts: Sequence[str] = ()


class StatementPlan(Protocol):
    """Valid while `is_current`; then the statement is compiled again."""

    def is_current(self, port: TransactionPort) -> bool: ...

    def run(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> Result: ...


class CompilePlan(Protocol):
    """Compiles a tree, for plans that contain other plans."""

    def __call__(self, tree: exp.Expr, port: TransactionPort) -> StatementPlan: ...


def is_same_table(port: TransactionPort, target: DmlTarget, table: Table) -> bool:
    """Uncommitted versions of two transactions may have the same number: compares the whole descriptor, mostly by
    identity."""
    found = target.resolve(port)
    return (found is table or found == table) and target.resolved.is_current(port, (target.schema, target.name))
