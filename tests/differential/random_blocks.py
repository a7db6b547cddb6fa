"""Random transaction blocks over tables that the block creates or truncates, and foreign keys to them from tables with
rows, from a seed: DDL, DML, queries and savepoints. What there is at each moment is asked of PostgreSQL."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.differential.both import Both

# Columns of these tables: names of types as the catalog has them, values, and values of many rows.
_VALUES: dict[str, tuple[str, ...]] = {
    "int4": ("0", "1", "2", "3", "7", "-1"),
    "int8": ("0", "1", "2", "5000000000"),
    "text": ("''", "'a'", "'b'", "'abc'", "'12'"),
    "numeric": ("0.5", "1.25", "-3.00"),
    "bool": ("true", "false"),
}
_SERIES: dict[str, tuple[str, ...]] = {
    "int4": ("i", "i % 7", "1 + i % 3"),
    "int8": ("i", "i * 1000000000"),
    "text": ("'v' || i", "'v' || i % 5"),
    "numeric": ("i / 4.0", "i"),
    "bool": ("i % 2 = 0",),
}
_TYPES = {"int4": "int", "int8": "bigint", "text": "text", "numeric": "numeric(12,2)", "bool": "boolean"}
# To which type, by which expression.
_CONVERSIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "int4": (("bigint", "{c}"), ("text", "{c}::text"), ("text", "'n' || {c}"), ("int", "{c} % 3"), ("smallint", "{c}")),
    "int8": (("text", "{c}::text"), ("int", "{c} % 1000")),
    "text": (("int", "length({c})"), ("varchar(3)", "{c}"), ("int", "{c}::int")),
    "numeric": (("int", "{c}::int"), ("text", "'n' || {c}")),
    "bool": (("int", "{c}::int"), ("text", "{c}::text")),
}
_CHECKS: dict[str, tuple[str, ...]] = {
    "int4": ("{c} < 8", "{c} <> 3", "{c} > -10"),
    "int8": ("{c} >= 0",),
    "text": ("length({c}) < 6", "{c} <> 'b'"),
    "numeric": ("{c} < 100000",),
    "bool": ("{c}",),
}
_INDEXED: dict[str, tuple[str, ...]] = {
    "int4": ("({c} + 1)",),
    "text": ("lower({c})", "length({c})"),
    "int8": ("abs({c})",),
}
MANY = 10_050
# What is done how often, by the names of the methods below.
_WEIGHTS: dict[str, int] = {
    "insert": 12,
    "insert_many": 5,
    "update": 7,
    "delete": 3,
    "query": 8,
    "introspect": 4,
    "save": 6,
    "roll_back": 3,
    "release": 1,
    "index": 7,
    "drop_index": 2,
    "key": 5,
    "check": 4,
    "validate": 2,
    "foreign_key": 5,
    "old_key": 3,
    "drop_constraint": 3,
    "add_column": 6,
    "drop_column": 3,
    "retype": 8,
    "alter_column": 5,
    "rename": 3,
    "truncate": 1,
    "drop": 1,
    "create_as": 1,
}

_FACTS = """
SELECT c.relname, a.attname, t.typname, a.attnotnull, a.attgenerated <> '' OR a.attidentity <> ''
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum"""
_CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, contype, ARRAY(SELECT attname::text FROM pg_attribute
 WHERE attrelid = conrelid AND attnum = ANY(conkey)), confrelid::regclass::text
FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'c', 'f') ORDER BY 1, 2"""
_INDEXES = """
SELECT x.indrelid::regclass::text, c.relname, x.indisunique, ARRAY(SELECT attname::text FROM pg_attribute
 WHERE attrelid = x.indrelid AND attnum = ANY(x.indkey)), EXISTS (SELECT 1 FROM pg_constraint
 WHERE conindid = c.oid), x.indpred IS NOT NULL OR x.indexprs IS NOT NULL
FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE c.relnamespace = 'public'::regnamespace ORDER BY 1, 2"""


@dataclass(slots=True)
class KnownTable:
    name: str
    columns: dict[str, str] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)
    constraints: list[str] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)
    # Columns in a key, or referring to one: which of several rows fails is not the same.
    unique: set[str] = field(default_factory=set)
    keys: list[str] = field(default_factory=list)
    has_primary: bool = False
    # Columns that other parts of the schema depend on: what another type would do to these differs.
    linked: set[str] = field(default_factory=set)

    @property
    def written(self) -> list[str]:
        return [name for name in self.columns if name not in self.computed]


