"""Statements of the catalogue in one transaction block, compared with the same statements in autocommit mode: the
schema that they leave, the rows, and whether every index agrees with them."""

import datetime
import itertools
import random
import shutil
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.schema.descriptor import Table
from seachange.model.schema.objects import EnumType, View
from seachange.verify.consistency import check
from tests.ddl_operations.operations import OPERATIONS
from tests.ddl_operations.schema import FILL, TABLES
from tests.schemachange.description import describe

_ALL = tuple(sql for operation in OPERATIONS for sql in operation.statements)
# Statements that are no part of a transaction, with the SQLSTATE that a block rejects them with, as in PostgreSQL.
CONCURRENT = {sql: "25001" for sql in _ALL if "concurrently" in sql}
STATEMENTS = tuple(sql for sql in _ALL if sql not in CONCURRENT)
NOT_SUPPORTED = "0A000"


class Rows(StrEnum):
    """What the statements find."""

    COMMITTED = "over rows"
    NONE = "over empty tables"
    BEFORE = "over rows that the block has inserted before"
    BETWEEN = "over rows that the block inserts after the first statement"


@dataclass(frozen=True, slots=True)
class Sequel:
    """Statements in one block, one after the other."""

    statements: tuple[str, ...]
    rows: Rows

    @property
    def all(self) -> Iterator[str]:
        if self.rows is Rows.BEFORE:
            yield from FILL
        for number, statement in enumerate(self.statements):
            if number == 1 and self.rows is Rows.BETWEEN:
                yield from FILL
            yield from statement.split("; ")

    def __str__(self) -> str:
        return f"{' THEN '.join(self.statements)} ({self.rows})"


def pairs() -> Iterator[Sequel]:
    for both in itertools.product(STATEMENTS, repeat=2):
        yield from (Sequel(both, rows) for rows in Rows)


def triples(count: int, seed: int) -> Iterator[Sequel]:
    draw = random.Random(seed)
    for _ in range(count):
        yield Sequel(tuple(draw.choices(STATEMENTS, k=3)), draw.choice(list(Rows)))


@dataclass(frozen=True, slots=True)
class Ending:
    """The SQLSTATE of the statement that failed, if one did; and what is there then."""

    sqlstate: str = ""
    message: str = field(default="", compare=False)
    lines: tuple[str, ...] = ()

    def describe(self, other: "Ending") -> str:
        """What the other has not, and what it has instead."""
        if self.sqlstate != other.sqlstate:
            return f"{self.message or 'succeeds'}, but {other.message or 'succeeds'}"
        lost, found = (Counter(one.lines) - Counter(two.lines) for one, two in ((self, other), (other, self)))
        return f"without {list(lost)[:3]}, but with {list(found)[:3]}"


class Twins:
    """Copies of a database with rows and of one without, in which statements are run."""

    def __init__(self, filled: Path, empty: Path, scratch: Path) -> None:
        self._filled = filled
        self._empty = empty
        self._scratch = scratch

    def compare(self, sequel: Sequel) -> tuple[Ending, Ending]:
        """How the statements end in autocommit mode, and in a block."""
        return self._run(sequel), self._run(sequel, ("begin",))

    def compare_after_query(self, sequel: Sequel) -> tuple[Ending, Ending]:
        """The same of a block that keeps its snapshot, and has taken it."""
        # One of them has been dropped.
        queries = (f"select count(*) from {table}" for table in TABLES if table != "old")
        return self._run(sequel), self._run(sequel, ("begin isolation level repeatable read", *queries))

    def _run(self, sequel: Sequel, first: Sequence[str] = ()) -> Ending:
        folder = self._scratch / "db"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._filled if sequel.rows is Rows.COMMITTED else self._empty, folder)
        with closing(open_node(folder)) as node:
            failed = self._execute(node, (*first, *sequel.all, *(["commit"] if first else ())))
            return failed or Ending(lines=tuple(sorted(_describe(node))))

    def _execute(self, node: Node, statements: Sequence[str]) -> Ending | None:
        with closing(Session(node)) as session:
            for statement in statements:
                try:
                    session.execute(statement)
                except errors.Error as error:
                    return Ending(error.sqlstate, f"{statement}: {error}")
        return None


def _describe(node: Node) -> Iterator[str]:
    node.epoch.catch_up()
    schema = node.epoch.schemas.newest
    for other in schema.objects.values():
        yield f"{type(other).__name__} {getattr(other, 'schema', '')}.{other.name}"
        if isinstance(other, EnumType):
            yield f"{other.name}: {[value.label for value in other.values]}"
        if isinstance(other, View):
            yield f"{other.name}: {list(other.columns)}"
    for table in schema.by_id.values():
        name = f"{table.schema}.{table.name}"
        yield from (f"{name}: {line}" for line in describe(table))
        yield from (f"{name}: {row}" for row in _rows(node, table))
    yield from (f"check: {problem}" for problem in check(node))


def _rows(node: Node, table: Table) -> Iterator[tuple[object, ...]]:
    with closing(Session(node)) as session:
        for row in session.execute(f"select * from {table.schema}.{table.name}").rows:
            yield tuple(_comparable(value) for value in row)


def _comparable(value: object) -> object:
    """Values that are drawn, and moments, are others each time."""
    return type(value).__name__ if isinstance(value, uuid.UUID | datetime.datetime) else value
