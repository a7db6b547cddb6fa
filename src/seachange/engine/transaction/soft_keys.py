"""Keys of constraints that are not committed: a conflict by one of them does not refuse the commit.

Writers of one key of a unique index, or of a foreign key, that another transaction has not committed yet are no
conflict: the later one records a violation if the constraint is being checked, and its commit is sent again. The keys
stay among the writes and shares of the commit, for those that come later.

**Invariant:** the base of such a key is the newest commit with the same key that was recorded, or that came before the
constraint was checked; so each later one is found, and none is found twice. They are resolved up to at least the
sequence that the rest of the commit was validated up to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from seachange.engine.buffer.transaction_state import TransactionState
from seachange.engine.buffer.write_buffer import Entry, StagedFile
from seachange.engine.constraints.uncommitted import is_soft, meet_key, meet_reference
from seachange.engine.encode.write_plan import EntryPlan
from seachange.model.ids import KeyHash, Seq
from seachange.storage.keys import Hashes, Key


@dataclass(frozen=True, slots=True)
class _UniqueKey:
    """`is_new`: the commit brings the key. One that it takes away may belong to others since."""

    plan: EntryPlan
    key: Key
    base: Seq
    is_new: bool


@dataclass(frozen=True, slots=True)
class _UniqueKeys:
    """Those of a file of a bulk write."""

    plan: EntryPlan
    hashes: Hashes
    base: Seq
    is_new: bool


@dataclass(slots=True)
class SoftKeys:
    unique: dict[KeyHash, _UniqueKey] = field(default_factory=dict)
    # Those of bulk writes.
    files: list[_UniqueKeys] = field(default_factory=list)

    def clear(self) -> None:
        self.unique.clear()
        self.files.clear()

    def add(self, hashed: KeyHash, plan: EntryPlan, entry: Entry) -> None:
        key = entry.key[: plan.unique_width]
        self.unique[hashed] = _UniqueKey(plan, key, entry.base, is_new=entry.row is not None)

    def add_files(self, files: Iterable[StagedFile]) -> None:
        self.files += [_UniqueKeys(f.plan, f.hashes, f.base, f.brings_keys) for f in files if f.hashes is not None]

    @property
    def listed(self) -> list[tuple[Hashes, Seq]]:
        return [(file.hashes, file.base) for file in self.files]

    def without_references(self, txn: TransactionState) -> dict[KeyHash, Seq]:
        """The shares that conflict as such."""
        if not txn.declared.references:
            return txn.declared.shares
        return {key: base for key, base in txn.declared.shares.items() if key not in txn.declared.references}

    def resolve(self, txn: TransactionState, writes: dict[KeyHash, Seq], listed: list[tuple[Hashes, Seq]]) -> bool:
        """Finds the commits that have written one of the keys since, up to what the node has applied. Keys of an index
        that was committed meanwhile go to `writes` and `listed`. Gives whether there was either: the commit is to be
        validated again then."""
        if not self.unique and not self.files and not txn.declared.references:
            return False
        return any([self._resolve_unique(txn, writes), self._resolve_files(txn, listed), _resolve_references(txn)])

    def _resolve_unique(self, txn: TransactionState, writes: dict[KeyHash, Seq]) -> bool:
        is_met = False
        for hashed, soft in list(self.unique.items()):
            newest = _newest(txn, {hashed: soft.base}, {})
            if newest is not None and soft.is_new:
                meet_key(txn, soft.plan, soft.key)
            if not is_soft(txn, soft.plan):
                is_met = True
                writes[hashed] = self.unique.pop(hashed).base
            elif newest is not None:
                is_met = True
                self.unique[hashed] = replace(soft, base=newest)
        return is_met

    def _resolve_files(self, txn: TransactionState, listed: list[tuple[Hashes, Seq]]) -> bool:
        is_met, left = False, []
        for file in self.files:
            if not is_soft(txn, file.plan):
                is_met = True
                listed.append((file.hashes, file.base))
                continue
            while (newest := _newest_listed(txn, file.hashes, file.base)) is not None:
                is_met, file = True, replace(file, base=newest)
                if file.is_new:
                    meet_key(txn, file.plan, None)
            left.append(file)
        self.files = left
        return is_met


def _resolve_references(txn: TransactionState) -> bool:
    declared, is_met = txn.declared, False
    for hashed, met in declared.references.items():
        for bases, is_written in ((declared.shares, False), (declared.freed, True)):
            if hashed not in bases:
                continue
            key = {hashed: bases[hashed]}
            newest = _newest(txn, key, {}) if is_written else _newest(txn, {}, key)
            if newest is not None:
                is_met = True
                bases[hashed] = newest
                meet_reference(txn, met)
    return is_met


def _newest(txn: TransactionState, writes: dict[KeyHash, Seq], shares: dict[KeyHash, Seq]) -> Seq | None:
    with txn.epoch.lock:
        return txn.epoch.conflicts.find(writes, shares)


def _newest_listed(txn: TransactionState, hashes: Hashes, base: Seq) -> Seq | None:
    with txn.epoch.lock:
        return txn.epoch.conflicts.find_listed([(hashes, base)])
