"""Inline batches give back what was put in."""

from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.model.ids import ColumnId
from seachange.model.segments import Op
from seachange.storage.batches import BatchCodec
from tests.storage.samples import TYPES, VALUES, same

ROWS = st.lists(
    st.tuples(st.sampled_from(Op), st.tuples(*[st.none() | VALUES[type_] for type_ in TYPES])), min_size=1, max_size=5
)
CODEC = BatchCodec([(ColumnId(i + 1), type_) for i, type_ in enumerate(TYPES)])


@settings(deadline=None)
@given(ROWS)
def test_rows_of_every_type_come_back(written):
    ops, rows = CODEC.decode(CODEC.encode([int(op) for op, _ in written], [row for _, row in written]))
    assert ops == [int(op) for op, _ in written]
    for (_, before), after in zip(written, rows, strict=True):
        assert all(same(x, y) for x, y in zip(before, after, strict=True))
