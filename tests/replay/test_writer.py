"""Writers write rows that are valid now, and after future migrations."""

from collections.abc import Sequence

from seachange.engine.session.session import Session
from seachange.replay.row_rules import Foresight, SchemaShape, dropped, foresee
from seachange.replay.writer import ReplayWriter, shape_of
from seachange.runtime.clock import SYSTEM_CLOCK
from seachange.sql.port.result import Result

EVERY_TYPE = """
    create type mood as enum ('glad', 'so so', 'it''s fine');
    create table every (
        id bigserial primary key, a smallint, b integer, c bigint, d real, e double precision, f numeric,
        g numeric(8, 3), h text, i varchar(5), j char(3), k bytea, l date, m time, n timestamp, o timestamptz,
        p interval, q uuid, r json, s jsonb, t boolean, u mood, v int[], w text[],
        x int generated always as (b + 1) stored,
        y bigint generated always as identity, z text default 'z' not null
    )
"""


def shape(session: Session) -> SchemaShape:
    return session.in_transaction(shape_of)


def write(session: Session, transactions: int, foresight: Foresight | None = None, seed: int = 1) -> ReplayWriter:
    writer = ReplayWriter(session, foresight or {}, SYSTEM_CLOCK, seed)
    for _ in range(transactions):
        writer.run_transaction()
    return writer


def count(session: Session, query: str) -> int:
    return int(session.execute(query).rows[0][0])


def rehearse(session: Session, *statements: str) -> Foresight:
    """The result of the statements, which are rolled back."""
    shapes = [shape(session)]
    session.begin()
    for statement in statements:
        session.execute(statement)
        shapes.append(shape(session))
    session.rollback()
    return foresee(shapes)


def test_a_table_of_every_type_is_written(session: Session):
    session.execute_all(EVERY_TYPE)
    tally = write(session, 60).tally
    assert (dict(tally.failed), dict(tally.refused)) == ({}, {})
    assert {"insert", "update", "delete", "read"} <= tally.actions.keys()
    assert count(session, "select count(*) from every") > 20


def test_rows_that_refer_to_others_are_unique_where_they_must_be(session: Session):
    """Now, and once there is the index to come: values that are those of other rows cannot be made up."""
    session.execute_all(
        """
        create table a (id serial primary key);
        create table b (id serial primary key, a_id int unique references a);
        create table a_b (a_id int not null references a, b_id int not null references b, unique (a_id, b_id));
        create table late (a_id int not null references a, b_id int not null references b)
        """
    )
    index = "create unique index on late (b_id, a_id)"
    assert not write(session, 150, rehearse(session, index)).tally.failed
    assert count(session, "select count(*) from late") > 10
    session.execute(index)


def test_a_writer_without_tables_waits(session: Session):
    assert write(session, 3).tally.done == 0


def test_a_table_without_a_key_is_inserted_into(session: Session):
    session.execute("create table log (line text)")
    assert not write(session, 20).tally.failed
    assert count(session, "select count(*) from log") > 5


def test_checks_are_met(session: Session):
    session.execute(
        "create table t (id int primary key, n int check (n between 500 and 505), "
        "kind text check (kind in ('a', 'b')), code text not null check (length(code) = 3), "
        "low int, high int, check (low < high), mail text check (mail like '%@%'))"
    )
    tally = write(session, 60).tally
    assert (dict(tally.failed), dict(tally.refused)) == ({}, {})
    assert count(session, "select count(distinct kind) from t") == 2


def test_parents_are_made_for_rows_that_need_them(session: Session):
    session.execute("create table a (id uuid primary key, code text not null unique)")
    session.execute("create table b (id serial primary key, a_code text not null references a (code))")
    session.execute("create table c (id serial primary key, b_id int not null references b, up int references c)")
    tally = write(session, 60).tally
    assert not tally.failed
    assert set(tally.refused) <= {"23503"}
    assert count(session, "select count(*) from c") > 5
    assert count(session, "select count(*) from c where up is not null") > 0


def test_writers_meet_future_constraints(session: Session):
    session.execute("create table t (id int primary key, mail text, n text, parent int, state text)")
    session.execute("create table p (id int primary key)")
    migrations = [
        "alter table t rename column mail to email",
        "alter table t alter column email set not null",
        "alter table t add constraint mails unique (email)",
        "alter table t alter column n type integer using n::integer",
        "alter table t add check (state in ('new', 'old'))",
        "alter table t add foreign key (parent) references p",
    ]
    foresight = rehearse(session, *migrations)
    tally = write(session, 100, foresight).tally
    assert not tally.failed
    assert count(session, "select count(*) from t") > 20
    # Each of them would be refused, had one row been written without knowing.
    for migration in migrations:
        session.execute(migration)


def test_without_foresight_a_constraint_comes_too_late(session: Session):
    """To prove that the test above can fail."""
    session.execute("create table t (id int primary key, state text)")
    write(session, 40)
    shown = session.execute("select count(*) from t where state not in ('new', 'old')").rows[0][0]
    assert shown > 0


def test_tables_that_are_left_are_not_touched(session: Session):
    session.execute("create table kept (id serial primary key)")
    session.execute("create table going (id serial primary key, kept_id int not null references kept)")
    writer = ReplayWriter(session, {}, SYSTEM_CLOCK, 1)
    writer.left = {"public.going"}
    for _ in range(20):
        writer.run_transaction()
    assert count(session, "select count(*) from going") == 0
    assert count(session, "select count(*) from kept") > 0


def test_keys_of_a_table_that_changed_are_forgotten(session: Session):
    session.execute("create table t (id int primary key, n int not null unique)")
    writer = write(session, 20)
    session.execute("alter table t alter primary key using columns (n)")
    for _ in range(20):
        writer.run_transaction()
    assert not writer.tally.failed


def test_the_same_seed_writes_the_same(session: Session):
    session.execute("create table one (id int primary key, v text)")
    write(session, 15, seed=7)
    first = session.execute("select * from one order by id").rows
    session.execute("truncate one")
    write(session, 15, seed=7)
    again = session.execute("select * from one order by id").rows
    session.execute("truncate one")
    write(session, 15, seed=8)
    other = session.execute("select * from one order by id").rows
    assert first == again != other


class Overtaken(Session):
    """Another session gives the only value of a type another name before the first INSERT."""

    other: Session | None = None

    def execute(self, text: str, values: Sequence[object] = ()) -> Result:
        if self.other is not None and text.startswith("INSERT"):
            self.other.execute("alter type mood rename value 'glad' to 'happy'")
            self.other = None
        return super().execute(text, values)


def test_writer_plans_again_after_a_value_of_an_enum_got_another_name(session: Session):
    writing = Overtaken(session.node)
    session.execute("create type mood as enum ('glad')")
    session.execute("create table t (id int primary key, m mood not null)")
    writing.other = session
    writer = write(writing, 1)
    assert (writer.tally.done, dict(writer.tally.failed)) == (1, {})
    assert session.execute("select distinct m from t").rows == [("happy",)]
    writing.close()


def test_a_drop_is_seen(session: Session):
    session.execute_all("create table a (id int); create table b (id int)")
    before = shape(session)
    session.execute("drop table a")
    session.execute("alter table b rename to c")
    assert dropped(before, shape(session)) == ("public.a",)
