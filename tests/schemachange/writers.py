"""What writers write: statements of every kind, the same for the table that is changed and for its twin.

Every transaction has keys of its own, so that none is refused because of another.
"""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from seachange.engine.session.session import Session
from seachange.model.schema.descriptor import Table
from seachange.model.states import State
from seachange.sql.copy import copy
from seachange.sql.copy.copy import CopyIn
from seachange.sql.copy.copy_text import copy_format
from seachange.sql.write import insert_select, update
from seachange.values.types import Kind as TypeKind
from tests.schemachange.world import PARENTS_FROM

# The parts that columns play, whatever they are called.
ROLES = ("id", "a", "b", "c", "n")
NEW_FROM = 100_000
Values = Mapping[str, Any]


def row(key: int) -> Values:
    """The row with a key, in which everything that may be declared unique is."""
    return {"id": key, "a": 10 * key, "b": f"b{key}", "c": key % 5, "n": key}


@dataclass(frozen=True, slots=True)
class Target:
    """A table as a writer knows it. Columns that it does not have are not written."""

    table: str
    names: Mapping[str, str]
    texts: frozenset[str]
    # Whether `id` is a key that ON CONFLICT can name.
    is_keyed: bool

    def known(self, values: Values) -> list[tuple[str, Any]]:
        return [(self.names[role], self._value(role, v)) for role, v in values.items() if role in self.names]

    def _value(self, role: str, value: Any) -> Any:
        if role in self.texts:
            return str(value)
        # A text that became a number has lost its first letter.
        return int(value[1:]) if isinstance(value, str) else value


def target_of(table: Table, renames: Mapping[str, str]) -> Target:
    visible = table.column_by_name
    names = {role: name for role in ROLES for name in (role, renames.get(role)) if name is not None and name in visible}
    texts = frozenset(role for role, name in names.items() if visible[name].type.kind is TypeKind.TEXT)
    id_ = visible[names["id"]].id
    unique = (table.primary, *(i for i in table.secondary if i.unique and i.where is None and i.state is State.PUBLIC))
    return Target(f"{table.schema}.{table.name}", names, texts, any(index.key == (id_,) for index in unique))


@dataclass(frozen=True, slots=True)
class Keys:
    """Of a row that is there, of one that is not, and of a parent of rows in both tables."""

    old: int
    new: int
    parent: int


class Pool:
    """Gives every transaction keys that no other has."""

    def __init__(self, rows: int, parents: int) -> None:
        self._old = iter(range(1, rows + 1))
        self._new = count(NEW_FROM, 10)
        self._parents = iter(range(PARENTS_FROM, PARENTS_FROM + parents))

    def draw(self, kind: "Kind") -> Keys:
        old = next(self._old) if kind.changes else 0
        parent = next(self._parents) if kind.shared else 0
        return Keys(old, next(self._new), parent)


