"""Recently contended keys and tables, as far as one node knows.

A statement that writes a contended key locks it for all nodes when it runs, so that the second writer waits. Other keys
are locked within the node only, which costs no round trip to the catalog. A node learns of contention from a conflict
at COMMIT (`engine/session/block_resume.py`), from a lock wait, and from the log: another node has committed a key that
this one has committed recently. From the log it also knows which tables other nodes write to: there a block locks the
rows that it has changed before its client gets rows that might depend on them. If other nodes write at all, that goes
for a table, too, to which this node has begun to write a short while ago: little is known of it.

**Invariant:** this is a heuristic only. A missing entry costs a conflict, a superfluous one a round trip.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from seachange.model.ids import CommitId, IndexId, KeyHash, TableId
from seachange.runtime.clock import Clock

# How long a key counts as contended after the last conflict.
HOT_US = 10_000_000
# How long a table counts as written to by other nodes. Long, since a query that was answered before another node wrote
# cannot be repeated; it costs a round trip in blocks that query after a change.
ELSEWHERE_US = 600_000_000
# A table with this many contended keys is contended as a whole: the next conflict is likely on yet another key.
TABLE_KEYS = 8
# Above this number, expired keys are removed.
KEYS_MAX = 1_000
# A commit with more keys than this says nothing about contention on any of them.
LEARNED_KEYS_MAX = 16


class Contention:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # Expiry times, by key and by table.
        self._keys: dict[KeyHash, int] = {}
        self._tables: dict[TableId, int] = {}
        self._keys_of: dict[TableId, dict[KeyHash, int]] = {}
        # Commits that this node has sent, and when it has committed which keys.
        self._sent: set[CommitId] = set()
        # Until when tables count as written to by other nodes, by their indexes.
        self._elsewhere: dict[IndexId, int] = {}
        # Until when other nodes count as writing to any table, and until when too little is known of each.
        self._others = 0
        self._unknown: dict[IndexId, int] = {}
        self._committed: dict[KeyHash, int] = {}

    @property
    def is_quiet(self) -> bool:
        """Whether no key or table is contended."""
        return not self._keys and not self._tables

    def note(self, keys: Iterable[tuple[KeyHash, TableId | None]]) -> None:
        """Records a conflict with another node on these keys."""
        now = self._clock.steady_us()
        with self._lock:
            for key, table_id in keys:
                self._keys[key] = now + HOT_US
                if table_id is not None:
                    self._note_table(key, table_id, now)
            if len(self._keys) > KEYS_MAX:
                self._forget(now)

    def _note_table(self, key: KeyHash, table_id: TableId, now: int) -> None:
        hot = {k: until for k, until in self._keys_of.get(table_id, {}).items() if until > now}
        hot[key] = now + HOT_US
        self._keys_of[table_id] = hot
        if len(hot) >= TABLE_KEYS:
            self._tables[table_id] = now + HOT_US

    def _forget(self, now: int) -> None:
        self._keys = {key: until for key, until in self._keys.items() if until > now}
        self._tables = {table_id: until for table_id, until in self._tables.items() if until > now}
        self._keys_of = {table_id: hot for table_id, hot in self._keys_of.items() if table_id in self._tables}

    # The log.

    def send(self, commit_id: CommitId) -> None:
        """A commit of this node is being sent."""
        self._sent.add(commit_id)

    def refuse(self, commit_id: CommitId) -> None:
        self._sent.discard(commit_id)

    def learn(self, commit_id: CommitId, keys: Sequence[KeyHash], touched: Iterable[IndexId]) -> None:
        """Records a commit in the log, of this node or another."""
        is_own = commit_id in self._sent
        self._sent.discard(commit_id)
        now = self._clock.steady_us()
        if not is_own:
            self._others = now + ELSEWHERE_US
            self._elsewhere.update(dict.fromkeys(touched, now + ELSEWHERE_US))
        if len(keys) > LEARNED_KEYS_MAX:
            return
        if not is_own:
            hot = [(key, None) for key in keys if self._committed.get(key, 0) > now - HOT_US]
            if hot:
                self.note(hot)
            return
        if len(self._committed) > KEYS_MAX:
            self._committed = {key: at for key, at in self._committed.items() if at > now - HOT_US}
        if len(self._committed) <= KEYS_MAX:
            self._committed.update(dict.fromkeys(keys, now))

    def is_written_elsewhere(self, index_id: IndexId) -> bool:
        """Whether another node has written to the index lately, or may be about to: others write, and this node has not
        known the index for long."""
        now = self._clock.steady_us()
        unknown = self._unknown.setdefault(index_id, now + ELSEWHERE_US)
        return self._elsewhere.get(index_id, 0) > now or min(unknown, self._others) > now

    def pick(self, table_id: TableId, keys: Iterable[KeyHash]) -> set[KeyHash]:
        """The keys of a table that are contended now."""
        if self.is_quiet:
            return set()
        now = self._clock.steady_us()
        if self._tables.get(table_id, 0) > now:
            return set(keys)
        return {key for key in keys if self._keys.get(key, 0) > now}
