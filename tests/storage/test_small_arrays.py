"""Arrays of a few values equal those of pyarrow, and pandas is not imported for them."""

import datetime as dt
import math
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seachange.storage.arrow import arrow_type
from seachange.storage.small_arrays import FEW, array_of, values_of
from tests.storage.samples import TYPES, VALUES, same


@settings(deadline=None)
@given(st.sampled_from(TYPES).flatmap(lambda t: st.tuples(st.just(t), st.lists(st.none() | VALUES[t], max_size=9))))
def test_the_array_is_that_of_pyarrow(sample):
    type_, values = sample
    made, expected = array_of(values, arrow_type(type_)), pa.array(values, arrow_type(type_))
    made.validate(full=True)
    assert made.type == expected.type
    assert made.null_count == expected.null_count
    # Of floats NaN too, which equals nothing.
    assert repr(made.to_pylist()) == repr(expected.to_pylist())
    assert all(same(x, y) for x, y in zip(values_of(made), expected.to_pylist(), strict=True))


PARIS = dt.timezone(dt.timedelta(hours=1))


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, 2.5], pa.float64()),
        ([1e300], pa.float32()),
        ([1, None], pa.decimal128(9, 2)),
        ([Decimal("1.500")], pa.decimal128(9, 2)),
        ([dt.datetime(2026, 1, 1, 12)], pa.date32()),
        ([dt.datetime(2026, 1, 1, 12), dt.datetime(2026, 1, 1, 12, tzinfo=PARIS)], pa.timestamp("us", tz="UTC")),
        ([bytearray(b"x")], pa.binary()),
        ([["a", None], None], pa.list_(pa.string())),
        (list(range(FEW + 1)), pa.int64()),
        ([], pa.string()),
    ],
)
def test_value_of_another_class_is_converted(values, type_):
    assert array_of(values, type_).equals(pa.array(values, type_))


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (2**63, pa.int64()),
        (-1, pa.uint32()),
        ("x", pa.int64()),
        (True, pa.int64()),
        ("\ud800", pa.string()),
        (Decimal("1.555"), pa.decimal128(9, 2)),
        (Decimal(10**7), pa.decimal128(9, 2)),
        (Decimal("NaN"), pa.decimal128(9, 2)),
        (math.nan, pa.int64()),
    ],
)
def test_value_out_of_range_fails_as_with_pyarrow(value, type_):
    with pytest.raises((pa.ArrowException, ValueError, OverflowError, TypeError)) as expected:
        pa.array([value], type_)
    with pytest.raises(expected.type) as failure:
        array_of([value], type_)
    assert str(failure.value) == str(expected.value)


# Every type that is not an array, in statements of few rows by key and by condition, and rows that another node reads.
WORK = """
import sys
from pathlib import Path
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session

here, there = (open_node(Path(sys.argv[1])) for _ in range(2))
session, other = Session(here), Session(there)
session.execute('''create table t (id bigint primary key, a text, n numeric(10, 2), d date, z timestamptz, s timestamp,
    i interval, b boolean, u uuid, j jsonb, f float8, r real, y bytea, m smallint, h time, unique (a))''')
session.execute('''insert into t values (1, 'x', 1.5, '2026-01-01', now(), now(), '1 day', true, gen_random_uuid(),
    '{}', 1.5, 1.5, 'y', 1, '12:00')''')
other.execute("insert into t (id) values (2)")
other.execute("update t set a = 'y', z = now() where id = 2")
session.execute("update t set f = f + 1 where f > 1")
assert session.execute("select count(*), max(a) from t where f > 2 or id = 2").rows == [(2, 'y')]
assert other.execute("delete from t where id = 1 returning a").rows == [('x',)]
print("pandas" in sys.modules)
for each in (session, other, here, there):
    each.close()
"""


def test_statements_of_few_rows_load_no_pandas(tmp_path):
    # In this process it may have been loaded by others.
    done = subprocess.run([sys.executable, "-c", WORK, tmp_path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
