"""The descriptor changes of a transaction, seen by itself at once and by others when it commits."""

from __future__ import annotations

from seachange import errors
from seachange.engine.schemas import Schema
from seachange.model.descriptor import Table
from seachange.model.descriptor_json import encode_table
from seachange.model.ids import DescriptorId, IndexId
from seachange.model.log import DescriptorChange, GenerationChange
from seachange.model.states import State


class PendingSchema:
    """The newest pending version of each table, with the committed version that the first change started from."""

    def __init__(self) -> None:
        # id -> (committed before, pending now); a journal of earlier values undoes a failed statement.
        self._changes: dict[DescriptorId, tuple[Table | None, Table | None]] = {}
        self._journal: list[tuple[DescriptorId, tuple[Table | None, Table | None] | None]] = []
        # Those that others know as dropped: what they are compared with is the version of the drop.
        self._revived: set[DescriptorId] = set()

    def __bool__(self) -> bool:
        return bool(self._changes)

    def changes(self, table: Table) -> bool:
        return table.id in self._changes

    def is_new(self, table: Table) -> bool:
        change = self._changes.get(table.id)
        return change is not None and change[0] is None

    def mark(self) -> int:
        return len(self._journal)

    def reset(self, mark: int) -> None:
        while len(self._journal) > mark:
            id_, before = self._journal.pop()
            if before is None:
                del self._changes[id_]
            else:
                self._changes[id_] = before

    def publish(self, before: Table | None, after: Table | None) -> None:
        table = after or before
        if table is None:
            raise errors.Bug(detail="a descriptor change without a descriptor")
        known = self._changes.get(table.id)
        self._journal.append((table.id, known))
        self._changes[table.id] = (known[0] if known else before, after)

    def revive(self, dropped: Table, after: Table) -> None:
        if dropped.id not in self._changes:
            self._revived.add(dropped.id)
        self.publish(dropped, after)

    def dropped(self) -> tuple[Table, ...]:
        """What the transaction itself has dropped."""
        return tuple(before for before, after in self._changes.values() if before is not None and after is None)

    def find(self, schema: str, name: str, committed: Schema) -> Table | None:
        for _, pending in self._changes.values():
            if pending is not None and (pending.schema, pending.name) == (schema, name):
                return pending
        table = committed.by_name.get((schema, name))
        return None if table is None or table.id in self._changes else table

    def find_by_id(self, table_id: DescriptorId, committed: Schema) -> Table | None:
        change = self._changes.get(table_id)
        return committed.by_id.get(table_id) if change is None else change[1]

    def tables(self, committed: Schema) -> tuple[Table, ...]:
        if not self._changes:
            return tuple(committed.by_id.values())
        pending = [after for _, after in self._changes.values() if after is not None]
        return (*(t for t in committed.by_id.values() if t.id not in self._changes), *pending)

    def versions(self) -> dict[DescriptorId, int]:
        """What the commit carries for the tables that it changes: the versions that it publishes."""
        return {
            id_: after.version
            for id_, (before, after) in self._changes.items()
            if before and after and id_ not in self._revived
        }

    def descriptor_changes(self) -> tuple[DescriptorChange, ...]:
        return tuple(
            DescriptorChange(
                id=id_,
                expected=before.version if before else 0,
                version=after.version if after else (before.version + 1 if before else 0),
                name=qualified_name(after or before),
                body=encode_table(after) if after else None,
            )
            for id_, (before, after) in self._changes.items()
            if before or after
        )

    def new_indexes(self) -> tuple[GenerationChange, ...]:
        """An index that is created over nothing is complete from the start: it gets an empty generation. One that is
        not to be read yet is built by a job."""
        created: list[IndexId] = []
        for before, after in self._changes.values():
            known = set(before.index_by_id) if before else set()
            created += [i.id for i in after.indexes if i.id not in known and i.state is State.PUBLIC] if after else []
        return tuple(GenerationChange(index_id, None, None, ()) for index_id in created)


def qualified_name(table: Table | None) -> str:
    return f"{table.database}.{table.schema}.{table.name}" if table else ""