def read_tables(both: Both) -> dict[str, KnownTable]:
    found: dict[str, KnownTable] = {}
    for table, column, type_, required, computed in both.ask_postgres(_FACTS).rows or ():
        known = found.setdefault(table, KnownTable(table))
        known.columns[column] = type_
        known.required |= {column} if required else set()
        known.computed |= {column} if computed else set()
    for table, name, kind, columns, parent in both.ask_postgres(_CONSTRAINTS).rows or ():
        known = found[table]
        known.constraints.append(name)
        known.has_primary = known.has_primary or kind == "p"
        if kind in "pu":
            known.keys += columns if len(columns) == 1 else []
        if kind in "fc":
            known.linked |= set(columns)
        if kind == "f":
            found[parent].linked |= set(found[parent].keys)
    for table, name, unique, columns, owned, computed in both.ask_postgres(_INDEXES).rows or ():
        found[table].unique |= set(columns) if unique else set()
        found[table].indexes += [] if owned else [name]
        found[table].linked |= set(found[table].columns) if computed else set()
    return found


class RandomBlock:
    """Statements of one block; `own` are the tables that it may change in any way. Names have numbers above `number`,
    since the hidden key of a table that was renamed keeps its name here."""

    def __init__(self, rng: random.Random, both: Both, number: int) -> None:
        self._rng = rng
        self._both = both
        # Tables from before, which are changed once they are truncated.
        self._old = set(read_tables(both)) - {"parent"}
        self._number = number
        self.savepoints: list[tuple[str, frozenset[str]]] = []
        self.tables: dict[str, KnownTable] = {}

    @property
    def own(self) -> list[KnownTable]:
        return [table for name, table in self.tables.items() if name not in self._old and name != "parent"]

    def next_statement(self) -> str:
        """In a transaction that has not failed."""
        self.tables = read_tables(self._both)
        if not self.own or (len(self.own) < 3 and self._rng.random() < 0.2):
            return self._truncate_old() if self._old and self._rng.random() < 0.5 else self._create()
        (name,) = self._rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        make: Callable[[KnownTable], str] = getattr(self, f"_{name}")
        return make(self._rng.choice(self.own))

    def recover(self) -> str | None:
        """From a failure; None if nothing but the end of the block is left."""
        return self._roll_back() if self.savepoints else None

    def end(self) -> str:
        return self._rng.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"])

    def _new_name(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _column(self, table: KnownTable, *types: str) -> str | None:
        fitting = [name for name in table.written if not types or table.columns[name] in types]
        return self._rng.choice(fitting) if fitting else None

    def _value(self, type_: str) -> str:
        return "NULL" if self._rng.random() < 0.1 else self._rng.choice(_VALUES.get(type_, ("NULL",)))

    # Tables.

    def _create(self) -> str:
        name = self._new_name("t")
        parts = ["id int PRIMARY KEY"] if self._rng.random() < 0.4 else ["id int"]
        for letter in "abc"[: self._rng.randint(1, 3)]:
            type_ = self._rng.choice(list(_TYPES))
            ending = self._rng.choice(["", "", "", " NOT NULL", f" DEFAULT {_VALUES[type_][0]}", " UNIQUE"])
            parts.append(f"{letter} {_TYPES[type_]}{ending}")
        return f"CREATE TABLE {name} ({', '.join(parts)})"

    def _truncate_old(self) -> str:
        name = self._rng.choice(sorted(self._old))
        self._old.discard(name)
        return f"TRUNCATE {name}"

    # Savepoints.

    def _save(self, table: KnownTable) -> str:
        del table
        name = self._rng.choice("pqr")
        self.savepoints.append((name, frozenset(self._old)))
        return f"SAVEPOINT {name}"

    def _roll_back(self, table: KnownTable | None = None) -> str:
        if not self.savepoints:
            return "SELECT 1"
        place = self._rng.randrange(len(self.savepoints))
        name = self.savepoints[place][0]
        # The newest of that name.
        place = max(n for n, (other, _) in enumerate(self.savepoints) if other == name)
        self._old = set(self.savepoints[place][1])
        del self.savepoints[place + 1 :]
        return f"ROLLBACK TO {name}"

    def _release(self, table: KnownTable) -> str:
        if not self.savepoints:
            return self._save(table)
        name = self._rng.choice(self.savepoints)[0]
        place = max(n for n, (other, _) in enumerate(self.savepoints) if other == name)
        del self.savepoints[place:]
        return f"RELEASE {name}"

    # Rows.

    def _insert(self, table: KnownTable) -> str:
        names = [name for name in table.written if name in table.required or self._rng.random() < 0.8]
        if not names:
            return f"INSERT INTO {table.name} DEFAULT VALUES"
        count = self._rng.randint(1, 4)
        rows = (", ".join(self._value(table.columns[name]) for name in names) for _ in range(count))
        return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join(f'({row})' for row in rows)}"

    def _insert_many(self, table: KnownTable) -> str:
        first = self._rng.randint(10, 1000) * 20_000
        count = MANY if self._rng.random() < 0.25 else self._rng.randint(5, 40)
        names = [name for name in table.written if table.columns[name] in _SERIES]
        # Keys are distinct numbers.
        chosen = [_SERIES[table.columns[n]][0 if n in table.unique or n == "id" else -1] for n in names]
        series = f"generate_series({first}, {first + count}) i"
        return f"INSERT INTO {table.name} ({', '.join(names)}) SELECT {', '.join(chosen)} FROM {series}"

    def _condition(self, table: KnownTable) -> str:
        name = self._rng.choice(list(table.columns))
        values = _VALUES.get(table.columns[name])
        if values is None or self._rng.random() < 0.1:
            return f"{name} IS NULL"
        return f"{name} {self._rng.choice(['=', '=', '<', '>='])} {self._rng.choice(values)}"

    def _update(self, table: KnownTable) -> str:
        name = self._column(table)
        if name is None:
            return self._query(table)
        type_ = table.columns[name]
        value = self._value(type_)
        if type_ in ("int4", "numeric") and name not in table.unique and self._rng.random() < 0.5:
            value = f"coalesce({name}, 0) + 1"
        return f"UPDATE {table.name} SET {name} = {value} WHERE {self._condition(table)}"

    def _delete(self, table: KnownTable) -> str:
        return f"DELETE FROM {table.name} WHERE {self._condition(table)}"

    def _query(self, table: KnownTable) -> str:
        name = self._rng.choice(list(table.columns))
        forms = (
            f"SELECT * FROM {table.name} WHERE {self._condition(table)}",
            f"SELECT count(*), count(DISTINCT {name}) FROM {table.name}",
            f"SELECT {name}, count(*) FROM {table.name} GROUP BY {name} HAVING count(*) > 1",
            f"SELECT * FROM {table.name} t JOIN parent p ON p.id = t.{name} LIMIT 0",
        )
        return self._rng.choice(forms[:3] if table.columns[name] != "int4" else forms)

    def _introspect(self, table: KnownTable) -> str:
        return self._rng.choice(
            (
                f"SELECT indexname FROM pg_indexes WHERE tablename = '{table.name}'",
                "SELECT conname, contype, convalidated FROM pg_constraint"
                f" WHERE conrelid = '{table.name}'::regclass AND contype <> 'n'",
                "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns"
                f" WHERE table_name = '{table.name}' AND column_default IS NULL",
            )
        )

    # Indexes and constraints.

    def _index(self, table: KnownTable) -> str:
        name = self._column(table)
        if name is None:
            return self._query(table)
        key, rng = name, self._rng
        if rng.random() < 0.25:
            key = rng.choice(_INDEXED.get(table.columns[name], ("{c}",))).format(c=name)
        elif rng.random() < 0.3:
            others = [other for other in table.columns if other != name]
            key = ", ".join([f"{name} DESC", *rng.choices(others, k=1)]) if others else name
        unique = "UNIQUE " if rng.random() < 0.4 else ""
        where = f" WHERE {self._condition(table)}" if rng.random() < 0.2 else ""
        return f"CREATE {unique}INDEX {self._new_name('i')} ON {table.name} ({key}){where}"

    def _drop_index(self, table: KnownTable) -> str:
        return f"DROP INDEX {self._rng.choice(table.indexes)}" if table.indexes else self._index(table)

    def _key(self, table: KnownTable) -> str:
        name = self._column(table)
        kind = "PRIMARY KEY" if not table.has_primary and self._rng.random() < 0.5 else "UNIQUE"
        return f"ALTER TABLE {table.name} ADD {kind} ({name or 'id'})"

    def _check(self, table: KnownTable) -> str:
        name = self._column(table, *_CHECKS)
        if name is None:
            return self._query(table)
        check = self._rng.choice(_CHECKS[table.columns[name]]).format(c=name)
        ending = " NOT VALID" if self._rng.random() < 0.2 else ""
        return f"ALTER TABLE {table.name} ADD CONSTRAINT {self._new_name('k')} CHECK ({check}){ending}"

    def _validate(self, table: KnownTable) -> str:
        names = [name for name in table.constraints if name.startswith("k")]
        if not names:
            return self._check(table)
        return f"ALTER TABLE {table.name} VALIDATE CONSTRAINT {self._rng.choice(names)}"

    def _foreign_key(self, table: KnownTable) -> str:
        name = self._column(table, "int4")
        parents = [
            (t.name, key) for t in (*self.own, self.tables["parent"]) for key in t.keys if t.columns[key] == "int4"
        ]
        if name is None or not parents:
            return self._key(table)
        parent, key = self._rng.choice(parents)
        action = self._rng.choice(["", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON UPDATE CASCADE"])
        constraint = f"{self._new_name('f')} FOREIGN KEY ({name}) REFERENCES {parent} ({key}){action}"
        return f"ALTER TABLE {table.name} ADD CONSTRAINT {constraint}"

    def _old_key(self, table: KnownTable) -> str:
        """From a table with rows of before."""
        known = [self.tables[name] for name in sorted(self._old) if name in self.tables]
        children = [(child.name, name) for child in known for name in child.columns if child.columns[name] == "int4"]
        parents = [key for key in table.keys if table.columns[key] == "int4"]
        if not children or not parents:
            return self._key(table)
        (child, name), key = self._rng.choice(children), self._rng.choice(parents)
        # Sometimes all rows have parents.
        if self._rng.random() < 0.6 and table.required <= {key}:
            free = f"SELECT DISTINCT {name} FROM {child} WHERE {name} NOT IN (SELECT {key} FROM {table.name})"
            return f"INSERT INTO {table.name} ({key}) {free}"
        ending = self._rng.choice(["", "", " ON DELETE CASCADE", " NOT VALID"])
        constraint = f"{self._new_name('f')} FOREIGN KEY ({name}) REFERENCES {table.name} ({key}){ending}"
        return f"ALTER TABLE {child} ADD CONSTRAINT {constraint}"

    def _drop_constraint(self, table: KnownTable) -> str:
        if not table.constraints:
            return self._check(table)
        ending = " CASCADE" if self._rng.random() < 0.5 else ""
        return f"ALTER TABLE {table.name} DROP CONSTRAINT {self._rng.choice(table.constraints)}{ending}"

    # Columns.

    def _add_column(self, table: KnownTable) -> str:
        name, type_ = self._new_name("c"), self._rng.choice(list(_TYPES))
        value = _VALUES[type_][0]
        number = self._column(table, "int4")
        endings = ["", f" DEFAULT {value}", f" NOT NULL DEFAULT {value}", " NOT NULL", " UNIQUE"]
        if number is not None and self._rng.random() < 0.3:
            return f"ALTER TABLE {table.name} ADD COLUMN {name} int GENERATED ALWAYS AS ({number} * 2) STORED"
        return f"ALTER TABLE {table.name} ADD COLUMN {name} {_TYPES[type_]}{self._rng.choice(endings)}"

    def _drop_column(self, table: KnownTable) -> str:
        if len(table.columns) < 3:
            return self._add_column(table)
        ending = " CASCADE" if self._rng.random() < 0.5 else ""
        return f"ALTER TABLE {table.name} DROP COLUMN {self._rng.choice(list(table.columns))}{ending}"

    def _retype(self, table: KnownTable) -> str:
        name = self._column(table, *_CONVERSIONS)
        if name is None or name in table.linked:
            return self._query(table)
        type_, using = self._rng.choice(_CONVERSIONS[table.columns[name]])
        return f"ALTER TABLE {table.name} ALTER COLUMN {name} TYPE {type_} USING {using.format(c=name)}"

    def _alter_column(self, table: KnownTable) -> str:
        name = self._column(table)
        if name is None:
            return self._query(table)
        value = _VALUES.get(table.columns[name], ("NULL",))[0]
        how = self._rng.choice(
            ["SET NOT NULL", "SET NOT NULL", "DROP NOT NULL", f"SET DEFAULT {value}", "DROP DEFAULT"]
        )
        return f"ALTER TABLE {table.name} ALTER COLUMN {name} {how}"

    def _rename(self, table: KnownTable) -> str:
        if self._rng.random() < 0.3:
            return f"ALTER TABLE {table.name} RENAME TO {self._new_name('t')}"
        return (
            f"ALTER TABLE {table.name} RENAME COLUMN {self._rng.choice(list(table.columns))} TO {self._new_name('n')}"
        )

    def _truncate(self, table: KnownTable) -> str:
        return f"TRUNCATE {table.name}"

    def _drop(self, table: KnownTable) -> str:
        return f"DROP TABLE {table.name}{self._rng.choice(['', ' CASCADE'])}"

    def _create_as(self, table: KnownTable) -> str:
        return f"CREATE TABLE {self._new_name('t')} AS SELECT * FROM {table.name}"
