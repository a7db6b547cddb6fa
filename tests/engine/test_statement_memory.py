"""One vector of large values takes no more memory than its statement may: no interrupt reaches DuckDB inside of it."""

import resource
import threading
from collections.abc import Iterator

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.session.session import Session
from seachange.runtime.memory_wall import RESERVE_BYTES, MemoryWall
from seachange.runtime.process import resident_bytes
from tests.support.workers import wait_until

GROWTH_BYTES_MAX = 100 << 20
# What allocators keep for later.
SLACK_BYTES = 200 << 20
# 400 values of 4 MB are one vector.
ROWS = "generate_series(1, 400) as g(i)"
LARGE = "(select repeat('x', 4000000) as s) as t"
DOCUMENT = "(select jsonb_build_object('k', repeat('x', 4000000)) as d) as t"
STATEMENTS = {
    "repeat": f"select length(repeat('x' || i, 2000000)) from {ROWS}",
    "jsonb_set": f"select length(jsonb_set(d, '{{a}}', to_jsonb(i))::text) from {DOCUMENT}, {ROWS}",
}
MORE_STATEMENTS = {
    "pad": f"select length(lpad('x' || i, 4000000, 'ab')) from {ROWS}",
    "concat": f"select length(s || i) from {LARGE}, {ROWS}",
    "columns": f"select {', '.join(f'length(s || {n})' for n in range(400))} from {LARGE}, generate_series(1, 2)",
    "array_fill": f"select cardinality(array_fill(i, array[1000000])) from {ROWS}",
    "array_agg": f"select length(array_agg(s || i)::text) from {LARGE}, {ROWS}",
    "string_agg": f"select length(string_agg(s || i, ',')) from {LARGE}, {ROWS}",
    "jsonb_agg": f"select length(jsonb_agg(s || i)::text) from {LARGE}, {ROWS}",
    "jsonb_build_object": f"select length(jsonb_build_object('k', s, 'n', i)::text) from {LARGE}, {ROWS}",
    "format": f"select length(format('%s-%s', s, i)) from {LARGE}, {ROWS}",
    "regexp_replace": f"select length(regexp_replace(s, '^x', i::text)) from {LARGE}, {ROWS}",
    "replace": f"select length(replace('ab' || i, 'b', s)) from {LARGE}, {ROWS}",
    "regexp_split": f"select cardinality(regexp_split_to_array(left(s, 100000) || i, 'x')) from {LARGE}, {ROWS}",
    "generate_series": f"select cardinality(array(select generate_series(1, 1000000 + i))) from {ROWS}",
}


RETRIES = "select count(*) from seachange.events where job_id = 1 and event like 'retries after an error: 53200%'"


@pytest.fixture
def node(tmp_path):
    node = open_node(tmp_path)
    yield node
    node.close()


class PeakMemory:
    """How much the process grows, at most, while other sessions run short statements."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._before = resident_bytes()
        self.growth_bytes = 0
        self.statements = 0
        self.failures: list[Exception] = []

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.01):
            self.growth_bytes = max(self.growth_bytes, resident_bytes() - self._before)
            try:
                assert self._session.execute("select count(*) from generate_series(1, 1000)").rows == [(1000,)]
            except (errors.Error, MemoryError) as failure:
                self.failures.append(failure)
            self.statements += 1


def all_statements() -> Iterator[object]:
    for name, text in STATEMENTS.items():
        yield pytest.param(text, id=name)
    for name, text in MORE_STATEMENTS.items():
        yield pytest.param(text, id=name, marks=pytest.mark.slow)


@pytest.mark.parametrize("text", list(all_statements()))
def test_a_vector_of_large_values_is_bounded(node, text):
    large, other = Session(node), Session(node)
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    large.execute(f"set seachange.process_growth_limit = {GROWTH_BYTES_MAX >> 10}")
    with PeakMemory(other) as peak, pytest.raises(errors.OutOfMemory):
        large.execute(text)
    assert peak.growth_bytes < GROWTH_BYTES_MAX + RESERVE_BYTES + SLACK_BYTES
    assert peak.statements
    assert not peak.failures
    assert resource.getrlimit(resource.RLIMIT_DATA) == limits
    # The session goes on.
    assert large.execute("select length(repeat('x', 1000))").rows == [(1000,)]
    large.close()
    other.close()


def test_a_vector_of_a_job_is_bounded(tmp_path):
    (tmp_path / "seachange.toml").write_text(
        f"[seachange]\nprocess_growth_limit = '{GROWTH_BYTES_MAX >> 20}MB'\nconcurrently = 'async'\n"
    )
    node = open_node(tmp_path)
    session, other = Session(node), Session(node)
    session.execute("create table t (id int)")
    session.execute("insert into t select generate_series(1, 400)")
    with PeakMemory(other) as peak:
        session.execute("create index concurrently on t (length(repeat('x' || id, 2000000)))")
        wait_until(lambda: session.execute(RETRIES).rows != [(0,)], "the job to be cut short")
    assert peak.growth_bytes < GROWTH_BYTES_MAX + RESERVE_BYTES + SLACK_BYTES
    assert not peak.failures
    session.execute("cancel job 1")
    session.close()
    other.close()
    node.close()


def test_the_wall_stands_until_its_last_user_has_ended():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    wall = MemoryWall()
    wall.put_up()
    limited = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        assert limited != before
        wall.put_up()
        wall.take_down()
        assert resource.getrlimit(resource.RLIMIT_DATA) == limited
        with pytest.raises(MemoryError):
            bytearray(2 * RESERVE_BYTES)
    finally:
        wall.take_down()
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
