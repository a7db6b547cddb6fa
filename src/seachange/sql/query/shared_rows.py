"""Shared rows of a query: it is evaluated once, and several parts of a statement read its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seachange.sql.compile.template import compile_template
from seachange.sql.duck.cursor import DuckSession
from seachange.sql.duck.returned_rows import read_as
from seachange.sql.duck.stream import BATCH_ROWS
from seachange.sql.port.port import TransactionPort
from seachange.sql.query.query import bind_query


def count_parameters(tree: exp.Expr) -> int:
    return max((int(node.this.name) for node in tree.find_all(exp.Parameter) if node.this.name.isdigit()), default=0)


class SharedRows:
    def __init__(self, tree: exp.Expr) -> None:
        self.count = count_parameters(tree)
        self._template = compile_template(tree)

    def read(self, port: TransactionPort, duck: DuckSession, values: Sequence[Any]) -> pa.Table:
        query = bind_query(self._template, port, values[: self.count])
        _, types = duck.describe(query)
        with duck.batches(query, BATCH_ROWS) as reader:
            return read_as(reader.read_all(), types)
