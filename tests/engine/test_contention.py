"""What a node knows of contention ends by itself, and is about tables once it is about many keys."""

from seachange.engine.locks.contention import ELSEWHERE_US, HOT_US, KEYS_MAX, TABLE_KEYS, Contention
from seachange.model.ids import CommitId, IndexId, KeyHash, TableId


class ManualClock:
    """Advances on request."""

    def __init__(self) -> None:
        self._now_us = HOT_US

    def wall_us(self) -> int:
        return self._now_us

    def steady_us(self) -> int:
        return self._now_us

    def advance_us(self, by_us: int) -> None:
        self._now_us += by_us


INDEX = IndexId(3)
TABLE, OTHER = TableId(1), TableId(2)
KEYS = [KeyHash(n) for n in range(TABLE_KEYS + 1)]


def test_a_key_is_contended_for_a_while():
    clock = ManualClock()
    contention = Contention(clock)
    assert contention.is_quiet
    contention.note([(KEYS[0], TABLE)])
    assert contention.pick(TABLE, KEYS) == {KEYS[0]}
    clock.advance_us(HOT_US + 1)
    assert contention.pick(TABLE, KEYS) == set()


def test_a_table_is_contended_once_many_of_its_keys_are():
    clock = ManualClock()
    contention = Contention(clock)
    contention.note((key, TABLE) for key in KEYS[: TABLE_KEYS - 1])
    assert KEYS[-1] not in contention.pick(TABLE, KEYS)
    contention.note([(KEYS[TABLE_KEYS - 1], TABLE)])
    assert KEYS[-1] in contention.pick(TABLE, KEYS)
    assert contention.pick(OTHER, [KEYS[-1]]) == set()
    clock.advance_us(HOT_US + 1)
    assert contention.pick(TABLE, KEYS) == set()


def test_only_keys_that_both_nodes_commit_are_contended():
    contention = Contention(ManualClock())
    mine, others = CommitId(b"mine"), CommitId(b"others")
    contention.send(mine)
    contention.learn(mine, KEYS[:2], [INDEX])
    contention.send(mine)
    contention.learn(mine, KEYS[:2], [INDEX])
    assert contention.is_quiet
    contention.learn(others, KEYS[1:], [])
    assert contention.pick(TABLE, KEYS) == {KEYS[1]}


def test_tables_that_other_nodes_write_to_are_known_for_a_while():
    clock = ManualClock()
    contention = Contention(clock)
    contention.send(CommitId(b"mine"))
    contention.learn(CommitId(b"mine"), KEYS[:1], [INDEX])
    assert not contention.is_written_elsewhere(INDEX)
    contention.learn(CommitId(b"others"), KEYS * 10, [INDEX])
    assert contention.is_written_elsewhere(INDEX)
    assert contention.is_quiet
    clock.advance_us(ELSEWHERE_US + 1)
    assert not contention.is_written_elsewhere(INDEX)


def test_tables_are_not_trusted_before_they_are_known_for_a_while():
    clock = ManualClock()
    contention = Contention(clock)
    contention.learn(CommitId(b"others"), (), [IndexId(4)])
    assert contention.is_written_elsewhere(INDEX)
    clock.advance_us(ELSEWHERE_US + 1)
    contention.learn(CommitId(b"more of others"), (), [IndexId(4)])
    assert not contention.is_written_elsewhere(INDEX)


def test_what_is_over_is_forgotten():
    clock = ManualClock()
    contention = Contention(clock)
    contention.note((KeyHash(n), TABLE) for n in range(KEYS_MAX))
    clock.advance_us(HOT_US + 1)
    contention.note([(KeyHash(-1), OTHER)])
    assert len(contention._keys) == 1
