"""Two schemas compared."""

from seachange.engine.session.session import Session
from seachange.replay.schema_text import Lines, describe_schema, differences

SCHEMA = """
    create type state as enum ('new', 'old');
    create table p (id bigserial primary key, code text not null, unique (code));
    create table t (
        id int primary key, p_id bigint references p on delete cascade, s state default 'new', n int,
        twice int generated always as (n * 2) stored, constraint positive check (n > 0)
    );
    create index t_low on t (lower(s::text), n desc) where n > 5;
    create view v as select id, n from t;
    create sequence numbers increment 5
"""


def lines(session: Session) -> Lines:
    return session.in_transaction(lambda txn: describe_schema([*txn.schema.tables(), *txn.schema.objects()]))


def test_equal_schemas_by_different_ddl_are_equal(session: Session):
    session.execute_all(SCHEMA)
    before = lines(session)
    for statement in (
        "alter table t add column gone int",
        "alter table t drop column gone",
        "alter table t drop constraint positive",
        "alter table t add constraint positive check (n > 0)",
        "alter table t rename column n to m",
        "alter table t rename column m to n",
        "drop index t_low",
        "create index t_low on t (lower(s::text), n desc) where n > 5",
    ):
        session.execute(statement)
    assert differences(lines(session), before) == []


def test_every_difference_is_named(session: Session):
    session.execute_all(SCHEMA)
    before = lines(session)
    for statement in (
        "alter table t alter column n set not null",
        "alter table t add column extra text",
        "alter table t drop constraint positive",
        "alter type state add value 'odd'",
        "alter sequence numbers increment 6",
        "drop index t_low",
        "create table more (id int)",
    ):
        session.execute(statement)
    told = differences(lines(session), before)
    assert [line.partition(":")[0] + ":" + line.partition(":")[2].partition(":")[0] for line in told] == [
        "not expected: column public.more.id",
        "not expected: column public.t.extra",
        "differs: column public.t.n",
        "missing: constraint public.t positive",
        "missing: index public.t t_low",
        "differs: sequence public.numbers",
        "not expected: table public.more",
        "differs: type public.state",
    ]
