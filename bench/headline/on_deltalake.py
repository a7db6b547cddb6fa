"""deltalake (delta-rs): a table of files; traffic and changes are two processes, each of which looks for the newest
version before a transaction."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import (  # type: ignore[import-not-found,unused-ignore]
    DeltaTable,
    Field,
    write_deltalake,
)
from deltalake.schema import PrimitiveType  # type: ignore[import-not-found,unused-ignore]

from bench.headline.changes import PROBE
from bench.headline.contestant import Contestant
from bench.peers.arrow_rows import SCHEMA
from bench.peers.protocol import Answer, serve

NEW_TYPE = pa.decimal128(14, 3)


class DeltaLake(Contestant):
    def create(self, folder: str, source: str) -> Answer:
        """Rows are sorted by id, so that the statistics show which file contains one."""
        rows = pq.read_table(source).cast(SCHEMA).sort_by("id")
        write_deltalake(Path(folder) / "t", rows)
        against = pa.table([[1], [-1], [0.0], [None], [None]], schema=SCHEMA)
        write_deltalake(Path(folder) / PROBE, against)
        return {}

    def open(self, folder: str) -> Answer:
        self._tables = {name: DeltaTable(Path(folder) / name) for name in ("t", PROBE)}
        return {}

    def close(self) -> Answer:
        del self._tables
        return {}

    def read(self, row_id: int) -> None:
        found = self._newest("t").to_pyarrow_table(columns=["a", "k"], filters=[("id", "=", row_id)])
        assert found.num_rows == 1

    def insert(self, row_id: int, a: int, b: float, k: str) -> None:
        table = self._newest("t")
        # A writer uses the current schema, with NULL for columns that it has no value for.
        wanted = pa.schema(table.schema().to_arrow())
        given = {"id": row_id, "a": a, "b": b, "k": k}
        row = pa.table({name: pa.array([given.get(name)], type_of(name)) for name in wanted.names})
        write_deltalake(table, row.cast(wanted), mode="append")

    def update(self, row_id: int, a: int) -> None:
        self._newest("t").update(predicate=f"id = {row_id}", updates={"a": str(a)})

    def delete(self, row_id: int) -> None:
        self._newest("t").delete(predicate=f"id = {row_id}")

    def _newest(self, name: str) -> DeltaTable:
        table = self._tables[name]
        table.update_incremental()
        return table

    def _make(self, change: str, table: str) -> None:
        subject = self._newest(table)
        match change:
            case "add_column":
                subject.alter.add_columns([Field("c", PrimitiveType("integer"))])
            case "check":
                subject.alter.add_constraint({"a_natural": "a >= 0"})
            case "type":
                rows = subject.to_pyarrow_table()
                place = rows.schema.get_field_index("b")
                changed = rows.set_column(place, pa.field("b", NEW_TYPE), rows["b"].cast(NEW_TYPE, safe=False))
                write_deltalake(subject, changed, mode="overwrite", schema_mode="overwrite")
            case _:
                raise NotImplementedError(change)


def type_of(name: str) -> pa.DataType:
    """The type of a value of the traffic."""
    return SCHEMA.field(name).type if name in SCHEMA.names else pa.int32()


if __name__ == "__main__":
    serve(DeltaLake())
