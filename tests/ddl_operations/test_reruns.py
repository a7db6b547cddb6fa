"""IF EXISTS and IF NOT EXISTS, sent again: after a run that failed they do their work, after one that did not they say
so in a notice and do nothing."""

from contextlib import closing
from dataclasses import dataclass

import pytest

from seachange import errors
from seachange.engine.node.node import Node
from seachange.engine.session.session import Session
from tests.ddl_operations.test_failures import descriptors, relations


@dataclass(frozen=True, slots=True)
class Form:
    """`cause` and `cure` of the failure; without them, it is a part of a block that fails, or that refuses it."""

    statement: str
    cause: str = ""
    cure: str = ""
    sqlstate: str = "22012"


# In an order in which each finds what it is about.
FORMS = (
    Form("create schema if not exists later"),
    Form("create sequence if not exists later.numbers"),
    Form("alter sequence if exists later.numbers rename to digits"),
    Form("drop sequence if exists later.digits"),
    Form("create table if not exists later.made (id int primary key, n int generated always as identity)"),
    Form("alter table if exists later.made rename to done"),
    Form("alter table later.done add column if not exists m int not null default 3"),
    Form("alter table later.done alter n drop identity if exists"),
    Form("alter table later.done drop column if exists m"),
    Form("create view later.shown as select id from later.done; drop view if exists later.shown"),
    Form("drop table if exists later.done"),
    Form("drop schema if exists later cascade"),
    Form("alter type mood add value if not exists 'meh'"),
    Form("alter view if exists shown rename to seen"),
    Form("drop view if exists seen"),
    Form("alter index if exists t_c rename to t_by_c"),
    Form("drop index if exists t_by_c"),
    Form("alter table t drop constraint if exists known"),
    Form("alter table total alter gross drop expression if exists"),
    Form("drop type if exists mood cascade"),
    Form("create role visitor; drop role if exists visitor"),
    Form("create database shop; drop database if exists shop", sqlstate="25001"),
    Form(
        "create unique index if not exists t_a on t (a)",
        "update t set a = 10 where id = 2",
        "update t set a = 20 where id = 2",
        "23505",
    ),
    Form("create index concurrently if not exists t_q on t ((100 / c))", "", "update t set c = 1 where c = 0"),
    Form(
        "alter table t add column if not exists n int default 7 check (n > c)",
        "update t set c = 9 where id = 2",
        "update t set c = 2 where id = 2",
        "23514",
    ),
    Form(
        "create table if not exists quotients as select 100 / (c - 2) from t",
        "update t set c = 2 where id = 2",
        "update t set c = 3 where c = 2",
    ),
)


def fail(session: Session, form: Form, statement: str) -> None:
    for cause in filter(None, [form.cause]):
        session.execute(cause)
    if not form.cure:
        session.execute("begin")
        if form.sqlstate != errors.InsideBlock.sqlstate:
            session.execute(statement)
            statement = "select 1 / 0"
    with pytest.raises(errors.Error) as problem:
        session.execute(statement)
    assert problem.value.sqlstate == form.sqlstate, statement
    session.rollback()
    for cure in filter(None, [form.cure]):
        session.execute(cure)


def skips(session: Session, statement: str) -> bool:
    session.notices.clear()
    session.execute(statement)
    return any("skipping" in notice for notice in session.notices)


def test_every_form_is_sent_again(node: Node):
    with closing(Session(node)) as session:
        for form in FORMS:
            *first, statement = form.statement.split("; ")
            for each in first:
                session.execute(each)
            before = descriptors(node, False), relations(node)
            fail(session, form, statement)
            assert (descriptors(node, False), relations(node)) == before, statement
            assert not skips(session, statement), statement
            after = descriptors(node, False), relations(node)
            assert after != before, statement
            assert skips(session, statement), statement
            assert (descriptors(node, False), relations(node)) == after, statement
