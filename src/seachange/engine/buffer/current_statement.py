"""The statement that a transaction is running: its context, its times, and what it was given.

**Invariant:** what is kept here of a statement is of no use to the next one, which begins with `start`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from seachange.engine.context.drawn_values import DrawnTape
from seachange.engine.context.statement_context import StatementContext, TransactionMode
from seachange.engine.locks.session_context import SessionContext
from seachange.model.ids import DescriptorId, Epoch
from seachange.model.schema.descriptor import Table
from seachange.model.schema.temporary import schema_of_session
from seachange.model.statements import OnCommit
from seachange.runtime.clock import Clock
from seachange.sql.parsing.mentions import EVERYTHING, Mentions
from seachange.sql.port.port import SessionView
from seachange.sql.translate.time_functions import CLOCK, STATEMENT, TRANSACTION

T = TypeVar("T")


class CurrentStatement:
    """`StatementPort`."""

    def __init__(
        self,
        client: SessionContext,
        mode: TransactionMode,
        clock: Clock,
        epoch: Epoch,
        context: StatementContext | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._epoch = epoch
        self.is_autocommit = mode.autocommit
        self.context = context if context is not None else StatementContext()
        # What it needs of its tables.
        self.mentions = EVERYTHING
        # When the transaction began, and when this statement did.
        self._began_us = self._statement_us = clock.wall_us()
        # Tables that it has looked at, and the values that were drawn for it.
        self.seen: set[DescriptorId] = set()
        self.tape = DrawnTape()
        # Rows that one part of it gives to those behind it.
        self.handed: dict[str, pa.Table] = {}

    def enter(self, context: StatementContext, mentions: Mentions | None = None) -> None:
        """The statements from now on run in this context; `mentions` is what the next one needs of its tables, None if
        it is part of the one before."""
        self.context = context
        if mentions is not None:
            self.mentions = mentions

    def start(self) -> None:
        """It begins, or begins once more."""
        self.tape.rewind()
        self._statement_us = self._clock.wall_us()

    @property
    def began_us(self) -> int:
        """When the transaction began."""
        return self._began_us

    @property
    def moments(self) -> dict[str, int]:
        """The values that functions of time return in it."""
        return {TRANSACTION: self._began_us, STATEMENT: self._statement_us, CLOCK: self._clock.wall_us()}

    @property
    def session(self) -> SessionView:
        return self.context.session

    @property
    def search_path(self) -> tuple[str, ...]:
        return self.context.search_path

    @property
    def temporary_schema(self) -> str | None:
        return self._client.temporary.schema

    def begin_temporary(self) -> None:
        temporary = self._client.temporary
        if temporary.schema is None:
            temporary.schema = schema_of_session(self._epoch, self._client.actor)
        if temporary.schema not in self.search_path:
            self.context = replace(self.context, search_path=(temporary.schema, *self.search_path))

    def note_temporary(self, table: Table, on_commit: OnCommit) -> None:
        self._client.temporary.on_commit[table.id] = on_commit

    def each(self, items: Iterable[T]) -> Iterator[T]:
        return self._client.interrupts.each(items)

    def deadline(self, seconds: float) -> Callable[[], bool]:
        until = self._clock.steady_us() + round(seconds * 1_000_000)

        def is_over() -> bool:
            self._client.interrupts.check()
            return self._clock.steady_us() >= until

        return is_over

    def pause(self, seconds: float) -> None:
        self._client.interrupts.pause(seconds)
