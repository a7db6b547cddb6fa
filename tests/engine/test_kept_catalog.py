"""Catalog relations follow schema changes part by part, and have the rows that making them all at once would give."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from random import Random

import pyarrow as pa
import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from seachange.model.ids import DescriptorId
from seachange.model.schema.objects import Descriptor, Role, Schema
from seachange.sql.pgcatalog import kept
from seachange.sql.pgcatalog.facts import Facts
from seachange.sql.pgcatalog.kept import KeptCatalog
from seachange.sql.pgcatalog.rows import BY_DESCRIPTOR, listed_rows, make_table
from seachange.sql.pgcatalog.scan import catalog_of
from tests.engine.schema_statements import prepared_session, statement

STATEMENTS = 60
# Of these, the rows about one object show another one, or something that all share.
MORE = (
    "create or replace view d as select b.id, a.w from a join b on b.v = a.id",
    "alter type e rename to f",
    "alter type f rename to e",
    "alter table a alter w set default 'x'",
    "alter table a alter v set default nextval('c')",
    "alter table a rename column v to u",
    "alter table a rename column u to v",
    "comment on table a is 'text'",
    "alter table a owner to r",
    "set search_path to s, public",
    "set search_path to public",
)


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    with closing(prepared_session(node)) as session:
        yield session


def rows(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))


def facts_of(session: Session) -> Facts:
    return session.in_transaction(lambda transaction: catalog_of(session.port(transaction)).facts)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bits", [0, 2, 7])
def test_relations_have_the_rows_that_making_them_at_once_gives(
    session: Session, seed: int, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_PART_BITS", bits)
    random, known, done = Random(seed), None, 0
    for _ in range(STATEMENTS):
        try:
            session.execute(random.choice([statement(random), random.choice(MORE)]))
            done += 1
        except errors.Error as problem:
            if problem.sqlstate == "XX000":
                raise
        facts = facts_of(session)
        known = KeptCatalog(facts, known)
        for name in BY_DESCRIPTOR:
            assert rows(known.table(name)) == rows(make_table(facts, name)), (name, seed)
    assert done > STATEMENTS / 4


def _without_references(facts: Facts) -> Facts:
    return replace(facts, tables=tuple(replace(table, foreign_keys=()) for table in facts.tables))


def _with_other_ids(facts: Facts, kind: type[Descriptor]) -> Facts:
    def other(found: Descriptor) -> Descriptor:
        return replace(found, id=DescriptorId(found.id + 1_000)) if isinstance(found, kind) else found

    return replace(facts, objects=tuple(map(other, facts.objects)))


def _shadowing(facts: Facts) -> Facts:
    """A table in the first schema of the path gets the name of one in the second."""
    names = {"c": "a"}
    return replace(facts, tables=tuple(replace(t, name=names.get(t.name, t.name)) for t in facts.tables))


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (_without_references, "pg_class"),
        (partial(_with_other_ids, kind=Role), "pg_class"),
        (partial(_with_other_ids, kind=Schema), "pg_class"),
        (_shadowing, "pg_views"),
    ],
)
def test_rows_follow_what_changes_elsewhere(
    session: Session, change: Callable[[Facts], Facts], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the descriptors of their own part are the same."""
    monkeypatch.setattr(kept, "_PART_BITS", 0)
    session.execute("create role r; alter table a owner to r; set search_path to s, public")
    before = facts_of(session)
    after, own = change(before), {table.id: table for table in before.tables}
    # Tables that the change is not about stay the objects that they were.
    after = replace(after, tables=tuple(own[t.id] if own[t.id] == t else t for t in after.tables))
    known, fresh = KeptCatalog(before), make_table(after, ("pg_catalog", shown))
    assert rows(known.table(("pg_catalog", shown))) != rows(fresh)
    assert rows(KeptCatalog(after, known).table(("pg_catalog", shown))) == rows(fresh)


def test_a_change_makes_the_rows_of_few_descriptors(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def count(facts: Facts, name: tuple[str, str]) -> pa.Table:
        made.append(len(facts.tables) + len(facts.objects))
        return listed_rows(facts, name)

    monkeypatch.setattr(kept, "listed_rows", count)
    session.execute("; ".join(f"create table t{number} (id int primary key)" for number in range(1_000)))
    session.execute("select count(*) from pg_class")
    assert sum(made) > 1_000
    made.clear()
    session.execute("alter table t500 add column v int")
    assert session.execute("select relnatts from pg_class where relname = 't500'").rows == [(2,)]
    assert 0 < sum(made) <= 128
