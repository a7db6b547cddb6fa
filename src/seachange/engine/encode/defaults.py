"""The values of defaults that are expressions, for many rows at once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any
from uuid import UUID

import pyarrow as pa

from seachange.model.ids import DescriptorId
from seachange.model.schema.descriptor import Column
from seachange.runtime.entropy import Entropy
from seachange.sql.duck.cursor import DuckQuery, DuckSession
from seachange.sql.duck.default_text import DefaultFunction, DrawnDefault, drawn_text, read_drawn
from seachange.sql.translate.time_functions import TRANSACTION
from seachange.storage.duck import Duck
from seachange.values.coercion import coercer
from seachange.values.timezone import find_zone, session_zone

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Draw = Callable[[DescriptorId, int], Sequence[int]]


class DefaultValues:
    """`draw` returns the next values of a sequence; `moments` are the values of time functions in the transaction."""

    def __init__(self, duck: Duck, entropy: Entropy, moments: dict[str, int], draw: Draw) -> None:
        self._duck = duck
        self._entropy = entropy
        self._moments = moments
        self._draw = draw

    def of(self, column: Column, count: int) -> list[Any]:
        """One value per row, in the type of the column."""
        drawn = read_drawn(drawn_text(column))
        coerce = coercer(column.type)
        match drawn.source:
            case DefaultFunction.NOW:
                return [coerce(self._now)] * count
            case DefaultFunction.TODAY:
                return [coerce(self._now.astimezone(find_zone(session_zone())).date())] * count
            case DefaultFunction.UUID:
                return [coerce(UUID(bytes=self._entropy.token(16), version=4)) for _ in range(count)]
            case DefaultFunction.RANDOM:
                return [coerce(self._random()) for _ in range(count)]
            case DefaultFunction.SEQUENCE:
                return [coerce(value) for value in self._draw(drawn.sequences[0], count)]
            case None:
                return [coerce(value) for value in self._by_duckdb(drawn, count)]

    @property
    def _now(self) -> dt.datetime:
        return _EPOCH + dt.timedelta(microseconds=self._moments[TRANSACTION])

    def _random(self) -> float:
        """A multiple of 2^-53 in [0, 1)."""
        return (int.from_bytes(self._entropy.token(7), "big") >> 3) * 2.0**-53

    def _by_duckdb(self, drawn: DrawnDefault, count: int) -> list[Any]:
        values = [pa.array(self._draw(id_, count), pa.int64()) for id_ in drawn.sequences]
        names = [f"s{i}" for i in range(len(values))]
        rows = pa.Table.from_arrays([pa.array(range(count), pa.int64()), *values], ["position", *names])
        used = tuple(name for name in self._moments if f"${name})" in drawn.text)
        sql = f"SELECT {drawn.text} FROM drawn ORDER BY position"  # noqa: S608 - generated from a checked tree
        with closing(DuckSession(self._duck.cursor(), self._moments)) as session:
            session.set_zone(session_zone())
            rows_found = session.rows(DuckQuery(sql, {}, {"drawn": rows}, used)).rows
        return [value for (value,) in rows_found]
