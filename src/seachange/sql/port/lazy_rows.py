"""Rows that are computed while DuckDB reads them.

**Invariant:** an error of the engine reaches the client as it is, although DuckDB reports only its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from seachange import errors

MakeBatches = Callable[[], Iterator[pa.RecordBatch]]


class LazyRows:
    """A source for DuckDB: each scan of it computes the rows again. Their order is kept."""

    def __init__(self, schema: pa.Schema, make: MakeBatches) -> None:
        self.schema = schema
        self.failure: errors.Error | None = None
        self._make = make

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._make()
        except errors.Error as problem:
            self.failure = problem
            raise

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)
