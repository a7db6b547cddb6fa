"""A schema version that follows another one is what all of its descriptors make, and so is what a block sees."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.replica.contents import Contents, contents_of
from seachange.engine.replica.schema_history import SchemaVersion, schema_of
from seachange.engine.session.session import Session
from seachange.model.ids import ColumnId, ConstraintId, DescriptorId, IndexId, LayoutId, Seq, TableId
from seachange.model.schema.constraint import ForeignKey
from seachange.model.schema.descriptor import Index, Layout, Table
from seachange.model.schema.references import Reference, references_to
from seachange.planner.object_names import names_of
from seachange.planner.object_users import users_of
from tests.engine.schema_statements import prepared_session, statement

DATABASES = ("seachange", "other", "third")
STATEMENTS = 100
IDS = (1, 2, 3, 4)


def parts(contents: Contents) -> tuple[object, ...]:
    planned = contents.planned
    maps = (contents.by_id, contents.objects, contents.by_name, contents.relations, contents.schemas, contents.enums)
    names, users = contents.links
    return (*maps, planned, names.found, names.indexes, users.users)


def references(schema: SchemaVersion) -> dict[DescriptorId, tuple[Reference, ...]]:
    tables = sorted(schema.by_id.values(), key=lambda table: table.id)
    found = {table.id: references_to(tables, table) for table in tables}
    return {id_: each for id_, each in found.items() if each}


def check_version(schema: SchemaVersion) -> None:
    every = (*schema.by_id.values(), *schema.objects.values())
    whole = schema_of(schema.seq, every)
    assert (schema.by_id, schema.objects, schema.roles) == (whole.by_id, whole.objects, whole.roles)
    assert {id_: each for id_, each in schema.references.items() if each} == references(schema)
    for database in DATABASES:
        fresh = contents_of(every, database)
        assert parts(schema.within(database)) == parts(fresh)
        planned = fresh.planned.values()
        assert schema.within(database).links == (names_of(planned, database), users_of(planned))


@pytest.fixture
def session(node: Node) -> Iterator[Session]:
    with closing(prepared_session(node)) as session:
        yield session


@pytest.mark.parametrize("seed", range(4))
def test_a_version_follows_the_one_before(node: Node, session: Session, seed: int):
    random, done = Random(seed), Counter[str]()
    for _ in range(STATEMENTS):
        # What a version follows from is made when it is asked for.
        newest = node.epoch.schemas.newest
        for database in DATABASES:
            assert newest.within(database).links[0].database == database
        sql = statement(random)
        try:
            session.execute(sql)
            done[" ".join(sql.split()[:2])] += 1
        except errors.Error as problem:
            if problem.sqlstate == "XX000":
                raise
        check_version(node.epoch.schemas.newest)
    assert len(done) >= 6, done


@pytest.mark.parametrize("seed", range(4))
def test_a_block_sees_what_it_will_commit(node: Node, session: Session, seed: int):
    """Also after errors, and savepoints to which it goes back."""
    random, checked = Random(100 + seed), 0
    for _ in range(15):
        session.execute("begin")
        session.execute("savepoint p")
        for _ in range(6):
            sql = random.choice([statement(random), statement(random), "savepoint p", "rollback to p"])
            try:
                session.execute(sql)
            except errors.Error as problem:
                if problem.sqlstate == "XX000":
                    raise
                session.execute("rollback to p")
            transaction = session.open_transaction
            if transaction is not None:
                schema = transaction.state.schema
                seen = transaction.state.pending.overlay(schema._whole.within(DATABASES[0]))
                every = (*schema.every_table(), *schema.every_object())
                assert parts(seen) == parts(contents_of(every, DATABASES[0])), sql
                checked += bool(transaction.state.pending)
        session.execute(random.choice(["commit", "commit", "rollback"]))
        check_version(node.epoch.schemas.newest)
    assert checked >= 5


def random_table(random: Random, id_: int) -> Table:
    """With one or two keys, and foreign keys to any of them, also where there are none now."""
    indexes = tuple(Index(IndexId(10 * id_ + n), f"i{n}", (), True) for n in range(random.choice([1, 2])))
    keys = []
    for n in range(random.choice([0, 1, 2])):
        parent = random.choice(IDS)
        keys.append(ForeignKey(ConstraintId(n), f"k{n}", (), TableId(parent), IndexId(10 * parent + n)))
    return Table(
        id=TableId(id_),
        version=1,
        schema="public",
        name=f"t{id_}",
        columns=(),
        primary=indexes[0],
        secondary=indexes[1:],
        foreign_keys=tuple(keys),
        layouts=(Layout(LayoutId(1), ()),),
        next_column_id=ColumnId(1),
    )


@pytest.mark.parametrize("seed", range(20))
def test_references_follow_children_and_parents(seed: int):
    random, schema = Random(seed), SchemaVersion(Seq(0))
    for seq in range(1, 60):
        changed = random.sample(IDS, random.choice([1, 2]))
        after = (random_table(random, id_) if random.random() < 0.8 else None for id_ in changed)
        schema = schema.after(
            Seq(seq), [(schema.find(DescriptorId(id_)), t) for id_, t in zip(changed, after, strict=True)]
        )
        assert {id_: each for id_, each in schema.references.items() if each} == references(schema)
