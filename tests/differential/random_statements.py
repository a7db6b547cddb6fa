"""Random statements of types that fit together, from a seed: definitions, changes of rows and queries over a few tables
whose columns they know."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.differential.random_expressions import OPERAND
from tests.differential.random_kinds import AGGREGATES, CATALOG_QUERIES, MORE_FORMS, TYPED, TYPES, VALUES, WINDOWS

# Kinds of values that an index can have here and in PostgreSQL.
KEYS = ("int", "text", "num", "date", "time", "bool", "uuid", "float")
DEPTH_MAX = 2
LABELS = ("sad", "ok", "happy")


@dataclass(frozen=True)
class RandomColumn:
    name: str
    type: str

    @property
    def kind(self) -> str:
        return TYPES[self.type][0]


@dataclass
class RandomTable:
    name: str
    columns: list[RandomColumn]
    # Of the column `id`.
    has_key: bool = True


@dataclass
class RandomStatements:
    """`tables` is what is expected to exist: a statement that fails is undone by `forget`."""

    source: random.Random
    tables: dict[str, RandomTable] = field(default_factory=dict)
    views: list[str] = field(default_factory=list)
    indexes: list[str] = field(default_factory=list)
    made: int = 0

    def name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def next(self) -> tuple[str, bool]:
        """A statement, and whether it is a query."""
        if len(self.tables) < 2:
            return self.create_table(), False
        share = self.source.random()
        if share < 0.55:
            return self.query(), True
        if share < 0.85:
            return self.source.choice(CHANGES)(self), False
        return self.source.choice(DEFINITIONS)(self), False

    def pick(self) -> RandomTable:
        return self.source.choice(list(self.tables.values()))

    def expression(self, kind: str, columns: Sequence[tuple[str, str]], depth: int = DEPTH_MAX) -> str:
        """`columns` are expressions with their kinds."""
        if depth == 0 or self.source.random() < 0.2 or kind not in MORE_FORMS:
            own = [text for text, of in columns if of == kind]
            if own and self.source.random() < 0.8:
                return self.source.choice(own)
            constant = self.source.choice(VALUES[kind])
            return constant if "::" in constant else f"({constant})::{TYPED[kind]}"
        form = self.source.choice(MORE_FORMS[kind])
        return self.fill(form, columns, depth - 1)

    def fill(self, form: str, columns: Sequence[tuple[str, str]], depth: int = DEPTH_MAX) -> str:
        made = OPERAND.sub(lambda operand: self.expression(operand[1], columns, depth), form)
        return made.replace("{{", "{").replace("}}", "}")

    def columns_of(self, table: RandomTable, alias: str = "") -> list[tuple[str, str]]:
        dot = f"{alias}." if alias else ""
        return [(TYPES[c.type][1].format(dot + c.name), c.kind) for c in table.columns]

    # Queries.

    def query(self) -> str:
        return self.source.choice(QUERIES)(self)

    def items(self, columns: Sequence[tuple[str, str]], kinds: Sequence[str]) -> str:
        return ", ".join(f"{self.expression(kind, columns)} AS c{place}" for place, kind in enumerate(kinds, 1))

    def kinds(self) -> list[str]:
        return self.source.choices(list(MORE_FORMS), k=self.source.randint(1, 3))

    def ordered(self, text: str, count: int) -> str:
        """All columns decide the order, so that LIMIT gives the same rows."""
        order = ", ".join(map(str, range(1, count + 1)))
        return text + self.source.choice(
            ("", f" ORDER BY {order}", f" ORDER BY {order} LIMIT 3", f" ORDER BY {order} OFFSET 1")
        )

    def plain_select(self) -> str:
        table, kinds = self.pick(), self.kinds()
        columns = self.columns_of(table)
        distinct = self.source.choice(("", "", "DISTINCT "))
        text = f"SELECT {distinct}{self.items(columns, kinds)} FROM {table.name}"
        if self.source.random() < 0.6:
            text += f" WHERE {self.expression('bool', columns)}"
        return self.ordered(text, len(kinds))

    def joined_select(self) -> str:
        left, right, kinds = self.pick(), self.pick(), self.kinds()
        columns = [*self.columns_of(left, "a"), *self.columns_of(right, "b")]
        way = self.source.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "USING", "LATERAL"))
        if way == "CROSS JOIN":
            join = f"CROSS JOIN {right.name} b"
        elif way == "USING":
            join = f"JOIN {right.name} b USING (id)"
        elif way == "LATERAL":
            inner = f"SELECT * FROM {right.name} r WHERE r.id >= a.id ORDER BY r.id LIMIT 1"
            join = f"LEFT JOIN LATERAL ({inner}) b ON true"
        else:
            condition = "" if way == "FULL JOIN" else f" AND {self.expression('bool', columns, 1)}"
            join = f"{way} {right.name} b ON a.id = b.id{condition}"
        return self.ordered(f"SELECT {self.items(columns, kinds)} FROM {left.name} a {join}", len(kinds))

    def grouped_select(self) -> str:
        table = self.pick()
        columns = self.columns_of(table)
        key = self.expression(self.source.choice(("int", "text", "bool", "date", "mood")), columns, 1)
        kinds = self.source.choices(list(AGGREGATES), k=2)
        found = []
        for place, kind in enumerate(kinds):
            chosen = self.fill(self.source.choice(AGGREGATES[kind]), columns, 1)
            has_filter = self.source.random() < 0.2 and "::" not in chosen[-9:] and not chosen.startswith("round")
            condition = f" FILTER (WHERE {self.expression('bool', columns, 1)})" if has_filter else ""
            found.append(f"{chosen}{condition} AS a{place}")
        having = f" HAVING count(*) > {self.source.randint(0, 2)}" if self.source.random() < 0.3 else ""
        return self.ordered(f"SELECT {key} AS k, {', '.join(found)} FROM {table.name} GROUP BY 1{having}", 3)

    def window_select(self) -> str:
        table = self.pick()
        columns = self.columns_of(table)
        calls = ", ".join(self.fill(self.source.choice(WINDOWS), columns, 1) for _ in range(2))
        partition = f"PARTITION BY {self.expression('bool', columns, 1)} " if self.source.random() < 0.5 else ""
        return f"SELECT id, {calls} FROM {table.name} WINDOW w AS ({partition}ORDER BY id) ORDER BY id"

    def nested_select(self) -> str:
        outer, inner = self.pick(), self.pick()
        columns = self.columns_of(outer, "o")
        kind = self.source.choice(("int", "text", "num", "date"))
        value = self.expression(kind, self.columns_of(inner, "i"), 1)
        test = self.source.choice(
            (
                f"{self.expression(kind, columns, 1)} IN (SELECT {value} FROM {inner.name} i)",
                f"{self.expression(kind, columns, 1)} NOT IN (SELECT {value} FROM {inner.name} i)",
                f"EXISTS (SELECT 1 FROM {inner.name} i WHERE i.id = o.id)",
                f"{self.expression(kind, columns, 1)} > ALL (SELECT {value} FROM {inner.name} i)",
                f"{self.expression(kind, columns, 1)} = (SELECT max({value}) FROM {inner.name} i)",
            )
        )
        scalar = f"(SELECT count(*) FROM {inner.name} i WHERE i.id < o.id)"
        return f"SELECT o.id, {scalar} AS n FROM {outer.name} o WHERE {test} ORDER BY 1"

    def compound(self) -> str:
        kinds = self.kinds()
        word = self.source.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT"))
        sides = []
        for _ in range(2):
            table = self.pick()
            sides.append(f"SELECT {self.items(self.columns_of(table), kinds)} FROM {table.name}")
        if self.source.random() < 0.3:
            return f"WITH l AS ({sides[0]}), r AS ({sides[1]}) SELECT * FROM l {word} SELECT * FROM r"
        return self.ordered(f"{sides[0]} {word} {sides[1]}", len(kinds))

    def rows_select(self) -> str:
        kinds = self.kinds()
        rows = ", ".join(
            "(" + ", ".join(self.source.choice([*VALUES[kind], "NULL"]) for kind in kinds) + ")"
            for _ in range(self.source.choice((1, 2, 20)))
        )
        names = ", ".join(f"c{place}" for place in range(len(kinds)))
        return self.source.choice((f"VALUES {rows}", f"SELECT * FROM (VALUES {rows}) v ({names})"))

    def distinct_select(self) -> str:
        """The first row of each group."""
        table = self.pick()
        columns = self.columns_of(table)
        kind = self.source.choice(("int", "text", "bool", "date", "mood", "inet"))
        key = self.expression(kind, columns, 1)
        rest = self.expression(self.source.choice(list(TYPED)), columns, 1)
        return f"SELECT DISTINCT ON ({key}) {key} AS k, id, {rest} AS r FROM {table.name} ORDER BY {key}, id"

    def rolled_select(self) -> str:
        table = self.pick()
        columns = self.columns_of(table)
        kinds = self.source.choices(("int", "text", "bool", "date"), k=2)
        one, other = (self.expression(kind, columns, 1) for kind in kinds)
        sets = self.source.choice(("ROLLUP (a, b)", "CUBE (a, b)", "GROUPING SETS ((a), (b), ())", "a, ROLLUP (b)"))
        inner = f"SELECT {one} AS a, {other} AS b, id FROM {table.name}"
        return f"SELECT a, b, count(*), sum(id), grouping(a, b) FROM ({inner}) q GROUP BY {sets}"

    def framed_select(self) -> str:
        table = self.pick()
        columns = self.columns_of(table)
        call = self.source.choice(("sum({int})", "count({text})", "min({num})", "max({date})", "last_value({text})"))
        frame = self.source.choice(
            (
                "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                "ROWS UNBOUNDED PRECEDING",
                "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            )
        )
        return f"SELECT id, {self.fill(call, columns, 1)} OVER (ORDER BY id {frame}) AS w FROM {table.name} ORDER BY id"

    def function_select(self) -> str:
        """Sets of rows that are made of the values of each row."""
        table = self.pick()
        columns = self.columns_of(table, "o")
        source = self.source.choice(
            (
                "unnest({texts}) AS x",
                "unnest({list}) AS x",
                "generate_series(1, ({int}) % 5) AS x",
                "jsonb_array_elements(jsonb_build_array({int}, {text})) AS x",
                "jsonb_each(jsonb_build_object('k', {num})) AS x (k, v)",
                "regexp_split_to_table({text}, 'a') AS x",
                "(SELECT {int} AS v) AS x",
            )
        )
        way = self.source.choice(("CROSS JOIN LATERAL {}", "LEFT JOIN LATERAL {} ON true"))
        joined = way.format(self.fill(source, columns, 1))
        return f"SELECT o.id, x.* FROM {table.name} o {joined}"

    def recursive_select(self) -> str:
        table = self.pick()
        test = self.expression("bool", self.columns_of(table, "t"), 1)
        return (
            f"WITH RECURSIVE r (n, p) AS (SELECT id, 1 FROM {table.name} WHERE id < 10 UNION "
            f"SELECT t.id, r.p + 1 FROM r JOIN {table.name} t ON t.id = r.n + 1 AND {test} WHERE r.p < 5) "
            f"SELECT n, max(p) FROM r GROUP BY n"
        )

    def layered_select(self) -> str:
        """Types come through subqueries, WITH and views."""
        kinds = self.kinds()
        table = self.pick()
        inner = f"SELECT id, {self.items(self.columns_of(table), kinds)} FROM {table.name}"
        columns = [("q.id", "int"), *((f"q.c{place}", kind) for place, kind in enumerate(kinds, 1))]
        outer = self.items(columns, self.kinds())
        test = self.expression("bool", columns, 1)
        if self.source.random() < 0.5:
            return f"WITH q AS ({inner}) SELECT {outer} FROM q WHERE {test}"
        return f"SELECT {outer} FROM ({inner} ORDER BY id LIMIT 5) q WHERE {test}"

    def changing_select(self) -> str:
        """Rows of a change that WITH contains."""
        table = self.pick()
        columns = self.columns_of(table)
        deleted = f"DELETE FROM {table.name} WHERE id = {self.source.randint(1, 99)} RETURNING *"
        value = self.expression(self.source.choice(list(TYPED)), columns, 1)
        return f"WITH gone AS ({deleted}) SELECT id, {value} AS c1 FROM gone"

    def catalog_select(self) -> str:
        return self.source.choice(CATALOG_QUERIES).format(self.pick().name)

    # Changes of rows.

    def value(self, column: RandomColumn) -> str:
        if self.source.random() < 0.1:
            return "NULL"
        if self.source.random() < 0.1:
            return "DEFAULT"
        return self.source.choice(VALUES[column.kind])

    def insert(self) -> str:
        table = self.pick()
        named = [c for c in table.columns if c.name != "id" and self.source.random() < 0.8]
        names = ", ".join(["id", *(c.name for c in named)])
        if self.source.random() < 0.25:
            other = self.pick()
            values = [self.expression(c.kind, self.columns_of(other), 1) for c in named]
            shift = self.source.randint(0, 40)
            rows = f"SELECT {', '.join([f'id + {shift}', *values])} FROM {other.name} WHERE id < 60"
        else:
            count = self.source.choice((1, 1, 3, 20))
            ids = self.source.sample(range(1, 100), count)
            rows = "VALUES " + ", ".join(f"({', '.join([str(i), *map(self.value, named)])})" for i in ids)
        text = f"INSERT INTO {table.name} ({names}) {rows}"
        if table.has_key and named and self.source.random() < 0.4:
            changed = self.source.choice(named)
            update = f"UPDATE SET {changed.name} = excluded.{changed.name} WHERE {table.name}.id > 5"
            text += f" ON CONFLICT (id) DO {self.source.choice(('NOTHING', update))}"
        return text + self.returning(table)

    def returning(self, table: RandomTable) -> str:
        if self.source.random() < 0.6:
            return ""
        return f" RETURNING {self.source.choice(('*', 'id', self.items(self.columns_of(table), self.kinds())))}"

    def update(self) -> str:
        table = self.pick()
        changed = [c for c in table.columns if c.name != "id"]
        if not changed:
            return self.delete()
        column = self.source.choice(changed)
        columns = self.columns_of(table, table.name)
        value = self.expression(column.kind, columns)
        text = f"UPDATE {table.name} SET {column.name} = {value}"
        if self.source.random() < 0.2:
            other = self.pick()
            inner = self.expression(column.kind, self.columns_of(other, "o"), 1)
            subquery = f"(SELECT {inner} FROM {other.name} o WHERE o.id = {table.name}.id)"
            if column.kind != "text":
                return f"UPDATE {table.name} SET {column.name} = {subquery} WHERE {table.name}.id < 30"
        if self.source.random() < 0.2:
            other = self.pick()
            if other is not table:
                return f"{text} FROM {other.name} WHERE {other.name}.id = {table.name}.id"
        if self.source.random() < 0.9:
            text += f" WHERE {self.source.choice((f'{table.name}.id = 3', self.expression('bool', columns, 1)))}"
        return text + self.returning(table).replace("RETURNING id", f"RETURNING {table.name}.id")

    def delete(self) -> str:
        table = self.pick()
        other = self.pick()
        if other is not table and self.source.random() < 0.3:
            joined = self.expression("bool", self.columns_of(other, "o"), 1)
            return (
                f"DELETE FROM {table.name} USING {other.name} o WHERE {table.name}.id = o.id AND o.id > 70 AND {joined}"
            )
        test = self.source.choice(("id = 5", f"id > 80 AND {self.expression('bool', self.columns_of(table), 1)}"))
        return f"DELETE FROM {table.name} WHERE {test}{self.returning(table)}"

    def merge(self) -> str:
        table, other = self.pick(), self.pick()
        if table is other or not table.has_key or not other.has_key:
            return self.insert()
        shared = [c for c in table.columns if c.name != "id"]
        if not shared:
            return self.insert()
        column = self.source.choice(shared)
        value = self.expression(column.kind, self.columns_of(other, "s"), 1)
        return (
            f"MERGE INTO {table.name} t USING {other.name} s ON t.id = s.id "
            f"WHEN MATCHED AND s.id > 50 THEN DELETE WHEN MATCHED THEN UPDATE SET {column.name} = {value} "
            f"WHEN NOT MATCHED THEN INSERT (id, {column.name}) VALUES (s.id, {value})"
        )

    # Definitions.

    def create_table(self) -> str:
        name = self.name("t")
        types = self.source.choices(list(TYPES), k=self.source.randint(2, 6))
        columns = [RandomColumn(f"c{place}", type_) for place, type_ in enumerate(types)]
        parts = ["id integer PRIMARY KEY", *(self.column_text(c) for c in columns)]
        numbers = [c for c in columns if c.kind == "int"]
        if numbers and self.source.random() < 0.3:
            parts.append(f"CHECK ({numbers[0].name} < 1000000)")
        if self.tables and self.source.random() < 0.3:
            parts.append(f"FOREIGN KEY (id) REFERENCES {self.pick().name} (id) ON DELETE CASCADE")
        self.tables[name] = RandomTable(name, [RandomColumn("id", "integer"), *columns])
        return f"CREATE TABLE {name} ({', '.join(parts)})"

    def column_text(self, column: RandomColumn) -> str:
        text = f"{column.name} {column.type}"
        if self.source.random() < 0.3:
            # One that is too long is an error at once here, and with the first row in PostgreSQL.
            short = [value for value in VALUES[column.kind] if len(value) < 6 or column.kind != "text"]
            text += f" DEFAULT {self.source.choice(short)}"
            if self.source.random() < 0.3:
                text += " NOT NULL"
        return text

    def drop_table(self) -> str:
        if len(self.tables) < 4:
            return self.create_table()
        table = self.tables.pop(self.pick().name)
        return f"DROP TABLE {table.name} CASCADE"

    def alter_table(self) -> str:
        table = self.pick()
        others = [c for c in table.columns if c.name != "id"]
        column = self.source.choice(others) if others else None
        if column is None or self.source.random() < 0.3:
            added = RandomColumn(self.name("x"), self.source.choice(list(TYPES)))
            table.columns.append(added)
            return f"ALTER TABLE {table.name} ADD COLUMN {self.column_text(added)}"
        start = f"ALTER TABLE {table.name} "
        match self.source.choice(("drop", "rename", "default", "no default", "null", "type", "check", "unique")):
            case "drop":
                table.columns.remove(column)
                return f"{start}DROP COLUMN {column.name} CASCADE"
            case "rename":
                made = RandomColumn(self.name("y"), column.type)
                table.columns[table.columns.index(column)] = made
                return f"{start}RENAME COLUMN {column.name} TO {made.name}"
            case "default":
                return f"{start}ALTER COLUMN {column.name} SET DEFAULT {VALUES[column.kind][0]}"
            case "no default":
                return f"{start}ALTER COLUMN {column.name} DROP DEFAULT"
            case "null":
                return f"{start}ALTER COLUMN {column.name} DROP NOT NULL"
            case "type":
                new = self.source.choice(list(TYPES))
                made = RandomColumn(column.name, new)
                table.columns[table.columns.index(column)] = made
                text = f"{start}ALTER COLUMN {column.name} TYPE {new}"
                if made.kind != column.kind or self.source.random() < 0.3:
                    text += f" USING {self.expression(made.kind, [(column.name, column.kind)], 1)}"
                return text
            case "check":
                test = self.expression("bool", [(TYPES[column.type][1].format(column.name), column.kind)], 1)
                return f"{start}ADD CONSTRAINT {self.name('k')} CHECK ({test})"
            case _:
                return f"{start}ADD CONSTRAINT {self.name('u')} UNIQUE ({column.name}, id)"

    def create_index(self) -> str:
        table, name = self.pick(), self.name("i")
        column = self.source.choice([c for c in table.columns if c.kind in KEYS])
        self.indexes.append(name)
        own = [(TYPES[column.type][1].format(column.name), column.kind)]
        key = self.source.choice((column.name, f"{column.name} DESC", f"({self.expression(column.kind, own, 1)})"))
        where = f" WHERE {self.expression('bool', own, 1)}" if self.source.random() < 0.2 else ""
        return f"CREATE {self.source.choice(('', 'UNIQUE '))}INDEX {name} ON {table.name} ({key}){where}"

    def drop_index(self) -> str:
        if not self.indexes:
            return self.create_index()
        name = self.indexes.pop(self.source.randrange(len(self.indexes)))
        return f"DROP INDEX IF EXISTS {name}"

    def create_view(self) -> str:
        name = self.name("v")
        self.views.append(name)
        return f"CREATE VIEW {name} AS {self.source.choice((self.plain_select, self.grouped_select, self.compound))()}"

    def drop_view(self) -> str:
        if not self.views:
            return self.create_view()
        return f"DROP VIEW IF EXISTS {self.views.pop()} CASCADE"

    def truncate(self) -> str:
        return f"TRUNCATE {self.pick().name} CASCADE"

    def comment(self) -> str:
        table = self.pick()
        return f"COMMENT ON COLUMN {table.name}.{self.source.choice(table.columns).name} IS 'it''s a comment'"

    def create_as(self) -> str:
        other, name = self.pick(), self.name("t")
        kept = [c for c in other.columns if c.name == "id" or self.source.random() < 0.7]
        self.tables[name] = RandomTable(name, list(kept), has_key=False)
        return f"CREATE TABLE {name} AS SELECT {', '.join(c.name for c in kept)} FROM {other.name}"


QUERIES: tuple[Callable[[RandomStatements], str], ...] = (
    RandomStatements.plain_select,
    RandomStatements.plain_select,
    RandomStatements.joined_select,
    RandomStatements.grouped_select,
    RandomStatements.window_select,
    RandomStatements.nested_select,
    RandomStatements.compound,
    RandomStatements.rows_select,
    RandomStatements.catalog_select,
    RandomStatements.distinct_select,
    RandomStatements.rolled_select,
    RandomStatements.framed_select,
    RandomStatements.function_select,
    RandomStatements.recursive_select,
    RandomStatements.layered_select,
    RandomStatements.layered_select,
)
CHANGES: tuple[Callable[[RandomStatements], str], ...] = (
    RandomStatements.insert,
    RandomStatements.insert,
    RandomStatements.insert,
    RandomStatements.update,
    RandomStatements.update,
    RandomStatements.delete,
    RandomStatements.merge,
    RandomStatements.changing_select,
)
DEFINITIONS: tuple[Callable[[RandomStatements], str], ...] = (
    RandomStatements.create_table,
    RandomStatements.drop_table,
    RandomStatements.alter_table,
    RandomStatements.alter_table,
    RandomStatements.alter_table,
    RandomStatements.create_index,
    RandomStatements.drop_index,
    RandomStatements.create_view,
    RandomStatements.drop_view,
    RandomStatements.truncate,
    RandomStatements.comment,
    RandomStatements.create_as,
)
