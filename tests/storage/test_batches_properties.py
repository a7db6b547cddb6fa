"""Inline batches give back what was put in."""

from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.model.ids import ColumnId, IndexId, LayoutId
from seachange.model.segments import Op
from seachange.storage.batches import BatchCodec, read_batch, seal_batch
from tests.storage.samples import TYPES, VALUES, same

ROWS = st.lists(
    st.tuples(st.sampled_from(Op), st.tuples(*[st.none() | VALUES[type_] for type_ in TYPES])), min_size=1, max_size=5
)
CODEC = BatchCodec([(ColumnId(i + 1), type_) for i, type_ in enumerate(TYPES)])


@settings(deadline=None)
@given(ROWS)
def test_rows_of_every_type_come_back(written):
    payload = CODEC.encode([int(op) for op, _ in written], [row for _, row in written])
    ops, rows = read_batch(seal_batch(IndexId(1), LayoutId(1), len(written), payload), "t", lambda _: CODEC)
    assert ops == [int(op) for op, _ in written]
    for (_, before), after in zip(written, rows, strict=True):
        assert all(same(x, y) for x, y in zip(before, after, strict=True))
