"""Random statements about the objects of a small schema."""

from random import Random

from seachange.engine.node.node import Node
from seachange.engine.session.session import Session

# A few names, so that statements meet objects of others, and names move from one object to another.
SETUP = (
    "create database other",
    "create schema s",
    "create type e as enum ('x')",
    "create table a (id int primary key, v int unique, w e)",
    "create table b (id int primary key, v int references a, w int)",
    "create table s.c (id serial primary key, v int references a (v))",
    "create view d as select id from a",
)


def statement(random: Random) -> str:
    table, other = (random.choice(["a", "b", "c", "s.c", "s.a", "d"]) for _ in range(2))
    name, index, schema = random.choice("abcd"), random.choice(["i", "j"]), random.choice(["public", "s"])
    return random.choice(
        [
            f"create table {table} (id int primary key, v int unique, w e)",
            f"create table {table} (id serial primary key, v int references {other})",
            f"drop table {table} cascade",
            f"create table {table} (id int primary key, v int references a, w int unique)",
            f"alter table {table} add unique (v)",
            f"alter table {table} add foreign key (w) references {other} (v)",
            f"alter table {table} rename to {name}",
            f"alter table {table} set schema {schema}",
            f"alter table {table} add foreign key (v) references {other}",
            f"alter table {table} drop column v cascade",
            f"alter table {table} add column v int",
            f"alter table {table} drop constraint {name}_pkey cascade, add primary key (id)",
            f"create index {index} on {table} (id)",
            f"alter index {index} rename to {name}",
            f"drop index {index}",
            f"create view {name} as select id from {table}",
            f"drop view {name}",
            f"alter view {name} rename to d",
            f"create sequence {name}",
            f"drop sequence {name} cascade",
            f"create type {name} as enum ('y')",
            f"drop type {name} cascade",
            "create schema s",
            "drop schema s cascade",
            "create role r",
            "drop role r",
            "create shape h",
            "drop shape h",
            "alter database other rename to third",
            "alter database third rename to other",
            f"truncate {table}",
            f"grant select on {table} to r",
        ]
    )


def prepared_session(node: Node) -> Session:
    session = Session(node)
    for sql in SETUP:
        session.execute(sql)
    return session
