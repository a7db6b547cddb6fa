"""Each operation of pgroll, as docs/schema-changes.md writes it, with an old and a new program on the table."""

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seachange.engine.session.session import Session

PAGE = Path(__file__).parents[2] / "docs/schema-changes.md"
SETUP = (
    "create table team (id int primary key)",
    "insert into team values (1), (2)",
    "create table spare (id int primary key)",
    "create table person (id int primary key, name text not null, age int, note text, code text, team_id int, "
    "constraint small check (age < 1000), constraint pair check (age <> id))",
    "create index person_age on person (age)",
    "insert into person values (1, 'Ann', 30, 'x', 'a', 1)",
    "create shape old",
)
OLD_ROW = "insert into person (id, name, age, note, code, team_id) values (2, 'Bob', 40, 'y', 'b', 2)"
OLD_ROWS = [(1, "Ann", 30, "x", "a", 1), (2, "Bob", 40, "y", "b", 2)]


@dataclass(frozen=True)
class Operation:
    """What the new program reads of the rows of both, how it writes a row, and what the old one reads of that."""

    name: str
    reads: str
    found: list[tuple[Any, ...]]
    writes: str = "insert into person (id, name, age, note, code, team_id) values (3, 'Cy', 50, 'z', 'c', 1)"
    shown: tuple[Any, ...] = (3, "Cy", 50, "z", "c", 1)
    # What the old program reads of rows 1 and 2.
    kept: list[tuple[Any, ...]] | None = None
    # Another row that the old program writes.
    row: str = OLD_ROW


OPERATIONS = (
    Operation(
        "add_column", "select id, email from person order by id", [(1, "ann@example.org"), (2, "bob@example.org")]
    ),
    Operation(
        "alter_column: name",
        "select id, title from person order by id",
        [(1, "Ann"), (2, "Bob")],
        "insert into person (id, title, age, note, code, team_id) values (3, 'Cy', 50, 'z', 'c', 1)",
    ),
    Operation(
        "alter_column: type",
        "select id, team_id from person order by id",
        [(1, "team 1"), (2, "team 2")],
        "insert into person (id, name, age, note, code, team_id) values (3, 'Cy', 50, 'z', 'c', 'team 1')",
    ),
    Operation(
        "alter_column: not null",
        "select id, note from person order by id",
        [(1, "x"), (2, "none")],
        kept=[OLD_ROWS[0], (2, "Bob", 40, None, "b", 2)],
        row="insert into person (id, name, age, code, team_id) values (2, 'Bob', 40, 'b', 2)",
    ),
    Operation(
        "alter_column: nullable",
        "select id, name from person order by id",
        [(1, "Ann"), (2, "Bob")],
        "insert into person (id, age, note, code, team_id) values (3, 50, 'z', 'c', 1)",
        (3, "unknown", 50, "z", "c", 1),
    ),
    Operation(
        "alter_column: default",
        "select id, age from person order by id",
        [(1, 30), (2, 18)],
        kept=[OLD_ROWS[0], (2, "Bob", 18, "y", "b", 2)],
        row="insert into person (id, name, note, code, team_id) values (2, 'Bob', 'y', 'b', 2)",
    ),
    Operation(
        "alter_column: check",
        "select id, age from person order by id",
        [(1, 30), (2, 0)],
        kept=[OLD_ROWS[0], (2, "Bob", 0, "y", "b", 2)],
        row=OLD_ROW.replace("40", "-40"),
    ),
    Operation(
        "alter_column: unique",
        "select id, code from person order by id",
        [(1, "a"), (2, "id 2")],
        kept=[OLD_ROWS[0], (2, "Bob", 40, "y", "id 2", 2)],
        row=OLD_ROW.replace("'b'", "null"),
    ),
    Operation(
        "alter_column: foreign key",
        "select id, team_id from person order by id",
        [(1, 1), (2, None)],
        kept=[OLD_ROWS[0], (2, "Bob", 40, "y", "b", None)],
        row=OLD_ROW.replace(", 2)", ", 77)"),
    ),
    Operation("alter_column: comment", "select col_description('person'::regclass, 2)", [("as on the passport",)]),
    Operation("create_constraint", "select count(*) from pg_constraint where conname = 'young'", [(1,)]),
    Operation("create_index", "select name from person where name > 'Ann'", [("Bob",)]),
    Operation("create_table", "select count(*) from later", [(0,)]),
    Operation(
        "drop_column",
        "select * from person order by id",
        [(1, "Ann", 30, "a", 1), (2, "Bob", 40, "b", 2)],
        "insert into person values (3, 'Cy', 50, 'c', 1)",
        (3, "Cy", 50, "gone", "c", 1),
        [(1, "Ann", 30, "gone", "a", 1), (2, "Bob", 40, "gone", "b", 2)],
    ),
    Operation("drop_constraint", "select count(*) from pg_constraint where conname = 'small'", [(0,)]),
    Operation("drop_multicolumn_constraint", "select count(*) from pg_constraint where conname = 'pair'", [(0,)]),
    Operation("drop_index", "select count(*) from pg_class where relname = 'person_age'", [(0,)]),
    Operation("drop_table", "select count(*) from pg_class where relname = 'spare'", [(0,)]),
    Operation(
        "rename_column",
        "select id, remark from person order by id",
        [(1, "x"), (2, "y")],
        "insert into person (id, name, age, remark, code, team_id) values (3, 'Cy', 50, 'z', 'c', 1)",
    ),
    Operation("rename_constraint", "select count(*) from pg_constraint where conname = 'tiny'", [(1,)]),
    Operation(
        "rename_table",
        "select id, name from people order by id",
        [(1, "Ann"), (2, "Bob")],
        "insert into people values (3, 'Cy', 50, 'z', 'c', 1)",
    ),
    Operation(
        "sql",
        "select id, first from person order by id",
        [(1, "Ann"), (2, "Bob")],
        "insert into person (id, first, age, note, code, team_id) values (3, 'Cy', 50, 'z', 'c', 1)",
    ),
)


def statements() -> dict[str, str]:
    """By operation, as the page shows them."""
    _, table = PAGE.read_text().split("<!-- tested: tests/engine/test_pgroll_operations.py -->\n")
    rows = table.split("\n\n")[0].splitlines()[2:]
    cells = [re.split(r"(?<!\\)\|", line)[1:3] for line in rows]
    return {name.replace("`", "").strip(): text.strip().strip("`").replace("\\|", "|") for name, text in cells}


def test_page_has_the_operations_that_are_tested():
    assert [name for name, text in statements().items() if text != "none"] == [o.name for o in OPERATIONS]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_operation_with_both_releases_live(operation, node):
    with closing(Session(node)) as new, closing(Session(node)) as old:
        for text in SETUP:
            new.execute(text)
        old.execute("set seachange.layout = 'old'")
        new.execute(statements()[operation.name])
        old.execute(operation.row)
        assert list(new.execute(operation.reads).rows) == operation.found
        kept = operation.kept or OLD_ROWS
        assert list(old.execute("select * from person order by id").rows) == kept
        new.execute(operation.writes)
        assert list(old.execute("select * from person where id = 3").rows) == [operation.shown]
        old.execute("update person set team_id = 1, name = name || '!' where id = 2")
        assert list(old.execute("select name, team_id from person where id = 2").rows) == [("Bob!", 1)]