Write = Callable[[Session, Target, Keys], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """`shared`: one statement writes to both tables. `changes`: it needs a row that is there. `rests`: where kinds take
    turns, it comes every so many moments; what writes files takes its time. `locks_rows`: others that change rows of
    the table wait for its end."""

    name: str
    write: Write
    changes: bool = False
    shared: bool = False
    upserts: bool = False
    rests: int = 2
    locks_rows: bool = False

    def fits(self, target: Target) -> bool:
        return not self.upserts or target.is_keyed


def _insert(session: Session, target: Target, keys: Keys, tail: str = "", key: int = 0) -> None:
    columns = target.known(row(key or keys.new))
    names, marks = ", ".join(name for name, _ in columns), ", ".join(f"${i + 1}" for i in range(len(columns)))
    text = f"insert into {target.table} ({names}) values ({marks}){tail}"
    session.execute(text, [value for _, value in columns])


def _keep(session: Session, target: Target, keys: Keys) -> None:
    _insert(session, target, keys, " on conflict do nothing")


def _upsert(session: Session, target: Target, keys: Keys) -> None:
    changed = {"b": f"u{keys.new}", "c": 4}
    sets = ", ".join(
        f"{target.names[role]} = excluded.{target.names[role]}" for role in changed if role in target.names
    )
    tail = f" on conflict ({target.names['id']}) do update set {sets}"
    columns = target.known({**row(keys.new), **changed, "id": keys.old})
    names, marks = ", ".join(name for name, _ in columns), ", ".join(f"${i + 1}" for i in range(len(columns)))
    text = f"insert into {target.table} ({names}) values ({marks}){tail}"
    session.execute(text, [value for _, value in columns])


def _update(session: Session, target: Target, keys: Keys) -> None:
    columns = target.known({"b": f"w{keys.new}", "c": 3, "n": keys.new})
    sets = ", ".join(f"{name} = ${i + 2}" for i, (name, _) in enumerate(columns))
    text = f"update {target.table} set {sets} where {target.names['id']} = $1"
    session.execute(text, [keys.old, *(value for _, value in columns)])


def _move(session: Session, target: Target, keys: Keys) -> None:
    name = target.names["id"]
    session.execute(f"update {target.table} set {name} = $2 where {name} = $1", [keys.old, keys.new])


def _delete(session: Session, target: Target, keys: Keys) -> None:
    session.execute(f"delete from {target.table} where {target.names['id']} = $1", [keys.old])


def _cascade(session: Session, target: Target, keys: Keys) -> None:
    session.execute("delete from p where id = $1", [keys.parent])


def _cascade_key(session: Session, target: Target, keys: Keys) -> None:
    session.execute("update p set id = $2 where id = $1", [keys.parent, keys.new])


_LOADED = {"id": "i", "a": "10 * i", "b": "'b' || i", "c": "i % 5", "n": "i"}


def _load(session: Session, target: Target, keys: Keys) -> None:
    """Three rows, as if they were many."""
    columns = [
        (name, f"({_LOADED[role]})::text" if role in target.texts else _LOADED[role].removeprefix("'b' || "))
        for role, name in target.names.items()
    ]
    names, values = ", ".join(name for name, _ in columns), ", ".join(value for _, value in columns)
    source = f"generate_series({keys.new}, {keys.new + 2}) g(i)"
    with _in_bulk():
        session.execute(f"insert into {target.table} ({names}) select {values} from {source}")


def _copy(session: Session, target: Target, keys: Keys) -> None:
    rows = [target.known(row(key)) for key in range(keys.new, keys.new + 2)]
    text = "".join(",".join(str(value) for _, value in one) + "\n" for one in rows)
    names, format_ = [name for name, _ in rows[0]], copy_format("csv", False, None, None)
    place = target.table.split(".")
    session.in_transaction(
        lambda txn: CopyIn(txn.port, txn.schema.table(*place), names, format_).run(io.StringIO(text))
    )


def _update_many(session: Session, target: Target, keys: Keys) -> None:
    with _in_bulk():
        _update(session, target, keys)


def _delete_many(session: Session, target: Target, keys: Keys) -> None:
    """Not by its key: a row that is found by it is changed without a query."""
    with _in_bulk():
        session.execute(f"delete from {target.table} where {target.names['id']} in ($1, -1)", [keys.old])


@contextmanager
def _in_bulk() -> Iterator[None]:
    """As if few rows were many: they are written as files."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (update, copy, insert_select):
            patch.setattr(module, "ROWS_MAX", 0)
        yield


KINDS = (
    Kind("insert", _insert),
    Kind("update", _update, changes=True),
    Kind("move", _move, changes=True),
    Kind("delete", _delete, changes=True),
    Kind("upsert", _upsert, changes=True, upserts=True),
    Kind("keep", _keep),
    Kind("cascade", _cascade, shared=True),
    Kind("cascade key", _cascade_key, shared=True),
    Kind("load", _load, rests=3),
    Kind("copy", _copy),
    Kind("update many", _update_many, changes=True, rests=3, locks_rows=True),
    Kind("delete many", _delete_many, changes=True, rests=3, locks_rows=True),
)
