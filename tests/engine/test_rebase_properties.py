"""Random histories of a block's own writes, row by row and in bulk, beside schema changes, against a dictionary.

Schema changes and the statements of the block commute here: the block names columns that no change touches once it has
begun, so what it leaves is what the same statements would have left after the changes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from seachange import errors
from seachange.engine.database.opening import open_node
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.verify.consistency import check

# By column name; id -> row.
Rows = dict[int, dict[str, Any]]
COMMITTED = 12


@dataclass(slots=True)
class Model:
    """The committed rows under those of the block, as the newest version of the table has them."""

    rows: Rows

    def finished(self, changes: Sequence[Callable[[dict[str, Any]], None]]) -> list[dict[str, Any]]:
        found = []
        for row in self.rows.values():
            row = dict(row)
            for change in changes:
                change(row)
            found.append(row)
        return sorted(found, key=lambda row: int(row["id"]))


def _rename(row: dict[str, Any]) -> None:
    row["m"] = row.pop("n") if "n" in row else row["m"]


def _convert(row: dict[str, Any]) -> None:
    name = "m" if "m" in row else "n"
    row[name] = None if row[name] is None else f"n{row[name]}"


def _drop(row: dict[str, Any]) -> None:
    row.pop("s", None)


def _put(name: str, value: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], None]:
    return lambda row: row.update({name: value(row)})


# A statement, and what it does to a row. Each comes at most once in a history; the names that `{n}` stands for change.
CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "frozen": ("alter table t add column c int default 7", _put("c", lambda row: 7)),
    "drawn": ("alter table t add column k uuid default gen_random_uuid()", _put("k", lambda row: "drawn")),
    "numbered": ("alter table t add column q bigserial", _put("q", lambda row: "drawn")),
    "generated": (
        "alter table t add column g int generated always as (u + 1) stored",
        _put("g", lambda row: row["u"] + 1),
    ),
    "rename": ("alter table t rename column n to m", _rename),
    "drop": ("alter table t drop column s", _drop),
    "convert": ("alter table t alter column {n} type text using 'n' || {n}", _convert),
    "widen": ("alter table t alter column u type bigint", lambda row: None),
    "index": ("create index on t ({n})", lambda row: None),
    "wide index": ("create index on t (u, {n})", lambda row: None),
    "partial index": ("create index on t (u) where u % 2 = 0", lambda row: None),
    "expression index": ("create index on t ((u * 2))", lambda row: None),
    "unique index": ("create unique index on t (u)", lambda row: None),
    "check": ("alter table t add check (u > -1000000)", lambda row: None),
    "not null": ("alter table t alter column u set not null", lambda row: None),
    "primary key": ("alter table t alter primary key using columns (u)", lambda row: None),
    "comment": ("comment on table t is 'x'", lambda row: None),
}
# What a block can do itself.
OWN = ("frozen", "rename", "drop", "comment")


class History:
    def __init__(self, node: Node, patch: pytest.MonkeyPatch, seed: int) -> None:
        self._random = Random(seed)
        self._patch = patch
        self._block = Session(node)
        self._other = Session(node)
        self._node = node
        self.log: list[str] = []
        self._changes: list[str] = []
        self._savepoints: list[tuple[Rows, int]] = []
        self._next_id = 100
        # Whether the block itself changes the table, or others do.
        self._is_own = self._random.random() < 0.2

    def run(self) -> None:
        with closing(self._block), closing(self._other):
            self._begin()
            try:
                for _ in range(self._random.randrange(3, 12)):
                    self._step()
            except errors.UniqueViolation:
                # The block knows an index that has come since it began.
                assert self._has_duplicates()
                return
            except errors.SerializationFailure:
                # INSERT needs all columns that the block knows, and goes back to before the loss of one.
                assert self._level == "read committed"
                assert "drop" in self._changes
                return
            self._end()

    def _say(self, session: Session, statement: str) -> Any:
        self.log.append(f"{'block' if session is self._block else 'other'}: {statement}")
        return session.execute(statement)

    def _begin(self) -> None:
        other = self._other
        other.execute("drop table if exists t")
        other.execute("create table t (id int primary key, u int not null, n int, s text)")
        has_index = self._random.random() < 0.5
        if has_index:
            other.execute("create index on t (u)")
        other.execute(f"insert into t select i, i * 10, i, 'x' from generate_series(1, {COMMITTED}) as s(i)")
        other.execute("set seachange.drain_timeout = '1ms'")
        rows = {i: {"id": i, "u": i * 10, "n": i, "s": "x"} for i in range(1, COMMITTED + 1)}
        self._model = Model(rows)
        self._level = self._random.choice(["read committed", "repeatable read"])
        self._say(self._block, f"begin isolation level {self._level}")
        self._say(self._block, "select id, u from t where id = 1")

    def _step(self) -> None:
        steps = (self._write,) * 6 + (self._change,) * 3 + (self._savepoint, self._rollback_to, self._foreign_insert)
        self._random.choice(steps)()

    # The block.

    def _write(self) -> None:
        """In bulk if more than no row is too many to be written one by one."""
        rows_max = self._random.choice([0, 10_000])
        self._patch.setattr("seachange.sql.write.update.ROWS_MAX", rows_max)
        self._patch.setattr("seachange.sql.write.insert_select.ROWS_MAX", rows_max)
        self.log.append("-- in bulk" if not rows_max else "-- row by row")
        self._random.choice((self._insert, self._update, self._shift, self._delete, self._move))()

    def _own_ids(self) -> list[int]:
        return [id_ for id_ in self._model.rows if id_ < 1000]

    def _insert(self) -> None:
        count = self._random.randrange(1, 4)
        first = self._next_id
        self._next_id += count
        # Sometimes under the key of a row that was deleted.
        gone = [i for i in range(1, COMMITTED + 1) if i not in self._model.rows]
        ids = [self._random.choice(gone)] if gone and self._random.random() < 0.5 else range(first, first + count)
        listed = ", ".join(map(str, ids))
        for id_ in ids:
            self._model.rows[id_] = {"id": id_, "u": id_ * 10, "n": None, "s": None}
        self._say(self._block, f"insert into t (id, u) select i, i * 10 from unnest([{listed}]) as s(i)")

    def _some(self) -> tuple[str, list[int]]:
        tests: dict[str, Callable[[int], bool]] = {
            "id < 1000": lambda i: i < 1000,
            "id % 2 = 0 and id < 1000": lambda i: i % 2 == 0,
            "id between 3 and 7": lambda i: 3 <= i <= 7,
            "id between 100 and 999": lambda i: i >= 100,
        }
        part = self._random.choice(list(tests))
        return part, [id_ for id_ in self._own_ids() if tests[part](id_)]

    def _update(self) -> None:
        """To a value that several rows may have."""
        where, ids = self._some()
        for id_ in ids:
            self._model.rows[id_]["u"] += 1
        self._say(self._block, f"update t set u = u + 1 where {where}")

    def _shift(self) -> None:
        where, ids = self._some()
        for id_ in ids:
            self._model.rows[id_]["u"] += 10
        self._say(self._block, f"update t set u = u + 10 where {where}")

    def _delete(self) -> None:
        where, ids = self._some()
        self._say(self._block, f"delete from t where {where}")
        for id_ in ids:
            del self._model.rows[id_]

    def _move(self) -> None:
        """Rows that get other primary keys."""
        where, ids = self._some()
        if any(id_ + 20 in self._model.rows and id_ + 20 not in ids for id_ in ids) or any(i > 900 for i in ids):
            return
        self._say(self._block, f"update t set id = id + 20 where {where}")
        moved = [self._model.rows.pop(id_) for id_ in ids]
        for row in moved:
            row["id"] += 20
            self._model.rows[row["id"]] = row
        self._next_id = max(self._next_id, *self._own_ids(), 0) + 1

    def _savepoint(self) -> None:
        self._say(self._block, f"savepoint s{len(self._savepoints)}")
        rows = {id_: dict(row) for id_, row in self._model.rows.items()}
        self._savepoints.append((rows, len(self._changes)))

    def _rollback_to(self) -> None:
        if not self._savepoints:
            return
        place = self._random.randrange(len(self._savepoints))
        del self._savepoints[place + 1 :]
        rows, changes = self._savepoints[place]
        self._say(self._block, f"rollback to savepoint s{place}")
        foreign = {id_: row for id_, row in self._model.rows.items() if id_ >= 1000}
        self._model.rows = {id_: dict(row) for id_, row in rows.items() if id_ < 1000} | foreign
        if self._is_own:
            del self._changes[changes:]

    # Others.

    def _change(self) -> None:
        known = OWN if self._is_own else tuple(CHANGES)
        left = [name for name in known if name not in self._changes]
        if not left:
            return
        name = self._random.choice(left)
        column = "m" if "rename" in self._changes else "n"
        statement = CHANGES[name][0].replace("{n}", column)
        try:
            self._say(self._block if self._is_own else self._other, statement)
        except (errors.UniqueViolation, errors.FeatureNotSupported) as problem:
            # Rows that others have committed stand against it, or what was changed before.
            self.log.append(f"-- {problem}")
            return
        self._changes.append(name)

    def _foreign_insert(self) -> None:
        if self._is_own:
            return
        id_ = self._next_foreign()
        self._say(self._other, f"insert into t (id, u) values ({id_}, {id_ * 10})")
        self._model.rows[id_] = {"id": id_, "u": id_ * 10, "n": None, "s": None}

    def _next_foreign(self) -> int:
        return max([999, *(id_ for id_ in self._model.rows if id_ >= 1000)]) + 1

    # The end.

    def _end(self) -> None:
        is_refused = self._has_duplicates()
        try:
            self._say(self._block, "commit")
        except errors.UniqueViolation:
            assert is_refused
            assert check(self._node) == []
            return
        assert not is_refused
        wanted = self._model.finished([CHANGES[name][1] for name in self._changes])
        assert self._found() == wanted
        assert check(self._node) == []

    def _has_duplicates(self) -> bool:
        values = [row["u"] for row in self._model.rows.values()]
        has_unique = not {"unique index", "primary key"}.isdisjoint(self._changes)
        return has_unique and len(set(values)) < len(values)

    def _found(self) -> list[dict[str, Any]]:
        result = self._other.execute("select * from t order by id")
        rows = [dict(zip([c.name for c in result.columns or ()], row, strict=True)) for row in result.rows]
        for name in ("k", "q"):
            drawn = [row[name] for row in rows if name in row]
            assert None not in drawn
            assert len(set(drawn)) == len(drawn)
        return [{name: "drawn" if name in ("k", "q") else value for name, value in row.items()} for row in rows]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with closing(open_node(tmp_path_factory.mktemp("rebase"), None, "one")) as opened:
        opened.maintenance.paused = True
        yield opened


def run_history(node: Node, patch: pytest.MonkeyPatch, seed: int) -> None:
    history = History(node, patch, seed)
    try:
        history.run()
    except BaseException as problem:
        problem.add_note(f"seed {seed}:\n" + "\n".join(history.log))
        raise


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_own_writes_are_what_they_would_be_after_the_change(node: Node, monkeypatch: pytest.MonkeyPatch, first: int):
    for seed in range(first, first + 10):
        run_history(node, monkeypatch, seed)
