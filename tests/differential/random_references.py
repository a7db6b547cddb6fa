"""Random transaction blocks that add and drop foreign keys over committed rows, from a seed: of a table to itself, and
of two tables to each other. The block writes rows before and after."""

import random

# Both tables refer to keys of both; the rows that are committed are free of violations.
BEFORE = """
CREATE TABLE n (id int PRIMARY KEY, up int, other int, g int, UNIQUE (g, id));
CREATE TABLE m (id int PRIMARY KEY, up int, other int, g int, UNIQUE (g, id));
INSERT INTO n VALUES (1, 1, NULL, 1), (2, 1, 1, 1), (3, 2, 2, 1), (4, NULL, 3, 2), (5, 3, NULL, 2), (6, 6, 2, 1);
INSERT INTO m VALUES (1, NULL, 1, 1), (2, 1, NULL, 1), (3, 3, 4, 2), (4, 2, 6, NULL);
"""
TABLES = ("n", "m")
_IDS = 9
_KEYS = (
    "(up) REFERENCES {own}",
    "(up) REFERENCES {own}",
    "(other) REFERENCES {else_}",
    "(g, up) REFERENCES {own} (g, id)",
    "(g, up) REFERENCES {own} (g, id) MATCH FULL",
    "(g, other) REFERENCES {else_} (g, id)",
)
_ACTIONS = (
    "",
    "",
    " ON DELETE CASCADE",
    " ON DELETE SET NULL",
    " ON UPDATE CASCADE",
    " ON DELETE CASCADE ON UPDATE CASCADE",
    " ON DELETE RESTRICT",
    " ON UPDATE SET NULL",
)
_TIMES = ("", "", "", " DEFERRABLE INITIALLY DEFERRED", " DEFERRABLE")
# How often each is chosen.
_WEIGHTS = {
    "add_key": 5,
    "drop_key": 1,
    "insert": 7,
    "insert_both": 3,
    "update": 6,
    "update_key": 4,
    "delete": 6,
    "delete_several": 3,
    "roll_back": 1,
    "set_constraints": 1,
    "other_change": 1,
}


class RandomReferences:
    """The statements of one block."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._number = 0
        self._keys: list[tuple[str, str]] = []
        self.savepoints = 0
        self._is_saved = False

    def next_statement(self) -> str:
        """Most statements can be undone."""
        if not self._is_saved and self._rng.random() < 0.6:
            self._is_saved = True
            return self._save("")
        self._is_saved = False
        (name,) = self._rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        statement: str = getattr(self, f"_{name}")(self._rng.choice(TABLES))
        return statement

    def _id(self) -> int:
        return self._rng.randint(1, _IDS)

    def _value(self) -> str:
        return "NULL" if self._rng.random() < 0.15 else str(self._id())

    def _row(self, id_: int, up: str | None = None) -> str:
        group = self._rng.choice(["1", "1", "2", "NULL"])
        return f"({id_}, {up or self._value()}, {self._value()}, {group})"

    def _add_key(self, table: str) -> str:
        self._number += 1
        name = f"f{self._number}"
        self._keys.append((table, name))
        other = TABLES[1 - TABLES.index(table)]
        key = self._rng.choice(_KEYS).format(own=table, else_=other)
        ending = self._rng.choice(_ACTIONS) + self._rng.choice(_TIMES)
        return f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY {key}{ending}"

    def _drop_key(self, table: str) -> str:
        if not self._keys:
            return self._add_key(table)
        table, name = self._rng.choice(self._keys)
        return f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}"

    def _insert(self, table: str) -> str:
        return f"INSERT INTO {table} VALUES {self._row(self._id() + 5)}"

    def _insert_both(self, table: str) -> str:
        first, second = self._id() + 9, self._id() + 20
        return f"INSERT INTO {table} VALUES {self._row(first, str(second))}, {self._row(second)}"

    def _update(self, table: str) -> str:
        column = self._rng.choice(["up", "up", "other", "g"])
        value = self._rng.choice(["1", "2", "NULL"]) if column == "g" else self._value()
        return f"UPDATE {table} SET {column} = {value} WHERE id {self._rng.choice(['=', '=', '<'])} {self._id()}"

    def _update_key(self, table: str) -> str:
        forms = (
            f"UPDATE {table} SET id = {self._id() + 9} WHERE id = {self._id()}",
            f"UPDATE {table} SET id = id + 30, up = up + 30 WHERE id = up",
            f"UPDATE {table} SET up = id WHERE up = {self._id()}",
        )
        return self._rng.choice(forms)

    def _delete(self, table: str) -> str:
        return f"DELETE FROM {table} WHERE id = {self._id()}"

    def _delete_several(self, table: str) -> str:
        forms = (f"id IN ({self._id()}, {self._id()}, {self._id()})", f"up = {self._id()}", f"id >= {self._id()}")
        return f"DELETE FROM {table} WHERE {self._rng.choice(forms)}"

    def _save(self, table: str) -> str:
        del table
        self.savepoints += 1
        return f"SAVEPOINT s{self.savepoints}"

    def _roll_back(self, table: str) -> str:
        return self.recover() or self._save(table)

    def recover(self) -> str | None:
        return f"ROLLBACK TO s{self.savepoints}" if self.savepoints else None

    def _set_constraints(self, table: str) -> str:
        del table
        return f"SET CONSTRAINTS ALL {self._rng.choice(['DEFERRED', 'IMMEDIATE'])}"

    def _other_change(self, table: str) -> str:
        self._number += 1
        forms = (
            f"CREATE INDEX i{self._number} ON {table} (up)",
            f"ALTER TABLE {table} ADD COLUMN c{self._number} int DEFAULT 1",
        )
        return self._rng.choice(forms)
