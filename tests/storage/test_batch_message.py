"""Messages of a few rows are, byte for byte, those that Arrow writes."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.storage.arrow import arrow_type
from seachange.storage.batch_message import message_of
from seachange.storage.small_arrays import packing_of
from tests.storage.samples import TYPES, VALUES

PACKED = [type_ for type_ in TYPES if packing_of(arrow_type(type_)) is not None]


@st.composite
def batches(draw):
    types = draw(st.lists(st.sampled_from(PACKED), min_size=1, max_size=6))
    rows = draw(st.integers(1, 20))
    columns = [draw(st.lists(st.none() | VALUES[type_], min_size=rows, max_size=rows)) for type_ in types]
    return types, columns, rows


@settings(deadline=None)
@given(batches())
def test_a_message_is_that_of_arrow(batch):
    types, columns, rows = batch
    schema = pa.schema([pa.field(f"c{n}", arrow_type(type_)) for n, type_ in enumerate(types)])
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    expected = bytes(pa.RecordBatch.from_arrays(arrays, schema=schema).serialize())
    message = message_of(schema)
    assert message is not None
    written = message.write(columns, rows)
    # What Arrow converts is left to it.
    assert written in (None, expected)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, 2.5], pa.float64()),
        ([2**40], pa.int32()),
        ([True], pa.int64()),
        (["\ud800"], pa.string()),
        ([Decimal("1.555")], pa.decimal128(9, 2)),
    ],
)
def test_values_that_do_not_fit_are_left_to_arrow(values, type_):
    message = message_of(pa.schema([pa.field("c", type_)]))
    assert message is not None
    assert message.write([values], len(values)) is None


def test_nested_columns_are_left_to_arrow():
    assert message_of(pa.schema([pa.field("c", pa.list_(pa.int64()))])) is None
