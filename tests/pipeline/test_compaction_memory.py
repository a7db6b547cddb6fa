"""A compaction may rewrite more than the memory of its sort, through whatever joins it reads."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from seachange.model.ids import ColumnId
from seachange.model.schema.descriptor import Column
from seachange.pipeline.kernels.runs import base_shape
from seachange.storage.bulk import sort_query_into_segments
from seachange.storage.image import FileSlice, SnapshotParts
from seachange.storage.plan import plan_rewrite
from seachange.storage.sorter import Sorter
from seachange.storage.spill import SortLimits, sorting_connection
from seachange.values.types import BIGINT, TEXT
from tests.pipeline.worlds import make_table
from tests.storage.samples import Store

ROWS = 600_000
# More than the sort of a table takes, less than one takes that does not spill.
LIMITS = SortLimits(64 << 20)
# Each thread needs the minimum memory of a sort.
THREADS = "SET threads = 2"


class Rewriting:
    """A table in files, one row in a hundred superseded by a delta, to be rewritten."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / "files")
        self.spill = folder / "spill"
        columns = (Column(ColumnId(1), "id", BIGINT, nullable=False), Column(ColumnId(2), "v", TEXT))
        table = make_table([columns])
        self.shape = base_shape(table, table.primary)
        text = "SELECT i AS c1, repeat(left(md5(i::VARCHAR), 12), 8) AS c2 FROM range($first, $last, $step) r(i)"
        with Sorter(self.store.files, self.spill, self.store.reserve) as sorter:
            base = sorter.sort_query(text, {"first": 0, "last": ROWS, "step": 1}, self.shape)
            delta = sorter.sort_query(text, {"first": 0, "last": ROWS, "step": 100}, self.shape)
        none = np.empty(0, dtype=np.int64)
        files = [FileSlice(segment, np.arange(0, segment.rows, 100, dtype=np.int64)) for segment in base]
        files += [FileSlice(segment, none) for segment in delta]
        self.rows = sum(file.segment.rows - len(file.superseded) for file in files)
        parts = SnapshotParts(tuple(files), ())
        self.scan = plan_rewrite(table, table.primary, parts, self.store.warehouse, "fold")


@pytest.fixture(scope="module")
def rewriting(tmp_path_factory: pytest.TempPathFactory) -> Rewriting:
    return Rewriting(tmp_path_factory.mktemp("rewriting"))


def test_a_rewrite_larger_than_its_memory_spills(rewriting: Rewriting) -> None:
    store = rewriting.store
    with Sorter(store.files, rewriting.spill, store.reserve, LIMITS) as sorter:
        sorter.ask(THREADS)
        written = sorter.sort_scan(rewriting.scan, rewriting.shape)
    assert sum(segment.rows for segment in written) == rewriting.rows


@pytest.mark.slow
def test_a_sort_over_the_joins_does_not_spill(rewriting: Rewriting) -> None:
    """Why the rows are stored in a table first. If it fails with a newer DuckDB, the table may no longer be needed. On
    a busy machine it may succeed: its threads then do not need their memory at the same time."""
    scan, store = rewriting.scan, rewriting.store
    with sorting_connection(rewriting.spill, LIMITS) as duck:
        duck.execute(THREADS)
        for name, relation in scan.relations.items():
            duck.register(name, relation)
        with pytest.raises(duckdb.OutOfMemoryException):
            sort_query_into_segments(duck, scan.sql, scan.parameters, rewriting.shape, store.files, store.reserve)
