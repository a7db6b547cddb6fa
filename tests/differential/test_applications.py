"""Statements as applications and object-relational mappers write them, in one order on both, with the same outcome of
each: rows, what writes return, and codes of errors."""

from pathlib import Path

from tests.differential.both import open_both, values
from tests.differential.test_expressions import FOLDER, ask_both, differences, read_lines
from tests.support.postgres import LocalPostgres

STATEMENTS = read_lines("applications.txt")
# What differs, and why.
DIFFERENT = {
    "SELECT o.*, i.* FROM orders o NATURAL JOIN (SELECT order_id AS id, count(*) AS lines FROM items GROUP BY order_id)"
    " i ORDER BY id": "a name that the list has twice is not ambiguous to ORDER BY where both are the same column",
}


def test_applications_get_the_same(postgres_server: LocalPostgres, tmp_path: Path) -> None:
    with open_both(postgres_server, tmp_path) as both:
        both.run((FOLDER / "applications.sql").read_text())
        found = differences(ask_both(both, STATEMENTS))
    print(f"applications: {len(STATEMENTS)} statements compared, {len(found)} differ")
    unlisted = [how for statement, how in found.items() if statement not in DIFFERENT]
    assert not unlisted, "\n".join(unlisted)
    assert set(found) == set(DIFFERENT)


def test_what_with_has_changed_is_not_read_in_the_same_statement(
    postgres_server: LocalPostgres, tmp_path: Path
) -> None:
    """PostgreSQL shows the rows as they were; showing them as they are would be silently another answer."""
    with open_both(postgres_server, tmp_path) as both:
        both.run((FOLDER / "applications.sql").read_text())
        both.run("CREATE VIEW held AS SELECT * FROM stock")
        for relation in ("stock", "held"):
            statement = (
                "WITH moved AS (UPDATE stock SET held = held - 1 WHERE sku = 'c' RETURNING sku)"
                f" SELECT s.held FROM moved m JOIN {relation} s USING (sku)"
            )
            assert values(both.ask_ours(statement)) == "error 0A000"
            assert values(both.ask_postgres(statement)) != "error 0A000"
        assert both.ask_ours("SELECT held FROM stock WHERE sku = 'c'").rows == ((5,),)
